"""Every collective and algorithm against one line of numpy, on ranks that are threads."""

import numpy as np
import pytest
import torch

from talka.channels import Group
from talka.errors import InvalidValueError, NotStorableError, UnknownNameError
from talka.network.algorithms import ALGORITHMS
from tests.channels.ranks import far_apart, groups, mailboxes, outcome, run

COUNTS = (1, 2, 3, 5, 8)
SIZES = (0, 1, 7, 1000, 100_000)
LONG = 3_000_001
TWINS = {
    "sum": lambda values: np.sum(values, axis=0),
    "mean": lambda values: np.mean(values, axis=0),
    "min": lambda values: np.min(values, axis=0),
    "max": lambda values: np.max(values, axis=0),
    "product": lambda values: np.prod(values, axis=0),
}


@pytest.fixture(scope="module", params=COUNTS)
def members(request):
    with groups(request.param) as members:
        yield members


@pytest.fixture(scope="module")
def trio():
    with groups(3) as members:
        yield members


def values_of(count, size, dtype=np.float32):
    """Small whole numbers: their sums are exact in any order."""
    chance = np.random.default_rng(size)
    return [chance.integers(1, 4, size).astype(dtype) for _ in range(count)]


def check_same(results, expected):
    assert len({np.asarray(result).tobytes() for result in results}) == 1
    np.testing.assert_array_equal(results[0], expected)
    assert np.asarray(results[0]).shape == np.shape(expected)


def sizes_for(members):
    return (*SIZES, LONG // 4 + 1) if len(members) in (2, 3) else SIZES


@pytest.mark.parametrize("algorithm", [None, *ALGORITHMS["all_reduce"]])
def test_all_reduce_adds_for_all(members, algorithm):
    for size in sizes_for(members):
        values = values_of(len(members), size)
        results = run(lambda g, v=values: g.all_reduce(v[g.rank], algorithm=algorithm), members)
        check_same(results, TWINS["sum"](values))


@pytest.mark.parametrize("algorithm", [None, *ALGORITHMS["reduce"]])
def test_reduce_adds_for_every_root(members, algorithm):
    for root in range(len(members)):
        for size in (7, sizes_for(members)[-1]) if root == 0 else (0, 100):
            values = values_of(len(members), size)
            results = run(
                lambda g, v=values, r=root: g.reduce(v[g.rank], root=r, algorithm=algorithm),
                members,
            )
            np.testing.assert_array_equal(results.pop(root), TWINS["sum"](values))
            assert all(result is None for result in results)


@pytest.mark.parametrize("algorithm", [None, *ALGORITHMS["broadcast"]])
def test_broadcast_gives_all_the_value_of_every_root(members, algorithm):
    for root in range(len(members)):
        for size in sizes_for(members) if root == 0 else (1, 20_000):
            value = values_of(1, size)[0]
            results = run(
                lambda g, v=value, r=root: g.broadcast(
                    v if g.rank == r else None, root=r, algorithm=algorithm
                ),
                members,
            )
            check_same(results, value)
    plain = run(lambda g: g.broadcast({"a": (1, [2])}, algorithm=algorithm), members)
    assert plain == [{"a": (1, [2])}] * len(members)


@pytest.mark.parametrize("operation", TWINS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
def test_operations_are_those_of_numpy(trio, operation, dtype):
    for algorithm in ALGORITHMS["all_reduce"]:
        values = values_of(3, 50, dtype)
        results = run(
            lambda g, v=values, a=algorithm: g.all_reduce(
                v[g.rank], operation=operation, algorithm=a
            ),
            trio,
        )
        expected = TWINS[operation](values)
        check_same(results, expected if operation == "mean" else expected.astype(dtype))


@pytest.mark.parametrize("operation, combine", [("min", "all"), ("max", "any"), ("product", "all")])
def test_truth_values_are_combined(trio, operation, combine):
    values = np.random.default_rng(0).random((3, 40)) < 0.5
    results = run(lambda g: g.all_reduce(values[g.rank], operation=operation), trio)
    check_same(results, getattr(np, combine)(values, axis=0))


@pytest.mark.parametrize("operation", ["sum", "mean"])
def test_sums_of_truth_values_are_refused(trio, operation):
    for value in (np.ones(3, bool), True, torch.ones(3, dtype=torch.bool)):
        with pytest.raises(InvalidValueError, match="whole numbers"):
            trio[0].all_reduce(value, operation=operation)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("operation", TWINS)
def test_tensors_are_combined(trio, dtype, operation):
    values = [torch.tensor(value).to(dtype) for value in values_of(3, 1000)]
    for algorithm in ALGORITHMS["all_reduce"]:
        results = run(
            lambda g, a=algorithm: g.all_reduce(values[g.rank], operation=operation, algorithm=a),
            trio,
        )
        assert all(torch.equal(results[0], result) for result in results)
        expected = TWINS[operation]([value.double().numpy() for value in values])
        torch.testing.assert_close(
            results[0].double(), torch.tensor(expected), rtol=1e-2, atol=1e-2
        )
        is_mean_of_ints = operation == "mean" and dtype == torch.int64
        assert results[0].dtype == (torch.float32 if is_mean_of_ints else dtype)


def test_numbers_are_combined(trio):
    assert run(lambda g: g.all_reduce(g.rank + 1), trio) == [6] * 3
    assert run(lambda g: g.all_reduce(g.rank + 0.5, operation="max"), trio) == [2.5] * 3
    assert run(lambda g: g.all_reduce(g.rank, operation="mean"), trio) == [1.0] * 3
    assert run(lambda g: g.reduce(g.rank, root=1), trio) == [None, 3, None]


def test_arrays_of_any_order_are_combined(trio):
    value = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    results = run(lambda g: g.all_reduce(value if g.rank else value.copy("C")), trio)
    check_same(results, 3 * value)
    np.testing.assert_array_equal(value, np.arange(12.0).reshape(3, 4))


@pytest.mark.parametrize("algorithm", ALGORITHMS["all_reduce"])
@pytest.mark.parametrize("size", [100, LONG // 4])
def test_results_come_into_out(trio, algorithm, size):
    values = values_of(3, size)
    outs = [np.empty(size, np.float32) for _ in trio]
    results = run(
        lambda g: g.all_reduce(values[g.rank], algorithm=algorithm, out=outs[g.rank]), trio
    )
    assert all(result is out for result, out in zip(results, outs, strict=True))
    check_same(outs, TWINS["sum"](values))
    own = [value.copy() for value in values]
    run(lambda g: g.all_reduce(own[g.rank], algorithm=algorithm, out=own[g.rank]), trio)
    check_same(own, TWINS["sum"](values))


@pytest.mark.parametrize("algorithm", [None, *ALGORITHMS["broadcast"]])
def test_broadcast_and_scatter_come_into_out(trio, algorithm):
    for size in (10, 500_000):
        value, outs = np.arange(size), [np.zeros(size, int) for _ in trio]
        run(
            lambda g, v=value, o=outs: g.broadcast(
                v if g.rank == 0 else None, algorithm=algorithm, out=o[g.rank] if g.rank else None
            ),
            trio,
        )
        check_same(outs[1:], value)
        run(lambda g, v=value, o=outs: g.scatter([v, v + 1, v + 2], out=o[g.rank]), trio)
        np.testing.assert_array_equal(outs[2], value + 2)


@pytest.mark.parametrize(
    "out",
    [
        np.zeros(11, np.float32),
        np.zeros(10, np.float64),
        np.zeros(20, np.float32)[::2],
        np.zeros((2, 5), np.float32),
    ],
    ids=["long", "type", "gaps", "shape"],
)
def test_an_out_of_another_form_is_refused(trio, out):
    value = np.ones(10, np.float32)
    with pytest.raises(InvalidValueError, match="out"):
        trio[0].all_reduce(value, out=out)
    with pytest.raises(InvalidValueError, match="out"):
        trio[0].reduce(value, out=out)


def test_the_mean_of_whole_numbers_has_no_room_in_out(trio):
    with pytest.raises(InvalidValueError, match="out"):
        trio[0].all_reduce(np.ones(3, int), operation="mean", out=np.ones(3, int))


def test_unknown_names_and_roots_are_refused(trio):
    group = trio[0]
    for call in (group.all_reduce, group.reduce, group.broadcast):
        with pytest.raises(UnknownNameError):
            call(np.ones(3), algorithm="fastest")
    with pytest.raises(InvalidValueError):
        group.all_reduce(np.ones(3), operation="median")
    for call in (group.reduce, group.broadcast, group.gather, group.scatter):
        for root in (-1, 3):
            with pytest.raises(InvalidValueError):
                call([1, 2, 3] if call == group.scatter else np.ones(3), root=root)
    with pytest.raises(InvalidValueError):
        group.all_to_all([1, 2])
    for value in ("text", np.array(["text"]), [1, 2]):
        with pytest.raises(NotStorableError):
            group.all_reduce(value)


def test_values_of_different_sizes_are_exchanged(members):
    count = len(members)
    values = [np.full(10 ** (rank % 6), rank) for rank in range(count)]
    for result in run(lambda g: g.all_gather(values[g.rank]), members):
        for value, other in zip(values, result, strict=True):
            np.testing.assert_array_equal(value, other)
    gathered = run(lambda g: g.gather({"rank": g.rank}, root=count - 1), members)
    assert gathered == [None] * (count - 1) + [[{"rank": rank} for rank in range(count)]]
    results = run(lambda g: g.all_to_all([(g.rank, to) for to in range(count)]), members)
    assert results == [[(source, rank) for source in range(count)] for rank in range(count)]
    parts = run(lambda g: g.scatter(list("abcdefgh"[:count]) if g.rank == 0 else None), members)
    assert parts == list("abcdefgh"[:count])
    run(lambda g: g.barrier(), members)


def test_gathered_arrays_come_into_out(trio):
    outs = [[np.zeros(30_000) for _ in trio] for _ in trio]
    run(lambda g: g.all_gather(np.full(30_000, g.rank + 1.0), out=outs[g.rank]), trio)
    for rank, out in enumerate(outs):
        sums = [array.sum() / 30_000 for array in out]
        assert sums == [float(other + 1) for other in range(3)], rank


def test_arrays_of_different_lengths_are_an_error(trio):
    def call(group):
        return outcome(lambda: group.all_reduce(np.ones(10 + group.rank), algorithm="gathered"))

    errors = run(call, trio)
    assert all(isinstance(error, ValueError) for error in errors), errors


def test_groups_of_some_ranks_do_not_meet():
    with mailboxes(4) as boxes:

        def call(box):
            whole = Group(box)
            parts = [(0, 1, 2, 3), (3, 1), (2, 0), (1, 2, 3)]
            order = parts if box.rank % 2 else parts[::-1]  # opened in a different order
            opened = {part: Group(box, part) for part in order if box.rank in part}
            for part in parts:  # used in the same one
                if part in opened:
                    group = opened[part]
                    group.send(("mine", part), to=(group.rank + 1) % group.size)
                    assert group.all_reduce(box.rank) == sum(part)
            for part in order:
                if part in opened:
                    assert opened[part].receive() == ("mine", part)
            return whole.all_reduce(1)

        assert run(call, boxes) == [4] * 4


@pytest.mark.parametrize("ranks", [(1, 2), (0, 0), ()])
def test_groups_without_this_rank_are_refused(ranks):
    with mailboxes(1) as (box,), pytest.raises(InvalidValueError):
        Group(box, ranks)


def test_collectives_work_between_machines(monkeypatch):
    far_apart(monkeypatch)
    with groups(3) as members:
        for size in (5, LONG // 4):
            values = values_of(3, size)
            for algorithm in ALGORITHMS["all_reduce"]:
                results = run(
                    lambda g, v=values, a=algorithm: g.all_reduce(v[g.rank], algorithm=a), members
                )
                check_same(results, TWINS["sum"](values))
            assert all(np.array_equal(v, values[0]) for v in run(
                lambda g, v=values: g.broadcast(v[0] if g.rank == 0 else None), members
            ))  # fmt: skip

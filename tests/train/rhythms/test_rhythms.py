"""Rhythms with real processes: equalities with one machine, restarts, failures, unequal shares."""

import pytest
import torch

from talka.engine import Embedded
from tests.train.rhythms import pairs, tasks
from tests.train.rhythms import rhythm_ranks as ranks

pytestmark = pytest.mark.slow
OPTIMIZERS = ["sgd", "momentum", "adam", "adamw"]
OUTERS = {
    None: None,
    "nesterov:0.7/0.9": (0.7, 0.9, True),
    "momentum:1/0.5": (1.0, 0.5, False),
    "sgd:0.5": (0.5, 0.0, False),
}


@pytest.fixture(scope="module")
def engine():
    with Embedded() as engine:
        yield engine


def outcomes(engine, size, calls):
    """Run functions of `rhythm_ranks` in one gang; return the results of all ranks for each call."""
    of_ranks = engine.gang(ranks.calls, calls, size=size, timeout_s=300)
    return [list(results) for results in zip(*of_ranks, strict=True)]


def runs(engine, size, cells):
    """Return the parameters of each run, which must be the same on all ranks."""
    results = outcomes(engine, size, [("run", *cell) for cell in cells])
    assert all(one[0] == result[0][0] for result in results for one in result)
    return [torch.tensor(result[0][0]) for result in results]


def close(left, right):
    torch.testing.assert_close(left, right, rtol=1e-4, atol=2e-6)


def test_one_worker_is_one_machine_to_the_bit(engine):
    cells = [
        (kind, options, name)
        for name in OPTIMIZERS
        for kind, options in [
            ("EveryStep", {}),
            ("Delayed", {"delay": 0}),
            ("LocalSGD", {"every": 1}),
            ("LocalSGD", {"every": 5}),
        ]
    ]
    for cell, parameters in zip(cells, runs(engine, 1, cells), strict=True):
        assert torch.equal(parameters, tasks.whole_batches(cell[2], 12)), cell


def test_three_workers_agree_with_one_machine_or_with_their_twin(engine):
    """Clipping is not linear, so LocalSGD with a round per step agrees only with its twin."""
    whole = [
        (kind, {"delay": 0} if kind == "Delayed" else {}, name, 12, ddp)
        for name in OPTIMIZERS
        for kind, ddp in (("EveryStep", False), ("EveryStep", True), ("Delayed", False))
    ]
    warm = {"every": 5, "warmup_steps": 8, "compressor": "onebit+ef"}
    whole += [("LocalSGD", warm, "momentum", 8, ddp) for ddp in (False, True)]
    whole.append(("EveryStep", {"accumulate": 2}, "momentum", 12, False, 2))
    local = [
        ("LocalSGD", {"every": 4, "outer": outer}, "momentum", 14, ddp)
        for outer in OUTERS
        for ddp in (False, True)
    ]
    local.append(("LocalSGD", {"every": 1}, "sgd", 14, False))
    delayed = [("Delayed", {"delay": delay}, "momentum", 10) for delay in (1, 3)]
    parameters = iter(runs(engine, 3, [*whole, *local, *delayed]))
    for cell in whole:
        close(next(parameters), tasks.whole_batches(cell[2], cell[3]))
    for _, options, name, num_steps, _ in local:
        outer = OUTERS[options.get("outer")]
        close(next(parameters), tasks.local_steps(name, num_steps, options["every"], 3, outer))
    for _, options, name, num_steps in delayed:
        close(next(parameters), tasks.delayed_steps(name, num_steps, options["delay"]))


SAVED = [
    ("EveryStep", {"compressor": "onebit+ef"}),
    ("LocalSGD", {"every": 5, "compressor": "uniform:3/max/512+ef", "outer": "nesterov:0.7/0.9"}),
    ("LocalSGD", {"every": 3, "compressor": "topk:0.1+ef", "warmup_steps": 5}),
    ("LocalSGD", {"every": 5}),
    ("Delayed", {"delay": 2, "compressor": "onebit+ef"}),
]


def test_a_saved_and_loaded_run_continues_bit_for_bit(engine, tmp_path):
    calls = [
        ("saved_and_loaded", kind, options, str(tmp_path / str(place)))
        for place, (kind, options) in enumerate(SAVED)
    ]
    for cell, of_ranks in zip(SAVED, outcomes(engine, 2, calls), strict=True):
        for straight, resumed in of_ranks:
            assert [one[0] for one in resumed] == [straight, straight], cell


def test_every_pair_of_rhythm_compressor_exchange_and_optimizer_works(engine):
    """All replicas are the same and learn. `python -m tests.train.rhythms.pairs` runs all cells."""
    cells = pairs.covering(pairs.AXES, pairs.makes_sense)
    of_ranks = engine.gang(ranks.several, [pairs.arguments(cell) for cell in cells], size=2)
    for place, cell in enumerate(cells):
        results = [results[place] for results in of_ranks]
        assert len({result[0] for result in results}) == 1, cell
        assert results[0][1] < 1.6, cell  # at the start it is 1.7


FAILURES = [
    ("uneven", "UnevenRoundsError", "left the rhythm after"),
    ("nan", "WorkerDivergedError", "became NaN or infinite on rank 1"),
    ("raises", "RuntimeError", "the disk of this worker is broken"),
    ("shape", "ModelsDifferError", "the shape of '2.weight'"),
    ("options", "ModelsDifferError", "the rhythm"),
]
FAILING = [("EveryStep", {"compressor": "onebit+ef"}), ("LocalSGD", {"every": 3})]


def check_failure(how, kind, text, errors):
    assert all(name for name, _ in errors), errors
    assert any(name == kind and text in message for name, message in errors), errors
    if kind == "ModelsDifferError":
        assert {name for name, _ in errors} == {kind}
    elif how != "uneven":  # there two ranks can notice it at the same time
        for name, message in (errors[0], errors[2]):
            assert name == "PeerFailedError"
            assert "rank 1 failed" in message
            assert text in message


def test_every_rank_gets_a_clear_error(engine):
    cells = [(*failure, *cell) for failure in FAILURES for cell in FAILING]
    calls = [("failing", how, kind, options) for how, _, _, kind, options in cells]
    for cell, errors in zip(cells, outcomes(engine, 3, calls), strict=True):
        check_failure(*cell[:3], errors)


def test_the_error_is_clear_also_if_the_process_ends_with_it(engine):
    for failure in FAILURES[:2]:
        errors = engine.gang(ranks.failing, failure[0], *FAILING[0], size=3, timeout_s=60)
        check_failure(*failure, errors)


def test_unequal_shares_equal_one_machine_with_the_whole_batch(engine):
    cells = [("EveryStep", {}), ("LocalSGD", {"every": 1}), ("Delayed", {"delay": 0})]
    calls = [("unequal_shares", *cell, [13, 10, 1]) for cell in cells]
    whole = tasks.whole_batches("sgd", 8)
    for (kind, _), of_ranks in zip(cells, outcomes(engine, 3, calls), strict=True):
        if kind != "LocalSGD":  # there each worker clips its own gradient
            close(torch.tensor(of_ranks[0][0]), whole)
        assert [sum(map(len, drawn)) for _, drawn in of_ranks] == [8 * 13, 8 * 10, 8]


def test_shares_follow_the_speed_and_every_sample_is_drawn_once(engine):
    """Also if a loader has drawn batches in advance."""
    seconds = [0.001, 0.001, 0.004]
    calls = [("measured_shares", seconds, workers_of_loader) for workers_of_loader in (0, 2)]
    for of_ranks in outcomes(engine, 3, calls):
        assert {tuple(counts) for counts, _ in of_ranks} == {(11, 11, 2)}
        seen = [sample for _, samples in of_ranks for sample in samples]
        assert sorted(seen) == list(range(24 * 30))


def test_averages_are_weighted(engine):
    expected = torch.linspace(-1, 1, 600) * (0 * 1 + 1 * 2 + 2 * 3) / 3
    cells = [
        *(("none", "ring"), ("none", "two-phase"), ("none", "all-gather"), ("none", "tree")),
        *(("none", "master"), ("none", "hierarchical"), ("fp16", "direct"), ("powersgd:4", None)),
    ]
    calls = [("weighted_averages", *cell) for cell in cells]
    for of_ranks in outcomes(engine, 3, calls):
        for average in of_ranks:
            torch.testing.assert_close(torch.tensor(average), expected, rtol=2e-3, atol=2e-3)


def test_buffers_are_averaged_and_momentum_by_option(engine):
    kept, averaged, [warnings, _] = outcomes(
        engine,
        2,
        [("buffers_and_momentum", False), ("buffers_and_momentum", True), ("two_passes",)],
    )
    for first, second in (kept, averaged):
        assert first[0] == second[0]
        assert (first[1] == second[1]) == ((first, second) == tuple(averaged))
    assert "accumulate=N" in warnings[0]

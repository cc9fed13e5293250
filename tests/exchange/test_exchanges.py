"""Compressors x exchanges x numbers of ranks, with real processes, against the twin."""

import pytest
import torch

from talka.compress import layout_of
from talka.engine import Embedded
from talka.errors import SpecError, UnknownNameError
from talka.exchange import EXCHANGES, open_exchange
from talka.exchange.power_sgd import powersgd_rank
from talka.exchange.registry import COMPRESSED
from tests.exchange.cells import BUCKETS, ONE_BUCKET, run_cells, vector
from tests.exchange.twin import Twin

SPECS = [
    *("none", "fp16", "bf16+ef", "trunc16", "onebit", "onebit+ef", "uniform:3", "terngrad"),
    *("uniform:3/max/512+ef", "qsgd:7", "topk:0.01+ef", "randomk:0.1", "randomk:0.1+ef"),
    *("threshold:auto+ef", "threshold:0.001", "significance:2+ef"),
]
ADDING = ("none", "fp16", "bf16+ef", "randomk:0.1", "randomk:0.1+ef")
NUM_STEPS, KEEP = 12, 3


def cells():
    for name in COMPRESSED:
        for spec in SPECS:
            if name in ("ring", "direct", "tree") and spec not in ADDING:
                continue
            if name == "global-topk" and not spec.startswith("topk"):
                continue
            yield spec, name


WITH_TWINS = list(cells())
CELLS = [*WITH_TWINS, ("powersgd:1", "low-rank"), ("powersgd:4", "low-rank")]


@pytest.fixture(scope="module")
def outcomes():
    """Return the results of every rank in every cell, by number of ranks."""
    with Embedded() as engine:
        return {
            size: engine.gang(run_cells, CELLS, NUM_STEPS, KEEP, size=size) for size in (1, 2, 3, 4)
        }


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_replicas_have_the_same_bits(outcomes, size):
    for number, cell in enumerate(CELLS):
        digests = {ranks[number][0] for ranks in outcomes[size]}
        assert len(digests) == 1, cell


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "number", range(len(WITH_TWINS)), ids=[f"{spec}-{name}" for spec, name in WITH_TWINS]
)
def test_the_average_is_the_twins(outcomes, number, size):
    """The twin of low-rank is in test_low_rank.py."""
    spec, name = WITH_TWINS[number]
    kept = outcomes[size][0][number][1]
    hosts = [list(range(size))[start : start + 2] for start in range(0, size, 2)]
    twin = Twin(spec, size, hosts)
    for step in range(KEEP):
        for bucket, shapes in enumerate(BUCKETS):
            layout = layout_of(shapes)
            vectors = [vector(layout, rank, step, bucket) for rank in range(size)]
            expected = getattr(twin, name.replace("-", "_"))(vectors, layout)
            got = torch.tensor(kept[step][bucket])
            if name == "ring":
                close = {"rtol": 0.02, "atol": 0.02} if "16" in spec else {}
                torch.testing.assert_close(got, expected, **close)
            else:
                assert torch.equal(got, expected), (spec, name, step, bucket)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("name", [name for name in COMPRESSED if name != "global-topk"])
def test_without_compression_it_is_the_plain_average(outcomes, name, size):
    kept = outcomes[size][0][CELLS.index(("none", name))][1]
    for bucket, shapes in enumerate(BUCKETS):
        layout = layout_of(shapes)
        vectors = [vector(layout, rank, 0, bucket) for rank in range(size)]
        plain = torch.stack(vectors).double().mean(0).float()
        torch.testing.assert_close(torch.tensor(kept[0][bucket]), plain, rtol=1e-6, atol=1e-7)


def test_what_all_send_all_receive(outcomes):
    for size, ranks in outcomes.items():
        for number, cell in enumerate(CELLS):
            sent = sum(rank[number][2] for rank in ranks)
            received = sum(rank[number][3] for rank in ranks)
            assert sent == received, (size, cell)
            assert (sent > 0) == (size > 1), (size, cell)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_replicas_stay_the_same_over_200_steps(part):
    some = CELLS[part::3]
    with Embedded() as engine:
        ranks = engine.gang(run_cells, some, 200, 0, ONE_BUCKET, size=3)
    for number, cell in enumerate(some):
        assert len({rank[number][0] for rank in ranks}) == 1, cell


@pytest.mark.slow
@pytest.mark.parametrize("size", [5, 8])
def test_more_ranks_than_blocks_are_the_same_too(size):
    some = CELLS[::5]
    with Embedded() as engine:
        ranks = engine.gang(run_cells, some, 5, 0, size=size)
    for number, cell in enumerate(some):
        assert len({rank[number][0] for rank in ranks}) == 1, cell


def test_exchanges_refuse_what_they_cannot_carry():
    from talka.compress import compressor

    with pytest.raises(SpecError, match="cannot be summed while encoded.*two-phase"):
        COMPRESSED["ring"].check(compressor("onebit+ef"))
    with pytest.raises(SpecError, match="does not keep the K largest values"):
        COMPRESSED["global-topk"].check(compressor("onebit+ef"))


@pytest.mark.parametrize("spec", ["powersgd", "powersgd:", "powersgd:0", "powersgd:x"])
def test_a_powersgd_without_a_rank_is_refused(spec):
    with pytest.raises(SpecError, match="powersgd:4"):
        powersgd_rank(spec)


def test_an_unknown_exchange_is_refused_with_the_nearest_name_and_all_names():
    with pytest.raises(UnknownNameError) as caught:
        open_exchange("onebit+ef", "two-fase")
    assert "Did you mean 'two-phase'?" in str(caught.value)
    assert all(name in str(caught.value) for name in EXCHANGES)


def test_only_powersgd_goes_by_low_rank_and_it_by_nothing_else():
    with pytest.raises(SpecError, match="powersgd:4"):
        open_exchange("onebit+ef", "low-rank")
    with pytest.raises(SpecError, match="is an exchange itself"):
        open_exchange("powersgd:4", "ring")


def test_the_former_name_of_an_option_works_with_a_warning(alone):
    with pytest.warns(DeprecationWarning, match="'whole_below' is now called 'min_compressed_val"):
        exchange = open_exchange("onebit+ef", whole_below=256)
    assert exchange.worker.inner.min_compressed_values == 256
    exchange.close()

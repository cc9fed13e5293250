"""Channels of gangs on all engines: messages, collectives, exchanges of subsets, lost ranks."""

import os
import time

import numpy as np
import pyarrow as pa
import pytest

from talka.channels import MailboxOptions
from talka.channels.events import CollectivesRan
from talka.engine import Embedded
from talka.errors import ChannelTimeoutError, LostWorkerError
from talka.events import Run, read_run


def talk(worker):
    following, previous = (worker.rank + 1) % worker.size, (worker.rank - 1) % worker.size
    worker.send(np.full(50_000, worker.rank), to=following, tag="array")
    worker.send(pa.table({"rank": [worker.rank]}), to=following, tag="table")
    array = worker.receive(source=previous, tag="array")
    table = worker.receive(source=previous, tag="table")
    total = worker.all_reduce(np.arange(3.0) + worker.rank)
    gathered = worker.all_gather((worker.rank, "x"))
    return [int(array[-1]), table["rank"].to_pylist(), total.tolist(), gathered]


def test_ranks_exchange_messages_and_collectives(engine):
    results = engine.gang(talk, size=3, backend=None)
    gathered = [(0, "x"), (1, "x"), (2, "x")]
    assert results == [[2, [2], [3.0, 6.0, 9.0], gathered]] + [
        [rank - 1, [rank - 1], [3.0, 6.0, 9.0], gathered] for rank in (1, 2)
    ]


def survive(worker):
    """Rank 1 ends while the others wait for it; they continue with each other."""
    worker.barrier()
    if worker.rank == 1:
        os._exit(7)
    start = time.perf_counter()
    with pytest.raises(LostWorkerError, match="lost rank 1"):
        worker.receive(source=1)
    lost_s = time.perf_counter() - start
    with pytest.raises(LostWorkerError, match="lost rank 1"):
        worker.send(1, to=1)
    other = 2 - worker.rank
    worker.send("still here", to=other)
    return [worker.receive(source=other), lost_s < 5]


def test_survivors_of_a_lost_rank_continue(engine):
    first, second, third = engine.gang(survive, size=3, backend=None, on_failure="report")
    assert first == third == ["still here", True]
    assert "died" in str(second)


def lose_one_in_a_ring(worker, algorithm):
    """Rank 2 of 5 ends in a collective; the others wait for each other until all have noticed."""
    worker.barrier()
    if worker.rank == 2:
        time.sleep(0.1)
        os._exit(7)
    with pytest.raises(LostWorkerError, match="lost rank 2") as raised:
        worker.all_reduce(np.ones(10), algorithm=algorithm)
    worker.rendezvous.set(f"noticed {worker.rank}", b"")
    for rank in {0, 1, 3, 4} - {worker.rank}:
        worker.rendezvous.get(f"noticed {rank}", 30)
    return list(raised.value.ranks)


@pytest.mark.parametrize("algorithm", ["ring", "tree", "direct"])
def test_a_death_ends_a_collective_on_all_ranks_also_on_those_far_from_it(algorithm):
    with Embedded() as engine:
        results = engine.gang(
            lose_one_in_a_ring, algorithm, size=5, backend=None, on_failure="report"
        )
    assert [results[rank] for rank in (0, 1, 3, 4)] == [[2]] * 4


def wait_for_one_that_has_finished(worker):
    if worker.rank == 0:
        worker.send(np.ones(1_000_000), to=1)  # is read after this rank has finished
        return 0
    time.sleep(0.3)
    total = worker.receive(source=0).sum()
    with pytest.raises(LostWorkerError, match="it has finished"):
        worker.receive(source=0, tag="never sent")
    return float(total)


def test_a_rank_that_has_finished_is_not_waited_for():
    with Embedded() as engine:
        assert engine.gang(wait_for_one_that_has_finished, size=2, backend=None) == [0, 1e6]


def block(worker):
    if worker.rank:
        worker.barrier()
        return None
    with pytest.raises(ChannelTimeoutError, match="send to rank 1, which does not receive"):
        worker.send(np.zeros(1 << 20), to=1, timeout_s=0.1)
    worker.barrier()
    return worker.options.buffer_bytes


def test_options_reach_the_ranks():
    with Embedded() as engine:
        options = MailboxOptions(buffer_bytes=1 << 16)
        assert engine.gang(block, size=2, backend=None, channels=options)[0] == 1 << 16


def averages_of_subsets(worker):
    """Open and close exchanges of changing ranks: the second time used to fail."""
    import torch

    from talka.exchange import open_exchange

    averages = []
    for _ in range(3):
        for ranks in ((0, 1), (1, 2), (0, 1, 2)):
            if worker.rank in ranks:
                exchange = open_exchange("none", group=ranks)
                averages.append(float(exchange.average(torch.tensor([float(worker.rank)])).wait()))
                exchange.close()
    exchange = open_exchange("onebit", group=worker)
    exchange.average(torch.ones(3)).wait()
    exchange.close()
    return averages


@pytest.mark.parametrize("backend", [None, "gloo"])
def test_exchanges_of_any_ranks_open_any_number_of_times(backend):
    with Embedded() as engine:
        results = engine.gang(averages_of_subsets, size=3, backend=backend)
    assert results == [3 * [0.5, 1.0], 3 * [0.5, 1.5, 1.0], 3 * [1.5, 1.0]]


def test_collectives_become_events_with_predictions(tmp_path):
    with Run("talk", {}, root=tmp_path) as run, Embedded(events=run.stream) as engine:
        engine.gang(talk, size=3, backend=None)
        run.finish({})
    ran = [stamped.event for stamped in read_run(run.dir).events]
    sums = [event for event in ran if isinstance(event, CollectivesRan)]
    assert {event.name for event in sums} == {"all_reduce", "all_gather"}
    assert all(event.predicted_s > 0 and event.seconds > 0 for event in sums)

"""The contract of gangs, tested on all engines."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from talka.engine.events import RankLost
from talka.errors import (
    GangError,
    GangTimeoutError,
    InvalidValueError,
    NotShippableError,
    RendezvousTimeoutError,
)
from tests.waiting import wait_until


def all_reduce(worker, factor):
    import torch
    import torch.distributed as dist

    values = torch.full((4,), float(worker.rank + 1))
    dist.all_reduce(values)
    print("rank", worker.rank, "is done")
    return {"sum": factor * float(values[0]), "rank": dist.get_rank(), "size": worker.size}


def test_a_gang_shares_a_process_group(engine):
    results = engine.gang(all_reduce, 10, size=3)
    assert results == [{"sum": 60.0, "rank": rank, "size": 3} for rank in range(3)]


def die_as_rank_1(worker):
    import torch.distributed as dist

    print("rank", worker.rank, "was here")
    if worker.rank == 1:
        os._exit(7)
    dist.barrier()


def raise_as_rank_1(worker):
    import torch.distributed as dist

    if worker.rank == 1:
        raise ValueError("no such luck")
    dist.barrier()


@pytest.mark.parametrize(
    "main, how",
    [
        (die_as_rank_1, r"died \(exit code 7\)"),
        (raise_as_rank_1, "raised ValueError: no such luck"),
    ],
)
def test_a_rank_that_fails_ends_the_gang_and_is_named_with_its_log(engine, main, how):
    with pytest.raises(GangError, match=f"rank 1 of 2 {how}") as caught:
        engine.gang(main, size=2)
    if how.startswith("died"):
        assert "rank 1 was here" in str(caught.value)
    else:
        assert "test_contract.py" in caught.value.how


def hang(worker):
    threading.Event().wait()


def test_a_gang_that_hangs_is_ended_at_its_time_limit(engine):
    with pytest.raises(GangError, match="rank 0 of 2 had not finished after 1 s"):
        engine.gang(hang, size=2, timeout_s=1, backend=None)


# Handles.


def test_a_handle_returns_before_the_results_and_stop_ends_all_ranks(engine, tmp_path):
    def main(worker):
        (tmp_path / f"{worker.rank}-{os.getpid()}").touch()
        threading.Event().wait()

    gang = engine.start_gang(main, size=2, backend=None)
    wait_until(lambda: len(os.listdir(tmp_path)) == 2)
    with pytest.raises(GangTimeoutError, match=r"after 0.01 s: ranks 0, 1 are running"):
        gang.wait(timeout_s=0.01)
    gang.stop()
    gang.stop()
    processes = [name.partition("-")[2] for name in os.listdir(tmp_path)]
    assert not any(os.path.exists(f"/proc/{process}") for process in processes)
    with pytest.raises(GangError, match=r"rank 0 of 2 was ended by stop\(\)"):
        gang.wait()


def test_a_block_that_raises_stops_its_gang_and_one_that_does_not_waits(engine):
    with pytest.raises(KeyError), engine.start_gang(hang, size=1, backend=None):
        raise KeyError("user's own")
    with engine.start_gang(lambda worker: worker.rank, size=2, backend=None) as gang:
        pass
    assert gang.wait() == gang.wait(timeout_s=0) == [0, 1]
    with (
        pytest.raises(GangError, match="ZeroDivisionError"),
        engine.start_gang(lambda worker: 1 // worker.rank, size=1, backend=None),
    ):
        pass


def test_two_gangs_run_at_the_same_time(engine):
    """The first one ends after the second, and has another secret."""

    def main(worker, role):
        return [role, worker.secret]

    with engine.start_gang(hang, size=1, backend=None) as first:
        [[role, secret]] = engine.gang(main, "second", size=1, backend=None)
        assert (role, len(secret)) == ("second", 32)
        first.stop()


def test_functions_that_cannot_be_sent_are_refused_at_once(engine):
    lock = threading.Lock()
    with pytest.raises(NotShippableError, match="lock"):
        engine.start_gang(lambda worker: lock, size=1, backend=None)


def test_large_results_and_arguments_come_back_as_they_were(engine):
    data = np.arange(300_000)
    results = engine.gang(lambda worker, x: x * worker.rank, data, size=2, backend=None)
    np.testing.assert_array_equal(results[1], data)
    assert results[0].sum() == 0


# Roles.


def test_roles_have_their_own_functions_and_arguments(engine):
    def serve(worker, common, name):
        return [worker.role, worker.index, worker.rank, common, name]

    def work(worker, common):
        return [worker.role, worker.index, worker.rank, worker.ranks_of("server")]

    results = engine.gang(
        {"worker": work, "server": serve},
        5,
        size={"server": 1, "worker": 2},
        args_of={"server": ("name",)},
        backend=None,
    )
    assert results == [
        ["server", 0, 0, 5, "name"],
        ["worker", 0, 1, (0,)],
        ["worker", 1, 2, (0,)],
    ]


def test_without_a_backend_torch_is_not_imported_and_address_and_secret_are_known(engine):
    def main(worker):
        import sys

        return ["torch" in sys.modules, worker.address, worker.secret]

    (has_torch, address, secret), second = engine.gang(main, size=2, backend=None)
    assert not has_torch
    assert address.startswith("127.")
    assert len(secret) == 32
    assert second[2] == secret


# Failures that are reported.


def survive(worker, signum):
    """Rank 1 dies; the others wait until they have learned of it."""
    if worker.rank == 1:
        worker.rendezvous.set("address", b"of 1")
        print("rank 1 was here")
        os.kill(os.getpid(), signum)
        raise ValueError("not killed")
    heard = threading.Event()
    worker.losses.add_listener(lambda rank, how: heard.set())
    heard.wait()
    return [sorted(worker.losses.ranks.items()), worker.rendezvous.get("address")]


@pytest.mark.parametrize(
    "signum, how",
    [(signal.SIGKILL, "died (killed by SIGKILL"), (0, "raised ValueError: not killed")],
)
def test_a_rank_that_is_lost_is_reported_to_the_others_which_continue(engine, signum, how):
    results = engine.gang(survive, signum, size=3, backend=None, on_failure="report")
    lost = results[1]
    assert isinstance(lost, GangError)
    assert lost.how.startswith(how)
    assert "rank 1 was here" in lost.log_tail
    for rank in (0, 2):
        [[(reported, reason)], address] = results[rank]
        assert (reported, reason) == (1, lost.how)
        assert address == b"of 1"  # the rendezvous survives the rank
    [event] = [event for event in engine.events.events if isinstance(event, RankLost)]
    assert event == RankLost(1, "worker", lost.how)


def test_only_the_failure_of_all_ranks_is_raised(engine):
    with pytest.raises(GangError, match="rank . of 2 raised ZeroDivisionError"):
        engine.gang(lambda worker: 1 // 0, size=2, backend=None, on_failure="report")


# The rendezvous.


def meet(worker):
    """Two threads wait for keys that another rank sets, and delay neither each other nor a `set`."""
    found, other = {}, 1 - worker.rank

    def wait_for(key):
        found[key] = worker.rendezvous.get(key)

    keys = [f"{other}/a", f"{other}/b"]
    threads = [threading.Thread(target=wait_for, args=(key,)) for key in keys]
    for thread in threads:
        thread.start()
    time.sleep(0.05 * worker.rank)  # so that one rank is first
    worker.rendezvous.set(f"{worker.rank}/b", bytes(1 << 20))
    worker.rendezvous.set(f"{worker.rank}/a", str(worker.rank).encode())
    for thread in threads:
        thread.join()
    return [found[keys[0]], len(found[keys[1]])]


def test_threads_of_ranks_meet(engine):
    assert engine.gang(meet, size=2, backend=None) == [[b"1", 1 << 20], [b"0", 1 << 20]]


def test_a_key_that_is_never_set_is_named_with_the_seconds(engine):
    def main(worker):
        try:
            worker.rendezvous.get("server/7", timeout_s=0.05)
        except RendezvousTimeoutError as error:
            return str(error)

    [text] = engine.gang(main, size=1, backend=None)
    assert "no rank has set the key 'server/7' of the rendezvous within 0.05 s" in text


def test_values_that_are_too_large_are_refused(engine):
    def main(worker):
        try:
            worker.rendezvous.set("k", bytes((1 << 20) + 1))
        except InvalidValueError as error:
            return str(error)

    [text] = engine.gang(main, size=1, backend=None)
    assert "must be at most 1048576 bytes: a rendezvous is for addresses, not for data" in text

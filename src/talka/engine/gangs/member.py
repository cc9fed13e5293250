"""A rank that was forked: join the process group, call `main`, send its result to the driver."""

import contextlib
import dataclasses
import mmap
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from talka.channels.options import MailboxOptions
from talka.engine import parcels, storage
from talka.engine.calls import apply, explain
from talka.engine.gangs.driver_channel import DriverChannel, DriverRendezvous
from talka.engine.gangs.group import file_store, join_group, tcp_store, use_interface_of
from talka.engine.gangs.losses import Losses
from talka.engine.gangs.relay import Relay
from talka.engine.gangs.spec import RankFailed
from talka.engine.gangs.worker import GangWorker
from talka.engine.local import wire
from talka.engine.shipping import unship
from talka.events import Event, Measured, PhaseAdvanced, PhaseEnded, PhaseStarted, Stream
from talka.guard import Caught

PROGRESS: Final = (PhaseStarted, PhaseAdvanced, PhaseEnded, Measured)
"""Events of rank 0 that reach listeners of the driver, such as the progress bar; one rank is enough, as
all do the same work. The events of all ranks are in their files."""
_RELAY_TIMEOUT_S: Final = 10.0


def is_progress(event: Event) -> bool:
    """Return whether this event of rank 0 reaches listeners of the driver."""
    return event.IS_PROGRESS or isinstance(event, PROGRESS)


def serve(channel: socket.socket, store: int, mains: int) -> None:
    """Take part in one gang, from the first frame of the driver to the last.

    Parameters
    ----------
    store
        Descriptor of an unnamed file through which ranks of one machine find each other.
    mains
        Descriptor of a file with the functions of all roles; the first frame has the place in it.
    """
    hello, _ = wire.receive(channel)
    sys.path[:] = hello["path"]
    losses = Losses()
    driver = DriverChannel(channel, losses)
    function: Any = None
    with Caught() as caught:
        function, args = _main(mains, *hello["main"])
        with _events(hello, driver) as events:
            worker = _worker(hello, events, driver, losses)
            _join(hello, worker, store)
            with worker.taking_part():
                content = storage.to_storable(apply(function, (worker, *args)))
        wrapped = parcels.wrap([content])
        driver.send({"result": wrapped.labels}, wrapped.descriptors)
        driver.wait_for_bye()
        worker.leave()
        if hello["backend"] is not None:
            import torch.distributed as dist

            dist.destroy_process_group()
    if isinstance(caught.error, RankFailed):
        driver.send({"failed": caught.error.how})
    elif caught.error is not None:
        problem = explain(caught.error, function, ())
        sys.stderr.write(problem.traceback)
        sys.stderr.flush()
        driver.send({"problem": list(problem)})


def _main(mains: int, start: int, end: int) -> Any:
    """Return the function and the arguments at a place in the file of all functions."""
    with mmap.mmap(mains, end, prot=mmap.PROT_READ) as mapped, memoryview(mapped) as whole:
        os.close(mains)
        with whole[start:end] as shipped:
            return unship(shipped)


def _worker(
    hello: dict[str, Any], events: Stream, driver: DriverChannel, losses: Losses
) -> GangWorker:
    log_path = hello["log_path"]
    return GangWorker(
        hello["rank"],
        len(hello["roles"]),
        events,
        None if log_path is None else Path(log_path),
        roles=tuple(hello["roles"]),
        rendezvous=DriverRendezvous(driver),
        secret=hello["secret"],
        losses=losses,
        address=hello["address"],
        options=MailboxOptions(**hello["channels"]),
    )


def _join(hello: dict[str, Any], worker: GangWorker, store: int) -> None:
    if hello["backend"] is None:
        os.close(store)
        return
    if hello["is_local"]:
        keys = file_store(store, worker.size)
    else:
        os.close(store)
        use_interface_of(worker.address)
        keys = tcp_store(worker.address, worker.rank, worker.size, worker.rendezvous)
    join_group(hello["backend"], rank=worker.rank, size=worker.size, store=keys)


@contextlib.contextmanager
def _events(hello: dict[str, Any], driver: DriverChannel) -> Iterator[Stream]:
    """Provide the stream of a rank: a file of the run directory, or lines for the driver."""
    if not hello["is_local"]:
        relay = Relay(lambda lines: bool(driver.call({"lines": lines}, _RELAY_TIMEOUT_S)["taken"]))
        try:
            yield Stream(lines_to=relay.add)
        finally:
            relay.close()
        return
    run_dir = hello["run_dir"]
    path = None if run_dir is None else Path(run_dir) / f"events.rank-{hello['rank']}.jsonl"
    stream = Stream(path)
    with stream.listening(lambda event: _forward(event, driver, hello["rank"])):
        yield stream


def _forward(event: Event, driver: DriverChannel, rank: int) -> None:
    """Send progress of rank 0 to the listeners of the driver."""
    if rank == 0 and is_progress(event):
        fields = [getattr(event, field.name) for field in dataclasses.fields(event)]
        driver.send({"event": type(event).__name__, "fields": fields})

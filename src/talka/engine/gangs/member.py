"""A rank of a local gang: join the process group, call `main`, send its result to the driver."""

import dataclasses
import socket
import sys
from pathlib import Path
from typing import Any

from talka.engine.calls import apply, explain
from talka.engine.gangs.gang import PROGRESS, encoded
from talka.engine.gangs.worker import GangWorker
from talka.engine.local import wire
from talka.engine.shipping import unship
from talka.events import Event, Stream
from talka.guard import Caught


def serve(channel: socket.socket, store: int) -> None:
    """Take part in one gang, from the first frame of the driver to the last.

    Ranks exchange addresses through the unnamed file `store`. Other users of this machine cannot
    read or set keys there, as they could in a store that listens on loopback.
    """
    hello, _ = wire.receive(channel)
    sys.path[:] = hello["path"]
    rank, size = hello["rank"], hello["size"]
    function: Any = None
    with Caught() as caught:
        import torch.distributed as dist
        from torch.distributed import FileStore  # type: ignore[attr-defined]  # not in its __all__

        keys = FileStore(f"/proc/self/fd/{store}", size)
        dist.init_process_group("gloo", store=keys, rank=rank, world_size=size)
        function, args = unship(hello["main"])
        worker = GangWorker(rank, size, _stream(hello), _log_path(hello))
        with worker.events.listening(lambda event: _forward(event, channel, rank)):
            result = encoded(apply(function, (worker, *args)))
        wire.send(channel, {"result": result.labels}, result.descriptors)
        wire.receive(channel)  # all ranks are done: only now may connections be closed
        dist.destroy_process_group()
    if caught.error is not None:
        problem = explain(caught.error, function, ())
        sys.stderr.write(problem.traceback)
        sys.stderr.flush()
        wire.send(channel, {"problem": list(problem)})


def _forward(event: Event, channel: socket.socket, rank: int) -> None:
    """Send progress of rank 0 to the listeners of the driver."""
    if rank == 0 and isinstance(event, PROGRESS):
        fields = [getattr(event, field.name) for field in dataclasses.fields(event)]
        wire.send(channel, {"event": type(event).__name__, "fields": fields})


def _stream(hello: dict[str, Any]) -> Stream:
    if hello["run_dir"] is None:
        return Stream()
    return Stream(Path(hello["run_dir"]) / f"events.rank-{hello['rank']}.jsonl")


def _log_path(hello: dict[str, Any]) -> Path | None:
    return None if hello["log_path"] is None else Path(hello["log_path"])

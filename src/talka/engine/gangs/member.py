"""What a rank of a local gang does: join the others, call main, tell what it returned."""

import dataclasses
import socket
import sys
from pathlib import Path
from typing import Any

from talka.engine.calls import apply, explain
from talka.engine.gangs.gang import GangWorker, encoded
from talka.engine.local import wire
from talka.engine.shipping import unship
from talka.events import Event, Measured, PhaseAdvanced, PhaseEnded, PhaseStarted, Stream
from talka.guard import Caught

_SHOWN = (PhaseStarted, PhaseAdvanced, PhaseEnded, Measured)


def serve(channel: socket.socket, store: int) -> None:
    """Take part in one gang, from the driver's first frame to its last.

    Ranks meet in the file `store`, which has no name: other users of this machine cannot read or
    set keys there, as they could in a store that listens on loopback.
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
        with worker.events.listening(lambda event: _show(event, channel, rank)):
            result = encoded(apply(function, (worker, *args)))
        wire.send(channel, {"result": result.labels}, result.descriptors)
        wire.receive(channel)  # all are done: only now may connections close
        dist.destroy_process_group()
    if caught.error is not None:
        problem = explain(caught.error, function, ())
        sys.stderr.write(problem.traceback)
        sys.stderr.flush()
        wire.send(channel, {"problem": list(problem)})


def _show(event: Event, channel: socket.socket, rank: int) -> None:
    """How far rank 0 is goes to the driver's progress bar; all ranks do the same work."""
    if rank == 0 and isinstance(event, _SHOWN):
        fields = [getattr(event, field.name) for field in dataclasses.fields(event)]
        wire.send(channel, {"event": type(event).__name__, "fields": fields})


def _stream(hello: dict[str, Any]) -> Stream:
    if hello["run_dir"] is None:
        return Stream()
    return Stream(Path(hello["run_dir"]) / f"events.rank-{hello['rank']}.jsonl")


def _log_path(hello: dict[str, Any]) -> Path | None:
    return None if hello["log_path"] is None else Path(hello["log_path"])

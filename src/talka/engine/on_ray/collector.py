"""Events and output of ranks on Ray, written into the run directory of the driver.

rank: Relay -> actor of its machine --take--> driver: events.rank-R.jsonl
rank: log -> actor of its machine --take--> driver: logs/rank-R.log
"""

from typing import IO

from talka.engine.gangs.fork_server import open_log
from talka.engine.gangs.member import is_progress
from talka.events import Stamped, Stream
from talka.events.parsing import parsed
from talka.guard import Logged


class Collector:
    """Writes the events of all ranks, and shows the progress of rank 0 to listeners of the driver."""

    def __init__(self, events: Stream) -> None:
        self._events = events
        self._streams: dict[int, Stream] = {}
        self._logs: dict[int, IO[bytes]] = {}

    @property
    def takes_logs(self) -> bool:
        """True if there is a run directory for the output of ranks."""
        return self._events.dir is not None

    def write(self, rank: int, lines: bytes) -> None:
        """Write lines of a rank."""
        folder = self._events.dir
        if folder is not None:
            if rank not in self._streams:
                self._streams[rank] = Stream(folder / f"events.rank-{rank}.jsonl")
            self._streams[rank].append(lines)
        if rank == 0:
            for line in lines.splitlines():
                content = parsed(line, "rank-0")
                if isinstance(content, Stamped) and is_progress(content.event):
                    self._events.notify_listeners(content.event)

    def write_log(self, rank: int, output: bytes) -> None:
        """Write what a rank has printed. A full disk does not stop the gang."""
        folder = self._events.dir
        if folder is None:
            return
        with Logged("write the log of a rank"):
            if rank not in self._logs:
                self._logs[rank] = open_log(folder / "logs" / f"rank-{rank}.log")
            self._logs[rank].write(output)

    def close(self) -> None:
        """Close all files."""
        for stream in self._streams.values():
            stream.close()
        for log in self._logs.values():
            log.close()

"""Events of ranks on Ray, written into the run directory of the driver.

rank: Relay -> actor of its machine --take--> driver: events.rank-R.jsonl
"""

from talka.engine.gangs.member import PROGRESS
from talka.events import Stamped, Stream
from talka.events.parsing import parsed


class Collector:
    """Writes the events of all ranks, and shows the progress of rank 0 to listeners of the driver."""

    def __init__(self, events: Stream) -> None:
        self._events = events
        self._streams: dict[int, Stream] = {}

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
                if isinstance(content, Stamped) and isinstance(content.event, PROGRESS):
                    self._events.notify_listeners(content.event)

    def close(self) -> None:
        """Close all files."""
        for stream in self._streams.values():
            stream.close()

"""Send the events of a rank to its driver in batches, from a machine without the run directory.

    rank: emit -> line -> buffer --(every half second, or when it is large)--> send -> driver's file

Emitting never waits for the network. A rank that is killed loses the lines since its last batch.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

from talka.events import Noted
from talka.events.stream import line_of
from talka.guard import Caught, logger

EVERY_S: Final = 0.5
BATCH_BYTES: Final = 1 << 18
MAX_BUFFER_BYTES: Final = 1 << 24
_CLOSE_S: Final = 10.0


class Relay:
    """A buffer of lines, and a thread that sends them.

    Parameters
    ----------
    send
        Sends a batch of whole lines; returns False if the receiver has no room for it now.
    """

    def __init__(self, send: Callable[[bytes], bool]) -> None:
        self._send = send
        self._lines: list[bytes] = []
        self._num_bytes = 0
        self._num_lost = 0
        self._is_closed = False
        self._condition = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="talka-events", daemon=True)
        self._thread.start()

    def add(self, line: bytes) -> None:
        """Add a line. If the buffer is full, it is dropped, and a later event has their number."""
        with self._condition:
            if self._num_bytes + len(line) > MAX_BUFFER_BYTES:
                self._num_lost += 1
                return
            self._lines.append(line)
            self._num_bytes += len(line)
            if self._num_bytes >= BATCH_BYTES:
                self._condition.notify()

    def close(self) -> None:
        """Send what is left; gives up after ten seconds."""
        with self._condition:
            self._is_closed = True
            self._condition.notify()
        self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        batch = b""
        while True:
            with self._condition:
                self._condition.wait_for(self._is_due, timeout=EVERY_S)
                batch = batch or self._take()
                is_last = self._is_closed and not batch
            if is_last:
                return
            with Caught() as caught:
                if batch and self._send(batch):
                    batch = b""
                elif batch:
                    time.sleep(EVERY_S)  # the receiver has no room
            if caught.error is not None:
                logger.warning("events cannot be sent to the driver: %r", caught.error)
                return

    def _is_due(self) -> bool:
        return self._is_closed or self._num_bytes >= BATCH_BYTES

    def _take(self) -> bytes:
        lines, num_taken = self._lines, 0
        size = 0
        while num_taken < len(lines) and size < BATCH_BYTES:
            size += len(lines[num_taken])
            num_taken += 1
        batch = b"".join(lines[:num_taken])
        del lines[:num_taken]
        self._num_bytes -= size
        if self._num_lost:
            message = (
                f"{self._num_lost:,} events were lost, as the driver did not receive them in time"
            )
            batch += line_of(Noted("events", message))
            self._num_lost = 0
        return batch

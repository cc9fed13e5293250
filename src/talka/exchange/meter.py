"""Counters of the exchanges of one worker: bytes and seconds."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Literal

Work = Literal["encode_s", "wait_s", "decode_s"]


@dataclass(slots=True)
class Meter:
    """Bytes and seconds since the start; only the exchange thread changes them.

    Copy it before and after a step to get the difference.
    """

    sent_bytes: int = 0
    """Bytes of payloads that were sent, without headers of TCP and IP."""
    received_bytes: int = 0
    encode_s: float = 0.0
    wait_s: float = 0.0
    """Seconds the exchange thread waited for the network or for other workers."""
    decode_s: float = 0.0
    num_calls: int = 0

    @contextmanager
    def timed(self, work: Work) -> Iterator[None]:
        """Add the seconds of a block to one of the counters."""
        start = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, work, getattr(self, work) + time.perf_counter() - start)

    def copy(self) -> "Meter":
        """Return the counters as they are now."""
        return Meter(*(getattr(self, field.name) for field in fields(self)))

    def __add__(self, other: "Meter") -> "Meter":
        return Meter(
            *(getattr(self, field.name) + getattr(other, field.name) for field in fields(self))
        )

    def __sub__(self, earlier: "Meter") -> "Meter":
        return Meter(
            *(getattr(self, field.name) - getattr(earlier, field.name) for field in fields(self))
        )

"""What the exchanges of one worker did so far: bytes and seconds."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Literal

Work = Literal["encode_s", "wait_s", "decode_s"]


@dataclass(slots=True)
class Meter:
    """Counts up; only the exchange's own thread writes. Take a copy before and after."""

    sent_bytes: int = 0
    """Payloads only; headers of TCP and IP come on top."""
    received_bytes: int = 0
    encode_s: float = 0.0
    wait_s: float = 0.0
    """Seconds in which the thread had nothing to do but wait for others."""
    decode_s: float = 0.0
    num_calls: int = 0

    @contextmanager
    def timed(self, work: Work) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, work, getattr(self, work) + time.perf_counter() - start)

    def copy(self) -> "Meter":
        return Meter(*(getattr(self, field.name) for field in fields(self)))

    def __add__(self, other: "Meter") -> "Meter":
        return Meter(
            *(getattr(self, field.name) + getattr(other, field.name) for field in fields(self))
        )

    def __sub__(self, earlier: "Meter") -> "Meter":
        return Meter(
            *(getattr(self, field.name) - getattr(earlier, field.name) for field in fields(self))
        )

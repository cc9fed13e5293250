"""What a job over text may take of the machine, and whom it tells how far it is."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from talka.errors import InvalidValueError
from talka.machine import available_memory_bytes

_USUAL_BYTES = 2_000_000_000

Advance = Callable[[float], None]
"""Called with the amount of work just done; the amounts of a phase sum up to its total."""


def ignore_progress(amount: float) -> None:
    """For callers that do not want to know."""


def default_memory_bytes() -> int:
    """2 GB, or half of the memory that is available now if that is less."""
    return max(1, min(_USUAL_BYTES, available_memory_bytes() // 2))


@dataclass(frozen=True, kw_only=True, slots=True)
class Resources:
    num_threads: int = 2

    memory_bytes: int = field(default_factory=default_memory_bytes)
    """Budget for the arrays that grow with the text; what is beyond it goes to `work_dir`.
    The interpreter and its packages (about 200 MB) and the words themselves come on top."""

    work_dir: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    """Where unnamed files are made; nothing in it outlives the process."""

    def __post_init__(self) -> None:
        for name in ("num_threads", "memory_bytes"):
            value = getattr(self, name)
            if value < 1:
                raise InvalidValueError(name, value, "a whole number of at least 1")
        if not self.work_dir.is_dir():
            raise InvalidValueError("work_dir", str(self.work_dir), "a folder that exists")

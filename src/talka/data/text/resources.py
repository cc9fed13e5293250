"""Resource limits of text processing, and progress callbacks."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from talka.errors import InvalidValueError
from talka.files import temporary_folder
from talka.machine import available_memory_bytes

_USUAL_BYTES = 2_000_000_000

Advance = Callable[[float], None]
"""A function called with the amount of work just done; the amounts of a phase sum to its total."""


def ignore_progress(amount: float) -> None:
    """Ignore progress; the default `Advance`."""


def default_memory_bytes() -> int:
    """Return 2 GB, or half of the available memory if that is less."""
    return max(1, min(_USUAL_BYTES, available_memory_bytes() // 2))


@dataclass(frozen=True, kw_only=True, slots=True)
class Resources:
    """Threads, memory and disk that text processing may use."""

    num_threads: int = 2

    memory_bytes: int = field(default_factory=default_memory_bytes)
    """Memory budget for arrays that grow with the text; arrays beyond it are moved to `work_dir`.
    Not included: the interpreter and its packages (about 200 MB) and the words themselves."""

    work_dir: Path = field(default_factory=temporary_folder)
    """Folder for unnamed temporary files, which disappear with the process."""

    def __post_init__(self) -> None:
        for name in ("num_threads", "memory_bytes"):
            value = getattr(self, name)
            if value < 1:
                raise InvalidValueError(name, value, "a whole number of at least 1")
        if not self.work_dir.is_dir():
            raise InvalidValueError("work_dir", str(self.work_dir), "a folder that exists")

"""Trial of the memory: copies between arrays larger than all caches, and fresh pages."""

import mmap
import time

import numpy as np

from talka.profile.trial import Trial, median_seconds

_COPY_BYTES = 256 << 20  # larger than the caches of large server processors
_FRESH_BYTES = 64 << 20


def _measure() -> dict[str, float]:
    source = np.ones(_COPY_BYTES // 8)
    target = np.zeros_like(source)
    copy_s = median_seconds(lambda: np.copyto(target, source), repeats=3)
    return {"copy_bytes_per_s": _COPY_BYTES / copy_s, "fresh_bytes_per_s": _fresh_bytes_per_s()}


def _fresh_bytes_per_s() -> float:
    """Return the rate at which pages that this process never used are zeroed and mapped."""
    with mmap.mmap(-1, _FRESH_BYTES) as pages:
        start = time.perf_counter()
        view = np.frombuffer(pages, np.uint8)
        view[:: mmap.PAGESIZE] = 1
        seconds = time.perf_counter() - start
        del view
    return _FRESH_BYTES / max(seconds, 1e-9)


MEMORY = Trial(
    "memory",
    "copies of large arrays, and memory that is used the first time",
    ("copy_bytes_per_s", "fresh_bytes_per_s"),
    _measure,
)

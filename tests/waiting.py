"""Wait for what another process or thread does, without keeping a core busy."""

import time
from collections.abc import Callable

_PAUSE_S = 0.005


def wait_until(condition: Callable[[], object], timeout_s: float = 200.0) -> None:
    """Return once `condition()` is true; raise TimeoutError if it takes longer than that."""
    end_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end_s:
            raise TimeoutError(f"nothing happened within {timeout_s} s")
        time.sleep(_PAUSE_S)

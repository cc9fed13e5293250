"""Trial of the embedded engine: how long until worker processes have run their first task."""

import time

from talka.engine.local.embedded import Embedded
from talka.machine import num_cores
from talka.profile import Trial


def _measure() -> dict[str, float]:
    with Embedded() as engine:
        start = time.perf_counter()
        refs = [engine.submit(_nothing, python=True) for _ in range(num_cores())]
        engine.fetch(refs)
        return {"start_s": time.perf_counter() - start}


def _nothing() -> int:
    return 0


WORKERS = Trial("engine/workers", "starting worker processes, one per core", ("start_s",), _measure)

"""A job that never ends by itself; test_cleanup.py interrupts it at a random moment.

python -m tests.engine.interrupted_script embedded|ray RUN_DIR
"""

import sys
import time
from pathlib import Path

import numpy as np

from talka.events import Run


def ones():
    return np.ones(50_000)


def slow(x):
    deadline = time.monotonic() + 0.05
    while time.monotonic() < deadline:
        pass
    return np.asarray(x) + 1


def main(kind, folder):
    with Run("interrupted", {}, root=Path(folder)) as run:
        print("started", flush=True)
        if kind == "embedded":
            from talka.engine import Embedded

            make = Embedded(memory_bytes=2_000_000, spill_dir=folder, events=run.stream)
        else:
            from talka.engine import OnRay

            make = OnRay(events=run.stream)
        with make as engine:
            while True:
                refs = [engine.submit(ones, python=i % 2 == 0) for i in range(8)]
                refs += [engine.submit(slow, ref, python=True) for ref in refs]
                engine.wait(refs)
                engine.release(refs[:8])
                engine.gang(lambda worker: worker.rank, size=2)


if __name__ == "__main__":
    main(*sys.argv[1:])

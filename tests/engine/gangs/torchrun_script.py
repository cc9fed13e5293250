"""Run by torchrun in test_gang.py: the existing ranks are the gang."""

import sys

import numpy as np

from talka.engine import Embedded
from talka.errors import InvalidValueError


def main(worker, factor):
    import torch
    import torch.distributed as dist

    values = torch.ones(2) * (worker.rank + 1)
    dist.all_reduce(values)
    return np.full(worker.rank + 1, factor * float(values[0])) if worker.rank else values.tolist()


if __name__ == "__main__":
    with Embedded() as engine:
        results = engine.gang(main, 10, size=2)
        try:
            engine.gang(main, 10, size=3)
        except InvalidValueError as error:
            refusal = str(error)
    print([results[0], results[1].tolist(), refusal], file=sys.stderr, flush=True)

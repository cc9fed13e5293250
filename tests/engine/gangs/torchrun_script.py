"""Run by torchrun in test_processes.py: the existing ranks are the gang."""

import sys

import numpy as np

from talka.engine import Embedded
from talka.errors import InvalidValueError, RendezvousTimeoutError


def main(worker, factor):
    import torch
    import torch.distributed as dist

    values = torch.ones(2) * (worker.rank + 1)
    dist.all_reduce(values)
    assert worker.all_reduce(worker.rank + 1) == 3, "channels, too"
    return np.full(worker.rank + 1, factor * float(values[0])) if worker.rank else values.tolist()


def serve(worker):
    worker.rendezvous.set("secret", worker.secret)
    received = worker.rendezvous.get("greeting").decode()
    try:
        worker.rendezvous.get("never", timeout_s=0.02)
    except RendezvousTimeoutError as error:
        text = str(error).partition(". Check")[0]
    return [worker.role, worker.index, received, text, worker.address]


def work(worker, number):
    worker.rendezvous.set("greeting", b"from 1")
    has_same_secret = worker.rendezvous.get("secret") == worker.secret != b""
    return [worker.role, worker.index, number, has_same_secret, [3.0, 3.0]]


def with_roles(engine, backend):
    gang = engine.start_gang(
        {"server": serve, "worker": work},
        size={"server": 1, "worker": 1},
        args_of={"worker": (5,)},
        backend=backend,
    )
    return gang.wait()


if __name__ == "__main__":
    with Embedded() as engine:
        without_group = with_roles(engine, None)
        results = engine.gang(main, 10, size=2)
        with_group = with_roles(engine, "gloo")
        try:
            engine.gang(main, 10, size=3)
        except InvalidValueError as error:
            refusal = str(error)
    results = [results[0], results[1].tolist(), refusal, without_group, with_group]
    print(results, file=sys.stderr, flush=True)

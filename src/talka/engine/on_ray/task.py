"""What runs inside a Ray worker: one task, outputs in storage form, a receipt behind them."""

import os
import socket
import time
from typing import Any, NamedTuple

import numpy as np

from talka.engine import storage
from talka.engine.calls import TaskProblem, call, explain
from talka.engine.shipping import unship
from talka.engine.storage import PackedValue
from talka.guard import Caught


class Receipt(NamedTuple):
    """What the driver hears of a task that ran."""

    machine: str
    worker: str
    start_s: float
    end_s: float
    sizes_bytes: tuple[int, ...]
    """Of each output."""
    problem: tuple[Any, ...] | None


def run_task(shipped: bytes, constants: bytes | None, num_outputs: int, *inputs: Any) -> list[Any]:
    """Outputs, then the receipt. A problem of the user's travels in the receipt."""
    start_s = time.time()
    function: Any = None
    arguments: list[Any] = []
    stored: list[Any] = [None] * num_outputs
    problem: TaskProblem | None = None
    with Caught() as caught:
        arguments = [value_of(value) for value in inputs]
        function = unship(shipped)
        for position, constant in unship(constants) if constants else ():
            arguments.insert(position, constant)
        outcome = call(function, arguments, num_outputs)
        if isinstance(outcome, TaskProblem):
            problem = outcome
        else:
            stored = [stored_form(value) for value in outcome]
    if caught.error is not None:
        problem = explain(caught.error, function, arguments)
    sizes_bytes = tuple(0 if value is None else len(value) for value in stored)
    return [*stored, _receipt(start_s, sizes_bytes, problem)]


def stored_form(value: Any) -> Any:
    """Plain values as bytes, Arrow and numpy as an IPC file in an array, which Ray maps uncopied."""
    if isinstance(value, PackedValue):
        return value.data
    return np.frombuffer(storage.to_buffer(value), np.uint8)


def value_of(stored: Any) -> Any:
    if isinstance(stored, bytes):
        return storage.unpack(PackedValue(stored))
    return storage.from_buffer(stored)


def _receipt(start_s: float, sizes_bytes: tuple[int, ...], problem: TaskProblem | None) -> Receipt:
    import ray

    return Receipt(
        machine=ray.get_runtime_context().get_node_id(),
        worker=f"{socket.gethostname()}/{os.getpid()}",
        start_s=start_s,
        end_s=time.time(),
        sizes_bytes=sizes_bytes,
        problem=None if problem is None else tuple(problem),
    )

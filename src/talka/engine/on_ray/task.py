"""A task inside a Ray worker: returns its outputs in storage form, followed by a receipt."""

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
    """Report to the driver about a task that ran."""

    machine: str
    """Id of the machine in Ray."""
    worker: str
    """Host name and process id of the worker."""
    start_s: float
    """Seconds since 1970 at which the task started."""
    end_s: float
    """Seconds since 1970 at which the task ended."""
    sizes_bytes: tuple[int, ...]
    """Size of each output in bytes."""
    problem: tuple[Any, ...] | None
    """Fields of a `TaskProblem`; None if the task succeeded."""


def run_task(shipped: bytes, constants: bytes | None, num_outputs: int, *inputs: Any) -> list[Any]:
    """Run a task and return its outputs and the receipt, which contains the problem if it failed."""
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
    """Return a storable value as bytes, or as an array with an Arrow IPC file, which Ray maps."""
    if isinstance(value, PackedValue):
        return value.data
    return np.frombuffer(storage.to_buffer(value), np.uint8)


def value_of(stored: Any) -> Any:
    """Decode what `stored_form` returned."""
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

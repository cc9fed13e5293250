"""The engine for many machines. Ray places, moves and spills; the driver owns the lineage.

Ray's own retries are off: a lost object is an event for `lineage.py`, the same as everywhere.
Every task returns its outputs in storage form and, behind them, a small receipt that the driver
waits for: what it took, where it ran, what went wrong. So no output passes through the driver.
"""

import functools
import itertools
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from talka.engine.on_ray import cluster as ray_cluster  # isort: skip  # before ray: it says where the key is

import ray
from ray.exceptions import (
    LocalRayletDiedError,
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayTaskError,
    TaskCancelledError,
    WorkerCrashedError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from talka.engine.calls import TaskProblem
from talka.engine.driver import Driver, Lost, Task
from talka.engine.gangs.gang import check_size
from talka.engine.lineage import OutputId
from talka.engine.meter import TaskMeter
from talka.engine.on_ray.task import Receipt, run_task, value_of
from talka.engine.shipping import ship
from talka.errors import TaskDiedError
from talka.events import Stream, WorkerLost
from talka.guard import Caught

_DEATHS = (
    WorkerCrashedError,
    OutOfMemoryError,
    NodeDiedError,
    LocalRayletDiedError,
    TaskCancelledError,
)
_INLINE_FUNCTION_BYTES = 64 * 1024  # larger ones are put into Ray's store once
_INLINE_OUTPUT_BYTES = (
    100 * 1024
)  # Ray sends smaller ones to the driver, where no machine loses them


class OnRay(Driver):
    """Run tasks and gangs on a Ray cluster.

    Parameters
    ----------
    address
        `HOST:PORT` of the cluster's head (as `ray start` prints it; `ray://HOST:PORT` says the
        same), from a machine of that cluster. Unless given, a Ray of our own is started on this
        machine; it ends with the engine.
    events
        Where to say what happens.
    """

    def __init__(self, address: str | None = None, *, events: Stream | None = None) -> None:
        super().__init__(events)
        with self.events.phase("engine/start"):
            self._cluster = ray_cluster.connect(address)
        self._remote = ray.remote(run_task)
        self._objects: dict[OutputId, Any] = {}
        self._places: dict[OutputId, str] = {}
        self._lying: dict[str, set[OutputId]] = {}
        """By machine: outputs that go with it."""
        self._functions: dict[bytes, Any] = {}
        self._num_dealt = itertools.count()
        self._meters: dict[str, TaskMeter] = {}
        # Ray calls back in a thread of its own that must not wait: it only puts into this queue.
        self._reports: SimpleQueue[tuple[Task, Callable[[], None]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._listen, name="talka-ray", daemon=True)
        self._thread.start()

    def gang(
        self, main: Callable[..., Any], *args: Any, size: int, timeout_s: float | None = None
    ) -> list[Any]:
        from talka.engine.on_ray.gang import ray_gang

        check_size(size)
        return ray_gang(main, args, size=size, timeout_s=timeout_s, run_dir=self.events.dir)

    def close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._wake_all()
        self._reports.put(None)
        self._thread.join()
        self._objects.clear()
        self._functions.clear()
        self._cluster.close()

    # What the driver asks for.

    def _prepare(self, task: Task) -> None:
        constants = task.constants
        function: Any = ship(task.function)
        if len(function) > _INLINE_FUNCTION_BYTES:
            if function not in self._functions:
                self._functions[function] = ray.put(function)
            function = self._functions[function]
        shipped = ship(task.function, constants) if constants else None
        is_data = shipped is not None and len(shipped) > _INLINE_OUTPUT_BYTES and not task.inputs
        task.shipped = (function, shipped, self._deal() if is_data else None)

    def _deal(self) -> str | None:
        """The machine whose turn it is to be brought data: tasks will run where that lies.

        Ray's own strategy to spread tasks often puts two in a row on one machine.
        """
        machines = sorted(
            machine["NodeID"]
            for machine in ray.nodes()
            if machine["Alive"] and machine["Resources"].get("CPU")
        )
        return machines[next(self._num_dealt) % len(machines)] if machines else None

    def _launch(self, task: Task) -> None:
        inputs = task.inputs
        lost = [output for output in inputs if output not in self._objects]
        if lost:  # dropped after the lineage said run
            self._reports.put((task, functools.partial(self._inputs_lost, task, lost)))
            return
        function, constants, dealt_to = task.shipped
        options: dict[str, Any] = {}
        if task.near in self._places:
            near = NodeAffinitySchedulingStrategy(self._places[task.near], soft=True)
            options["scheduling_strategy"] = near
        elif dealt_to is not None:
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(dealt_to, soft=True)
        *outputs, receipt = self._remote.options(
            name=task.name, num_returns=len(task.outputs) + 1, max_retries=0, **options
        ).remote(function, constants, len(task.outputs), *(self._objects[i] for i in inputs))
        receipt.future().add_done_callback(
            lambda future: self._reports.put(
                (task, functools.partial(self._conclude, task, outputs, future))
            )
        )

    def _discard(self, output: OutputId) -> None:
        self._objects.pop(output, None)  # Ray frees an object when its last reference is gone
        self._lying.get(self._places.pop(output, ""), set()).discard(output)

    def _read(self, output: OutputId) -> Any:
        try:
            return value_of(ray.get(self._objects[output]))
        except KeyError:
            raise Lost([output]) from None
        except ObjectLostError as error:
            raise Lost(self._forget_lost(error)) from None

    # The thread that hears from Ray.

    def _listen(self) -> None:
        while (report := self._reports.get()) is not None:
            self._serve(*report)
            if self._reports.empty():
                for meter in self._meters.values():
                    meter.flush()

    def _conclude(self, task: Task, outputs: list[Any], future: Any) -> None:
        with Caught() as caught:
            receipt: Receipt = future.result()
        if caught.error is not None:
            self._failed_on_ray(task, caught.error)
            return
        if receipt.problem is not None:
            self._raised(task, TaskProblem(*receipt.problem).as_error(task.label))
        else:
            with self._lock:
                for output, *made in zip(task.outputs, outputs, receipt.sizes_bytes, strict=True):
                    self._keep(output, receipt.machine, *made)
            self._finished(task)
        meter = self._meters.setdefault(receipt.worker, TaskMeter(receipt.worker, self.events))
        meter.add(task.name, receipt.start_s, receipt.end_s, sum(receipt.sizes_bytes))

    def _keep(self, output: OutputId, machine: str, stored: Any, size_bytes: int) -> None:
        """Note where an output is, instead of what was known of it before.

        That may have gone with a machine, and nobody has noticed yet.
        """
        self._discard(output)
        self._objects[output], self._places[output] = stored, machine
        if size_bytes > _INLINE_OUTPUT_BYTES:
            self._lying.setdefault(machine, set()).add(output)

    def _failed_on_ray(self, task: Task, error: BaseException) -> None:
        if _is_loss(error):
            self._inputs_lost(task, self._forget_lost(error))
        elif isinstance(error, _DEATHS):
            how = str(error).partition("\n")[0]
            self._emit(WorkerLost(f"of task {task.label}", how))
            self._died(task, TaskDiedError(task.label, how, _described(task)))
        else:
            self._gave_up(task, error)

    def _forget_lost(self, error: BaseException) -> list[OutputId]:
        """Drop the output that Ray misses, and all that lay on machines that are gone.

        At once, because the lineage then plans once: found one by one, each loss would cost
        another run of what stands before it. Ray may have copies elsewhere, but cannot tell which.
        """
        missed = _cause(error).object_ref_hex
        alive = {machine["NodeID"] for machine in ray.nodes() if machine["Alive"]}
        with self._lock:
            gone = [output for output, known in self._objects.items() if known.hex() == missed]
            for machine in self._lying.keys() - alive:
                gone += self._lying.pop(machine)
            for output in gone:
                self._discard(output)
        return gone


def _cause(error: BaseException) -> Any:
    return error.cause if isinstance(error, RayTaskError) else error


def _is_loss(error: BaseException) -> bool:
    """Whether Ray could not bring an input."""
    return isinstance(_cause(error), ObjectLostError)


def _described(task: Task) -> tuple[str, ...]:
    return tuple(f"output {i}" for i in task.inputs[:4])

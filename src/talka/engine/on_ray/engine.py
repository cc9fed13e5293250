"""The engine for many machines: Ray places tasks, moves and spills data; the driver owns the lineage.

Ray's retries are off: a lost object is an event for `lineage.py`, as in every engine. Each task
returns its outputs in storage form, followed by a small receipt with its time, its machine and its
problem. The driver only waits for the receipt, so no output passes through it.
"""

import functools
import itertools
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from talka.engine.on_ray import cluster as ray_cluster  # isort: skip  # before ray: it sets the key

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
from talka.engine.events import WorkerLost
from talka.engine.gangs.running import Ranks
from talka.engine.gangs.spec import GangSpec
from talka.engine.lineage import OutputId
from talka.engine.meter import TaskMeter
from talka.engine.on_ray.gang import RayRanks
from talka.engine.on_ray.host import MachineHosts
from talka.engine.on_ray.task import Receipt, run_task, value_of
from talka.engine.shipping import ship
from talka.errors import TaskDiedError
from talka.events import Stream
from talka.guard import Caught

_DEATHS = (
    WorkerCrashedError,
    OutOfMemoryError,
    NodeDiedError,
    LocalRayletDiedError,
    TaskCancelledError,
)
_INLINE_FUNCTION_BYTES = 64 * 1024  # larger ones are put into the store of Ray once
# Ray sends smaller outputs to the driver, so they are not lost with a machine.
_INLINE_OUTPUT_BYTES = 100 * 1024
_CLOSE_TIMEOUT_S = 20.0  # for actors to end the processes of gangs


class OnRay(Driver):
    """Runs tasks and gangs on a Ray cluster.

    Parameters
    ----------
    address
        `HOST:PORT` or `ray://HOST:PORT` of the head of a cluster, as `ray start` prints it. The
        driver must run on a machine of that cluster. By default a cluster is started on this
        machine, which ends with the engine.
    events
        Stream for events about tasks and lost workers.

    Raises ClusterError if the cluster cannot be reached or started.
    """

    def __init__(self, address: str | None = None, *, events: Stream | None = None) -> None:
        super().__init__(events)
        with self.events.phase("engine/start"):
            self._cluster = ray_cluster.connect(address)
        self._remote = ray.remote(run_task)
        self._objects: dict[OutputId, Any] = {}
        self._places: dict[OutputId, str] = {}
        self._lost_with: dict[str, set[OutputId]] = {}
        """Machine -> outputs that are lost if it dies."""
        self._functions: dict[bytes, Any] = {}
        self._num_placed = itertools.count()
        self._meters: dict[str, TaskMeter] = {}
        self._hosts = MachineHosts()
        # Callbacks of Ray run in one of its threads and must not block: they only use this queue.
        self._reports: SimpleQueue[tuple[Task, Callable[[], None]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._listen, name="talka-ray", daemon=True)
        self._thread.start()

    def close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._wake_all()
        self._gangs.close()
        self._hosts.close(_CLOSE_TIMEOUT_S)
        self._reports.put(None)
        self._thread.join()
        self._objects.clear()
        self._functions.clear()
        self._cluster.close()

    # Methods that the driver calls.

    def _ranks_of(self, spec: GangSpec) -> Ranks:
        return RayRanks(spec, self.events, self._hosts)

    def _prepare(self, task: Task) -> None:
        constants = task.constants
        function: Any = ship(task.function)
        if len(function) > _INLINE_FUNCTION_BYTES:
            if function not in self._functions:
                self._functions[function] = ray.put(function)
            function = self._functions[function]
        shipped = ship(task.function, constants) if constants else None
        is_data = shipped is not None and len(shipped) > _INLINE_OUTPUT_BYTES and not task.inputs
        task.shipped = (function, shipped, self._next_machine() if is_data else None)

    def _next_machine(self) -> str | None:
        """Return the machine for the next large constant, in turn; later tasks run near their data.

        Ray's strategy to spread tasks often puts two in a row on one machine.
        """
        machines = sorted(
            machine["NodeID"]
            for machine in ray.nodes()
            if machine["Alive"] and machine["Resources"].get("CPU")
        )
        return machines[next(self._num_placed) % len(machines)] if machines else None

    def _launch(self, task: Task) -> None:
        inputs = task.inputs
        lost = [output for output in inputs if output not in self._objects]
        if lost:  # dropped after the lineage started the task
            self._reports.put((task, functools.partial(self._inputs_lost, task, lost)))
            return
        function, constants, machine = task.shipped
        options: dict[str, Any] = {}
        if task.near in self._places:
            near = NodeAffinitySchedulingStrategy(self._places[task.near], soft=True)
            options["scheduling_strategy"] = near
        elif machine is not None:
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(machine, soft=True)
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
        self._lost_with.get(self._places.pop(output, ""), set()).discard(output)

    def _read(self, output: OutputId) -> Any:
        try:
            return value_of(ray.get(self._objects[output]))
        except KeyError:
            raise Lost([output]) from None
        except ObjectLostError as error:
            raise Lost(self._forget_lost(error)) from None

    # Methods that run in the thread for reports from Ray.

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
                for output, stored, size_bytes in zip(
                    task.outputs, outputs, receipt.sizes_bytes, strict=True
                ):
                    self._keep(output, receipt.machine, stored, size_bytes)
            self._finished(task)
        meter = self._meters.setdefault(receipt.worker, TaskMeter(receipt.worker, self.events))
        meter.add(task.name, receipt.start_s, receipt.end_s, sum(receipt.sizes_bytes))

    def _keep(self, output: OutputId, machine: str, stored: Any, size_bytes: int) -> None:
        """Record where an output is stored.

        Replaces an earlier record, which may be of a machine that has died without notice.
        """
        self._discard(output)
        self._objects[output], self._places[output] = stored, machine
        if size_bytes > _INLINE_OUTPUT_BYTES:
            self._lost_with.setdefault(machine, set()).add(output)

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
        """Discard the output that Ray cannot find, and all outputs on machines that have died.

        All at once, so that the lineage plans once: found one by one, each loss would cost another
        run of the tasks before it. Ray may have copies elsewhere, but does not report them.
        """
        missing = _cause(error).object_ref_hex
        alive = {machine["NodeID"] for machine in ray.nodes() if machine["Alive"]}
        with self._lock:
            lost = [output for output, known in self._objects.items() if known.hex() == missing]
            for machine in self._lost_with.keys() - alive:
                lost += self._lost_with.pop(machine)
            for output in lost:
                self._discard(output)
        return lost


def _cause(error: BaseException) -> Any:
    return error.cause if isinstance(error, RayTaskError) else error


def _is_loss(error: BaseException) -> bool:
    """Return whether Ray could not provide an input."""
    return isinstance(_cause(error), ObjectLostError)


def _described(task: Task) -> tuple[str, ...]:
    return tuple(f"output {i}" for i in task.inputs[:4])

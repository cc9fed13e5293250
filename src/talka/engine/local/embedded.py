"""The default engine: all cores of this machine, without a service in the background.

Native tasks run in threads. Tasks with `python=True` run in worker processes. Each worker process
has a thread in the driver, which waits for its replies and so notices its death.
"""

import itertools
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from talka import machine
from talka.engine import parcels
from talka.engine.base import Ref
from talka.engine.calls import TaskProblem, call
from talka.engine.driver import Driver, Lost, Task
from talka.engine.events import Spilled, WorkerLost
from talka.engine.frozen import frozen
from talka.engine.gangs.fork_server import ForkServers
from talka.engine.gangs.local import local_part
from talka.engine.gangs.running import Ranks
from talka.engine.gangs.spec import GangSpec
from talka.engine.lineage import OutputId
from talka.engine.local.lane import Lane
from talka.engine.local.processes import WorkerDied, WorkerProcess
from talka.engine.meter import TaskMeter
from talka.engine.shipping import ship
from talka.engine.storage import describe
from talka.engine.store import Store
from talka.errors import InvalidValueError, TalkaError, TaskDiedError
from talka.events import Stream
from talka.files import temporary_folder

_MAX_SHIPPED = 1000  # functions that are recognised when they are submitted again
_CLOSE_TIMEOUT_S = 1.0  # for threads in a native task, which nothing can interrupt


class Embedded(Driver):
    """Runs tasks in threads and worker processes of this machine, and gangs as local processes.

    Parameters
    ----------
    threads, processes
        Number of tasks of either kind that run at the same time; by default the number of cores.
    memory_bytes
        Budget for outputs in memory; beyond it the least recently used are moved to disk. By default
        half of the memory that this process may use.
    spill_dir
        Folder for outputs on disk; by default the temporary folder of the system.
    events
        Stream for events about tasks, lost workers and outputs moved to disk.

    >>> with Embedded() as engine:
    ...     number = engine.submit(lambda: 20)
    ...     double = engine.submit(lambda x: 2 * x, number)
    ...     engine.fetch(double)
    40
    """

    def __init__(
        self,
        *,
        threads: int | None = None,
        processes: int | None = None,
        memory_bytes: int | None = None,
        spill_dir: str | Path | None = None,
        events: Stream | None = None,
    ) -> None:
        super().__init__(events)
        num_cores = machine.num_cores()
        num_threads = _at_least_1("threads", threads, num_cores)
        num_processes = _at_least_1("processes", processes, num_cores)
        budget = _at_least_1("memory_bytes", memory_bytes, machine.memory_bytes() // 2)
        self._store = Store(budget, _folder(spill_dir), self._spilled)
        self._native = Lane(self._serve_native, "thread", num_threads)
        self._python = Lane(self._serve_python, "process", num_processes)
        self._workers: list[WorkerProcess] = []
        self._fork_servers = ForkServers()
        self._shipped: dict[bytes, int] = {}  # function as bytes -> its number
        self._numbers = itertools.count()

    _joins_torchrun = True

    @property
    def stored_bytes(self) -> int:
        """Bytes of memory that outputs take at the moment."""
        return self._store.used_bytes

    def close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._wake_all()
            workers = list(self._workers)
        self._gangs.close()
        self._fork_servers.close()
        self._native.stop()
        self._python.stop()
        for worker in workers:
            worker.ask_to_end()
        for worker in workers:
            worker.end()
        deadline = time.monotonic() + _CLOSE_TIMEOUT_S
        self._native.join(deadline)
        self._python.join(deadline)
        self._store.clear()

    # Methods that the driver calls.

    def _ranks_of(self, spec: GangSpec) -> Ranks:
        return local_part(spec, self.events.dir, self._fork_servers)

    def _prepare(self, task: Task) -> None:
        if not task.python:
            return
        constants = task.constants
        function = ship(task.function)
        if len(self._shipped) > _MAX_SHIPPED:
            self._shipped.clear()
        number = self._shipped.setdefault(function, next(self._numbers))
        task.shipped = (number, function, ship(task.function, constants) if constants else None)

    def _launch(self, task: Task) -> None:
        (self._python if task.python else self._native).put(task)

    def _discard(self, output: OutputId) -> None:
        self._store.discard(output)

    def _read(self, output: OutputId) -> Any:
        try:
            return self._store.get(output)
        except KeyError:
            raise Lost([output]) from None

    # Methods that run in the threads of the lanes.

    def _serve_native(self, name: str) -> None:
        self._thread_state.in_task = True
        meter = TaskMeter(name, self.events)
        while (task := self._native.next(when_idle=meter.flush)) is not None:
            self._serve(task, self._run_native, task, meter)

    def _serve_python(self, name: str) -> None:
        meter = TaskMeter(name, self.events)
        own: list[WorkerProcess] = []  # the worker process of this thread, if it has started
        while (task := self._python.next(when_idle=meter.flush)) is not None:
            self._serve(task, self._run_on, own, task, name, meter)

    def _run_on(self, own: list[WorkerProcess], task: Task, name: str, meter: TaskMeter) -> None:
        """Run a task on the worker process of this thread, which is started if there is none."""
        if not own:
            own.append(self._start_worker())
        [worker] = own
        try:
            self._run_python(task, worker, meter)
        except WorkerDied as death:
            own.clear()
            self._handle_death(task, worker, name, str(death))
        finally:
            if own and worker.is_awaited:  # an error left an incomplete reply in the channel
                own.clear()
                self._dismiss(worker)

    def _run_native(self, task: Task, meter: TaskMeter) -> None:
        arguments = self._arguments(task)
        if arguments is None:
            return
        start_s = time.time()
        outputs = call(task.function, arguments, len(task.outputs))
        if not isinstance(outputs, TaskProblem):
            outputs = [frozen(output) for output in outputs]
        self._conclude(task, outputs, start_s, time.time(), meter)

    def _run_python(self, task: Task, worker: WorkerProcess, meter: TaskMeter) -> None:
        inputs = task.inputs
        shared = self._store.share(inputs)
        lost = [output for output, content in zip(inputs, shared, strict=True) if content is None]
        if lost:
            self._inputs_lost(task, lost)
            return
        number, function, constants = task.shipped
        wrapped = parcels.wrap(shared)
        frame = {
            "inputs": wrapped.labels,
            "constants": constants,
            "num_outputs": len(task.outputs),
        }
        reply, descriptors = worker.run(
            frame, wrapped.descriptors, function_id=number, function=function
        )
        outputs: Sequence[Any] | TaskProblem
        if "problem" in reply:
            outputs = TaskProblem(*reply["problem"])
        else:
            outputs = parcels.unwrap(reply["outputs"], descriptors)
        self._conclude(task, outputs, reply["start_s"], reply["end_s"], meter)

    def _conclude(
        self,
        task: Task,
        outputs: Sequence[Any] | TaskProblem,
        start_s: float,
        end_s: float,
        meter: TaskMeter,
    ) -> None:
        num_bytes = 0
        if isinstance(outputs, TaskProblem):
            self._raised(task, outputs.as_error(task.label))
        else:
            for output, content in zip(task.outputs, outputs, strict=True):
                num_bytes += self._store.put(output, content)
            self._finished(task)
        meter.add(task.name, start_s, end_s, num_bytes)

    def _arguments(self, task: Task) -> list[Any] | None:
        """Return the arguments as values; if some are lost, report that and return None."""
        arguments: list[Any] = []
        lost: list[OutputId] = []
        for argument in task.arguments:
            if type(argument) is Ref:
                try:
                    arguments.append(self._store.get(argument.id))
                except KeyError:
                    lost.append(argument.id)
            else:
                arguments.append(argument)
        if lost:
            self._inputs_lost(task, lost)
            return None
        return arguments

    def _start_worker(self) -> WorkerProcess:
        worker = WorkerProcess()
        with self._lock:
            if not self._is_closed:
                self._workers.append(worker)
                return worker
        worker.end()
        raise TalkaError("the engine was closed")

    def _dismiss(self, worker: WorkerProcess) -> bool:
        """End a worker process; False if the engine is closed, which ends all of them."""
        with self._lock:
            if self._is_closed:
                return False
            self._workers.remove(worker)
        worker.end()
        return True

    def _handle_death(self, task: Task, worker: WorkerProcess, name: str, how: str) -> None:
        """Clean up after a worker that died, and report the death of its task."""
        if not self._dismiss(worker):
            return
        self._emit(WorkerLost(name, how))
        self._died(task, TaskDiedError(task.label, how, self._described_inputs(task)))

    def _described_inputs(self, task: Task) -> tuple[str, ...]:
        described = []
        for value in task.arguments[:4]:
            try:
                described.append(
                    describe(self._store.get(value.id) if type(value) is Ref else value)
                )
            except KeyError:
                described.append("a lost output")
        return tuple(described)

    def _spilled(self, num_bytes: int, seconds: float) -> None:
        self._emit(Spilled(num_bytes, seconds))


def _at_least_1(name: str, value: int | None, default: int) -> int:
    if value is None:
        return default
    if value < 1:
        raise InvalidValueError(name, value, "a whole number of at least 1")
    return value


def _folder(spill_dir: str | Path | None) -> Path:
    folder = Path(spill_dir) if spill_dir is not None else temporary_folder()
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InvalidValueError("spill_dir", str(folder), "a folder that you may write to")
    return folder

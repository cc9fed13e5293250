"""The part that all engines share: a driver that owns the lineage and follows its instructions.

    submit -> lineage -> RunTask -> `_launch` -> `_finished`, `_raised`, `_died` or `_inputs_lost`
                                                                   |
    wait, fetch  <-  output stored or failed  <--------------------+

An engine implements how a task is launched, how a stored output is read and how it is discarded.
"""

import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, overload

from talka.engine.base import Ref
from talka.engine.calls import explain
from talka.engine.events import TaskAgain
from talka.engine.gangs.starter import GangStarter
from talka.engine.lineage import (
    DEFAULT_RETRIES,
    Fail,
    Forget,
    Free,
    Instruction,
    Lineage,
    OutputId,
    Retries,
    RunTask,
    TaskId,
)
from talka.engine.shipping import name_of
from talka.errors import InvalidValueError, ReleasedError, TalkaError, WaitInTaskError
from talka.events import Event, Stream
from talka.guard import Logged, is_signal


class Lost(Exception):
    """Stored outputs are missing. Never leaves the engine: the driver computes them again."""

    def __init__(self, outputs: Iterable[OutputId]) -> None:
        super().__init__()
        self.outputs = list(outputs)


class Task:
    """A function and its arguments, kept so that the task can run again."""

    __slots__ = ("arguments", "function", "id", "name", "near", "outputs", "python", "shipped")

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.function = function
        self.arguments = arguments
        self.id = TaskId(0)
        self.name = ""
        self.outputs: tuple[OutputId, ...] = ()
        self.python = False
        self.near: OutputId | None = None
        self.shipped: Any = None
        """Function as bytes, made by `submit` for engines that send it; otherwise None."""

    @property
    def inputs(self) -> list[OutputId]:
        """Outputs of other tasks among the arguments."""
        return [argument.id for argument in self.arguments if type(argument) is Ref]

    @property
    def constants(self) -> list[tuple[int, Any]]:
        """Arguments that are not outputs, each with its position."""
        return [(i, value) for i, value in enumerate(self.arguments) if type(value) is not Ref]

    @property
    def label(self) -> str:
        """Name and number of the task, for error messages."""
        return f"{self.name!r} ({self.id})"


def as_talka_error(error: BaseException, task: Task) -> TalkaError:
    """Turn any exception that a task caused into a TalkaError."""
    if isinstance(error, TalkaError):
        return error
    return explain(error, task.function, ()).as_error(task.label)


class _Waiter:
    """A call of `wait` and the number of outputs that it waits for."""

    __slots__ = ("event", "num_pending")

    def __init__(self, num_pending: int) -> None:
        self.num_pending = num_pending
        self.event = threading.Event()


class Driver(GangStarter, ABC):
    """Base class of engines: submit, wait, fetch and release, on top of one `Lineage`.

    `Engine` in base.py documents the public methods.
    """

    _ids = itertools.count(1)

    def __init__(self, events: Stream | None) -> None:
        super().__init__()
        self.events = events or Stream()
        self._engine_id = next(self._ids)
        self._lock = threading.Lock()  # guards everything below, and all calls of the lineage
        self._lineage = Lineage()
        self._tasks: dict[TaskId, Task] = {}
        self._errors: dict[TaskId, TalkaError] = {}
        self._waiters: dict[OutputId, list[_Waiter]] = {}
        self._next_task = 0
        self._next_output = 0
        self._is_closed = False
        self._thread_state = threading.local()
        """Has the attribute `in_task` in threads of the engine that run tasks."""

    # Implemented by each engine. The first two are called with the lock held and must not block.

    @abstractmethod
    def _launch(self, task: Task) -> None:
        """Start the task; exactly one of `_finished`, `_raised`, `_died`, ... must be called later."""

    @abstractmethod
    def _discard(self, output: OutputId) -> None:
        """Free an output, if it is stored."""

    @abstractmethod
    def _read(self, output: OutputId) -> Any:
        """Return the value of a stored output; raise `Lost` if it is missing."""

    @abstractmethod
    def _prepare(self, task: Task) -> None:
        """Check a new task and make its function ready to be sent, before it gets an id."""

    # Public methods, documented in base.py.

    @overload
    def submit(
        self,
        function: Callable[..., Any],
        *inputs: Any,
        num_outputs: None = None,
        python: bool = False,
        near: Ref | None = None,
        name: str | None = None,
        retries: Retries = DEFAULT_RETRIES,
    ) -> Ref: ...
    @overload
    def submit(
        self,
        function: Callable[..., Any],
        *inputs: Any,
        num_outputs: int,
        python: bool = False,
        near: Ref | None = None,
        name: str | None = None,
        retries: Retries = DEFAULT_RETRIES,
    ) -> tuple[Ref, ...]: ...
    def submit(
        self,
        function: Callable[..., Any],
        *inputs: Any,
        num_outputs: int | None = None,
        python: bool = False,
        near: Ref | None = None,
        name: str | None = None,
        retries: Retries = DEFAULT_RETRIES,
    ) -> Ref | tuple[Ref, ...]:
        count = 1 if num_outputs is None else num_outputs
        if count < 1:
            raise InvalidValueError("num_outputs", num_outputs, "a whole number of at least 1")
        if not callable(function):
            raise InvalidValueError("function", function, "callable")
        task = Task(function, inputs)
        task.name = name or name_of(function)
        task.python = python
        self._prepare(task)
        needed = task.inputs
        with self._lock:
            self._check_known(inputs)
            if near is not None:
                self._check_known((near,))
                task.near = near.id
            first = self._next_output
            self._next_output += count
            task.outputs = tuple(map(OutputId, range(first, first + count)))
            task.id = TaskId(self._next_task)
            self._next_task += 1
            self._tasks[task.id] = task
            self._apply(self._lineage.submitted(task.id, needed, task.outputs, retries))
        if num_outputs is None:
            return Ref(task.outputs[0], self._engine_id)
        return tuple([Ref(output, self._engine_id) for output in task.outputs])

    def wait(
        self, refs: Sequence[Ref], *, timeout_s: float | None = None
    ) -> tuple[list[Ref], list[Ref]]:
        if hasattr(self._thread_state, "in_task"):
            raise WaitInTaskError
        with self._lock:
            self._check_known(refs)
            ids = [ref.id for ref in refs]
            self._apply(self._lineage.wanted(ids))
            pending = [output for output in set(ids) if not self._lineage.is_resolved(output)]
            waiter = _Waiter(len(pending))
            for output in pending:
                self._waiters.setdefault(output, []).append(waiter)
        if pending and not waiter.event.wait(timeout_s):
            with self._lock:
                for output in pending:
                    if waiter in self._waiters.get(output, ()):
                        self._waiters[output].remove(waiter)
        with self._lock:
            self._check_known(refs)
            resolved = [ref for ref in refs if self._lineage.is_resolved(ref.id)]
            return resolved, [ref for ref in refs if not self._lineage.is_resolved(ref.id)]

    @overload
    def fetch(self, refs: Ref) -> Any: ...
    @overload
    def fetch(self, refs: Sequence[Ref]) -> list[Any]: ...
    def fetch(self, refs: Ref | Sequence[Ref]) -> Any:
        if isinstance(refs, Ref):
            return self.fetch([refs])[0]
        while True:
            self.wait(refs)
            with self._lock:
                self._check_known(refs)
                causes = [self._lineage.cause_of_failure(ref.id) for ref in refs]
                errors = [self._errors[cause] for cause in causes if cause is not None]
            if errors:
                raise errors[0].with_traceback(None)
            try:
                return [self._read(ref.id) for ref in refs]
            except Lost as lost:
                with self._lock:
                    self._lineage.lost(lost.outputs)

    def release(self, refs: Ref | Sequence[Ref]) -> None:
        refs = [refs] if isinstance(refs, Ref) else refs
        with self._lock:
            self._check_known(refs)
            self._apply(self._lineage.released(ref.id for ref in refs))

    def drop(self, refs: Ref | Sequence[Ref]) -> None:
        refs = [refs] if isinstance(refs, Ref) else refs
        with self._lock:
            self._check_known(refs)
            for ref in refs:
                self._discard(ref.id)
            self._lineage.lost(ref.id for ref in refs)

    def replace(self, ref: Ref, function: Callable[..., Any], *inputs: Any) -> bool:
        new = Task(function, inputs)
        with self._lock:
            self._check_known((ref, *inputs))
            task = self._tasks[self._lineage.producer_of(ref.id)]
        new.name, new.python = task.name, task.python
        self._prepare(new)
        with self._lock:
            self._check_known((ref, *inputs))
            if not self._lineage.is_done(task.id):
                return False
            task.function, task.arguments, task.shipped = function, inputs, new.shipped
            self._apply(self._lineage.replaced(task.id, new.inputs))
            return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None: ...

    # Reports from engines.

    def _finished(self, task: Task) -> None:
        """Record that a task finished and its outputs are stored."""
        with self._lock:
            if not self._is_closed:
                self._apply(self._lineage.finished(task.id))
                self._notify_waiters(task)

    def _raised(self, task: Task, error: TalkaError) -> None:
        """Record that a task raised; it is tried again if it has retries left."""
        self._failed(task, error, self._lineage.raised)

    def _died(self, task: Task, error: TalkaError) -> None:
        """Record that the worker of a task died; the task is tried again if it has retries left."""
        self._failed(task, error, self._lineage.died)

    def _gave_up(self, task: Task, error: BaseException) -> None:
        """Record that a task failed in a way that a retry would not fix."""
        self._failed(task, as_talka_error(error, task), self._lineage.gave_up)

    def _inputs_lost(self, task: Task, lost: Iterable[OutputId]) -> None:
        """Record that a task could not start because these inputs are missing."""
        with self._lock:
            if not self._is_closed:
                self._apply(self._lineage.inputs_lost(task.id, lost))

    def _failed(
        self, task: Task, error: TalkaError, event: Callable[[TaskId], list[Instruction]]
    ) -> None:
        with self._lock:
            if not self._is_closed:
                self._errors[task.id] = error.with_traceback(None)  # frames keep outputs alive
                self._apply(event(task.id))

    def _serve(self, task: Task, work: Callable[..., None], *args: Any) -> None:
        """Call `work`, which ends with one of the reports above; if it raises, the task fails.

        For threads of the engine, which must survive anything that a task or worker does. `Caught`
        would do the same but is slower, and this runs for every task.
        """
        try:
            work(*args)
        except BaseException as error:  # noqa: BLE001
            with Logged(f"fail task {task.label}"):
                self._gave_up(task, error)

    # Internals.

    def _apply(self, instructions: Iterable[Instruction]) -> None:
        """Carry out instructions of the lineage, with the lock held."""
        for instruction in instructions:
            if type(instruction) is RunTask:
                task = self._tasks[instruction.task]
                if instruction.reason:
                    self._emit(TaskAgain(task.id, task.name, instruction.reason))
                try:
                    self._launch(task)
                except BaseException as error:
                    if is_signal(error):
                        raise
                    self._errors[task.id] = as_talka_error(error, task)
                    self._apply(self._lineage.gave_up(task.id))
            elif type(instruction) is Free:
                self._discard(instruction.output)
            elif type(instruction) is Fail:
                self._errors[instruction.task] = self._errors[instruction.cause]
                self._notify_waiters(self._tasks[instruction.task])
            elif type(instruction) is Forget:
                del self._tasks[instruction.task]
                self._errors.pop(instruction.task, None)

    def _emit(self, event: Event) -> None:
        with Logged("emit an event"):
            self.events.emit(event)

    def _notify_waiters(self, task: Task) -> None:
        """Wake calls of `wait` for which an output of this task was the last one missing."""
        if not self._waiters:
            return
        for output in task.outputs:
            for waiter in self._waiters.pop(output, ()):
                waiter.num_pending -= 1
                if waiter.num_pending == 0:
                    waiter.event.set()

    def _check_known(self, inputs: Iterable[Any]) -> None:
        for value in inputs:
            if type(value) is Ref and (
                self._is_closed
                or value.engine != self._engine_id
                or not self._lineage.is_known(value.id)
            ):
                raise ReleasedError
        if self._is_closed:
            raise ReleasedError

    def _wake_all(self) -> None:
        """Wake all threads in `wait` when the engine is closed; they raise ReleasedError."""
        for waiters in self._waiters.values():
            for waiter in waiters:
                waiter.event.set()
        self._waiters.clear()

"""What both engines share: the driver that owns the lineage and carries out its instructions.

    submit -> lineage -> Run -> the engine's `_launch` -> _finished / _raised / _died / _inputs_lost
                                                                   |
    wait, fetch  <-  settled  <------------------------------------+

An engine says how a task is launched, how a stored output is read and how it is discarded.
"""

import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, overload

from talka.engine.base import Ref
from talka.engine.calls import explain
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
from talka.events import Event, Stream, TaskAgain
from talka.guard import Logged, is_signal


class Lost(Exception):
    """An output that should be there is not. Inside the engine only: the driver mends it."""

    def __init__(self, outputs: Iterable[OutputId]) -> None:
        super().__init__()
        self.outputs = list(outputs)


class Task:
    """All that is needed to run a task, again if need be."""

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
        """The function as bytes, made at submission for engines that send it."""

    @property
    def inputs(self) -> list[OutputId]:
        return [argument.id for argument in self.arguments if type(argument) is Ref]

    @property
    def constants(self) -> list[tuple[int, Any]]:
        """What is fixed about the arguments, and where it stands among them."""
        return [(i, given) for i, given in enumerate(self.arguments) if type(given) is not Ref]

    @property
    def label(self) -> str:
        return f"{self.name!r} ({self.id})"


def as_talka_error(error: BaseException, task: Task) -> TalkaError:
    """Describe what was raised while the engine ran a task."""
    if isinstance(error, TalkaError):
        return error
    return explain(error, task.function, ()).as_error(task.label)


class _Waiter:
    __slots__ = ("event", "num_pending")

    def __init__(self, num_pending: int) -> None:
        self.num_pending = num_pending
        self.event = threading.Event()


class Driver(ABC):
    """Submission, waiting, fetching and releasing over one `Lineage`."""

    _ids = itertools.count(1)

    def __init__(self, events: Stream | None) -> None:
        self.events = events or Stream()
        self._engine_id = next(self._ids)
        self._lock = threading.Lock()  # guards all below, and every call of the lineage
        self._lineage = Lineage()
        self._tasks: dict[TaskId, Task] = {}
        self._errors: dict[TaskId, TalkaError] = {}
        self._waiters: dict[OutputId, list[_Waiter]] = {}
        self._next_task = 0
        self._next_output = 0
        self._is_closed = False
        self._thread_state = threading.local()
        """`in_task` is set in threads of ours that run tasks."""

    # What an engine adds. The first two are called with the lock held and must not block.

    @abstractmethod
    def _launch(self, task: Task) -> None:
        """Run the task somewhere; later call one of `_finished`, `_raised`, `_died`, ... once."""

    @abstractmethod
    def _discard(self, output: OutputId) -> None:
        """Free an output, if it is there."""

    @abstractmethod
    def _read(self, output: OutputId) -> Any:
        """The value of a stored output; raises `Lost`."""

    @abstractmethod
    def _prepare(self, task: Task) -> None:
        """Check and pack a task when it is submitted, before anything is known of it."""

    # What callers use: see `Engine` in base.py.

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
            raise InvalidValueError("function", function, "something that can be called")
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

    # What engines report.

    def _finished(self, task: Task) -> None:
        """Its outputs are stored."""
        with self._lock:
            if not self._is_closed:
                self._apply(self._lineage.finished(task.id))
                self._notify_waiters(task)

    def _raised(self, task: Task, error: TalkaError) -> None:
        self._failed(task, error, self._lineage.raised)

    def _died(self, task: Task, error: TalkaError) -> None:
        self._failed(task, error, self._lineage.died)

    def _gave_up(self, task: Task, error: BaseException) -> None:
        """The task failed in a way that another try would not mend."""
        self._failed(task, as_talka_error(error, task), self._lineage.gave_up)

    def _inputs_lost(self, task: Task, lost: Iterable[OutputId]) -> None:
        """It could not start: these inputs are gone."""
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
        """Call `work`, which ends with one of the reports above; if it raises, the task gives up.

        For threads that serve others: nothing that a task or a worker does may end them. `Caught`
        would do the same, but costs more, and every task passes here.
        """
        try:
            work(*args)
        except BaseException as error:  # noqa: BLE001
            with Logged(f"fail task {task.label}"):
                self._gave_up(task, error)

    # Within.

    def _apply(self, instructions: Iterable[Instruction]) -> None:
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
        if not self._waiters:
            return
        for output in task.outputs:
            for waiter in self._waiters.pop(output, ()):
                waiter.num_pending -= 1
                if waiter.num_pending == 0:
                    waiter.event.set()

    def _check_known(self, inputs: Iterable[Any]) -> None:
        for given in inputs:
            if type(given) is Ref and (
                self._is_closed
                or given.engine != self._engine_id
                or not self._lineage.is_known(given.id)
            ):
                raise ReleasedError
        if self._is_closed:
            raise ReleasedError

    def _wake_all(self) -> None:
        """The engine closes: whoever waits in another thread gets an error instead of silence."""
        for waiters in self._waiters.values():
            for waiter in waiters:
                waiter.event.set()
        self._waiters.clear()

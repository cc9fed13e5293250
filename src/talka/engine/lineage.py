"""Decides which tasks run, and which run again: events in, instructions out.

    submitted -> waits for its inputs -> RunTask -> finished: its outputs are stored
                        ^                                |
                        +-------- lost, and wanted ------+

A lost output is computed again only when it is needed: by a task that has still to run, or by a
caller of `wanted`. Its task first waits for its lost inputs, recursively; inputs that are still
stored are used. A released output is freed once no pending task reads it. Its task is kept while a
descendant may need to run again, and then forgotten.

This module does no I/O and uses neither clock nor threads, so tests need no engine.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple, NewType

TaskId = NewType("TaskId", int)
OutputId = NewType("OutputId", int)


class RunTask(NamedTuple):
    """Instruction: start this task."""

    task: TaskId
    reason: str
    """Why it runs again; empty for the first start, and for one repeated because an input was lost."""


class Free(NamedTuple):
    """Instruction: free this output, which is released and no longer used."""

    output: OutputId


class Fail(NamedTuple):
    """Instruction: the outputs of this task will never exist, because of `cause`."""

    task: TaskId
    cause: TaskId
    """Task that failed: this one, or one that it depends on."""


class Forget(NamedTuple):
    """Instruction: forget this task, which can never be needed again."""

    task: TaskId


Instruction = RunTask | Free | Fail | Forget


class Retries(NamedTuple):
    """Number of times that a failed task is started again."""

    exceptions: int = 0
    """Retries after an exception. 0 by default: the same inputs would raise again."""
    deaths: int = 2
    """Retries after the worker died: killed, out of memory, or its machine lost."""


DEFAULT_RETRIES = Retries()


class _State(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class _Task:
    __slots__ = (
        "cause", "deaths", "exceptions", "id", "inputs", "num_consumers", "num_missing",
        "outputs", "reason", "state",
    )  # fmt: skip

    def __init__(self, task_id: TaskId, inputs: "tuple[_Output, ...]", retries: Retries) -> None:
        self.id = task_id
        self.inputs = inputs
        self.outputs: tuple[_Output, ...] = ()
        self.state = _State.WAITING
        self.num_missing = 0
        self.num_consumers = 0  # known tasks that read one of the outputs
        self.exceptions, self.deaths = retries
        self.reason = ""  # why it runs again
        self.cause: TaskId | None = None  # why it failed


class _Output:
    __slots__ = ("id", "is_released", "is_stored", "num_users", "producer", "waiting")

    def __init__(self, output_id: OutputId, producer: _Task) -> None:
        self.id = output_id
        self.producer = producer
        self.is_stored = False
        self.is_released = False
        self.num_users = 0  # waiting or running tasks that read this output
        self.waiting: list[_Task] = []


class Lineage:
    """Record of how each output is made, with the state of all tasks."""

    def __init__(self) -> None:
        self._tasks: dict[TaskId, _Task] = {}
        self._outputs: dict[OutputId, _Output] = {}

    def __len__(self) -> int:
        """Return the number of tasks that are still known."""
        return len(self._tasks)

    # Events.

    def submitted(
        self,
        task_id: TaskId,
        inputs: Iterable[OutputId],
        outputs: Iterable[OutputId],
        retries: Retries = DEFAULT_RETRIES,
    ) -> list[Instruction]:
        """Add a new task. It fails at once if the task of an input has failed."""
        task = _Task(task_id, tuple([self._outputs[i] for i in dict.fromkeys(inputs)]), retries)
        task.outputs = tuple([_Output(output_id, task) for output_id in outputs])
        self._tasks[task_id] = task
        for output in task.outputs:
            self._outputs[output.id] = output
        instructions: list[Instruction] = []
        for needed in task.inputs:
            needed.num_users += 1
            needed.producer.num_consumers += 1
        for needed in task.inputs:
            if needed.producer.state is _State.FAILED:
                assert needed.producer.cause is not None
                self._fail(task, needed.producer.cause, instructions)
                return instructions
        self._start(task, instructions)
        return instructions

    def finished(self, task_id: TaskId) -> list[Instruction]:
        """Record that all outputs of a task are stored."""
        task = self._tasks[task_id]
        task.state = _State.DONE
        instructions: list[Instruction] = []
        for output in task.outputs:
            output.is_stored = True
            for consumer in output.waiting:
                consumer.num_missing -= 1
                if consumer.num_missing == 0:
                    # Again from the beginning: an input may have been lost while it waited.
                    self._start(consumer, instructions)
            output.waiting = []
            self._free_if_unused(output, instructions)
        self._stop_using_inputs(task, instructions)
        return instructions

    def raised(self, task_id: TaskId) -> list[Instruction]:
        """Record that a task raised an exception."""
        task = self._tasks[task_id]
        if task.exceptions == 0:
            return self.gave_up(task_id)
        task.exceptions -= 1
        return self._again(task, "it raised an exception")

    def died(self, task_id: TaskId) -> list[Instruction]:
        """Record that the worker of a task died."""
        task = self._tasks[task_id]
        if task.deaths == 0:
            return self.gave_up(task_id)
        task.deaths -= 1
        return self._again(task, "its worker died")

    def gave_up(self, task_id: TaskId) -> list[Instruction]:
        """Record that a task failed and must not be tried again."""
        instructions: list[Instruction] = []
        self._fail(self._tasks[task_id], task_id, instructions)
        return instructions

    def inputs_lost(self, task_id: TaskId, lost: Iterable[OutputId]) -> list[Instruction]:
        """Record that a task could not start because these inputs are missing."""
        self.lost(lost)
        return self._again(self._tasks[task_id], "")

    def lost(self, outputs: Iterable[OutputId]) -> None:
        """Record that outputs are lost. They are computed again only when they are needed."""
        for output_id in outputs:
            if output_id in self._outputs:
                self._outputs[output_id].is_stored = False

    def wanted(self, outputs: Iterable[OutputId]) -> list[Instruction]:
        """Record that a caller waits for these outputs."""
        instructions: list[Instruction] = []
        for output_id in outputs:
            self._require(self._outputs[output_id], instructions)
        return instructions

    def released(self, outputs: Iterable[OutputId]) -> list[Instruction]:
        """Record that the caller does not need these outputs any more."""
        instructions: list[Instruction] = []
        for output_id in outputs:
            output = self._outputs[output_id]
            output.is_released = True
            self._free_if_unused(output, instructions)
            self._forget_if_useless(output.producer, instructions)
        return instructions

    def replaced(self, task_id: TaskId, inputs: Iterable[OutputId]) -> list[Instruction]:
        """Record that a task now makes its outputs from other inputs, such as a checkpoint.

        The former inputs are no longer needed for it, and their tasks may be forgotten. The task
        must be done (`is_done`).
        """
        task = self._tasks[task_id]
        assert task.state is _State.DONE
        before, task.inputs = task.inputs, tuple([self._outputs[i] for i in dict.fromkeys(inputs)])
        for needed in task.inputs:
            needed.producer.num_consumers += 1
        instructions: list[Instruction] = []
        for needed in before:
            needed.producer.num_consumers -= 1
            self._forget_if_useless(needed.producer, instructions)
        return instructions

    # Queries.

    def producer_of(self, output_id: OutputId) -> TaskId:
        """Return the task that makes an output."""
        return self._outputs[output_id].producer.id

    def is_done(self, task_id: TaskId) -> bool:
        """Return whether a task has finished and is not running again."""
        return self._tasks[task_id].state is _State.DONE

    def is_known(self, output_id: OutputId) -> bool:
        """Return whether an output belongs to a known task and is not released."""
        output = self._outputs.get(output_id)
        return output is not None and not output.is_released

    def is_resolved(self, output_id: OutputId) -> bool:
        """Return whether an output is stored, or its task has failed."""
        output = self._outputs[output_id]
        return output.is_stored or output.producer.state is _State.FAILED

    def cause_of_failure(self, output_id: OutputId) -> TaskId | None:
        """Return the task whose failure made this output impossible; None if there is none."""
        return self._outputs[output_id].producer.cause

    # Decisions.

    def _again(self, task: _Task, reason: str) -> list[Instruction]:
        instructions: list[Instruction] = []
        task.reason = reason
        self._start(task, instructions)
        return instructions

    def _start(self, task: _Task, instructions: list[Instruction]) -> None:
        """Run the task now, or as soon as its missing inputs are stored."""
        task.state = _State.WAITING
        missing = [needed for needed in task.inputs if not needed.is_stored]
        task.num_missing = len(missing)
        if not missing:
            self._run(task, instructions)
        for needed in missing:
            needed.waiting.append(task)
        for needed in missing:
            self._require(needed, instructions)

    def _require(self, output: _Output, instructions: list[Instruction]) -> None:
        """Compute a lost output again, after its lost inputs. A loop, as chains may be long."""
        stack = [output]
        while stack:
            output = stack.pop()
            task = output.producer
            if output.is_stored or task.state is not _State.DONE:
                continue  # stored, about to be computed, or failed
            task.state, task.reason = _State.WAITING, "its output was lost"
            missing = [needed for needed in task.inputs if not needed.is_stored]
            task.num_missing = len(missing)
            for needed in task.inputs:
                needed.num_users += 1
            for needed in missing:
                needed.waiting.append(task)
            stack += missing
            if not missing:
                self._run(task, instructions)

    def _run(self, task: _Task, instructions: list[Instruction]) -> None:
        task.state = _State.RUNNING
        instructions.append(RunTask(task.id, task.reason))

    def _fail(self, first: _Task, cause: TaskId, instructions: list[Instruction]) -> None:
        """Fail a task and all tasks that wait for its outputs, directly or indirectly."""
        stack = [first]
        while stack:
            task = stack.pop()
            if task.state is _State.FAILED:
                continue  # it waited for two inputs that failed
            task.state, task.cause = _State.FAILED, cause
            instructions.append(Fail(task.id, cause))
            for output in task.outputs:
                stack += output.waiting
                output.waiting = []
            for needed in task.inputs:
                needed.waiting = [other for other in needed.waiting if other is not task]
            self._stop_using_inputs(task, instructions)

    def _stop_using_inputs(self, task: _Task, instructions: list[Instruction]) -> None:
        for needed in task.inputs:
            needed.num_users -= 1
            self._free_if_unused(needed, instructions)
        self._forget_if_useless(task, instructions)

    def _free_if_unused(self, output: _Output, instructions: list[Instruction]) -> None:
        if output.is_released and output.is_stored and output.num_users == 0:
            output.is_stored = False
            instructions.append(Free(output.id))

    def _forget_if_useless(self, task: _Task, instructions: list[Instruction]) -> None:
        """Forget tasks whose outputs are released and that no known task may need again."""
        stack = [task]
        while stack:
            task = stack.pop()
            if task.id not in self._tasks or task.num_consumers > 0:
                continue
            if task.state not in (_State.DONE, _State.FAILED):
                continue
            if not all(output.is_released for output in task.outputs):
                continue
            del self._tasks[task.id]
            instructions.append(Forget(task.id))
            for output in task.outputs:
                del self._outputs[output.id]
            for needed in task.inputs:
                needed.producer.num_consumers -= 1
                stack.append(needed.producer)

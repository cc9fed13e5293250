"""Which task runs, and which runs again. Events in, instructions out: no I/O, no clock, no threads.

    submitted -> waits for its inputs -> Run -> finished: its outputs are stored
                        ^                            |
                        +------ lost, and wanted ----+

An output that is lost is computed again only when somebody wants it: a task that is still to run,
or a caller of `wanted`. Its task then waits for its own lost inputs first, transitively; inputs
that survive are used as they are. A released output is freed once no pending task uses it; its
task stays known while a descendant may need it again, and is forgotten afterwards.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple, NewType

TaskId = NewType("TaskId", int)
OutputId = NewType("OutputId", int)


class RunTask(NamedTuple):
    """Start this task; `reason` says why again.

    It is empty for the first time, and when a start is repeated that failed for a lost input.
    """

    task: TaskId
    reason: str


class Free(NamedTuple):
    """Nobody needs this output any more."""

    output: OutputId


class Fail(NamedTuple):
    """The outputs of this task will never come, because of `cause` (the same task or an input's)."""

    task: TaskId
    cause: TaskId


class Forget(NamedTuple):
    """Nothing can ever need this task again."""

    task: TaskId


Instruction = RunTask | Free | Fail | Forget


class Retries(NamedTuple):
    """How often a task that fails by itself is tried again."""

    exceptions: int = 0
    """It raised. Never by default: the same inputs would raise again."""
    deaths: int = 2
    """Its worker died under it: killed, out of memory, machine gone."""


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
        self.num_consumers = 0  # tasks that are known and read one of the outputs
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
        self.num_users = 0  # tasks that are to run or are running and read this
        self.waiting: list[_Task] = []


class Lineage:
    """The driver's memory of how every output came to be."""

    def __init__(self) -> None:
        self._tasks: dict[TaskId, _Task] = {}
        self._outputs: dict[OutputId, _Output] = {}

    def __len__(self) -> int:
        """Number of tasks that are still known."""
        return len(self._tasks)

    # What may happen.

    def submitted(
        self,
        task_id: TaskId,
        inputs: Iterable[OutputId],
        outputs: Iterable[OutputId],
        retries: Retries = DEFAULT_RETRIES,
    ) -> list[Instruction]:
        task = _Task(task_id, tuple([self._outputs[i] for i in dict.fromkeys(inputs)]), retries)
        task.outputs = tuple([_Output(output_id, task) for output_id in outputs])
        self._tasks[task_id] = task
        for output in task.outputs:
            self._outputs[output.id] = output
        instructions: list[Instruction] = []
        for given in task.inputs:
            given.num_users += 1
            given.producer.num_consumers += 1
        for given in task.inputs:
            if given.producer.state is _State.FAILED:
                assert given.producer.cause is not None
                self._fail(task, given.producer.cause, instructions)
                return instructions
        self._start(task, instructions)
        return instructions

    def finished(self, task_id: TaskId) -> list[Instruction]:
        """All outputs of this task are stored now."""
        task = self._tasks[task_id]
        task.state = _State.DONE
        instructions: list[Instruction] = []
        for output in task.outputs:
            output.is_stored = True
            for consumer in output.waiting:
                consumer.num_missing -= 1
                if consumer.num_missing == 0:
                    self._run(consumer, instructions)
            output.waiting = []
            self._free_if_unused(output, instructions)
        self._stop_using_inputs(task, instructions)
        return instructions

    def raised(self, task_id: TaskId) -> list[Instruction]:
        """The task raised an exception."""
        task = self._tasks[task_id]
        if task.exceptions == 0:
            return self.gave_up(task_id)
        task.exceptions -= 1
        return self._again(task, "it raised an exception")

    def died(self, task_id: TaskId) -> list[Instruction]:
        """The worker died while it ran the task."""
        task = self._tasks[task_id]
        if task.deaths == 0:
            return self.gave_up(task_id)
        task.deaths -= 1
        return self._again(task, "its worker died")

    def gave_up(self, task_id: TaskId) -> list[Instruction]:
        """The task failed for good."""
        instructions: list[Instruction] = []
        self._fail(self._tasks[task_id], task_id, instructions)
        return instructions

    def inputs_lost(self, task_id: TaskId, lost: Iterable[OutputId]) -> list[Instruction]:
        """A task that was to start found these of its inputs gone."""
        self.lost(lost)
        return self._again(self._tasks[task_id], "")

    def lost(self, outputs: Iterable[OutputId]) -> None:
        """These outputs are gone. Nothing happens until somebody wants them."""
        for output_id in outputs:
            if output_id in self._outputs:
                self._outputs[output_id].is_stored = False

    def wanted(self, outputs: Iterable[OutputId]) -> list[Instruction]:
        """A caller waits for these outputs."""
        instructions: list[Instruction] = []
        for output_id in outputs:
            self._require(self._outputs[output_id], instructions)
        return instructions

    def released(self, outputs: Iterable[OutputId]) -> list[Instruction]:
        """The caller will not ask for these outputs again."""
        instructions: list[Instruction] = []
        for output_id in outputs:
            output = self._outputs[output_id]
            output.is_released = True
            self._free_if_unused(output, instructions)
            self._forget_if_useless(output.producer, instructions)
        return instructions

    def replaced(self, task_id: TaskId, inputs: Iterable[OutputId]) -> list[Instruction]:
        """Another way to make the outputs of this task is known, from these inputs: a checkpoint.

        The old inputs are needed for it no more, and their tasks may be forgotten. The task must
        be done (`is_done`).
        """
        task = self._tasks[task_id]
        assert task.state is _State.DONE
        before, task.inputs = task.inputs, tuple([self._outputs[i] for i in dict.fromkeys(inputs)])
        for given in task.inputs:
            given.producer.num_consumers += 1
        instructions: list[Instruction] = []
        for given in before:
            given.producer.num_consumers -= 1
            self._forget_if_useless(given.producer, instructions)
        return instructions

    # What a caller may ask.

    def producer_of(self, output_id: OutputId) -> TaskId:
        return self._outputs[output_id].producer.id

    def is_done(self, task_id: TaskId) -> bool:
        """It ran, and does not run again just now."""
        return self._tasks[task_id].state is _State.DONE

    def is_known(self, output_id: OutputId) -> bool:
        """Whether it was submitted here and not released."""
        output = self._outputs.get(output_id)
        return output is not None and not output.is_released

    def is_resolved(self, output_id: OutputId) -> bool:
        """Stored, or never to come."""
        output = self._outputs[output_id]
        return output.is_stored or output.producer.state is _State.FAILED

    def cause_of_failure(self, output_id: OutputId) -> TaskId | None:
        return self._outputs[output_id].producer.cause

    # How it is decided.

    def _again(self, task: _Task, reason: str) -> list[Instruction]:
        instructions: list[Instruction] = []
        task.reason = reason
        self._start(task, instructions)
        return instructions

    def _start(self, task: _Task, instructions: list[Instruction]) -> None:
        """Run the task now, or as soon as its missing inputs are there."""
        task.state = _State.WAITING
        missing = [given for given in task.inputs if not given.is_stored]
        task.num_missing = len(missing)
        if not missing:
            self._run(task, instructions)
        for given in missing:
            given.waiting.append(task)
        for given in missing:
            self._require(given, instructions)

    def _require(self, output: _Output, instructions: list[Instruction]) -> None:
        """Compute a lost output again, after its own lost inputs. A loop: chains may be long."""
        stack = [output]
        while stack:
            output = stack.pop()
            task = output.producer
            if output.is_stored or task.state is not _State.DONE:
                continue  # there, on its way, or failed
            task.state, task.reason = _State.WAITING, "its output was lost"
            missing = [given for given in task.inputs if not given.is_stored]
            task.num_missing = len(missing)
            for given in task.inputs:
                given.num_users += 1
            for given in missing:
                given.waiting.append(task)
            stack += missing
            if not missing:
                self._run(task, instructions)

    def _run(self, task: _Task, instructions: list[Instruction]) -> None:
        task.state = _State.RUNNING
        instructions.append(RunTask(task.id, task.reason))

    def _fail(self, first: _Task, cause: TaskId, instructions: list[Instruction]) -> None:
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
            for given in task.inputs:
                given.waiting = [other for other in given.waiting if other is not task]
            self._stop_using_inputs(task, instructions)

    def _stop_using_inputs(self, task: _Task, instructions: list[Instruction]) -> None:
        for given in task.inputs:
            given.num_users -= 1
            self._free_if_unused(given, instructions)
        self._forget_if_useless(task, instructions)

    def _free_if_unused(self, output: _Output, instructions: list[Instruction]) -> None:
        if output.is_released and output.is_stored and output.num_users == 0:
            output.is_stored = False
            instructions.append(Free(output.id))

    def _forget_if_useless(self, task: _Task, instructions: list[Instruction]) -> None:
        """Drop tasks whose outputs are released and that no known task may need again."""
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
            for given in task.inputs:
                given.producer.num_consumers -= 1
                stack.append(given.producer)

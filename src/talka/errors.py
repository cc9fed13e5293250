"""Every error that talka raises on purpose.

A message says what happened, what was given, what is allowed and what to do. Arguments stay in
`args`, so that an error survives the way between processes. `exit_code` is what the command line
returns: 2 when the caller can mend the input, 1 when the job itself failed.
"""

import difflib
from collections.abc import Sequence


class TalkaError(Exception):
    """Root of every error this package raises on purpose."""

    exit_code = 1


class InvalidValueError(TalkaError, ValueError):
    """An option or argument is outside of what is allowed.

    >>> print(InvalidValueError("--workers", 0, "a whole number of at least 1"))
    --workers is 0, but must be a whole number of at least 1.
    """

    exit_code = 2

    def __init__(self, name: str, given: object, allowed: str) -> None:
        super().__init__(name, given, allowed)
        self.name, self.given, self.allowed = name, given, allowed

    def __str__(self) -> str:
        return f"{self.name} is {self.given!r}, but must be {self.allowed}."


class UnknownNameError(TalkaError, LookupError):
    """A name is not among the known ones; the nearest known one is offered.

    >>> print(UnknownNameError("exchange", "rign", ("ring", "tree")))
    no exchange named 'rign'. Did you mean 'ring'? Known: ring, tree.
    """

    exit_code = 2

    def __init__(self, kind: str, name: str, known: Sequence[str]) -> None:
        super().__init__(kind, name, tuple(known))
        self.kind, self.name, self.known = kind, name, tuple(known)

    def __str__(self) -> str:
        close = difflib.get_close_matches(self.name, self.known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        return f"no {self.kind} named {self.name!r}.{hint} Known: {', '.join(self.known)}."


class RunDirectoryError(TalkaError):
    """A run directory cannot be written, or is not one."""

    exit_code = 2

    def __init__(self, path: str, problem: str, advice: str) -> None:
        super().__init__(path, problem, advice)
        self.path, self.problem, self.advice = path, problem, advice

    def __str__(self) -> str:
        return f"run directory {self.path}: {self.problem}. {self.advice}"


class OutputError(TalkaError):
    """A file that was asked for cannot be written.

    >>> print(OutputError("/tmp", "is a folder", "Give the name of a file."))
    cannot write /tmp: it is a folder. Give the name of a file.
    """

    exit_code = 2

    def __init__(self, path: str, problem: str, advice: str) -> None:
        super().__init__(path, problem, advice)
        self.path, self.problem, self.advice = path, problem, advice

    def __str__(self) -> str:
        return f"cannot write {self.path}: it {self.problem}. {self.advice}"


class CorpusError(TalkaError):
    """Text cannot be read, or is not text.

    >>> print(CorpusError("notes.txt", "does not exist", "Check the path."))
    cannot use notes.txt: it does not exist. Check the path.
    """

    exit_code = 2

    def __init__(self, source: str, problem: str, advice: str) -> None:
        super().__init__(source, problem, advice)
        self.source, self.problem, self.advice = source, problem, advice

    def __str__(self) -> str:
        return f"cannot use {self.source}: it {self.problem}. {self.advice}"


class TokenizerError(TalkaError, ValueError):
    """A function that cuts text into words gave something that is no list of words."""

    exit_code = 2

    def __init__(self, given: str) -> None:
        super().__init__(given)
        self.given = given

    def __str__(self) -> str:
        return (
            f"the tokenizer gave {self.given}, but must give a list of str, none of them empty or "
            "with white space inside (the text form of word vectors could not hold it). Join the "
            "parts of a phrase with `_`."
        )


class NothingToLearnError(TalkaError):
    """The text was read, but holds no words or no pairs to learn from.

    >>> print(NothingToLearnError("the corpus has no words", "Give more text."))
    nothing to learn from: the corpus has no words. Give more text.
    """

    exit_code = 2

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(problem, advice)
        self.problem, self.advice = problem, advice

    def __str__(self) -> str:
        return f"nothing to learn from: {self.problem}. {self.advice}"


class SavedStateError(TalkaError):
    """What an earlier run saved is missing, incomplete or damaged.

    >>> print(SavedStateError("work/pairs.bin", "is shorter than it was"))
    cannot go on from work/pairs.bin: it is shorter than it was. Start again without resuming.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"cannot go on from {self.path}: it {self.problem}. Start again without resuming."


class PayloadError(TalkaError, ValueError):
    """Bytes that should be a payload are none, or were changed on their way.

    >>> print(PayloadError("has 3 bytes, fewer than its header"))
    the payload has 3 bytes, fewer than its header. It was cut or changed on its way, or is no payload.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"the payload {self.problem}. It was cut or changed on its way, or is no payload."


class NonFiniteError(TalkaError, ArithmeticError):
    """A gradient holds NaN or infinity, which a compressor would spread over all workers.

    >>> print(NonFiniteError("fc1.weight"))
    'fc1.weight' holds NaN or infinity. Lower the learning rate or clip gradients; nonfinite="pass" sends such tensors whole and as they are.
    """

    def __init__(self, tensor: str) -> None:
        super().__init__(tensor)
        self.tensor = tensor

    def __str__(self) -> str:
        return (
            f"{self.tensor!r} holds NaN or infinity. Lower the learning rate or clip gradients; "
            'nonfinite="pass" sends such tensors whole and as they are.'
        )


class SpecError(TalkaError, ValueError):
    """A short form such as `topk:0.01+ef` is not one.

    >>> print(
    ...     SpecError(
    ...         "topk:2", "keeps a share of the values", "a share above 0 and up to 1: topk:0.01"
    ...     )
    ... )
    'topk:2' keeps a share of the values; allowed is a share above 0 and up to 1: topk:0.01.
    """

    exit_code = 2

    def __init__(self, spec: str, problem: str, allowed: str) -> None:
        super().__init__(spec, problem, allowed)
        self.spec, self.problem, self.allowed = spec, problem, allowed

    def __str__(self) -> str:
        return f"{self.spec!r} {self.problem}; allowed is {self.allowed}."


class ModelFileError(TalkaError):
    """A person's own file does not make a model.

    >>> print(ModelFileError("train.py:make", "it returned int, no nn.Module"))
    no model from 'train.py:make': it returned int, no nn.Module. Give FILE.py:FUNCTION, a function that needs no arguments and returns the nn.Module.
    """

    exit_code = 2

    def __init__(self, given: str, problem: str) -> None:
        super().__init__(given, problem)
        self.given, self.problem = given, problem

    def __str__(self) -> str:
        return (
            f"no model from {self.given!r}: {self.problem}. Give FILE.py:FUNCTION, a function that "
            "needs no arguments and returns the nn.Module."
        )


class ProgramError(TalkaError, ValueError):
    """A function of a graph program cannot be used.

    >>> print(ProgramError("message", "walk.py:3", "it calls itself"))
    the program's `message` (walk.py:3): it calls itself.
    """

    exit_code = 2

    def __init__(self, function: str, where: str, problem: str) -> None:
        super().__init__(function, where, problem)
        self.function, self.where, self.problem = function, where, problem

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"the program's `{self.function}`{place}: {self.problem}."


class NeverHaltsError(TalkaError):
    """A graph program was still going on after as many supersteps as it may take.

    >>> print(NeverHaltsError(100, 12))
    after 100 supersteps 12 vertices were still active. Let `active` become false, or allow more \
with max_supersteps.
    """

    def __init__(self, superstep: int, num_active: int) -> None:
        super().__init__(superstep, num_active)
        self.superstep, self.num_active = superstep, num_active

    def __str__(self) -> str:
        return (
            f"after {self.superstep} supersteps {self.num_active} vertices were still active."
            " Let `active` become false, or allow more with max_supersteps."
        )


class NotStorableError(TalkaError, TypeError):
    """A task returned, or was given, something that cannot be an output."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return (
            f"{self.what} cannot be the output of a task. Return Arrow (a table, batch or array), "
            "numpy, or plain values (None, bool, int, float, str, bytes; lists, tuples and dicts "
            "of them): for example pyarrow.Table.from_pandas(frame) or tensor.numpy()."
        )


class NotShippableError(TalkaError, TypeError):
    """A function cannot be sent to a worker process."""

    def __init__(self, function: str, problem: str) -> None:
        super().__init__(function, problem)
        self.function, self.problem = function, problem

    def __str__(self) -> str:
        return (
            f"function {self.function} cannot be sent to a worker: {self.problem}. It may use plain "
            "values, Arrow and numpy from outside; open files, locks, sockets and connections must "
            "be made inside it, and tables of more than 256 MB must be inputs, not constants."
        )


class TaskError(TalkaError):
    """A task raised: which one, on what, where in the user's code."""

    def __init__(
        self, task: str, cause: str, line: str, inputs: tuple[str, ...], remote_traceback: str
    ) -> None:
        super().__init__(task, cause, line, inputs, remote_traceback)
        self.task, self.cause, self.line = task, cause, line
        self.inputs, self.remote_traceback = inputs, remote_traceback
        self.add_note(f"Where it happened:\n{remote_traceback}")

    def __str__(self) -> str:
        given = f"\n  given {'; '.join(self.inputs)}" if self.inputs else ""
        return f"task {self.task} raised {self.cause}\n  at {self.line}{given}"


class TaskDiedError(TalkaError):
    """The worker that ran a task died, more often than was allowed."""

    def __init__(self, task: str, how: str, inputs: tuple[str, ...]) -> None:
        super().__init__(task, how, inputs)
        self.task, self.how, self.inputs = task, how, inputs

    def __str__(self) -> str:
        given = f" given {'; '.join(self.inputs)}" if self.inputs else ""
        return (
            f"task {self.task}{given}: its worker died ({self.how}), and so did every further try. "
            "If memory ran out, cut the input into more partitions."
        )


class StorageFullError(TalkaError):
    """Outputs fit neither into the memory budget nor on the disk."""

    def __init__(self, folder: str, problem: str, budget: str) -> None:
        super().__init__(folder, problem, budget)
        self.folder, self.problem, self.budget = folder, problem, budget

    def __str__(self) -> str:
        return (
            f"the memory budget of {self.budget} is used up and {self.folder} takes no more "
            f"({self.problem}). Outputs that were stored are still there. Free disk space, give a "
            "larger memory_bytes, or another spill_dir."
        )


class ReleasedError(TalkaError, LookupError):
    """A Ref was used after its release, or on an engine that did not make it."""

    def __str__(self) -> str:
        return (
            "this Ref was released, or belongs to another engine or a closed one. "
            "Release an output only after its last use."
        )


class ClusterError(TalkaError):
    """A cluster cannot be reached or used."""

    def __init__(self, address: str, problem: str, advice: str) -> None:
        super().__init__(address, problem, advice)
        self.address, self.problem, self.advice = address, problem, advice

    def __str__(self) -> str:
        return f"Ray at {self.address}: {self.problem}. {self.advice}"


class GangError(TalkaError):
    """A rank of a gang failed, so the gang was ended."""

    def __init__(self, rank: int, size: int, how: str, log_tail: str) -> None:
        super().__init__(rank, size, how, log_tail)
        self.rank, self.size, self.how, self.log_tail = rank, size, how, log_tail

    def __str__(self) -> str:
        lines = self.log_tail.rstrip().splitlines()[-20:]
        tail = "\n".join(f"  | {line}" for line in lines) if lines else "  | (empty)"
        return f"rank {self.rank} of {self.size} {self.how}. The end of its log:\n{tail}"


class LabError(TalkaError):
    """A lab cannot be built here, or cannot go on.

    >>> print(LabError("the program `tc` is missing", "Install iproute2."))
    the lab cannot go on: the program `tc` is missing. Install iproute2.
    """

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(problem, advice)
        self.problem, self.advice = problem, advice

    def __str__(self) -> str:
        return f"the lab cannot go on: {self.problem}. {self.advice}"


class GraphError(TalkaError, ValueError):
    """What was given makes no graph.

    >>> print(GraphError("3 sources and 2 targets", "Give as many targets as sources."))
    no graph from 3 sources and 2 targets. Give as many targets as sources.
    """

    exit_code = 2

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(problem, advice)
        self.problem, self.advice = problem, advice

    def __str__(self) -> str:
        return f"no graph from {self.problem}. {self.advice}"


class EdgeFileError(TalkaError, ValueError):
    """A file of edges or vertices cannot be read; `line` is None where no line is to blame.

    >>> print(EdgeFileError("edges.txt", 7, "'x' is no whole number", "Mend the line."))
    edges.txt, line 7: 'x' is no whole number. Mend the line.
    """

    exit_code = 2

    def __init__(self, path: str, line: int | None, problem: str, advice: str) -> None:
        super().__init__(path, line, problem, advice)
        self.path, self.line, self.problem, self.advice = path, line, problem, advice

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}, line {self.line}"
        return f"{where}: {self.problem}. {self.advice}"


class UnknownVertexError(TalkaError, LookupError):
    """An id is not in the graph.

    >>> print(UnknownVertexError(7, "whole numbers from 1 to 5"))
    no vertex 7 in the graph. Its ids are whole numbers from 1 to 5.
    """

    exit_code = 2

    def __init__(self, vertex: object, known: str) -> None:
        super().__init__(vertex, known)
        self.vertex, self.known = vertex, known

    def __str__(self) -> str:
        return f"no vertex {self.vertex!r} in the graph. Its ids are {self.known}."


class GraphTooLargeError(TalkaError, MemoryError):
    """A graph would not fit into memory; said before any of it was taken.

    >>> print(GraphTooLargeError("9.0 G edges", "216 GB", "24.0 GB"))
    a graph of about 9.0 G edges needs about 216 GB of memory to build, and 24.0 GB are free. Take a machine with more memory, or fewer edges.
    """

    def __init__(self, size: str, needed: str, available: str) -> None:
        super().__init__(size, needed, available)
        self.size, self.needed, self.available = size, needed, available

    def __str__(self) -> str:
        return (
            f"a graph of about {self.size} needs about {self.needed} of memory to build, and "
            f"{self.available} are free. Take a machine with more memory, or fewer edges."
        )

"""Errors about tasks, gangs, workers and the machines they run on."""

from talka.errors.base import TalkaError


class NotStorableError(TalkaError, TypeError):
    """A task returned, or was given, a value that cannot be stored as an output."""

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
            f"function {self.function} cannot be sent to a worker: {self.problem}. It may refer "
            "to plain values, Arrow and numpy; create open files, locks, sockets and connections "
            "inside it, and pass tables of more than 256 MB as inputs, not as constants."
        )


class TaskError(TalkaError):
    """A task raised an exception; the message names the task, its inputs and the line."""

    def __init__(
        self, task: str, cause: str, line: str, inputs: tuple[str, ...], remote_traceback: str
    ) -> None:
        super().__init__(task, cause, line, inputs, remote_traceback)
        self.task, self.cause, self.line = task, cause, line
        self.inputs, self.remote_traceback = inputs, remote_traceback
        self.add_note(f"Traceback of the task:\n{remote_traceback}")

    def __str__(self) -> str:
        given = f"\n  given {'; '.join(self.inputs)}" if self.inputs else ""
        return f"task {self.task} raised {self.cause}\n  at {self.line}{given}"


class TaskDiedError(TalkaError):
    """The worker that ran a task died, also in all retries of the task."""

    def __init__(self, task: str, how: str, inputs: tuple[str, ...]) -> None:
        super().__init__(task, how, inputs)
        self.task, self.how, self.inputs = task, how, inputs

    def __str__(self) -> str:
        given = f" given {'; '.join(self.inputs)}" if self.inputs else ""
        return (
            f"task {self.task}{given}: its worker died ({self.how}), also in all retries. "
            "If memory ran out, split the input into more partitions."
        )


class StorageFullError(TalkaError):
    """Outputs fit neither into the memory budget nor on the disk."""

    def __init__(self, folder: str, problem: str, budget: str) -> None:
        super().__init__(folder, problem, budget)
        self.folder, self.problem, self.budget = folder, problem, budget

    def __str__(self) -> str:
        return (
            f"the memory budget of {self.budget} is used up and {self.folder} cannot hold more "
            f"({self.problem}). Outputs that were stored before are intact. Free disk space, or give "
            "a larger memory_bytes or another spill_dir."
        )


class DescriptorLimitError(TalkaError):
    """The process has reached its limit of open files.

    >>> print(DescriptorLimitError(1024))
    too many open files: this process may open 1024. Raise the limit with `ulimit -n`, and close files that tasks leave open.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit

    def __str__(self) -> str:
        return (
            f"too many open files: this process may open {self.limit}. Raise the limit with "
            "`ulimit -n`, and close files that tasks leave open."
        )


class ReleasedError(TalkaError, LookupError):
    """A Ref was used after its release, on another engine, or after its engine was closed."""

    def __str__(self) -> str:
        return (
            "this Ref was released, or belongs to another engine or to a closed one. "
            "Release an output only after its last use."
        )


class HookClosedError(TalkaError):
    """A hook was used after `close`, or after the end of its `with` block."""

    def __str__(self) -> str:
        return (
            "this hook is closed and no longer exchanges gradients. Close it after the last backward pass; "
            "to train further, wrap the model in a new DistributedDataParallel and attach a new hook."
        )


class WaitInTaskError(TalkaError):
    """A task waited for outputs of the engine that runs it, which can deadlock."""

    def __str__(self) -> str:
        return (
            "a task may not wait for outputs of the engine that runs it: if all threads ran such "
            "tasks, none could end. Pass the outputs as inputs, which are available when the task starts: "
            "engine.submit(function, ref)."
        )


class ClusterError(TalkaError):
    """A cluster cannot be reached or used."""

    def __init__(self, address: str, problem: str, advice: str) -> None:
        super().__init__(address, problem, advice)
        self.address, self.problem, self.advice = address, problem, advice

    def __str__(self) -> str:
        return f"Ray at {self.address}: {self.problem}. {self.advice}"


class GangError(TalkaError):
    """A rank of a gang failed, or was ended.

    `Gang.wait` raises it after it has ended all other ranks. With `on_failure="report"`, it returns it
    in the place of the result of the rank.
    """

    def __init__(self, rank: int, size: int, how: str, log_tail: str) -> None:
        super().__init__(rank, size, how, log_tail)
        self.rank, self.size, self.how, self.log_tail = rank, size, how, log_tail

    def __str__(self) -> str:
        lines = self.log_tail.rstrip().splitlines()[-20:]
        tail = "\n".join(f"  | {line}" for line in lines) if lines else "  | (empty)"
        return f"rank {self.rank} of {self.size} {self.how}. The end of its log:\n{tail}"


class GangTimeoutError(TalkaError, TimeoutError):
    """A gang had not finished when the time limit of `Gang.wait` was over.

    >>> print(GangTimeoutError(4, (1, 3), 2.5))
    the gang of 4 ranks had not finished after 2.5 s: ranks 1, 3 are running. It continues. Call \
`wait` again, or end it with `stop`.
    """

    def __init__(self, size: int, running: tuple[int, ...], timeout_s: float) -> None:
        super().__init__(size, running, timeout_s)
        self.size, self.running, self.timeout_s = size, running, timeout_s

    def __str__(self) -> str:
        running = f"ranks {', '.join(map(str, self.running))} are running"
        return (
            f"the gang of {self.size} ranks had not finished after {self.timeout_s:g} s: "
            f"{running if self.running else 'its ranks are being ended'}. It continues. Call `wait` "
            "again, or end it with `stop`."
        )


class RendezvousTimeoutError(TalkaError, TimeoutError):
    """No rank set a key of the rendezvous in time.

    >>> print(RendezvousTimeoutError("server/0", 60))
    no rank has set the key 'server/0' of the rendezvous within 60 s. Check that a rank sets exactly \
this key, and that it did not fail before; if it needs more time, give a larger timeout_s.
    """

    def __init__(self, key: str, timeout_s: float) -> None:
        super().__init__(key, timeout_s)
        self.key, self.timeout_s = key, timeout_s

    def __str__(self) -> str:
        return (
            f"no rank has set the key {self.key!r} of the rendezvous within {self.timeout_s:g} s. "
            "Check that a rank sets exactly this key, and that it did not fail before; if it needs "
            "more time, give a larger timeout_s."
        )


class RanksMissingError(TalkaError):
    """Ranks that torchrun, a lab or a user has started did not find each other.

    >>> print(RanksMissingError("10.0.0.1:29500", "rank 0 has not responded", "Start it."))
    the ranks do not meet at 10.0.0.1:29500: rank 0 has not responded. Start it.
    """

    def __init__(self, address: str, problem: str, advice: str) -> None:
        super().__init__(address, problem, advice)
        self.address, self.problem, self.advice = address, problem, advice

    def __str__(self) -> str:
        return f"the ranks do not meet at {self.address}: {self.problem}. {self.advice}"


class LostWorkerError(TalkaError):
    """A worker ended, or stopped responding, in the middle of an exchange.

    >>> print(LostWorkerError((2,), "Connection closed by peer"))
    lost rank 2 in the middle of an exchange (Connection closed by peer). It ended, or its machine \
cannot be reached: the end of its log shows why, or which rank it lost itself. Start all workers \
again, and load the last checkpoint.
    """

    def __init__(self, ranks: tuple[int, ...], problem: str) -> None:
        super().__init__(ranks, problem)
        self.ranks, self.problem = ranks, problem

    def __str__(self) -> str:
        return (
            f"lost rank {' or '.join(map(str, self.ranks))} in the middle of an exchange "
            f"({self.problem}). It ended, or its machine cannot be reached: the end of its log shows "
            "why, or which rank it lost itself. Start all workers again, and load the last checkpoint."
        )


class LabError(TalkaError):
    """A lab cannot be built on this machine, or failed while it ran.

    >>> print(LabError("the program `tc` is missing", "Install iproute2."))
    the lab cannot run: the program `tc` is missing. Install iproute2.
    """

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(problem, advice)
        self.problem, self.advice = problem, advice

    def __str__(self) -> str:
        return f"the lab cannot run: {self.problem}. {self.advice}"


class MissingPackageError(TalkaError, ImportError):
    """A feature needs a package that talka installs only with an extra.

    >>> print(MissingPackageError("torch", "train", "talka.compress"))
    talka.compress needs torch, which is not installed. Install talka with the extra `train`: \
`pip install --constraint constraints.txt '.[train]'` in its source folder.
    """

    def __init__(self, package: str, extra: str, by: str) -> None:
        super().__init__(package, extra, by)
        self.package, self.extra, self.by = package, extra, by

    def __str__(self) -> str:
        return (
            f"{self.by} needs {self.package}, which is not installed. Install talka with the extra "
            f"`{self.extra}`: `pip install --constraint constraints.txt '.[{self.extra}]'` in its "
            "source folder."
        )

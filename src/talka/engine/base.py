"""The interface of all engines. Work has one of two forms: a task or a gang."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self, overload

from talka.channels.options import MailboxOptions
from talka.engine.gangs.spec import Main, OnFailure
from talka.engine.lineage import DEFAULT_RETRIES, OutputId, Retries


class Ref:
    """Reference to one output of a task, which may not have run yet.

    Pass it to `submit` as an input, or to `fetch` for its value. It must be an input itself: a Ref
    inside a list or another value is refused.
    """

    __slots__ = ("engine", "id")
    __iter__ = None  # `[ref] = engine.submit(...)` fails at once

    def __init__(self, output_id: OutputId, engine: int) -> None:
        self.id = output_id
        self.engine = engine

    def __repr__(self) -> str:
        return f"Ref({self.id})"

    def __reduce__(self) -> Any:
        raise TypeError(
            "a Ref must itself be an input of a task: submit(f, ref), not submit(f, [ref])"
        )


class Gang(Protocol):
    """A gang that was started; a context manager.

    Leaving the block by an error or Ctrl+C stops the gang; otherwise its end is awaited, as by `wait`.
    All methods may be called from several threads. Events and results of ranks are received whether
    or not a thread waits. Under torchrun, only `wait` has an effect: it runs `main` as this rank.
    """

    def wait(self, timeout_s: float | None = None) -> list[Any]:
        """Wait until all ranks have ended and return their results, in order of rank.

        With `on_failure="report"`, the result of a rank that was lost is its `GangError`.

        Parameters
        ----------
        timeout_s
            Seconds to wait at most; None waits without a limit. The gang continues afterwards.

        Raises
        ------
        GangError
            If a rank raised, died or exceeded the time limit of the gang, or if the gang was stopped.
            All ranks have ended. With `on_failure="report"`, only if no rank has finished.
        GangTimeoutError
            If the gang had not ended after `timeout_s`.
        """
        ...

    def stop(self) -> None:
        """End all ranks and wait until they have ended; does nothing if they have."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class Engine(Protocol):
    """Runs tasks and gangs; a context manager that closes itself at the end of the block.

    A task is a function that returns the same outputs for the same inputs: the engine runs it again
    if an output is lost. Outputs are Arrow, numpy or plain values (None, bool, int, float, str,
    bytes; lists, tuples and dicts of them). They are immutable, and are kept until `release` or
    `close`. All methods may be called from several threads.
    """

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
        """Schedule `function(*inputs)` and return a Ref of its output without waiting.

        The task starts when all inputs that are a `Ref` are stored. If the task of an input fails,
        this one fails with the same error.

        Parameters
        ----------
        function
            A pure function. With `python=True`, and always on Ray, it is sent by cloudpickle.
        *inputs
            Arguments of the function. Each `Ref` is replaced by its value; everything else is passed
            as it is.
        num_outputs
            Number of outputs. If it is given, `submit` returns a tuple of this many `Ref`s, and with
            more than one the function must return a tuple or list of this length.
        python
            Run in a worker process instead of a thread: for functions that hold the interpreter's
            lock for long. On Ray, all tasks run in worker processes.
        near
            Prefer the machine that stores this output. Only a hint; engines on one machine ignore it.
        name
            Name of the task in events and errors; by default that of the function.
        retries
            How often the task is started again after it raised or its worker died.

        Raises
        ------
        InvalidValueError
            If `function` is not callable or `num_outputs` is less than 1.
        NotShippableError
            If the function must be sent to another process and cannot be.
        ReleasedError
            If an input was released or belongs to another engine, or this engine is closed.
        """
        ...

    def wait(
        self, refs: Sequence[Ref], *, timeout_s: float | None = None
    ) -> tuple[list[Ref], list[Ref]]:
        """Wait until all of these outputs are stored or have failed, or until the timeout.

        Does not raise the errors of tasks; `fetch` does.

        Parameters
        ----------
        timeout_s
            Seconds to wait at most; None waits without a limit.

        Returns
        -------
        done, pending
            Refs whose output is stored or has failed, and all others, in the given order.

        Raises
        ------
        WaitInTaskError
            If it is called inside a task: outputs that a task needs must be its inputs.
        ReleasedError
            If one was released or belongs to another engine, or this engine is closed.
        """
        ...

    @overload
    def fetch(self, refs: Ref) -> Any: ...
    @overload
    def fetch(self, refs: Sequence[Ref]) -> list[Any]: ...
    def fetch(self, refs: Ref | Sequence[Ref]) -> Any:
        """Wait for outputs and return their values: one for a `Ref`, a list for several.

        Values are read without a copy where possible, and arrays are read-only. A lost output is
        computed again first.

        Raises
        ------
        TaskError
            If a task, or one that it depends on, raised or returned a value that cannot be an output.
        TaskDiedError
            If the worker of such a task died in every try.
        TalkaError
            If such a task failed in another way, such as StorageFullError if memory and disk are
            full. With several failed tasks, the error of the first Ref is raised.
        WaitInTaskError, ReleasedError
            As for `wait`.
        """
        ...

    def release(self, refs: Ref | Sequence[Ref]) -> None:
        """Declare that these outputs are not needed any more.

        Their memory is freed after the last submitted task that reads them. A released `Ref` cannot
        be used again; ReleasedError is raised if one was released before.
        """
        ...

    def drop(self, refs: Ref | Sequence[Ref]) -> None:
        """Lose these outputs, as if their machine had died; for tests.

        They are computed again when they are needed.
        """
        ...

    def replace(self, ref: Ref, function: Callable[..., Any], *inputs: Any) -> bool:
        """Replace the task that made `ref`, for example by one that reads a checkpoint.

        The new function must make the same outputs, all of them. It only runs if one of them is lost,
        and what the former task needed is no longer kept for it.

        Returns False, and changes nothing, if the former task is not done: it is waiting, running
        (perhaps again) or has failed.
        """
        ...

    def gang(
        self,
        main: Main,
        *args: Any,
        size: int | Mapping[str, int],
        timeout_s: float | None = None,
        backend: str | None = "gloo",
        on_failure: OnFailure = "end",
        args_of: Mapping[str, Sequence[Any]] | None = None,
        channels: MailboxOptions | None = None,
    ) -> list[Any]:
        """Run `main(worker, *args)` on several ranks at the same time and return their results.

        The same as `start_gang(...).wait()`: `start_gang` documents the parameters, and `Gang.wait`
        the results and errors.
        """
        with self.start_gang(
            main,
            *args,
            size=size,
            timeout_s=timeout_s,
            backend=backend,
            on_failure=on_failure,
            args_of=args_of,
            channels=channels,
        ) as gang:
            return gang.wait()

    def start_gang(
        self,
        main: Main,
        *args: Any,
        size: int | Mapping[str, int],
        timeout_s: float | None = None,
        backend: str | None = "gloo",
        on_failure: OnFailure = "end",
        args_of: Mapping[str, Sequence[Any]] | None = None,
        channels: MailboxOptions | None = None,
    ) -> "Gang":
        """Start `main(worker, *args)` on several ranks and return a handle without waiting.

        `worker` is a `GangWorker`. Under torchrun, the ranks that it started are the gang, and `main`
        runs in `Gang.wait`.

        Parameters
        ----------
        main
            A function for all ranks, or one for each role.
        size
            Number of ranks, or the number of ranks of each role: with `{"server": 2, "worker": 4}`,
            ranks 0 and 1 are servers and ranks 2 to 5 workers. The role of a rank is
            `worker.role`; without roles it is "worker".
        timeout_s
            Seconds after which ranks that have not finished are ended; None for no limit.
        backend
            Backend of the process group of `torch.distributed` that the ranks share. With None they
            have no process group, and torch is neither needed nor imported.
        on_failure
            With "end", the first rank that dies or raises ends the gang. With "report", the others
            continue and are notified through `worker.losses`.
        args_of
            More arguments for the ranks of a role, after `*args`.
        channels
            Limits of messages between the ranks (`worker.send`, collectives, exchanges), and whether
            they are encrypted between machines.

        Raises
        ------
        NotShippableError
            If a function or its arguments cannot be sent to another process.
        InvalidValueError
            If an argument is not allowed, such as a size that is less than 1, or under torchrun a
            size that is not the number of its ranks.
        UnknownNameError
            If a role has no ranks, or torch has no such backend.
        MissingPackageError
            If torch is not installed and `backend` is not None.
        """
        ...

    def close(self) -> None:
        """End all workers, stop all gangs and free all outputs. Every Ref becomes invalid."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

"""The interface of all engines. Work has one of two forms: a task or a gang."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self, overload

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
        self, main: Callable[..., Any], *args: Any, size: int, timeout_s: float | None = None
    ) -> list[Any]:
        """Run `main(worker, *args)` on `size` ranks at the same time and return their results.

        The ranks share a gloo process group of `torch.distributed`. `worker` is a `GangWorker`.
        Results are in order of rank. Under torchrun, the ranks that it started are the gang.

        Parameters
        ----------
        timeout_s
            Seconds after which ranks that have not finished are ended; None for no limit.

        Raises
        ------
        GangError
            If a rank raises, dies or exceeds the timeout. All other ranks are ended.
        NotShippableError
            If `main` or its arguments cannot be sent to another process.
        InvalidValueError
            If `size` is less than 1, or under torchrun not the number of its ranks.
        MissingPackageError
            If torch is not installed.
        """
        ...

    def close(self) -> None:
        """End all workers and free all outputs. Every Ref of this engine becomes invalid."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

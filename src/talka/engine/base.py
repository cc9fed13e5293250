"""What every engine offers. Two shapes of work, and no third: a task and a gang."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self, overload

from talka.engine.lineage import DEFAULT_RETRIES, OutputId, Retries


class Ref:
    """One output of a task, whether it is there yet or not."""

    __slots__ = ("engine", "id")
    __iter__ = None  # `[ref] = engine.submit(...)` fails at once

    def __init__(self, output_id: OutputId, engine: int) -> None:
        self.id = output_id
        self.engine = engine

    def __repr__(self) -> str:
        return f"Ref({self.id})"

    def __reduce__(self) -> Any:
        raise TypeError("a Ref must be an input of its own: submit(f, ref), not submit(f, [ref])")


class Engine(Protocol):
    """Where work runs.

    A task is a pure function of its inputs: same inputs, same outputs, so it may run again.
    Outputs are Arrow, numpy or plain values, and immutable.
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
        """Run `function(*inputs)` once all inputs that are a `Ref` are available.

        Returns the `Ref` of its output at once, without waiting for the task.

        num_outputs
            If given, the function has this many outputs, and a tuple of `Ref`s is returned. With
            more than one, the function returns them as a tuple or list.
        python
            The function holds the interpreter's lock for long: run it in a worker process, where
            it is sent by cloudpickle. Otherwise it runs in a thread and may be anything.
        near
            A soft wish: run where this output lies.
        name
            For events and errors; the function's name unless given.
        """
        ...

    def wait(
        self, refs: Sequence[Ref], *, timeout_s: float | None = None
    ) -> tuple[list[Ref], list[Ref]]:
        """Wait until all are settled (there, or failed); gives those that are and those not yet.

        Not inside of a task, nor is `fetch`: outputs that it needs are its inputs.
        """
        ...

    @overload
    def fetch(self, refs: Ref) -> Any: ...
    @overload
    def fetch(self, refs: Sequence[Ref]) -> list[Any]: ...
    def fetch(self, refs: Ref | Sequence[Ref]) -> Any:
        """The value of a Ref, or the values of several; raises what made a task fail."""
        ...

    def release(self, refs: Ref | Sequence[Ref]) -> None:
        """Nobody needs these any more: their memory is freed after the tasks that still use them."""
        ...

    def drop(self, refs: Ref | Sequence[Ref]) -> None:
        """Lose these outputs, as a dying machine would; for tests. They come back when needed."""
        ...

    def replace(self, ref: Ref, function: Callable[..., Any], *inputs: Any) -> bool:
        """From now on the task that made `ref` is this one: a checkpoint that cuts the lineage.

        It must make the same outputs, all of them. Nothing runs now; if one of them is lost, this
        function makes it, and what the former task needed is needed no more. False, and nothing
        is changed, when that task is just running again.
        """
        ...

    def gang(
        self, main: Callable[..., Any], *args: Any, size: int, timeout_s: float | None = None
    ) -> list[Any]:
        """Run `main(worker, *args)` on `size` ranks that share a gloo process group.

        Gives what every rank returned, in order of rank. `worker` is a `GangWorker`. Under torchrun
        the gang is the one that is already there.
        """
        ...

    def close(self) -> None:
        """End all workers and free all outputs."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

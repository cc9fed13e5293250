"""Call a user's function: the one place where whatever it raises is caught and put into words."""

import traceback
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from talka.engine import storage
from talka.engine.shipping import unwrapped
from talka.errors import NotStorableError, TaskError

_MAX_TEXT = 20_000  # of a remote traceback: recursion errors are long


class Problem(NamedTuple):
    """A failure as plain text, fit to travel between processes."""

    cause: str
    line: str
    traceback: str
    inputs: tuple[str, ...]

    def as_error(self, task: str) -> TaskError:
        return TaskError(task, self.cause, self.line, tuple(self.inputs), self.traceback)


class Caught:
    """`with Caught() as caught:` keeps what a user's code raises, `sys.exit` included."""

    error: Exception | SystemExit | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, tb: TracebackType | None) -> bool:
        if isinstance(error, Exception | SystemExit):
            self.error = error
            return True
        return False


def call(
    function: Callable[..., Any], inputs: Sequence[Any], num_outputs: int
) -> "list[Any] | Problem":
    """The function's outputs, settled; or what went wrong."""
    with Caught() as caught:
        returned = function(*inputs)
        if num_outputs == 1:
            return [storage.settle(returned)]
        if not isinstance(returned, tuple | list) or len(returned) != num_outputs:
            raise NotStorableError(
                f"{storage.describe(returned)} where {num_outputs} outputs were announced"
            )
        return [storage.settle(value) for value in returned]
    assert caught.error is not None
    return explain(caught.error, function, inputs)


def explain(error: BaseException, function: object, inputs: Sequence[Any]) -> Problem:
    text = "".join(traceback.format_exception(error))
    if len(text) > _MAX_TEXT:
        text = f"{text[: _MAX_TEXT // 2]}\n...\n{text[-_MAX_TEXT // 2 :]}"
    cause = "".join(traceback.format_exception_only(error)).strip()
    given = tuple(storage.describe(value) for value in inputs[:4])
    if len(inputs) > 4:
        given += (f"and {len(inputs) - 4} more",)
    return Problem(cause, _user_line(error, function), text, given)


def _user_line(error: BaseException, function: object) -> str:
    """The deepest line in the file of the user's function; else the deepest of all."""
    frames = traceback.extract_tb(error.__traceback__)
    code = getattr(unwrapped(function), "__code__", None)
    own = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
    if own:
        return _said(own[-1])
    if code is not None:  # it returned, but what it returned cannot be an output
        return f"{code.co_filename}:{code.co_firstlineno} in {code.co_name}"
    return _said(frames[-1])


def _said(frame: traceback.FrameSummary) -> str:
    code = f": {frame.line}" if frame.line else ""
    return f"{frame.filename}:{frame.lineno} in {frame.name}{code}"

"""Calls of user functions: the only place that catches what they raise and describes it."""

import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from talka.engine import storage
from talka.engine.shipping import unwrapped
from talka.errors import NotStorableError, TaskError
from talka.guard import Caught

_MAX_TEXT = 20_000  # characters of a traceback: those of recursion errors are long


class TaskProblem(NamedTuple):
    """Failure of a task as plain text, which can be sent between processes."""

    cause: str
    """Exception with its type, such as `ValueError: no rows`."""
    line: str
    """Place in the code of the user."""
    traceback: str
    inputs: tuple[str, ...]
    """Short descriptions of the first inputs."""

    def as_error(self, task: str) -> TaskError:
        """Return the error to raise on the driver; `task` is the label of the task."""
        return TaskError(task, self.cause, self.line, tuple(self.inputs), self.traceback)


def call(
    function: Callable[..., Any], inputs: Sequence[Any], num_outputs: int
) -> "list[Any] | TaskProblem":
    """Return the outputs of a function in storable form, or the problem if it failed."""
    with Caught() as caught:
        returned = apply(function, inputs)
        if num_outputs == 1:
            return [storage.to_storable(returned)]
        if not isinstance(returned, tuple | list) or len(returned) != num_outputs:
            raise NotStorableError(
                f"{storage.describe(returned)} instead of a tuple or list of {num_outputs} outputs"
            )
        return [storage.to_storable(value) for value in returned]
    assert caught.error is not None
    return explain(caught.error, function, inputs)


def apply(function: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """Call a user function; a process that it forked ends when the function returns.

    Otherwise two processes would continue the work of the engine, and both would send a reply.
    """
    process = os.getpid()
    try:
        return function(*inputs)
    finally:
        if os.getpid() != process:
            _end_forked()


def _end_forked() -> NoReturn:
    """End a forked process as the interpreter would: print the error, flush, set the exit code."""
    error, code = sys.exc_info()[1], 0
    if error is not None:
        code = error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 1
        with Caught():
            traceback.print_exception(error)
    for stream in (sys.stdout, sys.stderr):
        with Caught():
            stream.flush()
    os._exit(code)


def explain(error: BaseException, function: object, inputs: Sequence[Any]) -> TaskProblem:
    """Describe an exception of a task as UTF-8 text."""
    text = "".join(traceback.format_exception(error))
    if len(text) > _MAX_TEXT:
        text = f"{text[: _MAX_TEXT // 2]}\n...\n{text[-_MAX_TEXT // 2 :]}"
    cause = "".join(traceback.format_exception_only(error)).strip()
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        cause += ". Raise the limit with `ulimit -n`, or close files"
    described = tuple(storage.describe(value) for value in inputs[:4])
    if len(inputs) > 4:
        described += (f"and {len(inputs) - 4} more",)
    line = _user_line(error, function)
    return TaskProblem(_utf8(cause), _utf8(line), _utf8(text), tuple(map(_utf8, described)))


def _utf8(text: str) -> str:
    """Replace lone surrogates: messages may contain them, but UTF-8 cannot encode them."""
    return text.encode("utf-8", "replace").decode()


def _user_line(error: BaseException, function: object) -> str:
    """Return the deepest line in the file of the user function, otherwise the deepest of all."""
    frames = traceback.extract_tb(error.__traceback__)
    code = getattr(unwrapped(function), "__code__", None)
    own = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
    if own:
        return _frame_text(own[-1])
    if code is not None:  # it returned a value that cannot be an output
        return f"{code.co_filename}:{code.co_firstlineno} in {code.co_name}"
    return _frame_text(frames[-1]) if frames else "an unknown line"


def _frame_text(frame: traceback.FrameSummary) -> str:
    code = f": {frame.line}" if frame.line else ""
    return f"{frame.filename}:{frame.lineno} in {frame.name}{code}"

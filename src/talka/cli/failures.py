"""Error handling of the command line: turn any error into one message line and an exit code."""

import codecs
import io
import os
import sys

from talka.errors import TalkaError
from talka.inputs import printable

FAILED, DEFECT, INTERRUPTED = 1, 70, 130
TRACEBACK_VARIABLE = "TALKA_TRACEBACK"
_CLUSTER_PACKAGES = ("ray", "grpc")


def exit_code_of(command: str, error: BaseException) -> int:
    """Print the error to standard error and return the exit code."""
    if isinstance(error, BrokenPipeError):  # the reader closed the pipe, as `| head` does
        drop_output()
        return 0
    code, message = _code_and_message(error)
    if code == DEFECT:
        message += _save_traceback(error)
    print(f"{command}: {printable(message)}", file=sys.stderr)
    drop_output()
    return code


def _code_and_message(error: BaseException) -> tuple[int, str]:
    first_line = str(error).partition("\n")[0].rstrip(".")
    if isinstance(error, TalkaError):
        return error.exit_code, str(error)
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "interrupted"
    if isinstance(error, OSError):
        return FAILED, _system_message(error)
    if isinstance(error, MemoryError):
        return FAILED, f"not enough memory ({first_line or 'allocation failed'})."
    if type(error).__module__.partition(".")[0] in _CLUSTER_PACKAGES:
        problem = f"{type(error).__name__}: {first_line}"
        return FAILED, f"Ray failed ({problem}). Check that `ray status` works, then try again."
    return DEFECT, f"this is a defect in talka ({type(error).__name__}: {first_line})."


def _system_message(error: OSError) -> str:
    """Return the file and the reason, as far as the operating system reports them."""
    reason = error.strerror or str(error) or type(error).__name__
    names = [os.fsdecode(name) for name in (error.filename, error.filename2) if _is_path(name)]
    return f"{' and '.join(names) or 'a file or connection'}: {reason}."


def _is_path(name: object) -> bool:
    return isinstance(name, str | bytes) and bool(name)


def _save_traceback(error: BaseException) -> str:
    """Print the traceback if TALKA_TRACEBACK is set, otherwise write it to a file.

    Returns a sentence for the message that names the place.
    """
    import tempfile
    import traceback

    text = "".join(traceback.format_exception(error))
    if os.environ.get(TRACEBACK_VARIABLE):
        print(printable(text), end="", file=sys.stderr)
        return " Please report it with the traceback above."
    try:
        handle, name = tempfile.mkstemp(prefix="talka-traceback-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        return f" Please report it; {TRACEBACK_VARIABLE}=1 prints the traceback."
    return f" Please report it with its traceback in {name} ({TRACEBACK_VARIABLE}=1 prints it)."


def drop_output() -> None:
    """Discard output that cannot be written, so that Python does not report it again at exit."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_any_text() -> None:
    """Make standard output accept any text: UTF-8 instead of ASCII, escapes where needed."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        is_ascii = codecs.lookup(sys.stdout.encoding).name == "ascii"
        encoding = "utf-8" if is_ascii else sys.stdout.encoding
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")

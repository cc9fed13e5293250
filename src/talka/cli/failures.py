"""The last resort of the command line: any error becomes one clear line and an exit code."""

import codecs
import io
import os
import sys

from talka.errors import TalkaError
from talka.inputs import printable

FAILED, DEFECT, INTERRUPTED = 1, 70, 130
TRACEBACK_VARIABLE = "TALKA_TRACEBACK"
_CLUSTERS = ("ray", "grpc")


def exit_code_of(command: str, error: BaseException) -> int:
    """Print what happened to standard error, and return the exit code."""
    if isinstance(error, BrokenPipeError):  # the reader of our output left, as `| head` does
        drop_output()
        return 0
    code, message = _described(error)
    if code == DEFECT:
        message += _kept_traceback(error)
    print(f"{command}: {printable(message)}", file=sys.stderr)
    drop_output()
    return code


def _described(error: BaseException) -> tuple[int, str]:
    first_line = str(error).partition("\n")[0].rstrip(".")
    if isinstance(error, TalkaError):
        return error.exit_code, str(error)
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "interrupted"
    if isinstance(error, OSError):
        return FAILED, _of_the_system(error)
    if isinstance(error, MemoryError):
        return FAILED, f"there is not enough memory ({first_line or 'allocation failed'})."
    if type(error).__module__.partition(".")[0] in _CLUSTERS:
        problem = f"{type(error).__name__}: {first_line}"
        return FAILED, f"Ray failed ({problem}). See whether `ray status` works, then try again."
    return DEFECT, f"this is a defect in talka ({type(error).__name__}: {first_line})."


def _of_the_system(error: OSError) -> str:
    """The file and the reason, as far as the system names them."""
    reason = error.strerror or str(error) or type(error).__name__
    names = [os.fsdecode(name) for name in (error.filename, error.filename2) if _is_path(name)]
    return f"{' and '.join(names) or 'a file or connection'}: {reason}."


def _is_path(name: object) -> bool:
    return isinstance(name, str | bytes) and bool(name)


def _kept_traceback(error: BaseException) -> str:
    """Print the traceback if that is wanted, otherwise keep it in a file; say where it is."""
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
    """Forget output that cannot be written, so that the end of the process does not complain."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_any_text() -> None:
    """Let standard output take every text: escapes for what it cannot encode, and no plain ASCII."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        is_ascii = codecs.lookup(sys.stdout.encoding).name == "ascii"
        encoding = "utf-8" if is_ascii else sys.stdout.encoding
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")

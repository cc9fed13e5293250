"""Context managers that catch everything, for threads that must survive the code they run."""

import logging
import threading
from types import TracebackType
from typing import Self

logger = logging.getLogger(__name__)


class Caught:
    """Catches everything that the block raises and keeps it in `error`.

    `SystemExit` and `asyncio.CancelledError` are caught too. They are not subclasses of `Exception`,
    but a task may raise them, and they would end its thread without a message.

    >>> with Caught() as caught:
    ...     raise SystemExit(3)
    >>> caught.error
    SystemExit(3)
    """

    error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, tb: TracebackType | None) -> bool:
        self.error = error
        return error is not None


class Logged(Caught):
    """Catches and logs what the block raises: for listeners, whose errors must not stop the work.

    In the main thread `KeyboardInterrupt` and `SystemExit` are not caught, as Ctrl+C and SIGTERM
    raise them.

    Parameters
    ----------
    action
        Purpose of the block, for the log, such as "deliver an event".
    """

    def __init__(self, action: str) -> None:
        self._action = action

    def __exit__(self, kind: object, error: BaseException | None, tb: TracebackType | None) -> bool:
        if is_signal(error):
            return False
        if error is not None:
            logger.warning(
                "could not %s (%s); work continues",
                self._action,
                type(error).__name__,
                exc_info=error,
            )
        return super().__exit__(kind, error, tb)


def is_signal(error: BaseException | None) -> bool:
    """Return whether an error raised in this thread may come from Ctrl+C or SIGTERM."""
    return (
        isinstance(error, KeyboardInterrupt | SystemExit)
        and threading.current_thread() is threading.main_thread()
    )

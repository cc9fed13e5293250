"""Guards for threads that serve others: such a thread must survive whatever it is given to run."""

import logging
import threading
from types import TracebackType
from typing import Self

logger = logging.getLogger(__name__)


class Caught:
    """`with Caught() as caught:` keeps what the block raises in `caught.error`.

    Everything is caught. `SystemExit` and `asyncio.CancelledError` are no `Exception`, yet a task
    may raise them, and they would end the thread that runs it without a word.

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
    """Logs what the block raises, and continues: for listeners, whose errors concern nobody else.

    In the main thread `KeyboardInterrupt` and `SystemExit` pass: that is how Ctrl+C and SIGTERM
    arrive.

    Parameters
    ----------
    action
        What the block does, for the log: "deliver an event".
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
    """Whether an error that was raised in this thread may come from Ctrl+C or SIGTERM."""
    return (
        isinstance(error, KeyboardInterrupt | SystemExit)
        and threading.current_thread() is threading.main_thread()
    )

"""Messages in flight, whose errors name the ranks at the other end.

Errors of gloo have addresses only, of processes that may have ended.
"""

from collections.abc import Callable, Sequence

import torch.distributed as dist

from talka.errors import LostWorkerError


class Message:
    """A send, receive or collective in flight, and the ranks that it depends on."""

    def __init__(self, start: Callable[[], "dist.Work | None"], ranks: Sequence[int]) -> None:
        self._ranks = tuple(ranks)
        try:
            work = start()
        except RuntimeError as error:
            raise LostWorkerError(self._ranks, _reason(error)) from error
        assert work is not None, "every rank of the group takes part"
        self._work = work

    def wait(self) -> None:
        """Wait until it is done. Raise LostWorkerError if a rank ended or does not answer."""
        try:
            self._work.wait()
        except RuntimeError as error:
            raise LostWorkerError(self._ranks, _reason(error)) from error


def _reason(error: RuntimeError) -> str:
    """Return the error of gloo without the source line before it and the advice after it.

    >>> _reason(RuntimeError("[/gloo/pair.cc:534] Connection closed by peer [::1]:5. This is ..."))
    'Connection closed by peer [::1]:5'
    """
    line = str(error).partition("\n")[0].partition(". This is")[0]
    return line.partition("] ")[2] if line.startswith("[/") else line

"""What is under way between this worker and others; its errors name the ranks at the other end.

gloo's own errors have addresses only, and those of processes that may be gone.
"""

from collections.abc import Callable, Sequence

import torch.distributed as dist

from talka.errors import LostWorkerError


class Message:
    """A send, a receive or a collective that was started, and the ranks that it depends on."""

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
    """Return what gloo reports, without the source line before it and the advice behind it.

    >>> _reason(RuntimeError("[/gloo/pair.cc:534] Connection closed by peer [::1]:5. This is ..."))
    'Connection closed by peer [::1]:5'
    """
    line = str(error).partition("\n")[0].partition(". This is")[0]
    return line.partition("] ")[2] if line.startswith("[/") else line

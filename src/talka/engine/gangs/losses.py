"""What a rank knows about other ranks that were lost."""

import threading
from collections.abc import Callable
from typing import TypeAlias

from talka.guard import Logged

LossListener: TypeAlias = Callable[[int, str], None]


class Losses:
    """Ranks that died or raised while this one continues; thread-safe.

    It stays empty unless the gang was started with `on_failure="report"`, and under torchrun, which
    ends all ranks if one fails.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ranks: dict[int, str] = {}
        self._listeners: list[LossListener] = []

    @property
    def ranks(self) -> dict[int, str]:
        """Ranks that were lost so far, each with how it ended, such as `died (exit code 7)`."""
        with self._lock:
            return dict(self._ranks)

    def add_listener(self, listener: LossListener) -> None:
        """Call `listener(rank, how)` once for each loss.

        It is called at once for ranks that were lost before, and for later ones by the thread that
        receives messages of the driver: it must not wait for the rendezvous.
        """
        with self._lock:
            known = dict(self._ranks)
            self._listeners.append(listener)
        for rank, how in known.items():
            _call(listener, rank, how)

    def record(self, rank: int, how: str) -> None:
        """Record a loss and call all listeners; for the code that receives it."""
        with self._lock:
            if rank in self._ranks:
                return
            self._ranks[rank] = how
            listeners = tuple(self._listeners)
        for listener in listeners:
            _call(listener, rank, how)


def _call(listener: LossListener, rank: int, how: str) -> None:
    with Logged("call a listener of lost ranks"):
        listener(rank, how)

"""The resources that a hook holds open: its journal, exchanges and handles on parameters.

They are separate from the hook, so that `weakref.finalize` can close them when the hook is garbage
collected or the interpreter exits: the last steps are written even if the hook is never closed.
"""

import os

from talka.exchange import Exchange
from talka.train.journal import Journal
from talka.train.unused import UnusedParameters


class OpenParts:
    """Resources of a hook, closed in the right order. Must not hold a reference to the hook."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.exchange: Exchange | None = None
        self.dense: Exchange | None = None
        """Exchange without compression: during the warm-up of FrozenAdam, and for buffers."""
        self.unused: UnusedParameters | None = None
        self._process = os.getpid()

    def close(self) -> None:
        """Write the last comparison, and end the threads of the exchanges."""
        if os.getpid() != self._process:
            return  # in a forked process, where the journal belongs to the parent
        if self.exchange is not None:
            self.journal.close(self.exchange)
        for exchange in (self.exchange, self.dense):
            if exchange is not None:
                exchange.close()
        if self.unused is not None:
            self.unused.close()

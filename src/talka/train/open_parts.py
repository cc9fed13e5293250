"""What a hook has open: its journal, its exchanges, its handles on parameters.

These are apart from the hook itself, so that `weakref.finalize` can close them when the hook is
garbage or the interpreter exits: the last steps of a run are compared even if nothing closes it.
"""

import os

from talka.exchange import Exchange
from talka.train.journal import Journal
from talka.train.unused import UnusedParameters


class OpenParts:
    """Closes everything in the right order. Must not refer to the hook."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.exchange: Exchange | None = None
        self.warm_up: Exchange | None = None
        """Exchange of whole gradients, for as long as FrozenAdam warms up."""
        self.unused: UnusedParameters | None = None
        self._process = os.getpid()

    def close(self) -> None:
        """Write the last comparison, and end the threads of the exchanges."""
        if os.getpid() != self._process:
            return  # a forked process ends: the journal is that of its parent
        if self.exchange is not None:
            self.journal.close(self.exchange)
        for exchange in (self.exchange, self.warm_up):
            if exchange is not None:
                exchange.close()
        if self.unused is not None:
            self.unused.close()

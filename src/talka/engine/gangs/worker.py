"""The view that one rank of a gang has of itself, in every kind of gang."""

from dataclasses import dataclass, field
from pathlib import Path

from talka.channels.rendezvous import Rendezvous
from talka.engine.gangs.keys import MemoryRendezvous
from talka.engine.gangs.losses import Losses
from talka.engine.gangs.spec import WORKER
from talka.errors import UnknownNameError
from talka.events import Stream


@dataclass(frozen=True)
class GangWorker:
    """One rank of a gang. Its process group, if any, is the default one of torch.distributed."""

    rank: int
    size: int
    events: Stream = field(default_factory=Stream)
    """Stream of this rank. Its events are written to `events.rank-R.jsonl` in the run directory of the
    driver, which the machine of the rank need not have."""
    log_path: Path | None = None
    """File with the output of this rank; None without a run directory and inside torchrun."""
    roles: tuple[str, ...] = ()
    """Role of each rank; empty if all are workers."""
    rendezvous: Rendezvous = field(default_factory=MemoryRendezvous, repr=False)
    """Small values that the ranks of this gang share, such as addresses."""
    secret: bytes = field(default=b"", repr=False)
    """32 random bytes that only the ranks of this gang and its driver know."""
    losses: Losses = field(default_factory=Losses, repr=False)
    """Ranks that were lost, if the gang reports failures instead of ending."""
    address: str = "127.0.0.1"
    """IP address at which the other ranks reach this one."""

    @property
    def role(self) -> str:
        """Role of this rank: `worker`, unless the gang has roles."""
        return self._roles[self.rank]

    @property
    def index(self) -> int:
        """Position of this rank among those of its role, from 0."""
        return self.ranks_of(self.role).index(self.rank)

    def ranks_of(self, role: str) -> tuple[int, ...]:
        """Return the ranks of a role; raise UnknownNameError if the gang has no such role.

        >>> GangWorker(2, 3, roles=("server", "worker", "worker")).ranks_of("worker")
        (1, 2)
        """
        ranks = tuple(rank for rank, own in enumerate(self._roles) if own == role)
        if not ranks:
            raise UnknownNameError("role", role, tuple(dict.fromkeys(self._roles)))
        return ranks

    @property
    def _roles(self) -> tuple[str, ...]:
        return self.roles or (WORKER,) * self.size

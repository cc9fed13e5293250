"""The view that one rank of a gang has of itself, in every kind of gang."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from talka.channels.calls import CallLog
from talka.channels.mailbox import Mailbox
from talka.channels.messages import Channels
from talka.channels.options import MailboxOptions
from talka.channels.rendezvous import Rendezvous
from talka.channels.world import provide
from talka.engine.gangs.keys import MemoryRendezvous
from talka.engine.gangs.losses import Losses
from talka.engine.gangs.spec import WORKER
from talka.errors import UnknownNameError
from talka.events import Stream
from talka.events.current import providing_stream
from talka.network import Network, read_hosts

NETWORK_VARIABLE = "TALKA_NETWORK"
"""Environment variable with the hosts file of the network between the ranks."""


@dataclass(frozen=True)
class GangWorker(Channels):
    """One rank of a gang: `send`, `receive` and collectives connect it with the others.

    Its process group, if any, is the default one of torch.distributed.
    """

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
    options: MailboxOptions = field(default_factory=MailboxOptions, repr=False)
    """Limits and security of messages."""

    @cached_property
    def mailbox(self) -> Mailbox:
        """Messages of this process; opened when it is first used."""
        mailbox = Mailbox(
            self.rank,
            self.size,
            self.rendezvous,
            self.secret,
            address=self.address,
            options=self.options,
        )
        self.losses.add_listener(mailbox.lose)
        return mailbox

    @cached_property
    def global_ranks(self) -> tuple[int, ...]:
        """All ranks of the gang."""
        return tuple(range(self.size))

    @cached_property
    def given_network(self) -> Network | None:
        """Network in the hosts file that TALKA_NETWORK names."""
        path = os.environ.get(NETWORK_VARIABLE)
        network = None if not path else read_hosts(path).network
        return network if network is not None and network.num_workers == self.size else None

    @cached_property
    def call_log(self) -> CallLog:
        """Seconds of collectives, which become events."""
        return CallLog(self.events.emit)

    @contextmanager
    def taking_part(self) -> Iterator[None]:
        """Provide the messages and the stream of this rank to the code that runs in its process.

        At the end, the other ranks are notified that it has finished.
        """
        provide(lambda: self.mailbox)
        try:
            with providing_stream(self.events, self.rank):
                yield
        finally:
            provide(None)
            self.call_log.flush()
            if "mailbox" in self.__dict__:
                self.mailbox.finish()

    def leave(self) -> None:
        """Close the messages of this process, if they were used."""
        if "mailbox" in self.__dict__:
            self.mailbox.close()

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

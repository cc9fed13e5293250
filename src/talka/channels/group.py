"""Any ranks of a job as a group.

Opening one costs nothing: all groups of a process share its connections, and messages of different
groups never meet.
"""

from collections.abc import Sequence

from talka.channels.calls import CallLog
from talka.channels.mailbox import Mailbox
from talka.channels.messages import Channels
from talka.channels.wire.numbering import context_of
from talka.errors import InvalidValueError
from talka.network import Network


class Group(Channels):
    """One rank among the ranks of a group.

    All members must open their groups of the same ranks and name in the same order.

    Parameters
    ----------
    ranks
        Ranks among all of the job, in the order of the group; by default all.
    network
        Links between them, by which algorithms are chosen and seconds predicted.
    log
        Receives the seconds of collectives.
    name
        Groups of one name are independent of those of another.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        ranks: Sequence[int] | None = None,
        *,
        network: Network | None = None,
        log: CallLog | None = None,
        name: str = "",
    ) -> None:
        members = tuple(range(mailbox.size) if ranks is None else ranks)
        if mailbox.rank not in members:
            allowed = f"ranks with {mailbox.rank} among them, the rank of this process"
            raise InvalidValueError("ranks of a group", members, allowed)
        if len(set(members)) < len(members):
            raise InvalidValueError("ranks of a group", members, "each rank once")
        self.rank, self.size = members.index(mailbox.rank), len(members)
        self._mailbox, self._members = mailbox, members
        self._network, self._log = network, log
        self.context = context_of(members, mailbox.next_of(members, name), name)

    @property
    def mailbox(self) -> Mailbox:
        return self._mailbox

    @property
    def global_ranks(self) -> tuple[int, ...]:
        return self._members

    @property
    def given_network(self) -> Network | None:
        return self._network

    @property
    def call_log(self) -> CallLog | None:
        return self._log

    def close(self) -> None:
        """Drop messages of the group that nobody has received."""
        self.mailbox.forget(self.context)

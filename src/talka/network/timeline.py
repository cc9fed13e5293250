"""Timelines: when each worker computes, sends and waits, given its list of actions.

    Compute(seconds)             the worker is busy
    SendTo(receiver, num_bytes)  a transfer waits for its ports, in the background; the worker continues
    ReceiveFrom(sender)          the worker waits for the next message of that sender
    Together(seconds)            all workers wait for each other, then all are busy: a collective

A worker takes its actions in order. Messages from one worker to another arrive in the order in which
they were sent. A transfer occupies two ports at the rate of its path: that of the sender's host up,
and that of the receiver's host down (inside a host, one inner port per worker). A port sends in the
order in which messages were ready, and the message arrives one latency after it has left.

If every worker has one `Compute` and one `Together`, nothing overlaps, and a step is their sum.
"""

import heapq
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from talka.errors import InvalidValueError
from talka.network.link import Network


@dataclass(frozen=True, slots=True)
class Compute:
    """Compute for some seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class SendTo:
    """Start to send a message, and continue."""

    receiver: int
    num_bytes: float


@dataclass(frozen=True, slots=True)
class ReceiveFrom:
    """Wait for the next message of a worker."""

    sender: int


@dataclass(frozen=True, slots=True)
class Together:
    """Take part in a collective of all workers: the n-th of one is the n-th of all."""

    seconds: float


Action = Compute | SendTo | ReceiveFrom | Together


class Slot(NamedTuple):
    """Start and end of an action, in seconds since the start of the timeline.

    That of `SendTo` is the transfer until it arrives, that of `ReceiveFrom` the wait for it.
    """

    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """A slot for each action of each worker."""

    slots: tuple[tuple[Slot, ...], ...]
    total_s: float
    """Seconds until the last slot ends."""
    idle_s: tuple[float, ...]
    """Seconds in which each worker neither computes nor takes part in a collective."""


class _Transfer(NamedTuple):
    """A message that has not left yet; messages of one port are sorted by these fields."""

    ready_s: float
    sender: int
    place: int
    """Index of the action among those of the sender."""
    receiver: int
    num_bytes: float


def timeline(network: Network, actions: Sequence[Sequence[Action]]) -> Timeline:
    """Return when each action of each worker starts and ends.

    >>> from talka.network.link import Link
    >>> pair = Network.equal(Link(0.5, 8), 2)  # one byte per second
    >>> timeline(pair, [[Compute(1), SendTo(1, 3), Compute(9)], [ReceiveFrom(0), Compute(2)]]).slots
    ((Slot(start_s=0.0, end_s=1.0), Slot(start_s=1.0, end_s=4.5), Slot(start_s=1.0, end_s=10.0)), (Slot(start_s=0.0, end_s=4.5), Slot(start_s=4.5, end_s=6.5)))
    """
    _check(network, actions)
    simulation = _Simulation(network, actions)
    simulation.advance()
    while simulation.start_next_transfer():
        simulation.advance()
    for worker, stuck in simulation.waiting().items():
        allowed = "lists in which each wait ends: a send for each receive, collectives of all"
        raise InvalidValueError(f"actions of worker {worker}", stuck, allowed)
    slots = tuple(
        tuple(by_index[index] for index in range(len(by_index))) for by_index in simulation.slots
    )
    total_s = max((slot.end_s for of_worker in slots for slot in of_worker), default=0.0)
    idle_s = tuple(
        total_s - sum(action.seconds for action in todo if isinstance(action, Compute | Together))
        for todo in actions
    )
    return Timeline(slots, total_s, idle_s)


class _Simulation:
    """The state of all workers and ports.

    Workers advance as far as they can before the next transfer starts. What they send later is ready
    no earlier than that transfer arrives, so the transfer that can start first may start.
    """

    def __init__(self, network: Network, actions: Sequence[Sequence[Action]]) -> None:
        self._network, self._actions = network, actions
        self._hosts = network.host_of_worker
        self.slots: list[dict[int, Slot]] = [{} for _ in actions]
        self._clocks = [0.0] * len(actions)
        self._next = [0] * len(actions)
        self._arrivals: dict[tuple[int, int], deque[float]] = defaultdict(deque)
        self._queues: dict[int, list[_Transfer]] = defaultdict(list)
        self._out_free_s: dict[int, float] = defaultdict(float)
        self._in_free_s: dict[int, float] = defaultdict(float)

    def advance(self) -> None:
        """Let all workers take actions until each waits for a message or has none left."""
        while True:
            for worker in range(len(self._actions)):
                self._advance(worker)
            if not self._meet():
                return

    def _advance(self, worker: int) -> None:
        todo = self._actions[worker]
        while self._next[worker] < len(todo):
            index, now_s = self._next[worker], self._clocks[worker]
            end_s = now_s
            match todo[index]:
                case Compute(seconds):
                    end_s = now_s + seconds
                    self.slots[worker][index] = Slot(now_s, end_s)
                case SendTo(receiver, num_bytes):
                    port, _ = self._ports(worker, receiver)
                    transfer = _Transfer(now_s, worker, index, receiver, num_bytes)
                    heapq.heappush(self._queues[port], transfer)
                case ReceiveFrom(sender):
                    arrivals = self._arrivals[sender, worker]
                    if not arrivals:
                        return
                    end_s = max(now_s, arrivals.popleft())
                    self.slots[worker][index] = Slot(now_s, end_s)
                case Together():
                    return
            self._clocks[worker] = end_s
            self._next[worker] = index + 1

    def _meet(self) -> bool:
        """Run a collective if all workers wait for it; return whether they did."""
        waiting = self.waiting()
        meeting = waiting.get(0)
        if not isinstance(meeting, Together) or len(waiting) < len(self._actions):
            return False
        if any(action != meeting for action in waiting.values()):
            return False
        start_s = max(self._clocks)
        slot = Slot(start_s, start_s + meeting.seconds)
        for worker, index in enumerate(self._next):
            self.slots[worker][index] = slot
            self._clocks[worker] = slot.end_s
            self._next[worker] = index + 1
        return True

    def waiting(self) -> dict[int, Action]:
        """Return the action in which each worker waits that has not ended its list."""
        return {
            worker: todo[index]
            for worker, (todo, index) in enumerate(zip(self._actions, self._next, strict=True))
            if index < len(todo)
        }

    def start_next_transfer(self) -> bool:
        """Start the transfer that can start first; return False if there is none."""
        heads = [queue[0] for queue in self._queues.values() if queue]
        if not heads:
            return False
        head = min(heads, key=lambda transfer: (self._start_s(transfer), transfer))
        sender, receiver = head.sender, head.receiver
        out_port, in_port = self._ports(sender, receiver)
        heapq.heappop(self._queues[out_port])
        path, start_s = self._network.path(sender, receiver), self._start_s(head)
        left_s = start_s + 8 * head.num_bytes / path.rate_bits_per_s
        self._out_free_s[out_port] = self._in_free_s[in_port] = left_s
        self.slots[sender][head.place] = Slot(start_s, left_s + path.latency_s)
        self._arrivals[sender, receiver].append(left_s + path.latency_s)
        return True

    def _start_s(self, transfer: _Transfer) -> float:
        out_port, in_port = self._ports(transfer.sender, transfer.receiver)
        return max(transfer.ready_s, self._out_free_s[out_port], self._in_free_s[in_port])

    def _ports(self, sender: int, receiver: int) -> tuple[int, int]:
        """Return the port up of the sender and the port down of the receiver.

        Ports of hosts come first, then one inner port per worker.
        """
        hosts, num_hosts = self._hosts, len(self._network.links)
        if hosts[sender] == hosts[receiver]:
            return num_hosts + sender, num_hosts + receiver
        return hosts[sender], hosts[receiver]


def _check(network: Network, actions: Sequence[Sequence[Action]]) -> None:
    ranks = range(network.num_workers)
    if len(actions) != len(ranks):
        allowed = f"{len(ranks)}, one for each worker of the network"
        raise InvalidValueError("number of lists of actions", len(actions), allowed)
    for worker, todo in enumerate(actions):
        for action in todo:
            match action:
                case SendTo(other, amount):
                    is_valid = other in ranks and other != worker and 0 <= amount < float("inf")
                case ReceiveFrom(other):
                    is_valid = other in ranks and other != worker
                case Compute(amount) | Together(amount):
                    is_valid = 0 <= amount < float("inf")
            if not is_valid:
                allowed = f"ranks of others below {len(ranks)}, and finite numbers of at least 0"
                raise InvalidValueError(f"actions of worker {worker}", action, allowed)

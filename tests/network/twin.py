"""The slow, obvious twin of talka.network: every transfer spelled out, then counted and timed.

Each transfer also names what it carries: (chunk, worker whose share is in it). `Twin.run_round`
follows these and finds a scheme that sends what the sender does not have, or adds a share twice.
"""

from collections import defaultdict
from dataclasses import dataclass

from talka.network import Network


@dataclass(frozen=True)
class Transfer:
    round: int
    sender: int
    receiver: int
    num_bytes: float
    carries: frozenset[tuple[int, int]]


class Twin:
    """Builds the list of transfers; everyone starts with its own share of every chunk."""

    def __init__(self, network: Network, num_chunks: int, owners: set[int] | None = None):
        self.network = network
        self.ranks = range(network.num_workers)
        self.chunks = range(num_chunks)
        owners = set(self.ranks) if owners is None else owners
        self.everything = {(chunk, rank) for chunk in self.chunks for rank in owners}
        self.known = {
            rank: {(chunk, rank) for chunk in self.chunks if rank in owners} for rank in self.ranks
        }
        self.transfers: list[Transfer] = []
        self.num_rounds = 0

    def run_round(self, sends: list[tuple[int, int, set[tuple[int, int]], float]]) -> None:
        """All (sender, receiver, carries, bytes) of one round; they see only earlier rounds."""
        before = {rank: set(known) for rank, known in self.known.items()}
        for sender, receiver, carries, num_bytes in sends:
            assert carries <= before[sender], "sends what it does not have"
            for chunk in {chunk for chunk, _ in carries}:
                new = {share for share in carries if share[0] == chunk}
                old = {share for share in self.known[receiver] if share[0] == chunk}
                assert not new & old or old <= new, "adds a share twice"
            self.known[receiver] |= carries
            self.transfers.append(
                Transfer(self.num_rounds, sender, receiver, num_bytes, frozenset(carries))
            )
        self.num_rounds += bool(sends)

    def of_chunk(self, rank: int, chunk: int) -> set[tuple[int, int]]:
        return {share for share in self.known[rank] if share[0] == chunk}

    def all_know_all(self, ranks=None) -> bool:
        return all(self.known[rank] == self.everything for rank in ranks or self.ranks)

    def sent(self) -> list[float]:
        return [
            sum(move.num_bytes for move in self.transfers if move.sender == rank)
            for rank in self.ranks
        ]

    def received(self) -> list[float]:
        return [
            sum(move.num_bytes for move in self.transfers if move.receiver == rank)
            for rank in self.ranks
        ]

    def seconds(self) -> float:
        rounds = defaultdict(list)
        for move in self.transfers:
            rounds[move.round].append(move)
        return sum(round_seconds(self.network, moves) for moves in rounds.values())


def round_seconds(network: Network, moves: list[Transfer]) -> float:
    host = [h for h, count in enumerate(network.workers_per_host) for _ in range(count)]
    slowest = 0.0
    for move in moves:
        a, b = host[move.sender], host[move.receiver]
        if a == b:
            ends = network.inner, network.inner
            out = [m for m in moves if m.sender == move.sender and host[m.receiver] == a]
            into = [m for m in moves if m.receiver == move.receiver and host[m.sender] == b]
        else:
            ends = network.links[a], network.links[b]
            out = [m for m in moves if host[m.sender] == a and host[m.receiver] != a]
            into = [m for m in moves if host[m.receiver] == b and host[m.sender] != b]
        out_s = sum(m.num_bytes for m in out) * 8 / ends[0].rate_bits_per_s
        in_s = sum(m.num_bytes for m in into) * 8 / ends[1].rate_down_bits_per_s
        slowest = max(slowest, max(end.latency_s for end in ends) + max(out_s, in_s))
    return slowest

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

    def seconds(self, buckets: "Buckets | None" = None) -> float:
        """Time one round after another, with the state of each bucket."""
        rounds = defaultdict(list)
        for move in self.transfers:
            rounds[move.round].append(move)
        buckets, total_s = buckets or Buckets(self.network), 0.0
        for moves in rounds.values():
            total_s += buckets.round_seconds(moves)
        return total_s


class Buckets:
    """What each port could send, and receive, at once."""

    def __init__(self, network: Network):
        self.network = network
        self.host = [h for h, count in enumerate(network.workers_per_host) for _ in range(count)]
        self.full: dict[tuple[str, str, int], float] = {}

    def ends(self, move: Transfer):
        """Return both ports of a transfer with their links."""
        a, b = self.host[move.sender], self.host[move.receiver]
        if a == b:
            inner = self.network.inner
            return ("up", "worker", move.sender), inner, ("down", "worker", move.receiver), inner
        links = self.network.links
        return ("up", "host", a), links[a], ("down", "host", b), links[b]

    def round_seconds(self, moves: list[Transfer]) -> float:
        bits, links = defaultdict(float), {}
        for move in moves:
            up, up_link, down, down_link = self.ends(move)
            bits[up] += 8 * move.num_bytes
            bits[down] += 8 * move.num_bytes
            links |= {up: up_link, down: down_link}
        rates = {
            port: link.rate_bits_per_s if port[0] == "up" else link.rate_down_bits_per_s
            for port, link in links.items()
        }
        had = {port: 8 * self.full.get(port, link.burst_bytes) for port, link in links.items()}
        ready_s = {port: max(0.0, bits[port] - had[port]) / rates[port] for port in links}
        slowest = 0.0
        for move in moves:
            up, up_link, down, down_link = self.ends(move)
            latency_s = max(up_link.latency_s, down_link.latency_s)
            slowest = max(slowest, latency_s + max(ready_s[up], ready_s[down]))
        slowest = max(slowest, self.processor_seconds(moves))
        for port, full in self.full.items():
            if port not in links:
                link = self.network.inner if port[1] == "worker" else self.network.links[port[2]]
                rate = link.rate_bits_per_s if port[0] == "up" else link.rate_down_bits_per_s
                self.full[port] = min(link.burst_bytes, full + rate * slowest / 8)
        for port, link in links.items():
            left = (had[port] - bits[port] + rates[port] * slowest) / 8
            self.full[port] = min(link.burst_bytes, left)
        return slowest

    def processor_seconds(self, moves: list[Transfer]) -> float:
        """The latency, and what processors do for other messages than the first of each rank."""
        each, latency_s = defaultdict(list), 0.0
        for move in moves:
            _, up_link, _, down_link = self.ends(move)
            each["sends", move.sender].append(up_link.overhead_s)
            each["receives", move.receiver].append(down_link.overhead_s)
            latency_s = max(latency_s, up_link.latency_s, down_link.latency_s)
        if not any(any(costs) for costs in each.values()):
            return 0.0
        later_s = {key: sum(costs) - max(costs) for key, costs in each.items()}
        excess_s = max(
            later_s.get(("sends", rank), 0.0) + later_s.get(("receives", rank), 0.0)
            for rank in range(self.network.num_workers)
        )
        if self.network.cores is not None:
            total_s = sum(sum(costs) for costs in each.values())
            first_s = max(
                up_link.overhead_s + down_link.overhead_s
                for _, up_link, _, down_link in map(self.ends, moves)
            )
            excess_s = max(excess_s, (total_s - first_s) / self.network.cores.num_cores)
        return latency_s + excess_s

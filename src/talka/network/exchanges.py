"""Exchanges: every worker holds a payload of B bytes, at the end all know the average of P of them.

The payload is dense or compressed, as the caller says by its size. Formulas are for equal links
(latency a, B / rate = b); unequal ones follow the model in `talka.network`. The exchanges of a
ring and of all payloads are the collectives `all_reduce` and `all_gather`.
"""

from collections.abc import Sequence

from talka.errors import InvalidValueError
from talka.network.collectives import broadcast, reduce
from talka.network.cost import Cost, Pair, all_pairs_round, cost_of_rounds
from talka.network.link import Link, Network, share_of
from talka.network.patterns import backwards, ranks_by_host
from talka.units import format_bytes


def everybody(network: Network, payload_bytes: float) -> Cost:
    """Everyone's payload to everyone: a + (P-1) b seconds.

    >>> link = Link(0.0001, 1e9)
    >>> everybody(Network.equal(link, 4), 4 * 1000).total_bytes  # 4 P (P-1) W, W = 1000 float32
    48000.0
    """
    cost = all_pairs_round(network, payload_bytes)
    return cost.because(f"(P-1) B = {format_bytes(cost.max_sent_bytes)} from every worker")


def master(network: Network, payload_bytes: float) -> Cost:
    """All payloads to worker 0, the average back to all: 2 (a + (P-1) b) seconds."""
    cost = colocated_servers(network, payload_bytes, num_servers=1)
    return cost.because(
        f"(P-1) B = {format_bytes(cost.max_sent_bytes)} to the master, then from it"
    )


def tree(network: Network, payload_bytes: float) -> Cost:
    """The sum up a binomial tree, then down again: 2 ceil(log2 P) (a + b) seconds."""
    cost = reduce(network, payload_bytes) + broadcast(network, payload_bytes)
    return cost.because(
        f"2 ceil(log2 P) = {cost.num_rounds} rounds of B = {format_bytes(payload_bytes)}"
    )


def two_phase(network: Network, payload_bytes: float) -> Cost:
    """Chunks to their owners, each owner's average back to all: 2 (a + (P-1)/P b) seconds.

    Worker i owns the i-th of P equal chunks; what it sends back is encoded again.
    """
    cost = all_pairs_round(network, share_of(payload_bytes, network.num_workers)).times(2)
    return cost.because(f"2 (P-1)/P B = {format_bytes(cost.max_sent_bytes)} from every worker")


def hierarchical(
    network: Network, payload_bytes: float, *, inner_bytes: float | None = None
) -> Cost:
    """Sum inside each host at its first worker, two phases between those, then down inside.

    With H hosts of n workers: 2 (a' + (n-1) b') + 2 (a + (H-1)/H b) seconds, a' and b' being those
    of the inner link. With one worker per host it is the two-phase exchange. Inside a host a payload
    may have another size, `inner_bytes`: that of the vector itself, if only hosts compress.
    """
    hosts = ranks_by_host(network)
    leaders = [ranks[0] for ranks in hosts]
    down = [(ranks[0], rank) for ranks in hosts for rank in ranks[1:]]
    inside = cost_of_rounds(network, [down], payload_bytes if inner_bytes is None else inner_bytes)
    between = [(a, b) for a in leaders for b in leaders if a != b]
    across = cost_of_rounds(network, [between], share_of(payload_bytes, len(hosts))).times(2)
    cost = cost_of_rounds(
        network, backwards([down]), payload_bytes if inner_bytes is None else inner_bytes
    )
    sums = ", sums inside first" if down else ""
    return (cost + across + inside).because(
        f"2 (H-1)/H B = {format_bytes(across.max_sent_bytes)} between hosts{sums}"
    )


def global_top_k(network: Network, payload_bytes: float) -> Cost:
    """Up a tree, where only the K largest of each sum go on, then down: as `tree` has it.

    The result is near the K largest of the sum, not the average.
    """
    return tree(network, payload_bytes)


def low_rank(network: Network, p_bytes: float, q_bytes: float) -> Cost:
    """PowerSGD: the factor P is averaged in two phases, then Q, which depends on it.

    4 a + 2 (P-1)/P b seconds for P workers, B being the bytes of both factors. It gives the average
    of what the factors can say, not of the gradients.
    """
    cost = two_phase(network, p_bytes) + two_phase(network, q_bytes)
    return cost.because(
        f"{cost.num_rounds} rounds: two phases of {format_bytes(p_bytes)}, "
        f"then two of {format_bytes(q_bytes)}"
    )


def gossip(
    network: Network, payload_bytes: float, *, neighbours: Sequence[Sequence[int]] | None = None
) -> Cost:
    """One round of payloads to neighbours: a + degree b seconds.

    `neighbours[rank]` are the ranks that it sends to; unless given, the one before and the one after
    it. One round does not give the average; many rounds draw near it.
    """
    num_workers = network.num_workers
    if neighbours is None:
        neighbours = [
            sorted({(rank - 1) % num_workers, (rank + 1) % num_workers} - {rank})
            for rank in range(num_workers)
        ]
    _check_graph(neighbours, num_workers)
    pairs = [(sender, receiver) for sender, to in enumerate(neighbours) for receiver in to]
    cost = cost_of_rounds(network, [pairs], payload_bytes)
    most = max(len(to) for to in neighbours)
    return cost.because(f"largest degree {most}: {format_bytes(cost.max_sent_bytes)} in one round")


def _check_graph(neighbours: Sequence[Sequence[int]], num_workers: int) -> None:
    if len(neighbours) != num_workers:
        allowed = f"one list of ranks for each of {num_workers} workers"
        raise InvalidValueError("neighbours", neighbours, allowed)
    for rank, receivers in enumerate(neighbours):
        if len(set(receivers)) < len(receivers) or not set(receivers) <= (
            set(range(num_workers)) - {rank}
        ):
            allowed = f"different ranks from 0 to {num_workers - 1} without {rank} itself"
            raise InvalidValueError(f"neighbours[{rank}]", receivers, allowed)


def colocated_servers(network: Network, payload_bytes: float, *, num_servers: int) -> Cost:
    """The first N workers also serve a share of 1/N each: pushes, then pulls.

    2 (a + (P-1)/N b) seconds. N = 1 is the master, N = P the two-phase exchange.
    """
    num_workers = network.num_workers
    if not 1 <= num_servers <= num_workers:
        allowed = f"from 1 to the number of workers, {num_workers}"
        raise InvalidValueError("num_servers", num_servers, allowed)
    push = [
        (rank, server)
        for rank in range(num_workers)
        for server in range(num_servers)
        if rank != server
    ]
    return _push_and_pull(network, push, payload_bytes, num_servers)


def separate_servers(
    network: Network, payload_bytes: float, *, server_links: Sequence[Link] | None = None
) -> Cost:
    """Machines that only serve, N of them, a share of 1/N each: pushes, then pulls.

    2 (a + max(1, P/N) b) seconds, also for one worker. Unless given, the server machines are as
    many as the workers' hosts, with the same links. They come after the workers in the cost.
    """
    server_links = network.links if server_links is None else tuple(server_links)
    if not server_links:
        raise InvalidValueError("server_links", server_links, "one link for each of the servers")
    num_workers, num_servers = network.num_workers, len(server_links)
    whole = Network(
        network.links + server_links,
        workers_per_host=network.workers_per_host + (1,) * num_servers,
        inner=network.inner,
    )
    servers = range(num_workers, num_workers + num_servers)
    push = [(rank, server) for rank in range(num_workers) for server in servers]
    return _push_and_pull(whole, push, payload_bytes, num_servers)


def _push_and_pull(
    network: Network, push: list[Pair], payload_bytes: float, num_servers: int
) -> Cost:
    share = share_of(payload_bytes, num_servers)
    cost = cost_of_rounds(network, [push, *backwards([push])], share)
    return cost.because(
        f"2 rounds of B/N = {format_bytes(share)} between P workers and N = {num_servers} servers"
    )

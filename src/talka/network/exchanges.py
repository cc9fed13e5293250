"""Costs of exchanges: each worker holds a payload of B bytes, and in the end all have the average.

The payload may be dense or compressed; only its size matters. Formulas are for equal links (latency
a, B / rate = b); unequal links follow the model in `talka.network`. The costs of the ring exchange
and of sending all payloads around a ring are those of the collectives `all_reduce` and `ring_all_gather`.
"""

from collections.abc import Sequence

from talka.errors import InvalidValueError
from talka.network.cost import Cost, Pair, Rounds, all_pairs_round, cost_of_rounds
from talka.network.link import Link, Network, share_of
from talka.network.patterns import backwards, binomial_tree, ranks_by_host
from talka.units import format_bytes


def all_gather(network: Network, payload_bytes: float) -> Cost:
    """Send each worker's payload directly to all others: a + (P-1) b seconds.

    >>> link = Link(0.0001, 1e9)
    >>> all_gather(Network.equal(link, 4), 4 * 1000).total_bytes  # 4 P (P-1) W, W = 1000 float32
    48000.0
    """
    cost = all_pairs_round(network, payload_bytes)
    return cost.because(f"(P-1) B = {format_bytes(cost.max_sent_bytes)} from every worker")


def master(network: Network, payload_bytes: float) -> Cost:
    """Send all payloads to worker 0 and the average back: 2 (a + (P-1) b) seconds."""
    cost = colocated_servers(network, payload_bytes, num_servers=1)
    return cost.because(
        f"(P-1) B = {format_bytes(cost.max_sent_bytes)} to the master, then from it"
    )


def tree(network: Network, payload_bytes: float) -> Cost:
    """Sum up a binomial tree, then send the result down: 2 ceil(log2 P) (a + b) seconds."""
    down = binomial_tree(range(network.num_workers))
    cost = cost_of_rounds(network, [*backwards(down), *down], payload_bytes)
    return cost.because(
        f"2 ceil(log2 P) = {cost.num_rounds} rounds of B = {format_bytes(payload_bytes)}"
    )


def two_phase(network: Network, payload_bytes: float) -> Cost:
    """Send chunks to their owners, and each owner's average to all: 2 (a + (P-1)/P b) seconds.

    Worker i owns the i-th of P equal chunks, and encodes the average of that chunk again.
    """
    share = share_of(payload_bytes, network.num_workers)
    cost = Rounds(network).add_all_pairs(share, times=2)
    return cost.because(f"2 (P-1)/P B = {format_bytes(cost.max_sent_bytes)} from every worker")


def hierarchical(
    network: Network, payload_bytes: float, *, inner_bytes: float | None = None
) -> Cost:
    """Sum at the first worker of each host, average these in two phases, then distribute the result.

    With H hosts of n workers: 2 (a' + (n-1) b') + 2 (a + (H-1)/H b) seconds, where a' and b' are
    those of the inner link. With one worker per host it is the two-phase exchange. Inside a host a
    payload may have another size, `inner_bytes`: that of the vector, if it is compressed only
    between hosts.
    """
    hosts = ranks_by_host(network)
    leaders = [ranks[0] for ranks in hosts]
    down = [(ranks[0], rank) for ranks in hosts for rank in ranks[1:]]
    inside = cost_of_rounds(network, [down], payload_bytes if inner_bytes is None else inner_bytes)
    across = two_phase(network.among(leaders), payload_bytes).at(leaders, network.num_workers)
    cost = cost_of_rounds(
        network, backwards([down]), payload_bytes if inner_bytes is None else inner_bytes
    )
    sums = ", after sums inside each host" if down else ""
    return (cost + across + inside).because(
        f"2 (H-1)/H B = {format_bytes(across.max_sent_bytes)} between hosts{sums}"
    )


def global_top_k(network: Network, payload_bytes: float) -> Cost:
    """Sum up a tree, forwarding only the K largest of each sum, then send down: same cost as `tree`.

    The result approximates the K largest of the sum, not the average.
    """
    return tree(network, payload_bytes)


def low_rank(network: Network, p_bytes: float, q_bytes: float) -> Cost:
    """Average PowerSGD's factor P in two phases, then the factor Q, which depends on it.

    4 a + 2 (P-1)/P b seconds for P workers, where B is the bytes of both factors. The result is a
    low-rank approximation of the average gradient.
    """
    rounds = Rounds(network)
    for factor_bytes in (p_bytes, q_bytes):
        rounds.add_all_pairs(share_of(factor_bytes, network.num_workers), times=2)
    cost = rounds.cost
    return cost.because(
        f"{cost.num_rounds} rounds: two phases of {format_bytes(p_bytes)}, "
        f"then two of {format_bytes(q_bytes)}"
    )


def gossip(
    network: Network, payload_bytes: float, *, neighbours: Sequence[Sequence[int]] | None = None
) -> Cost:
    """Send payloads to neighbours in one round: a + degree b seconds.

    `neighbours[rank]` are the ranks that it sends to; by default the previous and the next rank.
    One round does not give the average; many rounds converge to it.
    """
    num_workers = network.num_workers
    if neighbours is None:
        neighbours = [
            sorted({(rank - 1) % num_workers, (rank + 1) % num_workers} - {rank})
            for rank in range(num_workers)
        ]
    _check_graph(neighbours, num_workers)
    pairs = [(sender, to) for sender, receivers in enumerate(neighbours) for to in receivers]
    cost = cost_of_rounds(network, [pairs], payload_bytes)
    most = max(len(receivers) for receivers in neighbours)
    return cost.because(f"largest degree {most}: {format_bytes(cost.max_sent_bytes)} in one round")


def _check_graph(neighbours: Sequence[Sequence[int]], num_workers: int) -> None:
    if len(neighbours) != num_workers:
        allowed = f"one list of ranks for each of {num_workers} workers"
        raise InvalidValueError("neighbours", neighbours, allowed)
    for rank, receivers in enumerate(neighbours):
        if len(set(receivers)) < len(receivers) or not set(receivers) <= (
            set(range(num_workers)) - {rank}
        ):
            allowed = f"distinct ranks from 0 to {num_workers - 1} without {rank} itself"
            raise InvalidValueError(f"neighbours[{rank}]", receivers, allowed)


def colocated_servers(network: Network, payload_bytes: float, *, num_servers: int) -> Cost:
    """Push to and pull from the first N workers, each of which also serves a share of 1/N.

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
    """Push to and pull from N machines that are only servers, each with a share of 1/N.

    2 (a + max(1, P/N) b) seconds, also for one worker. By default there are as many servers as
    worker hosts, with the same links. They follow the workers in the cost.
    """
    server_links = network.links if server_links is None else tuple(server_links)
    if not server_links:
        raise InvalidValueError("server_links", server_links, "one link for each of the servers")
    num_workers, num_servers = network.num_workers, len(server_links)
    whole = Network(
        network.links + server_links,
        workers_per_host=network.workers_per_host + (1,) * num_servers,
        inner=network.inner,
        cores=network.cores,
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

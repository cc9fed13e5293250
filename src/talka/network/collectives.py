"""Costs of collectives. The payload B is what one worker holds at the start: the root, or each of P.

Formulas are for equal links (latency a, B / rate = b); unequal links follow the model in
`talka.network`.
"""

from talka.network.cost import Cost, Rounds, all_pairs_round, cost_of_rounds, no_cost
from talka.network.link import Network, share_of
from talka.network.patterns import backwards, binomial_tree, ring
from talka.units import format_bytes


def broadcast(network: Network, payload_bytes: float) -> Cost:
    """Send the root's payload to all in a binomial tree: ceil(log2 P) (a + b) seconds."""
    rounds = binomial_tree(range(network.num_workers))
    cost = cost_of_rounds(network, rounds, payload_bytes)
    return cost.because(f"ceil(log2 P) = {len(rounds)} rounds of B = {format_bytes(payload_bytes)}")


def reduce(network: Network, payload_bytes: float) -> Cost:
    """Sum all payloads at the root in a binomial tree: ceil(log2 P) (a + b) seconds."""
    rounds = backwards(binomial_tree(range(network.num_workers)))
    cost = cost_of_rounds(network, rounds, payload_bytes)
    return cost.because(f"ceil(log2 P) = {len(rounds)} rounds of B = {format_bytes(payload_bytes)}")


def scatter(network: Network, payload_bytes: float) -> Cost:
    """Send one of P pieces of the root's payload to each: a + (P-1)/P b seconds, from one port."""
    num_workers = network.num_workers
    pairs = [(0, rank) for rank in range(1, num_workers)]
    cost = cost_of_rounds(network, [pairs], share_of(payload_bytes, num_workers))
    return cost.because(f"(P-1)/P B = {format_bytes(cost.max_sent_bytes)} from the root")


def gather(network: Network, payload_bytes: float) -> Cost:
    """Send all payloads to the root: a + (P-1) b seconds, all into one port."""
    pairs = [(rank, 0) for rank in range(1, network.num_workers)]
    cost = cost_of_rounds(network, [pairs], payload_bytes)
    return cost.because(f"(P-1) B = {format_bytes(cost.total_bytes)} to the root")


def ring_all_gather(network: Network, payload_bytes: float) -> Cost:
    """Send all payloads to all workers around a ring: (P-1) (a + b) seconds."""
    num_rounds = network.num_workers - 1
    cost = Rounds(network).add(ring(range(network.num_workers)), payload_bytes, times=num_rounds)
    return cost.because(f"P-1 = {num_rounds} rounds of B = {format_bytes(payload_bytes)}")


def reduce_scatter(network: Network, payload_bytes: float) -> Cost:
    """Give each worker the sum of one of P pieces, around a ring: (P-1) (a + b/P) seconds."""
    num_rounds, piece = network.num_workers - 1, share_of(payload_bytes, network.num_workers)
    cost = Rounds(network).add(ring(range(network.num_workers)), piece, times=num_rounds)
    return cost.because(f"P-1 = {num_rounds} rounds of B/P = {format_bytes(piece)}")


def all_reduce(network: Network, payload_bytes: float) -> Cost:
    """Give all workers the sum: reduce-scatter, then all-gather, 2 (P-1) (a + b/P) seconds."""
    num_workers = network.num_workers
    piece = share_of(payload_bytes, num_workers)
    cost = Rounds(network).add(ring(range(num_workers)), piece, times=2 * (num_workers - 1))
    return cost.because(f"2 (P-1) = {cost.num_rounds} rounds of B/P = {format_bytes(piece)}")


def all_to_all(network: Network, payload_bytes: float) -> Cost:
    """Send the i-th of P pieces of each worker's payload to worker i: a + (P-1)/P b seconds."""
    cost = all_pairs_round(network, share_of(payload_bytes, network.num_workers))
    return cost.because(f"(P-1)/P B = {format_bytes(cost.max_sent_bytes)} from every worker")


def barrier(network: Network) -> Cost:
    """Block each worker until all have arrived: ceil(log2 P) rounds of empty transfers.

    In round k each worker notifies the worker 2^k ranks further (a dissemination barrier).
    """
    num_workers = network.num_workers
    rounds = [
        [(rank, (rank + (1 << bit)) % num_workers) for rank in range(num_workers)]
        for bit in range((num_workers - 1).bit_length())
    ]
    cost = cost_of_rounds(network, rounds, 0) if rounds else no_cost(num_workers)
    return cost.because(f"ceil(log2 P) = {len(rounds)} latencies")

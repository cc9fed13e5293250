"""Every scheme of talka.network, one transfer at a time; each checks that it does what it is for."""

from talka.network import Network
from tests.network.twin import Twin


def up_the_tree(twin: Twin, members: list[list[int]], num_bytes: float) -> None:
    """In each group, the far half of those still in hands what it has to the near half."""
    far = 1
    while 2 * far < max(len(group) for group in members):
        far *= 2
    while far >= 1:
        sends = [
            (group[i], group[i - far], set(twin.known[group[i]]), num_bytes)
            for group in members
            for i in range(far, min(2 * far, len(group)))
        ]
        twin.run_round(sends)
        far //= 2


def down_the_tree(twin: Twin, members: list[list[int]], num_bytes: float) -> None:
    have = 1
    while have < max(len(group) for group in members):
        sends = [
            (group[i], group[i + have], set(twin.known[group[i]]), num_bytes)
            for group in members
            for i in range(have)
            if i + have < len(group)
        ]
        twin.run_round(sends)
        have *= 2


def ring_sum(twin: Twin, members: list[int], num_bytes: float) -> None:
    """Chunks travel and grow: step s, the i-th member passes on chunk i - s."""
    size = len(members)
    for step in range(size - 1):
        sends = []
        for i, rank in enumerate(members):
            carries = twin.of_chunk(rank, (i - step) % size)
            sends.append((rank, members[(i + 1) % size], carries, num_bytes))
        twin.run_round(sends)


def ring_spread(twin: Twin, members: list[int], num_bytes: float) -> None:
    """Finished chunks travel: step s, the i-th member passes on chunk i + 1 - s."""
    size = len(members)
    for step in range(size - 1):
        sends = []
        for i, rank in enumerate(members):
            carries = twin.of_chunk(rank, (i + 1 - step) % size)
            sends.append((rank, members[(i + 1) % size], carries, num_bytes))
        twin.run_round(sends)


def broadcast(network: Network, payload: float) -> Twin:
    twin = Twin(network, 1, owners={0})
    down_the_tree(twin, [list(twin.ranks)], payload)
    assert twin.all_know_all()
    return twin


def reduce(network: Network, payload: float) -> Twin:
    twin = Twin(network, 1)
    up_the_tree(twin, [list(twin.ranks)], payload)
    assert twin.all_know_all([0])
    return twin


def scatter(network: Network, payload: float) -> Twin:
    twin = Twin(network, network.num_workers, owners={0})
    piece = payload / network.num_workers
    twin.run_round([(0, rank, {(rank, 0)}, piece) for rank in twin.ranks if rank])
    assert all((rank, 0) in twin.known[rank] for rank in twin.ranks)
    return twin


def gather(network: Network, payload: float) -> Twin:
    twin = Twin(network, 1)
    twin.run_round([(rank, 0, {(0, rank)}, payload) for rank in twin.ranks if rank])
    assert twin.all_know_all([0])
    return twin


def ring_all_gather(network: Network, payload: float) -> Twin:
    twin, size = Twin(network, 1), network.num_workers
    for step in range(size - 1):
        twin.run_round([(r, (r + 1) % size, {(0, (r - step) % size)}, payload) for r in twin.ranks])
    assert twin.all_know_all()
    return twin


def reduce_scatter(network: Network, payload: float) -> Twin:
    twin, size = Twin(network, network.num_workers), network.num_workers
    ring_sum(twin, list(twin.ranks), payload / size)
    assert all(len(twin.of_chunk(rank, (rank + 1) % size)) == size for rank in twin.ranks)
    return twin


def all_reduce(network: Network, payload: float) -> Twin:
    twin = reduce_scatter(network, payload)
    ring_spread(twin, list(twin.ranks), payload / network.num_workers)
    assert twin.all_know_all()
    return twin


def all_to_all(network: Network, payload: float) -> Twin:
    twin = Twin(network, network.num_workers)
    piece = payload / network.num_workers
    pairs = [(a, b) for a in twin.ranks for b in twin.ranks if a != b]
    twin.run_round([(a, b, {(b, a)}, piece) for a, b in pairs])
    assert all(len(twin.of_chunk(rank, rank)) == network.num_workers for rank in twin.ranks)
    return twin


def barrier(network: Network, _payload: float) -> Twin:
    """Arrivals may be reported twice: known ranks are merged as sets, not added."""
    twin, size = Twin(network, 1), network.num_workers
    distance = 1
    while distance < size:
        heard = [set(twin.known[rank]) for rank in twin.ranks]
        receivers = [(rank + distance) % size for rank in twin.ranks]
        twin.run_round([(a, b, heard[a] - heard[b], 0.0) for a, b in enumerate(receivers)])
        distance *= 2
    assert twin.all_know_all()
    return twin


def all_gather(network: Network, payload: float) -> Twin:
    twin = Twin(network, 1)
    pairs = [(a, b) for a in twin.ranks for b in twin.ranks if a != b]
    twin.run_round([(a, b, {(0, a)}, payload) for a, b in pairs])
    assert twin.all_know_all()
    return twin


def tree(network: Network, payload: float) -> Twin:
    twin = reduce(network, payload)
    down_the_tree(twin, [list(twin.ranks)], payload)
    assert twin.all_know_all()
    return twin


def colocated_servers(network: Network, payload: float, num_servers: int) -> Twin:
    twin = Twin(network, num_servers)
    pairs = [(rank, server) for rank in twin.ranks for server in range(num_servers)]
    pairs = [(rank, server) for rank, server in pairs if rank != server]
    share = payload / num_servers
    twin.run_round([(rank, server, {(server, rank)}, share) for rank, server in pairs])
    pulls = [(server, rank, twin.of_chunk(server, server), share) for rank, server in pairs]
    twin.run_round(pulls)
    assert twin.all_know_all()
    return twin


def master(network: Network, payload: float) -> Twin:
    return colocated_servers(network, payload, 1)


def two_phase(network: Network, payload: float) -> Twin:
    return colocated_servers(network, payload, network.num_workers)


def separate_servers(network: Network, payload: float, server_links=None) -> Twin:
    servers = list(network.links if server_links is None else server_links)
    num_workers, num_servers = network.num_workers, len(servers)
    counts = [*network.workers_per_host, *[1] * num_servers]
    whole = Network((*network.links, *servers), tuple(counts), network.inner, network.cores)
    twin = Twin(whole, num_servers, owners=set(range(num_workers)))
    pairs = [(rank, chunk) for rank in range(num_workers) for chunk in range(num_servers)]
    share = payload / num_servers
    twin.run_round([(rank, num_workers + c, {(c, rank)}, share) for rank, c in pairs])
    pulls = [(num_workers + c, rank, twin.of_chunk(num_workers + c, c), share) for rank, c in pairs]
    twin.run_round(pulls)
    assert twin.all_know_all(range(num_workers))
    return twin


def hierarchical(network: Network, payload: float) -> Twin:
    num_hosts = len(network.links)
    twin = Twin(network, num_hosts)
    hosts, start = [], 0
    for count in network.workers_per_host:
        hosts.append(list(range(start, start + count)))
        start += count
    inside = [(rank, members[0]) for members in hosts for rank in members[1:]]
    twin.run_round([(rank, leader, set(twin.known[rank]), payload) for rank, leader in inside])
    leaders = [members[0] for members in hosts]
    pairs = [(a, b) for a in leaders for b in leaders if a != b]
    piece = payload / num_hosts
    twin.run_round([(a, b, twin.of_chunk(a, leaders.index(b)), piece) for a, b in pairs])
    twin.run_round([(a, b, twin.of_chunk(a, leaders.index(a)), piece) for a, b in pairs])
    twin.run_round([(leader, rank, set(twin.known[leader]), payload) for rank, leader in inside])
    assert twin.all_know_all()
    return twin


def global_top_k(network: Network, payload: float) -> Twin:
    return tree(network, payload)


def low_rank(network: Network, p_bytes: float, q_bytes: float) -> tuple[Twin, Twin]:
    return two_phase(network, p_bytes), two_phase(network, q_bytes)


def gossip(network: Network, payload: float, neighbours=None) -> Twin:
    twin, size = Twin(network, 1), network.num_workers
    if neighbours is None:
        neighbours = [{(rank + 1) % size, (rank - 1) % size} - {rank} for rank in range(size)]
    twin.run_round([(a, b, {(0, a)}, payload) for a in twin.ranks for b in neighbours[a]])
    return twin

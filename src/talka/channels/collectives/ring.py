"""Patterns around a ring or along a chain: every link carries the same load."""

from talka.channels.collectives.port import (
    Ahead,
    Array,
    Awaited,
    Port,
    Steps,
    chunks,
    num_bytes,
    slices,
)
from talka.network.algorithms import chain_part_bytes


def ring_all_reduce(port: Port, array: Array) -> Steps:
    """Combine the arrays of all workers in place, around a ring, in 2 (P-1) rounds.

    In the first P-1 rounds each worker receives a slice from the previous one, combines it with its
    own and passes it on; then finished slices go round once more. The order of additions depends on
    the slice, and is the same for all workers.
    """
    count, rank = port.num_workers, port.rank
    following, previous = (rank + 1) % count, (rank - 1) % count
    shares = slices(array, count)
    sends: list[Awaited] = [port.send(part, following) for part in chunks(shares[rank])]
    own = chunks(shares[(rank + 1) % count])
    passed_on = [
        part for step in range(1, count - 1) for part in chunks(shares[(rank - step) % count])
    ]
    arriving = Ahead(port, [*passed_on, *own], [previous])
    for index, part in enumerate((*passed_on, *own)):
        parts, operations = arriving.next()
        yield operations
        port.combine(part, parts[previous])
        arriving.used(parts)
        sends.append(port.send(part, following, phase=int(index >= len(passed_on))))
    for step in range(count - 1):
        is_last = step == count - 2
        for part in chunks(shares[(rank - step) % count]):
            yield [port.receive(part, previous, phase=1)]
            if not is_last:
                sends.append(port.send(part, following, phase=1))
    yield sends


def chain_broadcast(port: Port, array: Array, root: int) -> Steps:
    """Send the root's array along a chain in chunks, which each worker passes on as they arrive."""
    count = port.num_workers
    place = (port.rank - root) % count
    following, previous = (port.rank + 1) % count, (port.rank - 1) % count
    pieces = chunks(array, chain_part_bytes(num_bytes(array)))
    sends = list[Awaited]()
    arriving = [port.receive(part, previous) for part in pieces] if place else []
    for index, part in enumerate(pieces):
        if place:
            yield [arriving[index]]
        if place < count - 1:
            sends.append(port.send(part, following))
    yield sends

"""Direct patterns: one hop, or two with an owner of each slice in between."""

from talka.channels.collectives.port import (
    Ahead,
    Array,
    Awaited,
    Port,
    Steps,
    chunks,
    others,
    slices,
)


def direct_all_reduce(port: Port, array: Array) -> Steps:
    """Combine the arrays of all workers in place, in two hops: each worker owns a slice.

    1. send every slice to its owner, who combines it in the order of ranks
    2. send the result from its owner to all

    The result of a chunk is received into the chunk that was sent: it arrives only after its owner
    has received that chunk.
    """
    shares = slices(array, port.num_workers)
    peers = others(port)
    sends: list[Awaited] = []
    results: list[Awaited] = []
    for peer in peers:
        for part in chunks(shares[peer]):
            sends.append(port.send(part, peer))
            results.append(port.receive(part, peer, phase=1))
    own = chunks(shares[port.rank])
    arriving = Ahead(port, own, peers)
    for part in own:
        parts, operations = arriving.next()
        yield operations
        _combine_by_rank(port, part, parts)
        arriving.used(parts)
        sends += [port.send(part, peer, phase=1) for peer in peers]
    yield results
    yield sends


def _combine_by_rank(port: Port, own: Array, parts: dict[int, Array]) -> None:
    """Combine in the order of ranks, so that a result does not depend on its owner."""
    total = own if port.rank == 0 else parts[0]
    for rank in range(1, port.num_workers):
        port.combine(total, own if rank == port.rank else parts[rank])
    if port.rank:
        own[:] = total


def gathered_all_reduce(port: Port, array: Array) -> Steps:
    """Combine short arrays in one hop: each worker sends its own to all, and all combine them."""
    peers = others(port)
    parts = {peer: port.scratch(array) for peer in peers}
    operations = [port.receive(part, peer) for peer, part in parts.items()]
    own = port.scratch(array)
    own[:] = array
    sends = [port.send(own, peer) for peer in peers]
    yield operations
    _combine_by_rank(port, array, parts)
    yield sends


def direct_reduce(port: Port, array: Array, root: int) -> Steps:
    """Combine all arrays at the root, which receives all of them; others keep theirs."""
    if port.rank != root:
        yield [port.send(part, root) for part in chunks(array)]
        return
    pieces = chunks(array)
    arriving = Ahead(port, pieces, others(port))
    for part in pieces:
        parts, operations = arriving.next()
        yield operations
        _combine_by_rank(port, part, parts)
        arriving.used(parts)


def scattered_reduce(port: Port, array: Array, root: int) -> Steps:
    """Combine a slice at each worker, then gather the slices at the root. Changes the array."""
    shares = slices(array, port.num_workers)
    peers = others(port)
    sends = [port.send(part, peer) for peer in peers for part in chunks(shares[peer])]
    results: list[Awaited] = []
    if port.rank == root:
        results = [
            port.receive(part, peer, phase=1) for peer in peers for part in chunks(shares[peer])
        ]
    own = chunks(shares[port.rank])
    arriving = Ahead(port, own, peers)
    for part in own:
        parts, operations = arriving.next()
        yield operations
        _combine_by_rank(port, part, parts)
        arriving.used(parts)
        if port.rank != root:
            sends.append(port.send(part, root, phase=1))
    yield results
    yield sends


def direct_broadcast(port: Port, array: Array, root: int) -> Steps:
    """Send the root's array to each worker."""
    if port.rank == root:
        yield [port.send(array, peer) for peer in others(port)]
    else:
        yield [port.receive(array, root)]


def scattered_broadcast(port: Port, array: Array, root: int) -> Steps:
    """Send a piece of the root's array to each worker, which sends it to the others.

    So the root sends every byte once, and all workers share the rest.
    """
    members = [(root + step) % port.num_workers for step in range(1, port.num_workers)]
    pieces = dict(zip(members, slices(array, len(members)), strict=True))
    if port.rank == root:
        yield [port.send(piece, rank) for rank, piece in pieces.items()]
        return
    own = port.receive(pieces[port.rank], root)
    following = [rank for rank in others(port) if rank != root]
    passed_on = [port.receive(pieces[rank], rank, phase=1) for rank in following]
    yield [own]
    sends = [port.send(pieces[port.rank], rank, phase=1) for rank in following]
    yield passed_on
    yield sends

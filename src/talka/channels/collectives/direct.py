"""Direct patterns: one hop, or two with an owner of each slice in between."""

from talka.channels.collectives.port import Array, Awaited, Port, Steps, chunks, others, slices

_AHEAD = 2
"""Chunks that are received while one is combined."""


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
    arriving = [_post(port, part, peers) for part in own[:_AHEAD]]
    for index, part in enumerate(own):
        parts, operations = arriving[index]
        yield operations
        _combine_by_rank(port, part, parts)
        sends += [port.send(part, peer, phase=1) for peer in peers]
        if index + _AHEAD < len(own):
            arriving.append(_post(port, own[index + _AHEAD], peers))
    yield results
    yield sends


def _post(port: Port, part: Array, peers: list[int]) -> tuple[dict[int, Array], list[Awaited]]:
    parts = {peer: port.scratch(part) for peer in peers}
    return parts, [port.receive(scratch, peer) for peer, scratch in parts.items()]


def _combine_by_rank(port: Port, own: Array, parts: dict[int, Array]) -> None:
    """Combine in the order of ranks, so that a result does not depend on its owner."""
    if port.rank == 0:
        total = own
    else:
        total = parts[0]
        parts[port.rank] = own
    for rank in range(1, port.num_workers):
        port.combine(total, parts[rank])
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
    peers = sorted(others(port))
    pieces = chunks(array)
    arriving = [_post(port, part, peers) for part in pieces[:_AHEAD]]
    for index, part in enumerate(pieces):
        parts, operations = arriving[index]
        yield operations
        _combine_by_rank(port, part, parts)
        if index + _AHEAD < len(pieces):
            arriving.append(_post(port, pieces[index + _AHEAD], peers))


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
    arriving = [_post(port, part, peers) for part in own[:_AHEAD]]
    for index, part in enumerate(own):
        parts, operations = arriving[index]
        yield operations
        _combine_by_rank(port, part, parts)
        if port.rank != root:
            sends.append(port.send(part, root, phase=1))
        if index + _AHEAD < len(own):
            arriving.append(_post(port, own[index + _AHEAD], peers))
    yield results
    yield sends


def direct_broadcast(port: Port, array: Array, root: int) -> Steps:
    """Send the root's array to each worker."""
    if port.rank == root:
        yield [port.send(array, peer) for peer in others(port)]
    else:
        yield [port.receive(array, root)]

"""Patterns up and down a binomial tree: O(log P) hops."""

from talka.channels.collectives.port import Ahead, Array, Awaited, Port, Steps, chunks
from talka.network.patterns import binomial_tree


class Family:
    """Neighbours in a binomial tree: children are in the order in which their sums are added.

    >>> [(Family(rank, 4).parent, Family(rank, 4).children) for rank in range(4)]
    [(None, [1, 2]), (0, [3]), (0, []), (1, [])]
    >>> Family(1, 4, root=1)
    Family(parent=None, children=[2, 3])
    """

    def __init__(self, rank: int, num_workers: int, root: int = 0) -> None:
        place = (rank - root) % num_workers
        pairs = [pair for pairs in binomial_tree(range(num_workers)) for pair in pairs]
        parent = next((above for above, below in pairs if below == place), None)
        self.parent = None if parent is None else (parent + root) % num_workers
        self.children = [(below + root) % num_workers for above, below in pairs if above == place]

    def __repr__(self) -> str:
        return f"Family(parent={self.parent}, children={self.children})"


def tree_reduce(port: Port, array: Array, root: int = 0) -> Steps:
    """Combine all arrays at the root, up a tree. Changes the array of every worker above a leaf."""
    family = Family(port.rank, port.num_workers, root)
    sends: list[Awaited] = []
    pieces = chunks(array)
    arriving = Ahead(port, pieces, family.children) if family.children else None
    for part in pieces:
        if arriving is not None:
            parts, operations = arriving.next()
            yield operations
            for child in family.children:
                port.combine(part, parts[child])
            arriving.used(parts)
        if family.parent is not None:
            sends.append(port.send(part, family.parent))
    yield sends


def tree_broadcast(port: Port, array: Array, root: int = 0, *, phase: int = 0) -> Steps:
    """Send the root's array down a tree; the child with the largest subtree comes first."""
    family = Family(port.rank, port.num_workers, root)
    sends: list[Awaited] = []
    for part in chunks(array):
        if family.parent is not None:
            yield [port.receive(part, family.parent, phase=phase)]
        sends += [port.send(part, child, phase=phase) for child in reversed(family.children)]
    yield sends


def tree_all_reduce(port: Port, array: Array) -> Steps:
    """Combine the arrays of all workers in place: up a tree, and the result down.

    The result is received into the array that was sent up: it arrives only after the parent has
    received that array.
    """
    yield from tree_reduce(port, array)
    yield from tree_broadcast(port, array, phase=1)

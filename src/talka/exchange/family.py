"""A worker's place in the binomial tree whose root is worker 0."""

from talka.network.patterns import binomial_tree


class Family:
    """The parent, and the children in the order in which their sums are added.

    >>> [(Family(rank, 4).parent, Family(rank, 4).children) for rank in range(4)]
    [(None, [1, 2]), (0, [3]), (0, []), (1, [])]
    """

    def __init__(self, rank: int, num_workers: int) -> None:
        pairs = [pair for pairs in binomial_tree(range(num_workers)) for pair in pairs]
        self.parent = next((above for above, below in pairs if below == rank), None)
        self.children = [below for above, below in pairs if above == rank]

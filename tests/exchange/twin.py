"""Slow and obvious twins of all exchanges: one process, one worker after another.

A twin has one compressor per side of each worker, made as the real exchange makes them, and takes the
vectors of all workers at once. Results have to agree bit for bit, except for the ring, where gloo
chooses the order of additions.
"""

import torch

from talka.compress import Payload, compressor
from talka.exchange.topologies.owners import even_shares


class Twin:
    def __init__(self, spec, size, hosts=None):
        made = compressor(spec)
        self.size = size
        self.workers = [made.for_worker(rank) for rank in range(size)]
        self.owners = [made.for_worker(size + rank) for rank in range(size)]
        self.hosts = hosts or [[rank] for rank in range(size)]

    def decoded(self, compressor, values, layout, out, **how):
        """Encode pieces of a vector, send them as bytes, and decode them into `out`."""
        data = compressor.encode(values.clone(), layout).data
        compressor.decode(Payload.from_bytes(data.numpy().tobytes()), out, layout, **how)
        return out

    def by_owners(self, vectors, shares, members, divisor):
        result = torch.empty_like(vectors[members[0]])
        for owner, share in zip(members, shares, strict=True):
            total = torch.zeros_like(result)
            for place, rank in enumerate(members):
                self.decoded(self.workers[rank], vectors[rank], share, total, add=place > 0)
            self.decoded(self.owners[owner], total.div_(divisor), share, result)
        return result

    def two_phase(self, vectors, layout):
        # A worker encodes shares in another order than this: the same, since every slice has its own
        # residuals and its own draws.
        return self.by_owners(vectors, even_shares(layout, self.size), range(self.size), self.size)

    def master(self, vectors, layout):
        return self.by_owners(
            vectors, [layout, *[()] * (self.size - 1)], range(self.size), self.size
        )

    def all_gather(self, vectors, layout):
        total = torch.zeros_like(vectors[0])
        for rank, values in enumerate(vectors):
            self.decoded(self.workers[rank], values, layout, total, add=rank > 0)
        return total.div_(self.size)

    def hierarchical(self, vectors, layout):
        sums = {}
        for ranks in self.hosts:
            sums[ranks[0]] = vectors[ranks[0]].clone()
            for rank in ranks[1:]:
                sums[ranks[0]] += vectors[rank]
        leaders = [ranks[0] for ranks in self.hosts]
        return self.by_owners(sums, even_shares(layout, len(leaders)), leaders, self.size)

    def global_topk(self, vectors, layout):
        def sent_up(rank):
            """Return what a worker sends to its parent; its children are rank + 2^k for all 2^k > rank."""
            mine = self.decoded(self.workers[rank], vectors[rank], layout, vectors[rank].clone())
            step, children = 1, []
            while rank + step < self.size:
                if step > rank:
                    children.append(rank + step)
                step *= 2
            for child in children:
                mine = mine + sent_up(child)
            return self.decoded(self.owners[rank], mine, layout, mine.clone()) if children else mine

        return sent_up(0) * (1 / self.size)

    def tree(self, vectors, layout):
        wires = [
            worker.to_wire(values.clone(), layout).mul_(1 / self.size)
            for worker, values in zip(self.workers, vectors, strict=True)
        ]

        def sent_up(rank):
            step, mine = 1, wires[rank]
            while rank + step < self.size:
                if step > rank:
                    mine = mine + sent_up(rank + step)
                step *= 2
            return mine

        out = torch.empty_like(vectors[0])
        self.workers[0].from_wire(sent_up(0), out, layout)
        return out

    def direct(self, vectors, layout):
        wires = [
            worker.to_wire(values.clone(), layout).mul_(1 / self.size)
            for worker, values in zip(self.workers, vectors, strict=True)
        ]
        out = torch.empty_like(vectors[0])
        self.workers[0].from_wire(sum(wires[1:], start=wires[0]), out, layout)
        return out

    def ring(self, vectors, layout):
        """Sum in float64 what all workers encode; equal to the real ring only up to rounding."""
        total = torch.zeros(len(vectors[0]), dtype=torch.float64)
        for worker, values in zip(self.workers, vectors, strict=True):
            out = torch.empty_like(values)
            worker.from_wire(worker.to_wire(values.clone(), layout), out, layout)
            total += out
        return (total / self.size).float()

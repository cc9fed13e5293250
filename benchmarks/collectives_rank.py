"""One rank of `benchmarks.collectives`: talka, gloo and MPI in turns, in the same processes."""

import argparse
import json
import os
import statistics
import time

import numpy as np
import torch
import torch.distributed as dist

from talka.channels import Group
from talka.exchange.links.probe import probe
from talka.exchange.transport import group_of


def num_values(num_bytes, size):
    """Return about this many bytes in float32: equal pieces for all ranks, as gloo and MPI need."""
    return size * -(-num_bytes // (4 * size))


class Talka:
    """The calls of one library; arrays are float32, made before the clock starts."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size
        self.group: Group = group_of(None, "benchmark")

    def prepare(self, num_bytes):
        count = num_values(num_bytes, self.size)
        self.value = np.full(count, self.rank + 1, np.float32)
        self.result = np.zeros(count, np.float32)
        self.results = [np.zeros(count, np.float32) for _ in range(self.size)]
        self.pieces = np.array_split(self.value, self.size)
        self.parts = [np.zeros_like(self.pieces[self.rank]) for _ in range(self.size)]

    def barrier(self):
        self.group.barrier()

    def point_to_point(self):
        if self.rank == 0:
            self.group.send(self.value, to=1)
            self.group.receive(source=1, out=self.result)
        elif self.rank == 1:
            self.group.receive(source=0, out=self.result)
            self.group.send(self.value, to=0)

    def broadcast(self):
        self.group.broadcast(self.value if self.rank == 0 else None, out=self.result)

    def scatter(self):
        self.group.scatter(self.pieces if self.rank == 0 else None, out=self.parts[0])

    def gather(self):
        self.group.gather(self.value, out=self.results)

    def reduce(self):
        self.group.reduce(self.value, out=self.result)

    def all_reduce(self):
        self.group.all_reduce(self.value, out=self.result)

    def all_gather(self):
        self.group.all_gather(self.value, out=self.results)

    def all_to_all(self):
        self.group.all_to_all(self.pieces, out=self.parts)


class Gloo:
    def __init__(self, rank, size):
        self.rank, self.size = rank, size

    def prepare(self, num_bytes):
        count = num_values(num_bytes, self.size)
        self.value = torch.full((count,), self.rank + 1.0)
        self.result = torch.zeros(count)
        self.results = [torch.zeros(count) for _ in range(self.size)]
        self.pieces = list(torch.tensor_split(self.value, self.size))
        self.parts = [torch.zeros_like(self.pieces[self.rank]) for _ in range(self.size)]

    def barrier(self):
        dist.barrier()

    def point_to_point(self):
        if self.rank == 0:
            dist.send(self.value, 1)
            dist.recv(self.result, 1)
        elif self.rank == 1:
            dist.recv(self.result, 0)
            dist.send(self.value, 0)

    def broadcast(self):
        dist.broadcast(self.value, 0)

    def scatter(self):
        dist.scatter(self.parts[0], self.pieces if self.rank == 0 else None, 0)

    def gather(self):
        dist.gather(self.value, self.results if self.rank == 0 else None, 0)

    def reduce(self):
        self.result.copy_(self.value)  # gloo reduces in place
        dist.reduce(self.result, 0)

    def all_reduce(self):
        self.result.copy_(self.value)
        dist.all_reduce(self.result)

    def all_gather(self):
        dist.all_gather(self.results, self.value)

    def all_to_all(self):
        dist.all_to_all(self.parts, self.pieces)


class Mpi(Talka):
    def __init__(self, rank, size):
        from mpi4py import MPI

        self.rank, self.size = rank, size
        self.world = MPI.COMM_WORLD

    def prepare(self, num_bytes):
        super().prepare(num_bytes)
        self.gathered = np.zeros(self.size * len(self.value), np.float32)
        self.own = np.zeros(len(self.pieces[self.rank]), np.float32)
        self.exchanged = np.zeros(len(self.own) * self.size, np.float32)

    def barrier(self):
        self.world.Barrier()

    def point_to_point(self):
        if self.rank == 0:
            self.world.Send(self.value, 1)
            self.world.Recv(self.result, 1)
        elif self.rank == 1:
            self.world.Recv(self.result, 0)
            self.world.Send(self.value, 0)

    def broadcast(self):
        self.world.Bcast(self.value, 0)

    def scatter(self):
        self.world.Scatter(self.value, self.own, 0)

    def gather(self):
        self.world.Gather(self.value, self.gathered if self.rank == 0 else None, 0)

    def reduce(self):
        self.world.Reduce(self.value, self.result, root=0)

    def all_reduce(self):
        self.world.Allreduce(self.value, self.result)

    def all_gather(self):
        self.world.Allgather(self.value, self.gathered)

    def all_to_all(self):
        self.world.Alltoall(self.value, self.exchanged)


LIBRARIES = {"talka": Talka, "gloo": Gloo, "mpi": Mpi}
OPERATIONS = (
    *("point_to_point", "broadcast", "scatter", "gather", "reduce"),
    *("all_reduce", "all_gather", "all_to_all", "barrier"),
)


def measure(libraries, operation, num_bytes, seconds, group):
    """Return the median seconds of each library: from the last start to the last end of all ranks."""
    for library in libraries.values():
        library.prepare(num_bytes)
    spans = {name: [] for name in libraries}
    spent_s, num_repeats, is_done = 0.0, 0, False
    while not is_done:
        for name, library in libraries.items():
            group.barrier()
            start = time.clock_gettime(time.CLOCK_MONOTONIC)
            getattr(library, operation)()
            end = time.clock_gettime(time.CLOCK_MONOTONIC)
            spans[name].append((start, end))
            spent_s += end - start
        num_repeats += 1
        is_done = num_repeats >= 4 and (spent_s > seconds or num_repeats >= 60)
        is_done = group.broadcast(is_done)
    medians = {}
    for name, own in spans.items():
        by_rank = group.gather(np.array(own))
        if by_rank is not None:
            times = [
                max(rank[index][1] for rank in by_rank) - max(rank[index][0] for rank in by_rank)
                for index in range(1, num_repeats)  # the first call opens connections
            ]
            factor = 2 if operation == "point_to_point" else 1
            medians[name] = statistics.median(times) / factor
    return medians


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cells", required=True, help="JSON: pairs of operation and bytes")
    parser.add_argument("--libraries", nargs="+", required=True)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--out", required=True)
    parser.add_argument("--probe", action="store_true", help="measure the links first")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        os.environ["RANK"] = os.environ["OMPI_COMM_WORLD_RANK"]
        os.environ["WORLD_SIZE"] = os.environ["OMPI_COMM_WORLD_SIZE"]
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    libraries = {name: LIBRARIES[name](rank, size) for name in args.libraries}
    group = libraries["talka"].group
    links = []
    if args.probe:
        network = probe(seconds=3.0).network()
        links = [
            (link.latency_s, link.rate_bits_per_s, link.rate_down_bits_per_s)
            for link in network.links
        ]
    rows = []
    for operation, num_bytes in json.loads(args.cells):
        medians = measure(libraries, operation, num_bytes, args.seconds, group)
        rows.append({"operation": operation, "num_bytes": num_bytes, "seconds": medians})
    if rank == 0:
        with open(args.out, "w") as file:
            json.dump({"rows": rows, "links": links}, file)
    group.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

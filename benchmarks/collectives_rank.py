"""One rank of `benchmarks.collectives`: talka, gloo and MPI in turns, in the same processes."""

import argparse
import json
import os
import time
from dataclasses import asdict

import numpy as np
import torch
import torch.distributed as dist

from talka.channels import Group
from talka.exchange.links.calls import timed
from talka.exchange.links.probe import probe
from talka.exchange.transport import group_of

TURN, SHORT_S = 9, 0.3  # calls in a row, if the calls before took less in all
LONG_S = 2.0  # after this time, two calls of each library are enough


def num_values(num_bytes, size):
    """Return about this many bytes in float32: equal pieces for all ranks, as gloo and MPI need."""
    return size * -(-num_bytes // (4 * size))


class Talka:
    """The calls of one library; arrays are float32, made before the clock starts."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size
        self.group: Group = group_of(None, "benchmark")

    def prepare(self, operation, num_bytes):
        count = num_values(num_bytes, self.size)
        self.value = np.full(count, self.rank + 1, np.float32)
        self.result = np.zeros(count, np.float32)
        is_root = operation == "gather" and self.rank == 0
        collects = is_root or operation == "all_gather"
        self.results = [np.zeros(count, np.float32) for _ in range(self.size * collects)]
        self.pieces = np.array_split(self.value, self.size)
        self.parts = [np.zeros_like(self.pieces[self.rank]) for _ in range(self.size)]

    def barrier(self):
        self.group.barrier()

    def point_to_point(self):
        if self.rank == 0:
            self.group.send(self.value, to=1, copy=False)
            self.group.receive(source=1, out=self.result)
        elif self.rank == 1:
            self.group.receive(source=0, out=self.result)
            self.group.send(self.value, to=0, copy=False)

    def broadcast(self):
        self.group.broadcast(self.value if self.rank == 0 else None, out=self.result)

    def scatter(self):
        self.group.scatter(self.pieces if self.rank == 0 else None, out=self.parts[0])

    def gather(self):
        self.group.gather(self.value, out=self.results or None)

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

    def prepare(self, operation, num_bytes):
        count = num_values(num_bytes, self.size)
        self.value = torch.full((count,), self.rank + 1.0)
        self.result = torch.zeros(count)
        is_root = operation == "gather" and self.rank == 0
        collects = is_root or operation == "all_gather"
        self.results = [torch.zeros(count) for _ in range(self.size * collects)]
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

    def prepare(self, operation, num_bytes):
        super().prepare(operation, num_bytes)
        self.gathered = np.zeros(len(self.results) * len(self.value), np.float32)
        self.results = []
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


def measured(group, call, settings):
    """Make a call as described in `measure`; return its start and end."""
    if settings.links:
        latency_s = max(link.latency_s for link in group.network.links)
        return timed(group, call, is_one_clock=True, latency_s=latency_s)
    group.barrier()
    start = time.monotonic()
    if call is not None:
        call()
    return start, time.monotonic()


def measure(libraries, operation, num_bytes, settings, group):
    """Return the seconds of each library: from the first start to the last end of all ranks.

    On links each call follows a pause and starts on all ranks at the same time, which is what the
    link model predicts: token buckets are full, and the last call is over. On loopback calls follow
    a barrier, and count from the last start. Libraries take turns of several calls, of which the
    first does not count: it finds the other library's code and data in the caches.
    """
    for library in libraries.values():
        library.prepare(operation, num_bytes)
    spans = {name: [] for name in libraries}
    spent_s, num_calls, is_done = 0.0, 1, False
    while not is_done:
        for name, library in libraries.items():
            is_idle = operation == "point_to_point" and library.rank > 1
            call = None if is_idle else getattr(library, operation)
            turn = [measured(group, call, settings) for _ in range(num_calls)]
            spans[name] += turn[num_calls > 1 :]
            spent_s += sum(end - start for start, end in turn)
        num_repeats = len(spans[name])
        is_slow = spent_s > LONG_S and num_repeats >= 2
        is_done = num_repeats >= 5 and (spent_s > settings.seconds or num_repeats >= 60)
        num_calls = TURN if spent_s < SHORT_S else 1
        is_done, num_calls = group.broadcast((is_done or is_slow, num_calls))
    taking_part = 2 if operation == "point_to_point" else None
    seconds = {}
    for name, own in spans.items():
        by_rank = group.gather(np.array(own[1:]))  # the first call opens connections
        if by_rank is not None:
            starts, ends = np.moveaxis(np.array(by_rank[:taking_part]), 2, 0)
            first = starts.min(axis=0) if settings.links else starts.max(axis=0)
            times = (ends.max(axis=0) - first) / (2 if operation == "point_to_point" else 1)
            quantile = 0.25 if settings.links else 0.5
            seconds[name] = float(np.quantile(times, quantile))
    return seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cells", required=True, help="JSON: pairs of operation and bytes")
    parser.add_argument("--libraries", nargs="+", required=True)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--out", required=True)
    parser.add_argument("--links", action="store_true", help="hosts of a lab: probe links first")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        os.environ["RANK"] = os.environ["OMPI_COMM_WORLD_RANK"]
        os.environ["WORLD_SIZE"] = os.environ["OMPI_COMM_WORLD_SIZE"]
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    libraries = {name: LIBRARIES[name](rank, size) for name in args.libraries}
    group = libraries["talka"].group
    network = None
    if args.links:
        network = probe(seconds=3.0).network()
        known = Group(group.mailbox, network=network, name="with a known network")
        libraries["talka"].group = group = known
    rows = []
    for operation, num_bytes in json.loads(args.cells):
        seconds = measure(libraries, operation, num_bytes, args, group)
        rows.append({"operation": operation, "num_bytes": num_bytes, "seconds": seconds})
    if rank == 0:
        with open(args.out, "w") as file:
            json.dump({"rows": rows, "network": network and asdict(network)}, file)
    group.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

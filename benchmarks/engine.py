"""What does a task cost, and a table on its way to a worker process, beside Ray, Dask and futures?

    python -m benchmarks.engine --preset smoke          # some seconds
    python -m benchmarks.engine --preset full --json FILE --markdown FILE

All systems run in turns, with two workers each. Ratios come first: how many times faster talka is
than the system of that row.
"""

import concurrent.futures
import contextlib
import functools
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.harness import (
    arguments,
    interleaved,
    measurable,
    peer,
    publish,
    spread,
    with_missing,
)
from talka.engine import Embedded
from talka.events import Stream

PRESETS = {
    "smoke": {
        "systems": ["talka native", "talka python", "Dask", "ThreadPoolExecutor"],
        "tasks": 500,
        "rounds": 1,
        "repeats": 1,
        "sizes": [10**6],
        "gangs": [2],
    },
    "full": {
        "systems": [
            *("talka native", "talka python", "Ray", "Dask"),
            *("ThreadPoolExecutor", "ProcessPoolExecutor"),
        ],
        "tasks": 10_000,
        "rounds": 2,
        "repeats": 5,
        "sizes": [10**6, 10**7, 10**8, 10**9],
        "gangs": [2, 4, 8],
    },
}
WORKERS = 2
ALONE = "--alone"  # how this file starts itself for one system in a separate process


def nothing():
    return None


def total(table):
    return float(np.sum(table["x"].chunk(0).to_numpy()))


def array_total(array):
    return float(np.sum(array))


class Alone:
    """Run one system at a time, in a separate process: idle daemons of others would disturb it."""

    @staticmethod
    @contextlib.contextmanager
    def talka(count, *, python):
        with Embedded(threads=WORKERS, processes=WORKERS) as engine:

            def run():
                refs = [engine.submit(nothing, python=python) for _ in range(count)]
                engine.wait(refs)
                engine.release(refs)

            yield run

    @staticmethod
    @contextlib.contextmanager
    def ray(count):
        import ray

        start_ray(ray)
        remote = ray.remote(nothing)
        yield lambda: ray.get([remote.remote() for _ in range(count)])
        ray.shutdown()

    @staticmethod
    @contextlib.contextmanager
    def dask(count):
        from dask.distributed import Client, LocalCluster

        with (
            LocalCluster(
                n_workers=WORKERS, threads_per_worker=1, dashboard_address=None
            ) as cluster,
            Client(cluster) as client,
        ):
            yield lambda: client.gather([client.submit(nothing, pure=False) for _ in range(count)])

    @staticmethod
    @contextlib.contextmanager
    def pool(count, make):
        with make(WORKERS) as pool:
            yield lambda: concurrent.futures.wait([pool.submit(nothing) for _ in range(count)])


def spawning_pool(workers):
    spawn = multiprocessing.get_context("spawn")
    return concurrent.futures.ProcessPoolExecutor(workers, mp_context=spawn)


SYSTEMS = {
    "talka native": functools.partial(Alone.talka, python=False),
    "talka python": functools.partial(Alone.talka, python=True),
    "Ray": peer("ray", Alone.ray),
    "Dask": peer("distributed", Alone.dask),
    "ThreadPoolExecutor": functools.partial(Alone.pool, make=concurrent.futures.ThreadPoolExecutor),
    "ProcessPoolExecutor": functools.partial(Alone.pool, make=spawning_pool),
}


def measure_alone(name, count):
    """Return the seconds for `count` tasks, measured twice after a warm-up."""
    with SYSTEMS[name](count) as run:
        run()
        return interleaved({name: run}, repeats=2)[name]


def task_rates(systems, count, rounds):
    """Measure tasks per second: empty tasks, all submitted at once, until the last result."""
    chosen = {name: SYSTEMS[name] for name in systems}
    seconds = {name: [] for name in measurable(chosen)}
    for _ in range(rounds):
        for name in seconds:
            command = [sys.executable, "-m", "benchmarks.engine", ALONE, name, str(count)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            seconds[name] += json.loads(done.stdout.splitlines()[-1])
    rates = {name: count / spread(times)[0] for name, times in seconds.items()}
    rows = [
        {
            "system": name,
            "talka native is": f"{rates['talka native'] / rates[name]:.1f}x",
            "talka python is": f"{rates['talka python'] / rates[name]:.1f}x",
            "tasks a second": f"{rates[name]:,.0f}",
            "spread": f"{spread(times)[1]:.2f}",
        }
        for name, times in seconds.items()
    ]
    return with_missing(rows, chosen, "system")


def start_ray(ray):
    ray.init(
        address="local",  # never one that happens to run on this machine
        num_cpus=WORKERS,
        include_dashboard=False,
        logging_level="ERROR",
        log_to_driver=False,
        _node_ip_address="127.0.0.2",
    )


class Peers:
    """Start the systems that accept tables, once each."""

    def __init__(self, stack):
        self.talka = stack.enter_context(Embedded(threads=WORKERS, processes=WORKERS))
        self.processes = stack.enter_context(spawning_pool(WORKERS))
        self.ray = self.dask = None
        if SYSTEMS["Ray"]:
            import ray

            start_ray(ray)
            stack.callback(ray.shutdown)
            self.ray, self.ray_total = ray, ray.remote(total)
        if SYSTEMS["Dask"]:
            from dask.distributed import Client, LocalCluster

            cluster = LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None)
            stack.enter_context(cluster)
            self.dask = stack.enter_context(Client(cluster))


def transfers(peers, num_bytes, repeats):
    """Measure the seconds until a worker process has summed a table of the driver."""
    table = pa.table({"x": np.ones(num_bytes // 8)})

    def talka_first():
        ref = peers.talka.submit(lambda: table)
        peers.talka.wait([ref])
        start = time.perf_counter()
        peers.talka.fetch(peers.talka.submit(total, ref, python=True))
        seconds = time.perf_counter() - start
        peers.talka.release(ref)
        return seconds

    written = peers.talka.submit(lambda: table)
    peers.talka.fetch(peers.talka.submit(total, written, python=True))

    def talka_again():
        peers.talka.fetch(peers.talka.submit(total, written, python=True))

    def talka_map_only():
        peers.talka.fetch(peers.talka.submit(lambda t: t.num_rows, written, python=True))

    def pickled():
        peers.processes.submit(total, table).result()

    def ray_first():
        peers.ray.get(peers.ray_total.remote(peers.ray.put(table)))

    put = peers.ray and peers.ray.put(table)

    def ray_again():
        peers.ray.get(peers.ray_total.remote(put))

    def dask_first():
        peers.dask.submit(total, table, pure=False).result()

    def sum_here():
        total(table)

    candidates = {
        "talka, first reader (writes it once)": talka_first,
        "talka, every further reader": talka_again,
        "talka, every further reader, without the sum": talka_map_only,
        "pickled (ProcessPoolExecutor)": pickled,
        "Ray, put and read": peers.ray and ray_first,
        "Ray, every further reader": peers.ray and ray_again,
        "the sum alone, in this process": sum_here,
    }
    if num_bytes <= 10**8:  # Dask advises against more, and takes minutes
        candidates["Dask"] = peers.dask and dask_first
    for run in measurable(candidates).values():
        run()
    seconds = {name: statistics.median(times) for name, times in interleaved(candidates, repeats=repeats).items()}  # fmt: skip
    peers.talka.release(written)
    slowest = seconds["pickled (ProcessPoolExecutor)"]
    rows = [
        {
            "way": name,
            "faster than pickling": f"{slowest / taken:.1f}x",
            "GB/s": f"{num_bytes / taken / 1e9:.2f}",
            "ms": f"{1000 * taken:.1f}",
        }
        for name, taken in seconds.items()
    ]
    return with_missing(rows, candidates, "way")


def event_costs(count, repeats):
    """Run empty native tasks with and without a run directory: the worst case for events."""
    with tempfile.TemporaryDirectory() as folder:
        stream = Stream(Path(folder) / "events.jsonl")
        with Embedded(events=stream) as writing, Embedded() as silent:

            def run(engine):
                refs = [engine.submit(nothing) for _ in range(count)]
                engine.wait(refs)
                engine.release(refs)

            candidates = {"with events": lambda: run(writing), "without": lambda: run(silent)}
            for warm_up in candidates.values():
                warm_up()
            seconds = interleaved(candidates, repeats=4 * repeats)
        num_bytes = (Path(folder) / "events.jsonl").stat().st_size
    least = {name: min(times) for name, times in seconds.items()}
    return [
        {
            "events cost": f"{100 * (least['with events'] / least['without'] - 1):+.1f}%",
            "best of": 4 * repeats,
            "bytes written a task": f"{num_bytes / count / (4 * repeats + 1):.2f}",
        }
    ]


def gang_starts(peers, size, repeats):
    """Start ranks, import torch, form a process group, end them."""

    def talka():
        peers.talka.gang(lambda worker: worker.rank, size=size)

    def torch_spawn():
        import torch.multiprocessing

        context = torch.multiprocessing.spawn(
            spawned_rank, nprocs=size, join=False, args=(size, free_port())
        )
        while not context.join():
            pass

    seconds = interleaved(
        {"talka": talka, "torch.multiprocessing.spawn": torch_spawn}, repeats=repeats
    )
    ours = spread(seconds["talka"])[0]
    return [
        {
            "ranks": size,
            "way": name,
            "talka is": f"{spread(times)[0] / ours:.1f}x",
            "seconds": f"{spread(times)[0]:.2f}",
        }
        for name, times in seconds.items()
    ]


def free_port():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def spawned_rank(rank, size, port):
    import os

    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    dist.init_process_group("gloo", rank=rank, world_size=size)
    dist.barrier()  # a rank that ends while others still connect breaks their connections
    dist.destroy_process_group()


def main():
    args = arguments(__doc__, PRESETS)
    preset = PRESETS[args.preset]
    tables = {}
    title = f"Empty tasks, {preset['tasks']:,} submitted at once"
    tables[title] = task_rates(preset["systems"], preset["tasks"], preset["rounds"])
    tables["Cost of writing events, empty native tasks"] = event_costs(
        preset["tasks"], preset["repeats"]
    )
    with contextlib.ExitStack() as stack:
        peers = Peers(stack)
        for num_bytes in preset["sizes"]:
            title = f"A table of {num_bytes / 1e6:,.0f} MB summed in a worker process"
            tables[title] = transfers(peers, num_bytes, preset["repeats"])
        tables["Start of a gang"] = [
            row for size in preset["gangs"] for row in gang_starts(peers, size, preset["repeats"])
        ]
    publish(args, "What does a task cost, beside Ray, Dask and concurrent.futures?", tables)


if __name__ == "__main__":
    if sys.argv[1:2] == [ALONE]:
        print(json.dumps(measure_alone(sys.argv[2], int(sys.argv[3]))))
    else:
        main()

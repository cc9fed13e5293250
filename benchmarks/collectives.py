"""How fast are messages and collectives beside gloo and MPI, and how close are their predictions?

    python -m benchmarks.collectives --preset smoke     # some seconds; the lab needs root or user namespaces
    python -m benchmarks.collectives --preset four      # at most four ranks, about 7 minutes
    python -m benchmarks.collectives --preset full --json FILE --markdown FILE

All libraries take turns in the same processes, so all see the same disturbances. On loopback, a call
takes from the moment when the last rank starts it until the last rank has its result; times are medians.
On links, calls follow a pause and all ranks start together: a call takes from the first start until the
last rank has its result, and times are lower quartiles. Bytes are those of one rank's value (of the
root's value for broadcast and scatter). MPI (Open MPI through mpi4py) runs on loopback only. Cells of
which the prediction is above 5 s, or which need more than 8 GB, are left out. Predictions are those of
the link model with what `probe` measured in the same run. With --resume, finished tables are kept in a
folder, and not measured again.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.collectives_rank import OPERATIONS
from benchmarks.harness import arguments, publish
from talka.channels.choosing import choose
from talka.lab import Lab, LabConfig, LabRunOptions
from talka.network import LOOPBACK, Link, Network, SharedCores
from talka.network.algorithms import algorithm_cost
from talka.units import format_bytes

SIZES = [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000]
LIMIT_S = 5.0
MAX_BYTES = 8e9  # of the arrays of all libraries and ranks
PRESETS = {
    "smoke": {
        "loopback": [2],
        "links": [("1 Gbit/s", 1e9, 0.0, [2])],
        "sizes": [100, 100_000],
        "seconds": 0.02,
    },
    "four": {
        "loopback": [2, 4],
        "links": [("100 Mbit/s", 1e8, 0.0, [4]), ("1 Gbit/s", 1e9, 0.0, [4])],
        "sizes": SIZES,
        "seconds": 0.1,
    },
    "full": {
        "loopback": [2, 4, 8],
        "links": [
            ("100 Mbit/s", 1e8, 0.0, [2, 4, 8]),
            ("1 Gbit/s", 1e9, 0.0, [2, 4, 8]),
            ("100 Mbit/s, 20 ms", 1e8, 0.02, [2, 4, 8]),
        ],
        "sizes": SIZES,
        "seconds": 0.3,
    },
}


def cells(network, sizes, num_libraries):
    """Return pairs of operation and bytes which take little enough time and memory."""
    chosen = []
    for operation in OPERATIONS:
        for num_bytes in sizes if operation != "barrier" else sizes[:1]:
            seconds = predicted(network, operation, num_bytes)[1]
            needed = num_libraries * memory_of(operation, num_bytes, network.num_workers)
            if seconds <= LIMIT_S and needed <= MAX_BYTES:
                chosen.append((operation, num_bytes))
    return chosen


def memory_of(operation, num_bytes, num_ranks):
    """Return the bytes of all arrays of one library on all ranks, and of copies on their way."""
    values = {"gather": 5 * num_ranks, "all_gather": num_ranks * (num_ranks + 4)}
    return num_bytes * values.get(operation, 6 * num_ranks)


def predicted(network, operation, num_bytes):
    """Return the algorithm and the seconds of an operation."""
    if operation == "point_to_point":
        return "", network.path(0, 1).seconds(num_bytes)
    algorithm = choose(operation, network, num_bytes)
    return algorithm, algorithm_cost(operation, algorithm, network, num_bytes).seconds


def command(chosen, libraries, seconds, out, *, links):
    words = [sys.executable, "-W", "ignore", "-m", "benchmarks.collectives_rank"]
    words += ["--cells", json.dumps(chosen), "--libraries", *libraries]
    return [*words, "--seconds", str(seconds), "--out", str(out), *["--links"] * links]


def has_mpi():
    test = [sys.executable, "-c", "from mpi4py import MPI"]
    return bool(shutil.which("mpirun")) and not subprocess.run(test, capture_output=True).returncode


def on_loopback(num_ranks, settings, out):
    """Run all libraries as processes of this machine, started by mpirun if there is one."""
    network = Network.equal(LOOPBACK, num_ranks, num_hosts=1)
    environment = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(29_700 + num_ranks),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    libraries = ["talka", "gloo", *(["mpi"] if has_mpi() else [])]
    chosen = cells(network, settings["sizes"], len(libraries))
    words = command(chosen, libraries, settings["seconds"], out, links=False)
    if "mpi" in libraries:
        start = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
        subprocess.run([*start, "-np", str(num_ranks), *words], env=environment, check=True)
    else:
        ranks = [
            subprocess.Popen(
                words, env={**environment, "RANK": str(rank), "WORLD_SIZE": str(num_ranks)}
            )
            for rank in range(num_ranks)
        ]
        codes = [rank.wait() for rank in ranks]
        assert not any(codes), codes
    return json.loads(out.read_text())


def on_links(rate, latency_s, num_hosts, settings, out):
    """Run talka and gloo on hosts of a lab."""
    assumed = Network.equal(Link(latency_s or 1e-4, 0.95 * rate), num_hosts)
    chosen = cells(assumed, settings["sizes"], 2)
    config = LabConfig(num_hosts=num_hosts, rate_bits_per_s=rate, latency_s=latency_s)
    with Lab(config) as lab:
        words = command(chosen, ["talka", "gloo"], settings["seconds"], out, links=True)
        lab.run(words, LabRunOptions(timeout_s=3000))
    return json.loads(out.read_text())


def rows_of(answer, *, num_ranks, network=None):
    """Return rows with ratios first: above 1, talka is faster."""
    rows = []
    for cell in answer["rows"]:
        seconds, talka_s = cell["seconds"], cell["seconds"]["talka"]
        row = {
            "operation": cell["operation"],
            "ranks": num_ranks,
            "bytes": format_bytes(cell["num_bytes"]) if cell["operation"] != "barrier" else "",
            "x gloo": f"{seconds['gloo'] / talka_s:.2f}" if "gloo" in seconds else "-",
        }
        if network is None:
            row["x MPI"] = f"{seconds['mpi'] / talka_s:.2f}" if "mpi" in seconds else "-"
        row["ms"] = f"{1000 * talka_s:.3f}"
        if network is not None:
            algorithm, predicted_s = predicted(network, cell["operation"], cell["num_bytes"])
            row["predicted ms"] = f"{1000 * predicted_s:.3f}"
            row["measured/predicted"] = f"{talka_s / predicted_s:.2f}"
            row["algorithm"] = algorithm
        rows.append(row)
    return rows


def summary(tables):
    """Return one row per table: how many cells reach which ratio, and how close predictions are."""
    rows = []
    for title, cells_of in tables.items():
        row = {"where": title, "cells": len(cells_of)}
        for peer in ("gloo", "MPI"):
            ratios = [
                float(cell[f"x {peer}"]) for cell in cells_of if cell.get(f"x {peer}", "-") != "-"
            ]
            row[f"x {peer}, median"] = f"{statistics.median(ratios):.2f}" if ratios else ""
            row[f"x {peer}, worst"] = f"{min(ratios):.2f}" if ratios else ""
        errors = [
            abs(float(cell["measured/predicted"]) - 1)
            for cell in cells_of
            if "measured/predicted" in cell
        ]
        row["off the prediction, median"] = f"{statistics.median(errors):.0%}" if errors else ""
        row["worst"] = f"{max(errors):.0%}" if errors else ""
        rows.append(row)
    return rows


def network_of(answer):
    """Return the network that the probe found."""
    fields = answer["network"]
    cores = fields["cores"] and SharedCores(**fields["cores"])
    links = tuple(Link(**link) for link in fields["links"])
    return Network(links, cores=cores)


def resumed(folder, title, run):
    """Return the answer of an earlier run from a folder, or run and keep the answer there."""
    path = folder / f"{title.replace(' ', '-').replace('/', '-per-').replace(',', '')}.json"
    if not path.exists():
        answer = run(folder / "unfinished.json")
        path.write_text(json.dumps(answer))
    return json.loads(path.read_text())


def main():
    more = {"--resume": "folder for finished tables, which are not measured again"}
    args = arguments(__doc__, PRESETS, more)
    settings = PRESETS[args.preset]
    tables = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.resume or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for num_ranks in settings["loopback"]:
            title = f"loopback, {num_ranks} ranks"
            answer = resumed(folder, title, partial(on_loopback, num_ranks, settings))
            tables[title] = rows_of(answer, num_ranks=num_ranks)
            print(f"{title}: done", file=sys.stderr)
        for name, rate, latency_s, counts in settings["links"]:
            for num_hosts in counts:
                title = f"{name}, {num_hosts} hosts"
                run = partial(on_links, rate, latency_s, num_hosts, settings)
                answer = resumed(folder, title, run)
                network = network_of(answer)
                tables[title] = rows_of(answer, num_ranks=num_hosts, network=network)
                print(f"{title}: done", file=sys.stderr)
    publish(args, __doc__.splitlines()[0], {"Summary": summary(tables), **tables})


if __name__ == "__main__":
    main()

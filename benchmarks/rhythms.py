"""How soon does each rhythm reach 85% accuracy over slow links, and what does a slow machine cost?

    python -m benchmarks.rhythms --preset smoke          # some seconds; needs root or user namespaces
    python -m benchmarks.rhythms --preset full --resume DIR --json FILE --markdown FILE

Fashion-MNIST, an MLP of 2.91 million parameters, batches of 128 images, SGD with momentum 0.9. Four
hosts in a lab, one rank each, with 0.45 cores each, so that no host lends its cores to another one while
it waits. Peers are DDP, its fp16 hook, torch's own PostLocalSGD, and one process with all cores and no
network. Settings are the best of
the few that were tried. Accuracy is looked at every 24 steps; the clock stops meanwhile. Bytes are counted
at the interfaces.

First table: 100 Mbit/s. Second: 10 Mbit/s with 20 ms, a home uplink. Third: seconds of a step if one of
four hosts has a fifth of the others' cores. With --resume, finished rows are kept in a folder, and not
measured again.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import arguments, publish
from benchmarks.parity import DATA
from talka.lab import Lab, LabConfig, LabRunOptions
from talka.units import format_bytes

TARGET, CORES = 0.85, 0.45
ONE = "one process, all cores"
LAN = {
    ONE: ("one", 0.05, {}),
    "DDP": ("ddp", 0.05, {}),
    "DDP, fp16 hook": ("ddp fp16 hook", 0.05, {}),
    "PostLocalSGD of torch, 24 steps": ("post-local-sgd", 0.05, {"every": 24}),
    "EveryStep, powersgd:4": ("EveryStep", 0.05, {"compressor": "powersgd:4"}),
    "Delayed 1, powersgd:4": ("Delayed", 0.02, {"delay": 1, "compressor": "powersgd:4"}),
    "LocalSGD 12, 4 bits, Nesterov 0.5": (
        "LocalSGD",
        0.05,
        {"every": 12, "compressor": "uniform:4/max/512+ef", "outer": "nesterov:0.7/0.5"},
    ),
    "LocalSGD 24, 3 bits, Nesterov 0.9": (
        "LocalSGD",
        0.05,
        {"every": 24, "compressor": "uniform:3/max/512+ef", "outer": "nesterov:0.7/0.9"},
    ),
}
UPLINK = {
    "EveryStep, powersgd:1": ("EveryStep", 0.05, {"compressor": "powersgd:1"}),
    "LocalSGD 24, 1 bit, Nesterov 0.9": (
        "LocalSGD",
        0.05,
        {"every": 24, "compressor": "onebit", "outer": "nesterov:0.7/0.9"},
    ),
    "LocalSGD 48, 3 bits, Nesterov 0.9": (
        "LocalSGD",
        0.05,
        {"every": 48, "compressor": "uniform:3/max/512+ef", "outer": "nesterov:0.7/0.9"},
    ),
}
STRAGGLER = {
    "EveryStep, powersgd:4": ("EveryStep", 0.05, {"compressor": "powersgd:4"}),
    "LocalSGD 24, onebit": ("LocalSGD", 0.05, {"every": 24, "compressor": "onebit"}),
}
PRESETS = {
    "smoke": {
        "hosts": 2,
        "images": 1280,
        "lan": ["DDP", "LocalSGD 24, 3 bits, Nesterov 0.9"],
        "uplink": [],
        "stragglers": [],
        "max_steps": 24,
        "repeats": 1,
        "rate": 1e9,
    },
    "full": {
        "hosts": 4,
        "images": 60_000,
        "lan": list(LAN),
        "uplink": list(UPLINK),
        "stragglers": list(STRAGGLER),
        "max_steps": 960,
        "repeats": 1,
        "rate": 1e8,
    },
}
PACE_STEPS = 240  # of a measurement of seconds per step
PACE_SKIPPED = 96  # steps at the start that do not count: shares are being measured


def config_of(mode, settings, **changes):
    kind, rate, options = mode
    return {
        "kind": kind,
        "lr": rate,
        "momentum": 0.9,
        "options": options,
        "model": "mlp",
        "batch": 32 * settings["hosts"],
        "images": settings["images"],
        "max_steps": settings["max_steps"],
        "check_every": 24,
        "target": TARGET,
        "seed": 0,
        **changes,
    }


def run(lab, config, folder, name):
    """Run one training in a lab, or alone; return the measurements of all ranks."""
    path = folder / f"{name.replace(' ', '-').replace('/', '_')}.json"
    if not path.exists():
        out = folder / "unfinished.json"
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.rhythms_rank"]
        command += ["--config", json.dumps(config), "--out", str(out)]
        if lab is None:
            alone = {key: value for key, value in os.environ.items() if key != "WORLD_SIZE"}
            subprocess.run(command, env=alone, check=True)
        else:
            lab.run(command, LabRunOptions(timeout_s=3000))
        out.rename(path)
    of_ranks = json.loads(path.read_text())
    print(f"{name}: {of_ranks[0]['rows'][-1]}", file=sys.stderr, flush=True)
    return of_ranks


def goal_row(name, runs):
    """Return medians over runs of one mode: seconds, steps and bytes to the accuracy."""
    ends = [of_ranks[0]["rows"][-1] for of_ranks in runs]
    reached = [end for end in ends if end[2] >= TARGET]
    sent = [sum(rank["rows"][-1][3] for rank in of_ranks) for of_ranks in runs]
    return {
        "mode": name,
        "seconds": statistics.median(end[1] for end in ends),
        "is_reached": len(reached) > len(ends) / 2,
        "steps": statistics.median(end[0] for end in ends),
        "bytes": statistics.median(sent),
    }


def goal_table(modes, names, settings, lab, folder, where):
    rows = []
    for name in names:
        is_quick = name.startswith(("EveryStep", "Delayed", "LocalSGD"))
        repeats = settings["repeats"] if is_quick else 1
        runs = [
            run(
                None if name == ONE else lab,
                config_of(modes[name], settings, seed=seed),
                folder,
                f"{where}, {name}, {seed}",
            )
            for seed in range(repeats)
        ]
        rows.append(goal_row(name, runs))
    return rows


def shown(rows, reference):
    """Return the rows for people: ratios to the reference first."""
    base = next((row for row in rows if row["mode"] == reference), rows[0])
    table = []
    for row in rows:
        seconds = f"{row['seconds']:.1f}" if row["is_reached"] else "not reached"
        ratio = base["seconds"] / row["seconds"]
        fewer = base["bytes"] / row["bytes"] if row["bytes"] else None
        table.append(
            {
                "mode": row["mode"],
                f"x sooner than {base['mode']}": f"{ratio:.1f}" if row["is_reached"] else "-",
                "x fewer bytes": f"{fewer:.0f}" if fewer else "-",
                "seconds to 85%": seconds,
                "steps": f"{row['steps']:.0f}",
                "s a step": f"{row['seconds'] / row['steps']:.4f}",
                "bytes, all hosts": format_bytes(row["bytes"]),
            }
        )
    return table


def pace(of_ranks):
    """Return the seconds per step after the first ones."""
    rows = of_ranks[0]["rows"]
    first = next(row for row in rows if row[0] >= PACE_SKIPPED)
    return (rows[-1][1] - first[1]) / (rows[-1][0] - first[0])


def straggler_rows(names, settings, folder):
    """Return seconds per step with equal hosts, and with one of a fifth of their cores."""
    hosts = settings["hosts"]
    equal = LabConfig(num_hosts=hosts, rate_bits_per_s=1e8, cores=CORES)
    unequal = LabConfig(
        num_hosts=hosts, rate_bits_per_s=1e8, cores=CORES, cores_of={hosts - 1: CORES / 5}
    )
    seconds, last = {}, {}
    for where, lab_config in (("equal hosts", equal), ("one slow host", unequal)):
        with Lab(lab_config) as lab:
            for name in names:
                for shares in ("equal", "measured"):
                    if where == "equal hosts" and shares == "measured":
                        continue
                    kind, rate, options = STRAGGLER[name]
                    mode = (kind, rate, {**options, "shares": shares})
                    config = config_of(mode, settings, target=2.0, max_steps=PACE_STEPS)
                    of_ranks = run(lab, config, folder, f"{where}, {name}, {shares} shares")
                    seconds[name, where, shares] = pace(of_ranks)
                    last[name, shares] = of_ranks[0]["shares"]
    rows = []
    for name in names:
        base = seconds[name, "equal hosts", "equal"]
        for shares in ("equal", "measured"):
            taken = seconds[name, "one slow host", shares]
            rows.append(
                {
                    "mode": name,
                    "shares": shares,
                    "x the time without a slow host": f"{taken / base:.2f}",
                    "s a step": f"{taken:.4f}",
                    "without": f"{base:.4f}",
                    "samples per host": "/".join(map(str, last[name, shares])),
                }
            )
    return rows


def main():
    more = {
        "--resume": "folder for finished rows, which are not measured again",
        "--only": "rows with this in their name",
    }
    args = arguments(__doc__, PRESETS, more)
    settings = dict(PRESETS[args.preset])
    if args.preset == "full" and not DATA.exists():
        sys.exit(f"{DATA} is not there: TALKA_DATA names the folder with images/")
    if args.only:
        for part in ("lan", "uplink", "stragglers"):
            settings[part] = [name for name in settings[part] if args.only in name]
    tables = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.resume or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        hosts = settings["hosts"]
        if settings["lan"]:
            config = LabConfig(num_hosts=hosts, rate_bits_per_s=settings["rate"], cores=CORES)
            with Lab(config) as lab:
                lan = goal_table(LAN, settings["lan"], settings, lab, folder, "100 Mbit/s")
            rate = f"{settings['rate'] / 1e6:.0f} Mbit/s"
            tables[f"{rate}, {hosts} hosts of {CORES} cores"] = shown(lan, "DDP")
        if settings["uplink"]:
            config = LabConfig(num_hosts=hosts, rate_bits_per_s=1e7, latency_s=0.02, cores=CORES)
            with Lab(config) as lab:
                uplink = goal_table(UPLINK, settings["uplink"], settings, lab, folder, "10 Mbit/s")
            tables["10 Mbit/s and 20 ms"] = uplink_rows(uplink, lan if settings["lan"] else [])
        if settings["stragglers"]:
            tables["One of four hosts has a fifth of the cores"] = straggler_rows(
                settings["stragglers"], settings, folder
            )
    publish(args, __doc__.splitlines()[0], tables)


def uplink_rows(uplink, lan):
    """Return rows beside the best of the same rhythm at 100 Mbit/s."""
    rows = shown(uplink, uplink[0]["mode"])
    for row, measured in zip(rows, uplink, strict=True):
        del row[f"x sooner than {uplink[0]['mode']}"], row["x fewer bytes"]
        rhythm = measured["mode"].partition(" ")[0].rstrip(",")
        same = [one for one in lan if one["mode"].startswith(rhythm) and one["is_reached"]]
        best = min((one["seconds"] for one in same), default=None)
        row["x its best time at 100 Mbit/s"] = (
            f"{measured['seconds'] / best:.2f}" if best and measured["is_reached"] else "-"
        )
    return rows


if __name__ == "__main__":
    main()

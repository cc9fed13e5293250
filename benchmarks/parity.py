"""Does compressed training reach the accuracy of plain training, and how much sooner on slow links?

    python -m benchmarks.parity --preset smoke          # some seconds
    python -m benchmarks.parity --preset full --json FILE --markdown FILE --lab slow_network.json

Fashion-MNIST (TALKA_DATA, default ../shared/data), 4 workers, SGD with momentum, a learning rate
that warms up for an epoch and falls to zero; one pair of rows with Adam. With sparse compressors
momentum is applied before compression, as `attach` requires; with the others afterwards, in the
optimizer. Two rows show the cost of momentum after topk, and of sparsifying its average a second
time (two-phase).

First table: the MLP of `benchmarks.slow_network`. Steps to an accuracy are counted here, without
limits on the links; seconds per step come from the JSON of that benchmark; time to accuracy is their
product. Second table: test accuracy of a small MLP after the same number of epochs, mean over seeds,
beside fp32.
"""

import gzip
import json
import os
import statistics
import sys
from pathlib import Path

import numpy as np

from benchmarks.harness import arguments, publish
from talka.engine import Embedded

DATA = Path(os.environ.get("TALKA_DATA", Path(__file__).parents[2] / "shared" / "data"))
BATCH, MOMENTUM = 32, 0.9
SPECS = [
    *("fp32", "fp16", "onebit+ef", "uniform:3/max/512+ef", "qsgd:7", "topk:0.01+ef"),
    *("threshold:auto+ef", "powersgd:4"),
]
AFTER, TWO_PHASE = "topk:0.01+ef (momentum after)", "topk:0.01+ef (by two-phase)"
ADAMS = ["fp32 (AdamW)", "onebit+ef (FrozenAdam)"]
RACERS = ["fp32", "onebit+ef", "topk:0.01+ef", "powersgd:4"]
PRESETS = {
    "smoke": {
        "specs": ["fp32", "onebit+ef"],
        "racers": [],
        "seeds": 1,
        "epochs": 1,
        "images": 640,
        "workers": 2,
    },
    "full": {
        "specs": [*SPECS, AFTER, TWO_PHASE, *ADAMS],
        "racers": RACERS,
        "seeds": 3,
        "epochs": 8,
        "images": 60_000,
        "workers": 4,
    },
}
RACE_EPOCHS = 2
CHECKS_PER_EPOCH = 8
TARGET = 0.85


def images(name, count):
    """Return images as float32 with mean 0, and their classes; noise if the data is missing."""
    if not DATA.exists():
        generator = np.random.default_rng(0)
        classes = generator.integers(0, 10, count)
        return generator.normal(classes[:, None], 3, (count, 784)).astype(np.float32), classes
    with gzip.open(DATA / "images" / f"{name}-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)[:count]
    with gzip.open(DATA / "images" / f"{name}-labels-idx1-ubyte.gz") as file:
        classes = np.frombuffer(file.read(), np.uint8, offset=8)[:count]
    return (pixels.astype(np.float32) - 73) / 90, classes.astype(np.int64)


def train(worker, spec, seed, model_name, num_images, epochs):
    """Return the test accuracy by step, and the final one; only rank 0 evaluates test images."""
    import math

    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    import talka.train
    from benchmarks.models import MODELS

    torch.set_num_threads(1)
    pixels, classes = (torch.from_numpy(one) for one in images("train", num_images))
    model = MODELS[model_name]()
    torch.manual_seed(seed)
    for layer in model:
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()
    ddp = DistributedDataParallel(model)
    an_epoch = len(pixels) // (worker.size * BATCH)
    num_steps = epochs * an_epoch
    name = spec.partition(" ")[0]
    early = name.startswith(("topk", "threshold")) and spec != AFTER
    optimizer = make_optimizer(spec, model, 0.0 if early else MOMENTUM)
    if name != "fp32":
        exchange = "two-phase" if spec == TWO_PHASE else None
        momentum = MOMENTUM if early else 0.0
        talka.train.attach(ddp, name, exchange, optimizer, momentum=momentum)

    def share_of_rate(step):
        return min(1, (step + 1) / an_epoch) * (1 + math.cos(math.pi * step / num_steps)) / 2

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share_of_rate)
    order = torch.Generator().manual_seed(seed)
    accuracies, every = [], max(1, an_epoch // CHECKS_PER_EPOCH)
    for step in range(num_steps):
        if step % an_epoch == 0:
            shuffled, at = torch.randperm(len(pixels), generator=order), 0
        mine = shuffled[at + worker.rank * BATCH : at + (worker.rank + 1) * BATCH]
        at += worker.size * BATCH
        optimizer.zero_grad()
        nn.functional.cross_entropy(ddp(pixels[mine]), classes[mine]).backward()
        optimizer.step()
        schedule.step()
        if worker.rank == 0 and model_name == "mlp" and (step + 1) % every == 0:
            accuracies.append([step + 1, accuracy(model)])
    return [accuracies, accuracy(model) if worker.rank == 0 else None]


def make_optimizer(spec, model, momentum):
    import torch

    import talka.train

    if "FrozenAdam" in spec:
        return talka.train.FrozenAdam(model.parameters(), lr=1e-3, warmup_steps=200)
    if "AdamW" in spec:
        return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    return torch.optim.SGD(model.parameters(), lr=0.02, momentum=momentum)


def accuracy(model):
    import torch

    pixels, classes = (torch.from_numpy(one) for one in images("t10k", 10_000))
    with torch.no_grad():
        return float((model(pixels).argmax(1) == classes).double().mean())


def steps_to(target, accuracies):
    return next((step for step, reached in accuracies if reached >= target), None)


def seconds_a_step(lab, spec):
    """Return the seconds per step of the MLP at 100 Mbit/s, from `benchmarks.slow_network`."""
    [rows] = [
        rows for title, rows in lab.items() if title.startswith("mlp") and " 100 Mbit" in title
    ]
    name = "ddp" if spec.startswith("fp32") else spec.partition(" ")[0]
    found = [float(row["s a step"]) for row in rows if row["mode"] == name]
    return found[0] if found else None


def main():
    more = {
        "--lab": "JSON of benchmarks.slow_network, for time to accuracy",
        "--only": "rows of the second table with this in their name, such as Adam, and no first table",
    }
    args = arguments(__doc__, PRESETS, more)
    settings = PRESETS[args.preset]
    if args.only:
        wanted = [spec for spec in settings["specs"] if args.only in spec]
        if not wanted:
            sys.exit(f"no row has {args.only!r} in its name: {', '.join(settings['specs'])}")
        beside = {plain(spec) for spec in wanted}
        specs = [spec for spec in settings["specs"] if spec in beside or spec in wanted]
        settings = {**settings, "specs": specs, "racers": []}
    if args.preset == "full" and not DATA.exists():
        sys.exit(f"{DATA} is not there: TALKA_DATA names the folder with images/")
    lab = json.loads(Path(args.lab).read_text())["tables"] if args.lab else None
    tables = {}
    with Embedded() as engine:

        def run(spec, seed, model, epochs):
            given = (spec, seed, model, settings["images"], epochs)
            accuracies, final = engine.gang(train, *given, size=settings["workers"])[0]
            print(f"{model}, seed {seed}, {spec}: {final:.4f}", file=sys.stderr, flush=True)
            return accuracies, final

        if settings["racers"]:
            races = {spec: run(spec, 0, "mlp", RACE_EPOCHS)[0] for spec in settings["racers"]}
            title = f"Time to {TARGET:.0%}, 2.91 million parameters"
            tables[title] = race_rows(races, lab)
        finals = {spec: [] for spec in settings["specs"]}
        for seed in range(settings["seeds"]):
            for spec in settings["specs"]:
                finals[spec].append(run(spec, seed, "small mlp", settings["epochs"])[1])
            title = f"Test accuracy after {settings['epochs']} epochs, {seed + 1} seeds"
            done = {**tables, title: accuracy_rows(finals)}
            publish(args, __doc__.splitlines()[0], done)


def plain(spec):
    """Return the row without compression that this one is compared with."""
    return "fp32 (AdamW)" if "Adam" in spec else "fp32"


def accuracy_rows(finals):
    rows = []
    for spec, each in finals.items():
        points = 100 * (statistics.mean(each) - statistics.mean(finals[plain(spec)]))
        rows.append(
            {
                "spec": spec,
                "points beside fp32": f"{points:+.2f}",
                "accuracy": f"{100 * statistics.mean(each):.2f}",
                "of seeds": ", ".join(f"{100 * one:.2f}" for one in each),
            }
        )
    return rows


def race_rows(races, lab):
    """Return rows with the speed-up over plain DDP at 100 Mbit/s."""
    rows, ddp_s = [], None
    for spec, accuracies in races.items():
        steps = steps_to(TARGET, accuracies)
        step_s = seconds_a_step(lab, spec) if lab else None
        seconds = steps * step_s if steps and step_s else None
        ddp_s = seconds if spec == "fp32" else ddp_s
        rows.append(
            {
                "spec": spec,
                "x sooner than DDP": f"{ddp_s / seconds:.1f}" if ddp_s and seconds else "",
                "steps": steps or f"not within {accuracies[-1][0]}",
                "s a step at 100 Mbit/s": step_s or "",
                "time to accuracy": f"{seconds:.0f} s" if seconds else "",
            }
        )
    return rows


if __name__ == "__main__":
    main()

"""Does compressed training reach the accuracy of plain training, and how much sooner on slow links?

    python -m benchmarks.parity --preset smoke          # about a minute
    python -m benchmarks.parity --preset full --json FILE --markdown FILE --lab slow_network.json

Fashion-MNIST (TALKA_DATA, default ../shared/data), 4 workers, the MLP of `benchmarks.slow_network`,
SGD with momentum; one pair of rows with Adam. Test accuracy after the same number of epochs, the mean
over seeds, beside fp32. Steps are counted here, without limits on the links; seconds of a step come
from the JSON that `benchmarks.slow_network` wrote. Time to accuracy is their product.
"""

import gzip
import os
import statistics
import sys
from pathlib import Path

import numpy as np

from benchmarks.harness import arguments, publish
from talka.engine import Embedded

DATA = Path(os.environ.get("TALKA_DATA", Path(__file__).parents[2] / "shared" / "data"))
WORKERS, BATCH = 4, 32
SPECS = [
    *("fp32", "fp16", "onebit+ef", "uniform:3/max/512+ef", "qsgd:7", "topk:0.01+ef"),
    *("threshold:auto+ef", "powersgd:4"),
]
ADAMS = ["fp32 (AdamW)", "onebit+ef (FrozenAdam)"]
PRESETS = {
    "smoke": {"specs": ["fp32", "onebit+ef"], "seeds": 1, "epochs": 1, "images": 6_400},
    "full": {"specs": [*SPECS, *ADAMS], "seeds": 3, "epochs": 3, "images": 60_000},
}
CHECKS_AN_EPOCH = 8
TARGET = 0.85


def images(name, count):
    """Pictures as float32 with mean 0, and their classes; noise where the data is missing."""
    if not DATA.exists():
        generator = np.random.default_rng(0)
        classes = generator.integers(0, 10, count)
        return generator.normal(classes[:, None], 3, (count, 784)).astype(np.float32), classes
    with gzip.open(DATA / "images" / f"{name}-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)[:count]
    with gzip.open(DATA / "images" / f"{name}-labels-idx1-ubyte.gz") as file:
        classes = np.frombuffer(file.read(), np.uint8, offset=8)[:count]
    return (pixels.astype(np.float32) - 73) / 90, classes.astype(np.int64)


def train(worker, spec, seed, settings):
    """Test accuracy by step, and the final one; rank 0 alone looks at the test pictures."""
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    import talka.train
    from benchmarks.models import mlp

    torch.set_num_threads(1)
    pixels, classes = (torch.from_numpy(one) for one in images("train", settings["images"]))
    model = mlp()
    torch.manual_seed(seed)
    for layer in model:
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()
    ddp = DistributedDataParallel(model)
    num_steps = settings["epochs"] * (len(pixels) // (WORKERS * BATCH))
    optimizer = make_optimizer(spec, model)
    name = spec.partition(" ")[0]
    if name != "fp32":
        talka.train.attach(ddp, name, optimizer=optimizer)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, num_steps)
    order = torch.Generator().manual_seed(seed)
    accuracies, every = [], max(1, num_steps // (settings["epochs"] * CHECKS_AN_EPOCH))
    for step in range(num_steps):
        if step % (len(pixels) // (WORKERS * BATCH)) == 0:
            shuffled, at = torch.randperm(len(pixels), generator=order), 0
        mine = shuffled[at + worker.rank * BATCH : at + (worker.rank + 1) * BATCH]
        at += WORKERS * BATCH
        optimizer.zero_grad()
        nn.functional.cross_entropy(ddp(pixels[mine]), classes[mine]).backward()
        optimizer.step()
        schedule.step()
        if worker.rank == 0 and (step + 1) % every == 0:
            accuracies.append([step + 1, accuracy(model)])
    return [accuracies, accuracy(model) if worker.rank == 0 else None]


def make_optimizer(spec, model):
    import torch

    import talka.train

    if "FrozenAdam" in spec:
        return talka.train.FrozenAdam(model.parameters(), lr=1e-3, warmup_steps=200)
    if "AdamW" in spec:
        return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def accuracy(model):
    import torch

    pixels, classes = (torch.from_numpy(one) for one in images("t10k", 10_000))
    with torch.no_grad():
        return float((model(pixels).argmax(1) == classes).double().mean())


def steps_to(target, accuracies):
    return next((step for step, reached in accuracies if reached >= target), None)


def seconds_a_step(lab, spec):
    """From `benchmarks.slow_network`'s tables: the MLP at 100 Mbit/s."""
    [rows] = [
        rows for title, rows in lab.items() if title.startswith("mlp") and " 100 Mbit" in title
    ]
    name = "ddp" if spec.startswith("fp32") else spec.partition(" ")[0]
    found = [float(row["s a step"]) for row in rows if row["mode"] == name]
    return found[0] if found else None


def main():
    import json

    args = arguments(
        __doc__, PRESETS, {"--lab": "JSON of benchmarks.slow_network, for time to accuracy"}
    )
    settings = PRESETS[args.preset]
    runs = {spec: [] for spec in settings["specs"]}
    with Embedded() as engine:
        for seed in range(settings["seeds"]):
            for spec in settings["specs"]:
                runs[spec].append(engine.gang(train, spec, seed, settings, size=WORKERS)[0])
                print(f"seed {seed}, {spec}: {runs[spec][-1][1]:.4f}", file=sys.stderr)
    lab = json.loads(Path(args.lab).read_text())["tables"] if args.lab else None
    publish(args, __doc__.splitlines()[0], {"Accuracy, and time to it": rows_of(runs, lab)})


def rows_of(runs, lab):
    finals = {spec: [final for _, final in each] for spec, each in runs.items()}
    steps = {
        spec: [steps_to(TARGET, accuracies) for accuracies, _ in each]
        for spec, each in runs.items()
    }
    seconds = {}
    for spec in runs:
        if lab and None not in steps[spec] and seconds_a_step(lab, spec):
            seconds[spec] = statistics.mean(steps[spec]) * seconds_a_step(lab, spec)
    rows = []
    for spec in runs:
        plain = next(
            one for one in runs if one.startswith("fp32") and ("Adam" in one) == ("Adam" in spec)
        )
        mean, reference = statistics.mean(finals[spec]), statistics.mean(finals[plain])
        reached = None not in steps[spec]
        rows.append(
            {
                "spec": spec,
                "points beside fp32": f"{100 * (mean - reference):+.2f}",
                "accuracy": f"{100 * mean:.2f}",
                "of seeds": ", ".join(f"{100 * one:.2f}" for one in finals[spec]),
                f"steps to {TARGET:.0%}": f"{statistics.mean(steps[spec]):.0f}" if reached else "",
                "time to it at 100 Mbit/s": f"{seconds[spec]:.1f} s" if spec in seconds else "",
                "x sooner than DDP": f"{seconds[plain] / seconds[spec]:.1f}"
                if spec in seconds and plain in seconds
                else "",
            }
        )
    return rows


if __name__ == "__main__":
    main()

"""How many bytes does LocalSGD save at equal accuracy?

    python -m benchmarks.rhythm_accuracy --preset smoke          # some seconds
    python -m benchmarks.rhythm_accuracy --preset full --resume DIR --json FILE --markdown FILE

Four workers on this machine, without limits on the links: bytes and accuracy do not depend on them.
First table: Fashion-MNIST, a small MLP, the same epochs for all, mean of the seeds beside DDP with
float32. Second: images sorted by class, so that each worker sees few classes. Third: a character
transformer on tinyshakespeare with AdamW: bytes until the validation loss that DDP reaches at the end
(extra steps counted), and the loss after equal steps.
"""

import json
import math
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import arguments, publish
from benchmarks.models import MODELS
from benchmarks.parity import BATCH, DATA, images
from talka.engine import Embedded
from talka.units import format_bytes

DDP = "DDP, float32"
CHANGES = "uniform:3/max/512+ef"
IMAGES = {
    DDP: None,
    "LocalSGD 50": {"every": 50},
    "LocalSGD 50, Nesterov, 3 bits": {
        "every": 50,
        "compressor": CHANGES,
        "outer": "nesterov:0.7/0.9",
    },
    "LocalSGD 50, Nesterov, 1 bit": {
        "every": 50,
        "compressor": "onebit",
        "outer": "nesterov:0.7/0.9",
    },
}
SORTED = {
    DDP: None,
    "LocalSGD 50": {"every": 50},
    "LocalSGD 50, Nesterov": {"every": 50, "outer": "nesterov:0.7/0.9"},
    "LocalSGD 10": {"every": 10},
    "LocalSGD 4": {"every": 4},
    "LocalSGD 2": {"every": 2},
}
TEXT = {
    DDP: None,
    "LocalSGD 50, Nesterov, 3 bits": {
        "every": 50,
        "compressor": CHANGES,
        "outer": "nesterov:0.7/0.9",
    },
    "LocalSGD 20, Nesterov, 3 bits": {
        "every": 20,
        "compressor": CHANGES,
        "outer": "nesterov:0.7/0.9",
    },
}
PRESETS = {
    "smoke": {
        "workers": 2,
        "seeds": 1,
        "epochs": 1,
        "images": 1280,
        "image_modes": [DDP, "LocalSGD 50, Nesterov, 3 bits"],
        "sorted_modes": [],
        "text_modes": [],
        "text_steps": 0,
    },
    "full": {
        "workers": 4,
        "seeds": 3,
        "epochs": 8,
        "images": 60_000,
        "image_modes": list(IMAGES),
        "sorted_modes": list(SORTED),
        "text_modes": list(TEXT),
        "text_steps": 1000,
    },
}
CONTEXT, TEXT_BATCH = 64, 8


def train_images(worker, options, seed, settings, is_sorted):
    """Return the test accuracy of rank 0 and the bytes that all workers sent."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    pixels, classes = (torch.from_numpy(one) for one in images("train", settings["images"]))
    model = MODELS["small mlp"]()
    torch.manual_seed(seed)
    for layer in model:
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    an_epoch = len(pixels) // (worker.size * BATCH)
    num_steps = settings["epochs"] * an_epoch

    def share_of_rate(step):
        return min(1, (step + 1) / an_epoch) * (1 + math.cos(math.pi * step / num_steps)) / 2

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share_of_rate)
    draws = _own_samples(worker, classes, seed, is_sorted, an_epoch)
    forward, rhythm = _rhythm(model, optimizer, options)
    with rhythm:
        for _ in range(num_steps):
            mine = next(draws)
            optimizer.zero_grad()
            nn.functional.cross_entropy(forward(pixels[mine]), classes[mine]).backward()
            optimizer.step()
            schedule.step()
    test, expected = (torch.from_numpy(one) for one in images("t10k", 10_000))
    with torch.no_grad():
        accuracy = float((model(test).argmax(1) == expected).double().mean())
    return accuracy, _sent_bytes(worker, model, options, rhythm, num_steps)


def _own_samples(worker, classes, seed, is_sorted, an_epoch):
    """Yield the samples of this worker's batches; sorted by class, each worker has its own part."""
    import torch

    order = torch.Generator().manual_seed(seed)
    part = len(classes) // worker.size
    own = classes.argsort(stable=True)[worker.rank * part : (worker.rank + 1) * part]
    while True:
        if is_sorted:
            shuffled = own[torch.randperm(part, generator=order)]
            for start in range(0, BATCH * an_epoch, BATCH):
                yield shuffled[start : start + BATCH]
        else:
            shuffled = torch.randperm(len(classes), generator=order)
            whole = worker.size * BATCH
            for start in range(0, whole * an_epoch, whole):
                yield shuffled[start + worker.rank * BATCH : start + (worker.rank + 1) * BATCH]


def _rhythm(model, optimizer, options):
    import contextlib

    from torch.nn.parallel import DistributedDataParallel

    import talka

    if options is None:
        return DistributedDataParallel(model), contextlib.nullcontext()
    return model, talka.train.LocalSGD(model, optimizer, **options)


def _sent_bytes(worker, model, options, rhythm, num_steps):
    """Return the bytes of all workers: counted, or for DDP those of a ring of float32."""
    if options is None:
        values = sum(one.numel() for one in model.parameters())
        return 4 * values * 2 * (worker.size - 1) * num_steps
    return worker.all_reduce(rhythm.stats()["sent_bytes"])


def transformer(num_characters):
    """A character transformer of 2 layers and 128 channels."""
    import torch
    from torch import nn

    class Characters(nn.Module):
        def __init__(self):
            super().__init__()
            self.characters = nn.Embedding(num_characters, 128)
            self.places = nn.Embedding(CONTEXT, 128)
            layer = nn.TransformerEncoderLayer(
                128, 4, 256, dropout=0.0, batch_first=True, norm_first=True
            )
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.out = nn.Linear(128, num_characters)

        def forward(self, text):
            x = self.characters(text) + self.places(torch.arange(text.shape[1]))
            mask = nn.Transformer.generate_square_subsequent_mask(text.shape[1])
            return self.out(self.layers(x, mask=mask, is_causal=True))

    torch.manual_seed(0)
    return Characters()


def train_text(worker, options, num_steps, goal):
    """Return validation losses by step, and the bytes of all workers per step.

    With a goal, training continues for up to three times the steps until it is reached.
    """
    import torch
    from torch import nn

    torch.set_num_threads(1)
    text = (DATA / "text" / "tinyshakespeare.txt").read_text()
    known = sorted(set(text))
    codes = torch.tensor([known.index(one) for one in text])
    split = int(0.9 * len(codes))
    model = transformer(len(known))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    forward, rhythm = _rhythm(model, optimizer, options)
    draws = torch.Generator().manual_seed(1 + worker.rank)
    losses = []

    def windows(part, generator, count):
        starts = torch.randint(len(part) - CONTEXT - 1, (count,), generator=generator)
        rows = torch.stack([part[start : start + CONTEXT + 1] for start in starts.tolist()])
        return rows[:, :-1], rows[:, 1:]

    def loss_of(network, x, y):
        return nn.functional.cross_entropy(network(x).flatten(0, 1), y.flatten())

    most = num_steps if goal is None else 3 * num_steps
    with rhythm:
        for step in range(1, most + 1):
            optimizer.zero_grad()
            loss_of(forward, *windows(codes[:split], draws, TEXT_BATCH)).backward()
            optimizer.step()
            if step % 50 == 0:
                if options is not None:
                    rhythm.synchronise()
                check = torch.Generator().manual_seed(0)
                with torch.no_grad():
                    own = loss_of(model, *windows(codes[split:], check, 200)).item()
                losses.append([step, worker.broadcast(own)])
                if goal is not None and step >= num_steps and losses[-1][1] <= goal:
                    break
    num_bytes = _sent_bytes(worker, model, options, rhythm, losses[-1][0])
    return losses, num_bytes / losses[-1][0]


def kept(folder, name, measure):
    """Return a result of an earlier run from a folder, or measure it and keep it there."""
    path = folder / f"{name.replace(' ', '-').replace('/', '_')}.json"
    if not path.exists():
        path.write_text(json.dumps(measure()))
        print(f"{name}: {path.read_text()[-200:]}", file=sys.stderr, flush=True)
    return json.loads(path.read_text())


def image_rows(engine, modes, names, settings, folder, *, is_sorted=False):
    given = {name: [] for name in names}
    for seed in range(settings["seeds"] if not is_sorted else 1):
        for name in names:
            where = f"{'sorted' if is_sorted else 'images'}, {name}, {seed}"
            given[name].append(
                kept(
                    folder,
                    where,
                    lambda name=name, seed=seed: engine.gang(
                        train_images,
                        *(modes[name], seed, settings, is_sorted),
                        size=settings["workers"],
                    )[0],
                )
            )
    rows = []
    base = statistics.mean(one[0] for one in given[names[0]])
    for name, results in given.items():
        mean = statistics.mean(one[0] for one in results)
        fewer = given[names[0]][0][1] / statistics.mean(one[1] for one in results)
        rows.append(
            {
                "mode": name,
                "x fewer bytes": f"{fewer:,.0f}",
                f"points beside {names[0]}": f"{100 * (mean - base):+.2f}",
                "accuracy": f"{100 * mean:.2f}",
                "of seeds": ", ".join(f"{100 * one[0]:.2f}" for one in results),
                "bytes, all workers": format_bytes(statistics.mean(one[1] for one in results)),
            }
        )
    return rows


def text_rows(engine, names, settings, folder):
    num_steps, rows, goal, base = settings["text_steps"], [], None, 0.0
    for name in names:
        losses, per_step = kept(
            folder,
            f"text, {name}",
            lambda name=name, goal=goal: engine.gang(
                train_text, TEXT[name], num_steps, goal, size=settings["workers"]
            )[0],
        )
        at_equal = next(loss for step, loss in losses if step == num_steps)
        if goal is None:
            goal, base = at_equal, num_steps * per_step
        needed = next((step for step, loss in losses if loss <= goal), None)
        rows.append(
            {
                "mode": name,
                "x fewer bytes to the same loss": (
                    f"{base / (needed * per_step):,.0f}" if needed else "not reached"
                ),
                "steps to it": needed or f"more than {losses[-1][0]}",
                f"loss after {num_steps} steps": f"{at_equal:.4f}",
                "bytes per step, all workers": format_bytes(per_step),
            }
        )
    return rows


def main():
    more = {"--resume": "folder for finished rows, which are not measured again"}
    args = arguments(__doc__, PRESETS, more)
    settings = PRESETS[args.preset]
    if args.preset == "full" and not DATA.exists():
        sys.exit(f"{DATA} is not there: TALKA_DATA names the folder with images/ and text/")
    tables = {}
    with tempfile.TemporaryDirectory() as temporary, Embedded() as engine:
        folder = Path(args.resume or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        title = f"Fashion-MNIST after {settings['epochs']} epochs, {settings['seeds']} seeds"
        tables[title] = image_rows(engine, IMAGES, settings["image_modes"], settings, folder)
        if settings["sorted_modes"]:
            names = settings["sorted_modes"]
            tables["Images sorted by class"] = image_rows(
                engine, SORTED, names, settings, folder, is_sorted=True
            )
        if settings["text_modes"]:
            tables["Character transformer, AdamW"] = text_rows(
                engine, settings["text_modes"], settings, folder
            )
    publish(args, __doc__.splitlines()[0], tables)


if __name__ == "__main__":
    main()

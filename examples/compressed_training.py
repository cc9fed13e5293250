"""Train a small net on 4 workers, once with plain DDP and once with one additional line.

    python examples/compressed_training.py        # about half a minute on a laptop

You should see nearly the same loss, and about 27 times fewer bytes sent.
"""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import talka.train
from talka.engine import Embedded
from talka.engine.traffic import sent_bytes


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )


def batches(rank):
    teacher = torch.randn(64, 10, generator=torch.Generator().manual_seed(99))
    generator = torch.Generator().manual_seed(rank)
    for _ in range(200):
        x = torch.randn(32, 64, generator=generator)
        yield x, (x @ teacher).argmax(dim=1)


def train(worker, spec):
    ddp = DistributedDataParallel(make_model())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.02, momentum=0.9)
    if spec is not None:
        talka.train.attach(ddp, spec, optimizer=optimizer)  # the one line
    before, losses = sent_bytes(), []
    for x, y in batches(worker.rank):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(ddp(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses[-50:]) / 50, sent_bytes() - before  # bytes counted by the kernel


def main():
    results = {}
    with Embedded() as engine:
        for spec in (None, "onebit+ef"):
            loss, num_bytes = engine.gang(train, spec, size=4)[0]
            results[spec] = loss, num_bytes
            name = "plain DDP" if spec is None else spec
            print(f"{name:10} loss {loss:.3f}   sent {num_bytes / 1e6:6.1f} MB by each worker")
    assert results["onebit+ef"][1] * 25 < results[None][1], "compression saved less than 25 times"
    assert results["onebit+ef"][0] < 1.15 * results[None][0], "compression cost too much accuracy"


if __name__ == "__main__":
    main()

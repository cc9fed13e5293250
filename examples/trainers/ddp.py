"""A plain PyTorch loop with DistributedDataParallel; with one additional line, and with LocalSGD.

    torchrun --standalone --nproc-per-node 2 examples/trainers/ddp.py

You should see that the loss falls, with about 25 and 250 times fewer bytes sent per step.
"""

from contextlib import nullcontext
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import talka.train
from talka.engine.traffic import sent_bytes

ATTACH = partial(talka.train.attach, compressor="onebit+ef")  # the one line
LOCAL_SGD = partial(talka.train.LocalSGD, every=10, compressor="onebit+ef")  # or this one


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.Linear(512, 10))


def batches(num_steps):
    teacher = torch.randn(64, 10, generator=torch.Generator().manual_seed(99))
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(num_steps):
        x = torch.randn(32, 64, generator=generator)
        yield x, (x @ teacher).argmax(dim=1)


def train(num_steps, start=None):
    """Return the losses, and the bytes this process sent per step, as counted by the kernel."""
    ddp = DistributedDataParallel(make_model())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    before, losses = sent_bytes(), []
    with start(ddp, optimizer=optimizer) if start else nullcontext():
        for x, y in batches(num_steps):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(ddp(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses, (sent_bytes() - before) / num_steps


if __name__ == "__main__":
    dist.init_process_group("gloo")
    _, plain = train(5)
    (losses, compressed), (local_losses, local) = train(60, ATTACH), train(60, LOCAL_SGD)
    if dist.get_rank() == 0:
        print(f"plain DDP {plain / 1e3:.0f} kB per step, onebit+ef {compressed / 1e3:.0f} kB")
        print(f"LocalSGD {local / 1e3:.1f} kB, loss {losses[0]:.2f} -> {local_losses[-1]:.2f}")
    dist.destroy_process_group()
    assert max(compressed * 10, local * 40) < plain, "too many bytes were sent"
    assert max(losses[-1], local_losses[-1]) < 0.7 * losses[0], "the loss did not fall"

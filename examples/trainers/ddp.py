"""A plain PyTorch loop with DistributedDataParallel, and the same loop with one additional line.

    torchrun --standalone --nproc-per-node 2 examples/trainers/ddp.py

You should see that the loss falls, and about 25 times fewer bytes sent per step.
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import talka.train
from talka.engine.traffic import sent_bytes


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.Linear(512, 10))


def batches(num_steps):
    teacher = torch.randn(64, 10, generator=torch.Generator().manual_seed(99))
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(num_steps):
        x = torch.randn(32, 64, generator=generator)
        yield x, (x @ teacher).argmax(dim=1)


def train(num_steps, compressor=None):
    """Return the losses, and the bytes this process sent per step, as counted by the kernel."""
    ddp = DistributedDataParallel(make_model())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    if compressor is not None:
        talka.train.attach(ddp, compressor, optimizer=optimizer)  # the one line
    before, losses = sent_bytes(), []
    for x, y in batches(num_steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(ddp(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, (sent_bytes() - before) / num_steps


def main():
    dist.init_process_group("gloo")
    _, plain = train(5)
    losses, compressed = train(60, "onebit+ef")
    if dist.get_rank() == 0:
        print(f"plain DDP {plain / 1e3:.0f} kB per step, onebit+ef {compressed / 1e3:.0f} kB")
        print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f}")
    dist.destroy_process_group()
    assert compressed * 10 < plain, "compression saved less than 10 times"
    assert losses[-1] < 0.7 * losses[0], "the loss did not fall"


if __name__ == "__main__":
    main()

"""A loop with accelerate: attach, or LocalSGD, with the model and optimizer that `prepare` returns.

    torchrun --standalone --nproc-per-node 2 examples/trainers/accelerate_loop.py

You should see that the loss falls, with about 25 and 250 times fewer bytes sent per step.
"""

from contextlib import nullcontext
from functools import partial

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import talka.train
from talka.engine.traffic import sent_bytes

ATTACH = partial(talka.train.attach, compressor="onebit+ef")  # the one line
LOCAL_SGD = partial(talka.train.LocalSGD, every=10, compressor="onebit+ef")  # or this one


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.Linear(512, 10))


def make_data(num_batches):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(64 * num_batches, 64, generator=generator)
    y = (x @ torch.randn(64, 10, generator=generator)).argmax(dim=1)
    return DataLoader(TensorDataset(x, y), batch_size=32)


def train(accelerator, num_steps, start=None):
    """Return the losses, and the bytes that this process sent per step by the kernel's count."""
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model, optimizer, data = accelerator.prepare(model, optimizer, make_data(num_steps))
    before, losses = sent_bytes(), []
    with start(model, optimizer=optimizer) if start else nullcontext():
        for x, y in data:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            losses.append(loss.item())
    return losses, (sent_bytes() - before) / num_steps


if __name__ == "__main__":
    accelerator = Accelerator(cpu=True)
    _, plain = train(accelerator, 5)
    losses, compressed = train(accelerator, 60, ATTACH)
    local_losses, local = train(accelerator, 60, LOCAL_SGD)
    accelerator.print(f"bytes: plain {plain:.0f}, onebit+ef {compressed:.0f}, LocalSGD {local:.0f}")
    accelerator.end_training()
    assert max(compressed * 10, local * 40) < plain, "too many bytes were sent"
    assert max(losses[-1], local_losses[-1]) < 0.7 * losses[0], "the loss did not fall"

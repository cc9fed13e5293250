"""A loop with accelerate: attach to the model and the optimizer that `prepare` returns.

    torchrun --standalone --nproc-per-node 2 examples/trainers/accelerate_loop.py

You should see that the loss falls, and about 25 times fewer bytes sent per step.
"""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import talka.train
from talka.engine.traffic import sent_bytes


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.Linear(512, 10))


def make_data(num_batches):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(64 * num_batches, 64, generator=generator)
    y = (x @ torch.randn(64, 10, generator=generator)).argmax(dim=1)
    return DataLoader(TensorDataset(x, y), batch_size=32)


def train(accelerator, num_steps, compressor=None):
    """Return the losses, and the bytes that this process sent per step by the kernel's count."""
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model, optimizer, data = accelerator.prepare(model, optimizer, make_data(num_steps))
    if compressor is not None:
        talka.train.attach(model, compressor, optimizer=optimizer)  # the one line
    before, losses = sent_bytes(), []
    for x, y in data:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, (sent_bytes() - before) / num_steps


def main():
    accelerator = Accelerator(cpu=True)
    _, plain = train(accelerator, 5)
    losses, compressed = train(accelerator, 60, "onebit+ef")
    accelerator.print(f"plain {plain / 1e3:.0f} kB per step, onebit+ef {compressed / 1e3:.0f} kB")
    accelerator.print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f}")
    accelerator.end_training()
    assert compressed * 10 < plain, "compression saved less than 10 times"
    assert losses[-1] < 0.7 * losses[0], "the loss did not fall"


if __name__ == "__main__":
    main()

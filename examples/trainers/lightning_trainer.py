"""Lightning's Trainer: a callback attaches, or starts LocalSGD; 25 and 250 times fewer bytes are sent.

torchrun --standalone --nproc-per-node 2 examples/trainers/lightning_trainer.py
"""

from contextlib import nullcontext
from functools import partial

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import talka.train
from talka.engine.traffic import sent_bytes

ATTACH = partial(talka.train.attach, compressor="onebit+ef")  # the one line
LOCAL_SGD = partial(talka.train.LocalSGD, every=10, compressor="onebit+ef")  # or this one


class Exchange(L.Callback):
    def on_train_start(self, trainer, module):
        self.before, ddp, optimizer = sent_bytes(), trainer.strategy.model, trainer.optimizers[0]
        self.rhythm = self.start(ddp, optimizer=optimizer) if self.start else nullcontext()
        self.rhythm.__enter__()

    def on_train_end(self, trainer, module):
        self.rhythm.__exit__(None, None, None)
        self.bytes_per_step = (sent_bytes() - self.before) / trainer.global_step


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 512), nn.Linear(512, 512), nn.Linear(512, 10))

    def training_step(self, batch, _):
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.02, momentum=0.9)


def train(num_steps, start=None):
    x = torch.randn(64 * num_steps, 64, generator=torch.manual_seed(0))
    module, callback = Net(), Exchange()
    callback.start, module.losses = start, []
    quiet = dict.fromkeys(["logger", "enable_checkpointing", "enable_progress_bar"], False)
    trainer = L.Trainer(accelerator="cpu", devices=2, max_epochs=1, callbacks=callback, **quiet)
    trainer.fit(module, DataLoader(TensorDataset(x, x[:, :10].argmax(dim=1)), batch_size=32))
    return module.losses, callback.bytes_per_step


if __name__ == "__main__":
    plain, attached, local = train(5), train(60, ATTACH), train(60, LOCAL_SGD)
    print(f"bytes: plain {plain[1]:.0f}, onebit+ef {attached[1]:.0f}, LocalSGD {local[1]:.0f}")
    assert max(10 * attached[1], 40 * local[1]) < plain[1], "too many bytes were sent"
    assert max(attached[0][-1], local[0][-1]) < 0.7 * plain[0][0], "the loss did not fall"

"""Lightning's Trainer: a callback attaches after the strategy has created the DDP model.

    torchrun --standalone --nproc-per-node 2 examples/trainers/lightning_trainer.py

DDPStrategy's own `ddp_comm_hook` does nothing without CUDA. You should see about 25 times fewer bytes.
"""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import talka.train
from talka.engine.traffic import sent_bytes


class Compression(L.Callback):
    def __init__(self, compressor):
        self.compressor = compressor

    def on_train_start(self, trainer, module):
        ddp, optimizer = trainer.strategy.model, trainer.optimizers[0]
        if self.compressor is not None:
            talka.train.attach(ddp, self.compressor, optimizer=optimizer)  # the one line
        self.before = sent_bytes()

    def on_train_end(self, trainer, module):
        self.bytes_per_step = (sent_bytes() - self.before) / trainer.global_step


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 512), nn.Linear(512, 512), nn.Linear(512, 10))
        self.losses = []

    def training_step(self, batch, _):
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.02, momentum=0.9)


def train(num_steps, compressor=None):
    torch.manual_seed(0)
    x = torch.randn(64 * num_steps, 64)
    module, callback = Net(), Compression(compressor)
    quiet = dict.fromkeys(["logger", "enable_checkpointing", "enable_progress_bar"], False)
    trainer = L.Trainer(accelerator="cpu", devices=2, max_epochs=1, callbacks=callback, **quiet)
    trainer.fit(module, DataLoader(TensorDataset(x, x[:, :10].argmax(dim=1)), batch_size=32))
    return module.losses, callback.bytes_per_step


if __name__ == "__main__":
    (_, plain), (losses, compressed) = train(5), train(60, "onebit+ef")
    print(f"plain {plain:.0f} bytes per step, onebit+ef {compressed:.0f}, loss {losses[-1]:.2f}")
    assert compressed * 10 < plain, "compression saved less than 10 times"
    assert losses[-1] < 0.7 * losses[0], "the loss did not fall"

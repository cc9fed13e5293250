"""A loop as in nanoGPT: several passes per step (`no_sync`), clipped gradients, Adam, characters.

    torchrun --standalone --nproc-per-node 2 examples/trainers/nanogpt_loop.py

FrozenAdam combines Adam with compression: it exchanges whole gradients during the warm-up, then
compressed momentum, which is also clipped. You should see about 25 times fewer bytes sent then.
"""

import contextlib
import inspect

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import talka.train
from talka.engine.traffic import sent_bytes

TEXT = torch.tensor([ord(letter) % 128 for letter in inspect.getsource(inspect)])
WARMUP_STEPS, NUM_PASSES, LENGTH, WIDTH = 15, 2, 64, 128


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.letters, self.places = nn.Embedding(128, WIDTH), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 512, 0.0, batch_first=True)
        self.blocks, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(WIDTH, 128)

    def forward(self, x, y):
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
        hidden = self.blocks(self.letters(x) + self.places.weight, mask, is_causal=True)
        return nn.functional.cross_entropy(self.head(hidden).flatten(0, 1), y.flatten())


if __name__ == "__main__":
    dist.init_process_group("gloo")
    ddp = DistributedDataParallel(Gpt())
    optimizer = talka.train.FrozenAdam(ddp.parameters(), lr=1e-3, warmup_steps=WARMUP_STEPS)
    talka.train.attach(ddp, "onebit+ef", optimizer=optimizer)  # the one line
    generator, losses, counts = torch.Generator().manual_seed(dist.get_rank()), [], []
    for _ in range(50):
        counts.append(sent_bytes())
        for number in range(NUM_PASSES):
            starts = torch.randint(0, len(TEXT) - LENGTH, (8,), generator=generator)
            batch = torch.stack([TEXT[start : start + LENGTH + 1] for start in starts])
            with contextlib.nullcontext() if number == NUM_PASSES - 1 else ddp.no_sync():
                loss = ddp(batch[:, :-1], batch[:, 1:])
                (loss / NUM_PASSES).backward()
        nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    dist.destroy_process_group()
    whole, compressed = counts[12] - counts[2], counts[45] - counts[35]
    print(f"10 whole steps {whole} bytes, 10 later ones {compressed}, loss {losses[-1]:.2f}")
    assert compressed * 10 < whole, "compression saved less than 10 times"
    assert losses[-1] < min(0.7 * losses[0], losses[WARMUP_STEPS]), "the loss did not fall"

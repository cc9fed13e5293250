"""The Trainer of transformers: a callback attaches, or starts LocalSGD, when training starts.

    torchrun --standalone --nproc-per-node 2 examples/trainers/transformers_trainer.py

A tiny GPT-2 learns to repeat; nothing is downloaded. You should see 25 and 250 times fewer bytes.
"""

import tempfile
from contextlib import nullcontext
from functools import partial

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

import talka.train
from talka.engine.traffic import sent_bytes

ATTACH = partial(talka.train.attach, compressor="onebit+ef")  # the one line
LOCAL_SGD = partial(talka.train.LocalSGD, every=10, compressor="onebit+ef")  # or this one

CONFIG = GPT2Config(vocab_size=64, n_embd=128, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0)


class Exchange(TrainerCallback):
    def on_train_begin(self, args, state, control, optimizer=None, **_):
        self.before, ddp = sent_bytes(), self.trainer.model_wrapped
        self.rhythm = self.start(ddp, optimizer=optimizer) if self.start else nullcontext()
        self.rhythm.__enter__()

    def on_train_end(self, args, state, control, **_):
        self.rhythm.__exit__(None, None, None)
        self.bytes_per_step = (sent_bytes() - self.before) / state.global_step


def examples(num_steps):
    """Return texts of four tokens, again and again: 8 texts per step and process."""
    starts = torch.randint(0, 64, (16 * num_steps, 4), generator=torch.Generator().manual_seed(1))
    return [{"input_ids": start.repeat(8), "labels": start.repeat(8)} for start in starts]


def train(folder, num_steps, start=None):
    torch.manual_seed(0)
    model, callback = GPT2LMHeadModel(CONFIG), Exchange()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    quiet = {"report_to": [], "save_strategy": "no", "disable_tqdm": True, "logging_steps": 5}
    options = TrainingArguments(folder, use_cpu=True, num_train_epochs=1, **quiet)
    data = {"train_dataset": examples(num_steps), "optimizers": (optimizer, None)}
    callback.start, callback.trainer = start, Trainer(model, options, callbacks=[callback], **data)
    callback.trainer.train()
    losses = [entry["loss"] for entry in callback.trainer.state.log_history if "loss" in entry]
    return losses, callback.bytes_per_step


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        (_, plain), (losses, compressed) = train(folder, 5), train(folder, 60, ATTACH)
        local_losses, local = train(folder, 60, LOCAL_SGD)
    print(f"bytes: plain {plain:.0f}, onebit+ef {compressed:.0f}, LocalSGD {local:.0f}")
    assert max(compressed * 10, local * 40) < plain, "too many bytes were sent"
    assert max(losses[-1], local_losses[-1]) < 0.9 * losses[0], "the loss did not fall"

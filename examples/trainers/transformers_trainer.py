"""The Trainer of transformers: a callback attaches at the start of training.

    torchrun --standalone --nproc-per-node 2 examples/trainers/transformers_trainer.py

A tiny GPT-2 with random weights learns to repeat; nothing is downloaded. You should see that the loss
falls, and about 25 times fewer bytes sent per step.
"""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

import talka.train
from talka.engine.traffic import sent_bytes

CONFIG = GPT2Config(vocab_size=64, n_embd=128, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0)


class Compression(TrainerCallback):
    def __init__(self, compressor=None):
        self.compressor = compressor

    def on_train_begin(self, args, state, control, optimizer=None, **_):
        ddp = self.trainer.model_wrapped
        if self.compressor is not None:
            talka.train.attach(ddp, self.compressor, optimizer=optimizer)  # the one line
        self.before = sent_bytes()

    def on_train_end(self, args, state, control, **_):
        self.bytes_per_step = (sent_bytes() - self.before) / state.global_step


def examples(num_steps):
    """Return texts of four tokens, again and again: 8 texts per step and process."""
    starts = torch.randint(0, 64, (16 * num_steps, 4), generator=torch.Generator().manual_seed(1))
    return [{"input_ids": start.repeat(8), "labels": start.repeat(8)} for start in starts]


def train(folder, num_steps, compressor=None):
    torch.manual_seed(0)
    model, callback = GPT2LMHeadModel(CONFIG), Compression(compressor)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    quiet = {"report_to": [], "save_strategy": "no", "disable_tqdm": True, "logging_steps": 5}
    options = TrainingArguments(folder, use_cpu=True, num_train_epochs=1, **quiet)
    data = {"train_dataset": examples(num_steps), "optimizers": (optimizer, None)}
    callback.trainer = Trainer(model, options, callbacks=[callback], **data)
    callback.trainer.train()
    losses = [entry["loss"] for entry in callback.trainer.state.log_history if "loss" in entry]
    return losses, callback.bytes_per_step


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        (_, plain), (losses, compressed) = train(folder, 5), train(folder, 60, "onebit+ef")
    print(f"plain {plain:.0f} bytes per step, onebit+ef {compressed:.0f}, loss {losses[-1]:.2f}")
    assert compressed * 10 < plain, "compression saved less than 10 times"
    assert losses[-1] < 0.9 * losses[0], "the loss did not fall"

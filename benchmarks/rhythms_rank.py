"""One rank of `benchmarks.rhythms`: trains with one rhythm until an accuracy or a number of steps.

Started by the lab, which sets RANK and the other variables; alone, it is one process with all cores.
Rank 0 writes the measurements as JSON. The clock stops while rank 0 looks at the test images.
"""

import argparse
import contextlib
import copy
import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import (
    PostLocalSGDState,
    post_localSGD_hook,
)
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.nn.parallel import DistributedDataParallel

import talka
from benchmarks.models import MODELS
from benchmarks.parity import images
from benchmarks.slow_network_rank import interface_bytes

WARM_UP_STEPS = 50
"""Steps in which the learning rate grows to its value."""


class Training:
    """A model, its optimizer and a rhythm, which is one of talka or of torch."""

    def __init__(self, config, num_workers):
        self.config, self.shares = config, None
        self.model = MODELS[config["model"]]()
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=config["lr"], momentum=config["momentum"]
        )
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min(1.0, (step + 1) / WARM_UP_STEPS)
        )
        self.forward, self.context = self.model, contextlib.nullcontext()
        kind = config["kind"]
        if kind.startswith("ddp") or kind == "post-local-sgd":
            self.forward = DistributedDataParallel(self.model)
        if kind == "ddp fp16 hook":
            self.forward.register_comm_hook(None, default_hooks.fp16_compress_hook)
        elif kind == "post-local-sgd":
            state = PostLocalSGDState(
                None, None, start_localSGD_iter=1, post_local_gradient_allreduce=False
            )
            self.forward.register_comm_hook(state, post_localSGD_hook)
            averager = PeriodicModelAverager(period=config["options"]["every"], warmup_steps=1)
            self.optimizer = PostLocalSGDOptimizer(optim=self.optimizer, averager=averager)
        elif kind in ("EveryStep", "Delayed", "LocalSGD"):
            options = dict(config["options"])
            if "shares" in options:
                is_measured = options["shares"] == "measured"
                self.shares = talka.train.Shares(config["batch"], measured=is_measured)
                options["shares"] = self.shares
            self.context = getattr(talka.train, kind)(self.model, self.optimizer, **options)

    def step(self, x, y):
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.forward(x), y).backward()
        self.optimizer.step()
        self.schedule.step()


def batches(config, shares, num_samples, rank, num_workers):
    """Yield the indices of this worker's samples, batch by batch, without an end."""
    if shares is not None:
        sampler = shares.sampler(range(num_samples))
        while True:
            yield from sampler
    order = torch.Generator().manual_seed(config["seed"])
    while True:
        shuffled = torch.randperm(num_samples, generator=order)
        for start in range(0, num_samples - config["batch"] + 1, config["batch"]):
            yield shuffled[start + rank : start + config["batch"] : num_workers]


def accuracy(model, pixels, classes):
    with torch.no_grad():
        found = [model(part).argmax(1) for part in pixels.split(1000)]
    return float((torch.cat(found) == classes).double().mean())


def train(config, rank, num_workers, data, test):
    """Return what was measured; the numbers of the first steps are kept apart."""
    training = Training(config, num_workers)
    rows, seconds, num_steps, start_bytes = [], 0.0, 0, _bytes(num_workers)
    with training.context as rhythm:
        draws = batches(config, training.shares, len(data[0]), rank, num_workers)
        _barrier(num_workers)
        began = time.perf_counter()
        while num_steps < config["max_steps"]:
            indices = next(draws)
            training.step(data[0][indices], data[1][indices])
            num_steps += 1
            if num_steps % config["check_every"] == 0:
                _barrier(num_workers)
                seconds += time.perf_counter() - began
                reached = accuracy(training.model, *test) if rank == 0 and test else 0.0
                rows.append([num_steps, seconds, reached, _bytes(num_workers) - start_bytes])
                if _from_rank_0(reached, num_workers) >= config["target"]:
                    break
                _barrier(num_workers)
                began = time.perf_counter()
    stats = rhythm.stats() if rhythm is not None else {}
    shares = None if training.shares is None else training.shares.counts
    return {"rows": rows, "stats": stats, "shares": shares}


def _bytes(num_workers):
    return interface_bytes() if num_workers > 1 else 0


def _barrier(num_workers):
    if num_workers > 1:
        dist.barrier()


def _from_rank_0(value, num_workers):
    answer = torch.tensor([value])
    if num_workers > 1:
        dist.broadcast(answer, 0)
    return float(answer)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    config = json.loads(args.config)
    num_workers = int(os.environ.get("WORLD_SIZE", 1))
    torch.set_num_threads(1 if num_workers > 1 else os.cpu_count())
    if num_workers > 1:
        dist.init_process_group("gloo")
    rank = dist.get_rank() if num_workers > 1 else 0
    data = [torch.from_numpy(one) for one in images("train", config["images"])]
    test = [torch.from_numpy(one) for one in images("t10k", min(10_000, config["images"]))]
    brief = {**copy.deepcopy(config), "max_steps": 4, "check_every": 4, "target": 2.0}
    train(brief, rank, num_workers, data, None)  # compile, connect, load
    measured = train(config, rank, num_workers, data, test if config["target"] <= 1 else None)
    if num_workers > 1:
        of_ranks = [None] * num_workers
        dist.all_gather_object(of_ranks, measured)
    else:
        of_ranks = [measured]
    if rank == 0:
        args.out.write_text(json.dumps(of_ranks))
    if num_workers > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

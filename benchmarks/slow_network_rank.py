"""One rank of `benchmarks.slow_network`: every mode in turns, in the same processes.

Started by the lab, which sets RANK and the other variables. Rank 0 writes its measurements as JSON.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import talka.train
from benchmarks.models import BATCH, MODELS
from talka.compress import layout_of
from talka.exchange import predict, probe
from talka.train.codec_rates import measure_codec
from talka.train.predictions import predict_steps


def bf16_hook(state, bucket):
    """Call PyTorch's hook; DDP accepts it by name only on GPUs."""
    return default_hooks.bf16_compress_hook(state, bucket)


PEERS = {
    "ddp": None,
    "ddp fp16 hook": default_hooks.fp16_compress_hook,
    "ddp bf16 hook": bf16_hook,
}
ALONE = "no communication"
NEXT_TO_NOTHING = (
    "next to nothing"  # all that an exchange takes but bytes: waiting, waking, copying
)
POWERSGD = "ddp powersgd:4 hook"


class Mode:
    """A model, an optimizer, and a way to exchange gradients."""

    def __init__(self, name, make):
        self.name, self.hook = name, None
        self.ddp = DistributedDataParallel(make())
        rate = 0.0 if name == NEXT_TO_NOTHING else 0.01  # that one has nothing to learn from
        self.optimizer = torch.optim.SGD(self.ddp.parameters(), lr=rate, momentum=0.9)
        if name == POWERSGD:
            state = powerSGD_hook.PowerSGDState(
                None, matrix_approximation_rank=4, start_powerSGD_iter=2
            )
            self.ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        elif PEERS.get(name) is not None:
            self.ddp.register_comm_hook(None, PEERS[name])
        elif name == NEXT_TO_NOTHING:
            self.hook = talka.train.attach(self.ddp, "randomk:0.00001", "two-phase")
        elif name not in PEERS and name != ALONE:
            self.hook = talka.train.attach(self.ddp, name)

    def step(self, x, y):
        self.optimizer.zero_grad()
        if self.name == ALONE:
            with self.ddp.no_sync():
                nn.functional.cross_entropy(self.ddp(x), y).backward()
        else:
            nn.functional.cross_entropy(self.ddp(x), y).backward()
        self.optimizer.step()


def gradient(model, batch):
    """Return the first gradient, flattened, as it is available before the run."""
    x, y = batch
    nn.functional.cross_entropy(model(x), y).backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def interface_bytes():
    """Return the bytes that passed the queue of the link, including frame headers."""
    tc = shutil.which("tc", path="/usr/sbin:/sbin:/usr/bin:/bin")
    done = subprocess.run([tc, "-s", "-j", "qdisc", "show"], capture_output=True, check=True)
    return sum(row["bytes"] for row in json.loads(done.stdout) if row["kind"] == "tbf")


def measure(mode, num_steps, batch):
    """Return seconds and bytes of all hosts per step, and the bytes counted by the hook."""
    dist.barrier()
    before = mode.hook.stats() if mode.hook else {}
    bytes_before = interface_bytes()
    dist.barrier()
    start = time.perf_counter()
    for _ in range(num_steps):
        mode.step(*batch)
    dist.barrier()
    seconds = (time.perf_counter() - start) / num_steps
    counted = torch.tensor([float(interface_bytes() - bytes_before)])
    after = mode.hook.stats() if mode.hook else {}
    account = {key: (after[key] - before[key]) / num_steps for key in before}
    sent = torch.tensor([account.get("sent_bytes", 0.0)])
    dist.all_reduce(counted)
    dist.all_reduce(sent)
    account["sent_bytes"] = float(sent)
    return {"seconds": seconds, "interface_bytes": float(counted) / num_steps, **account}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--modes", nargs="+", required=True)
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="of a measurement, about")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    make = MODELS[args.model]
    rank, size = dist.get_rank(), dist.get_world_size()
    generator = torch.Generator().manual_seed(rank)
    batch = torch.randn(BATCH, 1, 28, 28, generator=generator), torch.arange(BATCH) % 10

    modes = {name: Mode(name, make) for name in [ALONE, NEXT_TO_NOTHING, *args.modes]}
    counts = {}
    for name, mode in modes.items():  # compile, regroup buckets, learn what a step takes
        for _ in range(4):
            mode.step(*batch)
        slowest = torch.tensor([measure(mode, 2, batch)["seconds"]])
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        counts[name] = max(2, min(50, round(args.seconds / float(slowest))))
    rows = {name: [] for name in modes}
    for _ in range(args.repeats):
        for name, mode in modes.items():
            rows[name].append(measure(mode, counts[name], batch))

    network = probe(seconds=max(0.2, args.seconds)).network()
    shapes = {name: tuple(one.shape) for name, one in make().named_parameters()}
    layout = layout_of(shapes)
    specs = [name for name, mode in modes.items() if mode.hook and name != NEXT_TO_NOTHING]
    dist.barrier()
    # On all ranks at once, as in training: they share the cores.
    sample = gradient(make(), batch)
    rates = {spec: measure_codec(spec, layout[-1].stop, sample) for spec in specs}
    compute_s = statistics.median(row["seconds"] for row in rows[NEXT_TO_NOTHING])
    predictions = predict_steps(
        layout, network, compute_s=compute_s, specs=specs, codec_rates=rates.get, sample=sample
    )
    if rank == 0:
        answer = {
            "num_workers": size,
            "parameters": layout[-1].stop,
            "rows": rows,
            "predicted_s": {
                one.spec: way.step_s
                for one in predictions
                for way in (one, *one.alternatives)
                if way.exchange == modes[one.spec].hook.exchange.name
            },
            "predicted_bytes": {
                name: predict(mode.hook.exchange, layout, None).sent_bytes
                for name, mode in modes.items()
                if mode.hook
            },
        }
        args.out.write_text(json.dumps(answer))
    dist.barrier()
    for mode in modes.values():
        if mode.hook:
            mode.hook.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""One rank of `benchmarks.rhythm_predictions`: price each rhythm, then train with it.

Started by the lab, which sets RANK and the other variables. Rank 0 writes one JSON line per cell as soon
as it is measured, so a failure keeps those before it.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

import talka
from benchmarks.explain_exchanges_rank import Gradients, largest, mean
from benchmarks.models import BATCH, MODELS
from talka.exchange import EXCHANGES, CodecRates, probe
from talka.exchange.registry import default_name
from talka.train.codec_rates import measure_codec
from talka.train.codecs import attached_codec
from talka.train.rhythms.pricing import rhythm_price
from talka.train.rhythms.short_forms import rhythm_of as config_of

NUM_WARM_UPS = 2
"""Rounds before a measurement: compile, allocate, fill residuals."""
MIN_ROUNDS, MAX_STEPS = 1, 300
MIN_DELAYED_STEPS = 10
"""Steps of a measurement with a delay: its first one does not wait."""
REPEATS = 3
"""Measurements of a cell, of which the median counts."""


class Loop:
    """A training loop with a model of its own."""

    def __init__(self, model):
        self.model = MODELS[model]()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        generator = torch.Generator().manual_seed(dist.get_rank())
        self._x = torch.randn(BATCH, 1, 28, 28, generator=generator)
        self._y = torch.arange(BATCH) % 10

    def steps(self, num_steps):
        for _ in range(num_steps):
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(self._x), self._y).backward()
            self.optimizer.step()

    def step_s(self, num_steps):
        """Return the seconds per step; all ranks start at once, and the last one counts."""
        dist.barrier()
        start = time.perf_counter()
        self.steps(num_steps)
        return largest(time.perf_counter() - start) / num_steps


def rhythm_of(form, loop, compressor):
    """Return the rhythm of talka with a short form."""
    options = {"compressor": compressor}
    if form.name == "every-step":
        return talka.train.EveryStep(loop.model, loop.optimizer, **options)
    if form.name == "delayed":
        return talka.train.Delayed(loop.model, loop.optimizer, delay=form.steps, **options)
    return talka.train.LocalSGD(loop.model, loop.optimizer, every=form.steps, **options)


def codec_rates(spec, sample):
    """Return the mean of the rates that all ranks measure at the same time."""
    dist.barrier()
    return CodecRates(*(mean(rate) for rate in measure_codec(spec, sample.numel(), sample)))


def measure(form, price, alone, args):
    """Return the cell of a rhythm and a compressor; computing is measured in turns with it."""
    predicted = rhythm_price(form, price, alone.step_s(5))
    period = predicted.steps_per_round
    loop = Loop(args.model)
    wanted = args.seconds / REPEATS / predicted.step_s
    num_rounds = round(largest(max(MIN_ROUNDS, min(wanted, MAX_STEPS) / period)))
    if form.name == "delayed":
        num_rounds = max(num_rounds, MIN_DELAYED_STEPS)
    num_steps = num_rounds * period
    num_alone = max(3, round(args.seconds / REPEATS / predicted.compute_s / 2))
    num_alone = round(largest(num_alone))
    seconds, computing = [], []
    with rhythm_of(form, loop, price.spec) as rhythm:
        loop.steps(NUM_WARM_UPS * period)
        for _ in range(REPEATS):
            seconds.append(loop.step_s(num_steps))
            computing.append(alone.step_s(num_alone))
    compute_s = statistics.median(computing)
    predicted = rhythm_price(form, price, compute_s)
    sent_bytes = rhythm.stats()["sent_bytes"] / rhythm.replica.num_steps
    return {
        "rhythm": str(form),
        "compressor": price.spec,
        "predicted_bytes": predicted.total_bytes / period,
        "measured_bytes": mean(sent_bytes) * dist.get_world_size(),
        "predicted_s": predicted.step_s,
        "measured_s": statistics.median(seconds),
        "compute_s": compute_s,
        "codec_s": predicted.codec_s,
        "network_s": predicted.network_s,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--rhythms", nargs="+", required=True)
    parser.add_argument("--compressors", nargs="+", required=True)
    parser.add_argument("--seconds", type=float, required=True, help="of a measurement, about")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    network = probe(seconds=max(0.2, args.seconds)).network()
    gradients = Gradients(args.model)
    layout, sample = gradients.layout, gradients.next()
    alone = Loop(args.model)
    alone.steps(3)
    for spec in args.compressors:
        codec = attached_codec(spec)
        rates = codec_rates(spec, sample)
        exchange = EXCHANGES[default_name(codec, dist.get_world_size())]
        price = exchange.price(codec, layout, network, rates)
        for name in args.rhythms:
            cell = measure(config_of(name), price, alone, args)
            if dist.get_rank() == 0:
                with args.out.open("a") as file:
                    file.write(json.dumps(cell) + "\n")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

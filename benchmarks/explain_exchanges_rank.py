"""One rank of `benchmarks.explain_exchanges`: price each exchange, then average gradients with it.

Started by the lab, which sets RANK and the other variables. Rank 0 writes one JSON line per compressor
as soon as it is measured, so a failure keeps those before it.
"""

import argparse
import json
import statistics
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

from benchmarks.models import BATCH, MODELS
from talka.compress import layout_of
from talka.exchange import EXCHANGES, CodecRates, Meter, open_exchange, probe
from talka.exchange.registry import default_name
from talka.machine import num_cores
from talka.train.codec_rates import measure_codec
from talka.train.codecs import attached_codec

NUM_WARM_UPS = 2  # compile, allocate, fill residuals
MIN_STEPS, MAX_STEPS = 3, 20


class Gradients:
    """Gradients of a model, one batch after another."""

    def __init__(self, model):
        self.model = MODELS[model]()
        shapes = {name: tuple(value.shape) for name, value in self.model.named_parameters()}
        self.layout = layout_of(shapes)
        self._generator = torch.Generator().manual_seed(dist.get_rank())

    def next(self):
        x = torch.randn(BATCH, 1, 28, 28, generator=self._generator)
        y = torch.randint(10, (BATCH,), generator=self._generator)
        self.model.zero_grad()
        nn.functional.cross_entropy(self.model(x), y).backward()
        return torch.cat([parameter.grad.flatten() for parameter in self.model.parameters()])


def one_average(exchange, gradients):
    """Return the bytes that all ranks sent, and the meter of this rank; all ranks start at once."""
    values, before = gradients.next(), exchange.meter.copy()
    dist.barrier()
    exchange.average(values, gradients.layout).wait()
    measured = exchange.meter.copy() - before
    sent = torch.tensor([measured.sent_bytes], dtype=torch.float64)
    dist.all_reduce(sent)
    return float(sent), measured


def seconds_of(meter: Meter) -> float:
    return meter.encode_s + meter.wait_s + meter.decode_s


def largest(value):
    """Return the largest value of all ranks."""
    shared = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(shared, op=dist.ReduceOp.MAX)
    return float(shared)


def mean(value):
    """Return the mean of the values of all ranks."""
    shared = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(shared)
    return float(shared) / dist.get_world_size()


def shared_rates(spec, num_values):
    """Return the rates of one rank while the others wait, times the ranks that share a core."""
    rates = torch.zeros(3, dtype=torch.float64)
    if dist.get_rank() == 0:
        rates += torch.tensor(measure_codec(spec, num_values), dtype=torch.float64)
    dist.all_reduce(rates)
    return CodecRates(*(rates * max(1.0, dist.get_world_size() / num_cores())).tolist())


def measure(spec, gradients, network, seconds):
    """Return the cell of a compressor: predicted and measured bytes and seconds."""
    num_values = gradients.layout[-1].stop
    codec = attached_codec(spec)
    name = default_name(codec, dist.get_world_size())
    rates = shared_rates(spec, num_values)
    price = EXCHANGES[name].price(codec, gradients.layout, network, rates)
    exchange = open_exchange(codec)
    assert exchange.name == name
    for _ in range(NUM_WARM_UPS):
        _, first = one_average(exchange, gradients)
    num_steps = round(seconds / largest(seconds_of(first)))
    num_steps = max(MIN_STEPS, min(MAX_STEPS, num_steps))
    steps = [one_average(exchange, gradients) for _ in range(num_steps)]
    exchange.close()
    meters = [meter for _, meter in steps]
    return {
        "compressor": spec,
        "exchange": name,
        "num_steps": num_steps,
        "predicted_bytes": price.sent_bytes,
        "measured_bytes": statistics.fmean(sent for sent, _ in steps),
        "predicted_s": price.seconds,
        "measured_s": statistics.median(mean(seconds_of(meter)) for meter in meters),
        "predicted_network_s": price.network_s,
        "encode_s": statistics.median(meter.encode_s for meter in meters),
        "wait_s": statistics.median(meter.wait_s for meter in meters),
        "decode_s": statistics.median(meter.decode_s for meter in meters),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--compressors", nargs="+", required=True)
    parser.add_argument("--seconds", type=float, required=True, help="of a measurement, about")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    network = probe(seconds=args.seconds).network()
    gradients = Gradients(args.model)
    for spec in args.compressors:
        cell = measure(spec, gradients, network, args.seconds)
        if dist.get_rank() == 0:
            with args.out.open("a") as file:
                file.write(json.dumps(cell) + "\n")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

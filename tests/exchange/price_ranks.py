"""Ranks of the tests of prices: sent bytes of real exchanges."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from talka.compress import layout_of
from talka.exchange import open_exchange
from talka.train import attach
from talka.train.codecs import attached_codec

SHAPES = {"embedding": (2000, 64), "first.weight": (128, 300), "first.bias": (128,)}
for number in range(12):  # a few large parameters, and many small ones
    SHAPES |= {
        f"{number}.norm": (64,),
        f"{number}.weight": (64, 64),
        f"{number}.bias": (300,),
    }
LAYOUT = layout_of(SHAPES)


def sent_bytes(worker, specs, num_steps):
    """Average gaussian vectors with the default exchanges; return their names and sent bytes."""
    generator = torch.Generator().manual_seed(worker.rank)
    answers = {}
    for spec in specs:
        exchange = open_exchange(attached_codec(spec))
        for _ in range(num_steps):
            values = torch.randn(LAYOUT[-1].stop, generator=generator)
            exchange.average(values, LAYOUT).wait()
        answers[spec] = [exchange.name, exchange.meter.sent_bytes / num_steps]
        exchange.close()
    return answers


def attached_exchanges(worker, compressor, networks):
    """Return the names of the exchanges that `attach` opens, given each of the networks."""
    names = []
    for network in networks:
        ddp = DistributedDataParallel(nn.Linear(100, 10))
        with attach(ddp, compressor, network=network) as hook:
            names.append(hook.exchange.name)
    return names

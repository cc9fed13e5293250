"""Write a compressor, 8 bits per value, and train with it: python examples/own_compressor.py"""

import numpy as np
import torch

from talka.compress import SectionCompressor, register
from talka.engine import Embedded
from talka.errors import PayloadError
from talka.train import attach


class EightBits(SectionCompressor):
    name, contracts = "eightbits", True  # it never loses more than a value: "+ef" is allowed

    def encode_section(self, values, residual, piece, draw, room):
        wanted = values if residual is None else values + residual
        step = np.abs(wanted).max(initial=1e-30) / np.float32(127)
        levels = np.rint(wanted / step).astype(np.int8)
        room[:4].view(np.float32)[0], room[4 : 4 + len(levels)] = step, levels.view(np.uint8)
        np.subtract(wanted, levels * step, out=residual)  # the loss is added to the next values
        return 4 + len(levels)

    def decode_section(self, body, out, *, add, scale):
        if len(body) != 4 + len(out):
            raise PayloadError(f"has {len(body)} bytes for {len(out)} values")
        out[:] = scale * (body[4:].view(np.int8) * body[:4].view(np.float32)) + (out if add else 0)

    def section_max_bytes(self, num_values):
        return 4 + num_values


def train(worker):
    register("eightbits", EightBits.parse)  # or, without a name: attach(ddp, EightBits())
    ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1000, 10))
    hook = attach(ddp, "eightbits+ef")
    ddp(torch.randn(16, 1000)).square().mean().backward()
    assert hook.stats()["sent_bytes"] < 1.05 * 10_010, "one byte per value instead of four"


Embedded().gang(train, size=2)

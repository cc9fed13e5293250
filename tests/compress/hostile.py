"""Payloads of a sender who means harm: every checksum is right, nothing else has to be.

As a script it checks, under NUMBA_BOUNDSCHECK=1, that no kernel looks outside of its arrays:

    NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=/tmp/checked python -m tests.compress.hostile [SPEC...]
"""

import struct
import sys
import time

import numpy as np
import torch

from talka.compress import Payload, compressor, layout_of
from talka.compress.bits.lanes import compiled, load, store
from talka.compress.payload import HEADER, SECTION, VERSION, seal_of
from talka.errors import PayloadError
from tests.compress.sparse_cases import vector
from tests.compress.specs import PLAIN
from tests.compress.test_elias import refuse_forged_marks

EXTREMES = [
    0,
    1,
    2,
    7,
    8,
    31,
    32,
    255,
    256,
    1 << 16,
    1 << 28,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
]


def sealed(data):
    """The bytes with the checksum that they should have."""
    data = bytearray(data)
    struct.pack_into("<I", data, 4, seal_of(np.frombuffer(data, np.uint8)))
    return bytes(data)


def wrapped(code, num_values, body):
    """A payload of one section."""
    body = bytes(body) + bytes(-len(body) % 4)
    head = HEADER.pack(b"tk", VERSION, code, 0, num_values, HEADER.size + SECTION.size + len(body))
    return sealed(head + SECTION.pack(num_values, len(body)) + body)


def attempt(one, data, num_values):
    """Decode; True if it was refused. Anything else than a PayloadError comes through."""
    out = torch.zeros(num_values)
    try:
        one.decode(Payload.from_bytes(data), out)
    except PayloadError:
        return True
    return False


def mutated(data, rng):
    """A payload with some of its bytes or words changed, or its body cut or longer, and sealed."""
    body = bytearray(data[HEADER.size + SECTION.size :])
    num_values, _ = SECTION.unpack_from(data, HEADER.size)
    for _ in range(rng.integers(1, 4)):
        way = rng.integers(0, 5)
        if way == 0 and body:
            body[rng.integers(len(body))] ^= 1 << rng.integers(8)
        elif way == 1 and len(body) >= 4:
            word = int(rng.choice(EXTREMES)) + int(rng.integers(-2, 3))
            struct.pack_into("<I", body, 4 * int(rng.integers(len(body) // 4)), word & 0xFFFFFFFF)
        elif way == 2 and len(body) >= 4:  # heads are where lengths stand
            word = int(rng.choice([*EXTREMES, int(rng.integers(0, 1 << 32))]))
            place = 4 * int(rng.integers(min(6, len(body) // 4)))
            struct.pack_into("<I", body, place, word & 0xFFFFFFFF)
        elif way == 3:
            del body[int(rng.integers(0, len(body) + 1)) :]
        else:
            body += rng.bytes(int(rng.integers(1, 40)))
    return wrapped(data[3], num_values, body)


def attack(spec, *, seconds, seed=0):
    """Random changes of real payloads, for so long; how many were tried and how many refused."""
    rng, end = np.random.default_rng(seed), time.monotonic() + seconds
    tried = refused = 0
    while time.monotonic() < end:
        num_values = int(rng.choice([1, 3, 17, 100, 600, 2000, 70_000]))
        kind = str(rng.choice(["gaussian", "heavy", "few", "zeros", "ties"]))
        one = compressor(spec)
        data = bytes(one.encode(torch.from_numpy(vector(kind, num_values, tried))).data.numpy())
        for _ in range(50):
            refused += attempt(one, mutated(data, rng), num_values)
            tried += 1
    return tried, refused


def roundtrip(spec):
    """Sizes around all blocks, with and without a residual, one matrix with rows of zeros."""
    for num_values in [*range(70), 500, 511, 512, 513, 1023, 1025, 4096, 5000, 70_000]:
        for kind in ("gaussian", "few"):
            values = torch.from_numpy(vector(kind, num_values, num_values))
            layout = layout_of({"w": (num_values // 9, 9), "rest": (num_values % 9,)})
            for form in (spec, f"{spec}+ef"):
                if form.endswith("+ef") and not compressor(spec).contracts:
                    continue
                one, out = compressor(form), torch.empty(num_values)
                for _ in range(2):
                    one.decode(one.encode(values, layout), out, layout)
                    one.decode(one.encode(values, layout), out, layout, add=True, scale=0.5)


def main():
    @compiled
    def beyond(array):
        store(array, 0, load(array, 1))

    try:
        beyond(np.zeros(16, np.float32))
    except IndexError:
        pass
    else:
        sys.exit("bounds are not checked")
    refuse_forged_marks(seed=2, repeats=200)
    for spec in sys.argv[1:] or PLAIN:
        roundtrip(spec)
        print(spec, *attack(spec, seconds=0.5))


if __name__ == "__main__":
    main()

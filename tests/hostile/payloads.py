"""Payloads of a sender who means harm: every checksum is right, nothing else has to be.

As a script it checks, under NUMBA_BOUNDSCHECK=1, that no kernel looks outside of its arrays:

    NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=/tmp/checked python -m tests.hostile.payloads [SPEC...]
"""

import functools
import itertools
import random
import struct
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from talka.compiled import compiled
from talka.compress import Payload, compressor, layout_of
from talka.compress.bits.lanes import load, store
from talka.compress.payload import HEADER, SECTION, VERSION, seal_of
from talka.errors import PayloadError
from tests.compress.sparse_cases import vector
from tests.compress.specs import PLAIN
from tests.compress.test_elias import refuse_forged_marks
from tests.hostile.outcome import Outcome

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
    if len(data) >= HEADER.size:
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


def mutated(data, chance):
    """A payload with some of its bytes or words changed, or its body cut or longer, and sealed."""
    body = bytearray(data[HEADER.size + SECTION.size :])
    num_values, _ = SECTION.unpack_from(data, HEADER.size)
    for _ in range(chance.randrange(1, 4)):
        way = chance.randrange(5)
        if way == 0 and body:
            body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
        elif way == 1 and len(body) >= 4:
            word = chance.choice(EXTREMES) + chance.randrange(-2, 3)
            struct.pack_into("<I", body, 4 * chance.randrange(len(body) // 4), word & 0xFFFFFFFF)
        elif way == 2 and len(body) >= 4:  # heads are where lengths stand
            word = chance.choice([*EXTREMES, chance.getrandbits(32)])
            place = 4 * chance.randrange(min(6, len(body) // 4))
            struct.pack_into("<I", body, place, word & 0xFFFFFFFF)
        elif way == 3:
            del body[chance.randrange(len(body) + 1) :]
        else:
            body += chance.randbytes(chance.randrange(1, 40))
    return wrapped(data[3], num_values, body)


def cut(data, chance):
    """The beginning of a payload; mostly with a header that says so, and sealed."""
    kept = bytearray(data[: chance.randrange(len(data))])
    if len(kept) >= HEADER.size and chance.random() < 0.8:
        struct.pack_into("<Q", kept, HEADER.size - 8, len(kept))
        return sealed(kept)
    return bytes(kept)


def flipped(data, chance):
    """Some bits changed anywhere, mostly sealed again."""
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 6)):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return sealed(changed) if chance.random() < 0.9 else bytes(changed)


def spliced(data, other, chance):
    """The header, or the header and section head, of one payload before the rest of another."""
    at = chance.choice([4, HEADER.size, HEADER.size + 4, HEADER.size + SECTION.size])
    joined = bytearray(data[:at] + other[at:])
    if chance.random() < 0.8:
        struct.pack_into("<Q", joined, HEADER.size - 8, len(joined))
    return sealed(joined)


class Base(NamedTuple):
    """A good payload, the compressor that made it, and the vector it is decoded into."""

    compressor: Any
    data: bytes
    layout: Any
    out: torch.Tensor


@functools.cache
def bases(spec):
    """Of vectors of several sizes and kinds, in one piece and in several."""
    made = []
    kinds = itertools.product((1, 17, 100, 600, 2000), ("gaussian", "few", "ties"))
    for num_values, kind in (*kinds, (70_000, "gaussian")):
        values = torch.from_numpy(vector(kind, num_values, num_values))
        rows = num_values // 9
        for layout in (None, layout_of({"w": (rows, 9), "rest": (num_values - 9 * rows,)})):
            one = compressor(spec)
            data = bytes(one.encode(values, layout).data.numpy())
            made.append(Base(one, data, layout, torch.zeros(num_values)))
    return made


def attack(rounds: int, seed: int, specs: Sequence[str] = PLAIN) -> Outcome:
    """Decode as many forged payloads; AssertionError with seed and round if one goes wrong."""
    accepted = refused = 0
    for number in range(rounds):
        chance = random.Random(f"{seed}/{number}")
        base = chance.choice(bases(chance.choice(specs)))
        way = chance.randrange(8)
        if way < 5:
            forged = mutated(base.data, chance)
        elif way == 5:
            forged = cut(base.data, chance)
        elif way == 6:
            forged = flipped(base.data, chance)
        else:
            forged = spliced(base.data, chance.choice(bases(chance.choice(specs))).data, chance)
        try:
            payload = Payload.from_bytes(forged)
            base.compressor.decode(
                payload, base.out, base.layout, add=chance.random() < 0.3, scale=0.5
            )
            accepted += 1
        except PayloadError:
            refused += 1
        except Exception as error:  # any other is what is looked for
            raise AssertionError(f"seed {seed}, round {number}: {error!r}") from error
    return Outcome(accepted, refused)


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
        print(spec, *attack(1000, seed=0, specs=[spec]))


if __name__ == "__main__":
    main()

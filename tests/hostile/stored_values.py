"""Outputs of tasks as another process could forge them: Arrow files and packed plain values.

`storage.from_foreign` reads what this process did not write itself. Every value that it returns is
used in full, because offsets that point outside of their buffers only show when they are followed.
"""

import random
import struct

import numpy as np
import pyarrow as pa

from talka.engine import storage
from talka.errors import PayloadError
from tests.hostile.outcome import Outcome

PLAIN = [
    None,
    -7,
    2.5,
    "talka",
    b"\0\1",
    [1, [2.0, "x"], {}],
    (1, (2, [3])),
    {"a": np.float32(1), "b": (np.int64(4), "long" * 20)},
    list(range(300)),
]
ARRAYS = [
    np.arange(50, dtype=np.uint8),
    np.arange(12.0).reshape(3, 4),
    np.zeros(0),
    np.array([(1, 2.0), (3, 4.0)], [("a", "i4"), ("b", "f8")]),
    pa.array([1, None, 3]),
    pa.array(["first", None, "third", ""]),
    pa.chunked_array([["a", "b"], ["c"]]),
    pa.array([[1, 2], [], None, [3]]),
    pa.array(["x", "y", "x", "y"]).dictionary_encode(),
    pa.table({"n": [1, 2, 3], "s": ["a", "bb", None], "b": [True, None, False]}),
    pa.RecordBatch.from_pydict({"d": [{"k": 1, "v": "one"}, None]}),
]
WORDS = [0, 1, 2, 7, 8, 255, 256, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]


def good_values():
    """(bytes, whether they are packed) of every value above."""
    packed = [(storage.pack(value).data, True) for value in PLAIN]
    return packed + [(storage.to_buffer(value).to_pybytes(), False) for value in ARRAYS]


def forged(data: bytes, chance: random.Random) -> bytes:
    """The bytes with one to four changes: bits, whole words, pieces cut, moved or repeated."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) + 1)
        way = chance.randrange(5)
        if way == 0 and at < len(changed):
            changed[at] ^= 1 << chance.randrange(8)
        elif way == 1 and at + 4 <= len(changed):
            struct.pack_into("<I", changed, at & ~3, chance.choice(WORDS))
        elif way == 2:
            del changed[at : at + chance.randint(1, 16)]
        elif way == 3:
            changed[at:at] = chance.randbytes(chance.randint(1, 16))
        else:
            source = chance.randrange(len(changed) + 1)
            piece = changed[source : source + 16]
            changed[at : at + len(piece)] = piece
    return bytes(changed)


def use(value) -> None:
    """Look at every part of a value."""
    if isinstance(value, pa.Table | pa.RecordBatch | pa.Array | pa.ChunkedArray):
        value.take(pa.array(range(len(value))[::-1], pa.int64()))
    elif isinstance(value, np.ndarray):
        value.tobytes()
    repr(value)


def attack(rounds: int, seed: int) -> Outcome:
    """Read as many forged values; AssertionError with seed and round if one goes wrong."""
    good, accepted, refused = good_values(), 0, 0
    for number in range(rounds):
        chance = random.Random(f"{seed}/{number}")
        data, is_packed = chance.choice(good)
        try:
            use(storage.from_foreign(forged(data, chance), is_packed=is_packed))
            accepted += 1
        except PayloadError:
            refused += 1
        except Exception as error:  # any other is what is looked for
            raise AssertionError(f"seed {seed}, round {number}: {error!r}") from error
    return Outcome(accepted, refused)

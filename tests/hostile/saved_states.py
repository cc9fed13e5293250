"""Saved states of exchanges that were damaged or forged, mostly with correct checksums.

A state is refused with SavedStateError, or it can be loaded and used: nothing else may happen.
"""

import functools
import json
import random
import tempfile
from pathlib import Path

import safetensors.torch
import torch

from talka.compress import ErrorFeedback, compressor, layout_of
from talka.errors import SavedStateError
from talka.exchange.momentum import Momentum
from talka.train.saved import read_file
from talka.train.saved_file import FORMATS, Expected, checksum
from tests.hostile.outcome import Outcome

SPEC = "threshold:auto+ef"
SHAPES = {"fc.weight": (6, 5), "fc.bias": (6,)}
LAYOUT = layout_of(SHAPES)
EXPECTED = {
    SPEC: Expected(SPEC, "all-gather", SHAPES),
    "powersgd:2": Expected("powersgd:2", "low-rank", SHAPES),
}
TEXTS = ["", "0", "-1", "1", "2", "1e9", "9" * 19, "9" * 400, "\u0663", " 1", "null", "{}", "[]", "nan",
         "[" * 3_000, '{"fc.weight": 0.1}', '{"fc.weight": "x"}', '{"fc.weight": 1e999}', "\x00",
         '{"fc.weight": [6, 5]}', '{"fc.weight": [5, 6]}', '{"fc.weight": [-6, 5]}', "\u20ac", "x" * 10_000,
         *FORMATS]  # fmt: skip
KEYS = ["", "/", "worker", "worker/", "worker/residual", "worker/residual/", "owner/residual/fc.bias",
        "worker/times/0/fc.weight", "worker/times/-1/fc.weight", "worker/times/99/fc.weight", "worker/times/x",
        "worker/floor/0/fc.bias", "worker/floor/\u0663/fc.bias", "worker/start/fc.weight", "worker/start/fc.bias",
        "worker/momentum/fc.weight", "worker/momentum/other", "other/residual/fc.bias", "worker/extra/",
        "owner/extra/fc.bias", "extra/x", "worker/extra/0/x"]  # fmt: skip
TYPES = [torch.float32, torch.float64, torch.int64, torch.int32, torch.bfloat16, torch.uint8, torch.bool,
         torch.complex64, torch.float8_e4m3fn, torch.float16]  # fmt: skip
SIZES = [(), (0,), (1,), (5,), (6,), (30,), (31,), (5, 2), (6, 5), (5, 1, 2), (10_000,)]


@functools.cache
def base(spec):
    """Tensors and metadata of a good state."""
    expected = EXPECTED[spec]
    momentum, state = Momentum(0.9), {}
    values = torch.randn(36, generator=torch.Generator().manual_seed(0))
    momentum.add_to(values, LAYOUT)
    if spec != SPEC:
        state = {
            "worker/residual/fc.weight": torch.ones(30),
            "worker/start/fc.weight": torch.ones(5, 2),
        }
    else:
        one = compressor(SPEC)
        one.encode(values, LAYOUT)
        state = {str(key.at("worker")): value for key, value in one.state().items()}
    metadata = {
        "format": FORMATS[1], "spec": expected.spec, "exchange": expected.exchange, "num_workers": "2",
        "step": "7", "save": "123", "rates": json.dumps({"fc.weight": 0.1, "fc.bias": 0.5}),
        "shapes": json.dumps(SHAPES),
    }  # fmt: skip
    return {**{str(key): value for key, value in momentum.state().items()}, **state}, metadata


def attack(rounds: int, seed: int) -> Outcome:
    """Load as many forged states; AssertionError with seed and round if one goes wrong."""
    accepted = refused = 0
    with tempfile.TemporaryDirectory(prefix="talka-hostile-") as folder:
        path = Path(folder) / "rank-0.safetensors"
        for number in range(rounds):
            chance = random.Random(f"{seed}/{number}")
            expected = chance.choice(list(EXPECTED.values()))
            path.write_bytes(forged(chance, expected))
            try:
                use(read_file(path, expected).state)
                accepted += 1
            except SavedStateError:
                refused += 1
            except Exception as error:  # any other is what is looked for
                raise AssertionError(f"seed {seed}, round {number}: {error!r}") from error
    return Outcome(accepted, refused)


def forged(chance, expected):
    """A file with metadata, tensors or bytes changed; the checksum is mostly made right again."""
    state, metadata = map(dict, base(expected.spec))
    if chance.random() < 0.2:
        metadata["format"] = FORMATS[0]
    for _ in range(chance.randrange(3)):
        change_metadata(metadata, chance)
    for _ in range(chance.randrange(3)):
        change_tensors(state, chance)
    is_former = metadata.get("format") == FORMATS[0]
    if chance.random() < 0.95 and not any(hard_to_sum(value) for value in state.values()):
        metadata["checksum"] = checksum(state, {} if is_former else metadata)
    data = bytearray(safetensors.torch.save(state, metadata))
    if chance.random() < 0.2:
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    if chance.random() < 0.1:
        del data[chance.randrange(len(data)) :]
    return bytes(data)


def change_metadata(metadata, chance):
    key = chance.choice([*metadata, "checksum", "other"])
    way = chance.randrange(4)
    if way == 0:
        metadata.pop(key, None)
    elif way == 1 and metadata.get(key):
        text = list(metadata[key])
        text[chance.randrange(len(text))] = chr(chance.choice([48, 57, 91, 123, 34, 46, 0x663]))
        metadata[key] = "".join(text)
    else:
        metadata[key] = chance.choice(TEXTS)


def change_tensors(state, chance):
    key = chance.choice([*state, *KEYS])
    way = chance.randrange(4)
    if way == 0:
        state.pop(key, None)
    elif way == 1 and key in state:
        state[chance.choice(KEYS)] = state.pop(key).clone()
    elif way == 2 and key in state and state[key].numel() and not state[key].is_complex():
        extreme = chance.choice([float("nan"), float("inf"), -1, 0, 1e30])
        changed = state[key].double().reshape(-1).clone()
        changed[chance.randrange(len(changed))] = extreme
        state[key] = changed.reshape(state[key].shape).nan_to_num(2.0**40).to(state[key].dtype)
    else:
        state[key] = torch.zeros(chance.choice(SIZES)).to(chance.choice(TYPES))


def hard_to_sum(tensor):
    """Whether numpy has no such type, so that a checksum cannot be taken."""
    return tensor.dtype in (torch.bfloat16, torch.float8_e4m3fn)


def use(state):
    """Continue from a state as an exchange of one worker does."""
    momentum, values = Momentum(0.9), torch.ones(36)
    momentum.load_state(state)
    momentum.add_to(values, LAYOUT)
    one = compressor(SPEC, nonfinite="pass")
    assert isinstance(one, ErrorFeedback)
    one.load_state({key.at(""): value for key, value in state.items() if key.side == "worker"})
    one.encode(values, LAYOUT)

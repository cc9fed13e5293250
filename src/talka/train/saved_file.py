"""Parse and check the content of one rank's saved file, which may be damaged or forged."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from talka.compress import State, StateKey
from talka.exchange.power_sgd import powersgd_rank

FORMATS = ("talka-exchange-1", "talka-exchange-2")
"""Known formats. The first has no step, learning rates or shapes; its checksum omits metadata."""
_TYPES = (torch.float32, torch.float64, torch.int64)
_MAX_INT = (1 << 62) - 1


class SavedStateProblem(Exception):
    """A problem with a file, worded as the end of a sentence that begins with its path."""


class Expected(NamedTuple):
    """Compressor, exchange and parameter shapes that a file must have been saved with."""

    spec: str
    exchange: str
    shapes: Mapping[str, tuple[int, ...]]
    """Shape of each parameter of the model, by name."""


class SavedState(NamedTuple):
    """The checked content of one file."""

    state: State
    num_workers: int
    step: int
    """Step of the save; -1 if the format has none."""
    save: int
    """Random number that all files of one save share; -1 if the format has none."""
    rates: dict[str, float]
    scale: float
    counts: dict[str, int]

    @property
    def identity(self) -> tuple[int, int, int]:
        """Number of workers, step and random number, which are equal for all files of one save."""
        return self.num_workers, self.step, self.save

    @property
    def step_text(self) -> str:
        """The step, as text for messages."""
        return "an unknown step" if self.step < 0 else f"step {self.step}"


def parse(state: dict[str, Tensor], metadata: Mapping[str, str], expected: Expected) -> SavedState:
    """Check a whole file. Raise SavedStateProblem if it is damaged or from another training."""
    version = metadata.get("format")
    if version not in FORMATS:
        raise SavedStateProblem("was not written by save() or state_dict()")
    if any(tensor.dtype not in _TYPES for tensor in state.values()):
        raise SavedStateProblem("holds tensors of a type that save() does not write")
    covered = dict(metadata) if version == FORMATS[1] else {}
    if metadata.get("checksum") != checksum(state, covered):
        raise SavedStateProblem("was changed after it was saved: its checksum does not match")
    spec, exchange = metadata.get("spec"), metadata.get("exchange")
    if (spec, exchange) != (expected.spec, expected.exchange):
        raise SavedStateProblem(
            f"was saved with {spec} by {exchange}, but this is {expected.spec} by {expected.exchange}"
        )
    num_workers = _whole_number(metadata, "num_workers", at_least=1)
    if version == FORMATS[0]:
        step, save, rates, shapes = -1, -1, {}, {}
    else:
        step = _whole_number(metadata, "step", at_least=0)
        save = _whole_number(metadata, "save", at_least=0)
        rates, shapes = _rates(metadata), _shapes(metadata)
    checked = {_checked_key(key, tensor, expected, shapes): tensor for key, tensor in state.items()}
    counts = _counts(metadata)
    return SavedState(checked, num_workers, step, save, rates, _scale(metadata), counts)


def checksum(state: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """Return a digest of all tensors and of all metadata except the checksum itself."""
    digest = hashlib.blake2b(digest_size=16)
    for key in sorted(state):
        digest.update(f"{key}:{tuple(state[key].shape)}".encode())
        digest.update(state[key].contiguous().numpy().tobytes())
    for key in sorted(set(metadata) - {"checksum"}):
        digest.update(json.dumps([key, metadata[key]]).encode())
    return digest.hexdigest()


def _whole_number(metadata: Mapping[str, str], key: str, *, at_least: int) -> int:
    text = metadata.get(key, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise SavedStateProblem(f"has {key} {text[:40]!r}, which is not a whole number")
    if not at_least <= int(text) <= _MAX_INT:
        raise SavedStateProblem(f"has {key} {text}, which is out of range")
    return int(text)


def _json_object(metadata: Mapping[str, str], key: str) -> dict[str, Any]:
    try:
        value = json.loads(metadata.get(key, ""))
    except (ValueError, RecursionError):
        raise SavedStateProblem(f"has {key} that are not JSON") from None
    if not isinstance(value, dict):
        raise SavedStateProblem(f"has {key} that are not a JSON object")
    return value


def _rates(metadata: Mapping[str, str]) -> dict[str, float]:
    rates = _json_object(metadata, "rates")
    for name, rate in rates.items():
        if type(rate) is not float or not 0 <= rate < math.inf:
            raise SavedStateProblem(
                f"has a learning rate of {name!r} that is not a number of at least 0"
            )
    return rates


def _counts(metadata: Mapping[str, str]) -> dict[str, int]:
    """Return the counters of a rhythm; none for files of former versions, which lack them."""
    counts = _json_object(metadata, "counts") if "counts" in metadata else {}
    for name, count in counts.items():
        if type(count) is not int or not 0 <= count <= _MAX_INT:
            raise SavedStateProblem(f"has a count {name!r} that is not a whole number in range")
    return counts


def _scale(metadata: Mapping[str, str]) -> float:
    """Return the factor of a GradScaler; 1 for files of former versions, which lack it."""
    text = metadata.get("scale", "1.0")
    try:
        scale = float(text)
    except ValueError:
        scale = math.nan
    if not 0 < scale < math.inf:
        raise SavedStateProblem(f"has scale {text[:40]!r}, which is not a number above 0")
    return scale


def _shapes(metadata: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    shapes = _json_object(metadata, "shapes")
    for name, shape in shapes.items():
        if type(shape) is not list or any(type(size) is not int or size < 0 for size in shape):
            raise SavedStateProblem(f"has a shape of {name!r} that is not a list of whole numbers")
    return {name: tuple(shape) for name, shape in shapes.items()}


def _checked_key(
    text: str, tensor: Tensor, expected: Expected, saved_shapes: Mapping[str, tuple[int, ...]]
) -> StateKey:
    try:
        key = StateKey.parse(text)
    except ValueError:
        key = StateKey("", "")
    if key.side and key.kind == "extra":  # only the compressor knows what these mean
        return key
    if not key.side or key.kind not in _CHECKS:
        raise SavedStateProblem(f"has an entry {text[:80]!r}, which save() does not write")
    name = key.name
    if name not in expected.shapes:
        raise SavedStateProblem(
            f"has state of a parameter {name[:80]!r}, which this model does not have"
        )
    shape = expected.shapes[name]
    saved_shape = saved_shapes.get(name)
    if saved_shape is not None and saved_shape != shape:
        raise SavedStateProblem(
            f"was saved for a parameter {name!r} of shape {saved_shape}, but it has shape {shape} now"
        )
    problem = _CHECKS[key.kind](tensor, shape, key.offset or 0, expected.spec)
    if problem:
        raise SavedStateProblem(f"has {problem} for parameter {name!r} of shape {shape}")
    return key


def _vector_problem(tensor: Tensor, shape: tuple[int, ...], offset: int, spec: str) -> str | None:
    """Check a tensor with one number per value of a parameter."""
    if tensor.dtype == torch.float32 and tuple(tensor.shape) == (math.prod(shape),):
        return None
    return f"a tensor of shape {tuple(tensor.shape)} and {tensor.dtype}, not {math.prod(shape)} float32 values,"


def _start_problem(tensor: Tensor, shape: tuple[int, ...], offset: int, spec: str) -> str | None:
    """Check the columns that PowerSGD starts from."""
    rows = shape[0] if len(shape) > 1 else 0
    columns = math.prod(shape[1:])
    width = min(powersgd_rank(spec) or 0, rows, columns)
    if width and tensor.dtype == torch.float32 and tuple(tensor.shape) == (columns, width):
        return None
    return f"start columns of shape {tuple(tensor.shape)}, not {(columns, width)},"


def _scalar_problem(tensor: Tensor, shape: tuple[int, ...], offset: int, spec: str) -> str | None:
    """Check the number of times a slice was encoded (int64), or its smallest threshold (float64)."""
    if tensor.ndim or offset >= max(math.prod(shape), 1):
        return f"a tensor of shape {tuple(tensor.shape)} at offset {offset}, not one number inside,"
    value = tensor.item()
    return None if 0 <= value <= _MAX_INT else f"the number {value}, which is out of range,"


_CHECKS = {
    "momentum": _vector_problem,
    "residual": _vector_problem,
    "anchor": _vector_problem,
    "velocity": _vector_problem,
    "late": _vector_problem,
    "start": _start_problem,
    "times": _scalar_problem,
    "floor": _scalar_problem,
}

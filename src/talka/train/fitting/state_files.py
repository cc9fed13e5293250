"""Nested values with tensors, such as the state of an optimizer, as one safetensors file. No pickle.

Tensors are entries of the file; all other values are JSON in its metadata, with a tag for each kind of
container, so that tuples and keys that are numbers come back as they were.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from talka.errors import InvalidValueError
from talka.files import whole_file

_KEY = "talka"


def write_nested(path: Path, value: Any) -> str:
    """Write nested dicts, lists and tuples of tensors, arrays and plain values; return the checksum.

    Raises InvalidValueError for a value of another type.
    """
    tensors: dict[str, Tensor] = {}
    form = _packed(value, "", tensors)
    return write_bytes(path, safetensors.torch.save(tensors, {_KEY: json.dumps(form)}))


def read_nested(data: bytes) -> Any:
    """Return what `write_nested` wrote. Raises ValueError if it did not write this."""
    try:
        tensors = safetensors.torch.load(data)
        return _unpacked(json.loads(_metadata(data)[_KEY]), tensors)
    except (safetensors.SafetensorError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"cannot be read ({error})") from error


def model_bytes(model: nn.Module) -> bytes:
    """Return parameters and buffers in the safetensors format, by their names."""
    return values_bytes(model_values(model))


def values_bytes(values: dict[str, Tensor]) -> bytes:
    """Return tensors in the safetensors format."""
    data: bytes = safetensors.torch.save({name: one.contiguous() for name, one in values.items()})
    return data


def model_values(model: nn.Module) -> dict[str, Tensor]:
    """Return copies of the parameters and buffers that `state_dict` has, by name.

    Tensors with two names are copied twice: safetensors refuses shared memory.
    """
    return {
        name: value.detach().cpu().clone()
        for name, value in model.state_dict().items()
        if isinstance(value, Tensor)
    }


@torch.no_grad()
def set_model_values(model: nn.Module, values: dict[str, Tensor]) -> None:
    """Write values to the parameters and buffers of these names."""
    own = model.state_dict()
    for name, value in values.items():
        own[name].copy_(value)


def write_bytes(path: Path, data: bytes) -> str:
    """Write a file completely or not at all; return its checksum."""
    with whole_file(path) as beside:
        beside.write_bytes(data)
    return checksum(data)


def checksum(data: bytes) -> str:
    """Return the checksum of a file."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _metadata(data: bytes) -> dict[str, str]:
    size = int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8 : 8 + size])
    metadata: dict[str, str] = header["__metadata__"]
    return metadata


def _packed(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """Return a value as JSON; move its tensors to `tensors`, by their path."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Tensor | np.ndarray):
        # A copy: tensors of an optimizer may share memory.
        tensors[path] = torch.as_tensor(value).detach().cpu().clone().contiguous()
        return {"array" if isinstance(value, np.ndarray) else "tensor": path}
    if isinstance(value, dict):
        items = [
            [_packed(key, "", {}), _packed(entry, f"{path}/{key}", tensors)]
            for key, entry in value.items()
        ]
        return {"dict": items}
    if isinstance(value, list | tuple):
        entries = [_packed(entry, f"{path}/{place}", tensors) for place, entry in enumerate(value)]
        return {"tuple": entries} if isinstance(value, tuple) else entries
    if isinstance(value, np.generic):
        return value.item()
    allowed = "a tensor or a plain value: others cannot be saved without pickle"
    raise InvalidValueError(f"the state {path.strip('/')!r}", type(value).__name__, allowed)


def _unpacked(form: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(form, list):
        return [_unpacked(entry, tensors) for entry in form]
    if not isinstance(form, dict):
        return form
    [(kind, content)] = form.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "array":
        return tensors[content].numpy()
    if kind == "tuple":
        return tuple(_unpacked(entry, tensors) for entry in content)
    return {_unpacked(key, tensors): _unpacked(entry, tensors) for key, entry in content}

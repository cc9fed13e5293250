"""Values that collectives combine: numbers, arrays and tensors."""

from collections.abc import Callable
from typing import Any, Final, Literal, get_args

import numpy as np

from talka.channels.coding import is_tensor
from talka.channels.collectives.port import Array, num_bytes
from talka.errors import InvalidValueError, NotStorableError

Reduction = Literal["sum", "mean", "min", "max", "product"]


def _add(into: Array, part: Array) -> None:
    into += part


def _multiply(into: Array, part: Array) -> None:
    into *= part


def _minimum(into: Array, part: Array) -> None:
    if isinstance(into, np.ndarray):
        np.minimum(into, part, out=into)
    else:
        into.copy_(into.minimum(part))


def _maximum(into: Array, part: Array) -> None:
    if isinstance(into, np.ndarray):
        np.maximum(into, part, out=into)
    else:
        into.copy_(into.maximum(part))


COMBINE: Final[dict[str, Callable[[Array, Array], None]]] = {
    "sum": _add,
    "mean": _add,
    "min": _minimum,
    "max": _maximum,
    "product": _multiply,
}


class Operand:
    """A value as a flat array in which others are combined, and the way back."""

    def __init__(self, value: Any, operation: Reduction, out: Any = None) -> None:
        if operation not in get_args(Reduction):
            allowed = ", ".join(get_args(Reduction))
            raise InvalidValueError("operation", operation, f"one of {allowed}")
        self.combine = COMBINE[operation]
        self._is_mean = operation == "mean"
        self._is_number = isinstance(value, int | float | complex | np.generic)
        array = np.asarray(value) if self._is_number else value
        if not (isinstance(array, np.ndarray) or is_tensor(array)):
            raise NotStorableError(f"a value of type {type(value).__qualname__} to combine")
        if isinstance(array, np.ndarray) and array.dtype.kind not in "iufcb":
            raise NotStorableError(f"a numpy array of {array.dtype} to combine")
        name = str(array.dtype).removeprefix("torch.")
        if name == "bool" and operation in ("sum", "mean"):
            allowed = "min, max or product for truth values; turn them into whole numbers to count"
            raise InvalidValueError("operation", operation, allowed)
        self._is_whole = "int" in name
        if out is not None:
            _check_out(out, array, is_fraction=self._is_mean and self._is_whole)
        self.array = _copied(array) if out is None else out
        if out is not None and out is not value:
            out[...] = array
        self.flat: Array = self.array.reshape(-1)
        self.num_bytes = num_bytes(self.flat)

    def result(self, num_workers: int) -> Any:
        """Return the combined value, in the form of the given one."""
        if self._is_mean:
            if self._is_whole:
                self.array = self.array / num_workers
            else:
                self.array /= num_workers
        return self.array.item() if self._is_number else self.array


def _copied(array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return np.array(array, order="C", copy=True)
    return array.detach().cpu().contiguous().clone()


def _check_out(out: Any, array: Any, *, is_fraction: bool) -> None:
    """Raise InvalidValueError unless the combined value fits into `out` as it is."""
    given = f"{type(out).__name__} of {getattr(out, 'dtype', '?')}, {getattr(out, 'shape', '?')}"
    allowed = f"an array or tensor of {array.dtype} with shape {tuple(array.shape)}, without gaps"
    if is_fraction:
        raise InvalidValueError("out", given, "None: the mean of whole numbers has another type")
    if not (isinstance(out, np.ndarray) or is_tensor(out)):
        raise InvalidValueError("out", given, allowed)
    is_contiguous = (
        out.flags.c_contiguous and out.flags.writeable
        if isinstance(out, np.ndarray)
        else out.is_contiguous()
    )
    is_same = str(out.dtype).removeprefix("torch.") == str(array.dtype).removeprefix("torch.")
    if not (is_contiguous and is_same and tuple(out.shape) == tuple(array.shape)):
        raise InvalidValueError("out", given, allowed)

"""Samples as a Dataset, and batches of them by index."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, TensorDataset, default_collate

from talka.errors import InvalidValueError

Data: TypeAlias = Dataset[Any] | Sequence[Any]
"""A Dataset or list of pairs of an input and a target, or a tuple (x, y) of tensors or arrays."""
_ARRAYS = Tensor | np.ndarray
_ALLOWED = (
    "a Dataset with a length whose items are pairs (x, y), or a tuple (x, y) of tensors or arrays"
)


class Samples:
    """Pairs of an input and a target, with a length.

    >>> samples = Samples((np.arange(6.0), np.arange(6)))
    >>> samples.batch([1, 3])
    (tensor([1., 3.], dtype=torch.float64), tensor([1, 3]))
    """

    def __init__(self, data: Data, *, name: str = "data") -> None:
        self._name = name
        self._dataset: Any = _dataset(data, name)
        if not len(self._dataset):
            raise InvalidValueError(name, "empty", "at least one sample")

    def __len__(self) -> int:
        return len(self._dataset)

    def batch(self, indices: Sequence[int]) -> tuple[Any, Any]:
        """Return some samples as one input and one target."""
        if isinstance(self._dataset, TensorDataset):
            batch: Any = self._dataset[torch.as_tensor(indices, dtype=torch.int64)]
        elif hasattr(self._dataset, "__getitems__"):
            batch = default_collate(self._dataset.__getitems__(list(indices)))
        else:
            batch = default_collate([self._dataset[index] for index in indices])
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise InvalidValueError(
                f"an item of {self._name}", type(batch).__name__, "a pair (x, y)"
            )
        return batch[0], batch[1]


def _holds_arrays(data: Sequence[Any]) -> bool:
    """Return whether a sequence is meant as (x, y); a list can also hold pairs."""
    return isinstance(data, tuple) or (len(data) == 2 and isinstance(data[0], _ARRAYS))


def _dataset(data: Data, name: str) -> Any:
    if isinstance(data, tuple | list) and _holds_arrays(data):
        if len(data) != 2 or not all(isinstance(part, _ARRAYS) for part in data):
            kinds = ", ".join(type(part).__name__ for part in data[:4])
            raise InvalidValueError(name, f"{type(data).__name__} of {kinds}", _ALLOWED)
        x, y = (torch.as_tensor(part) for part in data)
        if not x.ndim or not y.ndim or len(x) != len(y):
            shapes = f"arrays of shape {tuple(x.shape)} and {tuple(y.shape)}"
            raise InvalidValueError(name, shapes, "two arrays of the same length")
        return TensorDataset(x, y)
    has_parts = hasattr(data, "__len__") and hasattr(data, "__getitem__")
    if isinstance(data, IterableDataset) or not has_parts:
        raise InvalidValueError(name, type(data).__name__, _ALLOWED)
    return data

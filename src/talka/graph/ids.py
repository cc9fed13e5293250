"""Ids of vertices, as users know them, and their internal numbers."""

import operator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from talka.errors import UnknownVertexError


class Ids(NamedTuple):
    """Ids in ascending order, and the number of each vertex, which kernels work with.

    >>> ids = Ids.ranked(np.array([3, 7, 9]), np.array([2, 0, 1]))
    >>> ids.number_of(9), ids.vertex_of(0), ids.numbers_of([9, 3])
    (0, 9, array([0, 1], dtype=uint32))
    """

    ascending: Any
    """Ids: int64 or uint64, or an Arrow array of strings (in the order of their UTF-8 bytes)."""
    numbers: NDArray[np.uint32]
    """Vertex number of each id of `ascending`."""
    ranks: NDArray[np.uint32]
    """Index in `ascending` of each vertex number; the inverse of `numbers`."""

    @classmethod
    def ranked(cls, ascending: Any, ranks: NDArray[Any]) -> "Ids":
        """Return the ids with these ranks by vertex number; arrays become read-only."""
        numbers = np.empty(len(ranks), np.uint32)
        numbers[ranks] = np.arange(len(ranks), dtype=np.uint32)
        ids = cls(ascending, numbers, ranks.astype(np.uint32, copy=False))
        for array in ids:
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
        return ids

    @property
    def are_strings(self) -> bool:
        return not isinstance(self.ascending, np.ndarray)

    def number_of(self, vertex: object) -> int:
        return int(self.numbers_of([vertex])[0])

    def numbers_of(self, vertices: Any) -> NDArray[np.uint32]:
        """Return the vertex numbers of an array or sequence of ids."""
        look_up = self._string_places if self.are_strings else self._places
        return self.numbers[look_up(vertices)]

    def vertex_of(self, number: int) -> int | str:
        if not 0 <= number < len(self.ranks):
            allowed = f"numbered 0 to {len(self.ranks) - 1}" if len(self.ranks) else "none at all"
            raise UnknownVertexError(number, allowed)
        id_ = self.ascending[int(self.ranks[number])]
        return str(id_) if self.are_strings else int(id_)

    def as_arrow(self) -> Any:
        """Return the ids as an Arrow array, ascending, without a copy."""
        return self.ascending if self.are_strings else pa.array(self.ascending)

    def _places(self, vertices: Any) -> NDArray[np.int64]:
        wanted = _as_integers(vertices, self.ascending.dtype)
        if wanted is None:
            raise self._unknown(next(vertex for vertex in vertices if not self._has(vertex)))
        places = np.searchsorted(self.ascending, wanted)
        is_known = places < len(self.ascending)
        is_known[is_known] = self.ascending[places[is_known]] == wanted[is_known]
        if not is_known.all():
            raise self._unknown(wanted[np.argmin(is_known)].item())
        return np.asarray(places, np.int64)

    def _has(self, vertex: object) -> bool:
        """Return whether an id of any type, or an integer of any size, exists."""
        wanted = _as_integers([vertex], self.ascending.dtype)
        return wanted is not None and bool(np.isin(wanted, self.ascending)[0])

    def _string_places(self, vertices: Any) -> NDArray[np.int64]:
        wanted = list(vertices) if not isinstance(vertices, pa.Array) else vertices.to_pylist()
        for vertex in wanted:
            if not isinstance(vertex, str):
                raise self._unknown(vertex)
        places = pc.index_in(pa.array(wanted, self.ascending.type), value_set=self.ascending)
        if places.null_count:
            raise self._unknown(wanted[places.is_null().index(True).as_py()])
        return np.asarray(places.to_numpy(), np.int64)

    def _unknown(self, vertex: object) -> UnknownVertexError:
        if len(self.ascending) == 0:
            return UnknownVertexError(vertex, "none at all: the graph is empty")
        first, last = self.ascending[0], self.ascending[-1]
        if self.are_strings:
            return UnknownVertexError(vertex, f"strings from {str(first)!r} to {str(last)!r}")
        return UnknownVertexError(vertex, f"whole numbers from {first} to {last}")


def _as_integers(vertices: Any, dtype: Any) -> Any:
    """Return an array of type `dtype`; None if a value is not an integer in its range."""
    array = np.asarray(vertices)
    if array.dtype == dtype or array.size == 0:
        return array.astype(dtype, copy=False)
    limits = np.iinfo(dtype)
    try:
        exact = [operator.index(value) for value in array.tolist()]
    except TypeError:
        return None
    if not all(limits.min <= value <= limits.max for value in exact):
        return None
    return np.array(exact, dtype)

"""What was given, and who reads it."""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from talka.errors import EdgeFileError, GraphError, UnknownNameError
from talka.events.base import Noted
from talka.events.stream import Stream
from talka.graph.building.memory import check_it_fits
from talka.graph.reading.base import Edges
from talka.graph.reading.columns import as_ids, as_weights, joined_ids, of_one_kind
from talka.graph.reading.delimited import read_csv, read_tsv
from talka.graph.reading.foreign import refuse_address, refuse_ending
from talka.graph.reading.metis import read_metis
from talka.graph.reading.pairs import edges_from_sequence
from talka.graph.reading.tables import edges_from_table, read_arrow, read_parquet
from talka.graph.reading.text import (
    read_edge_list,
    read_matrix_market,
    read_neighbours,
    read_vertices,
)

FileFormat = Literal[
    "auto", "edges", "adjacency", "ldbc", "csv", "tsv", "parquet", "arrow", "mtx", "metis"
]

ENDINGS: Mapping[str, FileFormat] = MappingProxyType(
    {
        ".csv": "csv",
        ".tsv": "tsv",
        ".parquet": "parquet",
        ".arrow": "arrow",
        ".feather": "arrow",
        ".e": "ldbc",
        ".adj": "adjacency",
        ".adjlist": "adjacency",
        ".mtx": "mtx",
        ".metis": "metis",
        ".graph": "metis",
        "-input": "adjacency",  # the validation graphs of LDBC Graphalytics
    }
)
"""How the name of a file ends (before `.gz` or `.zst`), and what it then holds; else edges."""


def read_edges(
    edges: Any, weights: Any, vertices: Any, *, format: FileFormat, events: Stream
) -> Edges:
    """Edges of one kind, with the weights and vertices that were given beside them."""
    read = _read(edges, format, events)
    for note in read.notes:
        events.emit(Noted("graph/read", note))
    if weights is not None:
        if read.weights is not None:
            raise GraphError("two columns of weights", "The edges have some already; drop one.")
        read = read._replace(weights=as_weights(weights, len(read.sources)))
    if vertices is not None:
        more = as_ids(vertices, "vertices")
        read = read._replace(
            vertices=more if read.vertices is None else joined_ids(read.vertices, more)
        )
    check_it_fits(len(read.sources), is_weighted=read.weights is not None, is_read=False)
    return of_one_kind(read)


def format_of(path: Path) -> FileFormat:
    """What a file holds, by its name.

    >>> [format_of(Path(name)) for name in ("a.txt.gz", "b.csv", "c.e", "dir-input")]
    ['edges', 'csv', 'ldbc', 'adjacency']
    """
    name = path.name.lower().removesuffix(".gz").removesuffix(".zst")
    return next((format for end, format in ENDINGS.items() if name.endswith(end)), "edges")


def _read(edges: Any, format: FileFormat, events: Stream) -> Edges:
    if isinstance(edges, str | Path):
        refuse_address(edges)
        return _read_file(Path(edges), format, events)
    if isinstance(edges, pa.Table | pa.RecordBatch):
        return edges_from_table(edges)
    if _is_sparse_matrix(edges):
        return _from_matrix(edges)
    if isinstance(edges, tuple | list | Iterator):
        return edges_from_sequence(edges)
    shape = f" of shape {edges.shape}" if isinstance(edges, np.ndarray) else ""
    raise GraphError(
        f"{type(edges).__name__}{shape}",
        "Give a list of edges, a tuple (sources, targets), an Arrow table, a scipy sparse matrix "
        "or a path.",
    )


def _read_file(path: Path, format: FileFormat, events: Stream) -> Edges:
    is_said = format != "auto"
    if not is_said:
        refuse_ending(path)
        format = format_of(path)
    if format not in READERS:
        raise UnknownNameError("format of edges", format, ("auto", *READERS))
    if format == "edges" and not is_said:
        return read_edge_list(path, events, find_counts=True)
    return READERS[format](path, events)


def _read_ldbc(path: Path, events: Stream) -> Edges:
    """The edges `x.e`, and the vertices `x.v` beside them."""
    packed = [end for end in (".gz", ".zst") if path.suffix == end]
    beside = (
        path.with_suffix("").with_suffix(".v" + packed[0]) if packed else path.with_suffix(".v")
    )
    if not beside.exists():
        problem = f"there is no {beside.name} beside it, which has the vertices"
        advice = 'Give a file of edges alone as format="edges".'
        raise EdgeFileError(str(path), None, problem, advice)
    return read_edge_list(path, events)._replace(vertices=read_vertices(beside, events))


def _is_sparse_matrix(given: Any) -> bool:
    """Asked without an import: where scipy was not imported, nothing comes from it."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(given))


def _from_matrix(matrix: Any) -> Edges:
    """Entry (row, column) is an edge from row to column; all rows are vertices."""
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        problem = f"a matrix of shape {matrix.shape}"
        raise GraphError(problem, "Give a square one: rows and columns are the same vertices.")
    entries = matrix.tocoo()
    rows, columns = entries.coords if hasattr(entries, "coords") else (entries.row, entries.col)
    weights = None if (entries.data == 1).all() else as_weights(entries.data, entries.nnz)
    every = np.arange(matrix.shape[0], dtype=np.int64)
    return Edges(as_ids(rows, "rows"), as_ids(columns, "columns"), weights, every)


Reader = Callable[[Path, Stream], Edges]

READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "edges": read_edge_list,
        "adjacency": read_neighbours,
        "ldbc": _read_ldbc,
        "csv": read_csv,
        "tsv": read_tsv,
        "parquet": read_parquet,
        "arrow": read_arrow,
        "mtx": read_matrix_market,
        "metis": read_metis,
    }
)

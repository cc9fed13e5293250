"""Choose the reader for an object or file that holds edges."""

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
from talka.graph.reading.columns import as_ids, as_weights, joined_ids, of_one_type
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
"""File formats by the ending of the name (before `.gz` or `.zst`); other files are `edges`."""


def read_edges(
    edges: Any, weights: Any, vertices: Any, *, format: FileFormat, events: Stream
) -> Edges:
    """Read edges, add separate weights and vertices, and convert all ids to one type."""
    read = _read(edges, format, events)
    for note in read.notes:
        events.emit(Noted("graph/read", note))
    if weights is not None:
        if read.weights is not None:
            raise GraphError("two columns of weights", "The edges have weights already; drop one.")
        read = read._replace(weights=as_weights(weights, len(read.sources)))
    if vertices is not None:
        more = as_ids(vertices, "vertices")
        read = read._replace(
            vertices=more if read.vertices is None else joined_ids(read.vertices, more)
        )
    check_it_fits(len(read.sources), is_weighted=read.weights is not None, is_read=False)
    return of_one_type(read)


def format_of(path: Path) -> FileFormat:
    """Return the format of a file, by its name.

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
    is_given = format != "auto"
    if not is_given:
        refuse_ending(path)
        format = format_of(path)
    if format not in READERS:
        raise UnknownNameError("format of edges", format, ("auto", *READERS))
    if format == "edges" and not is_given:
        return read_edge_list(path, events, find_counts=True)
    return READERS[format](path, events)


def _read_ldbc(path: Path, events: Stream) -> Edges:
    """Read the edges `x.e`, and the vertices `x.v` from the same folder."""
    is_compressed = path.suffix in (".gz", ".zst")
    if is_compressed:
        vertex_path = path.with_suffix("").with_suffix(".v" + path.suffix)
    else:
        vertex_path = path.with_suffix(".v")
    if not vertex_path.exists():
        problem = f"there is no {vertex_path.name} beside it, which has the vertices"
        advice = 'Read a file of edges without vertices with format="edges".'
        raise EdgeFileError(str(path), None, problem, advice)
    return read_edge_list(path, events)._replace(vertices=read_vertices(vertex_path, events))


def _is_sparse_matrix(edges: Any) -> bool:
    """Return whether scipy made `edges`, without importing it: then it is imported already."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(edges))


def _from_matrix(matrix: Any) -> Edges:
    """Return an edge from row to column for each entry; all rows are vertices."""
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        problem = f"a matrix of shape {matrix.shape}"
        raise GraphError(problem, "Give a square matrix: rows and columns are the same vertices.")
    entries = matrix.tocoo()
    rows, columns = entries.coords if hasattr(entries, "coords") else (entries.row, entries.col)
    weights = None if (entries.data == 1).all() else as_weights(entries.data, entries.nnz)
    vertices = np.arange(matrix.shape[0], dtype=np.int64)
    return Edges(as_ids(rows, "rows"), as_ids(columns, "columns"), weights, vertices)


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

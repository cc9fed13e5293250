"""Edges from Arrow tables, and from Arrow and Parquet files."""

import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from talka.errors import EdgeFileError, GraphError
from talka.events.stream import Stream
from talka.graph.building.memory import check_it_fits
from talka.graph.reading.base import Edges
from talka.graph.reading.blocks import size_of, unreadable
from talka.graph.reading.columns import as_ids, as_weights
from talka.graph.reading.names import Places, described, places
from talka.inputs import name_of, repeatable


def edges_from_table(table: Any) -> Edges:
    """Return sources, targets and weights, found by name or position of columns (`names.places`).

    >>> edges_from_table(pa.table({"to": [2], "from": [1], "cost": [0.5]})).weights
    array([0.5])
    """
    at = _places(table.schema)
    weights = None if at.weight is None else as_weights(table.column(at.weight), table.num_rows)
    sources, targets = (
        as_ids(table.column(place), f"{name} (column {table.column_names[place]!r})")
        for name, place in (("sources", at.source), ("targets", at.target))
    )
    return Edges(sources, targets, weights, notes=(described(table.column_names, at),))


def read_parquet(path: Path, events: Stream) -> Edges:
    size = size_of(path)
    with events.phase("graph/read", total=size, unit="bytes") as phase:
        try:
            with (
                _readable(path, b"PAR1") as readable,
                pyarrow.parquet.ParquetFile(readable) as file,
            ):
                at = _places(file.schema_arrow)
                is_weighted = at.weight is not None
                check_it_fits(file.metadata.num_rows, is_weighted=is_weighted, is_read=True)
                names = file.schema_arrow.names
                wanted = sorted(place for place in at if place is not None)
                table = file.read([names[place] for place in wanted])
            edges = edges_from_table(table)._replace(notes=(described(names, at),))
        except (pa.ArrowInvalid, OSError, GraphError) as error:
            raise no_edges(path, error) from error
        phase.advance(size or 0)
    return edges


def read_arrow(path: Path, events: Stream) -> Edges:
    """Read an Arrow IPC file, also as `.feather`, mapped into memory."""
    size = size_of(path)
    with events.phase("graph/read", total=size, unit="bytes") as phase:
        try:
            with _readable(path, b"ARROW1") as readable:
                table = pyarrow.feather.read_table(readable, memory_map=True)
            edges = edges_from_table(table)
        except (pa.ArrowInvalid, OSError, GraphError) as error:
            raise no_edges(path, error) from error
        phase.advance(size or 0)
    return edges


def _readable(path: Path, beginning: bytes) -> contextlib.AbstractContextManager[Path]:
    """Return a path that can be opened several times; a pipe must begin with `beginning`."""

    def check(first_bytes: bytes) -> None:
        if not first_bytes.startswith(beginning):
            raise pa.ArrowInvalid(f"it does not begin with {beginning.decode()}")

    return repeatable(path, check)


def no_edges(path: Path, error: Exception) -> EdgeFileError:
    if isinstance(error, GraphError):
        return EdgeFileError(name_of(path), None, f"no graph from {error.problem}", error.advice)
    if isinstance(error, OSError) and error.errno is not None:
        return unreadable(path, error)
    advice = "Is it complete, and in the format of its name?"
    return EdgeFileError(name_of(path), None, f"it cannot be read ({error})", advice)


def _places(schema: Any) -> Places:
    if len(schema.names) < 2:
        problem = f"a table with the columns {schema.names}"
        raise GraphError(problem, "It needs at least two: source and target.")

    def is_number(place: int) -> bool:
        kind = schema.types[place]
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))

    return places(schema.names, is_number)

"""Edges from Arrow tables, and from files that hold tables as Arrow or Parquet."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from talka.errors import EdgeFileError, GraphError
from talka.events.stream import Stream
from talka.graph.memory import check_it_fits
from talka.graph.reading.base import Edges
from talka.graph.reading.blocks import size_of
from talka.graph.reading.columns import as_ids, as_weights
from talka.graph.reading.names import Places, places


def edges_from_table(table: Any) -> Edges:
    """Sources, targets and weights by the names of columns, or by their places (`names.places`).

    >>> edges_from_table(pa.table({"to": [2], "from": [1], "since": [1999.5]})).weights
    array([1999.5])
    """
    at = _places(table.schema)
    weights = None if at.weight is None else as_weights(table.column(at.weight), table.num_rows)
    sources, targets = (
        as_ids(table.column(place), f"{name} (column {table.column_names[place]!r})")
        for name, place in (("sources", at.source), ("targets", at.target))
    )
    return Edges(sources, targets, weights)


def read_parquet(path: Path, events: Stream) -> Edges:
    size = size_of(path)
    with events.phase("graph/read", total=size, unit="bytes") as phase:
        try:
            with pyarrow.parquet.ParquetFile(path) as file:
                at = _places(file.schema_arrow)
                is_weighted = at.weight is not None
                check_it_fits(file.metadata.num_rows, is_weighted=is_weighted, is_read=True)
                wanted = sorted(place for place in at if place is not None)
                table = file.read([file.schema_arrow.names[place] for place in wanted])
            edges = edges_from_table(table)
        except (pa.ArrowInvalid, GraphError) as error:
            raise no_edges(path, error) from error
        phase.advance(size)
    return edges


def read_arrow(path: Path, events: Stream) -> Edges:
    """Arrow IPC files, also as `.feather`, mapped into memory."""
    size = size_of(path)
    with events.phase("graph/read", total=size, unit="bytes") as phase:
        try:
            table = pyarrow.feather.read_table(path, memory_map=True)
            edges = edges_from_table(table)
        except (pa.ArrowInvalid, GraphError) as error:
            raise no_edges(path, error) from error
        phase.advance(size)
    return edges


def no_edges(path: Path, error: Exception) -> EdgeFileError:
    if isinstance(error, GraphError):
        return EdgeFileError(str(path), None, f"no graph from {error.problem}", error.advice)
    advice = "Is it complete, and of the kind that its name says?"
    return EdgeFileError(str(path), None, f"it cannot be read ({error})", advice)


def _places(schema: Any) -> Places:
    if len(schema.names) < 2:
        problem = f"a table with the columns {schema.names}"
        raise GraphError(problem, "It needs two at least: source and target.")
    third = schema.types[2] if len(schema.types) > 2 else pa.null()
    is_number = pa.types.is_integer(third) or pa.types.is_floating(third)
    return places(schema.names, third_is_number=is_number)

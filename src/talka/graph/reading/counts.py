"""Handling of a first line that may hold the numbers of vertices and edges instead of an edge.

Many programs begin a list of edges with `vertices edges`, which looks like an edge. So the line is
skipped only if it cannot be an edge of this graph. If it could be either, the file is rejected, and
the user has to decide.
"""

from pathlib import Path
from typing import Any

import numpy as np

from talka.errors import EdgeFileError
from talka.graph.reading.base import Edges
from talka.graph.reading.sniffing import LineForm
from talka.inputs import name_of

_ADVICE = (
    'If it is an edge, use format="edges" (--input-format edges); if it is not, begin the line '
    "with #."
)


def without_counts(path: Path, edges: Edges, form: LineForm) -> Edges:
    """Skip a first line that holds the numbers of vertices and edges.

    The line may do so if this many edges follow and no id is above the number of vertices. If there
    are more edges than vertices, the second number cannot be a vertex; otherwise it may be one.
    """
    shown = " ".join(str(count) for count in form.counts)
    if form.has_counts:
        if len(edges.sources) != form.counts[1]:
            problem = f"{shown!r} has 2 fields, but the next line has 3"
            line = form.counts_line + 1
            raise EdgeFileError(name_of(path), line, problem, "Fix or remove the line.")
        return edges._replace(notes=(*edges.notes, _note(form, shown)))
    if form.has_strings or len(edges.sources) - 1 != form.counts[-1] or form.counts[-1] == 0:
        return edges
    num_vertices, num_edges = form.counts[0], form.counts[-1]
    sources, targets = edges.sources[1:], edges.targets[1:]
    if not _are_below(sources, targets, num_vertices):
        return edges
    if len(form.counts) == 2 and num_edges > num_vertices:
        weights = None if edges.weights is None else edges.weights[1:]
        notes = (*edges.notes, _note(form, shown))
        return edges._replace(sources=sources, targets=targets, weights=weights, notes=notes)
    if len(form.counts) == 3 and form.counts[0] != form.counts[1]:
        return edges
    problem = f"{shown!r} may be an edge, or the numbers of vertices and edges (as many follow)"
    raise EdgeFileError(name_of(path), form.counts_line + 1, problem, _ADVICE)


def _are_below(sources: Any, targets: Any, num_vertices: int) -> bool:
    """Return whether ids are from 0 to n - 1, or from 1 to n."""
    smallest = min(np.min(sources), np.min(targets))
    largest = max(np.max(sources), np.max(targets))
    return bool(smallest >= 0 and largest < num_vertices + min(smallest, 1))


def _note(form: LineForm, shown: str) -> str:
    line = form.counts_line + 1
    return f"line {line}, {shown!r}, has the numbers of vertices and edges and is not an edge"

"""Levels of a breadth-first search by one thread: a cheap pilot for the plan of a frontier program."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.compiled import compiled


@compiled
def count_levels(
    offsets: NDArray[Any],
    columns: NDArray[Any],
    starts: NDArray[Any],
    max_edges: int,
    num_active: NDArray[np.int64],
    active_edges: NDArray[np.int64],
) -> tuple[int, bool]:
    """Count vertices and their edges by level, from `starts`, until all are reached.

    Stops before a level that would exceed `max_edges` edges in all, or the length of the outputs.
    Returns the number of levels that were counted, and whether they are all levels.
    """
    num_vertices = len(offsets) - 1
    is_reached = np.zeros(num_vertices, np.uint8)
    # The queue holds every reached vertex once; a level is a range of it.
    queue = np.empty(num_vertices, np.uint32)
    end = 0
    for start in starts:
        if not is_reached[start]:
            is_reached[start] = 1
            queue[end] = start
            end += 1
    begin, level, seen_edges = 0, 0, 0
    while begin < end:
        edges = 0
        for place in range(begin, end):
            edges += int(offsets[queue[place] + 1]) - int(offsets[queue[place]])
        seen_edges += edges
        if level == len(num_active) or seen_edges > max_edges:
            return level, False
        num_active[level], active_edges[level] = end - begin, edges
        level += 1
        stop = end
        for place in range(begin, stop):
            vertex = queue[place]
            for entry in range(offsets[vertex], offsets[vertex + 1]):
                target = columns[entry]
                if not is_reached[target]:
                    is_reached[target] = 1
                    queue[end] = target
                    end += 1
        begin = stop
    return level, True

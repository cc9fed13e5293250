"""A slow and simple way to build a graph, with dicts and sorted lists."""

from typing import NamedTuple


class Twin(NamedTuple):
    numbers: dict
    """Vertex number of each id, in ascending order of ids."""
    out: list
    """Row of each vertex number: (number, weight) of targets, ascending."""
    into: list
    num_edges: int


def build(
    edges, weights=None, *, vertices=(), directed=True, drop_duplicates=False, drop_loops=False
):
    weighted = [
        (source, target, 1.0 if weights is None else weights[at])
        for at, (source, target) in enumerate(edges)
    ]
    every = {end for edge in edges for end in edge} | set(vertices)
    if drop_loops:
        weighted = [edge for edge in weighted if edge[0] != edge[1]]
    degree = dict.fromkeys(every, 0)
    for source, target, _ in weighted:
        degree[source] += 1
        if directed or source != target:
            degree[target] += 1
    by_degree = sorted(every, key=lambda id_: (-degree[id_], id_))
    numbers = {id_: number for number, id_ in enumerate(by_degree)}
    if drop_duplicates:
        weighted = _without_duplicates(weighted, directed)
    if not directed:  # parallel edges from smaller numbers come first, at both ends
        weighted.sort(key=lambda edge: numbers[edge[0]] > numbers[edge[1]])
    out, into = [[] for _ in every], [[] for _ in every]
    for source, target, weight in weighted:
        source, target = numbers[source], numbers[target]
        out[source].append((target, weight))
        (into if directed else out)[target].append((source, weight))
        if not directed and source == target:
            out[source].pop()
    for rows in (out, into):
        for row in rows:
            row.sort(key=lambda entry: entry[0])
    ascending = {id_: numbers[id_] for id_ in sorted(every)}
    return Twin(ascending, out, into if directed else out, len(weighted))


def _without_duplicates(weighted, directed):
    lightest = {}
    for source, target, weight in weighted:
        key = (source, target) if directed else tuple(sorted((source, target)))
        lightest[key] = min(weight, lightest.get(key, weight))
    return [(*key, weight) for key, weight in lightest.items()]


def rows_of(csr):
    weights = [1.0] * csr.num_entries if csr.weights is None else csr.weights.tolist()
    entries = list(zip(csr.columns.tolist(), weights, strict=True))
    return [
        entries[start:stop] for start, stop in zip(csr.offsets[:-1], csr.offsets[1:], strict=True)
    ]


def assert_same(graph, twin):
    """Assert that a graph of talka equals the twin."""
    ids = graph.ids.as_arrow().to_pylist()
    assert dict(zip(ids, graph.ids.numbers.tolist(), strict=True)) == twin.numbers
    assert ids == list(twin.numbers)
    assert rows_of(graph.out) == twin.out
    assert rows_of(graph.into) == twin.into
    assert graph.num_edges == twin.num_edges
    assert graph.num_vertices == len(twin.numbers)

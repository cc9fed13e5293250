"""Slow reference implementations on networkx graphs, with networkx itself where it has one."""

from collections import Counter

import networkx as nx


def order_of(vertex):
    """Return the sort key of an id: strings are compared by their bytes."""
    return vertex.encode() if isinstance(vertex, str) else vertex


def smallest(vertices):
    return min(vertices, key=order_of)


def levels(peer, sources):
    found = {}
    for source in sources:
        for vertex, level in nx.single_source_shortest_path_length(peer, source).items():
            found[vertex] = min(level, found.get(vertex, level))
    return {vertex: found.get(vertex) for vertex in peer}


def distances(peer, sources):
    found = nx.multi_source_dijkstra_path_length(peer, set(sources))
    return {vertex: found.get(vertex) for vertex in peer}


def pagerank(peer, damping, num_supersteps, restart=None):
    """Power iteration by the definition; `restart` has shares by vertex."""
    num_vertices = peer.number_of_nodes()
    jump = {v: 1 / num_vertices if restart is None else restart.get(v, 0.0) for v in peer}
    out_edges = {v: [t for _, t in edges_out(peer, v)] for v in peer}
    ranks = dict(jump)
    for _ in range(num_supersteps):
        lost = sum(ranks[v] for v in peer if not out_edges[v])
        after = {v: (1 - damping + damping * lost) * jump[v] for v in peer}
        for v in peer:
            for target in out_edges[v]:
                after[target] += damping * ranks[v] / len(out_edges[v])
        ranks = after
    return ranks


def edges_out(peer, vertex):
    return list(peer.out_edges(vertex)) if peer.is_directed() else list(peer.edges(vertex))


def named_groups(groups):
    """Map each vertex to the smallest one of its group."""
    return {vertex: smallest(group) for group in groups for vertex in group}


def communities(peer, num_supersteps):
    """Propagate labels: a vote per edge and direction, all at once; ties go to the smallest."""
    labels = {vertex: vertex for vertex in peer}
    for _ in range(num_supersteps):
        votes = {vertex: Counter() for vertex in peer}
        for source, target in peer.edges():
            votes[target][labels[source]] += 1
            if peer.is_directed() or source != target:
                votes[source][labels[target]] += 1
        labels = {
            vertex: min(pile, key=lambda label: (-pile[label], order_of(label)))
            if (pile := votes[vertex])
            else labels[vertex]
            for vertex in peer
        }
    return labels


def clustering(peer):
    """Return the fraction of ordered pairs of neighbours with an edge from one to the other."""
    edges = set(peer.edges())
    if not peer.is_directed():
        edges |= {(b, a) for a, b in edges}
    found = {}
    for vertex in peer:
        around = {a for a, b in edges if b == vertex} | {b for a, b in edges if a == vertex}
        around -= {vertex}
        pairs = [(a, b) for a in around for b in around if a != b]
        found[vertex] = sum(pair in edges for pair in pairs) / len(pairs) if pairs else 0.0
    return found

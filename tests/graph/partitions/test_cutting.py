"""Cuts of a graph: each edge and each vertex is in one partition, and routes match."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.errors import InvalidValueError, UnknownNameError
from talka.graph.partitions.cutting import WAYS, cut
from tests.graph.edges import Edges, any_edges, hubs

cuts = {
    "edges": any_edges(),
    "num_partitions": st.integers(1, 6),
    "how": st.sampled_from(sorted(WAYS)),
}
checked = settings(deadline=None, max_examples=150)


def entries(rows):
    """Return (row, column, weight) of all entries; the weight is None if absent."""
    weights = itertools.repeat(None) if rows.weights is None else rows.weights.tolist()
    places = np.repeat(np.arange(rows.num_rows), rows.degrees()).tolist()
    return list(zip(places, rows.columns.tolist(), weights, strict=False))


def global_edges(part):
    sources, targets = part.source_numbers.tolist(), part.target_numbers.tolist()
    return [(sources[row], targets[column], weight) for row, column, weight in entries(part.out)]


@given(**cuts)
@checked
def test_every_edge_lies_in_one_partition_with_its_weight(edges, num_partitions, how):
    parts = cut(*edges.sides(), num_partitions, how).partitions
    actual = Counter(edge for part in parts for edge in global_edges(part))
    kept = [(a, b, weight if edges.weighted else None) for a, b, weight in edges.stored()]
    assert actual == Counter(kept)


@given(**cuts)
@checked
def test_both_directions_of_a_partition_hold_the_same_edges_in_ascending_rows(
    edges, num_partitions, how
):
    for part in cut(*edges.sides(), num_partitions, how).partitions:
        turned = [(column, row, weight) for row, column, weight in entries(part.into)]
        assert Counter(turned) == Counter(entries(part.out))
        assert part.out.num_rows == len(part.source_numbers)
        assert part.into.num_rows == len(part.target_numbers)
        for side in (part.out, part.into):
            places = [(row, column) for row, column, _ in entries(side)]
            assert places == sorted(places)
            assert (side.offsets.dtype, side.columns.dtype) == (np.uint32, np.uint32)


@given(**cuts)
@checked
def test_every_vertex_lives_in_one_partition(edges, num_partitions, how):
    parts, owners, _ = cut(*edges.sides(), num_partitions, how)
    assert sorted(np.concatenate([part.own for part in parts])) == list(range(edges.num_vertices))
    sources, targets = Counter(), Counter()
    for source, target, _ in edges.stored():
        sources[source] += 1
        targets[target] += 1
    for index, part in enumerate(parts):
        own = part.own.tolist()
        assert (part.index, part.num_partitions) == (index, num_partitions)
        assert own == sorted(own)
        assert all(owners[vertex] == index for vertex in own)
        assert part.out_degrees.tolist() == [sources[vertex] for vertex in own]
        assert part.in_degrees.tolist() == [targets[vertex] for vertex in own]


@given(**cuts)
@checked
def test_mirrors_are_just_the_ends_that_live_elsewhere_in_order(edges, num_partitions, how):
    parts, owners, _ = cut(*edges.sides(), num_partitions, how)
    for part in parts:
        ends = list(zip(*global_edges(part), strict=True))[:2] or [(), ()]
        kept = (
            (part.source_mirrors, part.source_mirror_offsets),
            (part.target_mirrors, part.target_mirror_offsets),
        )
        for seen, (mirrors, offsets) in zip(ends, kept, strict=True):
            elsewhere = {vertex for vertex in seen if owners[vertex] != part.index}
            assert mirrors.tolist() == sorted(
                elsewhere, key=lambda vertex: (owners[vertex], vertex)
            )
            for owner in range(num_partitions):
                group = mirrors[offsets[owner] : offsets[owner + 1]]
                assert all(owners[group] == owner)
            assert offsets[-1] == len(mirrors)


@given(**cuts)
@checked
def test_owners_and_holders_of_mirrors_agree_on_routes(edges, num_partitions, how):
    parts = cut(*edges.sides(), num_partitions, how).partitions
    for owner, holder in itertools.product(parts, parts):
        p, q = owner.index, holder.index
        sent = owner.send_places[owner.send_place_offsets[q] : owner.send_place_offsets[q + 1]]
        kept = holder.source_mirror_offsets[p : p + 2]
        assert owner.own[sent].tolist() == holder.source_mirrors[slice(*kept)].tolist()
        got = owner.receive_places[
            owner.receive_place_offsets[q] : owner.receive_place_offsets[q + 1]
        ]
        kept = holder.target_mirror_offsets[p : p + 2]
        assert owner.own[got].tolist() == holder.target_mirrors[slice(*kept)].tolist()


@given(edges=any_edges(), num_partitions=st.integers(2, 6), how=st.sampled_from(["ranges", "hash"]))
@checked
def test_an_edge_cut_leaves_edges_with_their_sources(edges, num_partitions, how):
    parts, owners, _ = cut(*edges.sides(), num_partitions, how)
    for part in parts:
        assert not len(part.source_mirrors)
        assert all(owners[source] == part.index for source, _, _ in global_edges(part))


@given(edges=any_edges(), num_partitions=st.integers(2, 6))
@checked
def test_a_vertex_cut_leaves_edges_with_the_end_of_greater_number(edges, num_partitions):
    parts, owners, _ = cut(*edges.sides(), num_partitions, "vertex_cut")
    for part in parts:
        assert all(owners[max(edge[:2])] == part.index for edge in global_edges(part))


@given(edges=any_edges(), num_partitions=st.integers(1, 6), how=st.sampled_from(sorted(WAYS)))
@checked
def test_the_report_counts_what_the_partitions_hold(edges, num_partitions, how):
    parts, owners, report = cut(*edges.sides(), num_partitions, how)
    stored = edges.stored()
    num_apart = sum(owners[source] != owners[target] for source, target, _ in stored)
    assert report.cut_edges == pytest.approx(num_apart / max(len(stored), 1))
    copies = {
        (vertex, part.index)
        for part in parts
        for vertex in [*part.source_numbers.tolist(), *part.target_numbers.tolist()]
    }
    assert report.replication == pytest.approx(len(copies) / edges.num_vertices if copies else 1)
    assert report.num_mirrors == sum(
        len(part.send_places) + len(part.receive_places) for part in parts
    )
    assert report.superstep_bytes == 8 * report.num_mirrors
    if stored:
        largest = max(part.out.num_entries for part in parts)
        assert report.balance == pytest.approx(largest * num_partitions / len(stored))
    if edges.num_vertices:
        largest = max(part.num_own for part in parts)
        assert report.vertex_balance == pytest.approx(largest * num_partitions / edges.num_vertices)


def test_ranges_balance_edges_and_hash_balances_vertices_too():
    sides = hubs().sides()
    ranges, hashed = (cut(*sides, 8, how).report for how in ("ranges", "hash"))
    assert ranges.balance < 1.4
    assert ranges.vertex_balance > 2  # the first ranges are hubs
    assert hashed.vertex_balance < 1.2


def test_ranges_are_contiguous():
    owners = cut(*hubs().sides(), 5, "ranges").owners
    assert owners.tolist() == sorted(owners)


@pytest.mark.parametrize("directed", [True, False])
def test_cutting_vertices_needs_fewer_mirrors_than_cutting_edges(directed):
    sides = hubs(directed=directed).sides()
    hashed, vertices = (cut(*sides, 8, how).report for how in ("hash", "vertex_cut"))
    assert vertices.num_mirrors < 0.8 * hashed.num_mirrors
    assert vertices.replication < 0.8 * hashed.replication
    assert vertices.balance < hashed.balance


def test_one_partition_is_the_graph_itself():
    out, into = hubs().sides()
    (part,) = cut(out, into, 1).partitions
    assert part.out is out
    assert part.into is into
    assert part.own.tolist() == list(range(out.num_rows))


@pytest.mark.parametrize("how", sorted(WAYS))
def test_any_number_of_threads_cuts_alike(how):
    sides = hubs().sides()
    first, *others = (
        [
            part.to_blob().tobytes()
            for part in cut(*sides, 7, how, num_threads=num_threads).partitions
        ]
        for num_threads in (1, 2, 3, 9)
    )
    assert all(other == first for other in others)


def test_an_unknown_way_is_named_with_the_known_ones():
    with pytest.raises(UnknownNameError, match="Did you mean 'ranges'"):
        cut(*Edges(1, []).sides(), 2, "range")


@pytest.mark.parametrize("num_partitions", [0, -1, 65_537])
def test_a_number_of_partitions_out_of_range_is_refused(num_partitions):
    with pytest.raises(InvalidValueError, match="from 1 to 65536"):
        cut(*Edges(1, []).sides(), num_partitions)

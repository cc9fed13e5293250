"""Label propagation against counting in plain Python."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.graph.kernels.labels import most_frequent
from tests.graph.edges import any_edges, hubs, ldbc_case


def voted(edges, labels):
    """Count a vote per edge and direction; ties go to the smallest, without votes the old label."""
    votes = [Counter() for _ in labels]
    for source, target in edges.pairs:
        votes[target][labels[source]] += 1
        if edges.directed or source != target:
            votes[source][labels[target]] += 1
    return [
        min(pile, key=lambda label: (-pile[label], label)) if pile else old
        for pile, old in zip(votes, labels, strict=True)
    ]


@st.composite
def labelled(draw):
    edges = draw(any_edges())
    labels = st.lists(st.integers(0, 5), min_size=edges.num_vertices, max_size=edges.num_vertices)
    return edges, draw(labels)


@given(case=labelled(), num_threads=st.integers(1, 3))
@settings(deadline=None, max_examples=200)
def test_the_most_frequent_label_wins_and_ties_go_to_the_smallest(case, num_threads):
    edges, labels = case
    found = most_frequent(*edges.sides(), np.array(labels, np.uint32), 6, num_threads)
    assert found.tolist() == voted(edges, labels)


def test_hubs_choose_alike_with_any_number_of_threads():
    edges = hubs()
    labels = np.random.default_rng(2).integers(0, 50, edges.num_vertices).astype(np.uint32)
    expected = voted(edges, labels.tolist())
    for num_threads in (1, 2, 3):
        assert most_frequent(*edges.sides(), labels, 50, num_threads).tolist() == expected


@pytest.mark.parametrize("folder, num_supersteps", [("cdlp", 5), ("example", 2)])
@pytest.mark.parametrize("directed", [True, False])
def test_communities_of_ldbc_graphs_are_as_published(folder, num_supersteps, directed):
    ids, edges, expected = ldbc_case(folder, "CDLP", directed=directed)
    labels = np.arange(len(ids), dtype=np.uint32)
    for _ in range(num_supersteps):
        labels = most_frequent(*edges.sides(), labels, len(ids), 2)
    assert [ids[label] for label in labels] == expected

"""Encoding partitions as bytes, and decoding them without a copy."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.errors import PayloadError
from talka.graph.csr import Csr
from talka.graph.partitions.cutting import WAYS, cut
from talka.graph.partitions.partition import Partition
from tests.graph.edges import any_edges, hubs


def arrays(part):
    """Return every array of a partition by name, without absent weights."""
    entries = {}
    for field in fields(part):
        value = getattr(part, field.name)
        if isinstance(value, Csr):
            entries |= {f"{field.name}.{name}": array for name, array in value._asdict().items()}
        elif not isinstance(value, int):
            entries[field.name] = value
    return {name: array for name, array in entries.items() if array is not None}


@given(edges=any_edges(), num_partitions=st.integers(1, 4), how=st.sampled_from(sorted(WAYS)))
@settings(deadline=None)
def test_a_partition_survives_the_way_through_bytes(edges, num_partitions, how):
    for part in cut(*edges.sides(), num_partitions, how).partitions:
        back = Partition.from_blob(part.to_blob())
        assert (back.index, back.num_partitions) == (part.index, part.num_partitions)
        kept, read = arrays(part), arrays(back)
        assert kept.keys() == read.keys()
        for name, array in kept.items():
            assert array.dtype == read[name].dtype, name
            assert array.tolist() == read[name].tolist(), name


def test_arrays_are_views_on_boundaries_of_cache_lines():
    blob = cut(*hubs().sides(), 3, "vertex_cut").partitions[1].to_blob()
    for name, array in arrays(Partition.from_blob(blob)).items():
        assert np.may_share_memory(array, blob), name
        assert array.ctypes.data % 64 == 0, name


def test_one_partition_of_an_undirected_graph_holds_its_rows_once():
    out, into = hubs(directed=False).sides()
    (part,) = cut(out, into, 1).partitions
    blob = part.to_blob()
    back = Partition.from_blob(blob)
    assert back.into is back.out
    assert len(blob) < 1.5 * out.columns.nbytes + 20 * out.num_rows


@pytest.mark.parametrize("num_bytes", [0, 100, 5000])
def test_a_blob_that_was_cut_is_refused(num_bytes):
    blob = cut(*hubs().sides(), 2).partitions[0].to_blob()
    with pytest.raises(PayloadError, match=f"has {num_bytes} bytes"):
        Partition.from_blob(blob[:num_bytes])


def test_other_bytes_are_refused():
    with pytest.raises(PayloadError, match="does not begin as a partition does"):
        Partition.from_blob(np.zeros(5000, np.uint8))

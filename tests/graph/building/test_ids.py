import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.errors import UnknownVertexError
from talka.graph.ids import Ids


def some_ids(ascending):
    ranks = np.arange(len(ascending))[::-1]
    return Ids.ranked(ascending, ranks)


@given(st.sets(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20), st.data())
def test_integers_are_found_and_others_are_not(known, data):
    ascending = sorted(known)
    ids = some_ids(np.array(ascending))
    numbers = ids.numbers_of(ascending).tolist()
    assert [ids.vertex_of(number) for number in numbers] == ascending
    assert numbers == list(range(len(ascending)))[::-1]
    other = data.draw(st.integers(-(2**70), 2**70).filter(lambda one: one not in known))
    with pytest.raises(UnknownVertexError, match=f"no vertex {other} in"):
        ids.number_of(other)


@given(st.sets(st.text(max_size=3), min_size=1, max_size=20), st.text(max_size=3))
def test_strings_are_found_and_others_are_not(known, other):
    ascending = sorted(known, key=str.encode)
    ids = some_ids(pa.array(ascending, pa.large_string()))
    numbers = ids.numbers_of(ascending).tolist()
    assert [ids.vertex_of(number) for number in numbers] == ascending
    if other not in known:
        with pytest.raises(UnknownVertexError):
            ids.number_of(other)


@pytest.mark.parametrize("wrong", ["1", 1.5, None, 2**64, -1])
def test_what_is_no_id_of_the_graph_is_an_error_that_says_what_ids_are(wrong):
    ids = some_ids(np.array([1, 7], np.uint64))
    with pytest.raises(UnknownVertexError, match="ids are whole numbers from 1 to 7") as raised:
        ids.numbers_of([1, wrong])
    assert raised.value.vertex == wrong


def test_a_number_among_strings_is_an_error():
    ids = some_ids(pa.array(["1", "7"], pa.large_string()))
    with pytest.raises(UnknownVertexError, match="strings from '1' to '7'"):
        ids.number_of(1)


def test_an_empty_graph_says_that_it_has_no_ids():
    ids = some_ids(np.array([], np.int64))
    with pytest.raises(UnknownVertexError, match="empty"):
        ids.number_of(1)
    assert ids.numbers_of([]).tolist() == []


@pytest.mark.parametrize("number", [-1, 2])
def test_a_number_that_no_vertex_has_is_an_error(number):
    with pytest.raises(UnknownVertexError, match="numbered 0 to 1"):
        some_ids(np.array([5, 6])).vertex_of(number)


def test_numpy_types_are_found_too():
    ids = some_ids(np.array([5, 6]))
    assert ids.number_of(np.uint8(5)) == 1
    assert ids.numbers_of(np.array([6, 5], np.int16)).tolist() == [0, 1]

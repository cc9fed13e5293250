import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.events.fields import MAX_DEPTH, checked, is_deep
from talka.events.parsing import Stamped, Unknown, parsed


def line(**fields):
    return json.dumps({"event": "FromTheFuture", "time_s": 3} | fields).encode()


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


def test_a_kind_that_nobody_registered_is_kept_as_it_is():
    stamped = parsed(line(a=[1, {"b": None}], c="x\ud800"), "rank-1")
    assert stamped == Stamped(
        3.0, "rank-1", Unknown("FromTheFuture", {"a": [1, {"b": None}], "c": "x?"})
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"a": 1e300},
        {"a": [{"b": 10**400}]},
        {"a": -(2**64)},
        {"a": nested(MAX_DEPTH)},
        {"a": [0] * 10_001},
        {"event": ""},
        {"event": "x" * 201},
        {"event": 3},
        {"event": None},
        {"event": ["FromTheFuture"]},
        {"time_s": -1},
        {"time_s": True},
    ],
)
def test_an_unknown_event_that_is_too_large_or_too_deep_is_damaged(fields):
    assert parsed(line(**fields), "driver") == "damaged"


def test_an_unknown_event_of_the_largest_depth_is_kept():
    stamped = parsed(line(a=nested(MAX_DEPTH - 2)), "driver")
    assert isinstance(stamped.event, Unknown)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(-1e100, 1e100) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_checked_values_are_the_same_and_can_be_written_again(values):
    assert checked(values) == values
    assert not is_deep(values)
    json.dumps(checked(values), allow_nan=False).encode()


@given(st.binary(max_size=60))
def test_any_bytes_are_an_event_or_a_problem(data):
    content = parsed(data, "driver")
    assert content == "damaged" or isinstance(content, Stamped)

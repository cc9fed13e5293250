"""Headers of messages: what is packed is parsed, everything else is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.channels.wire.frames import (
    HEADER,
    MAGIC,
    MAX_DESCRIPTION_BYTES,
    REMOTE_PART,
    FrameKind,
    packed_header,
    parse_header,
)
from talka.errors import FrameError

LIMIT = 1000
NUMBERS = st.integers(0, 2**64 - 1)
WITH_BODY = (FrameKind.DATA, FrameKind.REMOTE)


@given(
    st.sampled_from(FrameKind),
    st.integers(REMOTE_PART.size, MAX_DESCRIPTION_BYTES),
    NUMBERS,
    NUMBERS,
    st.integers(0, LIMIT),
)
def test_a_header_is_parsed_as_it_was_packed(kind, description_bytes, context, tag, body_bytes):
    fields = {
        "description_bytes": description_bytes,
        "context": context,
        "tag": tag,
        "body_bytes": body_bytes if kind in WITH_BODY else 0,
    }
    header = parse_header(packed_header(kind, **fields) + b"more", LIMIT)
    assert header._asdict() == {"kind": kind, **fields}


@pytest.mark.parametrize(
    "kind, fields, problem",
    [
        (FrameKind.DATA, {"description_bytes": MAX_DESCRIPTION_BYTES + 1}, "a description of"),
        (FrameKind.DATA, {"body_bytes": LIMIT + 1}, "announces 1001 bytes, more than 1000"),
        (FrameKind.REMOTE, {"description_bytes": 23, "body_bytes": 1}, "lacks the address"),
        (FrameKind.PART, {"description_bytes": 0}, "lacks the address"),
        (FrameKind.PART, {"description_bytes": 24, "body_bytes": 1}, "of kind PART has a body"),
        (FrameKind.DONE, {"body_bytes": 1}, "of kind DONE has a body"),
        (FrameKind.BYE, {"body_bytes": 1}, "of kind BYE has a body"),
        (FrameKind.ALIVE, {"body_bytes": 1}, "of kind ALIVE has a body"),
    ],
)
def test_each_limit_is_checked(kind, fields, problem):
    with pytest.raises(FrameError, match=problem):
        parse_header(packed_header(kind, **fields), LIMIT)


def test_values_at_the_limits_are_allowed():
    most = packed_header(FrameKind.DATA, description_bytes=MAX_DESCRIPTION_BYTES, body_bytes=LIMIT)
    assert parse_header(most, LIMIT).body_bytes == LIMIT


@pytest.mark.parametrize("magic, number", [(b"TK", 1), (MAGIC, 0), (MAGIC, 99), (MAGIC, 255)])
def test_another_magic_or_kind_is_refused(magic, number):
    with pytest.raises(FrameError, match="has no valid header"):
        parse_header(HEADER.pack(magic, number, 0, 0, 0, 0), LIMIT)


@given(st.binary(min_size=HEADER.size, max_size=HEADER.size + 40), st.booleans())
def test_any_bytes_are_a_header_or_a_frame_error(data, begins_well):
    data = MAGIC + data[2:] if begins_well else data
    try:
        header = parse_header(data, LIMIT)
    except FrameError:
        return
    assert header.body_bytes <= LIMIT
    assert header.description_bytes <= MAX_DESCRIPTION_BYTES

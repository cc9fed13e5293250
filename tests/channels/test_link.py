"""Readers and writers of links, with streams that cut anywhere."""

import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.channels.buffers import MAX_PART_BYTES, MIN_PART_BYTES, PartBuffers, part_bytes
from talka.channels.operations import new_buffer
from talka.channels.wire.frames import FrameKind, packed_header
from talka.channels.wire.link import InboxFull, Reader, Writer
from talka.errors import FrameError


class CutStream:
    """Gives and takes some bytes at a time, now and then none."""

    poll_s = None

    def __init__(self, data, chance):
        self.data, self.chance, self.taken = data, chance, b""

    def recv_into(self, view):
        if not self.data:
            return 0
        count = min(self.chance.choice((0, 1, 7, 40, 1000, 1 << 18)), len(view), len(self.data))
        if not count:
            raise BlockingIOError
        view[:count] = self.data[:count]
        self.data = self.data[count:]
        return count

    def send(self, views):
        whole = b"".join(views)
        count = min(self.chance.choice((0, 1, 33, 1 << 20)), len(whole))
        self.taken += whole[:count]
        return count


class Collected:
    """A sink that keeps all messages, and pauses now and then."""

    def __init__(self, chance):
        self.messages, self.chance, self._body = [], chance, None

    def begin(self, link, header, description):
        if self.chance.random() < 0.2:
            raise InboxFull
        if header.kind is not FrameKind.DATA:
            self.messages.append((header.tag, description, None))
            return None
        self._head, self._body = (header.tag, description), new_buffer(header.body_bytes)
        return self._body

    def end(self, link):
        self.messages.append((*self._head, bytes(self._body)))


def messages_of(chance):
    messages = []
    for tag in range(chance.randrange(1, 12)):
        body = None
        if chance.random() < 0.8:
            body = chance.randbytes(chance.choice((0, 1, 31, 32, 33, 5000, 300_000)))
        messages.append((tag, chance.randbytes(chance.choice((0, 3, 100))), body))
    return messages


def bytes_of_messages(messages):
    return b"".join(
        packed_header(
            FrameKind.DONE if body is None else FrameKind.DATA,
            description_bytes=len(description),
            tag=tag,
            body_bytes=len(body or b""),
        )
        + description
        + (body or b"")
        for tag, description, body in messages
    )


@given(st.integers(0, 2**32))
def test_a_stream_that_is_cut_anywhere_gives_the_same_messages(seed):
    chance = random.Random(seed)
    messages, sink = messages_of(chance), Collected(chance)
    reader = Reader(CutStream(bytes_of_messages(messages), chance))
    for _ in range(1_000_000):
        try:
            reader.read(SimpleNamespace(), sink, 1 << 20)
        except InboxFull:
            continue
        except EOFError:
            break
    assert sink.messages == messages


def test_a_message_beyond_the_limit_is_refused_before_it_is_read():
    data = packed_header(FrameKind.DATA, body_bytes=101) + bytes(101)
    reader = Reader(CutStream(data, random.Random(0)))
    with pytest.raises(FrameError, match="announces 101 bytes"):  # noqa: PT012
        for _ in range(100):
            reader.read(SimpleNamespace(), Collected(random.Random(0)), 100)


@given(st.integers(0, 2**32), st.booleans())
def test_a_writer_sends_all_bytes_in_order(seed, copy):
    chance = random.Random(seed)
    stream, whole, ids = CutStream(b"", chance), b"", []
    writer = Writer(stream)
    for number in range(20):
        parts = [bytearray(chance.randbytes(chance.randrange(1, 80))) for _ in range(3)]
        whole += b"".join(parts)
        if writer.put([memoryview(part) for part in parts], number, copy=copy):
            ids.append(number)
        if copy:
            parts[1][:] = bytes(len(parts[1]))  # the caller may change its memory
        if chance.random() < 0.3:
            ids += writer.flush()
    while not writer.is_empty:
        ids += writer.flush()
    assert stream.taken == whole
    assert ids == list(range(20))


def test_an_abandoned_writer_returns_what_was_not_sent():
    stream = CutStream(b"", SimpleNamespace(choice=lambda options: 0))
    writer = Writer(stream)
    assert not writer.put([memoryview(b"abc")], "first", copy=True)
    assert not writer.put([memoryview(b"def")], None, copy=True)
    assert writer.abandon() == ["first"]
    assert writer.is_empty


@given(st.integers(1, 1 << 40))
def test_parts_are_within_their_limits(num_bytes):
    length = part_bytes(num_bytes)
    assert MIN_PART_BYTES <= length <= MAX_PART_BYTES
    assert num_bytes <= 4 * length or length == MAX_PART_BYTES


def test_buffers_are_used_again():
    buffers = PartBuffers()
    first = buffers.copy(memoryview(b"some bytes"))
    assert bytes(first[:10]) == b"some bytes"
    assert len(first) == MAX_PART_BYTES
    buffers.give_back(first)
    assert buffers.take() is first
    many = [buffers.take() for _ in range(40)]
    for buffer in many:
        buffers.give_back(buffer)
    assert len(buffers._free) < 40

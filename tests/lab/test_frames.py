"""The ring of frames, with datagrams between two sockets."""

import socket

import pytest

from talka.lab.frames import Frames


@pytest.fixture
def ends():
    """Two ends of a socket for datagrams."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


def test_frames_return_whole_and_in_their_order_however_often_the_ring_wraps(ends):
    ours, theirs = ends
    frames = Frames(theirs.fileno(), 5)
    sent, returned = [bytes([number]) * (1 + 37 * number) for number in range(200)], []
    waiting, held = list(sent), 0
    while len(returned) < len(sent):
        for payload in waiting[: 1 + len(returned) % 4]:
            ours.send(payload)
            waiting.pop(0)
        held += frames.receive()
        num_frames = min(held, 3)
        assert frames.send(num_frames) == 0, "none was dropped"
        held -= num_frames
        returned += [ours.recv(1 << 16) for _ in range(num_frames)]
    assert returned == sent


def test_a_full_ring_receives_nothing(ends):
    ours, theirs = ends
    frames = Frames(theirs.fileno(), 2)
    assert frames.receive() == 0
    for payload in (b"a", b"bc", b"d"):
        ours.send(payload)
    assert frames.receive() == 2
    assert frames.is_full
    assert frames.receive() == 0
    frames.send(1)
    assert frames.receive() == 1
    frames.send(2)
    assert [ours.recv(9) for _ in range(3)] == [b"a", b"bc", b"d"]


def test_a_closed_end_is_an_error(ends):
    ours, theirs = ends
    frames = Frames(theirs.fileno(), 2)
    ours.send(b"a")
    frames.receive()
    ours.close()
    with pytest.raises(OSError, match="sendmmsg"):
        frames.send(1)

"""Frames that arrive in pieces, and receivers that do not read."""

import os
import socket

import pytest

from talka.engine.local import wire
from talka.engine.local.frame_channel import FrameChannel


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        mailbox = FrameChannel(ours)
        yield mailbox, theirs
        mailbox.close()


def test_a_frame_that_arrives_in_pieces_does_not_block(pair):
    mailbox, theirs = pair
    data = wire.packed({"a": 1}) + wire.packed({"b": 2})
    received = []
    for position in range(len(data)):
        theirs.send(data[position : position + 1])
        received += mailbox.receive()
    assert received == [({"a": 1}, []), ({"b": 2}, [])]
    assert not mailbox.is_closed


def test_descriptors_stay_with_their_frames(pair):
    mailbox, theirs = pair
    with open(os.devnull) as file:
        wire.send(theirs, "none")
        wire.send(theirs, "many", [file.fileno()] * 300)
        wire.send(theirs, "one", [file.fileno()])
    theirs.close()
    frames = mailbox.receive()
    assert [(value, len(descriptors)) for value, descriptors in frames] == [
        ("none", 0),
        ("many", 300),
        ("one", 1),
    ]
    assert mailbox.is_closed
    for _, descriptors in frames:
        for descriptor in descriptors:
            os.close(descriptor)


def test_a_receiver_that_does_not_read_delays_nothing(pair):
    mailbox, theirs = pair
    frames = [bytes(1 << 20), b"second"]
    for frame in frames:
        mailbox.add(frame)
    assert mailbox.has_leaving
    theirs.settimeout(0)
    remote, received = FrameChannel(theirs), []
    while len(received) < 2:
        received += [value for value, _ in remote.receive()]
        mailbox.flush()
    assert received == frames
    assert not mailbox.has_leaving


def test_a_receiver_that_is_gone_is_no_error_and_its_last_frames_are_read(pair):
    mailbox, theirs = pair
    wire.send(theirs, "last")
    theirs.close()
    mailbox.add("too late")
    assert [value for value, _ in mailbox.receive()] == ["last"]
    assert mailbox.is_closed

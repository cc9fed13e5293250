"""Encrypted messages between machines."""

import socket

import numpy as np
import pytest

from talka.channels import Group, Mailbox, MailboxOptions
from talka.channels.wire.curve import CurveKeys, CurveStream
from talka.channels.wire.handshake import Initiator
from talka.errors import LostWorkerError
from tests.channels.ranks import SECRET, far_apart, groups, mailboxes, outcome, run, soon

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def far(monkeypatch):
    far_apart(monkeypatch)


def test_collectives_are_encrypted():
    with groups(3, encrypt=True) as members:
        for size in (5, 600_000):
            sums = run(lambda g, n=size: g.all_reduce(np.full(n, g.rank + 1.0)), members)
            assert all(np.array_equal(total, np.full(size, 6.0)) for total in sums)
        assert run(lambda g: g.broadcast("text"), members) == ["text"] * 3
        assert run(lambda g: g.all_gather(g.rank), members) == [[0, 1, 2]] * 3
        for group in members:
            assert group.mailbox._connector.tcp_listener is None  # nothing listens unencrypted


def port_for(box, rank):
    return box._connector.location_of(box.rank).curve_ports[rank]


def test_clients_without_the_right_key_are_not_heard():
    with mailboxes(2, encrypt=True) as boxes:
        port = port_for(boxes[0], 1)
        with socket.create_connection(("127.0.0.1", port)) as plain:
            plain.sendall(Initiator(SECRET, rank=1, to=0).hello + bytes(1000))
        keys = CurveKeys.new()
        stranger = CurveStream.connected(keys, keys.public, "127.0.0.1", port)
        stranger.sendall(Initiator(SECRET, rank=1, to=0).hello)  # it only waits in a queue
        assert isinstance(outcome(lambda: stranger.recv(1)), OSError)
        stranger.close()
        keys.close()
        members = [Group(box) for box in boxes]
        assert run(lambda g: g.all_reduce(g.rank + 1), members) == [3, 3]


def test_a_client_without_the_secret_is_counted_and_the_rank_still_connects():
    with mailboxes(2, encrypt=True) as boxes:
        box, keys = boxes[0], CurveKeys.new()
        public = box._connector.curve.public
        stranger = CurveStream.connected(keys, public, "127.0.0.1", port_for(box, 1))
        stranger.sendall(b"x" * len(Initiator(SECRET, rank=1, to=0).hello))
        soon(lambda: box.refused)
        assert box.refused == {"does not begin with a hello": 1}
        stranger.close()
        keys.close()
        members = [Group(each) for each in boxes]
        assert run(lambda g: g.all_reduce(g.rank + 1), members) == [3, 3]


def test_the_end_of_an_encrypted_rank_is_noticed():
    with groups(2, encrypt=True) as (first, second):
        first.send("last", to=1)
        assert second.receive(source=0, timeout_s=10) == "last"
        first.mailbox.close()
        with pytest.raises(LostWorkerError):
            second.receive(source=0, timeout_s=10)


def test_one_rank_alone_may_encrypt():
    rendezvous = type("Nothing", (), {"set": lambda *_: None})()
    box = Mailbox(0, 1, rendezvous, SECRET, options=MailboxOptions(encrypt=True))
    assert Group(box).all_reduce(3) == 3
    box.close()

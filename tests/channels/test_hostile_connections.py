"""Connections of strangers, and of ranks that send garbage: counted, dropped, without a trace."""

import os
import random
import resource
import socket
import threading

import pytest

from talka.channels import Group
from talka.channels.wire.frames import FrameKind, packed_header
from talka.channels.wire.handshake import ANSWER_BYTES, Initiator
from talka.errors import LostWorkerError
from tests.channels.ranks import SECRET, far_apart, mailboxes, run, soon


@pytest.fixture
def trio(monkeypatch):
    far_apart(monkeypatch)
    with mailboxes(3, max_message_bytes=1 << 20) as boxes:
        yield boxes


def connect(box):
    location = box._connector.location_of(box.rank)
    return socket.create_connection((location.host, location.port), timeout=10)


def proved(box, rank, secret=SECRET):
    """Return a connection after a handshake, as this rank would make it."""
    connection, initiator = connect(box), Initiator(secret, rank=rank, to=box.rank)
    connection.sendall(initiator.hello)
    answer = b""
    while len(answer) < ANSWER_BYTES:
        answer += connection.recv(ANSWER_BYTES - len(answer))
    connection.sendall(initiator.proof(answer))
    return connection


def still_works(boxes, ranks):
    chosen = [box for box in boxes if box.rank in ranks]
    members = [Group(box, ranks) for box in chosen]
    assert run(lambda g: g.all_reduce(1), members) == [len(ranks)] * len(ranks)


def garbage(chance):
    hello = Initiator(b"wrong" * 8, rank=1, to=0).hello
    ways = (
        lambda: chance.randbytes(chance.randrange(1, 200)),
        lambda: hello,
        lambda: hello[: chance.randrange(len(hello))],
        lambda: hello + chance.randbytes(32),
        lambda: hello + bytes(5000),
        lambda: b"",
    )
    return chance.choice(ways)()


@pytest.mark.slow
def test_thousands_of_strangers_change_nothing(trio):
    box, chance = trio[0], random.Random(0)
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3000):
        with connect(box) as connection:
            data = garbage(chance)
            if data:
                connection.sendall(data)
    soon(lambda: sum(box.refused.values()) == 3000)
    assert not box._service._handshakes
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB
    assert not box.lost
    still_works(trio, (0, 1, 2))


def test_a_flood_of_idle_connections_does_not_keep_ranks_out(trio):
    idle = [connect(trio[0]) for _ in range(200)]
    still_works(trio, (0, 1, 2))
    assert trio[0].refused["too many handshakes at once"] >= 100
    for connection in idle:
        connection.close()


@pytest.mark.parametrize(
    "data, reason",
    [
        (b"garbage" * 10, "has no valid header"),
        (packed_header(FrameKind.DATA, body_bytes=1 << 40), "announces 1099511627776 bytes"),
        (packed_header(FrameKind.DATA, description_bytes=1 << 20), "has a description of 1048576"),
        (packed_header(FrameKind.PART, description_bytes=24) + bytes(24), "that has not begun"),
        (packed_header(FrameKind.CANCEL, tag=7), "that has not begun"),
        (
            packed_header(FrameKind.REMOTE, description_bytes=24, body_bytes=8) + bytes(24),
            "in the memory of another machine",
        ),
    ],
)
def test_a_rank_that_sends_garbage_is_lost_and_others_continue(trio, data, reason):
    with proved(trio[0], 1) as connection:
        connection.sendall(data)
        with pytest.raises(LostWorkerError):
            Group(trio[0]).receive(source=1, timeout_s=10)
    assert any(reason in text for text in trio[0].refused), trio[0].refused
    still_works(trio, (0, 2))


@pytest.mark.parametrize("rank", [0, 3, 4_000_000_000])
def test_ranks_that_do_not_exist_are_refused(trio, rank):
    with proved(trio[0], rank):
        soon(lambda: trio[0].refused)
    assert trio[0].refused == {f"claims to come from rank {rank}": 1}
    still_works(trio, (0, 1, 2))


@pytest.mark.slow
def test_mailboxes_leave_nothing_behind():
    def use():
        with mailboxes(2) as boxes:
            still_works(boxes, (0, 1))

    use()
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for _ in range(25):
        use()
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) == descriptors

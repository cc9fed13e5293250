"""Real processes that are killed or stopped: survivors learn it, and continue."""

import os
import signal

import numpy as np
import pytest

from talka.channels import Group, Mailbox, MailboxOptions
from talka.channels.wire import connecting
from talka.errors import LostWorkerError
from tests.channels.ranks import SECRET, FileRendezvous, outcome, processes

pytestmark = pytest.mark.slow
WAITING = "meeting.set('ready', b''); time.sleep(60)"


@pytest.fixture(params=["near", "far"])
def survivor(request, tmp_path, monkeypatch):
    """Make the group of rank 0, which is this process; with how many others, and their scripts."""
    opened = []
    is_far = request.param == "far"
    if is_far:
        monkeypatch.setattr(connecting, "machine_id", lambda: "tests")

    def make(scripts, **options):
        size, rendezvous = len(scripts) + 1, FileRendezvous(tmp_path)
        running = processes(tmp_path, size, scripts, far=is_far, options=repr(options))
        opened.append(running)
        children = running.__enter__()
        box = Mailbox(0, size, rendezvous, SECRET, options=MailboxOptions(**options))
        opened.append(box)
        rendezvous.get("ready", timeout_s=20)
        return Group(box), children

    yield make
    for thing in reversed(opened):
        thing.close() if isinstance(thing, Mailbox) else thing.__exit__(None, None, None)


def kill(child):
    child.kill()
    child.wait()


def test_a_rank_that_dies_while_nothing_is_sent(survivor):
    group, children = survivor({1: "group.send('last', to=0); " + WAITING})
    kill(children[1])
    assert group.receive(source=1, timeout_s=20) == "last"
    with pytest.raises(LostWorkerError, match="rank 1"):
        group.receive(source=1, timeout_s=20)


@pytest.mark.parametrize("source", [1, None])
def test_a_rank_that_dies_while_it_is_awaited(survivor, source):
    group, _ = survivor({1: "group.send('x', to=0, tag=1); meeting.set('ready', b'');"
                            "group.receive(source=0); os.kill(os.getpid(), 9)"})  # fmt: skip
    group.send("now", to=1)
    with pytest.raises(LostWorkerError) as caught:
        group.receive(source=source, timeout_s=20)
    assert caught.value.ranks == (1,)
    assert group.receive(source=1, tag=1, timeout_s=20) == "x"


LONG = 100_000_000
SENDER = f"meeting.set('ready', b''); group.send(np.zeros({LONG}, np.uint8), to=0); time.sleep(60)"


def test_a_rank_that_dies_while_it_is_sent_to(survivor):
    group, children = survivor({1: WAITING})
    send = group.mailbox.post_send(1, memoryview(bytearray(LONG)), tag=5)
    assert not send.is_done
    kill(children[1])
    with pytest.raises(LostWorkerError, match="rank 1"):
        send.wait(20)
    with pytest.raises(LostWorkerError):
        group.send(np.zeros(LONG, np.uint8), to=1, timeout_s=20)


def test_a_rank_that_dies_while_it_sends(survivor):
    group, children = survivor({1: SENDER})
    probe = group.mailbox.post_receive(1, tag=0, context=group.context)
    group.mailbox.progress(lambda: False, 10)  # reads the first bytes
    kill(children[1])
    error = outcome(lambda: probe.wait(20))
    assert error is None or isinstance(error, LostWorkerError)
    with pytest.raises(LostWorkerError):
        group.receive(source=1, timeout_s=20)
    assert group.mailbox._delivery.matching.inbox_bytes == 0


ECHO = "\nwhile True:\n  group.send(group.receive(source=0), to=0)"


def test_survivors_continue(survivor):
    first = "group.send('x', to=0); " + WAITING
    group, children = survivor({1: first, 2: "pass" + ECHO})
    assert group.receive(source=1, timeout_s=20) == "x"
    kill(children[1])
    for size in (3, 500_000):
        group.send(np.arange(size), to=2)
        assert group.receive(source=2, timeout_s=20)[-1] == size - 1
    with pytest.raises(LostWorkerError):
        group.receive(source=1, timeout_s=20)
    group.send("still", to=2)
    assert group.receive_from_any(timeout_s=20) == (2, "still")
    assert list(group.mailbox.lost) == [1]


@pytest.mark.parametrize("is_sending", [False, True])
def test_a_rank_that_is_stopped_is_lost_after_its_silence(survivor, is_sending):
    options = {"silence_s": 0.5, "buffer_bytes": 1 << 20}
    group, children = survivor({1: "group.send('x', to=0); " + WAITING}, **options)
    assert group.receive(source=1, timeout_s=20) == "x"
    group.send("y", to=1)
    os.kill(children[1].pid, signal.SIGSTOP)
    try:
        with pytest.raises(LostWorkerError, match="no sign of life"):  # noqa: PT012
            if is_sending:
                for _ in range(3):  # by TCP, one beyond the limit is copied whole
                    group.send(np.zeros(50 << 20, np.uint8), to=1, timeout_s=20)
            else:
                group.receive(source=1, timeout_s=20)
    finally:
        os.kill(children[1].pid, signal.SIGCONT)

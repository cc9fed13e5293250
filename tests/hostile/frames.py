"""Bytes on a link from a process that proved the secret and then sends what it likes.

Each round is a stream of a few frames, good, changed or random, cut anywhere, for the reader and
the delivery of a mailbox, with receives of several kinds. No sockets: a stream is a piece of memory.
It must be read, or refused by a FrameError; what is counted must stay right. Values that arrive are
decoded.
"""

import contextlib
import os
import random
import threading

import numpy as np

from talka.channels.coding import decoded, encoded
from talka.channels.delivery import Delivery
from talka.channels.operations import ReceiveOperation, new_buffer
from talka.channels.wire.frames import HEADER, REMOTE_PART, FrameKind, packed_header
from talka.channels.wire.link import InboxFull, WireLink
from talka.channels.wire.memory import address_of
from talka.errors import FrameError, LostWorkerError, PayloadError
from tests.hostile.outcome import Outcome
from tests.hostile.stored_values import ARRAYS, PLAIN, forged

LIMIT = 5000
INBOX_BYTES = 20_000
MEMORY = bytearray(10_000)
VALUES = [encoded(value) for value in (*PLAIN, *ARRAYS, np.arange(100.0), np.zeros((2, 0)))]
VALUES = [(description, bytes(body)) for description, body in VALUES]
NUMBERS = [0, 1, 2, 23, 24, 255, LIMIT, LIMIT + 1, 1 << 16, (1 << 16) + 1, 1 << 34, (1 << 64) - 1]


class MemoryStream:
    """A connection whose bytes have all arrived."""

    poll_s = None

    def __init__(self, data: bytes, chance: random.Random) -> None:
        self._data, self._chance, self._start = data, chance, 0

    def fileno(self) -> int:
        return 0

    def send(self, views: list[memoryview]) -> int:
        return sum(map(len, views))

    def recv_into(self, view: memoryview) -> int:
        most = self._chance.choice((1 << 17, 1 << 17, 100, 7))
        part = self._data[self._start : self._start + min(most, len(view))]
        view[: len(part)] = part
        self._start += len(part)
        return len(part)

    def close(self) -> None:
        pass


def frame(chance: random.Random) -> bytes:
    """A frame as a rank would send it, or nearly."""
    kind = chance.choice((*FrameKind, FrameKind.DATA, FrameKind.REMOTE, FrameKind.PART))
    description, body = chance.choice(VALUES)
    context, tag = chance.choice((1, 2)), chance.choice((1, 2, 3))
    announced = len(body) if chance.random() < 0.9 else chance.choice(NUMBERS)
    if kind in (FrameKind.REMOTE, FrameKind.PART):
        address = address_of(MEMORY) if chance.random() < 0.9 else chance.getrandbits(40)
        length = chance.choice((announced, announced // 2, chance.choice(NUMBERS)))
        before = REMOTE_PART.pack(address, tag, length & (2**64 - 1))
        description, body = before + description * (kind is FrameKind.REMOTE), b""
    if kind not in (FrameKind.DATA, FrameKind.REMOTE):
        announced, body = 0, b""
    head = packed_header(
        kind, description_bytes=len(description), context=context, tag=tag, body_bytes=announced
    )
    return head + description + body


def stream(chance: random.Random) -> bytes:
    data = b"".join(frame(chance) for _ in range(chance.randint(1, 5)))
    way = chance.randrange(5)
    if way == 0:
        return forged(data, chance)
    if way == 1:
        return data[: chance.randrange(len(data) + 1)]
    if way == 2:
        return forged(data[: HEADER.size + 40], chance) + data[HEADER.size + 40 :]
    return data


class Receiver:
    """The part of a mailbox behind its sockets."""

    def __init__(self, data: bytes, chance: random.Random) -> None:
        self.completed: list[ReceiveOperation] = []
        self.delivery = Delivery(
            threading.Lock(),
            inbox_bytes=INBOX_BYTES,
            complete=self._complete,
            flush_later=lambda link: None,
        )
        pid = os.getpid() if chance.random() < 0.8 else 0
        self.link = WireLink(
            MemoryStream(data, chance), 1, is_outgoing=chance.random() < 0.05, pid=pid
        )
        self.delivery.add(self.link)

    def _complete(self, operation: ReceiveOperation) -> None:
        if not operation.is_done:
            operation.is_done = True
            self.completed.append(operation)

    def post(self, chance: random.Random) -> None:
        into = new_buffer(chance.choice((0, 30, 800, LIMIT))) if chance.random() < 0.4 else None
        source = chance.choice((None, 1, 2))
        receive = ReceiveOperation(
            None, source, chance.choice((1, 2)), chance.choice((1, 2, 3)), into
        )
        receive.is_exact = chance.random() < 0.3
        self.delivery.post(receive)

    def begin(self, link, header, description):
        if header.kind in (FrameKind.DONE, FrameKind.BYE, FrameKind.ALIVE):
            return None
        return self.delivery.begin(link, header, description)

    def end(self, link) -> None:
        self.delivery.end(link)


def check(receiver: Receiver) -> None:
    """What is counted is there; what was received can be decoded, or is refused."""
    matching = receiver.delivery.matching
    kept = [arrival for waiting in matching._arrivals.values() for arrival in waiting]
    assert matching.inbox_bytes == sum(a.num_bytes for a in kept if a.data is not None)
    for receive in receiver.completed:
        if receive.error is not None:
            assert isinstance(receive.error, ValueError | LostWorkerError), receive.error
            continue
        with contextlib.suppress(FrameError, PayloadError):
            repr(decoded(receive.description, receive.data))


def play(data: bytes, chance: random.Random) -> bool:
    """Read a stream with some receives; return whether all of it was read as good."""
    receiver = Receiver(data, chance)
    for _ in range(chance.randrange(4)):
        receiver.post(chance)
    try:
        for _ in range(10 * len(data) + 20):
            try:
                receiver.link.reader.read(receiver.link, receiver, LIMIT)
            except InboxFull:
                receiver.post(chance)
            if chance.random() < 0.2:
                receiver.post(chance)
            if chance.random() < 0.02:
                receiver.delivery.forget(chance.choice((1, 2)))
    except EOFError:
        return True
    except FrameError:
        return False
    finally:
        receiver.delivery.remove(receiver.link)
        receiver.delivery.matching.discard_incomplete(1)
        check(receiver)
    return True  # it is paused, and nobody receives


def attack(rounds: int, seed: int) -> Outcome:
    """Read as many forged streams; AssertionError with seed and round if one goes wrong."""
    accepted = refused = 0
    for number in range(rounds):
        chance = random.Random(f"{seed}/{number}")
        try:
            if play(stream(chance), chance):
                accepted += 1
            else:
                refused += 1
        except Exception as error:  # any other is what is looked for
            raise AssertionError(f"seed {seed}, round {number}: {error!r}") from error
    return Outcome(accepted, refused)

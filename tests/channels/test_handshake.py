"""The handshake: only two ends that know the secret, and mean each other, come through."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.channels.wire.handshake import (
    ANSWER_BYTES,
    HELLO_BYTES,
    PROOF_BYTES,
    Acceptor,
    Initiator,
)
from talka.errors import FrameError

SECRET, OTHER = b"a" * 32, b"b" * 32


def ends(secret=SECRET, other=SECRET, *, rank=3, to=7):
    return Initiator(secret, rank=rank, to=to), Acceptor(other, rank=to)


def test_two_ends_with_the_secret_accept_each_other():
    initiator, acceptor = ends()
    assert len(initiator.hello) == HELLO_BYTES
    answer = acceptor.answer(initiator.hello)
    assert len(answer) == ANSWER_BYTES
    proof = initiator.proof(answer)
    assert len(proof) == PROOF_BYTES
    acceptor.check(proof)
    assert acceptor.source == 3


def test_the_initiator_refuses_an_acceptor_without_the_secret():
    initiator, acceptor = ends(SECRET, OTHER)
    with pytest.raises(FrameError, match="does not prove the secret"):
        initiator.proof(acceptor.answer(initiator.hello))


def test_the_acceptor_refuses_an_initiator_without_the_secret():
    initiator, acceptor = ends(OTHER, SECRET)
    forger = Acceptor(OTHER, rank=7)
    acceptor.answer(initiator.hello)
    with pytest.raises(FrameError, match="does not prove the secret"):
        acceptor.check(initiator.proof(forger.answer(initiator.hello)))


def test_messages_of_another_connection_cannot_be_used_again():
    initiator, acceptor = ends()
    answer = acceptor.answer(initiator.hello)
    proof = initiator.proof(answer)
    second = Acceptor(SECRET, rank=7)
    second.answer(initiator.hello)
    with pytest.raises(FrameError):
        second.check(proof)
    with pytest.raises(FrameError):
        Initiator(SECRET, rank=3, to=7).proof(answer)


def test_a_proof_cannot_be_sent_back_to_its_author():
    initiator, acceptor = ends()
    answer = acceptor.answer(initiator.hello)
    with pytest.raises(FrameError):
        acceptor.check(answer[-PROOF_BYTES:])


def test_an_answer_for_other_ranks_is_refused():
    initiator = Initiator(SECRET, rank=3, to=7)
    changed = bytearray(initiator.hello)
    struct.pack_into("<I", changed, 10, 4)  # as if rank 4 had sent it
    with pytest.raises(FrameError, match="does not prove"):
        initiator.proof(Acceptor(SECRET, rank=7).answer(bytes(changed)))


@pytest.mark.parametrize(
    "offset, form, value, problem",
    [
        (0, "<8s", b"talka-xx", "does not begin with a hello"),
        (8, "<H", 2, "speaks version 2 of the protocol, not 1"),
        (14, "<I", 8, "is for rank 8, not 7"),
    ],
)
def test_other_hellos_are_refused(offset, form, value, problem):
    initiator, acceptor = ends()
    changed = bytearray(initiator.hello)
    struct.pack_into(form, changed, offset, value)
    with pytest.raises(FrameError, match=problem):
        acceptor.answer(bytes(changed))


@given(st.integers(0, ANSWER_BYTES - 1))
def test_a_truncated_answer_or_proof_is_refused(length):
    initiator, acceptor = ends()
    answer = acceptor.answer(initiator.hello)
    with pytest.raises(FrameError):
        initiator.proof(answer[:length])
    with pytest.raises(FrameError):
        acceptor.check(initiator.proof(answer)[: length % PROOF_BYTES])


@given(st.binary(min_size=HELLO_BYTES, max_size=HELLO_BYTES), st.binary(max_size=80))
def test_any_bytes_are_refused(hello, proof):
    initiator, acceptor = ends()
    with pytest.raises(FrameError):
        acceptor.answer(hello)
    acceptor.answer(initiator.hello)
    with pytest.raises(FrameError):
        acceptor.check(proof)

"""Proof that both ends of a connection know the secret of their job, before any message is read.

    initiator -> hello: version, ranks of both ends, nonce
    acceptor  -> nonce, proof
    initiator -> proof, then messages

A proof is an HMAC of both nonces and both ranks. It differs by direction, so it cannot be sent
back to its author, and an observer can use neither for another connection. Plain code: bytes in,
bytes out.
"""

import hashlib
import hmac
import secrets
import struct
from typing import Final

from talka.errors import FrameError

_VERSION: Final = 1
_HELLO: Final = struct.Struct("<8sHII32s")
_MAGIC: Final = b"talka-ch"
_NONCE_BYTES: Final = 32
_PROOF_BYTES: Final = 32
HELLO_BYTES: Final = _HELLO.size
ANSWER_BYTES: Final = _NONCE_BYTES + _PROOF_BYTES
PROOF_BYTES: Final = _PROOF_BYTES


class Initiator:
    """The end that opened the connection, to send messages."""

    def __init__(self, secret: bytes, *, rank: int, to: int) -> None:
        self._secret, self._ranks = secret, (rank, to)
        self._nonce = secrets.token_bytes(_NONCE_BYTES)
        self.hello = _HELLO.pack(_MAGIC, _VERSION, rank, to, self._nonce)

    def proof(self, answer: bytes) -> bytes:
        """Check the acceptor's answer and return the proof to send; raise FrameError."""
        theirs, proof = answer[:_NONCE_BYTES], answer[_NONCE_BYTES:]
        nonces = self._nonce + theirs
        if not hmac.compare_digest(proof, _proof(self._secret, b"acceptor", nonces, self._ranks)):
            raise FrameError("does not prove the secret of this job")
        return _proof(self._secret, b"initiator", nonces, self._ranks)


class Acceptor:
    """The end that accepted the connection, to receive messages."""

    def __init__(self, secret: bytes, *, rank: int) -> None:
        self._secret, self._rank = secret, rank
        self._nonces = b""
        self.source = -1
        """Rank of the initiator, as it claims; valid after `check`."""

    def answer(self, hello: bytes) -> bytes:
        """Return the answer to a hello; raise FrameError if it is not one for this rank."""
        magic, version, source, to, nonce = _HELLO.unpack(hello)
        if magic != _MAGIC:
            raise FrameError("does not begin with a hello")
        if version != _VERSION:
            raise FrameError(f"speaks version {version} of the protocol, not {_VERSION}")
        if to != self._rank:
            raise FrameError(f"is for rank {to}, not {self._rank}")
        self.source = source
        own = secrets.token_bytes(_NONCE_BYTES)
        self._nonces = nonce + own
        return own + _proof(self._secret, b"acceptor", self._nonces, (source, to))

    def check(self, proof: bytes) -> None:
        """Raise FrameError unless the initiator knows the secret."""
        expected = _proof(self._secret, b"initiator", self._nonces, (self.source, self._rank))
        if not hmac.compare_digest(proof, expected):
            raise FrameError("does not prove the secret of this job")


def _proof(secret: bytes, side: bytes, nonces: bytes, ranks: tuple[int, int]) -> bytes:
    text = b"talka channels 1 " + side + nonces + struct.pack("<II", *ranks)
    return hmac.new(secret, text, hashlib.sha256).digest()

"""The rendezvous: how the ranks of a gang exchange small values, such as addresses, before channels exist."""

import secrets
from typing import Final, Protocol

from talka.errors import InvalidValueError

MAX_KEY_BYTES: Final = 512
MAX_VALUE_BYTES: Final = 1 << 20
MAX_KEYS: Final = 100_000
MAX_TOTAL_BYTES: Final = 1 << 28
"""Bytes that all values of a gang may have together."""
TIMEOUT_S: Final = 60.0
"""Seconds that `get` waits by default."""


class Rendezvous(Protocol):
    """Keys and values that all ranks of a gang share. Thread-safe.

    The driver of the gang stores them, so that they survive the end of a rank. They end with the
    gang. Meant for few and small values, such as addresses; channels are for data.
    """

    def set(self, key: str, value: bytes) -> None:
        """Store a value; an earlier value of the key is replaced.

        Raises InvalidValueError if the key is empty or has more than 512 bytes, if the value has more
        than 1 MiB, or if the gang has 100,000 keys or values of 256 MiB.
        """
        ...

    def get(self, key: str, timeout_s: float = TIMEOUT_S) -> bytes:
        """Wait until a key is set, by any rank, and return its value.

        Several threads of a rank may wait at the same time, and do not delay a `set`.

        Raises RendezvousTimeoutError if the key is not set within `timeout_s` seconds.
        """
        ...


def check_key(key: object) -> None:
    """Raise InvalidValueError if this cannot be a key of a rendezvous."""
    allowed = f"a text of 1 to {MAX_KEY_BYTES} bytes"
    if not isinstance(key, str):
        raise InvalidValueError("the key of a rendezvous", key, allowed)
    num_bytes = len(key.encode("utf-8", "replace"))
    if not 1 <= num_bytes <= MAX_KEY_BYTES:
        shown = f"{key[:20]}... of {num_bytes} bytes" if key else key
        raise InvalidValueError("the key of a rendezvous", shown, allowed)


def check_value(key: str, value: object) -> None:
    """Raise InvalidValueError if this cannot be a value of a rendezvous."""
    if not isinstance(value, bytes | bytearray | memoryview):
        given = type(value).__name__
        raise InvalidValueError(f"the value of the key {key!r}", given, "bytes")
    if len(value) > MAX_VALUE_BYTES:
        allowed = f"at most {MAX_VALUE_BYTES} bytes: a rendezvous is for addresses, not for data"
        raise InvalidValueError(
            f"the size of the value of the key {key!r}", f"{len(value)} bytes", allowed
        )


def new_secret() -> bytes:
    """Return a random secret for a job, which its processes prove to each other."""
    return secrets.token_bytes(32)

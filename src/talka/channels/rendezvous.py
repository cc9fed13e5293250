"""How the processes of a job find each other."""

import secrets
from typing import Protocol


class Rendezvous(Protocol):
    """Keys and values that all processes of a job share; the driver of the job hosts them.

    Thread-safe: a thread that waits for a key does not block others.
    """

    def set(self, key: str, value: bytes) -> None:
        """Set a key; processes that wait for it continue."""
        ...

    def get(self, key: str, *, timeout_s: float | None = None) -> bytes:
        """Return the value of a key, and wait until it is set.

        Raises RendezvousTimeoutError if that takes longer than `timeout_s`.
        """
        ...


def new_secret() -> bytes:
    """Return a random secret for a job, which its processes prove to each other."""
    return secrets.token_bytes(32)

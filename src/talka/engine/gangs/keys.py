"""Keys and values of a rendezvous: the table of the driver, and a rendezvous for threads."""

import threading
from typing import Any, NamedTuple

from talka.channels.rendezvous import MAX_KEYS, MAX_TOTAL_BYTES, TIMEOUT_S, check_key, check_value
from talka.errors import InvalidValueError, RendezvousTimeoutError


class Answer(NamedTuple):
    """Answer to a call of a rank, to be sent to it."""

    rank: int
    call: int
    """Number of the call, which the rank chose."""
    value: bytes | None = None
    """Value of the key; None if the call was a `set`."""
    refusal: str | None = None
    """Reason why the call was refused."""


class KeyTable:
    """Keys that are set, and calls that wait for others: calls in, answers out. Not thread-safe."""

    def __init__(self, max_keys: int = MAX_KEYS, max_bytes: int = MAX_TOTAL_BYTES) -> None:
        self._max_keys, self._max_bytes = max_keys, max_bytes
        self._num_bytes = 0
        self._values: dict[str, bytes] = {}
        self._waiting: dict[str, set[tuple[int, int]]] = {}

    def set(self, rank: int, call: int, key: str, value: bytes) -> list[Answer]:
        """Store a value; return the answers to this call and to all that waited for the key."""
        is_new = key not in self._values
        num_bytes = self._num_bytes + len(value) - (0 if is_new else len(self._values[key]))
        if num_bytes > self._max_bytes or (is_new and len(self._values) >= self._max_keys):
            limit = f"at most {self._max_keys} keys with {self._max_bytes} bytes in all"
            return [Answer(rank, call, refusal=f"{limit}: send data through channels")]
        self._values[key], self._num_bytes = value, num_bytes
        waiting = sorted(self._waiting.pop(key, ()))
        return [Answer(rank, call), *(Answer(*each, value=value) for each in waiting)]

    def get(self, rank: int, call: int, key: str) -> list[Answer]:
        """Return the answer, if the key is set; otherwise a later `set` returns it."""
        if key in self._values:
            return [Answer(rank, call, value=self._values[key])]
        self._waiting.setdefault(key, set()).add((rank, call))
        return []

    def forget(self, rank: int, call: int, key: str) -> None:
        """Forget a call of `get` that does not wait any more."""
        waiting = self._waiting.get(key, set())
        waiting.discard((rank, call))
        if not waiting:
            self._waiting.pop(key, None)

    def forget_rank(self, rank: int) -> None:
        """Forget all calls of a rank that has ended."""
        for key, waiting in list(self._waiting.items()):
            self._waiting[key] = {each for each in waiting if each[0] != rank}
            if not self._waiting[key]:
                del self._waiting[key]

    @property
    def num_waiting(self) -> int:
        """Number of calls that wait for a key."""
        return sum(map(len, self._waiting.values()))


class MemoryRendezvous:
    """A rendezvous of threads of one process: for a gang of one rank, and for tests."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._condition = threading.Condition()

    def set(self, key: str, value: bytes) -> None:
        """Store a value."""
        check_key(key)
        check_value(key, value)
        with self._condition:
            self._values[key] = bytes(value)
            self._condition.notify_all()

    def get(self, key: str, timeout_s: float = TIMEOUT_S) -> bytes:
        """Wait until a key is set and return its value."""
        check_key(key)
        with self._condition:
            if not self._condition.wait_for(lambda: key in self._values, timeout_s):
                raise RendezvousTimeoutError(key, timeout_s)
            return self._values[key]


def raise_refusal(answer: dict[str, Any]) -> None:
    """Raise InvalidValueError if the driver refused a call."""
    if answer.get("refusal") is not None:
        raise InvalidValueError("the rendezvous", "full", answer["refusal"])

"""Sums of calls of collectives: an event now and then, not one per call."""

import threading
import time
from collections.abc import Callable
from typing import Final

from talka.channels.events import CollectivesRan
from talka.events import Event
from talka.network import Network
from talka.network.algorithms import algorithm_cost

_EVERY_S: Final = 1.0


class CallLog:
    """Adds up calls by collective, algorithm and size (to a power of two)."""

    def __init__(self, emit: Callable[[Event], object]) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self._sums: dict[tuple[str, str, int], list[float]] = {}
        self._predictions: dict[tuple[str, str, int, Network], float] = {}
        self._last_s = time.monotonic()

    def add(
        self, name: str, algorithm: str, num_bytes: int, seconds: float, network: Network | None
    ) -> None:
        """Add a call; from time to time, emit the sums so far."""
        predicted_s = (
            None if network is None else self._predicted(name, algorithm, num_bytes, network)
        )
        with self._lock:
            key = (name, algorithm, num_bytes.bit_length())
            sums = self._sums.setdefault(key, [0, 0, 0.0, 0.0])
            for index, value in enumerate((1, num_bytes, seconds, predicted_s or 0.0)):
                sums[index] += value
            is_due = time.monotonic() - self._last_s > _EVERY_S
        if is_due:
            self.flush(is_predicted=predicted_s is not None)

    def _predicted(self, name: str, algorithm: str, num_bytes: int, network: Network) -> float:
        key = (name, algorithm, num_bytes, network)
        if key not in self._predictions:
            if len(self._predictions) > 1000:
                self._predictions.clear()
            self._predictions[key] = algorithm_cost(name, algorithm, network, num_bytes).seconds
        return self._predictions[key]

    def flush(self, *, is_predicted: bool = True) -> None:
        """Emit the sums so far."""
        with self._lock:
            sums, self._sums = self._sums, {}
            self._last_s = time.monotonic()
        for (name, algorithm, _), (calls, num_bytes, seconds, predicted_s) in sums.items():
            self._emit(
                CollectivesRan(
                    name,
                    algorithm,
                    int(calls),
                    int(num_bytes),
                    seconds,
                    predicted_s if is_predicted else None,
                )
            )

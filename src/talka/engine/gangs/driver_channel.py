"""The side of a rank on the channel to its driver: one thread receives, all threads may send.

answers to calls -> the thread that waits;  lost ranks -> `losses`;  bye -> the main thread
"""

import itertools
import socket
import threading
from concurrent.futures import Future
from typing import Any

from talka.channels.rendezvous import TIMEOUT_S, check_key, check_value
from talka.engine.gangs.keys import raise_refusal
from talka.engine.gangs.losses import Losses
from talka.engine.local import wire
from talka.errors import RendezvousTimeoutError, TalkaError


class DriverChannel:
    """The channel of a rank to its driver."""

    def __init__(self, channel: socket.socket, losses: Losses) -> None:
        self._channel, self._losses = channel, losses
        self._sending = threading.Lock()
        self._lock = threading.Lock()  # guards the two below
        self._pending: dict[int, Future[dict[str, Any]]] = {}
        self._is_closed = False
        self._numbers = itertools.count()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._receive, name="talka-channel", daemon=True)
        self._thread.start()

    def send(self, frame: dict[str, Any], descriptors: list[int] | None = None) -> None:
        """Send a frame to the driver."""
        with self._sending:
            wire.send(self._channel, frame, descriptors)

    def call(self, frame: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send a frame and wait for the answer.

        Raises TimeoutError, with the number of the call, and TalkaError if the driver has ended.
        """
        number, answer = next(self._numbers), Future[dict[str, Any]]()
        with self._lock:
            if self._is_closed:
                raise _driver_ended()
            self._pending[number] = answer
        try:
            self.send({"call": number, **frame})
            return answer.result(timeout_s)
        except TimeoutError:
            raise TimeoutError(number) from None
        except ConnectionError:
            raise _driver_ended() from None
        finally:
            with self._lock:
                self._pending.pop(number, None)

    def wait_for_bye(self) -> None:
        """Wait until all ranks are done; only then may connections be closed."""
        self._is_over.wait()

    def _receive(self) -> None:
        try:
            while True:
                frame, _ = wire.receive(self._channel)
                if "answer" in frame:
                    with self._lock:
                        waiting = self._pending.pop(frame["answer"], None)
                    if waiting is not None:
                        waiting.set_result(frame)
                elif "lost" in frame:
                    self._losses.record(frame["lost"], frame["how"])
                elif "bye" in frame:
                    self._is_over.set()
        except (EOFError, OSError):  # the driver has ended
            with self._lock:
                self._is_closed = True
                pending, self._pending = list(self._pending.values()), {}
            for waiting in pending:
                waiting.set_exception(_driver_ended())
            self._is_over.set()


class DriverRendezvous:
    """The rendezvous of a rank whose driver stores the keys."""

    def __init__(self, driver: DriverChannel) -> None:
        self._driver = driver

    def set(self, key: str, value: bytes) -> None:
        """Store a value."""
        check_key(key)
        check_value(key, value)
        try:
            answer = self._driver.call({"set": key, "value": bytes(value)}, TIMEOUT_S)
        except TimeoutError:
            problem = f"the driver did not store the key {key!r} within {TIMEOUT_S:g} s"
            raise TalkaError(f"{problem}. Check that its machine can be reached.") from None
        raise_refusal(answer)

    def get(self, key: str, timeout_s: float = TIMEOUT_S) -> bytes:
        """Wait until a key is set and return its value."""
        check_key(key)
        try:
            return bytes(self._driver.call({"get": key}, timeout_s)["value"])
        except TimeoutError as error:
            self._driver.send({"forget": error.args[0], "get": key})
            raise RendezvousTimeoutError(key, timeout_s) from None


def _driver_ended() -> TalkaError:
    return TalkaError("the driver of this gang has ended, and the rendezvous with it.")

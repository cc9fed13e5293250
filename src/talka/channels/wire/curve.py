"""Encrypted streams: CURVE of ZeroMQ, one pair of sockets for each link.

ZeroMQ carries the stream in frames of at most 256 KB; what the frames mean is decided above, as for
plain sockets. The initiator knows the public key of the acceptor from the rendezvous, so no other
process can stand between them; the acceptor learns who the initiator is by the handshake inside.
"""

import contextlib
import errno
import struct
import threading
import time
from typing import Any, Final

_FRAME_BYTES: Final = 1 << 18
_OVERHEAD_BYTES: Final = 1 << 10  # of the encryption of a frame
_NUM_FRAMES: Final = 16
_POLL_S: Final = 0.002
_HANDSHAKE_MS: Final = 5_000
_HEARTBEAT_MS: Final = 1_000
_SILENCE_MS: Final = 8_000
_LINGER_MS: Final = 2_000


class CurveKeys:
    """The key pair of one process, and the ZeroMQ context of its sockets."""

    def __init__(self, public: bytes, private: bytes) -> None:
        import zmq

        self.public, self.private = public, private
        self.context = zmq.Context()

    @classmethod
    def new(cls) -> "CurveKeys":
        """Make a random key pair."""
        import zmq

        return cls(*zmq.curve_keypair())

    def close(self) -> None:
        """Free the context when the last bytes are sent; sockets must be closed before.

        With `RECONNECT_IVL` -1, ZeroMQ never ends the session of a socket whose handshake failed,
        and `term` would wait for it for ever.
        """
        ending = threading.Thread(target=self.context.term, name="talka-curve", daemon=True)
        ending.start()
        ending.join(_LINGER_MS / 1000 + 0.5)


class CurveStream:
    """One end of an encrypted stream. ZeroMQ sockets are not thread-safe, so a lock guards it."""

    poll_s: float | None = _POLL_S

    def __init__(self, keys: CurveKeys) -> None:
        import zmq

        self._zmq: Any = zmq
        self._socket: Any = keys.context.socket(zmq.PAIR)
        self._monitor: Any = self._socket.get_monitor_socket(
            zmq.EVENT_ACCEPTED
            | zmq.EVENT_DISCONNECTED
            | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
            | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
            | zmq.EVENT_HANDSHAKE_FAILED_AUTH
        )
        options = {
            zmq.SNDHWM: _NUM_FRAMES,
            zmq.RCVHWM: _NUM_FRAMES,
            zmq.MAXMSGSIZE: _FRAME_BYTES + _OVERHEAD_BYTES,
            zmq.HANDSHAKE_IVL: _HANDSHAKE_MS,
            zmq.HEARTBEAT_IVL: _HEARTBEAT_MS,
            zmq.HEARTBEAT_TIMEOUT: _SILENCE_MS,
            zmq.RECONNECT_IVL: -1,
        }
        for option, value in options.items():
            self._socket.setsockopt(option, value)
        self._socket.curve_publickey = keys.public
        self._socket.curve_secretkey = keys.private
        self._lock = threading.Lock()
        self._frame: memoryview = memoryview(b"")
        self._has_ended = self._is_waiting = self._has_received = False
        self._accepted: set[int] = set()
        self.port = 0

    @classmethod
    def listening(cls, keys: CurveKeys, host: str) -> "CurveStream":
        """Wait at a free port for one other process."""
        stream = cls(keys)
        stream._socket.curve_server = True
        stream.port = stream._socket.bind_to_random_port(f"tcp://{host}")
        stream._is_waiting = True
        return stream

    @classmethod
    def connected(cls, keys: CurveKeys, server_key: bytes, host: str, port: int) -> "CurveStream":
        """Connect to a stream that listens; the connection is made in the background."""
        stream = cls(keys)
        stream._socket.curve_serverkey = server_key
        stream._socket.connect(f"tcp://{host}:{port}")
        return stream

    def established(self) -> None:
        """Note that the expected process has proved the secret: from now on its end is the end.

        The socket listens further, since ZeroMQ would close the connection with the listener; it
        never accepts a second process.
        """
        self._is_waiting = False

    def fileno(self) -> int:
        return int(self._socket.FD)

    def send(self, views: list[memoryview]) -> int:
        num_sent = 0
        with self._lock:
            for view in views:
                for start in range(0, len(view), _FRAME_BYTES):
                    part = view[start : start + _FRAME_BYTES]
                    try:
                        self._socket.send(part, self._zmq.NOBLOCK)
                    except self._zmq.Again:
                        self._check()
                        return num_sent
                    num_sent += len(part)
        return num_sent

    def recv_into(self, view: memoryview) -> int:
        count = 0
        with self._lock:
            while count < len(view):
                if not len(self._frame):
                    try:
                        received = self._socket.recv(self._zmq.NOBLOCK, copy=False)
                    except self._zmq.Again:
                        break
                    self._frame, self._has_received = received.buffer, True
                part = self._frame[: len(view) - count]
                view[count : count + len(part)] = part
                self._frame = self._frame[len(part) :]
                count += len(part)
            if not count:
                self._check()
                raise BlockingIOError(errno.EAGAIN, "nothing has arrived")
        return count

    def _check(self) -> None:
        """Raise ConnectionError if the connection has ended and everything was read."""
        while self._monitor.poll(0):
            event, descriptor = struct.unpack("<Hi", self._monitor.recv_multipart()[0])
            if event == self._zmq.EVENT_ACCEPTED:
                self._accepted.add(descriptor)
                continue
            self._accepted.discard(descriptor)  # perhaps one that did not have the key
            self._has_ended = not self._is_waiting and not self._accepted
        if self._has_ended:
            raise ConnectionResetError(errno.ECONNRESET, "the encrypted connection has ended")

    # For the handshake.

    def recv_now(self, max_bytes: int) -> bytes:
        """Receive at most this many bytes; BlockingIOError if there are none."""
        buffer = memoryview(bytearray(max_bytes))
        return bytes(buffer[: self.recv_into(buffer)])

    def sendall(self, data: bytes) -> None:
        """Send all bytes; wait for the connection if there is none yet."""
        self._within_limit(lambda: self.send([memoryview(data)]) == len(data))

    def recv(self, max_bytes: int) -> bytes:
        """Receive at most this many bytes, at least one."""
        data = b""

        def receive() -> bool:
            nonlocal data
            with contextlib.suppress(BlockingIOError):
                data = self.recv_now(max_bytes)
            return data != b""

        self._within_limit(receive)
        return data

    def _within_limit(self, attempt: Any) -> None:
        deadline = time.monotonic() + _HANDSHAKE_MS / 1000
        while not attempt():
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "no answer; the keys may differ")
            time.sleep(_POLL_S / 4)

    def close(self) -> None:
        with self._lock:
            with contextlib.suppress(ConnectionError):
                self._check()
            self._socket.disable_monitor()
            self._monitor.close(linger=0)
            # Bytes for a process that never answered would keep `CurveKeys.close` waiting for ever.
            is_connected = self._has_received and not self._has_ended
            self._socket.close(linger=_LINGER_MS if is_connected else 0)

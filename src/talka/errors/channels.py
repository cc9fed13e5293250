"""Errors of messages between processes."""

from talka.errors.base import TalkaError


class FrameError(TalkaError, ValueError):
    """Bytes of a connection are not a valid message or handshake.

    >>> print(FrameError("has no valid header"))
    a message has no valid header. Its sender is not a worker of this job, or runs another version \
of talka.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"a message {self.problem}. Its sender is not a worker of this job, or runs another "
            "version of talka."
        )


class ChannelTimeoutError(TalkaError, TimeoutError):
    """A message did not arrive, or was not read, in time.

    >>> print(ChannelTimeoutError("receive from rank 2 with tag 7", 5.0))
    receive from rank 2 with tag 7: not finished after 5 s. The other rank is slow, waits itself, or \
never makes the matching call: compare the order of sends and receives on both ranks.
    """

    def __init__(self, what: str, timeout_s: float) -> None:
        super().__init__(what, timeout_s)
        self.what, self.timeout_s = what, timeout_s

    def __str__(self) -> str:
        return (
            f"{self.what}: not finished after {self.timeout_s:g} s. The other rank is slow, waits "
            "itself, or never makes the matching call: compare the order of sends and receives on "
            "both ranks."
        )


class ChannelClosedError(TalkaError):
    """The channels of this process were used after they were closed."""

    def __str__(self) -> str:
        return "the channels of this process are closed. Send and receive before `main` returns."


class ConnectionFailedError(TalkaError, ConnectionError):
    """A rank cannot be reached.

    >>> print(ConnectionFailedError(1, "tcp 10.0.0.2:4711", "Connection refused", "Is it running?"))
    rank 1 cannot be reached at tcp 10.0.0.2:4711 (Connection refused). Is it running?
    """

    def __init__(self, rank: int, address: str, problem: str, advice: str) -> None:
        super().__init__(rank, address, problem, advice)
        self.rank, self.address, self.problem, self.advice = rank, address, problem, advice

    def __str__(self) -> str:
        return (
            f"rank {self.rank} cannot be reached at {self.address} ({self.problem}). {self.advice}"
        )

"""Short messages between the workers of a rhythm, outside of its exchanges: the end, and failures.

A worker that waits for an exchange would wait forever for one that has left or failed but is still
alive. So each worker sends one notice to all others when it leaves, and those that wait look at it.
"""

import contextlib
import threading
from typing import Any

from torch import Tensor
from torch.futures import Future

from talka.channels import Group
from talka.channels.coding import decoded
from talka.channels.wire.numbering import tag_number
from talka.errors import LostWorkerError, PeerFailedError, TalkaError, UnevenRoundsError

_TAG = "notice"
_LOOK_EVERY_S = 0.1
_LEAVE_S = 2.0
"""Seconds for a notice of a failure to be sent to workers that do not read."""


class Notices:
    """Notices of this worker to the others, and of the others to this one."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._receives = {
            rank: group.mailbox.post_receive(
                group.global_ranks[rank], tag=tag_number(_TAG), context=group.context
            )
            for rank in group.others
        }

    def wait(self, futures: list[Future[Tensor]], rounds: int) -> None:
        """Wait until all futures are done, or raise what prevents that.

        `rounds` is the number of the round that they belong to.
        """
        for future in futures:
            done = threading.Event()
            future.add_done_callback(lambda _, done=done: done.set())  # type: ignore[misc]
            while not done.wait(_LOOK_EVERY_S):
                self._look(rounds)
            try:
                future.wait()
            except LostWorkerError as error:
                self._explain(error, rounds)
                raise

    def _explain(self, loss: LostWorkerError, rounds: int) -> None:
        """Raise the error that a lost worker reported before it ended."""
        for rank, receive in self._receives.items():
            if self._group.global_ranks[rank] in loss.ranks:
                with contextlib.suppress(TalkaError):
                    receive.wait(_LEAVE_S)
        self._look(rounds)

    def _look(self, rounds: int) -> None:
        for rank, receive in self._receives.items():
            if receive.is_done and receive.error is None:
                check_notice(rank, decoded(receive.description, receive.data), rounds)

    def fail(self, error: BaseException) -> None:
        """Notify the other workers that this one failed."""
        problem = (
            f"{type(error).__name__}: {error}" if isinstance(error, Exception) else repr(error)
        )
        if isinstance(error, PeerFailedError):
            problem = f"an error because rank {error.rank} failed: {error.problem}"
        self._send({"failed": problem[:2000]})

    def end(self, rounds: int) -> None:
        """Notify the other workers that this one has finished, and wait for theirs."""
        self._send({"rounds": rounds})
        for rank, receive in self._receives.items():
            receive.wait()
            check_notice(rank, decoded(receive.description, receive.data), rounds)

    def _send(self, notice: dict[str, Any]) -> None:
        for rank in self._group.others:
            try:
                self._group.send(notice, to=rank, tag=_TAG, timeout_s=_LEAVE_S)
            except TalkaError:
                continue  # it has ended: waiting for it raises an error that names it

    def close(self) -> None:
        """Drop what has not arrived."""
        self._group.close()


def check_notice(rank: int, notice: Any, rounds: int) -> None:
    """Raise an error if, by its notice, a worker will not take part in round `rounds`.

    >>> check_notice(1, {"rounds": 5}, 5)
    >>> check_notice(1, {"rounds": 5}, 6)
    Traceback (most recent call last):
        ...
    talka.errors.training.UnevenRoundsError: rank 1 left the rhythm after 5 rounds, but this worker \
needs it in round 6: its loader probably ended early. Give all workers the same number of batches \
per epoch.
    """
    if "failed" in notice:
        raise PeerFailedError(rank, str(notice["failed"]))
    theirs = int(notice["rounds"])
    if theirs < rounds:
        raise UnevenRoundsError(rank, theirs, rounds)

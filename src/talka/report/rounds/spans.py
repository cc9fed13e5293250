"""Times of computing, encoding, waiting and decoding of each worker in a few rounds.

An event has the time at which the exchange of a round ended, and seconds by kind of work:

    computing lane  [ computing ]
    exchange lane                [ encoding | waiting for others | network | decoding ] end

Computing ended `after_compute_s` before the event, so the lanes overlap where the exchange ran during
the computing. An exchange encodes, waits and decodes in turns; here each kind is drawn as one bar.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from talka.report.rounds.series import RoundKey, TrainingRound, WorkerRound

COMPUTING: Final = "computing"
WORKS: Final = (COMPUTING, "encoding", "waiting for others", "network", "decoding")
"""Kinds of work, in the order in which they follow one another in a round."""


class WorkSpan(NamedTuple):
    """A period in which a worker did one kind of work; times in seconds since 1970."""

    worker: str
    work: str
    start_s: float
    end_s: float
    key: RoundKey


def spans_of(rounds: Sequence[TrainingRound]) -> list[WorkSpan]:
    """Return the spans of all workers in these rounds, which are in order."""
    spans: list[WorkSpan] = []
    for worker in sorted({worker for each in rounds for worker in each.workers}):
        computed_s = exchanged_s = float("-inf")  # ends of the former spans in each lane
        for each in rounds:
            if worker not in each.workers:
                continue
            done = each.workers[worker]
            spans += _exchange(worker, each, done, exchanged_s)
            end_s = max(done.end_s - _after_compute_s(done), computed_s)
            start_s = max(end_s - done.compute_s, computed_s)
            spans.append(WorkSpan(worker, COMPUTING, start_s, end_s, each.key))
            computed_s, exchanged_s = end_s, done.end_s
    return [span for span in spans if span.end_s > span.start_s]


def _after_compute_s(done: WorkerRound) -> float:
    """Return the seconds from the end of computing; in older runs as if nothing overlapped."""
    if done.after_compute_s is None:
        return done.encode_s + done.wait_s + done.decode_s
    return done.after_compute_s


def _exchange(
    worker: str, each: TrainingRound, done: WorkerRound, after_s: float
) -> list[WorkSpan]:
    """Return the spans of an exchange; they are shortened if they began before the one before."""
    others_s = each.others_s(worker)
    seconds = (done.encode_s, others_s, done.wait_s - others_s, done.decode_s)
    whole_s = sum(seconds)
    scale = min(1.0, max(0.0, done.end_s - after_s) / whole_s) if whole_s > 0 else 0.0
    spans = []
    start_s = done.end_s - scale * whole_s
    for work, work_s in zip(WORKS[1:], seconds, strict=True):
        end_s = start_s + scale * work_s
        spans.append(WorkSpan(worker, work, start_s, end_s, each.key))
        start_s = end_s
    return spans

"""Supersteps as series of numbers, thinned to what an eye can tell apart."""

from collections.abc import Sequence
from statistics import fmean
from typing import Final, NamedTuple

from talka.events import RunRecord, SuperstepDone, TaskAgain

MAX_BARS: Final = 500


class Superstep(NamedTuple):
    """One superstep over all partitions, or, thinned, the mean of several."""

    number: float
    num_active: float
    num_messages: float
    sent_bytes: float
    edges: float
    seconds: float
    way: str
    """Which way messages went along edges: "push", "pull", "both", or "other"."""
    num_again: int
    """Tasks that ran once more while it went on."""


def supersteps_of(record: RunRecord) -> list[Superstep]:
    """All supersteps, in order. A second program in the same run goes on counting."""
    found: list[Superstep] = []
    before, last, num_again = 0, -1, 0
    for _, _, event in record.events:
        if isinstance(event, TaskAgain):
            num_again += 1
        if isinstance(event, SuperstepDone):
            if event.superstep <= last:
                before += last + 1
            last = event.superstep
            found.append(_superstep(event, before + event.superstep, num_again))
            num_again = 0
    return found


def thinned(supersteps: Sequence[Superstep], *, max_bars: int = MAX_BARS) -> list[Superstep]:
    """At most so many: neighbours become their mean, and those that went two ways "both"."""
    size = -(-len(supersteps) // max_bars)
    groups = [supersteps[start : start + size] for start in range(0, len(supersteps), size or 1)]
    return [few[0] if len(few) == 1 else _mean(few) for few in groups]


def _superstep(event: SuperstepDone, number: int, num_again: int) -> Superstep:
    ways = {(True, False): "push", (False, True): "pull", (True, True): "both"}
    return Superstep(
        number,
        event.num_active,
        event.num_messages,
        event.sent_bytes,
        event.edges,
        event.seconds,
        ways.get((event.pushed > 0, event.pulled > 0), "other"),
        num_again,
    )


def _mean(few: Sequence[Superstep]) -> Superstep:
    walked = {one.way for one in few} - {"other"}
    return Superstep(
        number=fmean(one.number for one in few),
        num_active=fmean(one.num_active for one in few),
        num_messages=fmean(one.num_messages for one in few),
        sent_bytes=fmean(one.sent_bytes for one in few),
        edges=fmean(one.edges for one in few),
        seconds=fmean(one.seconds for one in few),
        way=walked.pop() if len(walked) == 1 else "both" if walked else "other",
        num_again=sum(one.num_again for one in few),
    )

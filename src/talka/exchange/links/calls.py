"""Measure what messages and calls cost the processors: short collectives of all ranks after a pause.

    gather, scatter   P-1 messages, all to one rank or from it
    all-gather        P (P-1) messages

All begin on all ranks at the same time. Their difference gives the processor time per message, and what
a gather or scatter takes longer than one message gives that of a call, if the hosts share cores.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from talka.channels import Group
from talka.machine import num_cores

PAUSE_S: Final = 0.004
"""Seconds without traffic before each call: token buckets fill up, and ranks are not in step."""

_NUM_CALLS: Final = 40


class CallTimes(NamedTuple):
    """Seconds of calls of all ranks, with values of a few bytes."""

    rooted_s: float
    """Mean of a gather and a scatter."""
    all_gather_s: float
    shared_cores: int
    """Number of cores, if all hosts are on one machine and share them; otherwise 0."""


class MessageCosts(NamedTuple):
    """Processor seconds of messages and calls."""

    overhead_s: float
    """Of each end of a message."""
    call_s: float
    """Of each rank per call, if ranks share cores."""


def message_costs(times: CallTimes, latency_s: float, num_ranks: int) -> MessageCosts:
    """Solve the cost model of a gather or scatter and of an all-gather for its processor times.

    >>> message_costs(CallTimes(rooted_s=7e-4, all_gather_s=16e-4, shared_cores=2), 1e-4, 4)
    MessageCosts(overhead_s=0.0001, call_s=0.0004)
    """
    later_s, others = max(0.0, times.all_gather_s - times.rooted_s), num_ranks - 1
    if times.shared_cores:
        overhead_s = later_s * times.shared_cores / (2 * others**2)
        waiting_s = (times.rooted_s - latency_s) * times.shared_cores
        call_s = waiting_s / (others - 1) - 2 * overhead_s if others > 1 else 0.0
        return MessageCosts(round(overhead_s, 9), round(max(0.0, call_s), 9))
    return MessageCosts(round(later_s / (others - 1), 9) if others > 1 else 0.0, 0.0)


def measure_calls(group: Group, *, num_hosts: int, latency_s: float) -> CallTimes:
    """Measure calls of all ranks of a group, at most `latency_s` apart; all of them must call this."""
    machine = Path("/proc/sys/kernel/random/boot_id").read_text()
    machines = group.all_gather(machine)
    is_shared = len(set(machines)) == 1
    value = np.zeros(8, np.uint8)
    values = [value] * group.size
    gather_s, scatter_s, all_gather_s = (
        quartile_s(group, call, is_one_clock=is_shared, latency_s=latency_s)
        for call in (
            lambda: group.gather(value),
            lambda: group.scatter(values),
            lambda: group.all_gather(value),
        )
    )
    cores = group.broadcast(num_cores()) if is_shared and num_hosts > 1 else 0
    return CallTimes((gather_s + scatter_s) / 2, all_gather_s, cores)


def quartile_s(
    group: Group, call: Callable[[], object], *, is_one_clock: bool, latency_s: float
) -> float:
    """Return the lower quartile of the seconds of a call, as other processes disturb the rest."""
    spans = [
        timed(group, call, is_one_clock=is_one_clock, latency_s=latency_s)
        for _ in range(_NUM_CALLS)
    ]
    by_rank = np.array(group.all_gather(np.array(spans[1:])))  # the first opens connections
    starts, ends = by_rank[:, :, 0], by_rank[:, :, 1]
    first = starts.min(axis=0) if is_one_clock else starts
    seconds = ends.max(axis=0) - first if is_one_clock else (ends - first).max(axis=0)
    return float(np.quantile(seconds, 0.25))


def timed(
    group: Group, call: Callable[[], object] | None, *, is_one_clock: bool, latency_s: float
) -> tuple[float, float]:
    """Make a call after a pause, at the same time on all ranks; return its start and end.

    A rank that does not take part gives None.
    """
    group.barrier()
    due_s = time.monotonic() + PAUSE_S
    if is_one_clock:
        due_s = group.broadcast(due_s + PAUSE_S / 4 + 2 * latency_s)  # all know it in time
    if call is None:
        return due_s, due_s
    time.sleep(max(0.0, due_s - time.monotonic()))
    start_s = time.monotonic()
    call()
    return start_s, time.monotonic()

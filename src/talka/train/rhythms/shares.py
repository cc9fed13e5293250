"""Unequal shares of a batch for machines of unequal speed (T11).

    shares = talka.train.Shares(batch_size=256)
    loader = DataLoader(dataset, batch_sampler=shares.sampler(dataset))
    with talka.train.LocalSGD(model, optimizer, every=50, shares=shares): ...

The whole batch keeps its size; the share of each worker follows the speed that was measured in
previous steps, and averages are weighted by the number of samples, so that the average gradient is
that of the whole batch. All workers compute the same shares from the same measurements.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence, Sized
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.channels import Group
from talka.errors import InvalidValueError, OptionError
from talka.train.replica import Replica

WORTH_CHANGING = 1.03
"""Shares change only if the slowest worker would then finish this many times sooner."""
MEASURE_EVERY = 20
"""Steps between two measurements, if a rhythm has no rounds of several steps."""


class Taken(NamedTuple):
    """Samples of some batches."""

    own: int
    """Samples of this worker."""
    everyone: int
    """Samples of all workers together."""


class Shares:
    """The number of samples of each batch that each worker gets.

    Parameters
    ----------
    batch_size
        Number of samples in a batch, of all workers together.
    measured
        False keeps equal shares, but still weights averages by samples.
    """

    def __init__(self, batch_size: int, *, measured: bool = True) -> None:
        if batch_size < 1:
            raise InvalidValueError("batch_size", batch_size, "a whole number of at least 1")
        self.batch_size, self.measured = batch_size, measured
        self._rank, self.num_workers = 0, 0
        self._plans: list[tuple[int, tuple[int, ...]]] = []  # first batch, samples of each worker
        self._num_issued, self._num_used = 0, 0
        self._issued: deque[Taken] = deque()
        self._num_steps, self._samples, self._busy_s = 0, 0, 0.0

    def join(self, rank: int, num_workers: int) -> None:
        """Start with equal shares; rhythms call it."""
        if self.batch_size < num_workers:
            allowed = f"at least {num_workers}, a sample for each worker"
            raise InvalidValueError("batch_size", self.batch_size, allowed)
        if not self._plans:
            self._rank, self.num_workers = rank, num_workers
            self._plans = [(0, split(self.batch_size, [1.0] * num_workers))]

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of samples of each worker in the next batch."""
        return self._plans[-1][1]

    def sampler(
        self, data: Sized, *, shuffle: bool = True, seed: int = 0, may_be_empty: bool = False
    ) -> "ShareSampler":
        """Return a batch sampler for a DataLoader, which draws every sample once per epoch.

        A last batch with fewer samples than workers is left out, unless parts of it `may_be_empty`.
        """
        return ShareSampler(self, len(data), shuffle=shuffle, seed=seed, may_be_empty=may_be_empty)

    def issue(self, num_samples: int) -> slice:
        """Return this worker's part of the next batch, which has `num_samples` in all."""
        if not self._plans:
            advice = "Enter the rhythm, `with LocalSGD(..., shares=shares):`, before the loop."
            raise OptionError("shares", "are used before their rhythm has started", advice)
        while len(self._plans) > 1 and self._plans[1][0] <= self._num_issued:
            self._plans.pop(0)
        counts = self._plans[0][1]
        if num_samples != self.batch_size:
            counts = split(num_samples, counts)
        start = sum(counts[: self._rank])
        self._num_issued += 1
        self._issued.append(Taken(counts[self._rank], num_samples))
        return slice(start, start + counts[self._rank])

    def use(self) -> None:
        """Note that the oldest batch that was not used yet was trained on, and is counted later."""
        self._num_used += 1

    def forget_issued(self) -> None:
        """Forget batches that were drawn but not used, at the end of an epoch."""
        while len(self._issued) > self._num_used:
            self._issued.pop()

    def state(self) -> list[list[int]]:
        """Return the samples of batches that were used but not counted yet, for a checkpoint."""
        return [list(taken) for taken in list(self._issued)[: self._num_used]]

    def load_state(self, state: Sequence[Sequence[int]]) -> None:
        """Continue from a result of `state` on this rank, before the first batch is drawn."""
        self._issued = deque(Taken(own, everyone) for own, everyone in state)
        self._num_used = len(self._issued)

    def taken(self, num_batches: int = 1) -> Taken:
        """Return the samples of the oldest batches that were drawn and not yet counted."""
        if len(self._issued) < num_batches:
            advice = "Use shares.sampler(dataset) as the batch_sampler of the DataLoader."
            raise OptionError("shares", "were given, but the loop uses other batches", advice)
        batches = [self._issued.popleft() for _ in range(num_batches)]
        self._num_used = max(0, self._num_used - num_batches)
        taken = Taken(sum(batch.own for batch in batches), sum(batch.everyone for batch in batches))
        self._samples += taken.own
        return taken

    def after_step(self, group: Group, replica: Replica) -> None:
        """Measure again from time to time; all workers call it after each step."""
        self._num_steps += 1
        if self._num_steps % MEASURE_EVERY == 0:
            self.measure(group, replica)

    def measure(self, group: Group, replica: Replica) -> None:
        """Compare the seconds per sample of all workers, and set the shares of later batches."""
        busy_s, samples = replica.busy_s(), self._samples
        seconds = (busy_s - self._busy_s) / max(samples, 1)
        self._busy_s, self._samples = busy_s, 0
        if not self.measured:
            return
        rows = group.all_gather([seconds, self._num_issued])
        later = better_counts(self.batch_size, self.counts, [row[0] for row in rows])
        if later != self.counts:
            # Loaders may have drawn batches in advance: the change comes after the last of them.
            first = max(int(row[1]) for row in rows)
            self._plans.append((first, later))


class ShareSampler:
    """Batches of indices: this worker's share of each batch of a permutation of all samples."""

    def __init__(
        self, shares: Shares, num_samples: int, *, shuffle: bool, seed: int, may_be_empty: bool
    ) -> None:
        self._shares, self._num_samples = shares, num_samples
        self._shuffle, self._seed, self._epoch = shuffle, seed, 0
        self._may_be_empty, self._first = may_be_empty, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next epoch, which decides its order; it otherwise counts by itself."""
        self._epoch = epoch

    def skip(self, num_batches: int) -> None:
        """Leave out the first batches of the next epoch, in which the training continues."""
        self._first = num_batches

    def __len__(self) -> int:
        """Return the number of batches in a whole epoch."""
        whole, left = divmod(self._num_samples, self._shares.batch_size)
        least = 1 if self._may_be_empty else max(1, self._shares.num_workers)
        return whole + (left >= least)

    def __iter__(self) -> Iterator[list[int]]:
        self._shares.forget_issued()
        order: NDArray[np.int64] = np.arange(self._num_samples)
        if self._shuffle:
            order = np.random.default_rng((self._seed, self._epoch)).permutation(order)
        self._epoch += 1
        size = self._shares.batch_size
        first, self._first = self._first, 0
        for start in range(first * size, len(self) * size, size):
            batch = order[start : start + size]
            yield batch[self._shares.issue(len(batch))].tolist()


def split(total: int, parts: Sequence[float]) -> tuple[int, ...]:
    """Divide samples in proportion to `parts`, at least one each while there are enough.

    >>> split(256, [1, 1, 1, 0.2])
    (80, 80, 80, 16)
    >>> split(10, [1, 0.001]), split(3, [1, 1, 1, 1])
    ((9, 1), (1, 1, 1, 0))
    """
    whole = sum(parts)
    least = 1 if total >= len(parts) else 0
    counts = [max(least, math.floor(total * part / whole)) for part in parts]
    while sum(counts) > total:
        counts[counts.index(max(counts))] -= 1
    remainders = sorted(
        range(len(parts)), key=lambda rank: (counts[rank] - total * parts[rank] / whole, rank)
    )
    for place in range(total - sum(counts)):
        counts[remainders[place % len(parts)]] += 1
    return tuple(counts)


def better_counts(
    total: int, counts: Sequence[int], seconds_per_sample: Sequence[float]
) -> tuple[int, ...]:
    """Return shares with which all workers take about as long; the former ones if that gains little.

    >>> better_counts(16, (4, 4, 4, 4), [0.1, 0.1, 0.1, 0.5])
    (5, 5, 5, 1)
    >>> better_counts(16, (4, 4, 4, 4), [0.1, 0.1, 0.1, 0.101])
    (4, 4, 4, 4)
    """
    if not all(0 < seconds < math.inf for seconds in seconds_per_sample):
        return tuple(counts)
    later = split(total, [1 / seconds for seconds in seconds_per_sample])

    def slowest(shares: Sequence[int]) -> float:
        return max(n * s for n, s in zip(shares, seconds_per_sample, strict=True))

    return later if slowest(counts) > WORTH_CHANGING * slowest(later) else tuple(counts)

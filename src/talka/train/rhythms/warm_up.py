"""The first steps of LocalSGD: gradients are averaged in every step, uncompressed.

Early changes are large and differ much between workers, so averages of models start badly. During
the warm-up all workers have the same model.
"""

from typing import Protocol

from torch import Tensor, nn
from torch.distributed import GradBucket  # type: ignore[attr-defined]  # not in its __all__
from torch.futures import Future

from talka.compress.layout import layout_of
from talka.train.gradients import Bucket
from talka.train.replica import Replica
from talka.train.rhythms.backward import BackwardPass


class WarmingRhythm(Protocol):
    """The rhythm whose warm-up it is."""

    replica: Replica

    @property
    def is_on_ddp(self) -> bool: ...
    def count_samples(self, num_steps: int) -> None: ...
    def end_round(self, last: "Future[Tensor]", num_steps: int) -> None: ...


class WarmUp:
    """Averages the gradients of each backward pass, with or without DDP, until it is removed."""

    def __init__(self, rhythm: WarmingRhythm, model: nn.Module) -> None:
        self._rhythm = rhythm
        self._flats: list[tuple[Bucket, Tensor]] = []
        self._has_begun = False
        self._backward = (
            BackwardPass(model, self._hand_over, self._end, accumulate=1)
            if not rhythm.is_on_ddp
            else None
        )

    def remove(self) -> None:
        """Remove the hooks on parameters."""
        if self._backward is not None:
            self._backward.remove()

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._rhythm.count_samples(1)

    def _hand_over(self, bucket: Bucket) -> None:
        self._begin()
        flat = bucket.gradients()
        self._last = self._rhythm.replica.average_exactly(flat, bucket.layout)
        self._flats.append((bucket, flat))

    def _end(self) -> None:
        self._has_begun = False
        self._rhythm.end_round(self._last, 1)
        flats, self._flats = self._flats, []
        for bucket, flat in flats:
            bucket.set_gradients(flat)

    def average_bucket(self, bucket: GradBucket) -> "Future[Tensor]":
        """Average a bucket of DDP."""
        self._begin()
        flat = bucket.buffer()
        future = self._rhythm.replica.average_exactly(flat, layout_of({"": (flat.numel(),)}))
        if bucket.is_last():
            self._has_begun = False
            self._rhythm.end_round(future, 1)
        return future

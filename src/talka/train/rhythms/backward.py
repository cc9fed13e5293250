"""Buckets of gradients, handed over while the backward pass computes the next ones.

This is what DDP does, for a model without DDP. Buckets are handed over in a fixed order, the same on
all workers: the last parameters first, since their gradients are computed first. Parameters that a
backward pass does not reach are handed over as zeros at its end.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.autograd import Variable

from talka.train.gradients import Bucket, buckets_of

HandOver = Callable[[Bucket], None]


class BackwardPass:
    """Calls `hand_over` for each bucket whose gradients are complete, then `at_end`.

    With `accumulate`, gradients are complete in every so many-th backward pass. Both are called
    within the backward pass, so their errors are raised by `backward`.
    """

    def __init__(
        self, model: nn.Module, hand_over: HandOver, at_end: Callable[[], None], *, accumulate: int
    ) -> None:
        self._buckets = buckets_of(model)
        self._hand_over, self._at_end, self._accumulate = hand_over, at_end, accumulate
        self._num_passes = 0
        self._is_running = False
        self._missing: list[set[int]] = []
        self._next = 0
        self._place = {
            id(parameter): place
            for place, bucket in enumerate(self._buckets)
            for parameter in bucket.parameters.values()
        }
        self._handles: list[Any] = [
            _hooked(parameter, self._gradient_is_ready)
            for bucket in self._buckets
            for parameter in bucket.parameters.values()
        ]

    def remove(self) -> None:
        """Remove the hooks on parameters."""
        for handle in self._handles:
            handle.remove()

    @property
    def _is_last(self) -> bool:
        """True in the pass after which gradients are complete."""
        return self._num_passes == self._accumulate - 1

    def _gradient_is_ready(self, parameter: Tensor) -> None:
        if not self._is_running:
            self._begin()
        if not self._is_last:
            return
        self._missing[self._place[id(parameter)]].discard(id(parameter))
        while self._next < len(self._buckets) and not self._missing[self._next]:
            self._advance()

    def _begin(self) -> None:
        self._is_running, self._next = True, 0
        self._missing = [
            {id(parameter) for parameter in bucket.parameters.values()} for bucket in self._buckets
        ]
        Variable._execution_engine.queue_callback(self._end)

    def _advance(self) -> None:
        bucket = self._buckets[self._next]
        self._next += 1
        self._hand_over(bucket)

    def _end(self) -> None:
        """Hand over what is left; called when the backward pass has computed all gradients."""
        self._is_running = False
        if not self._is_last:
            self._num_passes += 1
            return
        self._num_passes = 0
        while self._next < len(self._buckets):
            self._advance()
        self._at_end()


def _hooked(parameter: Any, hook: Callable[[Tensor], None]) -> Any:
    return parameter.register_post_accumulate_grad_hook(hook)

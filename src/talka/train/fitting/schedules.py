"""Learning rates by step: constant, cosine, in steps; with a warm-up and linear scaling (T15)."""

import math
import re
from dataclasses import dataclass
from typing import Any, Self

from torch.optim import SGD, Optimizer

from talka.errors import InvalidValueError, OptionError, UnknownNameError
from talka.train.fitting.theorem import TheoremSteps

_NAMES = ("constant", "cosine", "step")
_ALLOWED = (
    "'constant', 'cosine', 'step:EPOCHS/FACTOR' such as 'step:30/0.1', or TheoremSteps(beta, sigma, "
    "radius)"
)
_SCALED_WARMUP_EPOCHS = 5
"""Epochs of the warm-up in Goyal et al., arXiv:1706.02677, where rates are scaled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decay:
    """The decay of the learning rate after the warm-up.

    >>> Decay.parse("step:30/0.1")
    Decay(name='step', epochs=30, factor=0.1)
    """

    name: str = "constant"
    epochs: int = 1
    """Epochs after which `step` multiplies the learning rate by `factor`, again and again."""
    factor: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a short form."""
        name = text.partition(":")[0]
        if name not in _NAMES:
            raise UnknownNameError("schedule", name, _NAMES)
        if name != "step":
            if name != text:
                raise InvalidValueError("schedule", text, _ALLOWED)
            return cls(name=name)
        match = re.fullmatch(r"step:([1-9]\d{0,5})/(\d*\.?\d+(?:e-?\d+)?)", text)
        if match is None or not 0 < float(match[2]) < 1:
            raise InvalidValueError("schedule", text, f"{_ALLOWED}, with a factor below 1")
        return cls(name=name, epochs=int(match[1]), factor=float(match[2]))

    def share(self, step: int, *, first: int, num_steps: int, steps_per_epoch: int) -> float:
        """Return the share of the full learning rate in a step from `first` on, the end of the warm-up."""
        if self.name == "cosine":
            return 0.5 * (1 + math.cos(math.pi * (step - first) / max(1, num_steps - first)))
        if self.name == "step":
            return float(self.factor ** (step // steps_per_epoch // self.epochs))
        return 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RatePlan:
    """The options of a schedule, with the sizes of a training."""

    schedule: Decay | TheoremSteps
    num_steps: int
    steps_per_epoch: int
    warmup_steps: int
    """Number of first steps in which the learning rate grows linearly."""
    scale: int = 1
    """Factor of all learning rates after the warm-up: the number of workers, or 1."""

    def factor(self, step: int) -> float:
        """Return the factor of the learning rates that the optimizer was made with; steps count from 0.

        >>> plan = RatePlan(
        ...     schedule=Decay(), num_steps=9, steps_per_epoch=3, warmup_steps=4, scale=3
        ... )
        >>> [plan.factor(step) for step in range(6)]
        [1.5, 2.0, 2.5, 3.0, 3.0, 3.0]
        """
        assert isinstance(self.schedule, Decay)
        if step < self.warmup_steps:
            start = 1.0 if self.scale > 1 else 0.0
            return start + (self.scale - start) * (step + 1) / self.warmup_steps
        return self.scale * self.schedule.share(
            step,
            first=self.warmup_steps,
            num_steps=self.num_steps,
            steps_per_epoch=self.steps_per_epoch,
        )


class LearningRate:
    """Sets the learning rates of an optimizer before each step."""

    def __init__(self, optimizer: Optimizer, plan: RatePlan) -> None:
        self._optimizer, self._plan = optimizer, plan
        if isinstance(plan.schedule, TheoremSteps):
            check_plain_sgd(optimizer)
        self.rates = [float(group["lr"]) for group in optimizer.param_groups]
        """Learning rates that the optimizer was made with; a checkpoint has them."""

    def set(self, step: int) -> float:
        """Set the learning rates of a step, counted from 0; return that of the first group."""
        schedule = self._plan.schedule
        for group, rate in zip(self._optimizer.param_groups, self.rates, strict=True):
            if isinstance(schedule, TheoremSteps):
                group["lr"] = schedule.rate(self._plan.num_steps)
            else:
                group["lr"] = rate * self._plan.factor(step)
        return float(self._optimizer.param_groups[0]["lr"])

    def restore(self) -> None:
        """Set the learning rates that the optimizer was made with."""
        for group, rate in zip(self._optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate


def schedule_of(given: Any) -> Decay | TheoremSteps:
    """Return the schedule of a short form."""
    if isinstance(given, TheoremSteps):
        return given
    if not isinstance(given, str):
        raise InvalidValueError("schedule", given, _ALLOWED)
    return Decay.parse(given)


def default_warmup(*, num_steps: int, steps_per_epoch: int, scale: int) -> int:
    """Return the steps of the warm-up if none were given: only scaled learning rates need one."""
    return 0 if scale == 1 else min(_SCALED_WARMUP_EPOCHS * steps_per_epoch, num_steps // 2)


def check_plain_sgd(optimizer: Optimizer) -> None:
    """Raise OptionError for an optimizer that the convergence theorem does not cover."""
    is_plain = isinstance(optimizer, SGD) and not any(
        group["momentum"] or group["weight_decay"] for group in optimizer.param_groups
    )
    if not is_plain:
        problem = (
            f"is TheoremSteps, but the optimizer is {type(optimizer).__name__} with other options"
        )
        advice = "The theorem is about SGD without momentum and weight decay: optimizer='sgd:1'."
        raise OptionError("schedule", problem, advice)

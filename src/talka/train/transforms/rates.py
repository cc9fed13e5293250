"""Rescaling residuals when the learning rate changes.

A residual is a gradient that was not applied yet. In its own step it would have been multiplied by
the learning rate of that step; so when the rate changes, the residual has to be multiplied by the
old rate over the new one.
"""

from collections.abc import Mapping, Sequence

from torch import Tensor, nn
from torch.optim import Optimizer


class LearningRates:
    """The learning rate of each parameter in the previous step."""

    def __init__(self, optimizer: Optimizer, names: Mapping[nn.Parameter, str]) -> None:
        self._optimizer, self._names = optimizer, names
        self._before = self._rates()

    def rescale(self, residuals: Sequence[dict[str, Tensor]]) -> None:
        """Multiply residuals by old over new rate; called before the first exchange of a step."""
        now = self._rates()
        for name, rate in now.items():
            before = self._before.get(name, rate)
            if rate != before and rate > 0:
                for side in residuals:
                    if name in side:
                        side[name].mul_(before / rate)
        self._before = {name: rate or self._before.get(name, 0.0) for name, rate in now.items()}

    def state(self) -> dict[str, float]:
        """Return the learning rate that the residuals of each parameter belong to."""
        return dict(self._before)

    def load_state(self, rates: Mapping[str, float]) -> None:
        """Set the rates that residuals belong to; parameters without one keep theirs."""
        self._before |= {name: rate for name, rate in rates.items() if name in self._before}

    def _rates(self) -> dict[str, float]:
        return {
            self._names[parameter]: float(group["lr"])
            for group in self._optimizer.param_groups
            for parameter in group["params"]
            if parameter in self._names
        }

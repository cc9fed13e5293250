"""The step size of the convergence theorem of SGD (T15), with its averaged iterate and its bound.

For a convex function whose gradient is Lipschitz with constant beta, and stochastic gradients with
E||g - gradient||^2 <= sigma^2, t steps of size 1 / (beta + (sigma / (R sqrt 2)) sqrt t) from a point at
most R away from a minimum satisfy

    E f(mean of w_1..w_t) - f(minimum) <= sqrt(2) R sigma / sqrt(t) + beta R^2 / t

(Bubeck, Convex Optimization, arXiv:1405.4980, theorem 6.3). An unbiased compressor such as `qsgd:7` is
covered: its error is part of sigma.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from talka.errors import InvalidValueError


@dataclass(frozen=True, slots=True)
class TheoremSteps:
    """A schedule for convex problems: one step size for the whole training, and the averaged iterate.

    `fit` then gives the model the mean of its parameters after each step, for which the bound holds.

    >>> round(TheoremSteps(beta=1.0, sigma=2.0, radius=3.0).bound(100), 3)
    0.939
    """

    beta: float
    """Lipschitz constant of the gradient."""
    sigma: float
    """Root of the mean square distance of a stochastic gradient, of all workers, from the gradient."""
    radius: float
    """Distance of the initial parameters from a minimum, at most."""

    def __post_init__(self) -> None:
        for name, allowed, is_allowed in (
            ("beta", "a number above 0", self.beta > 0),
            ("sigma", "a number of at least 0", self.sigma >= 0),
            ("radius", "a number above 0", self.radius > 0),
        ):
            value = getattr(self, name)
            if not is_allowed or not math.isfinite(value):
                raise InvalidValueError(f"TheoremSteps.{name}", value, allowed)

    def rate(self, num_steps: int) -> float:
        """Return the learning rate of all steps of a training with this many."""
        return 1 / (self.beta + self.sigma / (self.radius * math.sqrt(2)) * math.sqrt(num_steps))

    def bound(self, num_steps: int) -> float:
        """Return how far the averaged iterate is above the minimum at most, in expectation."""
        first = math.sqrt(2) * self.radius * self.sigma / math.sqrt(num_steps)
        return first + self.beta * self.radius**2 / num_steps

    def __str__(self) -> str:
        return f"theorem:{self.beta:g}/{self.sigma:g}/{self.radius:g}"


class AveragedIterate:
    """The mean of the trained parameters after each step."""

    def __init__(self, model: nn.Module) -> None:
        self._parameters = {
            name: one for name, one in model.named_parameters() if one.requires_grad
        }
        self.means: dict[str, Tensor] = {
            name: torch.zeros_like(one, dtype=torch.float64)
            for name, one in self._parameters.items()
        }
        self.num_steps = 0

    @torch.no_grad()
    def add(self) -> None:
        """Add the parameters after a step."""
        self.num_steps += 1
        for name, mean in self.means.items():
            mean += (self._parameters[name] - mean) / self.num_steps

    @torch.no_grad()
    def exchange_values(self) -> None:
        """Exchange the parameters of the model for the means; a second call takes that back."""
        if not self.num_steps:
            return
        for name, parameter in self._parameters.items():
            value = parameter.double()
            parameter.copy_(self.means[name])
            self.means[name] = value

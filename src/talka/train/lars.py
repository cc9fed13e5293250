"""LARS: SGD with a learning rate per layer, for very large batches (T15).

Each parameter's step is rescaled by eta ||w|| / (||gradient|| + weight_decay ||w||), so that no layer
changes by more than a share of its norm (You et al., arXiv:1708.03888). Parameters of one dimension,
such as biases and those of BatchNorm, are not rescaled and not decayed.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from talka.errors import InvalidValueError


class LARS(Optimizer):
    """SGD with momentum, and with a learning rate for each layer that follows the norm of its weights.

    Parameters
    ----------
    eta
        Trust coefficient: the share of a layer's norm that a step with learning rate 1 changes.
    eps
        Added to the denominator.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        lr: float,
        *,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        eta: float = 0.001,
        eps: float = 1e-9,
    ) -> None:
        for name, value in (("lr", lr), ("weight_decay", weight_decay), ("eps", eps)):
            if value < 0:
                raise InvalidValueError(f"{name} of LARS", value, "a number of at least 0")
        if eta <= 0:
            raise InvalidValueError("eta of LARS", eta, "a number above 0")
        if not 0 <= momentum < 1:
            raise InvalidValueError("momentum of LARS", momentum, "at least 0 and below 1")
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(params, defaults | {"eta": eta, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        return loss

    def _update(self, parameter: Tensor, group: dict[str, Any]) -> None:
        assert parameter.grad is not None
        change, rate = parameter.grad, 1.0
        if parameter.ndim > 1:
            rate = local_rate(parameter, change, group)
            change = change.add(parameter, alpha=group["weight_decay"])
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        momentum = state["momentum_buffer"]
        momentum.mul_(group["momentum"]).add_(change, alpha=rate * group["lr"])
        parameter.sub_(momentum)


def local_rate(parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> float:
    """Return the factor of a layer's learning rate; 1 if its weights or gradients are zero."""
    weight_norm, gradient_norm = float(parameter.norm()), float(gradient.norm())
    if not weight_norm or not gradient_norm:
        return 1.0
    denominator = gradient_norm + group["weight_decay"] * weight_norm + group["eps"]
    return float(group["eta"] * weight_norm / denominator)

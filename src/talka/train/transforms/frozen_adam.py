"""Adam for compressed exchanges: momentum is exchanged, the variance is frozen after a warm-up.

This is 1-bit Adam (Tang et al., arXiv:2102.02888). During the warm-up it is Adam with uncompressed
gradients. After it the variance is constant, each worker updates the common momentum with its own
gradient, and that momentum is exchanged, compressed and with error feedback. Momentum enters the
update linearly, so feedback works as it does for SGD.

If gradients grow after the warm-up, a frozen variance is too small. Adam's own steps are never longer
than max(1, (1 - beta 1) / sqrt(1 - beta 2)) learning rates; steps with a frozen variance are clipped
to that.

A parameter whose first gradient comes after the warm-up gets one variance for all of its entries: the
mean square of that gradient, which compression hardly changes. Entries without a gradient during the
whole warm-up, such as the rows of words that did not occur, have no variance to divide by and are not
updated: make the warm-up long enough for every entry to get a gradient.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import Optimizer

from talka.errors import InvalidValueError


class FrozenAdam(Optimizer):
    """Adam whose momentum is exchanged compressed, with a variance that is frozen after a warm-up.

    Pass it to `attach`: the hook sends uncompressed gradients during the warm-up, then momentum.
    `weight_decay` is decoupled, as in AdamW. On one worker it also works without a hook.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        warmup_steps: int = 100,
    ) -> None:
        if warmup_steps < 1:
            raise InvalidValueError("warmup_steps", warmup_steps, "a whole number of at least 1")
        if not 0 <= betas[0] < 1 or not 0 <= betas[1] < 1:
            raise InvalidValueError("betas", betas, "two numbers of at least 0 and below 1")
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )
        self.warmup_steps = warmup_steps
        self.attached = False
        """True if a hook replaces gradients by averaged momentum before `step`."""
        self.scaler: GradScaler | None = None
        """GradScaler passed to the hook. Its factor multiplies gradients, and so must momentum."""

    @property
    def is_frozen(self) -> bool:
        """True if the next step uses the frozen variance."""
        states = iter(self.state.values())
        first = next(states, None)
        return first is not None and int(first["step"]) >= self.warmup_steps

    @torch.no_grad()
    def to_momentum(self, parameters: Sequence[Tensor], gradients: Sequence[Tensor]) -> None:
        """Replace this worker's gradients by its momentum, in place, except during the warm-up."""
        if not self.is_frozen:
            return
        betas = {
            parameter: group["betas"][0]
            for group in self.param_groups
            for parameter in group["params"]
        }
        scale = 1.0 if self.scaler is None else self.scaler.get_scale()
        for parameter, gradient in zip(parameters, gradients, strict=True):
            if parameter not in self.state:
                continue
            beta = betas[parameter]
            gradient.mul_(1 - beta).add_(self.state[parameter]["momentum"], alpha=beta * scale)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update the parameters; return the loss of `closure`, if given."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if not self._unscale():
            return loss
        is_frozen = self.is_frozen
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if is_frozen and parameter not in self.state:
                    self._start_late(parameter, group["betas"])
                if not is_frozen or parameter in self.state:
                    self._update(parameter, group, is_frozen=is_frozen)
        return loss

    _step_supports_amp_scaling = True  # makes a GradScaler set `found_inf` and `grad_scale`

    def _unscale(self) -> bool:
        """Divide gradients by a GradScaler's factor if needed; return False to skip the step."""
        found_inf: Tensor | None = getattr(self, "found_inf", None)
        if found_inf is None:
            return True
        if self.attached and self.scaler is None:
            raise InvalidValueError(
                "scaler",
                None,
                "the GradScaler of this FrozenAdam: without its factor, the hook mixes scaled "
                "gradients with unscaled momentum; call attach(..., optimizer=optimizer, "
                "scaler=scaler)",
            )
        factor: Tensor | None = getattr(self, "grad_scale", None)
        if factor is not None and not found_inf:
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad.div_(factor)
        return not found_inf

    def _start_late(self, parameter: Tensor, betas: tuple[float, float]) -> None:
        """Set the variance of a parameter from its first nonzero gradient after the warm-up.

        That gradient was exchanged as a gradient, not as momentum: it is converted here.
        """
        gradient, (beta_1, beta_2) = parameter.grad, betas
        assert gradient is not None
        mean_square = float(gradient.square().mean())
        if mean_square == 0:
            return
        corrected = mean_square * (1 - beta_2**self.warmup_steps)
        self.state[parameter] = {
            "step": torch.tensor(self.warmup_steps),
            "momentum": torch.zeros_like(parameter),
            "variance": torch.full_like(parameter, corrected),
        }
        if self.attached:
            gradient.mul_(1 - beta_1)

    def _update(self, parameter: Tensor, group: dict[str, Any], *, is_frozen: bool) -> None:
        state, gradient = self.state[parameter], parameter.grad
        assert gradient is not None
        beta_1, beta_2 = group["betas"]
        if not state:
            state["step"] = torch.tensor(0)
            state["momentum"] = torch.zeros_like(parameter)
            state["variance"] = torch.zeros_like(parameter)
        state["step"] += 1
        if is_frozen and self.attached:
            state["momentum"].copy_(gradient)  # momentum already, averaged over workers
        else:
            state["momentum"].lerp_(gradient, 1 - beta_1)
        if not is_frozen:
            state["variance"].mul_(beta_2).addcmul_(gradient, gradient, value=1 - beta_2)
        warm = min(int(state["step"]), self.warmup_steps)
        scale = (1 - beta_2**warm) ** 0.5 / (1 - beta_1 ** int(state["step"]))
        denominator = state["variance"].sqrt().add_(group["eps"] * (1 - beta_2**warm) ** 0.5)
        denominator.masked_fill_(state["variance"] == 0, math.inf)
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        step = (state["momentum"] / denominator).mul_(scale)
        if is_frozen:
            longest = max(1.0, (1 - beta_1) / (1 - beta_2) ** 0.5)
            step.clamp_(-longest, longest)
        parameter.add_(step, alpha=-group["lr"])

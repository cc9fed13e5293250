"""Optimizers inside of wrappers, and optimizers that do not go with a compressor."""

import warnings
from typing import Any

from torch.optim import SGD, Optimizer

from talka.errors import InvalidValueError

_SAFE_WITH_ADAM = ("none", "fp16", "bf16", "trunc16")
_SPARSE = ("topk", "randomk", "threshold", "significance")


def unwrapped(optimizer: Any) -> Optimizer:
    """Return the real optimizer inside of wrappers such as those of accelerate and Lightning.

    A wrapper has `param_groups`, and the optimizer, or a further wrapper, in `.optimizer`. Its own
    type says nothing: accelerate's is a `torch.optim.Optimizer` whatever it wraps.
    """
    inner = optimizer
    while hasattr(inner, "param_groups") and hasattr(inner, "optimizer"):
        inner = inner.optimizer
    if not isinstance(inner, Optimizer):
        given = type(optimizer)
        raise InvalidValueError(
            "optimizer",
            f"{given.__module__}.{given.__qualname__}",
            "a torch.optim.Optimizer, or a wrapper that has param_groups and keeps the optimizer in "
            "`.optimizer`; give attach() the one that is inside",
        )
    return inner


def check_momentum(optimizer: Optimizer, spec: str, momentum: float) -> None:
    """Momentum belongs to the hook or to the optimizer, and with sparse specs to the hook."""
    its_own = max(float(group.get("momentum", 0.0)) for group in optimizer.param_groups)
    kind = type(optimizer).__name__
    if momentum and not (isinstance(optimizer, SGD) and its_own == 0):
        raise InvalidValueError(
            "momentum",
            momentum,
            f"0 with this {kind}; another needs torch.optim.SGD without momentum of its own",
        )
    if its_own and spec.endswith("+ef") and spec.partition(":")[0] in _SPARSE:
        warnings.warn(
            f"{kind} with momentum costs accuracy with {spec!r}: it goes on with what was said late. "
            f"Give it to the hook, attach(..., momentum={its_own:g}), and none to the optimizer.",
            stacklevel=4,
        )


def warn_of_adam(optimizer: Optimizer, spec: str) -> None:
    """Adam divides by the size of what it is given: with residuals in it, that is no gradient's."""
    kind = type(optimizer).__name__
    name = spec.partition(":")[0].removesuffix("+ef")
    if "adam" not in kind.lower() or kind == "FrozenAdam" or name in _SAFE_WITH_ADAM:
        return
    if spec.endswith("+ef") or name in ("onebit", "topk", "threshold", "significance", "powersgd"):
        warnings.warn(
            f"{kind} with {spec!r} may diverge: its variance would be that of compressed gradients. "
            "Use talka.train.FrozenAdam, which compresses momentum under a frozen variance; or SGD "
            "with momentum; or an unbiased spec such as 'qsgd:7', or 'bf16'.",
            stacklevel=4,
        )

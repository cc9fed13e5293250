"""Checks for optimizers that conflict with the chosen compressor, and optimizers in wrappers."""

import warnings
from typing import Any

from torch.optim import SGD, Optimizer

from talka.compress.protocol import Properties
from talka.errors import InvalidValueError


def unwrapped(optimizer: Any) -> Optimizer:
    """Return the optimizer inside of wrappers such as those of accelerate and Lightning.

    A wrapper has `param_groups`, and the optimizer or a further wrapper in `.optimizer`. The type
    of a wrapper does not help: accelerate's is a `torch.optim.Optimizer` itself.
    """
    inner = optimizer
    while hasattr(inner, "param_groups") and hasattr(inner, "optimizer"):
        inner = inner.optimizer
    if not isinstance(inner, Optimizer):
        kind = type(optimizer)
        raise InvalidValueError(
            "optimizer",
            f"{kind.__module__}.{kind.__qualname__}",
            "a torch.optim.Optimizer, or a wrapper that has param_groups and keeps the optimizer "
            "in `.optimizer`; give attach() the inner optimizer",
        )
    return inner


def check_momentum(
    optimizer: Optimizer, spec: str, properties: Properties, momentum: float
) -> None:
    """Raise InvalidValueError if both hook and optimizer add momentum.

    Warn if the optimizer adds momentum to averages of a sparse compressor with error feedback.
    """
    own_momentum = max(float(group.get("momentum", 0.0)) for group in optimizer.param_groups)
    kind = type(optimizer).__name__
    if momentum and not (isinstance(optimizer, SGD) and own_momentum == 0):
        raise InvalidValueError(
            "momentum",
            momentum,
            f"0 with this {kind}; any other value needs torch.optim.SGD with momentum=0",
        )
    if own_momentum and properties.sparse and properties.keeps_residuals:
        warnings.warn(
            f"{kind} with momentum loses accuracy with {spec!r}: momentum keeps amplifying entries "
            "that arrive several steps late. Use the momentum of the hook instead, "
            f"attach(..., momentum={own_momentum:g}), and none in the optimizer.",
            stacklevel=4,
        )


def warn_of_adam(optimizer: Optimizer, spec: str, properties: Properties) -> None:
    """Warn if Adam would learn its variance from averages that differ much from gradients.

    Adam divides by the size of its input. With residuals in it, that is not the size of a gradient.
    """
    kind = type(optimizer).__name__
    if "adam" not in kind.lower() or kind == "FrozenAdam":
        return
    if not (properties.safe_with_adam or properties.unbiased):
        warnings.warn(
            f"{kind} with {spec!r} may diverge: its variance would be that of compressed "
            "gradients. Use talka.train.FrozenAdam, which compresses momentum under a frozen "
            "variance; or SGD with momentum; or an unbiased compressor such as 'qsgd:7', or 'bf16'.",
            stacklevel=4,
        )

"""Optimizers and rhythms by their short forms."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.optim import Optimizer

from talka.compress import Compressor
from talka.errors import InvalidValueError, UnknownNameError
from talka.short_forms import number_in
from talka.train.fitting.options import FitOptions
from talka.train.lars import LARS
from talka.train.optimizers import unwrapped
from talka.train.rhythms.base import Rhythm
from talka.train.rhythms.delayed import Delayed
from talka.train.rhythms.every_step import EveryStep
from talka.train.rhythms.local_sgd import LocalSGD
from talka.train.rhythms.shares import Shares

OptimizerLike: TypeAlias = str | Optimizer | Callable[[Iterable[nn.Parameter]], Optimizer]
"""A short form, an optimizer of the model's parameters, or a function that makes one from them."""
_FORMS = "'sgd:RATE[/MOMENTUM]', 'adam:RATE', 'adamw:RATE[/DECAY]' or 'lars:RATE[/MOMENTUM]'"
_NAMES = ("sgd", "adam", "adamw", "lars")


def make_optimizer(given: OptimizerLike, model: nn.Module) -> Optimizer:
    """Return an optimizer of all trained parameters."""
    if isinstance(given, str):
        return _optimizer_by_name(given, _trained(model))
    other: Any = given
    if hasattr(other, "param_groups"):
        return unwrapped(other)
    if not callable(other):
        allowed = f"{_FORMS}, an optimizer, or a function that makes one from parameters"
        raise InvalidValueError("optimizer", given, allowed)
    return unwrapped(other(_trained(model)))


def _trained(model: nn.Module) -> list[nn.Parameter]:
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not trained:
        raise InvalidValueError("model", type(model).__name__, "one with parameters to train")
    return trained


def _optimizer_by_name(text: str, parameters: list[nn.Parameter]) -> Optimizer:
    name, _, arguments = text.partition(":")
    if name not in _NAMES:
        raise UnknownNameError("optimizer", name, _NAMES)
    numbers = [number_in(argument) for argument in arguments.split("/")]
    if len(numbers) > 1 + (name != "adam") or any(one is None or one < 0 for one in numbers):
        raise InvalidValueError("optimizer", text, _FORMS)
    rate, other = float(numbers[0] or 0), float(numbers[-1] or 0) if len(numbers) > 1 else None
    if name == "adam":
        return torch.optim.Adam(parameters, lr=rate)
    if name == "adamw":
        return torch.optim.AdamW(parameters, lr=rate, weight_decay=0.01 if other is None else other)
    if name == "lars":
        return LARS(parameters, lr=rate, momentum=0.9 if other is None else other)
    return torch.optim.SGD(parameters, lr=rate, momentum=other or 0.0)


def make_rhythm(
    model: nn.Module, optimizer: Optimizer, options: FitOptions, shares: Shares
) -> Rhythm:
    """Return the rhythm of the options."""
    config = options.rhythm
    common: dict[str, Any] = {
        "compressor": options.compressor,
        "exchange": options.exchange,
        "network": options.network,
        "run_dir": options.run_dir,
        "shares": shares,
    }
    if config.name == "local-sgd":
        return LocalSGD(
            model,
            optimizer,
            every=config.steps,
            outer=config.outer,
            warmup_steps=config.warmup_steps,
            **common,
        )
    if config.name == "delayed":
        return Delayed(model, optimizer, delay=config.steps, momentum=config.momentum, **common)
    return EveryStep(model, optimizer, momentum=config.momentum, **common)


def spec_of(compressor: str | Compressor) -> str:
    """Return the short form of a compressor."""
    return compressor if isinstance(compressor, str) else compressor.spec

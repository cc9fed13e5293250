"""Training on several workers: the hook for your own script, and built-in models.

Names are imported on first use: importing torch takes a second, and built-in models need only numba.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from talka.train.fitting.fit import fit
    from talka.train.fitting.result import FitResult
    from talka.train.fitting.theorem import TheoremSteps
    from talka.train.gradients import average_gradients
    from talka.train.hook import Hook, attach, exchange_hook
    from talka.train.lars import LARS
    from talka.train.replica import Replica
    from talka.train.rhythms.delayed import Delayed
    from talka.train.rhythms.every_step import EveryStep
    from talka.train.rhythms.local_sgd import LocalSGD
    from talka.train.rhythms.outer import Outer
    from talka.train.rhythms.shares import Shares
    from talka.train.rhythms.short_forms import RhythmConfig
    from talka.train.scripts.metrics import log
    from talka.train.transforms.frozen_adam import FrozenAdam

__all__ = [
    "LARS",
    "Delayed",
    "EveryStep",
    "FitResult",
    "FrozenAdam",
    "Hook",
    "LocalSGD",
    "Outer",
    "Replica",
    "RhythmConfig",
    "Shares",
    "TheoremSteps",
    "attach",
    "average_gradients",
    "exchange_hook",
    "fit",
    "log",
]

_HOMES = {
    "Delayed": "talka.train.rhythms.delayed",
    "EveryStep": "talka.train.rhythms.every_step",
    "FitResult": "talka.train.fitting.result",
    "FrozenAdam": "talka.train.transforms.frozen_adam",
    "Hook": "talka.train.hook",
    "LARS": "talka.train.lars",
    "LocalSGD": "talka.train.rhythms.local_sgd",
    "Outer": "talka.train.rhythms.outer",
    "Replica": "talka.train.replica",
    "RhythmConfig": "talka.train.rhythms.short_forms",
    "Shares": "talka.train.rhythms.shares",
    "TheoremSteps": "talka.train.fitting.theorem",
    "attach": "talka.train.hook",
    "average_gradients": "talka.train.gradients",
    "exchange_hook": "talka.train.hook",
    "fit": "talka.train.fitting.fit",
    "log": "talka.train.scripts.metrics",
}
_WITHOUT_TORCH = ("RhythmConfig", "log")


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    from talka.extras import require

    if name == "fit":
        require("safetensors", by="talka.train.fit")
    if name not in _WITHOUT_TORCH:
        require("torch", by=f"talka.train.{name}")
    return getattr(importlib.import_module(_HOMES[name]), name)

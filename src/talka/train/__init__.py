"""Training on several workers: the hook for your own script, and built-in models.

Names are imported on first use: importing torch takes a second, and built-in models need only numba.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from talka.train.frozen_adam import FrozenAdam
    from talka.train.gradients import average_gradients
    from talka.train.hook import Hook, attach, exchange_hook
    from talka.train.scripts.metrics import log

__all__ = ["FrozenAdam", "Hook", "attach", "average_gradients", "exchange_hook", "log"]

_HOMES = {
    "FrozenAdam": "talka.train.frozen_adam",
    "Hook": "talka.train.hook",
    "attach": "talka.train.hook",
    "average_gradients": "talka.train.gradients",
    "exchange_hook": "talka.train.hook",
    "log": "talka.train.scripts.metrics",
}
_WITHOUT_TORCH = ("log",)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    from talka.extras import require

    if name not in _WITHOUT_TORCH:
        require("torch", by=f"talka.train.{name}")
    return getattr(importlib.import_module(_HOMES[name]), name)

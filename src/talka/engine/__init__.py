"""Engines: run tasks and gangs on this machine or on a cluster."""

from typing import TYPE_CHECKING, Any

from talka.engine.base import Engine, Gang, Ref
from talka.engine.lineage import Retries

if TYPE_CHECKING:
    from talka.engine.gangs.worker import GangWorker
    from talka.engine.local.embedded import Embedded
    from talka.engine.on_ray.engine import OnRay

__all__ = ["Embedded", "Engine", "Gang", "GangWorker", "OnRay", "Ref", "Retries"]

_HOMES = {"Embedded": "local.embedded", "GangWorker": "gangs.worker", "OnRay": "on_ray.engine"}


def __getattr__(name: str) -> Any:
    """Import an engine at its first use, as pyarrow and ray are slow to import."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "OnRay":
        from talka.extras import require

        require("ray", by="OnRay")
    return getattr(importlib.import_module(f"talka.engine.{_HOMES[name]}"), name)

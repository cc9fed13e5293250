"""Tables, graphs and training on many ordinary machines, where the network is the slow part.

>>> import talka
>>> graph = talka.graph.Graph.from_edges([(1, 2), (2, 3), (4, 5)])
>>> graph.components().num_rows
5

Submodules are imported when they are first used, so `import talka` itself is cheap.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from talka import compress, data, engine, exchange, graph, lab, network, train
    from talka.jobs.embeddings.embed import embed

__version__ = "0.1.0"
__all__ = [
    "compress",
    "data",
    "embed",
    "engine",
    "exchange",
    "graph",
    "lab",
    "network",
    "train",
]

_FUNCTIONS = {"embed": "talka.jobs.embeddings.embed"}


def __getattr__(name: str) -> Any:
    import importlib

    if name in _FUNCTIONS:
        return getattr(importlib.import_module(_FUNCTIONS[name]), name)
    if name in __all__:
        return importlib.import_module(f"talka.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

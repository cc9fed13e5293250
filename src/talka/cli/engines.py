"""`--engine`: where a command's work runs."""

import argparse
from typing import TYPE_CHECKING

from talka.errors import InvalidValueError

if TYPE_CHECKING:
    from talka.engine import Engine
    from talka.events import Stream


def add_engine_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        default="embedded",
        metavar="WHERE",
        help="embedded (this machine), ray (a Ray of our own on this machine) or ray://HOST:PORT "
        "(a cluster that this machine belongs to) (default: %(default)s)",
    )


def open_engine(where: str, events: "Stream | None" = None) -> "Engine":
    """The engine that `--engine` names; the caller closes it."""
    from talka.engine import Embedded, OnRay

    if where == "embedded":
        return Embedded(events=events)
    if where == "ray":
        return OnRay(events=events)
    if where.startswith("ray://"):
        return OnRay(where, events=events)
    raise InvalidValueError("--engine", where, "embedded, ray or ray://HOST:PORT")

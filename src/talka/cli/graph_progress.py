"""A line for a superstep, for whoever watches the terminal."""

import sys
import time
from typing import TYPE_CHECKING, Final

from talka.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from talka.events import Event, SuperstepDone

_EVERY_S: Final = 0.2  # a graph can take thousands of supersteps in a second


class SuperstepLines:
    """Listens to a run; `show` prints a superstep unless the last line is too fresh."""

    def __init__(self) -> None:
        self._shown_s = 0.0

    def show(self, event: "Event") -> None:
        from talka.events import SuperstepDone

        if isinstance(event, SuperstepDone) and time.monotonic() - self._shown_s >= _EVERY_S:
            print(as_line(event), file=sys.stderr)
            self._shown_s = time.monotonic()


def as_line(done: "SuperstepDone") -> str:
    ways = [f"{name} {count}" for name, count in (("push", done.pushed), ("pull", done.pulled))]
    way = " + ".join(one for one in ways if not one.endswith(" 0")) or "-"
    return (
        f"superstep {done.superstep:5d}  active {format_count(done.num_active):>7}  "
        f"messages {format_count(done.num_messages):>7}  sent {format_bytes(done.sent_bytes):>8}  "
        f"{way:<15}  {format_seconds(done.seconds):>7}"
    )

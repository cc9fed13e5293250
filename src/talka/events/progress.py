"""Progress bars in the terminal, driven by the stream of events."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from talka.events.base import PhaseAdvanced, PhaseEnded, PhaseStarted
from talka.events.registry import Event
from talka.events.stream import Stream
from talka.units import format_count

if TYPE_CHECKING:
    from rich.progress import Progress, Task, TaskID


@contextmanager
def progress_in_terminal(stream: Stream) -> Iterator[None]:
    """Show a bar for each phase, with its rate and the time left.

    Bars appear on standard error, and only if that is a terminal.
    """
    if not sys.stderr.isatty():
        yield
        return
    bars = _Bars()
    with bars.progress, stream.listening(bars.show):
        yield


class _Bars:
    def __init__(self) -> None:
        self.progress = _progress()
        self._bars: dict[str, TaskID] = {}

    def show(self, event: Event) -> None:
        if isinstance(event, PhaseStarted):
            self._bars[event.cost_id] = self.progress.add_task(
                event.cost_id, total=event.total, unit=event.unit
            )
        elif isinstance(event, PhaseAdvanced) and event.cost_id in self._bars:
            self.progress.update(self._bars[event.cost_id], completed=event.done)
        elif isinstance(event, PhaseEnded) and event.cost_id in self._bars:
            bar = self._bars.pop(event.cost_id)
            task = self.progress.tasks[self.progress.task_ids.index(bar)]
            if task.total is None:
                self.progress.update(bar, total=task.completed)
            self.progress.stop_task(bar)


def _progress() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: "Task") -> Text:
            unit = task.fields["unit"]
            done = format_count(task.completed)
            total = "" if task.total is None else f"/{format_count(task.total)}"
            speed = "" if task.speed is None else f"  {format_count(task.speed)} {unit}/s"
            return Text(f"{done}{total} {unit}{speed}")

    return Progress(
        TextColumn("{task.description:<16}", markup=False),
        BarColumn(bar_width=30),
        Rate(),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=Console(stderr=True),
    )

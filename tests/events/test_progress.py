import os
import pty
import subprocess
import sys

import pytest

from talka.events import PhaseAdvanced, PhaseEnded, PhaseStarted, Stream
from talka.events.progress import _Bars

COUNT_ROWS = """if True:
    import talka.events.stream
    from talka.events import Stream, progress_in_terminal

    talka.events.stream.ADVANCE_EVERY_S = 0
    stream = Stream()
    with progress_in_terminal(stream), stream.phase("count", total=500, unit="rows") as phase:
        for _ in range(500):
            phase.advance()
"""


def test_nothing_is_shown_without_a_terminal():
    shown = subprocess.run(
        [sys.executable, "-c", COUNT_ROWS], capture_output=True, timeout=250, check=True
    )
    assert (shown.stdout, shown.stderr) == (b"", b"")


def test_a_terminal_shows_part_amount_and_rate():
    shown = shown_in_a_terminal(COUNT_ROWS)
    assert "count" in shown
    assert "500/500 rows" in shown
    assert "rows/s" in shown


def shown_in_a_terminal(script: str) -> str:
    reader, writer = pty.openpty()
    env = os.environ | {"TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    with os.fdopen(reader, "rb", buffering=0) as screen:
        process = subprocess.Popen([sys.executable, "-c", script], stderr=writer, env=env)
        os.close(writer)
        shown = b""
        try:
            while chunk := screen.read(65536):
                shown += chunk
        except OSError:  # Linux: the other side of the terminal was closed
            pass
        assert process.wait(timeout=250) == 0
    return shown.decode()


@pytest.fixture
def bars() -> _Bars:
    return _Bars()


def test_a_phase_that_stops_early_does_not_look_complete(bars):
    for event in [
        PhaseStarted("count", 10, "rows"),
        PhaseAdvanced("count", 4),
        PhaseEnded("count"),
    ]:
        bars.show(event)
    (task,) = bars.progress.tasks
    assert (task.completed, task.total) == (4, 10)


def test_a_phase_of_unknown_length_is_complete_at_its_end(bars):
    for event in [
        PhaseStarted("count", None, "rows"),
        PhaseAdvanced("count", 4),
        PhaseEnded("count"),
    ]:
        bars.show(event)
    assert bars.progress.finished


def test_a_phase_that_started_before_the_bars_is_not_shown():
    stream, bars = Stream(), _Bars()
    with stream.phase("count") as phase:
        with stream.listening(bars.show):
            phase.advance()
        assert bars.progress.tasks == []


def test_square_brackets_in_a_name_are_not_markup(bars):
    bars.show(PhaseStarted("stage/[/bold]", 1, "rows"))
    with bars.progress.console.capture() as captured:
        bars.progress.console.print(bars.progress.get_renderable())
    assert "stage/[/bold]" in captured.get()

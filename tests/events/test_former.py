"""Event files that former versions wrote, one event of each of their kinds, read as before."""

from pathlib import Path

import pytest

from talka.engine.events import Spilled, TaskAgain, TasksRan, WorkerLost
from talka.events import (
    Failure,
    Measured,
    Noted,
    PhaseAdvanced,
    PhaseEnded,
    PhaseStarted,
    Predicted,
    RunEnded,
    RunStarted,
    read_run,
)
from talka.graph.events import SuperstepDone
from talka.report import write_report
from talka.train.events import ResidualNorm, StepDone

FOLDER = Path(__file__).parent / "former"
VERSIONS = sorted(path.name for path in FOLDER.iterdir())
NOT_IN_THE_FIRST = (Noted, SuperstepDone)
EVENTS = [
    RunStarted("former"),
    Failure("message-é", "detail-é"),
    Noted("cost_id-é", "message-é"),
    Predicted("cost_id-é", 2.5, 3.5, "reason-é"),
    Measured("cost_id-é", 2.5, 3.5),
    PhaseStarted("cost_id-é", 2.5, "unit-é"),
    PhaseAdvanced("cost_id-é", 2.5),
    PhaseEnded("cost_id-é"),
    TasksRan("name-é", "worker-é", 3, 4.5, 5.5, 6.5, 7),
    TaskAgain(1, "name-é", "reason-é"),
    WorkerLost("worker-é", "reason-é"),
    Spilled(1, 2.5),
    StepDone(1, 2, 3, 4.5, 5.5, wait_s=6.5, decode_s=7.5),
    ResidualNorm(1, 2.5),
    SuperstepDone(1, 2, 3, 4, 5, 6, 7, 8.5),
    Measured("nothing", None, None),
    RunEnded("done"),
]


def test_there_are_files_of_five_versions():
    assert VERSIONS == ["before_registry", "cost_id", "first", "graphs", "wait_s"]
    assert '"part": ' in (FOLDER / "graphs" / "events.jsonl").read_text()
    assert '"exchange_s": ' in (FOLDER / "cost_id" / "events.jsonl").read_text()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_event_of_a_former_version_is_read(version):
    record = read_run(FOLDER / version)
    expected = [
        event for event in EVENTS if version != "first" or not isinstance(event, NOT_IN_THE_FIRST)
    ]
    assert [stamped.event for stamped in record.events] == expected
    assert (record.num_unreadable_lines, record.num_damaged_lines) == (0, 0)
    assert (record.status, record.result) == ("done", {"answer": 42})
    assert record.config["config"] == {"dim": 3}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_of_a_former_version_has_a_page(version, tmp_path):
    text = write_report(FOLDER / version, tmp_path / "page.html").read_text()
    assert "<h2>Training steps</h2>" in text
    assert ("<h2>Supersteps</h2>" in text) == (version != "first")
    assert "<h2>Other events</h2>" not in text

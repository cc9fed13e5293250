import subprocess
import sys
from dataclasses import dataclass
from typing import Literal

import pytest

import talka.events
from talka.errors import OptionError
from talka.events import Event, RunStarted, Stream, read_run, register, registered
from talka.events.registry import MODULES, _kinds, find, pillar_of
from talka.train.events import StepDone


@pytest.fixture(autouse=True)
def registry_as_before():
    registered()
    before = dict(_kinds)
    yield
    _kinds.clear()
    _kinds.update(before)


def make(name, module="outside.events", **annotations):
    members = {"__module__": module, "__annotations__": annotations}
    return dataclass(frozen=True, slots=True)(type(name, (Event,), members))


def test_an_event_from_outside_of_talka_is_written_and_read(tmp_path):
    Moved = register(make("Moved", what=str, how_far=float | None, way=Literal["up", "down"]))
    stream = Stream(tmp_path / "events.jsonl")
    stream.emit(Moved("a", None, "up"))
    stream.close()
    assert [stamped.event for stamped in read_run(tmp_path).events] == [Moved("a", None, "up")]


def test_two_classes_cannot_have_one_name():
    with pytest.raises(
        OptionError,
        match=r"outside\.events\.StepDone has the name of another event, talka\.train\.events\.StepDone",
    ):
        register(make("StepDone", step=int))
    assert find("StepDone").type is StepDone


def test_a_module_that_is_imported_again_registers_its_classes_again():
    register(make("Moved", what=str))
    again = register(make("Moved", what=str))
    assert find("Moved").type is again


@pytest.mark.parametrize("kind", [list, dict[str, int], list[int] | None, Literal[1, 2], object])
def test_a_field_that_json_cannot_bring_back_is_an_error(kind):
    with pytest.raises(OptionError, match=r"the field 'x' of the event outside\.events\.Bad has"):
        register(make("Bad", x=kind))
    assert find("Bad") is None


def test_every_event_of_the_package_is_found_although_nothing_imported_its_module():
    code = (
        "from talka.events.registry import find, _kinds\n"
        "assert 'StepDone' not in _kinds\n"
        "print(*(find(name).type.__module__ for name in ('StepDone', 'Spilled', 'SuperstepDone')))\n"
        "import sys\n"
        "print(sorted({'torch', 'numba', 'ray', 'pyarrow', 'numpy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        "talka.train.events talka.engine.events talka.graph.events",
        "[]",
    ]


def test_every_events_module_is_in_the_table():
    homes = {kind.__module__ for kind in registered().values()}
    assert homes == {"talka.events.base", *MODULES}


def test_events_of_pillars_can_be_imported_from_the_package():
    from talka.events import StepDone as same  # type: ignore[attr-defined]

    assert same is StepDone
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = talka.events.Nothing


@pytest.mark.parametrize(
    "kind, pillar", [(RunStarted, ""), (StepDone, "train"), (make("Moved"), "outside")]
)
def test_an_event_belongs_to_a_pillar(kind, pillar):
    assert pillar_of(kind) == pillar

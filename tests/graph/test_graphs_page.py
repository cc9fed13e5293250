"""The tables of docs/graphs.md match the algorithms and the parameters of functions."""

import importlib.util
from pathlib import Path

import pytest

from talka.errors import ProgramError
from talka.graph import Aggregate, EdgeProgram
from talka.graph.algorithms import ALGORITHMS

TEXT = (Path(__file__).parents[2] / "docs" / "graphs.md").read_text()


def test_every_algorithm_is_in_the_table():
    assert all(f"| `{name}` |" in TEXT for name in ALGORITHMS)


GIVEN = {
    "message": lambda value: value,
    "combine": "sum",
    "update": lambda combined: combined,
    "initial": lambda: 0.0,
    "active": lambda value: value > 0,
    "parameters": {"speed": 2.0},
    "num_supersteps": 1,
}
ASKED = {  # function, parameter, and whether the page allows it
    "message": {"value": True, "weight": True, "old": False, "combined": False, "speed": True},
    "update": {"value": True, "combined": True, "weight": False, "old": False, "superstep": True},
    "initial": {"vertex": True, "value": False, "superstep": False, "speed": True},
    "active": {"old": True, "value": True, "superstep": True, "weight": False},
    "starts": {"value": True, "superstep": False, "old": False},
}


@pytest.mark.parametrize("who, name", [(who, name) for who in ASKED for name in ASKED[who]])
def test_functions_may_take_the_parameters_of_the_page(who, name, tmp_path):
    path = tmp_path / "asks.py"
    path.write_text(f"def function({name}):\n    return {name}\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if ASKED[who][name]:
        EdgeProgram(**{**GIVEN, who: module.function})
    else:
        with pytest.raises(ProgramError, match=f"it cannot take a parameter '{name}'"):
            EdgeProgram(**{**GIVEN, who: module.function})


def test_aggregates_may_take_old_values_and_only_update_takes_aggregates():
    change = {"change": Aggregate(lambda old, value: abs(value - old))}
    EdgeProgram(**{**GIVEN, "aggregates": change, "update": lambda combined, change: combined})
    with pytest.raises(ProgramError, match="it cannot take a parameter 'change'"):
        EdgeProgram(**{**GIVEN, "aggregates": change, "message": lambda change: change})

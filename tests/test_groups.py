"""Which tests stay together in one test process."""

import pytest

from tests.groups import LONG, RAY, group_of, place_of


@pytest.mark.parametrize(
    "name, group",
    [
        ("tests/engine/test_on_ray.py::test_a", RAY),
        ("tests/engine/test_contract.py::test_a[ray-python]", RAY),
        ("tests/graph/reading/test_tables.py::test_an_array", "tests/graph/reading/test_tables.py"),
        ("src/talka/engine/on_ray/gang.py::talka.engine.on_ray.gang.interface_of",
         "src/talka/engine/on_ray/gang.py"),
    ],
)  # fmt: skip
def test_tests_that_use_ray_are_one_group_and_files_the_others(name, group):
    assert group_of(name) == group


def test_ray_comes_first_then_long_files_in_their_order_then_the_others():
    names = ["src/talka/units.py::a", *(f"{path}::a" for path in reversed(LONG)), "tests/ray.py::a"]
    assert [group_of(name) for name in sorted(names, key=place_of)] == [
        RAY,
        *LONG,
        "src/talka/units.py",
    ]

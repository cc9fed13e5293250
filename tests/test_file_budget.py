from pathlib import Path

BUDGET = 400
PACKAGE = Path(__file__).parents[1] / "src" / "talka"


def test_files_stay_within_budget():
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        lines = len(path.read_text().splitlines())
        assert lines <= BUDGET, f"{name} has {lines} lines: split the concept"

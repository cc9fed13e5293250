"""ARCHITECTURE.md as a test: an import may only point down the layers."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "talka"
LAYERS = [  # top to bottom; names in one row may not import each other
    ["__main__"],
    ["cli"],
    ["dashboard", "report", "lab"],
    ["jobs"],
    ["planner"],
    ["train", "graph"],
    ["data", "exchange"],
    ["compress", "engine"],
    ["network"],
    ["events"],
    ["inputs", "extras", "short_forms"],
    ["files", "units", "threads"],
    ["errors", "machine", "compiled", "guard", "renaming"],
]
DEPTH = {unit: depth for depth, row in enumerate(LAYERS) for unit in row}


def imported_units(path: Path) -> set[str]:
    """First-level units of `talka` this file imports, also inside functions."""
    modules = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "talka":
            modules += [f"talka.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.append(node.module)
    units = {module.split(".")[1] for module in modules if module.startswith("talka.")}
    return units - {"__version__"}


def test_imports_point_down():
    for path in PACKAGE.rglob("*.py"):
        unit = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if unit == "__init__":
            continue
        for target in imported_units(path) - {unit}:
            assert DEPTH[target] > DEPTH[unit], f"{path}: {unit} may not import {target}"


def test_every_unit_has_a_layer():
    units = {
        path.name.removesuffix(".py") for path in PACKAGE.iterdir() if path.suffix in ("", ".py")
    }
    assert units - {"__init__", "__pycache__"} <= set(DEPTH)

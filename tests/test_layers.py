"""ARCHITECTURE.md as a test: imports point down the layers, and modules import in no circle."""

import ast
from collections.abc import Collection, Mapping
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
    ["channels"],
    ["network", "profile", "plans"],
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


def module_name(path: Path) -> str:
    parts = ["talka", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(source: str, known: Collection[str]) -> set[str]:
    """Modules among `known` that a source imports: at module level, inside functions, for types.

    `from talka.graph import Graph` imports the package (its `__init__`), `from talka.graph import
    csr` the module.
    """
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            members = [f"{node.module}.{alias.name}" for alias in node.names]
            names += [member if member in known else node.module for member in members]
    return {name for name in names if name in known}


def find_cycle(imports: Mapping[str, Collection[str]]) -> list[str]:
    """Return modules of which each imports the next and the last the first; empty if none do."""
    finished: set[str] = set()

    def visit(module: str, path: list[str]) -> list[str]:
        if module in path:
            return path[path.index(module) :]
        if module not in finished:
            for target in sorted(imports[module]):
                if cycle := visit(target, [*path, module]):
                    return cycle
            finished.add(module)
        return []

    return next((cycle for module in sorted(imports) if (cycle := visit(module, []))), [])


def test_modules_do_not_import_in_a_circle():
    sources = {module_name(path): path.read_text() for path in PACKAGE.rglob("*.py")}
    imports = {name: imported_modules(source, sources) for name, source in sources.items()}
    assert imports["talka.graph.api"] >= {"talka.graph.graph", "talka.graph.algorithms"}
    cycle = find_cycle(imports)
    assert not cycle, f"import cycle: {' -> '.join([*cycle, cycle[0]])}"


def test_a_cycle_through_functions_and_types_is_found():
    sources = {
        "talka.a": "import numpy as np\nfrom talka import b",
        "talka.b": "def f():\n    from talka.c import C",
        "talka.c": "if TYPE_CHECKING:\n    import talka.a",
        "talka.d": "import talka.a, talka.c",
    }
    imports = {name: imported_modules(source, sources) for name, source in sources.items()}
    assert find_cycle(imports) == ["talka.a", "talka.b", "talka.c"]
    assert find_cycle(imports | {"talka.c": set()}) == []

"""A class has a name that no other class of the package has, so that an error or a search finds it."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "talka"
MAY_SHARE: dict[str, str] = {}
"""Names that two classes may have, each with the reason; five at most."""


def test_class_names_are_unique():
    files = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                files[node.name].append(path.relative_to(PACKAGE).as_posix())
    shared = {name: paths for name, paths in files.items() if len(paths) > 1}
    assert {name: paths for name, paths in shared.items() if name not in MAY_SHARE} == {}
    assert MAY_SHARE.keys() <= shared.keys(), "an exception that is no longer needed"
    assert len(MAY_SHARE) <= 5


def test_folders_have_at_most_20_files():
    folders = [PACKAGE, *(path for path in PACKAGE.rglob("*") if path.is_dir())]
    sizes = {path.relative_to(PACKAGE).as_posix(): len(list(path.glob("*.py"))) for path in folders}
    assert {folder: size for folder, size in sizes.items() if size > 20} == {}

"""What `pip install` gives: a wheel in an environment that has nothing but the core's packages."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SUBMODULES = ["compress", "data", "engine", "exchange", "graph", "lab", "network", "train"]
HEAVY = ["duckdb", "numba", "numpy", "pyarrow", "ray", "rich", "torch"]


def run(*command, **options):
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=280, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_importing_talka_imports_nothing_heavy():
    code = (
        "import talka, sys, json; first = sorted(sys.modules); names = dir(talka);"
        "[getattr(talka, name) for name in names]; print(json.dumps([first, names]))"
    )
    imported, names = json.loads(run(sys.executable, "-c", code))
    assert set(HEAVY) & set(imported) == set()
    assert [name for name in imported if name.startswith("talka")] == ["talka"]
    assert set(names) == {*SUBMODULES, "embed", "__version__"}


def test_an_unknown_name_is_an_attribute_error():
    import talka

    with pytest.raises(AttributeError, match="'talka' has no attribute 'grpah'"):
        talka.grpah  # noqa: B018


@pytest.mark.parametrize(
    "package, statement, extra",
    [
        ("torch", "import talka; talka.compress", "train"),
        ("torch", "import talka; talka.exchange", "train"),
        ("torch", "import talka; talka.train.attach", "train"),
        ("torch", "import talka; talka.engine.Embedded().gang(print, size=2)", "train"),
        ("ray", "import talka; talka.engine.OnRay", "cluster"),
    ],
)
def test_what_needs_an_extra_says_how_to_install_it(package, statement, extra):
    code = f"import sys; sys.modules[{package!r}] = None; {statement}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert f"needs {package}, which is not installed" in last
    assert f"'.[{extra}]'" in last


def test_a_gang_without_a_process_group_does_not_need_torch():
    code = (
        "import sys; sys.modules['torch'] = None; import talka\n"
        "with talka.engine.Embedded() as engine:\n"
        "    print(engine.gang(lambda worker: worker.rank, size=2, backend=None))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[0, 1]\n"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """An interpreter with the wheel of this tree, and only what the core asks for."""
    folder = tmp_path_factory.mktemp("install")
    run(sys.executable, "-m", "build", str(ROOT), "--outdir", str(folder), cwd=folder)
    [wheel] = folder.glob("talka-*.whl")
    run(sys.executable, "-m", "venv", str(folder / "venv"))
    python = folder / "venv" / "bin" / "python"
    constraints = str(ROOT / "constraints.txt")
    run(str(python), "-m", "pip", "install", "--quiet", "--constraint", constraints, str(wheel))
    return python


@pytest.fixture
def empty(tmp_path):
    """A folder without the source tree, and an environment without a home."""
    keep = ("PATH", "LANG")
    environment = {name: os.environ[name] for name in keep if name in os.environ}
    return {"cwd": tmp_path, "env": {**environment, "HOME": str(tmp_path)}}


@pytest.mark.slow
class TestTheWheel:
    def test_has_no_torch_and_analyses_graphs(self, python, empty):
        (empty["cwd"] / "edges.txt").write_text("1 2\n2 3\n4 5\n")
        talka = python.with_name("talka")
        answer = run(talka, "graph", "components", "edges.txt", "--format", "csv", **empty)
        assert len(answer.splitlines()) == 6
        code = "import talka.graph, importlib.util as u; print(u.find_spec('torch'))"
        assert run(python, "-c", code, **empty) == "None\n"

    def test_writes_pages_with_the_script_inside(self, python, empty):
        (empty["cwd"] / "edges.txt").write_text("1 2\n2 3\n")
        run(python.with_name("talka"), "graph", "bfs", "edges.txt", "--source", "1", **empty)
        [run_dir] = (empty["cwd"] / "runs").iterdir()
        run(python.with_name("talka"), "report", str(run_dir), **empty)
        assert "* plotly.js (basic" in (run_dir / "report.html").read_text()

    def test_explains_what_needs_torch(self, python, empty):
        command = [python.with_name("talka"), "explain", "train", "--parameters", "1M"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **empty)
        assert done.returncode == 1
        assert "needs torch" in done.stderr
        assert "Traceback" not in done.stderr

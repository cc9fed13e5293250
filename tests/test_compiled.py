import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import caching

from talka.compiled import compiled, compiled_with, inlined

SOURCES = Path(__file__).parents[1] / "src" / "talka"


@pytest.mark.parametrize("way", [compiled, inlined, lambda kernel: compiled_with(kernel)])
def test_kernels_compile_without_a_folder_for_the_cache(way, monkeypatch):
    monkeypatch.setattr(caching.FunctionCache._impl_class, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="no locator available"):
        caching.FunctionCache(lambda x: x)

    @way
    def twice(x):
        return 2 * x

    assert twice(21) == 42


def test_all_kernels_are_compiled_in_this_one_way():
    callers = {path for path in SOURCES.rglob("*.py") if "njit" in path.read_text()}
    # The text of generated modules is part of the identity of checkpoints, so it stays as it is.
    generated = SOURCES / "graph" / "programs" / "kernel_texts.py"
    assert callers == {SOURCES / "compiled.py", generated}


def test_a_kernel_is_compiled_again_if_a_class_among_its_arguments_was_renamed(tmp_path):
    kernel = (
        "from talka.compiled import compiled\n\n@compiled\ndef first(pair):\n    return pair[0]\n"
    )
    (tmp_path / "kernels.py").write_text(kernel)
    for name in ("Old", "Renamed"):
        pair = (
            f"from typing import NamedTuple\n\nclass {name}(NamedTuple):\n    x: int\n    y: int\n"
        )
        (tmp_path / "pairs.py").write_text(pair)
        script = f"import kernels, pairs; print(kernels.first(pairs.{name}(7, 8)))"
        command = [sys.executable, "-B", "-c", script]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.stdout, done.returncode) == ("7\n", 0), done.stderr
    assert list(tmp_path.rglob("*.nbi"))

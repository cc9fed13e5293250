"""How the end of a script becomes the end of its rank, and the environment of ranks."""

import sys

import pytest

from talka.engine.gangs.spec import RankFailed
from talka.train.scripts.rank import ScriptRun, _run_as_main, rank_environment


def run(tmp_path, source):
    script = tmp_path / "script.py"
    script.write_text(source)
    _run_as_main(ScriptRun(script=str(script), folder=str(tmp_path)))


@pytest.mark.parametrize("argument", ["", "0", "None"])
def test_exit_code_0_is_success(tmp_path, argument):
    run(tmp_path, f"import sys; sys.exit({argument})")


@pytest.mark.parametrize(
    "source, how, shown",
    [
        ("import sys; sys.exit(3)", "ended with exit code 3", ""),
        ("import sys; sys.exit('no data')", "ended with exit code 1", "no data\n"),
        ("raise SystemExit(True)", "ended with exit code 1", ""),
        ("1 / 0", "raised ZeroDivisionError: division by zero", "ZeroDivisionError"),
        ("raise ValueError('one\\ntwo')", "raised ValueError: one", "ValueError: one\ntwo\n"),
        ("raise RuntimeError", "raised RuntimeError", "RuntimeError\n"),
        ("raise KeyboardInterrupt", "raised KeyboardInterrupt", "KeyboardInterrupt\n"),
        ("raise ValueError('x' * 1000)", f"raised ValueError: {'x' * 288}...", "x" * 1000),
        ("f(", "raised SyntaxError: '(' was never closed (script.py, line 1)", "SyntaxError"),
        ("import sys; sys.excepthook = lambda *error: print(len(error))\n1 / 0",
         "raised ZeroDivisionError: division by zero", "3\n"),
    ],
)  # fmt: skip
def test_every_other_end_is_described(tmp_path, capsys, monkeypatch, source, how, shown):
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)  # torch adds one per process group
    with pytest.raises(RankFailed) as failed:
        run(tmp_path, source)
    assert failed.value.how == how
    printed = "".join(capsys.readouterr())
    assert shown in printed
    assert bool(shown) == bool(printed)
    assert "runpy" not in printed, "the traceback begins in the script"


def test_a_script_is_main_and_can_be_pickled(tmp_path):
    source = "import pickle\nclass Own: pass\nassert __name__ == '__main__'\npickle.dumps(Own())"
    run(tmp_path, source)


def test_ranks_are_counted_by_machine():
    addresses = ["a", "b", "a", "b", "c"]
    found = [rank_environment(rank, addresses) for rank in range(5)]
    assert [each["LOCAL_RANK"] for each in found] == ["0", "0", "1", "1", "0"]
    assert [each["LOCAL_WORLD_SIZE"] for each in found] == ["2", "2", "2", "2", "1"]
    assert [each["GROUP_RANK"] for each in found] == ["0", "1", "0", "1", "2"]
    assert {each["GROUP_WORLD_SIZE"] for each in found} == {"3"}
    assert [each["RANK"] for each in found] == list("01234")

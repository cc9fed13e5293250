"""The cache of compiled programs stays small, also while several processes use it."""

import os
import time

import pytest

from talka.graph.programs import compiler, kernel_cache

DAY_S = 86_400
TEXT = "answer = 42\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "__pycache__").mkdir()
    monkeypatch.setattr(kernel_cache, "folder", lambda: tmp_path)
    return tmp_path


def add(folder, name, *, used_s):
    """Add the files of a program that was last used at this time."""
    files = [folder / f"edge_program_{name}.py"]
    files += [
        folder / "__pycache__" / f"edge_program_{name}.begin-1.py311{end}"
        for end in (".nbi", ".1.nbc")
    ]
    for file in files:
        file.touch()
        os.utime(file, (used_s, used_s))
    return files[0]


def programs(folder):
    names = {path.name.partition(".")[0] for path in folder.rglob("edge_program_*")}
    return sorted(name.removeprefix("edge_program_") for name in names)


def test_programs_that_were_used_last_stay(folder):
    now_s = time.time()
    for age in range(5):
        add(folder, str(age), used_s=now_s - DAY_S * (1 + age))
    kernel_cache.mark_used(folder / "edge_program_4.py")
    kernel_cache.remove_unused(folder, max_programs=3)
    assert programs(folder) == ["0", "1", "4"]


def test_machine_code_without_its_program_goes_too(folder):
    add(folder, "old", used_s=time.time() - DAY_S).unlink()
    kernel_cache.remove_unused(folder, max_programs=0)
    assert programs(folder) == []


def test_no_program_of_the_last_hour_goes_and_nothing_of_others(folder):
    add(folder, "new", used_s=time.time() - 60)
    (folder / "notes.py").touch()
    kernel_cache.remove_unused(folder, max_programs=0)
    assert programs(folder) == ["new"]
    assert (folder / "notes.py").exists()


def test_to_be_used_does_not_change_the_time_that_numba_compares(folder):
    program = add(folder, "a", used_s=1000.0)
    kernel_cache.mark_used(program)
    assert program.stat().st_mtime == 1000.0
    assert program.stat().st_atime > 1000.0


def test_a_new_program_makes_room(folder, monkeypatch):
    old = add(folder, "old", used_s=time.time() - DAY_S)
    monkeypatch.setattr(kernel_cache.remove_unused, "__kwdefaults__", {"max_programs": 1})
    assert compiler._load.__wrapped__(TEXT).answer == 42
    assert not old.exists()
    assert len(programs(folder)) == 1


def test_a_program_that_another_process_removes_meanwhile_is_written_again(folder, monkeypatch):
    compiler._load.__wrapped__(TEXT)
    [program] = folder.glob("*.py")
    has_text, removed = compiler._has_text, []

    def remove_after_reading(path, text):
        result = has_text(path, text)
        if not removed:
            removed.append(path)
            path.unlink()
        return result

    monkeypatch.setattr(compiler, "_has_text", remove_after_reading)
    assert compiler._load.__wrapped__(TEXT).answer == 42
    assert removed == [program]
    assert program.exists()

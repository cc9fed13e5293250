"""Tests that are alone are; and they have their turn."""

import fcntl
import threading

from tests import turns


def is_held(path):
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_one_that_is_alone_waits_for_others_and_lets_no_other_begin(tmp_path, monkeypatch):
    for name in ("DOOR", "ROOM"):
        (tmp_path / name).touch()
        monkeypatch.setattr(turns, name, tmp_path / name)
    entered = threading.Event()

    def be_alone():
        with turns.turn(alone=True):
            entered.set()

    waiting = threading.Thread(target=be_alone)
    with turns.turn(alone=False):
        with turns.turn(alone=False):  # others share
            waiting.start()
            while not is_held(turns.DOOR):
                assert not entered.is_set()
        assert is_held(turns.DOOR)
        assert not entered.is_set()
    waiting.join()
    assert entered.is_set()
    assert not is_held(turns.ROOM)

"""Two test processes side by side, but for tests that are marked `alone`.

Every test holds a lock that others share; one that is alone holds it by itself. Whoever waits for it
holds the door meanwhile, so that no other test begins and it will have its turn.
"""

import contextlib
import fcntl
from pathlib import Path

DOOR, ROOM = Path(__file__).with_name("conftest.py"), Path(__file__)  # any two files will do


@contextlib.contextmanager
def turn(*, alone):
    with DOOR.open("rb") as door, ROOM.open("rb") as room:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(room, fcntl.LOCK_UN)  # a process that was forked may have both files

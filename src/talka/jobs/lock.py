"""One run at a time in the folder of an unfinished one."""

import fcntl
import os
from pathlib import Path

from talka.errors import OutputError

PLAN_NAME = "plan.json"
"""What was asked of the run; whoever works in the folder holds a lock on it."""


class PlanLock:
    """Keeps other processes out, until it is left or this process ends in whatever way."""

    def __init__(self) -> None:
        self._held: int | None = None

    @property
    def is_held(self) -> bool:
        return self._held is not None

    def take(self, folder: Path) -> None:
        """Hold the folder's plan, if there is one; an error if somebody else does."""
        self.leave()
        try:
            plan = os.open(folder / PLAN_NAME, os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            fcntl.flock(plan, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(plan)
            problem = "belongs to a run that still goes on"
            advice = "Wait for it, or choose another --out."
            raise OutputError(str(folder), problem, advice) from None
        except OSError:
            pass  # a file system without locks
        self._held = plan

    def leave(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None

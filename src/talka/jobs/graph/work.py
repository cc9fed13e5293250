"""FILE.unfinished: checkpoints of a run that has not ended, and what was asked of it.

    FILE.unfinished/plan.json                 only the same job may go on; locked while one does
                    superstep-N.checkpoint    what superstep N left

FILE itself appears whole when all is done; then this folder goes.
"""

import errno
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any, Final

from talka.errors import OutputError
from talka.files import unnamed_file, write_whole
from talka.jobs.lock import PLAN_NAME, PlanLock
from talka.jobs.output import writing

_OURS: Final = re.compile(r"plan\.json|\.?superstep-.*|\.plan\.json\..*")
_FREE: Final = {"engine", "checkpoint_every"}
"""What may differ between a run and the one that goes on with it."""


class Unfinished:
    """Opens FILE.unfinished for one job."""

    def __init__(self, out: Path, plan: dict[str, Any], *, resume: bool, force: bool) -> None:
        """Check that the output may be made; nothing is touched before `open`."""
        self.out, self.path = out, out.parent / f"{out.name}.unfinished"
        self._resume, self._force = resume, force
        self._plan = json.loads(json.dumps(plan))
        self._lock = PlanLock()
        with writing(self.out):
            self._check()

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is something to go on from."""
        return any(self.path.glob("superstep-*.checkpoint"))

    def open(self) -> None:
        """Make the folder, or take over that of the unfinished run; the caller closes it."""
        with writing(self.out):
            self._lock.take(self.path)
            if not self._resume:
                shutil.rmtree(self.path, ignore_errors=True)
                self.path.mkdir()
                write_whole(self.path / PLAN_NAME, json.dumps(self._plan, indent=2))
                self._lock.take(self.path)

    def check_still_free(self) -> None:
        """Somebody may have made the file while this ran."""
        if os.path.lexists(self.out) and not self._force:
            advice = "Move it away, then go on with --resume, or run again."
            raise OutputError(str(self.out), "appeared while this ran", advice)

    def close(self, *, is_done: bool) -> None:
        """Let others have the folder; one with nothing to go on from is not left behind."""
        if self._lock.is_held:
            if is_done or not self.has_checkpoint:
                shutil.rmtree(self.path, ignore_errors=True)
            self._lock.leave()

    def _check(self) -> None:
        if self.out.is_dir() or self.out.name in ("", ".."):
            raise OutputError(str(self.out), "is a folder", "Give the name of a file.")
        if os.path.lexists(self.out) and not self.out.is_file():
            raise OutputError(str(self.out), "is no ordinary file", "Choose another --out.")
        if os.path.lexists(self.out) and not self._force:
            advice = "Choose another --out, or replace it with --force."
            raise OutputError(str(self.out), "exists already", advice)
        folder = self.out.parent
        if not folder.is_dir():
            raise OutputError(str(self.out), "has no folder to be in", f"Make {folder} first.")
        os.close(unnamed_file(folder))  # now, not after an hour of supersteps
        if len(os.fsencode(self.path.name)) > os.pathconf(folder, "PC_NAME_MAX"):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        if self._resume:
            self._check_plan()
        elif os.path.lexists(self.path):
            self._check_replaceable()

    def _check_replaceable(self) -> None:
        if not self.path.is_dir() or not all(_OURS.fullmatch(x) for x in os.listdir(self.path)):
            problem = "holds other things than an unfinished run"
            raise OutputError(str(self.path), problem, "Choose another --out.")
        if self.has_checkpoint and not self._force:
            advice = "Go on with --resume, or start again with --force."
            raise OutputError(str(self.path), "holds an unfinished run", advice)

    def _check_plan(self) -> None:
        try:
            before = json.loads((self.path / PLAN_NAME).read_text())
        except (OSError, ValueError):
            before = None
        if not isinstance(before, dict) or not self.has_checkpoint:
            advice = "Start without --resume."
            raise OutputError(str(self.path), "holds no checkpoint to go on from", advice)
        now = self._plan
        different = [name for name in now if name not in _FREE and now[name] != before.get(name)]
        if different:
            named = ", ".join(f"{name.replace('_', '-')} {before.get(name)}" for name in different)
            advice = "Give the same ones, or start again with --force."
            raise OutputError(str(self.path), f"holds a run with other options ({named})", advice)

"""OUT.unfinished: the saved progress of a job next to its output, for resuming.

    OUT.unfinished/plan.json    kind of job and its options; marks the folder as written by talka
                   ...          progress saved by the job

The output appears when it is complete; then the folder is removed. A folder that contains anything
else is rejected, even with --force, and nothing in it is changed.
"""

import contextlib
import errno
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from talka.errors import OutputError
from talka.files import TEMPORARY_NAME, errors_about, is_at, lock_now, write_whole

_MAX_ATTEMPTS: Final = 100
PLAN_NAME: Final = "plan.json"
_FORMAT: Final = "talka-unfinished-1"
_FORMER_TEMPORARY: Final = re.compile(r"((?:.*/)?)\.([^/]+)\.[a-z0-9_]{8}")
"""Temporary names of the former version: `.losses.json.x1y2z3aa` would have become losses.json."""


def folder_beside(out: Path) -> Path:
    """Return the folder for the unfinished run whose output will be `out`."""
    return out.parent / f"{out.name}.unfinished"


def as_typed(option: str, value: Any) -> str:
    """Return an option and its value as they are typed on the command line.

    >>> (
    ...     as_typed("--undirected", True),
    ...     as_typed("--damping", None),
    ...     as_typed("--source", ["a", "b"]),
    ... )
    ('--undirected', 'without --damping', '--source a --source b')
    """
    if value is None or value is False or value == []:
        return f"without {option}"
    if value is True:
        return option
    values = value if isinstance(value, list) else [value]
    return " ".join(f"{option} {item}" for item in values)


class Unfinished:
    """The folder OUT.unfinished of one job; each kind of output has a subclass."""

    job: ClassVar[str]
    """Kind of job in plan.json; a job only resumes runs of the same kind."""
    saves: ClassVar[re.Pattern[str]]
    """Pattern of all paths the job writes below the folder, except plan.json; folders end in /."""
    former_keys: ClassVar[frozenset[str]]
    """Keys by which a plan of the former version, which had no format field, is recognised."""
    makes_parents: ClassVar[bool] = False
    """Whether missing parent folders of the output are created."""

    def __init__(self, out: Path, plan: dict[str, Any], *, resume: bool, force: bool) -> None:
        """Check that the output can be written. Nothing is changed before `open`."""
        self.out, self.path = out, folder_beside(out)
        self._plan = json.loads(json.dumps(plan, default=str))
        self._resume, self._force = resume, force
        self._lock: int | None = None
        self._is_open = False
        self._made: list[Path] = []
        with errors_about(out):
            self._check()

    @property
    def has_progress(self) -> bool:
        """Whether progress was saved that a resumed run does not have to repeat."""
        raise NotImplementedError

    def check_output(self) -> None:
        """Raise OutputError if the output must not be written; --force allows replacing it."""
        raise NotImplementedError

    def differences(self, before: dict[str, Any]) -> list[str]:
        """Return the options of the unfinished run that differ from this run, as typed."""
        raise NotImplementedError

    def open(self) -> None:
        """Create the folder, or take over that of an unfinished run. The caller must close it."""
        with errors_about(self.out):
            self._lock = self._locked_folder()
            self._check()  # again: another run may have changed it before the lock was taken
            self._is_open = True
            if not self._resume:
                self._clear()
                content = {"format": _FORMAT, "job": self.job, **self._plan}
                write_whole(self.path / PLAN_NAME, json.dumps(content, indent=2))

    def remove(self) -> None:
        """Remove the folder after the output is in place.

        The plan is removed last because it marks the folder as written by talka. Files that the job
        did not write are kept, and then the folder is kept, too.
        """
        with contextlib.suppress(OSError):
            self._clear(keep=PLAN_NAME)
            (self.path / PLAN_NAME).unlink(missing_ok=True)
            self.path.rmdir()

    def close(self) -> None:
        """Release the folder. Without progress, remove it and the parents created for it."""
        if self._lock is not None:
            if self._is_open and is_at(self.path, self._lock) and not self.has_progress:
                self.remove()
            elif not self._is_open:
                with contextlib.suppress(OSError):  # it is empty if this run has created it
                    self.path.rmdir()
            os.close(self._lock)
            self._lock, self._is_open = None, False
        for folder in self._made:
            with contextlib.suppress(OSError):  # it is no longer empty
                folder.rmdir()
        self._made = []

    def _locked_folder(self) -> int:
        """Create the folder if needed, lock it and return its descriptor.

        While this process holds the lock, no other run replaces the folder. If another run removes
        the folder between opening and locking, the lock is useless and the loop tries again.
        """
        for attempt in range(_MAX_ATTEMPTS):
            try:
                if self.makes_parents:
                    self._make_parents()
                with contextlib.suppress(FileExistsError):
                    self.path.mkdir()
                folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except FileNotFoundError:
                if attempt + 1 < _MAX_ATTEMPTS:
                    continue
                raise
            if not lock_now(folder):
                os.close(folder)
                problem = "belongs to a run that is still active"
                raise OutputError(str(self.path), problem, "Wait for it, or choose another --out.")
            if is_at(self.path, folder):
                return folder
            os.close(folder)
        problem = "is repeatedly created and removed by other runs"
        raise OutputError(str(self.path), problem, "Wait for them, or choose another --out.")

    def _make_parents(self) -> None:
        missing = [folder for folder in self.path.parents if not folder.exists()]
        self._made = missing or self._made
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def _check(self) -> None:
        self.check_output()
        if len(os.fsencode(self.path.name)) > os.pathconf(self._existing_parent(), "PC_NAME_MAX"):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        if os.path.lexists(self.path) and not self._has_only_own_files():
            problem = "contains files that are not part of an unfinished run"
            advice = "Choose another --out, or move it away."
            raise OutputError(str(self.path), problem, advice)
        if self._resume:
            self._check_plan()
        elif self.has_progress and not self._force:
            advice = "Continue it with --resume, or start again with --force."
            raise OutputError(str(self.path), "holds an unfinished run", advice)

    def _check_plan(self) -> None:
        before = self._saved_plan()
        if before is None:
            advice = "Start without --resume."
            raise OutputError(str(self.path), "does not hold an unfinished run", advice)
        if different := self.differences(before):
            problem = f"holds a run with other options ({', '.join(different)})"
            advice = "Use the same options, or start again with --force."
            raise OutputError(str(self.path), problem, advice)

    def _existing_parent(self) -> Path:
        return next(folder for folder in self.path.parents if folder.exists())

    def _has_only_own_files(self) -> bool:
        """Return whether this job, in this or the former version, wrote everything in the folder.

        True for an empty folder: a run that was killed before it wrote its plan, or after it
        removed everything, leaves one.
        """
        if self.path.is_symlink() or not self.path.is_dir():
            return False
        names = list(_paths_below(self.path))
        if not all(map(self._is_known, names)):
            return False
        return all(map(_is_temporary, names)) or self._saved_plan() is not None

    def _is_known(self, name: str) -> bool:
        """Return whether the job writes files or folders of this name."""
        final = _FORMER_TEMPORARY.sub(r"\1\2", name)
        return _is_temporary(name) or final == PLAN_NAME or bool(self.saves.fullmatch(final))

    def _saved_plan(self) -> dict[str, Any] | None:
        """Return the plan in the folder; None if there is none or another job wrote it."""
        try:
            plan = json.loads((self.path / PLAN_NAME).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(plan, dict):
            return None
        marks = (plan.pop("format", None), plan.pop("job", None))
        is_former = marks == (None, None) and self.former_keys <= set(plan)
        return plan if is_former or marks == (_FORMAT, self.job) else None

    def _clear(self, *, keep: str | None = None) -> None:
        """Remove everything that the job writes, the content of a folder before the folder."""
        for name in sorted(_paths_below(self.path), reverse=True):
            if name == keep or not self._is_known(name):
                continue
            if name.endswith("/"):
                with contextlib.suppress(OSError):  # it contains files that the job did not write
                    (self.path / name).rmdir()
            else:
                (self.path / name).unlink()


def _is_temporary(name: str) -> bool:
    return TEMPORARY_NAME.fullmatch(name.rpartition("/")[2]) is not None


def _paths_below(folder: Path, prefix: str = "") -> Iterator[str]:
    """Yield the paths of everything below a folder; paths of folders end in /."""
    for entry in os.scandir(folder):
        name = f"{prefix}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield f"{name}/"
            yield from _paths_below(Path(entry.path), f"{name}/")
        else:
            yield name

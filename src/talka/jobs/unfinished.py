"""OUT.unfinished: what a job has done so far, beside its output, so that it can be resumed.

    OUT.unfinished/plan.json    which job this is and its options; the mark that the folder is ours
                   ...          what the job saves on the way

The output appears whole when the job is done; then the folder is removed. A folder that holds
anything else is somebody else's: it is refused, with --force too, and nothing in it is touched.
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
    """The folder that holds an unfinished run whose output will be `out`."""
    return out.parent / f"{out.name}.unfinished"


def as_typed(option: str, value: Any) -> str:
    """An option and its value as a person types them.

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
    return " ".join(f"{option} {one}" for one in values)


class Unfinished:
    """One job's use of OUT.unfinished; a subclass per kind of output says what differs."""

    job: ClassVar[str]
    """The kind of job in plan.json: one job does not resume another one's run."""
    saves: ClassVar[re.Pattern[str]]
    """Paths below the folder, apart from plan.json, of all that the job writes; folders end in /."""
    former_keys: ClassVar[frozenset[str]]
    """Keys of a plan that the former version wrote, which had no format field."""
    makes_parents: ClassVar[bool] = False
    """Whether folders above the output are made if they are missing."""

    def __init__(self, out: Path, plan: dict[str, Any], *, resume: bool, force: bool) -> None:
        """Check that the output can be made. Nothing is changed before `open`."""
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
        """Whether something was saved that a resumed run need not do again."""
        raise NotImplementedError

    def check_output(self) -> None:
        """Raise OutputError unless the output may be written, as far as --force allows."""
        raise NotImplementedError

    def differences(self, before: dict[str, Any]) -> list[str]:
        """Options of the unfinished run that this one has otherwise, as a person reads them."""
        raise NotImplementedError

    def open(self) -> None:
        """Make the folder, or take over that of an unfinished run; the caller closes it."""
        with errors_about(self.out):
            self._lock = self._locked_folder()
            self._check()  # once more: until the lock was taken, another run may have been here
            self._is_open = True
            if not self._resume:
                self._clear()
                content = {"format": _FORMAT, "job": self.job, **self._plan}
                write_whole(self.path / PLAN_NAME, json.dumps(content, indent=2))

    def remove(self) -> None:
        """Remove the folder, once the output is in its place.

        The plan goes last: until then the folder is known as ours. What somebody else has put into
        the folder stays, and so does the folder.
        """
        with contextlib.suppress(OSError):
            self._clear(keep=PLAN_NAME)
            (self.path / PLAN_NAME).unlink(missing_ok=True)
            self.path.rmdir()

    def close(self) -> None:
        """Release the folder; one without progress is removed, and parents that were made for it."""
        if self._lock is not None:
            if self._is_open and is_at(self.path, self._lock) and not self.has_progress:
                self.remove()
            elif not self._is_open:
                with contextlib.suppress(OSError):  # empty, if this run has made it
                    self.path.rmdir()
            os.close(self._lock)
            self._lock, self._is_open = None, False
        for folder in self._made:
            with contextlib.suppress(OSError):  # something is in it by now
                folder.rmdir()
        self._made = []

    def _locked_folder(self) -> int:
        """Lock the folder itself: while this process has it, no other one replaces it.

        The loop is for a run that ends meanwhile: the folder that was opened is gone then, and its
        lock is worth nothing.
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
                problem = "belongs to a run that still goes on"
                raise OutputError(str(self.path), problem, "Wait for it, or choose another --out.")
            if is_at(self.path, folder):
                return folder
            os.close(folder)
        problem = "is made and removed by other runs all the time"
        raise OutputError(str(self.path), problem, "Wait for them, or choose another --out.")

    def _make_parents(self) -> None:
        missing = [folder for folder in self.path.parents if not folder.exists()]
        self._made = missing or self._made
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def _check(self) -> None:
        self.check_output()
        if len(os.fsencode(self.path.name)) > os.pathconf(self._existing_parent(), "PC_NAME_MAX"):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        if os.path.lexists(self.path) and not self._is_ours():
            problem = "holds other things than an unfinished run"
            advice = "Choose another --out, or move it away."
            raise OutputError(str(self.path), problem, advice)
        if self._resume:
            self._check_plan()
        elif self.has_progress and not self._force:
            advice = "Go on with --resume, or start again with --force."
            raise OutputError(str(self.path), "holds an unfinished run", advice)

    def _check_plan(self) -> None:
        before = self._saved_plan()
        if before is None:
            advice = "Start without --resume."
            raise OutputError(str(self.path), "holds no unfinished run", advice)
        if different := self.differences(before):
            problem = f"holds a run with other options ({', '.join(different)})"
            advice = "Give the same ones, or start again with --force."
            raise OutputError(str(self.path), problem, advice)

    def _existing_parent(self) -> Path:
        return next(folder for folder in self.path.parents if folder.exists())

    def _is_ours(self) -> bool:
        """Whether this job, in this version or the former one, wrote everything in the folder.

        A folder with nothing in it is as good as ours: a run that was killed before it wrote its
        plan leaves one, and so does one that was killed after it removed everything.
        """
        if self.path.is_symlink() or not self.path.is_dir():
            return False
        names = list(_paths_below(self.path))
        if not all(map(self._is_known, names)):
            return False
        return all(map(_is_temporary, names)) or self._saved_plan() is not None

    def _is_known(self, name: str) -> bool:
        """Whether this is the path of something that the job writes."""
        final = _FORMER_TEMPORARY.sub(r"\1\2", name)
        return _is_temporary(name) or final == PLAN_NAME or bool(self.saves.fullmatch(final))

    def _saved_plan(self) -> dict[str, Any] | None:
        """The plan in the folder; None unless this job wrote it."""
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
        """Remove all that the job writes, the content of a folder before the folder."""
        for name in sorted(_paths_below(self.path), reverse=True):
            if name == keep or not self._is_known(name):
                continue
            if name.endswith("/"):
                with contextlib.suppress(OSError):  # somebody has put something into it
                    (self.path / name).rmdir()
            else:
                (self.path / name).unlink()


def _is_temporary(name: str) -> bool:
    return TEMPORARY_NAME.fullmatch(name.rpartition("/")[2]) is not None


def _paths_below(folder: Path, prefix: str = "") -> Iterator[str]:
    """Everything below a folder, as paths; those of folders end in /."""
    for entry in os.scandir(folder):
        name = f"{prefix}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield f"{name}/"
            yield from _paths_below(Path(entry.path), f"{name}/")
        else:
            yield name

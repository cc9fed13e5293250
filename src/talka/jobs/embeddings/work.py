"""The folder of an unfinished run: what it has done so far, and how it becomes the output.

    DIR.unfinished/plan.json        what was asked: only the same job may go on; locked while one does
                   pairs/           vocabulary and pairs, when co-occurrence is done
                   epoch-N.model    the model after epoch N, and losses.json
                   output/          what DIR will be

DIR itself appears whole, by one rename, when all is done; then this folder goes.
"""

import contextlib
import errno
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from talka.errors import InvalidValueError, OutputError, SavedStateError
from talka.files import write_whole
from talka.jobs.embeddings.config import work_dir_of
from talka.jobs.embeddings.vector_files import ARROW_NAME, TEXT_NAME
from talka.jobs.lock import PLAN_NAME, PlanLock
from talka.jobs.output import writing

RESULT_NAME = "result.json"
_OUTPUT = {TEXT_NAME, ARROW_NAME, RESULT_NAME}
_OURS = re.compile(r"\..*|pairs|epoch-.*|losses\.json|output|replaced")
# What may differ between a run and the one that goes on with it.
_FREE = {"--epochs", "--threads", "--memory-bytes"}


class WorkFolder:
    """Opens DIR.unfinished for one job."""

    def __init__(self, out: Path, plan: dict[str, Any], *, resume: bool, force: bool) -> None:
        """Check that the output may be made; nothing is touched before `open`."""
        self.out = out.resolve() if out.name in ("", "..") else out
        self.path = work_dir_of(self.out)
        self._resume, self._force = resume, force
        self._plan = json.loads(json.dumps(plan, default=str))
        self._lock = PlanLock()
        self._made: list[Path] = []
        with writing(self.out):
            self._check()

    def open(self) -> None:
        """Make the folder, or take over that of the unfinished run; the caller closes it."""
        with writing(self.out):
            self._lock.take(self.path)
            if not self._resume:
                self._start()

    def close(self) -> None:
        """Let others have the folder; a run that has nothing to go on from leaves nothing behind."""
        if self._lock.is_held:
            if not self.has_pairs:
                shutil.rmtree(self.path, ignore_errors=True)
            self._lock.leave()
        for folder in self._made:
            with contextlib.suppress(OSError):  # there is something in it by now
                folder.rmdir()

    @property
    def pairs_dir(self) -> Path:
        return self.path / "pairs"

    @property
    def has_pairs(self) -> bool:
        """Whether there is something to go on from: without pairs all begins anew."""
        return (self.pairs_dir / "pairs.json").exists()

    @property
    def output_dir(self) -> Path:
        return self.path / "output"

    def new_output_dir(self) -> Path:
        """Empty: a run that was killed while it wrote leaves pieces of files there."""
        with writing(self.out):
            shutil.rmtree(self.output_dir, ignore_errors=True)
            self.output_dir.mkdir()
        return self.output_dir

    def losses(self) -> dict[str, list[float]]:
        """Of the epochs done so far."""
        path = self.path / "losses.json"
        try:
            saved = json.loads(path.read_text())
            return {"loss": list(saved["loss"]), "running_loss": list(saved["running_loss"])}
        except FileNotFoundError:
            return {"loss": [], "running_loss": []}
        except (ValueError, LookupError, TypeError) as error:
            raise SavedStateError(str(path), f"is damaged ({error})") from error

    def model_path(self, epoch: int) -> Path:
        """The model after this many epochs."""
        return self.path / f"epoch-{epoch}.model"

    def epoch_done(self, losses: dict[str, list[float]]) -> None:
        """Make the epoch whose model was just saved the one to go on from."""
        epoch = len(losses["loss"])
        with writing(self.out):
            write_whole(self.path / "losses.json", json.dumps(losses))
            for old in self.path.glob("epoch-*.model*"):
                if not old.name.startswith(f"{self.model_path(epoch).name}"):
                    old.unlink()

    def finish(self, result: dict[str, Any]) -> None:
        """Put the output in its place, and remove what was needed on the way."""
        with writing(self.out):
            write_whole(self.output_dir / RESULT_NAME, json.dumps(result, indent=2))
            if os.path.lexists(self.out):
                if not self._force:
                    advice = "Move it away, then go on with --resume."
                    raise OutputError(str(self.out), "appeared while this ran", advice)
                self.out.rename(self.path / "replaced")
            self.output_dir.rename(self.out)
            (self.path / PLAN_NAME).unlink()  # killed from here on, it is no unfinished run
        shutil.rmtree(self.path, ignore_errors=True)

    def _start(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        for folder in self.path.parents:
            if folder.exists():
                break
            self._made.append(folder)
        self.path.mkdir(parents=True)
        write_whole(self.path / PLAN_NAME, json.dumps(self._plan, indent=2))
        self._lock.take(self.path)

    def _check(self) -> None:
        if os.path.lexists(self.out):
            self._check_replaceable()
        folder = next(folder for folder in self.path.parents if folder.exists())
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if self._resume:
            self._check_plan()
        elif os.path.lexists(self.path) and not self._force:
            self._check_unfinished()

    def _check_replaceable(self) -> None:
        if not self._force:
            advice = "Choose another --out, or replace it with --force."
            raise OutputError(str(self.out), "exists already", advice)
        if not self.out.is_dir():
            raise OutputError(str(self.out), "is a file", "Choose another --out.")
        others = sorted({entry.name for entry in os.scandir(self.out)} - _OUTPUT)
        if others:  # somebody's folder: --force must not cost them more than vectors
            problem = f"holds other things than word vectors ({others[0]})"
            raise OutputError(str(self.out), problem, "Choose another --out.")

    def _check_unfinished(self) -> None:
        """A run that is killed in its first or last moments leaves a folder without a plan."""
        names = [entry.name for entry in os.scandir(self.path)]
        if PLAN_NAME in names:
            advice = "Go on with --resume, or start again with --force."
            raise OutputError(str(self.path), "holds an unfinished run", advice)
        if not all(_OURS.fullmatch(name) for name in names):
            advice = "Choose another --out, or replace it with --force."
            raise OutputError(str(self.path), "holds other things than an unfinished run", advice)

    def _check_plan(self) -> None:
        try:
            before = dict(_options(json.loads((self.path / PLAN_NAME).read_text())))
        except (OSError, ValueError, AttributeError):
            advice = "Start without --resume."
            raise OutputError(str(self.path), "holds no unfinished run", advice) from None
        now, epochs = dict(_options(self._plan)), self._plan["epochs"]
        free = _FREE | ({"--workers"} if now["--parallel"] == "threads" else set())
        different = [name for name in now if name not in free and now[name] != before.get(name)]
        if different:
            named = ", ".join(f"{name} {before.get(name)}" for name in different)
            problem = f"holds a run with other options ({named})"
            advice = "Give the same ones, or start again with --force."
            raise OutputError(str(self.path), problem, advice)
        num_done = len(self.losses()["loss"])
        if epochs < num_done:
            allowed = f"at least {num_done}, as many as the unfinished run has done"
            raise InvalidValueError("--epochs", epochs, allowed)


def _options(plan: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """A plan as what was typed.

    >>> list(_options({"dim": 8, "text": {"min_count": 5}}))
    [('--dim', 8), ('--min-count', 5)]
    """
    for name, value in plan.items():
        if isinstance(value, dict):
            yield from _options(value)
        elif name == "corpus":
            yield "CORPUS", " ".join(value)
        else:
            yield f"--{name.replace('_', '-')}", value

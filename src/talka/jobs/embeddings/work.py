"""The folder of an unfinished run: what it has done so far, and how it becomes the output.

    DIR.unfinished/plan.json        what was asked: only the same job may go on
                   pairs/           vocabulary and pairs, when co-occurrence is done
                   epoch-N.model    the model after epoch N, and losses.json
                   output/          what DIR will be

DIR itself appears whole, by one rename, when all is done; then this folder goes.
"""

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from talka.errors import OutputError
from talka.files import write_whole
from talka.jobs.embeddings.config import work_dir_of

# What may differ between a run and the one that goes on with it.
_FREE = ("epochs", "threads", "memory_bytes", "workers")


class WorkFolder:
    """Opens DIR.unfinished for one job."""

    def __init__(self, out: Path, plan: dict[str, Any], *, resume: bool, force: bool) -> None:
        """Check that the output may be made; nothing is touched before `open`."""
        self.out, self.path = out, work_dir_of(out)
        self._resume, self._force = resume, force
        fixed = {name: value for name, value in plan.items() if name not in _FREE}
        self._plan = json.loads(json.dumps(fixed, default=str))
        self._check()

    def open(self) -> None:
        """Make the folder, or take over that of the unfinished run."""
        if self._resume:
            return
        try:
            shutil.rmtree(self.path, ignore_errors=True)
            self.path.mkdir(parents=True)
            write_whole(self.path / "plan.json", json.dumps(self._plan, indent=2))
        except OSError as error:
            problem = f"cannot be written ({error.strerror or error})"
            raise OutputError(str(self.out), problem, "Choose another --out.") from error

    @property
    def pairs_dir(self) -> Path:
        return self.path / "pairs"

    @property
    def output_dir(self) -> Path:
        return self.path / "output"

    def losses(self) -> dict[str, list[float]]:
        """Of the epochs done so far."""
        try:
            losses: dict[str, list[float]] = json.loads((self.path / "losses.json").read_text())
        except FileNotFoundError:
            return {"loss": [], "running_loss": []}
        return losses

    def model_path(self, epoch: int) -> Path:
        """The model after this many epochs."""
        return self.path / f"epoch-{epoch}.model"

    def epoch_done(self, losses: dict[str, list[float]]) -> None:
        """Make the epoch whose model was just saved the one to go on from."""
        epoch = len(losses["loss"])
        write_whole(self.path / "losses.json", json.dumps(losses))
        for old in self.path.glob("epoch-*.model*"):
            if not old.name.startswith(f"{self.model_path(epoch).name}"):
                old.unlink()

    def finish(self) -> None:
        """Put the output in its place, and remove what was needed on the way."""
        if self.out.exists():
            self.out.rename(self.path / "replaced")
        self.output_dir.rename(self.out)
        shutil.rmtree(self.path, ignore_errors=True)

    def abandon_if_empty(self) -> None:
        """A run that failed before it had anything leaves nothing behind."""
        with contextlib.suppress(OSError):
            if {entry.name for entry in os.scandir(self.path)} <= {"plan.json"}:
                shutil.rmtree(self.path)

    def _check(self) -> None:
        if self.out.exists() and not self._force:
            advice = "Choose another --out, or replace it with --force."
            raise OutputError(str(self.out), "exists already", advice)
        if self.out.exists() and not self.out.is_dir():
            raise OutputError(str(self.out), "is a file", "Choose another --out.")
        if self._resume:
            self._check_plan()
        elif self.path.exists() and not self._force:
            advice = "Go on with --resume, or start again with --force."
            raise OutputError(str(self.path), "holds an unfinished run", advice)

    def _check_plan(self) -> None:
        try:
            found = json.loads((self.path / "plan.json").read_text())
        except (OSError, ValueError):
            advice = "Start without --resume."
            raise OutputError(str(self.path), "holds no unfinished run", advice) from None
        different = [name for name in self._plan if found.get(name) != self._plan[name]]
        if different:
            problem = f"holds a run with other options ({', '.join(different)})"
            advice = "Give the same ones, or start again with --force."
            raise OutputError(str(self.path), problem, advice)

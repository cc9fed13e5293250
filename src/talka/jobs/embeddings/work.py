"""DIR.unfinished of an embeddings job: its progress, and how it becomes the output.

DIR.unfinished/pairs/           vocabulary and pairs, after co-occurrence counting
               epoch-N.model    the model after epoch N (.rank-R: the slice of rank R)
               losses.json      losses of the completed epochs
               output/          becomes DIR by one rename when it is complete
               replaced/        the former DIR, with --force
"""

import errno
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from talka.errors import InvalidValueError, OutputError, SavedStateError
from talka.files import errors_about, write_whole
from talka.jobs.embeddings.vector_files import ARROW_NAME, TEXT_NAME
from talka.jobs.unfinished import Unfinished, as_typed

RESULT_NAME = "result.json"
_OUTPUT = {TEXT_NAME, ARROW_NAME, RESULT_NAME}
# Options that may differ between a run and the one that resumes it.
_CHANGEABLE = {"--epochs", "--threads", "--memory-bytes"}


class WorkFolder(Unfinished):
    """`Unfinished` for a job whose output is a folder."""

    job: ClassVar = "embed"
    saves: ClassVar = re.compile(
        r"losses\.json|epoch-\d+\.model(\.rank-\d+)?"
        r"|pairs/(vocabulary\.arrow|pairs\.bin|pairs\.json)?"
        r"|(output|replaced)/(vectors\.txt|vectors\.arrow|result\.json)?"
    )
    former_keys: ClassVar = frozenset({"text", "dim"})
    makes_parents: ClassVar = True

    def __init__(self, out: Path, plan: dict[str, Any], *, resume: bool, force: bool) -> None:
        named = out.resolve() if out.name in ("", "..") else out
        super().__init__(named, plan, resume=resume, force=force)

    @property
    def has_progress(self) -> bool:
        return self.has_pairs

    @property
    def pairs_dir(self) -> Path:
        return self.path / "pairs"

    @property
    def has_pairs(self) -> bool:
        """Whether counted pairs were saved; without them a run starts from the beginning."""
        return (self.pairs_dir / "pairs.json").exists()

    @property
    def output_dir(self) -> Path:
        return self.path / "output"

    def new_output_dir(self) -> Path:
        """Create an empty output folder; a killed run may have left incomplete files in it."""
        with errors_about(self.out):
            shutil.rmtree(self.output_dir, ignore_errors=True)
            self.output_dir.mkdir()
        return self.output_dir

    def losses(self) -> dict[str, list[float]]:
        """Return the losses of the completed epochs."""
        path = self.path / "losses.json"
        try:
            saved = json.loads(path.read_text())
            return {"loss": list(saved["loss"]), "running_loss": list(saved["running_loss"])}
        except FileNotFoundError:
            return {"loss": [], "running_loss": []}
        except (ValueError, LookupError, TypeError) as error:
            raise SavedStateError(str(path), f"is damaged ({error})") from error

    def model_path(self, epoch: int) -> Path:
        """Return the path of the model after this many epochs."""
        return self.path / f"epoch-{epoch}.model"

    def epoch_done(self, losses: dict[str, list[float]]) -> None:
        """Record the epoch whose model was just saved as done, and remove older models."""
        epoch = len(losses["loss"])
        with errors_about(self.out):
            write_whole(self.path / "losses.json", json.dumps(losses))
            for old in self.path.glob("epoch-*.model*"):
                if not old.name.startswith(f"{self.model_path(epoch).name}"):
                    old.unlink()

    def finish(self, result: dict[str, Any]) -> None:
        """Move the output into place and remove the work folder."""
        with errors_about(self.out):
            write_whole(self.output_dir / RESULT_NAME, json.dumps(result, indent=2))
            if os.path.lexists(self.out):
                if not self._force:
                    advice = "Move it away, then continue with --resume."
                    raise OutputError(str(self.out), "was created during the run", advice)
                self.check_output()  # again: other files may have been put there during the run
                shutil.rmtree(self.path / "replaced", ignore_errors=True)  # left by a killed run
                self.out.rename(self.path / "replaced")
            self.output_dir.rename(self.out)
        self.remove()

    def check_output(self) -> None:
        if os.path.lexists(self.out):
            self._check_replaceable()
        folder = self._existing_parent()
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def differences(self, before: dict[str, Any]) -> list[str]:
        former, now = dict(_options(before)), dict(_options(self._plan))
        unused = {"--workers"} if now["--parallel"] == "threads" else set()
        return [
            as_typed(name, former.get(name))
            for name, value in now.items()
            if name not in _CHANGEABLE | unused and value != former.get(name)
        ]

    def _check_plan(self) -> None:
        super()._check_plan()
        epochs, num_done = self._plan["epochs"], len(self.losses()["loss"])
        if epochs < num_done:
            allowed = f"at least {num_done}, the epochs that the unfinished run has completed"
            raise InvalidValueError("--epochs", epochs, allowed)

    def _check_replaceable(self) -> None:
        if not self.out.is_dir():
            advice = "Vectors are written into a folder: choose another --out, or move the file."
            raise OutputError(str(self.out), "is a file", advice)
        if not self._force:
            advice = "Choose another --out, or replace it with --force."
            raise OutputError(str(self.out), "exists already", advice)
        others = sorted({entry.name for entry in os.scandir(self.out)} - _OUTPUT)
        if others:  # --force must not delete anything but vectors
            problem = f"contains files that are not word vectors ({others[0]})"
            raise OutputError(str(self.out), problem, "Choose another --out.")


def _options(plan: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the options of a plan by their names on the command line, with their values.

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

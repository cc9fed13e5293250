"""FILE.unfinished of a graph job: checkpoints of supersteps.

FILE.unfinished/superstep-N.checkpoint    complete state after superstep N
"""

import os
import re
from typing import Any, ClassVar, Final

from talka.errors import OutputError
from talka.files import unnamed_file
from talka.jobs.unfinished import Unfinished, as_typed

_CHANGEABLE: Final = {"engine", "checkpoint_every"}
"""Options that may differ between a run and the one that resumes it."""
_TYPED: Final = {"algorithm": "ALGORITHM", "edges": "EDGES", "file_format": "--input-format"}
"""Names on the command line that differ from those in the plan."""


class CheckpointFolder(Unfinished):
    """`Unfinished` for a job whose output is one file."""

    job: ClassVar = "graph"
    saves: ClassVar = re.compile(r"superstep-\d+\.checkpoint")
    former_keys: ClassVar = frozenset({"algorithm", "partitions"})

    @property
    def has_progress(self) -> bool:
        return any(self.path.glob("superstep-*.checkpoint"))

    def check_output(self) -> None:
        if self.out.is_dir() or self.out.name in ("", ".."):
            raise OutputError(str(self.out), "is a folder", "Give the name of a file.")
        if os.path.lexists(self.out) and not self.out.is_file():
            raise OutputError(str(self.out), "is not a regular file", "Choose another --out.")
        if os.path.lexists(self.out) and not self._force:
            advice = "Choose another --out, or replace it with --force."
            raise OutputError(str(self.out), "exists already", advice)
        folder = self.out.parent
        if not folder.is_dir():
            advice = f"Create {folder} first."
            raise OutputError(str(self.out), "is in a folder that does not exist", advice)
        os.close(unnamed_file(folder))  # fail now, not after an hour of supersteps

    def differences(self, before: dict[str, Any]) -> list[str]:
        return [
            as_typed(_TYPED.get(name, f"--{name.replace('_', '-')}"), before.get(name))
            for name, value in self._plan.items()
            if name not in _CHANGEABLE and value != before.get(name)
        ]

    def check_still_free(self) -> None:
        """Raise OutputError if the file was created by another process during the run."""
        if os.path.lexists(self.out) and not self._force:
            advice = "Move it away, then continue with --resume, or run again."
            raise OutputError(str(self.out), "was created during the run", advice)

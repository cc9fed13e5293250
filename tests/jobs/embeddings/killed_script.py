"""Kill the job before each of its changes to the file system in turn, and resume it each time.

python -m tests.jobs.embeddings.killed_script TEXT FOLDER new|replace

Prints one JSON object: the number of changes, and the observations after each kill. Every run is
a forked process, so that numba and pyarrow are loaded once.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

from talka.errors import OutputError
from talka.events import Stream
from talka.jobs.embeddings.plan import EmbedPlan
from talka.jobs.unfinished import folder_beside
from tests.jobs.embeddings.small_text import config_of, files_in

CHANGES = {"os.mkdir", "os.link", "os.rename", "os.remove", "os.rmdir", "os.chmod"}


class Killer:
    """Counter of changes below a folder; it kills the process before change `kill_at`."""

    def __init__(self, folder):
        self.folder, self.num_changes, self.kill_at = str(folder), 0, None
        sys.addaudithook(self.count)

    def count(self, event, args):
        if event not in CHANGES and not (event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        place = args[1] if event == "os.link" else args[0]
        if not isinstance(place, str | os.PathLike):
            return  # a descriptor
        if event in ("os.remove", "os.rmdir") or str(place).startswith(self.folder):
            if self.num_changes == self.kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            self.num_changes += 1


def in_a_process(run):
    """Call `run` in a fork; return its exit code, or the negative signal."""
    child = os.fork()
    if not child:
        code = 1
        try:
            run()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(text, folder, mode):
    folder = Path(folder)
    out, config = folder / "vectors", config_of(text, epochs=2)
    old = {"vectors.txt": b"old"}
    force = mode == "replace"

    def prepare():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if force:
            out.mkdir()
            for name, content in old.items():
                (out / name).write_bytes(content)

    def run(*, resume=False):
        EmbedPlan(config, out, resume=resume, force=force).run(Stream())

    def kept(files):
        result = json.loads(files.pop("result.json"))
        return {**files, "losses": [result["loss"], result["running_loss"], result["num_pairs"]]}

    killer = Killer(folder)
    prepare()
    killer.num_changes = 0
    run()
    num_changes, expected = killer.num_changes, kept(files_in(out))
    observations = []
    for number in range(num_changes):
        prepare()
        killer.num_changes, killer.kill_at = 0, number
        status = in_a_process(run)
        killer.kill_at = None
        appeared = out.exists() and not (force and files_in(out) == old)
        before = "whole" if appeared and kept(files_in(out)) == expected else str(appeared)
        resumable = (folder_beside(out) / "plan.json").exists()
        if not appeared:
            again = in_a_process(lambda resume=resumable: run(resume=resume))
        else:
            again = in_a_process(lambda: refused(lambda: EmbedPlan(config, out, resume=True)))
        same = kept(files_in(out)) == expected
        left = sorted(path.name for path in folder.iterdir())
        observations.append([number, status, before, resumable, again, same, left])
    print(json.dumps({"num_changes": num_changes, "observations": observations}))


def refused(make):
    try:
        make()
    except OutputError:
        return
    raise AssertionError("the output existed, but it would have been written again")


if __name__ == "__main__":
    main(*sys.argv[1:])

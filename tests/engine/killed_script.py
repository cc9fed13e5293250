"""A job that never ends by itself; kill_campaign.py kills it.

python -m tests.engine.killed_script tasks|gang FOLDER
"""

import ctypes
import re
import subprocess
import sys
from pathlib import Path

from talka.engine import Embedded


def hold(folder, number):
    """Start processes, leave a mark, then hold the interpreter's lock until the process is killed."""
    if number == 1:
        subprocess.Popen(["sleep", "1000"])
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
    Path(folder, str(number)).touch()
    if number == 0:
        ctypes.PyDLL(None).sleep(1000)
    re.match(r"(a+)+$", "a" * 60 + "b")


def rank(worker, folder):
    hold(folder, worker.rank)


def main(kind, folder):
    with Embedded(processes=2) as engine:
        if kind == "gang":
            engine.gang(rank, folder, size=2)
        else:
            engine.wait([engine.submit(hold, folder, i, python=True) for i in range(2)])


if __name__ == "__main__":
    main(*sys.argv[1:])

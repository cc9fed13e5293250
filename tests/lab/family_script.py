"""Rank 1 is a family of three processes, one of them in another session; rank 0 counts them.

Rank 0 prints `all there`, then, when none is left, `all gone`.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

SLEEP = [sys.executable, "-c", "import time; time.sleep(1000)"]


def family():
    count = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_one = b"RANK=1" in (folder / "environ").read_bytes().split(b"\0")
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        count += is_one and state != "Z"
    return count


def main():
    if os.environ["RANK"] == "1":
        subprocess.Popen(SLEEP)
        subprocess.Popen(SLEEP, start_new_session=True)
        time.sleep(1000)
    if os.environ["RANK"] != "0":
        return
    while family() < 3:
        time.sleep(0.005)
    print("all there", flush=True)
    while family() > 0:
        time.sleep(0.005)
    print("all gone", flush=True)


if __name__ == "__main__":
    main()

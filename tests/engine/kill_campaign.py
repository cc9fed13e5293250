"""Kill drivers with SIGKILL at random moments and count the processes that survive.

python -m tests.engine.kill_campaign --kills 50

Tasks and ranks are in calls that hold the interpreter's lock, and have started processes, one of them
in a new session. No process may be left 5 s after the death of the driver.
"""

import argparse
import collections
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.marked import marked

ROOT = Path(__file__).parents[2]
KINDS = ("tasks", "gang")
LIMIT_S = 5


def kill_one(kind, moment_s):
    """Kill a driver; return the seconds until all processes have ended, or None after the limit.

    moment_s
        Seconds after the tasks are busy; if negative, after the start of the driver.
    """
    with marked() as mark, tempfile.TemporaryDirectory() as folder:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.engine.killed_script", kind, folder],
            cwd=ROOT,
            env=mark.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        if moment_s >= 0:
            deadline = time.monotonic() + 120
            while len(list(Path(folder).iterdir())) < 2 and time.monotonic() < deadline:
                assert driver.poll() is None, "the driver ended by itself"
                time.sleep(0.01)
            assert time.monotonic() < deadline, "the tasks did not start"
        time.sleep(abs(moment_s))
        assert len(mark.processes()) >= 1
        driver.kill()
        driver.wait()
        killed = time.monotonic()
        while survivors := mark.processes():
            if time.monotonic() - killed > LIMIT_S:
                print("alive:", [(process.pid, process.cmdline()) for process in survivors])
                return None
            time.sleep(0.01)
        return time.monotonic() - killed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--kind", choices=KINDS, help="kind of job; by default both in turn")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    dice, seconds = random.Random(args.seed), collections.defaultdict(list)
    for number in range(args.kills):
        kind = args.kind or KINDS[number % 2]
        moment_s = dice.uniform(0, 0.3) if dice.random() < 0.6 else -dice.uniform(0.1, 4)
        seconds[kind].append(kill_one(kind, moment_s))
        print(f"{number + 1}: {kind}, {moment_s:.2f} s, all gone after {seconds[kind][-1]} s")
    for kind, found in seconds.items():
        gone = [each for each in found if each is not None]
        worst = f"{max(gone):.2f} s" if gone else "never"
        print(f"{kind}: {len(found)} kills, {len(found) - len(gone)} with survivors, worst {worst}")
    return any(each is None for found in seconds.values() for each in found)


if __name__ == "__main__":
    sys.exit(main())

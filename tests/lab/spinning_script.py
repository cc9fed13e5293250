"""Two processes, one in another session, compute for SECONDS: `python spinning_script.py SECONDS`.

Prints the cores that both used together.
"""

import os
import subprocess
import sys
import time


def spin(seconds):
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        pass


def main():
    seconds = float(sys.argv[1])
    if len(sys.argv) > 2:
        return spin(seconds)
    command = [sys.executable, __file__, str(seconds), "alone"]
    other = subprocess.Popen(command, start_new_session=True)
    start_s = time.monotonic()
    spin(seconds)
    other.wait()
    print(sum(os.times()[:4]) / (time.monotonic() - start_s))
    return None


if __name__ == "__main__":
    main()

"""A script that ends in several ways: `failing.py HOW RANK`. The other ranks wait until they are ended."""

import atexit
import os
import sys
import threading
import time


def fail(how):
    if how == "raise":
        raise ValueError("no such\nrow")
    if how == "die":
        os._exit(7)


def late():
    time.sleep(0.05)
    print("a thread")


def main():
    how, failing_rank = sys.argv[1], sys.argv[2]
    rank = os.environ["RANK"]
    print(f"rank {rank} has started", flush=True)
    if rank == failing_rank:
        fail(how)
    elif how != "end":
        threading.Event().wait()
    for line in range(20_000):
        print(f"line {line}")
    atexit.register(print, "at exit")
    threading.Thread(target=late).start()
    sys.exit(0)


if __name__ == "__main__":
    main()

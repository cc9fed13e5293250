"""A Ray of our own on this machine, that ends when the driver ends, however it ends.

`python -m talka.engine.ray_local CHANNEL DRIVER`: starts a head on a loopback address, tells the
driver where, waits for the driver to go, then kills every process that Ray started and removes its
folder. Ray's daemons leave their parent, so this process adopts orphans (a "subreaper").
"""

import contextlib
import ctypes
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from talka.engine import wire

# Ray takes 127.0.0.1 for "find out my outer address"; the rest of 127/8 it leaves alone.
HOST = "127.0.0.2"
_PR_SET_CHILD_SUBREAPER = 36
_START_TIMEOUT_S = 120


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    driver = os.pidfd_open(int(sys.argv[2]))
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    folder = tempfile.mkdtemp(prefix="talka-ray-")
    try:
        hello, _ = wire.receive(channel)
        answer = _start(folder, hello["num_cpus"], [channel.fileno(), driver])
        if answer is not None:
            wire.send(channel, answer)
            _wait([channel.fileno(), driver], None)
    except (EOFError, ConnectionError):
        pass  # the driver is gone already
    finally:
        _kill_descendants()
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: str, num_cpus: int, ends: list[int]) -> dict[str, str] | None:
    """Start a head; None when the driver went away meanwhile."""
    log = Path(folder) / "start.log"
    options = ["--head", "--port=0", f"--node-ip-address={HOST}", f"--num-cpus={num_cpus}"]
    options += [f"--temp-dir={folder}", "--include-dashboard=false", "--disable-usage-stats"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "ray.scripts.scripts", "start", *options],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    started = os.pidfd_open(process.pid)
    ready = _wait([*ends, started], _START_TIMEOUT_S)
    os.close(started)
    if ready & set(ends):
        return None
    text = log.read_text(errors="replace")
    address = re.search(r"ray start --address='([^']+)'", text)
    if not ready or process.wait() != 0 or address is None:
        return {"problem": text[-2000:].strip() or "it did not start in time"}
    return {"address": address[1]}


def _wait(descriptors: list[int], timeout_s: float | None) -> set[int]:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    ready = poll.poll(None if timeout_s is None else timeout_s * 1000)
    return {descriptor for descriptor, _ in ready}


def _kill_descendants() -> None:
    """Kill until none is left: a process that is being killed may just have started another."""
    deadline = time.monotonic() + 10
    while (pids := _descendants()) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = Path(entry.path, "stat").read_text()
                parent = int(stat.rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found, stack = [], [os.getpid()]
    while stack:
        below = children.get(stack.pop(), [])
        found += below
        stack += below
    return found


if __name__ == "__main__":
    main()

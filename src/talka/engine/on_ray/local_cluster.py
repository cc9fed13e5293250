"""A Ray of our own on this machine, that ends when the driver ends, however it ends.

`python -m talka.engine.on_ray.local_cluster CHANNEL DRIVER`: starts a head on a loopback address, tells the
driver where, waits for the driver to go, then kills every process that Ray started and removes its
folder. Ray's daemons leave their parent, so this process adopts orphans (a "subreaper").
"""

import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from talka.engine.local import wire
from talka.engine.local.lifeline import adopt_orphans, kill_descendants

# Ray takes 127.0.0.1 for "find out my outer address"; the rest of 127/8 it leaves alone.
HOST = "127.0.0.2"
_START_TIMEOUT_S = 120


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    driver = os.pidfd_open(int(sys.argv[2]))
    adopt_orphans()
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
        kill_descendants()
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: str, num_cpus: int, ends: list[int]) -> dict[str, str] | None:
    """Start a head; None when the driver went away meanwhile."""
    log = Path(folder) / "start.log"
    inner = Path(folder) / "ray"  # Ray opens its folder to everyone; ours around it stays private
    options = ["--head", "--port=0", f"--node-ip-address={HOST}", f"--num-cpus={num_cpus}"]
    options += [f"--temp-dir={inner}", "--include-dashboard=false", "--disable-usage-stats"]
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


if __name__ == "__main__":
    main()

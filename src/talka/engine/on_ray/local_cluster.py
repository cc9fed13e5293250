"""A Ray cluster on this machine that ends when the driver ends, for any reason.

`python -m talka.engine.on_ray.local_cluster CHANNEL DRIVER` starts a Ray head on a loopback address,
sends its address to the driver and waits until the driver ends. Then it kills all processes that Ray
started and removes their folder. Daemons of Ray detach from their parent, so this process adopts
orphans (it is a "subreaper").
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

# Ray replaces 127.0.0.1 by the outer address of the machine, but accepts the rest of 127/8.
HOST = "127.0.0.2"
_START_TIMEOUT_S = 120


def main() -> None:
    """Start a cluster, wait for the end of the driver, and clean up."""
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
        pass  # the driver has ended already
    finally:
        kill_descendants()
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: str, num_cpus: int, ends: list[int]) -> dict[str, str] | None:
    """Start a Ray head; return its address or the problem, or None if the driver ended meanwhile."""
    log = Path(folder) / "start.log"
    inner = Path(folder) / "ray"  # all users can read Ray's folder; the one around it is private
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
        return {"problem": text[-2000:].strip() or f"it did not start within {_START_TIMEOUT_S} s"}
    return {"address": address[1]}


def _wait(descriptors: list[int], timeout_s: float | None) -> set[int]:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    ready = poll.poll(None if timeout_s is None else timeout_s * 1000)
    return {descriptor for descriptor, _ in ready}


if __name__ == "__main__":
    main()

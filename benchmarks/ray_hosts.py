"""A Ray cluster on the hosts of a lab: the head and the driver on host 0, a machine on every other.

Every rank calls `on_hosts(drive)`. Rank 0 starts the head, waits until all have joined, and calls
`drive`. The others start a Ray machine and hold a connection to rank 0: when it is closed, or on
command, they kill Ray's processes on their host. The lab ends any process that is left.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

from talka.lab.links import INTERFACE, counted_bytes
from talka.lab.trees import signal_family

CORES = 2
_RAY_PORT, _READY_PORT = 6379, 6378
_STORE_BYTES = 400_000_000
_START_TIMEOUT_S = 60
_KILL, _COUNT, _ANSWER_BYTES = b"k", b"c", 8
# A lost machine is detected within a second.
_QUICK = '{"health_check_period_ms": 200, "health_check_timeout_ms": 1000}'


class Machines:
    """The other hosts, as seen by the driver."""

    def __init__(self, connections):
        self._connections = connections

    def kill(self, host):
        """Kill all of Ray's processes on a host."""
        self._ask(host, _KILL)

    def sent_bytes(self):
        """Return the bytes sent through the links of all hosts, including frame headers."""
        there = sum(self._ask(host, _COUNT) for host in self._connections)
        return own_sent_bytes() + there

    def _ask(self, host, what):
        self._connections[host].sendall(what)
        return int.from_bytes(self._connections[host].recv(_ANSWER_BYTES), "little")


def on_hosts(drive):
    """Call `drive(address, machines)` on host 0; on other hosts, run a Ray machine until then."""
    rank, num_hosts = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    head = os.environ["MASTER_ADDR"]
    if rank > 0:
        _be_a_machine(head, rank)
        return
    address = f"{head}:{_RAY_PORT}"
    with contextlib.ExitStack() as until_the_end:
        folder = until_the_end.enter_context(tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp"))
        listener = until_the_end.enter_context(socket.create_server((head, _READY_PORT)))
        options = ["--head", f"--port={_RAY_PORT}", f"--temp-dir={folder}"]
        options += ["--include-dashboard=false", f"--system-config={_QUICK}"]
        until_the_end.enter_context(_ray(head, options))
        connections = {}
        for _ in range(num_hosts - 1):
            connection = until_the_end.enter_context(listener.accept()[0])
            connections[connection.recv(1)[0]] = connection
        _join(address, num_hosts, until_the_end)
        drive(address, Machines(connections))


def _join(address, num_hosts, until_the_end):
    """Connect the driver, and wait until all machines have joined."""
    from talka.engine.on_ray import cluster as ray_cluster  # isort: skip  # before ray: it sets the path of the key

    import ray

    _connected(*address.split(":")).close()
    until_the_end.callback(ray_cluster.connect(address).close)
    deadline_s = time.monotonic() + _START_TIMEOUT_S
    while sum(machine["Alive"] for machine in ray.nodes()) < num_hosts:
        assert time.monotonic() < deadline_s, "a machine did not join"
        time.sleep(0.05)


def _be_a_machine(head, rank):
    own = socket.gethostbyname(socket.gethostname())
    with _ray(own, [f"--address={head}:{_RAY_PORT}"], waits_for=(head, _RAY_PORT)) as process:
        connection = _connected(head, _READY_PORT)
        connection.sendall(bytes([rank]))
        while asked := connection.recv(1):
            if asked == _KILL:
                signal_family(process.pid, signal.SIGKILL)
            connection.sendall(own_sent_bytes().to_bytes(_ANSWER_BYTES, "little"))


def own_sent_bytes():
    return counted_bytes()[INTERFACE]


@contextlib.contextmanager
def _ray(own, options, *, waits_for=None):
    """Run `ray start` in the foreground, so that all of Ray's processes are its children."""
    if waits_for is not None:
        _connected(*waits_for).close()
    common = [f"--node-ip-address={own}", f"--num-cpus={CORES}", "--disable-usage-stats"]
    common += [f"--object-store-memory={_STORE_BYTES}", "--block"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ray.scripts.scripts", "start", *options, *common],
        start_new_session=True,
    )
    try:
        yield process
    finally:
        signal_family(process.pid, signal.SIGKILL)
        process.wait()


def _connected(host, port):
    deadline = time.monotonic() + _START_TIMEOUT_S
    while True:
        try:
            connection = socket.create_connection((host, port), _START_TIMEOUT_S)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            connection.settimeout(None)
            return connection

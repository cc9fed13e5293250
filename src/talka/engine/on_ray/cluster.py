"""Connections to a Ray cluster, or to one that is started on this machine."""

import contextlib
import logging
import os
import secrets
import signal
import socket
import sys
import threading
from typing import Any

from talka.engine.local.processes import Child, WorkerDied
from talka.errors import ClusterError
from talka.machine import num_cores

# Ray listens beyond loopback with any address, so a cluster that is started here needs a key. Ray
# reads it once, at import. A cluster without keys ignores it.
if "ray" not in sys.modules and "RAY_AUTH_MODE" not in os.environ:
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
# The driver gets every failure in a receipt; Ray would print it once more.
os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")

import ray

logger = logging.getLogger(__name__)
_CONNECT_TIMEOUT_S = 5


class Cluster:
    """A connection to Ray, and the cluster itself if it was started here."""

    def __init__(self, local: Child | None, *, is_own_connection: bool) -> None:
        self._local = local
        self._is_own_connection = is_own_connection

    def close(self) -> None:
        """Disconnect, unless the process was connected before, and end a cluster started here."""
        if self._is_own_connection:
            ray.shutdown()
        if self._local is not None:
            _end(self._local)


def connect(address: str | None) -> Cluster:
    """Connect to the cluster at `address`; None starts one on this machine.

    Raises ClusterError if neither is possible.
    """
    if ray.is_initialized():
        return _use_existing(address)
    if address is not None:
        _init(address.removeprefix("ray://"))
        return Cluster(None, is_own_connection=True)
    child, started_at = _start_local()
    try:
        _init(started_at)
    except BaseException:  # also after Ctrl+C the processes must end
        _end(child)
        raise
    return Cluster(child, is_own_connection=True)


def _use_existing(address: str | None) -> Cluster:
    current = ray.get_runtime_context().gcs_address
    if address is not None and address.removeprefix("ray://") != current:
        problem = f"this process is connected to Ray at {current} already"
        raise ClusterError(address, problem, "Use that address, or call ray.shutdown() first.")
    return Cluster(None, is_own_connection=False)


def _init(address: str) -> None:
    _check_reachable(address)
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except RuntimeError as error:
        ray.shutdown()  # the connection is incomplete
        if "ersion mismatch" not in str(error):
            raise ClusterError(address, str(error), "Check that `ray status` works.") from error
        versions = " ".join(str(error).split())
        advice = "Install the same versions of Ray and Python on all machines."
        raise ClusterError(address, versions.rstrip("."), advice) from error
    except (ConnectionError, ValueError, OSError) as error:
        problem = str(error).partition("\n")[0].rstrip(".")
        advice = "Run this on a machine of the cluster; `ray status` there must work."
        raise ClusterError(address, problem, advice) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)  # Ray installs another handler
    _keep_raylets_off_standard_output()


def _check_reachable(address: str) -> None:
    """Raise ClusterError if no server listens at `address`. Ray itself would retry for a minute."""
    host, _, port = address.rpartition(":")
    advice = "Start a cluster with `ray start --head` and give HOST:PORT as it prints them."
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ClusterError(address, "this is not HOST:PORT", advice)
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise ClusterError(
            address, f"no server responds ({error.strerror or error})", advice
        ) from error


def _start_local() -> tuple[Child, str]:
    child = Child("talka.engine.on_ray.local_cluster", under=())  # it needs no keeper
    try:
        child.send({"num_cpus": num_cores()})
        answer, _ = child.receive()
    except WorkerDied as death:
        raise ClusterError(
            "this machine", f"it did not start ({death})", "Read its output above."
        ) from death
    except BaseException:  # Ctrl+C while it starts
        _end(child)
        raise
    if "problem" in answer:
        _end(child)
        problem = f"it did not start: {answer['problem']}"
        raise ClusterError("this machine", problem, "Check that `ray start --head` works.")
    return child, answer["address"]


def _end(child: Child) -> None:
    """Close the channel: the process then kills all that Ray started, and ends."""
    child.channel.shutdown(socket.SHUT_RDWR)
    child.wait()


def _keep_raylets_off_standard_output() -> None:
    """Log messages of raylets, which Ray would print to standard output, where results belong."""
    from ray._private import worker

    def to_log(data: dict[str, Any], ignore_prefix: bool) -> None:  # noqa: FBT001  # Ray's signature
        logger.info("%s", "\n".join(data.get("lines", ())))

    with contextlib.suppress(AttributeError):
        if callable(worker.print_to_stdstream):
            worker.print_to_stdstream = to_log

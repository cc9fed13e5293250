"""Gangs on this machine: as processes on loopback, or inside torchrun as one of its ranks."""

import dataclasses
import os
from pathlib import Path
from typing import Any

from talka.engine import parcels
from talka.engine.gangs.fork_server import ForkServers
from talka.engine.gangs.part import NUMPY, TORCH, MachinePart, PartSpec
from talka.engine.gangs.spec import GangSpec
from talka.machine import num_cores

LOOPBACK = "127.0.0.1"


def is_under_torchrun() -> bool:
    """Return whether torchrun, or a lab, started this process as a rank."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def local_part(spec: GangSpec, run_dir: Path | None, servers: ForkServers) -> MachinePart:
    """Return the ranks of a gang on this machine, which are not started yet.

    Raises NotShippableError if a function or its arguments cannot be sent to the ranks.
    """
    hellos = hellos_of(spec, LOOPBACK, is_local=True)
    for hello in hellos:
        hello["run_dir"] = None if run_dir is None else str(run_dir)
    logs = [
        None if run_dir is None else run_dir / "logs" / f"rank-{rank}.log"
        for rank in range(spec.size)
    ]
    part_spec = PartSpec(
        ranks=range(spec.size),
        hellos=hellos,
        shipped=spec.shipped(),
        log_paths=logs,
        environment=environment(max(1, num_cores() // spec.size), interface="lo"),
        preload=preload_of(spec.backend),
        result_form=parcels.value_of,
    )
    return MachinePart(part_spec, servers)


def hellos_of(spec: GangSpec, address: str, *, is_local: bool) -> list[dict[str, Any]]:
    """Return the first frame for each rank.

    Parameters
    ----------
    is_local
        True if all ranks run on the machine of the driver and write to its run directory.
    """
    return [
        {
            "rank": rank,
            "roles": list(spec.roles),
            "backend": spec.backend,
            "secret": spec.secret,
            "channels": dataclasses.asdict(spec.channels),
            "address": address,
            "is_local": is_local,
        }
        for rank in range(spec.size)
    ]


def preload_of(backend: str | None) -> tuple[str, ...]:
    """Return the modules that the fork server loads once for all ranks."""
    return NUMPY if backend is None else TORCH


def environment(num_threads: int, *, interface: str) -> dict[str, str]:
    """Return the environment of ranks.

    Parameters
    ----------
    num_threads
        Number of threads for numerical libraries; otherwise every rank uses all cores.
    interface
        Network interface on which gloo listens.
    """
    return {
        "OMP_NUM_THREADS": str(num_threads),
        **os.environ,
        "GLOO_SOCKET_IFNAME": interface,
        "PYTHONUNBUFFERED": "1",  # the end of a log must be complete when its rank dies
    }

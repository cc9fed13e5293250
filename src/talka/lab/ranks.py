"""The command and the environment of each rank."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence

from talka.errors import InvalidValueError
from talka.lab.base import LabConfig, address_of
from talka.lab.links import INTERFACE

FIRST_PORT, _NUM_PORTS = 29_500, 1_000


def rank_command(command: Sequence[str], config: LabConfig, rank: int) -> list[str]:
    """Return the command with `{rank}`, `{host}`, `{hosts}`, `{address}` and `{master}` filled in.

    >>> config = LabConfig(num_hosts=3, rate_bits_per_s=1e8)
    >>> rank_command(["serve", "--at={address}", "{rank}/{hosts}", "{other}"], config, 1)
    ['serve', '--at=10.0.0.2', '1/3', '{other}']
    """
    host = config.host_of(rank)
    words = {
        "rank": rank,
        "host": host,
        "hosts": config.num_hosts,
        "address": address_of(host),
        "master": address_of(0),
    }
    filled = []
    for part in command:
        for name, value in words.items():
            part = part.replace(f"{{{name}}}", str(value))
        filled.append(part)
    return filled


def rank_environment(
    config: LabConfig, rank: int, *, run: int, base: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment `base`, extended by what a torch.distributed script needs.

    Each run uses another port, so that connections of an earlier run in the kernel do not matter.
    """
    python_folder = os.path.dirname(sys.executable)
    return {
        "OMP_NUM_THREADS": "1",  # by default every rank would use all cores
        "PYTHONUNBUFFERED": "1",  # the log must be complete when its rank dies
        **base,
        "PATH": os.pathsep.join([python_folder, base.get("PATH", os.defpath)]),
        "RANK": str(rank),
        "WORLD_SIZE": str(config.num_ranks),
        "LOCAL_RANK": str(rank % config.ranks_per_host),
        "LOCAL_WORLD_SIZE": str(config.ranks_per_host),
        "GROUP_RANK": str(config.host_of(rank)),
        "MASTER_ADDR": address_of(0),
        "MASTER_PORT": str(FIRST_PORT + run % _NUM_PORTS),
        "GLOO_SOCKET_IFNAME": INTERFACE,
    }


def check_command(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Raise InvalidValueError if a command is empty or its program does not exist."""
    if not command:
        allowed = "a command and its arguments, such as `-- python train.py`"
        raise InvalidValueError("the command", "", allowed)
    if shutil.which(command[0], path=environment["PATH"]) is None:
        allowed = "a program on PATH, or the path of an executable file"
        raise InvalidValueError("the command", command[0], allowed)

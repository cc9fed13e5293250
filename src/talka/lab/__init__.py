"""Several hosts on one machine: network namespaces, each behind a link of its own rate.

    driver (lab.py) -- keeper.py: private namespaces -- hosts.py: their first process -- ranks
             `watch.py` decides                                `links.py`, `trees.py`

The whole lab lives in namespaces without names, below one process. When that process ends, and it
ends with its driver however the driver ends, the kernel ends every rank and removes every link.
"""

from talka.lab.base import (
    HostResult,
    Kill,
    LabConfig,
    LabResult,
    LabRunOptions,
    Pause,
    RankResult,
    Trouble,
)
from talka.lab.lab import Lab, run_lab

RunOptions = LabRunOptions  # its former name

__all__ = [
    "HostResult",
    "Kill",
    "Lab",
    "LabConfig",
    "LabResult",
    "LabRunOptions",
    "Pause",
    "RankResult",
    "RunOptions",
    "Trouble",
    "run_lab",
]

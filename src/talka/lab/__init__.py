"""Several hosts on one machine: network namespaces, each behind a link with a limited rate.

    driver (lab.py) -- keeper.py: private namespaces -- hosts.py: their first process -- ranks
             `watch.py` decides                                `links.py`, `trees.py`

The whole lab exists in unnamed namespaces below one process. That process ends when the driver ends,
for whatever reason; the kernel then kills every rank and removes every link.
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

"""Several hosts on one machine: network namespaces, each behind a link with a limited rate.

    driver (lab.py) -- keeper.py: private namespaces -- hosts.py: their first process -+- ranks
             `watch.py` decides     `quotas.py`            `links.py`, `trees.py`      +- relay.py

The whole lab exists in unnamed namespaces below one process. That process ends when the driver ends,
for whatever reason; the kernel then kills every rank and removes every link.
"""

from talka.lab.base import HostResult, LabConfig, LabResult, LabRunOptions, RankResult
from talka.lab.lab import Lab, run_lab
from talka.lab.troubles import Cut, Kill, Pause, PauseHost, Trouble

RunOptions = LabRunOptions  # its former name

__all__ = [
    "Cut",
    "HostResult",
    "Kill",
    "Lab",
    "LabConfig",
    "LabResult",
    "LabRunOptions",
    "Pause",
    "PauseHost",
    "RankResult",
    "RunOptions",
    "Trouble",
    "run_lab",
]

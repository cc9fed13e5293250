"""The view that one rank of a gang has of itself, in every kind of gang."""

from dataclasses import dataclass
from pathlib import Path

from talka.events import Stream


@dataclass(frozen=True)
class GangWorker:
    """One rank of a gang. Its process group is the default one of torch.distributed."""

    rank: int
    size: int
    events: Stream
    """Stream of this rank. Its events are written to `events.rank-R.jsonl` in the run directory of the
    driver, which the machine of the rank need not have."""
    log_path: Path | None
    """File with the output of this rank; None without a run directory and inside torchrun."""

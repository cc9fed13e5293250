"""The output of ranks on one machine of a Ray cluster, for the run directory of the driver.

log on this machine -> `LogSender` -> actor --take--> driver: logs/rank-R.log
"""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

LOG_BYTES: Final = 1 << 20
"""Bytes of output of a rank that the driver takes at a time."""


class LogSender:
    """Reads what ranks add to their logs, for the driver. Thread-safe."""

    def __init__(self, paths: Mapping[int, Path]) -> None:
        self._paths = paths
        self._offsets = dict.fromkeys(paths, 0)
        self._lock = threading.Lock()

    def take(self) -> list[tuple[int, dict[str, Any]]]:
        """Return what ranks have added since the last call, at most `LOG_BYTES` of each."""
        with self._lock:
            read = ((rank, self._read(rank)) for rank in self._paths)
            return [(rank, {"output": output}) for rank, output in read if output]

    def take_rest(self) -> list[tuple[int, dict[str, Any]]]:
        """Return what is left: of each rank the last `LOG_BYTES`, and a remark if that is not all."""
        remarks = []
        with self._lock:
            for rank, path in self._paths.items():
                left_bytes = path.stat().st_size - self._offsets[rank] - LOG_BYTES
                if left_bytes > 0:
                    remark = f"\n[{left_bytes} bytes of output are only in {path}]\n"
                    remarks.append((rank, {"output": remark.encode()}))
                    self._offsets[rank] += left_bytes
        return [*remarks, *self.take()]

    def _read(self, rank: int) -> bytes:
        with self._paths[rank].open("rb") as file:
            file.seek(self._offsets[rank])
            output = file.read(LOG_BYTES)
        self._offsets[rank] += len(output)
        return output

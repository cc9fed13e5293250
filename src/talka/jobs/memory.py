"""How much memory a job needed."""

import resource
from pathlib import Path


def peak_memory_bytes() -> int:
    """The most that this process, or the largest of those that it started, ever held.

    For this process not `ru_maxrss`, which also knows what its parent held when it started it.
    """
    status = Path("/proc/self/status").read_text()
    own = int(status.split("VmHWM:")[1].split()[0])
    return 1024 * max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)

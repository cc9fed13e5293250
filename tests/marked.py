"""Processes that belong to a test, found by a mark in their environment, whoever started them."""

import contextlib
import os
import uuid

import psutil

VARIABLE = "TALKA_TEST_MARK"


class Mark:
    def __init__(self):
        self.name = uuid.uuid4().hex
        self.environment = {**os.environ, VARIABLE: self.name}

    def processes(self):
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(VARIABLE) == self.name:
                    found.append(process)
        return found

    def survivors(self, timeout_s=60):
        """Those that have not ended by themselves in that time."""
        return psutil.wait_procs(self.processes(), timeout=timeout_s)[1]


@contextlib.contextmanager
def marked():
    """A test that fails leaves nothing running either: it would slow down all that come after."""
    mark = Mark()
    try:
        yield mark
    finally:
        for process in mark.processes():
            process.kill()

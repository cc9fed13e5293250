"""Ranks for tests: several mailboxes in one process, or one in each of several processes."""

import contextlib
import itertools
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from talka.channels import Group, Mailbox, MailboxOptions
from talka.channels.wire import connecting
from talka.errors import RendezvousTimeoutError

SECRET = b"s" * 32
PATIENCE_S = 20.0
"""After this, a test that hangs fails."""


class MemoryRendezvous:
    """Keys and values for threads of one process."""

    def __init__(self):
        self._values, self._changed = {}, threading.Condition()

    def set(self, key, value):
        with self._changed:
            self._values[key] = value
            self._changed.notify_all()

    def get(self, key, *, timeout_s=None):
        with self._changed:
            if not self._changed.wait_for(lambda: key in self._values, timeout_s):
                raise RendezvousTimeoutError(key, timeout_s)
            return self._values[key]


class FileRendezvous:
    """Keys and values for several processes: files in a folder."""

    def __init__(self, folder):
        self._folder = Path(folder)

    def set(self, key, value):
        path = self._path(key)
        path.with_suffix(f".{os.getpid()}").write_bytes(value)
        path.with_suffix(f".{os.getpid()}").rename(path)

    def get(self, key, *, timeout_s=None):
        end = time.monotonic() + (PATIENCE_S if timeout_s is None else timeout_s)
        while time.monotonic() < end:
            with contextlib.suppress(FileNotFoundError):
                return self._path(key).read_bytes()
            time.sleep(0.005)
        raise RendezvousTimeoutError(key, timeout_s)

    def _path(self, key):
        return self._folder / key.replace("/", "_")


def far_apart(monkeypatch):
    """Let every mailbox that is opened from now on seem to run on a machine of its own."""
    numbers = itertools.count()
    monkeypatch.setattr(connecting, "machine_id", lambda: f"{os.getpid()} {next(numbers)}")


@contextlib.contextmanager
def mailboxes(count, **options):
    """Open the mailboxes of all ranks; close them at the end, all at once."""
    rendezvous = MemoryRendezvous()
    boxes = [
        Mailbox(rank, count, rendezvous, SECRET, options=MailboxOptions(**options))
        for rank in range(count)
    ]
    try:
        yield boxes
    finally:
        run(lambda box: box.close(), boxes)


@contextlib.contextmanager
def groups(count, **options):
    """Open a group of all ranks on each rank."""
    with mailboxes(count, **options) as boxes:
        yield [Group(box) for box in boxes]


def run(call, ranks):
    """Call a function in a thread per rank; return what each returns, or raise its error."""
    outcomes = [None] * len(ranks)

    def one(index):
        try:
            outcomes[index] = (call(ranks[index]), None)
        except Exception as error:  # noqa: BLE001  # raised in the test's thread
            outcomes[index] = (None, error)

    threads = [
        threading.Thread(target=one, args=(index,), daemon=True) for index in range(len(ranks))
    ]
    for thread in threads:
        thread.start()
    end = time.monotonic() + PATIENCE_S
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    missing = [index for index, outcome in enumerate(outcomes) if outcome is None]
    errors = [outcome[1] for outcome in outcomes if outcome is not None and outcome[1] is not None]
    if errors:
        raise errors[0]
    assert not missing, f"ranks {missing} hang"
    return [value for value, _ in outcomes]


def outcome(call):
    """Return the error of a call, or None."""
    try:
        call()
    except Exception as error:  # noqa: BLE001  # the test looks at it
        return error
    return None


def soon(condition):
    """Wait until a condition holds."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it never happens"
        time.sleep(0.005)


PROCESS = """
import os, signal, sys, threading, time
import numpy as np
from talka.channels import Group, Mailbox, MailboxOptions
from talka.channels.wire import connecting
from tests.channels.ranks import FileRendezvous, SECRET
rank, size, folder, is_far, options = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:6]
if is_far == "far":
    connecting.machine_id = lambda: str(os.getpid())
meeting = FileRendezvous(folder)
box = Mailbox(rank, size, meeting, SECRET, options=MailboxOptions(**eval(options)))
group = Group(box)
"""


@contextlib.contextmanager
def processes(folder, size, scripts, *, far=False, options="{}"):
    """Start ranks as processes, each with a script; kill those that still run at the end."""
    children = {}
    try:
        for rank, script in scripts.items():
            children[rank] = subprocess.Popen(
                [
                    sys.executable,
                    "-W",
                    "error",
                    "-c",
                    PROCESS + script,
                    str(rank),
                    str(size),
                    str(folder),
                    "far" if far else "near",
                    options,
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        yield children
    finally:
        for child in children.values():
            if child.poll() is None:
                child.kill()
            child.communicate()

"""Unnamed Linux namespaces: they disappear with the last process that holds them.

Python 3.12 has unshare and setns in `os`; 3.11 needs ctypes.
"""

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWUSER = 0x00020000, 0x04000000, 0x10000000
_CLONE_NEWPID, _CLONE_NEWNET = 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND = 2, 4, 8, 4096
_MS_REC, _MS_PRIVATE, _MNT_DETACH = 16384, 1 << 18, 2
_PR_SET_PDEATHSIG = 1
_HOSTS_FILE = "/etc/hosts"
_libc = ctypes.CDLL(None, use_errno=True)


def enter_private_namespaces() -> None:
    """Move this process to new namespaces for network, mounts, host name and process ids.

    The process namespace applies to children only. This needs root, or a user namespace if the
    kernel allows them: inside, this process has user id 0; outside, it keeps its user id.
    """
    outside = os.stat("/proc/self/ns/net")
    private = _CLONE_NEWNET | _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWUTS
    user, group = os.geteuid(), os.getegid()
    try:
        _call("unshare", private)
    except PermissionError:
        _call("unshare", private | _CLONE_NEWUSER)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    if os.path.samestat(outside, os.stat("/proc/self/ns/net")):  # never touch the machine's links
        raise OSError("unshare did not create a network namespace")
    _mount("none", "/", flags=_MS_REC | _MS_PRIVATE)


def mount_own(hosts_file: str) -> None:
    """Mount a /proc with the processes of the lab, and a private /etc/hosts.

    Must be called by the first process of the namespaces. The file is created in a tmpfs that is
    mounted only for this purpose, so it is never on a disk.
    """
    if Path(_HOSTS_FILE).exists():
        _mount("tmpfs", "/proc", kind="tmpfs", flags=_MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
        Path("/proc/hosts").write_text(hosts_file)
        _mount("/proc/hosts", _HOSTS_FILE, flags=_MS_BIND)
        _call("umount2", b"/proc", _MNT_DETACH)
    _mount("proc", "/proc", kind="proc", flags=_MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def end_with_parent() -> None:
    """Make the kernel kill this process when the thread that forked it ends."""
    _call("prctl", _PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


class Host:
    """Network and host name namespaces of one host, held open by descriptors of this process."""

    def __init__(self, name: str) -> None:
        with _returning():
            _call("unshare", _CLONE_NEWNET | _CLONE_NEWUTS)
            _call("sethostname", name.encode(), len(name))
            self.network = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            self._name = os.open("/proc/self/ns/uts", os.O_RDONLY | os.O_CLOEXEC)

    def enter(self) -> None:
        """Move this process to the host."""
        _call("setns", self.network, _CLONE_NEWNET)
        _call("setns", self._name, _CLONE_NEWUTS)

    @contextlib.contextmanager
    def visit(self) -> Iterator[None]:
        """Move this process to the host for the duration of the `with` block."""
        with _returning():
            self.enter()
            yield


@contextlib.contextmanager
def _returning() -> Iterator[None]:
    """Return to the current namespaces at the end of the `with` block."""
    kinds = {"net": _CLONE_NEWNET, "uts": _CLONE_NEWUTS}
    homes = {kind: os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in kinds}
    try:
        yield
    finally:
        for kind, home in homes.items():
            _call("setns", home, kinds[kind])
            os.close(home)


def _mount(source: str, target: str, *, kind: str = "none", flags: int) -> None:
    try:
        _call("mount", source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), None)
    except OSError as error:
        raise OSError(error.errno, f"mount {source} on {target}: {error.strerror}") from None


def _call(function: str, *arguments: object) -> None:
    if getattr(_libc, function)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")

"""Hosts on one bridge, a veth pair each, both directions limited by a token bucket.

    host 0: eth0 [tbf] === [tbf] to-host0 --+-- lab (bridge) --+-- to-host1 [tbf] === [tbf] eth0: host 1
            what it sends  what it receives                       what it receives  what it sends

Here is what to say to `ip` and `tc`; `hosts.py` says it, inside the lab's namespaces.
"""

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from talka.errors import LabError
from talka.lab.base import address_of

INTERFACE = "eth0"
_BRIDGE = "lab"
_SUBNET = "10.0.0.0/24"
_PATH_OF_ROOT = "/usr/sbin:/sbin"  # where `tc` is, and where others than root often do not look
# What a bucket holds goes out at once: with more, small payloads would look faster than the link.
# Less than a few frames of 1514 bytes makes the rate sag when the machine is busy.
_BURST_S, _MIN_BURST_BYTES = 0.001, 4_000
# A queue like a switch's: short of it TCP loses packets and waits 200 ms for nothing.
_QUEUE_S, _MIN_QUEUE_BYTES = 0.1, 500_000


class Traffic(NamedTuple):
    """Bytes through a host's link, headers of every frame included."""

    sent_bytes: int
    received_bytes: int


def bridge_commands(networks: Sequence[int]) -> list[str]:
    """For `ip` in the lab's own namespace; `networks` are descriptors of the hosts' namespaces."""
    commands = [f"link add {_BRIDGE} type bridge mcast_snooping 0", f"link set {_BRIDGE} up"]
    for host, network in enumerate(networks):
        there = f"peer name {INTERFACE} netns /proc/self/fd/{network}"
        commands += [
            f"link add {_port(host)} type veth {there}",
            f"link set {_port(host)} master {_BRIDGE} up",
        ]
    return commands


def host_commands(host: int) -> list[str]:
    """For `ip` inside a host.

    The route asks for cubic: bbr, the default of some kernels, stalls now and then behind a tbf.
    """
    address = address_of(host)
    return [
        "link set lo up",
        f"link set {INTERFACE} addrgenmode none up",
        f"address add {address}/24 dev {INTERFACE} noprefixroute",
        f"route add {_SUBNET} dev {INTERFACE} src {address} congctl cubic",
    ]


def limit_command(verb: str, device: str, rate_bits_per_s: float) -> str:
    """For `tc`: `verb` is `add` for a new device, `change` for one that has a limit.

    >>> limit_command("add", "eth0", 1e8)
    'qdisc add dev eth0 root tbf rate 100000000bit burst 12500 limit 1250000'
    """
    bytes_per_s = rate_bits_per_s / 8
    burst = max(_MIN_BURST_BYTES, round(bytes_per_s * _BURST_S))
    queue = max(_MIN_QUEUE_BYTES, round(bytes_per_s * _QUEUE_S))
    bucket = f"rate {round(rate_bits_per_s)}bit burst {burst} limit {queue}"
    return f"qdisc {verb} dev {device} root tbf {bucket}"


def receiving_limits(verb: str, rates: Sequence[float]) -> list[str]:
    """For `tc` in the lab's own namespace."""
    return [limit_command(verb, _port(host), rate) for host, rate in enumerate(rates)]


def be_quiet() -> None:
    """No IPv6 on the bridge's devices, which would chat: idle links count no bytes."""
    with contextlib.suppress(FileNotFoundError):  # a kernel without IPv6
        Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")


def run_batch(program: str, commands: Sequence[str], *, descriptors: Sequence[int] = ()) -> None:
    """One process for many commands, in the namespace that the caller is in."""
    done = subprocess.run(
        [find_program(program), "-batch", "-"],
        input="\n".join(commands) + "\n",
        capture_output=True,
        text=True,
        pass_fds=descriptors,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise LabError(
            f"`{program}` failed: {said}", "This kernel may lack bridge, veth, tbf or cubic."
        )


def counted_bytes() -> dict[str, int]:
    """What the limits of all devices of this namespace let through.

    Not the interface's own counter: that takes a packet which the kernel cuts into frames later for
    one frame, and so misses headers, 4% of a fast link's bytes.
    """
    done = subprocess.run(
        [find_program("tc"), "-s", "-j", "qdisc", "show"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = json.loads(done.stdout)
    return {row["dev"]: row["bytes"] for row in rows if row["kind"] == "tbf"}


def received_bytes(counted: dict[str, int], host: int) -> int:
    return counted[_port(host)]


def find_program(name: str) -> str:
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), _PATH_OF_ROOT])
    found = shutil.which(name, path=path)
    if found is None:
        advice = "Install iproute2 (Debian, Ubuntu: `apt install iproute2`; Fedora: `iproute-tc`)."
        raise LabError(f"the program `{name}` is missing", advice)
    return found


def _port(host: int) -> str:
    """The bridge's end of a host's link."""
    return f"to-host{host}"

"""Commands that connect hosts to a bridge by veth pairs, both directions limited by token buckets.

    host 0: eth0 [tbf] === [tbf] to-host0 --+-- lab (bridge) --+-- to-host1 [tbf] === [tbf] eth0: host 1
            what it sends  what it receives                       what it receives  what it sends

The bridge knows which host is behind which port, and neither learns nor floods. With a latency, what
hosts send is redirected to the device `late`, where the relay holds it (`relay.py`), before the bridge
receives it. This module builds the commands for `ip`, `tc` and `bridge`; `hosts.py` runs them inside the
lab's namespaces.
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
RELAY_DEVICE = "late-relay"
_BRIDGE, _LATE = "lab", "late"
_SUBNET = "10.0.0.0/24"
_PATH_OF_ROOT = "/usr/sbin:/sbin"  # location of `tc`, often not on the PATH of other users
# A burst is sent at once: a larger one would make small payloads faster than the link. With less
# than a few frames of 1514 bytes the rate drops when the machine is busy.
_BURST_S, _MIN_BURST_BYTES = 0.001, 4_000
_BURST_MARGIN_BYTES = 200  # the kernel rounds a burst to its clock
# As long as a switch's queue: with a shorter one TCP loses packets and waits 200 ms to resend them.
_QUEUE_S, _MIN_QUEUE_BYTES = 0.1, 500_000


class Traffic(NamedTuple):
    """Bytes through a host's link, including the headers of every frame."""

    sent_bytes: int
    received_bytes: int


def bridge_commands(networks: Sequence[int]) -> list[str]:
    """Return commands for `ip` in the lab's namespace that create the bridge and all links.

    `networks` are descriptors of the hosts' network namespaces.
    """
    commands = [f"link add {_BRIDGE} type bridge mcast_snooping 0", f"link set {_BRIDGE} up"]
    for host, network in enumerate(networks):
        peer = f"peer name {INTERFACE} address {_hardware_address(host)}"
        commands += [
            f"link add {_port(host)} type veth {peer} netns /proc/self/fd/{network}",
            f"link set {_port(host)} up",
        ]
    return commands


def late_commands() -> list[str]:
    """Return commands for `ip` that create the device behind which the relay holds frames."""
    return [
        f"link add {_LATE} type veth peer name {RELAY_DEVICE}",
        f"link set {_LATE} master {_BRIDGE} up",
        f"link set {_LATE} type bridge_slave learning off flood off mcast_flood off bcast_flood off",
        f"link set {RELAY_DEVICE} up",
    ]


def connect(hosts: Sequence[int], *, is_late: bool) -> None:
    """Connect the links of hosts to the bridge."""
    ports = [_port(host) for host in hosts]
    joined = [
        command
        for port in ports
        for command in (
            f"link set {port} master {_BRIDGE}",
            f"link set {port} type bridge_slave learning off flood off",
        )
    ]
    run_batch("ip", joined)
    known = [
        f"fdb replace {_hardware_address(host)} dev {_port(host)} master static" for host in hosts
    ]
    run_batch("bridge", known)
    if is_late:
        redirect = f"protocol all u32 match u32 0 0 action mirred egress redirect dev {_LATE}"
        late = [
            command
            for port in ports
            for command in (
                f"qdisc add dev {port} ingress",
                f"filter add dev {port} ingress {redirect}",
            )
        ]
        run_batch("tc", late)


def cut(host: int, *, is_late: bool) -> None:
    """Take a link off the bridge: packets are dropped in both directions, and the link stays up."""
    run_batch("ip", [f"link set {_port(host)} nomaster"])
    if is_late:
        run_batch("tc", [f"qdisc del dev {_port(host)} ingress"])


def host_commands(host: int) -> list[str]:
    """Return commands for `ip` inside a host that configure its interface.

    The route selects cubic: bbr, the default of some kernels, stalls now and then behind a tbf.
    """
    address = address_of(host)
    return [
        "link set lo up",
        f"link set {INTERFACE} addrgenmode none up",
        f"address add {address}/24 dev {INTERFACE} noprefixroute",
        f"route add {_SUBNET} dev {INTERFACE} src {address} congctl cubic",
    ]


def limit_command(verb: str, device: str, rate_bits_per_s: float) -> str:
    """Return a command for `tc` that limits a device.

    `verb` is `add` for a new device, `change` for one that has a limit already.

    >>> limit_command("add", "eth0", 1e8)
    'qdisc add dev eth0 root tbf rate 100000000bit burst 12500 limit 1250000'
    """
    queue = max(_MIN_QUEUE_BYTES, round(rate_bits_per_s / 8 * _QUEUE_S))
    burst = _burst_bytes(rate_bits_per_s)
    bucket = f"rate {round(rate_bits_per_s)}bit burst {burst} limit {queue}"
    return f"qdisc {verb} dev {device} root tbf {bucket}"


def packet_command(rate_bits_per_s: float, max_bytes: int) -> str:
    """Return a command for `ip` inside a host that makes TCP send packets that fit into a burst.

    The token bucket passes such a packet in one piece, and so does the relay; it would cut a longer
    one into frames of 1514 bytes, which take the relay twice the processor time.

    >>> packet_command(1e8, 16_000)
    'link set eth0 gso_max_size 12300'
    """
    num_bytes = min(_burst_bytes(rate_bits_per_s) - _BURST_MARGIN_BYTES, max_bytes)
    return f"link set {INTERFACE} gso_max_size {num_bytes}"


def _burst_bytes(rate_bits_per_s: float) -> int:
    return max(_MIN_BURST_BYTES, round(rate_bits_per_s / 8 * _BURST_S))


def receiving_limits(verb: str, rates: Sequence[float]) -> list[str]:
    """Return commands for `tc` in the lab's namespace that limit what each host receives."""
    return [limit_command(verb, _port(host), rate) for host, rate in enumerate(rates)]


def disable_ipv6() -> None:
    """Disable IPv6 on the bridge's devices: its background traffic would count on idle links."""
    with contextlib.suppress(FileNotFoundError):  # a kernel without IPv6
        Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")


def run_batch(program: str, commands: Sequence[str], *, descriptors: Sequence[int] = ()) -> None:
    """Run many commands in one process, in the namespace of the caller."""
    done = subprocess.run(
        [find_program(program), "-batch", "-"],
        input="\n".join(commands) + "\n",
        capture_output=True,
        text=True,
        pass_fds=descriptors,
        check=False,
    )
    if done.returncode != 0:
        reason = done.stderr.strip() or f"exit code {done.returncode}"
        raise LabError(
            f"`{program}` failed: {reason}",
            "This kernel may lack bridge, veth, tbf, u32, mirred or cubic.",
        )


def counted_bytes() -> dict[str, int]:
    """Return the bytes that passed the token bucket of each device in this namespace.

    The interface's own counter counts a packet that the kernel cuts into frames later as one frame,
    and so misses headers, 4% of a fast link's bytes.
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
    """Return the bytes that a host received, from the counts at the bridge."""
    return counted[_port(host)]


def find_program(name: str) -> str:
    """Return the path of a program. Raise LabError if it is missing."""
    search_path = os.pathsep.join([os.environ.get("PATH", os.defpath), _PATH_OF_ROOT])
    path = shutil.which(name, path=search_path)
    if path is None:
        advice = "Install iproute2 (Debian, Ubuntu: `apt install iproute2`; Fedora: `iproute-tc`)."
        raise LabError(f"the program `{name}` is missing", advice)
    return path


def _port(host: int) -> str:
    """Return the name of the device at the bridge's end of a host's link."""
    return f"to-host{host}"


def _hardware_address(host: int) -> str:
    return f"02:00:0a:00:00:{host + 1:02x}"

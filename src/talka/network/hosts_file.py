"""The hosts file: a network as TOML, written by `talka probe --out` or by hand.

    [inner]                  # between workers of one host; may be left out
    rate = "20gbit"
    latency = "0.03ms"

    [shared_cores]           # only if all hosts share cores, as in a lab
    number = 2
    call = "0.1ms"           # processor time of a rank per collective; 0 by default

    [[hosts]]
    name = "first"
    address = "192.168.1.10" # may be left out
    workers = 2              # 1 by default
    cores = 8                # may be left out
    rate = "94.5mbit"
    rate_down = "400mbit"    # the same as rate by default
    latency = "0.12ms"       # 0.1ms by default
    burst = "125kB"          # passes at once after a pause; 0 by default
    overhead = "0.02ms"      # processor time per message at each end; 0 by default

The file may come from anywhere: its size is bounded, every value is checked, and an error names the line.
"""

import difflib
import json
import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from talka.errors import HostsFileError, InvalidValueError, output_error
from talka.files import write_whole
from talka.network.link import LOOPBACK, Link, Network, SharedCores
from talka.units import parse_bytes, parse_rate, parse_seconds

MAX_FILE_BYTES = 1_000_000
MAX_WORKERS = 1000
MAX_CORES = 100_000
MIN_RATE_BITS_PER_S, MAX_RATE_BITS_PER_S = 1.0, 1e15
MAX_LATENCY_S = 1e6
MAX_BURST_BYTES = 10**15
DEFAULT_LATENCY_S = 0.0001
_INNER_KEYS = ("rate", "rate_down", "latency", "burst", "overhead")
_HOST_KEYS = ("name", "address", "workers", "cores", *_INNER_KEYS)
_CORES_KEYS = ("number", "call")


@dataclass(frozen=True, slots=True)
class NetworkHost:
    """A machine, its link, and the workers on it."""

    name: str
    link: Link
    num_workers: int = 1
    num_cores: int | None = None
    """Number of cores; None if unknown."""
    address: str = ""
    """Host name or IP address under which others reach it; empty if unknown."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The content of a hosts file."""

    hosts: tuple[NetworkHost, ...]
    inner: Link = LOOPBACK
    """Link between two workers of the same host."""
    cores: SharedCores | None = None
    """Cores that all hosts share; None if each has its own."""

    @property
    def network(self) -> Network:
        """The network for the cost model."""
        counts = tuple(host.num_workers for host in self.hosts)
        return Network(tuple(host.link for host in self.hosts), counts, self.inner, self.cores)


def write_hosts(path: str | Path, hosts: Hosts) -> None:
    """Write a hosts file, completely or not at all."""
    lines = ["[inner]", *_link_lines(hosts.inner)]
    if hosts.cores is not None:
        lines += ["", "[shared_cores]", f"number = {hosts.cores.num_cores}"]
        lines.append(f'call = "{_latency_text(hosts.cores.call_s)}"')
    for host in hosts.hosts:
        lines += ["", "[[hosts]]", f"name = {json.dumps(host.name, ensure_ascii=False)}"]
        if host.address:
            lines.append(f"address = {json.dumps(host.address, ensure_ascii=False)}")
        lines.append(f"workers = {host.num_workers}")
        if host.num_cores is not None:
            lines.append(f"cores = {host.num_cores}")
        lines += _link_lines(host.link)
    text = "\n".join(lines) + "\n"
    _Reader(str(path), text).hosts()  # what could not be read is not written
    try:
        write_whole(Path(path), text)
    except OSError as error:
        raise output_error(path, error, "Give another path.") from error


def read_hosts(path: str | Path) -> Hosts:
    """Read a hosts file. Raise HostsFileError, with the line, for anything that is wrong in it."""
    advice = "`talka probe --out hosts.toml` writes one."
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        problem = f"cannot be read ({error.strerror or error})"
        raise HostsFileError(str(path), None, problem, advice) from error
    if len(content) > MAX_FILE_BYTES:
        problem = f"has more than {MAX_FILE_BYTES:,} bytes"
        raise HostsFileError(str(path), None, problem, advice)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise HostsFileError(str(path), line, "is not UTF-8 text", advice) from None
    return _Reader(str(path), text).hosts()


class _Reader:
    """Reads one text; errors name its path and the line of a key."""

    def __init__(self, path: str, text: str) -> None:
        self._path, self._text = path, text

    def hosts(self) -> Hosts:
        try:
            content = tomllib.loads(self._text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            found = re.search(r" \(at line (\d+), column \d+\)", str(error))
            reason = str(error).replace(found[0], "") if found else str(error)
            line = int(found[1]) if found else None
            raise self._error(line, f"is not TOML: {reason}", "Correct that line.") from None
        self._check_keys(content, ("inner", "shared_cores", "hosts"), None)
        tables = content.get("hosts")
        if not isinstance(tables, list) or not tables:
            raise self._error(None, "has no hosts", "Add a table [[hosts]] for each host.")
        inner = content.get("inner", {})
        link = self._link(inner, _INNER_KEYS, None, LOOPBACK) if inner != {} else LOOPBACK
        hosts = tuple(self._host(table, index) for index, table in enumerate(tables))
        total = sum(host.num_workers for host in hosts)
        if total > MAX_WORKERS:
            advice = f"At most {MAX_WORKERS:,} are allowed."
            raise self._error(None, f"has {total:,} workers on all hosts", advice)
        for index, host in enumerate(hosts):
            if host.name in [other.name for other in hosts[:index]]:
                problem = f"has two hosts with the name {host.name!r}"
                raise self._error(self._line("name", index), problem, "Give each its own name.")
        return Hosts(hosts, link, self._cores(content.get("shared_cores")))

    def _cores(self, table: Any) -> SharedCores | None:
        if table is None:
            return None
        if not isinstance(table, dict):
            raise self._error(None, "has shared_cores that are not a table", "Use [shared_cores].")
        self._check_keys(table, _CORES_KEYS, None)
        allowed = f"a number from 1 to {MAX_CORES:,}"
        number = self._value(table, "number", None, partial(_whole, most=MAX_CORES), allowed)
        return SharedCores(number, self._time(table, "call", None, 0.0))

    def _host(self, table: Any, index: int) -> NetworkHost:
        link = self._link(table, _HOST_KEYS, index, None)
        text = "text of 1 to 253 printable characters"
        numbers = {
            key: self._value(
                table, key, index, partial(_whole, most=most), f"a number from 1 to {most:,}"
            )
            for key, most in (("workers", MAX_WORKERS), ("cores", MAX_CORES))
            if key in table
        }
        address = self._value(table, "address", index, _name, text) if "address" in table else ""
        return NetworkHost(
            self._value(table, "name", index, _name, text),
            link,
            numbers.get("workers", 1),
            numbers.get("cores"),
            address,
        )

    def _link(
        self, table: Any, keys: tuple[str, ...], index: int | None, like: Link | None
    ) -> Link:
        """Read a link; keys that are left out are those of `like`, if there is one."""
        if not isinstance(table, dict):
            raise self._error(None, "has a host or [inner] that is not a table", "Use [[hosts]].")
        self._check_keys(table, keys, index)
        rates = {
            key: self._value(
                table, key, index, _rate, "a rate from 1bit to 1000tbit, as in 100mbit"
            )
            for key in ("rate", "rate_down")
            if key in table or (key == "rate" and like is None)
        }
        latency_s = DEFAULT_LATENCY_S if like is None else like.latency_s
        latency_s = self._time(table, "latency", index, latency_s)
        burst_bytes, allowed = 0.0, "a size such as 125kB, at most 1000TB"
        if "burst" in table:
            burst_bytes = self._value(table, "burst", index, _burst, allowed)
        overhead_s = self._time(table, "overhead", index, 0.0)
        rate = rates.get("rate") or (like.rate_bits_per_s if like else 0.0)
        rate_down: Any = rates.get("rate_down")
        return Link(latency_s, rate, rate_down, burst_bytes, overhead_s)

    def _time(self, table: dict[str, Any], key: str, index: int | None, default_s: float) -> float:
        if key not in table:
            return default_s
        allowed = "a time such as 0.1ms, at most 1e6s"
        seconds: float = self._value(table, key, index, _latency, allowed)
        return seconds

    def _value(
        self,
        table: dict[str, Any],
        key: str,
        index: int | None,
        check: Callable[[Any], Any],
        allowed: str,
    ) -> Any:
        if key not in table:
            problem = f"has a host without {key}"
            line = self._line(None, index)
            raise self._error(line, problem, f"Add {key}: {allowed}.")
        try:
            return check(table[key])
        except (ValueError, OverflowError, InvalidValueError):
            problem = f"has {key} = {table[key]!r:.80}, but it must be {allowed}"
            raise self._error(self._line(key, index), problem, "Correct that line.") from None

    def _check_keys(self, table: Iterable[str], keys: tuple[str, ...], index: int | None) -> None:
        for key in table:
            if key not in keys:
                near = difflib.get_close_matches(key, keys, n=1)
                advice = f"Did you mean {near[0]}?" if near else f"Known are {', '.join(keys)}."
                problem = f"has the unknown key {key[:80]!r}"
                raise self._error(self._line(key, index), problem, advice)

    def _line(self, key: str | None, index: int | None) -> int | None:
        """Return the line of a key of the host with an index, or of a key outside of hosts."""
        host = -1
        for number, line in enumerate(self._text.split("\n"), start=1):
            if re.match(r"\s*\[\[\s*hosts\s*\]\]", line):
                host += 1
                if key is None and host == index:
                    return number
            is_key = key is not None and re.match(rf"\s*\[*\s*[\"']?{re.escape(key)}\b", line)
            if is_key and (index is None or host == index):
                return number
        return None

    def _error(self, line: int | None, problem: str, advice: str) -> HostsFileError:
        return HostsFileError(self._path, line, problem, advice)


def _whole(value: Any, most: int) -> int:
    if type(value) is not int or not 1 <= value <= most:
        raise ValueError
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= 253 or not value.isprintable():
        raise ValueError
    return value


def _rate(value: Any) -> float:
    rate = parse_rate(_text(value))
    if not MIN_RATE_BITS_PER_S <= rate <= MAX_RATE_BITS_PER_S:
        raise ValueError
    return rate


def _burst(value: Any) -> float:
    num_bytes = parse_bytes(_text(value))
    if not 0 <= num_bytes <= MAX_BURST_BYTES:
        raise ValueError
    return float(num_bytes)


def _latency(value: Any) -> float:
    latency_s = parse_seconds(_text(value))
    if not latency_s <= MAX_LATENCY_S:
        raise ValueError
    return latency_s


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError  # caught above, with its line
    return value


def _link_lines(link: Link) -> list[str]:
    lines = [f'rate = "{_rate_text(link.rate_bits_per_s)}"']
    if link.rate_down_bits_per_s != link.rate_bits_per_s:
        lines.append(f'rate_down = "{_rate_text(link.rate_down_bits_per_s)}"')
    lines.append(f'latency = "{_latency_text(link.latency_s)}"')
    if link.burst_bytes:
        lines.append(f'burst = "{round(link.burst_bytes)}B"')
    if link.overhead_s:
        lines.append(f'overhead = "{_latency_text(link.overhead_s)}"')
    return lines


def _rate_text(bits_per_s: float) -> str:
    """Return the shortest text with a usual unit that is read as exactly this rate.

    >>> _rate_text(94.5e6), _rate_text(1e9), _rate_text(1234567.891)
    ('94.5mbit', '1gbit', '1234567.891bit')
    """
    for unit, size in (("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3)):
        text = f"{bits_per_s / size:.6g}{unit}"
        if bits_per_s >= size and parse_rate(text) == bits_per_s:
            return text
    return f"{bits_per_s!r}bit"


def _latency_text(latency_s: float) -> str:
    text = f"{1000 * latency_s:.6g}ms"
    return text if parse_seconds(text) == latency_s else f"{latency_s!r}s"

"""Run a command on several emulated hosts on this machine: each host is a network namespace whose
link is limited in both directions.

    talka lab --hosts 4 --rate 100mbit -- python train.py

The command is started once per rank with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK
(the host), MASTER_ADDR, MASTER_PORT and GLOO_SOCKET_IFNAME set, so torch.distributed scripts run
unchanged. OMP_NUM_THREADS defaults to 1, and PATH starts with the folder of the Python that runs
talka. In the command, {rank}, {host}, {hosts}, {address} (of the rank's host) and {master} (the
address of host 0) are replaced. Hosts can reach each other, by address or as host-0, host-1, ...,
and nothing else. The output of rank 0 is shown; the output of every rank is written to its log.

If a rank fails, the others are killed after 10 s; with --kill they may continue instead.
The lab needs `ip` and `tc`, and root or a kernel that allows user namespaces (ranks then see user
id 0). Nothing is left behind, however the lab ends.
"""

import argparse
import functools
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from talka.cli.numbers import Number, count, rate
from talka.cli.options import SHOWN, add_format
from talka.cli.parser import CommandParser
from talka.cli.tables import print_json, print_table
from talka.errors import InvalidValueError, OptionError
from talka.units import format_bytes, format_rate, format_seconds, parse_rate, parse_seconds

if TYPE_CHECKING:
    from talka.lab import Kill, LabConfig, LabResult, Pause, Trouble

_OPTION_OF = {
    "num_hosts": "--hosts",
    "rate_bits_per_s": "--rate",
    "rate_of": "--rate-of",
    "ranks_per_host": "--ranks-per-host",
    "kill": "--kill",
    "pause": "--pause",
}
_RATE_OF = re.compile(r"(\d+)=(.+)")
_KILL = re.compile(r"(\d+)@([^+@]+)")
_PAUSE = re.compile(r"(\d+)@([^+@]+)\+([^+@]+)")


def add_arguments(parser: CommandParser) -> None:
    parser.check_words = functools.partial(_check_separator, parser)
    add = parser.add_argument
    add("--hosts", metavar="N", action=Number, parse=count(), default="4",
        help=f"number of hosts {SHOWN}")  # fmt: skip
    add("--rate", action=Number, parse=rate(), default="100mbit",
        help=f"rate of every link in each direction {SHOWN}")  # fmt: skip
    add(
        "--rate-of",
        metavar="HOST=RATE",
        action="append",
        default=[],
        help="rate of one host's link; may be repeated",
    )
    add("--ranks-per-host", metavar="N", action=Number, parse=count(), default="1",
        help=f"number of ranks on each host {SHOWN}")  # fmt: skip
    add(
        "--kill",
        metavar="RANK@TIME",
        action="append",
        default=[],
        help="kill all processes of a rank, such as 2@10s for rank 2 after 10 s; this does not "
        "count as a failure; may be repeated",
    )
    add(
        "--pause",
        metavar="RANK@TIME+TIME",
        action="append",
        default=[],
        help="pause a rank, such as 1@5s+3s for rank 1 after 5 s for 3 s; may be repeated",
    )
    add("--logs", metavar="DIR", type=Path,
        help="keep the logs rank-R.log in this folder (default: only if a rank fails)")  # fmt: skip
    add_format(parser)
    add(
        "cmd",
        metavar="CMD",
        nargs="*",
        default=[],
        help="the command and its arguments, after `--`",
    )


def _check_separator(parser: CommandParser, words: Sequence[str]) -> None:
    """Reject a command without `--` before it: its options would be parsed as those of the lab."""
    start = _start_of_command(parser, words)
    if start is not None:
        typed = shlex.join(["talka", "lab", *words[:start], "--", *words[start:]])
        raise OptionError("--", "is missing before the command", f"Type: {typed}")


def _start_of_command(parser: CommandParser, words: Sequence[str]) -> int | None:
    """Return the index of the first word that is not part of an option.

    None if there is no such word, or if `--` comes first.
    """
    index = 0
    while index < len(words) and words[index] != "--":
        if not words[index].startswith("-"):
            return index
        has_value = parser.takes_value(words[index])
        if has_value is None and "=" not in words[index]:
            return None  # an unknown option: the parser reports it
        index += 2 if has_value and words[index + 1 : index + 2] != ["--"] else 1
    return None


def run(args: argparse.Namespace) -> int:
    from talka.lab import LabRunOptions, run_lab

    if not args.cmd:
        advice = "Add it after `--`, for example: talka lab --hosts 4 --rate 100mbit -- talka probe"
        raise OptionError("the command", "is missing", advice)

    options = LabRunOptions(troubles=_troubles(args), logs=args.logs, show=_show_on(args.format))
    try:
        result = run_lab(_config(args), args.cmd, options, check=False)
    except InvalidValueError as error:
        name = _OPTION_OF.get(error.name, error.name)
        value = format_rate(args.rate) if name == "--rate" else error.given
        raise InvalidValueError(name, value, error.allowed) from None
    if args.format == "json":
        print_json(result.as_json())
    else:
        _print(result)
    result.check()
    return 0


def _show_on(output_format: str) -> Callable[[bytes], None]:
    """Return a function that shows the output of rank 0; on standard error if stdout is JSON."""
    stream = sys.stderr if output_format == "json" else sys.stdout

    def show(output: bytes) -> None:
        stream.buffer.write(output)
        stream.flush()

    return show


def _config(args: argparse.Namespace) -> "LabConfig":
    from talka.lab import LabConfig

    rate_of = {}
    for text in args.rate_of:
        match = _RATE_OF.fullmatch(text) or _reject("--rate-of", text, "HOST=RATE, as in 2=20mbit")
        rate_of[int(match[1])] = parse_rate(match[2], name="--rate-of")
    return LabConfig(
        num_hosts=args.hosts,
        rate_bits_per_s=args.rate,
        rate_of=rate_of,
        ranks_per_host=args.ranks_per_host,
    )


def _troubles(args: argparse.Namespace) -> list["Trouble"]:
    return [*map(_kill, args.kill), *map(_pause, args.pause)]


def _kill(text: str) -> "Kill":
    from talka.lab import Kill

    match = _KILL.fullmatch(text) or _reject("--kill", text, "RANK@TIME, as in 2@10s")
    return Kill(int(match[1]), parse_seconds(match[2], name="--kill"))


def _pause(text: str) -> "Pause":
    from talka.lab import Pause

    match = _PAUSE.fullmatch(text) or _reject("--pause", text, "RANK@TIME+TIME, as in 1@5s+3s")
    at_s, for_s = (parse_seconds(match[index], name="--pause") for index in (2, 3))
    return Pause(int(match[1]), at_s, for_s)


def _reject(name: str, text: str, allowed: str) -> NoReturn:
    raise InvalidValueError(name, text, allowed)


def _print(result: "LabResult") -> None:
    rows = []
    for host in result.hosts:
        codes = [str(rank.exit_code) for rank in result.ranks if rank.host == host.host]
        rows.append(
            {
                "host": host.host,
                "address": host.address,
                "rate": format_rate(host.rate_bits_per_s),
                "sent": format_bytes(host.sent_bytes),
                "received": format_bytes(host.received_bytes),
                "exit codes": " ".join(codes),
            }
        )
    title = f"\n{len(result.ranks)} ranks on {len(rows)} hosts, {format_seconds(result.seconds)}"
    print_table(rows, title=title, right=("rate", "sent", "received"), prose=("exit codes",))

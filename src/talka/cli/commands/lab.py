"""Run a command on several emulated hosts on this machine: each host is a network namespace whose
link is limited in both directions.

    talka lab --hosts 4 --rate 100mbit -- python train.py

The command is started once per rank with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK
(the host), MASTER_ADDR, MASTER_PORT and GLOO_SOCKET_IFNAME set, so torch.distributed scripts run
unchanged. OMP_NUM_THREADS defaults to 1, and PATH starts with the folder of the Python that runs
talka. In the command, {rank}, {host}, {hosts}, {address} (of the rank's host) and {master} (the
address of host 0) are replaced. Hosts can reach each other, by address or as host-0, host-1, ...,
and nothing else. The output of rank 0 is shown; the output of every rank is written to its log.

Hosts may be unequal: --rate-of and --cores-of set the link and the processor quota of one host, --pause
stops a host again and again, --cut takes its link away. With --latency, a packet takes that long from
host to host, a round trip twice as long.

The run directory has the configuration, the traffic, the logs and the events of all ranks (they find it
in TALKA_RUN_DIR); `talka report` shows them.

If a rank fails, the others are killed after 10 s; with --kill or --cut they may continue instead.
The lab needs `ip`, `tc` and `bridge`, and root or a kernel that allows user namespaces (ranks then see
user id 0). Quotas need root and control groups. Apart from the run directory nothing is left behind,
however the lab ends.
"""

import argparse
import contextlib
import dataclasses
import functools
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from talka.cli.numbers import Number, Parse, count, number, rate, seconds
from talka.cli.options import SHOWN, add_format, add_runs
from talka.cli.parser import CommandParser
from talka.cli.tables import print_json, print_table
from talka.errors import InvalidValueError, OptionError, TalkaError
from talka.units import format_bytes, format_rate, format_seconds, parse_seconds

if TYPE_CHECKING:
    from talka.events import Run
    from talka.lab import LabConfig, LabResult, Trouble

_OPTION_OF = {
    "num_hosts": "--hosts",
    "rate_bits_per_s": "--rate",
    "rate_of": "--rate-of",
    "ranks_per_host": "--ranks-per-host",
    "latency_s": "--latency",
    "cores": "--cores",
    "cores_of": "--cores-of",
    "kill": "--kill",
    "pause": "--pause",
    "cut": "--cut",
}
_HOST_VALUE = re.compile(r"(\d+)=(.+)")
_NUMBER_AT_TIME = re.compile(r"(\d+)@([^+@]+)")
_PAUSE_OF_RANK = re.compile(r"(\d+)@([^+@]+)\+([^+@]+)")
_PAUSES_OF_HOST = re.compile(r"(\d+):([^:/]+)/([^:/]+)")


def add_arguments(parser: CommandParser) -> None:
    parser.check_words = functools.partial(_check_separator, parser)
    add = parser.add_argument
    add("--hosts", metavar="N", action=Number, parse=count(), default="4",
        help=f"number of hosts {SHOWN}")  # fmt: skip
    add("--rate", action=Number, parse=rate(), default="100mbit",
        help=f"rate of every link in each direction {SHOWN}")  # fmt: skip
    _add_many(parser, "--rate-of", "HOST=RATE", "rate of one host's link; may be repeated")
    add("--latency", metavar="TIME", action=Number, parse=seconds(), default="0s",
        help=f"one-way latency from host to host, in addition to that of the rates {SHOWN}")  # fmt: skip
    add("--cores", metavar="N", action=Number, parse=number(above=0),
        help="processor quota of every host in cores, such as 0.45 (default: no quotas)")  # fmt: skip
    _add_many(parser, "--cores-of", "HOST=N", "processor quota of one host; may be repeated")
    add("--ranks-per-host", metavar="N", action=Number, parse=count(), default="1",
        help=f"number of ranks on each host {SHOWN}")  # fmt: skip
    _add_many(
        parser,
        "--kill",
        "RANK@TIME",
        "kill all processes of a rank, such as 2@10s for rank 2 after 10 s; this does not "
        "count as a failure; may be repeated",
    )
    _add_many(
        parser,
        "--pause",
        "PAUSE",
        "pause a rank once (RANK@TIME+TIME), such as 1@5s+3s for rank 1 after 5 s for 3 s, or all ranks "
        "of a host periodically (HOST:TIME/TIME), such as 3:0.5s/10s for host 3 for 0.5 s every 10 s; "
        "may be repeated",
    )
    _add_many(
        parser,
        "--cut",
        "HOST@TIME",
        "cut the link of a host for good, such as 2@30s for host 2 after 30 s: packets are dropped, its "
        "ranks continue, and their failures do not count; may be repeated",
    )
    add("--logs", metavar="DIR", type=Path,
        help="folder for the logs rank-R.log (default: logs in the run directory)")  # fmt: skip
    add_runs(parser)
    add_format(parser)
    add(
        "cmd",
        metavar="CMD",
        nargs="*",
        default=[],
        help="the command and its arguments, after `--`",
    )


def _add_many(parser: CommandParser, name: str, metavar: str, help: str) -> None:
    parser.add_argument(name, metavar=metavar, action="append", default=[], help=help)


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
    from talka.events import Run
    from talka.lab import Lab, LabRunOptions

    if not args.cmd:
        advice = "Add it after `--`, for example: talka lab --hosts 4 --rate 100mbit -- talka probe"
        raise OptionError("the command", "is missing", advice)

    with _typed_names(args):
        config, troubles = _config(args), _troubles(args)
        Lab(config).check(args.cmd, LabRunOptions(troubles=troubles))
    record = Run("lab", _recorded(config, args), root=args.runs)
    try:
        with record:
            _run_recorded(record, config, troubles, args)
    except TalkaError as error:
        if error.exit_code == 2:  # the command could not be started
            record.discard()
        raise
    return 0


def _run_recorded(
    record: "Run", config: "LabConfig", troubles: Sequence["Trouble"], args: argparse.Namespace
) -> None:
    from talka.events import RUN_DIR_VARIABLE
    from talka.lab import LabRunOptions, run_lab

    options = LabRunOptions(
        troubles=troubles,
        logs=args.logs or record.dir / "logs",
        show=_show_on(args.format),
        environment={RUN_DIR_VARIABLE: str(record.dir.resolve())},
        events=record.stream,
    )
    result = run_lab(config, args.cmd, options, check=False)
    if args.format == "json":
        print_json({**result.as_json(), "run": str(record.dir)})
    else:
        _print(result, config)
        print(f"run directory {record.dir}")
    result.check()
    record.finish(result.as_json())


@contextlib.contextmanager
def _typed_names(args: argparse.Namespace) -> Iterator[None]:
    """Replace names of the configuration in errors by the options that the user typed."""
    try:
        yield
    except InvalidValueError as error:
        name = _OPTION_OF.get(error.name, error.name)
        value = error.given
        if name == "--rate":
            value = format_rate(args.rate)
        elif name == "--latency":
            value = format_seconds(args.latency)
        raise InvalidValueError(name, value, error.allowed) from None


def _recorded(config: "LabConfig", args: argparse.Namespace) -> dict[str, Any]:
    """Return the configuration for the run directory; troubles as they were typed."""
    troubles = {"kill": args.kill, "pause": args.pause, "cut": args.cut}
    return {**dataclasses.asdict(config), **troubles, "cmd": args.cmd}


def _show_on(output_format: str) -> Callable[[bytes], None]:
    """Return a function that shows the output of rank 0; on standard error if stdout is JSON."""
    stream = sys.stderr if output_format == "json" else sys.stdout

    def show(output: bytes) -> None:
        stream.buffer.write(output)
        stream.flush()

    return show


def _config(args: argparse.Namespace) -> "LabConfig":
    from talka.lab import LabConfig

    return LabConfig(
        num_hosts=args.hosts,
        rate_bits_per_s=args.rate,
        rate_of=_by_host(args.rate_of, "--rate-of", "HOST=RATE, as in 2=20mbit", rate()),
        ranks_per_host=args.ranks_per_host,
        latency_s=args.latency,
        cores=args.cores,
        cores_of=_by_host(args.cores_of, "--cores-of", "HOST=N, as in 3=0.09", number(above=0)),
    )


def _by_host(texts: Sequence[str], name: str, form: str, parse: Parse) -> dict[int, float]:
    values = {}
    for text in texts:
        match = _HOST_VALUE.fullmatch(text) or _reject(name, text, form)
        values[int(match[1])] = parse(name, match[2])
    return values


def _troubles(args: argparse.Namespace) -> list["Trouble"]:
    from talka.lab import Cut, Kill

    troubles: list[Trouble] = []
    for text in args.kill:
        troubles.append(Kill(*_number_at_time("--kill", text, "RANK@TIME, as in 2@10s")))
    troubles += map(_pause, args.pause)
    for text in args.cut:
        troubles.append(Cut(*_number_at_time("--cut", text, "HOST@TIME, as in 2@30s")))
    return troubles


def _number_at_time(name: str, text: str, form: str) -> tuple[int, float]:
    match = _NUMBER_AT_TIME.fullmatch(text) or _reject(name, text, form)
    return int(match[1]), parse_seconds(match[2], name=name)


def _pause(text: str) -> "Trouble":
    from talka.lab import Pause, PauseHost

    once, often = _PAUSE_OF_RANK.fullmatch(text), _PAUSES_OF_HOST.fullmatch(text)
    form = "RANK@TIME+TIME, as in 1@5s+3s, or HOST:TIME/TIME, as in 3:0.5s/10s"
    match = once or often or _reject("--pause", text, form)
    first_s, second_s = (parse_seconds(match[index], name="--pause") for index in (2, 3))
    kind = Pause if once else PauseHost
    return kind(int(match[1]), first_s, second_s)


def _reject(name: str, text: str, allowed: str) -> NoReturn:
    raise InvalidValueError(name, text, allowed)


def _print(result: "LabResult", config: "LabConfig") -> None:
    rows: list[dict[str, object]] = []
    has_quotas = any(cores is not None for cores in config.cores_by_host)
    for host in result.hosts:
        codes = [str(rank.exit_code) for rank in result.ranks if rank.host == host.host]
        rows.append(
            {
                "host": host.host,
                "address": host.address,
                "rate": format_rate(host.rate_bits_per_s),
                **({"cores": _cores(config.cores_by_host[host.host])} if has_quotas else {}),
                "sent": format_bytes(host.sent_bytes),
                "received": format_bytes(host.received_bytes),
                "exit codes": " ".join(codes),
            }
        )
    latency = f", latency {format_seconds(config.latency_s)}" if config.latency_s else ""
    hosts = f"{len(result.ranks)} ranks on {len(rows)} hosts{latency}"
    print_table(
        rows,
        title=f"\n{hosts}, {format_seconds(result.seconds)}",
        right=("rate", "cores", "sent", "received"),
        prose=("exit codes",),
    )


def _cores(cores: float | None) -> str:
    return "all" if cores is None else f"{cores:g}"

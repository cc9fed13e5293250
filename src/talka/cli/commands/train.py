"""Start a training script once per worker, as torchrun does.

    talka train --workers 4 train.py --epochs 3

Options of talka come before the script; all that follows belongs to the script. Each worker runs it
as `python train.py` would, with RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT and the other
variables of torchrun set, so scripts that call torch.distributed.init_process_group("gloo") run
unchanged. The cores of a machine are divided among its workers (OMP_NUM_THREADS overrides it).

The output of worker 0 is shown. The output of every worker is written to its log in the run
directory, beside the metrics that the script reports with talka.train.log; `talka report` shows them
as curves. If a worker fails, the others are ended, and the message has the end of its log.

With --engine ray the workers run on the machines of a Ray cluster, each on a core; all machines need
the script at the same path. As a rank of a lab or of torchrun, the command joins the other ranks:

    talka lab --hosts 4 --rate 100mbit -- talka train train.py

--rhythm, --outer, --compressor, --exchange and --network are read by talka.train.fit inside the script.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from talka.cli.numbers import Number, count
from talka.cli.options import add_engine, add_format, add_runs
from talka.cli.tables import print_json
from talka.errors import GangError, InputError, InvalidValueError, OptionError, TalkaError
from talka.units import format_seconds

if TYPE_CHECKING:
    from talka.events import Run
    from talka.train.choices import Choices
    from talka.train.scripts.launch import ScriptResult, Show
    from talka.train.scripts.rank import ScriptRun

MAX_WORKERS = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--workers", metavar="N", action=Number, parse=count(at_most=MAX_WORKERS),
        help="number of workers (default: 1; inside a lab or torchrun, the number of its ranks)")  # fmt: skip
    add_engine(parser)
    add("--rhythm", metavar="NAME",
        help="when workers synchronise: every-step, delayed:S to apply averages S steps later, or "
        "local-sgd:K to average after K steps (default: as the script chooses)")  # fmt: skip
    add("--outer", metavar="NAME",
        help="outer optimizer of local-sgd: nesterov:RATE/MOMENTUM such as nesterov:0.7/0.9, "
        "momentum:RATE/MOMENTUM or sgd:RATE (default: as the script chooses)")  # fmt: skip
    add("--compressor", metavar="NAME",
        help="how gradients are compressed, such as onebit+ef or topk:0.01+ef "
        "(default: as the script chooses)")  # fmt: skip
    add("--exchange", metavar="NAME",
        help="how workers exchange them, such as two-phase or all-gather "
        "(default: as the script chooses)")  # fmt: skip
    add("--network", metavar="FILE.toml", type=Path,
        help="hosts file of the network between the workers, as written by `talka probe --out`")  # fmt: skip
    add_runs(parser)
    add_format(parser)
    add("script", metavar="SCRIPT", help="the Python file to run")
    add("arguments", metavar="ARG", nargs=argparse.REMAINDER,
        help="arguments of the script")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from talka.engine.by_name import check_engine
    from talka.engine.gangs.local import is_under_torchrun
    from talka.train.scripts.rank import ScriptRun

    check_engine(args.engine)
    script = ScriptRun(
        script=_script(args.script),
        arguments=tuple(args.arguments),
        folder=os.getcwd(),
        choices=_choices(args),
        is_existing=is_under_torchrun() and args.engine == "embedded",
    )
    if script.is_existing:
        return _join(script, args)
    return _start(script, args)


def _start(script: "ScriptRun", args: argparse.Namespace) -> int:
    """Start all workers, and record the run."""
    from talka.events import Run

    config = {
        "script": script.script,
        "arguments": list(script.arguments),
        "workers": args.workers or 1,
        "engine": args.engine,
        **_given(script.choices),
    }
    record, start_s = Run("train", config, root=args.runs), time.monotonic()
    try:
        with record:
            result = _run_recorded(record, script, args)
            summary = _summary(result, str(record.dir))
            record.finish(summary)
    except GangError as error:
        if args.format == "json":
            print_json(_summary_of_failure(error, time.monotonic() - start_s, record.dir))
        raise _with_place_of_log(error, record.dir) from None
    except TalkaError as error:
        if error.exit_code == 2:  # the workers could not be started
            record.discard()
        raise
    if args.format == "json":
        print_json(summary)
        return 0
    _print(result)
    print(f"run directory {record.dir}")
    return 0


def _run_recorded(record: "Run", script: "ScriptRun", args: argparse.Namespace) -> "ScriptResult":
    import dataclasses

    from talka.engine.by_name import engine_by_name
    from talka.train.scripts.launch import launch

    if args.engine == "embedded":
        script = dataclasses.replace(script, run_dir=str(record.dir.resolve()))
    with engine_by_name(args.engine, record.stream) as engine:
        return launch(
            engine,
            script,
            num_workers=args.workers or 1,
            log=record.dir / "logs" / "rank-0.log",
            show=_show_on(args.format),
        )


def _join(script: "ScriptRun", args: argparse.Namespace) -> int:
    """Run the script as one of the ranks that torchrun or a lab has started."""
    from talka.engine import Embedded
    from talka.engine.gangs.spec import RankFailed
    from talka.events import RUN_DIR_VARIABLE
    from talka.extras import require
    from talka.train.scripts.launch import launch

    require("torch", by="talka train inside a lab or torchrun")
    rank, size = os.environ["RANK"], int(os.environ["WORLD_SIZE"])
    if args.workers not in (None, size):
        raise InvalidValueError("--workers", args.workers, f"{size}, the number of ranks, here")
    try:
        with Embedded() as engine:
            result = launch(engine, script, num_workers=size)
    except RankFailed as error:
        raise TalkaError(f"rank {rank} of {size} {error.how}.") from None
    if rank == "0" and args.format == "json":
        print_json(_summary(result, os.environ.get(RUN_DIR_VARIABLE)))
    elif rank == "0":
        _print(result)
    return 0


def _script(name: str) -> str:
    path = Path(name)
    if name.startswith("-"):
        raise OptionError(name, "is not an option of talka train", "See `talka train --help`.")
    if not path.exists():
        raise InputError(name, "does not exist", "Give the path of a Python script.")
    if not path.is_file():
        raise InputError(name, "is not a file", "Give the path of a Python script.")
    return str(path.absolute())


def _choices(args: argparse.Namespace) -> "Choices":
    from talka.network import read_hosts
    from talka.train.choices import Choices

    if args.network is not None:
        read_hosts(args.network)  # report errors now, once
    choices = Choices(
        rhythm=args.rhythm,
        outer=args.outer,
        compressor=args.compressor,
        exchange=args.exchange,
        network=None if args.network is None else str(args.network.absolute()),
    )
    choices.check()
    return choices


def _given(choices: "Choices") -> dict[str, str]:
    import dataclasses

    every = dataclasses.asdict(choices)
    return {name: text for name, text in every.items() if text is not None}


def _show_on(output_format: str) -> "Show":
    """Return a function that shows the output of worker 0; on standard error if stdout is JSON."""
    stream = sys.stderr if output_format == "json" else sys.stdout

    def show(output: bytes) -> None:
        stream.write(output.decode(errors="replace"))
        stream.flush()

    return show


def _summary(result: "ScriptResult", run_dir: str | None) -> dict[str, Any]:
    return {
        "workers": result.num_workers,
        "seconds": result.seconds,
        "exit_code": 0,
        "metrics": result.metrics,
        "run": run_dir,
    }


def _summary_of_failure(error: GangError, seconds: float, run_dir: Path) -> dict[str, Any]:
    from talka.events import read_run
    from talka.train.events import MetricsLogged

    metrics = {
        event.name: event.value
        for _, source, event in read_run(run_dir).events
        if source == "rank-0" and isinstance(event, MetricsLogged)
    }
    return {
        "workers": error.size,
        "seconds": seconds,
        "exit_code": error.exit_code,
        "metrics": metrics,
        "run": str(run_dir),
        "failed_worker": error.rank,
        "error": error.how,
    }


def _with_place_of_log(error: GangError, run_dir: Path) -> TalkaError:
    """Return the error with the path of the log; without its end if that was shown already."""
    log = run_dir / "logs" / f"rank-{error.rank}.log"
    how = f"{error.how} (log: {log})" if log.exists() else error.how
    if error.rank == 0 and log.exists():
        return TalkaError(f"rank 0 of {error.size} {how}. Its output is above.")
    return GangError(error.rank, error.size, how, error.log_tail)


def _print(result: "ScriptResult") -> None:
    workers = "1 worker" if result.num_workers == 1 else f"{result.num_workers} workers"
    print(f"\n{workers}, {format_seconds(result.seconds)}")

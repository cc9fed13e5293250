"""A script as one rank: its environment, its run as `__main__`, and how it ended.

The script finds what torchrun and `python script.py` would give it: RANK, WORLD_SIZE, MASTER_ADDR and
so on, its own arguments in `sys.argv`, and its own folder first on the import path.
"""

import atexit
import os
import runpy
import socket
import sys
import threading
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from talka.engine.gangs.spec import RankFailed
from talka.events import RUN_DIR_VARIABLE
from talka.train.choices import Choices
from talka.train.scripts.metrics import last_metrics

if TYPE_CHECKING:
    from talka.engine import GangWorker

_MAX_CAUSE = 300  # characters of the message of an exception


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRun:
    """A script and what its ranks need to run it."""

    script: str
    """Absolute path of the script, the same on all machines."""
    arguments: tuple[str, ...] = ()
    folder: str
    """Current folder of the script."""
    choices: Choices = field(default_factory=Choices)
    run_dir: str | None = None
    """Run directory, if all ranks have it; otherwise their events reach it through the gang."""
    is_existing: bool = False
    """True if torchrun or a lab has started the ranks, so that their environment exists already."""


def run_script(worker: "GangWorker", run: ScriptRun) -> dict[str, float | None]:
    """Run a script as a rank of a gang, and return the metrics that it logged last.

    Raises
    ------
    RankFailed
        If the script raised, which has printed the traceback, or ended with another exit code than 0.
    """
    if not Path(run.script).is_file():
        raise RankFailed(f"did not find {run.script} on {socket.gethostname()}")
    os.environ.update(run.choices.environment())
    store = None
    if not run.is_existing:
        if os.path.isdir(run.folder):
            os.chdir(run.folder)
        if run.run_dir is not None:
            os.environ[RUN_DIR_VARIABLE] = run.run_dir
        store = _enter_world(worker)
    sys.argv[:] = [run.script, *run.arguments]
    sys.path[: 0 if sys.flags.safe_path else 1] = [str(Path(run.script).parent)]
    _run_as_main(run)
    if not run.is_existing:
        _finish_like_python()
    del store  # it served torch's store for all ranks; the gang waits for them
    return last_metrics()


def _enter_world(worker: "GangWorker") -> Any:
    """Set what torchrun sets. Return the store that rank 0 serves to all ranks, or None.

    The store listens at one address, loopback if possible. The store that a script itself opens for
    `env://` would listen at all addresses, and its port could be taken between two moments.
    """
    store, shared = None, worker.rendezvous
    shared.set(f"talka/script/address-{worker.rank}", worker.address.encode())
    if worker.rank == 0:
        store, port = _serve_store(worker.address)
        is_served = "" if store is None else "True"
        shared.set("talka/script/master", f"{worker.address} {port} {is_served}".encode())
    addresses = [shared.get(f"talka/script/address-{rank}").decode() for rank in range(worker.size)]
    master, master_port, is_served = shared.get("talka/script/master").decode().split(" ")
    os.environ.update(rank_environment(worker.rank, addresses))
    os.environ.update(MASTER_ADDR=master, MASTER_PORT=master_port)
    if is_served:
        os.environ["TORCHELASTIC_USE_AGENT_STORE"] = is_served
    return store


def rank_environment(rank: int, addresses: Sequence[str]) -> dict[str, str]:
    """Return the position of a rank among all, given the address of each rank's machine.

    >>> variables = rank_environment(2, ["10.0.0.1", "10.0.0.2", "10.0.0.1"])
    >>> variables["LOCAL_RANK"], variables["LOCAL_WORLD_SIZE"], variables["GROUP_RANK"]
    ('1', '2', '0')
    """
    machines = list(dict.fromkeys(addresses))
    size, own = str(len(addresses)), addresses[rank]
    return {
        "RANK": str(rank),
        "WORLD_SIZE": size,
        "LOCAL_RANK": str(addresses[:rank].count(own)),
        "LOCAL_WORLD_SIZE": str(addresses.count(own)),
        "GROUP_RANK": str(machines.index(own)),
        "GROUP_WORLD_SIZE": str(len(machines)),
        "ROLE_NAME": "default",
        "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": size,
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RUN_ID": "talka",
    }


def _serve_store(address: str) -> tuple[Any, int]:
    """Open torch's store and return it with its port; without torch, None and a free port."""
    if find_spec("torch") is not None:
        from talka.engine.gangs.group import open_store

        return open_store(address)
    with socket.create_server((address, 0)) as listener:
        return None, listener.getsockname()[1]


def _run_as_main(run: ScriptRun) -> None:
    try:
        runpy.run_path(run.script, run_name="__main__")
    except SystemExit as error:
        code = _exit_code(error)
        _flush_output()
        if code:
            raise RankFailed(f"ended with exit code {code}") from None
    except BaseException as error:
        if run.is_existing and isinstance(error, KeyboardInterrupt):
            raise  # Ctrl+C in the terminal
        _print_traceback(error, run.script)
        raise RankFailed(f"raised {_cause(error)}") from None


def _exit_code(error: SystemExit) -> int:
    """Return the exit code of `sys.exit`, and print its message as Python does."""
    if error.code is None or isinstance(error.code, int):
        return int(error.code or 0) & 0xFF  # all that the kernel keeps of it
    sys.stderr.write(f"{error.code}\n")
    return 1


def _print_traceback(error: BaseException, script: str) -> None:
    """Print a traceback that begins in the script, through the hook that the script may have set."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != script:
        frame = frame.tb_next
    error = error.with_traceback(frame)
    sys.excepthook(type(error), error, frame)
    _flush_output()


def _cause(error: BaseException) -> str:
    """Return the type and the first line of an exception."""
    last = traceback.format_exception_only(error)[-1]
    name = last.partition(":")[0].strip()
    message = str(error).strip().partition("\n")[0]
    text = f"{name}: {message}" if message else name
    return text if len(text) <= _MAX_CAUSE else f"{text[:_MAX_CAUSE]}..."


def _finish_like_python() -> None:
    """Do what Python does between the last line of a script and the end of the process.

    Wait for threads, and call functions of `atexit`, such as those that write the last events. The
    process itself ends with its gang, without another chance to do so.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # multiprocessing ends its processes so, too
    atexit._run_exitfuncs()
    _flush_output()


def _flush_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()

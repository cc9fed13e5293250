"""Save and load what an exchange needs to continue: one file or dict per rank.

Files are in the safetensors format. A dict has the same two parts, `tensors` and `metadata` (strings
by name), so that `torch.save`, safetensors and trainers can store it.

Residuals are gradient information that was not applied yet: a restart without them loses it. With
another number of workers, the exchange merges the states of all former workers into one.

All workers check what they read, compare it, and only then change anything: either all load or none.
"""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
from torch import Tensor

from talka.compress import StateKey
from talka.compress.state_key import RHYTHM
from talka.errors import SavedStateError
from talka.exchange import Exchange
from talka.exchange.topologies.low_rank import LowRank
from talka.files import whole_file
from talka.train.saved_file import Expected, SavedState, SavedStateProblem, checksum, parse

FORMAT = "talka-exchange-2"
_DICT = "the dict given to load_state_dict()"

Shapes = Mapping[str, tuple[int, ...]]


class Progress(NamedTuple):
    """Progress of the training at the time its state was saved."""

    step: int = 0
    """Number of steps since the start of the training, over all restarts."""
    rates: Mapping[str, float] = {}
    """Learning rate that the residuals of each parameter belong to."""
    scale: float = 1.0
    """Loss scale (factor of a GradScaler) that residuals and momentum belong to."""
    counts: Mapping[str, int] = {}
    """Counters of a rhythm."""
    kept: Mapping[StateKey, Tensor] = {}
    """Tensors of a rhythm, on its own side of the state."""


def save_state(exchange: Exchange, folder: Path, shapes: Shapes, progress: Progress) -> None:
    """Write this rank's file; return when all ranks have written theirs."""
    folder.mkdir(parents=True, exist_ok=True)
    state = to_dict(exchange, shapes, progress, common_number(exchange))
    with whole_file(_path(folder, exchange.rank)) as beside:
        beside.write_bytes(safetensors.torch.save(**state))
    exchange.channels.barrier()


def load_state(exchange: Exchange, folder: Path, shapes: Shapes) -> Progress:
    """Load what the same or another number of workers saved into this rank's exchange."""
    return _load(exchange, str(folder), lambda: _read_files(exchange, folder, shapes))


def to_dict(
    exchange: Exchange, shapes: Shapes, progress: Progress, save: int
) -> dict[str, dict[str, Any]]:
    """Return copies of all tensors of this rank, and their metadata.

    `save` is a number that the dicts of all ranks of one save share. This is not a collective call:
    many trainers save one rank after another, or only one.
    """
    state = exchange.state() | dict(progress.kept)
    tensors = {str(key): value.clone().contiguous() for key, value in state.items()}
    metadata = {
        "format": FORMAT,
        "spec": exchange.spec,
        "exchange": exchange.name,
        "num_workers": str(exchange.num_workers),
        "rank": str(exchange.rank),
        "step": str(progress.step),
        "save": str(save),
        "rates": json.dumps(dict(progress.rates)),
        "scale": repr(progress.scale),
        "counts": json.dumps(dict(progress.counts)),
        "shapes": json.dumps({name: list(shape) for name, shape in shapes.items()}),
    }
    metadata["checksum"] = checksum(tensors, metadata)
    return {"tensors": tensors, "metadata": metadata}


def from_dict(exchange: Exchange, state: object, shapes: Shapes) -> Progress:
    """Load what `to_dict` returned on the same rank of the same number of workers."""
    return _load(exchange, _DICT, lambda: [_read_dict(exchange, state, shapes)])


def _load(exchange: Exchange, source: str, read: Callable[[], list[SavedState]]) -> Progress:
    """Read, compare with all other ranks, and only then change the exchange."""
    problem: SavedStateError | None = None
    files: list[SavedState] = []
    try:
        files = read()
    except SavedStateError as error:
        problem = error
    _compare(exchange, source, files, problem)
    states = [
        {key: value for key, value in saved.state.items() if key.side != RHYTHM} for saved in files
    ]
    is_same_number = files[0].num_workers == exchange.num_workers
    exchange.load_state(states[0] if is_same_number else exchange.merged(states))
    exchange.channels.barrier()
    first = files[0]
    kept = {key: value for key, value in first.state.items() if key.side == RHYTHM}
    return Progress(max(first.step, 0), first.rates, first.scale, first.counts, kept)


def _read_dict(exchange: Exchange, state: object, shapes: Shapes) -> SavedState:
    tensors, metadata = _parts(state)
    try:
        saved = parse(tensors, metadata, Expected(exchange.spec, exchange.name, shapes))
    except SavedStateProblem as error:
        raise SavedStateError(_DICT, str(error)) from None
    if saved.num_workers != exchange.num_workers:
        raise SavedStateError(
            _DICT,
            f"was saved by {saved.num_workers} workers, but there are {exchange.num_workers} now; "
            "hook.save() and hook.load() support another number of workers, the dict of one rank "
            "does not",
        )
    if metadata.get("rank") != str(exchange.rank):
        raise SavedStateError(
            _DICT,
            f"was saved by rank {metadata.get('rank')}, but this is rank {exchange.rank}; every rank "
            "must save its own dict, since their residuals differ",
        )
    return saved


def _parts(state: object) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Check the types in a dict, which may come from any file, and move its tensors to the CPU."""
    if not isinstance(state, Mapping) or set(state) != {"tensors", "metadata"}:
        raise SavedStateError(_DICT, "is not a dict of 'tensors' and 'metadata'")
    tensors, metadata = state["tensors"], state["metadata"]
    if not _is_dict_of(tensors, Tensor) or not _is_dict_of(metadata, str):
        raise SavedStateError(_DICT, "has entries that are not tensors or strings by name")
    return {key: tensor.detach().cpu() for key, tensor in tensors.items()}, dict(metadata)


def _is_dict_of(value: object, kind: type) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(key, str) and isinstance(entry, kind) for key, entry in value.items()
    )


def read_file(path: Path, expected: Expected) -> SavedState:
    """Read and check one rank's file. Raise SavedStateError if it is missing, damaged or unfit."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            state = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise SavedStateError(str(path), "does not exist on this machine") from None
    except (OSError, safetensors.SafetensorError) as error:
        raise SavedStateError(str(path), f"cannot be read ({error})") from None
    try:
        return parse(state, metadata, expected)
    except SavedStateProblem as error:
        raise SavedStateError(str(path), str(error)) from None


def _read_files(exchange: Exchange, folder: Path, shapes: Shapes) -> list[SavedState]:
    """Read the file of this rank, or the files of all ranks if their number was different."""
    expected = Expected(exchange.spec, exchange.name, shapes)
    first = _path(folder, 0)
    if not first.exists():  # a machine may have only the files of the ranks that ran on it
        first = _path(folder, exchange.rank)
    head = read_file(first, expected)
    if head.num_workers == exchange.num_workers:
        own = read_file(_path(folder, exchange.rank), expected)
        _check_same_save(folder, [head, own])
        return [own]
    files = [read_file(_path(folder, rank), expected) for rank in range(head.num_workers)]
    _check_same_save(folder, files)
    of_all = [("worker", "momentum")]  # state that every worker has: merging needs all of it
    if exchange.name == LowRank.name:
        of_all.append(("worker", "residual"))
    keys = [{key for key in saved.state if (key.side, key.kind) in of_all} for saved in files]
    if any(keys_of_rank != keys[0] for keys_of_rank in keys):
        raise SavedStateError(str(folder), "has files with state of different parameters")
    return files


def _check_same_save(folder: Path, files: Sequence[SavedState]) -> None:
    if len({saved.identity for saved in files}) > 1:
        steps = sorted({saved.step_text for saved in files})
        raise SavedStateError(str(folder), _mixed(steps))


def _mixed(steps: Sequence[str]) -> str:
    return f"mixes files of several saves ({', '.join(steps)}): all must be from the same save"


def _compare(
    exchange: Exchange, source: str, files: Sequence[SavedState], problem: SavedStateError | None
) -> None:
    """Raise SavedStateError on all ranks if one could not read its file, or if saves differ."""
    rows = exchange.channels.all_gather([0, *files[0].identity] if files else [1, 0, 0, 0])
    if problem is not None:
        raise problem
    failed = [rank for rank, row in enumerate(rows) if row[0]]
    if failed:
        ranks = ", ".join(map(str, failed))
        raise SavedStateError(source, f"was refused on rank {ranks}; see the error there")
    identities = [(row[1], row[2], row[3]) for row in rows]
    if len(set(identities)) > 1:
        steps = [f"rank {rank} has step {step}" for rank, (_, step, _) in enumerate(identities)]
        raise SavedStateError(source, _mixed(steps))


def common_number(exchange: Exchange) -> int:
    """Draw a random number and broadcast it. All workers must call this."""
    return int(exchange.channels.broadcast(secrets.randbits(62)))


def _path(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.safetensors"

"""Saving and loading what an exchange needs to continue: a file or a dict of each rank.

A file is in the safetensors format. A dict has the same two parts: `tensors` and `metadata`, which is
text by name; so `torch.save`, safetensors and trainers can store it.

Residuals are part of what has been learned and was not applied yet: without them a restart forgets.
With another number of workers, the exchange merges the states of all former workers into one.

All workers check what they read, compare it, and only then change anything: either all load or none.
"""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import torch
import torch.distributed as dist
from torch import Tensor

from talka.errors import SavedStateError
from talka.exchange import Exchange
from talka.exchange.topologies.low_rank import LowRank
from talka.files import whole_file
from talka.train.saved_file import Expected, SavedState, SavedStateProblem, checksum, parse

FORMAT = "talka-exchange-2"
_DICT = "the dict given to load_state_dict()"

Shapes = Mapping[str, tuple[int, ...]]


class Progress(NamedTuple):
    """How far the training was when its state was saved."""

    step: int = 0
    """Number of steps since the beginning, over all restarts."""
    rates: Mapping[str, float] = {}
    """Learning rate that the residuals of each parameter belong to."""
    scale: float = 1.0
    """Factor of a GradScaler that residuals and momentum belong to."""


def save_state(exchange: Exchange, folder: Path, shapes: Shapes, progress: Progress) -> None:
    """Write this rank's file; return when all ranks have written theirs."""
    folder.mkdir(parents=True, exist_ok=True)
    state = to_dict(exchange, shapes, progress, common_number(exchange))
    with whole_file(_path(folder, exchange.rank)) as beside:
        beside.write_bytes(safetensors.torch.save(**state))
    dist.barrier(group=exchange.group)


def load_state(exchange: Exchange, folder: Path, shapes: Shapes) -> Progress:
    """Read what the same or another number of workers saved, and continue from it on this rank."""
    return _load(exchange, str(folder), lambda: _read_files(exchange, folder, shapes))


def to_dict(
    exchange: Exchange, shapes: Shapes, progress: Progress, save: int
) -> dict[str, dict[str, Any]]:
    """Return copies of all tensors of this rank, and their metadata.

    `save` is a number that the dicts of all ranks have in common. No other rank has to take part:
    many trainers ask one rank after another, or one alone.
    """
    tensors = {str(key): value.clone().contiguous() for key, value in exchange.state().items()}
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
        "shapes": json.dumps({name: list(shape) for name, shape in shapes.items()}),
    }
    metadata["checksum"] = checksum(tensors, metadata)
    return {"tensors": tensors, "metadata": metadata}


def from_dict(exchange: Exchange, state: object, shapes: Shapes) -> Progress:
    """Continue on this rank from what `to_dict` returned on the same rank of as many workers."""
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
    states = [saved.state for saved in files]
    is_same_number = files[0].num_workers == exchange.num_workers
    exchange.load_state(states[0] if is_same_number else exchange.merged(states))
    dist.barrier(group=exchange.group)
    return Progress(max(files[0].step, 0), files[0].rates, files[0].scale)


def _read_dict(exchange: Exchange, state: object, shapes: Shapes) -> SavedState:
    tensors, metadata = _parts(state)
    try:
        saved = parse(tensors, metadata, Expected(exchange.spec, exchange.name, shapes))
    except SavedStateProblem as error:
        raise SavedStateError(_DICT, str(error)) from None
    if saved.num_workers != exchange.num_workers:
        raise SavedStateError(
            _DICT,
            f"was saved by {saved.num_workers} workers, here are {exchange.num_workers}; hook.save() "
            "and hook.load() can change the number of workers, one rank's dict cannot",
        )
    if metadata.get("rank") != str(exchange.rank):
        raise SavedStateError(
            _DICT,
            f"was saved by rank {metadata.get('rank')}, this is rank {exchange.rank}; every rank has "
            "to save its own, since their residuals differ",
        )
    return saved


def _parts(state: object) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Check the types in a dict, which may come from any file. Tensors may be on any device."""
    if not isinstance(state, Mapping) or set(state) != {"tensors", "metadata"}:
        raise SavedStateError(_DICT, "is not a dict of 'tensors' and 'metadata'")
    tensors, metadata = state["tensors"], state["metadata"]
    if not _is_dict_of(tensors, Tensor) or not _is_dict_of(metadata, str):
        raise SavedStateError(_DICT, "has other entries than tensors and text by name")
    return {key: tensor.detach().cpu() for key, tensor in tensors.items()}, dict(metadata)


def _is_dict_of(value: object, kind: type) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(key, str) and isinstance(entry, kind) for key, entry in value.items()
    )


def read_file(path: Path, expected: Expected) -> SavedState:
    """Read and check one rank's file. Raise SavedStateError for whatever is wrong with it."""
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
    """Read the file of this rank, or those of all ranks if they were another number."""
    expected = Expected(exchange.spec, exchange.name, shapes)
    first = _path(folder, 0)
    if not first.exists():  # each machine may have the files of its own ranks alone
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
    if any(some != keys[0] for some in keys):
        raise SavedStateError(str(folder), "has files with state of different parameters")
    return files


def _check_same_save(folder: Path, files: Sequence[SavedState]) -> None:
    if len({saved.identity for saved in files}) > 1:
        steps = sorted({saved.step_text for saved in files})
        raise SavedStateError(str(folder), _mixed(steps))


def _mixed(steps: Sequence[str]) -> str:
    return f"mixes files of several saves ({', '.join(steps)}): all have to be of the same one"


def _compare(
    exchange: Exchange, source: str, files: Sequence[SavedState], problem: SavedStateError | None
) -> None:
    """Raise SavedStateError on all ranks if one of them could not read its part of one save."""
    mine = torch.tensor([0, *files[0].identity] if files else [1, 0, 0, 0])
    rows = [torch.empty_like(mine) for _ in range(exchange.num_workers)]
    dist.all_gather(rows, mine, group=exchange.group)
    if problem is not None:
        raise problem
    failed = [rank for rank, row in enumerate(rows) if row[0]]
    if failed:
        ranks = ", ".join(map(str, failed))
        raise SavedStateError(source, f"was refused on rank {ranks}, whose error says why")
    identities = [(int(row[1]), int(row[2]), int(row[3])) for row in rows]
    if len(set(identities)) > 1:
        steps = [f"rank {rank} has step {one[1]}" for rank, one in enumerate(identities)]
        raise SavedStateError(source, _mixed(steps))


def common_number(exchange: Exchange) -> int:
    """Draw a random number that is the same on all ranks. All workers must call it."""
    number = torch.tensor(secrets.randbits(62))
    dist.broadcast(number, exchange.global_ranks[0], group=exchange.group)
    return int(number)


def _path(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.safetensors"

"""What an exchange needs to go on, one safetensors file per rank.

Residuals are part of what has been learned and not yet said: without them a restart forgets. With
another number of workers, exchanges say themselves how states of the old workers become one.
"""

import hashlib
from pathlib import Path

import safetensors
import safetensors.torch
import torch.distributed as dist
from torch import Tensor

from talka.errors import SavedStateError
from talka.exchange import Exchange
from talka.files import whole_file

FORMAT = "talka-exchange-1"


def save_state(exchange: Exchange, folder: Path) -> None:
    """Write this rank's file; when all have, all return."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {key: value.contiguous() for key, value in exchange.state().items()}
    metadata = {
        "format": FORMAT,
        "spec": exchange.spec,
        "exchange": exchange.name,
        "num_workers": str(exchange.num_workers),
        "checksum": _checksum(state),
    }
    with whole_file(_path(folder, exchange.rank)) as beside:
        beside.write_bytes(safetensors.torch.save(state, metadata))
    dist.barrier(group=exchange.group)


def load_state(exchange: Exchange, folder: Path) -> None:
    """Read what was saved, by as many workers or by others, and make it this rank's own."""
    state, num_workers = _read(_path(folder, 0), exchange)
    if num_workers == exchange.num_workers:
        state, _ = _read(_path(folder, exchange.rank), exchange)
    else:
        states = [_read(_path(folder, rank), exchange)[0] for rank in range(num_workers)]
        state = exchange.merged(states)
    exchange.load_state(state)
    dist.barrier(group=exchange.group)


def _path(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.safetensors"


def _read(path: Path, exchange: Exchange) -> tuple[dict[str, Tensor], int]:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            state = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise SavedStateError(str(path), "does not exist on this machine") from None
    except (OSError, safetensors.SafetensorError) as error:
        raise SavedStateError(str(path), f"cannot be read ({error})") from None
    if metadata.get("format") != FORMAT:
        raise SavedStateError(str(path), "was not written by save()")
    if metadata["checksum"] != _checksum(state):
        raise SavedStateError(str(path), "was changed since: its checksum does not match")
    said, here = (metadata["spec"], metadata["exchange"]), (exchange.spec, exchange.name)
    if said != here:
        problem = f"was saved with {said[0]} by {said[1]}, here is {here[0]} by {here[1]}"
        raise SavedStateError(str(path), problem)
    return state, int(metadata["num_workers"])


def _checksum(state: dict[str, Tensor]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for key in sorted(state):
        digest.update(f"{key}:{tuple(state[key].shape)}".encode())
        digest.update(state[key].contiguous().numpy().tobytes())
    return digest.hexdigest()

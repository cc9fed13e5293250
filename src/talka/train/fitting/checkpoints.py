"""Checkpoints: a folder per save that is complete once its `checkpoint.json` exists.

    FOLDER/step-00000300/model.safetensors      the model, plain: it can be loaded without talka
                         best.safetensors       the best model so far, with `patience`
                         worker-R.safetensors   optimizer, random numbers and position of rank R
                         rank-R.safetensors     what the rhythm of rank R keeps (`rhythm.load`)
                         checkpoint.json        checksums of all files; written last

Each rank writes and reads its own files, so machines need no common disk. Two saves are kept.
"""

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import safetensors.torch
from torch import Tensor

from talka.channels import Group
from talka.errors import PeerFailedError, SavedStateError, TalkaError, output_error
from talka.train.fitting.state_files import (
    checksum,
    read_nested,
    values_bytes,
    write_bytes,
    write_nested,
)

MANIFEST: Final = "checkpoint.json"
FORMAT: Final = "talka-fit-1"
_NAME: Final = re.compile(r"step-\d{8,}")
_KEPT: Final = 2


@dataclass(slots=True)
class Content:
    """Everything that a training continues from, on one rank."""

    common: dict[str, Any]
    """Plain values that are the same on all ranks: the record, and what has to match."""
    model: dict[str, Tensor]
    best: dict[str, Tensor] | None
    own: dict[str, Any]
    """Nested values of this rank: its optimizer, random numbers, position and own parameters."""
    rhythm: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Result of `rhythm.state_dict`; `rhythm.load` reads it from the folder."""


def save(folder: Path, step: int, content: Content, group: Group) -> None:
    """Write a checkpoint; all workers must call it. Either it is whole, or all of them raise."""
    target = folder / f"step-{step:08d}"
    checksums: dict[str, str] = {}
    problem: Exception | None = None
    try:
        _write(target, content, group.rank, checksums)
    except OSError as error:
        problem = output_error(target, error, "Earlier checkpoints are whole.")
    except TalkaError as error:
        problem = error
    rows = group.all_gather([_text(problem), checksums])
    if problem is None and group.rank == 0 and not any(text for text, _ in rows):
        try:
            _write_manifest(target, content.common, [files for _, files in rows])
        except OSError as error:
            problem = output_error(target, error, "Earlier checkpoints are whole.")
    problems = [text for text, _ in rows]
    problems[0] = problems[0] or group.broadcast(_text(problem))
    failed = next((rank for rank, text in enumerate(problems) if text), None)
    if failed is not None:
        _remove(target, group.rank)
        raise problem or PeerFailedError(failed, problems[failed])
    for name in _saves(folder)[:-_KEPT]:
        _remove(folder / name, group.rank)


def _text(problem: Exception | None) -> str:
    return "" if problem is None else f"{type(problem).__name__}: {problem}"


def _write(target: Path, content: Content, rank: int, checksums: dict[str, str]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    (target / MANIFEST).unlink(missing_ok=True)  # of a former run that came as far
    if rank == 0:
        name = "model.safetensors"
        checksums[name] = write_bytes(target / name, values_bytes(content.model))
        if content.best is not None:
            name = "best.safetensors"
            checksums[name] = write_bytes(target / name, values_bytes(content.best))
    name = f"rank-{rank}.safetensors"
    checksums[name] = write_bytes(target / name, safetensors.torch.save(**content.rhythm))
    name = f"worker-{rank}.safetensors"
    checksums[name] = write_nested(target / name, content.own)


def _write_manifest(target: Path, common: Mapping[str, Any], checksums: list[Any]) -> None:
    files = {name: text for of_rank in checksums for name, text in of_rank.items()}
    body = {"format": FORMAT, "num_workers": len(checksums), "files": files, "common": common}
    whole = {"checksum": _digest(body), **body}
    write_bytes(target / MANIFEST, json.dumps(whole, indent=1).encode())


def _digest(body: Mapping[str, Any]) -> str:
    return checksum(json.dumps(body, sort_keys=True).encode())


def _remove(target: Path, rank: int) -> None:
    """Remove this rank's files of a checkpoint; the manifest first, as it is no longer whole then."""
    own = [f"rank-{rank}.safetensors", f"worker-{rank}.safetensors"]
    if rank == 0:
        own = [MANIFEST, "model.safetensors", "best.safetensors", *own]
    with contextlib.suppress(OSError):  # what is left is not complete, and is ignored
        for name in own:
            (target / name).unlink(missing_ok=True)
        target.rmdir()  # the last rank of each disk


def _saves(folder: Path) -> list[str]:
    """Return the names of saves in a folder, the latest last."""
    if not folder.is_dir():
        return []
    names = [path.name for path in folder.iterdir() if _NAME.fullmatch(path.name)]
    return sorted(names, key=lambda name: (len(name), name))


def later_saves(folder: Path, step: int) -> list[str]:
    """Return the names of saves after a step."""
    return [name for name in _saves(folder) if int(name.removeprefix("step-")) > step]


@dataclass(frozen=True, slots=True)
class Found:
    """A complete checkpoint, whose manifest was checked."""

    folder: Path
    """Folder of this save."""
    num_workers: int
    files: dict[str, str]
    """Checksum of each file."""
    common: dict[str, Any]

    def read(self, name: str) -> bytes:
        """Return a file. Raises SavedStateError if it is missing or was changed."""
        path = self.folder / name
        try:
            data = path.read_bytes()
        except OSError as error:
            problem = f"cannot be read on this machine ({error.strerror})"
            raise SavedStateError(str(path), problem) from None
        if checksum(data) != self.files.get(name):
            problem = "was changed after it was saved: its checksum does not match"
            raise SavedStateError(str(path), problem)
        return data


def find(folder: Path, group: Group) -> Found:
    """Return the latest complete checkpoint in a folder, or the one that it is; as rank 0 sees it."""
    seen: dict[str, Any] = {}
    if group.rank == 0:
        try:
            name, found = _latest(folder)
            seen = {"name": name, "manifest": found}
        except SavedStateError as error:
            seen = {"path": error.path, "problem": error.problem}
    seen = group.broadcast(seen)
    if "problem" in seen:
        raise SavedStateError(seen["path"], seen["problem"])
    manifest = seen["manifest"]
    return Found(
        folder / seen["name"], manifest["num_workers"], manifest["files"], manifest["common"]
    )


def _latest(folder: Path) -> tuple[str, dict[str, Any]]:
    if (folder / MANIFEST).exists():
        return ".", _manifest(folder / MANIFEST)
    whole = [name for name in _saves(folder) if (folder / name / MANIFEST).exists()]
    if not whole:
        raise SavedStateError(str(folder), "has no complete checkpoint")
    try:
        return whole[-1], _manifest(folder / whole[-1] / MANIFEST)
    except SavedStateError as error:
        if len(whole) == 1:
            raise
        hint = f"{error.problem}; the one before is resume={str(folder / whole[-2])!r}"
        raise SavedStateError(error.path, hint) from None


def _manifest(path: Path) -> dict[str, Any]:
    try:
        body = json.loads(path.read_bytes())
        text = body.pop("checksum")
        is_whole = text == _digest(body) and body["format"] == FORMAT
    except (OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError):
        is_whole = False
    if not is_whole:
        raise SavedStateError(str(path), "is damaged, or was not written by this version of fit")
    return dict(body)


def load(found: Found, group: Group) -> Content:
    """Read the files of this rank, or those of rank 0 if the number of workers was different.

    Raises an error on all ranks if one cannot read its files.
    """
    problem: SavedStateError | None = None
    content: Content | None = None
    try:
        content = _read(found, group.rank if found.num_workers == group.size else 0)
    except SavedStateError as error:
        problem = error
    raise_together(problem, group, str(found.folder))
    assert content is not None
    return content


def raise_together(problem: SavedStateError | None, group: Group, path: str) -> None:
    """Raise the problem of this rank, or an error if another rank has one."""
    rows = group.all_gather(_text(problem))
    if problem is not None:
        raise problem
    failed = next((rank for rank, text in enumerate(rows) if text), None)
    if failed is not None:
        raise SavedStateError(path, f"was refused on rank {failed} ({rows[failed]})")


def _read(found: Found, rank: int) -> Content:
    name = f"worker-{rank}.safetensors"
    try:
        own = read_nested(found.read(name))
        model = safetensors.torch.load(found.read("model.safetensors")) if rank == 0 else {}
        is_best_kept = "best.safetensors" in found.files and rank == 0
        best = safetensors.torch.load(found.read("best.safetensors")) if is_best_kept else None
    except (ValueError, safetensors.SafetensorError) as error:
        raise SavedStateError(str(found.folder), f"is damaged: {error}") from None
    if f"rank-{rank}.safetensors" in found.files:
        found.read(f"rank-{rank}.safetensors")  # the rhythm reads it again
    return Content(found.common, model, best, own)

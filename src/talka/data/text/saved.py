"""Vocabulary and pairs on disk, so that a resumed job does not have to count again.

`pairs.json` is written last and holds the checksums of the other two files, so a folder is either
complete or not used at all.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.data.text.pair_blocks import PAIR, PairBlocks
from talka.data.text.resources import Advance, ignore_progress
from talka.data.text.vocabulary import Vocabulary
from talka.errors import SavedStateError, output_error
from talka.files import whole_file, write_whole

_FORMAT_VERSION = 1
_VOCABULARY, _PAIRS, _ABOUT = "vocabulary.arrow", "pairs.bin", "pairs.json"
_PART_BYTES = 1 << 24


class Counted(NamedTuple):
    """The vocabulary and the co-occurrence pairs of a text."""

    vocabulary: Vocabulary
    pairs: PairBlocks
    about: dict[str, Any]
    """Facts about the text and the options, as passed to `save_counted`."""


def save_counted(
    folder: Path,
    vocabulary: Vocabulary,
    pairs: PairBlocks,
    *,
    about: Mapping[str, Any],
    advance: Advance = ignore_progress,
) -> None:
    """Write vocabulary and pairs into a folder.

    `about` must be plain JSON; `advance` is called with the number of bytes of pairs written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _ABOUT).unlink(missing_ok=True)  # from here on the folder is incomplete
        vocabulary.save(folder / _VOCABULARY)
        saved = {
            "form": _FORMAT_VERSION,
            "num_words": pairs.num_words,
            "block_edge": pairs.block_edge,
            "blocks": pairs.index.tolist(),
            "sha256": {
                _VOCABULARY: _file_checksum(folder / _VOCABULARY),
                _PAIRS: _write_pairs(folder / _PAIRS, pairs, advance),
            },
            "about": dict(about),
        }
        write_whole(folder / _ABOUT, json.dumps(saved))
    except OSError as error:
        raise output_error(folder, error, "Check permissions and free space.") from error


def load_counted(folder: Path, *, advance: Advance = ignore_progress) -> Counted:
    """Load what `save_counted` wrote; the pairs are memory-mapped."""
    saved = _read_about(folder / _ABOUT)
    for name, expected in saved["sha256"].items():
        if not (folder / name).is_file():
            raise SavedStateError(str(folder / name), "is missing")
        if _file_checksum(folder / name, advance) != expected:
            raise SavedStateError(str(folder / name), "is damaged (its checksum does not match)")
    pairs = PairBlocks(
        np.memmap(folder / _PAIRS, PAIR, mode="r"),
        np.array(saved["blocks"], np.int64),
        num_words=saved["num_words"],
        block_edge=saved["block_edge"],
    )
    return Counted(Vocabulary.load(folder / _VOCABULARY), pairs, saved["about"])


def _read_about(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise SavedStateError(str(path), "is missing: counting did not finish")
    try:
        saved: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = saved["form"]
    except (ValueError, TypeError, KeyError) as error:
        raise SavedStateError(str(path), f"is damaged ({error})") from error
    if version != _FORMAT_VERSION:
        problem = f"has format version {version!r}, which this version of talka does not support"
        raise SavedStateError(str(path), problem)
    return saved


def _write_pairs(path: Path, pairs: PairBlocks, advance: Advance) -> str:
    checksum = hashlib.sha256()
    with whole_file(path) as beside, open(beside, "wb") as file:
        for part in _parts(pairs.pairs):
            file.write(part)
            checksum.update(part)
            advance(len(part))
    return checksum.hexdigest()


def _parts(pairs: NDArray[Any]) -> Iterator[memoryview]:
    whole = pairs.view(np.uint8).data
    for start in range(0, len(whole), _PART_BYTES):
        yield whole[start : start + _PART_BYTES]


def _file_checksum(path: Path, advance: Advance = ignore_progress) -> str:
    checksum = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(_PART_BYTES):
            checksum.update(part)
            advance(len(part))
    return checksum.hexdigest()

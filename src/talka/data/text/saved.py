"""What was counted, on disk: so that a job that was killed need not count again.

`pairs.json` is written last and holds the checksums of the other two, so a folder is either whole
or has nothing to go on from.
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

_FORM = 1
_VOCABULARY, _PAIRS, _ABOUT = "vocabulary.arrow", "pairs.bin", "pairs.json"
_PART_BYTES = 1 << 24


class Counted(NamedTuple):
    vocabulary: Vocabulary
    pairs: PairBlocks
    about: dict[str, Any]
    """What `save_counted` was told about the text and the options."""


def save_counted(
    folder: Path,
    vocabulary: Vocabulary,
    pairs: PairBlocks,
    *,
    about: Mapping[str, Any],
    advance: Advance = ignore_progress,
) -> None:
    """Write everything into a folder; `about` is plain JSON, `advance` gets bytes of pairs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _ABOUT).unlink(missing_ok=True)  # from here on the folder holds nothing whole
        vocabulary.save(folder / _VOCABULARY)
        saved = {
            "form": _FORM,
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
    """Read what `save_counted` wrote; the pairs are mapped, not read into memory."""
    saved = _read_about(folder / _ABOUT)
    for name, expected in saved["sha256"].items():
        if not (folder / name).is_file():
            raise SavedStateError(str(folder / name), "is missing")
        if _file_checksum(folder / name, advance) != expected:
            raise SavedStateError(str(folder / name), "is damaged (its checksum is another one)")
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
        form = saved["form"]
    except (ValueError, TypeError, KeyError) as error:
        raise SavedStateError(str(path), f"is damaged ({error})") from error
    if form != _FORM:
        raise SavedStateError(str(path), f"has form {form!r}, which this version does not know")
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

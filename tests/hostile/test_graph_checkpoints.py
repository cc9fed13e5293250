"""No checkpoint, however it was forged, does more than be refused or be resumed from."""

import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from talka.engine import storage
from talka.errors import PayloadError

ROOT = Path(__file__).parents[2]


def test_forged_checkpoints_are_refused_or_resumed():
    """In a process of its own, because a crash would take this one along."""
    code = "from tests.hostile.graph_checkpoints import attack; print(attack(300, seed=7))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    assert "refused=" in done.stdout


def test_arrow_data_of_others_is_validated():
    strings = pa.table({"name": ["first", "second", "third"]})
    blob = bytearray(storage.to_buffer(strings).to_pybytes())
    offsets = np.array([0, 5, 11, 16], np.int32).tobytes()
    at = bytes(blob).index(offsets)
    assert storage.from_foreign(bytes(blob), is_packed=False).equals(strings)
    blob[at + 4 : at + 8] = (2**30).to_bytes(4, "little")  # far outside of the characters
    with pytest.raises(PayloadError, match="cannot be read"):
        storage.from_foreign(bytes(blob), is_packed=False)


@pytest.mark.parametrize("value", [None, 1, "x", (1, (2.5, [3])), {"a": [np.float32(1)]}])
def test_plain_values_of_others_are_read(value):
    assert storage.from_foreign(storage.pack(value).data, is_packed=True) == value


def test_plain_values_that_are_nested_too_deep_are_refused():
    data = storage.pack(()).data
    for _ in range(500):
        inner = b"\x91" + data  # a list of one
        data = b"\xc9" + len(inner).to_bytes(4, "big") + b"\x01" + inner  # as a tuple
    with pytest.raises(PayloadError, match="nested too deep"):
        storage.from_foreign(data, is_packed=True)


def test_bytes_that_are_nothing_are_refused():
    for data in (b"", b"\xc1", b"ARROW1", bytes(100), zlib.compress(b"x")):
        with pytest.raises(PayloadError):
            storage.from_foreign(data, is_packed=False)
    with pytest.raises(PayloadError):
        storage.from_foreign(b"\xc1", is_packed=True)

"""Payloads: the bytes that are sent, one header and then sections.

    header   2 bytes "tk", version, code of the compressor, checksum (4), values (8), bytes (8)
    section  values (4), bytes of its body (4, the highest bit set: raw float32), body, padding to 4

All numbers are little-endian. The checksum covers everything else, so a payload that was truncated
or changed in transit is refused before anything is decoded.
"""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from talka.compress.bits.checksum import checksum
from talka.errors import PayloadError

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

HEADER = struct.Struct("<2sBBIQQ")
SECTION = struct.Struct("<II")
CHECKED_FROM = 8  # the checksum stands at bytes 4 to 8
MAGIC, VERSION = b"tk", 2
RAW = 1 << 31
MAX_SECTION_VALUES = 1 << 28  # its raw form still fits into 31 bits


class Payload:
    """The result of an encoding: one uint8 tensor with its own header, sent as it is."""

    __slots__ = ("data",)

    def __init__(self, data: Tensor) -> None:
        self.data = data

    @property
    def num_bytes(self) -> int:
        return self.data.numel()

    @classmethod
    def from_bytes(
        cls, data: "bytes | bytearray | memoryview | Tensor | NDArray[Any]"
    ) -> "Payload":
        """Return a checked payload from received bytes, which may be longer than the payload."""
        if isinstance(data, Tensor):
            received = data.detach().cpu().reshape(-1)
        else:
            received = torch.from_numpy(np.frombuffer(bytearray(data), np.uint8))
        if received.dtype != torch.uint8:
            raise PayloadError("is not a uint8 tensor")
        payload = cls(received[: _header(received.numpy()).num_bytes])
        payload.check()
        return payload

    @property
    def header(self) -> "PayloadHeader":
        return _header(self.data.numpy())

    def check(self) -> "PayloadHeader":
        """Return the header, or raise PayloadError if length or checksum do not match it."""
        data = self.data.numpy()
        header = _header(data)
        if header.num_bytes != len(data):
            raise PayloadError(f"has {len(data)} bytes, but {header.num_bytes} by its header")
        if seal_of(data) != header.checksum:
            raise PayloadError("was changed in transit: its checksum does not match")
        return header


class PayloadHeader(NamedTuple):
    """The fields of a header that vary."""

    code: int
    checksum: int
    num_values: int
    num_bytes: int


class PayloadSection(NamedTuple):
    """One section of a payload."""

    start: int
    """Index of its first value in the whole vector."""
    num_values: int
    raw: bool
    body: Bytes


def padded(num_bytes: int) -> int:
    """Round up to a multiple of 4: floats in sections can then be viewed in place."""
    return (num_bytes + 3) & ~3


def seal_of(data: Bytes) -> int:
    """Return the checksum for the header: of all bytes after it, and of the code before it."""
    return checksum(data[CHECKED_FROM:]) ^ int(data[3])


def _header(data: Bytes) -> PayloadHeader:
    if len(data) < HEADER.size:
        raise PayloadError(f"has {len(data)} bytes, fewer than its header")
    magic, version, code, check, num_values, num_bytes = HEADER.unpack_from(data.data)
    if magic != MAGIC or version != VERSION:
        raise PayloadError("does not begin with the mark and version of a payload")
    if not HEADER.size <= num_bytes <= len(data):
        raise PayloadError(f"has {len(data)} bytes, but {num_bytes} by its header")
    return PayloadHeader(code, check, num_values, num_bytes)


class PayloadWriter:
    """Writes a payload into a buffer, section by section; `finish` writes the header."""

    def __init__(self, buffer: Bytes, code: int) -> None:
        self._buffer, self._code = buffer, code
        self._used, self._num_values = HEADER.size, 0

    def room(self) -> Bytes:
        """Return the free part of the buffer, where the body of the next section is written."""
        return self._buffer[self._used + SECTION.size :]

    def close_section(self, num_values: int, num_bytes: int, *, raw: bool = False) -> None:
        """End a section whose body was written to `room`, and write its length before it."""
        SECTION.pack_into(
            self._buffer.data, self._used, num_values, num_bytes | (RAW if raw else 0)
        )
        end = self._used + SECTION.size + num_bytes
        self._used += SECTION.size + padded(num_bytes)
        self._buffer[end : self._used] = 0
        self._num_values += num_values

    def raw_section(self, values: Floats) -> None:
        """Write a section of uncompressed float32 values."""
        self.room()[: 4 * len(values)].view(np.float32)[:] = values
        self.close_section(len(values), 4 * len(values), raw=True)

    def finish(self) -> Bytes:
        """Write the header, and return all bytes of the payload."""
        data = self._buffer[: self._used]
        HEADER.pack_into(data.data, 0, MAGIC, VERSION, self._code, 0, self._num_values, self._used)
        struct.pack_into("<I", data.data, 4, seal_of(data))
        return data


def sections(payload: Payload, *, code: int, num_values: int) -> Iterator[PayloadSection]:
    """Check a payload that has to hold `num_values` values, and yield its sections."""
    header = payload.check()
    if header.code != code:
        raise PayloadError(f"was made by compressor {header.code}, not by {code}")
    if header.num_values != num_values:
        raise PayloadError(f"holds {header.num_values} values, not {num_values}")
    data = payload.data.numpy()
    at, start = HEADER.size, 0
    while at < len(data):
        if at + SECTION.size > len(data):
            raise PayloadError("ends inside a section")
        count, size = SECTION.unpack_from(data.data, at)
        raw, size = bool(size & RAW), size & ~RAW
        at += SECTION.size
        if at + size > len(data) or start + count > num_values or (raw and size != 4 * count):
            raise PayloadError("has a section that does not fit into it")
        yield PayloadSection(start, count, raw, data[at : at + size])
        at, start = at + padded(size), start + count
    if start != num_values:
        raise PayloadError(f"has sections for {start} of {num_values} values")

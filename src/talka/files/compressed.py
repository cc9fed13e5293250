"""Decompression of gzip and zstd streams in pieces of bounded size."""

import zlib
from collections.abc import Iterator
from itertools import chain

import zstandard

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_GULP_BYTES = 1 << 20
_SIP_BYTES = 1 << 12  # four bytes of zstd may expand to 128 kB, so the input pieces must be small

DAMAGED = (zlib.error, zstandard.ZstdError, EOFError)
"""Exceptions that a damaged or truncated file raises."""


def unpacked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress gzip and zstd, recognised by their first bytes, and yield other data unchanged.

    No UTF-8 text starts with these bytes.

    >>> import gzip
    >>> b"".join(unpacked(iter([gzip.compress(b"two "), gzip.compress(b"members")])))
    b'two members'
    """
    first = next(pieces, b"")
    whole = chain([first], pieces)
    packing = packing_of(first)
    return _gunzip(whole) if packing == "gzip" else _unzstd(whole) if packing == "zstd" else whole


def packing_of(first: bytes) -> str | None:
    """Return "gzip", "zstd" or None, by the first bytes of a file."""
    return "gzip" if first.startswith(_GZIP) else "zstd" if first.startswith(_ZSTD) else None


def _gunzip(pieces: Iterator[bytes]) -> Iterator[bytes]:
    decoder = zlib.decompressobj(wbits=31)
    for piece in pieces:
        while piece:
            if decoder.eof:
                piece = piece.lstrip(b"\0")  # some tools pad the last block with zeros
                if not piece:
                    break
                decoder = zlib.decompressobj(wbits=31)
            yield decoder.decompress(piece, _GULP_BYTES)
            piece = decoder.unconsumed_tail or decoder.unused_data
    yield decoder.flush()
    if not decoder.eof:
        raise EOFError("it ends too early")


def _unzstd(pieces: Iterator[bytes]) -> Iterator[bytes]:
    decoder = zstandard.ZstdDecompressor().decompressobj()
    for piece in pieces:
        for start in range(0, len(piece), _SIP_BYTES):
            sip = piece[start : start + _SIP_BYTES]
            while sip:
                if decoder.eof:
                    decoder = zstandard.ZstdDecompressor().decompressobj()
                yield decoder.decompress(sip)
                sip = decoder.unused_data
    if not decoder.eof:
        raise EOFError("it ends too early")

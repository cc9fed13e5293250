"""Numbers of tags and groups in messages, which all ranks compute alike."""

import hashlib
from typing import Final

from talka.errors import InvalidValueError

_TEXT: Final = 1 << 62
"""Bit of the number of a tag that is text."""


def tag_number(tag: int | str) -> int:
    """Return the number of a tag in messages.

    >>> tag_number(7), tag_number("gradients") == tag_number("gradients")
    (7, True)
    """
    if isinstance(tag, str):
        digest = hashlib.blake2b(tag.encode(), digest_size=7).digest()
        return _TEXT | int.from_bytes(digest, "big")
    if not 0 <= tag < _TEXT:
        raise InvalidValueError("tag", tag, "text, or a whole number from 0 to 2^62 - 1")
    return tag


def context_of(ranks: tuple[int, ...], number: int, name: str) -> int:
    """Return the number of a group, which its members compute without a message."""
    text = f"{name} {number} {ranks}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")

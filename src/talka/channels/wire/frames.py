"""Headers of messages, and the limits that a receiver checks before it allocates memory.

A message is a header of 32 bytes, a description of at most 64 KiB, and a body:

    data     the body follows in the stream
    remote   the body, or its first part, is in the memory of the sender: the receiver reads it there
    part     the next part of a remote message; the tag is the number of its first part
    cancel   the sender gave up a remote message before all its parts; the tag is as for a part
    done     the receiver has read the part with this number
    bye      the sender closes its channels in an orderly way
    lost     the sender has lost the rank in the tag: collectives with it fail everywhere
    alive    the sender is running; sent if a limit for silence is set
"""

import enum
import struct
from typing import Final, NamedTuple

from talka.errors import FrameError

MAGIC: Final = b"tk"
HEADER: Final = struct.Struct("<2sBxIQQQ")
REMOTE_PART: Final = struct.Struct("<QQQ")
"""Address in the sender's memory, number and length of a part, before the description."""
MAX_DESCRIPTION_BYTES: Final = 1 << 16
MAX_MESSAGE_BYTES: Final = 1 << 34


class FrameKind(enum.IntEnum):
    """What a frame is for; see the module."""

    DATA = 1
    REMOTE = 2
    PART = 3
    DONE = 4
    BYE = 5
    ALIVE = 6
    CANCEL = 7
    LOST = 8


_BY_NUMBER: Final = {int(kind): kind for kind in FrameKind}


class FrameHeader(NamedTuple):
    """The fixed part of a message."""

    kind: FrameKind
    description_bytes: int
    context: int
    """Number of the group or exchange that the message belongs to."""
    tag: int
    body_bytes: int


def packed_header(
    kind: FrameKind,
    *,
    description_bytes: int = 0,
    context: int = 0,
    tag: int = 0,
    body_bytes: int = 0,
) -> bytes:
    """Return the bytes of a header."""
    return HEADER.pack(MAGIC, kind, description_bytes, context, tag, body_bytes)


def parse_header(data: "bytes | bytearray | memoryview", max_message_bytes: int) -> FrameHeader:
    """Return the header at the start of `data`; raise FrameError if it is not valid.

    >>> parse_header(packed_header(FrameKind.DATA, tag=7, body_bytes=3), 100)
    FrameHeader(kind=<FrameKind.DATA: 1>, description_bytes=0, context=0, tag=7, body_bytes=3)
    """
    magic, number, description_bytes, context, tag, body_bytes = HEADER.unpack_from(data)
    kind = _BY_NUMBER.get(number)
    if magic != MAGIC or kind is None:
        raise FrameError("has no valid header")
    if description_bytes > MAX_DESCRIPTION_BYTES:
        raise FrameError(f"has a description of {description_bytes} bytes")
    if body_bytes > max_message_bytes:
        raise FrameError(f"announces {body_bytes} bytes, more than {max_message_bytes}")
    if kind in (FrameKind.REMOTE, FrameKind.PART) and description_bytes < REMOTE_PART.size:
        raise FrameError("lacks the address of its body")
    if kind > FrameKind.REMOTE and body_bytes:
        raise FrameError(f"of kind {kind.name} has a body")
    return FrameHeader(kind, description_bytes, context, tag, body_bytes)

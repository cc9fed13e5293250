"""Options of the messages of a job."""

from dataclasses import dataclass

from talka.channels.wire.frames import MAX_MESSAGE_BYTES


@dataclass(frozen=True, kw_only=True, slots=True)
class MailboxOptions:
    """Limits and security of a mailbox; all processes of a job should have the same."""

    buffer_bytes: int = 1 << 26
    """Bytes that may wait for one receiver before `send` blocks."""
    inbox_bytes: int = 1 << 28
    """Bytes of messages without a receive, from which on links are not read."""
    max_message_bytes: int = MAX_MESSAGE_BYTES
    """Largest body; a longer one is refused before memory is allocated for it."""
    silence_s: float | None = None
    """Seconds without any sign of life after which a rank counts as lost; None for no limit."""
    encrypt: bool = False
    """Encrypt messages between machines (CURVE, by ZeroMQ)."""
    connect_s: float = 60.0
    """Seconds to wait for another rank to appear."""

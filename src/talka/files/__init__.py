"""Files: written whole or not at all, without a name, or compressed."""

from talka.files.unnamed import UnnamedFile, unnamed_file
from talka.files.writing import (
    TEMPORARY_NAME,
    errors_about,
    is_at,
    lock_now,
    whole_file,
    write_whole,
)

__all__ = [
    "TEMPORARY_NAME",
    "UnnamedFile",
    "errors_about",
    "is_at",
    "lock_now",
    "unnamed_file",
    "whole_file",
    "write_whole",
]

"""Files that are written completely or not at all, unnamed files, compressed files, cache folders."""

from talka.files.cache_folder import cache_folder
from talka.files.unnamed import UnnamedFile, temporary_folder, unnamed_file
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
    "cache_folder",
    "errors_about",
    "is_at",
    "lock_now",
    "temporary_folder",
    "unnamed_file",
    "whole_file",
    "write_whole",
]

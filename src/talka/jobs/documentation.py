"""A corpus that every machine has: the documentation in the installed Python packages."""

import re
import sysconfig
from collections.abc import Sequence
from pathlib import Path

_DOCSTRING = re.compile(r'"""(.*?)"""', re.DOTALL)


def documentation_files() -> list[Path]:
    """Return the Python source files of all installed packages, in a stable order."""
    root = Path(sysconfig.get_path("purelib"))
    return sorted(path for path in root.rglob("*.py") if path.is_file())


def documentation_in(files: Sequence[str]) -> str:
    """Return the text between triple quotes in these files, one paragraph per docstring."""
    texts = []
    for file in files:
        source = Path(file).read_text(encoding="utf-8", errors="replace")
        texts += _DOCSTRING.findall(source)
    return "\n".join(texts)


def in_shares(files: Sequence[Path], num_shares: int) -> list[list[str]]:
    """Split files into shares with about the same number of bytes.

    >>> in_shares([], 3)
    []
    """
    sizes = [file.stat().st_size for file in files]
    share_bytes = max(1, -(-sum(sizes) // num_shares))
    shares: list[list[str]] = []
    seen = 0
    for file, size in zip(files, sizes, strict=True):
        if seen // share_bytes >= len(shares):
            shares.append([])
        shares[-1].append(str(file))
        seen += size
    return shares

"""Reject unsupported formats by name or first bytes, and suggest what to do instead."""

import re
from pathlib import Path

from talka.errors import EdgeFileError
from talka.inputs import name_of

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*):/", re.IGNORECASE)
_CONVERT = (
    "Convert it to a list of edges first, for example with networkx: "
    'nx.write_weighted_edgelist(nx.read_graphml("in.graphml"), "edges.txt").'
)
_ENDINGS = {
    ".bz2": ("it is compressed by bzip2", "Decompress it: bzcat FILE | talka graph ALGORITHM -."),
    ".xz": ("it is compressed by xz", "Decompress it: xzcat FILE | talka graph ALGORITHM -."),
    ".zip": ("it is a zip archive", "Unpack it: unzip -p FILE | talka graph ALGORITHM -."),
    ".graphml": ("it is GraphML", _CONVERT),
    ".gexf": ("it is GEXF", _CONVERT),
    ".gml": ("it is GML", _CONVERT),
    ".xml": ("it is XML", _CONVERT),
}
_BEGINNINGS = {
    b"BZh": _ENDINGS[".bz2"],
    b"\xfd7zXZ\0": _ENDINGS[".xz"],
    b"PK\x03\x04": _ENDINGS[".zip"],
    b"<?xml": _ENDINGS[".xml"],
    b"<graphml": _ENDINGS[".graphml"],
    b"PAR1": ("it is Parquet", "Use the format parquet, or a name that ends in .parquet."),
    b"ARROW1": ("it is Arrow", "Use the format arrow, or a name that ends in .arrow."),
}
_FETCH = {
    "s3": "aws s3 cp ADDRESS - | talka graph ALGORITHM -.",
    "gs": "gcloud storage cat ADDRESS | talka graph ALGORITHM -.",
}
_FETCH_ANY = "curl -L ADDRESS | talka graph ALGORITHM -."


def refuse_address(path: Path | str) -> None:
    """Raise EdgeFileError for `https://...`, `s3://...` and other addresses."""
    address = _ADDRESS.match(str(path))
    if address is not None:
        advice = f"Fetch it first: {_FETCH.get(address[1].lower(), _FETCH_ANY)}"
        raise EdgeFileError(str(path), None, "it is an address, not a file", advice)


def refuse_ending(path: Path) -> None:
    """Raise EdgeFileError if the name of a file has the ending of an unsupported format."""
    name = path.name.lower().removesuffix(".gz").removesuffix(".zst")
    for ending, (problem, advice) in _ENDINGS.items():
        if name.endswith(ending):
            raise EdgeFileError(name_of(path), None, f"{problem}, which is not supported", advice)


def refuse_beginning(path: Path, text: bytes) -> None:
    """Raise EdgeFileError if a text file begins with the bytes of another format."""
    for beginning, (problem, advice) in _BEGINNINGS.items():
        if text.startswith(beginning):
            raise EdgeFileError(name_of(path), None, f"{problem}, not text", advice)

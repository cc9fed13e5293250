"""What is not read, refused by its name or its first bytes, with what to do instead."""

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
    ".bz2": ("it is packed by bzip2", "Unpack it: bzcat FILE | talka graph ALGORITHM -."),
    ".xz": ("it is packed by xz", "Unpack it: xzcat FILE | talka graph ALGORITHM -."),
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
    b"PAR1": ("it is Parquet", "Say so by the format parquet, or by a name that ends in .parquet."),
    b"ARROW1": ("it is Arrow", "Say so by the format arrow, or by a name that ends in .arrow."),
}
_FETCH = {
    "s3": "aws s3 cp ADDRESS - | talka graph ALGORITHM -.",
    "gs": "gcloud storage cat ADDRESS | talka graph ALGORITHM -.",
}
_FETCH_ANY = "curl -L ADDRESS | talka graph ALGORITHM -."


def refuse_address(given: Path | str) -> None:
    """Refuse `https://...`, `s3://...` and others of the kind."""
    found = _ADDRESS.match(str(given))
    if found is not None:
        advice = f"Fetch it first: {_FETCH.get(found[1].lower(), _FETCH_ANY)}"
        raise EdgeFileError(str(given), None, "it is an address, not a file", advice)


def refuse_ending(path: Path) -> None:
    """Refuse a file whose name says that it is packed or written in a way that is not read."""
    name = path.name.lower().removesuffix(".gz").removesuffix(".zst")
    for ending, (problem, advice) in _ENDINGS.items():
        if name.endswith(ending):
            raise EdgeFileError(name_of(path), None, f"{problem}, which is not read", advice)


def refuse_beginning(path: Path, text: bytes) -> None:
    """Refuse what should be text and begins as something else does."""
    for beginning, (problem, advice) in _BEGINNINGS.items():
        if text.startswith(beginning):
            raise EdgeFileError(name_of(path), None, f"{problem}, not text", advice)

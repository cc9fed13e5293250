"""Tokenizers: which characters form words.

A built-in tokenizer is a table that maps each code point to the code point it becomes inside a
word, or to 0 if it separates words. The kernels in `word_kernels.py` use that table. A function
from a line to its words works too, at the speed of Python.
"""

import functools
import re
import sys
import unicodedata
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from talka.errors import UnknownNameError

TokenizeLine = Callable[[str], list[str]]
CharMap = NDArray[np.int32]

_NUM_CODE_POINTS: Final = sys.maxunicode + 1
# The two letters that cannot be lower-cased one by one: a final sigma depends on its neighbours, a
# dotted capital I becomes two code points.
_CAPITAL_SIGMA, _CAPITAL_DOTTED_I = "\u03a3", "\u0130"
_SPECIAL: Final = re.compile(f"[{_CAPITAL_SIGMA}{_CAPITAL_DOTTED_I}]")
_SPECIAL_BYTES: Final = (_CAPITAL_SIGMA.encode(), _CAPITAL_DOTTED_I.encode())


def _words() -> CharMap:
    """Return the table for letters, marks and digits of any script, lower-cased.

    A mark belongs to its letter: without marks most words of Hindi would be split.
    """
    char_map = np.zeros(_NUM_CODE_POINTS, np.int32)
    for code_point in range(_NUM_CODE_POINTS):
        if unicodedata.category(chr(code_point))[0] in "LMN":
            lower = chr(code_point).lower()
            char_map[code_point] = ord(lower) if len(lower) == 1 else code_point
    return char_map


def _letters() -> CharMap:
    """Return the table for a to z, lower-cased; all other characters separate words."""
    char_map = np.zeros(_NUM_CODE_POINTS, np.int32)
    char_map[ord("A") : ord("Z") + 1] = char_map[ord("a") : ord("z") + 1] = range(97, 123)
    return char_map


def _whitespace() -> CharMap:
    """Return the table that separates words at white space and leaves them unchanged."""
    char_map = np.arange(_NUM_CODE_POINTS, dtype=np.int32)
    spaces = [point for point in range(0x10000) if chr(point).isspace()]
    char_map[spaces] = 0
    return char_map


TOKENIZERS: Final[dict[str, Callable[[], CharMap]]] = {
    "words": _words,
    "letters": _letters,
    "whitespace": _whitespace,
}


@functools.cache
def char_map_of(name: str) -> CharMap:
    """Return the table of a tokenizer: what each code point becomes, 0 if it separates words.

    >>> chr(char_map_of("words")[ord("\u0416")]), char_map_of("letters")[ord("5")]
    ('\u0436', np.int32(0))
    """
    if name not in TOKENIZERS:
        raise UnknownNameError("tokenizer", name, tuple(TOKENIZERS))
    char_map = TOKENIZERS[name]()
    char_map.flags.writeable = False
    return char_map


def lower_special_words(text: bytes, char_map: CharMap) -> bytes:
    """Lower-case the words that cannot be lower-cased by a table of code points.

    >>> lower_special_words("\u039f\u0394\u039f\u03a3 Abc".encode(), char_map_of("words")).decode()
    '\u03bf\u03b4\u03bf\u03c2 Abc'
    """
    lowers = char_map[ord(_CAPITAL_SIGMA)] == ord(_CAPITAL_SIGMA.lower())
    if not lowers or not any(special in text for special in _SPECIAL_BYTES):
        return text
    decoded = text.decode()
    parts, done = [], 0
    while (special := _SPECIAL.search(decoded, done)) is not None:
        start = stop = special.start()
        while start > done and char_map[ord(decoded[start - 1])]:
            start -= 1
        while stop < len(decoded) and char_map[ord(decoded[stop])]:
            stop += 1
        parts += [decoded[done:start], decoded[start:stop].lower()]
        done = stop
    return "".join([*parts, decoded[done:]]).encode()

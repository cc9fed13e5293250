"""Word counters: `WordTable` for built-in tokenizers, `FunctionTable` for Python functions.

A counter numbers words in the order of their first occurrence and converts text to these numbers.
`vocabulary.py` merges the numbers of several counters into one vocabulary.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from talka.data.text.tokens import CharMap, TokenizeLine, lower_special_words
from talka.data.text.word_kernels import (
    LINE_END,
    MAX_WORD_BYTES,
    OUTSIDE,
    WordArrays,
    count_ids,
    look_up_words,
    split_words,
)
from talka.errors import TokenizerError

Ids = NDArray[np.int32]
_FIRST_WORDS, _FIRST_LANES = 1 << 14, 1 << 15


class WordCounter(Protocol):
    """Counter of the words of a text; used by one thread at a time."""

    num_tokens: int
    """Number of words so far, including those too long to be counted."""

    @property
    def counts(self) -> NDArray[np.int64]: ...

    def count(self, text: bytes) -> Ids:
        """Count the words of a chunk; return their numbers in order, with a mark per line end."""
        ...

    def words(self, numbers: NDArray[np.int64]) -> list[str]: ...


class WordTable:
    """Counter for the built-in tokenizers: a hash table that grows around the kernels."""

    def __init__(self, char_map: CharMap) -> None:
        self._char_map = char_map
        self._ascii_map = np.zeros(256, np.uint8)
        self._ascii_map[:128] = char_map[:128]
        self._table = _new_table(_FIRST_WORDS, _FIRST_LANES)
        self._counts = np.zeros(_FIRST_WORDS, np.int64)
        self._words, self._ends = np.empty(0, np.uint64), np.empty(0, np.int32)
        self.num_tokens = 0

    @property
    def counts(self) -> NDArray[np.int64]:
        return self._counts[: self._table.num_words[0]]

    def count(self, text: bytes) -> Ids:
        lowered = np.frombuffer(lower_special_words(text, self._char_map), np.uint8)
        if len(self._ends) < len(lowered):
            self._words = np.empty(len(lowered) // 2 + 1, np.uint64)
            self._ends = np.empty(len(lowered), np.int32)
        num_ends = split_words(lowered, self._ascii_map, self._char_map, self._words, self._ends)
        ids = self._find(self._words, self._ends[:num_ends])
        self.num_tokens += count_ids(ids, self._counts)
        return ids

    def words(self, numbers: NDArray[np.int64]) -> list[str]:
        lanes = self._table.lanes.tobytes()
        starts = (8 * self._table.starts[numbers]).tolist()
        stops = (8 * self._table.starts[numbers + 1]).tolist()
        spans = zip(starts, stops, strict=True)
        return [lanes[start:stop].rstrip(b"\0").decode() for start, stop in spans]

    def add(self, other: "WordTable") -> Ids:
        """Add the counts of another table; return the numbers of its words in this one."""
        numbers = self._find(*_all_words(other._table))
        self._counts[numbers] += other.counts
        return numbers

    def _find(self, words: NDArray[np.uint64], ends: NDArray[np.int32]) -> Ids:
        ids = np.empty(len(ends), np.int32)
        done = 0
        while (done := look_up_words(words, ends, done, self._table, ids)) < len(ends):
            self._grow()
        return ids

    def _grow(self) -> None:
        """Double the capacity; words keep their numbers."""
        old = self._table
        self._table = _new_table(2 * len(self._counts), 2 * len(old.lanes))
        self._counts = np.append(self._counts, np.zeros_like(self._counts))
        self._find(*_all_words(old))


def _new_table(max_words: int, max_lanes: int) -> WordArrays:
    return WordArrays(
        slots=np.zeros((2 * max_words, 2), np.uint64),  # at most half full: probes stay short
        starts=np.zeros(max_words + 1, np.int64),
        lanes=np.empty(max_lanes, np.uint64),
        num_words=np.zeros(1, np.int64),
    )


def _all_words(table: WordArrays) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    ends = table.starts[1 : table.num_words[0] + 1]
    return table.lanes, ends.astype(np.int32)  # as in a chunk: the kernel is compiled once


class FunctionTable:
    """Counter for a user's function from a line to its words."""

    def __init__(self, tokenize_line: TokenizeLine) -> None:
        self._tokenize_line = tokenize_line
        self.num_tokens = 0
        self._numbers: dict[str, int] = {}
        self._words: list[str] = []
        self._counts: list[int] = []

    @property
    def counts(self) -> NDArray[np.int64]:
        return np.array(self._counts, np.int64)

    def count(self, text: bytes) -> Ids:
        lines = text.decode().replace("\r", "\n").split("\n")
        ids: list[int] = []
        for line in lines:
            words = self._tokens(line)
            self.num_tokens += len(words)
            ids += [self._number(word) for word in words]
            ids.append(LINE_END)
        return np.array(ids[:-1], np.int32)  # the last line may continue in the next chunk

    def words(self, numbers: NDArray[np.int64]) -> list[str]:
        return [self._words[number] for number in numbers]

    def _tokens(self, line: str) -> list[Any]:
        tokens: object = self._tokenize_line(line)
        if not isinstance(tokens, list):
            raise TokenizerError(f"a {type(tokens).__name__}")
        return tokens

    def _number(self, word: Any) -> int:
        number = self._numbers.get(word)
        if number is None:
            return self._new_number(word)
        self._counts[number] += 1
        return number

    def _new_number(self, word: Any) -> int:
        if not isinstance(word, str) or word.split() != [word]:
            raise TokenizerError(f"{word!r} as a word")
        if len(word.encode()) > MAX_WORD_BYTES:
            return OUTSIDE
        number = self._numbers[word] = len(self._words)
        self._words.append(word)
        self._counts.append(1)
        return number

"""The vocabulary: words in descending order of frequency, and their ids."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from talka.data.text.word_kernels import OUTSIDE
from talka.data.text.word_table import FunctionTable, Ids, WordCounter, WordTable
from talka.errors import NothingToLearnError
from talka.files import whole_file


class Vocabulary:
    """Words in descending order of count; equal counts in the order of code points.

    >>> vocabulary = Vocabulary(["the", "cat"], np.array([9, 5]))
    >>> vocabulary.ids(["the", "dog"])
    array([ 0, -1], dtype=int32)
    """

    def __init__(self, words: Sequence[str], counts: NDArray[np.int64]) -> None:
        self.words, self.counts = list(words), counts

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, words: Iterable[str]) -> Ids:
        """Return the ids of words, -1 for words outside the vocabulary."""
        return np.array([self._id_of.get(word, OUTSIDE) for word in words], np.int32)

    @cached_property
    def _id_of(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.words)}

    def save(self, path: Path) -> None:
        table = pa.table({"word": pa.array(self.words, pa.string()), "count": self.counts})
        with whole_file(path) as beside, pa.ipc.new_file(str(beside), table.schema) as writer:
            writer.write_table(table)

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        with pa.OSFile(str(path)) as file:
            table = pa.ipc.open_file(file).read_all()
        return cls(table["word"].to_pylist(), table["count"].to_numpy())


class Merged(NamedTuple):
    """A vocabulary merged from several counters, and their words as ids of it."""

    vocabulary: Vocabulary
    ids: list[Ids]
    """Id of each word of a counter, by counter; -1 for words outside the vocabulary."""


def merge(counters: Sequence[WordTable] | Sequence[FunctionTable], *, min_count: int) -> Merged:
    """Merge the counters of several threads into a vocabulary of words with `min_count` counts.

    The counters must not be used afterwards: the first one takes over the counts of the others.
    """
    numbers = [_numbers_in_first(counters[0], counter) for counter in counters]
    total = counters[0]
    kept = np.flatnonzero(total.counts >= min_count)
    if not len(kept):
        raise _nothing_kept(total, min_count)
    ranked = sorted(
        zip((-total.counts[kept]).tolist(), total.words(kept), kept.tolist(), strict=True)
    )
    ids = np.full(len(total.counts), OUTSIDE, np.int32)
    ids[[number for _, _, number in ranked]] = np.arange(len(ranked), dtype=np.int32)
    counts = np.array([-negated for negated, _, _ in ranked], np.int64)
    vocabulary = Vocabulary([word for _, word, _ in ranked], counts)
    return Merged(vocabulary, [ids[own] for own in numbers])


def _numbers_in_first(first: WordCounter, counter: WordCounter) -> Ids:
    if counter is first:
        return np.arange(len(first.counts), dtype=np.int32)
    assert isinstance(first, WordTable)
    assert isinstance(counter, WordTable)
    return first.add(counter)


def _nothing_kept(counter: WordCounter, min_count: int) -> NothingToLearnError:
    if not len(counter.counts):
        return NothingToLearnError("the text has no words", "Use more text or another tokenizer.")
    best = int(counter.counts.argmax())
    word, times = counter.words(np.array([best]))[0], int(counter.counts[best])
    return NothingToLearnError(
        f"no word occurs {min_count} times ({word!r} is the most frequent, {times} times)",
        "Use more text or a lower minimum count.",
    )

"""A single pass over the text gives its vocabulary and the text as a stream of word ids.

The text is read only once, so it may come from standard input. Each thread counts words in its own
table and stores their numbers in that table; numbers become ids when all counts are known. The
result does not depend on which thread counted which chunk.
"""

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np

from talka.data.text.reading import Chunk, TextReader
from talka.data.text.resources import Advance, Resources, ignore_progress
from talka.data.text.sample import TextSample
from talka.data.text.spool import Spool, Stored
from talka.data.text.tokens import TokenizeLine, char_map_of
from talka.data.text.vocabulary import Vocabulary, merge
from talka.data.text.word_kernels import FILE_END, OUTSIDE
from talka.data.text.word_table import FunctionTable, Ids, WordTable
from talka.errors import InvalidValueError
from talka.threads import ThreadPool

Tokenizer = str | TokenizeLine
_MEMORY_SHARE = 4  # a quarter of the budget for the stream, the rest for counting pairs


class _Counted(NamedTuple):
    """The words of one chunk, as numbers in the table of one counter."""

    counter: int
    numbers: Stored


class Corpus:
    """A text as word ids: its `vocabulary` and the words in their order."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        counted: Sequence[_Counted],
        ids_of_counters: Sequence[Ids],
        *,
        num_tokens: int,
        num_replaced: dict[str, int],
    ) -> None:
        self.vocabulary, self.num_tokens, self.num_replaced = vocabulary, num_tokens, num_replaced
        self._counted = counted
        # Marks are negative and index from the end: each of these three entries maps to itself.
        marks = np.array([FILE_END, FILE_END + 1, OUTSIDE], np.int32)
        self._ids_of_counters = [np.concatenate([ids, marks]) for ids in ids_of_counters]

    @property
    def num_ids(self) -> int:
        """Length of the stream of ids, including marks."""
        return sum(len(numbers) for _, numbers in self._counted)

    @property
    def num_known_tokens(self) -> int:
        """Number of words of the text that are in the vocabulary."""
        return int(self.vocabulary.counts.sum())

    def id_chunks(self) -> Iterator[Ids]:
        """Yield the text in order: word ids, and the negative OUTSIDE, LINE_END and FILE_END."""
        for counter, numbers in self._counted:
            yield self._ids_of_counters[counter][numbers[:]]


def scan_corpus(
    paths: Sequence[str | Path] | TextReader | TextSample,
    *,
    tokenizer: Tokenizer = "words",
    min_count: int = 5,
    resources: Resources | None = None,
    advance: Advance = ignore_progress,
) -> Corpus:
    """Read text, find the words that occur at least `min_count` times and convert the text to ids.

    Parameters
    ----------
    tokenizer
        `words` (letters and digits of any script, lower-cased), `letters` (a to z, lower-cased),
        `whitespace`, or a function from a line to the list of its words. A line of more than a
        megabyte is passed to the function in parts.
    advance
        Called with the number of bytes read from disk; they sum to `TextReader.total_bytes`.
    """
    if min_count < 1:
        raise InvalidValueError("min_count", min_count, "a whole number of at least 1")
    resources = resources or Resources()
    reader = paths if isinstance(paths, TextReader | TextSample) else TextReader(paths)
    counters = _counters(tokenizer, resources.num_threads)
    free: SimpleQueue[int] = SimpleQueue()
    for index in range(len(counters)):
        free.put(index)
    spool = Spool(resources.work_dir, memory_bytes=resources.memory_bytes // _MEMORY_SHARE)
    counted = []
    with ThreadPool(len(counters)) as pool:
        count = functools.partial(_count, counters, free)
        for counter, numbers in pool.map(count, reader.chunks(advance)):
            counted.append(_Counted(counter, spool.add(numbers)))
    merged = merge(counters, min_count=min_count)
    return Corpus(
        merged.vocabulary,
        counted,
        merged.ids,
        num_tokens=sum(counter.num_tokens for counter in counters),
        num_replaced=reader.num_replaced,
    )


def _counters(
    tokenizer: Tokenizer, num_threads: int
) -> Sequence[WordTable] | Sequence[FunctionTable]:
    if isinstance(tokenizer, str):
        char_map = char_map_of(tokenizer)
        return [WordTable(char_map) for _ in range(num_threads)]
    return [FunctionTable(tokenizer)]  # Python code is not faster with threads and may be unsafe


def _count(
    counters: Sequence[WordTable] | Sequence[FunctionTable], free: "SimpleQueue[int]", chunk: Chunk
) -> tuple[int, Ids]:
    index = free.get()
    try:
        numbers = counters[index].count(chunk.text)
    finally:
        free.put(index)
    return index, np.append(numbers, np.int32(FILE_END)) if chunk.ends_file else numbers

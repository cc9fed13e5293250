"""A text in segments that fit into memory, each inverted into the positions of each word.

Windows extend across the ends of a segment, so it includes the adjacent words as context.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.data.text.pair_kernels import count_known, keep_known, place_positions
from talka.data.text.word_table import Ids
from talka.threads import ThreadPool

KnownIds = NDArray[np.uint32]
_BYTES_PER_TOKEN = 8  # an id and a position
_MAX_TOKENS = 1 << 27  # inverting takes a second, during which Ctrl+C has to wait


class TextSegment(NamedTuple):
    """A part of the text, as word ids."""

    ids: KnownIds
    """Ids of words, and `mark` (the number of words) where windows end."""

    first: int
    stop: int
    """End of the segment: ids[first:stop] belong to it, the rest is context."""


class InvertedText(NamedTuple):
    """A segment with the positions of each word."""

    ids: KnownIds
    positions: KnownIds
    """Indices into `ids`: word w is at positions[starts[w]:starts[w + 1]], in ascending order."""

    starts: NDArray[np.int64]


def known_ids(chunks: Iterator[Ids], num_words: int, *, across_lines: bool) -> Iterator[KnownIds]:
    """Yield the stream without words outside the vocabulary, which do not count in a window."""
    mark = np.uint32(num_words)
    for ids in chunks:
        known = np.empty(len(ids), np.uint32)
        yield known[: keep_known(ids, across_lines, mark, known)]


def segment_tokens(memory_bytes: int, window: int) -> int:
    """Return the maximal number of tokens of a segment."""
    return min(max(memory_bytes // _BYTES_PER_TOKEN, 4 * window), _MAX_TOKENS)


def cut_segments(
    stream: Iterator[KnownIds], num_words: int, *, window: int, max_tokens: int
) -> Iterator[TextSegment]:
    """Yield segments of at most `max_tokens` plus context; each one overwrites the previous."""
    ids = np.empty(1 + window + max_tokens + window + 1, np.uint32)
    ids[0] = num_words
    first = stop = 1
    for part in stream:
        while len(part):
            if stop == len(ids) - 1:
                yield _closed(ids, first, stop - window, stop)
                ids[1 : 1 + 2 * window] = ids[stop - 2 * window : stop].copy()
                first, stop = 1 + window, 1 + 2 * window
            taken = part[: len(ids) - 1 - stop]
            ids[stop : stop + len(taken)] = taken
            part, stop = part[len(taken) :], stop + len(taken)
    yield _closed(ids, first, stop, stop)


def _closed(ids: KnownIds, first: int, stop: int, end: int) -> TextSegment:
    ids[end] = ids[0]
    return TextSegment(ids[: end + 1], first, stop)


def invert(segment: TextSegment, num_words: int, pool: ThreadPool) -> InvertedText:
    """Find the positions of each word by counting sort, with one part of the segment per thread."""
    ids = segment.ids
    cuts = np.linspace(segment.first, segment.stop, pool.num_threads + 1).astype(int).tolist()
    stretches = [(*cut, thread) for thread, cut in enumerate(pairwise(cuts))]
    counts = np.zeros((pool.num_threads, num_words + 1), np.int64)

    def count(stretch: tuple[int, int, int]) -> None:
        first, stop, thread = stretch
        count_known(ids, first, stop, counts[thread])

    def place(stretch: tuple[int, int, int]) -> None:
        first, stop, thread = stretch
        place_positions(ids, first, stop, next_place[thread], positions)

    for _ in pool.map(count, stretches):
        pass
    starts = np.zeros(num_words + 1, np.int64)
    np.cumsum(counts[:, :num_words].sum(axis=0), out=starts[1:])
    next_place = starts + np.cumsum(counts, axis=0) - counts
    positions = np.empty(starts[-1], np.uint32)
    for _ in pool.map(place, stretches):
        pass
    return InvertedText(ids, positions, starts)

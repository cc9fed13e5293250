"""Co-occurrence counts of words, as pairs in blocks.

corpus -> segments -> inverted text -> rows -> pieces of a stripe of blocks -> shuffled blocks

Two words at most `window` positions apart add 1/distance to both of their pairs, as in GloVe
(Pennington et al., 2014) with symmetric windows. The result is bit-identical for the same text,
options and seed; it does not depend on the number of threads or the memory budget.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from talka.data.text.corpus import Corpus
from talka.data.text.pair_blocks import MAX_BLOCK_EDGE, PairBlocks
from talka.data.text.resources import Advance, Resources, ignore_progress
from talka.data.text.rows import RowSource, RowSpan, RunRows, WindowRows
from talka.data.text.segments import TextSegment, cut_segments, invert, known_ids, segment_tokens
from talka.data.text.stripes import BlockPlan, write_blocks
from talka.data.text.weights import Weights, integer_weights
from talka.errors import InvalidValueError, NothingToLearnError
from talka.threads import ThreadPool

_SEGMENT_SHARE = 0.3  # of the memory budget; `stripes.py` takes the rest


@dataclass(frozen=True, kw_only=True, slots=True)
class PairOptions:
    """Options for counting pairs."""

    window: int = 10
    """Number of context words on either side of a word."""

    across_lines: bool = False
    """True if windows extend across line ends; they never extend across the end of a file."""

    block_edge: int = 2048
    """Words per side of a block; with 2048 a float32 table of 100 columns takes 0.8 MB."""

    seed: int = 0

    def __post_init__(self) -> None:
        if self.window < 1:
            raise InvalidValueError("window", self.window, "a whole number of at least 1")
        if not 1 <= self.block_edge <= MAX_BLOCK_EDGE:
            allowed = f"a whole number from 1 to {MAX_BLOCK_EDGE}"
            raise InvalidValueError("block_edge", self.block_edge, allowed)
        if not 0 <= self.seed < 2**63:
            raise InvalidValueError("seed", self.seed, "a whole number from 0 to 2^63 - 1")


def count_pairs(
    corpus: Corpus,
    options: PairOptions | None = None,
    *,
    resources: Resources | None = None,
    advance: Advance = ignore_progress,
) -> PairBlocks:
    """Count the co-occurrences of all words of the vocabulary.

    Parameters
    ----------
    advance
        Called with the number of tokens processed; they sum to `corpus.num_known_tokens`.
    """
    options, resources = options or PairOptions(), resources or Resources()
    weights = integer_weights(options.window, int(corpus.vocabulary.counts[0]))
    plan = BlockPlan(block_edge=options.block_edge, seed=options.seed, unit=weights.unit)
    with ThreadPool(resources.num_threads) as pool:
        counting = _Counting(corpus, options, resources, weights, pool)
        if counting.is_one_segment:
            source: RowSource = counting.rows_of(next(counting.segments()))
            report = _RowProgress(corpus.vocabulary.counts, advance, share=1.0)
        else:
            source = counting.rows_of_runs(advance)
            report = _RowProgress(corpus.vocabulary.counts, advance, share=0.5)
        blocks = write_blocks(source, plan, resources, pool, report)
    if not blocks.num_pairs:
        problem = f"no two words of the vocabulary are within {options.window} positions"
        advice = (
            "Use more text, a lower minimum count or, if lines are short, windows across lines."
        )
        raise NothingToLearnError(problem, advice)
    return blocks


class _RowProgress:
    """Progress by rows: calls `advance` with the number of tokens behind a span of rows."""

    def __init__(self, counts: NDArray[np.int64], advance: Advance, *, share: float) -> None:
        self._counts, self._advance, self._share = counts, advance, share

    def __call__(self, span: RowSpan) -> None:
        num_tokens = int(self._counts[span.first_row : span.stop_row].sum())
        self._advance(self._share * num_tokens)


class _Counting:
    """The steps from a corpus to rows of the co-occurrence matrix."""

    def __init__(
        self,
        corpus: Corpus,
        options: PairOptions,
        resources: Resources,
        weights: Weights,
        pool: ThreadPool,
    ) -> None:
        self._corpus, self._options, self._weights = corpus, options, weights
        self._resources, self._pool = resources, pool
        budget = int(_SEGMENT_SHARE * resources.memory_bytes)
        self._max_tokens = segment_tokens(budget, options.window)

    @property
    def is_one_segment(self) -> bool:
        return self._corpus.num_ids <= self._max_tokens

    def segments(self) -> Iterator[TextSegment]:
        num_words = len(self._corpus.vocabulary)
        across_lines = self._options.across_lines
        stream = known_ids(self._corpus.id_chunks(), num_words, across_lines=across_lines)
        max_tokens = min(self._max_tokens, self._corpus.num_ids)
        return cut_segments(stream, num_words, window=self._options.window, max_tokens=max_tokens)

    def rows_of(self, segment: TextSegment) -> WindowRows:
        inverted = invert(segment, len(self._corpus.vocabulary), self._pool)
        return WindowRows(inverted, self._weights)

    def rows_of_runs(self, advance: Advance) -> RunRows:
        folder, memory_bytes = self._resources.work_dir, self._resources.memory_bytes
        runs = RunRows(len(self._corpus.vocabulary), folder, memory_bytes=memory_bytes)
        for segment in self.segments():
            rows = self.rows_of(segment)
            report = _RowProgress(rows.counts, advance, share=0.5)
            for span in runs.add_run(rows, self._pool):
                report(span)
        return runs

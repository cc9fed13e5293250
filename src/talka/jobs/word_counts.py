"""Count the words of the installed packages' documentation, on the engine.

shares of files -> words and counts (worker processes) -> merged in pairs (threads) -> the most frequent
"""

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from talka.engine import Engine, Ref
from talka.events import Phase, Predicted, Stream
from talka.jobs.documentation import documentation_files, documentation_in, in_shares
from talka.units import format_bytes, format_count

NUM_SHARES = 64
_SAMPLE_FILES = 150
_WORD = re.compile(r"[a-z]+")


class WordCounts:
    """A job that needs no input of yours; `talka demo` runs it."""

    name = "word-counts"

    def __init__(self, open_engine: Callable[[Stream], Engine], *, num_shown: int = 20) -> None:
        self._open_engine = open_engine
        self._num_workers = os.cpu_count() or 1
        self._num_shown = num_shown
        self._files = documentation_files()
        self.config = {
            "num_files": len(self._files),
            "num_shares": NUM_SHARES,
            "num_workers": self._num_workers,
            "num_shown": num_shown,
        }

    def explain(self) -> list[Predicted]:
        """Count a sample of the files here and scale it up."""
        sample = self._files[:: max(1, len(self._files) // _SAMPLE_FILES)]
        total_bytes, sample_bytes = _num_bytes(self._files), _num_bytes(sample)
        start = time.perf_counter()
        counted = count_words([str(file) for file in sample])
        seconds = time.perf_counter() - start
        rate = sample_bytes / seconds
        # The vocabulary grows with the square root of the text (Heaps' law), a table with it.
        share_growth = (total_bytes / NUM_SHARES / sample_bytes) ** 0.5
        output_bytes = NUM_SHARES * counted.get_total_buffer_size() * share_growth
        why = f"{format_bytes(total_bytes)} of source at {format_bytes(rate)}/s on each of"
        merge_s = output_bytes / 60e6  # what pyarrow's group_by takes here, in bytes a second
        return [
            Predicted(
                "count",
                output_bytes,
                total_bytes / rate / self._num_workers,
                f"{why} {self._num_workers} workers, counts of {NUM_SHARES} shares come back",
            ),
            Predicted("merge", 0.0, merge_s, "threads of this process: nothing is sent"),
        ]

    def run(self, events: Stream) -> dict[str, Any]:
        shares = in_shares(self._files, NUM_SHARES)
        with self._open_engine(events) as engine:
            with events.phase("count", total=len(shares), unit="shares") as phase:
                counted = [engine.submit(count_words, share, python=True)[0] for share in shares]
                for ref in counted:
                    engine.wait([ref])
                    phase.advance()
                sizes = [engine.submit(_stored_bytes, ref)[0] for ref in counted]
                phase.sent_bytes = sum(engine.fetch(sizes))
            with events.phase("merge", total=len(shares) - 1, unit="merges") as phase:
                words = engine.fetch(_merged(engine, counted, phase))
                phase.sent_bytes = 0
        words = words.sort_by([("count", "descending"), ("word", "ascending")])
        return {
            "num_words": sum(words["count"].to_pylist()),
            "num_different_words": words.num_rows,
            "most_frequent": words.slice(0, self._num_shown).to_pylist(),
        }


def _merged(engine: Engine, counted: Sequence[Ref], phase: Phase) -> Ref:
    """Merge two and two until one is left."""
    level = list(counted)
    while len(level) > 1:
        pairs = list(zip(level[::2], level[1::2], strict=False))
        merged = [engine.submit(merge_counts, *pair)[0] for pair in pairs]
        for ref in merged:
            engine.wait([ref])
            phase.advance()
        engine.release(level[: 2 * len(pairs)])
        level = merged + level[2 * len(pairs) :]
    return level[0]


def count_words(files: Sequence[str]) -> pa.Table:
    """Words (runs of letters) of these files' documentation, with how often each occurs."""
    counts = Counter(_WORD.findall(documentation_in(files).lower()))
    return pa.table({"word": list(counts), "count": pa.array(counts.values(), pa.int64())})


def merge_counts(*tables: pa.Table) -> pa.Table:
    """One table with the sums."""
    grouped = pa.concat_tables(tables).group_by("word").aggregate([("count", "sum")])
    return grouped.rename_columns(["word", "count"])


def summary(result: dict[str, Any]) -> str:
    """One line for a person."""
    num_words, num_different = result["num_words"], result["num_different_words"]
    return f"{format_count(num_words)} words, {format_count(num_different)} of them different"


def _stored_bytes(table: pa.Table) -> int:
    return int(table.get_total_buffer_size())


def _num_bytes(files: Sequence[Path]) -> int:
    return sum(file.stat().st_size for file in files)

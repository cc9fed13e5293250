"""The beginning of a text, kept in memory so that it can be scanned several times."""

import copy
import time
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from talka.data.text.reading import Chunk, TextReader
from talka.data.text.resources import Advance, ignore_progress


class _Read(NamedTuple):
    chunk: Chunk
    disk_bytes: float
    """Bytes read from disk for this chunk; fewer than its length if the file is compressed."""
    seconds: float
    """Seconds spent on reading, decompressing and checking it."""


class TextSample:
    """Chunks of a text in memory; `scan_corpus` accepts it in place of a `TextReader`."""

    def __init__(self, reads: list[_Read]) -> None:
        self._reads = reads
        self.num_replaced: dict[str, int] = {}
        self.num_bytes = sum(len(read.chunk.text) for read in reads)
        self.disk_bytes = sum(read.disk_bytes for read in reads)
        self.read_s = sum(read.seconds for read in reads)

    @classmethod
    def read(cls, reader: TextReader, max_bytes: int) -> "TextSample":
        """Read chunks until they hold `max_bytes` of text; `reader` is not changed."""
        reader = copy.copy(reader)
        reader.num_replaced = {}
        reads: list[_Read] = []
        disk_bytes = num_bytes = 0.0

        def count(amount: float) -> None:
            nonlocal disk_bytes
            disk_bytes += amount

        before_bytes, before_s = 0.0, time.perf_counter()
        for chunk in reader.chunks(count):
            now_s = time.perf_counter()
            reads.append(_Read(chunk, disk_bytes - before_bytes, now_s - before_s))
            num_bytes += len(chunk.text)
            if num_bytes >= max_bytes:
                break
            before_bytes, before_s = disk_bytes, now_s
        return cls(reads)

    def first(self, max_bytes: int) -> "TextSample":
        """Return the shortest beginning that holds `max_bytes` of text, at least one chunk."""
        ends = accumulate(len(read.chunk.text) for read in self._reads)
        num_chunks = next((index for index, end in enumerate(ends, 1) if end >= max_bytes), None)
        return TextSample(self._reads[:num_chunks])

    def chunks(self, advance: Advance = ignore_progress) -> Iterator[Chunk]:
        """Yield the chunks in order; `advance` is called with the bytes of each on disk."""
        for read in self._reads:
            advance(read.disk_bytes)
            yield read.chunk

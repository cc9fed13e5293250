"""Cost estimate of the job from a sample of the corpus.

    the first megabytes of text, read once -> counted -> words and pairs extrapolated -> seconds

Words and pairs grow as `talka.jobs.growth` describes. Counting the pairs of a word costs more in a
longer text, because less of it fits into caches: each doubling adds about a tenth of the cost in
the sample, both in Wikipedia and in the documentation used by the demo.
"""

import math
import statistics
import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.data.text import (
    PAIR,
    Corpus,
    PairBlocks,
    Resources,
    TextReader,
    TextSample,
    count_pairs,
    scan_corpus,
)
from talka.errors import NothingToLearnError
from talka.jobs.embeddings.config import EmbedConfig
from talka.jobs.embeddings.sliced_rate import sliced_rate
from talka.jobs.growth import extrapolated
from talka.profile import Trial, this_machine
from talka.train.models.glove import GloVe
from talka.train.models.glove.kernels import LANES
from talka.train.models.glove.table import num_lines
from talka.train.models.glove.trials import SLICES

SAMPLE_BYTES = 8_000_000
RISE_PER_DOUBLING = 0.1
_CALIBRATION_PAIRS = 3_000_000
_CALIBRATION_S = 1.0  # a shorter trial would be distorted by other work on this machine
_SLICED_PAIRS = 500_000  # for the trial with one slice
_MAX_TIMINGS = 5
_TIMING_S = 0.6  # limit for all timings of one sample; the first one is always made
_INTERPRETER_BYTES = 250_000_000  # with numpy, pyarrow and compiled numba kernels
_STRETCHING_BYTES = 40  # per pair while it is moved to another word
_ID_BYTES = 12  # per token: its id, twice, and its position in the inverted text


class Estimate(NamedTuple):
    """Expected size and cost of the whole corpus."""

    num_tokens: float
    num_words: float
    num_pairs: float
    scan_s: float
    count_s: float
    train_pairs_per_s: float
    memory_bytes: float
    trial: str
    """Name of the trial in the profile that training was predicted from."""


def estimate(
    config: EmbedConfig, reader: TextReader, *, total_bytes: int | None = None
) -> Estimate | None:
    """Count a sample of the corpus and extrapolate; None for standard input or too few words.

    total_bytes
        Bytes on disk of the whole corpus, if the reader has only a part of it.
    """
    total_bytes = reader.total_bytes if total_bytes is None else total_bytes
    if total_bytes is None:
        return None
    sample = TextSample.read(reader, SAMPLE_BYTES)
    try:
        half = _count(config, sample.first(sample.num_bytes // 2))  # also loads or compiles kernels
        tiny = _count_repeatedly(config, sample.first(1))  # mostly the fixed cost of a scan
        whole = _count_repeatedly(config, sample)
    except NothingToLearnError:
        return None
    growth = max(1.0, total_bytes / max(1, sample.disk_bytes))
    doublings = math.log2(growth)
    is_all = half.num_tokens == whole.num_tokens or growth < 1.01
    num_words, num_pairs = float(len(whole.corpus.vocabulary)), float(whole.pairs.num_pairs)
    if not is_all:
        between = math.log2(whole.num_tokens / half.num_tokens)
        half_words, half_pairs = len(half.corpus.vocabulary), half.pairs.num_pairs
        num_words = extrapolated(half_words, num_words, doublings, between=between)
        num_pairs = extrapolated(half_pairs, num_pairs, doublings, between=between)
    if config.parallel == "dimensions":
        stretched = stretch_pairs(whole.pairs, math.ceil(num_words), _SLICED_PAIRS)
        rate, trial = sliced_rate(config, stretched), SLICES.name
    else:
        training = training_trial(config, whole.pairs, math.ceil(num_words), num_pairs)
        rate, trial = this_machine().figures(training)["pairs_per_s"], training.name
    return Estimate(
        num_tokens=whole.num_tokens * growth,
        num_words=num_words,
        num_pairs=num_pairs,
        scan_s=_scan_seconds(sample, tiny, whole, growth),
        count_s=whole.count_s * growth * (1 + RISE_PER_DOUBLING * doublings),
        train_pairs_per_s=rate,
        trial=trial,
        memory_bytes=max(
            _job_memory_bytes(config, num_words, num_pairs, whole.num_tokens * growth),
            _sampling_memory_bytes(whole.pairs.num_pairs),
        ),
    )


def _scan_seconds(sample: TextSample, tiny: "_Sampled", whole: "_Sampled", growth: float) -> float:
    """Predict a scan: one thread reads while others count, so the slower of both determines it."""
    more_s = _seconds_per_token(tiny, whole) * (growth - 1) * whole.num_tokens
    return max(sample.read_s * growth, whole.scan_s + more_s)


def _seconds_per_token(tiny: "_Sampled", whole: "_Sampled") -> float:
    """Return the cost of each further token, without the fixed cost of starting threads."""
    mean = whole.scan_s / whole.num_tokens
    more = whole.num_tokens - tiny.num_tokens
    return max(mean / 2, (whole.scan_s - tiny.scan_s) / more) if more else mean


class _Sampled(NamedTuple):
    corpus: Corpus
    pairs: PairBlocks
    scan_s: float
    count_s: float

    @property
    def num_tokens(self) -> int:
        return self.corpus.num_tokens


def _count_repeatedly(config: EmbedConfig, sample: TextSample) -> _Sampled:
    """Count a sample several times and keep the lower quartile of the seconds.

    One interruption distorts a short sample far more than the long run that follows.
    """
    start_s, scan_s, count_s = time.perf_counter(), list[float](), list[float]()
    while True:
        sampled = _count(config, sample)
        scan_s.append(sampled.scan_s)
        count_s.append(sampled.count_s)
        if len(scan_s) == _MAX_TIMINGS or time.perf_counter() - start_s > _TIMING_S:
            break
    return sampled._replace(scan_s=_lower_quartile(scan_s), count_s=_lower_quartile(count_s))


def _lower_quartile(seconds: list[float]) -> float:
    return float(np.quantile(seconds, 0.25))


def _count(config: EmbedConfig, sample: TextSample) -> _Sampled:
    resources = Resources(num_threads=config.threads, memory_bytes=config.memory_bytes)
    text = config.text
    start = time.perf_counter()
    corpus = scan_corpus(
        sample, tokenizer=text.tokenizer, min_count=text.min_count, resources=resources
    )
    scanned = time.perf_counter()
    pairs = count_pairs(corpus, text.pairs, resources=resources)
    counted = time.perf_counter()
    return _Sampled(corpus, pairs, scanned - start, counted - scanned)


def training_trial(
    config: EmbedConfig, sample: PairBlocks, num_words: int, num_pairs: float
) -> Trial:
    """Return the trial of training with threads on pairs like those of a sample.

    It is measured on a model of full size, as a small one would fit into caches; texts of about the
    same size share it. It takes no longer than the predicted training itself.
    """
    shape = f"dim-{config.dim}/words-{_power(num_words)}/pairs-{_power(num_pairs)}"
    name = f"embed/pairs/{shape}/threads-{config.threads}"
    num_epochs = config.epochs * num_pairs / _CALIBRATION_PAIRS
    return Trial(
        name,
        "training word vectors",
        ("pairs_per_s",),
        lambda: {"pairs_per_s": _training_rate(config, sample, num_words, num_epochs)},
        packages=("numba",),
    )


def _power(count: float) -> str:
    """Return the nearest power of two as text.

    >>> _power(70_000)
    '2^16'
    """
    return f"2^{round(math.log2(max(count, 1)))}"


def _training_rate(
    config: EmbedConfig, sample: PairBlocks, num_words: int, max_epochs: float
) -> float:
    blocks = stretch_pairs(sample, num_words, _CALIBRATION_PAIRS)
    model = GloVe(num_words, config.dim)  # another learning rate is not faster
    model.train_epoch(blocks, threads=config.threads)  # compiles kernels, touches all memory pages
    seconds: list[float] = []
    while len(seconds) < 3 or (len(seconds) < max_epochs and sum(seconds) < _CALIBRATION_S):
        start = time.perf_counter()
        model.train_epoch(blocks, threads=config.threads)
        seconds.append(time.perf_counter() - start)
    return blocks.num_pairs / statistics.median(seconds)


def _job_memory_bytes(
    config: EmbedConfig, num_words: float, num_pairs: float, num_tokens: float
) -> float:
    """Return the peak memory in bytes: the interpreter plus the larger of counting and training."""
    table = 2 * num_words * 2 * LANES * num_lines(config.dim) * 4
    pairs = PAIR.itemsize * num_pairs
    counting = min(config.memory_bytes, pairs + _ID_BYTES * num_tokens)
    return _INTERPRETER_BYTES + max(counting, pairs + table)


def _sampling_memory_bytes(num_pairs: int) -> float:
    """Return the memory for this estimate itself, which exceeds that of the job on a small text."""
    stretching = _STRETCHING_BYTES * min(num_pairs, _CALIBRATION_PAIRS)
    return _INTERPRETER_BYTES + PAIR.itemsize * num_pairs + stretching


def stretch_pairs(sample: PairBlocks, num_words: int, max_pairs: int) -> PairBlocks:
    """Return some pairs of a sample, spread over a larger vocabulary in the same proportions.

    Works with 4-byte numbers: otherwise this would determine the peak memory on a small text.
    """
    random = np.random.default_rng(0)
    edge, stretch = sample.block_edge, np.float32(num_words / sample.num_words)
    is_chosen = random.random(sample.num_pairs, np.float32) < max_pairs / max(1, sample.num_pairs)
    chosen = np.flatnonzero(is_chosen).astype(np.uint32)
    block = np.repeat(np.arange(len(sample.start), dtype=np.int32), sample.stop - sample.start)
    block = block[is_chosen]

    def spread(first: NDArray[np.int64], offsets: NDArray[np.uint16]) -> NDArray[np.int32]:
        ids = (first * edge).astype(np.float32)[block] + offsets[chosen]
        ids += random.random(len(ids), np.float32)
        return np.minimum((ids * stretch).astype(np.int32), np.int32(num_words - 1))

    rows = spread(sample.row_block, sample.pairs["row"])
    cols = spread(sample.col_block, sample.pairs["col"])
    num_columns = num_words // edge + 1
    block = (rows // edge) * np.int32(num_columns) + cols // edge
    order = np.argsort(block, kind="stable").astype(np.uint32)
    pairs = sample.pairs[chosen[order]]
    pairs["row"], pairs["col"] = rows[order] % edge, cols[order] % edge
    numbers, start = np.unique(block[order], return_index=True)
    stop = np.append(start[1:], len(order))
    index = np.stack([numbers // num_columns, numbers % num_columns, start, stop], axis=1)
    return PairBlocks(pairs, index, num_words=num_words, block_edge=edge)

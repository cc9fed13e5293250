"""The plan of the demo: train word vectors on the documentation of the installed packages.

documentation -> text (worker processes) -> embeddings (threads) -> neighbours
                                         -> a short run in slices (processes that exchange bytes)
"""

import dataclasses
import random
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from talka.data.text import PairBlocks, TextReader, count_pairs, save_counted, scan_corpus
from talka.engine import Embedded, Engine
from talka.engine.trials import WORKERS
from talka.events import Phase, Stream
from talka.jobs.documentation import documentation_files, documentation_in, in_shares
from talka.jobs.embeddings import Embeddings
from talka.jobs.embeddings.config import EmbedConfig, TextConfig
from talka.jobs.embeddings.estimate import estimate, stretch_pairs
from talka.jobs.embeddings.plan import EmbedPlan
from talka.jobs.embeddings.predictions import predicted_parts, training_parts
from talka.jobs.embeddings.ranks import train_slices
from talka.jobs.embeddings.sliced_rate import sliced_rate
from talka.jobs.embeddings.work import WorkFolder
from talka.machine import num_cores, peak_memory_bytes
from talka.plans import Part
from talka.profile import this_machine
from talka.train.models.glove import GloVeConfig
from talka.train.models.glove.trials import SLICES
from talka.units import format_bytes

# Frequent words in packages that every installation has: numpy, torch, sympy, networkx.
WORDS = (
    "array", "matrix", "integer", "string", "file", "exception",
    "graph", "gradient", "tensor", "axis", "memory", "thread",
)  # fmt: skip
EPOCHS = 60
NUM_SHARES = 64
_SAMPLE_STEP = 4  # one file in four is read to predict the cost of all
_NUM_SLICED_SHARES = 8  # the run in slices uses the first of this many shares
_SLICED_EPOCHS = 2
_SLICED_SAMPLE_PAIRS = 400_000


class DemoPlan:
    """A job that needs no input, as a `talka.plans.Plan`."""

    name = "demo"
    planned_s = 0.0

    def __init__(self, *, epochs: int = EPOCHS) -> None:
        self._files = documentation_files()
        self._epochs = epochs
        self.config = {"num_files": len(self._files), **self._embed_config("").resolved()}

    def explain(self) -> Part:
        """Collect, count and train on a quarter of the files, and scale the costs up.

        The files are in random order because growth is estimated from the first half of the sample
        and all of it, and the text of one package is repetitive.
        """
        sample = random.Random(0).sample(self._files, -(-len(self._files) // _SAMPLE_STEP))
        total_bytes, sample_bytes = _total_size(self._files), _total_size(sample)
        with TemporaryDirectory(prefix="talka-") as folder:
            corpus = Path(folder) / "sample.txt"
            start = time.perf_counter()
            corpus.write_text(documentation_in([str(file) for file in sample]), encoding="utf-8")
            seconds = time.perf_counter() - start
            growth = total_bytes / sample_bytes
            text_bytes = round(corpus.stat().st_size * growth)
            config = self._embed_config(str(corpus))
            expected = estimate(config, TextReader([str(corpus)]), total_bytes=text_bytes)
            sliced = _sliced_config(config)
            pairs = _count_sliced(config, self._files, Path(folder), Path(folder) / "pairs")
            rate = sliced_rate(sliced, stretch_pairs(pairs, pairs.num_words, _SLICED_SAMPLE_PAIRS))
        workers = num_cores()
        reason = f"{format_bytes(total_bytes)} of source files read by {workers} workers"
        start_s = this_machine().figures(WORKERS)["start_s"]
        corpus_part = Part(
            cost_id="demo/corpus",
            seconds=start_s + seconds * growth / workers,
            sent_bytes=float(text_bytes),
            reason=reason,
            trials=(WORKERS.name,),
        )
        slices = training_parts(
            sliced,
            pairs.num_pairs,
            pairs_per_s=rate,
            trials=(SLICES.name,),
            cost_id="demo/slices",
        )
        return Part.of("demo", [corpus_part, *predicted_parts(config, expected), *slices])

    def run(self, events: Stream) -> dict[str, Any]:
        assert events.dir is not None, "a job runs in a run directory"
        vectors = events.dir / "vectors"
        with TemporaryDirectory(prefix="talka-") as folder, Embedded(events=events) as engine:
            corpus = Path(folder) / "documentation.txt"
            with events.phase("demo/corpus", total=NUM_SHARES, unit="shares") as phase:
                self._collect(engine, corpus, phase)
            config = self._embed_config(str(corpus))
            result = EmbedPlan(config, vectors).run(events)
            _train_in_slices(engine, _sliced_config(config), self._files, Path(folder))
        embeddings = Embeddings.load(vectors)
        return {
            **result,
            "peak_memory_bytes": peak_memory_bytes(),
            "neighbours": {
                word: [near.word for near in embeddings.similar(word, 6)]
                for word in WORDS
                if word in embeddings
            },
            "vectors": str(vectors),
        }

    def _embed_config(self, corpus: str) -> EmbedConfig:
        # The corpus is small and repetitive: rare words would be noise, and few counts reach 100.
        text = TextConfig(corpus=(corpus,), min_count=25)
        return EmbedConfig(text=text, epochs=self._epochs, glove=GloVeConfig(x_max=10.0))

    def _collect(self, engine: Engine, corpus: Path, phase: Phase) -> None:
        """Write the text of all files to `corpus` in order; worker processes read the files."""
        shares = in_shares(self._files, NUM_SHARES)
        texts = [engine.submit(documentation_in, share, python=True) for share in shares]
        sent_bytes = 0
        with corpus.open("wb") as file:
            for ref in texts:
                sent_bytes += file.write(f"{engine.fetch(ref)}\n".encode())
                engine.release(ref)
                phase.advance()
        phase.sent_bytes = sent_bytes


def _sliced_config(config: EmbedConfig) -> EmbedConfig:
    return dataclasses.replace(config, parallel="dimensions", workers=2, epochs=_SLICED_EPOCHS)


def _train_in_slices(
    engine: Engine, config: EmbedConfig, files: Sequence[Path], folder: Path
) -> None:
    """Train for a few epochs with two processes, each holding half of every vector."""
    work = WorkFolder(folder / "sliced", config.resolved(), resume=False, force=False)
    work.open()
    try:
        _count_sliced(config, files, folder, work.pairs_dir)
        train_slices(engine, config, work, cost_id="demo/slices")
    finally:
        work.close()


def _count_sliced(
    config: EmbedConfig, files: Sequence[Path], folder: Path, pairs_dir: Path
) -> PairBlocks:
    """Count and save the pairs of the documentation in the first files; the text is in `folder`."""
    beginning = folder / "beginning.txt"
    [first, *_] = in_shares(files, _NUM_SLICED_SHARES)
    beginning.write_text(documentation_in(first), encoding="utf-8")
    text = config.text
    counted = scan_corpus([beginning], tokenizer=text.tokenizer, min_count=text.min_count)
    pairs = count_pairs(counted, text.pairs)
    save_counted(pairs_dir, counted.vocabulary, pairs, about={})
    return pairs


def _total_size(files: Sequence[Path]) -> int:
    return sum(file.stat().st_size for file in files)

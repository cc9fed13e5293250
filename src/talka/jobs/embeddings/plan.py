"""The plan of embeddings: from text to word vectors.

    text -> vocabulary and ids -> pairs in blocks -> epochs of GloVe -> DIR/vectors.*

The counted pairs and the model after each epoch are saved in DIR.unfinished, and `resume` continues
from there.
"""

import dataclasses
import math
from functools import cached_property
from pathlib import Path
from typing import Any

from talka.data.text import (
    Counted,
    Resources,
    TextReader,
    count_pairs,
    load_counted,
    save_counted,
    scan_corpus,
)
from talka.engine import Embedded
from talka.errors import NothingToLearnError
from talka.events import Event, Measured, Stream
from talka.jobs.embeddings.config import EmbedConfig
from talka.jobs.embeddings.estimate import Estimate, estimate
from talka.jobs.embeddings.predictions import predicted_parts
from talka.jobs.embeddings.ranks import train_slices
from talka.jobs.embeddings.vectors import Embeddings
from talka.jobs.embeddings.work import WorkFolder
from talka.machine import peak_memory_bytes
from talka.plans import Part
from talka.train.models.glove import GloVe, fixed_sample

MAX_SAMPLE_PAIRS = 1_000_000  # pairs on which the loss is evaluated after every epoch
MIN_SAMPLE_PAIRS = 100_000  # with fewer, noise hides that the loss falls; they take a few ms
SAMPLE_SHARE = 0.05  # of all pairs, so that evaluation is a small part of training


class EmbedPlan:
    """Training of word vectors on text, as a `talka.plans.Plan`."""

    name = "embed"
    planned_s = 0.0

    def __init__(
        self,
        config: EmbedConfig,
        out: Path,
        *,
        header: bool = False,
        resume: bool = False,
        force: bool = False,
    ) -> None:
        self._config, self._header, self._resume = config, header, resume
        self._reader = TextReader(config.text.corpus)
        self.config = {**config.resolved(), "out": str(out), "resume": resume}
        self._work = WorkFolder(out, config.resolved(), resume=resume, force=force)

    @property
    def can_be_resumed(self) -> bool:
        """Whether there is an unfinished run with progress to continue from."""
        return self._work.has_progress

    @cached_property
    def expected(self) -> Estimate | None:
        """Estimate for the whole corpus from a sample; None if it cannot be sampled."""
        return estimate(self._config, self._reader)

    def explain(self) -> Part:
        """Count and train on a sample of the corpus, and scale up to the remaining work."""
        config, done = self._config, set[str]()
        if self._resume and self._work.has_pairs:
            num_left = config.epochs - len(self._work.losses()["loss"])
            if not num_left:
                return Part(cost_id="embed", seconds=0.0, reason="all epochs are done")
            done = {"embed/vocabulary", "embed/cooccurrence"}
            config = dataclasses.replace(config, epochs=num_left)
        parts = predicted_parts(config, self.expected)
        return Part.of("embed", [part for part in parts if part.cost_id not in done])

    def run(self, events: Stream) -> dict[str, Any]:
        seconds: dict[str, float] = {}

        def add_seconds(event: Event) -> None:
            if isinstance(event, Measured) and event.seconds is not None:
                seconds[event.cost_id] = seconds.get(event.cost_id, 0.0) + event.seconds

        work = self._work
        try:
            work.open()
            with events.listening(add_seconds):
                counted = self._load_or_count(work, events)
                embeddings, losses = self._train(work, counted, events)
                result = {
                    "num_words": len(embeddings),
                    "num_pairs": counted.pairs.num_pairs,
                    "num_tokens": counted.about["num_tokens"],
                    "num_replaced": counted.about["num_replaced"],
                    **losses,
                    "seconds": seconds,
                    "peak_memory_bytes": 0,
                }
                with events.phase("embed/write"):
                    embeddings.save(work.new_output_dir(), header=self._header)
            result["peak_memory_bytes"] = peak_memory_bytes()
            work.finish(result)
        finally:
            work.close()
        return result

    def _load_or_count(self, work: WorkFolder, events: Stream) -> Counted:
        """Return the counted pairs, loaded from an unfinished run if it has saved them."""
        if work.has_pairs:
            with events.phase("embed/load"):
                return load_counted(work.pairs_dir)
        config, text = self._config, self._config.text
        resources = Resources(
            num_threads=config.threads, memory_bytes=config.memory_bytes, work_dir=work.path
        )
        with events.phase("embed/vocabulary", total=self._reader.total_bytes, unit="B") as phase:
            corpus = scan_corpus(
                self._reader,
                tokenizer=text.tokenizer,
                min_count=text.min_count,
                resources=resources,
                advance=phase.advance,
            )
        if len(corpus.vocabulary) < 2:
            problem = f"{corpus.vocabulary.words[0]!r} is the only word that occurs often enough"
            raise NothingToLearnError(problem, "Use more text or a lower minimum count.")
        with events.phase(
            "embed/cooccurrence", total=corpus.num_known_tokens, unit="words"
        ) as phase:
            pairs = count_pairs(corpus, text.pairs, resources=resources, advance=phase.advance)
        about = {
            "num_tokens": corpus.num_tokens,
            "num_replaced": sum(corpus.num_replaced.values()),
        }
        with events.phase("embed/save", total=pairs.num_pairs * 8, unit="B") as phase:
            save_counted(
                work.pairs_dir, corpus.vocabulary, pairs, about=about, advance=phase.advance
            )
        return Counted(corpus.vocabulary, pairs, about)

    def _train(
        self, work: WorkFolder, counted: Counted, events: Stream
    ) -> tuple[Embeddings, dict[str, list[float]]]:
        config = self._config
        if config.parallel == "dimensions":
            with Embedded(events=events) as engine:
                vectors, losses = train_slices(engine, config, work)
        else:
            model, losses = self._train_threads(work, counted, events)
            vectors = model.vectors()
        vocabulary = counted.vocabulary
        return Embeddings(vocabulary.words, vectors, counts=vocabulary.counts), losses

    def _train_threads(
        self, work: WorkFolder, counted: Counted, events: Stream
    ) -> tuple[GloVe, dict[str, list[float]]]:
        config, blocks, losses = self._config, counted.pairs, work.losses()
        done = len(losses["loss"])
        if done:
            model = GloVe.load(work.model_path(done))
        else:
            num_words = len(counted.vocabulary)
            model = GloVe(num_words, config.dim, config=config.glove, seed=config.seed)
        share = math.ceil(SAMPLE_SHARE * blocks.num_pairs)
        size = min(MAX_SAMPLE_PAIRS, max(MIN_SAMPLE_PAIRS, share))
        sample = fixed_sample(blocks, size=size, seed=config.seed)
        total = max(0, config.epochs - done) * blocks.num_pairs
        with events.phase("embed/train", total=total, unit="pairs") as phase:
            for epoch in range(done, config.epochs):
                running_loss = model.train_epoch(
                    blocks, threads=config.threads, epoch=epoch, advance=phase.advance
                )
                with phase.aside("embed/evaluate"):
                    loss = model.evaluate(sample, threads=config.threads)
                losses["running_loss"].append(running_loss)
                losses["loss"].append(loss)
                with phase.aside("embed/save"):
                    model.save(work.model_path(epoch + 1))
                    work.epoch_done(losses)
        return model, losses

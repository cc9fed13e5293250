"""How fast are word vectors made, and are they as good, beside a plain loop and gensim's word2vec?

    python -m benchmarks.embeddings --preset smoke          # some seconds
    python -m benchmarks.embeddings --preset full --json FILE --markdown FILE     # 15 minutes

Text: enwiki_plain_AA.txt.gz of the folder in TALKA_DATA (default ../shared/data), lower-cased to
letters, window 10, minimum count 5, 100 dimensions. If the folder is missing, the documentation of
the installed packages is used. On that text and a machine like this (two threads), the C program of
GloVe needs 72 s for co-occurrence, 88 s per epoch (0.51 million pairs per second) and 340 s for
vectors with 3 epochs; it is not measured here.
"""

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numba
import numpy as np

from benchmarks.harness import arguments, peer, publish, spread
from talka.data.text import PairOptions, Resources, count_pairs, scan_corpus
from talka.events import read_run
from talka.jobs.documentation import documentation_files, documentation_in
from talka.jobs.embeddings import Embeddings, evaluate
from talka.train.models.glove import GloVe, GloVeConfig, fixed_sample

DATA = Path(os.environ.get("TALKA_DATA", Path(__file__).parents[2] / "shared" / "data"))
PRESETS = {
    "smoke": {"bytes": 400_000, "repeats": 1, "epochs": (1, 2), "growth_mb": (0.4,), "plain": 20_000},
    "full": {"bytes": 10**9, "repeats": 3, "epochs": (3, 15), "growth_mb": (10, 30, 100), "plain": 5_000_000},
}  # fmt: skip
DIM, WINDOW, MIN_COUNT = 100, 10, 5
C_PROGRAM = {"num_words": 69_152, "pairs_per_s": 0.51e6, "cooccurrence_s": 72.0, "whole_s": 340.0}


def text_of(max_bytes):
    source = DATA / "text" / "enwiki_plain_AA.txt.gz"
    if source.exists():
        with gzip.open(source) as file:
            return file.read(max_bytes)
    return documentation_in([str(file) for file in documentation_files()]).encode()[:max_bytes]


@numba.njit(nogil=True, fastmath=True)
def plain_loop(rows, cols, counts, words, contexts, word_squares, context_squares, biases):
    """Straightforward GloVe: one pair after another, four arrays."""
    word_bias, context_bias, word_bias_squares, context_bias_squares = biases
    loss = 0.0
    for n in range(len(rows)):
        i, j, x = rows[n], cols[n], counts[n]
        error = word_bias[i] + context_bias[j] - np.log(x)
        for d in range(words.shape[1]):
            error += words[i, d] * contexts[j, d]
        slope = min(1.0, (x / 100.0) ** 0.75) * error
        loss += 0.5 * slope * error
        slope *= 0.05
        for d in range(words.shape[1]):
            step_i, step_j = slope * contexts[j, d], slope * words[i, d]
            words[i, d] -= step_i / np.sqrt(word_squares[i, d])
            contexts[j, d] -= step_j / np.sqrt(context_squares[j, d])
            word_squares[i, d] += step_i * step_i
            context_squares[j, d] += step_j * step_j
        word_bias[i] -= slope / np.sqrt(word_bias_squares[i])
        context_bias[j] -= slope / np.sqrt(context_bias_squares[j])
        word_bias_squares[i] += slope * slope
        context_bias_squares[j] += slope * slope
    return loss


def plain_rate(blocks, num_pairs):
    """Measure pairs per second of the plain loop on one thread, with fully shuffled pairs."""
    order = np.random.default_rng(0).permutation(blocks.num_pairs)[:num_pairs]
    rows, cols = (side[order] for side in blocks.words())
    counts = blocks.pairs["count"][order]
    random = np.random.default_rng(1)
    shape = (blocks.num_words, DIM)
    words, contexts = (((random.random(shape) - 0.5) / DIM).astype(np.float32) for _ in range(2))
    squares = [np.ones(shape, np.float32) for _ in range(2)]
    biases = tuple(np.ones(blocks.num_words, np.float32) for _ in range(4))
    run = (words, contexts, *squares, biases)
    plain_loop(rows[:1000], cols[:1000], counts[:1000], *run)
    start = time.perf_counter()
    plain_loop(rows, cols, counts, *run)
    return len(rows) / (time.perf_counter() - start)


def phases(path, threads):
    resources = Resources(num_threads=threads)
    start = time.perf_counter()
    corpus = scan_corpus([path], tokenizer="letters", min_count=MIN_COUNT, resources=resources)
    scanned = time.perf_counter()
    pairs = count_pairs(corpus, PairOptions(window=WINDOW), resources=resources)
    counted = time.perf_counter()
    return corpus, pairs, scanned - start, counted - scanned


def speed(path, preset):
    """Measure seconds to pairs and pairs per second, by threads, in turns with the plain loop."""
    phases(path, 2)  # compiles
    by_threads = {1: [], 2: []}
    plain = []
    corpus = pairs = None
    for _ in range(preset["repeats"]):
        for threads, measured in by_threads.items():
            corpus, pairs, scan_s, count_s = phases(path, threads)
            model = GloVe(len(corpus.vocabulary), DIM)
            start = time.perf_counter()
            model.train_epoch(pairs, threads=threads)
            measured.append((scan_s, count_s, pairs.num_pairs / (time.perf_counter() - start)))
        plain.append(plain_rate(pairs, preset["plain"]))
    plain_pairs_per_s = spread(plain)[0]
    rows = []
    for threads, measured in by_threads.items():
        scan_s, count_s, rate = (spread(values)[0] for values in zip(*measured, strict=True))
        # Its 72 s are for the whole text; the smoke preset has a part of it.
        faster = f"{C_PROGRAM['cooccurrence_s'] / (scan_s + count_s):.1f}x"
        is_whole = len(corpus.vocabulary) == C_PROGRAM["num_words"]
        rows.append(
            {
                "threads": threads,
                "than the C program, co-occurrence": faster if is_whole else "",
                "than the C program, training": f"{rate / C_PROGRAM['pairs_per_s']:.1f}x",
                "than the plain loop, training": f"{rate / plain_pairs_per_s:.1f}x",
                "vocabulary s": f"{scan_s:.2f}",
                "co-occurrence s": f"{count_s:.2f}",
                "M pairs/s": f"{rate / 1e6:.2f}",
                "spread": f"{spread([rate for _, _, rate in measured])[1]:.2f}",
            }
        )  # fmt: skip
    rows.append({**dict.fromkeys(rows[0], ""), "threads": "plain loop, 1",
                 "M pairs/s": f"{plain_pairs_per_s / 1e6:.2f}", "spread": f"{spread(plain)[1]:.2f}"})  # fmt: skip
    return rows, corpus, pairs


def judged(name, embeddings, losses, seconds):
    row = {"vectors": name, "seconds": f"{seconds:.0f}"}
    row |= {f"loss after {epochs}": f"{loss:.5f}" for epochs, loss in losses.items()}
    for file in ("questions-words.txt", "wordsim353.tsv"):
        path = DATA / "words" / file
        if not path.exists():
            continue
        report = evaluate(embeddings, path)
        score = getattr(report, "total", None)
        value, interval = (
            (score.accuracy, score.interval) if score else (report.rho, report.interval)
        )
        row[file] = "" if value is None else f"{value:.3f} ({interval[0]:.3f} to {interval[1]:.3f})"
    return row


def quality(corpus, pairs, epochs, path):
    """Compare talka's order of pairs, a full shuffle and gensim on the same text."""
    sample = fixed_sample(pairs, size=1_000_000)
    rows, found = [], {}
    for name, visit_pairs in {"talka": 1024, "fully shuffled": 1}.items():
        config = GloVeConfig(visit_pairs=visit_pairs)
        model = GloVe(len(corpus.vocabulary), DIM, config=config)
        losses, start = {}, time.perf_counter()
        for epoch in range(1, max(epochs) + 1):
            model.train_epoch(pairs, threads=2)
            if epoch in epochs:
                losses[epoch] = model.evaluate(sample)
        found[name] = losses
        embeddings = Embeddings(corpus.vocabulary.words, model.vectors())
        rows.append(judged(name, embeddings, losses, time.perf_counter() - start))
    for epoch in epochs:
        excess = found["talka"][epoch] / found["fully shuffled"][epoch] - 1
        rows[0][f"loss after {epoch}"] += f" ({100 * excess:+.2f}%)"
    rows.append(gensim_row(path, max(epochs), list(rows[0])))
    return rows


def gensim_row(path, epochs, columns):
    if peer("gensim", gensim_row) is None:
        return {
            **dict.fromkeys(columns, ""),
            "vectors": "gensim word2vec",
            "seconds": "not installed",
        }
    from gensim.models import Word2Vec

    lines = [
        re.findall("[a-z]+", line) for line in path.read_text(errors="replace").lower().splitlines()
    ]
    start = time.perf_counter()
    epochs = min(epochs, 5)  # its default; more take it a quarter of an hour
    model = Word2Vec(lines, vector_size=DIM, window=WINDOW, min_count=MIN_COUNT, workers=2, epochs=epochs, sg=1)  # fmt: skip
    seconds = time.perf_counter() - start
    embeddings = Embeddings(model.wv.index_to_key, model.wv.vectors)
    row = judged(f"gensim word2vec (skip-gram, {epochs} epochs)", embeddings, {}, seconds)
    return {column: row.get(column, "") for column in columns}


def whole_job(path, epochs, *options):
    """Run `talka embed` as a process; return its result, its wall time and its comparisons."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "talka.cli.main",
            "embed",
            str(path),
            "--out",
            f"{folder}/out",
        ]
        command += ["--tokenizer", "letters", "--epochs", str(epochs), "--format", "json"]
        start = time.perf_counter()
        done = subprocess.run([*command, "--runs", folder, *options], capture_output=True, text=True, check=True)  # fmt: skip
        seconds = time.perf_counter() - start
        comparisons = read_run(next(Path(folder).glob("*embed"))).comparisons()
        return json.loads(done.stdout), seconds, comparisons


def growth(text, preset, folder):
    rows = []
    for megabytes in preset["growth_mb"]:
        path = folder / f"{megabytes}.txt"
        path.write_bytes(text[: int(megabytes * 10**6)])
        result, seconds, comparisons = whole_job(path, 3)
        rows.append(growth_row(f"{megabytes} MB", result, seconds, comparisons))
    result, seconds, comparisons = whole_job(path, 3, "--memory", "500MB")
    rows.append(growth_row(f"{megabytes} MB, --memory 500MB", result, seconds, comparisons))
    return rows


def growth_row(name, result, seconds, comparisons):
    phases = {
        row.cost_id: f"{row.measured.seconds:.1f} ({row.measured.seconds / row.predicted.seconds:.2f}x)"
        for row in comparisons
        if row.predicted and row.measured
    }
    is_whole = result["num_words"] == C_PROGRAM["num_words"]
    than_c = f" (C: {C_PROGRAM['whole_s'] / seconds:.1f}x)" if is_whole else ""
    return {
        "text": name,
        "words": f"{result['num_words']:,}",
        "M pairs": f"{result['num_pairs'] / 1e6:.1f}",
        **{f"{part} s (of predicted)": value for part, value in phases.items()},
        "whole command s": f"{seconds:.1f}{than_c}",
        "peak memory GB": f"{result['peak_memory_bytes'] / 1e9:.2f}",
        "loss after 3": f"{result['loss'][-1]:.5f}",
    }


def main():
    args = arguments(__doc__, PRESETS)
    preset = PRESETS[args.preset]
    text = text_of(preset["bytes"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "corpus.txt"
        path.write_bytes(text)
        tables = {}
        tables["Growth, 3 epochs, two threads, one command each"] = growth(text, preset, folder)
        rows, corpus, pairs = speed(path, preset)
        title = f"Speed: {corpus.num_tokens:,} words, {pairs.num_pairs:,} pairs"
        tables[title] = rows
        tables["Quality"] = quality(corpus, pairs, preset["epochs"], path)
    publish(args, "How fast are word vectors made, and are they as good?", tables)


if __name__ == "__main__":
    main()

"""Word vectors trained by processes that share nothing but channels.

    python examples/embeddings_by_channels.py FILE...

Each process holds some coordinates of all vectors, and they send each other nothing but partial dot
products: a number per pair of words, for vectors of any length.
"""

import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from talka.engine import Embedded

DIM, WINDOW, EPOCHS, RATE, BATCH = 32, 4, 20, 0.05, 512


def cooccurrence(text, num_words=400):
    tokens = re.findall(r"[a-z]+", text.lower())
    words = [word for word, _ in Counter(tokens).most_common(num_words)]
    ids = [words.index(token) for token in tokens if token in set(words)]
    counts = Counter()
    for place, left in enumerate(ids):
        near = ids[place + 1 : place + 1 + WINDOW]
        counts.update((left, right) for right in near if left != right)
    return words, np.array(list(counts)), np.array(list(counts.values()), np.float32)


def main(worker, num_words, pairs, counts):
    width = DIM // worker.size
    vectors = np.random.default_rng(worker.rank).normal(0, 0.3, (2, num_words, width))
    order = np.random.default_rng(0)
    for _ in range(EPOCHS):
        for batch in np.array_split(order.permutation(len(pairs)), -(-len(pairs) // BATCH)):
            left, right = pairs[batch].T
            products = (vectors[0, left] * vectors[1, right]).sum(axis=1)
            for rank in worker.others:
                worker.send(products, to=rank)
            products = products + sum(worker.receive(source=rank) for rank in worker.others)
            weight = np.minimum(1, (counts[batch] / 100) ** 0.75)
            step = RATE * (weight * (products - np.log(counts[batch])))[:, None]
            steps = step * vectors[1, right], step * vectors[0, left]
            np.subtract.at(vectors[0], left, steps[0])
            np.subtract.at(vectors[1], right, steps[1])
    return vectors.sum(axis=0)


if __name__ == "__main__":
    paths = sys.argv[1:] or ["README.md", "ARCHITECTURE.md"]
    words, pairs, counts = cooccurrence(" ".join(Path(path).read_text() for path in paths))
    with Embedded() as engine:
        slices = engine.gang(main, len(words), pairs, counts, size=2, backend=None)
    table = np.hstack(slices) / np.linalg.norm(np.hstack(slices), axis=1, keepdims=True)
    for word in words[20:25]:
        nearest = np.argsort(-table @ table[words.index(word)])[1:5]
        print(f"{word}: {', '.join(words[index] for index in nearest)}")

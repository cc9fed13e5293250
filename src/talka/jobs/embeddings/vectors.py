"""Word vectors in memory: neighbours, analogies, the vector of a word.

DIR/vectors.arrow   word, count, vector; exact and fast to load
DIR/vectors.txt     `word v1 v2 ...` per line, for other programs (`vector_files.py`)
"""

import difflib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.errors import InvalidValueError, UnknownNameError

# Difference in length between a misspelt word and its suggested correction. Without this bound the
# search through 70,000 words takes a second.
SPELLING_SLACK = 2


class Neighbour(NamedTuple):
    """A word and its similarity to the word or point that was asked for."""

    word: str
    similarity: float
    """Cosine similarity, from -1 to 1."""


class UnknownWordError(UnknownNameError):
    """A word that is not in the vocabulary.

    >>> print(UnknownWordError("kign", "king", 69152))
    no word 'kign' among the 69,152 of these embeddings. Did you mean 'king'?
    """

    def __init__(self, word: str, nearest: str | None, num_words: int) -> None:
        super().__init__("word", word, () if nearest is None else (nearest,))
        self.args = (word, nearest, num_words)
        self.nearest, self.num_words = nearest, num_words

    def __str__(self) -> str:
        hint = "" if self.nearest is None else f" Did you mean {self.nearest!r}?"
        return f"no word {self.name!r} among the {self.num_words:,} of these embeddings.{hint}"


class Embeddings:
    """Words and their vectors, the most frequent word first.

    >>> vectors = np.array([[1, 0], [0.9, 0.1], [0, 1]], np.float32)
    >>> embeddings = Embeddings(["tea", "coffee", "stone"], vectors)
    >>> embeddings.similar("tea", 1)[0].word, "tee" in embeddings, len(embeddings)
    ('coffee', False, 3)
    """

    def __init__(
        self,
        words: Sequence[str],
        vectors: NDArray[np.float32],
        *,
        counts: NDArray[np.int64] | None = None,
    ) -> None:
        if vectors.ndim != 2 or len(vectors) != len(words):
            raise InvalidValueError("vectors", vectors.shape, f"{len(words)} rows, one per word")
        if counts is not None and len(counts) != len(words):
            raise InvalidValueError("counts", len(counts), f"{len(words)} numbers, one per word")
        self.words = tuple(words)
        self.vectors = np.ascontiguousarray(vectors, np.float32)
        self.counts = counts
        """Occurrences of each word; None if the file does not contain them."""
        self._place = {word: place for place, word in reversed(list(enumerate(self.words)))}

    @classmethod
    def load(cls, directory: Path | str) -> "Embeddings":
        """Read DIR/vectors.arrow, or DIR/vectors.txt if only that exists."""
        from talka.jobs.embeddings.vector_files import read_vectors

        stored = read_vectors(Path(directory))
        return cls(stored.words, stored.vectors, counts=stored.counts)

    def save(self, directory: Path | str, *, header: bool = False) -> None:
        """Write vectors.txt and vectors.arrow; each file appears when it is complete.

        header
            Begin vectors.txt with the line `num_words dim`, like word2vec.
        """
        from talka.jobs.embeddings.vector_files import StoredVectors, write_vectors

        stored = StoredVectors(self.words, self.vectors, self.counts)
        write_vectors(stored, Path(directory), header=header)

    @property
    def dim(self) -> int:
        return int(self.vectors.shape[1])

    @cached_property
    def unit_vectors(self) -> NDArray[np.float32]:
        """All vectors scaled to length 1; a zero vector stays zero."""
        lengths = np.linalg.norm(self.vectors, axis=1, keepdims=True)
        return np.asarray(self.vectors / np.where(lengths == 0, 1, lengths), np.float32)

    @cached_property
    def is_lower_cased(self) -> bool:
        """Whether no word has a capital letter, as with tokenizers that lower-case the text."""
        return all(word == word.lower() for word in self.words)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._place

    def __getitem__(self, word: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.vectors[self.place(word)]
        return vector

    def place(self, word: str) -> int:
        """Return the index of a word; the error for an unknown word suggests the nearest one."""
        try:
            return self._place[word]
        except KeyError:
            raise UnknownWordError(word, self._nearest_spelling(word), len(self)) from None

    def similar(self, word: str, k: int = 10) -> list[Neighbour]:
        """Return the `k` words with the highest cosine similarity to a word."""
        place = self.place(word)
        return self._nearest(self.unit_vectors[place], k, without=(place,))

    def analogy(self, a: str, b: str, c: str, k: int = 10) -> list[Neighbour]:
        """Return the `k` words nearest to b - a + c, except a, b and c: "a is to b as c is to ...".

        `analogy("man", "king", "woman")` computes king - man + woman. The order of words is that of
        analogy files. The three vectors are first scaled to length 1, as in `evaluate`.
        """
        places = [self.place(word) for word in (a, b, c)]
        unit_a, unit_b, unit_c = self.unit_vectors[places]
        return self._nearest(unit_b - unit_a + unit_c, k, without=places)

    def _nearest(
        self, target: NDArray[np.float32], k: int, *, without: Sequence[int]
    ) -> list[Neighbour]:
        if k < 1:
            raise InvalidValueError("k", k, "a whole number of at least 1")
        length = float(np.linalg.norm(target))
        cosines = self.unit_vectors @ (target / (length or 1.0))
        cosines[list(without)] = -np.inf
        k = min(k, len(self) - len(set(without)))
        # Keep all that tie with the k-th, so that the more frequent of equal words is returned.
        threshold = np.partition(cosines, len(self) - k)[len(self) - k] if k else np.inf
        places = np.flatnonzero(cosines >= threshold)
        places = places[np.argsort(-cosines[places], kind="stable")][:k]
        return [Neighbour(self.words[place], float(cosines[place])) for place in places]

    def _nearest_spelling(self, word: str) -> str | None:
        for form in (word.lower(), word.capitalize(), word.upper()):
            if form in self:
                return form
        alike = [known for known in self.words if abs(len(known) - len(word)) <= SPELLING_SLACK]
        return next(iter(difflib.get_close_matches(word, alike, n=1)), None)

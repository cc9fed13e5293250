"""Scores of word vectors on files of questions.

Analogy files (questions-words.txt) have four words per line, `a b c d`, meaning "a is to b as c is
to d"; lines that begin with `:` name sections. Similarity files (wordsim353.tsv, simlex999.txt)
have two words and the mean human rating per line. Lines that begin with `#` are comments in both.
Questions with a word that has no vector are skipped; coverage is the share of questions asked.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.errors import CorpusError
from talka.inputs import name_of, open_input
from talka.jobs.embeddings.statistics import Interval, spearman, spearman_interval, wilson
from talka.jobs.embeddings.vectors import Embeddings

MAX_LINE_BYTES = 65_536
MAX_PRODUCT_VALUES = 16_000_000  # questions x words scored at once: 64 MB


@dataclass(frozen=True, slots=True)
class AnalogyScore:
    """Score on the questions of one section, or of all sections."""

    section: str
    num_questions: int
    num_asked: int
    num_correct: int
    accuracy: float | None
    """Share of correct answers among the questions asked; None if no question was asked."""
    interval: Interval
    coverage: float


@dataclass(frozen=True, slots=True)
class AnalogyReport:
    """Scores on an analogy file, per section and in total."""

    file: str
    sections: tuple[AnalogyScore, ...]
    total: AnalogyScore


@dataclass(frozen=True, slots=True)
class SimilarityReport:
    """Score on a similarity file."""

    file: str
    num_pairs: int
    num_asked: int
    rho: float | None
    """Spearman's rho; None if fewer than two pairs were asked or one side is constant."""
    interval: Interval | None
    coverage: float


class QuestionFile(NamedTuple):
    """The lines of a question file, read only once because it may be a pipe."""

    name: str
    lines: list[tuple[int, str]]
    """Line numbers and lines, without comments and empty lines."""


Questions = QuestionFile | Path | str
"""A question file, or its path."""


def evaluate(embeddings: Embeddings, questions: Questions) -> AnalogyReport | SimilarityReport:
    """Evaluate on a file of either kind, detected by its first line that is not a comment."""
    file = _read(questions)
    for _, line in file.lines:
        if line.startswith(":") or len(line.split()) == 4:
            return evaluate_analogies(embeddings, file)
        return evaluate_similarity(embeddings, file)
    raise CorpusError(file.name, "has no questions", "Give an analogy or similarity file.")


def checked_questions(path: Path | str) -> QuestionFile:
    """Read a file of either kind and raise the errors that `evaluate` would raise."""
    file = _read(path)
    evaluate(Embeddings(["placeholder"], np.zeros((1, 1), np.float32)), file)
    return file


def evaluate_analogies(embeddings: Embeddings, questions: Questions) -> AnalogyReport:
    """Score analogies, per section and in total.

    The answer to `a b c` is the word nearest to b - a + c, except a, b and c.
    """
    file = _read(questions)
    sections, analogies = _read_analogies(embeddings, file)
    asked = np.all(analogies.places >= 0, axis=1)
    correct = np.zeros(len(asked), np.bool_)
    places = analogies.places[asked]
    correct[asked] = _answers(embeddings.unit_vectors, places[:, :3]) == places[:, 3]
    scores = [
        _score(name, asked[analogies.section == number], correct[analogies.section == number])
        for number, name in enumerate(sections)
    ]
    return AnalogyReport(file.name, tuple(scores), _score("total", asked, correct))


def evaluate_similarity(embeddings: Embeddings, questions: Questions) -> SimilarityReport:
    """Compute Spearman's rank correlation of cosine similarities with human ratings."""
    file = _read(questions)
    places, ratings = _read_similarities(embeddings, file)
    asked = np.all(places >= 0, axis=1)
    left, right = (embeddings.unit_vectors[places[asked, side]] for side in (0, 1))
    cosines = np.einsum("nd,nd->n", left, right, dtype=np.float64)
    num_asked = int(asked.sum())
    rho = spearman(cosines, ratings[asked])
    return SimilarityReport(
        file=file.name,
        num_pairs=len(asked),
        num_asked=num_asked,
        rho=rho,
        interval=None if rho is None else spearman_interval(rho, num_asked),
        coverage=num_asked / len(asked) if len(asked) else 0.0,
    )


def _score(section: str, asked: NDArray[np.bool_], correct: NDArray[np.bool_]) -> AnalogyScore:
    num_asked, num_correct = int(asked.sum()), int(correct.sum())
    return AnalogyScore(
        section=section,
        num_questions=len(asked),
        num_asked=num_asked,
        num_correct=num_correct,
        accuracy=num_correct / num_asked if num_asked else None,
        interval=wilson(num_correct, num_asked),
        coverage=num_asked / len(asked) if len(asked) else 0.0,
    )


def _answers(units: NDArray[np.float32], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index of the best answer to each question `a b c`."""
    answers = np.empty(len(places), np.int64)
    at_once = max(1, MAX_PRODUCT_VALUES // max(1, len(units)))
    for start in range(0, len(places), at_once):
        a, b, c = places[start : start + at_once].T
        scores = (units[b] - units[a] + units[c]) @ units.T
        for words in (a, b, c):
            scores[np.arange(len(words)), words] = -np.inf
        answers[start : start + at_once] = scores.argmax(axis=1)
    return answers


class _Analogies(NamedTuple):
    places: NDArray[np.int64]  # [num_questions, 4], -1 for a word without vector
    section: NDArray[np.int64]


def _read_analogies(embeddings: Embeddings, file: QuestionFile) -> tuple[list[str], _Analogies]:
    sections: list[str] = []
    places: list[list[int]] = []
    section: list[int] = []
    find = _Finder(embeddings)
    for number, line in file.lines:
        if line.startswith(":"):
            sections.append(line[1:].strip())
            continue
        words = line.split()
        if len(words) != 4:
            raise CorpusError(
                file.name, f"has {len(words)} words in line {number}", "An analogy has four words."
            )
        if not sections:
            sections.append("all")
        places.append([find(word) for word in words])
        section.append(len(sections) - 1)
    if not places:
        raise CorpusError(file.name, "has no questions", "An analogy has four words.")
    analogies = np.array(places, np.int64).reshape(-1, 4)
    return sections, _Analogies(analogies, np.array(section, np.int64))


def _read_similarities(
    embeddings: Embeddings, file: QuestionFile
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    places: list[list[int]] = []
    ratings: list[float] = []
    find = _Finder(embeddings)
    for number, line in file.lines:
        fields = line.split("\t") if "\t" in line else line.split()
        try:
            left, right, rating = fields
            ratings.append(float(rating))
        except ValueError:
            advice = "Each line must have two words and a number, separated by tabs or spaces."
            raise CorpusError(file.name, f"has {line[:60]!r} in line {number}", advice) from None
        if not math.isfinite(ratings[-1]):
            problem = f"has a number that is not finite in line {number}"
            raise CorpusError(file.name, problem, "Correct it.")
        places.append([find(left.strip()), find(right.strip())])
    return np.array(places, np.int64).reshape(-1, 2), np.array(ratings)


class _Finder:
    """Look-up of words, in lower case if the whole vocabulary is lower case."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self._lower = all(word == word.lower() for word in embeddings.words)

    def __call__(self, word: str) -> int:
        word = word.lower() if self._lower else word
        return self._embeddings.place(word) if word in self._embeddings else -1


def _read(questions: Questions) -> QuestionFile:
    if isinstance(questions, QuestionFile):
        return questions
    name = name_of(questions)
    try:
        with open_input(questions) as file:
            return QuestionFile(name, list(_lines(file, name)))
    except OSError as error:
        problem = f"cannot be read ({error.strerror or error})"
        raise CorpusError(name, problem, "Check the path.") from error
    except UnicodeDecodeError:
        raise CorpusError(name, "is not UTF-8 text", "Check that it is the right file.") from None


def _lines(file: BinaryIO, name: str) -> Iterator[tuple[int, str]]:
    """Yield line numbers and lines, without comments and empty lines."""
    for number in itertools.count(1):
        content = file.readline(MAX_LINE_BYTES + 1)
        if not content:
            return
        if len(content) > MAX_LINE_BYTES:
            problem = f"has more than {MAX_LINE_BYTES} bytes in line {number}"
            raise CorpusError(name, problem, "Check that it is the right file.")
        line = content.decode()
        if line.strip() and not line.startswith("#"):
            yield number, line.strip()

"""How good word vectors are, by files of questions.

Analogy files (questions-words.txt): four words a line, `a b c d`, "a is to b as c is to d", lines
that begin with `:` name sections. Similarity files (wordsim353.tsv, simlex999.txt): two words and
the mean judgement of people. Lines that begin with `#` are comments in both. A question with a word
that has no vector is not asked; coverage says how many were.
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
MAX_PRODUCT_VALUES = 16_000_000  # 64 MB: questions x words that are scored at once


@dataclass(frozen=True, slots=True)
class AnalogyScore:
    """Answers to the questions of one section, or of all."""

    section: str
    num_questions: int
    num_asked: int
    num_correct: int
    accuracy: float | None
    """Of those asked; None when none was."""
    interval: Interval
    coverage: float


@dataclass(frozen=True, slots=True)
class AnalogyReport:
    file: str
    sections: tuple[AnalogyScore, ...]
    total: AnalogyScore


@dataclass(frozen=True, slots=True)
class SimilarityReport:
    file: str
    num_pairs: int
    num_asked: int
    rho: float | None
    """Spearman's; None when fewer than two pairs were asked, or one side does not vary."""
    interval: Interval | None
    coverage: float


class QuestionFile(NamedTuple):
    """The lines of a file of questions: read once, as it may be a pipe."""

    name: str
    lines: list[tuple[int, str]]
    """Lines with their numbers, without comments and empty ones."""


Questions = QuestionFile | Path | str
"""A file of questions, or its path."""


def evaluate(embeddings: Embeddings, questions: Questions) -> AnalogyReport | SimilarityReport:
    """Evaluate on a file of either kind; its first line that is not a comment tells which."""
    file = _read(questions)
    for _, line in file.lines:
        if line.startswith(":") or len(line.split()) == 4:
            return evaluate_analogies(embeddings, file)
        return evaluate_similarity(embeddings, file)
    raise CorpusError(file.name, "has no questions", "Give an analogy or similarity file.")


def checked_questions(path: Path | str) -> QuestionFile:
    """Read a file of either kind, and raise what `evaluate` would."""
    file = _read(path)
    evaluate(Embeddings(["nothing"], np.zeros((1, 1), np.float32)), file)
    return file


def evaluate_analogies(embeddings: Embeddings, questions: Questions) -> AnalogyReport:
    """Ask for the word nearest to b - a + c, the three left out; by section and in total."""
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
    """Spearman's rank correlation of cosines with the judgements of people."""
    file = _read(questions)
    places, judgements = _read_similarities(embeddings, file)
    asked = np.all(places >= 0, axis=1)
    left, right = (embeddings.unit_vectors[places[asked, side]] for side in (0, 1))
    cosines = np.einsum("nd,nd->n", left, right, dtype=np.float64)
    num_asked = int(asked.sum())
    rho = spearman(cosines, judgements[asked])
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
    """The place of the best answer to each question `a b c`."""
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
                file.name, f"has {len(words)} words in line {number}", "An analogy is four words."
            )
        if not sections:
            sections.append("all")
        places.append([find(word) for word in words])
        section.append(len(sections) - 1)
    if not places:
        raise CorpusError(file.name, "has no questions", "An analogy is four words.")
    found = np.array(places, np.int64).reshape(-1, 4)
    return sections, _Analogies(found, np.array(section, np.int64))


def _read_similarities(
    embeddings: Embeddings, file: QuestionFile
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    places: list[list[int]] = []
    judgements: list[float] = []
    find = _Finder(embeddings)
    for number, line in file.lines:
        fields = line.split("\t") if "\t" in line else line.split()
        try:
            left, right, judgement = fields
            judgements.append(float(judgement))
        except ValueError:
            advice = "A line is two words and a number, with tabs or spaces between them."
            raise CorpusError(file.name, f"has {line[:60]!r} in line {number}", advice) from None
        if not math.isfinite(judgements[-1]):
            raise CorpusError(file.name, f"has no finite number in line {number}", "Mend it.")
        places.append([find(left.strip()), find(right.strip())])
    return np.array(places, np.int64).reshape(-1, 2), np.array(judgements)


class _Finder:
    """Places of words; lower-cased when the whole vocabulary is."""

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
    """Lines with their numbers, without comments and empty ones."""
    for number in itertools.count(1):
        given = file.readline(MAX_LINE_BYTES + 1)
        if not given:
            return
        if len(given) > MAX_LINE_BYTES:
            problem = f"has more than {MAX_LINE_BYTES} bytes in line {number}"
            raise CorpusError(name, problem, "Check that it is the right file.")
        line = given.decode()
        if line.strip() and not line.startswith("#"):
            yield number, line.strip()

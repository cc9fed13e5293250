import numpy as np
import pytest

from talka.errors import CorpusError
from talka.jobs.embeddings import evaluation
from talka.jobs.embeddings.evaluation import evaluate, evaluate_analogies, evaluate_similarity
from talka.jobs.embeddings.statistics import spearman, spearman_interval, wilson
from talka.jobs.embeddings.vectors import Embeddings


@pytest.fixture
def embeddings():
    words = [f"w{number}" for number in range(40)]
    return Embeddings(words, np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32))


@pytest.fixture
def questions(tmp_path, embeddings):
    """Three sections; some questions have a word without a vector, some are answered correctly."""
    random = np.random.default_rng(1)
    lines = []
    for section in ("capitals", "grammar: plural", "unknown"):
        lines.append(f": {section}")
        for number in range(30):
            a, b, c, d = (f"w{place}" for place in random.choice(40, 4, replace=False))
            if number % 2:
                d = embeddings.analogy(a, b, c, k=1)[0].word
            if section == "unknown" or number % 7 == 0:
                c = "nowhere"
            lines.append(f"{a} {b} {c} {d}")
    path = tmp_path / "questions.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def plain_score(embeddings, path):
    """Return correct answers and questions asked per section, with one search per question."""
    scores = {}
    for line in path.read_text().splitlines():
        if line.startswith(":"):
            section = line[1:].strip()
            scores[section] = [0, 0]
            continue
        words = line.split()
        if all(word in embeddings for word in words):
            scores[section][1] += 1
            scores[section][0] += embeddings.analogy(*words[:3], k=1)[0].word == words[3]
    return scores


class TestAnalogies:
    @pytest.mark.parametrize("at_once", [1, 100, 10**9])
    def test_agrees_with_one_search_a_question(self, embeddings, questions, monkeypatch, at_once):
        monkeypatch.setattr(evaluation, "MAX_PRODUCT_VALUES", at_once)
        report = evaluate(embeddings, questions)
        expected = plain_score(embeddings, questions)
        hits = {score.section: [score.num_correct, score.num_asked] for score in report.sections}
        assert hits == expected
        assert hits["capitals"][0] > 5

    def test_the_total_is_the_sum_of_the_sections(self, embeddings, questions):
        report = evaluate_analogies(embeddings, questions)
        for field in ("num_questions", "num_asked", "num_correct"):
            parts = sum(getattr(score, field) for score in report.sections)
            assert getattr(report.total, field) == parts
        assert report.total.num_questions == 90

    def test_says_accuracy_interval_and_coverage(self, embeddings, questions):
        score = evaluate_analogies(embeddings, questions).sections[0]
        assert (score.section, score.num_questions, score.num_asked) == ("capitals", 30, 25)
        assert score.accuracy == score.num_correct / 25
        assert score.interval == wilson(score.num_correct, 25)
        assert score.coverage == 25 / 30

    def test_a_section_that_could_not_be_asked_has_no_accuracy(self, embeddings, questions):
        score = evaluate_analogies(embeddings, questions).sections[2]
        assert (score.num_asked, score.accuracy, score.coverage) == (0, None, 0)
        assert score.interval == (0, 1)

    def test_sections_may_be_missing(self, embeddings, tmp_path):
        path = tmp_path / "q.txt"
        path.write_text("w1 w2 w3 w4\n")
        [section] = evaluate(embeddings, path).sections
        assert (section.section, section.num_asked) == ("all", 1)

    @pytest.mark.parametrize(
        "words, asked", [(["athens", "a", "b", "c"], 1), (["Ath", "a", "b", "c"], 0)]
    )
    def test_questions_are_lower_cased_when_the_vocabulary_is(self, tmp_path, words, asked):
        path = tmp_path / "q.txt"
        path.write_text("Athens A B C\n")
        embeddings = Embeddings(words, np.eye(4, dtype=np.float32))
        assert evaluate(embeddings, path).total.num_asked == asked

    def test_three_words_are_no_analogy(self, embeddings, tmp_path):
        path = tmp_path / "q.txt"
        path.write_text(": s\nw1 w2 w3 w4\nw1 w2 w3\n")
        with pytest.raises(CorpusError, match="3 words in line 3"):
            evaluate(embeddings, path)


class TestSimilarity:
    @pytest.mark.parametrize("separator", ["\t", " "])
    def test_is_the_rank_correlation_with_people(self, embeddings, tmp_path, separator):
        random = np.random.default_rng(2)
        pairs = [random.choice(40, 2, replace=False) for _ in range(50)]
        judgements = random.integers(0, 20, 50) / 2  # with ties
        lines = [
            separator.join([f"w{a}", f"w{b}", str(judgement)])
            for (a, b), judgement in zip(pairs, judgements, strict=True)
        ]
        path = tmp_path / "pairs.tsv"
        unknown = separator.join(["w1", "nowhere", "3"])
        path.write_text("# made up\n" + "\n".join(lines) + f"\n{unknown}\n")
        report = evaluate(embeddings, path)
        units = embeddings.unit_vectors.astype(float)
        expected = spearman([units[a] @ units[b] for a, b in pairs], judgements)
        assert report.rho == pytest.approx(expected)
        assert report.interval == pytest.approx(spearman_interval(expected, 50))
        assert (report.num_pairs, report.num_asked, report.coverage) == (51, 50, 50 / 51)

    def test_nothing_asked_gives_no_correlation(self, embeddings, tmp_path):
        path = tmp_path / "pairs.tsv"
        path.write_text("a\tb\t1\n")
        report = evaluate_similarity(embeddings, path)
        assert (report.rho, report.interval, report.coverage) == (None, None, 0)

    @pytest.mark.parametrize("line", ["w1\tw2", "w1\tw2\thigh", "w1 w2", "w1\tw2\tnan"])
    def test_a_line_without_a_number_is_refused_with_its_number(self, embeddings, tmp_path, line):
        path = tmp_path / "pairs.tsv"
        path.write_text(f"w1\tw2\t5\n{line}\n")
        with pytest.raises(CorpusError, match="line 2"):
            evaluate(embeddings, path)


class TestFiles:
    def test_an_empty_file_has_no_questions(self, embeddings, tmp_path):
        path = tmp_path / "empty.txt"
        path.write_text("# only a comment\n\n")
        with pytest.raises(CorpusError, match="no questions"):
            evaluate(embeddings, path)

    def test_a_missing_file(self, embeddings, tmp_path):
        with pytest.raises(CorpusError, match="cannot be read"):
            evaluate(embeddings, tmp_path / "nothing.txt")

    def test_rubbish(self, embeddings, tmp_path):
        path = tmp_path / "rubbish.txt"
        path.write_bytes(b"\xff\x00\xfe")
        with pytest.raises(CorpusError, match="UTF-8"):
            evaluate(embeddings, path)

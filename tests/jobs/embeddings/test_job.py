"""The whole job on a small text: its files, the vectors, and predicted against measured cost."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from talka.errors import InvalidValueError, NothingToLearnError
from talka.events import Stream, read_run
from talka.jobs.embeddings import Embeddings
from talka.jobs.embeddings.plan import EmbedPlan
from tests.data.text import twin
from tests.jobs.embeddings.small_text import (
    TOPICS,
    config_of,
    embed,
    files_in,
    write_small_text,
)
from tests.plan_parts import parts_of

DATA = Path(os.environ.get("TALKA_DATA", "../shared/data")) / "text"
KEYS = {"num_words", "num_pairs", "loss", "running_loss", "seconds", "peak_memory_bytes"}
KEYS_BEYOND_THE_ISSUE = {"num_tokens", "num_replaced"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("job")


@pytest.fixture(scope="module")
def text(folder):
    return write_small_text(folder)


@pytest.fixture(scope="module")
def finished(folder, text):
    """Return one run that many tests read."""
    return embed(config_of(text), folder / "vectors")


@pytest.fixture(scope="module")
def vectors(folder, finished):
    return folder / "vectors"


def vectors_txt(config, out, **options):
    EmbedPlan(config, out, **options).run(Stream())
    return (out / "vectors.txt").read_bytes()


class TestOutput:
    def test_is_three_files_and_nothing_else_is_left(self, folder, vectors):
        assert set(files_in(vectors)) == {"vectors.txt", "vectors.arrow", "result.json"}
        assert {path.name for path in folder.iterdir()} == {"text.txt", "runs", "vectors"}

    def test_the_result_says_what_was_promised(self, vectors, finished):
        result = json.loads((vectors / "result.json").read_text())
        assert set(result) == KEYS | KEYS_BEYOND_THE_ISSUE
        assert result == finished.result
        assert set(result["seconds"]) >= {"embed/vocabulary", "embed/cooccurrence", "embed/train"}
        assert all(seconds >= 0 for seconds in result["seconds"].values())
        assert result["peak_memory_bytes"] > 10_000_000

    def test_the_run_directory_has_the_same_result_and_what_was_asked(self, finished):
        record = read_run(finished.dir)
        assert record.status == "done"
        assert record.result == finished.result
        assert record.config["config"]["text"]["pairs"]["window"] == 5

    def test_losses_fall_with_every_epoch(self, finished):
        for name in ("loss", "running_loss"):
            losses = finished.result[name]
            assert len(losses) == 3
            assert losses == sorted(losses, reverse=True)
            assert losses[-1] > 0

    def test_words_and_pairs_are_those_of_a_plain_twin(self, text, vectors, finished):
        written = [text.read_text()]
        expected = twin.vocabulary(written, twin.words, 5)
        known = [word for word, _ in expected]
        loaded = Embeddings.load(vectors)
        assert list(zip(loaded.words, loaded.counts.tolist(), strict=True)) == expected
        pairs = twin.pairs(written, twin.words, known, window=5, across_lines=False)
        assert finished.result["num_pairs"] == len(pairs)
        assert finished.result["num_words"] == len(known) == 300

    def test_the_vectors_can_be_loaded_and_agree_with_the_text_form(self, vectors, finished):
        loaded = Embeddings.load(vectors)
        lines = (vectors / "vectors.txt").read_text().splitlines()
        assert [line.split(" ")[0] for line in lines] == list(loaded.words)
        printed = np.array([line.split(" ")[1:] for line in lines], float)
        np.testing.assert_allclose(printed, loaded.vectors, atol=5.1e-7)
        assert loaded.dim == 10

    def test_words_of_a_topic_are_each_others_neighbours(self, folder, text):
        out = folder / "trained"
        embed(config_of(text, epochs=10, dim=20), out)
        loaded = Embeddings.load(out)
        words = [word for topic in TOPICS for word in topic[:10]]
        neighbours = [(word, near.word) for word in words for near in loaded.similar(word, 5)]
        same = [word for word, near in neighbours if word[0] == near[0]]
        assert len(same) / len(neighbours) > 0.9, "by chance it would be 0.09"

    def test_a_header_is_one_line_more(self, folder, text, vectors):
        with_header = vectors_txt(config_of(text), folder / "header", header=True)
        assert with_header == b"300 10\n" + (vectors / "vectors.txt").read_bytes()

    @pytest.mark.filterwarnings("ignore::ResourceWarning")  # gensim leaves the file open
    def test_gensim_reads_both_forms(self, folder, text, vectors):
        models = pytest.importorskip("gensim.models", reason="gensim is not installed")
        vectors_txt(config_of(text), folder / "for_gensim", header=True)
        loaded = Embeddings.load(vectors)
        for out, no_header in ((vectors, True), (folder / "for_gensim", False)):
            read = models.KeyedVectors.load_word2vec_format(
                str(out / "vectors.txt"), no_header=no_header
            )
            np.testing.assert_allclose(read["b00"], loaded["b00"], atol=1e-6)

    def test_any_function_may_be_the_tokenizer(self, folder, text):
        by_name = vectors_txt(config_of(text, tokenizer="whitespace"), folder / "by_name")
        by_function = vectors_txt(config_of(text, tokenizer=str.split), folder / "by_function")
        assert by_function == by_name


class TestDeterminism:
    def test_one_thread_gives_the_same_bits_for_the_same_seed(self, tmp_path, text, vectors):
        again = vectors_txt(config_of(text), tmp_path / "again")
        assert again == (vectors / "vectors.txt").read_bytes()
        assert vectors_txt(config_of(text, seed=1), tmp_path / "other") != again

    @pytest.mark.parametrize("memory_bytes", [1, 300_000])
    def test_memory_changes_nothing_but_memory(self, tmp_path, text, vectors, memory_bytes):
        config = config_of(text, memory_bytes=memory_bytes)
        limited = vectors_txt(config, tmp_path / "limited")
        assert limited == (vectors / "vectors.txt").read_bytes()

    def test_two_threads_find_the_same_pairs_and_learn_as_well(self, tmp_path, text, finished):
        shared = embed(config_of(text, threads=2), tmp_path / "out").result
        for name in ("num_words", "num_pairs", "num_tokens"):
            assert shared[name] == finished.result[name]
        assert shared["loss"] == pytest.approx(finished.result["loss"], rel=0.05)


class TestPrediction:
    def test_a_sample_that_is_the_whole_corpus_is_exact(self, tmp_path, text, finished):
        expected = EmbedPlan(config_of(text), tmp_path / "out").expected
        assert expected.num_pairs == finished.result["num_pairs"]
        assert expected.num_words == finished.result["num_words"]
        assert expected.num_tokens == finished.result["num_tokens"]

    def test_every_predicted_part_meets_a_measured_one(self, finished):
        predicted = [row for row in finished.comparisons if row.predicted]
        names = ["embed", "embed/vocabulary", "embed/cooccurrence", "embed/train"]
        assert [row.cost_id for row in predicted] == names
        assert all(row.measured.seconds > 0 for row in predicted)
        assert all(row.predicted.seconds > 0 for row in predicted)
        assert all(row.predicted.reason for row in predicted[1:])
        assert predicted[0].predicted.memory_bytes > 0

    def test_explaining_leaves_nothing_behind(self, tmp_path, text):
        EmbedPlan(config_of(text), tmp_path / "out").explain()
        assert list(tmp_path.iterdir()) == []

    def test_a_corpus_without_frequent_words_predicts_nothing_and_fails(self, tmp_path, text):
        job = EmbedPlan(config_of(text, min_count=10_000_000), tmp_path / "out")
        assert all(part.seconds is None for part in parts_of(job))
        with pytest.raises(NothingToLearnError, match="no word occurs 10000000 times"):
            job.run(Stream())
        assert list(tmp_path.iterdir()) == []


def embed_in_slices(folder, text, workers):
    config = config_of(text, parallel="dimensions", workers=workers, epochs=2)
    return embed(config, folder / f"of_{workers}")


@pytest.fixture(scope="module")
def one_worker(folder, text):
    return embed_in_slices(folder, text, 1)


@pytest.fixture(scope="module")
def two_workers(folder, text):
    return embed_in_slices(folder, text, 2)


class TestSlices:
    """Training with `parallel="dimensions"`: each process holds a slice of the coordinates."""

    @staticmethod
    def check(finished, expected):
        for name in ("loss", "running_loss"):
            assert finished.result[name] == pytest.approx(expected.result[name], rel=1e-4)
        assert finished.result["num_pairs"] == expected.result["num_pairs"]
        [training] = [
            row for row in read_run(finished.dir).comparisons() if row.cost_id == "embed/train"
        ]
        assert training.measured.sent_bytes == pytest.approx(
            training.predicted.sent_bytes, rel=0.03
        )
        assert training.measured.sent_bytes > 0

    def test_two_workers_learn_what_one_learns_and_send_the_predicted_bytes(
        self, folder, one_worker, two_workers
    ):
        self.check(two_workers, one_worker)
        vectors = [Embeddings.load(folder / f"of_{workers}").vectors for workers in (1, 2)]
        np.testing.assert_allclose(vectors[1], vectors[0], atol=1e-4)

    def test_one_worker_sends_nothing(self, one_worker):
        [training] = [row for row in one_worker.comparisons if row.cost_id == "embed/train"]
        assert training.predicted.sent_bytes == 0
        assert training.measured.sent_bytes == pytest.approx(0, abs=100)

    def test_every_predicted_part_meets_a_measured_one(self, two_workers):
        predicted = [row for row in two_workers.comparisons if row.predicted]
        names = [
            "embed",
            "embed/vocabulary",
            "embed/cooccurrence",
            "embed/train/start",
            "embed/train",
        ]
        assert [row.cost_id for row in predicted] == names
        assert all(row.measured.seconds > 0 for row in predicted)
        assert two_workers.result["seconds"]["embed/train"] > 0

    @pytest.mark.slow
    def test_three_workers_too(self, folder, text, one_worker):
        self.check(embed_in_slices(folder, text, 3), one_worker)

    @pytest.mark.slow
    def test_a_worker_may_hold_no_coordinate_but_a_bias(self, folder, text):
        config = config_of(text, parallel="dimensions", workers=3, dim=1, epochs=1)
        embed(config, folder / "narrow")
        assert Embeddings.load(folder / "narrow").dim == 1


class TestOptions:
    @pytest.mark.parametrize("name", ["dim", "epochs", "workers", "threads", "memory_bytes"])
    @pytest.mark.parametrize("value", [0, -1])
    def test_must_be_positive(self, name, value):
        with pytest.raises(InvalidValueError, match=f"--{name.removesuffix('_bytes')} is {value}"):
            config_of("text", **{name: value})

    @pytest.mark.parametrize("name", ["dim", "threads", "window"])
    def test_that_would_take_all_memory_are_refused(self, name):
        with pytest.raises(InvalidValueError, match=f"{name} is 100000, .* from 1 to"):
            config_of("text", **{name: 100_000})

    def test_a_slice_has_at_least_a_coordinate(self):
        with pytest.raises(InvalidValueError, match="workers is 13, but must be at most 12"):
            config_of("text", parallel="dimensions", workers=13)


def test_shakespeare(tmp_path):
    path = DATA / "tinyshakespeare.txt"
    if not path.exists():
        pytest.skip(f"{path} is not here (TALKA_DATA names the folder)")
    finished = embed(config_of(path, epochs=4, dim=50), tmp_path / "out")
    assert finished.result["loss"] == sorted(finished.result["loss"], reverse=True)
    assert (
        EmbedPlan(config_of(path), tmp_path / "x").expected.num_pairs
        == finished.result["num_pairs"]
    )

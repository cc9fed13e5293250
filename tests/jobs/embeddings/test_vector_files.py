import numpy as np
import pytest

from talka.errors import OutputError
from talka.jobs.embeddings.vector_files import VectorFileError
from talka.jobs.embeddings.vectors import Embeddings

WORDS = ["the", "naïve", "5", "a\u00a0b", "\u2028", '"']


@pytest.fixture
def embeddings():
    vectors = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    return Embeddings(WORDS, vectors, counts=np.arange(6, 0, -1))


class TestSaveAndLoad:
    def test_arrow_gives_back_every_bit(self, embeddings, tmp_path):
        embeddings.save(tmp_path / "new" / "folder")
        loaded = Embeddings.load(tmp_path / "new" / "folder")
        assert loaded.words == embeddings.words
        np.testing.assert_array_equal(loaded.vectors, embeddings.vectors)
        np.testing.assert_array_equal(loaded.counts, embeddings.counts)

    @pytest.mark.parametrize("header", [False, True])
    def test_text_gives_back_six_decimals(self, embeddings, tmp_path, header):
        embeddings.save(str(tmp_path), header=header)
        (tmp_path / "vectors.arrow").unlink()
        loaded = Embeddings.load(str(tmp_path))
        assert loaded.words == embeddings.words
        assert loaded.counts is None
        np.testing.assert_allclose(loaded.vectors, embeddings.vectors, atol=1e-6)

    def test_the_text_is_one_word_and_its_values_a_line(self, tmp_path):
        Embeddings(["a", "b"], np.array([[1, -0.5], [0, 2]], np.float32)).save(tmp_path)
        expected = "a 1.000000 -0.500000\nb 0.000000 2.000000\n"
        assert (tmp_path / "vectors.txt").read_text() == expected

    def test_the_header_is_that_of_word2vec(self, tmp_path):
        Embeddings(["a", "b"], np.zeros((2, 3), np.float32)).save(tmp_path, header=True)
        assert (tmp_path / "vectors.txt").read_text().splitlines()[0] == "2 3"

    def test_nothing_is_left_beside_the_two_files(self, embeddings, tmp_path):
        embeddings.save(tmp_path)
        embeddings.save(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {"vectors.arrow", "vectors.txt"}

    def test_counts_may_be_missing(self, tmp_path):
        Embeddings(["a"], np.ones((1, 1), np.float32)).save(tmp_path)
        assert Embeddings.load(tmp_path).counts is None

    @pytest.mark.filterwarnings("ignore::ResourceWarning")  # gensim leaves the file open
    def test_gensim_reads_the_text(self, embeddings, tmp_path):
        models = pytest.importorskip("gensim.models")
        for header in (False, True):
            embeddings.save(tmp_path, header=header)
            read = models.KeyedVectors.load_word2vec_format(
                str(tmp_path / "vectors.txt"), no_header=not header
            )
            np.testing.assert_allclose(read["the"], embeddings["the"], atol=1e-6)


class TestTextOfOthers:
    def load(self, tmp_path, text):
        (tmp_path / "vectors.txt").write_text(text, encoding="utf-8")
        return Embeddings.load(tmp_path)

    def test_spaces_and_returns_at_line_ends_are_no_values(self, tmp_path):
        loaded = self.load(tmp_path, "1 2\r\na 1 2 \r\n")
        assert loaded.words == ("a",)
        assert loaded["a"].tolist() == [1, 2]

    def test_a_number_as_a_word_is_no_header(self, tmp_path):
        loaded = self.load(tmp_path, "7 1\n8 2\n9 3\n")
        assert loaded.words in {("7", "8", "9"), ("8", "9")}  # ambiguous with one dimension
        assert self.load(tmp_path, "7 1 2\n8 2 3\n").words == ("7", "8")

    @pytest.mark.parametrize(
        "text, problem",
        [
            ("a 1 2\nb 1\n", "2 values in row 2"),
            ("a 1 x\n", "row 1.*'x'"),
            ("a 1 2\nb 1 nan\n", "not a finite number in the vector of 'b'"),
            ("a\n", "a word and its values in row 1"),
            ("a 1\n\nb 1\n", "row 2"),
        ],
    )
    def test_what_is_wrong_is_named_with_its_row(self, tmp_path, text, problem):
        with pytest.raises(VectorFileError, match=problem):
            self.load(tmp_path, text)

    def test_other_encodings_are_refused(self, tmp_path):
        (tmp_path / "vectors.txt").write_bytes(b"\xff\xfe 1 2\n")
        with pytest.raises(VectorFileError, match="UTF-8"):
            Embeddings.load(tmp_path)


class TestWhatCannotBe:
    def test_a_folder_without_vectors(self, tmp_path):
        with pytest.raises(VectorFileError, match=r"neither vectors\.arrow nor vectors\.txt"):
            Embeddings.load(tmp_path)

    def test_a_folder_that_does_not_exist(self, tmp_path):
        with pytest.raises(VectorFileError, match="is not a folder"):
            Embeddings.load(tmp_path / "nowhere")

    @pytest.mark.parametrize("length", [0, 20, 300])
    def test_an_arrow_file_that_was_cut_off(self, embeddings, tmp_path, length):
        embeddings.save(tmp_path)
        path = tmp_path / "vectors.arrow"
        path.write_bytes(path.read_bytes()[:length])
        with pytest.raises(VectorFileError):
            Embeddings.load(tmp_path)

    def test_a_folder_that_is_a_file(self, embeddings, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(OutputError):
            embeddings.save(tmp_path / "file")

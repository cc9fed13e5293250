import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from talka.errors import InvalidValueError, TalkaError, UnknownNameError
from talka.jobs.embeddings.vectors import Embeddings, UnknownWordError

WORDS = ["the", "king", "queen", "man", "woman", "stone"]
VECTORS = np.array(
    [[0.1, 0.1, 0.1], [1, 1, 0], [1, -1, 0], [0.1, 1, 0], [0.1, -1, 0], [0, 0, -1]], np.float32
)


@pytest.fixture
def embeddings():
    return Embeddings(WORDS, VECTORS, counts=np.array([60, 50, 40, 30, 20, 10]))


def cosine(left, right):
    return float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))


class TestLookup:
    def test_gives_the_vector_of_a_word(self, embeddings):
        np.testing.assert_array_equal(embeddings["king"], VECTORS[1])
        assert len(embeddings) == 6
        assert embeddings.dim == 3
        assert "king" in embeddings
        assert "kings" not in embeddings

    def test_offers_the_nearest_spelling_of_an_unknown_word(self, embeddings):
        with pytest.raises(UnknownWordError, match="no word 'quen' among the 6 .*'queen'"):
            embeddings["quen"]

    def test_offers_nothing_when_nothing_is_near(self, embeddings):
        with pytest.raises(UnknownNameError) as caught:
            embeddings.similar("zzzzzzzzzz")
        assert "Did you mean" not in str(caught.value)

    def test_an_unknown_word_survives_the_way_between_processes(self):
        error = pickle.loads(pickle.dumps(UnknownWordError("kign", "king", 5)))
        assert str(error) == str(UnknownWordError("kign", "king", 5))

    def test_of_a_word_that_comes_twice_the_first_counts(self):
        twice = Embeddings(["a", "a"], np.array([[1.0], [2.0]], np.float32))
        assert twice["a"][0] == 1

    def test_words_and_vectors_must_be_as_many(self):
        with pytest.raises(InvalidValueError, match="vectors"):
            Embeddings(["a"], np.zeros((2, 3), np.float32))
        with pytest.raises(InvalidValueError, match="counts"):
            Embeddings(["a"], np.zeros((1, 3), np.float32), counts=np.array([1, 2]))


class TestNeighbours:
    def test_king_minus_man_plus_woman_is_queen(self, embeddings):
        [best] = embeddings.analogy("man", "king", "woman", k=1)
        assert best.word == "queen"
        assert best.similarity > 0.9

    def test_the_words_asked_about_are_no_answers(self, embeddings):
        answers = {neighbour.word for neighbour in embeddings.analogy("man", "king", "woman")}
        assert answers == {"the", "queen", "stone"}
        assert "king" not in {neighbour.word for neighbour in embeddings.similar("king")}

    @given(
        arrays(np.float32, (12, 3), elements=st.floats(-1, 1, width=16)),
        st.integers(0, 11),
        st.integers(1, 20),
    )
    def test_similar_words_are_those_of_a_full_sort(self, vectors, place, k):
        lengths = np.linalg.norm(vectors.astype(float), axis=1)
        vectors[lengths < 1e-3] = [1, 0, 0]
        words = [f"w{number}" for number in range(12)]
        neighbours = Embeddings(words, vectors).similar(words[place], k)
        expected = sorted(
            (
                cosine(vectors[place].astype(float), vectors[other].astype(float))
                for other in range(12)
                if other != place
            ),
            reverse=True,
        )[:k]
        np.testing.assert_allclose([item.similarity for item in neighbours], expected, atol=1e-5)
        for item in neighbours:
            other = vectors[words.index(item.word)].astype(float)
            assert item.similarity == pytest.approx(
                cosine(vectors[place].astype(float), other), abs=1e-5
            )

    def test_ties_go_to_the_more_frequent_word(self):
        vectors = np.array([[1, 0]] + [[0, 1]] * 5, np.float32)
        neighbours = Embeddings(list("abcdef"), vectors).similar("a", 3)
        assert [item.word for item in neighbours] == ["b", "c", "d"]

    def test_a_zero_vector_is_like_nothing(self):
        embeddings = Embeddings(["a", "b"], np.array([[1, 0], [0, 0]], np.float32))
        assert embeddings.similar("a") == [("b", 0.0)]
        assert embeddings.similar("b") == [("a", 0.0)]

    def test_one_word_has_no_neighbours(self):
        assert Embeddings(["a"], np.ones((1, 2), np.float32)).similar("a") == []

    def test_at_least_one_neighbour_must_be_asked_for(self, embeddings):
        with pytest.raises(InvalidValueError, match="k is 0"):
            embeddings.similar("king", 0)


class TestErrors:
    def test_all_are_of_the_one_family(self):
        assert issubclass(UnknownWordError, TalkaError)
        assert issubclass(UnknownWordError, LookupError)

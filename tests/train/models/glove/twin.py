"""GloVe as plainly as it can be written: float64, one pair after the other.

Compiled as it stands, because 6 million steps in the interpreter take minutes.
"""

import numba
import numpy as np


@numba.njit
def twin_epoch(words, contexts, rows, cols, counts, rate, x_max, alpha):
    """Train on the pairs in the given order; gives the mean loss.

    `words` and `contexts` are (vectors, biases, squares, bias squares).
    """
    vectors, biases, squares, bias_squares = words
    context_vectors, context_biases, context_squares, context_bias_squares = contexts
    loss = 0.0
    for i, j, count in zip(rows, cols, counts):  # noqa: B905  # numba knows no `strict`
        error = np.sum(vectors[i] * context_vectors[j]) + biases[i] + context_biases[j]
        error -= np.log(count)
        weight = (count / x_max) ** alpha if count < x_max else 1.0
        loss += 0.5 * weight * error**2
        slope = rate * weight * error
        step, context_step = slope * context_vectors[j], slope * vectors[i]
        vectors[i] -= step / np.sqrt(squares[i])
        context_vectors[j] -= context_step / np.sqrt(context_squares[j])
        squares[i] += step**2
        context_squares[j] += context_step**2
        biases[i] -= slope / np.sqrt(bias_squares[i])
        context_biases[j] -= slope / np.sqrt(context_bias_squares[j])
        bias_squares[i] += slope**2
        context_bias_squares[j] += slope**2
    return loss / len(rows)


def side(random, num_words, dim):
    vectors = (random.random((num_words, dim)) - 0.5) / dim
    biases = (random.random(num_words) - 0.5) / dim
    return vectors, biases, np.ones((num_words, dim)), np.ones(num_words)


class Twin:
    def __init__(self, num_words, dim, *, seed=0, rate=0.05, x_max=100.0, alpha=0.75):
        random = np.random.default_rng(seed)
        self.words, self.contexts = side(random, num_words, dim), side(random, num_words, dim)
        self.options = (rate, x_max, alpha)

    def start_like(self, table, dim):
        """Take the start of a trainer's table instead of a random one of our own."""
        words, contexts = table[: len(table) // 2], table[len(table) // 2 :]
        self.words[0][:], self.words[1][:] = words[:, 0, :dim], words[:, 0, dim]
        self.contexts[0][:], self.contexts[1][:] = contexts[:, 0, :dim], contexts[:, 0, dim + 1]

    def epoch(self, rows, cols, counts):
        return twin_epoch(self.words, self.contexts, rows, cols, counts, *self.options)

    def evaluate(self, rows, cols, counts):
        products = np.einsum("nd,nd->n", self.words[0][rows], self.contexts[0][cols])
        errors = products + self.words[1][rows] + self.contexts[1][cols] - np.log(counts)
        weights = np.minimum(1, (counts / self.options[1]) ** self.options[2])
        return np.mean(0.5 * weights * errors**2)

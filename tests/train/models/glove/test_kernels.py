import numba
import numpy as np
import pytest

from talka.train.models.glove import GloVe, GloVeConfig, kernels
from talka.train.models.glove.order import visits_of
from talka.train.models.glove.table import new_table, num_lines
from tests.train.models.glove.planted import in_blocks, planted


def kernel_arguments(blocks, dim, *, visit_pairs=1_024):
    table = new_table(blocks.num_words, dim, seed=0)
    pairs = blocks.pairs.view(np.uint32).reshape(-1, 2)
    visits = visits_of(blocks, visit_pairs=visit_pairs)
    return table, (0,) * num_lines(dim), pairs, visits, kernels.Rates.of(GloVeConfig())


def test_no_access_leaves_its_array():
    """Compiled once more with bounds checks: without them a wrong index damages memory in silence."""
    blocks = planted(10_000, num_words=300, block_edge=100)
    checked = numba.njit(boundscheck=True, error_model="numpy")(kernels.train_visits.py_func)
    expected = kernels.train_visits(*kernel_arguments(blocks, 20))
    assert checked(*kernel_arguments(blocks, 20)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("visit_pairs", [1, 7, 2_048])
def test_how_visits_fill_the_buffer_does_not_matter(visit_pairs):
    """If blocks are trained in order, their division into visits does not change a bit."""
    blocks = planted(10_000, num_words=300, block_edge=100)
    first, other = (
        kernel_arguments(blocks, 20),
        kernel_arguments(blocks, 20, visit_pairs=visit_pairs),
    )
    assert kernels.train_visits(*first) == kernels.train_visits(*other)
    assert first[0].tobytes() == other[0].tobytes()


def test_a_word_number_too_large_is_noticed_before_it_is_used():
    blocks = in_blocks([3], [3], [1.0], num_words=4, block_edge=4)
    arguments = kernel_arguments(blocks, 2)
    smaller = new_table(3, 2, seed=0)
    assert kernels.train_visits(smaller, *arguments[1:]) == kernels.OUT_OF_RANGE


def test_loops_are_vector_code():
    """The scalar loop is three times slower, and no other test would notice."""
    blocks = in_blocks([0], [0], [1.0], num_words=1, block_edge=1)
    GloVe(1, 100).train_epoch(blocks)
    code = numba.njit(fastmath={"reassoc", "contract"}, error_model="numpy")(
        kernels.train_visits.py_func
    )
    code(*kernel_arguments(blocks, 100))
    [llvm] = code.inspect_llvm().values()
    assert "llvm.prefetch" in llvm
    assert "x float> @llvm.sqrt" in llvm

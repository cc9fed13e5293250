"""No kernel reads or writes outside of its arrays."""

from tests.bounds import lines_said_with_bounds_checked
from tests.graph.kernels.checked_kernels import GRAPHS


def test_all_kernels_stay_inside_of_their_arrays(tmp_path):
    lines = lines_said_with_bounds_checked("tests.graph.kernels.checked_kernels", tmp_path)
    assert len(lines) == 2 * len(GRAPHS)

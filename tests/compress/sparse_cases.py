"""What the tests of sparse compressors are given: vectors of all kinds, and layouts."""

import itertools

import numpy as np
import torch
from hypothesis import strategies as st

from talka.compress import ErrorFeedback, Piece, cut, layout_of
from talka.errors import NonFiniteError

KINDS = {
    "gaussian": lambda rng, n: rng.standard_normal(n),
    "heavy": lambda rng, n: rng.standard_t(1.5, n),
    "zeros": lambda rng, n: np.zeros(n),
    "negative zeros": lambda rng, n: -np.zeros(n),
    "equal": lambda rng, n: np.full(n, -0.25),
    "ties": lambda rng, n: rng.integers(-3, 4, n),
    "few": lambda rng, n: rng.standard_normal(n) * (rng.random(n) < 0.01),
    "denormals": lambda rng, n: rng.integers(-9, 10, n) * 1e-45,
    "huge": lambda rng, n: rng.standard_normal(n) * 1e38,
    "all scales": lambda rng, n: rng.standard_normal(n) * 10.0 ** rng.integers(-44, 37, n),
}


def vector(kind, num_values, seed):
    made = KINDS[kind](np.random.default_rng(seed), num_values)
    return np.clip(made, -3.4e38, 3.4e38).astype(np.float32)


def vectors(max_size=5000):
    """Mostly small ones; sizes around blocks and words."""
    edges = [1, 2, 31, 32, 33, 63, 64, 65, 511, 512, 513, 1024, 4096]
    sizes = st.one_of(
        st.sampled_from([one for one in edges if one <= max_size]), st.integers(1, max_size)
    )
    made = st.builds(vector, st.sampled_from(sorted(KINDS)), sizes, st.integers(0, 1 << 32))
    floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
    listed = st.lists(floats, min_size=1, max_size=9).map(lambda x: np.array(x, np.float32))
    return st.one_of(made, listed)


@st.composite
def layouts(draw, num_values):
    """Parameters side by side, or a chunk of them, cut anywhere."""
    inner = draw(st.lists(st.integers(0, num_values), max_size=4))
    before, after = draw(st.integers(0, 9)), draw(st.integers(0, 9))
    edges = [0, *sorted(one + before for one in inner), before + num_values + after]
    sizes = [b - a for a, b in itertools.pairwise(edges)]
    whole = layout_of({f"p{place}": (size,) for place, size in enumerate(sizes)})
    return cut(whole, before, before + num_values)


def whole_piece(num_values):
    return Piece("w", (num_values,), 0, 0, num_values)


def run(one, values, layout):
    """All that can be seen of an encoding: bytes or the error, residuals, state."""
    try:
        seen = one.encode(torch.from_numpy(values.copy()), layout).data.numpy().tobytes()
    except NonFiniteError as error:
        seen = str(error)
    residuals = one.residuals if isinstance(one, ErrorFeedback) else {}
    kept = {name: value.numpy().tobytes() for name, value in residuals.items()}
    return (
        seen,
        kept,
        {key: float(value) for key, value in one.state().items() if key.kind != "residual"},
    )

"""How counts grow with the size of an input, from a sample of it.

Different words in a text, or vertices in a list of edges, grow with a power of its length whose
exponent falls slowly: in natural text by about 0.04 with every doubling. That was fitted to one text,
0.5 to 100 MB of English Wikipedia.
"""

import math

FALL_PER_DOUBLING = 0.04


def extrapolated(half: float, whole: float, num_doublings: float) -> float:
    """Return a count after more doublings, from its values for half of a sample and all of it.

    >>> round(extrapolated(2_970_102, 5_573_765, 3.69) / 1e6)  # 45.1 million were counted
    45
    """
    exponent = math.log2(max(whole, 1) / max(half, 1))
    grown, done = 0.0, 0.0
    while done < num_doublings:
        step = min(1.0, num_doublings - done)
        grown += step * max(0.0, exponent - FALL_PER_DOUBLING * (done + 1))
        done += step
    return whole * math.pow(2.0, grown)

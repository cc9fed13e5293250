"""GloVe word embeddings, trained by threads that share one model without locks.

`order.py` determines the order of pairs, `kernels.py` has the compiled loops, `table.py` the model in
memory, `loss.py` the evaluation, `state.py` the file format. Not here: text and counts
(talka/data/text), and the use of vectors afterwards (talka/jobs).
"""

from talka.train.models.glove.base import (
    PAIR_DTYPE,
    DivergedError,
    GloVeConfig,
    PairSource,
)
from talka.train.models.glove.loss import PairSample, fixed_sample, weight
from talka.train.models.glove.model import GloVe

PairBlocks = PairSource  # its former name

__all__ = [
    "PAIR_DTYPE",
    "DivergedError",
    "GloVe",
    "GloVeConfig",
    "PairBlocks",
    "PairSample",
    "PairSource",
    "fixed_sample",
    "weight",
]

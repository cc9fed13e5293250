"""GloVe word embeddings, trained by threads that share one model without locks.

`order.py` says which pairs come when, `kernels.py` takes the steps, `table.py` is the model in
memory, `loss.py` judges, `state.py` saves. Not here: text and counts (talka/data/text), what is
done with vectors afterwards (talka/jobs).
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

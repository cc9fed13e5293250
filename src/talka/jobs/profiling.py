"""All trials of the machine profile, for `talka profile`; the pillars define them."""

from importlib.util import find_spec

from talka.engine.trials import WORKERS
from talka.graph.trials import GRAPH
from talka.profile import MEMORY, Trial


def all_trials() -> list[Trial]:
    """Return the trials of everything that is installed here."""
    trials = [MEMORY, WORKERS, GRAPH]
    if find_spec("torch") is not None:
        from talka.train.codec_rates import codec_trial
        from talka.train.models.glove.trials import SLICES
        from talka.train.predictions import DEFAULT_SPECS

        trials += [SLICES, *map(codec_trial, DEFAULT_SPECS)]
    return trials

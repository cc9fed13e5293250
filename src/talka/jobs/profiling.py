"""All trials of the machine profile, for `talka profile`; the pillars define them."""

from importlib.util import find_spec

from talka.engine.trials import WORKERS
from talka.graph.trials import GRAPH
from talka.profile import MEMORY, Trial


def all_trials() -> list[Trial]:
    """Return the trials of everything that is installed here."""
    trials = [MEMORY, WORKERS, GRAPH]
    if find_spec("torch") is not None:
        from talka.train.models.glove.trials import SLICES

        trials.append(SLICES)
    return trials

"""Merging the states of a former number of workers for another number of workers."""

from collections.abc import Sequence

import torch
from torch import Tensor

from talka.compress import State


def mean_of(states: Sequence[State], kind: str) -> State:
    """Return the mean over all workers of one kind of state, which every worker must have."""
    return {
        key: torch.stack([state[key] for state in states]).double().mean(0).float()
        for key in states[0]
        if key.kind == kind
    }


def sum_of_residuals(states: Sequence[State]) -> State:
    """Return the sums, in float64, of residuals over the workers that have them."""
    totals: State = {}
    for key in {key for state in states for key in state if key.kind == "residual"}:
        total = sum(state[key].double() for state in states if key in state)
        assert isinstance(total, Tensor)
        totals[key] = total
    return totals

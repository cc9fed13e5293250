"""Random number generators of a worker: seeded, saved and restored; those of the caller are kept."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

_PRIME = 1_000_003
_MAX_SEED = 1 << 32


@contextmanager
def seeded(seed: int, rank: int) -> Iterator[None]:
    """Seed all generators inside the block; workers get different numbers, and rank 0 those of `seed`."""
    before = random_state()
    own = (seed + _PRIME * rank) % _MAX_SEED
    torch.manual_seed(own)
    np.random.seed(own)  # datasets use this generator
    random.seed(own)
    try:
        yield
    finally:
        set_random_state(before)


def random_state() -> dict[str, Any]:
    """Return the state of the generators of torch, numpy and Python."""
    return {
        "torch": torch.get_rng_state(),
        "numpy": np.random.get_state(),
        "python": random.getstate(),
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Continue from a result of `random_state`."""
    torch.set_rng_state(state["torch"])
    np.random.set_state(state["numpy"])
    random.setstate(state["python"])

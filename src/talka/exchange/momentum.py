"""Momentum that each worker adds to its own values before they are compressed.

An optimizer adds momentum to what arrives. Of a sparse payload that is what gathered over many steps,
and it would go on for some steps more, the same way, whatever the gradients say by then. Momentum of
a worker's own gradients is said whole when its turn comes. Lin et al. (arXiv:1712.01887) call this
momentum correction; they also forget the momentum of what was sent, which is not done here.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from talka.compress import Layout
from talka.errors import InvalidValueError

_PREFIX = "worker/momentum/"


class Momentum:
    """By parameter name and at full length, as residuals are."""

    def __init__(self, factor: float) -> None:
        if not 0 <= factor < 1:
            raise InvalidValueError("momentum", factor, "from 0 up to, but without, 1")
        self.factor = factor
        self._velocities: dict[str, Tensor] = {}

    def enter(self, values: Tensor, layout: Layout) -> None:
        """Values become what this worker's momentum is with them, in place."""
        if not self.factor:
            return
        for piece in layout:
            velocity = self._velocities.get(piece.name)
            if velocity is None:
                velocity = self._velocities[piece.name] = torch.zeros(piece.full_length)
            if velocity.numel() != piece.full_length:
                raise InvalidValueError(
                    f"length of {piece.name!r}",
                    piece.full_length,
                    f"{velocity.numel()}, the length of its momentum so far",
                )
            mine = velocity[piece.offset : piece.offset + piece.num_values]
            mine.mul_(self.factor).add_(values[piece.start : piece.stop])
            values[piece.start : piece.stop] = mine

    def states(self) -> list[dict[str, Tensor]]:
        """Momentum by parameter, as `Exchange.residuals` has it; empty without momentum."""
        return [self._velocities] if self.factor else []

    def state(self) -> dict[str, Tensor]:
        return {f"{_PREFIX}{name}": value for name, value in self._velocities.items()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._velocities = {
            key.removeprefix(_PREFIX): value.clone() for key, value in only_momentum(state).items()
        }


def only_momentum(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key: value for key, value in state.items() if key.startswith(_PREFIX)}


def merged_momentum(states: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Every worker goes on with the mean of those before: the mean over workers stays the same."""
    return {
        key: torch.stack([state[key] for state in states]).double().mean(0).float()
        for key in only_momentum(states[0])
    }

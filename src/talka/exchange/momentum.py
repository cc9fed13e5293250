"""Momentum that each worker adds to its own gradients before they are compressed.

An optimizer adds momentum to averages. With a sparse compressor, an entry of an average holds what
accumulated over many steps, and the optimizer's momentum repeats it for more steps, whatever the
gradients are by then. Momentum of a worker's own gradients is sent whole when its entry is sent.
Lin et al. (arXiv:1712.01887) call this momentum correction; they also clear the momentum of entries
that were sent, which is not done here.
"""

import torch
from torch import Tensor

from talka.compress import Layout, State, StateKey
from talka.errors import InvalidValueError

KIND = "momentum"


class Momentum:
    """Momentum of one worker, by parameter name and at full length, as residuals are kept."""

    def __init__(self, factor: float) -> None:
        if not 0 <= factor < 1:
            raise InvalidValueError("momentum", factor, "at least 0 and below 1")
        self.factor = factor
        self._velocities: dict[str, Tensor] = {}

    def add_to(self, values: Tensor, layout: Layout) -> None:
        """Update the momentum with these gradients, and replace the gradients by it."""
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
            part = velocity[piece.offset : piece.offset + piece.num_values]
            part.mul_(self.factor).add_(values[piece.start : piece.stop])
            values[piece.start : piece.stop] = part

    def states(self) -> list[dict[str, Tensor]]:
        """Return momentum by parameter, in the form of `Exchange.residuals`."""
        return [self._velocities] if self.factor else []

    def state(self) -> State:
        """Return the momentum for checkpoints."""
        return {
            StateKey(KIND, name, side="worker"): value for name, value in self._velocities.items()
        }

    def load_state(self, state: State) -> None:
        """Replace the momentum; keys of other kinds are ignored."""
        self._velocities = {key.name: value.clone() for key, value in only_momentum(state).items()}


def only_momentum(state: State) -> State:
    """Return the entries of a state that are momentum."""
    return {key: value for key, value in state.items() if (key.side, key.kind) == ("worker", KIND)}

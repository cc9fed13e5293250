"""Residuals and momentum under a GradScaler, which multiplies the loss by a factor that changes.

Gradients, residuals and momentum are all multiplied by that factor, so residuals and momentum are
rescaled when it changes. If a gradient is not finite, the scaler skips the step and lowers the
factor. All residuals and momentum are then restored, as the step was not applied.
"""

from collections.abc import Sequence

from torch import Tensor
from torch.amp import GradScaler

from talka.compress import State
from talka.exchange import Exchange


class LossScale:
    """Follows the factor of a GradScaler; without one, the factor is 1."""

    def __init__(self, scaler: GradScaler | None) -> None:
        self._scaler = scaler if scaler is not None and scaler.is_enabled() else None
        self.kept = self.factor
        """Factor by which residuals and momentum are multiplied."""
        self._before: State = {}
        self._is_skipped = False

    @property
    def factor(self) -> float:
        """Factor of the gradients of the current step."""
        return 1.0 if self._scaler is None else float(self._scaler.get_scale())

    @property
    def is_used(self) -> bool:
        """True if there is a scaler, and it is enabled."""
        return self._scaler is not None

    def begin_step(self, exchange: Exchange) -> None:
        """Rescale and copy the state; called before the first exchange of a step."""
        now = self.factor
        if now != self.kept:
            _multiply([*exchange.momentum.states(), *exchange.residuals()], now / self.kept)
            self.kept = now
        if self.is_used:
            self._before = {key: value.clone() for key, value in exchange.state().items()}

    def check(self, average: Tensor) -> None:
        """Note whether an average is finite. All workers have the same bits, so all agree."""
        if self.is_used and not average.isfinite().all():
            self._is_skipped = True

    def settle(self, exchange: Exchange) -> None:
        """Restore the state if the last step is skipped; called between two steps."""
        if self._is_skipped:
            exchange.load_state(self._before)
        self._before, self._is_skipped = {}, False


def _multiply(states: Sequence[dict[str, Tensor]], factor: float) -> None:
    for state in states:
        for tensor in state.values():
            tensor.mul_(factor)

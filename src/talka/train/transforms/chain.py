"""Transforms of gradients, momentum and residuals before an exchange, in this order.

    between steps     restore the state if the last step was skipped     GradScaler
    first bucket      residuals x old learning rate / new one            learning rates
                      residuals and momentum x new factor / old one      GradScaler
    each bucket       the gradient becomes the momentum                  FrozenAdam
    in the exchange   x weight of this worker                            unequal shares of a batch
                      the gradient becomes the momentum                  momentum before compression
                      + residual, encode                                 compressor

A residual has to be in the units of the gradients that it is added to, so it is rescaled first. Both
kinds of momentum replace the gradient by what the optimizer would add up, so only one of them is
used, and compression is last: it may change only what is sent.
"""

from collections.abc import Mapping, Sequence

from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import Optimizer

from talka.compress import Layout
from talka.exchange import Exchange
from talka.train.transforms.frozen_adam import FrozenAdam
from talka.train.transforms.loss_scale import LossScale
from talka.train.transforms.rates import LearningRates


class Transforms:
    """Applies what comes before an exchange; `Replica` calls it for every bucket."""

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        optimizer: Optimizer | None,
        scaler: GradScaler | None,
    ) -> None:
        self._parameters = parameters
        names = {parameter: name for name, parameter in parameters.items()}
        self._rates = None if optimizer is None else LearningRates(optimizer, names)
        self._scale = LossScale(scaler)
        self._frozen_adam = optimizer if isinstance(optimizer, FrozenAdam) else None
        if self._frozen_adam is not None:
            self._frozen_adam.attached, self._frozen_adam.scaler = True, scaler

    @property
    def skips_steps(self) -> bool:
        """True if a GradScaler detects values that are not finite, and skips their step."""
        return self._scale.is_used

    @property
    def is_warming_up(self) -> bool:
        """True while FrozenAdam needs uncompressed gradients."""
        return self._frozen_adam is not None and not self._frozen_adam.is_frozen

    def settle(self, exchange: Exchange) -> None:
        """Restore the state of the exchange if the last step is skipped; called between steps."""
        self._scale.settle(exchange)

    def begin_step(self, exchange: Exchange) -> None:
        """Rescale residuals and momentum; called before the first bucket of a step."""
        if self._rates is not None:
            self._rates.rescale(exchange.residuals())
        self._scale.begin_step(exchange)

    def apply(self, flat: Tensor, layout: Layout) -> None:
        """Transform a bucket of gradients in place."""
        if self._frozen_adam is None:
            return
        parameters: Sequence[Tensor] = [self._parameters[piece.name] for piece in layout]
        gradients = [flat[piece.start : piece.stop].view(piece.shape) for piece in layout]
        self._frozen_adam.to_momentum(parameters, gradients)

    def check(self, average: Tensor) -> None:
        """Note whether the average of a bucket is finite."""
        self._scale.check(average)

    def state(self) -> tuple[dict[str, float], float]:
        """Return the learning rates and the factor that residuals belong to."""
        return {} if self._rates is None else self._rates.state(), self._scale.kept

    def load_state(self, rates: Mapping[str, float], scale: float) -> None:
        """Set the learning rates and the factor that residuals belong to."""
        self._scale.kept = scale
        if self._rates is not None:
            self._rates.load_state(rates)

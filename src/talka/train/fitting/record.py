"""What a training has reached so far: its position, results of its epochs, the best of them."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Self


@dataclass(slots=True)
class SampleSums:
    """Sums over samples of this worker."""

    loss: float = 0.0
    num_correct: int = 0
    num_samples: int = 0

    def add(self, loss: float, num_correct: int, num_samples: int) -> None:
        """Add a batch with this mean loss."""
        self.loss += loss * num_samples
        self.num_correct += num_correct
        self.num_samples += num_samples

    @property
    def mean_loss(self) -> float:
        """Mean loss per sample."""
        return self.loss / self.num_samples if self.num_samples else math.nan

    @property
    def accuracy(self) -> float:
        """Share of samples that were classified correctly."""
        return self.num_correct / self.num_samples if self.num_samples else math.nan


@dataclass(slots=True)
class Record:
    """The position of a training and the results of its epochs, the same on all workers."""

    step: int = 0
    """Number of finished steps."""
    epoch: int = 0
    """Number of finished epochs."""
    position: int = 0
    """Number of finished batches of the present epoch."""
    losses: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    best_epoch: int = 0
    best_loss: float = math.inf
    stopped_early: bool = False
    seconds: float = 0.0
    """Seconds of all finished steps, over all restarts."""
    sent_bytes: float = 0.0
    """Bytes that all workers sent before this start."""

    def finish_epoch(self, loss: float, validation: float | None, accuracy: float | None) -> bool:
        """Note the results of an epoch; return whether it is the best so far."""
        self.epoch += 1
        self.position = 0
        self.losses.append(loss)
        if validation is not None:
            self.validation.append(validation)
        if accuracy is not None:
            self.accuracy.append(accuracy)
        decisive = loss if validation is None else validation
        is_best = decisive < self.best_loss or not self.best_epoch
        if is_best:
            self.best_epoch, self.best_loss = self.epoch, decisive
        return is_best

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a checkpoint."""
        return asdict(self)

    @classmethod
    def of(cls, values: dict[str, Any]) -> Self:
        """Return the record of a result of `as_dict`."""
        return cls(**values)

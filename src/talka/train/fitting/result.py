"""What `fit` returns."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from talka.units import format_bytes, format_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class FitResult:
    """The outcome of `fit`; printed in one line.

    >>> print(FitResult(losses=(2.0, 0.51), seconds=3.0, num_workers=2, best_epoch=2, num_steps=20))
    2 epochs (20 steps) on 2 workers: loss 0.51, 3 s, sent 0 B
    """

    losses: tuple[float, ...]
    """Mean training loss of each epoch."""
    validation: tuple[float, ...] = ()
    """Mean validation loss after each epoch."""
    accuracy: tuple[float, ...] = ()
    """Share of samples that were classified correctly after each epoch: of the validation samples, or
    while training if there are none."""
    seconds: float
    """Seconds of training, over all restarts."""
    sent_bytes: float = 0.0
    """Bytes that the exchanges of all workers sent together, over all restarts."""
    num_workers: int = 1
    num_steps: int = 0
    best_epoch: int = 0
    """Epoch with the lowest validation loss, or training loss without validation samples."""
    stopped_early: bool = False
    """True if `patience` ended the training."""
    path: Path | None = None
    """File with the model, if `out` was given."""

    @property
    def loss(self) -> float:
        """Mean training loss of the last epoch."""
        return self.losses[-1]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"path": None if self.path is None else str(self.path)}

    @classmethod
    def of(cls, values: dict[str, Any]) -> Self:
        """Return the result of plain values."""
        path = values["path"]
        lists = {name: tuple(values[name]) for name in ("losses", "validation", "accuracy")}
        return cls(**(values | lists | {"path": None if path is None else Path(path)}))

    def __str__(self) -> str:
        workers = "1 worker" if self.num_workers == 1 else f"{self.num_workers} workers"
        epochs = "1 epoch" if len(self.losses) == 1 else f"{len(self.losses)} epochs"
        text = f"{epochs} ({self.num_steps:,} steps) on {workers}: loss {self.losses[-1]:.4g}"
        shown = self.best_epoch - 1 if self.stopped_early else -1
        if self.validation:
            text += f", validation {self.validation[shown]:.4g}"
        if self.accuracy:
            text += f", accuracy {self.accuracy[shown]:.2%}"
        if self.stopped_early:
            text += f" of epoch {self.best_epoch} (stopped early)"
        text += f", {format_seconds(self.seconds)}, sent {format_bytes(self.sent_bytes)}"
        return text if self.path is None else f"{text}, saved as {self.path}"

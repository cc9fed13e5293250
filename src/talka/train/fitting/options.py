"""The options of `fit`, checked. Those of the command line come before those of the script."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from talka.compress import Compressor
from talka.errors import InvalidValueError, OptionError, OutputError, UnknownNameError
from talka.network import Network
from talka.short_forms import parsed
from talka.train.choices import EXCHANGES, Choices
from talka.train.fitting.schedules import Decay
from talka.train.fitting.theorem import TheoremSteps
from talka.train.rhythms.short_forms import RhythmConfig

ShareKind: TypeAlias = Literal["equal", "measured"]
_SHARES: Final = ("equal", "measured")


@dataclass(frozen=True, kw_only=True, slots=True)
class FitOptions:
    """All options of `fit` but the model, the data and the loss; `fit` documents them."""

    rhythm: RhythmConfig
    compressor: str | Compressor
    exchange: str | None
    network: Network | str | Path | None
    epochs: int
    batch_size: int
    shares: ShareKind
    accuracy: bool
    patience: int | None
    schedule: Decay | TheoremSteps
    warmup_steps: int | None
    scale_learning_rate: bool
    checkpoint: Path | None
    checkpoint_every: int | None
    resume: Path | None
    out: Path | None
    run_dir: Path | None
    seed: int
    progress: bool

    def __post_init__(self) -> None:
        for name, least in (
            ("epochs", 1),
            ("batch_size", 1),
            ("patience", 1),
            ("warmup_steps", 0),
            ("checkpoint_every", 1),
            ("seed", 0),
        ):
            value = getattr(self, name)
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            if value is not None and not (is_whole and value >= least):
                raise InvalidValueError(name, value, f"a whole number of at least {least}")
        if self.shares not in _SHARES:
            raise UnknownNameError("kind of shares", str(self.shares), _SHARES)
        if isinstance(self.compressor, str):
            parsed(self.compressor)
        if self.exchange is not None and self.exchange not in EXCHANGES:
            raise UnknownNameError("exchange", self.exchange, EXCHANGES)
        if self.checkpoint_every is not None and self.checkpoint is None:
            raise OptionError("checkpoint_every", "needs a folder", "Give checkpoint=FOLDER, too.")
        self._check_theorem()
        if self.out is not None and (self.out.is_dir() or not self.out.parent.is_dir()):
            problem = "is a folder" if self.out.is_dir() else "is in a folder that does not exist"
            raise OutputError(str(self.out), problem, "Give out= the path of a file.")

    def _check_theorem(self) -> None:
        if not isinstance(self.schedule, TheoremSteps):
            return
        conflicts = {
            "rhythm": self.rhythm != RhythmConfig(),
            "warmup_steps": bool(self.warmup_steps),
            "scale_learning_rate": self.scale_learning_rate,
        }
        for name, conflict in conflicts.items():
            if conflict:
                advice = "The theorem is about averages in every step, of one size."
                raise OptionError(name, "cannot be combined with TheoremSteps", advice)

    def with_choices(self, choices: Choices) -> "FitOptions":
        """Return the options with those that were given on the command line."""
        rhythm = self.rhythm
        if choices.rhythm is not None:
            chosen = RhythmConfig.parse(choices.rhythm)
            is_same = chosen.name == rhythm.name
            rhythm = replace(rhythm, steps=chosen.steps) if is_same else chosen
        if choices.outer is not None:
            rhythm = replace(rhythm, outer=choices.outer)
        return replace(
            self,
            rhythm=rhythm,
            compressor=choices.compressor or self.compressor,
            exchange=choices.exchange or self.exchange,
            network=choices.network or self.network,
        )

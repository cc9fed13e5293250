"""Restarts: the content of a checkpoint, and how a training continues from one."""

from typing import Any, Protocol

from torch import Tensor, nn
from torch.optim import Optimizer

from talka.channels import Group
from talka.errors import OptionError, SavedStateError
from talka.train.fitting import checkpoints
from talka.train.fitting.checkpoints import Content
from talka.train.fitting.data import Samples
from talka.train.fitting.making import spec_of
from talka.train.fitting.options import FitOptions
from talka.train.fitting.randomness import random_state, set_random_state
from talka.train.fitting.record import Record, SampleSums
from talka.train.fitting.state_files import model_values, set_model_values
from talka.train.fitting.theorem import AveragedIterate
from talka.train.rhythms.base import Rhythm
from talka.train.rhythms.shares import Shares


class Restartable(Protocol):
    """The parts of a training that a checkpoint has."""

    options: FitOptions
    group: Group
    model: nn.Module
    samples: Samples
    optimizer: Optimizer
    shares: Shares
    rhythm: Rhythm
    iterate: AveragedIterate | None
    record: Record
    totals: SampleSums
    best: dict[str, Tensor] | None


class Restarts:
    """Saves and loads the state of a training on one worker."""

    def __init__(self, training: Restartable) -> None:
        self._training = training
        self._loaded: Content | None = None
        self._is_same_number = True

    def save(self) -> None:
        """Write a checkpoint; all workers must call it between two steps."""
        training = self._training
        folder, rhythm = training.options.checkpoint, training.rhythm
        assert folder is not None
        sent = training.group.all_gather(rhythm.stats()["sent_bytes"])
        common = self._fixed() | {"record": training.record.as_dict()}
        common["record"]["sent_bytes"] += sum(sent)
        content = Content(
            common, model_values(training.model), training.best, self._own(), rhythm.state_dict()
        )
        checkpoints.save(folder, training.record.step, content, training.group)

    def _fixed(self) -> dict[str, Any]:
        """Return what has to be equal in a training that continues from the checkpoint."""
        training = self._training
        options = training.options
        return {
            "shapes": {
                name: f"{tuple(value.shape)} {value.dtype}".replace("torch.", "")
                for name, value in model_values(training.model).items()
            },
            "optimizer": type(training.optimizer).__name__,
            "rhythm": training.rhythm.describe(),
            "compressor": spec_of(options.compressor),
            "schedule": "theorem" if training.iterate is not None else "factors",
            "num_samples": len(training.samples),
            "batch_size": options.batch_size,
            "seed": options.seed,
        }

    def _own(self) -> dict[str, Any]:
        training = self._training
        totals, iterate = training.totals, training.iterate
        buffers = {name for name, _ in training.model.named_buffers()}
        is_whole = training.rhythm.is_between_rounds
        return {
            "optimizer": training.optimizer.state_dict(),
            "random": random_state(),
            "totals": [totals.loss, totals.num_correct, totals.num_samples],
            "issued": training.shares.state(),
            "is_between_rounds": is_whole,
            "values": {
                name: value
                for name, value in model_values(training.model).items()
                if is_whole or name in buffers
            },
            "iterate": None if iterate is None else [iterate.num_steps, iterate.means],
        }

    def load(self) -> None:
        """Continue from the checkpoint in the options, if any, before the rhythm starts."""
        training = self._training
        options, group = training.options, training.group
        if options.resume is not None:
            found = checkpoints.find(options.resume, group)
            path = str(found.folder)
            self._is_same_number = found.num_workers == group.size
            self._check(found.common, path)
            content = checkpoints.load(found, group)
            if content.own["is_between_rounds"] and not self._is_same_number:
                problem = (
                    f"was saved between two rounds of {found.num_workers} workers; use as many"
                )
                raise SavedStateError(path, problem)
            training.rhythm.load(found.folder)
            self._take(content)
        self._check_folder()

    def _check(self, common: dict[str, Any], path: str) -> None:
        """Raise SavedStateError if the checkpoint is of another training; the same on all workers."""
        fixed = self._fixed()
        saved, shapes = common["shapes"], fixed["shapes"]
        for name in (*shapes, *saved):
            if saved.get(name) != shapes.get(name):
                problem = (
                    f"is of another model: {name!r} is {saved.get(name, 'missing')} there, but "
                )
                raise SavedStateError(path, f"{problem}{shapes.get(name, 'missing')} here")
        for name, value in fixed.items():
            if common[name] != value:
                problem = f"was saved with {name.replace('_', ' ')} {common[name]}, but here it is {value}"
                raise SavedStateError(path, problem)

    def _take(self, content: Content) -> None:
        training, own = self._training, content.own
        training.record = Record.of(content.common["record"])
        training.best = content.best
        set_model_values(training.model, content.model | own["values"])
        training.optimizer.load_state_dict(own["optimizer"])
        if training.iterate is not None:
            training.iterate.num_steps, means = own["iterate"]
            training.iterate.means.update(means)
        if self._is_same_number or training.group.rank == 0:
            training.totals = SampleSums(*own["totals"])
        if self._is_same_number:
            training.shares.load_state(own["issued"])
        self._loaded = content

    def finish_loading(self) -> None:
        """Restore what the start of the rhythm has changed: buffers, and random numbers."""
        if self._loaded is None:
            return
        own, training = self._loaded.own, self._training
        values: dict[str, Tensor] = own["values"]
        set_model_values(training.model, values)
        if self._is_same_number:
            set_random_state(own["random"])
        self._loaded = None

    def _check_folder(self) -> None:
        """Raise OptionError if the folder has later checkpoints, which are of another training."""
        training = self._training
        folder, step = training.options.checkpoint, training.record.step
        if folder is None:
            return
        is_root = training.group.rank == 0
        later = checkpoints.later_saves(folder, step) if is_root else []
        later = training.group.broadcast(later)
        if later:
            problem = (
                f"is {str(folder)!r}, which has later checkpoints of another training: {later[-1]}"
            )
            advice = "Give another folder; or continue from that checkpoint with resume=."
            raise OptionError("checkpoint", problem, advice)

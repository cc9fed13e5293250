"""The loop of one worker: epochs of steps, validation, early stopping, and the final model.

every epoch    its share of each batch: forward, backward, the rhythm averages, optimizer.step
               buffers averaged; validation of the common model; checkpoint; patience
at the end     the best model or the averaged iterate, if asked for; on all workers the same
"""

import math
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from talka.channels import Group
from talka.errors import InvalidValueError, WorkerDivergedError
from talka.events.current import own_stream
from talka.events.stream import Phase
from talka.train.events import EpochDone
from talka.train.fitting.data import Data, Samples
from talka.train.fitting.evaluation import Loss, evaluated, num_correct, summed
from talka.train.fitting.making import OptimizerLike, make_optimizer, make_rhythm
from talka.train.fitting.options import FitOptions
from talka.train.fitting.record import Record, SampleSums
from talka.train.fitting.restarts import Restarts
from talka.train.fitting.schedules import LearningRate, RatePlan, default_warmup
from talka.train.fitting.state_files import model_values, set_model_values
from talka.train.fitting.theorem import AveragedIterate, TheoremSteps
from talka.train.rhythms.local_sgd import LocalSGD
from talka.train.rhythms.shares import Shares
from talka.train.scripts.metrics import log


@dataclass(frozen=True, slots=True)
class FitTask:
    """What is trained, and how; it can be sent to workers."""

    model: nn.Module
    data: Data
    loss: Loss
    optimizer: OptimizerLike
    validation: Data | None
    options: FitOptions


class Training:
    """A training on one worker. `group` has all workers."""

    def __init__(self, task: FitTask, group: Group) -> None:
        options = task.options
        self.model, self.loss, self.options, self.group = task.model, task.loss, options, group
        self.samples = Samples(task.data)
        self.validation = (
            None if task.validation is None else Samples(task.validation, name="validation")
        )
        check_sizes(options, has_validation=self.validation is not None, num_workers=group.size)
        self.optimizer = make_optimizer(task.optimizer, self.model)
        self.shares = Shares(options.batch_size, measured=options.shares == "measured")
        self.sampler = self.shares.sampler(self.samples, seed=options.seed, may_be_empty=True)
        self.rhythm = make_rhythm(self.model, self.optimizer, options, self.shares)
        self.plan = make_plan(options, num_batches=len(self.sampler), num_workers=group.size)
        self.rate = LearningRate(self.optimizer, self.plan)
        is_averaged = isinstance(options.schedule, TheoremSteps)
        self.iterate = AveragedIterate(self.model) if is_averaged else None
        self.record, self.totals = Record(), SampleSums()
        self.best: dict[str, Tensor] | None = None
        """The best model so far, on rank 0, with `patience`."""
        self._restarts = Restarts(self)

    def run(self) -> Record:
        """Train; return the record."""
        self._restarts.load()
        stream = own_stream().stream
        with self.rhythm:
            self._restarts.finish_loading()
            while self.record.epoch < self.options.epochs and not self.record.stopped_early:
                start_s = time.perf_counter()
                if stream is None or self.group.rank:
                    self._epoch(None)
                else:
                    cost_id, unit = f"fit/epoch/{self.record.epoch + 1}", "samples"
                    with stream.phase(cost_id, total=len(self.samples), unit=unit) as phase:
                        self._epoch(phase)
                self._end_epoch(start_s)
        self._finish()
        return self.record

    def _epoch(self, phase: Phase | None) -> None:
        record, every = self.record, self.options.checkpoint_every
        self.model.train()
        self.sampler.set_epoch(record.epoch)
        self.sampler.skip(record.position)
        for indices in self.sampler:
            start_s = time.perf_counter()
            self._step(indices)
            record.step += 1
            record.position += 1
            record.seconds += time.perf_counter() - start_s
            if phase is not None:
                phase.advance(self.options.batch_size)
            is_last = record.position == self.plan.steps_per_epoch
            if every is not None and record.step % every == 0 and not is_last:
                self._restarts.save()

    def _step(self, indices: list[int]) -> None:
        self.last_rate = self.rate.set(self.record.step)
        self.optimizer.zero_grad()
        if indices:
            x, y = self.samples.batch(indices)
            output = self.model(x)
            loss = self.loss(output, y)
            value = loss_value(loss, rank=self.group.rank, step=self.record.step + 1)
            hits = num_correct(output, y) if self._counts_correct else 0
            self.totals.add(value, hits, len(indices))
        else:  # fewer samples than workers were left
            loss = zero_loss(self.model)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        if self.iterate is not None:
            self.iterate.add()

    @property
    def _counts_correct(self) -> bool:
        return self.options.accuracy and self.validation is None

    def _end_epoch(self, start_s: float) -> None:
        record, totals = self.record, summed(self.totals, self.group)
        self.totals = SampleSums()
        average_buffers(self.model, self.group)
        validation, accuracy = None, totals.accuracy if self._counts_correct else None
        if self.validation is not None:
            found = self._validate(self.validation)
            validation = found.mean_loss
            accuracy = found.accuracy if self.options.accuracy else None
        is_best = record.finish_epoch(totals.mean_loss, validation, accuracy)
        if self.options.patience is not None:
            if is_best and self.group.rank == 0:
                self.best = self._final_values()
            record.stopped_early = record.epoch - record.best_epoch >= self.options.patience
        if self.options.checkpoint is not None:
            self._restarts.save()
        self._report(validation, accuracy, time.perf_counter() - start_s)

    def _validate(self, samples: Samples) -> SampleSums:
        if isinstance(self.rhythm, LocalSGD):
            self.rhythm.synchronise()
        if self.iterate is not None:
            self.iterate.exchange_values()
        found = evaluated(
            self.model,
            samples,
            self.loss,
            self.group,
            batch_size=self.options.batch_size,
            accuracy=self.options.accuracy,
        )
        if self.iterate is not None:
            self.iterate.exchange_values()
        return found

    def _final_values(self) -> dict[str, Tensor]:
        """Return the model as the training would leave it now."""
        if self.iterate is not None:
            self.iterate.exchange_values()
        values = model_values(self.model)
        if self.iterate is not None:
            self.iterate.exchange_values()
        return values

    def _report(self, validation: float | None, accuracy: float | None, seconds: float) -> None:
        """Log the epoch, on rank 0."""
        if self.group.rank or not self.options.progress:
            return
        epoch, loss = self.record.epoch, self.record.losses[-1]
        metrics = {"loss": loss, "validation_loss": validation, "accuracy": accuracy}
        given: dict[str, Any] = {
            name: value for name, value in metrics.items() if value is not None
        }
        log(epoch=epoch, step=None, **given, learning_rate=self.last_rate)
        stream = own_stream().stream
        if stream is not None:
            stream.emit(EpochDone(epoch, loss, validation, accuracy, self.last_rate, seconds))

    def _finish(self) -> None:
        """Set the final model, the same on all workers, and count the bytes of all of them."""
        self.rate.restore()
        sent = self.group.all_gather(self.rhythm.stats()["sent_bytes"])
        self.record.sent_bytes += sum(sent)
        if self.iterate is not None:
            self.iterate.exchange_values()
        if self.record.stopped_early:
            own = self.best if self.group.rank == 0 else None
            best = {
                name: self.group.broadcast(None if own is None else own[name])
                for name in model_values(self.model)
            }
            set_model_values(self.model, best)


def check_sizes(options: FitOptions, *, has_validation: bool, num_workers: int) -> None:
    """Raise an error for options that do not fit the data or the number of workers."""
    if options.batch_size < num_workers:
        allowed = f"at least {num_workers}, a sample for each worker"
        raise InvalidValueError("batch_size", options.batch_size, allowed)
    if options.patience is not None and not has_validation:
        raise InvalidValueError("patience", options.patience, "None without validation data")


def make_plan(options: FitOptions, *, num_batches: int, num_workers: int) -> RatePlan:
    """Return the learning rates of all steps."""
    scale = num_workers if options.scale_learning_rate else 1
    num_steps = options.epochs * num_batches
    warmup_steps = options.warmup_steps
    if warmup_steps is None:
        warmup_steps = default_warmup(num_steps=num_steps, steps_per_epoch=num_batches, scale=scale)
    return RatePlan(
        schedule=options.schedule,
        num_steps=num_steps,
        steps_per_epoch=num_batches,
        warmup_steps=warmup_steps,
        scale=scale,
    )


def loss_value(loss: Any, *, rank: int, step: int) -> float:
    """Return the loss of a batch. Raises WorkerDivergedError if it is not finite."""
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        given = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else loss
        raise InvalidValueError("loss", given, "a function that returns a tensor with one number")
    value = float(loss.detach())
    if not math.isfinite(value):
        raise WorkerDivergedError(rank, step, "loss")
    return value


def zero_loss(model: nn.Module) -> Tensor:
    """Return a loss whose gradients are zero, for a worker without samples in a batch."""
    parts = [parameter.sum() * 0 for parameter in model.parameters() if parameter.requires_grad]
    return torch.stack([part.float() for part in parts]).sum()


@torch.no_grad()
def average_buffers(model: nn.Module, group: Group) -> None:
    """Average buffers such as the statistics of BatchNorm over all workers."""
    buffers = [one for one in model.buffers() if one.is_floating_point() and one.numel()]
    if group.size == 1 or not buffers:
        return
    own = torch.cat([buffer.reshape(-1).double().cpu() for buffer in buffers])
    mean = torch.stack(group.all_gather(own)).mean(0)
    parts = torch.split(mean, [one.numel() for one in buffers])
    for buffer, part in zip(buffers, parts, strict=True):
        buffer.copy_(part.view(buffer.shape))

"""`talka.train.fit`: where a training without a loop runs.

torchrun, a lab, `talka train`, a gang     on the ranks that exist
one worker                                 in this process
several workers                            on workers that it starts on an engine
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors.torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from talka.channels.world import is_provided
from talka.compress import Compressor
from talka.engine import Embedded, Engine
from talka.errors import InvalidValueError, output_error
from talka.events import Event, Stream
from talka.events.current import own_stream, providing_stream
from talka.events.progress import progress_in_terminal
from talka.exchange.transport import group_of, num_members
from talka.network import Network
from talka.train.choices import current
from talka.train.events import EpochDone
from talka.train.fitting.data import Data, Samples
from talka.train.fitting.evaluation import Loss
from talka.train.fitting.making import OptimizerLike, make_optimizer, make_rhythm
from talka.train.fitting.options import FitOptions, ShareKind
from talka.train.fitting.randomness import seeded
from talka.train.fitting.result import FitResult
from talka.train.fitting.schedules import schedule_of
from talka.train.fitting.state_files import model_bytes, set_model_values, write_bytes
from talka.train.fitting.theorem import TheoremSteps
from talka.train.fitting.training import FitTask, Training, check_sizes
from talka.train.rhythms.shares import Shares
from talka.train.rhythms.short_forms import RhythmConfig, rhythm_of
from talka.train.scripts.metrics import flush, log

if TYPE_CHECKING:
    from talka.engine import GangWorker


def fit(
    model: nn.Module,
    data: Data,
    loss: Loss,
    *,
    optimizer: OptimizerLike = "sgd:0.05/0.9",
    rhythm: str | RhythmConfig = "every-step",
    compressor: str | Compressor = "none",
    exchange: str | None = None,
    network: Network | str | Path | None = None,
    num_workers: int | None = None,
    engine: Engine | None = None,
    epochs: int = 10,
    batch_size: int = 64,
    shares: ShareKind = "equal",
    validation: Data | None = None,
    accuracy: bool = False,
    patience: int | None = None,
    schedule: str | TheoremSteps = "constant",
    warmup_steps: int | None = None,
    scale_learning_rate: bool = False,
    checkpoint: str | Path | None = None,
    checkpoint_every: int | None = None,
    resume: str | Path | None = None,
    out: str | Path | None = None,
    run_dir: str | Path | None = None,
    seed: int = 0,
    progress: bool = True,
) -> FitResult:
    """Train a model on one or several workers, without a loop; `model` has the trained values afterwards.

    In a plain process it starts `num_workers` workers. Inside `talka train`, torchrun, a lab or a gang
    it uses the ranks that exist, and all of them must call it. Options of the command line of
    `talka train` come before those given here.

    >>> model = torch.nn.Linear(2, 1)  # doctest: +SKIP
    >>> print(
    ...     talka.train.fit(model, (x, y), torch.nn.functional.mse_loss, num_workers=4)
    ... )  # doctest: +SKIP
    10 epochs (160 steps) on 4 workers: loss 0.0125, 1.2 s, sent 46 kB

    Parameters
    ----------
    data, validation
        A Dataset with a length whose items are pairs (x, y), or a tuple (x, y) of tensors or arrays.
        Every sample is used once per epoch. Workers that are started receive a copy.
    loss
        Function of the output and the target that returns the mean loss over a batch.
    optimizer
        "sgd:RATE/MOMENTUM", "adam:RATE", "adamw:RATE/DECAY", "lars:RATE/MOMENTUM", a function that
        makes an optimizer from parameters, or an optimizer of this model's parameters.
    rhythm
        When workers synchronise: "every-step", "delayed:S", "local-sgd:K" or a `RhythmConfig`.
    compressor, exchange, network, run_dir
        As for `attach`.
    num_workers
        Number of workers; None for the ranks that exist, or one worker.
    engine
        Engine on which workers start; by default this machine.
    batch_size
        Number of samples per batch, of all workers together.
    shares
        "equal" shares of each batch, or "measured" ones for machines of unequal speed. Only equal
        shares make a training with several workers reproducible to the bit.
    accuracy
        Also count samples whose class has the largest output.
    patience
        Number of epochs without a lower validation loss after which the training stops, with the best
        model.
    schedule
        Learning rate over time: "constant", "cosine", "step:EPOCHS/FACTOR" or `TheoremSteps`.
    warmup_steps
        Number of first steps in which the learning rate grows.
    scale_learning_rate
        Multiply the learning rate by the number of workers, after a warm-up of five epochs by default:
        for a batch size that grew by as much (Goyal et al., arXiv:1706.02677).
    checkpoint, checkpoint_every
        Folder for a checkpoint after every epoch, and after every so many steps.
    resume
        Folder of checkpoints to continue from, from the latest one, or the folder of one checkpoint.
    out
        File for the trained model, in the safetensors format.
    seed
        Decides the order of samples and the random numbers of the workers.
    progress
        Print a line per epoch.

    Raises
    ------
    WorkerDivergedError
        If the loss or a gradient is not finite; it names the worker and the step. Workers that `fit`
        started report this and other errors in a `GangError`.
    """
    options = FitOptions(
        rhythm=rhythm_of(rhythm),
        compressor=compressor,
        exchange=exchange,
        network=network,
        epochs=epochs,
        batch_size=batch_size,
        shares=shares,
        accuracy=accuracy,
        patience=patience,
        schedule=schedule_of(schedule),
        warmup_steps=warmup_steps,
        scale_learning_rate=scale_learning_rate,
        checkpoint=_path(checkpoint),
        checkpoint_every=checkpoint_every,
        resume=_path(resume),
        out=_path(out),
        run_dir=_path(run_dir),
        seed=seed,
        progress=progress,
    ).with_choices(current())
    if isinstance(model, DistributedDataParallel) or not isinstance(model, nn.Module):
        allowed = "a plain nn.Module: fit averages gradients itself"
        raise InvalidValueError("model", type(model).__name__, allowed)
    task = FitTask(model, data, loss, optimizer, validation, options)
    size = _existing_size()
    if num_workers is not None and (num_workers < 1 or num_workers != (size or num_workers)):
        allowed = "at least 1" if size is None else f"None or {size}, the number of ranks here"
        raise InvalidValueError("num_workers", num_workers, allowed)
    if size is None and ((num_workers or 1) > 1 or engine is not None):
        return _fit_on_engine(task, num_workers or 1, engine)
    with _recording(options.run_dir):
        result = _fit_here(task)
        flush()
        return result


def _path(path: str | Path | None) -> Path | None:
    """Return an absolute path: workers may have another current folder."""
    return None if path is None else Path(path).absolute()


def _existing_size() -> int | None:
    """Return the number of ranks that this process is one of; None in a plain process."""
    is_launched = "RANK" in os.environ and "WORLD_SIZE" in os.environ
    is_joined = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
    return num_members(None) if is_provided() or is_launched or is_joined else None


@contextlib.contextmanager
def _recording(run_dir: Path | None) -> Iterator[None]:
    """Write events to the run directory, unless this rank has a stream already."""
    if run_dir is None or own_stream().stream is not None:
        yield
        return
    rank = own_stream().rank
    run_dir.mkdir(parents=True, exist_ok=True)
    stream = Stream(run_dir / f"events.rank-{rank}.jsonl")
    try:
        with providing_stream(stream, rank):
            yield
    finally:
        stream.close()


def _fit_here(task: FitTask) -> FitResult:
    """Train as a worker of this process's group."""
    group = group_of(None, "fit")
    was_training = task.model.training
    try:
        with seeded(task.options.seed, group.rank):
            record = Training(task, group).run()
    finally:
        group.close()
        task.model.train(was_training)
    path = task.options.out
    if path is not None and group.rank == 0:
        _write_model(path, model_bytes(task.model))
    return FitResult(
        losses=tuple(record.losses),
        validation=tuple(record.validation),
        accuracy=tuple(record.accuracy),
        seconds=record.seconds,
        sent_bytes=record.sent_bytes,
        num_workers=group.size,
        num_steps=record.step,
        best_epoch=record.best_epoch,
        stopped_early=record.stopped_early,
        path=path,
    )


def _write_model(path: Path, data: bytes) -> None:
    try:
        write_bytes(path, data)
    except OSError as error:
        raise output_error(path, error, "Choose another out=.") from error


def _fit_on_engine(task: FitTask, num_workers: int, engine: Engine | None) -> FitResult:
    """Start workers, and return what they have trained to the model of the caller."""
    _check(task, num_workers)
    run_dir = task.options.run_dir
    with contextlib.ExitStack() as stack:
        if engine is None:
            if run_dir is not None:
                run_dir.mkdir(parents=True, exist_ok=True)
            events = Stream(None if run_dir is None else run_dir / "events.jsonl")
            stack.callback(events.close)
            engine = stack.enter_context(Embedded(events=events))
            if task.options.progress:
                stack.enter_context(progress_in_terminal(events))
                stack.enter_context(events.listening(_show))
        results = engine.gang(_worker, task, size=num_workers)
        flush()
    values = safetensors.torch.load(results[0]["model"])
    set_model_values(task.model, values)
    return FitResult.of(results[0]["result"])


def _check(task: FitTask, num_workers: int) -> None:
    """Raise the errors that workers would raise, before they start; warnings are shown here, too."""
    options = task.options
    samples = Samples(task.data)
    samples.batch([0])
    if task.validation is not None:
        Samples(task.validation, name="validation")
    check_sizes(options, has_validation=task.validation is not None, num_workers=num_workers)
    optimizer = make_optimizer(task.optimizer, task.model)
    make_rhythm(task.model, optimizer, options, Shares(options.batch_size)).replica.close()


def _worker(worker: "GangWorker", task: FitTask) -> dict[str, Any] | None:
    """Train as a rank of a gang that `fit` has started."""
    result = _fit_here(task)
    if worker.rank:
        return None
    return {"result": result.as_dict(), "model": model_bytes(task.model)}


def _show(event: Event) -> None:
    """Print an epoch of rank 0, whose own output is in its log."""
    if isinstance(event, EpochDone):
        values: dict[str, Any] = {
            "loss": event.loss,
            "validation_loss": event.validation_loss,
            "accuracy": event.accuracy,
            "learning_rate": event.learning_rate,
        }
        log(epoch=event.epoch, **{name: one for name, one in values.items() if one is not None})

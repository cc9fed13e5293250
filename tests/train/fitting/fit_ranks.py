"""What a rank does in the tests of `fit`. Every function returns plain values."""

import errno
import importlib
import os

import numpy as np
import torch
from torch import nn

import talka
from talka.errors import TalkaError
from talka.train.fitting import checkpoints, state_files, training

FEATURES, CLASSES = 8, 4
LOSS = nn.functional.cross_entropy


def calls(worker, named):
    """Call functions of this module by name, each with its options; return all results."""
    here = importlib.import_module(__name__)  # this function is sent without the others
    return [getattr(here, name)(worker, **options) for name, options in named]


def samples(number, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(number, FEATURES, generator=generator)
    return x, (x @ torch.randn(FEATURES, CLASSES, generator=torch.manual_seed(7))).argmax(1)


def new_model(dropout=0.0, norm=False):
    torch.manual_seed(0)
    middle = nn.BatchNorm1d(16) if norm else nn.Tanh()
    return nn.Sequential(
        nn.Linear(FEATURES, 16), middle, nn.Dropout(dropout), nn.Linear(16, CLASSES)
    )


def lars(parameters):
    return talka.train.LARS(parameters, lr=0.1, eta=0.05)


def flat(model):
    values = state_files.model_values(model).values()
    return torch.cat([one.reshape(-1).double() for one in values])


def options_with(options):
    """Fill in what most tests share."""
    return {"epochs": 3, "batch_size": 20, "progress": False, **options}


def trained(worker, num_samples=101, dropout=0.0, norm=False, num_validation=0, **options):
    """Return the values of the model, and the result, of a call of `fit`."""
    model = new_model(dropout, norm)
    if num_validation:
        options["validation"] = samples(num_validation, seed=1)
    result = talka.train.fit(model, samples(num_samples), LOSS, **options_with(options))
    return flat(model).tolist(), result.as_dict()


def resumed(worker, folder, stop_at, **options):
    """Train at once, and again with a failure before step `stop_at` and a restart; return both."""
    straight = trained(worker, **options, checkpoint=f"{folder}-straight")
    step = training.Training._step

    def failing(self, indices):
        if self.record.step == stop_at:
            raise TalkaError("this worker was ended")
        step(self, indices)

    training.Training._step = failing
    try:
        trained(worker, **options, checkpoint=folder)
    except TalkaError as error:
        failure = str(error)
    finally:
        training.Training._step = step
    worker.barrier()
    np.random.seed(worker.rank)  # a new process has other numbers
    return straight, trained(worker, **options, checkpoint=folder, resume=folder), failure


def failing(worker, **options):
    """Return the error of a call of `fit`."""
    try:
        rank, step = options.pop("nan_at", (None, 0))
        if rank == worker.rank:
            training.loss_value.__globals__["math"] = _Nan(step)
        trained(worker, **options)
    except TalkaError as error:
        return [type(error).__name__, str(error)]
    finally:
        training.loss_value.__globals__["math"] = importlib.import_module("math")
    return ["", ""]


class _Nan:
    """A `math` for which a loss is not finite after some calls."""

    def __init__(self, left):
        self.left = left

    def isfinite(self, value):
        self.left -= 1
        return self.left > 0


def full_disk(worker, folder):
    """Return the error when the disk of rank 1 is full in the second epoch, and a restart's result."""
    write, options = checkpoints.write_nested, {"checkpoint": folder}

    def writing(path, value):
        if worker.rank == 1 and value["optimizer"]["state"] and "step-00000012" in str(path):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, value)

    checkpoints.write_nested = writing
    error = failing(worker, **options)
    checkpoints.write_nested = write
    worker.barrier()
    left = sorted(os.listdir(folder))
    worker.barrier()
    result = trained(worker, **options, resume=folder)[1]
    return error, [len(result["losses"]), result["num_steps"]], left

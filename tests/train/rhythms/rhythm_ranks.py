"""What a rank does in the tests of rhythms. Every function returns plain values."""

import copy
import hashlib
import importlib
import math
import warnings

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

import talka
from talka.errors import TalkaError
from talka.exchange import open_exchange
from tests.train.rhythms import tasks


def calls(worker, named):
    """Call functions of this module by name, each with its arguments; return all results."""
    here = importlib.import_module(__name__)  # this function is sent without the others
    return [getattr(here, name)(worker, *arguments) for name, *arguments in named]


def made(kind, model, optimizer, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(talka.train, kind)(model, optimizer, **options)


def run(worker, kind, options, optimizer_name="momentum", num_steps=12, ddp=False, passes=1):
    """Train the task with a rhythm; return the parameters and the rhythm's counters."""
    model = tasks.new_model()
    if worker.rank:  # workers start with the parameters of rank 0
        nn.init.ones_(model[0].weight)
    wrapped = DistributedDataParallel(model) if ddp else model
    optimizer = tasks.new_optimizer(optimizer_name, model)
    with made(kind, wrapped, optimizer, options) as rhythm:
        for step in range(num_steps):
            x, y = tasks.part(step, worker.rank, worker.size)
            tasks.gradient_step(wrapped, optimizer, x, y, passes)
    return tasks.flat(model).tolist(), rhythm.stats(), rhythm.num_rounds


def several(worker, cells):
    """Return a digest of the parameters and the loss for each cell of `run`'s arguments."""
    results = []
    for cell in cells:
        parameters, stats, rounds = run(worker, *cell)
        data = torch.tensor(parameters)
        model = tasks.new_model()
        tasks.set_flat(model, data)
        x, y = tasks.batch(100)
        with torch.no_grad():
            loss = float(nn.functional.cross_entropy(model(x), y))
        digest = hashlib.sha256(data.numpy().tobytes()).hexdigest()
        results.append([digest, loss, stats["sent_bytes"], rounds])
    return results


def saved_and_loaded(worker, kind, options, folder):
    """Return the parameters of a run of 14 steps, and of one that was saved after 7 of them."""

    def new():
        model = tasks.new_model()
        optimizer = tasks.new_optimizer("momentum", model)
        return model, optimizer, made(kind, model, optimizer, options)

    def steps(model, optimizer, first, last):
        for step in range(first, last):
            tasks.gradient_step(model, optimizer, *tasks.part(step, worker.rank, worker.size))

    model, optimizer, rhythm = new()
    with rhythm:
        steps(model, optimizer, 0, 7)
        rhythm.save(folder)
        kept = copy.deepcopy([model.state_dict(), optimizer.state_dict()])
        as_dict = rhythm.state_dict()
        steps(model, optimizer, 7, 14)
    straight = tasks.flat(model).tolist()
    resumed = []
    for by_dict in (False, True):
        model, optimizer, rhythm = new()
        model.load_state_dict(kept[0])
        optimizer.load_state_dict(copy.deepcopy(kept[1]))  # it keeps the tensors
        rhythm.load_state_dict(as_dict) if by_dict else rhythm.load(folder)
        with rhythm:
            steps(model, optimizer, 7, 14)
        resumed.append([tasks.flat(model).tolist(), rhythm.num_rounds])
    return straight, resumed


def failing(worker, how, kind, options):
    """Return the error of each rank when one of them does something wrong."""
    model = tasks.new_model()
    if how == "shape" and worker.rank == 1:
        model[2] = nn.Linear(40, tasks.CLASSES + 1)
    optimizer = tasks.new_optimizer("sgd", model)
    if how == "options" and worker.rank == 1:
        options = {**options, "compressor": "fp16"}
    num_steps = 5 if how == "uneven" and worker.rank == 1 else 12
    try:
        with made(kind, model, optimizer, options):
            for step in range(num_steps):
                x, y = tasks.part(step, worker.rank, worker.size)
                if worker.rank == 1 and step == 6:
                    if how == "nan":
                        x = x * math.nan
                    if how == "raises":
                        raise RuntimeError("the disk of this worker is broken")
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
    except (TalkaError, RuntimeError) as error:
        return [type(error).__name__, str(error)]
    return ["", ""]


def unequal_shares(worker, kind, options, counts):
    """Train with fixed unequal shares of each batch; return the parameters and weights."""
    model = tasks.new_model()
    optimizer = tasks.new_optimizer("sgd", model)
    shares = talka.train.Shares(sum(counts), measured=False)
    x, y = (torch.cat(values) for values in zip(*map(tasks.batch, range(8)), strict=True))
    sampler = shares.sampler(x, shuffle=False)
    rhythm = made(kind, model, optimizer, {**options, "shares": shares})
    shares.join(worker.rank, worker.size)
    shares._plans = [(0, tuple(counts))]
    drawn = []
    with rhythm:
        for indices in sampler:
            drawn.append(indices)
            tasks.gradient_step(model, optimizer, x[indices], y[indices])
    return tasks.flat(model).tolist(), drawn


def measured_shares(worker, seconds_per_sample, workers_of_loader):
    """Train on a loader whose samples take longer on some ranks; return the shares at the end."""
    model = tasks.new_model()
    optimizer = tasks.new_optimizer("sgd", model)
    shares = talka.train.Shares(24)
    numbers = torch.arange(24 * 30)
    data = TensorDataset(torch.randn(len(numbers), tasks.FEATURES), numbers % 4, numbers)
    loader = DataLoader(data, batch_sampler=shares.sampler(data), num_workers=workers_of_loader)
    seen = []
    with talka.train.LocalSGD(model, optimizer, every=3, shares=shares) as rhythm:
        rhythm.replica.busy_s = lambda: sum(
            seen_in_batch * seconds_per_sample[worker.rank] for seen_in_batch in map(len, seen)
        )
        for x, y, which in loader:
            seen.append(which.tolist())
            tasks.gradient_step(model, optimizer, x, y)
    return shares.counts, [sample for samples in seen for sample in samples]


def weighted_averages(worker, spec, exchange):
    """Return an average with weights 0, 1 and 2, and its residuals."""
    opened = open_exchange(spec, exchange)
    values = torch.linspace(-1, 1, 600) * (worker.rank + 1)
    opened.average(values, weight=float(worker.rank)).wait()
    opened.close()
    return values.tolist()


def buffers_and_momentum(worker, average_momentum):
    """Return statistics of BatchNorm and momentum after some rounds."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(tasks.FEATURES, 8), nn.BatchNorm1d(8), nn.Linear(8, 4))
    optimizer = tasks.new_optimizer("momentum", model)
    with talka.train.LocalSGD(
        model, optimizer, every=4, compressor="onebit+ef", average_momentum=average_momentum
    ):
        for step in range(8):
            tasks.gradient_step(model, optimizer, *tasks.part(step, worker.rank, worker.size))
    momentum = optimizer.state[model[0].weight]["momentum_buffer"]
    return model[1].running_mean.tolist(), float(momentum.double().sum())


def two_passes(worker):
    """Return the warnings of a loop with two backward passes per step without `accumulate`."""
    model = tasks.new_model()
    optimizer = tasks.new_optimizer("sgd", model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with talka.train.EveryStep(model, optimizer):
            tasks.gradient_step(model, optimizer, *tasks.part(0, worker.rank, worker.size), 2)
    return [str(one.message) for one in caught]


def with_events(worker, kind, options, has_buffers, run_dir, num_steps=36):
    """Train a model of two larger layers and write events; return the bytes that this rank sent."""
    torch.manual_seed(0)
    middle = [nn.BatchNorm1d(96)] if has_buffers else []
    model = nn.Sequential(
        nn.Linear(tasks.FEATURES, 96), *middle, nn.Tanh(), nn.Linear(96, 96), nn.Linear(96, 4)
    )
    optimizer = tasks.new_optimizer("sgd", model)
    with made(kind, model, optimizer, {**options, "run_dir": run_dir}) as rhythm:
        for step in range(num_steps):
            tasks.gradient_step(model, optimizer, *tasks.part(step, worker.rank, worker.size))
    return rhythm.stats()["sent_bytes"]

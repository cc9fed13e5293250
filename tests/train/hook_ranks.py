"""What a rank does in the tests of the hook. Every function returns plain values."""

import hashlib
import os
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import talka.train
from talka.errors import SavedStateError
from talka.exchange import open_exchange


class Net(nn.Module):
    """A matrix, a bias, an embedding with rows that are never used, and a layer that may be unused."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(50, 40)
        self.inner = nn.Linear(40, 60)
        self.outer = nn.Linear(60, 5)
        self.spare = nn.Linear(60, 5)

    def forward(self, x, use_spare=False):
        hidden = torch.relu(self.inner(self.words(x).mean(1)))
        return self.spare(hidden) if use_spare else self.outer(hidden)


def batches(rank, num_steps, start=0):
    for step in range(start, start + num_steps):
        generator = torch.Generator().manual_seed(100 * step + rank)
        x = torch.randint(0, 45, (16, 6), generator=generator)
        yield x, (x.sum(1) > 132).long()


def digest(model):
    data = b"".join(one.detach().double().numpy().tobytes() for one in model.parameters())
    return hashlib.sha256(data).hexdigest()


def wrapped(model, **options):
    return DistributedDataParallel(model, find_unused_parameters=True, **options)


def train(ddp, optimizer, rank, num_steps, start=0):
    for x, y in batches(rank, num_steps, start):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(ddp(x).float(), y)
        loss.backward()
        optimizer.step()
    return float(loss.detach())


def sgd(model, lr=0.3):
    return torch.optim.SGD(model.parameters(), lr=lr, momentum=0.5)


def replicas(worker, specs):
    """Return digest and loss by spec after ten steps, with several buckets and an unused layer."""
    results = []
    for spec in specs:
        ddp = wrapped(Net(), bucket_cap_mb=0.005)
        optimizer = sgd(ddp.module)
        hook = None
        if spec is not None:
            hook = talka.train.attach(ddp, spec, optimizer=optimizer)
        loss = train(ddp, optimizer, worker.rank, 10)
        results.append([digest(ddp.module), loss, hook.stats() if hook else {}])
        if hook:
            hook.close()
    return results


def kinds_of_parameters(worker, spec):
    """bf16 and float64 models, gradients as views of buckets, several backward passes per step."""
    digests = []
    for dtype in (torch.bfloat16, torch.float64):
        ddp = wrapped(Net().to(dtype), gradient_as_bucket_view=True)
        talka.train.attach(ddp, spec)
        train(ddp, sgd(ddp.module), worker.rank, 3)
        digests.append(digest(ddp.module))
    ddp, optimizer = wrapped(Net()), None
    talka.train.attach(ddp, spec)
    optimizer = sgd(ddp.module)
    for (x1, y1), (x2, y2) in zip(
        batches(worker.rank, 3), batches(worker.rank, 3, 50), strict=True
    ):
        optimizer.zero_grad()
        with ddp.no_sync():
            nn.functional.cross_entropy(ddp(x1), y1).backward()
        nn.functional.cross_entropy(ddp(x2), y2).backward()
        optimizer.step()
    return [*digests, digest(ddp.module)]


def started(spec, **options):
    ddp = wrapped(Net(), bucket_cap_mb=0.005)
    return ddp, sgd(ddp.module), talka.train.attach(ddp, spec, **options)


def resumed(worker, specs, folder):
    """Eight steps at a stretch; and four, a checkpoint, and four more in a new DDP."""
    results = []
    for number, spec in enumerate(specs):
        place = Path(folder) / str(number)
        momentum = 0.9 if spec.startswith("topk") else 0.0
        ddp, optimizer, hook = started(spec, momentum=momentum)
        train(ddp, optimizer, worker.rank, 8)
        straight = digest(ddp.module)
        hook.close()

        ddp, optimizer, hook = started(spec, momentum=momentum)
        train(ddp, optimizer, worker.rank, 4)
        hook.save(place)
        hook.close()
        new, new_optimizer, new_hook = started(spec, momentum=momentum)
        new.module.load_state_dict(ddp.module.state_dict())
        new_optimizer.load_state_dict(optimizer.state_dict())
        new_hook.load(place)
        train(new, new_optimizer, worker.rank, 4, start=4)
        results.append([straight, digest(new.module)])
        new_hook.close()
    return results


def saved_after_some_steps(worker, spec, exchanges, folder):
    """Return the residuals of this worker by exchange, which the average still lacks."""
    os.environ["GROUP_RANK"] = str(worker.rank // 2)
    found = []
    for exchange in exchanges:
        ddp, optimizer, hook = started(spec, exchange=exchange)
        train(ddp, optimizer, worker.rank, 3)
        hook.save(Path(folder) / exchange)
        found.append(lacking(hook))
    return found


def loaded(worker, spec, exchanges, folder):
    os.environ["GROUP_RANK"] = str(worker.rank // 2)
    found = []
    for exchange in exchanges:
        _, _, hook = started(spec, exchange=exchange)
        hook.load(Path(folder) / exchange)
        found.append(lacking(hook))
    return found


def refused(worker, folder):
    """Return the errors of loading no file, another spec, a changed file, and rubbish."""
    ddp, optimizer, hook = started("onebit+ef")
    train(ddp, optimizer, worker.rank, 1)
    errors = [refusal(hook, Path(folder) / "nothing")]
    hook.save(folder)
    _, _, other = started("topk:0.1+ef")
    errors.append(refusal(other, folder))
    file = Path(folder) / "rank-0.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    errors.append(refusal(hook, folder))
    file.write_bytes(b"rubbish")
    return [*errors, refusal(hook, folder)]


def refusal(hook, folder):
    try:
        hook.load(folder)
    except SavedStateError as error:
        return str(error)


def lacking(hook):
    """Return this worker's residuals of the inner weights, by side."""
    name = "inner.weight"
    return [
        side[name].tolist() if name in side else [0.0] * 2400 for side in hook.exchange.residuals()
    ]


def swapped(worker):
    ddp, optimizer, hook = started("onebit+ef")
    train(ddp, optimizer, worker.rank, 3)
    before = hook.exchange.residuals()[0]["inner.weight"].clone()
    hook.swap("topk:0.1+ef")
    kept = torch.equal(before, hook.exchange.residuals()[0]["inner.weight"])
    train(ddp, optimizer, worker.rank, 3, start=3)
    hook.swap("none")
    train(ddp, optimizer, worker.rank, 3, start=6)
    return [kept, hook.spec, digest(ddp.module)]


def momentum_before_and_after(worker):
    """Weights after some steps with momentum in the hook, and with momentum in the optimizer."""
    weights = []
    for in_hook, in_optimizer in ((0.9, 0.0), (0.0, 0.9)):
        ddp = wrapped(Net(), bucket_cap_mb=0.005)
        optimizer = torch.optim.SGD(ddp.module.parameters(), lr=0.05, momentum=in_optimizer)
        hook = talka.train.attach(ddp, "none", optimizer=optimizer, momentum=in_hook)
        train(ddp, optimizer, worker.rank, 6)
        hook.close()
        weights.append([parameter.flatten().tolist() for parameter in ddp.module.parameters()])
    return weights


def swapped_with_momentum(worker):
    ddp, optimizer, hook = started("topk:0.1+ef", momentum=0.9)
    train(ddp, optimizer, worker.rank, 3)
    before = hook.exchange.momentum.state()
    hook.swap("onebit+ef")
    after = hook.exchange.momentum.state()
    return [len(before), all(torch.equal(before[key], after[key]) for key in before)]


def learning_rates(worker):
    """Take a step with zero gradients at a tenth of the rate, so that only residuals are sent.

    Return the residual of a parameter before it, the average that it applied, and the residual
    after it.
    """
    ddp = wrapped(Net(), bucket_cap_mb=0.005)
    optimizer = sgd(ddp.module)
    hook = talka.train.attach(ddp, "topk:0.01+ef", optimizer=optimizer)
    train(ddp, optimizer, worker.rank, 2)
    [residuals] = hook.exchange.residuals()
    before = residuals["inner.weight"].flatten().tolist()
    optimizer.param_groups[0]["lr"] /= 10
    optimizer.zero_grad()
    [(x, _)] = batches(worker.rank, 1)
    (0 * ddp(x)).sum().backward()
    [residuals] = hook.exchange.residuals()
    applied = ddp.module.inner.weight.grad.flatten().tolist()
    return [before, applied, residuals["inner.weight"].flatten().tolist()]


def adam(worker):
    ddp = wrapped(Net())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer = torch.optim.AdamW(ddp.module.parameters(), lr=1e-2)
        talka.train.attach(ddp, "onebit+ef", optimizer=optimizer)
    texts = [str(warning.message) for warning in caught]
    messages = [text for text in texts if "may diverge" in text]

    ddp = wrapped(Net(), bucket_cap_mb=0.005)
    optimizer = talka.train.FrozenAdam(ddp.module.parameters(), lr=1e-2, warmup_steps=30)
    hook = talka.train.attach(ddp, "onebit+ef", optimizer=optimizer)
    first = train(ddp, optimizer, worker.rank, 1)
    train(ddp, optimizer, worker.rank, 29)
    sent_in_warm_up = hook.stats()["sent_bytes"]
    last = train(ddp, optimizer, worker.rank, 300)
    return [messages, first, last, sent_in_warm_up, digest(ddp.module)]


def without_ddp(worker):
    """`average_gradients` after backward, beside `attach` with the same spec."""
    ddp = wrapped(Net())
    talka.train.attach(ddp, "onebit+ef")
    optimizer = sgd(ddp.module)
    train(ddp, optimizer, worker.rank, 5)

    model = Net()
    optimizer, exchange = sgd(model), open_exchange("onebit+ef", min_compressed_values=256)
    for x, y in batches(worker.rank, 5):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        talka.train.average_gradients(model, exchange)
        optimizer.step()
    exchange.close()
    return [digest(ddp.module), digest(model)]


class Branches(nn.Module):
    """Two matrices; a step may use either, or both."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.left, self.right = nn.Linear(40, 30, bias=False), nn.Linear(40, 30, bias=False)

    def forward(self, x, names):
        return sum((getattr(self, name)(x) ** 2).mean() for name in names)


BRANCHES = {"left": lambda model: model.left.weight, "right": lambda model: model.right.weight}
USES = [  # by step: what rank 0 uses, and rank 1
    (["left", "right"], ["left", "right"]),
    (["left"], ["left"]),
    (["left"], ["left", "right"]),
    (["left"], ["left"]),
    (["right"], ["left"]),
    (["left"], ["left"]),
]


def unused_parameters(worker):
    """By case: by parameter, the sums of what was applied, is still kept here, and was given."""
    specs = ["topk:0.1+ef", "onebit+ef", "powersgd:2", "randomk:0.1+ef", "threshold:auto+ef"]
    found = {spec: accounts(worker, spec) for spec in specs}
    for exchange in ("two-phase", "global-topk", "hierarchical"):
        found[exchange] = accounts(worker, "topk:0.1+ef", exchange)
    for views in (False, True):
        for none in (False, True):
            case = f"gradients are views: {views}, become None: {none}"
            found[case] = accounts(worker, "topk:0.1+ef", views=views, set_to_none=none)
    found["static graph"] = accounts(worker, "topk:0.1+ef", uses=[USES[2]] * 4, is_static=True)
    return found


def accounts(
    worker, spec, exchange=None, *, uses=USES, set_to_none=True, views=False, is_static=False
):
    model = Branches()
    ddp = DistributedDataParallel(
        model,
        find_unused_parameters=not is_static,
        static_graph=is_static,
        gradient_as_bucket_view=views,
    )
    hook = talka.train.attach(ddp, spec, exchange)
    applied, kept, given = ({name: torch.zeros(1200) for name in BRANCHES} for _ in range(3))
    for step, used in enumerate(uses):
        x = torch.randn(8, 40, generator=torch.Generator().manual_seed(10 * step + worker.rank))
        for name in used[worker.rank]:
            [gradient] = torch.autograd.grad(model(x, [name]), [BRANCHES[name](model)])
            given[name] += gradient.flatten()
        model.zero_grad(set_to_none=set_to_none)
        ddp(x, used[worker.rank]).backward()
        for name, parameter_of in BRANCHES.items():
            if parameter_of(model).grad is not None:
                applied[name] += parameter_of(model).grad.flatten()
    for number, side in enumerate(hook.exchange.residuals()):
        is_mean = number == 0 or exchange == "global-topk"
        for name in BRANCHES:
            kept[name] += side.get(f"{name}.weight", torch.zeros(1)) / (2 if is_mean else 1)
    hook.close()
    return {
        name: [applied[name].tolist(), kept[name].tolist(), given[name].tolist()]
        for name in BRANCHES
    }


def registered_by_a_trainer(worker):
    model = Net()
    hook = talka.train.Hook(model, "onebit+ef")  # before there is a DDP
    ddp = wrapped(model)
    ddp.register_comm_hook(hook, talka.train.exchange_hook)
    train(ddp, sgd(model), worker.rank, 3)
    return [digest(model), hook.stats()["num_steps"]]


def events(worker, folder):
    ddp, optimizer, hook = started("onebit+ef", run_dir=folder)
    train(ddp, optimizer, worker.rank, 60)
    hook.close()
    return hook.stats()


def broken(worker):
    """One worker's gradient is not finite: that worker's backward pass raises an error."""
    ddp, _, _ = started("onebit+ef")
    x, y = next(batches(worker.rank, 1))
    loss = nn.functional.cross_entropy(ddp(x), y)
    (loss * float("nan")).backward()


def mixed_saves(worker, folder):
    """Return the errors of loading files of two saves, on two disks and on one, and a damaged file."""
    first, second = Path(folder) / "first", Path(folder) / "second"
    ddp, optimizer, hook = started("topk:0.05+ef", momentum=0.9)
    for place in (first, second):
        train(ddp, optimizer, worker.rank, 1)
        hook.save(place)
    before = {key: value.clone() for key, value in hook.exchange.state().items()}
    own = f"rank-{worker.rank}.safetensors"
    own_disk = Path(folder) / f"disk-{worker.rank}"
    own_disk.mkdir()
    (own_disk / own).write_bytes(((first, second)[worker.rank] / own).read_bytes())
    errors = [refusal(hook, own_disk)]
    if worker.rank == 1:
        (first / own).write_bytes((second / own).read_bytes())
    errors.append(refusal(hook, first))
    if worker.rank == 1:
        (second / own).write_bytes(b"rubbish")
    errors.append(refusal(hook, second))
    after = hook.exchange.state()
    return [errors, all(torch.equal(before[key], after[key]) for key in before)]


def by_name(worker, calls):
    """Call several of these functions in one gang, which takes seconds to start."""
    from tests.train import hook_ranks

    return {
        name: getattr(hook_ranks, name)(worker, *arguments) for name, arguments in calls.items()
    }

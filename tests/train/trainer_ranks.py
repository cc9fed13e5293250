"""What a rank does in the tests of what trainers need. Every function returns plain values."""

import math

import torch
from torch import nn

import talka.train
from talka.errors import SavedStateError
from tests.train.hook_ranks import Net, batches, digest, sgd, started, train, wrapped


def continued_from_a_dict(worker):
    """Return digests of eight steps at once and of four plus four, and errors of wrong dicts."""
    ddp, optimizer, hook = started("onebit+ef")
    train(ddp, optimizer, worker.rank, 8)
    straight = digest(ddp.module)
    hook.close()

    ddp, optimizer, hook = started("onebit+ef")
    train(ddp, optimizer, worker.rank, 4)
    state = hook.state_dict()
    new, new_optimizer, new_hook = started("onebit+ef")
    new.module.load_state_dict(ddp.module.state_dict())
    new_optimizer.load_state_dict(optimizer.state_dict())
    new_hook.load_state_dict(state)
    train(new, new_optimizer, worker.rank, 4, start=4)

    # As a trainer that stores what rank 0 has, and gives it to all ranks.
    everywhere = [state if worker.rank == 0 else None]
    torch.distributed.broadcast_object_list(everywhere)
    refusals = [refusal(new_hook, everywhere[0])]
    train(ddp, optimizer, worker.rank, 1, start=4)
    refusals.append(refusal(new_hook, state if worker.rank == 0 else hook.state_dict()))
    hook.close()
    new_hook.close()
    return [straight, digest(new.module), refusals]


def refusal(hook, state):
    try:
        hook.load_state_dict(state)
    except SavedStateError as error:
        return str(error)


def skipped_by_a_scaler(worker):
    """Rank 1 alone has a gradient that is not finite, in the third step."""
    ddp = wrapped(Net(), bucket_cap_mb=0.005)
    optimizer, scaler = sgd(ddp.module), torch.amp.GradScaler("cpu", init_scale=64.0)
    with talka.train.attach(ddp, "onebit+ef", optimizer=optimizer, scaler=scaler) as hook:
        for step, (x, y) in enumerate(batches(worker.rank, 12)):
            loss = nn.functional.cross_entropy(ddp(x), y)
            optimizer.zero_grad()
            scaler.scale(loss * math.inf if (worker.rank, step) == (1, 2) else loss).backward()
            scaler.step(optimizer)
            scaler.update()
        norm = hook.stats()["residual_norm"]
    return [digest(ddp.module), scaler.get_scale(), float(loss.detach()), math.isfinite(norm)]


def all_of_them(worker):
    """One after another: a gang takes seconds to start."""
    return [function(worker) for function in (continued_from_a_dict, skipped_by_a_scaler)]

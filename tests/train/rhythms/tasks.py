"""A small task, and its slow twins: whole batches, workers and exchanges in one process."""

import copy

import torch
from torch import nn

SIZE, FEATURES, CLASSES = 24, 12, 4


def new_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(FEATURES, 40), nn.Tanh(), nn.Linear(40, CLASSES))


def batch(step):
    """Return the whole batch of a step."""
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(SIZE, FEATURES, generator=generator)
    return x, (x @ torch.randn(FEATURES, CLASSES, generator=torch.manual_seed(7))).argmax(1)


def part(step, rank, size):
    """Return the equal share of one worker."""
    x, y = batch(step)
    return x[rank::size], y[rank::size]


def new_optimizer(name, model):
    return {
        "sgd": lambda: torch.optim.SGD(model.parameters(), lr=0.2),
        "momentum": lambda: torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
        "adam": lambda: torch.optim.Adam(model.parameters(), lr=0.01),
        "adamw": lambda: torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1),
    }[name]()


def gradient_step(model, optimizer, x, y, passes=1, clip=1.0):
    """Take one step of the loop that all tests have: accumulation, clipping, step."""
    optimizer.zero_grad()
    for k in range(passes):
        (nn.functional.cross_entropy(model(x[k::passes]), y[k::passes]) / passes).backward()
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()


def flat(model):
    return torch.cat([one.detach().reshape(-1) for one in model.parameters()])


def set_flat(model, values):
    with torch.no_grad():
        for one, piece in zip(
            model.parameters(),
            values.split([one.numel() for one in model.parameters()]),
            strict=True,
        ):
            one.copy_(piece.view(one.shape))


def whole_batches(optimizer_name, num_steps, passes=1):
    """One machine with the whole batch."""
    model = new_model()
    optimizer = new_optimizer(optimizer_name, model)
    for step in range(num_steps):
        gradient_step(model, optimizer, *batch(step), passes)
    return flat(model)


def local_steps(optimizer_name, num_steps, every, size, outer=None):
    """All workers of LocalSGD in one process; `outer` is (rate, momentum, nesterov)."""
    models = [new_model() for _ in range(size)]
    optimizers = [new_optimizer(optimizer_name, model) for model in models]
    point = flat(models[0])
    velocity = torch.zeros_like(point)
    for step in range(num_steps):
        for rank, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
            gradient_step(model, optimizer, *part(step, rank, size))
        if (step + 1) % every == 0 or step + 1 == num_steps:
            change = torch.stack([flat(model) - point for model in models]).mean(0)
            if outer is None:
                point = point + change
            else:
                rate, momentum, nesterov = outer
                velocity = momentum * velocity + change
                point = point + rate * (change + momentum * velocity if nesterov else velocity)
            for model in models:
                set_flat(model, point)
    return point


def delayed_steps(optimizer_name, num_steps, delay):
    """One machine that applies the gradient of each step `delay` steps later."""
    model = new_model()
    optimizer = new_optimizer(optimizer_name, model)
    waiting = []
    for step in range(num_steps):
        x, y = batch(step)
        shadow = copy.deepcopy(model)
        nn.functional.cross_entropy(shadow(x), y).backward()
        waiting.append([one.grad for one in shadow.parameters()])
        if len(waiting) > delay:
            _apply(model, optimizer, waiting.pop(0))
    while waiting:
        _apply(model, optimizer, waiting.pop(0))
    return flat(model)


def _apply(model, optimizer, gradients):
    for one, gradient in zip(model.parameters(), gradients, strict=True):
        one.grad = gradient
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

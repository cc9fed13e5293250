"""Learning rates by step, and the bound of the convergence theorem on a convex problem."""

import math

import pytest
import torch
from torch import nn

import talka
from talka.errors import InvalidValueError, OptionError, UnknownNameError
from talka.exchange import open_exchange
from talka.train import TheoremSteps
from talka.train.fitting.schedules import Decay, LearningRate, RatePlan, default_warmup, schedule_of


def factors(schedule, *, warmup_steps=0, scale=1, num_steps=8):
    plan = RatePlan(
        schedule=schedule_of(schedule),
        num_steps=num_steps,
        steps_per_epoch=2,
        warmup_steps=warmup_steps,
        scale=scale,
    )
    return [plan.factor(step) for step in range(num_steps)]


def test_learning_rates_by_step():
    assert factors("constant") == [1.0] * 8
    assert factors("constant", warmup_steps=4)[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert factors("step:2/0.5") == [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5]
    cosine = factors("cosine", warmup_steps=2)
    assert cosine[:3] == [0.5, 1.0, 1.0]
    assert cosine[5] == pytest.approx(0.5)
    assert factors("constant", warmup_steps=2, scale=4)[:3] == [2.5, 4.0, 4.0]
    assert default_warmup(num_steps=100, steps_per_epoch=4, scale=1) == 0
    assert default_warmup(num_steps=100, steps_per_epoch=4, scale=2) == 20
    assert default_warmup(num_steps=8, steps_per_epoch=4, scale=2) == 4


@pytest.mark.parametrize(
    "given, error",
    [
        ("cosin", UnknownNameError),
        ("cosine:3", InvalidValueError),
        ("step:3", InvalidValueError),
        ("step:3/2", InvalidValueError),
        (0.5, InvalidValueError),
    ],
)
def test_names_of_schedules_are_checked(given, error):
    with pytest.raises(error):
        schedule_of(given)


def test_each_group_keeps_its_own_learning_rate():
    groups = [{"params": [nn.Parameter(torch.zeros(1))], "lr": lr} for lr in (1.0, 0.1)]
    optimizer = torch.optim.SGD(groups)
    plan = RatePlan(schedule=Decay(), num_steps=9, steps_per_epoch=3, warmup_steps=2)
    rate = LearningRate(optimizer, plan)
    assert rate.set(0) == 0.5
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.05]
    rate.restore()
    assert [group["lr"] for group in optimizer.param_groups] == [1.0, 0.1]


def test_the_theorem_is_only_for_plain_sgd_in_every_step():
    model, data = nn.Linear(2, 1), (torch.zeros(4, 2), torch.zeros(4, 1))
    schedule = TheoremSteps(1.0, 1.0, 1.0)
    with pytest.raises(OptionError, match="SGD without momentum"):
        talka.train.fit(model, data, nn.functional.mse_loss, schedule=schedule)
    with pytest.raises(OptionError, match="rhythm cannot be combined with TheoremSteps"):
        talka.train.fit(
            model, data, nn.functional.mse_loss, schedule=schedule, rhythm="local-sgd:2"
        )
    with pytest.raises(InvalidValueError, match="beta is -1"):
        TheoremSteps(-1, 1, 1)


SIZE, FEATURES, BATCH = 1024, 300, 64


class HalfSquares(nn.Module):
    """Least squares: f(w) = mean of (x w - y)^2 / 2, with Lipschitz gradients."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(FEATURES))

    def forward(self, x):
        return x @ self.weight


def half_squares(output, target):
    return ((output - target) ** 2).mean() / 2


@pytest.fixture(scope="module")
def problem():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(SIZE, FEATURES, generator=generator) / math.sqrt(FEATURES)
    y = x @ torch.randn(FEATURES, generator=generator)
    y += 0.1 * torch.randn(SIZE, generator=generator)
    x64, y64 = x.double(), y.double()
    best = torch.linalg.lstsq(x64, y64[:, None]).solution[:, 0]
    beta = float(torch.linalg.eigvalsh(x64.T @ x64 / SIZE)[-1])
    value = lambda w: float(((x64 @ w.double() - y64) ** 2).mean() / 2)  # noqa: E731
    return x, y, best, beta, value


def noise_of(x, y, weight, spec):
    """Root of the mean square distance of sent gradients of batches from the gradient."""
    whole = x.T @ (x @ weight - y) / SIZE
    total, draws = 0.0, 50
    exchange = open_exchange(spec)
    for draw in range(draws):
        some = torch.randperm(SIZE, generator=torch.Generator().manual_seed(draw))[:BATCH]
        gradient = x[some].T @ (x[some] @ weight - y[some]) / BATCH
        exchange.average(gradient).wait()
        total += float(((gradient - whole) ** 2).sum())
    exchange.close()
    return math.sqrt(total / draws)


def test_the_bound_holds_on_a_convex_problem_also_with_a_quantised_gradient(problem):
    """Noise is largest at the start, where gradients are; its square is part of sigma."""
    x, y, best, beta, value = problem
    radius = float(best.norm())
    start = value(torch.zeros(FEATURES)) - value(best)
    sigmas = []
    for spec in ("none", "qsgd:7"):
        sigmas.append(noise_of(x, y, torch.zeros(FEATURES), spec))
        schedule = TheoremSteps(beta, sigmas[-1], radius)
        model = HalfSquares()
        result = talka.train.fit(
            model,
            (x, y),
            half_squares,
            optimizer="sgd:1",
            schedule=schedule,
            compressor=spec,
            epochs=25,
            batch_size=BATCH,
            progress=False,
        )
        bound = schedule.bound(result.num_steps)
        assert value(model.weight.detach()) - value(best) <= bound < 0.8 * start
    assert sigmas[1] > 1.05 * sigmas[0], "the second moment of the quantised gradient"

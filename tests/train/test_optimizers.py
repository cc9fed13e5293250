import math
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from talka.errors import InvalidValueError
from talka.exchange.registry import codec_of
from talka.train.hook import Hook
from talka.train.optimizers import check_momentum, unwrapped, warn_of_adam
from talka.train.transforms.frozen_adam import FrozenAdam

PARAMETERS = [torch.nn.Parameter(torch.zeros(3))]


def sgd(momentum):
    return torch.optim.SGD(PARAMETERS, lr=0.1, momentum=momentum)


def messages(function, *arguments):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*arguments)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("spec", ["topk:0.01+ef", "randomk:0.1+ef", "threshold:auto+ef"])
def test_momentum_after_sparse_payloads_is_warned_of(spec):
    [message] = messages(check_momentum, sgd(0.9), spec, codec_of(spec), 0.0)
    assert "attach(..., momentum=0.9)" in message
    assert messages(check_momentum, sgd(0.0), spec, codec_of(spec), 0.9) == []


@pytest.mark.parametrize(
    "spec", ["none", "fp16", "onebit+ef", "qsgd:7", "powersgd:4", "randomk:0.1"]
)
def test_momentum_after_what_comes_in_time_is_not(spec):
    assert messages(check_momentum, sgd(0.9), spec, codec_of(spec), 0.0) == []


@pytest.mark.parametrize(
    "optimizer", [sgd(0.9), torch.optim.AdamW(PARAMETERS), FrozenAdam(PARAMETERS)]
)
def test_momentum_twice_is_refused(optimizer):
    with pytest.raises(
        InvalidValueError, match="0 with this .*any other value needs torch.optim.SGD"
    ):
        check_momentum(optimizer, "onebit+ef", codec_of("onebit+ef"), 0.9)


@pytest.mark.parametrize("spec", ["onebit+ef", "topk:0.01+ef", "powersgd:4"])
def test_adam_is_warned_of_with_biased_specs(spec):
    [message] = messages(warn_of_adam, torch.optim.AdamW(PARAMETERS), spec, codec_of(spec))
    assert "FrozenAdam" in message
    assert messages(warn_of_adam, FrozenAdam(PARAMETERS), spec, codec_of(spec)) == []
    assert messages(warn_of_adam, sgd(0.9), spec, codec_of(spec)) == []


@pytest.mark.parametrize(
    "spec",
    ["none", "fp16+ef", "bf16", "trunc16+ef", "qsgd:7", "uniform:3", "terngrad", "randomk:0.1"],
)
def test_adam_is_not_warned_of_with_nearly_exact_or_unbiased_specs(spec):
    assert messages(warn_of_adam, torch.optim.AdamW(PARAMETERS), spec, codec_of(spec)) == []


@pytest.mark.parametrize(
    "spec", ["onebit", "topk:0.1", "threshold:auto", "significance:2", "uniform:3/max/512+ef"]
)
def test_adam_is_warned_of_without_feedback_and_with_feedback_around_unbiased_specs(spec):
    assert len(messages(warn_of_adam, torch.optim.AdamW(PARAMETERS), spec, codec_of(spec))) == 1


class Wrapper:
    """As trainers have it: an optimizer in `.optimizer`, and what it has itself."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.param_groups = optimizer.param_groups


@pytest.mark.slow
def test_what_accelerate_and_lightning_wrap_is_found():
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState
    from lightning.pytorch.core.optimizer import LightningOptimizer

    real = FrozenAdam(PARAMETERS)
    try:
        assert unwrapped(Accelerator(cpu=True).prepare_optimizer(real)) is real
    finally:
        AcceleratorState._reset_state(reset_partial_state=True)
    assert unwrapped(LightningOptimizer(real)) is real
    assert unwrapped(Wrapper(Wrapper(real))) is real
    assert unwrapped(real) is real


def test_a_wrapped_frozen_adam_is_attached_and_a_wrapped_adam_is_warned_of():
    model = torch.nn.Linear(3, 3)
    frozen = FrozenAdam(model.parameters())
    Hook(model, "onebit+ef", optimizer=Wrapper(frozen))
    assert frozen.attached
    with pytest.warns(UserWarning, match="AdamW with 'onebit"):
        Hook(model, "onebit+ef", optimizer=Wrapper(torch.optim.AdamW(model.parameters())))
    Hook(model, "topk:0.1+ef", optimizer=Wrapper(sgd(0.0)), momentum=0.9)


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (torch.optim.lr_scheduler.StepLR(sgd(0.0), 1), "torch.optim.lr_scheduler.StepLR"),
        (PARAMETERS, "builtins.list"),
        (Wrapper(Wrapper(type("Odd", (), {"param_groups": []}))), "Wrapper"),
    ],
)
def test_what_is_neither_an_optimizer_nor_a_wrapper_is_refused(other, name):
    with pytest.raises(InvalidValueError, match=f"optimizer is '.*{name}'.*torch.optim.Optimizer"):
        Hook(torch.nn.Linear(3, 3), "onebit+ef", optimizer=other)


def adam_twin(gradients, *, lr, warmup_steps, beta_1=0.9, beta_2=0.999, eps=1e-8):
    """One weight, in float64: Adam, whose variance stays as it is after the warm-up."""
    weight = momentum = variance = 0.0
    steps = []
    for step, gradient in enumerate(gradients, 1):
        warm = min(step, warmup_steps)
        momentum = beta_1 * momentum + (1 - beta_1) * gradient
        if step <= warmup_steps:
            variance = beta_2 * variance + (1 - beta_2) * gradient**2
        size = momentum / (1 - beta_1**step) / (math.sqrt(variance / (1 - beta_2**warm)) + eps)
        longest = (1 - beta_1) / math.sqrt(1 - beta_2)
        steps.append(max(-longest, min(longest, size)))
        weight -= lr * steps[-1]
    return weight, steps


def frozen_adam(gradients, *, lr, warmup_steps):
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = FrozenAdam([weight], lr=lr, warmup_steps=warmup_steps)
    for gradient in gradients:
        weight.grad = torch.tensor([gradient])
        optimizer.step()
    return float(weight.detach())


@given(st.lists(st.floats(-10, 10).filter(lambda one: abs(one) > 1e-3), min_size=1, max_size=30))
def test_frozen_adam_is_adam_and_then_keeps_its_variance(gradients):
    expected, _ = adam_twin(gradients, lr=0.01, warmup_steps=5)
    assert frozen_adam(gradients, lr=0.01, warmup_steps=5) == pytest.approx(
        expected, rel=1e-3, abs=1e-5
    )


def test_gradients_that_grow_after_the_warm_up_move_no_weight_farther_than_adam_could():
    gradients = [1e-3] * 5 + [1.0] * 20
    expected, steps = adam_twin(gradients, lr=0.01, warmup_steps=5)
    assert max(steps) == pytest.approx(0.1 / math.sqrt(0.001))
    assert frozen_adam(gradients, lr=0.01, warmup_steps=5) == pytest.approx(
        expected, rel=1e-3, abs=1e-5
    )


@pytest.mark.parametrize("attached", [False, True])
def test_a_parameter_first_used_after_the_warm_up_moves_as_far_as_adam_moves_it(attached):
    """Its gradients are of one size: every entry has moved by a learning rate per step in the end."""
    early, late = torch.nn.Parameter(torch.zeros(4)), torch.nn.Parameter(torch.zeros(4))
    optimizer = FrozenAdam([early, late], lr=0.01, warmup_steps=5)
    optimizer.attached = attached
    signs, places = torch.tensor([1.0, -1.0, 1.0, -1.0]), []
    for step in range(60):
        early.grad = torch.ones(4)
        late.grad = None if step < 10 else torch.zeros(4) if step == 10 else 1e-3 * signs
        if attached:
            used = [parameter for parameter in (early, late) if parameter.grad is not None]
            optimizer.to_momentum(used, [parameter.grad for parameter in used])
        optimizer.step()
        places.append(late.detach().clone())
    assert torch.equal(places[10], torch.zeros(4)), "a gradient of zero has no size"
    torch.testing.assert_close(places[59] - places[58], -0.01 * signs, rtol=0.02, atol=0)
    assert all((late * signs < -0.3).tolist())

"""Training with a GradScaler is training without one that leaves the same steps out, to the bit."""

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from talka.errors import InvalidValueError, NonFiniteError
from talka.train import FrozenAdam, attach

SKIPPED = (
    3,
    22,
)  # steps with a gradient that is not finite: in the warm-up of FrozenAdam, and later


class Loop:
    """A training loop with or without a scaler, whose factor grows every seven steps."""

    def __init__(self, spec, kind, *, is_scaled, momentum=0.0):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 5))
        self.ddp = DistributedDataParallel(self.model, bucket_cap_mb=0.001)  # several buckets
        if kind is FrozenAdam:
            self.optimizer = FrozenAdam(self.model.parameters(), lr=0.01, warmup_steps=10)
        else:
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.scaler = torch.amp.GradScaler(
            "cpu", init_scale=1024.0, growth_interval=7, enabled=is_scaled
        )
        self.hook = attach(
            self.ddp,
            spec,
            optimizer=self.optimizer,
            momentum=momentum,
            scaler=self.scaler if is_scaled else None,
        )

    def train(self, start, stop, *, clips=False):
        for step in range(start, stop):
            if step in SKIPPED and not self.scaler.is_enabled():
                continue
            x = torch.randn(8, 20, generator=torch.Generator().manual_seed(step))
            loss = self.ddp(x).square().mean()
            if step in SKIPPED:  # the last layer alone gets gradients that are not finite
                loss = loss + (self.model[2].weight * torch.inf).sum()
            self.optimizer.zero_grad()
            self.scaler.scale(loss).backward()
            if clips:
                self.scaler.unscale_(self.optimizer)
                nn.utils.clip_grad_norm_(self.model.parameters(), 0.1)
            self.scaler.step(self.optimizer)
            self.scaler.update()
        return self

    def weights(self):
        return [parameter.detach().clone() for parameter in self.model.parameters()]


CASES = [
    ("none", torch.optim.SGD, 0.0),
    ("onebit+ef", torch.optim.SGD, 0.0),
    ("topk:0.1+ef", torch.optim.SGD, 0.9),
    ("powersgd:2", torch.optim.SGD, 0.0),
    ("onebit+ef", FrozenAdam, 0.0),
]


@pytest.mark.parametrize("clips", [False, True])
@pytest.mark.parametrize(("spec", "kind", "momentum"), CASES)
def test_steps_that_a_scaler_skips_are_as_if_they_had_not_been(alone, spec, kind, momentum, clips):
    loops = [
        Loop(spec, kind, is_scaled=is_scaled, momentum=momentum).train(0, 30, clips=clips)
        for is_scaled in (False, True)
    ]
    plain, scaled = (loop.weights() for loop in loops)
    for one, other in zip(plain, scaled, strict=True):
        assert torch.equal(one, other)
    assert loops[1].scaler.get_scale() > 1024
    assert loops[1].hook.stats()["num_steps"] == 30


def test_a_saved_state_knows_its_factor(alone):
    """It continues with a scaler of another factor, and without one."""
    straight = Loop("onebit+ef", torch.optim.SGD, is_scaled=False).train(5, 15)
    for first, second in ((True, False), (False, True), (True, True)):
        before = Loop("onebit+ef", torch.optim.SGD, is_scaled=first).train(5, 10)
        after = Loop("onebit+ef", torch.optim.SGD, is_scaled=second)
        if second:
            after.scaler.load_state_dict(after.scaler.state_dict() | {"scale": 8.0})
        after.model.load_state_dict(before.model.state_dict())
        after.hook.load_state_dict(before.hook.state_dict())
        after.train(10, 15)
        for one, other in zip(after.weights(), straight.weights(), strict=True):
            assert torch.equal(one, other), (first, second)


def test_the_error_of_a_hook_without_the_scaler_names_the_argument(alone):
    loop = Loop("onebit+ef", torch.optim.SGD, is_scaled=False)
    loop.scaler = torch.amp.GradScaler("cpu")
    with pytest.raises(NonFiniteError, match=r"attach\(..., scaler=scaler\)"):
        loop.train(0, 5)


def test_frozen_adam_refuses_a_scaler_that_its_hook_does_not_know(alone):
    loop = Loop("onebit+ef", FrozenAdam, is_scaled=False)
    loop.scaler = torch.amp.GradScaler("cpu")
    with pytest.raises(InvalidValueError, match="mixes scaled gradients with unscaled momentum"):
        loop.train(0, 1)


def test_frozen_adam_without_a_hook_works_with_a_scaler():
    weights = []
    for is_scaled in (False, True):
        torch.manual_seed(0)
        model = nn.Linear(5, 3)
        optimizer = FrozenAdam(model.parameters(), lr=0.01, warmup_steps=2)
        scaler = torch.amp.GradScaler("cpu", enabled=is_scaled)
        for step in range(6):
            x = torch.randn(4, 5, generator=torch.Generator().manual_seed(step))
            optimizer.zero_grad()
            scaler.scale(model(x).square().mean()).backward()
            scaler.step(optimizer)
            scaler.update()
        weights.append(model.weight.detach().clone())
    assert torch.equal(*weights)

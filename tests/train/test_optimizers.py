import warnings

import pytest
import torch

from talka.errors import InvalidValueError
from talka.train.frozen_adam import FrozenAdam
from talka.train.optimizers import check_momentum, warn_of_adam

PARAMETERS = [torch.nn.Parameter(torch.zeros(3))]


def sgd(momentum):
    return torch.optim.SGD(PARAMETERS, lr=0.1, momentum=momentum)


def messages(function, *arguments):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*arguments)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("spec", ["topk:0.01+ef", "randomk:0.1", "threshold:auto+ef"])
def test_momentum_after_sparse_payloads_is_warned_of(spec):
    [said] = messages(check_momentum, sgd(0.9), spec, 0.0)
    assert "attach(..., momentum=0.9)" in said
    assert messages(check_momentum, sgd(0.0), spec, 0.9) == []


@pytest.mark.parametrize("spec", ["none", "fp16", "onebit+ef", "qsgd:7", "powersgd:4"])
def test_momentum_after_dense_payloads_is_not(spec):
    assert messages(check_momentum, sgd(0.9), spec, 0.0) == []


@pytest.mark.parametrize(
    "optimizer", [sgd(0.9), torch.optim.AdamW(PARAMETERS), FrozenAdam(PARAMETERS)]
)
def test_momentum_twice_is_refused(optimizer):
    with pytest.raises(InvalidValueError, match="which has its own; or another with torch.optim"):
        check_momentum(optimizer, "onebit+ef", 0.9)


@pytest.mark.parametrize("spec", ["onebit+ef", "topk:0.01+ef", "powersgd:4"])
def test_adam_is_warned_of_with_biased_specs(spec):
    [said] = messages(warn_of_adam, torch.optim.AdamW(PARAMETERS), spec)
    assert "FrozenAdam" in said
    assert messages(warn_of_adam, FrozenAdam(PARAMETERS), spec) == []
    assert messages(warn_of_adam, sgd(0.9), spec) == []

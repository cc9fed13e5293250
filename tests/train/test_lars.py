"""LARS against a slow twin that follows the algorithm of the paper, value by value."""

import math

import pytest
import torch
from torch import nn

from talka.errors import InvalidValueError
from talka.train import LARS


def twin(weights, gradients, *, lr, momentum, decay, eta):
    """Algorithm 1 of arXiv:1708.03888 on lists of lists, one layer at a time."""
    velocity = [0.0] * len(weights)
    for gradient in gradients:
        norm = math.sqrt(sum(w * w for w in weights))
        slope = math.sqrt(sum(g * g for g in gradient))
        rate = eta * norm / (slope + decay * norm)
        for i in range(len(weights)):
            change = gradient[i] + decay * weights[i]
            velocity[i] = momentum * velocity[i] + lr * rate * change
            weights[i] -= velocity[i]
    return weights


def test_a_layer_is_updated_as_in_the_paper_and_a_bias_as_by_sgd():
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(3, 4, generator=generator, dtype=torch.float64)
    gradients = torch.randn(5, 3, 4, generator=generator, dtype=torch.float64)
    layer, bias = nn.Parameter(start.clone()), nn.Parameter(start[0].clone())
    other = nn.Parameter(start[0].clone())
    optimizer = LARS([layer, bias], lr=2.0, momentum=0.8, weight_decay=0.01, eta=0.02)
    sgd = torch.optim.SGD([other], lr=2.0, momentum=0.8)
    for gradient in gradients:
        layer.grad, bias.grad, other.grad = gradient.clone(), gradient[0].clone(), gradient[0]
        optimizer.step()
        sgd.step()
    rows = [one.reshape(-1).tolist() for one in gradients]
    expected = twin(start.reshape(-1).tolist(), rows, lr=2.0, momentum=0.8, decay=0.01, eta=0.02)
    assert layer.reshape(-1).tolist() == pytest.approx(expected, rel=1e-8)
    torch.testing.assert_close(bias, other)


def test_a_layer_of_zeros_can_leave_zero():
    layer = nn.Parameter(torch.zeros(2, 2))
    layer.grad = torch.ones(2, 2)
    LARS([layer], lr=0.1).step()
    assert torch.equal(layer.detach(), torch.full((2, 2), -0.1))


@pytest.mark.parametrize("options", [{"lr": -1}, {"lr": 1, "eta": 0}, {"lr": 1, "momentum": 1}])
def test_options_are_checked(options):
    with pytest.raises(InvalidValueError, match="of LARS"):
        LARS([nn.Parameter(torch.zeros(2))], **options)

import pytest
import torch
from torch import nn

from talka.errors import InvalidValueError
from talka.exchange import open_exchange
from talka.train import Hook, average_gradients
from tests.one_rank import one_rank


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.phases = nn.Parameter(torch.zeros(3, dtype=torch.complex64))


def test_a_complex_parameter_is_refused_by_name():
    with pytest.raises(InvalidValueError, match="parameter 'inner.phases' is torch.complex64"):
        Hook(nn.ModuleDict({"inner": Complex()}), "onebit+ef")


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_a_sparse_embedding_is_refused_by_name_with_what_to_do(kind):
    model = nn.Sequential(kind(5, 3, sparse=True), nn.Linear(3, 2))
    with pytest.raises(InvalidValueError, match="'0.weight' is 'sparse', .*with sparse=False"):
        Hook(model, "onebit+ef")


def test_parameters_that_are_not_trained_or_that_ddp_ignores_may_be_of_any_kind():
    frozen, ignored = Complex().requires_grad_(requires_grad=False), Complex()
    ignored._ddp_params_and_buffers_to_ignore = ["phases"]
    for model in (frozen, ignored):
        Hook(model, "onebit+ef")


def test_averaging_without_ddp_refuses_complex_and_sparse_gradients():
    sparse = nn.Embedding(5, 3, sparse=True)
    sparse(torch.tensor([1])).sum().backward()
    with one_rank():
        exchange = open_exchange("none")
        for model, name in ((sparse, "weight"), (Complex(), "phases")):
            with pytest.raises(InvalidValueError, match=f"parameter '{name}'"):
                average_gradients(model, exchange)
        for values in (torch.zeros(3, dtype=torch.complex64), torch.zeros(3).to_sparse()):
            with pytest.raises(InvalidValueError, match="must be real and dense"):
                exchange.average(values)
        exchange.close()

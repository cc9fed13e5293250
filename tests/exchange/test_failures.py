"""Exchanges that fail: the error reaches its own future, and the next exchange works."""

import pytest
import torch

from talka.compress import StateKey, layout_of
from talka.errors import InvalidValueError
from talka.exchange import open_exchange

LAYOUT = layout_of({"w": (20, 30), "b": (20,)})


def gradient(step):
    return torch.randn(620, generator=torch.Generator().manual_seed(step))


@pytest.mark.timeout(60)
def test_an_exchange_with_state_of_another_size_fails_and_the_next_works(alone):
    exchange = open_exchange("topk:0.1+ef", momentum=0.9)
    exchange.load_state({StateKey("momentum", "w", side="worker"): torch.zeros(7)})
    with pytest.raises(InvalidValueError, match="length of 'w' is 600, but must be 7"):
        exchange.average(gradient(0), LAYOUT).wait()
    exchange.load_state({})
    assert int(exchange.average(gradient(0), LAYOUT).wait().count_nonzero()) == 62
    exchange.close()

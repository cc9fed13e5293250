"""Averaging gradients without DDP: after `backward`, before `step`."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from talka.compress import layout_of
from talka.exchange import Exchange
from talka.train.parameters import check_gradient

BUCKET_BYTES = 25_000_000
"""As DDP has it: large enough for the network, small enough that one is encoded while one travels."""


def average_gradients(model: nn.Module, exchange: Exchange) -> None:
    """Every worker's gradients become the mean of all, exchanged as `exchange` does it.

    All workers have to call it in the same order. A parameter without a gradient counts as zero here
    and gets the others' mean.

    >>> exchange = talka.exchange.open_exchange("onebit+ef")  # doctest: +SKIP
    >>> loss.backward()  # doctest: +SKIP
    >>> average_gradients(model, exchange)  # doctest: +SKIP
    """
    flats = []
    for bucket in _buckets(model):
        for name, parameter in bucket.items():
            check_gradient(name, parameter if parameter.grad is None else parameter.grad)
        parts = [
            torch.zeros(parameter.numel(), dtype=parameter.dtype)
            if parameter.grad is None
            else parameter.grad.reshape(-1)
            for parameter in bucket.values()
        ]
        flat = torch.cat([part.to("cpu", torch.float32) for part in parts])
        layout = layout_of({name: tuple(one.shape) for name, one in bucket.items()})
        flats.append((bucket, flat, exchange.average(flat, layout)))
    for bucket, flat, future in flats:
        future.wait()
        for parameter, average in zip(bucket.values(), _apart(flat, bucket), strict=True):
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad.copy_(average.view(parameter.shape))


def _buckets(model: nn.Module) -> Iterator[dict[str, nn.Parameter]]:
    """Parameters from the last to the first, in groups of about BUCKET_BYTES."""
    bucket: dict[str, nn.Parameter] = {}
    num_bytes = 0
    for name, parameter in reversed(list(model.named_parameters())):
        if parameter.requires_grad:
            bucket[name] = parameter
            num_bytes += 4 * parameter.numel()
            if num_bytes >= BUCKET_BYTES:
                yield bucket
                bucket, num_bytes = {}, 0
    if bucket:
        yield bucket


def _apart(flat: Tensor, bucket: dict[str, nn.Parameter]) -> tuple[Tensor, ...]:
    return torch.split(flat, [parameter.numel() for parameter in bucket.values()])

"""Average gradients without DDP, between `backward` and `step`."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from talka.compress import layout_of
from talka.exchange import Exchange
from talka.train.parameters import check_gradient

BUCKET_BYTES = 25_000_000
"""Bytes per bucket, as in DDP: large enough for the network, small enough that one bucket is encoded
while another is sent."""


def average_gradients(model: nn.Module, exchange: Exchange) -> None:
    """Replace each worker's gradients by their mean over all workers.

    All workers must call this in the same order. A parameter without a gradient counts as zero and
    receives the mean.

    >>> exchange = talka.exchange.open_exchange("onebit+ef")  # doctest: +SKIP
    >>> loss.backward()  # doctest: +SKIP
    >>> average_gradients(model, exchange)  # doctest: +SKIP
    """
    flats = []
    for bucket in _buckets(model):
        for name, parameter in bucket.items():
            check_gradient(name, parameter if parameter.grad is None else parameter.grad)
        gradients = [
            torch.zeros(parameter.numel(), dtype=parameter.dtype)
            if parameter.grad is None
            else parameter.grad.reshape(-1)
            for parameter in bucket.values()
        ]
        flat = torch.cat([gradient.to("cpu", torch.float32) for gradient in gradients])
        layout = layout_of({name: tuple(parameter.shape) for name, parameter in bucket.items()})
        flats.append((bucket, flat, exchange.average(flat, layout)))
    for bucket, flat, future in flats:
        future.wait()
        for parameter, average in zip(bucket.values(), _split(flat, bucket), strict=True):
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad.copy_(average.view(parameter.shape))


def _buckets(model: nn.Module) -> Iterator[dict[str, nn.Parameter]]:
    """Yield groups of parameters of about BUCKET_BYTES, from the last parameter to the first."""
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


def _split(flat: Tensor, bucket: dict[str, nn.Parameter]) -> tuple[Tensor, ...]:
    return torch.split(flat, [parameter.numel() for parameter in bucket.values()])

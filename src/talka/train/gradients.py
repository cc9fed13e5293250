"""Buckets of parameters, and averages of gradients without DDP, between `backward` and `step`."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from talka.compress import Layout, layout_of
from talka.exchange import Exchange
from talka.train.parameters import check_gradient
from talka.train.replica import Replica

BUCKET_BYTES = 25_000_000
"""Bytes per bucket, as in DDP: large enough for the network, small enough that one bucket is encoded
while another is sent."""


class Bucket(NamedTuple):
    """Some parameters of a model, whose values or gradients are exchanged as one vector."""

    parameters: dict[str, nn.Parameter]
    layout: Layout

    def values(self) -> Tensor:
        """Return a copy of the parameters as one vector."""
        return self._joined(parameter.detach() for parameter in self.parameters.values())

    def gradients(self) -> Tensor:
        """Return a copy of the gradients as one vector; a missing one counts as zero."""
        for name, parameter in self.parameters.items():
            check_gradient(name, parameter if parameter.grad is None else parameter.grad)
        return self._joined(
            torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            for parameter in self.parameters.values()
        )

    def _joined(self, tensors: Iterable[Tensor]) -> Tensor:
        return torch.cat([tensor.reshape(-1).to("cpu", torch.float32) for tensor in tensors])

    @torch.no_grad()
    def set_values(self, flat: Tensor) -> None:
        """Write a vector to the parameters."""
        for parameter, part in zip(self.parameters.values(), self.parts(flat), strict=True):
            parameter.copy_(part)

    @torch.no_grad()
    def set_gradients(self, flat: Tensor) -> None:
        """Write a vector to the gradients."""
        for parameter, part in zip(self.parameters.values(), self.parts(flat), strict=True):
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad.copy_(part)

    def parts(self, flat: Tensor) -> Iterator[Tensor]:
        """Return the part of each parameter in a vector, in its shape."""
        return (flat[piece.start : piece.stop].view(piece.shape) for piece in self.layout)


def buckets_of(model: nn.Module) -> list[Bucket]:
    """Return all trained parameters in buckets of about BUCKET_BYTES, from the last to the first."""
    return list(_filled(model))


def _filled(model: nn.Module) -> Iterator[Bucket]:
    parameters: dict[str, nn.Parameter] = {}
    num_bytes = 0
    for name, parameter in reversed(list(model.named_parameters())):
        if parameter.requires_grad:
            parameters[name] = parameter
            num_bytes += 4 * parameter.numel()
            if num_bytes >= BUCKET_BYTES:
                yield _bucket(parameters)
                parameters, num_bytes = {}, 0
    if parameters:
        yield _bucket(parameters)


def _bucket(parameters: dict[str, nn.Parameter]) -> Bucket:
    return Bucket(
        parameters, layout_of({name: tuple(one.shape) for name, one in parameters.items()})
    )


def average_gradients(model: nn.Module, exchange: Exchange | Replica) -> None:
    """Replace each worker's gradients by their mean over all workers.

    All workers must call this in the same order. A parameter without a gradient counts as zero and
    receives the mean. With a `Replica` of the model, residuals follow the learning rate and steps
    become events.

    >>> exchange = talka.exchange.open_exchange("onebit+ef")  # doctest: +SKIP
    >>> loss.backward()  # doctest: +SKIP
    >>> average_gradients(model, exchange)  # doctest: +SKIP
    """
    buckets = buckets_of(model)
    flats = [bucket.gradients() for bucket in buckets]
    futures = [
        exchange.average(flat, bucket.layout) for bucket, flat in zip(buckets, flats, strict=True)
    ]
    wait: Callable[[], object] = lambda: [future.wait() for future in futures]  # noqa: E731
    if isinstance(exchange, Replica):
        replica, pending = exchange, exchange.pending()
        replica.end_step(futures[-1])
        wait = lambda: replica.wait(pending)  # noqa: E731
    wait()
    for bucket, flat in zip(buckets, flats, strict=True):
        bucket.set_gradients(flat)

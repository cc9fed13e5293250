"""Before the first step: all workers have the same model, options and version, and equal values."""

import hashlib
import importlib.metadata
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from talka.channels import Group
from talka.errors import ModelsDifferError
from talka.train.gradients import buckets_of


def agree(model: nn.Module, group: Group, described: str, *, takes_values: bool = True) -> None:
    """Compare the models of all workers; with `takes_values`, give all of them those of rank 0.

    `described` is the rhythm with its options. Raises ModelsDifferError on every worker.
    """
    own = description(model, described)
    rows = group.all_gather({"description": own, "values": _digest(model)})
    difference = first_difference([row["description"] for row in rows])
    if difference is not None:
        raise difference
    if takes_values and len({row["values"] for row in rows}) > 1:
        _take_values_of_rank_0(model, group)


def description(model: nn.Module, described: str) -> list[list[str]]:
    """Return all that has to be equal on all workers, as pairs of a name and a value."""
    tensors = [*model.named_parameters(), *model.named_buffers()]
    return [
        ["the version of talka", importlib.metadata.version("talka")],
        ["the rhythm", described],
        ["the number of parameters and buffers", str(len(tensors))],
        *[[f"the name of tensor {place}", name] for place, (name, _) in enumerate(tensors)],
        *[[f"the shape of {name!r}", _shown(tensor)] for name, tensor in tensors],
    ]


def first_difference(descriptions: Sequence[list[list[str]]]) -> ModelsDifferError | None:
    """Return the error that names the first difference; None if there is none.

    >>> print(first_difference([[["a", "1"]], [["a", "2"]], [["a", "1"]]]).values)
    {0: '1', 1: '2'}
    """
    for entries in zip(*descriptions, strict=False):
        values = [value for _, value in entries]
        if len(set(values)) > 1:
            other = next(rank for rank, value in enumerate(values) if value != values[0])
            return ModelsDifferError(entries[0][0], {0: values[0], other: values[other]})
    return None


def _shown(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {tensor.dtype}".replace("torch.", "")


def _digest(model: nn.Module) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for tensor in (*model.parameters(), *model.buffers()):
        flat = tensor.detach().to("cpu").contiguous().view(-1)
        digest.update(flat.view(torch.uint8).numpy().data if flat.numel() else b"")
    return digest.digest()


@torch.no_grad()
def _take_values_of_rank_0(model: nn.Module, group: Group) -> None:
    for bucket in buckets_of(model):
        bucket.set_values(group.broadcast(bucket.values()))
    others = [
        *(one for one in model.parameters() if not one.requires_grad),
        *model.buffers(),
    ]
    for tensor in others:
        tensor.copy_(group.broadcast(tensor.detach().to("cpu").contiguous()))

"""Loss and accuracy over samples that are split among the workers."""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from talka.channels import Group
from talka.train.fitting.data import Samples
from talka.train.fitting.record import SampleSums

Loss: TypeAlias = Callable[[Any, Any], Tensor]
"""A function of the output and the target that returns the mean loss over a batch."""


@torch.no_grad()
def evaluated(
    model: nn.Module, samples: Samples, loss: Loss, group: Group, *, batch_size: int, accuracy: bool
) -> SampleSums:
    """Return the sums over all samples; each worker evaluates its part of them.

    Random numbers that a model draws in evaluation are the only trace that this leaves.
    """
    own = SampleSums()
    mine = range(len(samples))[group.rank :: group.size]
    size = max(1, batch_size // group.size)
    was_training = model.training
    model.eval()
    try:
        for start in range(0, len(mine), size):
            x, y = samples.batch(mine[start : start + size])
            output = model(x)
            hits = num_correct(output, y) if accuracy else 0
            own.add(float(loss(output, y)), hits, len(mine[start : start + size]))
    finally:
        model.train(was_training)
    return summed(own, group)


def summed(own: SampleSums, group: Group) -> SampleSums:
    """Return the sums over all workers, the same bits on each of them."""
    total = SampleSums()
    for loss, hits, samples in group.all_gather([own.loss, own.num_correct, own.num_samples]):
        total.loss += loss
        total.num_correct += hits
        total.num_samples += samples
    return total


def num_correct(output: Any, target: Any) -> int:
    """Return the number of samples whose class has the largest output."""
    return int((output.detach().argmax(dim=-1) == target).sum())

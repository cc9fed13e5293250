"""Direct: every worker adds up one slice of the vector, which all others send it, and sends the sum.

As many bytes as a ring, and two hops where a ring takes 2 (P-1): for what adds up in its own form.
"""

from typing import ClassVar

import torch
from torch import Tensor

from talka.exchange.additive import AddsUp
from talka.exchange.base import Call
from talka.exchange.conveyor import Steps
from talka.network import Cost, Network, two_phase


class Direct(AddsUp):
    name: ClassVar[str] = "direct"

    def add_up(self, call: Call, wire: Tensor) -> Steps:
        yield from add_up(call, wire)

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return two_phase(network, payload_bytes)


def add_up(call: Call, values: Tensor, *, phase: int = 0) -> Steps:
    """The sum of all workers' values, in place, with the same bits everywhere. Takes two phases.

    Sums are received where the parts they were made of were sent from: a sum arrives only after
    its owner has the part. All receives are posted at once, so no sender has to ask first.
    """
    slices = torch.tensor_split(values, call.num_workers)
    mine = slices[call.rank]
    others = [rank for rank in range(call.num_workers) if rank != call.rank and values.numel()]
    parts = {rank: torch.empty_like(mine) for rank in others if mine.numel()}
    arriving = [call.receive(part, rank, phase=phase) for rank, part in parts.items()]
    owned = [(slices[rank], rank) for rank in others if slices[rank].numel()]
    sums = [call.receive(part, rank, phase=phase + 1) for part, rank in owned]
    sends = [call.send(part, rank, phase=phase) for part, rank in owned]
    yield arriving
    if parts:  # in the order of ranks, so that a sum does not depend on who owns it
        parts[call.rank] = mine.clone()
        torch.add(parts[0], parts[1], out=mine)
        for rank in range(2, call.num_workers):
            mine += parts[rank]
    call.received(len(arriving) * mine.numel() * mine.element_size())
    sends += [call.send(mine, rank, phase=phase + 1) for rank in others if parts]
    yield sums
    for part, _ in owned:
        call.received(part.numel() * part.element_size())
    yield sends

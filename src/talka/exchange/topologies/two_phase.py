"""Two-phase: every worker owns a slice of each parameter. Slices go to their owners, averages back.

    1. encode what each owner owns with this worker's residuals, send it there
    2. owners decode all payloads in the order of ranks, average, encode again with residuals of
       their own, and send that to everybody
    3. everybody, the owner too, decodes what was sent back: so all replicas have the same bits

2 (P-1)/P payloads leave every worker, whatever the number of workers.
"""

from typing import ClassVar

import torch
from torch import Tensor

from talka.compress import Layout, Piece
from talka.exchange.base import AnyCompressor, Call, CompressedExchange
from talka.exchange.conveyor import Awaited, Steps
from talka.exchange.momentum import only_momentum
from talka.exchange.topologies.owners import even_shares
from talka.network import Cost, Network
from talka.network import master as master_cost
from talka.network import two_phase as two_phase_cost


class TwoPhase(CompressedExchange):
    name: ClassVar[str] = "two-phase"

    def prepare(self) -> None:
        self.members = list(range(self.num_workers))
        self.prepare_sides()

    @classmethod
    def shares_of(cls, layout: Layout, num_owners: int) -> list[Layout]:
        """What each of so many owners owns of a vector."""
        return even_shares(layout, num_owners)

    def prepare_sides(self) -> None:
        self.worker = self.compressor.for_worker(self.rank)
        self.owner = self.compressor.for_worker(self.num_workers + self.rank)

    def steps(self, call: Call) -> Steps:
        yield from self.reduce_between_members(call, self.num_workers)

    def reduce_between_members(self, call: Call, divisor: int) -> Steps:
        """`call.values` of all members summed and divided; members all have the same bits then."""
        members, me = self.members, self.members.index(self.rank)
        shares = self.shares_of(call.layout, len(members))
        others = [(me + step) % len(members) for step in range(1, len(members))]

        payloads, parts = self._receive(call, dict.fromkeys(others, shares[me]), phase=0)
        averages, sums = self._receive(call, {place: shares[place] for place in others}, phase=1)
        sends: list[Awaited] = []
        for place in (*others, me):
            if shares[place]:
                data = call.encode(self.worker, call.values, shares[place]).data
                if place == me:
                    payloads[me] = data
                else:
                    sends.append(call.send(data, members[place]))
        yield parts

        if shares[me]:
            self._decode_share(call, payloads, shares[me], divisor)
            averages[me] = call.encode(self.owner, call.values, shares[me]).data
            sends += [call.send(averages[me], members[place], phase=1) for place in others]
        yield sums

        for place, data in averages.items():
            num_bytes = call.decode(self.owner, data, shares[place])
            call.received(num_bytes if place != me else 0)
        yield sends

    def _receive(
        self, call: Call, layouts: dict[int, Layout], *, phase: int
    ) -> tuple[dict[int, Tensor], list[Awaited]]:
        """Post a buffer for what each of the others will send; nothing is sent of nothing.

        Both phases at once: a sender that has to ask for a buffer sends more, and later.
        """
        buffers = {
            place: call.buffer(self.worker.max_bytes(call.values.numel(), layout))
            for place, layout in layouts.items()
            if layout
        }
        works = [
            call.receive(buffer, self.members[place], phase=phase)
            for place, buffer in buffers.items()
        ]
        return buffers, works

    def _decode_share(
        self, call: Call, payloads: dict[int, Tensor], share: Layout, divisor: int
    ) -> None:
        """Into our own share of the vector: it was encoded, so its place is free."""
        for place in range(len(self.members)):  # a fixed order of additions
            num_bytes = call.decode(self.worker, payloads[place], share, add=place > 0)
            call.received(num_bytes if self.members[place] != self.rank else 0)
        for piece in share:
            call.values[piece.start : piece.stop].div_(divisor)

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return two_phase_cost(network, payload_bytes)

    @classmethod
    def payload_bytes(cls, compressor: AnyCompressor, layout: Layout, num_workers: int) -> float:
        return sum(
            CompressedExchange.payload_bytes(compressor, share, num_workers)
            for share in cls.shares_of(layout, num_workers)
            if share
        )

    def num_speakers(self) -> int:
        return len(self.members)

    def sides(self) -> dict[str, AnyCompressor]:
        return {"worker": self.worker, "owner": self.owner}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Of the owners' residuals, which may be those of all owners, each takes what it owns."""
        if self.rank not in self.members:
            state = only_momentum(state)
        super().load_state({key: self._only_mine(key, value) for key, value in state.items()})

    def _only_mine(self, key: str, value: Tensor) -> Tensor:
        if not key.startswith("owner/residual/"):
            return value
        name, mine = key.removeprefix("owner/residual/"), torch.zeros_like(value)
        whole = Piece(name, (value.numel(),), 0, 0, value.numel())
        place = self.members.index(self.rank)
        for piece in self.shares_of((whole,), len(self.members))[place]:
            mine[piece.start : piece.stop] = value[piece.start : piece.stop]
        return mine


class Master(TwoPhase):
    name: ClassVar[str] = "master"

    @classmethod
    def shares_of(cls, layout: Layout, num_owners: int) -> list[Layout]:
        return [layout, *[()] * (num_owners - 1)]

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return master_cost(network, payload_bytes)

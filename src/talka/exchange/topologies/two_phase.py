"""Two-phase: each worker owns a slice of each parameter. Slices go to their owners, averages back.

    1. encode each owner's slices with this worker's residuals, and send them to the owner
    2. owners decode all payloads in the order of ranks, average, encode again with their own
       residuals, and send the result to all workers
    3. all workers, the owner too, decode that result: so all replicas have the same bits

2 (P-1)/P payloads leave each worker, for any number of workers P.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from talka.channels.collectives.port import Awaited, Steps
from talka.compress import Compressor, Layout, Piece, State, StateKey
from talka.exchange.call import Call
from talka.exchange.compressed import CompressedExchange
from talka.exchange.momentum import only_momentum
from talka.exchange.pricing.price import CodecRates
from talka.exchange.topologies.owners import even_shares
from talka.network import Cost, Network
from talka.network import master as master_cost
from talka.network import two_phase as two_phase_cost


class TwoPhase(CompressedExchange):
    """Sends slices to their owners, and averages of slices from there to all workers."""

    name: ClassVar[str] = "two-phase"
    encodes_twice: ClassVar[bool] = True

    @property
    def members(self) -> Sequence[int]:
        """Ranks that own slices."""
        return range(self.num_workers)

    @classmethod
    def shares_of(cls, layout: Layout, num_owners: int) -> list[Layout]:
        """Return the part of a vector that each of `num_owners` owners owns."""
        return even_shares(layout, num_owners)

    def steps(self, call: Call) -> Steps:
        yield from self.reduce_between_members(call, self.num_workers)

    def reduce_between_members(self, call: Call, divisor: int) -> Steps:
        """Sum `call.values` over all members and divide; all members get the same bits."""
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
            call.decode(self.owner, data, shares[place])
        yield sends

    def _receive(
        self, call: Call, layouts: dict[int, Layout], *, phase: int
    ) -> tuple[dict[int, Tensor], list[Awaited]]:
        """Post a receive buffer for each member that sends something; empty shares are not sent.

        Both phases are posted at the start: a sender whose receiver is not ready sends more
        messages, and later.
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
        """Average all payloads in the worker's own share of the vector, which is encoded by now."""
        for place in range(len(self.members)):  # a fixed order of additions
            call.decode(self.worker, payloads[place], share, add=place > 0)
        for piece in share:
            call.values[piece.start : piece.stop].div_(divisor)

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return two_phase_cost(network, payload_bytes)

    @classmethod
    def num_owners(cls, network: Network) -> int:
        """Return the number of workers that own slices."""
        return network.num_workers

    @classmethod
    def codec_s_per_value(cls, rates: CodecRates, network: Network) -> float:
        """Encode all; decode N payloads of 1/N and encode the average of that 1/N; decode all.

        N is the number of owners. Sums inside a host are ignored: they are plain additions.
        """
        return (1 + 1 / cls.num_owners(network)) * rates.encode_s + 2 * rates.decode_s

    @classmethod
    def payload_bytes(cls, compressor: Compressor, layout: Layout, network: Network) -> float:
        return sum(
            CompressedExchange.payload_bytes(compressor, share, network)
            for share in cls.shares_of(layout, cls.num_owners(network))
            if share
        )

    def num_encoders(self) -> int:
        return len(self.members)

    def load_state(self, state: State) -> None:
        """Load a state that may have the residuals of all owners; keep those of owned slices."""
        if self.rank not in self.members:
            state = only_momentum(state)
        super().load_state({key: self._owned(key, value) for key, value in state.items()})

    def _owned(self, key: StateKey, value: Tensor) -> Tensor:
        """Return a residual of averages with zeros where this worker is not the owner."""
        if (key.side, key.kind) != ("owner", "residual"):
            return value
        owned = torch.zeros_like(value)
        whole = Piece(key.name, (value.numel(),), 0, 0, value.numel())
        place = self.members.index(self.rank)
        for piece in self.shares_of((whole,), len(self.members))[place]:
            owned[piece.start : piece.stop] = value[piece.start : piece.stop]
        return owned


class Master(TwoPhase):
    """Two-phase with one owner: the first worker averages the whole vector."""

    name: ClassVar[str] = "master"

    @classmethod
    def shares_of(cls, layout: Layout, num_owners: int) -> list[Layout]:
        return [layout, *[()] * (num_owners - 1)]

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return master_cost(network, payload_bytes)

    @classmethod
    def codec_s_per_value(cls, rates: CodecRates, network: Network) -> float:
        """Encode; the master decodes P payloads and encodes their average; decode the average."""
        return 2 * rates.encode_s + (network.num_workers + 1) * rates.decode_s

"""The base class of exchanges that send what a compressor encodes."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch.distributed as dist
from torch import Tensor

from talka.compress import Compressor, ErrorFeedback, Layout, State
from talka.exchange.base import Exchange
from talka.exchange.merging import mean_of, sum_of_residuals
from talka.network import Cost, Network


class CompressedExchange(Exchange):
    """An exchange of what a compressor encodes.

    Each worker has a copy of the compressor for its gradients (`worker`). Exchanges that encode
    sums or averages again have a second copy (`owner`), with separate residuals.
    """

    encodes_twice: ClassVar[bool] = False
    """True if sums or averages are encoded again, so that there is an `owner` side."""

    def __init__(
        self,
        compressor: Compressor,
        *,
        group: dist.ProcessGroup | None = None,
        momentum: float = 0.0,
    ) -> None:
        self.check(compressor)
        super().__init__(group=group, momentum=momentum, nonfinite=compressor.nonfinite)
        self.compressor = compressor
        self.sides = {"worker": compressor.for_worker(self.rank)}
        if self.encodes_twice:
            self.sides["owner"] = compressor.for_worker(self.num_workers + self.rank)

    @property
    def worker(self) -> Compressor:
        """Copy of the compressor that encodes the gradients of this worker."""
        return self.sides["worker"]

    @property
    def owner(self) -> Compressor:
        """Copy of the compressor that encodes sums or averages."""
        return self.sides["owner"]

    @property
    def spec(self) -> str:
        return self.compressor.spec

    @classmethod
    def check(cls, compressor: Compressor) -> None:
        """Raise SpecError if this exchange cannot carry what the compressor encodes."""

    @classmethod
    @abstractmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        """Return the cost of one average, given the bytes of a payload and of the vector itself."""

    @classmethod
    def payload_bytes(cls, compressor: Compressor, layout: Layout, num_workers: int) -> float:
        """Return the expected bytes of all payloads that one worker encodes of a vector."""
        return compressor.expected_bytes(sum(piece.num_values for piece in layout), layout)

    def num_encoders(self) -> int:
        """Return the number of workers that encode gradients and keep residuals of them."""
        return self.num_workers

    def merged(self, states: Sequence[State]) -> State:
        """Merge states so that the sum of all residuals over the number of workers is kept.

        That is what the averages so far still lack.
        """
        share = self.num_workers / (len(states) * self.num_encoders())
        merged = {key: value for key, value in states[0].items() if key.kind != "times"}
        for key, total in sum_of_residuals(states).items():
            is_worker = key.side == "worker"
            residual = total * share if is_worker else self.merged_owners(total, states)
            merged[key] = residual.float()
        return merged | mean_of(states, "momentum")

    def merged_owners(self, total: Tensor, states: Sequence[State]) -> Tensor:
        """Return this worker's residual of averages, from the sum over all former owners."""
        return total

    def residuals(self) -> list[dict[str, Tensor]]:
        return [side.residuals for side in self.sides.values() if isinstance(side, ErrorFeedback)]

    def state(self) -> State:
        return super().state() | {
            key.at(side): value
            for side, compressor in self.sides.items()
            for key, value in compressor.state().items()
        }

    def load_state(self, state: State) -> None:
        super().load_state(state)
        for side, compressor in self.sides.items():
            compressor.load_state(
                {key.at(""): value for key, value in state.items() if key.side == side}
            )

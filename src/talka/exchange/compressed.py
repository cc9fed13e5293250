"""The base class of exchanges that send what a compressor encodes."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, cast

from torch import Tensor

from talka.compress import Compressor, ErrorFeedback, Layout, State
from talka.errors import SpecError
from talka.exchange.base import Exchange
from talka.exchange.merging import mean_of, sum_of_residuals
from talka.exchange.power_sgd import Codec, PowerSgd
from talka.exchange.pricing.price import FREE, CodecRates, Price
from talka.exchange.transport import Members
from talka.network import Cost, Network

MAX_GATHERED = 8
"""Number of workers up to which sparse payloads are gathered unless another exchange is named."""


class CompressedExchange(Exchange):
    """An exchange of what a compressor encodes.

    Each worker has a copy of the compressor for its gradients (`worker`). Exchanges that encode
    sums or averages again have a second copy (`owner`), with separate residuals.
    """

    encodes_twice: ClassVar[bool] = False
    """True if sums or averages are encoded again, so that there is an `owner` side."""

    def __init__(self, codec: Codec, *, group: Members = None, momentum: float = 0.0) -> None:
        super().__init__(codec, group=group, momentum=momentum)
        compressor = cast(Compressor, codec)  # see check()
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
    def codec(self) -> Codec:
        return self.worker

    @classmethod
    def check(cls, codec: Codec) -> None:
        if isinstance(codec, PowerSgd):
            problem = f"is an exchange itself and cannot use the exchange {cls.name}"
            raise SpecError(codec.spec, problem, "no other name")

    @classmethod
    def price(
        cls, codec: Codec, layout: Layout, network: Network, rates: CodecRates = FREE
    ) -> Price:
        cls.check(codec)
        compressor = cast(Compressor, codec)
        num_values = sum(piece.num_values for piece in layout)
        payload_bytes = cls.payload_bytes(compressor, layout, network)

        def cost_on(network: Network) -> Cost:
            return cls.cost(network, payload_bytes, 4.0 * num_values)

        return Price(
            codec.spec,
            cls.name,
            cost_on(network),
            codec_s=num_values * cls.codec_s_per_value(rates, network),
            payload_bytes=payload_bytes,
            resparsifies=cls.resparsifies(compressor, network.num_workers),
            cost_on=cost_on,
        )

    @classmethod
    @abstractmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        """Return the cost of one average, given the bytes of a payload and of the vector itself."""

    @classmethod
    @abstractmethod
    def codec_s_per_value(cls, rates: CodecRates, network: Network) -> float:
        """Return the seconds per value of encoding and decoding, on the worker with most to do."""

    @classmethod
    def payload_bytes(cls, compressor: Compressor, layout: Layout, network: Network) -> float:
        """Return the expected bytes of all payloads that one worker encodes of a vector."""
        return compressor.expected_bytes(sum(piece.num_values for piece in layout), layout)

    @classmethod
    def resparsifies(cls, compressor: Compressor, num_workers: int) -> bool:
        """Return True if it sparsifies averages again although gathering is affordable.

        An owner of two phases keeps the same share of the average as each worker of its gradients,
        so most of what was sent is delayed once more. Gathering loses nothing the second time. It
        sends P/2 times as much, which is affordable for sparse payloads of a few workers.
        """
        is_resent = cls.encodes_twice and compressor.sparse and not compressor.summable
        return is_resent and num_workers <= MAX_GATHERED

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

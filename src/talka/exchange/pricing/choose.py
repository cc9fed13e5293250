"""The cheapest exchange for a compressor by the cost model, and the reason."""

from dataclasses import dataclass

from torch import Tensor

from talka.compress import Compressor, Layout
from talka.compress.layout import nameless
from talka.errors import SpecError
from talka.exchange.registry import COMPRESSED, compressor_of, powersgd_rank, resparsifies
from talka.exchange.topologies.low_rank import LowRank
from talka.network import Cost, Network
from talka.renaming import renamed

STEPS_WITH_SAMPLE = 10
"""Number of encodings of a sample after which a compressor has adapted to its values."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One exchange for a compressor, and its predicted cost."""

    spec: str
    exchange: str
    cost: Cost
    payload_bytes: float
    """Expected bytes of all payloads that one worker encodes of the vector."""
    resparsifies: bool = False
    """True if sparse averages are sparsified again without need: never chosen, but can be named."""

    @property
    def reason(self) -> str:
        """Formula behind the cost, with its numbers."""
        return self.cost.reason


@renamed(spec="compressor")
def choices(
    compressor: str | Compressor,
    num_values: int,
    network: Network,
    *,
    layout: Layout | None = None,
    sample: Tensor | None = None,
) -> list[Choice]:
    """Return all exchanges that can carry a compressor, cheapest first, then by bytes sent.

    Exchanges that would sparsify averages of a few workers again come last.

    The size of some payloads depends on the values. With `sample`, a vector like those to come,
    sizes are those of its payloads; otherwise those of gaussian values.
    """
    layout = nameless(num_values) if layout is None else layout
    factor_rank = powersgd_rank(compressor)
    if factor_rank is not None:
        cost = LowRank.cost(network, layout, factor_rank)
        return [
            Choice(
                str(compressor),
                LowRank.name,
                cost,
                4.0 * sum(LowRank.num_floats(layout, factor_rank)),
            )
        ]
    spec = compressor if isinstance(compressor, str) else compressor.spec
    chosen = compressor_of(compressor)
    if not isinstance(compressor, str):
        chosen = chosen.for_worker(0)  # a copy, since encoding a sample changes its state
    if sample is not None:
        for _ in range(STEPS_WITH_SAMPLE):
            chosen.encode(sample, layout)
    carried = []
    for name, kind in COMPRESSED.items():
        try:
            kind.check(chosen)
        except SpecError:
            continue
        payload_bytes = kind.payload_bytes(chosen, layout, network.num_workers)
        cost = kind.cost(network, payload_bytes, 4.0 * num_values)
        again = resparsifies(chosen, name, network.num_workers)
        carried.append(Choice(spec, name, cost, payload_bytes, again))
    return sorted(carried, key=_preference)


@renamed(spec="compressor")
def choose(
    compressor: str | Compressor, num_values: int, network: Network, *, layout: Layout | None = None
) -> Choice:
    """Return the cheapest exchange for a vector that does not sparsify it twice without need.

    Of equal ones, it is the one that comes first in EXCHANGES.
    """
    return choices(compressor, num_values, network, layout=layout)[0]


def _preference(choice: Choice) -> tuple[bool, float, float]:
    return choice.resparsifies, rounded(choice.cost.seconds), choice.cost.total_bytes


def rounded(seconds: float) -> float:
    """Round to nine digits: the last bits depend on the order of additions."""
    return float(f"{seconds:.9g}")

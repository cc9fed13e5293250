"""The cheapest exchange for what is said, by the cost model, and why."""

from dataclasses import dataclass

from torch import Tensor

from talka import compress
from talka.compress import Layout
from talka.compress.layout import nameless
from talka.errors import SpecError
from talka.exchange.registry import COMPRESSED, powersgd_rank, resparsifies
from talka.exchange.topologies.low_rank import LowRank
from talka.network import Cost, Network
from talka.renaming import renamed

STEPS_WITH_SAMPLE = 10
"""After so many, what adapts to its values has done so."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to average, and what it would cost."""

    spec: str
    exchange: str
    cost: Cost
    payload_bytes: float
    """Of one worker's whole payload."""
    resparsifies: bool = False
    """Loses more of a sparse payload than it has to: not chosen, but can be named."""

    @property
    def reason(self) -> str:
        return self.cost.reason


@renamed(spec="compressor")
def choices(
    compressor: str,
    num_values: int,
    network: Network,
    *,
    layout: Layout | None = None,
    sample: Tensor | None = None,
) -> list[Choice]:
    """Every exchange that can carry it, cheapest first; of equals, the one that sends less.

    Those that would cut sparse payloads of a few workers once more come last.

    Some payloads are as large as what they hold is irregular. With `sample`, a vector such as those
    to come, sizes are those of its payloads; else those of gaussian values.
    """
    layout = nameless(num_values) if layout is None else layout
    factor_rank = powersgd_rank(compressor)
    if factor_rank is not None:
        cost = LowRank.cost(network, layout, factor_rank)
        return [
            Choice(
                compressor, LowRank.name, cost, 4.0 * sum(LowRank.num_floats(layout, factor_rank))
            )
        ]
    chosen = compress.compressor(compressor)
    if sample is not None:
        for _ in range(STEPS_WITH_SAMPLE):
            chosen.encode(sample, layout)
    found = []
    for name, kind in COMPRESSED.items():
        try:
            kind.check(chosen)
        except SpecError:
            continue
        payload_bytes = kind.payload_bytes(chosen, layout, network.num_workers)
        cost = kind.cost(network, payload_bytes, 4.0 * num_values)
        again = resparsifies(chosen, name, network.num_workers)
        found.append(Choice(compressor, name, cost, payload_bytes, again))
    return sorted(found, key=_preference)


@renamed(spec="compressor")
def choose(
    compressor: str, num_values: int, network: Network, *, layout: Layout | None = None
) -> Choice:
    """Return the cheapest exchange for a vector of `num_values` that does not cut it twice.

    Ties go to the one that is listed first in EXCHANGES.
    """
    return choices(compressor, num_values, network, layout=layout)[0]


def _preference(one: Choice) -> tuple[bool, float, float]:
    return one.resparsifies, rounded(one.cost.seconds), one.cost.total_bytes


def rounded(seconds: float) -> float:
    """Without the last bits, which depend on the order of additions."""
    return float(f"{seconds:.9g}")

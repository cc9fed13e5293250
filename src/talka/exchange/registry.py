"""Exchanges by name, and the default exchange of each compressor.

`open_exchange("onebit+ef")` is two-phase, `open_exchange("none")` a ring, and sparse payloads of a
few workers are gathered; another exchange can be named: `open_exchange("topk:0.01+ef",
"two-phase")`. `powersgd:4` is compressor and exchange at once.
"""

from typing import Any

from talka import compress
from talka.compress.protocol import NonFinite, check_compressor
from talka.errors import InvalidValueError, UnknownNameError
from talka.exchange.base import Exchange
from talka.exchange.compressed import CompressedExchange
from talka.exchange.power_sgd import Codec, PowerSgd, powersgd_rank
from talka.exchange.topologies.all_gather import AllGather
from talka.exchange.topologies.global_topk import GlobalTopK
from talka.exchange.topologies.hierarchical import Hierarchical
from talka.exchange.topologies.low_rank import LowRank
from talka.exchange.topologies.sums import Direct, Ring, Tree
from talka.exchange.topologies.two_phase import Master, TwoPhase
from talka.exchange.transport import Members, num_members
from talka.renaming import renamed

COMPRESSED: dict[str, type[CompressedExchange]] = {
    kind.name: kind
    for kind in (TwoPhase, AllGather, Master, Hierarchical, GlobalTopK, Ring, Direct, Tree)
}
EXCHANGES: dict[str, type[Exchange]] = {**COMPRESSED, LowRank.name: LowRank}


@renamed(spec="compressor", whole_below="min_compressed_values")
def open_exchange(
    compressor: str | Codec,
    name: str | None = None,
    *,
    group: Members = None,
    seed: int | None = None,
    nonfinite: NonFinite | None = None,
    min_compressed_values: int | None = None,
    momentum: float = 0.0,
) -> Exchange:
    """Open the exchange for a compressor such as `onebit+ef`; all workers of the group call it.

    `group` is a process group, a `talka.channels.Group` or ranks; by default all workers.

    A compressor given as an object has its own seed, `nonfinite` and `min_compressed_values`; those
    of a short form are 0, "error" and 0 unless given. With `momentum`, the momentum of each worker
    is averaged: see `talka.exchange.momentum`.
    """
    codec = codec_of(
        compressor, seed=seed, nonfinite=nonfinite, min_compressed_values=min_compressed_values
    )
    if name is None:
        name = default_name(codec, num_members(group))
    if name not in EXCHANGES:
        raise UnknownNameError("exchange", name, tuple(EXCHANGES))
    return EXCHANGES[name](codec, group=group, momentum=momentum)


def codec_of(
    compressor: str | Codec,
    *,
    seed: int | None = None,
    nonfinite: NonFinite | None = None,
    min_compressed_values: int | None = None,
) -> Codec:
    """Return the codec of a short form, or check an object, also for other options.

    PowerSGD has no seed, and sends parameters whole by their shapes.
    """
    options: dict[str, Any] = {
        "seed": seed,
        "nonfinite": nonfinite,
        "min_compressed_values": min_compressed_values,
    }
    requested = {option: value for option, value in options.items() if value is not None}
    if isinstance(compressor, str):
        factor_rank = powersgd_rank(compressor)
        if factor_rank is not None:
            return PowerSgd(factor_rank, nonfinite=nonfinite or "error")
        return compress.compressor(compressor, **requested)
    if not isinstance(compressor, PowerSgd):
        check_compressor(compressor)
    for option, value in requested.items():
        own = getattr(compressor, option, None)
        if own != value:
            raise InvalidValueError(
                f"{option} of the compressor {compressor.spec!r}",
                own,
                f"{value!r}, as requested; options of an object are set where it is made",
            )
    return compressor


def default_name(codec: Codec, num_workers: int) -> str:
    """Return the exchange that is used if none is named.

    Summable payloads are summed on the way, in two hops if they are sparse, so small. Other sparse
    payloads of a few workers are gathered. Two-phase carries all others.
    """
    if isinstance(codec, PowerSgd):
        return LowRank.name
    if codec.summable:
        return Direct.name if codec.sparse else Ring.name
    return AllGather.name if TwoPhase.resparsifies(codec, num_workers) else TwoPhase.name

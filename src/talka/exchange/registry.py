"""Exchanges by name, and the default exchange of each compressor.

`open_exchange("onebit+ef")` is two-phase, `open_exchange("none")` a ring, and sparse payloads of a
few workers are gathered; another exchange can be named: `open_exchange("topk:0.01+ef",
"two-phase")`. `powersgd:4` is compressor and exchange at once.
"""

from typing import Any

import torch.distributed as dist

from talka import compress
from talka.compress import Compressor
from talka.compress.protocol import NonFinite, Properties, check_compressor
from talka.errors import InvalidValueError, SpecError, UnknownNameError
from talka.exchange.base import Exchange
from talka.exchange.compressed import CompressedExchange
from talka.exchange.topologies.all_gather import AllGather
from talka.exchange.topologies.global_topk import GlobalTopK
from talka.exchange.topologies.hierarchical import Hierarchical
from talka.exchange.topologies.low_rank import LowRank, PowerSgd
from talka.exchange.topologies.sums import Direct, Ring, Tree
from talka.exchange.topologies.two_phase import Master, TwoPhase
from talka.renaming import renamed
from talka.short_forms import LOW_RANK

COMPRESSED: dict[str, type[CompressedExchange]] = {
    kind.name: kind
    for kind in (TwoPhase, AllGather, Master, Hierarchical, GlobalTopK, Ring, Direct, Tree)
}
MAX_GATHERED = 8
"""Number of workers up to which sparse payloads are gathered unless another exchange is named."""
EXCHANGES: dict[str, type[Exchange]] = {**COMPRESSED, LowRank.name: LowRank}


@renamed(spec="compressor", whole_below="min_compressed_values")
def open_exchange(
    compressor: str | Compressor,
    name: str | None = None,
    *,
    group: dist.ProcessGroup | None = None,
    seed: int | None = None,
    nonfinite: NonFinite | None = None,
    min_compressed_values: int | None = None,
    momentum: float = 0.0,
) -> Exchange:
    """Open the exchange for a compressor such as `onebit+ef`; all workers of the group call it.

    A compressor given as an object has its own seed, `nonfinite` and `min_compressed_values`; those
    of a short form are 0, "error" and 0 unless given. With `momentum`, the momentum of each worker
    is averaged: see `talka.exchange.momentum`.
    """
    factor_rank = powersgd_rank(compressor)
    if factor_rank is not None:
        if name not in (None, LowRank.name):
            problem = f"is an exchange itself and cannot use the exchange {name}"
            raise SpecError(str(compressor), problem, "no other name")
        return LowRank(factor_rank, group=group, momentum=momentum, nonfinite=nonfinite or "error")
    chosen = compressor_of(
        compressor, seed=seed, nonfinite=nonfinite, min_compressed_values=min_compressed_values
    )
    if name is None:
        name = default_name(chosen, dist.get_world_size(group))
    if name not in COMPRESSED:
        if name == LowRank.name:
            allowed = "powersgd:R there, such as powersgd:4"
            raise SpecError(chosen.spec, "cannot use the exchange low-rank", allowed)
        raise UnknownNameError("exchange", name, tuple(EXCHANGES))
    return COMPRESSED[name](chosen, group=group, momentum=momentum)


def compressor_of(
    compressor: str | Compressor,
    *,
    seed: int | None = None,
    nonfinite: NonFinite | None = None,
    min_compressed_values: int | None = None,
) -> Compressor:
    """Return the compressor of a short form, or check an object, also for other options."""
    options: dict[str, Any] = {
        "seed": seed,
        "nonfinite": nonfinite,
        "min_compressed_values": min_compressed_values,
    }
    requested = {option: value for option, value in options.items() if value is not None}
    if isinstance(compressor, str):
        return compress.compressor(compressor, **requested)
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


def properties_of(compressor: str | Compressor) -> Properties:
    """Return the properties of a compressor, or those of powersgd."""
    return PowerSgd() if powersgd_rank(compressor) is not None else compressor_of(compressor)


def default_name(compressor: Compressor, num_workers: int) -> str:
    """Return the exchange that is used if none is named.

    Summable payloads are summed on the way, in two hops if they are sparse, so small. Other sparse
    payloads of a few workers are gathered. Two-phase carries all others.
    """
    if compressor.summable:
        return Direct.name if compressor.sparse else Ring.name
    return AllGather.name if resparsifies(compressor, TwoPhase.name, num_workers) else TwoPhase.name


def resparsifies(compressor: Compressor, exchange: str, num_workers: int) -> bool:
    """Return True if an exchange sparsifies averages again although gathering is affordable.

    An owner of two phases keeps the same share of the average as each worker of its gradients, so
    most of what was sent is delayed once more. Gathering loses nothing the second time. It sends
    P/2 times as much, which is affordable for sparse payloads of a few workers.
    """
    is_resent = compressor.sparse and not compressor.summable
    return is_resent and num_workers <= MAX_GATHERED and exchange != AllGather.name


def powersgd_rank(compressor: str | Compressor) -> int | None:
    """Return R of `powersgd:R`, or None for any other compressor."""
    if not isinstance(compressor, str):
        return None
    name, colon, argument = compressor.partition(":")
    if name != LOW_RANK:
        return None
    if not (colon and argument.isdecimal() and int(argument) > 0):
        raise SpecError(
            compressor,
            "has no rank",
            "powersgd:R with a whole number of at least 1, such as powersgd:4",
        )
    return int(argument)

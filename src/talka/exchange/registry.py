"""Exchanges by name, and from the short form of what is said.

`open_exchange("onebit+ef")` is two-phase, `open_exchange("none")` a ring, and what keeps a few values
is gathered from a few workers; another way is named: `open_exchange("topk:0.01+ef", "two-phase")`.
`powersgd:4` is both at once.
"""

import torch.distributed as dist

from talka import compress
from talka.compress import ErrorFeedback, SummableCompressor
from talka.compress.base import NonFinite
from talka.compress.randomk import RandomK
from talka.compress.significance import Significance
from talka.compress.threshold import Threshold
from talka.compress.topk import TopK
from talka.errors import SpecError, UnknownNameError
from talka.exchange.base import AnyCompressor, CompressedExchange, Exchange
from talka.exchange.topologies.all_gather import AllGather
from talka.exchange.topologies.global_topk import GlobalTopK
from talka.exchange.topologies.hierarchical import Hierarchical
from talka.exchange.topologies.low_rank import LowRank
from talka.exchange.topologies.sums import Direct, Ring, Tree
from talka.exchange.topologies.two_phase import Master, TwoPhase
from talka.renaming import renamed

COMPRESSED: dict[str, type[CompressedExchange]] = {
    one.name: one
    for one in (TwoPhase, AllGather, Master, Hierarchical, GlobalTopK, Ring, Direct, Tree)
}
MAX_GATHERED = 8
"""Workers up to which sparse payloads are gathered unless another exchange is named."""
EXCHANGES: dict[str, type[Exchange]] = {**COMPRESSED, LowRank.name: LowRank}


@renamed(spec="compressor", whole_below="min_compressed_values")
def open_exchange(
    compressor: str,
    name: str | None = None,
    *,
    group: dist.ProcessGroup | None = None,
    seed: int = 0,
    nonfinite: NonFinite = "error",
    min_compressed_values: int = 0,
    momentum: float = 0.0,
) -> Exchange:
    """Open the exchange for a compressor such as `onebit+ef`; all workers of the group call it.

    With `momentum`, what is averaged is each worker's momentum: see `talka.exchange.momentum`.
    """
    factor_rank = powersgd_rank(compressor)
    if factor_rank is not None:
        if name not in (None, LowRank.name):
            problem = f"is an exchange of its own, not one by {name}"
            raise SpecError(compressor, problem, "no other name")
        return LowRank(factor_rank, group=group, momentum=momentum, nonfinite=nonfinite)
    chosen = compress.compressor(
        compressor, seed=seed, nonfinite=nonfinite, min_compressed_values=min_compressed_values
    )
    if name is None:
        name = default_name(chosen, dist.get_world_size(group))
    if name not in COMPRESSED:
        if name == LowRank.name:
            allowed = "powersgd:R there, such as powersgd:4"
            raise SpecError(compressor, "does not go by low-rank", allowed)
        raise UnknownNameError("exchange", name, tuple(EXCHANGES))
    return COMPRESSED[name](chosen, group=group, momentum=momentum)


def default_name(chosen: AnyCompressor, num_workers: int) -> str:
    """A ring for what adds up in its own form, two phases for all else unless they cut again."""
    inner = _inner(chosen)
    if isinstance(inner, SummableCompressor):
        return Direct.name if isinstance(inner, RandomK) else Ring.name
    return AllGather.name if resparsifies(chosen, TwoPhase.name, num_workers) else TwoPhase.name


def resparsifies(chosen: AnyCompressor, exchange: str, num_workers: int) -> bool:
    """Whether an exchange loses more of a sparse payload than few workers need to.

    An owner of two phases keeps the same share of the average as each worker of its own values:
    most of what was sent is put off once more. Gathering loses nothing the second time. It sends
    P/2 times as much, which sparse payloads of a few workers can bear.
    """
    is_sparse = isinstance(_inner(chosen), TopK | Threshold | Significance)
    return is_sparse and num_workers <= MAX_GATHERED and exchange != AllGather.name


def _inner(chosen: AnyCompressor) -> AnyCompressor:
    return chosen.inner if isinstance(chosen, ErrorFeedback) else chosen


def powersgd_rank(spec: str) -> int | None:
    """R of `powersgd:R`, None for anything else."""
    name, colon, argument = spec.partition(":")
    if name != "powersgd":
        return None
    if not (colon and argument.isdecimal() and int(argument) > 0):
        raise SpecError(
            spec, "has no rank", "powersgd:R with a whole number of at least 1, such as powersgd:4"
        )
    return int(argument)

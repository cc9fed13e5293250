"""Apply averaged gradients some steps late, while computing continues (T6 without a server).

The gradient of step t is averaged while steps t+1 to t+s compute, and is applied in step t+s: by all
workers in the same step, so replicas stay the same bit for bit. The first s steps apply nothing; the
last s averages are applied at the end. A step takes as long as computing or the exchange, whichever
is longer, instead of their sum.
"""

from collections import deque
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.futures import Future
from torch.optim import Optimizer

from talka.compress import Compressor, StateKey
from talka.compress.protocol import NonFinite
from talka.compress.state_key import RHYTHM
from talka.errors import InvalidValueError
from talka.exchange.transport import Members
from talka.network import Network
from talka.train.gradients import Bucket, buckets_of
from talka.train.journal import RoundInfo
from talka.train.rhythms.every_step import EveryStep
from talka.train.rhythms.shares import Shares
from talka.train.transforms.frozen_adam import FrozenAdam


class Delayed(EveryStep):
    """Averages gradients in every step, and applies each average `delay` steps later.

    With `delay=0` it is EveryStep. With a delay, learning rates that suit EveryStep can be too large.

    Parameters
    ----------
    delay
        Number of steps by which averages are applied late.
    momentum, accumulate, shares
        As for `EveryStep`.
    """

    name: ClassVar[str] = "delayed"

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        *,
        delay: int = 1,
        compressor: str | Compressor = "none",
        exchange: str | None = None,
        momentum: float = 0.0,
        accumulate: int = 1,
        shares: Shares | None = None,
        network: Network | str | Path | None = None,
        run_dir: str | Path | None = None,
        group: Members = None,
        nonfinite: NonFinite | None = None,
        min_compressed_values: int | None = None,
    ) -> None:
        if delay < 0:
            raise InvalidValueError("delay", delay, "a whole number of at least 0")
        self.delay = delay
        self._late: deque[tuple[list[tuple[Bucket, Tensor]], list[Future[Tensor]]]] = deque()
        super().__init__(
            model,
            optimizer,
            compressor=compressor,
            exchange=exchange,
            momentum=momentum,
            accumulate=accumulate,
            shares=shares,
            network=network,
            run_dir=run_dir,
            group=group,
            nonfinite=nonfinite,
            min_compressed_values=min_compressed_values,
        )
        if self.ddp is not None:
            allowed = "the module inside of DDP, which waits for the averages of every step itself"
            raise InvalidValueError("model", "a DistributedDataParallel", allowed)
        if isinstance(self.optimizer, FrozenAdam):
            allowed = "one that takes gradients; this one takes momentum, which would be outdated"
            raise InvalidValueError("optimizer", "FrozenAdam", allowed)

    def describe(self) -> str:
        return f"{self.name}:{self.delay}"

    def _take(self, flats: list[tuple[Bucket, Tensor]], futures: "list[Future[Tensor]]") -> None:
        self._late.append((flats, futures))
        if len(self._late) > self.delay:
            self._apply_oldest()
        else:
            self.replica.resumes()
            for parameter in self.model.parameters():
                parameter.grad = None  # an optimizer leaves parameters without a gradient alone

    def _info(self) -> RoundInfo | None:
        return RoundInfo(self.name, self.num_rounds, 1, self.delay) if self.delay else None

    def _round_awaited(self) -> int:
        return self.num_rounds - len(self._late)

    def _apply_oldest(self) -> None:
        flats, futures = self._late.popleft()
        self._wait(futures)
        for bucket, flat in flats:
            bucket.set_gradients(flat)

    def _keep_state(self) -> None:
        super()._keep_state()
        for _, futures in self._late:
            self._wait(futures)
            futures.clear()
        self.replica.kept = {
            StateKey("late", piece.name, place, RHYTHM): flat[piece.start : piece.stop]
            for place, (flats, _) in enumerate(self._late)
            for bucket, flat in flats
            for piece in bucket.layout
        }

    def _restore_state(self) -> None:
        super()._restore_state()
        kept = self.replica.kept
        num_late = 1 + max((key.offset or 0 for key in kept if key.kind == "late"), default=-1)
        self._late.clear()
        for place in range(num_late):
            flats = []
            for bucket in buckets_of(self.model):
                keys = [StateKey("late", piece.name, place, RHYTHM) for piece in bucket.layout]
                flats.append((bucket, torch.cat([kept[key] for key in keys])))
            self._late.append((flats, []))

    def _finish(self) -> None:
        """Apply the averages that are left."""
        while self._late:
            self._apply_oldest()
            self.optimizer.step()

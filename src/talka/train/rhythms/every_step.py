"""Average gradients in every step (T1, T3).

Gradients are averaged during the backward pass, so clipping and the optimizer see averages, and all
replicas stay the same bit for bit.
"""

import warnings
from pathlib import Path
from typing import ClassVar

from torch import Tensor, nn
from torch.amp import GradScaler
from torch.futures import Future
from torch.optim import Optimizer

from talka.compress import Compressor
from talka.compress.protocol import NonFinite
from talka.errors import InvalidValueError
from talka.exchange.transport import Members
from talka.network import Network
from talka.train.gradients import Bucket
from talka.train.hook import Hook, exchange_hook
from talka.train.journal import RoundInfo
from talka.train.replica import Replica
from talka.train.rhythms.backward import BackwardPass
from talka.train.rhythms.base import Exchanging, Rhythm
from talka.train.rhythms.shares import Shares


class EveryStep(Rhythm):
    """Averages gradients in every step, with or without DDP.

    >>> with talka.train.EveryStep(model, optimizer, compressor="onebit+ef"):  # doctest: +SKIP
    ...     for x, y in loader:
    ...         optimizer.zero_grad()
    ...         loss(model(x), y).backward()  # gradients are averages when this returns
    ...         optimizer.step()

    Parameters
    ----------
    momentum, scaler
        As for `attach`.
    accumulate
        Number of backward passes per optimizer step, for a model without DDP; gradients are averaged
        in the last of them. (With DDP, use its `no_sync`.)
    shares
        Shares of each batch for machines of unequal speed.
    """

    name: ClassVar[str] = "every-step"

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        *,
        compressor: str | Compressor = "none",
        exchange: str | None = None,
        momentum: float = 0.0,
        scaler: GradScaler | None = None,
        accumulate: int = 1,
        shares: Shares | None = None,
        network: Network | str | Path | None = None,
        run_dir: str | Path | None = None,
        group: Members = None,
        nonfinite: NonFinite | None = None,
        min_compressed_values: int | None = None,
    ) -> None:
        if accumulate < 1:
            raise InvalidValueError("accumulate", accumulate, "a whole number of at least 1")
        self._momentum, self._scaler = momentum, scaler
        self.accumulate, self.shares = accumulate, shares
        self._flats: list[tuple[Bucket, Tensor]] = []
        self._last: Future[Tensor] | None = None
        self._was_applied = True
        super().__init__(
            model,
            optimizer,
            Exchanging(
                compressor=compressor,
                exchange=exchange,
                network=network,
                run_dir=run_dir,
                group=group,
                nonfinite=nonfinite,
                min_compressed_values=min_compressed_values,
            ),
        )
        if self.ddp is not None and accumulate > 1:
            allowed = "1 with DDP; call ddp.no_sync() around all backward passes but the last"
            raise InvalidValueError("accumulate", accumulate, allowed)

    def describe(self) -> str:
        return self.name

    def _make_replica(self) -> Replica:
        kind = Replica if self.ddp is None else Hook
        return self._new_replica(
            kind, with_optimizer=True, momentum=self._momentum, scaler=self._scaler
        )

    def _start(self) -> None:
        if self.shares is not None:
            self.shares.join(self.rank, self.num_workers)
        self.replica.at_step_start = self._begin_step
        if self.ddp is not None:
            assert isinstance(self.replica, Hook)
            self.replica.watch(self.ddp)
            self.ddp.register_comm_hook(self.replica, exchange_hook)
        else:
            self._handles.append(
                BackwardPass(
                    self.model, self._hand_over, self._end_pass, accumulate=self.accumulate
                )
            )
        self._handles.append(self.optimizer.register_step_post_hook(self._note_step))

    def _begin_step(self) -> None:
        """Set the weight of this worker; called before the first bucket of a step."""
        if self.ddp is not None:
            self.num_rounds += 1
        if self.shares is not None:
            own, everyone = self.shares.taken(self.accumulate)
            self.replica.weight = own * self.num_workers / everyone

    def _hand_over(self, bucket: Bucket) -> None:
        flat = bucket.gradients()
        self._last = self.replica.average(flat, bucket.layout)
        self._flats.append((bucket, flat))

    def _end_pass(self) -> None:
        """Wait for the averages and write them to the gradients."""
        if not self._was_applied and type(self) is EveryStep:
            warnings.warn(
                "gradients were averaged twice without an optimizer step between. With several "
                "backward passes per step, give EveryStep accumulate=N, their number: then they are "
                "averaged once.",
                stacklevel=2,
            )
        self._was_applied = False
        assert self._last is not None, "a model has parameters"
        self.num_rounds += 1
        self.replica.end_step(self._last, self._info())
        futures, flats = self.replica.pending(), self._flats
        self._flats = []
        self._take(flats, futures)

    def _info(self) -> RoundInfo | None:
        """Return what the event of a round tells; None if it is that of a step."""
        return None

    def _take(self, flats: list[tuple[Bucket, Tensor]], futures: "list[Future[Tensor]]") -> None:
        """Use the averages of a step."""
        self._wait(futures)
        for bucket, flat in flats:
            bucket.set_gradients(flat)

    def _note_step(self, *_: object) -> None:
        self._was_applied = True
        if self.shares is not None:
            self.shares.after_step(self.control, self.replica)

    def _finish(self) -> None:
        pass

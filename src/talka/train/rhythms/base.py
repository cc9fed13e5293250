"""The protocol of rhythms: a context manager around a loop that does not change.

    with LocalSGD(model, optimizer, every=50):
        for x, y in loader:
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()

A rhythm hooks into the backward pass or into `optimizer.step`. When it starts, workers compare
their models; when it ends, all have finished the same rounds and rank 0 prints what was done.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, cast

from torch import Tensor, nn
from torch.amp import GradScaler
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from talka.compress import Compressor
from talka.compress.protocol import NonFinite
from talka.errors import InvalidValueError, NonFiniteError, WorkerDivergedError
from talka.exchange.transport import Members, group_of
from talka.network import Network
from talka.train.optimizers import unwrapped
from talka.train.replica import Replica
from talka.train.rhythms.agreement import agree
from talka.train.rhythms.notices import Notices
from talka.units import format_bytes, format_seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchanging:
    """How a rhythm exchanges; the options of `attach` that every rhythm has."""

    compressor: str | Compressor = "none"
    exchange: str | None = None
    network: Network | str | Path | None = None
    run_dir: str | Path | None = None
    group: Members = None
    nonfinite: NonFinite | None = None
    min_compressed_values: int | None = None


class Rhythm(ABC):
    """A rhythm decides when workers synchronise, and uses the result.

    Every rhythm takes these options; each has further ones of its own. All workers must use the same.

    Parameters
    ----------
    model
        The model, or a DistributedDataParallel around it.
    optimizer
        Optimizer of the loop, which a trainer may have wrapped.
    compressor, exchange, network, run_dir, nonfinite, min_compressed_values
        As for `attach`.
    group
        Workers that train together, by default all: a process group, a group of channels, or ranks.
    """

    name: ClassVar[str]

    def __init__(self, model: nn.Module, optimizer: Optimizer, exchanging: Exchanging) -> None:
        is_wrapped = isinstance(model, DistributedDataParallel)
        self.ddp = cast(DistributedDataParallel, model) if is_wrapped else None
        self.model: nn.Module = self.ddp.module if self.ddp is not None else model
        self.optimizer = unwrapped(optimizer)
        self.exchanging = exchanging
        self.num_rounds = 0
        """Number of rounds since the start of the training, over all restarts."""
        self.is_open = False
        """True within the `with` block."""
        self._check_optimizer()
        self.replica = self._make_replica()
        self._notices: Notices | None = None
        self._handles: list[Any] = []

    @abstractmethod
    def _make_replica(self) -> Replica:
        """Return the replica through which this rhythm averages."""

    def _new_replica(
        self,
        kind: type[Replica],
        *,
        with_optimizer: bool,
        momentum: float = 0.0,
        scaler: GradScaler | None = None,
    ) -> Replica:
        given = self.exchanging
        return kind(
            self.model,
            given.compressor,
            given.exchange,
            self.optimizer if with_optimizer else None,
            network=given.network,
            run_dir=given.run_dir,
            group=given.group,
            nonfinite=given.nonfinite,
            min_compressed_values=given.min_compressed_values,
            momentum=momentum,
            scaler=scaler,
        )

    def _check_optimizer(self) -> None:
        trained = {id(one) for one in self.model.parameters() if one.requires_grad}
        own = {id(one) for group in self.optimizer.param_groups for one in group["params"]}
        if not trained & own:
            raise InvalidValueError(
                "optimizer",
                type(self.optimizer).__name__,
                "one that updates parameters of the model; it has none of them",
            )

    @abstractmethod
    def describe(self) -> str:
        """Return the rhythm with the options that all workers must share, in one line."""

    @abstractmethod
    def _start(self) -> None:
        """Hook into the backward pass or the optimizer."""

    @abstractmethod
    def _finish(self) -> None:
        """Exchange what was not exchanged yet, so that all workers have the same model."""

    def __enter__(self) -> Self:
        if self._notices is not None:
            allowed = "entered once; make a new one to train further"
            raise InvalidValueError("the rhythm", "entered before", allowed)
        self.exchange = self.replica.exchange
        control = group_of(self.exchanging.group, "rhythm")
        self.rank, self.num_workers = control.rank, control.size
        self.control = control
        self._notices = Notices(control)
        try:
            described = f"{self.describe()}, {self.replica.spec}"
            agree(self.model, control, described, takes_values=not self.is_between_rounds)
            notices = self._notices
            self.replica.at_wait = lambda futures: notices.wait(futures, self._round_awaited())
            self._start()
        except BaseException as error:
            self._leave(error)
            raise
        self.is_open = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self._finish()
                assert self._notices is not None
                self._notices.end(self.num_rounds)
        except BaseException as later:
            error = later
            raise
        finally:
            self._leave(error)
        if self.rank == 0:
            print(self.summary(), file=sys.stderr)  # noqa: T201  # the line that a rhythm promises

    def _leave(self, error: BaseException | None) -> None:
        self.is_open = False
        for handle in self._handles:
            handle.remove()
        self._handles = []
        assert self._notices is not None
        if error is not None:
            self._notices.fail(error)
        self.replica.close()
        self._notices.close()

    def _wait(self, futures: "list[Future[Tensor]]") -> None:
        """Wait for averages, or raise why they will not come."""
        try:
            self.replica.wait(futures)
        except NonFiniteError as error:
            raise WorkerDivergedError(self.rank, self.replica.num_steps, error.tensor) from error

    @property
    def is_on_ddp(self) -> bool:
        """True if the model is a DistributedDataParallel."""
        return self.ddp is not None

    @property
    def is_between_rounds(self) -> bool:
        """True if workers may have different models at present."""
        return False

    def _round_awaited(self) -> int:
        """Return the number of the round that this worker waits for."""
        return self.num_rounds

    def summary(self) -> str:
        """Return one line about what was done."""
        stats = self.stats()
        steps, rounds = int(stats["num_steps"]), self.num_rounds
        dense = 4 * sum(piece.num_values for piece in self.replica.layout)
        text = (
            f"talka: {self.describe()} with {self.replica.spec}: {steps:,} steps in {rounds:,} rounds "
            f"of {self.num_workers} worker{'' if self.num_workers == 1 else 's'}"
        )
        if self.num_workers > 1 and rounds:
            every_step = steps * dense * 2 * (self.num_workers - 1) / self.num_workers
            saved = every_step / stats["sent_bytes"] if stats["sent_bytes"] else 1.0
            text += (
                f"; each sent {format_bytes(stats['sent_bytes'])}, {saved:,.0f} times less than "
                f"float32 in every step, and waited {format_seconds(stats['exchange_s'])}"
            )
        return text

    def stats(self) -> dict[str, float]:
        """Return totals of this worker so far: bytes, seconds, steps and rounds."""
        return self.replica.stats() | {
            "num_steps": self.replica.num_steps,
            "num_rounds": self.num_rounds,
        }

    def save(self, folder: str | Path) -> None:
        """Write the state of the rhythm, one file per rank. All workers must call it."""
        self._keep_state()
        self.replica.save(folder)

    def load(self, folder: str | Path) -> None:
        """Continue from a saved state. All workers must call it; see `Hook.load`."""
        self.replica.load(folder)
        self._restore_state()

    def state_dict(self) -> dict[str, dict[str, Any]]:
        """Return the state of this worker, for a checkpoint; each rank has to store its own."""
        self._keep_state()
        return self.replica.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a result of `state_dict` on this rank, with as many workers."""
        self.replica.load_state_dict(state)
        self._restore_state()

    def _keep_state(self) -> None:
        """Hand the state of the rhythm over to the replica, which saves it."""
        self.replica.counts = {"num_rounds": self.num_rounds}

    def _restore_state(self) -> None:
        """Take the state of the rhythm from the replica, which has loaded it."""
        self.num_rounds = self.replica.counts.get("num_rounds", 0)

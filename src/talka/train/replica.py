"""A worker's copy of a model, and the exchange by which all copies stay equal.

The DDP hook, `average_gradients` and the rhythms average vectors through a replica: it has the names
and shapes of the parameters, opens and replaces the exchange, applies the transforms before it,
saves its state, and writes an event for each step.
"""

import weakref
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from torch import Tensor, nn
from torch.amp import GradScaler
from torch.futures import Future, collect_all
from torch.optim import Optimizer

from talka.compress import Compressor, Layout, State
from talka.compress.layout import layout_of
from talka.compress.protocol import NonFinite
from talka.errors import HookClosedError
from talka.exchange import Exchange, choose, open_exchange
from talka.exchange.registry import codec_of
from talka.exchange.transport import Members
from talka.network import Network, read_hosts
from talka.renaming import renamed
from talka.train.codecs import attached_codec
from talka.train.journal import Journal, RoundInfo
from talka.train.open_parts import OpenParts
from talka.train.optimizers import check_momentum, unwrapped, warn_of_adam
from talka.train.parameters import check_parameters
from talka.train.saved import Progress, common_number, from_dict, load_state, save_state, to_dict
from talka.train.transforms.chain import Transforms


class Replica:
    """A model on one worker, whose gradients or changes are averaged with those of the others.

    It is a context manager. Without `with` or `close`, it is closed when it is garbage-collected or
    when the interpreter exits. The parameters are those of `attach`; `group` is a process group, a
    group of channels or ranks, by default all workers.
    """

    @renamed(spec="compressor", whole_below="min_compressed_values")
    def __init__(
        self,
        model: nn.Module,
        compressor: str | Compressor,
        exchange: str | None = None,
        optimizer: Optimizer | None = None,
        *,
        network: Network | str | Path | None = None,
        run_dir: str | Path | None = None,
        group: Members = None,
        nonfinite: NonFinite | None = None,
        min_compressed_values: int | None = None,
        momentum: float = 0.0,
        scaler: GradScaler | None = None,
    ) -> None:
        check_parameters(model)
        if optimizer is not None:
            optimizer = unwrapped(optimizer)
        if isinstance(network, str | Path):
            network = read_hosts(network).network
        self.parameters = dict(model.named_parameters())
        """Parameters of the model by name."""
        self.transforms = Transforms(self.parameters, optimizer, scaler)
        self.weight = 1.0
        """Weight of this worker in averages; the mean over all workers must be 1."""
        self.kept: State = {}
        """Tensors of a rhythm that are saved and loaded with the state of the exchange."""
        self.counts: dict[str, int] = {}
        """Counters of a rhythm that are saved and loaded with the state of the exchange."""
        self.at_step_start: Callable[[], None] | None = None
        """Called before the first bucket of a step; a rhythm sets it."""
        self.at_wait: Callable[[list[Future[Tensor]]], None] | None = None
        """Called before this worker waits for averages; a rhythm sets it."""
        self.num_steps = 0
        """Number of steps since the start of the training, over all restarts."""
        self._group, self._network = group, network
        self._options: dict[str, Any] = {
            "nonfinite": "pass" if self.transforms.skips_steps else nonfinite,
            "min_compressed_values": min_compressed_values,
        }
        self._momentum = momentum
        self._compressor, self._name = compressor, exchange
        self._journal = Journal(run_dir, network)
        self._open_parts = OpenParts(self._journal)
        self._closing = weakref.finalize(self, self._open_parts.close)
        self._futures: list[Future[Tensor]] = []
        self._step_began = False
        self._used: dict[Exchange, Layout] = {}  # in the current step
        self._last: dict[Exchange, Future[Tensor]] = {}  # of each exchange in the current step
        self._run: int | None = None  # a random number that is the same on all workers
        if optimizer is not None:
            properties = codec_of(compressor)
            check_momentum(optimizer, self.spec, properties, momentum)
            warn_of_adam(optimizer, self.spec, properties)

    @property
    def exchange(self) -> Exchange:
        """Exchange in use. It is opened when first used: trainers make hooks before their group."""
        if not self._closing.alive:
            raise HookClosedError
        parts = self._open_parts
        if parts.exchange is None:
            self._open(self._compressor, self._name)
        assert parts.exchange is not None
        if not self._step_began:
            self.transforms.settle(parts.exchange)
            if parts.unused is not None:
                parts.unused.settle()
        return parts.exchange

    @property
    def spec(self) -> str:
        """Short form of the compressor in use."""
        return self._compressor if isinstance(self._compressor, str) else self._compressor.spec

    @cached_property
    def layout(self) -> Layout:
        """Layout of all trained parameters, one after another."""
        return layout_of(
            {
                name: tuple(parameter.shape)
                for name, parameter in self.parameters.items()
                if parameter.requires_grad
            }
        )

    def _open(self, compressor: str | Compressor, name: str | None) -> None:
        codec = attached_codec(compressor, **self._options)
        if name is None and self._network is not None:
            num_values = sum(piece.num_values for piece in self.layout)
            # Without codec rates: those of machines differ, and all ranks must choose the same.
            name = choose(codec, num_values, self._network, layout=self.layout).exchange
        opened = open_exchange(codec, name, group=self._group, momentum=self._momentum)
        self._compressor, self._name, self._open_parts.exchange = compressor, opened.name, opened
        if self._run is None:
            self._run = common_number(opened)

    @renamed(spec="compressor")
    def swap(self, compressor: str | Compressor, exchange: str | None = None) -> None:
        """Switch to another compressor or exchange, starting with the next step.

        All workers must call this between steps. Residuals are carried over if both keep them;
        otherwise they are discarded.
        """
        before = self.exchange
        state = {
            key: value
            for key, value in before.state().items()
            if key.kind in ("residual", "momentum")
        }
        self._open(compressor, exchange)
        self.exchange.load_state(state)
        before.close()

    def average(self, flat: Tensor, layout: Layout) -> "Future[Tensor]":
        """Average a bucket over all workers in place, after the transforms before it.

        Called for all buckets of a step in the same order on all workers, and followed by `end_step`.
        """
        exchange, unused = self.exchange, self._open_parts.unused
        if not self._step_began:
            self._step_began = True
            if self.at_step_start is not None:
                self.at_step_start()
            self.transforms.begin_step(exchange)
        if self.transforms.is_warming_up:
            exchange = self.dense_exchange()
        self.transforms.apply(flat, layout)
        if unused is not None:
            unused.before_exchange(exchange, layout)
        self._used[exchange] = self.layout
        return self._put(exchange, flat, layout)

    def average_exactly(self, flat: Tensor, layout: Layout) -> "Future[Tensor]":
        """Average a vector over all workers in place, without compression or transforms."""
        exchange = self.dense_exchange()
        self._used[exchange] = (*self._used.get(exchange, ()), *layout)
        return self._put(exchange, flat, layout)

    def _put(self, exchange: Exchange, flat: Tensor, layout: Layout) -> "Future[Tensor]":
        future = exchange.average(flat, layout, weight=self.weight)
        self._futures.append(future)
        self._last[exchange] = future
        return future

    def end_step(self, last: "Future[Tensor]", info: RoundInfo | None = None) -> "Future[Tensor]":
        """Note that all of a step or round was handed over; return the future of its last bucket."""
        if self._open_parts.unused is not None:
            self._open_parts.unused.end_step()
        self._step_began = False
        self.num_steps += 1 if info is None else info.num_steps
        used, self._used = self._used, {}
        of_exchanges, self._last = list(self._last.values()), {}
        computed = self._journal.waits()

        def ends(_: object) -> Tensor:
            self._journal.ends(used, computed, info)
            return last.value()

        # Two exchanges run at the same time: the step ends with the later one.
        every = last if len(of_exchanges) == 1 else collect_all(of_exchanges)
        return cast("Future[Tensor]", every.then(ends))

    def pending(self) -> "list[Future[Tensor]]":
        """Return the futures of all buckets since the last call, for `wait`."""
        futures, self._futures = self._futures, []
        return futures

    def wait(self, futures: "list[Future[Tensor]]") -> None:
        """Wait for averages; raise the errors of exchanges with their own types.

        A future that `then` returned would raise a RuntimeError with only their text.
        """
        if self.at_wait is not None:
            self.at_wait(futures)
        for future in futures:
            self.transforms.check(future.wait())
        self.resumes()

    def resumes(self) -> None:
        """Note that computing continues, also if there was nothing to wait for."""
        self._journal.resumes()

    def dense_exchange(self) -> Exchange:
        """Return the exchange without compression: for the warm-up of FrozenAdam, and for buffers.

        Exchanges must be opened in the same order on all workers: one that may be first used at
        different times, or not at all after a failure, is opened at the start.
        """
        parts, nonfinite = self._open_parts, self.exchange.nonfinite
        if parts.dense is None:
            parts.dense = open_exchange("none", group=self._group, nonfinite=nonfinite)
        return parts.dense

    def busy_s(self) -> float:
        """Return the seconds that this worker has computed, encoded and decoded so far."""
        meter = self._journal.total
        return self._journal.compute_s + meter.encode_s + meter.decode_s

    def stats(self) -> dict[str, float]:
        """Return totals of the exchanges of this worker so far: bytes, seconds and steps."""
        journal, meter = self._journal, self._journal.total
        exchange = self.exchange if self._closing.alive else self._open_parts.exchange
        return {
            "num_steps": journal.num_steps,
            "sent_bytes": meter.sent_bytes,
            "received_bytes": meter.received_bytes,
            "compute_s": journal.compute_s,
            "encode_s": meter.encode_s,
            "exchange_s": meter.wait_s,
            "decode_s": meter.decode_s,
            "residual_norm": 0.0 if exchange is None else exchange.residual_norm(),
        }

    def save(self, folder: str | Path) -> None:
        """Write the state of the exchange, one file per rank. All workers must call it."""
        save_state(self.exchange, Path(folder), self._shapes(), self._progress())

    def load(self, folder: str | Path) -> None:
        """Continue from a saved state, also with another number of workers.

        All workers must call it. Either all of them load, or all raise SavedStateError.
        """
        self._continue(load_state(self.exchange, Path(folder), self._shapes()))

    def state_dict(self) -> dict[str, dict[str, Any]]:
        """Return the state that the next step depends on, as tensors and text, for a checkpoint.

        Residuals differ between ranks, so each rank has to store its own dict.
        """
        exchange = self.exchange
        assert self._run is not None, "drawn when the exchange was opened"
        return to_dict(exchange, self._shapes(), self._progress(), self._run)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a result of `state_dict` on this rank, with the same number of workers.

        All workers must call it. Either all of them load, or all raise SavedStateError.
        """
        self._continue(from_dict(self.exchange, state, self._shapes()))

    def _progress(self) -> Progress:
        rates, scale = self.transforms.state()
        return Progress(self.num_steps, rates, scale, self.counts, self.kept)

    def _continue(self, progress: Progress) -> None:
        self.num_steps = progress.step
        self.transforms.load_state(progress.rates, progress.scale)
        self.counts, self.kept = dict(progress.counts), dict(progress.kept)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: tuple(parameter.shape) for name, parameter in self.parameters.items()}

    def close(self) -> None:
        """Write the last comparison of the run, and end the thread. May be called twice."""
        self._closing()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

"""The hook for DDP models: one more line in a training script, `attach(ddp, "onebit+ef")`.

DDP fills buckets of gradients during the backward pass and passes each to the hook, which passes it
to an exchange and returns a future; the exchange thread works while the backward pass continues.
Residuals are kept by the names of parameters in the model, in whatever bucket a parameter is.
"""

import os
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import torch.distributed as dist
from torch import Tensor, nn
from torch._C._distributed_c10d import GradBucket
from torch.amp import GradScaler
from torch.autograd import Variable
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from talka.compress import Compressor, Layout, Piece
from talka.compress.protocol import NonFinite
from talka.errors import HookClosedError
from talka.events import RUN_DIR_VARIABLE
from talka.exchange import Exchange, choose, open_exchange
from talka.exchange.registry import codec_of
from talka.network import Network, read_hosts
from talka.renaming import renamed
from talka.train.codecs import attached_codec
from talka.train.frozen_adam import FrozenAdam
from talka.train.journal import Journal
from talka.train.loss_scale import LossScale
from talka.train.open_parts import OpenParts
from talka.train.optimizers import check_momentum, unwrapped, warn_of_adam
from talka.train.parameters import check_gradient, check_parameters
from talka.train.rates import LearningRates
from talka.train.saved import Progress, common_number, from_dict, load_state, save_state, to_dict
from talka.train.unused import UnusedParameters


class Hook:
    """Result of `attach`, and the `state` of `exchange_hook` for trainers that register hooks.

    It is a context manager. Without `with` or `close`, it is closed when it is garbage-collected or
    when the interpreter exits.
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
        group: dist.ProcessGroup | None = None,
        nonfinite: NonFinite | None = None,
        min_compressed_values: int | None = None,
        momentum: float = 0.0,
        scaler: GradScaler | None = None,
    ) -> None:
        check_parameters(model)
        if optimizer is not None:
            optimizer = unwrapped(optimizer)
        self._names = {parameter: name for name, parameter in model.named_parameters()}
        if isinstance(network, str | Path):
            network = read_hosts(network).network
        self._group, self._network = group, network
        self._loss_scale = LossScale(scaler)
        if self._loss_scale.is_used:
            nonfinite = "pass"  # the scaler detects values that are not finite, and skips the step
        self._options: dict[str, Any] = {
            "nonfinite": nonfinite,
            "min_compressed_values": min_compressed_values,
        }
        self._momentum = momentum
        self._optimizer = optimizer
        self._rates = None if optimizer is None else LearningRates(optimizer, self._names)
        self._layouts: dict[tuple[int, ...], Layout] = {}
        self._compressor, self._name = compressor, exchange
        self._journal = Journal(
            run_dir or os.environ.get(RUN_DIR_VARIABLE), self._whole_layout(), network
        )
        self._open_parts = OpenParts(self._journal)
        self._closing = weakref.finalize(self, self._open_parts.close)
        self._step_began, self._num_steps = False, 0
        self._futures: list[Future[Tensor]] = []  # of the buckets of the current step
        self._run: int | None = None  # a random number that is the same on all workers
        if optimizer is not None:
            properties = codec_of(compressor)
            check_momentum(optimizer, self.spec, properties, momentum)
            warn_of_adam(optimizer, self.spec, properties)
        if isinstance(optimizer, FrozenAdam):
            optimizer.attached, optimizer.scaler = True, scaler

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
            self._loss_scale.settle(parts.exchange)
            if parts.unused is not None:
                parts.unused.settle()
        return parts.exchange

    @property
    def spec(self) -> str:
        """Short form of the compressor in use."""
        return self._compressor if isinstance(self._compressor, str) else self._compressor.spec

    def _open(self, compressor: str | Compressor, name: str | None) -> None:
        codec = attached_codec(compressor, **self._options)
        if name is None and self._network is not None:
            layout = self._whole_layout()
            num_values = sum(piece.num_values for piece in layout)
            # Without codec rates: those of machines differ, and all ranks must choose the same.
            name = choose(codec, num_values, self._network, layout=layout).exchange
        opened = open_exchange(codec, name, group=self._group, momentum=self._momentum)
        self._compressor, self._name, self._open_parts.exchange = compressor, opened.name, opened
        if self._run is None:
            self._run = common_number(opened)

    def _whole_layout(self) -> Layout:
        pieces, start = [], 0
        for parameter, name in self._names.items():
            if parameter.requires_grad:
                stop = start + parameter.numel()
                pieces.append(Piece(name, tuple(parameter.shape), 0, start, stop))
                start = stop
        return tuple(pieces)

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
        rates = {} if self._rates is None else self._rates.state()
        return Progress(self._num_steps, rates, self._loss_scale.kept)

    def _continue(self, progress: Progress) -> None:
        self._num_steps, self._loss_scale.kept = progress.step, progress.scale
        if self._rates is not None:
            self._rates.load_state(progress.rates)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: tuple(parameter.shape) for parameter, name in self._names.items()}

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

    def watch(self, ddp: DistributedDataParallel) -> None:
        """Keep residuals of parameters that no worker uses in a step, if DDP allows them.

        `attach` calls it. A trainer that registers `exchange_hook` itself calls it with its DDP
        model if that has `find_unused_parameters=True` or `static_graph=True`.
        """
        parts = self._open_parts
        if parts.unused is None and (ddp.find_unused_parameters or ddp.static_graph):
            parts.unused = UnusedParameters(ddp)

    def average_bucket(self, bucket: GradBucket) -> "Future[Tensor]":
        """Average the gradients in a bucket; DDP calls this for every bucket."""
        exchange, flat, unused = self.exchange, bucket.buffer(), self._open_parts.unused
        if not self._step_began:
            self._step_began = True
            if self._rates is not None:
                self._rates.rescale(exchange.residuals())
            self._loss_scale.begin_step(exchange)
        layout = self._layout(bucket)
        if isinstance(self._optimizer, FrozenAdam):
            if not self._optimizer.is_frozen:
                exchange = self._warm_up_exchange()
            self._optimizer.to_momentum(bucket.parameters(), bucket.gradients())
        if unused is not None:
            unused.before_exchange(exchange, layout)
        future = exchange.average(flat, layout)
        self._futures.append(future)
        if not bucket.is_last():
            return cast("Future[Tensor]", future.then(self._checked))
        if unused is not None:
            unused.end_step()
        self._step_began = False
        self._num_steps += 1
        self._raise_at_the_end_of_the_backward_pass()
        self._journal.step_waits()

        def last_value(done: "Future[Tensor]") -> Tensor:
            self._journal.step_ends(exchange)
            return self._checked(done)

        return cast("Future[Tensor]", future.then(last_value))

    def _raise_at_the_end_of_the_backward_pass(self) -> None:
        """Raise errors of exchanges from `backward` with their own type.

        DDP waits for the same futures after this, but raises a RuntimeError with only their text.
        """
        futures, self._futures = self._futures, []

        def wait() -> None:
            for future in futures:
                future.wait()

        Variable._execution_engine.queue_callback(wait)

    def _checked(self, future: "Future[Tensor]") -> Tensor:
        """Return the average, or raise the error of the exchange, so that DDP raises it."""
        average = future.value()
        self._loss_scale.check(average)
        return average

    def _warm_up_exchange(self) -> Exchange:
        """Return the exchange of uncompressed gradients for the warm-up of FrozenAdam."""
        parts = self._open_parts
        if parts.warm_up is None:
            assert parts.exchange is not None, "opened before the first bucket"
            nonfinite = parts.exchange.nonfinite
            parts.warm_up = open_exchange("none", group=self._group, nonfinite=nonfinite)
        return parts.warm_up

    def _layout(self, bucket: GradBucket) -> Layout:
        """Return the layout of a bucket. DDP regroups buckets after the first step."""
        parameters = bucket.parameters()
        key = tuple(map(id, parameters))
        if key not in self._layouts:
            for parameter in parameters:  # the model may have changed since it was checked
                check_gradient(self._names[cast(nn.Parameter, parameter)], bucket.buffer())
            base = bucket.buffer().storage_offset()
            pieces = []
            for parameter, gradient in zip(parameters, bucket.gradients(), strict=True):
                start = int(gradient.storage_offset() - base)
                stop = start + gradient.numel()
                name, shape = self._names[cast(nn.Parameter, parameter)], tuple(parameter.shape)
                pieces.append(Piece(name, shape, 0, start, stop))
            self._layouts[key] = tuple(pieces)
        return self._layouts[key]


def exchange_hook(state: Hook, bucket: GradBucket) -> Future[Tensor]:
    """Communication hook for trainers that register hooks themselves, with a `Hook` as state."""
    return state.average_bucket(bucket)


@renamed(spec="compressor", whole_below="min_compressed_values")
def attach(
    ddp: DistributedDataParallel,
    compressor: str | Compressor,
    exchange: str | None = None,
    optimizer: Optimizer | None = None,
    *,
    network: Network | str | Path | None = None,
    run_dir: str | Path | None = None,
    nonfinite: NonFinite | None = None,
    min_compressed_values: int | None = None,
    momentum: float = 0.0,
    scaler: GradScaler | None = None,
) -> Hook:
    """Exchange the gradients of a DDP model with `compressor`, from the next backward pass on.

    compressor
        A short form such as "onebit+ef", or an object with the members of
        `talka.compress.Compressor`, which has its own `nonfinite` and `min_compressed_values`.
    exchange
        Name of the exchange. The default depends on the compressor, or, with `network` (a Network
        or a hosts file, see `talka probe`), is the one that is cheapest on the network.
    optimizer
        Optimizer of the loop, which a trainer may have wrapped: residuals follow its learning rate.
    run_dir
        Run directory in which every step is written as an event; TALKA_RUN_DIR by default.
    nonfinite
        What happens to gradients with NaN or infinity: "error" (default) raises NonFiniteError,
        "pass" sends them uncompressed.
    min_compressed_values
        Number of values below which a parameter is sent uncompressed; 256 by default.
    momentum
        Momentum that each worker adds to its own gradients before they are compressed; the
        optimizer must then be SGD without momentum. Sparse compressors need it to keep their
        accuracy.
    scaler
        The torch.amp.GradScaler of the loop: residuals and momentum follow its factor, and are kept
        in steps that it skips; `nonfinite` is then "pass".
    """
    hook = Hook(
        ddp.module,
        compressor,
        exchange,
        optimizer,
        network=network,
        run_dir=run_dir,
        group=ddp.process_group,
        nonfinite=nonfinite,
        min_compressed_values=min_compressed_values,
        momentum=momentum,
        scaler=scaler,
    )
    hook.exchange  # noqa: B018  # opened now, so that a wrong name is reported now
    hook.watch(ddp)
    ddp.register_comm_hook(hook, exchange_hook)
    return hook

"""The hook for DDP models: one more line in a training script, `attach(ddp, "onebit+ef")`.

DDP fills buckets of gradients during the backward pass and passes each to the hook, which passes it
to an exchange and returns a future; the exchange thread works while the backward pass continues.
Residuals are kept by the names of parameters in the model, in whatever bucket a parameter is.
"""

from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn
from torch._C._distributed_c10d import GradBucket
from torch.amp import GradScaler
from torch.autograd import Variable
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from talka.compress import Compressor, Layout, Piece
from talka.compress.protocol import NonFinite
from talka.network import Network
from talka.renaming import renamed
from talka.train.parameters import check_gradient
from talka.train.replica import Replica
from talka.train.unused import UnusedParameters


class Hook(Replica):
    """Result of `attach`, and the `state` of `exchange_hook` for trainers that register hooks.

    It is a context manager. Without `with` or `close`, it is closed when it is garbage-collected or
    when the interpreter exits.
    """

    def __init__(self, model: nn.Module, *args: Any, **options: Any) -> None:
        super().__init__(model, *args, **options)
        self._names = {parameter: name for name, parameter in self.parameters.items()}
        self._layouts: dict[tuple[int, ...], Layout] = {}

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
        future = self.average(bucket.buffer(), self._layout(bucket))
        if bucket.is_last():
            future = self.end_step(future)
            futures = self.pending()
            # Called at the end of the backward pass, before DDP waits for the same futures: it would
            # raise a RuntimeError with only the text of an error.
            Variable._execution_engine.queue_callback(lambda: self.wait(futures))
        return future

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

"""Keeping the residuals of parameters that no worker used in a step.

With `find_unused_parameters=True`, DDP puts zeros into its bucket for a parameter without a
gradient, and drops the average if no worker used the parameter. The residual that was sent with
those zeros would be lost. The parameters that no worker used are known only after the backward
pass, when DDP has summed its flags. Until then, copies of the state of all parameters that this
worker did not use are kept; afterwards the state of those that no worker used is restored.
"""

from typing import Any

from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.hooks import RemovableHandle

from talka.compress import Layout
from talka.exchange import Exchange
from talka.exchange.snapshot import Snapshot


class UnusedParameters:
    """Restores momentum and residuals of parameters whose averages DDP drops."""

    def __init__(self, ddp: DistributedDataParallel) -> None:
        # Number of workers that use each parameter; DDP updates it after every backward pass.
        # Requested now, since DDP holds a lock while it calls the hook.
        self._num_users: Tensor = ddp.reducer._get_local_used_map()
        self._names = [  # in the order of DDP's flags
            name
            for name, parameter in ddp.module.named_parameters()
            if parameter.requires_grad and name not in ddp.parameters_to_ignore
        ]
        self._used: set[str] = set()
        self._snapshots: dict[str, Snapshot] = {}
        self._parameters = dict(ddp.module.named_parameters())
        self._has_views = ddp.gradient_as_bucket_view
        self._handles = [
            _note_use(self._parameters[name], name, self._used) for name in self._names
        ]

    def before_exchange(self, exchange: Exchange, layout: Layout) -> None:
        """Copy the state of parameters without a gradient on this worker."""
        for piece in layout:
            if piece.name not in self._used and not self._is_view(piece.name):
                self._snapshots[piece.name] = exchange.snapshot([piece])

    def _is_view(self, name: str) -> bool:
        """Return True if a gradient is part of its bucket: DDP then always writes its average."""
        return self._has_views and self._parameters[name].grad is not None

    def end_step(self) -> None:
        """Forget which parameters were used; called with the last bucket of a step."""
        self._used.clear()

    def settle(self) -> None:
        """Restore the state of parameters that no worker used; called between two steps."""
        snapshots, self._snapshots = self._snapshots, {}
        if snapshots:
            for name, num_users in zip(self._names, self._num_users.tolist(), strict=True):
                if num_users == 0 and name in snapshots:
                    snapshots[name].restore()

    def close(self) -> None:
        """Remove the hooks on parameters."""
        for handle in self._handles:
            handle.remove()


def _note_use(parameter: Any, name: str, used: set[str]) -> RemovableHandle:
    """Record the name of a parameter whenever it gets a gradient, as DDP does."""

    def note(_: Tensor) -> None:
        used.add(name)

    handle: RemovableHandle = parameter.register_post_accumulate_grad_hook(note)
    return handle

"""Average the changes of several steps (T8): every K steps, all workers meet at a common point.

    point     the parameters that all workers had after the last round
    change    a worker's parameters - point, after K steps of its own optimizer
    point    += the average of all changes, or the step that an outer optimizer makes of it

Only changes are compressed, never parameters: what compression loses of a change stays with its
worker (with error feedback) and is part of its next one. Without compression and outer optimizer the
parameters themselves are averaged, which is exact.
"""

import warnings
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.distributed import GradBucket  # type: ignore[attr-defined]  # not in its __all__
from torch.futures import Future
from torch.optim import Optimizer

from talka.compress import Compressor, StateKey
from talka.compress.layout import layout_of
from talka.compress.protocol import NonFinite, Properties
from talka.compress.state_key import RHYTHM
from talka.errors import HookClosedError, InvalidValueError, SpecError
from talka.exchange.power_sgd import PowerSgd
from talka.exchange.transport import Members
from talka.network import Network
from talka.train.codecs import attached_codec
from talka.train.gradients import Bucket, buckets_of
from talka.train.journal import RoundInfo
from talka.train.replica import Replica
from talka.train.rhythms.base import Exchanging, Rhythm
from talka.train.rhythms.outer import Outer, outer_of
from talka.train.rhythms.shares import Shares
from talka.train.rhythms.warm_up import WarmUp

STRONG_BITS = 2.5
"""Bits per value below which compression with feedback delays most of a change by rounds."""
HIGH_MOMENTUM = 0.8
"""Outer momentum from which on it amplifies changes that arrive a round late."""


class LocalSGD(Rhythm):
    """Averages the models of all workers every few steps, by their compressed changes.

    Works with any optimizer of the loop; each worker keeps its own momentum.

    >>> with talka.train.LocalSGD(model, optimizer, every=50, outer="nesterov:0.7/0.9"):
    ...     for x, y in loader:  # doctest: +SKIP
    ...         optimizer.zero_grad()
    ...         loss(model(x), y).backward()
    ...         optimizer.step()

    Parameters
    ----------
    every
        Number of optimizer steps between two rounds.
    compressor
        Compressor of the changes, such as "uniform:3/max/512+ef".
    outer
        Outer optimizer: "nesterov:0.7/0.9" (DiLoCo; helps from about 50 steps on), "momentum:1/0.75"
        (BMUF), "sgd:RATE", or None for plain averages.
    warmup_steps
        Number of first steps in which gradients are averaged in every step instead, uncompressed.
    average_momentum
        Also average the state of the optimizer, uncompressed: twice to three times the bytes.
    average_buffers
        Also average buffers such as the statistics of BatchNorm, uncompressed.
    shares
        Shares of each batch for machines of unequal speed.
    """

    name: ClassVar[str] = "local-sgd"

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        *,
        every: int,
        compressor: str | Compressor = "none",
        outer: Outer | str | None = None,
        exchange: str | None = None,
        warmup_steps: int = 0,
        average_momentum: bool = False,
        average_buffers: bool = True,
        shares: Shares | None = None,
        network: Network | str | Path | None = None,
        run_dir: str | Path | None = None,
        group: Members = None,
        nonfinite: NonFinite | None = None,
        min_compressed_values: int | None = None,
    ) -> None:
        if every < 1:
            raise InvalidValueError("every", every, "a whole number of at least 1")
        if warmup_steps < 0:
            raise InvalidValueError("warmup_steps", warmup_steps, "a whole number of at least 0")
        self.every, self.outer, self.warmup_steps = every, outer_of(outer), warmup_steps
        self.average_momentum, self.average_buffers = average_momentum, average_buffers
        self.shares = shares
        self._num_local_steps = self._num_warm_steps = 0
        self._warm_up: WarmUp | None = None
        self._point: dict[str, Tensor] = {}
        self._velocity: dict[str, Tensor] = {}
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
        codec = attached_codec(compressor)
        check_change_codec(codec)
        self._is_exact = codec.spec == "none" and self.outer is None
        self._buckets = buckets_of(self.model)
        self._warn_of_conflict(codec)

    def describe(self) -> str:
        text = f"{self.name}:{self.every}"
        if self.outer is not None:
            text += f" with outer {self.outer}"
        return text

    def _make_replica(self) -> Replica:
        return self._new_replica(Replica, with_optimizer=False)

    def _warn_of_conflict(self, codec: Properties) -> None:
        if self.outer is None or self.outer.momentum < HIGH_MOMENTUM or not codec.keeps_residuals:
            return
        if isinstance(codec, PowerSgd):
            return
        num_values = 1 << 20
        bits = 8 * codec.expected_bytes(num_values) / num_values  # type: ignore[attr-defined]
        if bits < STRONG_BITS:
            warnings.warn(
                f"{self.replica.spec} sends {bits:.2g} bits per value and the rest rounds later, and an "
                f"outer momentum of {self.outer.momentum:g} amplifies what arrives late: accuracy "
                "suffers. Use 3 or 4 bits (uniform:3/max/512+ef), an outer momentum of 0.5, or onebit "
                "without feedback.",
                stacklevel=3,
            )

    def _start(self) -> None:
        self.replica.dense_exchange()
        self._remember_point()
        if self.shares is not None:
            self.shares.join(self.rank, self.num_workers)
        if self._num_warm_steps < self.warmup_steps:
            self._warm_up = WarmUp(self, self.model)
            self._handles.append(self._warm_up)
        if self.ddp is not None:
            self.ddp.broadcast_buffers = False  # the rhythm averages them
            self.ddp.register_comm_hook(self, _bucket_of_ddp)
        self._handles.append(self.optimizer.register_step_post_hook(self._after_step))

    def _after_step(self, *_: object) -> None:
        if self._warm_up is None:
            self._num_local_steps += 1
            if self.shares is not None:
                self.shares.use()
            if self._num_local_steps >= self.every:
                self.synchronise()
            return
        self._num_warm_steps += 1
        if self._num_warm_steps >= self.warmup_steps:
            self._warm_up.remove()
            self._warm_up = None
            self._point.clear()
            self._remember_point()

    def synchronise(self) -> None:
        """Have a round now, for example before an evaluation. All workers must call it."""
        if not self._num_local_steps:
            return
        num_steps, self._num_local_steps = self._num_local_steps, 0
        self.count_samples(num_steps)
        replica = self.replica
        flats = [
            bucket.values() if self._is_exact else self._change(bucket) for bucket in self._buckets
        ]
        average = replica.average_exactly if self._is_exact else replica.average
        for bucket, flat in zip(self._buckets, flats, strict=True):
            last = average(flat, bucket.layout)
        extras = self._extras()
        joined = torch.cat([torch.zeros(0), *[one.reshape(-1).float().cpu() for one in extras]])
        if extras:
            last = replica.average_exactly(joined, layout_of({"buffers": (len(joined),)}))
        self.end_round(last, num_steps)
        for bucket, flat in zip(self._buckets, flats, strict=True):
            self._move(bucket, flat)
        for tensor, mean in zip(
            extras,
            torch.split(joined, [one.numel() for one in extras]) if extras else [],
            strict=True,
        ):
            tensor.copy_(mean.view(tensor.shape))
        if self.shares is not None:
            self.shares.measure(self.control, replica)

    def count_samples(self, num_steps: int) -> None:
        """Set the weight of this worker by its samples in the steps of a round."""
        if self.shares is not None:
            own, everyone = self.shares.taken(num_steps)
            self.replica.weight = own * self.num_workers / everyone

    def end_round(self, last: "Future[Tensor]", num_steps: int) -> None:
        """Wait for all that was handed over since the last round."""
        self.num_rounds += 1
        self.replica.end_step(last, RoundInfo(self.name, self.num_rounds, num_steps))
        self._wait(self.replica.pending())

    @property
    def is_between_rounds(self) -> bool:
        return self._num_local_steps > 0

    def average_bucket(self, bucket: GradBucket) -> "Future[Tensor]":
        """Leave the gradients of DDP as they are, except during the warm-up."""
        if not self.is_open:
            raise HookClosedError
        if self._warm_up is not None:
            return self._warm_up.average_bucket(bucket)
        future: Future[Tensor] = Future()
        future.set_result(bucket.buffer())
        return future

    def _change(self, bucket: Bucket) -> Tensor:
        """Return what this worker changed since the last round."""
        values = bucket.values()
        for piece in bucket.layout:
            values[piece.start : piece.stop] -= self._point[piece.name]
        return values

    def _move(self, bucket: Bucket, average: Tensor) -> None:
        """Move the common point by an averaged change, and this worker's parameters to it."""
        if self._is_exact:
            bucket.set_values(average)
            return
        for piece in bucket.layout:
            point, change = self._point[piece.name], average[piece.start : piece.stop]
            if self.outer is None:
                point += change
            else:
                self.outer.step(point, self._velocity[piece.name], change)
            change.copy_(point)
        bucket.set_values(average)

    def _remember_point(self) -> None:
        """Start from the present parameters, unless a saved state was loaded."""
        if self._is_exact or self._point:
            return
        for bucket in self._buckets:
            values = bucket.values()
            for piece in bucket.layout:
                self._point[piece.name] = values[piece.start : piece.stop].clone()
                if self.outer is not None:
                    self._velocity[piece.name] = torch.zeros(piece.num_values)

    def _extras(self) -> list[Tensor]:
        """Return buffers and optimizer state that are averaged, too, in place."""
        tensors: list[Tensor] = []
        if self.average_buffers:
            tensors += [one for one in self.model.buffers() if one.is_floating_point()]
        if self.average_momentum:
            for parameter in self.replica.parameters.values():
                state = self.optimizer.state.get(parameter, {})
                tensors += [
                    one
                    for one in state.values()
                    if isinstance(one, Tensor) and one.shape == parameter.shape
                ]
        return [tensor for tensor in tensors if tensor.numel()]

    def _finish(self) -> None:
        self.synchronise()

    def _keep_state(self) -> None:
        super()._keep_state()
        self.replica.counts |= {
            "num_local_steps": self._num_local_steps,
            "num_warm_steps": self._num_warm_steps,
        }
        self.replica.kept = {
            StateKey(kind, name, side=RHYTHM): tensor
            for kind, tensors in (("anchor", self._point), ("velocity", self._velocity))
            for name, tensor in tensors.items()
        }

    def _restore_state(self) -> None:
        super()._restore_state()
        self._num_local_steps = self.replica.counts.get("num_local_steps", 0)
        self._num_warm_steps = self.replica.counts.get("num_warm_steps", 0)
        for kind, tensors in (("anchor", self._point), ("velocity", self._velocity)):
            saved = {
                key.name: value for key, value in self.replica.kept.items() if key.kind == kind
            }
            if saved:
                tensors.update({name: value.clone() for name, value in saved.items()})


def check_change_codec(codec: Properties) -> None:
    """Raise SpecError for a compressor that would lose most of every change for good."""
    if codec.sparse and not codec.keeps_residuals and not codec.unbiased:
        spec = getattr(codec, "spec", "")
        raise SpecError(
            spec,
            "would lose most of every change for good, since changes are sent only once",
            f"error feedback around it, {spec}+ef; or a compressor that sends all values, such as "
            "uniform:3/max/512+ef",
        )


def _bucket_of_ddp(rhythm: LocalSGD, bucket: GradBucket) -> Future[Tensor]:
    return rhythm.average_bucket(bucket)

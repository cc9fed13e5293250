"""Writes an event for each step or round: bytes, seconds by kind of work, residual norms."""

import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from talka.compress import Layout
from talka.events import RUN_DIR_VARIABLE, Measured, Predicted, Stream
from talka.events.current import own_stream
from talka.exchange import Exchange, Meter, Price, predict
from talka.network import Network
from talka.train.codec_rates import kept_rates
from talka.train.events import ResidualNorm, RoundDone, StepDone

NORM_EVERY = 50
"""Steps between two residual norms, and between two comparisons with the prediction."""


class RoundInfo(NamedTuple):
    """Number, length and delay of a round, as a rhythm reports it."""

    rhythm: str
    number: int
    """Number of the round; the first is 1."""
    num_steps: int
    """Number of optimizer steps since the last round."""
    staleness: int = 0
    """Number of steps by which the result is applied late."""


class Computed(NamedTuple):
    """Computing of a worker since its last round."""

    seconds: float
    ended_s: float
    """Time at which it ended, by `time.perf_counter`."""


class Journal:
    """Times the steps of one worker and, if there is a run directory, writes them as events.

    The thread of the training calls `waits` and `resumes`, that of the exchange calls `ends`.
    """

    def __init__(self, run_dir: str | Path | None, network: Network | None) -> None:
        own = None if run_dir is not None else own_stream().stream
        self._own = own if own is not None and own.is_recorded else None
        self._run_dir = run_dir or os.environ.get(RUN_DIR_VARIABLE)
        self._network = network
        self._stream: Stream | None = None
        self.num_steps, self.compute_s = 0, 0.0
        self.total = Meter()
        self._counted: dict[Exchange, Meter] = {}
        self._prices: dict[tuple[Exchange, int, int], Price] = {}  # since the last comparison
        self._predicted_bytes, self._predicted_s = 0.0, 0.0
        self._pending = Meter()
        self._resumed_s = time.perf_counter()
        self._is_first = True
        self._what, self._reason = "step", ""

    def waits(self) -> Computed:
        """Note that all was handed over, and return the computing before that."""
        now = time.perf_counter()
        compute_s = now - self._resumed_s
        self._resumed_s = now
        if not self._is_first:  # the time before the first step includes the start
            self.compute_s += compute_s
        self._is_first = False
        return Computed(compute_s, now)

    def resumes(self) -> None:
        """Note that the training continues."""
        self._resumed_s = time.perf_counter()

    def ends(
        self, used: Mapping[Exchange, Layout], computed: Computed, info: RoundInfo | None
    ) -> None:
        """Count a step or round, and write its event.

        `used` has the exchanges of the step, each with the layout of all that it averaged.
        """
        self.num_steps += 1
        delta = Meter()
        for exchange in used:
            delta += self._count(exchange)
        if self._own is not None or self._run_dir is not None:
            self._write(used, delta, computed, info)

    def _count(self, exchange: Exchange) -> Meter:
        """Return what the exchange's meter grew by since the last call for the same exchange."""
        meter = exchange.meter.copy()
        delta = meter - self._counted.get(exchange, Meter())
        self._counted[exchange] = meter
        self.total += delta
        self._pending += delta
        return delta

    def _write(
        self,
        used: Mapping[Exchange, Layout],
        delta: Meter,
        computed: Computed,
        info: RoundInfo | None,
    ) -> None:
        main = next(iter(used))
        stream = self._open(main)
        for exchange, layout in used.items():
            price = self._price(exchange, layout)
            self._predicted_bytes += price.sent_bytes
            self._predicted_s += price.seconds
        self._what = "step" if info is None else "round"
        self._reason = f"{main.spec}: {self._price(main, used[main]).reason}"
        after_s = time.perf_counter() - computed.ended_s
        seconds = (computed.seconds, delta.encode_s, delta.wait_s, delta.decode_s, after_s)
        if info is None:
            stream.emit(StepDone(self.num_steps, delta.sent_bytes, delta.received_bytes, *seconds))
        else:
            stream.emit(RoundDone(*info, delta.sent_bytes, delta.received_bytes, *seconds))
        if self.num_steps % NORM_EVERY == 1:
            norm = main.residual_norm()
            stream.emit(ResidualNorm(self.num_steps, norm if math.isfinite(norm) else None))
        if self.num_steps % NORM_EVERY == 0:
            self._compare(main, stream)

    def _price(self, exchange: Exchange, layout: Layout) -> Price:
        key = (exchange, len(layout), sum(piece.num_values for piece in layout))
        if key not in self._prices:
            rates = kept_rates(exchange.spec)
            self._prices[key] = predict(exchange, layout, self._network, rates)
        return self._prices[key]

    def _open(self, exchange: Exchange) -> Stream:
        """Return the stream of this rank, or a file in the run directory that was given."""
        if self._stream is None:
            if self._own is not None:
                self._stream = self._own
            else:
                assert self._run_dir is not None
                folder = Path(self._run_dir)
                folder.mkdir(parents=True, exist_ok=True)
                self._stream = Stream(folder / f"events.rank-{exchange.rank}.jsonl")
        return self._stream

    def _compare(self, exchange: Exchange, stream: Stream) -> None:
        """Write the prediction for all steps so far, and what was measured since the last call."""
        cost_id = f"train/{self._what}/exchange"
        if exchange.rank == 0:
            reason = f"{self.num_steps} {self._what}s, {self._reason}"
            seconds = None if self._network is None else self._predicted_s
            stream.emit(Predicted(cost_id, self._predicted_bytes, seconds, reason))
        self._prices.clear()  # sizes of payloads follow recent values
        delta, self._pending = self._pending, Meter()
        seconds = delta.encode_s + delta.wait_s + delta.decode_s
        stream.emit(Measured(cost_id, delta.sent_bytes, seconds))

    def close(self, exchange: Exchange) -> None:
        """Write the comparison of the last steps, and close the file."""
        if self._stream is not None:
            if self._pending.num_calls:
                self._compare(exchange, self._stream)
            if self._own is None:
                self._stream.close()
            self._stream = None

"""Writes an event for each training step: bytes, seconds by kind of work, residual norms."""

import math
import time
from pathlib import Path

from talka.compress import Layout
from talka.events import Measured, Predicted, Stream
from talka.exchange import Exchange, Meter, Price, predict
from talka.network import Network
from talka.train.codec_rates import kept_rates
from talka.train.events import ResidualNorm, StepDone

NORM_EVERY = 50
"""Steps between two residual norms, and between two comparisons with the prediction."""


class Journal:
    """Times the steps of one worker and, if there is a run directory, writes them as events.

    Called by the hook and by the exchange's thread, never by both at the same time.
    """

    def __init__(self, run_dir: str | Path | None, layout: Layout, network: Network | None) -> None:
        self._run_dir, self._layout, self._network = run_dir, layout, network
        self._stream: Stream | None = None
        self.num_steps, self.compute_s = 0, 0.0
        self.total = Meter()
        self._counted: dict[Exchange, Meter] = {}
        self._prices: dict[Exchange, Price] = {}
        self._predicted_bytes, self._predicted_s = 0.0, 0.0
        self._pending = Meter()
        self._ended_s = self._waits_s = time.perf_counter()

    def step_waits(self) -> None:
        """Note that the last bucket was handed over: from now on the backward pass waits."""
        self._waits_s = time.perf_counter()

    def step_ends(self, exchange: Exchange) -> None:
        """Count a step, and write its event."""
        now = time.perf_counter()
        compute_s = self._waits_s - self._ended_s
        if self.num_steps:  # the time before the first step includes the start
            self.compute_s += compute_s
        self._ended_s = now
        self.num_steps += 1
        delta = self._count(exchange)
        if self._run_dir is not None:
            self._write(exchange, delta, compute_s)

    def _count(self, exchange: Exchange) -> Meter:
        """Return what the exchange's meter grew by since the last call for the same exchange.

        A hook may switch to another exchange, or use another one during warm-up.
        """
        meter = exchange.meter.copy()
        delta = meter - self._counted.get(exchange, Meter())
        self._counted[exchange] = meter
        self.total += delta
        self._pending += delta
        return delta

    def _write(self, exchange: Exchange, delta: Meter, compute_s: float) -> None:
        stream = self._open(exchange)
        if exchange not in self._prices:
            rates = kept_rates(exchange.spec)
            self._prices[exchange] = predict(exchange, self._layout, self._network, rates)
        price = self._prices[exchange]
        self._predicted_bytes += price.sent_bytes
        self._predicted_s += price.seconds
        stream.emit(
            StepDone(
                self.num_steps,
                delta.sent_bytes,
                delta.received_bytes,
                compute_s,
                delta.encode_s,
                delta.wait_s,
                delta.decode_s,
            )
        )
        if self.num_steps % NORM_EVERY == 1:
            norm = exchange.residual_norm()
            stream.emit(ResidualNorm(self.num_steps, norm if math.isfinite(norm) else None))
        if self.num_steps % NORM_EVERY == 0:
            self._compare(exchange, stream)

    def _open(self, exchange: Exchange) -> Stream:
        if self._stream is None:
            assert self._run_dir is not None
            folder = Path(self._run_dir)
            folder.mkdir(parents=True, exist_ok=True)
            self._stream = Stream(folder / f"events.rank-{exchange.rank}.jsonl")
        return self._stream

    def _compare(self, exchange: Exchange, stream: Stream) -> None:
        """Write the prediction for all steps so far, and what was measured since the last call."""
        if exchange.rank == 0:
            reason = f"{self.num_steps} steps, {exchange.spec}: {self._prices[exchange].reason}"
            seconds = None if self._network is None else self._predicted_s
            stream.emit(Predicted("train/step/exchange", self._predicted_bytes, seconds, reason))
        delta, self._pending = self._pending, Meter()
        seconds = delta.encode_s + delta.wait_s + delta.decode_s
        stream.emit(Measured("train/step/exchange", delta.sent_bytes, seconds))

    def close(self, exchange: Exchange) -> None:
        """Write the comparison of the last steps, and close the file."""
        if self._stream is not None:
            if self._pending.num_calls:
                self._compare(exchange, self._stream)
            self._stream.close()
            self._stream = None

"""What each training step did, as events, if there is a run directory."""

import math
import time
from pathlib import Path

from talka.compress import Layout
from talka.events import Measured, Predicted, ResidualNorm, StepDone, Stream
from talka.exchange import Exchange, Meter, Prediction, predict
from talka.network import Network

NORM_EVERY = 50


class Journal:
    """Times the steps of one worker. Called by the hook and by the exchange's thread, in turns."""

    def __init__(self, run_dir: str | Path | None, layout: Layout, network: Network | None) -> None:
        self._run_dir, self._layout, self._network = run_dir, layout, network
        self._stream: Stream | None = None
        self.num_steps, self.compute_s = 0, 0.0
        self.total = Meter()
        self._counted: dict[Exchange, Meter] = {}
        self._predictions: dict[Exchange, Prediction] = {}
        self._predicted_bytes, self._predicted_s = 0.0, 0.0
        self._untold = Meter()
        self._ended_s = self._waits_s = time.perf_counter()

    def step_waits(self) -> None:
        """The last bucket was handed over: from now on the backward pass has to wait."""
        self._waits_s = time.perf_counter()

    def step_ends(self, exchange: Exchange) -> None:
        now = time.perf_counter()
        compute_s = self._waits_s - self._ended_s
        if self.num_steps:  # before the first one there was more than a step
            self.compute_s += compute_s
        self._ended_s = now
        self.num_steps += 1
        did = self._count(exchange)
        if self._run_dir is not None:
            self._write(exchange, did, compute_s)

    def _count(self, exchange: Exchange) -> Meter:
        """What this exchange did since it was asked last: hooks may swap it, or warm up by another."""
        meter = exchange.meter.copy()
        did = meter - self._counted.get(exchange, Meter())
        self._counted[exchange] = meter
        self.total += did
        self._untold += did
        return did

    def _write(self, exchange: Exchange, did: Meter, compute_s: float) -> None:
        stream = self._open(exchange)
        if exchange not in self._predictions:
            self._predictions[exchange] = predict(exchange, self._layout, self._network)
        predicted = self._predictions[exchange]
        self._predicted_bytes += predicted.sent_bytes
        self._predicted_s += predicted.seconds or 0.0
        stream.emit(
            StepDone(
                self.num_steps,
                did.sent_bytes,
                did.received_bytes,
                compute_s,
                did.encode_s,
                did.wait_s,
                did.decode_s,
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
        """Predicted beside measured, both for all steps so far."""
        if exchange.rank == 0:
            reason = (
                f"{self.num_steps} steps, {exchange.spec}: {self._predictions[exchange].reason}"
            )
            seconds = None if self._network is None else self._predicted_s
            stream.emit(Predicted("step/exchange", self._predicted_bytes, seconds, reason))
        did, self._untold = self._untold, Meter()
        stream.emit(
            Measured("step/exchange", did.sent_bytes, did.encode_s + did.wait_s + did.decode_s)
        )

    def close(self, exchange: Exchange) -> None:
        if self._stream is not None:
            if self._untold.num_calls:
                self._compare(exchange, self._stream)
            self._stream.close()
            self._stream = None

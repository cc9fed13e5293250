"""The driver's side of a lab: build it, run commands on its hosts, read the traffic of its links."""

import contextlib
import math
import os
import select
import time
from collections.abc import Iterator, Sequence
from typing import Any

from talka.engine.local.processes import Child, WorkerDied, how_it_ended
from talka.errors import GangError, InvalidValueError, LabError
from talka.lab import quotas
from talka.lab.base import (
    HostResult,
    LabConfig,
    LabResult,
    LabRunOptions,
    RankResult,
    address_of,
    check_rate,
)
from talka.lab.links import Traffic
from talka.lab.logs import Logs
from talka.lab.ranks import check_command, rank_command, rank_environment
from talka.lab.recording import events_at_end, events_at_start
from talka.lab.watch import Blame, CutLink, Watch

_CLOSE_TIMEOUT_S = 10.0


class Lab:
    """Hosts on this machine that exist as long as the `with` block.

    Commands run one after another; between them, rates may be changed, and links cut and restored. Not
    thread-safe.
    """

    def __init__(self, config: LabConfig) -> None:
        self.config = config
        self.rates_bits_per_s = list(config.rates_bits_per_s)
        self._has_quotas = any(cores is not None for cores in config.cores_by_host)
        self._cut: set[int] = set()
        """Hosts whose link is cut."""
        self._num_runs = 0
        self._child: Child | None = None
        self._ended: list[tuple[int, int]] = []
        """Ranks and exit codes that were received and not yet handled."""

    def __enter__(self) -> "Lab":
        self._child = Child("talka.lab.keeper", under=())  # it ends its processes itself
        with self._closed_by_any_error():
            self._ask(
                {
                    "do": "build",
                    "rates": self.rates_bits_per_s,
                    "latency_s": self.config.latency_s,
                    "cores": self.config.cores_by_host,
                }
            )
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End all hosts and all their processes; return when they have ended."""
        if self._child is None:
            return
        child, self._child = self._child, None
        child.channel.close()  # the lab's first process then ends, and with it all others
        poll = select.poll()
        poll.register(child.pidfd, select.POLLIN)
        poll.poll(_CLOSE_TIMEOUT_S * 1000)
        child.end()
        if self._has_quotas:
            quotas.remove_stale()  # the keeper removes its groups unless it was killed

    def set_rate(self, rate_bits_per_s: float, *, host: int | None = None) -> None:
        """Change the rate of one host's link, or of all links."""
        check_rate(rate_bits_per_s)
        if host is not None:
            self._check_host(host)
        for changed in range(self.config.num_hosts) if host is None else [host]:
            self.rates_bits_per_s[changed] = rate_bits_per_s
        self._ask({"do": "limit", "rates": self.rates_bits_per_s})

    def cut(self, host: int) -> None:
        """Cut the link of a host: packets are dropped in both directions, without an error."""
        self._check_host(host)
        if host not in self._cut:
            self._ask({"do": "connect", "host": host, "is_connected": False})
            self._cut.add(host)

    def restore(self, host: int) -> None:
        """Connect a host again whose link was cut."""
        self._check_host(host)
        if host in self._cut:
            self._ask({"do": "connect", "host": host, "is_connected": True})
            self._cut.remove(host)

    def traffic(self) -> list[Traffic]:
        """Return the bytes through each host's link since the lab was built."""
        return [Traffic(*pair) for pair in self._ask({"do": "count"})["traffic"]]

    def run(
        self, command: Sequence[str], options: LabRunOptions | None = None, *, check: bool = True
    ) -> LabResult:
        """Run a command once per rank and wait for all; with `check`, raise if a rank failed.

        Any other error, including Ctrl+C, closes the lab.
        """
        options = LabRunOptions() if options is None else options
        watch, frames = self._planned(command, options)
        self._num_runs += 1
        logs = Logs(options.logs, self.config.num_ranks, show=options.show)
        if options.events is not None:
            planned = events_at_start(self.config, self.rates_bits_per_s, options.troubles)
            for event in planned:
                options.events.emit(event)
        with logs, self._closed_by_any_error():
            before = self.traffic()
            start_s = time.monotonic()
            self._start(frames, logs)
            self._follow(watch, logs)
            seconds = time.monotonic() - start_s
            self._ask({"do": "finish"})
            logs.follow()
            if watch.blame is not None:
                logs.keep()
            result = LabResult(
                self._host_results(before),
                self._rank_results(watch, logs),
                seconds,
                self._failure(watch.blame, logs, options),
            )
        if options.events is not None:
            for event in events_at_end(result):
                options.events.emit(event)
        if check:
            result.check()
        return result

    def check(self, command: Sequence[str], options: LabRunOptions | None = None) -> None:
        """Raise InvalidValueError if a command or its options are invalid, before the lab is built."""
        self._planned(command, LabRunOptions() if options is None else options)

    def _planned(
        self, command: Sequence[str], options: LabRunOptions
    ) -> tuple[Watch, list[dict[str, Any]]]:
        watch = Watch(
            self.config.num_hosts,
            options.troubles,
            ranks_per_host=self.config.ranks_per_host,
            timeout_s=options.timeout_s,
        )
        base = {**os.environ, **options.environment}
        frames = []
        for rank in range(self.config.num_ranks):
            environment = rank_environment(self.config, rank, run=self._num_runs, base=base)
            filled = rank_command(command, self.config, rank)
            check_command(filled, environment)
            frames.append(
                {
                    "do": "start",
                    "rank": rank,
                    "host": self.config.host_of(rank),
                    "command": [os.fsencode(part) for part in filled],
                    "environment": {os.fsencode(k): os.fsencode(v) for k, v in environment.items()},
                }
            )
        return watch, frames

    def _start(self, frames: list[dict[str, Any]], logs: Logs) -> None:
        for frame in frames:
            answer = self._ask(frame, [logs.descriptor(frame["rank"])])
            if "cannot_start" in answer:
                allowed = f"a program that this machine can start ({answer['cannot_start']})"
                raise InvalidValueError("the command", os.fsdecode(frame["command"][0]), allowed)
        logs.close_inlet()

    def _follow(self, watch: Watch, logs: Logs) -> None:
        """Execute what the watch returns, and show output, until all ranks have ended."""
        child, start_s = self._lab_process(), time.monotonic()
        poll = select.poll()
        for descriptor in (child.channel.fileno(), child.pidfd, *logs.live):
            poll.register(descriptor, select.POLLIN)
        while True:
            now_s = time.monotonic() - start_s
            for rank, code in self._ended:
                watch.ended(rank, code, now_s=now_s)
            self._ended.clear()
            for instruction in watch.advance(now_s):
                if isinstance(instruction, CutLink):
                    self.cut(instruction.host)
                else:
                    rank, signum = instruction
                    child.send({"do": "signal", "rank": rank, "signal": int(signum)})
            if watch.is_done:
                return
            if self._ended:  # received during a cut
                continue
            next_s = watch.next_s
            wait_ms = None if next_s is None else max(0, math.ceil((next_s - now_s) * 1000))
            ready = {descriptor for descriptor, _ in poll.poll(wait_ms)}
            if ready & set(logs.live) and not logs.follow():
                poll.unregister(logs.live[0])
            if ready - set(logs.live):
                self._receive(child)

    def _host_results(self, before: list[Traffic]) -> tuple[HostResult, ...]:
        counts = zip(self.rates_bits_per_s, before, self.traffic(), strict=True)
        return tuple(
            HostResult(
                host,
                address_of(host),
                rate,
                after.sent_bytes - earlier.sent_bytes,
                after.received_bytes - earlier.received_bytes,
            )
            for host, (rate, earlier, after) in enumerate(counts)
        )

    def _rank_results(self, watch: Watch, logs: Logs) -> tuple[RankResult, ...]:
        return tuple(
            RankResult(rank, self.config.host_of(rank), watch.exit_codes[rank], logs.path(rank))
            for rank in range(self.config.num_ranks)
        )

    def _failure(self, blame: Blame | None, logs: Logs, options: LabRunOptions) -> GangError | None:
        if blame is None:
            return None
        if blame.exit_code is None:
            how = f"had not finished after {options.timeout_s:g} s"
        elif blame.exit_code < 0:
            how = f"was {how_it_ended(blame.exit_code)}"
        else:
            how = f"ended with exit code {blame.exit_code}"
        how += f" (log: {logs.path(blame.rank)})"
        return GangError(blame.rank, self.config.num_ranks, how, logs.tail(blame.rank))

    def _check_host(self, host: int) -> None:
        num_hosts = self.config.num_hosts
        if not 0 <= host < num_hosts:
            raise InvalidValueError("host", host, f"a host from 0 to {num_hosts - 1}")

    # Communication with the lab's first process.

    def _ask(self, frame: dict[str, Any], descriptors: list[int] | None = None) -> dict[str, Any]:
        child = self._lab_process()
        with contextlib.suppress(WorkerDied):  # receiving gives its last frames, or how it ended
            child.send(frame, descriptors)
        while (answer := self._receive(child)) is None:
            pass
        return answer

    def _receive(self, child: Child) -> dict[str, Any] | None:
        """Receive one frame; return an answer, or None for the report of a rank that ended."""
        try:
            frame: dict[str, Any] = child.receive()[0]
        except WorkerDied as death:
            raise LabError(f"its first process ended ({death})", "Start another lab.") from None
        if "problem" in frame:
            raise LabError(*frame["problem"])
        if "ended" not in frame:
            return frame
        self._ended.append((frame["ended"], frame["code"]))
        return None

    def _lab_process(self) -> Child:
        if self._child is None:
            raise LabError("it is closed", "Use it inside `with Lab(config) as lab:`.")
        return self._child

    @contextlib.contextmanager
    def _closed_by_any_error(self) -> Iterator[None]:
        """Close the lab on any error: a frame may have been read halfway, so no other can be."""
        with contextlib.ExitStack() as on_error:
            on_error.callback(self.close)
            yield
            on_error.pop_all()


def run_lab(
    config: LabConfig,
    command: Sequence[str],
    options: LabRunOptions | None = None,
    *,
    check: bool = True,
) -> LabResult:
    """Build a lab, run one command in it, and remove it."""
    lab = Lab(config)
    lab.check(command, options)
    with lab:
        return lab.run(command, options, check=check)

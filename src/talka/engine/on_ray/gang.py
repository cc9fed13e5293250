"""A gang on Ray: one actor per rank, a gloo process group between their machines."""

import fcntl
import os
import socket
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import (
    NodeAffinitySchedulingStrategy,
    PlacementGroupSchedulingStrategy,
)

from talka.engine import storage
from talka.engine.calls import TaskProblem, apply, explain
from talka.engine.gangs.gang import GRACE_S, TAIL_BYTES, Sign, culprit
from talka.engine.gangs.relay import EVERY_S, Relay
from talka.engine.gangs.worker import GangWorker
from talka.engine.on_ray.collector import Collector, send
from talka.engine.on_ray.task import stored_form, value_of
from talka.engine.shipping import ship, unship
from talka.errors import ClusterError, GangError
from talka.events import Stream
from talka.guard import Caught

_PLACE_TIMEOUT_S = 60
_SIOCGIFADDR = 0x8915


class _Place(NamedTuple):
    """Machine and log file of a rank."""

    machine: str
    address: str
    log_path: str


class _Rank:
    """One rank of a gang: a Ray actor, in a separate process on some machine of the cluster."""

    def __init__(self, rank: int, size: int) -> None:
        os.dup2(1, 2)  # one log, as Ray keeps standard error in a second file
        self._rank, self._size = rank, size
        self._store: Any = None

    def where(self) -> _Place:
        """Return the machine and the log file of this rank."""
        context = ray.get_runtime_context()
        log_path = os.readlink("/proc/self/fd/1")
        return _Place(context.get_node_id(), ray.util.get_node_ip_address(), log_path)

    def open_store(self) -> int:
        """Open the store of the gang on this machine and return its port."""
        self._store = open_store(ray.util.get_node_ip_address(), self._size)
        return int(self._store.port)

    def run(self, shipped: bytes, host: str, port: int, store: Any) -> Any:
        """Join the gang and call `main`; return its result in storage form, or a `TaskProblem`.

        Events are sent to the actor `store`, all of them before this returns.
        """
        relay = Relay(lambda batch: send(store, self._rank, batch))
        try:
            return self._run(shipped, host, port, Stream(lines_to=relay.add))
        finally:
            relay.close()

    def _run(self, shipped: bytes, host: str, port: int, events: Stream) -> Any:
        function: Any = None
        with Caught() as caught:
            import torch.distributed as dist

            os.environ["GLOO_SOCKET_IFNAME"] = interface_of(ray.util.get_node_ip_address())
            store = self._store or join_store(host, port, self._size)
            dist.init_process_group("gloo", store=store, rank=self._rank, world_size=self._size)
            function, args = unship(shipped)
            worker = GangWorker(
                self._rank, self._size, events, Path(os.readlink("/proc/self/fd/1"))
            )
            return stored_form(storage.to_storable(apply(function, (worker, *args))))
        assert caught.error is not None
        return explain(caught.error, function, ())


def ray_gang(
    main: Callable[..., Any],
    args: Sequence[Any],
    *,
    size: int,
    timeout_s: float | None,
    events: Stream,
) -> list[Any]:
    """Run a gang on the machines of the cluster and return the results in order of rank."""
    shipped = ship(main, (main, tuple(args)))
    place = _place(size)
    ranks: list[Any] = []
    collector = Collector(events)
    try:
        strategy = PlacementGroupSchedulingStrategy(placement_group=place)
        actor = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_Rank)
        ranks = [
            actor.options(scheduling_strategy=strategy).remote(rank, size) for rank in range(size)
        ]
        places = ray.get([rank.where.remote() for rank in ranks])
        port = ray.get(ranks[0].open_store.remote())
        host, store = places[0].address, collector.store
        running = [rank.run.remote(shipped, host, port, store) for rank in ranks]
        return _collect(running, places, timeout_s, collector)
    finally:
        for rank in ranks:
            ray.kill(rank)
        remove_placement_group(place)
        collector.close()


def _place(size: int) -> Any:
    """Reserve a core for each rank, spread over all machines."""
    num_cores = int(ray.cluster_resources().get("CPU", 0))
    if num_cores < size:
        problem = f"a gang of {size} ranks needs {size} cores, but the cluster has {num_cores}"
        raise ClusterError("this cluster", problem, "Use fewer ranks or add machines.")
    place = placement_group([{"CPU": 1}] * size, strategy="SPREAD")
    if not place.wait(_PLACE_TIMEOUT_S):
        remove_placement_group(place)
        problem = f"fewer than {size} cores became free within {_PLACE_TIMEOUT_S} s"
        raise ClusterError("this cluster", problem, "Wait for other jobs to end.")
    return place


def _collect(
    running: list[Any], places: list[_Place], timeout_s: float | None, collector: Collector
) -> list[Any]:
    size = len(running)
    results: dict[int, Any] = {}
    signs: list[Sign] = []
    rank_of = {ref: rank for rank, ref in enumerate(running)}
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    pending = list(running)
    while pending:
        left_s = EVERY_S if deadline is None else max(0.0, deadline - time.monotonic())
        ready, pending = ray.wait(pending, num_returns=1, timeout=min(left_s, EVERY_S))
        collector.collect()
        if not ready and left_s > 0:
            continue
        if not ready:
            break
        rank = rank_of[ready[0]]
        sign = _outcome(rank, ready[0], results)
        if sign is not None:
            signs.append(sign)
            deadline = min(deadline or float("inf"), time.monotonic() + GRACE_S)
    if not signs and pending:
        late = min(rank_of[ref] for ref in pending)
        signs = [Sign(late, 0.0, died=False, how=f"had not finished after {timeout_s:g} s")]
    if signs:
        first = culprit(signs)
        raise GangError(first.rank, size, first.how, _tail(places[first.rank]))
    return [results[rank] for rank in range(size)]


def _outcome(rank: int, ref: Any, results: dict[int, Any]) -> Sign | None:
    try:
        outcome = ray.get(ref)
    except RayTaskError as error:
        return Sign(rank, time.monotonic(), died=False, how=f"raised {error.cause}")
    except RayError as error:
        why = str(error).strip().partition("\n")[0].rstrip(".")
        return Sign(rank, time.monotonic(), died=True, how=f"died ({why})")
    if isinstance(outcome, TaskProblem):
        how = f"raised {outcome.cause}\n  at {outcome.line}"
        return Sign(rank, time.monotonic(), died=False, how=how)
    results[rank] = value_of(outcome)
    return None


def _tail(place: _Place) -> str:
    """Return the end of the log of a rank, read on its machine if that still responds."""
    nearby = NodeAffinitySchedulingStrategy(place.machine, soft=False)
    reader = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=nearby)(_read_tail)
    try:
        return str(ray.get(reader.remote(place.log_path), timeout=5))
    except (RayError, GetTimeoutError):
        return f"(the machine with {place.log_path} does not respond)"


def _read_tail(path: str) -> str:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        return f"({path}: {error.strerror})"
    return data[-TAIL_BYTES:].decode(errors="replace")


def open_store(address: str, size: int) -> Any:
    """Open the store through which ranks find each other, on this address only.

    By default it would listen on all addresses.
    """
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # not in its __all__

    listener = socket.create_server((address, 0))
    port = listener.getsockname()[1]
    return TCPStore(
        address,
        port,
        size,
        is_master=True,
        wait_for_workers=False,
        master_listen_fd=listener.detach(),
    )


def join_store(address: str, port: int, size: int) -> Any:
    """Connect to a store that another rank opened."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # not in its __all__

    return TCPStore(address, port, size, is_master=False)


def interface_of(address: str) -> str:
    """Return the network interface with this address, so that gloo need not guess it.

    >>> interface_of("127.0.0.1")
    'lo'
    """
    if address.startswith("127."):
        return "lo"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode())
            try:
                answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue  # an interface without an address
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    problem = "no network interface of this machine has this address"
    raise ClusterError(address, problem, "Start Ray with an address of this machine.")

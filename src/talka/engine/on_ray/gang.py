"""The ranks of a gang on the machines of a Ray cluster, as the thread of the gang sees them.

    placement group: a core per rank -> an actor per machine (`host.py`), which forks its ranks

The driver has one call of `take` open at each actor; it returns when a rank has sent something. An
actor that dies, alone or with its machine, ends that call, and all of its ranks count as dead.
"""

import contextlib
import secrets
import time
from pathlib import Path
from typing import Any, Final

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError
from ray.util.placement_group import (
    PlacementGroup,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from talka.engine.gangs.fork_server import TAIL_BYTES
from talka.engine.gangs.local import hellos_of
from talka.engine.gangs.part import RankMessage
from talka.engine.gangs.spec import GangSpec
from talka.engine.on_ray.collector import Collector
from talka.engine.on_ray.host import MachineHosts
from talka.engine.on_ray.task import value_of
from talka.errors import ClusterError, TalkaError
from talka.events import Stream

_PLACE_TIMEOUT_S: Final = 60.0
_START_TIMEOUT_S: Final = 120.0
_STOP_TIMEOUT_S: Final = 20.0
_TAIL_TIMEOUT_S: Final = 5.0
_LOOK_S: Final = 0.1  # seconds between two looks at whether the gang was stopped


class RayRanks:
    """The ranks of one gang on Ray; implements `Ranks`."""

    def __init__(self, spec: GangSpec, events: Stream, hosts: MachineHosts) -> None:
        check_cores(spec.size)
        self._spec, self._hosts = spec, hosts
        self._shipped = spec.shipped()
        self._collector = Collector(events)
        self._name = secrets.token_hex(6)
        self._place: PlacementGroup | None = None
        self._machines: dict[int, str] = {}
        """Machine of each rank."""
        self._actors: dict[str, Any] = {}
        self._log_paths: dict[int, str] = {}
        self._takes: dict[Any, str] = {}
        """Open call of `take` -> machine."""
        self._leaving: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        self._is_awake = False

    def start(self) -> None:
        """Reserve a core for each rank, spread over all machines, and start the ranks."""
        self._place = placement_group([{"CPU": 1}] * self._spec.size, strategy="SPREAD")
        self._wait_for_place(self._place)
        places = placement_group_table(self._place)["bundles_to_node_id"]
        self._machines = {rank: places[rank] for rank in range(self._spec.size)}
        hellos = hellos_of(self._spec, "", is_local=False)
        machines = list(dict.fromkeys(self._machines.values()))
        shipped = ray.put(self._shipped) if len(machines) > 1 else self._shipped
        starting = {machine: self._start_on(machine, hellos, shipped) for machine in machines}
        for machine, call in starting.items():
            try:
                self._log_paths |= self._got(call)
            except RayError:  # the actor of an earlier gang has died since
                self._hosts.forget(machine, self._actors[machine])
                with contextlib.suppress(RayError):  # `take` fails, too, and reports its ranks
                    self._log_paths |= self._got(self._start_on(machine, hellos, shipped))
            self._take(machine)

    def receive(self, timeout_s: float | None) -> list[RankMessage]:
        """Wait for messages of any machine; the time to wait is short, so that `wake` has an effect."""
        self._deliver()
        look_s = _LOOK_S if timeout_s is None else min(_LOOK_S, timeout_s)
        ready, _ = ray.wait(
            list(self._takes), num_returns=1, timeout=0 if self._is_awake else look_s
        )
        if ready and len(self._takes) > 1:  # all that are ready, not only the first
            ready, _ = ray.wait(list(self._takes), num_returns=len(self._takes), timeout=0)
        messages: list[RankMessage] = []
        for call in ready:
            messages += self._taken(call)
        self._is_awake = False
        return messages

    def send(self, rank: int, frame: dict[str, Any]) -> None:
        """Send a frame, together with others for the same machine, before the next `receive`."""
        self._leaving.setdefault(self._machines[rank], []).append((rank, frame))

    def end(self, rank: int) -> None:
        """Kill a rank."""
        self.send(rank, {"end": True})

    def wake(self) -> None:
        """Make `receive` return soon."""
        self._is_awake = True

    def tail(self, rank: int) -> str:
        """Return the end of the log of a rank, read on its machine if that still responds."""
        machine = self._machines.get(rank)
        if machine is None:
            return "(it was not started)"
        with contextlib.suppress(RayError, GetTimeoutError):
            call = self._actors[machine].tail.remote(self._name, rank)
            return str(ray.get(call, timeout=_TAIL_TIMEOUT_S))
        return _tail_without_actor(machine, self._log_paths.get(rank, "its log"))

    def close(self) -> None:
        """End all ranks, wait until they have ended, and release their cores."""
        self._deliver()
        stopping = [actor.stop.remote(self._name) for actor in self._actors.values()]
        if stopping:
            stopped, _ = ray.wait(stopping, num_returns=len(stopping), timeout=_STOP_TIMEOUT_S)
            for call in stopped:
                with contextlib.suppress(RayError):  # its machine has died
                    for rank, frame in ray.get(call):
                        self._message(rank, frame)
        if self._place is not None:
            remove_placement_group(self._place)
        self._collector.close()

    def _ranks_on(self, machine: str) -> list[int]:
        return [rank for rank, own in self._machines.items() if own == machine]

    def _wait_for_place(self, place: PlacementGroup) -> None:
        deadline = time.monotonic() + _PLACE_TIMEOUT_S
        while not place.wait(1):
            if self._is_awake:
                raise TalkaError("the gang was stopped before it had enough cores.")
            if time.monotonic() > deadline:
                size = self._spec.size
                problem = f"fewer than {size} cores became free within {_PLACE_TIMEOUT_S:g} s"
                raise ClusterError("this cluster", problem, "Wait for other jobs to end.")

    def _start_on(self, machine: str, hellos: list[dict[str, Any]], shipped: Any) -> Any:
        """Ask the actor of a machine to start its ranks; return the call."""
        actor = self._actors[machine] = self._hosts.of(machine)
        own = {rank: hellos[rank] for rank in self._ranks_on(machine)}
        return actor.start.remote(self._name, own, shipped, self._collector.takes_logs)

    def _got(self, call: Any) -> Any:
        """Return the result of a call, or raise the error that the actor raised."""
        try:
            return ray.get(call, timeout=_START_TIMEOUT_S)
        except RayTaskError as error:
            if isinstance(error.cause, BaseException):
                raise error.cause from None
            raise TalkaError(f"a machine of the cluster cannot run ranks: {error}") from error

    def _take(self, machine: str) -> None:
        self._takes[self._actors[machine].take.remote(self._name)] = machine

    def _taken(self, call: Any) -> list[RankMessage]:
        machine = self._takes.pop(call)
        try:
            taken = self._got(call)
        except RayError as error:
            self._hosts.forget(machine, self._actors[machine])
            why = str(error).strip().partition("\n")[0].rstrip(".")
            return [RankMessage(rank, {"died": why}) for rank in self._ranks_on(machine)]
        self._take(machine)
        return [message for each in taken if (message := self._message(*each)) is not None]

    def _message(self, rank: int, frame: dict[str, Any]) -> RankMessage | None:
        if "lines" in frame:
            self._collector.write(rank, frame["lines"])
            return None
        if "output" in frame:
            self._collector.write_log(rank, frame["output"])
            return None
        if "result" in frame:
            return RankMessage(rank, {"result": value_of(frame["result"])})
        return RankMessage(rank, frame)

    def _deliver(self) -> None:
        for machine, frames in self._leaving.items():
            self._actors[machine].deliver.remote(self._name, frames)
        self._leaving = {}


def check_cores(size: int) -> None:
    """Raise ClusterError if the cluster has fewer cores than a gang has ranks."""
    num_cores = int(ray.cluster_resources().get("CPU", 0))
    if num_cores < size:
        problem = f"a gang of {size} ranks needs {size} cores, but the cluster has {num_cores}"
        raise ClusterError("this cluster", problem, "Use fewer ranks or add machines.")


def _tail_without_actor(machine: str, log_path: str) -> str:
    if any(known["NodeID"] == machine and known["Alive"] for known in ray.nodes()):
        nearby = NodeAffinitySchedulingStrategy(machine, soft=False)
        reader = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=nearby)(_read_tail)
        with contextlib.suppress(RayError, GetTimeoutError):
            return str(ray.get(reader.remote(log_path), timeout=_TAIL_TIMEOUT_S))
    return f"(the machine with {log_path} does not respond)"


def _read_tail(path: str) -> str:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        return f"({path}: {error.strerror})"
    return data[-TAIL_BYTES:].decode(errors="replace")

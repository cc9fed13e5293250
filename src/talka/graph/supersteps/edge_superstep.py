"""One superstep of an edge program on one partition. Arrays in, arrays out: no engine, no clock.

    mails -> combined messages -> new values, who speaks -> messages along edges -> mails

Messages go along edges in one of two ways, chosen from counts: the few who speak *push* to their
targets, or all targets *pull* from their sources, with threads.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.graph.csr import Csr
from talka.graph.kernels.threads import balanced_cuts, over_ranges
from talka.graph.partitions.partition import Partition
from talka.graph.programs.compiler import kernels
from talka.graph.programs.template import BLOCK
from talka.graph.supersteps.mail import Some, mail_of_all, mail_of_some, opened, record_of
from talka.graph.supersteps.protocol import Context, Report
from talka.graph.supersteps.scratch import scratch

# An edge that is pushed along costs as much as so many that are pulled along: it writes at random,
# in one thread.
PUSH_COST: Final = 4
_MAX_LOCAL_ROUNDS: Final = 64
_NO_WEIGHTS: Final = np.empty(0, np.float64)
_ALL: Final = np.empty(0, np.uint8)  # instead of flags, where everybody speaks
_SUPERSTEP: Final = 4  # place of the number of the superstep among the arguments of kernels


@dataclass(frozen=True)
class EdgePlan:
    """What tasks need of an edge program: text and plain values."""

    text: str
    value_type: str
    message_type: str
    identity: float
    has_frontier: bool
    has_settled: bool
    is_weighted: bool
    local_rounds: bool
    """Partitions take rounds of their own between exchanges."""
    parameters: tuple[float, ...]
    aggregates: dict[str, str]
    """How each is combined."""


class State(NamedTuple):
    """Values of own vertices, and the places of those who speak; None: all do."""

    values: NDArray[Any]
    frontier: NDArray[np.uint32] | None


class EdgeSuperstep:
    """An edge program on one partition."""

    def __init__(
        self, plan: EdgePlan, partition: Partition, arrays: Sequence[NDArray[Any]], context: Context
    ) -> None:
        """`arrays` have an entry for each source slot: numbers, degrees, attributes."""
        self.plan, self.partition, self.context = plan, partition, context
        self.kernels = kernels(plan.text)
        self.message_type = np.dtype(plan.message_type)
        self.nothing = self.message_type.type(plan.identity)
        self.num_own = len(partition.own)
        self.report = Report()
        self._env: list[Any] = [
            *arrays[:3],
            np.int64(context.num_vertices),
            np.int64(context.superstep),
            *arrays[3:],
            *plan.parameters,
            *(float(context.aggregates.get(name, np.nan)) for name in plan.aggregates),
        ]

    def begin(self) -> State:
        """Values before superstep 0."""
        values = np.empty(self.num_own, self.plan.value_type)
        self._over_own("begin", values)
        if not self.plan.has_frontier:
            return self._counted(values, values, None)
        flags = np.empty(self.num_own, np.uint8)
        self._over_own("find_starters", values, flags)
        return self._counted(values, values, _places(flags))

    def receive(self, values: NDArray[Any], mails: Sequence[NDArray[Any]]) -> State:
        """Combine what arrived, by order of partitions, and update."""
        env = self._env.copy()
        # `update` gets the superstep in which the messages were sent: the number that `message` saw.
        env[_SUPERSTEP] = np.int64(self.context.superstep - 1)
        arrived = [opened(mail) for mail in mails]
        some = [(q, mail) for q, mail in enumerate(arrived) if isinstance(mail, Some)]
        if self.plan.has_frontier and all(isinstance(m, Some) or len(m) == 0 for m in arrived):
            own = self.partition.index
            routes = [
                (None if q == own else self.partition.route_from(q), mail) for q, mail in some
            ]
            return self._update_some(values, routes, env)
        return self._update_all(values, self._combined(arrived), env)

    def send(self, state: State) -> list[NDArray[Any]]:
        """Mail for every partition, this one too, where it brings what stays here."""
        rows = self._walk(state)
        if isinstance(rows, Some):
            return self._post(list(self._cut_some(rows)))
        return self._post([rows[: self.num_own], *self._cut_all(rows[self.num_own :])])

    def go_on_alone(self, state: State) -> tuple[State, list[NDArray[Any]]]:
        """Rounds of this partition alone until it has no more to say to itself, then its mail.

        What others shall hear is combined over all rounds.
        """
        remote = np.full(len(self.partition.target_mirrors), self.nothing, self.message_type)
        everywhere = np.arange(len(remote), dtype=np.uint32)
        own: Some | NDArray[Any]
        while True:
            rows = self._walk(state)
            if isinstance(rows, Some):
                split = int(np.searchsorted(rows.places, self.num_own))
                far = rows.places[split:] - np.uint32(self.num_own)
                self.kernels.merge_all(far, rows.messages[split:], remote)
                own = Some(rows.places[:split], rows.messages[:split])
                is_quiet = split == 0
            else:
                self.kernels.merge_all(everywhere, rows[self.num_own :], remote)
                own = rows[: self.num_own]
                is_quiet = bool((own == self.nothing).all())
            if is_quiet or self.report.rounds >= _MAX_LOCAL_ROUNDS:
                break
            self.report.rounds += 1
            state = self._updated(state.values, own)
        mine = own if isinstance(own, np.ndarray) else mail_of_some(own, self.num_own, self.nothing)
        return state, self._post([mine[:0] if is_quiet else mine, *self._cut_all(remote)])

    def spread(self, state: State) -> list[NDArray[Any]]:
        """Values of those who speak, for partitions that hold edges of theirs (vertex cuts)."""
        partition, mails = self.partition, []
        flags = np.zeros(self.num_own, np.bool_)
        if state.frontier is not None:
            flags[state.frontier] = True
        for start, stop in pairwise(partition.send_place_offsets):
            places = partition.send_places[start:stop]
            mail = state.values[places]
            if state.frontier is not None:
                speak = np.flatnonzero(flags[places]).astype(np.uint32)
                mail = _records(speak, mail[speak])
            mails.append(mail)
            self._count(mail)
        return mails

    def gather(self, state: State, mails: Sequence[NDArray[Any]]) -> State:
        """Own values and those that others spread, as source slots."""
        partition = self.partition
        values = np.empty(self.num_own + len(partition.source_mirrors), state.values.dtype)
        values[: self.num_own] = state.values
        frontiers = [] if state.frontier is None else [state.frontier]
        for start, mail in zip(partition.source_mirror_offsets[:-1], mails, strict=True):
            first = self.num_own + int(start)
            if mail.dtype.names is None:
                values[first : first + len(mail)] = mail
            else:
                places = mail["place"] + np.uint32(first)
                values[places] = mail["message"]
                frontiers.append(places)
        return State(values, np.concatenate(frontiers) if state.frontier is not None else None)

    # What arrived.

    def _updated(self, values: NDArray[Any], own: Some | NDArray[Any]) -> State:
        """After messages that were sent in this same superstep."""
        if isinstance(own, Some):
            return self._update_some(values, [(None, own)], self._env)
        return self._update_all(values, own, self._env)

    def _combined(self, arrived: Sequence[Some | NDArray[Any]]) -> NDArray[Any]:
        """One message for each own vertex."""
        own = arrived[self.partition.index]
        others = [(q, mail) for q, mail in enumerate(arrived) if q != self.partition.index]
        if isinstance(own, np.ndarray) and len(own) == self.num_own:
            if all(_is_empty(mail) for _, mail in others):
                return own
            combined = own.copy()
        else:
            combined = np.full(self.num_own, self.nothing, self.message_type)
            if isinstance(own, Some):
                combined[own.places] = own.messages
        for q, mail in others:
            places = self.partition.route_from(q)
            if isinstance(mail, Some):
                self.kernels.merge_all(places[mail.places], mail.messages, combined)
            elif len(mail):
                self.kernels.merge_all(places, mail, combined)
        return combined

    def _update_all(self, values: NDArray[Any], combined: NDArray[Any], env: list[Any]) -> State:
        changed = np.empty_like(values)
        flags = np.empty(self.num_own, np.uint8)
        cuts = self._even(self.num_own)
        over_ranges(self.kernels.update_all, cuts, values, combined, changed, flags, *env)
        return self._counted(values, changed, _places(flags) if self.plan.has_frontier else None)

    def _update_some(
        self,
        values: NDArray[Any],
        arrived: Sequence[tuple[NDArray[np.uint32] | None, Some]],
        env: list[Any],
    ) -> State:
        with scratch(self.num_own, self.message_type, self.nothing) as kept:
            num_touched = 0
            for places, some in arrived:
                num_touched = self.kernels.merge_some(
                    _identity(self.num_own) if places is None else places,
                    some.places, some.messages,
                    kept.combined, kept.seen, kept.touched, num_touched,
                )  # fmt: skip
            touched = np.sort(kept.touched[:num_touched])
            changed = values.copy()
            frontier = np.empty(num_touched, np.uint32)
            num_active = self.kernels.update_some(touched, kept.combined, changed, frontier, *env)
            kept.clear(num_touched)
        return self._counted(values, changed, frontier[:num_active])

    def _counted(
        self, old: NDArray[Any], values: NDArray[Any], frontier: NDArray[np.uint32] | None
    ) -> State:
        """The state, after all that the driver wants to know was counted."""
        degrees = self._env[1]
        if frontier is None:
            self.report.num_active = self.num_own
            self.report.active_edges = self.partition.out.num_entries
        else:
            self.report.num_active = len(frontier)
            self.report.active_edges = int(degrees[frontier].sum(dtype=np.int64))
        num_blocks = -(-self.num_own // BLOCK)
        for name in self.plan.aggregates:
            totals = np.empty(num_blocks, np.float64)
            kernel = getattr(self.kernels, f"total_{name}")
            over_ranges(
                kernel, self._even(num_blocks), self.num_own, old, values, totals, *self._env
            )
            self.report.totals[name] = totals.tolist()
        return State(values, frontier)

    # What is said.

    def _walk(self, state: State) -> Some | NDArray[Any]:
        """Combined messages for all target slots, or for those that got any."""
        if self._should_push(state):
            assert state.frontier is not None
            return self._push(state.values, state.frontier)
        return self._pull(state)

    def _should_push(self, state: State) -> bool:
        """From counts alone: a superstep that is run again must go the same way."""
        if state.frontier is None:
            return False
        into = self.partition.into
        num_edges = self._edges_here(state.frontier)
        if PUSH_COST * num_edges < into.num_rows:
            return True  # to pull is to look at every row; with no edges, nobody hears anything
        if PUSH_COST * num_edges >= into.num_entries:
            return False
        if not self.plan.has_settled:
            return True
        cuts = self._cuts(into.offsets[: self.num_own + 1])
        counts = over_ranges(self.kernels.count_open, cuts, state.values, into.offsets, *self._env)
        far = into.num_entries - int(into.offsets[self.num_own])
        return bool(PUSH_COST * num_edges < sum(counts) + far)

    def _edges_here(self, frontier: NDArray[np.uint32]) -> int:
        """Edges of those who speak that lie in this partition: all, but under a vertex cut."""
        if len(self.partition.source_mirrors) == 0 and len(self.partition.send_places) == 0:
            return self.report.active_edges
        offsets = self.partition.out.offsets
        return int((offsets[frontier + 1] - offsets[frontier]).sum(dtype=np.int64))

    def _push(self, values: NDArray[Any], frontier: NDArray[np.uint32]) -> Some:
        out = self.partition.out
        with scratch(self.partition.into.num_rows, self.message_type, self.nothing) as kept:
            num_touched = self.kernels.push(
                frontier, out.offsets, out.columns, self._weights(out), values,
                kept.combined, kept.seen, kept.touched, *self._env,
            )  # fmt: skip
            places = np.sort(kept.touched[:num_touched])
            messages = kept.combined[places]
            kept.clear(num_touched)
        self.report.way = "push"
        self.report.edges += self._edges_here(frontier)
        said = messages != self.nothing
        return Some(places, messages) if said.all() else Some(places[said], messages[said])

    def _pull(self, state: State) -> NDArray[Any]:
        into = self.partition.into
        flags, contributions = _ALL, np.empty(0, self.message_type)
        if not self.plan.is_weighted:
            contributions = self._contributions(state)
        elif state.frontier is not None:
            flags = np.zeros(self.partition.out.num_rows, np.uint8)
            flags[state.frontier] = 1
        combined = np.empty(into.num_rows, self.message_type)
        over_ranges(
            self.kernels.pull, self._cuts(into.offsets), into.offsets, into.columns,
            self._weights(into), state.values, flags, contributions, self.num_own, combined,
            *self._env,
        )  # fmt: skip
        self.report.way = "pull"
        self.report.edges += into.num_entries
        return combined

    def _contributions(self, state: State) -> NDArray[Any]:
        """What each source slot says, once for all of its edges; `nothing` for those who do not."""
        num_slots = self.partition.out.num_rows
        if state.frontier is None:
            said = np.empty(num_slots, self.message_type)
            over_ranges(
                self.kernels.contribute, self._even(num_slots), state.values, said, *self._env
            )
        else:
            said = np.full(num_slots, self.nothing, self.message_type)
            cuts = self._even(len(state.frontier))
            over_ranges(
                self.kernels.contribute_some, cuts, state.frontier, state.values, said, *self._env
            )
        return said

    # Routes.

    def _cut_some(self, rows: Some) -> Iterator[NDArray[Any]]:
        edges = [0, *(self.num_own + self.partition.target_mirror_offsets)]
        cuts = np.searchsorted(rows.places, edges)
        for (low, high), (start, stop) in zip(pairwise(edges), pairwise(cuts), strict=True):
            places = rows.places[start:stop] - np.uint32(low)
            yield mail_of_some(Some(places, rows.messages[start:stop]), high - low, self.nothing)

    def _cut_all(self, remote: NDArray[Any]) -> Iterator[NDArray[Any]]:
        for start, stop in pairwise(self.partition.target_mirror_offsets):
            yield mail_of_all(remote[start:stop], self.nothing)

    def _post(self, mails: list[NDArray[Any]]) -> list[NDArray[Any]]:
        """Own mail, then mail by partitions: own mail to its place."""
        own, *others = mails
        for mail in others:
            self._count(mail)
        others[self.partition.index] = own
        self.report.is_quiet = all(len(mail) == 0 for mail in others)
        return others

    def _count(self, mail: NDArray[Any]) -> None:
        self.report.num_messages += len(mail)
        self.report.sent_bytes += mail.nbytes

    # Threads.

    def _over_own(self, kernel: str, *arguments: Any) -> None:
        cuts = self._even(self.num_own)
        over_ranges(getattr(self.kernels, kernel), cuts, *arguments, *self._env)

    def _even(self, size: int) -> NDArray[np.int64]:
        """Ranges of equal length, one for each thread."""
        return np.linspace(0, size, self.context.num_threads + 1).astype(np.int64)

    def _cuts(self, offsets: NDArray[Any]) -> NDArray[np.int64]:
        return balanced_cuts(offsets, self.context.num_threads)

    def _weights(self, csr: Csr) -> NDArray[np.float64]:
        return csr.weights if csr.weights is not None and self.plan.is_weighted else _NO_WEIGHTS


def _places(flags: NDArray[np.uint8]) -> NDArray[np.uint32]:
    return np.flatnonzero(flags.view(np.bool_)).astype(np.uint32)  # bytes are slower to search


def _is_empty(mail: Some | NDArray[Any]) -> bool:
    return isinstance(mail, np.ndarray) and len(mail) == 0


def _records(places: NDArray[np.uint32], values: NDArray[Any]) -> NDArray[Any]:
    records = np.empty(len(places), record_of(values.dtype))
    records["place"], records["message"] = places, values
    return records


@lru_cache(maxsize=8)
def _identity(size: int) -> NDArray[np.uint32]:
    return np.arange(size, dtype=np.uint32)

"""One superstep of an edge program on one partition. Arrays in, arrays out: no engine, no clock.

    mails -> combined messages -> new values and frontier -> messages along edges -> mails

The frontier are the vertices that send messages. `walking.py` sends them along edges.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from talka.graph.kernels.threads import over_ranges
from talka.graph.partitions.partition import Partition
from talka.graph.programs.compiler import kernels
from talka.graph.programs.template import BLOCK
from talka.graph.supersteps.edge_plan import EdgePlan, State
from talka.graph.supersteps.mail import (
    SparseMail,
    dense_mail,
    open_edge_mail,
    record_of,
    sparse_mail,
)
from talka.graph.supersteps.protocol import Context, Report
from talka.graph.supersteps.scratch import scratch
from talka.graph.supersteps.walking import EdgeWalker, even_cuts

_MAX_LOCAL_ROUNDS: Final = 64
_SUPERSTEP: Final = 4  # index of the superstep number among the arguments of kernels


class EdgeSuperstep:
    """An edge program in one superstep on one partition."""

    def __init__(
        self, plan: EdgePlan, partition: Partition, arrays: Sequence[NDArray[Any]], context: Context
    ) -> None:
        """`arrays` have one entry per source slot: numbers, degrees, attributes."""
        self.plan, self.partition, self.context = plan, partition, context
        self.kernels = kernels(plan.text)
        self.message_type = np.dtype(plan.message_type)
        self.no_message = self.message_type.type(plan.identity)
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
        self._walker = EdgeWalker(
            plan, partition, self.kernels, self._env, self.report, num_threads=context.num_threads
        )

    def begin(self) -> State:
        """Compute initial values, and the frontier of superstep 0."""
        values = np.empty(self.num_own, self.plan.value_type)
        self._over_own("begin", values)
        if not self.plan.has_frontier:
            return self._counted(values, values, None)
        flags = np.empty(self.num_own, np.uint8)
        self._over_own("find_starters", values, flags)
        return self._counted(values, values, _places(flags))

    def receive(self, values: NDArray[Any], mails: Sequence[NDArray[Any]]) -> State:
        """Combine the received messages, in the order of partitions, and update values."""
        env = self._env.copy()
        # `update` gets the superstep in which the messages were sent, the same number as `message`.
        env[_SUPERSTEP] = np.int64(self.context.superstep - 1)
        received = [open_edge_mail(mail) for mail in mails]
        sparse = [(q, mail) for q, mail in enumerate(received) if isinstance(mail, SparseMail)]
        if self.plan.has_frontier and all(
            isinstance(mail, SparseMail) or len(mail) == 0 for mail in received
        ):
            own = self.partition.index
            routes = [
                (None if q == own else self.partition.route_from(q), mail) for q, mail in sparse
            ]
            return self._update_some(values, routes, env)
        return self._update_all(values, self._combined(received), env)

    def send(self, state: State) -> list[NDArray[Any]]:
        """Return mail for every partition; mail for this one holds the messages that stay here."""
        rows = self._walker.walk(state)
        if isinstance(rows, SparseMail):
            return self._post(list(self._split_sparse(rows)))
        return self._post([rows[: self.num_own], *self._split_dense(rows[self.num_own :])])

    def run_locally(self, state: State) -> tuple[State, list[NDArray[Any]]]:
        """Run rounds on this partition alone until it sends itself no more messages, then post.

        Messages to other partitions are combined over all rounds.
        """
        remote = np.full(len(self.partition.target_mirrors), self.no_message, self.message_type)
        all_remote_places = np.arange(len(remote), dtype=np.uint32)
        own: SparseMail | NDArray[Any]
        while True:
            rows = self._walker.walk(state)
            if isinstance(rows, SparseMail):
                split = int(np.searchsorted(rows.places, self.num_own))
                remote_places = rows.places[split:] - np.uint32(self.num_own)
                self.kernels.merge_all(remote_places, rows.messages[split:], remote)
                own = SparseMail(rows.places[:split], rows.messages[:split])
                is_quiet = split == 0
            else:
                self.kernels.merge_all(all_remote_places, rows[self.num_own :], remote)
                own = rows[: self.num_own]
                is_quiet = bool((own == self.no_message).all())
            if is_quiet or self.report.rounds >= _MAX_LOCAL_ROUNDS:
                break
            self.report.rounds += 1
            state = self._updated(state.values, own)
        if isinstance(own, SparseMail):
            own = sparse_mail(own, self.num_own, self.no_message)
        return state, self._post([own[:0] if is_quiet else own, *self._split_dense(remote)])

    def spread(self, state: State) -> list[NDArray[Any]]:
        """Return values of the frontier for partitions that hold edges of them (vertex cuts)."""
        partition, mails = self.partition, []
        flags = np.zeros(self.num_own, np.bool_)
        if state.frontier is not None:
            flags[state.frontier] = True
        for start, stop in pairwise(partition.send_place_offsets):
            places = partition.send_places[start:stop]
            mail = state.values[places]
            if state.frontier is not None:
                sent = np.flatnonzero(flags[places]).astype(np.uint32)
                mail = _records(sent, mail[sent])
            mails.append(mail)
            self._count(mail)
        return mails

    def gather(self, state: State, mails: Sequence[NDArray[Any]]) -> State:
        """Return own values and the values that other partitions spread, by source slot."""
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

    # Receiving.

    def _updated(self, values: NDArray[Any], own: SparseMail | NDArray[Any]) -> State:
        """Update values by messages that were sent in this same superstep."""
        if isinstance(own, SparseMail):
            return self._update_some(values, [(None, own)], self._env)
        return self._update_all(values, own, self._env)

    def _combined(self, received: Sequence[SparseMail | NDArray[Any]]) -> NDArray[Any]:
        """Return one combined message per own vertex."""
        own = received[self.partition.index]
        others = [(q, mail) for q, mail in enumerate(received) if q != self.partition.index]
        if isinstance(own, np.ndarray) and len(own) == self.num_own:
            if all(_is_empty(mail) for _, mail in others):
                return own
            combined = own.copy()
        else:
            combined = np.full(self.num_own, self.no_message, self.message_type)
            if isinstance(own, SparseMail):
                combined[own.places] = own.messages
        for q, mail in others:
            places = self.partition.route_from(q)
            if isinstance(mail, SparseMail):
                self.kernels.merge_all(places[mail.places], mail.messages, combined)
            elif len(mail):
                self.kernels.merge_all(places, mail, combined)
        return combined

    def _update_all(self, values: NDArray[Any], combined: NDArray[Any], env: list[Any]) -> State:
        changed = np.empty_like(values)
        flags = np.empty(self.num_own, np.uint8)
        cuts = self._even_cuts(self.num_own)
        over_ranges(self.kernels.update_all, cuts, values, combined, changed, flags, *env)
        return self._counted(values, changed, _places(flags) if self.plan.has_frontier else None)

    def _update_some(
        self,
        values: NDArray[Any],
        received: Sequence[tuple[NDArray[np.uint32] | None, SparseMail]],
        env: list[Any],
    ) -> State:
        """Update only vertices with messages; each mail comes with its route, None for own mail."""
        with scratch(self.num_own, self.message_type, self.no_message) as arrays:
            num_touched = 0
            for route, mail in received:
                num_touched = self.kernels.merge_some(
                    _all_places(self.num_own) if route is None else route,
                    mail.places, mail.messages,
                    arrays.combined, arrays.seen, arrays.touched, num_touched,
                )  # fmt: skip
            touched = np.sort(arrays.touched[:num_touched])
            changed = values.copy()
            frontier = np.empty(num_touched, np.uint32)
            num_active = self.kernels.update_some(touched, arrays.combined, changed, frontier, *env)
            arrays.clear(num_touched)
        return self._counted(values, changed, frontier[:num_active])

    def _counted(
        self, old: NDArray[Any], values: NDArray[Any], frontier: NDArray[np.uint32] | None
    ) -> State:
        """Return the new state, after writing its counts and aggregates to the report."""
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
            cuts = self._even_cuts(num_blocks)
            over_ranges(kernel, cuts, self.num_own, old, values, totals, *self._env)
            self.report.totals[name] = totals.tolist()
        return State(values, frontier)

    # Posting.

    def _split_sparse(self, rows: SparseMail) -> Iterator[NDArray[Any]]:
        """Yield own mail, then mail by partition."""
        bounds = [0, *(self.num_own + self.partition.target_mirror_offsets)]
        cuts = np.searchsorted(rows.places, bounds)
        for (low, high), (start, stop) in zip(pairwise(bounds), pairwise(cuts), strict=True):
            places = rows.places[start:stop] - np.uint32(low)
            mail = SparseMail(places, rows.messages[start:stop])
            yield sparse_mail(mail, high - low, self.no_message)

    def _split_dense(self, remote: NDArray[Any]) -> Iterator[NDArray[Any]]:
        for start, stop in pairwise(self.partition.target_mirror_offsets):
            yield dense_mail(remote[start:stop], self.no_message)

    def _post(self, mails: list[NDArray[Any]]) -> list[NDArray[Any]]:
        """Move own mail, which comes first, to the place of this partition, and count the rest."""
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
        cuts = self._even_cuts(self.num_own)
        over_ranges(getattr(self.kernels, kernel), cuts, *arguments, *self._env)

    def _even_cuts(self, size: int) -> NDArray[np.int64]:
        return even_cuts(size, self.context.num_threads)


def _places(flags: NDArray[np.uint8]) -> NDArray[np.uint32]:
    return np.flatnonzero(flags.view(np.bool_)).astype(np.uint32)  # bytes are slower to search


def _is_empty(mail: SparseMail | NDArray[Any]) -> bool:
    return isinstance(mail, np.ndarray) and len(mail) == 0


def _records(places: NDArray[np.uint32], values: NDArray[Any]) -> NDArray[Any]:
    records = np.empty(len(places), record_of(values.dtype))
    records["place"], records["message"] = places, values
    return records


@lru_cache(maxsize=8)
def _all_places(size: int) -> NDArray[np.uint32]:
    return np.arange(size, dtype=np.uint32)

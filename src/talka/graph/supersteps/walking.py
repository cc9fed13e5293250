"""Send the messages of an edge program along the edges of one partition: push or pull.

*Push* starts at the vertices of the frontier and writes to their targets, in one thread. *Pull*
starts at all targets and reads from their sources, with threads. The choice depends on counts only.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from talka.graph.csr import Csr
from talka.graph.kernels.threads import balanced_cuts, over_ranges
from talka.graph.partitions.partition import Partition
from talka.graph.supersteps.edge_plan import EdgePlan, State
from talka.graph.supersteps.mail import SparseMail
from talka.graph.supersteps.protocol import Report
from talka.graph.supersteps.scratch import scratch

# Pushing along one edge costs as much as pulling along this many: it writes at random places, in
# one thread.
PUSH_COST: Final = 4
_NO_WEIGHTS: Final = np.empty(0, np.float64)
_NO_FLAGS: Final = np.empty(0, np.uint8)  # passed to kernels if all vertices send


class EdgeWalker:
    """Computes the combined messages for all target slots of a partition."""

    def __init__(
        self,
        plan: EdgePlan,
        partition: Partition,
        kernels: Any,
        env: list[Any],
        report: Report,
        *,
        num_threads: int,
    ) -> None:
        """`env` are the trailing arguments of all kernels; `report` receives the counts."""
        self._plan, self._partition, self._report = plan, partition, report
        self._kernels, self._env, self._num_threads = kernels, env, num_threads
        self._message_type = np.dtype(plan.message_type)
        self._no_message = self._message_type.type(plan.identity)

    def walk(self, state: State) -> SparseMail | NDArray[Any]:
        """Return one combined message per target slot, or only for slots that got any."""
        if self._should_push(state):
            assert state.frontier is not None
            return self._push(state.values, state.frontier)
        return self._pull(state)

    def _should_push(self, state: State) -> bool:
        """Decide from counts only: a superstep that is replayed must make the same choice."""
        if state.frontier is None:
            return False
        into, num_own = self._partition.into, self._partition.num_own
        num_edges = self._num_edges_of(state.frontier)
        if PUSH_COST * num_edges < into.num_rows:
            return True  # pull would read every row, even if no vertex sends
        if PUSH_COST * num_edges >= into.num_entries:
            return False
        if not self._plan.has_settled:
            return True
        cuts = balanced_cuts(into.offsets[: num_own + 1], self._num_threads)
        counts = over_ranges(self._kernels.count_open, cuts, state.values, into.offsets, *self._env)
        num_remote = into.num_entries - int(into.offsets[num_own])
        return bool(PUSH_COST * num_edges < sum(counts) + num_remote)

    def _num_edges_of(self, frontier: NDArray[np.uint32]) -> int:
        """Count edges of the frontier in this partition: all of them, except under a vertex cut."""
        if len(self._partition.source_mirrors) == 0 and len(self._partition.send_places) == 0:
            return self._report.active_edges
        offsets = self._partition.out.offsets
        return int((offsets[frontier + 1] - offsets[frontier]).sum(dtype=np.int64))

    def _push(self, values: NDArray[Any], frontier: NDArray[np.uint32]) -> SparseMail:
        out = self._partition.out
        with scratch(self._partition.into.num_rows, self._message_type, self._no_message) as arrays:
            num_touched = self._kernels.push(
                frontier, out.offsets, out.columns, self._weights(out), values,
                arrays.combined, arrays.seen, arrays.touched, *self._env,
            )  # fmt: skip
            places = np.sort(arrays.touched[:num_touched])
            messages = arrays.combined[places]
            arrays.clear(num_touched)
        self._report.way = "push"
        self._report.edges += self._num_edges_of(frontier)
        is_sent = messages != self._no_message
        if is_sent.all():
            return SparseMail(places, messages)
        return SparseMail(places[is_sent], messages[is_sent])

    def _pull(self, state: State) -> NDArray[Any]:
        into = self._partition.into
        flags, contributions = _NO_FLAGS, np.empty(0, self._message_type)
        if not self._plan.is_weighted:
            contributions = self._contributions(state)
        elif state.frontier is not None:
            flags = np.zeros(self._partition.out.num_rows, np.uint8)
            flags[state.frontier] = 1
        combined = np.empty(into.num_rows, self._message_type)
        over_ranges(
            self._kernels.pull, balanced_cuts(into.offsets, self._num_threads),
            into.offsets, into.columns, self._weights(into), state.values, flags, contributions,
            self._partition.num_own, combined, *self._env,
        )  # fmt: skip
        self._report.way = "pull"
        self._report.edges += into.num_entries
        return combined

    def _contributions(self, state: State) -> NDArray[Any]:
        """Return the message of each source slot, computed once for all of its edges."""
        num_slots = self._partition.out.num_rows
        if state.frontier is None:
            messages = np.empty(num_slots, self._message_type)
            cuts = even_cuts(num_slots, self._num_threads)
            over_ranges(self._kernels.contribute, cuts, state.values, messages, *self._env)
        else:
            messages = np.full(num_slots, self._no_message, self._message_type)
            cuts = even_cuts(len(state.frontier), self._num_threads)
            arrays = (state.frontier, state.values, messages)
            over_ranges(self._kernels.contribute_some, cuts, *arrays, *self._env)
        return messages

    def _weights(self, csr: Csr) -> NDArray[np.float64]:
        return csr.weights if csr.weights is not None and self._plan.is_weighted else _NO_WEIGHTS


def even_cuts(size: int, num_threads: int) -> NDArray[np.int64]:
    """Return the bounds of ranges of equal length, one range per thread."""
    return np.linspace(0, size, num_threads + 1).astype(np.int64)

"""One superstep of a general program on one partition. Arrays in, arrays out."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.graph.combining import combine_at, combine_by_number, nothing_for
from talka.graph.context import Context
from talka.graph.kernels.ordering import order_by
from talka.graph.mail import mail_of_all
from talka.graph.part import Part
from talka.graph.reports import Report
from talka.graph.step import Inbox, Step
from talka.graph.vertex_program import VertexProgram


class VertexSuperstep:
    """A general program on one partition: deliver, compute, collect."""

    def __init__(
        self, program: VertexProgram, part: Part, owners: NDArray[np.uint16], context: Context
    ) -> None:
        self.program, self.part, self.context = program, part, context
        self._owners = owners
        self._kind = np.dtype(program.message_type)
        self.report = Report(totals={name: [] for name in program.aggregates})

    def run(
        self,
        ids: Any,
        columns: dict[str, NDArray[Any]],
        halted: NDArray[np.bool_],
        mails: Sequence[NDArray[Any]],
    ) -> tuple[Step, list[NDArray[Any]]]:
        """What `compute` left, and mail for every partition."""
        inbox, combined = self._delivered(mails)
        step = Step(
            self.program, self.part, self.context, columns,
            ids=ids, active=~halted, inbox=inbox, combined=combined,
        )  # fmt: skip
        step.active[...] |= step.got_message
        if step.active.any() or self.context.superstep == 0:
            step.halted = ~step.active
            self.program.compute(step)
        else:
            step.halted = halted
        sent = self._no_mails() if self.context.is_last else self._mails(step)
        report = self.report
        report.totals = step.totals
        report.num_active = int((~step.halted).sum())
        report.edges = step.num_edges_walked
        report.is_quiet = bool(step.halted.all()) and all(len(mail) == 0 for mail in sent)
        report.way = "pull" if step.along() is not None else "push"
        return step, sent

    # What arrived.

    def _delivered(self, mails: Sequence[NDArray[Any]]) -> tuple[Inbox | None, NDArray[Any] | None]:
        """Every message at its place, by the order of partitions."""
        if self.program.combine is None:
            return self._inbox(mails), None
        index = self.part.index
        own, others = mails[index], [(q, mail) for q, mail in enumerate(mails) if len(mail)]
        if len(own) == self.part.num_own and own.dtype.names is None:
            others = [(q, mail) for q, mail in others if q != index]
            combined = own.copy() if others else own
        else:
            nothing = nothing_for(self.program.combine, self._kind)
            combined = np.full(self.part.num_own, nothing, self._kind)
        for q, mail in others:
            combine_at(self.program.combine, combined, *self._addressed(q, mail))
        return None, combined

    def _inbox(self, mails: Sequence[NDArray[Any]]) -> Inbox:
        addressed = [self._addressed(q, mail) for q, mail in enumerate(mails) if len(mail)]
        num_own = self.part.num_own
        if not addressed:
            return Inbox(np.zeros(num_own + 1, np.int64), np.empty(0, self._kind))
        places = np.concatenate([places for places, _ in addressed])
        messages = np.concatenate([messages for _, messages in addressed])
        offsets, order = order_by(places, num_own)
        return Inbox(offsets, messages.take(order))

    def _addressed(self, q: int, mail: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Places of own vertices, and what each gets."""
        if mail.dtype.names is not None and mail.dtype.names[0] == "number":
            return self.part.places_of(mail["number"]), mail["message"]
        offsets = self.part.receive_place_offsets
        route = self.part.receive_places[offsets[q] : offsets[q + 1]]
        if mail.dtype.names is not None:
            return route[mail["place"]], mail["message"]
        return route, mail

    # What is said.

    def _mails(self, step: Step) -> list[NDArray[Any]]:
        numbers, messages = step.said()
        along = step.along()
        if along is None:
            return self._posted(numbers, messages)
        assert self.program.combine is not None
        part, nothing = self.part, nothing_for(self.program.combine, self._kind)
        own, remote = along[: part.num_own], along[part.num_own :]
        if len(numbers):  # some of both: all that leaves goes by number
            is_own = self._owners_of(numbers) == part.index
            at_home = part.places_of(numbers[is_own])
            combine_at(self.program.combine, own, at_home, messages[is_own])
            some = np.flatnonzero(remote != nothing)
            numbers = np.concatenate([part.target_mirrors[some], numbers[~is_own]])
            messages = np.concatenate([remote[some], messages[~is_own]])
            mails = self._posted(*combine_by_number(self.program.combine, numbers, messages))
        else:
            routes = pairwise(part.target_mirror_offsets)
            mails = [mail_of_all(remote[start:stop], nothing) for start, stop in routes]
            for mail in mails:
                self._count(mail)
        mails[part.index] = own if (own != nothing).any() else own[:0]
        return mails

    def _posted(self, numbers: NDArray[np.uint32], messages: NDArray[Any]) -> list[NDArray[Any]]:
        """Records by owner."""
        kind = np.dtype([("number", np.uint32), ("message", self._kind)])
        records = np.empty(len(numbers), kind)
        records["number"], records["message"] = numbers, messages
        if self.part.num_partitions == 1:
            return [records]
        ends, order = order_by(self._owners_of(numbers), self.part.num_partitions)
        mails = [records.take(order[start:stop]) for start, stop in pairwise(ends)]
        for q, mail in enumerate(mails):
            if q != self.part.index:
                self._count(mail)
        return mails

    def _owners_of(self, numbers: NDArray[np.uint32]) -> NDArray[Any]:
        if self.part.num_partitions == 1:
            return np.zeros(len(numbers), np.uint16)
        return self._owners[numbers]

    def _count(self, mail: NDArray[Any]) -> None:
        self.report.num_messages += len(mail)
        self.report.sent_bytes += mail.nbytes

    def _no_mails(self) -> list[NDArray[Any]]:
        return [np.empty(0, self._kind) for _ in range(self.part.num_partitions)]

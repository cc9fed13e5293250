"""One superstep of a vertex program on one partition. Arrays in, arrays out."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.graph.kernels.ordering import order_by
from talka.graph.partitions.partition import Partition
from talka.graph.programs.combining import combine_at, combine_by_number, identity_for
from talka.graph.programs.step import Inbox, Step
from talka.graph.programs.vertex_program import VertexProgram
from talka.graph.supersteps.mail import OPTIONAL, open_vertex_mail, vertex_mail
from talka.graph.supersteps.protocol import Context, Report


class VertexSuperstep:
    """A vertex program in one superstep on one partition: deliver, compute, collect."""

    def __init__(
        self,
        program: VertexProgram,
        partition: Partition,
        owners: NDArray[np.uint16],
        context: Context,
    ) -> None:
        self.program, self.partition, self.context = program, partition, context
        self._owners = owners
        self._kind = np.dtype(program.message_type)
        self._no_message = identity_for(program.combine, self._kind) if program.combine else None
        self.report = Report(totals={name: [] for name in program.aggregates})

    def run(
        self,
        ids: Any,
        columns: dict[str, NDArray[Any]],
        halted: NDArray[np.bool_],
        mails: Sequence[NDArray[Any]],
    ) -> tuple[Step, list[NDArray[Any]]]:
        """Run `compute`; return its step, and mail for every partition."""
        inbox, combined, got_message = self._delivered(mails)
        step = Step(
            self.program, self.partition, self.context, columns,
            ids=ids, active=~halted | got_message, inbox=inbox, combined=combined,
            got_message=got_message,
        )  # fmt: skip
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
        report.way = "pull" if step.edge_messages() is not None else "push"
        return step, sent

    # Receiving.

    def _delivered(
        self, mails: Sequence[NDArray[Any]]
    ) -> tuple[Inbox | None, NDArray[Any] | None, NDArray[np.bool_]]:
        """Deliver messages to own vertices, in the order of partitions.

        Returns the inbox, or combined messages if the program combines them, and which vertices got
        a message.
        """
        if self.program.combine is None:
            inbox = self._inbox(mails)
            return inbox, None, np.diff(inbox.offsets) > 0
        index, num_own = self.partition.index, self.partition.num_own
        own, others = mails[index], [(q, mail) for q, mail in enumerate(mails) if len(mail)]
        names = own.dtype.names
        if len(own) == num_own and (names is None or names[0] == OPTIONAL):
            others = [(q, mail) for q, mail in others if q != index]
            combined = own if names is None else own[OPTIONAL]
            got_message = (
                np.ones(num_own, np.bool_) if names is None else combined != self._no_message
            )
            combined = combined.copy() if others else combined
        else:
            combined = np.full(num_own, self._no_message, self._kind)
            got_message = np.zeros(num_own, np.bool_)
        for q, mail in others:
            places, messages = self._addressed(q, mail)
            combine_at(self.program.combine, combined, places, messages)
            got_message[places] = True
        return None, combined, got_message

    def _inbox(self, mails: Sequence[NDArray[Any]]) -> Inbox:
        addressed = [self._addressed(q, mail) for q, mail in enumerate(mails) if len(mail)]
        num_own = self.partition.num_own
        if not addressed:
            return Inbox(np.zeros(num_own + 1, np.int64), np.empty(0, self._kind))
        places = np.concatenate([places for places, _ in addressed])
        messages = np.concatenate([messages for _, messages in addressed])
        offsets, order = order_by(places, num_own)
        return Inbox(offsets, messages.take(order))

    def _addressed(self, q: int, mail: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the places of receiving vertices, and the message for each."""
        if mail.dtype.names is not None and mail.dtype.names[0] == "number":
            return self.partition.places_of(mail["number"]), mail["message"]
        places, messages = open_vertex_mail(mail, self._no_message)
        return self.partition.route_from(q)[places], messages

    # Sending.

    def _mails(self, step: Step) -> list[NDArray[Any]]:
        """Return mail for every partition."""
        numbers, messages = step.addressed_messages()
        along = step.edge_messages()
        if along is None:
            return self._posted(numbers, messages)
        assert self.program.combine is not None
        partition, combined, is_sent = self.partition, along.combined, along.is_sent
        own, remote = np.split(combined, [partition.num_own])
        own_is_sent, remote_is_sent = np.split(is_sent, [partition.num_own])
        if len(numbers):  # messages of both kinds: remote ones are sent by vertex number
            is_own = self._owners_of(numbers) == partition.index
            places = partition.places_of(numbers[is_own])
            combine_at(self.program.combine, own, places, messages[is_own])
            own_is_sent[places] = True
            numbers = np.concatenate([partition.target_mirrors[remote_is_sent], numbers[~is_own]])
            messages = np.concatenate([remote[remote_is_sent], messages[~is_own]])
            mails = self._posted(*combine_by_number(self.program.combine, numbers, messages))
        else:
            mails = [
                vertex_mail(remote[start:stop], remote_is_sent[start:stop], self._no_message)
                for start, stop in pairwise(partition.target_mirror_offsets)
            ]
            for mail in mails:
                self._count(mail)
        mails[partition.index] = vertex_mail(own, own_is_sent, self._no_message, is_local=True)
        return mails

    def _posted(self, numbers: NDArray[np.uint32], messages: NDArray[Any]) -> list[NDArray[Any]]:
        """Return records of number and message, by the owner of the receiving vertex."""
        kind = np.dtype([("number", np.uint32), ("message", self._kind)])
        records = np.empty(len(numbers), kind)
        records["number"], records["message"] = numbers, messages
        if self.partition.num_partitions == 1:
            return [records]
        ends, order = order_by(self._owners_of(numbers), self.partition.num_partitions)
        mails = [records.take(order[start:stop]) for start, stop in pairwise(ends)]
        for q, mail in enumerate(mails):
            if q != self.partition.index:
                self._count(mail)
        return mails

    def _owners_of(self, numbers: NDArray[np.uint32]) -> NDArray[Any]:
        if self.partition.num_partitions == 1:
            return np.zeros(len(numbers), np.uint16)
        return self._owners[numbers]

    def _count(self, mail: NDArray[Any]) -> None:
        self.report.num_messages += len(mail)
        self.report.sent_bytes += mail.nbytes

    def _no_mails(self) -> list[NDArray[Any]]:
        return [np.empty(0, self._kind) for _ in range(self.partition.num_partitions)]

"""An engine that loses what one partition has made, in a superstep of the test's choice."""

from talka.engine import Embedded

NUM_PARTITIONS = 3


class Losing(Embedded):
    """Loses all that one partition has made, just before the reports of one superstep are read."""

    def __init__(self, superstep, partition, **given):
        super().__init__(**given)
        self.partition = partition
        self.num_lost = 0
        self._countdown = superstep + 1
        self._made = []
        self.partition_of = {}

    def submit(self, function, *inputs, **given):
        refs = super().submit(function, *inputs, **given)
        if given.get("name") in ("superstep", "send"):
            index = len(self._made) % NUM_PARTITIONS
            self.partition_of[self._lineage.producer_of(refs[0].id)] = index
            self._made.append(refs)
        return refs

    def fetch(self, refs):
        is_reports = isinstance(refs, list) and len(self._made) > 0
        if is_reports and self._countdown > 0:
            self._countdown -= 1
            if self._countdown == 0:
                self.wait(refs)
                self._lose()
        return super().fetch(refs)

    def _lose(self):
        for index, refs in enumerate(self._made):
            if index % NUM_PARTITIONS == self.partition:
                with self._lock:
                    known = [ref for ref in refs if self._lineage.is_known(ref.id)]
                self.drop(known)
                self.num_lost += len(known)

"""An engine that loses the outputs of one partition in a chosen superstep."""

from talka.engine import Embedded

NUM_PARTITIONS = 3


class Losing(Embedded):
    """Loses all outputs of one partition, just before the reports of one superstep are read."""

    def __init__(self, superstep, partition, **keywords):
        super().__init__(**keywords)
        self.partition = partition
        self.num_lost = 0
        self._countdown = superstep + 1
        self._submitted = []
        self.partition_of = {}

    def submit(self, function, *inputs, **keywords):
        refs = super().submit(function, *inputs, **keywords)
        if keywords.get("name") in ("superstep", "send"):
            index = len(self._submitted) % NUM_PARTITIONS
            self.partition_of[self._lineage.producer_of(refs[0].id)] = index
            self._submitted.append(refs)
        return refs

    def fetch(self, refs):
        is_reports = isinstance(refs, list) and len(self._submitted) > 0
        if is_reports and self._countdown > 0:
            self._countdown -= 1
            if self._countdown == 0:
                self.wait(refs)
                self._lose()
        return super().fetch(refs)

    def _lose(self):
        for index, refs in enumerate(self._submitted):
            if index % NUM_PARTITIONS == self.partition:
                with self._lock:
                    known = [ref for ref in refs if self._lineage.is_known(ref.id)]
                self.drop(known)
                self.num_lost += len(known)

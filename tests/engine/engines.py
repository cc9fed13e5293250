"""Both engines for the contract suite, and a stream that records their events."""

import contextlib

from talka.engine import Embedded
from talka.engine.events import TaskAgain, TasksRan
from talka.events import Stream


class Recorder(Stream):
    """A stream that records its events."""

    def __init__(self, path=None):
        super().__init__(path)
        self.events = []

    def emit(self, event):
        super().emit(event)
        self.events.append(event)

    def num_runs(self, name=None):
        """Return the number of tasks (of this name) that ran, according to the events."""
        ran = [event for event in self.events if isinstance(event, TasksRan)]
        return sum(event.count for event in ran if name in (None, event.name))

    def again(self):
        """Return the names of tasks that ran again, sorted."""
        return sorted(event.name for event in self.events if isinstance(event, TaskAgain))


@contextlib.contextmanager
def open_engine(kind, request, recorder):
    if kind == "embedded":
        with Embedded(threads=2, processes=2, events=recorder) as engine:
            yield engine
    else:
        from talka.engine import OnRay

        cluster = request.getfixturevalue("ray_cluster")
        with OnRay(cluster.address, events=recorder) as engine:
            yield engine

"""The script that every host runs in `graph_machines`: Ray on all, PageRank driven from host 0.

    python -m benchmarks.graph_machines_rank SCALE SUPERSTEPS IDLE_SECONDS OUT PARTITIONS...

The bytes of the links are read at the end of a superstep. Its messages are pulled in the next one,
so whole supersteps lie between two readings; the first ones are excluded, because they also
transfer the topology and compile kernels.
"""

import json
import sys
import time
from pathlib import Path

from benchmarks.ray_hosts import on_hosts
from benchmarks.rmat import rmat
from talka.events import Stream
from talka.graph import Graph, RunOptions
from talka.graph.events import SuperstepDone

WARM = 3
MESSAGE_BYTES = 8


class Reading(Stream):
    """Listener that reads clock and links at the end of the first and last measured superstep."""

    def __init__(self, machines, last):
        super().__init__()
        self._machines, self._marks = machines, (WARM, last)
        self.seconds, self.sent_bytes = [], []
        self.payload_bytes = 0

    def emit(self, event):
        if not isinstance(event, SuperstepDone):
            return
        first, last = self._marks
        self.payload_bytes += event.sent_bytes if first <= event.superstep < last else 0
        if event.superstep in self._marks:
            self.sent_bytes.append(self._machines.sent_bytes())
            self.seconds.append(time.perf_counter())


def measured(graph, address, machines, num_partitions, num_supersteps):
    """Return bytes and seconds per superstep."""
    from talka.engine import OnRay

    class Placing(OnRay):
        """Engine that records where partitions were placed."""

        def __init__(self, address):
            super().__init__(address)
            self.homes = {}

        def _finished(self, task):
            if task.name == "place":
                self.homes[task.id] = self._places[task.outputs[0]]
            super()._finished(task)

    last = WARM + num_supersteps
    events = Reading(machines, last)
    with Placing(address) as engine:
        options = RunOptions(engine=engine, num_partitions=num_partitions, events=events)
        graph.pagerank(num_supersteps=last, options=options)
    homes = [home for _, home in sorted(engine.homes.items())]
    between, all_pairs = predicted_bytes(graph, homes)
    return {
        "partitions": num_partitions,
        "machines": len(set(homes)),
        "predicted_bytes": between,
        "predicted_all_pairs_bytes": all_pairs,
        "payload_all_pairs_bytes": events.payload_bytes / num_supersteps,
        "interface_bytes": (events.sent_bytes[1] - events.sent_bytes[0]) / num_supersteps,
        "seconds": (events.seconds[1] - events.seconds[0]) / num_supersteps,
    }


def predicted_bytes(graph, homes):
    """Return the bytes of a value per mirror, between machines and between all partitions."""
    between = all_pairs = 0
    for part in graph.cut(len(homes), "ranges").partitions:
        num_mirrors = part.target_mirror_offsets[1:] - part.target_mirror_offsets[:-1]
        for owner, count in enumerate(num_mirrors.tolist()):
            all_pairs += count * MESSAGE_BYTES
            between += count * MESSAGE_BYTES * (homes[owner] != homes[part.index])
    return between, all_pairs


def idle_bytes_per_s(machines, seconds):
    before = machines.sent_bytes()
    time.sleep(seconds)
    return (machines.sent_bytes() - before) / seconds


def main():
    scale, num_supersteps, idle_s, out, *partitions = sys.argv[1:]

    def drive(address, machines):
        graph = Graph.from_edges(rmat(int(scale)))
        rows = [
            measured(graph, address, machines, int(count), int(num_supersteps))
            for count in partitions
        ]
        idle = idle_bytes_per_s(machines, float(idle_s))
        answer = {"edges": graph.num_edges, "idle_bytes_per_s": idle, "rows": rows}
        Path(out).write_text(json.dumps(answer))

    on_hosts(drive)


if __name__ == "__main__":
    main()

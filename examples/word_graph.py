"""Count adjacent words, lose a worker during the count, and get the same answer.

    python examples/word_graph.py        # a few seconds

You should see the most frequent pairs, and that only the lost task was run again.
"""

import os
from collections import Counter
from itertools import pairwise

import pyarrow as pa

from talka.engine import Embedded
from talka.events import Stream, TaskAgain

TEXT = "many hands make light work and many heads make many plans " * 200


def pairs_of(words):
    counts = Counter(pairwise(words))
    return pa.table({"pair": [" ".join(p) for p in counts], "count": list(counts.values())})


def dies_the_first_time(words, marker):
    if not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), 9)  # as if this worker ran out of memory
    return pairs_of(words)


def merge(*tables):
    return pa.concat_tables(tables).group_by("pair").aggregate([("count", "sum")])


def most_frequent(engine, count, *extra):
    words = TEXT.split()
    parts = [words[start : start + 500] for start in range(0, len(words), 500)]
    counted = [engine.submit(pairs_of, part, python=True) for part in parts[1:]]
    counted.append(engine.submit(count, parts[0], *extra, python=True))  # the task that is lost
    total = engine.submit(merge, *counted)
    return engine.fetch(total).sort_by([("count_sum", "descending"), ("pair", "ascending")])[:3]


def main():
    emitted = []
    events = Stream()
    marker = f"/tmp/talka-example-{os.getpid()}"
    with events.listening(emitted.append), Embedded(events=events) as engine:
        whole = most_frequent(engine, pairs_of)
        lost = most_frequent(engine, dies_the_first_time, marker)
    again = [event for event in emitted if isinstance(event, TaskAgain)]
    os.remove(marker)
    print(lost.to_pylist(), [f"{event.name}: {event.reason}" for event in again])
    assert lost.equals(whole)
    assert [event.name for event in again] == ["dies_the_first_time"]


if __name__ == "__main__":
    main()

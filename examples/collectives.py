"""Collectives of four workers, drawn as they are in textbooks: what each holds before and after.

    python examples/collectives.py

The last lines show which algorithm was used, and how long the calls took.
"""

from talka.channels.events import CollectivesRan
from talka.engine import Embedded
from talka.events import Stream

NUM_WORKERS = 4


def main(worker):
    """Return what this worker holds after each collective, and the events of its calls."""
    ran = []
    rank, own = worker.rank, "ABCD"[worker.rank]
    pieces = [f"{own}{index}" for index in range(worker.size)]
    with worker.events.listening(ran.append):
        after = {
            "broadcast": worker.broadcast(own),
            "scatter": worker.scatter(pieces),
            "gather": worker.gather(own),
            "all_gather": worker.all_gather(own),
            "reduce (sum)": worker.reduce(10**rank),
            "all_reduce (sum)": worker.all_reduce(10**rank, algorithm="tree"),
            "all_to_all": worker.all_to_all(pieces),
        }
        worker.barrier()
        worker.call_log.flush()
    calls = [(e.name, e.algorithm, e.seconds) for e in ran if isinstance(e, CollectivesRan)]
    return after, calls


def before(name, rank):
    """Return what a worker holds before a collective."""
    own = "ABCD"[rank]
    if name in ("broadcast", "scatter") and rank:
        return ""
    if name in ("scatter", "all_to_all"):
        return " ".join(f"{own}{index}" for index in range(NUM_WORKERS))
    return str(10**rank) if "reduce" in name else own


if __name__ == "__main__":
    with Embedded(events=Stream()) as engine:
        results = engine.gang(main, size=NUM_WORKERS, backend=None)
    for name in results[0][0]:
        print(f"\n{name}")
        for rank, (after, _) in enumerate(results):
            held = after[name]
            shown = " ".join(held) if isinstance(held, list) else "" if held is None else held
            print(f"  worker {rank}: {before(name, rank):12} -> {shown}")
    print()
    for name, algorithm, seconds in results[0][1]:
        print(f"{name:12} {algorithm:14} {1000 * seconds:6.2f} ms")

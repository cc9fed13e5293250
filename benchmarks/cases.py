"""Short, repeatable pieces of work that `benchmarks.compare` times in two commits.

A case is a function that prepares its data and returns a callable of 0.05 to 0.5 seconds. Cases of
compiled kernels count processor seconds, which other processes on the machine disturb least; cases
that wait for other processes count wall-clock seconds.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Case(NamedTuple):
    prepare: Callable
    """Function that returns the callable to be timed."""

    clock: str
    """Clock: `cpu` for seconds of this process and its finished children, or `wall`."""


def encode(spec):
    return lambda: _codec(spec)[0]


def decode(spec):
    return lambda: _codec(spec)[1]


def _codec(spec):
    import torch

    from talka.compress import compressor

    torch.set_num_threads(1)
    values = torch.randn(4_000_000, generator=torch.Generator().manual_seed(0))
    codec, out = compressor(spec), torch.zeros_like(values)
    buffer = torch.zeros(codec.max_bytes(len(values)), dtype=torch.uint8)
    payload = codec.encode(values, out=buffer.clone())

    def repeat(call):
        def run():
            for _ in range(8):
                call()

        return run

    return (
        repeat(lambda: codec.encode(values, out=buffer)),
        repeat(lambda: codec.decode(payload, out, add=True)),
    )


def average_in_a_gang():
    from talka.engine import Embedded

    def run():
        with Embedded() as engine:
            return max(engine.gang(_average_ten_times, size=2))

    return run


def _average_ten_times(worker):
    import time

    import torch

    from talka.compress import layout_of
    from talka.exchange import open_exchange

    torch.set_num_threads(1)
    layout, values = layout_of({"weight": (1000, 1000)}), torch.randn(1_000_000)
    exchange = open_exchange("onebit+ef")
    for step in range(12):
        if step == 2:
            start = time.perf_counter()
        exchange.average(values, layout).wait()
    seconds = time.perf_counter() - start
    exchange.close()
    return seconds


def _nothing():
    return None


def _ref(submitted):
    """Return the only Ref of a task; older commits return a list of it."""
    return submitted[0] if isinstance(submitted, list) else submitted


def tasks(count, *, python):
    def prepare():
        from talka.engine import Embedded

        engine = Embedded(threads=2, processes=2)

        def run():
            refs = [_ref(engine.submit(_nothing, python=python)) for _ in range(count)]
            engine.wait(refs)
            engine.release(refs)

        return run

    return prepare


def table_to_a_worker():
    import numpy as np
    import pyarrow as pa

    from talka.engine import Embedded

    engine, table = Embedded(threads=2, processes=2), pa.table({"x": np.ones(12_500_000)})

    def run():
        ref = _ref(engine.submit(lambda: table))
        engine.fetch(_ref(engine.submit(lambda given: given.num_rows, ref, python=True)))
        engine.release(ref)

    return run


def graph_call(scale, call):
    def prepare():
        import numpy as np

        from benchmarks.rmat import rmat
        from talka.graph import Graph

        edges = rmat(scale)
        graph = Graph.from_edges(edges, np.random.default_rng(0).random(len(edges[0])))
        return lambda: call(graph)

    return prepare


def build_graph():
    from benchmarks.rmat import rmat
    from talka.graph import Graph

    edges = rmat(17)
    return lambda: Graph.from_edges(edges)


def read_edges():
    import numpy as np

    from benchmarks.rmat import rmat
    from talka.graph import Graph

    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "edges.txt"
    np.savetxt(path, np.array(rmat(15)).T, fmt="%d")

    def run():
        assert folder.name  # the folder lives as long as this function
        Graph.from_edges(path)

    return run


def pagerank_in_partitions(graph):
    from talka.graph import RunOptions

    graph.pagerank(options=RunOptions(num_partitions=4))


def count_cooccurrences():
    corpus, options, count_pairs = _corpus()
    return lambda: count_pairs(corpus, options)


def train_word_vectors():
    from talka.train.models.glove import GloVe

    corpus, options, count_pairs = _corpus()
    pairs, model = count_pairs(corpus, options), GloVe(len(corpus.vocabulary), 100)
    return lambda: model.train_epoch(pairs, threads=2)


def _corpus():
    import numpy as np

    from talka.data.text import PairOptions, count_pairs, scan_corpus

    random = np.random.default_rng(0)
    words = np.array([f"word{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}" for n in range(676)])
    chosen = words[np.minimum(random.zipf(1.3, 400_000) - 1, len(words) - 1)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.txt"
        path.write_text(" ".join(chosen))
        return scan_corpus([path]), PairOptions(window=10), count_pairs


def emit_events():
    from talka.events import PhaseAdvanced, Stream

    folder = tempfile.TemporaryDirectory()
    stream = Stream(Path(folder.name) / "events.jsonl")
    event = PhaseAdvanced("train", 0.5)

    def run():
        assert folder.name  # the folder lives as long as this function
        for _ in range(10_000):
            stream.emit(event)

    return run


def start(*command):
    def prepare():
        return lambda: subprocess.run(
            [sys.executable, *command], check=True, stdout=subprocess.DEVNULL
        )

    return prepare


SPECS = ("onebit+ef", "topk:0.01+ef", "qsgd:7", "uniform:3/max/512+ef", "threshold:auto+ef")
CASES = {
    **{f"encode {spec}": Case(encode(spec), "cpu") for spec in SPECS},
    **{f"decode {spec}": Case(decode(spec), "cpu") for spec in SPECS},
    "average onebit+ef, 2 workers": Case(average_in_a_gang, "wall"),
    "native tasks": Case(tasks(4000, python=False), "wall"),
    "python tasks": Case(tasks(1500, python=True), "wall"),
    "table of 100 MB to a worker": Case(table_to_a_worker, "wall"),
    "graph: build": Case(build_graph, "cpu"),
    "graph: read an edge list": Case(read_edges, "cpu"),
    "graph: pagerank": Case(graph_call(17, lambda graph: graph.pagerank()), "cpu"),
    "graph: pagerank, 4 partitions": Case(graph_call(15, pagerank_in_partitions), "cpu"),
    "graph: bfs": Case(graph_call(17, lambda graph: graph.bfs(graph.vertex_of(0))), "cpu"),
    "graph: sssp": Case(graph_call(16, lambda graph: graph.sssp(graph.vertex_of(0))), "cpu"),
    "graph: components": Case(graph_call(17, lambda graph: graph.components()), "cpu"),
    "graph: triangles": Case(graph_call(14, lambda graph: graph.triangles()), "cpu"),
    "text: co-occurrence": Case(count_cooccurrences, "cpu"),
    "text: an epoch of word vectors": Case(train_word_vectors, "cpu"),
    "events: emit": Case(emit_events, "cpu"),
    "start: import talka.graph": Case(start("-c", "import talka.graph"), "cpu"),
    "start: import talka.train": Case(start("-c", "import talka.train"), "cpu"),
    "start: talka --help": Case(start("-m", "talka", "--help"), "cpu"),
}

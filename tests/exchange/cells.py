"""Code of a rank in the tests of exchanges: many cells of the matrix in one gang."""

import hashlib
import os

import torch

from talka.compress import layout_of
from talka.exchange import open_exchange

# Several buckets: one with a big matrix, one of parameters smaller than a block, one tiny.
BUCKETS = [
    {"fc1.weight": (60, 70), "fc1.bias": (60,)},
    {"fc2.weight": (10, 60), "norm": (3, 1)},
    {"scale": (2,)},
]


def vector(layout, rank, step, bucket):
    generator = torch.Generator().manual_seed(1000 * step + 10 * rank + bucket)
    values = torch.randn(layout[-1].stop, generator=generator)
    if bucket == 0:
        values[70:140] = 0  # a row that never has a gradient
    return values


ONE_BUCKET = [{name: shape for shapes in BUCKETS for name, shape in shapes.items()}]


AT_A_TIME = 8
"""Number of cells that run at the same time: each has a thread and a group, and mostly waits."""


def run_cells(worker, cells, num_steps, keep, buckets=BUCKETS):
    """Return, for each (compressor, exchange), a digest of all results, and the first `keep` steps."""
    os.environ["GROUP_RANK"] = str(worker.rank // 2)
    layouts = [
        layout_of({name: tuple(shape) for name, shape in shapes.items()}) for shapes in buckets
    ]
    results = []
    for first in range(0, len(cells), AT_A_TIME):
        made = [open_exchange(spec, name) for spec, name in cells[first : first + AT_A_TIME]]
        digests, kept = [hashlib.sha256() for _ in made], [[] for _ in made]
        for step in range(num_steps):
            vectors = [vector(layout, worker.rank, step, i) for i, layout in enumerate(layouts)]
            futures = [
                [
                    exchange.average(values.clone(), layout)
                    for values, layout in zip(vectors, layouts, strict=True)
                ]
                for exchange in made
            ]
            for number, of_buckets in enumerate(futures):
                averages = [future.wait() for future in of_buckets]
                for average in averages:
                    digests[number].update(average.numpy().tobytes())
                if step < keep:
                    kept[number].append([average.tolist() for average in averages])
        for exchange, digest, first_results in zip(made, digests, kept, strict=True):
            meter = exchange.meter
            results.append(
                [digest.hexdigest(), first_results, meter.sent_bytes, meter.received_bytes]
            )
            exchange.close()
    return results

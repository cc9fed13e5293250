"""Combinations of rhythm, compressor, exchange and optimizer: a covering array, or all of them.

python -m tests.train.rhythms.pairs        # the full product: some minutes
"""

import itertools
import sys

from talka.errors import SpecError
from talka.exchange.registry import EXCHANGES, codec_of

AXES = {
    "rhythm": ["EveryStep", "EveryStep on DDP", "Delayed", "LocalSGD", "LocalSGD with outer"],
    "compressor": [
        *("none", "fp16", "bf16", "trunc16", "onebit+ef", "onebit", "uniform:3/max/512+ef"),
        *("qsgd:7", "terngrad", "topk:0.2+ef", "randomk:0.3+ef", "threshold:auto+ef"),
        *("significance:1+ef", "powersgd:2"),
    ],
    "exchange": [None, *EXCHANGES],
    "optimizer": ["sgd", "momentum", "adam", "adamw"],
}


def makes_sense(cell):
    """Return whether talka accepts a cell; parts that are missing count as the default."""
    compressor, exchange = cell.get("compressor", "none"), cell.get("exchange")
    if exchange is None:
        return True
    try:
        EXCHANGES[exchange].check(codec_of(compressor))
    except SpecError:
        return False
    return True


def covering(axes, makes_sense):
    """Return cells in which every pair of values of two axes occurs that makes sense at all."""
    names = list(axes)
    missing = {
        ((a, x), (b, y))
        for a, b in itertools.combinations(names, 2)
        for x, y in itertools.product(axes[a], axes[b])
        if makes_sense({a: x, b: y})
    }
    cells = []
    while missing:
        best, gain = None, 0
        for values in itertools.product(*axes.values()):
            cell = dict(zip(names, values, strict=True))
            if makes_sense(cell):
                covered = sum(pair in missing for pair in itertools.combinations(cell.items(), 2))
                if covered > gain:
                    best, gain = cell, covered
        if best is None:
            break  # what is left cannot be combined with anything else
        cells.append(best)
        missing -= set(itertools.combinations(best.items(), 2))
    return cells


def product(axes, makes_sense):
    cells = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    return [cell for cell in cells if makes_sense(cell)]


def arguments(cell):
    """Return the arguments of `rhythm_ranks.run`."""
    kind, _, further = cell["rhythm"].partition(" ")
    options = {"compressor": cell["compressor"], "exchange": cell["exchange"]}
    if kind == "LocalSGD":
        options["every"] = 4
    if further == "with outer":
        options["outer"] = "nesterov:0.7/0.5"
    return [kind, options, cell["optimizer"], 16, further == "on DDP"]


def main():
    from talka.engine import Embedded
    from tests.train.rhythms import rhythm_ranks

    cells = product(AXES, makes_sense)
    problems = 0
    with Embedded() as engine:
        for first in range(0, len(cells), 50):
            some = cells[first : first + 50]
            outcomes = engine.gang(rhythm_ranks.several, [arguments(cell) for cell in some], size=2)
            for place, cell in enumerate(some):
                digests = {outcome[place][0] for outcome in outcomes}
                loss = outcomes[0][place][1]
                if len(digests) > 1 or not loss < 1.6:
                    problems += 1
                    print(cell, len(digests), loss)
            print(f"{first + len(some)} of {len(cells)} cells", flush=True)
    sys.exit(problems > 0)


if __name__ == "__main__":
    main()

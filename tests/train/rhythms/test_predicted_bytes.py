"""Events of rounds: what was predicted is what was sent, and each round has all its bytes."""

import pytest

from talka.engine import Embedded
from talka.events import read_run
from talka.train.events import RoundDone, StepDone
from tests.train.rhythms import rhythm_ranks as ranks

pytestmark = pytest.mark.slow
ADAPTIVE = ("topk:0.01+ef", "qsgd:7")
CELLS = [
    ("Delayed", {"compressor": "onebit", "delay": 2}, True),
    ("LocalSGD", {"compressor": "uniform:3/max/512+ef", "every": 3, "warmup_steps": 9}, True),
    ("LocalSGD", {"compressor": "onebit", "every": 3, "average_momentum": True}, True),
    ("LocalSGD", {"compressor": "topk:0.01+ef", "every": 3}, False),
    ("LocalSGD", {"compressor": "qsgd:7", "every": 3}, False),
]


def test_predicted_bytes_are_sent(tmp_path):
    with Embedded() as engine:
        calls = [
            ("with_events", *cell, str(tmp_path / str(place))) for place, cell in enumerate(CELLS)
        ]
        of_ranks = engine.gang(ranks.calls, calls, size=2, timeout_s=120)
    for place, cell in enumerate(CELLS):
        record = read_run(tmp_path / str(place))
        done = [one.event for one in record.events if isinstance(one.event, StepDone | RoundDone)]
        assert sum(one.sent_bytes for one in done) == sum(sent[place] for sent in of_ranks), cell
        assert all(one.after_compute_s > 0 for one in done)
        per_round = {one.sent_bytes for one in done if getattr(one, "num_steps", 0) == 3}
        if cell[1]["compressor"] not in (*ADAPTIVE, "onebit"):
            assert len(per_round) <= 2, "one number per rank: no round has bytes of another"
        [(_, predicted, measured)] = record.comparisons()
        tolerance = 0.15 if cell[1]["compressor"] in ADAPTIVE else 0.03
        assert measured.sent_bytes == pytest.approx(predicted.sent_bytes, rel=tolerance), cell

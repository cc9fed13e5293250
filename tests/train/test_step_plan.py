"""The plan of a training step: the fastest choice, what it consists of, and what lost."""

import pytest

from talka.compress import layout_of
from talka.exchange import CodecRates
from talka.network import Link, Network
from talka.train.predictions import predict_steps
from talka.train.step_plan import plan_of_step

LAYOUT = layout_of({"weight": (1700, 1705), "bias": (1500,)})
SPECS = ["none", "fp16", "onebit+ef", "topk:0.01+ef"]


def predicted(compute_s):
    network = Network.equal(Link(0.0001, 100e6), 4)
    rates = CodecRates(4e-10, 3e-10, 2e-10)
    return predict_steps(
        LAYOUT, network, compute_s=compute_s, specs=SPECS, codec_rates=lambda spec: rates
    )


@pytest.mark.parametrize("compute_s", [None, 0.05])
def test_a_step_is_the_sum_of_its_parts(compute_s):
    plan = plan_of_step(predicted(compute_s))
    assert plan.seconds == pytest.approx(sum(part.seconds for part in plan.parts))
    assert plan.sent_bytes == sum(part.sent_bytes or 0 for part in plan.parts) > 0
    assert len(plan.parts) == (2 if compute_s is None else 3)
    assert {part.cost_id.rpartition("/")[0] for part in plan.parts} == {"train/step"}


def test_all_other_choices_lost_with_a_reason():
    rows = predicted(0.05)
    plan = plan_of_step(rows)
    assert plan.choice.partition(" by ")[0] in SPECS
    lost = {alternative.choice: alternative for alternative in plan.alternatives}
    assert plan.choice not in lost
    for row in rows:
        named = f"{row.spec} by {row.exchange}"
        assert named == plan.choice or lost[named].seconds == row.step_s >= plan.seconds
    assert lost["none by ring"].why_not.startswith("a step takes ")
    seconds = [alternative.seconds for alternative in plan.alternatives]
    assert seconds == sorted(seconds)

"""The hook with real processes: replicas, resuming, other numbers of workers, optimizers, events."""

import pytest
import torch

from talka.engine import Embedded
from talka.errors import GangError, SavedStateError
from talka.events import read_run
from talka.train.events import ResidualNorm, StepDone
from tests.train import hook_ranks as ranks

pytestmark = pytest.mark.slow
SPECS = [
    *("none", "fp16", "bf16", "onebit+ef", "uniform:3/max/512+ef", "qsgd:7", "topk:0.05+ef"),
    *("randomk:0.1+ef", "threshold:auto+ef", "significance:2+ef", "powersgd:2"),
]


@pytest.fixture(scope="module")
def engine():
    with Embedded() as engine:
        yield engine


@pytest.fixture(scope="module")
def pair(engine, tmp_path_factory):
    """Return the results of two ranks by the name of the function."""
    names = [
        *("swapped", "swapped_with_momentum", "momentum_before_and_after", "learning_rates"),
        *("adam", "without_ddp", "registered_by_a_trainer", "unused_parameters"),
    ]
    calls = {name: [] for name in names}
    calls["mixed_saves"] = [str(tmp_path_factory.mktemp("saves"))]
    outcomes = engine.gang(ranks.by_name, calls, size=2)
    return {name: [one[name] for one in outcomes] for name in calls}


def test_replicas_are_the_same_and_learn(engine):
    outcomes = engine.gang(ranks.replicas, [None, *SPECS], size=3)
    for number, spec in enumerate([None, *SPECS]):
        assert len({rank[number][0] for rank in outcomes}) == 1, spec
    plain = outcomes[0][0]
    assert outcomes[0][1][1] == pytest.approx(plain[1], rel=1e-5), "without compression it is DDP"
    for number, spec in enumerate(SPECS, 1):
        _, loss, stats = outcomes[0][number]
        assert loss < 1.2, (spec, plain[1])  # all five classes alike would be 1.61
        assert stats["num_steps"] == 10
        assert stats["sent_bytes"] > 0
        has_residuals = spec.endswith("+ef") or spec.startswith("powersgd")
        assert (stats["residual_norm"] > 0) == has_residuals, spec


def test_without_compression_two_workers_are_ddp_to_the_bit(engine):
    """With more workers, sums of another order differ in their last bits."""
    plain, uncompressed = engine.gang(ranks.replicas, [None, "none"], size=2)[0]
    assert uncompressed[0] == plain[0]


def test_other_types_of_parameters_and_several_passes_a_step(engine):
    for spec in ("onebit+ef", "none"):
        outcomes = engine.gang(ranks.kinds_of_parameters, spec, size=2)
        assert outcomes[0] == outcomes[1]


def test_a_saved_and_loaded_run_continues_bit_for_bit(engine, tmp_path):
    specs = ["onebit+ef", "topk:0.05+ef", "qsgd:7", "randomk:0.1+ef", "threshold:auto+ef"]
    outcomes = engine.gang(ranks.resumed, [*specs, "powersgd:2"], str(tmp_path), size=3)
    for number, spec in enumerate([*specs, "powersgd:2"]):
        straight, again = outcomes[0][number]
        assert straight == again, spec
        assert outcomes[1][number] == outcomes[0][number]


def test_another_number_of_workers_keeps_what_is_still_to_be_said(engine, tmp_path):
    given = ("topk:0.05+ef", ["two-phase", "all-gather", "master", "hierarchical"], str(tmp_path))
    before = engine.gang(ranks.saved_after_some_steps, *given, size=4)
    for size in (2, 3):
        after = engine.gang(ranks.loaded, *given, size=size)
        for number, exchange in enumerate(given[1]):
            for side in range(len(before[0][number])):
                per_worker = side == 0
                total = torch.tensor([one[number][side] for one in before]).double().sum(0)
                now = torch.tensor([one[number][side] for one in after]).double().sum(0)
                if per_worker:  # a mean over workers enters the average
                    total, now = total / 4, now / size
                close = {"rtol": 1e-5, "atol": 1e-7}
                torch.testing.assert_close(now, total, **close, msg=exchange)
                assert float(total.abs().max()) > 0, exchange


def test_what_cannot_be_loaded_is_said(engine, tmp_path):
    [[missing, other, changed, rubbish]] = engine.gang(ranks.refused, str(tmp_path), size=1)
    assert "does not exist on this machine" in missing
    assert "was saved with onebit+ef by two-phase" in other
    assert "its checksum does not match" in changed
    assert "cannot be read" in rubbish
    assert SavedStateError("x", "y").exit_code == 1


def test_either_all_ranks_load_or_none(pair):
    first, second = pair["mixed_saves"]
    on_two_disks = "mixes files of several saves (rank 0 has step 1, rank 1 has step 2)"
    refused = "was refused on rank 1; see the error there"
    for (messages, is_unchanged), expected in (
        (first, [on_two_disks, refused, refused]),
        (second, [on_two_disks, "several saves (step 1, step 2)", "cannot be read"]),
    ):
        for message, part in zip(messages, expected, strict=True):
            assert part in message
        assert is_unchanged


def test_a_swap_keeps_residuals(pair):
    outcomes = pair["swapped"]
    assert [one[:2] for one in outcomes] == [[True, "none"]] * 2
    assert outcomes[0][2] == outcomes[1][2]


def test_momentum_of_the_hook_is_that_of_the_optimizer_if_nothing_is_lost(pair):
    for early, late in pair["momentum_before_and_after"]:
        for one, other in zip(early, late, strict=True):
            assert one == pytest.approx(other, rel=1e-4, abs=1e-6)


def test_a_swap_keeps_momentum(pair):
    assert pair["swapped_with_momentum"] == [[7, True]] * 2


def test_residuals_follow_the_learning_rate(pair):
    """What the next step applies, and what it keeps, is ten times the residual at a tenth of the rate."""
    before, applied, after = (
        torch.tensor(values).mean(0) for values in zip(*pair["learning_rates"], strict=True)
    )
    torch.testing.assert_close(applied + after, 10 * before, rtol=1e-5, atol=1e-6)
    assert float(before.abs().max()) > 0
    assert float(applied.abs().max()) > 0


def test_adam_is_warned_of_and_frozen_adam_learns(pair):
    outcomes = pair["adam"]
    for messages, first, last, sent_in_warm_up, _ in outcomes:
        assert len(messages) == 1
        assert "FrozenAdam" in messages[0]
        assert last < 0.5 * first
        # 30 steps of whole gradients, 4 bytes per value, half of them to each other, twice.
        assert sent_in_warm_up == pytest.approx(30 * 4 * 5070, rel=0.02)
    assert outcomes[0][4] == outcomes[1][4]


def test_without_ddp_it_is_the_same(pair):
    outcomes = pair["without_ddp"]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][0] == outcomes[0][1]


def test_trainers_may_register_it_themselves(pair):
    outcomes = pair["registered_by_a_trainer"]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][1] == 3


def test_nothing_is_lost_of_parameters_that_no_worker_used_in_a_step(pair):
    """All that was applied, and the mean of all that is kept, is the mean of all gradients."""
    first, second = pair["unused_parameters"]
    for case, by_name in first.items():
        for name, [applied, kept, given] in by_name.items():
            assert applied == second[case][name][0], case
            total_kept = torch.tensor(kept) + torch.tensor(second[case][name][1])
            mean = (torch.tensor(given) + torch.tensor(second[case][name][2])) / 2
            together = torch.tensor(applied) + total_kept
            torch.testing.assert_close(together, mean, rtol=1e-5, atol=1e-6, msg=f"{case} {name}")
            assert float(total_kept.abs().max()) > 0, (case, name)


def test_every_step_is_an_event(engine, tmp_path):
    stats = engine.gang(ranks.events, str(tmp_path), size=2)
    record = read_run(tmp_path)
    steps = [one.event for one in record.events if isinstance(one.event, StepDone)]
    assert len(steps) == 2 * 60
    assert sum(step.sent_bytes for step in steps) == sum(one["sent_bytes"] for one in stats)
    assert all(step.compute_s > 0 and step.encode_s > 0 and step.decode_s > 0 for step in steps)
    norms = [one.event for one in record.events if isinstance(one.event, ResidualNorm)]
    assert [norm.step for norm in norms] == [1, 1, 51, 51]
    [exchange] = [one for one in record.comparisons() if one.cost_id == "train/step/exchange"]
    assert exchange.measured.sent_bytes == sum(one["sent_bytes"] for one in stats)
    # Every bucket has its own header here, and buckets are tiny.
    assert exchange.predicted.sent_bytes == pytest.approx(exchange.measured.sent_bytes, rel=0.2)


def test_nonfinite_gradients_are_named(engine):
    with pytest.raises(GangError, match="holds NaN or infinity. Lower the learning rate"):
        engine.gang(ranks.broken, size=1)

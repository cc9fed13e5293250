"""`fit` with real processes: equal to loops, on unequal batches, restarts, failures."""

import pytest
import safetensors.torch
import torch

import talka
from talka.engine import Embedded
from tests.train.fitting import fit_ranks as ranks


@pytest.fixture(scope="module")
def engine():
    with Embedded() as engine:
        yield engine


def outcomes(engine, size, calls):
    """Run functions of `fit_ranks` in one gang; return the results of all ranks for each call."""
    of_ranks = engine.gang(ranks.calls, calls, size=size, timeout_s=300)
    return [list(results) for results in zip(*of_ranks, strict=True)]


def by_hand(*, epochs=3, dropout=0.0, num_samples=101, make=None):
    """The loop that `fit` replaces, on one machine."""
    model = ranks.new_model(dropout)
    make = make or (lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9))
    optimizer = make(model.parameters())
    shares = talka.train.Shares(20)
    shares.join(0, 1)
    data = torch.utils.data.TensorDataset(*ranks.samples(num_samples))
    loader = torch.utils.data.DataLoader(
        data, batch_sampler=shares.sampler(data), generator=torch.Generator()
    )
    losses = []
    torch.manual_seed(0)
    for _ in range(epochs):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = ranks.LOSS(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        losses.append(total / num_samples)
    return ranks.flat(model), losses


@pytest.mark.parametrize("rhythm", ["every-step", "delayed:0", "local-sgd:4"])
def test_one_worker_equals_a_loop_by_hand_bit_for_bit(rhythm):
    before = torch.get_rng_state()
    values, result = ranks.trained(None, dropout=0.3, rhythm=rhythm)
    expected, losses = by_hand(dropout=0.3)
    assert torch.equal(torch.tensor(values, dtype=torch.float64), expected)
    assert list(result["losses"]) == losses
    assert result["num_workers"] == 1
    assert result["num_steps"] == 18
    torch.set_rng_state(before)


def test_random_numbers_of_the_caller_are_kept():
    model, data = ranks.new_model(0.5), ranks.samples(30)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    talka.train.fit(model, data, ranks.LOSS, epochs=1, progress=False)
    assert torch.equal(torch.rand(3), expected)


def test_three_workers_equal_the_whole_batch_and_start_from_a_plain_process(engine, tmp_path):
    """The last batch has one sample, so two workers have none."""
    model, out = ranks.new_model(), tmp_path / "model.safetensors"
    result = talka.train.fit(
        model,
        ranks.samples(101),
        ranks.LOSS,
        engine=engine,
        num_workers=3,
        out=out,
        **ranks.options_with({}),
    )
    expected, losses = by_hand()
    torch.testing.assert_close(ranks.flat(model), expected, rtol=1e-4, atol=1e-6)
    assert result.losses == pytest.approx(losses, rel=1e-4)
    assert result.num_workers == 3
    assert result.path == out
    assert result.sent_bytes > 1000
    saved = ranks.new_model()
    saved.load_state_dict(safetensors.torch.load_file(out))
    assert torch.equal(ranks.flat(saved), ranks.flat(model))
    assert str(result).startswith("3 epochs (18 steps) on 3 workers: loss ")


RUNS = [
    {
        "rhythm": "every-step",
        "compressor": "onebit+ef",
        "norm": True,
        "num_samples": 100,
        "num_validation": 31,
    },  # fmt: skip,
    {"rhythm": "local-sgd:4", "num_validation": 31},
    {"rhythm": "local-sgd:4", "compressor": "uniform:3/max/512+ef", "optimizer": "adam:0.01"},
    {"rhythm": "delayed:2", "optimizer": ranks.lars},
    {"shares": "measured", "schedule": "cosine", "warmup_steps": 3, "scale_learning_rate": True},
]


def test_workers_end_with_the_same_model_that_has_learned(engine):
    calls = [("trained", {"epochs": 5, "accuracy": True, **run}) for run in RUNS]
    for run, of_ranks in zip(RUNS, outcomes(engine, 3, calls), strict=True):
        first = of_ranks[0]
        assert all(one[0] == first[0] for one in of_ranks), run
        for one in of_ranks:
            assert one[1] | {"seconds": 0} == first[1] | {"seconds": 0}, run
        assert first[1]["losses"][-1] < 0.8 * first[1]["losses"][0], run
        assert first[1]["accuracy"][-1] > 0.5, run


RESTARTS = [
    # Options of the call, and the step before which it ends: in the middle of an epoch, or behind one.
    ({"compressor": "onebit+ef", "dropout": 0.2, "norm": True, "num_samples": 100}, 8),
    ({"rhythm": "delayed:2", "optimizer": "adam:0.01", "num_validation": 31, "patience": 1}, 15),
    ({"rhythm": "local-sgd:4", "dropout": 0.2, "schedule": "cosine", "accuracy": True}, 10),
    ({"optimizer": "sgd:1", "schedule": talka.train.TheoremSteps(4.0, 1.0, 5.0)}, 13),
]


def test_a_training_that_was_ended_continues_bit_for_bit(engine, tmp_path):
    calls = [
        (
            "resumed",
            {"folder": str(tmp_path / str(place)), "stop_at": stop, "checkpoint_every": 5, **run},
        )
        for place, (run, stop) in enumerate(RESTARTS)
    ]
    results = outcomes(engine, 2, calls)
    for (run, _), of_ranks in zip(RESTARTS, results, strict=True):
        for straight, resumed, failure in of_ranks:
            assert failure == "this worker was ended", run
            assert resumed[0] == straight[0], run
            for name in ("losses", "validation", "accuracy", "best_epoch", "stopped_early"):
                assert resumed[1][name] == straight[1][name], (run, name)
            assert resumed[1]["num_steps"] == straight[1]["num_steps"]
    folders = sorted(path.name for path in (tmp_path / "0").iterdir())
    assert folders == ["step-00000010", "step-00000015"], "two are kept"

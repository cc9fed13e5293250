"""Bad input of `fit`, diverging losses, damaged checkpoints, full disks: clear errors on all ranks."""

import json
import re
import shutil

import numpy as np
import pytest
import torch
from torch import nn

import talka
from talka.engine import Embedded
from talka.errors import GangError, InvalidValueError, SavedStateError, TalkaError
from talka.train import RhythmConfig
from tests.train.fitting import fit_ranks as ranks

X, Y = torch.zeros(12, 8), torch.zeros(12, dtype=torch.int64)


class Endless(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield from ()


class Triples(torch.utils.data.Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, index):
        return 1.0, 2.0, 3.0


@pytest.mark.parametrize(
    "options, text",
    [
        ({"data": (X[:0], Y[:0])}, "data is 'empty', but must be at least one sample"),
        ({"data": (X, Y[:3])}, "two arrays of the same length"),
        ({"data": (X, Y, Y)}, "a tuple (x, y) of tensors or arrays"),
        ({"data": Endless()}, "data is 'Endless', but must be a Dataset with a length"),
        ({"data": Triples()}, "an item of data is 'list', but must be a pair"),
        ({"validation": (X[:0], Y[:0])}, "validation is 'empty'"),
        ({"batch_size": 0}, "batch_size is 0, but must be a whole number of at least 1"),
        ({"batch_size": 2, "num_workers": 3}, "at least 3, a sample for each worker"),
        ({"num_workers": 0}, "num_workers is 0, but must be at least 1"),
        ({"epochs": 1.5}, "epochs is 1.5"),
        ({"optimizer": "sdg:0.1"}, "no optimizer named 'sdg'. Did you mean 'sgd'?"),
        ({"optimizer": "sgd:much"}, "'sgd:RATE[/MOMENTUM]'"),
        ({"optimizer": "sgd"}, "'sgd:RATE[/MOMENTUM]'"),
        ({"optimizer": torch.optim.SGD([nn.Parameter(X)], lr=1)}, "it has none of them"),
        ({"rhythm": "local-sdg:4"}, "no rhythm named 'local-sdg'. Did you mean 'local-sgd'?"),
        ({"rhythm": "local-sgd"}, "local-sgd:K with a whole number K of at least 1"),
        ({"compressor": "onebit+fe"}, "does not name a compressor"),
        ({"exchange": "rign"}, "no exchange named 'rign'. Did you mean 'ring'?"),
        ({"schedule": "cosinus"}, "no schedule named 'cosinus'. Did you mean 'cosine'?"),
        ({"shares": "same"}, "no kind of shares named 'same'. Known: equal, measured"),
        ({"patience": 2}, "patience is 2, but must be None without validation data"),
        ({"checkpoint_every": 2}, "checkpoint_every needs a folder"),
        ({"out": "/nowhere/model.safetensors"}, "is in a folder that does not exist"),
        ({"resume": "/nowhere"}, "cannot resume from /nowhere: it has no complete checkpoint"),
        ({"loss": lambda output, y: output}, "a tensor of shape (12, 4)', but must be a function"),
    ],
)  # fmt: skip
def test_bad_input_is_named(options, text):
    data, loss = options.pop("data", (X, Y)), options.pop("loss", ranks.LOSS)
    with pytest.raises(TalkaError, match=re.escape(text)):
        talka.train.fit(ranks.new_model(), data, loss, **{"batch_size": 12, **options})


def test_arrays_of_numpy_and_datasets_of_pairs_are_data():
    pairs = [(x, int(y)) for x, y in zip(*ranks.samples(24), strict=True)]
    arrays = tuple(np.asarray(part) for part in ranks.samples(24))
    results = [
        talka.train.fit(ranks.new_model(), data, ranks.LOSS, **ranks.options_with({})).losses
        for data in (pairs, arrays)
    ]
    assert results[0] == results[1]


@pytest.mark.parametrize("options", [{"outer": "sgd:1"}, {"name": "local-sgd", "momentum": 0.9}])
def test_options_of_another_rhythm_are_refused(options):
    with pytest.raises(TalkaError, match="is not an option of the rhythm"):
        RhythmConfig(**options)


def test_a_wrapped_model_is_refused():
    with pytest.raises(InvalidValueError, match=r"plain nn\.Module"):
        talka.train.fit("resnet", (X, Y), ranks.LOSS)


@pytest.fixture(scope="module")
def engine():
    with Embedded() as engine:
        yield engine


def test_early_stopping_keeps_the_best_model(tmp_path):
    """Labels of the validation samples are random, so its loss soon rises."""
    x, y = ranks.samples(40, seed=9)
    data = x, y[torch.randperm(40, generator=torch.Generator().manual_seed(0))]
    options = ranks.options_with({"epochs": 60, "validation": data, "patience": 2})
    model = ranks.new_model()
    result = talka.train.fit(model, ranks.samples(60), ranks.LOSS, **options)
    assert result.stopped_early
    assert len(result.losses) == result.best_epoch + 2
    with torch.no_grad():
        loss = float(ranks.LOSS(model(data[0]), data[1]))
    assert loss == pytest.approx(min(result.validation), rel=1e-5)
    assert "(stopped early)" in str(result)


def damage(path):
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


@pytest.mark.slow
def test_all_ranks_report_what_is_wrong(engine, tmp_path):
    """One gang: a loss that is not finite, and all that can be wrong with a checkpoint."""
    good = tmp_path / "good"
    saved = {"num_validation": 20, "rhythm": "local-sgd:4"}
    ranks_of = engine.gang(
        ranks.calls, [("trained", {**saved, "epochs": 2, "checkpoint": str(good)})], size=2
    )
    assert ranks_of[0][0][0] == ranks_of[1][0][0]
    latest = sorted(good.iterdir())[-1].name
    for name, file in (("model", "model"), ("own", "worker-1"), ("rhythm", "rank-1")):
        shutil.copytree(good, tmp_path / name)
        damage(tmp_path / name / latest / f"{file}.safetensors")
    shutil.copytree(good, tmp_path / "manifest")
    manifest = tmp_path / "manifest" / latest / "checkpoint.json"
    content = json.loads(manifest.read_text())
    content["common"]["record"]["step"] = 3
    manifest.write_text(json.dumps(content))
    shutil.copytree(good, tmp_path / "incomplete")
    for folder in (tmp_path / "incomplete").iterdir():
        (folder / "checkpoint.json").unlink()
    cases = [
        (
            {"nan_at": (1, 6)},
            "WorkerDivergedError",
            "in step 7, 'loss' became NaN or infinite on rank 1",
        ),
        ({"resume": str(tmp_path / "model")}, "SavedStateError", "its checksum does not match"),
        ({"resume": str(tmp_path / "own")}, "SavedStateError", "its checksum does not match"),
        ({"resume": str(tmp_path / "rhythm")}, "SavedStateError", "its checksum does not match"),
        ({"resume": str(tmp_path / "manifest")}, "SavedStateError", "the one before is resume="),
        ({"resume": str(tmp_path / "incomplete")}, "SavedStateError", "no complete checkpoint"),
        ({"resume": str(good), "norm": True}, "SavedStateError", "is of another model: '1.weight'"),
        ({"resume": str(good), "batch_size": 10}, "SavedStateError", "with batch size 20, but"),
        (
            {"resume": str(good), "rhythm": "every-step"},
            "SavedStateError",
            "with rhythm local-sgd:4",
        ),
        ({"checkpoint": str(good)}, "OptionError", "has later checkpoints of another training"),
        ({"checkpoint": "/dev/full/here"}, "OutputError", "Not a directory"),
        ({"num_workers": 3}, "InvalidValueError", "None or 2, the number of ranks here"),
    ]
    calls = [("failing", {**saved, **options}) for options, _, _ in cases]
    outcomes = engine.gang(ranks.calls, calls, size=2, timeout_s=200)
    for place, (options, kind, text) in enumerate(cases):
        errors = [outcome[place] for outcome in outcomes]
        assert all(name for name, _ in errors), (options, errors)
        assert any(name == kind and text in message for name, message in errors), (options, errors)
        assert {name for name, _ in errors} <= {kind, "PeerFailedError"}, (options, errors)
    assert sorted(path.name for path in good.iterdir())[-1] == latest


@pytest.mark.slow
def test_a_full_disk_ends_all_ranks_and_leaves_the_last_checkpoint(engine, tmp_path):
    folder = tmp_path / "checkpoints"
    outcomes = engine.gang(ranks.full_disk, str(folder), size=2, timeout_s=100)
    assert outcomes[1][0][0] == "DiskFullError"
    assert "Earlier checkpoints are whole" in outcomes[1][0][1]
    assert outcomes[0][0][0] == "PeerFailedError"
    assert "No space left on device" in outcomes[0][0][1]
    assert outcomes[0][2] == outcomes[1][2] == ["step-00000006"]
    assert outcomes[0][1] == outcomes[1][1] == [3, 18], "it continues from there"


def test_an_error_of_a_worker_reaches_the_caller(engine):
    def broken(output, target):
        raise RuntimeError("this loss is broken")

    with pytest.raises(GangError, match="RuntimeError: this loss is broken"):
        talka.train.fit(
            ranks.new_model(), (X, Y), broken, num_workers=2, engine=engine, progress=False
        )


@pytest.mark.slow
def test_a_checkpoint_of_other_workers_is_continued(engine, tmp_path):
    """With another number of workers it is not the same to the bit."""
    options = {"checkpoint": str(tmp_path), "compressor": "onebit+ef"}
    engine.gang(ranks.calls, [("trained", {**options, "epochs": 2})], size=2)
    options |= {"resume": str(tmp_path)}
    [[one]] = [engine.gang(ranks.calls, [("trained", options)], size=1)[0]]
    assert one[1]["num_steps"] == 18
    assert one[1]["losses"][2] < one[1]["losses"][1]
    with pytest.raises(SavedStateError, match="compressor"):
        ranks.trained(None, resume=str(tmp_path))

"""Saved states: exact under a changing learning rate, refused whole if they do not belong here."""

import json

import pytest
import safetensors.torch
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from talka.errors import SavedStateError
from talka.train import attach
from talka.train.saved_file import checksum


class Training:
    """A linear model, a schedule that divides the learning rate by two every two steps, a hook."""

    def __init__(self, spec="topk:0.01+ef", *, shape=(20, 30), momentum=0.0):
        torch.manual_seed(0)
        self.model = nn.Linear(shape[1], shape[0], bias=False)
        ddp = DistributedDataParallel(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, gamma=0.5)
        self.hook = attach(ddp, spec, optimizer=self.optimizer, momentum=momentum)
        self.ddp = ddp

    def train(self, num_steps, start=0):
        for step in range(start, start + num_steps):
            x = torch.randn(
                8, self.model.in_features, generator=torch.Generator().manual_seed(step)
            )
            self.optimizer.zero_grad()
            self.ddp(x).square().mean().backward()
            self.optimizer.step()
            self.schedule.step()
        return self

    def continued_from(self, other, folder):
        """Load all that a script loads: the model, the optimizer, its schedule, and the hook."""
        self.model.load_state_dict(other.model.state_dict())
        self.optimizer.load_state_dict(other.optimizer.state_dict())
        self.schedule.load_state_dict(other.schedule.state_dict())
        self.hook.load(folder)
        return self

    def kept(self):
        return {key: value.clone() for key, value in self.hook.exchange.state().items()}


def is_same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("spec", ["topk:0.01+ef", "onebit+ef", "powersgd:2"])
def test_a_schedule_that_is_interrupted_continues_to_the_bit(alone, tmp_path, spec):
    straight = Training(spec).train(9)
    before = Training(spec).train(5)  # the rate changed after the last step
    before.hook.save(tmp_path)
    after = Training(spec).continued_from(before, tmp_path).train(4, start=5)
    assert torch.equal(after.model.weight, straight.model.weight)
    assert is_same(after.kept(), straight.kept())


def test_residuals_do_not_jump_when_loaded_at_the_end_of_a_schedule(alone, tmp_path):
    before = Training().train(16)
    norm = before.hook.exchange.residual_norm()
    before.hook.save(tmp_path)
    after = Training().continued_from(before, tmp_path)  # built with 256 times the rate
    assert after.optimizer.param_groups[0]["lr"] == 0.5 / 2**8
    after.train(1, start=16)
    assert after.hook.exchange.residual_norm() < 3 * norm


@pytest.mark.parametrize("spec", ["topk:0.1+ef", "powersgd:2", "randomk:0.1+ef"])
@pytest.mark.parametrize("shape", [(21, 30), (30, 20)])
@pytest.mark.timeout(60)
def test_a_state_of_another_shape_is_refused_and_changes_nothing(alone, tmp_path, spec, shape):
    Training(spec, momentum=0.9).train(2).hook.save(tmp_path)
    other = Training(spec, shape=shape, momentum=0.9).train(1)
    before = other.kept()
    with pytest.raises(SavedStateError, match=rf"'weight' of shape \(20, 30\), .*\({shape[0]}, "):
        other.hook.load(tmp_path)
    assert is_same(other.kept(), before)
    other.train(1, start=1)


def rewritten(path, *, version=None, change=None, tensors=None):
    """Change the metadata or tensors of a file, and make its checksum right again."""
    with safetensors.safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        state = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    state |= tensors or {}
    if version == 1:
        names = ("spec", "exchange", "num_workers")
        metadata = {"format": "talka-exchange-1", **{name: metadata[name] for name in names}}
    metadata |= change or {}
    metadata["checksum"] = checksum(state, {} if version == 1 else metadata)
    path.write_bytes(safetensors.torch.save(state, metadata))


def test_a_state_of_the_former_format_is_loaded_and_its_lengths_are_checked(alone, tmp_path):
    before = Training().train(3)
    before.hook.save(tmp_path)
    rewritten(tmp_path / "rank-0.safetensors", version=1)
    after = Training()
    after.hook.load(tmp_path)
    assert is_same(after.kept(), before.kept())
    with pytest.raises(SavedStateError, match=r"of shape \(600,\).* 'weight' of shape \(10, 30\)"):
        Training(shape=(10, 30)).hook.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"num_workers": "0"}, "num_workers 0, which is out of range"),
        ({"num_workers": "many"}, "num_workers 'many', which is not a whole number"),
        ({"step": "-1"}, "step '-1', which is not a whole number"),
        ({"rates": "[]"}, "rates that are not a JSON object"),
        ({"rates": '{"weight": -1.0}'}, "a learning rate of 'weight' that is not a number"),
        ({"shapes": "{"}, "shapes that are not JSON"),
        ({"shapes": json.dumps({"weight": 5})}, "a shape of 'weight' that is not a list"),
        ({"format": "talka-exchange-9"}, "was not written by save"),
    ],
)
def test_damaged_metadata_is_refused(alone, tmp_path, change, problem):
    training = Training().train(1)
    training.hook.save(tmp_path)
    rewritten(tmp_path / "rank-0.safetensors", change=change)
    with pytest.raises(SavedStateError, match=problem):
        training.hook.load(tmp_path)


def test_changed_metadata_is_noticed(alone, tmp_path):
    training = Training().train(1)
    training.hook.save(tmp_path)
    path = tmp_path / "rank-0.safetensors"
    path.write_bytes(path.read_bytes().replace(b'"step":"1"', b'"step":"2"'))
    with pytest.raises(SavedStateError, match="its checksum does not match"):
        training.hook.load(tmp_path)


def test_files_of_two_saves_are_not_mixed(alone, tmp_path):
    """Two files of a run of two workers, the second of which is of a later step."""
    training = Training().train(1)
    for rank in range(2):
        training.hook.save(tmp_path)
        path = tmp_path / "rank-0.safetensors"
        rewritten(path, change={"num_workers": "2"})
        path.rename(tmp_path / f"{rank}")
        training.train(1)
    for rank in range(2):
        (tmp_path / f"{rank}").rename(tmp_path / f"rank-{rank}.safetensors")
    with pytest.raises(SavedStateError, match=r"several saves \(step 1, step 2\)"):
        training.hook.load(tmp_path)
    for name in ("rank-0", "rank-1"):
        rewritten(tmp_path / f"{name}.safetensors", change={"step": "1", "save": "5"})
    training.hook.load(tmp_path)


def test_state_of_a_parameter_that_does_not_exist_is_refused(alone, tmp_path):
    training = Training().train(1)
    training.hook.save(tmp_path)
    extra = {"worker/residual/other": torch.zeros(3)}
    rewritten(tmp_path / "rank-0.safetensors", tensors=extra)
    with pytest.raises(SavedStateError, match="a parameter 'other', which this model does not"):
        training.hook.load(tmp_path)

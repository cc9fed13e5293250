"""The hook's state as a dict, for trainers that write checkpoints themselves."""

import pytest
import safetensors.torch
import torch

from talka.errors import SavedStateError
from tests.train.test_saved import Training, is_same


def continued(before, spec, state):
    after = Training(spec)
    after.model.load_state_dict(before.model.state_dict())
    after.optimizer.load_state_dict(before.optimizer.state_dict())
    after.schedule.load_state_dict(before.schedule.state_dict())
    after.hook.load_state_dict(state)
    return after


@pytest.mark.parametrize("spec", ["topk:0.01+ef", "onebit+ef", "threshold:auto+ef", "powersgd:2"])
def test_it_continues_to_the_bit_after_torch_save(alone, tmp_path, spec):
    straight = Training(spec).train(9)
    before = Training(spec).train(5)
    torch.save(before.hook.state_dict(), tmp_path / "hook.pt")
    state = torch.load(tmp_path / "hook.pt", weights_only=True)
    after = continued(before, spec, state).train(4, start=5)
    assert torch.equal(after.model.weight, straight.model.weight)
    assert is_same(after.kept(), straight.kept())
    assert after.hook.state_dict()["metadata"]["step"] == "9"


def test_its_two_parts_are_what_safetensors_takes_and_what_save_writes(alone, tmp_path):
    training = Training().train(3)
    state = training.hook.state_dict()
    training.hook.save(tmp_path)
    safetensors.torch.save_file(state["tensors"], tmp_path / "mine", state["metadata"])
    written = safetensors.torch.load_file(tmp_path / "rank-0.safetensors")
    assert is_same(safetensors.torch.load_file(tmp_path / "mine"), written)


def test_later_steps_do_not_change_it(alone):
    training = Training().train(3)
    state = training.hook.state_dict()
    copies = {key: tensor.clone() for key, tensor in state["tensors"].items()}
    training.train(2, start=3)
    assert is_same(state["tensors"], copies)


def with_metadata(state, **changes):
    """The same state with other metadata, whose checksum is right."""
    from talka.train.saved_file import checksum

    metadata = state["metadata"] | changes
    metadata["checksum"] = checksum(state["tensors"], metadata)
    return {"tensors": state["tensors"], "metadata": metadata}


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda state: None, "is not a dict of 'tensors' and 'metadata'"),
        (lambda state: {**state, "more": 1}, "is not a dict of 'tensors' and 'metadata'"),
        (lambda state: {**state, "tensors": {"a": 1}}, "entries that are not tensors or strings"),
        (lambda state: {**state, "tensors": {}}, "its checksum does not match"),
        (lambda state: with_metadata(state, rank="1"), "saved by rank 1, but this is rank 0"),
        (
            lambda state: with_metadata(state, num_workers="3"),
            "by 3 workers, but there are 1 now; hook.save",
        ),
        (lambda state: with_metadata(state, spec="onebit+ef"), "was saved with onebit"),
        (lambda state: with_metadata(state, step="x"), "step 'x', which is not a whole number"),
    ],
)
def test_what_does_not_belong_here_is_refused_and_changes_nothing(alone, damage, problem):
    training = Training().train(2)
    state = damage(training.hook.state_dict())
    training.train(1, start=2)
    before = training.kept()
    with pytest.raises(SavedStateError, match=problem):
        training.hook.load_state_dict(state)
    assert is_same(training.kept(), before)


def test_a_model_of_another_shape_is_refused(alone):
    state = Training().train(2).hook.state_dict()
    with pytest.raises(
        SavedStateError, match=r"'weight' of shape \(20, 30\), but .*\(10, 30\) now"
    ):
        Training(shape=(10, 30)).hook.load_state_dict(state)

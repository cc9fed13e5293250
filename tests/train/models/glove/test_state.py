import numpy as np
import pytest

from talka.errors import OutputError, SavedStateError
from talka.train.models.glove import GloVe, GloVeConfig
from tests.train.models.glove.planted import planted


@pytest.fixture(scope="module")
def blocks():
    return planted(20_000, num_words=300, block_edge=100)


def saved_model(blocks, path):
    model = GloVe(blocks.num_words, 10, config=GloVeConfig(x_max=50.0), seed=7)
    model.train_epoch(blocks)
    model.save(path)
    return model


def test_a_loaded_model_goes_on_bit_for_bit(blocks, tmp_path):
    model = saved_model(blocks, tmp_path / "model.arrow")
    loaded = GloVe.load(tmp_path / "model.arrow")
    assert (loaded.epochs_done, loaded.seed, loaded.dim, loaded.num_words) == (1, 7, 10, 300)
    assert loaded.config == model.config
    assert loaded.train_epoch(blocks) == model.train_epoch(blocks)
    assert loaded._table.tobytes() == model._table.tobytes()


def test_rows_of_a_loaded_model_begin_at_cache_lines(blocks, tmp_path):
    saved_model(blocks, tmp_path / "model.arrow")
    assert GloVe.load(tmp_path / "model.arrow")._table.ctypes.data % 64 == 0


def test_saving_again_replaces_the_file_and_leaves_nothing_beside_it(blocks, tmp_path):
    model = saved_model(blocks, tmp_path / "model.arrow")
    model.train_epoch(blocks)
    model.save(tmp_path / "model.arrow")
    assert [path.name for path in tmp_path.iterdir()] == ["model.arrow"]
    assert GloVe.load(tmp_path / "model.arrow").epochs_done == 2


def test_a_changed_byte_is_noticed(blocks, tmp_path):
    path = tmp_path / "model.arrow"
    saved_model(blocks, path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(SavedStateError, match="checksum"):
        GloVe.load(path)


@pytest.mark.parametrize("length", [0, 10, 1_000, 50_000])
def test_a_file_that_was_cut_off_is_refused(blocks, tmp_path, length):
    path = tmp_path / "model.arrow"
    saved_model(blocks, path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(SavedStateError):
        GloVe.load(path)


def test_another_arrow_file_is_refused(tmp_path):
    import pyarrow as pa

    batch = pa.record_batch({"values": np.zeros(3, np.float32)})
    with pa.ipc.new_file(str(tmp_path / "other.arrow"), batch.schema) as writer:
        writer.write_batch(batch)
    with pytest.raises(SavedStateError, match="is not a saved model"):
        GloVe.load(tmp_path / "other.arrow")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(SavedStateError, match="nothing.arrow"):
        GloVe.load(tmp_path / "nothing.arrow")


def test_a_folder_that_does_not_exist_is_an_output_error(blocks, tmp_path):
    with pytest.raises(OutputError, match="missing"):
        GloVe(3, 2).save(tmp_path / "missing" / "model.arrow")

import json

import pytest

from talka.data.text import PairOptions, count_pairs, load_counted, save_counted
from talka.errors import OutputError, SavedStateError
from tests.data.text.samples import resources, scan


@pytest.fixture
def counted(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    corpus = scan(source, ["a b c straße мир\nb c d\n" * 20], min_count=1, resources=resources())
    return corpus.vocabulary, count_pairs(corpus, PairOptions(block_edge=2), resources=resources())


@pytest.fixture
def folder(tmp_path, counted):
    save_counted(tmp_path / "work", *counted, about={"min_count": 1})
    return tmp_path / "work"


def test_what_was_saved_is_loaded_as_it_was(folder, counted):
    vocabulary, pairs = counted
    loaded = load_counted(folder)
    assert loaded.vocabulary.words == vocabulary.words
    assert loaded.vocabulary.counts.tolist() == vocabulary.counts.tolist()
    assert loaded.pairs.pairs.tobytes() == pairs.pairs.tobytes()
    assert loaded.pairs.index.tolist() == pairs.index.tolist()
    assert (loaded.pairs.num_words, loaded.pairs.block_edge) == (6, 2)
    assert loaded.about == {"min_count": 1}


def test_saving_again_replaces_what_was_there(folder, counted):
    save_counted(folder, *counted, about={"min_count": 2})
    assert load_counted(folder).about == {"min_count": 2}
    assert len(list(folder.iterdir())) == 3


def test_progress_sums_up_to_the_bytes_of_the_pairs(tmp_path, counted):
    amounts = []
    save_counted(tmp_path / "work", *counted, about={}, advance=amounts.append)
    assert sum(amounts) == counted[1].pairs.nbytes


def test_an_interrupt_while_saving_leaves_nothing_to_go_on_from(folder, counted):
    def interrupt(amount):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_counted(folder, *counted, about={}, advance=interrupt)
    with pytest.raises(SavedStateError, match="did not finish"):
        load_counted(folder)
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("name", ["pairs.bin", "vocabulary.arrow"])
def test_a_flipped_bit_is_found(folder, name):
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    with pytest.raises(SavedStateError, match=f"{name}.*damaged"):
        load_counted(folder)


@pytest.mark.parametrize("name", ["pairs.bin", "vocabulary.arrow", "pairs.json"])
def test_a_missing_file_is_found(folder, name):
    (folder / name).unlink()
    with pytest.raises(SavedStateError, match=f"{name}.*missing"):
        load_counted(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_broken_index_is_found(folder, text):
    (folder / "pairs.json").write_text(text)
    with pytest.raises(SavedStateError, match="damaged"):
        load_counted(folder)


def test_another_format_version_is_rejected(folder):
    saved = json.loads((folder / "pairs.json").read_text())
    (folder / "pairs.json").write_text(json.dumps({**saved, "form": 99}))
    with pytest.raises(SavedStateError, match="format version 99"):
        load_counted(folder)


def test_a_folder_that_cannot_be_written_is_an_error_that_names_it(tmp_path, counted):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="file"):
        save_counted(tmp_path / "file", *counted, about={})

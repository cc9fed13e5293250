"""Keys of saved state: the text in files stays as it is, and reads back as the same key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.compress import StateKey
from talka.compress.state_key import SIDES

NAMES = st.text(st.characters(codec="utf-8"), max_size=20)
WHOLE = st.builds(
    StateKey,
    st.sampled_from(["residual", "momentum", "start", "extra"]),
    NAMES,
    offset=st.none(),
    side=st.sampled_from(["", *SIDES]),
)
SLICES = st.builds(
    StateKey,
    st.sampled_from(["times", "floor"]),
    NAMES,
    st.integers(0, 10**15 - 1),
    st.sampled_from(["", *SIDES]),
)


@given(st.one_of(WHOLE, SLICES))
def test_a_key_reads_back_from_its_text(key):
    assert StateKey.parse(str(key)) == key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("worker/residual/fc/weight", StateKey("residual", "fc/weight", side="worker")),
        ("owner/times/0/b", StateKey("times", "b", 0, "owner")),
        ("floor/7/", StateKey("floor", "", 7)),
        ("residual/worker/w", StateKey("residual", "worker/w")),
    ],
)
def test_texts_of_former_files_are_read(text, key):
    assert StateKey.parse(text) == key
    assert str(key) == text


@pytest.mark.parametrize(
    "text", ["times", "times/x", "worker/times/-1/w", "floor/\u0663/w", "times/" + "9" * 16 + "/w"]
)
def test_slices_without_a_plain_offset_are_refused(text):
    with pytest.raises(ValueError, match="has no offset"):
        StateKey.parse(text)

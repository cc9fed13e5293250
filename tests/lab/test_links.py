"""The commands for `ip` and `tc`; test_lab.py tests their effect."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.errors import LabError
from talka.lab.base import MAX_RATE_BITS_PER_S, MIN_RATE_BITS_PER_S
from talka.lab.links import find_program, limit_command

RATES = st.floats(MIN_RATE_BITS_PER_S, MAX_RATE_BITS_PER_S)


@given(RATES)
def test_a_bucket_holds_a_few_frames_and_at_most_a_millisecond_or_32_kb(rate):
    words = re.fullmatch(
        r"qdisc add dev eth0 root tbf rate (\d+)bit burst (\d+) limit (\d+)",
        limit_command("add", "eth0", rate),
    )
    set_rate, burst, queue = map(int, words.groups())
    assert set_rate == pytest.approx(rate, abs=1)
    assert 2 * 1514 <= burst <= max(32_000, rate / 8 * 0.001 + 1)
    assert queue >= burst


def test_a_program_that_is_missing_is_named():
    with pytest.raises(LabError, match="`no-such-program` is missing. Install iproute2"):
        find_program("no-such-program")


def test_programs_are_found_where_only_root_looks(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_program("tc").endswith("/tc")

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.errors import InvalidValueError
from talka.units import (
    format_bytes,
    format_count,
    format_rate,
    format_seconds,
    parse_bytes,
    parse_count,
    parse_rate,
    parse_seconds,
)

PARSERS = [parse_bytes, parse_rate, parse_seconds, parse_count]
WITHIN = 0.0051  # three digits are shown


@pytest.mark.parametrize(
    "text, num_bytes",
    [
        ("0", 0),
        ("400", 400),
        ("1B", 1),
        (" 25 MB ", 25_000_000),
        ("25mb", 25_000_000),
        ("1.5GiB", 3 * 2**29),
        (".5kB", 500),
        ("2.kB", 2000),
        ("1e3", 1000),
        ("1E-1kB", 100),
        ("2PB", 2 * 10**15),
    ],
)
def test_sizes_as_people_write_them(text, num_bytes):
    assert parse_bytes(text) == num_bytes


@pytest.mark.parametrize(
    "text, rate",
    [("1gbit", 1e9), ("100 Mbit/s", 1e8), ("2.5tbit", 2.5e12), ("10bit", 10.0), ("1kbit", 1e3)],
)
def test_rates_as_people_write_them(text, rate):
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    "text, seconds",
    [("5", 5), ("5s", 5), ("2min", 120), ("1h", 3600), ("250us", 250e-6), ("3ns", 3e-9)],
)
def test_times_as_people_write_them(text, seconds):
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text, count", [("0", 0), ("20k", 20_000), ("2.9M", 2_900_000), ("1B", 10**9)]
)
def test_counts_as_people_write_them(text, count):
    assert parse_count(text) == count


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "-1",
        "+1",
        "x",
        "MB",
        "1 2",
        "1,5",
        "1.2.3",
        "nan",
        "inf",
        "1e999",
        "5 parsecs",
        "0x10",
        "1e",
    ],
)
def test_invalid_text_is_refused_with_the_name_of_the_option(parse, text):
    with pytest.raises(InvalidValueError) as caught:
        parse(text, name="--option")
    assert caught.value.name == "--option"
    assert caught.value.given == text


@pytest.mark.parametrize("text", ["0gbit", "100", "1GB", "1gbps"])
def test_a_rate_is_above_zero_and_has_a_unit_of_bits(text):
    with pytest.raises(InvalidValueError, match="bits per second"):
        parse_rate(text)


@pytest.mark.parametrize("text", ["1.5", "0.5", "0.0001k", "1e-3"])
def test_a_count_is_whole(text):
    with pytest.raises(InvalidValueError, match="whole number"):
        parse_count(text)


@given(st.text())
def test_any_text_parses_or_is_refused(text):
    for parse in PARSERS:
        with contextlib.suppress(InvalidValueError):
            assert 0 <= parse(text) < math.inf


@given(st.integers(0, 2**53))
def test_whole_numbers_round_trip(number):
    assert parse_bytes(str(number)) == number
    assert parse_count(str(number)) == number


@given(st.integers(0, 10**17))
def test_shown_sizes_come_back_nearly(num_bytes):
    assert parse_bytes(format_bytes(num_bytes)) == pytest.approx(num_bytes, rel=WITHIN)


@given(st.floats(1, 1e15))
def test_shown_rates_come_back_nearly(rate):
    assert parse_rate(format_rate(rate)) == pytest.approx(rate, rel=WITHIN)


@given(st.integers(0, 10**15))
def test_shown_counts_come_back_nearly(count):
    assert parse_count(format_count(count)) == pytest.approx(count, rel=WITHIN)


@given(st.floats(0, 99))
def test_shown_times_come_back_nearly(seconds):
    assert parse_seconds(format_seconds(seconds)) == pytest.approx(seconds, rel=WITHIN)


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0, "0 ms"),
        (0.9999, "1 s"),
        (99.94, "99.9 s"),
        (99.96, "1 min 40 s"),
        (3599.6, "1 h 0 min"),
        (7380, "2 h 3 min"),
        (-200, "-3 min 20 s"),
        (-0.25, "-250 ms"),
        (math.inf, "inf s"),
    ],
)
def test_times_as_people_read_them(seconds, text):
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    "num_bytes, text",
    [
        (0.5, "0.5 B"),
        (999, "999 B"),
        (999.6, "1.00 kB"),
        (12_345, "12.3 kB"),
        (999_499, "999 kB"),
        (999_950, "1.00 MB"),
        (-25_000_000, "-25.0 MB"),
        (5e18, "5000 PB"),
    ],
)
def test_sizes_as_people_read_them(num_bytes, text):
    assert format_bytes(num_bytes) == text

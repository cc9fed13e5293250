"""Estimates of counting and training from samples of a text."""

import numpy as np
import pytest

from talka.data.text import PairBlocks, TextReader, count_pairs, scan_corpus
from talka.jobs.embeddings import estimate as module
from talka.jobs.embeddings.estimate import estimate, stretch_pairs
from talka.jobs.embeddings.predictions import training_parts
from talka.jobs.embeddings.sliced_rate import sliced_rate
from talka.jobs.growth import extrapolated
from tests.jobs.embeddings.small_text import config_of, small_text


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(small_text())
    return path


def pairs_of(text):
    config = config_of(text)
    corpus = scan_corpus([text], tokenizer=config.text.tokenizer, min_count=config.text.min_count)
    return count_pairs(corpus, config.text.pairs)


def test_a_stretched_sample_keeps_its_counts_and_fills_the_vocabulary(text):
    pairs = pairs_of(text)
    wide = stretch_pairs(pairs, 5 * pairs.num_words, 10**9)
    assert isinstance(wide, PairBlocks)
    assert sorted(wide.pairs["count"]) == sorted(pairs.pairs["count"])
    rows, cols = wide.words()
    assert max(rows.max(), cols.max()) >= 4 * pairs.num_words
    assert max(rows.max(), cols.max()) < wide.num_words
    assert 50 < stretch_pairs(pairs, pairs.num_words, 100).num_pairs < 150


def test_interruptions_do_not_count_and_a_word_of_a_longer_text_costs_more(text, monkeypatch):
    """Slow outliers among the timings are ignored; two doublings add twice the rise."""
    counted, slow = module._count, iter([9.0, 1.0, 1.0] * 99)
    monkeypatch.setattr(
        module,
        "_count",
        lambda *args: counted(*args)._replace(scan_s=0.2 * next(slow), count_s=0.1 * next(slow)),
    )
    reader = TextReader([str(text)])
    expected = estimate(config_of(text), reader, total_bytes=4 * text.stat().st_size)
    assert expected.scan_s == pytest.approx(0.8)
    assert expected.count_s == pytest.approx(0.4 * (1 + 2 * module.RISE_PER_DOUBLING))


def test_processes_with_slices_are_tried(text):
    config = config_of(text, parallel="dimensions", workers=2)
    rate = sliced_rate(config, pairs_of(text))
    assert np.isfinite(rate)
    assert rate > 0
    expected = estimate(config, TextReader([str(text)]))
    assert expected is not None
    assert expected.train_pairs_per_s > 0


def test_training_in_slices_takes_as_long_as_its_products(text):
    config = config_of(text, parallel="dimensions", workers=2, epochs=3)
    _, cost = training_parts(config, 1_000_000, pairs_per_s=1_000.0, trials=())
    assert cost.seconds == pytest.approx((3_000_000 + 3 * 100_000) / 1_000.0)


def test_a_sample_shorter_than_the_limit_is_halved_too(text, monkeypatch):
    asked, first = [], module.TextSample.first

    def noted(sample, max_bytes):
        asked.append(max_bytes / sample.num_bytes)
        return first(sample, max_bytes)

    monkeypatch.setattr(module.TextSample, "first", noted)
    estimate(config_of(text), TextReader([str(text)]))
    assert asked[0] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("between", [0.4, 1.0, 2.0])
def test_growth_does_not_depend_on_where_the_sample_is_cut(between):
    part = 1000 / 2 ** (0.7 * between)  # the 0.7th power of the length
    assert extrapolated(part, 1000, 3.0, between=between) == pytest.approx(
        extrapolated(1000 / 2**0.7, 1000, 3.0)
    )

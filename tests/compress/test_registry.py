"""Short forms: the compressors they make, and errors for wrong ones."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import talka.compress
from talka.compress import COMPRESSORS, ErrorFeedback, compressor
from talka.errors import InvalidValueError, SpecError
from talka.short_forms import NAMES, parsed
from tests.compress.specs import ALL

SHARES = st.floats(1e-6, 1).map(repr)
BUCKETS = st.one_of(st.just("all"), st.integers(16, 1 << 28).map(str))
GRID_WORDS = st.lists(st.one_of(st.sampled_from(["l2", "max"]), BUCKETS), max_size=2)


@pytest.mark.parametrize("spec", ALL)
def test_the_spec_of_a_compressor_makes_it_again(spec):
    one = compressor(spec)
    assert one.spec == spec
    assert isinstance(one, ErrorFeedback) == spec.endswith("+ef")
    assert type(getattr(one, "inner", one)) is COMPRESSORS[spec.partition(":")[0].split("+")[0]]


@given(
    name=st.sampled_from(sorted(COMPRESSORS)),
    first=st.one_of(st.integers(0, 40000).map(str), SHARES, st.sampled_from(["", "auto", "x"])),
    words=GRID_WORDS,
    last=st.sampled_from(["", "fixed"]),
    feedback=st.sampled_from(["", "+ef"]),
)
def test_short_forms_come_back(name, first, words, last, feedback):
    arguments = [one for one in (first, *words, last) if one]
    spec = name + (":" + "/".join(arguments) if arguments else "") + feedback
    try:
        one = compressor(spec)
    except SpecError:
        return
    assert compressor(one.spec).spec == one.spec


@pytest.mark.parametrize(
    "wrong, right",
    [
        ("top-k:0.01", "topk:0.01"),
        ("topk:0.01+fe", "topk:0.01+ef"),
        ("topk:0.01+", "topk:0.01+ef"),
        ("onebit:ef", "onebit+ef"),
        ("topk:0.01/ef", "topk:0.01+ef"),
        ("qsgd7", "qsgd:7"),
        ("qsgd7/max/512+ef", "qsgd:7/max/512+ef"),
        ("TOPK:0.01", "topk:0.01"),
        ("one_bit", "onebit"),
        ("1bit", "onebit"),
        ("fp-16", "fp16"),
        (" fp16", "fp16"),
        ("fp15", "fp16"),
        ("none:", "none"),
        ("unifrom:3/max/512", "uniform:3/max/512"),
        ("signifcance:2", "significance:2"),
    ],
)
def test_the_near_miss_is_named(wrong, right):
    with pytest.raises(SpecError) as caught:
        compressor(wrong)
    assert repr(right) in str(caught.value)
    assert caught.value.spec == wrong
    assert compressor(right).spec == right


@pytest.mark.parametrize("wrong", ["", "+ef", "gzip:9", ":", "topk/0.01", "ef"])
def test_errors_of_unknown_names_list_all_names(wrong):
    with pytest.raises(SpecError) as caught:
        compressor(wrong)
    assert all(name in str(caught.value) for name in COMPRESSORS)


@pytest.mark.parametrize(
    "wrong, allowed",
    [
        ("fp16:3", "fp16"),
        ("terngrad:3", "terngrad"),
        ("qsgd", "qsgd:7"),
        ("qsgd:0", "from 1 to 32767"),
        ("qsgd:32768", "from 1 to 32767"),
        ("qsgd:7/8", "16 or more"),
        ("qsgd:7/max/l2", "l2 or max"),
        ("qsgd:7/max/max", "l2 or max"),
        ("qsgd:7/512/512", "qsgd:7/1024"),
        ("qsgd:-7", "from 1"),
        ("qsgd:7.5", "from 1"),
        ("qsgd:\u0667", "from 1"),
        ("uniform:17", "from 1 to 16"),
        ("uniform:3/fixed", "uniform:3/max/512"),
        ("uniform", "uniform:3"),
        ("topk:2", "topk:0.01"),
        ("topk", "topk:0.01"),
    ],
)
def test_errors_of_wrong_arguments_name_what_is_allowed(wrong, allowed):
    with pytest.raises(SpecError) as caught:
        compressor(wrong)
    assert allowed in str(caught.value)


def test_low_rank_is_no_compressor():
    with pytest.raises(SpecError, match=r"talka.train.attach\(ddp, 'powersgd:4'\)"):
        compressor("powersgd:4")


def test_options_reach_the_compressor():
    one = compressor("topk:0.5", seed=7, nonfinite="pass", min_compressed_values=10)
    assert (one.seed, one.nonfinite, one.min_compressed_values) == (7, "pass", 10)
    with pytest.raises(InvalidValueError, match="nonfinite"):
        compressor("none", nonfinite="ignore")


def test_import_of_the_package_is_cheap():
    code = "import sys, talka; print({'torch', 'numba', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_torch_free_grammar_knows_every_compressor():
    assert set(NAMES) == set(COMPRESSORS)
    for spec in ALL:
        assert parsed(spec).name == spec.partition(":")[0].split("+")[0]


def test_former_names_still_work_with_a_warning():
    with pytest.warns(DeprecationWarning, match="is now called 'min_compressed_values'"):
        assert compressor("topk:0.5", whole_below=10).min_compressed_values == 10
    with pytest.warns(DeprecationWarning, match="is now called SectionCompressor"):
        assert talka.compress.Sectioned is talka.compress.SectionCompressor
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        talka.compress.Nothing  # noqa: B018

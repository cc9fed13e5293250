"""Payloads that were cut, changed or forged: an error, never a crash, a hang or much memory."""

import contextlib
import random
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.compress import Payload, compressor, layout_of
from talka.compress.payload import HEADER, SECTION
from talka.errors import PayloadError
from tests.bounds import lines_said_with_bounds_checked
from tests.compress.sparse_cases import vector
from tests.compress.specs import PLAIN
from tests.hostile.payloads import EXTREMES, attack, attempt, mutated, sealed, wrapped

LAYOUT = layout_of({"w": (5, 9), "b": (9,)})


def payload_of(spec, num_values=54, layout=LAYOUT):
    values = torch.from_numpy(vector("gaussian", num_values, 1))
    if num_values == 54:
        values[9:18] = 0  # a row of zeros
    return bytes(compressor(spec).encode(values, layout).data.numpy())


@pytest.mark.parametrize("spec", PLAIN)
def test_a_payload_cut_anywhere_is_an_error(spec):
    data = payload_of(spec)
    for length in range(len(data)):
        with pytest.raises(PayloadError):
            Payload.from_bytes(data[:length])
        cut = Payload(torch.from_numpy(np.frombuffer(data[:length], np.uint8).copy()))
        with pytest.raises(PayloadError):
            compressor(spec).decode(cut, torch.empty(54), LAYOUT)


@pytest.mark.parametrize("spec", PLAIN)
def test_every_bit_that_changes_is_noticed(spec):
    data = payload_of(spec)
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(PayloadError):
            Payload.from_bytes(changed)


@pytest.mark.parametrize("data", [b"", b"tk", bytes(24), bytes(1000), b"tk\x01\x00" + bytes(20)])
def test_other_bytes_are_no_payload(data):
    with pytest.raises(PayloadError):
        Payload.from_bytes(data)


def test_floats_are_no_payload():
    with pytest.raises(PayloadError, match="uint8"):
        Payload.from_bytes(torch.zeros(100))


@pytest.mark.parametrize("spec", PLAIN)
def test_forged_heads_are_errors(spec):
    """Each 4 bytes of headers become a number that matters, the checksum is made right again."""
    data = payload_of(spec, 600, None)
    for place in range(8, HEADER.size + SECTION.size, 4):
        for word in EXTREMES:
            forged = bytearray(data)
            forged[place : place + 4] = word.to_bytes(4, "little")
            if bytes(forged) != data:
                try:
                    refused = attempt(compressor(spec), sealed(forged), 600)
                except PayloadError:  # it does not even have a place for a checksum
                    refused = True
                assert refused, (place, word)


@pytest.mark.parametrize("spec", PLAIN)
def test_sections_of_other_tensors_are_errors(spec):
    data = payload_of(spec)
    for other in (layout_of({"w": (54,)}), layout_of({"w": (6, 8), "b": (6,)}), LAYOUT[:1]):
        with pytest.raises(PayloadError):
            compressor(spec).decode(Payload.from_bytes(data), torch.empty(54), other)


@pytest.mark.parametrize("spec", PLAIN)
@settings(max_examples=100, deadline=None)
@given(
    body=st.one_of(
        st.binary(max_size=80),
        st.lists(st.sampled_from(EXTREMES), max_size=12).map(
            lambda words: b"".join(word.to_bytes(4, "little") for word in words)
        ),
    ),
    num_values=st.sampled_from([1, 16, 40, 1000, 100_000]),
)
def test_any_bytes_may_be_a_body(spec, body, num_values):
    one = compressor(spec)
    attempt(one, wrapped(one.code, num_values, body), num_values)


@pytest.mark.parametrize("spec", PLAIN)
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 1 << 32), num_values=st.sampled_from([2, 33, 600, 3000]))
def test_changed_bodies_take_little_memory(spec, seed, num_values):
    data = payload_of(spec, num_values, None)
    forged = mutated(data, random.Random(seed))
    decoder, out = compressor(spec), torch.zeros(num_values)

    def decode_forged():
        with contextlib.suppress(PayloadError):
            decoder.decode(Payload.from_bytes(forged), out)

    decode_forged()  # loads kernels, which take memory once
    tracemalloc.start()
    try:
        decode_forged()
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 200_000 + 40 * (num_values + len(forged))


def test_forged_payloads_are_refused_or_decoded():
    accepted, refused = attack(4_000, seed=1)
    assert accepted + refused == 4_000
    assert accepted > 400
    assert refused > 400


@pytest.mark.slow
@pytest.mark.timeout(900)  # it compiles all kernels again, on a machine that may be busy
def test_no_kernel_looks_outside_of_its_arrays(tmp_path):
    """All kernels again with bounds checked, on good payloads of all sizes and on forged ones."""
    check = partial(lines_said_with_bounds_checked, "tests.hostile.payloads", tmp_path)
    with ThreadPoolExecutor(2) as pool:  # compiling takes most of the time
        said = [pool.submit(check, *specs) for specs in (PLAIN[::2], PLAIN[1::2])]
    assert sum(len(one.result()) for one in said) == len(PLAIN)

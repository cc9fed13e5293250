"""Short forms that stand for all compressors: every name, with and without feedback."""

from talka.compress import COMPRESSORS, compressor

FIXED_SIZE = [
    "none",
    "fp16",
    "bf16",
    "trunc16",
    "onebit",
    "onebit:64",
    "uniform:3",
    "uniform:3/max/512",
    "qsgd:7/fixed",
    "topk:0.01",
    "randomk:0.01",
]
BY_DATA = [
    "qsgd:7",
    "qsgd:7/max/512",
    "terngrad",
    "threshold:0.5",
    "threshold:auto",
    "significance:2",
]
PLAIN = FIXED_SIZE + BY_DATA
FEEDBACK = [f"{spec}+ef" for spec in PLAIN if compressor(spec).contracts]
ALL = PLAIN + FEEDBACK

assert {compressor(spec).name for spec in PLAIN} == set(COMPRESSORS)

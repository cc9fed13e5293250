"""The codec that `attach` opens an exchange with; `explain train` prices the same one."""

from talka.compress.protocol import NonFinite
from talka.exchange.power_sgd import Codec
from talka.exchange.registry import codec_of

MIN_COMPRESSED_VALUES = 256
"""Number of values below which a parameter is sent uncompressed. Compressing fewer is worth its
time only on links below about half a Gbit/s (`benchmarks/compressors.py` prints it by size), and
biases are better sent exactly."""


def attached_codec(
    compressor: str | Codec,
    *,
    nonfinite: NonFinite | None = None,
    min_compressed_values: int | None = None,
) -> Codec:
    """Return the codec of a short form with the defaults of training; an object has its own."""
    if min_compressed_values is None and isinstance(compressor, str):
        min_compressed_values = MIN_COMPRESSED_VALUES
    return codec_of(compressor, nonfinite=nonfinite, min_compressed_values=min_compressed_values)

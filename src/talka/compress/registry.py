"""Compressors by their short form.

none                     name[:argument[/argument...]][+ef]
topk:0.01+ef             `+ef` puts error feedback around it
uniform:3/max/512        arguments after the first are separated by slashes
"""

from talka.compress.base import NonFinite, SectionCompressor
from talka.compress.feedback import ErrorFeedback
from talka.compress.halves import Bf16, Fp16, Trunc16
from talka.compress.none import NoCompression
from talka.compress.onebit import OneBit
from talka.compress.quantisers import Qsgd, TernGrad, Uniform
from talka.compress.randomk import RandomK
from talka.compress.significance import Significance
from talka.compress.threshold import Threshold
from talka.compress.topk import TopK
from talka.errors import SpecError
from talka.renaming import renamed
from talka.short_forms import LOW_RANK, parsed

COMPRESSORS: dict[str, type[SectionCompressor]] = {
    one.name: one
    for one in (
        NoCompression,
        Fp16,
        Bf16,
        Trunc16,
        OneBit,
        Uniform,
        Qsgd,
        TernGrad,
        TopK,
        RandomK,
        Threshold,
        Significance,
    )
}


@renamed(whole_below="min_compressed_values")
def compressor(
    spec: str, *, seed: int = 0, nonfinite: NonFinite = "error", min_compressed_values: int = 0
) -> SectionCompressor | ErrorFeedback:
    """The compressor that a short form names.

    seed
        Of all random choices; workers that share it make their shared choices alike.
    nonfinite
        Of tensors that hold NaN or infinity: "error" raises NonFiniteError, "pass" sends them whole.
    min_compressed_values
        Pieces of fewer values travel whole: saving little is not worth the error.

    >>> compressor("none+ef").spec
    'none+ef'
    >>> compressor("trunk16")
    Traceback (most recent call last):
    talka.errors.payloads.SpecError: 'trunk16' names no compressor; allowed is 'trunc16', the nearest.
    """
    name, arguments, has_feedback = parsed(spec)
    if name == LOW_RANK:
        raise SpecError(
            spec,
            "is no compressor but an exchange of its own: what is said second depends on the sum "
            "of what was said first",
            f"talka.train.attach(ddp, {spec!r})",
        )
    inner = COMPRESSORS[name].parse(
        arguments, seed=seed, nonfinite=nonfinite, min_compressed_values=min_compressed_values
    )
    return ErrorFeedback(inner) if has_feedback else inner

"""Compressors by their short form.

none                     name[:argument[/argument...]][+ef]
topk:0.01+ef             `+ef` wraps it in error feedback
uniform:3/max/512        arguments after the first are separated by slashes
"""

from typing import Protocol

from talka import short_forms
from talka.compress.base import SectionCompressor
from talka.compress.feedback import ErrorFeedback
from talka.compress.halves import Bf16, Fp16, Trunc16
from talka.compress.none import NoCompression
from talka.compress.onebit import OneBit
from talka.compress.protocol import Compressor, NonFinite, check_compressor
from talka.compress.quantisers import Qsgd, TernGrad, Uniform
from talka.compress.randomk import RandomK
from talka.compress.significance import Significance
from talka.compress.threshold import Threshold
from talka.compress.topk import TopK
from talka.errors import SpecError
from talka.renaming import renamed
from talka.short_forms import LOW_RANK, parsed

COMPRESSORS: dict[str, type[SectionCompressor]] = {
    kind.name: kind
    for kind in (
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
"""Compressors of talka; those that were registered are not among them."""


class Factory(Protocol):
    """Makes a compressor from the arguments of a short form, such as `SectionCompressor.parse`."""

    def __call__(
        self, arguments: list[str], *, seed: int, nonfinite: NonFinite, min_compressed_values: int
    ) -> Compressor: ...


_registered: dict[str, Factory] = {}


def register(name: str, factory: Factory) -> None:
    """Make `name` usable in short forms, such as `name`, `name:0.5` and `name:0.5+ef`.

    The factory is called with the texts between the slashes after the colon, and with the options
    of `compressor()`. A `SectionCompressor` has one: `register("mine", Mine.parse)`. Every process
    that uses the name has to register it. Registering the same factory again changes nothing.
    """
    if _registered.get(name) != factory:
        short_forms.add_name(name)
        _registered[name] = factory


@renamed(whole_below="min_compressed_values")
def compressor(
    spec: str, *, seed: int = 0, nonfinite: NonFinite = "error", min_compressed_values: int = 0
) -> Compressor:
    """Return the compressor that a short form describes.

    seed
        Seed of all random choices; workers with the same seed agree on their shared choices.
    nonfinite
        What happens to tensors with NaN or infinity: "error" raises NonFiniteError, "pass" sends
        them uncompressed.
    min_compressed_values
        Number of values below which a piece is sent uncompressed: the few bytes saved are not worth
        the error.

    >>> compressor("none+ef").spec
    'none+ef'
    >>> compressor("trunk16")
    Traceback (most recent call last):
    talka.errors.payloads.SpecError: 'trunk16' does not name a compressor; allowed is 'trunc16', the nearest.
    """
    name, arguments, has_feedback = parsed(spec)
    if name == LOW_RANK:
        raise SpecError(
            spec,
            "is an exchange, not a compressor: its second message depends on the sum of the first "
            "messages of all workers",
            f"talka.train.attach(ddp, {spec!r})",
        )
    factory: Factory = _registered[name] if name in _registered else COMPRESSORS[name].parse
    inner = factory(
        arguments, seed=seed, nonfinite=nonfinite, min_compressed_values=min_compressed_values
    )
    if name in _registered:
        check_compressor(inner)
    return ErrorFeedback(inner) if has_feedback else inner

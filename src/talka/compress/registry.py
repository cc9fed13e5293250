"""Compressors by their short form.

none                     name[:argument[/argument...]][+ef]
topk:0.01+ef             `+ef` puts error feedback around it
uniform:3/max/512        arguments after the first are separated by slashes
"""

import difflib
import re
from collections.abc import Iterator

from talka.compress.base import NonFinite, Sectioned
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

COMPRESSORS: dict[str, type[Sectioned]] = {
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


def compressor(
    spec: str, *, seed: int = 0, nonfinite: NonFinite = "error", whole_below: int = 0
) -> Sectioned | ErrorFeedback:
    """The compressor that a short form names.

    seed
        Of all random choices; workers that share it make their shared choices alike.
    nonfinite
        Of tensors that hold NaN or infinity: "error" raises NonFiniteError, "pass" sends them whole.
    whole_below
        Pieces of fewer values travel whole: saving little is not worth the error.

    >>> compressor("none+ef").spec
    'none+ef'
    >>> compressor("trunk16")
    Traceback (most recent call last):
    talka.errors.payloads.SpecError: 'trunk16' names no compressor; allowed is 'trunc16', the nearest.
    """
    name, arguments, feedback = _parts(spec)
    if name == "powersgd":
        raise SpecError(
            spec,
            "is no compressor but an exchange of its own: what is said second depends on the sum "
            "of what was said first",
            f"talka.train.attach(ddp, {spec!r})",
        )
    if "ef" in arguments:
        kept = "/".join(one for one in arguments if one != "ef")
        mended = f"{name}:{kept}+ef" if kept else f"{name}+ef"
        raise SpecError(spec, "has 'ef' where arguments stand", repr(mended))
    if name not in COMPRESSORS or feedback not in ("", "+ef") or "" in arguments:
        raise SpecError(spec, "names no compressor", _allowed(spec))
    inner = COMPRESSORS[name].parse(
        arguments, seed=seed, nonfinite=nonfinite, whole_below=whole_below
    )
    return ErrorFeedback(inner) if feedback else inner


def _parts(spec: str) -> tuple[str, list[str], str]:
    """Name, arguments, and what follows them from `+` on."""
    head, plus, rest = spec.partition("+")
    name, colon, arguments = head.partition(":")
    return name, arguments.split("/") if colon else [], plus + rest


def _allowed(spec: str) -> str:
    """The nearest short form that is one, or what there is."""
    for mended in _probably_meant(spec):
        name, arguments, feedback = _parts(mended)
        try:
            inner = COMPRESSORS[name].parse(arguments)
            return repr(ErrorFeedback(inner).spec if feedback else inner.spec) + ", the nearest"
        except (KeyError, SpecError):
            continue
    return f"name[:argument[/argument...]][+ef] with a name of {', '.join(COMPRESSORS)}"


def _probably_meant(spec: str) -> Iterator[str]:
    head, plus, _ = re.sub(r"\s", "", spec.lower()).partition("+")
    name, _, rest = head.partition(":")
    guesses = [(name, rest)]
    if glued := re.fullmatch(r"([a-z]+)(\d.*)", head):
        guesses.append((glued[1], glued[2]))
    for name, rest in guesses:
        for near in difflib.get_close_matches(re.sub(r"[-_.]", "", name), COMPRESSORS):
            yield near + (f":{rest}" if rest else "") + ("+ef" if plus else "")

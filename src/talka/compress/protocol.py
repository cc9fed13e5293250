"""The interface that exchanges expect of a compressor, whether it is part of talka or not.

`SectionCompressor` in `base.py` implements all of this for one that can encode a section; see
`examples/own_compressor.py`. A class that implements it on its own should inherit from
`Compressor`, which answers False for every property.
"""

from typing import Literal, Protocol, Self

from torch import Tensor

from talka.compress.layout import Layout
from talka.compress.payload import Payload
from talka.compress.state_key import State
from talka.errors import InvalidValueError

NonFinite = Literal["error", "pass"]


class Properties(Protocol):
    """Properties that decide which exchanges and optimizers suit a compressor."""

    sparse: bool = False
    """True if a payload holds a few of the values, and the others count as zero."""
    unbiased: bool = False
    """True if the mean of many encodings of a vector is that vector."""
    contracts: bool = False
    """True if the loss is always smaller than the input, so that error feedback is bounded."""
    summable: bool = False
    """True if encoded vectors can be summed without decoding them; see `Summable`."""
    safe_with_adam: bool = False
    """True if values arrive so nearly exact that Adam's variance is that of the gradients.

    This has to hold with error feedback, too. Without feedback, Adam also suits compressors that
    are `unbiased`."""
    keeps_largest: bool = False
    """True if a payload holds the K largest values, which is what `global-topk` needs."""
    keeps_residuals: bool = False
    """True if what an encoding loses is added to the next one."""


class Compressor(Properties, Protocol):
    """Encodes flat vectors into payloads, and decodes them.

    A payload begins with the header that `talka.compress.payload` describes: exchanges read its
    length there, and `Payload.check` its checksum. `PayloadWriter` writes it.
    """

    nonfinite: NonFinite
    """Treatment of NaN and infinity by `encode`.

    "error" raises NonFiniteError with the name of the parameter; nothing is sent, and the state
    stays finite. "pass" sends the piece so that it is not finite at the receivers either."""

    @property
    def spec(self) -> str:
        """Short form that describes this compressor; saved states are compared by it."""
        ...

    def encode(
        self, values: Tensor, layout: Layout | None = None, *, out: Tensor | None = None
    ) -> Payload:
        """Return the payload of the pieces of a flat vector; of the whole vector without a layout.

        With `out` (uint8, at least `max_bytes` long), the payload is written there. `values` must
        not be changed.
        """
        ...

    def decode(
        self,
        payload: Payload,
        out: Tensor,
        layout: Layout | None = None,
        *,
        add: bool = False,
        scale: float = 1.0,
    ) -> None:
        """Write `scale` times the encoded values to the same pieces of `out`, or add them there.

        The payload may be damaged: raise PayloadError before reading beyond its end. It may come
        from the compressor of another worker, so nothing may depend on this one's state.
        """
        ...

    def expected_bytes(self, num_values: int, layout: Layout | None = None) -> float:
        """Return the expected size of a payload, for predictions."""
        ...

    def max_bytes(self, num_values: int, layout: Layout | None = None) -> int:
        """Return an upper bound of the size of a payload: the size of receive buffers."""
        ...

    def for_worker(self, index: int) -> Self:
        """Return a copy without state for worker `index`, with random numbers of that worker."""
        ...

    def state(self) -> State:
        """Return all that the next `encode` depends on, for checkpoints.

        Keys of compressors outside of talka have the kind `extra` and any name.
        """
        ...

    def load_state(self, state: State) -> None:
        """Replace the state by one that `state` returned; other kinds of keys are ignored."""
        ...


class Summable(Compressor, Protocol):
    """A compressor whose encoded vectors can be summed as they are."""

    def to_wire(self, values: Tensor, layout: Layout | None = None) -> Tensor:
        """Return a dense tensor; those of all workers have equal length and can be added."""
        ...

    def from_wire(self, wire: Tensor, out: Tensor, layout: Layout | None = None) -> None:
        """Decode a sum of such tensors into `out`, after `to_wire` was called with that layout."""
        ...

    def wire_bytes(self, num_values: int, layout: Layout | None = None) -> float:
        """Return the size of such a tensor in bytes, for predictions."""
        ...


_MEMBERS = (
    *("sparse", "unbiased", "contracts", "summable", "safe_with_adam", "keeps_largest"),
    *("keeps_residuals", "spec", "nonfinite", "encode", "decode", "expected_bytes", "max_bytes"),
    *("for_worker", "state", "load_state"),
)
_WIRE_MEMBERS = ("to_wire", "from_wire", "wire_bytes")


def check_compressor(candidate: object) -> None:
    """Raise InvalidValueError if an object lacks members of `Compressor`; the error names them."""
    if isinstance(candidate, type):
        described, problem = f"class {_named(candidate)}", "this is a class, not an object of it"
    else:
        members = _MEMBERS + (_WIRE_MEMBERS if getattr(candidate, "summable", False) else ())
        missing = [member for member in members if not hasattr(candidate, member)]
        if not missing:
            return
        described, problem = _named(type(candidate)), f"it has no {', '.join(missing)}"
    raise InvalidValueError(
        "compressor",
        described,
        "a short form such as 'onebit+ef', or an object with all members of "
        f"talka.compress.Compressor; {problem}",
    )


def _named(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"

"""Errors about payloads, gradients and compressor specs."""

from talka.errors.base import TalkaError


class PayloadError(TalkaError, ValueError):
    """Received bytes are not a valid payload, or were changed in transit.

    >>> print(PayloadError("has 3 bytes, fewer than its header"))
    the payload has 3 bytes, fewer than its header. It was truncated or changed in transit, or is not a payload.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"the payload {self.problem}. It was truncated or changed in transit, or is not a payload."


class NonFiniteError(TalkaError, ArithmeticError):
    """A gradient contains NaN or infinity, which a compressor would spread to all workers.

    >>> print(NonFiniteError("fc1.weight"))
    'fc1.weight' holds NaN or infinity. Lower the learning rate or clip gradients; nonfinite="pass" sends such tensors uncompressed. With a GradScaler, use attach(..., scaler=scaler).
    """

    def __init__(self, tensor: str) -> None:
        super().__init__(tensor)
        self.tensor = tensor

    def __str__(self) -> str:
        return (
            f"{self.tensor!r} holds NaN or infinity. Lower the learning rate or clip gradients; "
            'nonfinite="pass" sends such tensors uncompressed. With a GradScaler, use '
            "attach(..., scaler=scaler)."
        )


class SpecError(TalkaError, ValueError):
    """A short form such as `topk:0.01+ef` is not valid.

    >>> print(
    ...     SpecError(
    ...         "topk:2", "keeps a share of the values", "a share above 0 and up to 1: topk:0.01"
    ...     )
    ... )
    'topk:2' keeps a share of the values; allowed is a share above 0 and up to 1: topk:0.01.
    """

    exit_code = 2

    def __init__(self, spec: str, problem: str, allowed: str) -> None:
        super().__init__(spec, problem, allowed)
        self.spec, self.problem, self.allowed = spec, problem, allowed

    def __str__(self) -> str:
        return f"{self.spec!r} {self.problem}; allowed is {self.allowed}."

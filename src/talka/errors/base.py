"""What every error is, and the two that are raised everywhere.

A message says what happened, what was given, what is allowed and what to do. Arguments stay in
`args`, so that an error survives the way between processes. `exit_code` is what the command line
returns: 2 when the caller can mend the input, 1 when the job itself failed.
"""

import difflib
from collections.abc import Sequence


class TalkaError(Exception):
    """Root of every error this package raises on purpose."""

    exit_code = 1


class InvalidValueError(TalkaError, ValueError):
    """An option or argument is outside of what is allowed.

    >>> print(InvalidValueError("--workers", 0, "a whole number of at least 1"))
    --workers is 0, but must be a whole number of at least 1.
    """

    exit_code = 2

    def __init__(self, name: str, given: object, allowed: str) -> None:
        super().__init__(name, given, allowed)
        self.name, self.given, self.allowed = name, given, allowed

    def __str__(self) -> str:
        return f"{self.name} is {self.given!r}, but must be {self.allowed}."


class UnknownNameError(TalkaError, LookupError):
    """A name is not among the known ones; the nearest known one is offered.

    >>> print(UnknownNameError("exchange", "rign", ("ring", "tree")))
    no exchange named 'rign'. Did you mean 'ring'? Known: ring, tree.
    """

    exit_code = 2

    def __init__(self, kind: str, name: str, known: Sequence[str]) -> None:
        super().__init__(kind, name, tuple(known))
        self.kind, self.name, self.known = kind, name, tuple(known)

    def __str__(self) -> str:
        close = difflib.get_close_matches(self.name, self.known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        return f"no {self.kind} named {self.name!r}.{hint} Known: {', '.join(self.known)}."

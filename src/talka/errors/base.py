"""The base class of all errors, and errors about names and options.

A message states what happened, what was given, what is allowed and what to do. Arguments stay in
`args`, so that errors can be pickled and sent between processes. `exit_code` is the exit code of the
command line: 2 if the caller can correct the input, 1 if the job itself failed.
"""

import difflib
from collections.abc import Iterable, Sequence


class TalkaError(Exception):
    """Base class of all errors that talka raises on purpose."""

    exit_code = 1


class InvalidValueError(TalkaError, ValueError):
    """An option or argument has a value that is not allowed.

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
    """A name is not known; the message suggests the most similar one.

    >>> print(UnknownNameError("exchange", "rign", ("ring", "tree")))
    no exchange named 'rign'. Did you mean 'ring'? Known: ring, tree.
    """

    exit_code = 2

    def __init__(self, kind: str, name: str, known: Sequence[str]) -> None:
        super().__init__(kind, name, tuple(known))
        self.kind, self.name, self.known = kind, name, tuple(known)

    def __str__(self) -> str:
        hint = did_you_mean(self.name, self.known)
        return f"no {self.kind} named {self.name!r}.{hint} Known: {', '.join(self.known)}."


class OptionError(TalkaError, ValueError):
    """An option or argument is missing, or cannot be combined with the others.

    >>> print(OptionError("--source", "is missing", "Give the id of the vertex where bfs starts."))
    --source is missing. Give the id of the vertex where bfs starts.
    """

    exit_code = 2

    def __init__(self, name: str, problem: str, advice: str) -> None:
        super().__init__(name, problem, advice)
        self.name, self.problem, self.advice = name, problem, advice

    def __str__(self) -> str:
        return f"{self.name} {self.problem}. {self.advice}"


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return a question that suggests the most similar known name; empty if none is similar.

    >>> did_you_mean("grpah", ["graph", "report"]), did_you_mean("x", ["graph"])
    (" Did you mean 'graph'?", '')
    """
    close = difflib.get_close_matches(given, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""

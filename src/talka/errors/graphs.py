"""Errors about graphs and graph programs."""

from talka.errors.base import TalkaError


class ProgramError(TalkaError, ValueError):
    """A function of a graph program is not valid or cannot be compiled.

    >>> print(ProgramError("message", "walk.py:3", "it calls itself"))
    the program's `message` (walk.py:3): it calls itself.
    """

    exit_code = 2

    def __init__(self, function: str, where: str, problem: str) -> None:
        super().__init__(function, where, problem)
        self.function, self.where, self.problem = function, where, problem

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"the program's `{self.function}`{place}: {self.problem}."


class NeverHaltsError(TalkaError):
    """A graph program did not halt within the allowed number of supersteps.

    >>> print(NeverHaltsError(100, 12))
    after 100 supersteps 12 vertices were still active. Make `active` return False at some \
point, or allow more with max_supersteps.
    """

    def __init__(self, superstep: int, num_active: int) -> None:
        super().__init__(superstep, num_active)
        self.superstep, self.num_active = superstep, num_active

    def __str__(self) -> str:
        return (
            f"after {self.superstep} supersteps {self.num_active} vertices were still active."
            " Make `active` return False at some point, or allow more with max_supersteps."
        )


class GraphError(TalkaError, ValueError):
    """The given data does not define a graph.

    >>> print(GraphError("3 sources and 2 targets", "Give as many targets as sources."))
    no graph from 3 sources and 2 targets. Give as many targets as sources.
    """

    exit_code = 2

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(problem, advice)
        self.problem, self.advice = problem, advice

    def __str__(self) -> str:
        return f"no graph from {self.problem}. {self.advice}"


class EdgeFileError(TalkaError, ValueError):
    """A file of edges or vertices cannot be read; `line` is None if the error has no line.

    >>> print(EdgeFileError("edges.txt", 7, "'x' is not a whole number", "Fix it."))
    edges.txt, line 7: 'x' is not a whole number. Fix it.
    """

    exit_code = 2

    def __init__(self, path: str, line: int | None, problem: str, advice: str) -> None:
        super().__init__(path, line, problem, advice)
        self.path, self.line, self.problem, self.advice = path, line, problem, advice

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}, line {self.line}"
        return f"{where}: {self.problem}. {self.advice}"


class UnknownVertexError(TalkaError, LookupError):
    """A vertex id is not in the graph.

    >>> print(UnknownVertexError(7, "whole numbers from 1 to 5"))
    no vertex 7 in the graph. Its ids are whole numbers from 1 to 5.
    """

    exit_code = 2

    def __init__(self, vertex: object, known: str) -> None:
        super().__init__(vertex, known)
        self.vertex, self.known = vertex, known

    def __str__(self) -> str:
        return f"no vertex {self.vertex!r} in the graph. Its ids are {self.known}."


class GraphTooLargeError(TalkaError, MemoryError):
    """A graph would not fit into memory; raised before any memory is allocated.

    >>> print(GraphTooLargeError("9.0 G edges", "216 GB", "24.0 GB"))
    a graph of about 9.0 G edges needs about 216 GB of memory to build, and 24.0 GB are free. Use a machine with more memory, or fewer edges.
    """

    def __init__(self, size: str, needed: str, available: str) -> None:
        super().__init__(size, needed, available)
        self.size, self.needed, self.available = size, needed, available

    def __str__(self) -> str:
        return (
            f"a graph of about {self.size} needs about {self.needed} of memory to build, and "
            f"{self.available} are free. Use a machine with more memory, or fewer edges."
        )

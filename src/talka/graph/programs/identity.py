"""Identity of a run, kept in its checkpoints: the graph, its partitioning, and the program.

General programs of this package are identified by name and parameters alone, so that a later
version can resume them; those of users by their code, because an edited program must not resume
from the state of another one. Edge programs are identified by the text of their kernels.
"""

import functools
import hashlib
import re
import sys
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, make_dataclass
from typing import Any, Final

import numpy as np

from talka.graph.graph import GraphData
from talka.graph.programs.edge_program import EdgeProgram
from talka.graph.programs.vertex_program import VertexProgram
from talka.graph.supersteps.edge_plan import EdgePlan

_FORMER_FIELDS: Final = {"identity": "nothing", "local_rounds": "goes_on_alone"}
"""Names that fields of `EdgePlan` had in the first version: they are part of what is hashed."""
_FUNCTIONS: Final = ("message", "update", "initial", "active", "starts", "settled")
_PLAIN: Final = (bool, int, float, complex, str, bytes, types.NoneType, types.EllipsisType)
_NOT_CODE: Final = {"__module__", "__qualname__", "__doc__", "__dict__", "__weakref__"}


def identity(graph: GraphData, cut: Sequence[Any], program: Iterable[Any]) -> str:
    """Return a hash of the graph, its partitioning, and the parts that identify the program."""
    hashed = hashlib.sha256(graph.fingerprint().encode())
    for part in (*cut, *program):
        is_array = isinstance(part, np.ndarray)
        hashed.update(np.ascontiguousarray(part).data if is_array else repr(part).encode())
    return hashed.hexdigest()


def parts_of_edge_program(program: EdgeProgram, plan: EdgePlan) -> list[Any]:
    """Return what identifies an edge program: its plan with the kernel text, and its attributes."""
    functions = [getattr(program, name) for name in _FUNCTIONS]
    if all(function is None or _package_of(function) == "talka" for function in functions):
        # The first version did not convert numbers to signed ones in the text of kernels.
        text = re.sub(r"np\.int64\((\w+(?:\[\w+\])?)\)", r"\1", plan.text)
        return [_as_first_written(plan, text=text), *program.attributes.values()]
    takes_superstep = {f.name for f in program.functions if "superstep" in f.parameters}
    # The first version passed `update` and `active` another superstep than `message`.
    counted = ["superstep of messages"] if {"update", "active"} & takes_superstep else []
    return [_as_first_written(plan), *program.attributes.values(), *counted]


def _as_first_written(plan: EdgePlan, **changes: Any) -> Any:
    """Return the plan with the `repr` of the first version, whose checkpoints have its hash."""
    values = {field.name: getattr(plan, field.name) for field in fields(plan)} | changes
    former = {_FORMER_FIELDS.get(name, name): value for name, value in values.items()}
    return make_dataclass("EdgePlan", former)(**former)


def parts_of_vertex_program(program: VertexProgram) -> list[Any]:
    """Return what identifies a general program: name, attributes and, if it is a user's, code."""
    kind = type(program)
    named = [kind.__module__, kind.__qualname__]
    if _package_of(kind) == "talka":
        return named + [part for pair in sorted(vars(program).items()) for part in pair]
    description = Description(_package_of(kind))
    return [*named, description.of(kind), description.of(vars(program))]


class Description:
    """Texts that are the same for the same values and code, in every process.

    Code of libraries is described by its name alone, except for the program's own package.

    >>> Description().of({1: (2.0, np.int8(3))})
    '{1: (2.0, int8 3)}'
    """

    def __init__(self, package: str = "") -> None:
        self._package = package
        self._above: list[int] = []

    def of(self, value: Any) -> str:
        """Return the text for a value."""
        if isinstance(value, _PLAIN):
            return repr(value)
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            data = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            return f"array {value.dtype} {value.shape} {data}"
        if isinstance(value, np.generic):
            return f"{value.dtype} {value.item()!r}"
        if id(value) in self._above:
            return "(itself)"
        self._above.append(id(value))
        try:
            return self._of_parts(value)
        finally:
            self._above.pop()

    def _of_parts(self, value: Any) -> str:
        if isinstance(value, tuple | list):
            return f"({', '.join(map(self.of, value))})"
        if isinstance(value, set | frozenset):
            return f"{{{', '.join(sorted(map(self.of, value)))}}}"
        if isinstance(value, Mapping):
            return f"{{{', '.join(f'{self.of(k)}: {self.of(v)}' for k, v in value.items())}}}"
        return f"{_name(value)} ({', '.join(self._parts(value))})"

    def _parts(self, value: Any) -> Iterator[str]:
        """Yield texts for all that defines a function, a class or another object."""
        value = getattr(value, "py_func", value)  # the function that numba compiled
        if isinstance(value, types.CodeType):
            yield from (value.co_code.hex(), repr(value.co_names), repr(value.co_varnames))
            yield self.of(value.co_consts)
        elif isinstance(value, types.FunctionType):
            if self._is_users(value):
                yield self.of(value.__code__)
                yield self.of([value.__defaults__, value.__kwdefaults__])
                yield self.of([_content(cell) for cell in value.__closure__ or ()])
                names = sorted(_names_in(value.__code__) & value.__globals__.keys())
                yield self.of({name: value.__globals__[name] for name in names})
        elif isinstance(value, type):
            if self._is_users(value):
                yield self.of(value.__mro__[1:])
                members = sorted(vars(value).items())
                yield self.of({name: member for name, member in members if name not in _NOT_CODE})
        elif isinstance(value, staticmethod | classmethod | types.MethodType):
            yield self.of(value.__func__)
        elif isinstance(value, property):
            yield self.of([value.fget, value.fset, value.fdel])
        elif isinstance(value, functools.partial | functools.cached_property):
            yield self.of([value.func, getattr(value, "args", ()), vars(value)])
        elif not isinstance(value, types.ModuleType):
            yield re.sub(r" at 0x[0-9a-f]+", "", repr(value))
            yield self.of(getattr(value, "__dict__", {}))

    def _is_users(self, value: Any) -> bool:
        """Return True if the code belongs to the program and not to this package or a library."""
        package = _package_of(value)
        if package in ("talka", "builtins"):
            return False
        file = getattr(sys.modules.get(value.__module__ or ""), "__file__", None) or ""
        is_library = package in sys.stdlib_module_names or "site-packages" in file
        return package == self._package or not is_library


def _name(value: Any) -> str:
    kind = value if isinstance(value, type | types.FunctionType) else type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return f"{name} {value.__name__}" if isinstance(value, types.ModuleType) else name


def _names_in(code: types.CodeType) -> set[str]:
    nested = [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return set(code.co_names).union(*map(_names_in, nested))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _package_of(value: Any) -> str:
    return str(getattr(value, "__module__", "")).split(".")[0]

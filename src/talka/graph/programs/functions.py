"""A user's plain function as source text that stands on its own.

Kernels are generated as files, because only functions in files are kept on disk by numba. So what
a function refers to goes with it: numbers as literals, modules as imports, helpers as functions.
"""

import ast
import copy
import inspect
import math
import types
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from talka.errors import ProgramError

_MODULES = {math: "math", np: "np"}
_IMPORTED = {getattr(math, name): f"math.{name}" for name in dir(math) if name[0] != "_"}

_CONSTANTS = (bool, int, float, types.ModuleType, types.BuiltinFunctionType)
_MAX_TEXTS = 1_000
_texts: dict[Hashable, "Function"] = {}
"""Texts of functions that were asked for before: algorithms make their programs in every call."""

_RANDOM_MODULES = ("random", "secrets")
_NO_RANDOMNESS = (
    "it draws random numbers with {}, so a superstep that is run again after a loss would give other"
    " values; compute them from `vertex`, `superstep` and a seed among the parameters, as"
    " docs/graphs.md shows"
)


class Function(NamedTuple):
    """One function of a program: what it asks for by name, and its text."""

    name: str
    parameters: tuple[str, ...]
    text: str
    """Definitions of everything it needs, itself last, as `name`."""
    where: str
    """File and line, for errors."""


def function_text(function: Callable[..., Any], name: str) -> Function:
    """The function as text under another name.

    >>> def shorter(value, weight):
    ...     return value + weight
    >>> function_text(shorter, "message").parameters
    ('value', 'weight')
    """
    function = getattr(function, "py_func", function)  # compiled by numba already: as it was
    if not isinstance(function, types.FunctionType):
        raise ProgramError(name, "", f"{function!r} is no plain Python function")
    key = _key(function, name)
    if key in _texts:
        return _texts[key]
    made = Function(
        name,
        tuple(inspect.signature(function).parameters),
        "\n".join(_definitions(function, name, ())),
        where_is(function),
    )
    if key is not None:
        if len(_texts) >= _MAX_TEXTS:
            _texts.clear()
        _texts[key] = made
    return made


def _key(
    function: types.FunctionType, name: str, above: tuple[types.FunctionType, ...] = ()
) -> Hashable | None:
    """Return what its text depends on, helpers included; None if something else is among it."""
    bound = inspect.getclosurevars(function)
    values: list[Hashable] = []
    for known, value in {**bound.globals, **bound.nonlocals}.items():
        inner = getattr(value, "py_func", value)
        if isinstance(inner, types.FunctionType) and inner not in above:
            helper = _key(inner, known, (*above, function))
            if helper is None:
                return None
            values.append(helper)
        elif isinstance(value, _CONSTANTS):
            # Equal numbers can have other texts: 1, 1.0 and True, or 0.0 and -0.0.
            values.append((known, value, repr(value)))
        else:
            return None
    return (name, where_is(function), function.__code__, *values, *sorted(bound.unbound))


def where_is(function: types.FunctionType) -> str:
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"


def _definitions(
    function: types.FunctionType, name: str, above: tuple[types.FunctionType, ...]
) -> list[str]:
    if function in above:
        raise ProgramError(name, where_is(function), "it calls itself")
    tree = _tree_of(function, name)
    bound = inspect.getclosurevars(function)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    known_values = {**bound.globals, **bound.nonlocals}
    drawn_with = _randomness(tree, {key: known_values[key] for key in used & known_values.keys()})
    if drawn_with is not None:
        part = name.partition("__")[0]  # of a helper: the function of the program that calls it
        raise ProgramError(part, where_is(function), _NO_RANDOMNESS.format(drawn_with))
    if unknown := sorted(used & bound.unbound):
        raise ProgramError(name, where_is(function), f"{unknown[0]} is not defined")
    before: list[str] = []
    renamed: dict[str, str] = {}
    for known, value in known_values.items():
        if isinstance(value, types.ModuleType) and value in _MODULES:
            renamed[known] = _MODULES[value]
            continue
        inner = getattr(value, "py_func", value)
        renamed[known] = f"{name}__{known}"
        if isinstance(inner, types.FunctionType):
            before += _definitions(inner, renamed[known], (*above, function))
        elif isinstance(inner, types.BuiltinFunctionType) and inner in _IMPORTED:
            before.append(f"{renamed[known]} = {_IMPORTED[inner]}")
        else:
            before.append(f"{renamed[known]} = {_literal(value, known, function, name)}")
    _Rename(renamed).visit(tree)
    tree.name = name
    return [*before, f"@inlined\n{ast.unparse(tree)}"]


def _randomness(tree: ast.AST, known: Mapping[str, Any]) -> str | None:
    """What the function draws random numbers with, as it is written there."""
    for name, value in known.items():
        if _is_random(value):
            return name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _RANDOM_MODULES:
            written = ast.unparse(node)
            owner = known.get(written.partition(".")[0])
            if owner is None or isinstance(owner, types.ModuleType):
                return written
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imported = [*(alias.name for alias in node.names), getattr(node, "module", "") or ""]
            if any(part in _RANDOM_MODULES for path in imported for part in path.split(".")):
                return ast.unparse(node)
    return None


def _is_random(value: Any) -> bool:
    """Whether it is one of those modules, a function or a generator from one, or a method of it."""
    if isinstance(value, types.ModuleType):
        return value.__name__.rpartition(".")[2] in _RANDOM_MODULES
    for source in (value, getattr(value, "__self__", None), type(value)):
        module = getattr(source, "__module__", None)
        if isinstance(module, str) and any(p in _RANDOM_MODULES for p in module.split(".")):
            return True
    return False


def _literal(value: Any, known: str, function: types.FunctionType, name: str) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    problem = (
        f"it refers to {known}, {type(value).__name__}; allowed are numbers, math, numpy and other"
        " plain functions"
    )
    raise ProgramError(name, where_is(function), problem)


def _tree_of(function: types.FunctionType, name: str) -> ast.FunctionDef:
    """The definition without decorators and annotations; a lambda as a definition."""
    try:
        lines, _ = inspect.findsource(function)
        found = _found(_written("".join(lines)), function.__code__)
    except (OSError, TypeError, SyntaxError, StopIteration) as error:
        problem = "its source cannot be found; write it into a file"
        raise ProgramError(name, where_is(function), problem) from error
    given = copy.deepcopy(found.args)
    if given.vararg or given.kwarg or given.defaults or given.kwonlyargs:
        problem = "parameters must be plain names, without defaults and stars"
        raise ProgramError(name, where_is(function), problem)
    for argument in given.args:
        argument.annotation = None
    body: list[ast.stmt] = (
        found.body if isinstance(found, ast.FunctionDef) else [ast.Return(found.body)]
    )
    tree = ast.FunctionDef(name, given, copy.deepcopy(body), [], None, None)
    return ast.fix_missing_locations(tree)


@lru_cache(maxsize=32)
def _written(source: str) -> list[ast.FunctionDef | ast.Lambda]:
    """Every function in a file, outer ones first."""
    return [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef | ast.Lambda)]


def _found(
    written: list[ast.FunctionDef | ast.Lambda], code: types.CodeType
) -> ast.FunctionDef | ast.Lambda:
    """The one that was compiled to this code: a lambda by where its first instruction stands."""
    if code.co_name != "<lambda>":
        return next(
            node
            for node in written
            if isinstance(node, ast.FunctionDef)
            and node.name == code.co_name
            and code.co_firstlineno in [node.lineno, *(d.lineno for d in node.decorator_list)]
        )
    place = next((place[0], place[2]) for place in code.co_positions() if place[0] and place[2])
    around = [
        node
        for node in written
        if isinstance(node, ast.Lambda)
        and (node.body.lineno, node.body.col_offset) <= place
        and place <= (node.body.end_lineno or 0, node.body.end_col_offset or 0)
    ]
    return next(iter(reversed(around)))  # the innermost


class _Rename(ast.NodeTransformer):
    def __init__(self, renamed: dict[str, str]) -> None:
        self._renamed = renamed

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._renamed.get(node.id, node.id)
        return node

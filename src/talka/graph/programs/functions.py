"""Conversion of a user's plain function to self-contained source text.

Kernels are generated as files, because numba caches only functions that are in files. Everything a
function refers to becomes part of its text: numbers as literals, modules as imports, helpers as
functions.
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
"""Cache of texts by `_key`: algorithms construct their programs anew in every call."""

_RANDOM_MODULES = ("random", "secrets")
_NO_RANDOMNESS = (
    "it draws random numbers with {}, so a superstep that is repeated after a lost worker would"
    " compute other values; derive them from `vertex`, `superstep` and a seed in `parameters`, as"
    " shown in docs/graphs.md"
)


class Function(NamedTuple):
    """One function of a program: the names of its parameters, and its text."""

    name: str
    parameters: tuple[str, ...]
    text: str
    """Definitions of everything the function needs; the function itself is last, called `name`."""
    where: str
    """File and line, for errors."""


def function_text(function: Callable[..., Any], name: str) -> Function:
    """Return the function as text, renamed to `name`.

    >>> def shorter(value, weight):
    ...     return value + weight
    >>> function_text(shorter, "message").parameters
    ('value', 'weight')
    """
    function = getattr(function, "py_func", function)  # if numba compiled it already
    if not isinstance(function, types.FunctionType):
        raise ProgramError(name, "", f"{function!r} is not a plain Python function")
    key = _key(function, name)
    if key in _texts:
        return _texts[key]
    converted = Function(
        name,
        tuple(inspect.signature(function).parameters),
        "\n".join(_definitions(function, name, ())),
        where_is(function),
    )
    if key is not None:
        if len(_texts) >= _MAX_TEXTS:
            _texts.clear()
        _texts[key] = converted
    return converted


def _key(
    function: types.FunctionType, name: str, above: tuple[types.FunctionType, ...] = ()
) -> Hashable | None:
    """Return all that the text depends on; None if that is more than constants and functions."""
    bound = inspect.getclosurevars(function)
    values: list[Hashable] = []
    for used_name, value in {**bound.globals, **bound.nonlocals}.items():
        inner = getattr(value, "py_func", value)
        if isinstance(inner, types.FunctionType) and inner not in above:
            helper = _key(inner, used_name, (*above, function))
            if helper is None:
                return None
            values.append(helper)
        elif isinstance(value, _CONSTANTS):
            # Numbers that compare equal can have different texts: 1, 1.0 and True, or 0.0 and -0.0.
            values.append((used_name, value, repr(value)))
        else:
            return None
    return (name, where_is(function), function.__code__, *values, *sorted(bound.unbound))


def where_is(function: types.FunctionType) -> str:
    """Return the file and the first line of a function."""
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"


def _definitions(
    function: types.FunctionType, name: str, above: tuple[types.FunctionType, ...]
) -> list[str]:
    """Return the texts of all that the function needs, then its own; `above` are its callers."""
    if function in above:
        raise _error(function, name, "it calls itself; recursion is not supported")
    tree = _tree_of(function, name)
    bound = inspect.getclosurevars(function)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    known_values = {**bound.globals, **bound.nonlocals}
    generator = _randomness(tree, {key: known_values[key] for key in used & known_values.keys()})
    if generator is not None:
        raise _error(function, name, _NO_RANDOMNESS.format(generator))
    if unknown := sorted(used & bound.unbound):
        raise _error(function, name, f"the name {unknown[0]!r} is not defined")
    needed: list[str] = []
    renamed: dict[str, str] = {}
    for used_name, value in known_values.items():
        if isinstance(value, types.ModuleType) and value in _MODULES:
            renamed[used_name] = _MODULES[value]
            continue
        inner = getattr(value, "py_func", value)
        renamed[used_name] = f"{name}__{used_name}"
        if isinstance(inner, types.FunctionType):
            needed += _definitions(inner, renamed[used_name], (*above, function))
        elif isinstance(inner, types.BuiltinFunctionType) and inner in _IMPORTED:
            needed.append(f"{renamed[used_name]} = {_IMPORTED[inner]}")
        else:
            needed.append(f"{renamed[used_name]} = {_literal(value, used_name, function, name)}")
    _Rename(renamed).visit(tree)
    tree.name = name
    return [*needed, f"@inlined\n{ast.unparse(tree)}"]


def _randomness(tree: ast.AST, known: Mapping[str, Any]) -> str | None:
    """Return the expression that draws random numbers; None if the function draws none."""
    for name, value in known.items():
        if _is_random(value):
            return name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _RANDOM_MODULES:
            expression = ast.unparse(node)
            owner = known.get(expression.partition(".")[0])
            if owner is None or isinstance(owner, types.ModuleType):
                return expression
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imported = [*(alias.name for alias in node.names), getattr(node, "module", "") or ""]
            if any(part in _RANDOM_MODULES for path in imported for part in path.split(".")):
                return ast.unparse(node)
    return None


def _is_random(value: Any) -> bool:
    """Return True for a random module, its functions and generators, and their methods."""
    if isinstance(value, types.ModuleType):
        return value.__name__.rpartition(".")[2] in _RANDOM_MODULES
    for source in (value, getattr(value, "__self__", None), type(value)):
        module = getattr(source, "__module__", None)
        if isinstance(module, str) and any(p in _RANDOM_MODULES for p in module.split(".")):
            return True
    return False


def _literal(value: Any, used_name: str, function: types.FunctionType, name: str) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    problem = (
        f"it uses `{used_name}`, which is of type {type(value).__name__}; functions may use"
        " numbers, math, numpy and other plain functions"
    )
    raise _error(function, name, problem)


def _error(function: types.FunctionType, name: str, problem: str) -> ProgramError:
    """Return an error at the line of a function or helper, for the program's function it is in."""
    caller = name.partition("__")[0]  # a helper is called `function__helper`
    return ProgramError(caller, where_is(function), problem)


def _tree_of(function: types.FunctionType, name: str) -> ast.FunctionDef:
    """Return the definition without decorators and annotations; a lambda as a definition."""
    try:
        lines, _ = inspect.findsource(function)
        source = _find_source(_functions_in("".join(lines)), function.__code__)
    except (OSError, TypeError, SyntaxError, StopIteration) as error:
        problem = "its source code cannot be found; define the function in a file"
        raise _error(function, name, problem) from error
    arguments = copy.deepcopy(source.args)
    if arguments.vararg or arguments.kwarg or arguments.defaults or arguments.kwonlyargs:
        problem = "its parameters must be plain names, without defaults and asterisks"
        raise _error(function, name, problem)
    for argument in arguments.args:
        argument.annotation = None
    body: list[ast.stmt] = (
        source.body if isinstance(source, ast.FunctionDef) else [ast.Return(source.body)]
    )
    tree = ast.FunctionDef(name, arguments, copy.deepcopy(body), [], None, None)
    return ast.fix_missing_locations(tree)


@lru_cache(maxsize=32)
def _functions_in(source: str) -> list[ast.FunctionDef | ast.Lambda]:
    """Return all functions in the text of a file, outer ones first."""
    return [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef | ast.Lambda)]


def _find_source(
    candidates: list[ast.FunctionDef | ast.Lambda], code: types.CodeType
) -> ast.FunctionDef | ast.Lambda:
    """Return the function that was compiled to `code`; a lambda by its position in the file."""
    if code.co_name != "<lambda>":
        return next(
            node
            for node in candidates
            if isinstance(node, ast.FunctionDef)
            and node.name == code.co_name
            and code.co_firstlineno in [node.lineno, *(d.lineno for d in node.decorator_list)]
        )
    place = next((place[0], place[2]) for place in code.co_positions() if place[0] and place[2])
    around = [
        node
        for node in candidates
        if isinstance(node, ast.Lambda)
        and (node.body.lineno, node.body.col_offset) <= place
        and place <= (node.body.end_lineno or 0, node.body.end_col_offset or 0)
    ]
    return next(iter(reversed(around)))  # the innermost


class _Rename(ast.NodeTransformer):
    """Replacement of names in a syntax tree."""

    def __init__(self, renamed: dict[str, str]) -> None:
        self._renamed = renamed

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._renamed.get(node.id, node.id)
        return node

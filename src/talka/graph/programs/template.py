"""The kernels of one edge program as the text of a Python module: loops around its functions.

The texts of the loops are in `kernel_texts.py`. Here their placeholders are filled with calls of the
program's functions, and with expressions for what these functions take as parameters.
"""

from typing import Any, Final

import numpy as np

from talka.graph.programs.combining import identity_for
from talka.graph.programs.edge_program import EdgeProgram
from talka.graph.programs.functions import Function
from talka.graph.programs.kernel_texts import (
    AGGREGATE,
    AGGREGATE_IDENTITIES,
    COMBINE_EXPRESSIONS,
    FRONTIER_KERNELS,
    HEAD,
    KERNELS,
    NEW,
    PLAIN_HEAD,
)

BLOCK: Final = 4096
"""Vertices per block of an aggregate; a block is summed in order, whatever threads there are."""


def module_text(program: EdgeProgram, *, offset_type: str, compiled: bool = True) -> str:
    """Return the text of the module for a program over graphs whose offsets have this type."""
    functions = {function.name: function for function in program.functions}
    texts = "\n\n".join(function.text for function in functions.values())
    head = (HEAD if compiled else PLAIN_HEAD).substitute(
        V=_kind(program.value_type),
        M=_kind(program.message_type),
        offset=offset_type,
        nothing=_literal(identity_of(program)),
        env_types=", ".join(_env_types(program)),
    )
    pieces = _pieces(program, functions)
    body = KERNELS.substitute(pieces)
    if program.active:
        body += FRONTIER_KERNELS.substitute(pieces)
    for name, aggregate in program.aggregates.items():
        body += AGGREGATE.substitute(
            name=name,
            identity=AGGREGATE_IDENTITIES[aggregate.combine],
            combine=COMBINE_EXPRESSIONS[aggregate.combine],
            block=BLOCK,
            call=_call(functions[f"aggregate_{name}"], program, value="values[v]", old="olds[v]"),
            env=", ".join(env_names(program)),
        )
    return head + texts + "\n" + body


def env_names(program: EdgeProgram) -> list[str]:
    """Return the names of the arguments that all kernels share: arrays by vertex, then scalars."""
    return [
        "numbers", "out_degrees", "in_degrees", "num_vertices", "superstep",
        *(f"attribute_{name}" for name in program.attributes),
        *(f"parameter_{name}" for name in program.parameters),
        *(f"aggregate_of_{name}" for name in program.aggregates),
    ]  # fmt: skip


def identity_of(program: EdgeProgram) -> float:
    """Return the value that `combined` has without a message."""
    if program.identity is not None:
        return program.identity
    combine = "min" if program.combine == "any" else program.combine
    assert isinstance(combine, str)
    identity: float = identity_for(combine, np.dtype(program.message_type))
    return identity


def _pieces(program: EdgeProgram, functions: dict[str, Function]) -> dict[str, str]:
    """Return the expressions and statements that fill the placeholders of the kernels."""

    def call(name: str, otherwise: str, **local: str) -> str:
        return _call(functions[name], program, **local) if name in functions else otherwise

    if callable(program.combine):
        operands = (_signed(name, program.message_type) for name in ("total", "said"))
        combine = f"combine({', '.join(operands)})"
    else:
        combine = COMBINE_EXPRESSIONS[program.combine]
    message = _call(functions["message"], program, value="values[v]", weight="weights[entry]")
    if program.is_weighted:
        gather = f"if {_is_active(program)}:\n    said = {message}\n    total = {combine}"
    else:
        gather = f"said = contributions[v]\ntotal = {combine}"
    if program.combine == "any":
        gather += "\nif total != NOTHING:\n    break"
    settled = call("settled", "False", value="values[row]", at="row")
    return {
        "env": ", ".join(env_names(program)),
        "initial": call("initial", ""),
        "starts": call("starts", "1", value="values[v]"),
        "is_active": _is_active(program),
        "message": "NOTHING" if program.is_weighted else message,
        "wants_messages": f"row >= num_own or not {settled}" if program.settled else "True",
        "gather": gather.replace("\n", "\n                "),
        "message_once": "" if program.is_weighted else f"said = {message}",
        "message_each": f"said = {message}" if program.is_weighted else "",
        "combine": combine,
        "is_updated": "got != NOTHING" if program.active else "True",
        "update": call("update", "", value="old", combined="got"),
        "active": call("active", "1", old="old", value=NEW),
        "is_open": f"not {call('settled', 'False', value='values[v]')}",
    }


def _is_active(program: EdgeProgram) -> str:
    return "flags[v] != 0" if program.active else "True"


def _call(function: Function, program: EdgeProgram, *, at: str = "v", **local: str) -> str:
    """Return the call of a function inside a kernel, with an expression for each parameter name."""
    expressions = {
        "vertex": _signed(f"numbers[{at}]", np.uint32),
        "out_degree": _signed(f"out_degrees[{at}]", np.uint32),
        "in_degree": _signed(f"in_degrees[{at}]", np.uint32),
        "num_vertices": "num_vertices",
        "superstep": "superstep",
        **{
            name: _signed(f"attribute_{name}[{at}]", np.asarray(array).dtype)
            for name, array in program.attributes.items()
        },
        **{name: f"parameter_{name}" for name in program.parameters},
        **{name: f"aggregate_of_{name}" for name in program.aggregates},
        **{
            name: text if text == NEW else _signed(text, _type_of(name, program))
            for name, text in local.items()
        },
    }
    return f"{function.name}({', '.join(expressions[name] for name in function.parameters)})"


def _type_of(name: str, program: EdgeProgram) -> Any:
    """Return the type of an argument that is not in the environment of all kernels."""
    kinds = {"value": program.value_type, "old": program.value_type}
    return {**kinds, "combined": program.message_type, "weight": np.float64}[name]


def _signed(text: str, kind: Any) -> str:
    """Return the expression with unsigned types of up to 32 bits converted to signed 64 bits.

    Functions then compute as in Python. Numba would subtract unsigned: 1 - 2 would be 2**64 - 1.
    """
    dtype = np.dtype(kind)
    return f"np.int64({text})" if dtype.kind == "u" and dtype.itemsize < 8 else text


def _env_types(program: EdgeProgram) -> list[str]:
    kinds = ["kept(U32)", "kept(U32)", "kept(U32)", "I64", "I64"]
    kinds += [f"kept(types.{_kind(np.asarray(a).dtype)})" for a in program.attributes.values()]
    for value in program.parameters.values():
        kinds.append("I64" if isinstance(value, int | np.integer) else "F64")
    return [*kinds, *("F64" for _ in program.aggregates)]


def _kind(dtype: object) -> str:
    kind = np.dtype(dtype)  # type: ignore[call-overload]
    return "bool_" if kind.kind == "b" else str(kind.name)


def _literal(value: float) -> str:
    return repr(value) if np.isfinite(value) else f"float({str(float(value))!r})"

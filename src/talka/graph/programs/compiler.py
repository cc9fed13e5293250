"""Compilation of an edge program: from the text of its kernels to a loaded module.

The text is written to a file named by its hash, and numba keeps its cache beside that file: the
next process that needs the same program loads machine code within milliseconds.
"""

import hashlib
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.errors import NumbaError

from talka.compiled import compiled_with
from talka.errors import ProgramError
from talka.files import write_whole
from talka.graph.programs import kernel_cache
from talka.graph.programs.edge_program import EdgeProgram
from talka.graph.programs.functions import Function
from talka.graph.programs.template import module_text

_lock = threading.Lock()  # so that two threads that load the same program compile it once


def kernel_text(program: EdgeProgram, *, offset_type: str = "uint32", compiled: bool = True) -> str:
    """Return the text of the program's kernels, which is all that a worker needs to run them.

    With `compiled` the kernels are also compiled now, so that a function that numba cannot compile
    raises `ProgramError` with its line here, and not in a worker.
    """
    text = module_text(program, offset_type=offset_type, compiled=compiled)
    if compiled:
        try:
            kernels(text)
        except NumbaError as error:
            raise _as_program_error(program, error) from None
    return text


def kernels(text: str) -> Any:
    """Return the loaded module for a text from `kernel_text`."""
    with _lock:
        return _load(text)


@cache
def _load(text: str) -> ModuleType:
    name = hashlib.sha256(f"{numba.__version__}\n{text}".encode()).hexdigest()[:32]
    path = kernel_cache.folder() / f"edge_program_{name}.py"
    try:
        return _load_file(path, text)
    except FileNotFoundError:  # another process has just removed it as unused
        return _load_file(path, text)


def _load_file(path: Path, text: str) -> ModuleType:
    kernel_cache.mark_used(path)
    if not _has_text(path, text):
        write_whole(path, text)
        kernel_cache.remove_unused(path.parent)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # numba's cache finds globals of kernels by this name
    spec.loader.exec_module(module)
    return module


def _has_text(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except OSError:
        return False


def _as_program_error(program: EdgeProgram, error: NumbaError) -> ProgramError:
    """Compile each function as the user wrote it, to find the one that fails and its line."""
    for function in program.functions:
        original = _original(program, function.name)
        try:
            compiled_with(original, cache=False).compile(tuple(_types(program, function)))
        except NumbaError as cause:
            return ProgramError(function.name, _where(cause, function), _reason(cause))
    return ProgramError("functions together", "", _reason(error))


def _original(program: EdgeProgram, name: str) -> Any:
    if name.startswith("aggregate_"):
        return program.aggregates[name.removeprefix("aggregate_")].function
    return getattr(program, name)


def _types(program: EdgeProgram, function: Function) -> Iterator[Any]:
    value, message = _seen_as(program.value_type), _seen_as(program.message_type)
    if function.name == "combine":
        yield from (message, message)
        return
    kinds = {
        "value": value, "old": value, "combined": message, "weight": numba.float64,
        "vertex": numba.int64, "out_degree": numba.int64, "in_degree": numba.int64,
        "num_vertices": numba.int64, "superstep": numba.int64,
        **{name: _of_scalar(scalar) for name, scalar in program.parameters.items()},
        **{name: _seen_as(np.asarray(array).dtype) for name, array in program.attributes.items()},
        **dict.fromkeys(program.aggregates, numba.float64),
    }  # fmt: skip
    for name in function.parameters:
        yield kinds[name]


def _seen_as(kind: Any) -> Any:
    """Return the numba type that functions receive; see `_signed` in `template.py`."""
    dtype = np.dtype(kind)
    is_signed = dtype.kind == "u" and dtype.itemsize < 8
    return numba.int64 if is_signed else numba.from_dtype(dtype)


def _of_scalar(value: float) -> Any:
    return numba.int64 if isinstance(value, int | np.integer) else numba.float64


def _where(error: NumbaError, function: Function) -> str:
    """Return file and line: the last line of the user's file that numba's message mentions."""
    file = function.where.rpartition(":")[0]
    lines = re.findall(rf'File "{re.escape(os.path.basename(file))}", line (\d+)', str(error))
    lines = lines or re.findall(rf'{re.escape(os.path.basename(file))}", line (\d+)', str(error))
    return f"{file}:{lines[-1]}" if lines else function.where


def _reason(error: NumbaError) -> str:
    """Return the first two lines of numba's message, without headings and source lines."""
    text = re.sub(r"\x1b\[\d*m", "", str(error))
    lines = [line.strip() for line in text.splitlines()]
    explanation = [
        line for line in lines if line and not line.startswith(("Failed in", "File", "def ", "^"))
    ]
    return f"numba cannot compile it: {' '.join(explanation[:2])}".rstrip(".:")

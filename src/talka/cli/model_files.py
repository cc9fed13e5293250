"""Models built by a function in a user's file: `train.py:make_model`."""

import contextlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from talka.errors import ModelFileError

if TYPE_CHECKING:
    from talka.compress import Layout


class ModelSize(NamedTuple):
    """What of a model is exchanged in training."""

    layout: "Layout"
    """Names and shapes of the trainable parameters."""
    num_buffer_values: int
    """Number of values of its floating-point buffers, such as the statistics of BatchNorm."""


def size_of_model(file_and_function: str) -> ModelSize:
    """Return the sizes of parameters and buffers. Runs the file and its imports."""
    from torch import nn
    from torch.nn.parameter import is_lazy

    from talka.compress import layout_of

    model = _make_model(file_and_function)
    if not isinstance(model, nn.Module):
        problem = f"it returned {type(model).__name__}, not an nn.Module"
        raise ModelFileError(file_and_function, problem)
    trained = {name: value for name, value in model.named_parameters() if value.requires_grad}
    if any(is_lazy(parameter) for parameter in trained.values()):
        problem = "it has lazy parameters, which have no shape yet"
        raise ModelFileError(file_and_function, problem)
    layout = layout_of({name: tuple(parameter.shape) for name, parameter in trained.items()})
    if not any(piece.num_values for piece in layout):
        raise ModelFileError(file_and_function, "its model has no trainable parameters")
    buffers = [buffer for buffer in model.buffers() if buffer.is_floating_point()]
    return ModelSize(layout, sum(buffer.numel() for buffer in buffers))


def _make_model(file_and_function: str) -> Any:
    file, _, function = file_and_function.rpartition(":")
    path = Path(file)
    if not file or not function:
        raise ModelFileError(file_and_function, "it does not name a file and a function")
    if not path.is_file():
        raise ModelFileError(file_and_function, f"there is no file {file}")
    with _user_code(file_and_function, path):
        module = _import(path)
    make = getattr(module, function, None)
    if not callable(make):
        raise ModelFileError(file_and_function, f"the file has no function {function}")
    with _user_code(file_and_function, path):
        return make()


def _import(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"_talka_model_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError("it is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses of the file look it up there
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _user_code(file_and_function: str, path: Path) -> Iterator[None]:
    """Run code of the user's file: it may import neighbours, print and raise anything.

    Its output goes to standard error; anything it raises becomes a `ModelFileError`.
    """
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except (Exception, SystemExit) as error:
        description = " ".join(traceback.format_exception_only(error)[-1].split())
        problem = f"it raised {description}{_place_of(error, path)}"
        raise ModelFileError(file_and_function, problem) from error
    finally:
        sys.path.remove(folder)


def _place_of(error: BaseException, path: Path) -> str:
    """Name the last line of the user's file that was running."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    if isinstance(error, SyntaxError):
        lines.append(error.lineno)
    return f" in line {lines[-1]}" if lines else ""

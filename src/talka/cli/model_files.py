"""Models that a person's own file makes: `train.py:make_model`."""

import contextlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from talka.errors import ModelFileError

if TYPE_CHECKING:
    from talka.compress import Layout


def layout_of_model(given: str) -> "Layout":
    """Names and shapes of the parameters that are trained. Runs the file, with its own imports."""
    from torch import nn
    from torch.nn.parameter import is_lazy

    from talka.compress import layout_of

    model = _made(given)
    if not isinstance(model, nn.Module):
        raise ModelFileError(given, f"it returned {type(model).__name__}, no nn.Module")
    trained = {name: one for name, one in model.named_parameters() if one.requires_grad}
    if any(is_lazy(one) for one in trained.values()):
        raise ModelFileError(given, "it has lazy parameters, which have no shape yet")
    layout = layout_of({name: tuple(one.shape) for name, one in trained.items()})
    if not any(piece.num_values for piece in layout):
        raise ModelFileError(given, "its model has no parameters to train")
    return layout


def _made(given: str) -> Any:
    file, _, function = given.rpartition(":")
    path = Path(file)
    if not file or not function:
        raise ModelFileError(given, "it does not name a file and a function")
    if not path.is_file():
        raise ModelFileError(given, f"there is no file {file}")
    with _foreign_code(given, path):
        module = _imported(path)
    make = getattr(module, function, None)
    if not callable(make):
        raise ModelFileError(given, f"the file has no function {function}")
    with _foreign_code(given, path):
        return make()


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"_talka_model_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses of the file look for it there
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _foreign_code(given: str, path: Path) -> Iterator[None]:
    """It may import its neighbours, print (not into our output) and raise anything."""
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except (Exception, SystemExit) as error:
        said = " ".join(traceback.format_exception_only(error)[-1].split())
        raise ModelFileError(given, f"it raised {said}{_where(error, path)}") from error
    finally:
        sys.path.remove(folder)


def _where(error: BaseException, path: Path) -> str:
    """The last line of the person's own file that was being run."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    if isinstance(error, SyntaxError):
        lines.append(error.lineno)
    return f" in line {lines[-1]}" if lines else ""

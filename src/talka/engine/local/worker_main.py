"""Main loop of a worker process of the embedded engine, which `keeper.py` forks.

receive a task -> map its inputs -> call the function -> send outputs inline or in shared memory
"""

import socket
import sys
import time
from typing import Any

from talka.engine import parcels
from talka.engine.calls import TaskProblem, call, explain
from talka.engine.local import wire
from talka.engine.parcels import Parcels
from talka.engine.shipping import unship
from talka.errors import DescriptorLimitError
from talka.guard import Caught


def main() -> None:
    """Run tasks until the driver closes the channel."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    functions: dict[int, Any] = {}
    try:
        hello, _ = wire.receive(channel)
        sys.path[:] = hello["path"]
        while True:
            start_s = time.time()
            outcome: Parcels | TaskProblem
            try:
                frame, descriptors = wire.receive(channel)
                start_s = time.time()
                outcome = _run(frame, descriptors, functions)
            except (
                DescriptorLimitError
            ) as error:  # the whole frame was read, so the next can follow
                outcome = explain(error, None, ())
            reply = {"start_s": start_s, "end_s": time.time()}
            if isinstance(outcome, TaskProblem):
                wire.send(channel, {**reply, "problem": list(outcome)})
            else:
                wire.send(channel, {**reply, "outputs": outcome.labels}, outcome.descriptors)
            del outcome  # the driver owns its files now
    except (EOFError, ConnectionError):
        return  # the driver closed the engine


def _run(
    frame: dict[str, Any], descriptors: list[int], functions: dict[int, Any]
) -> Parcels | TaskProblem:
    """Run the task of a frame; everything that it raises becomes a problem."""
    function: Any = None
    arguments: list[Any] = []
    with Caught() as caught:
        inputs = parcels.unwrap(frame["inputs"], descriptors)
        arguments = [parcels.value_of(content) for content in inputs]
        del inputs
        if frame["forget"]:
            functions.clear()
        if frame["function"] is not None:
            functions[frame["function_id"]] = unship(frame["function"])
        function = functions[frame["function_id"]]
        for position, constant in unship(frame["constants"]) if frame["constants"] else ():
            arguments.insert(position, constant)
        outputs = call(function, arguments, frame["num_outputs"])
        return outputs if isinstance(outputs, TaskProblem) else parcels.wrap(outputs)
    assert caught.error is not None
    return explain(caught.error, function, arguments)

"""A few threads that run kernels, with results in the order of the work.

One thread means the caller's own: no pool, no hand-over, Ctrl+C between any two calls.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import ParamSpec, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Params = ParamSpec("Params")


class Crew:
    """Runs calls on `num_threads` threads; leaving the block drops what has not begun.

    >>> with Crew(2) as crew:
    ...     list(crew.map(abs, [-3, -2, -1]))
    [3, 2, 1]
    """

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self._pool = ThreadPoolExecutor(num_threads) if num_threads > 1 else None

    def __enter__(self) -> "Crew":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def submit(
        self, call: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
    ) -> Future[Result]:
        if self._pool is not None:
            return self._pool.submit(call, *args, **kwargs)
        done: Future[Result] = Future()
        done.set_result(call(*args, **kwargs))  # an error goes straight to the caller
        return done

    def map(self, call: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results in order, a few items ahead of the caller and no more: memory stays bounded."""
        ahead: deque[Future[Result]] = deque()
        for item in items:
            ahead.append(self.submit(call, item))
            if len(ahead) > 2 * self.num_threads or self._pool is None:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()

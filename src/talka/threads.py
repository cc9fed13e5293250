"""The pool of threads that runs compiled kernels, which release the interpreter's lock.

A pool of one thread runs calls in the thread of the caller: it starts no thread, and Ctrl+C works
between any two calls. Tasks of the engine have their own scheduler (`engine/local/lane.py`): its
threads are started on demand and are daemons, as nothing can interrupt a task of a user.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from types import TracebackType
from typing import ParamSpec, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Params = ParamSpec("Params")


class ThreadPool:
    """Run calls on `num_threads` threads; leaving the block drops calls that have not started.

    >>> with ThreadPool(2) as pool:
    ...     list(pool.map(abs, [-3, -2, -1]))
    [3, 2, 1]
    """

    def __init__(self, num_threads: int, *, name: str = "") -> None:
        self.num_threads = num_threads
        self._executor: ThreadPoolExecutor | None = None
        if num_threads > 1:
            self._executor = ThreadPoolExecutor(num_threads, thread_name_prefix=name)
            # Kernels are called for a few microseconds of work: no method in between.
            self.submit = self._executor.submit  # type: ignore[assignment,method-assign]

    def __enter__(self) -> "ThreadPool":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def submit(
        self, call: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
    ) -> Future[Result]:
        """Schedule a call and return the future of its result."""
        done: Future[Result] = Future()
        done.set_result(call(*args, **kwargs))  # an error is raised here, in the caller
        return done

    def map(self, call: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield results in the order of the items.

        Items are taken only a few calls ahead of the results, so memory stays bounded.
        """
        pending: deque[Future[Result]] = deque()
        for item in items:
            pending.append(self.submit(call, item))
            if len(pending) > 2 * self.num_threads or self._executor is None:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


@cache
def shared_pool(num_threads: int) -> ThreadPool:
    """Return the pool of this size that lives as long as the process.

    For short calls: starting threads would take longer than the work.
    """
    return ThreadPool(num_threads, name="talka-kernel")

"""Threads that share work whose result does not depend on them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Workers:
    """Threads that do tasks in order; the results come in order too."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.is_stopped = threading.Event()

    def map(self, run: Callable[[U], T], tasks: list[U]) -> Iterator[T]:
        """Yield the result of each task; at most one more than there are threads is begun ahead of what is taken."""
        if self.threads == 1 or len(tasks) < 2:
            yield from map(run, tasks)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(self.threads, thread_name_prefix="jittok") as pool:
            pending: deque[Any] = deque()
            try:
                for task in tasks:
                    pending.append(pool.submit(run, task))
                    if len(pending) > self.threads:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                if pending:  # an interruption: let those that run end at their next slice
                    self.is_stopped.set()
                    for future in pending:
                        future.cancel()


def run_aside(run: Callable[..., T], *arguments: Any) -> T:
    """Call `run` in a thread of its own, and wait: Ctrl-C need not wait for its end, which comes unheeded then.

    Parameters
    ----------
    run, arguments
        What may take longer than a second and cannot be done in slices.

    Returns
    -------
    object
        What it returned.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(run(*arguments))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="jittok-aside", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)
    if errors:
        raise errors[0]
    return results[0]

"""Reading ahead and writing behind: threads with bounded queues between them and their caller."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

#: Items that wait in a queue.
DEPTH = 2
#: Seconds after which a thread looks whether it is still wanted.
_PATIENCE = 0.1


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


_END = object()


def ahead(items: Iterable[T], depth: int = DEPTH) -> Iterator[T]:
    """Yield the items, which a thread takes meanwhile; what it raises is raised here, after the items before.

    Parameters
    ----------
    items
        Taken in the thread only.
    depth
        How many it may be ahead.
    """
    waiting: queue.Queue[Any] = queue.Queue(depth)
    stopped = threading.Event()

    def put(item: Any) -> bool:
        while not stopped.is_set():
            try:
                waiting.put(item, timeout=_PATIENCE)
                return True
            except queue.Full:
                continue
        return False

    def run() -> None:
        iterator = iter(items)
        try:
            for item in iterator:
                if not put(item):
                    break
            put(_END)
        except BaseException as error:
            put(_Failure(error))
        finally:
            close = getattr(iterator, "close", None)
            if close is not None:
                close()

    thread = threading.Thread(target=run, name="jittok-read", daemon=True)
    thread.start()
    try:
        while (item := waiting.get()) is not _END:
            if isinstance(item, _Failure):
                raise item.error
            yield item
    finally:
        stopped.set()
        # A thread that waits for standard input is left to itself.
        thread.join(timeout=5 * _PATIENCE)


def side_by_side(function: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[tuple[T, R]]:
    """Yield each item with what a function returns for it, in order, while threads are at the next ones.

    Parameters
    ----------
    function
        Called in one of `threads` threads; with one thread, in the caller's.
    items
        Taken in the caller's thread, at most two for each thread more than have been yielded.
    threads
        How many.
    """
    if threads == 1:
        for item in items:
            yield item, function(item)
        return
    pool = ThreadPoolExecutor(threads, thread_name_prefix="jittok-encode")
    begun: deque[tuple[T, Future[R]]] = deque()
    try:
        for item in items:
            begun.append((item, pool.submit(function, item)))
            if len(begun) > 2 * threads or begun[0][1].done():
                first, result = begun.popleft()
                yield first, result.result()
        while begun:
            first, result = begun.popleft()
            yield first, result.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class Behind:
    """Does jobs one after another in a thread; what one raises is raised by the next call, and ends all.

    Parameters
    ----------
    depth
        How many jobs may wait.
    """

    def __init__(self, depth: int = DEPTH) -> None:
        self._waiting: queue.Queue[Callable[[], None] | None] = queue.Queue(depth)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="jittok-write", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (job := self._waiting.get()) is not None:
            if self._error is None:
                try:
                    job()
                except BaseException as error:
                    self._error = error

    def do(self, job: Callable[[], None]) -> None:
        """Have a job done after those before it."""
        self._raise()
        self._waiting.put(job)

    def close(self) -> None:
        """Wait until all is done."""
        self._waiting.put(None)
        self._thread.join()
        self._raise()

    def stop(self) -> None:
        """Drop what waits, and wait for the job that is being done."""
        self._error = self._error or RuntimeError("stopped")
        self._waiting.put(None)
        self._thread.join()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

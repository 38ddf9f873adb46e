"""Threads that help the calling one. Python's own pools take ten milliseconds to import."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any


class Task:
    """What a thread is to do once, unless it is cancelled before it begins.

    Parameters
    ----------
    function, arguments
        What is called.
    """

    __slots__ = ("_begun", "_call", "_ended", "_error")

    def __init__(self, function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        self._call = function, arguments
        self._begun, self._ended = threading.Lock(), threading.Lock()
        self._ended.acquire()
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do it, unless someone has begun or cancelled it."""
        if not self._begun.acquire(blocking=False):
            return
        function, arguments = self._call
        try:
            function(*arguments)
        except BaseException as error:
            self._error = error
        finally:
            self._ended.release()

    def cancel(self) -> bool:
        """Cancel it; False if it has begun."""
        return self._begun.acquire(blocking=False)

    def wait(self) -> None:
        """Wait until it has ended; what it raised is raised here."""
        with self._ended:
            pass
        if self._error is not None:
            raise self._error


class Helpers:
    """Threads that do tasks in the order in which they come; they end with this object, or with the process.

    Parameters
    ----------
    n_threads
        How many.
    """

    def __init__(self, n_threads: int) -> None:
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._n_threads = n_threads
        for number in range(n_threads):
            # The threads must not hold this object, nor hold up the end of the process.
            threading.Thread(target=_work, args=(self._tasks,), name=f"jittok-{number}", daemon=True).start()

    def submit(self, function: Callable[..., object], *arguments: Any) -> Task:
        """Have a thread call a function.

        Parameters
        ----------
        function, arguments
            What is called.
        """
        task = Task(function, arguments)
        self._tasks.put(task)
        return task

    def __del__(self) -> None:
        for _ in range(self._n_threads):
            self._tasks.put(None)


def _work(tasks: queue.SimpleQueue[Task | None]) -> None:
    """Do tasks until there is none."""
    while (task := tasks.get()) is not None:
        task.run()
        del task  # what it holds is not needed while waiting

"""Threads that help the calling one."""

import threading
import time

import pytest

from jittok.threads import Helpers


def test_tasks_are_done_in_order():
    done = []
    helpers = Helpers(1)
    tasks = [helpers.submit(done.append, number) for number in range(100)]
    for task in tasks:
        task.wait()
        task.wait()  # again, at once
    assert done == list(range(100))
    assert not tasks[0].cancel()


def test_several_run_at_once():
    barrier = threading.Barrier(3)
    helpers = Helpers(3)
    for task in [helpers.submit(barrier.wait) for _ in range(3)]:
        task.wait()


def test_what_a_task_raises_is_raised_by_who_waits():
    helpers = Helpers(1)
    with pytest.raises(ZeroDivisionError):
        helpers.submit(divmod, 1, 0).wait()
    done = []
    helpers.submit(done.append, 1).wait()  # the thread goes on
    assert done == [1]


def test_a_task_that_has_not_begun_is_cancelled():
    helpers, wait, done = Helpers(1), threading.Event(), []
    first = helpers.submit(wait.wait)
    second = helpers.submit(done.append, 1)
    third = helpers.submit(done.append, 2)
    assert second.cancel()
    assert not second.cancel()
    wait.set()
    first.wait()
    third.wait()
    assert done == [2]


def test_threads_end_with_their_owner():
    helpers = Helpers(2)
    helpers.submit(int).wait()
    before = threading.active_count()
    del helpers
    for _ in range(1000):
        if threading.active_count() <= before - 2:
            return
        time.sleep(0.01)
    pytest.fail("they are still there")

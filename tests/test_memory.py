"""Memory that is used again, and what threads take and give back."""

import threading

import numpy as np
import pytest

from jittok.memory import LARGE_PAGE, Buffers, Idle, move_rows
from jittok.threads import Helpers


def test_memory_is_used_again_only_when_nobody_holds_it():
    buffers = Buffers(1 << 23)
    first = buffers.empty(LARGE_PAGE, np.uint8)
    first[:] = 7
    view = first[5:9].view(np.uint32)
    address = first.ctypes.data
    del first
    other = buffers.empty(LARGE_PAGE, np.uint8)  # a view of the first one is still held
    assert other.ctypes.data != address
    other[:] = 1
    assert view[0] == 0x07070707
    del view
    again = buffers.empty(LARGE_PAGE // 4, np.int32)
    assert again.ctypes.data == address and again.dtype == np.int32 and len(again) == LARGE_PAGE // 4


@pytest.mark.parametrize("size", [0, 10, LARGE_PAGE - 1])
def test_small_arrays_are_ordinary(size):
    buffers = Buffers(1 << 23)
    assert buffers.empty(size, np.uint8).base is None
    assert buffers.empty((1 << 23) + 1, np.uint8).base is None  # as one that is larger than all that may wait


def test_what_waits_is_bounded():
    buffers = Buffers(3 * LARGE_PAGE)
    held = [buffers.empty(LARGE_PAGE, np.uint8) for _ in range(5)]
    held.clear()
    assert sum(area.nbytes for area in buffers._spare) == 3 * LARGE_PAGE
    buffers.clear()
    assert not buffers._spare


def test_a_thread_gets_its_own_thing_again():
    idle = Idle()
    mine = object()

    def other():
        idle.give("theirs")

    idle.give(mine)
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert idle.take() is mine
    assert idle.take() == "theirs"  # better than a new one
    assert idle.take() is None
    idle.give(1)
    idle.give(2)  # two of one thread are both kept
    assert sorted(idle.all()) == [1, 2]
    idle.clear()
    assert idle.take() is None


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("gap", [0, 1, 7, 1000, 300_000, 900_000])
@pytest.mark.parametrize("busy", [None, False, True])
def test_rows_are_moved(kind, gap, busy):
    n = 350_000
    shape = (-1,) if kind is np.int32 else (-1, 2)
    given = np.arange(4 * n * len(shape), dtype=kind).reshape(shape)
    helpers, wait = Helpers(1), threading.Event()
    if busy:
        helpers.submit(wait.wait)
    for to, at in ((5, gap + 5), (gap + 5, 5)):
        array, expected = given.copy(), given.copy()
        expected[to : to + n] = given[at : at + n]
        move_rows(array, np.int64(to), at, np.int64(n), None if busy is None else helpers.submit)
        np.testing.assert_array_equal(array, expected)
    wait.set()

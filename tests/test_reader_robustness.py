"""Readers survive files cut short, flipped bits and wrong types: jittok's own exception, or a tokenizer that works."""

import random
import signal
import sys
import tracemalloc
from collections import Counter
from contextlib import contextmanager

import pytest
from reader_cases import cases, dumped, flipped, json_documents, other_documents, run, wrong_types

CASES = cases()
DOCUMENTS = json_documents()
OTHER_DOCUMENTS = other_documents()
#: Longer than any file of these sizes may take, on a slow and busy machine.
SECONDS = 60
#: More than any table needs for files of some kilobytes.
MOST_BYTES = 300 << 20


@contextmanager
def limited(what):
    """Fail where something takes too long, and say what it was."""

    def stop(signum, frame):
        raise AssertionError(f"hangs: {what}")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    except Exception as error:
        print(f"{what}: {type(error).__name__}: {error}", file=sys.stderr)
        raise
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", CASES)
def test_the_files_themselves_are_read(name, tmp_path):
    case = CASES[name]
    assert run(case, case.files[case.damaged], tmp_path) == "used"


@pytest.mark.parametrize("name", CASES)
def test_truncation_at_every_byte(name, tmp_path):
    case = CASES[name]
    content = case.files[case.damaged]
    # In the middle of long files only some places, with a shift, so that other ones come with other lengths.
    step = max(1, (len(content) - 600) // 300)
    sizes = [*range(min(300, len(content))), *range(300, len(content) - 300, step), *range(max(300, len(content) - 300),
        len(content))]
    results = Counter()
    for size in sizes:
        with limited(f"{name} cut to {size} bytes"):
            results[run(case, content[:size], tmp_path) == "used"] += 1
    assert results[False] > 0


@pytest.mark.parametrize("name", CASES)
def test_flipped_bits(name, tmp_path):
    case = CASES[name]
    content = case.files[case.damaged]
    for seed in range(40):
        with limited(f"{name} with seed {seed}"):
            run(case, flipped(content, random.Random(f"{name} {seed}")), tmp_path)


@pytest.mark.parametrize("name", [*DOCUMENTS, *OTHER_DOCUMENTS])
def test_wrong_types_at_every_path(name, tmp_path):
    case = CASES[name]
    everything = list(wrong_types(*(OTHER_DOCUMENTS[name] if name in OTHER_DOCUMENTS else DOCUMENTS[name][:1])))
    every = max(1, len(everything) // 120)  # all of them are for scripts/fuzz_readers.py
    results = Counter()
    for path, other, content in everything[random.Random(name).randrange(every) :: every]:
        with limited(f"{name} with {other!r} at {path}"):
            results[run(case, content, tmp_path) == "used"] += 1
    assert results[True] and results[False]


def test_memory_is_bounded(tmp_path):
    """Numbers in a small file do not decide how much memory is taken."""
    huge = [10**9, 2**31 - 1, 2**24 - 1, 2**24, 2**63]
    value, case = DOCUMENTS["tokenizer.json byte-level"]
    from reader_cases import places, replaced

    numbers = [path for path in places(value) if type(_at(value, path)) is int]
    assert len(numbers) > 10
    for path in numbers:
        for number in huge:
            with limited(f"{number} at {path}"):
                tracemalloc.start()
                try:
                    run(case, dumped(replaced(value, path, number)), tmp_path)
                    assert tracemalloc.get_traced_memory()[1] < MOST_BYTES, (path, number)
                finally:
                    tracemalloc.stop()


def _at(value, path):
    for key in path:
        value = value[key]
    return value

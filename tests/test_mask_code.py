"""The machine code of mask programs gives what running the programs step by step gives."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest

from jittok import _jit
from jittok._jit import code_environment
from jittok.build.plan import GPT2_PATTERN
from jittok.build.regex_automaton import compile_split
from jittok.build.split_runs import find_runs
from jittok.build.split_windows import build_split_tables
from jittok.formats.tiktoken_file import ENCODINGS
from jittok.kernels import split as kernels
from jittok.tables import DECIDED, MASK_BASE, MASK_STRIDE, N_MASKS, UNDECIDED

pytestmark = pytest.mark.skipif(
    _jit.JIT_DISABLED or code_environment() is None, reason="machine code of our own is not supported here"
)

PATTERNS = {
    "gpt2": GPT2_PATTERN,
    "cl100k": ENCODINGS["cl100k_base"].pattern,
    "o200k": ENCODINGS["o200k_base"].pattern,
    "one class": r"[\s\S]+",
    "each alone": r"[\s\S]",
    "nothing": r"x{0}",
    "long look-behind": r"a(?:b(?:c(?:de?)?)?)?|[^a]+",
    "many operations": r"\p{Lu}\p{Ll}{1,2}\d|\p{N}{1,3}|[[:punct:]]{2}|\p{Han}|\p{Greek}+ ?|\s+(?!\S)|\s|[^\s]",
}
ALPHABET = " \t\n\r'aAbcdesSſtTİ019٣².,/-!中あ한éΣя́\u3000\u0085\u2028👍"


@pytest.mark.parametrize("name", PATTERNS)
def test_code_and_program_agree(name):
    from jittok import _mask_code, _native

    split = build_split_tables(compile_split(PATTERNS[name]))
    code = _mask_code.compile_mask_program(split, code_environment()[1])
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)(_native.address(_native.load(code)))
    chunk = kernels.new_chunk(int(split.numbers[N_MASKS]))
    generator = random.Random(name)
    for turn in range(12):
        ascii_only = turn % 2 == 0
        letters = [c for c in ALPHABET if c.isascii()] if ascii_only else list(ALPHABET)
        texts = ["".join(generator.choices(letters, k=generator.choice([0, 1, 63, 64, 700]))) for _ in range(6)]
        encoded = [text.encode() for text in texts]
        data = np.frombuffer(b"".join(encoded), np.uint8)
        ends = np.cumsum([len(text) for text in encoded]).astype(np.int64)
        starts = np.concatenate([[0], ends[:-1]])
        chunk.state[:] = 0
        kernels.load_chunk(split, data, starts, ends, len(ends), chunk)
        words = (int(chunk.state[kernels.STOP]) + 127) >> 6
        results = []
        for with_code in (False, True):
            chunk.masks[:] = 0
            if with_code:
                entries = chunk.text if chunk.state[kernels.ASCII] else chunk.entries
                run(entries.ctypes.data, chunk.masks.ctypes.data, words, int(chunk.state[kernels.ASCII]))
            else:
                kernels.find_classes(split, chunk)
                kernels.run_program(split, chunk, words)
            masks = [
                chunk.masks[MASK_BASE + int(split.numbers[i]) * MASK_STRIDE :][1 : words - 1]
                for i in (DECIDED, UNDECIDED)
            ]
            results.append([mask.copy() for mask in masks])
        np.testing.assert_array_equal(results[0], results[1])


def test_damaged_program_is_left_to_the_kernels(monkeypatch):
    split = build_split_tables(compile_split(GPT2_PATTERN))
    program = split.program.copy()
    program[2] = 10_000  # an operand that is no mask
    monkeypatch.delenv("JITTOK_DEBUG", raising=False)
    assert _jit.mask_code(split._replace(program=program), may_compile=True) == 0
    assert _jit.mask_code(split, may_compile=True) != 0


@pytest.mark.parametrize("name", ["cl100k", "o200k", "gpt2"])
@pytest.mark.parametrize("alphabet", ["0123456789a ", " \n\ta.", " \r\n  5é", "12345 \n\t'语x"])
def test_runs_leave_the_boundaries_as_they_are(name, alphabet):
    from jittok import _mask_code, _native

    split = build_split_tables(compile_split(PATTERNS[name], "rust"))
    runs = find_runs(split)
    assert bool(runs.counted) == bool(runs.run) == (name != "gpt2")
    code = _mask_code.compile_mask_program(split, code_environment()[1], runs)
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)(_native.address(_native.load(code)))
    chunk = kernels.new_chunk(int(split.numbers[N_MASKS]))
    generator = random.Random(name + alphabet)
    decided, undecided = (MASK_BASE + int(split.numbers[i]) * MASK_STRIDE for i in (DECIDED, UNDECIDED))
    left = [0, 0]
    for turn in range(8):
        # Runs of up to 150 of one character, some of which fill words of a mask or reach the chunk's end.
        longest = generator.choice([2, 8, 40, 150])
        pieces = [generator.choice(alphabet) * generator.randint(1, longest) for _ in range(4000 // longest)]
        encoded = ["".join(pieces[i::3]).encode() for i in range(3)] if turn % 2 else ["".join(pieces).encode()]
        data = np.frombuffer(b"".join(encoded), np.uint8)
        ends = np.cumsum([len(text) for text in encoded]).astype(np.int64)
        starts = np.concatenate([[0], ends[:-1]])
        chunk.state[:] = 0
        kernels.load_chunk(split, data, starts, ends, len(ends), chunk)
        state = chunk.state
        stop = int(state[kernels.STOP])
        words = (stop + 127) >> 6
        results = []
        for with_code in (False, True):
            chunk.masks[:] = 0
            if with_code:
                entries = chunk.text if state[kernels.ASCII] else chunk.entries
                run(entries.ctypes.data, chunk.masks.ctypes.data, words, int(state[kernels.ASCII]))
            else:
                kernels.find_classes(split, chunk)
                kernels.run_program(split, chunk, words)
            chunk.masks[decided + 1] |= np.uint64(1)
            chunk.masks[undecided + 1] &= ~np.uint64(1)
            limit = stop if state[kernels.COMPLETE] else stop - 1
            bits = np.unpackbits(chunk.masks[undecided:][: words - 1].view(np.uint8), bitorder="little")
            left[with_code] += int(bits[:limit].sum())
            limit = kernels.settle(split, chunk, decided, undecided, limit)
            bits = np.unpackbits(chunk.masks[decided:][: words - 1].view(np.uint8), bitorder="little")
            results.append((limit, np.flatnonzero(bits[:limit]).tolist()))
        assert results[0] == results[1]
    assert left[1] < left[0] or name == "gpt2"

"""Unigram models: text to the ids of its most probable segmentation.

Every piece has a score, the logarithm of a probability; that of a segmentation is the sum of its pieces'. The best one
is found by a *forward pass* (Viterbi): from each character on, in order, all pieces of the text are found, and each place
where one ends keeps the best score that any path to it has, and the piece that path ends in. A *backward pass* follows
these from the end. Two forward passes give the same:

- ``nested``: every substring is looked up, so time is quadratic in the length of the text. It is here to be compared with.
- ``trie``: the pieces that begin at a character are the nodes of one walk down the trie, which ends where no piece goes
  on; time is linear in the text, times the length of the longest piece at most.

Both references have rules of their own for what "best" means where sums are rounded, and for what is no piece; they are
reproduced exactly:

- *sentencepiece* 0.2.3: the sum is a float32. A path replaces one that is there only if it is strictly better, so the one
  whose last piece begins first wins. A character is offered as unknown only where it is no piece itself. Where the sum at
  a character is beyond 100,000, it is subtracted from all places reached so far, and goes on from 0.
- *tokenizers* 0.23: the sum is a float64 and never reset. Unknown characters that follow each other are joined, and the
  result looked up again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined, kernel
from jittok.kernels.machine import load_float
from jittok.kernels.split import SEGMENT
from jittok.kernels.word_cache import NEEDED, WRITTEN
from jittok.kernels.wordpiece import character
from jittok.tables import (
    RULE_TOKENIZERS,
    UNIGRAM_BYTE_FALLBACK,
    UNIGRAM_LONGEST,
    UNIGRAM_MISSING,
    UNIGRAM_ROOT_BASE,
    UNIGRAM_RULE,
    UNIGRAM_UNKNOWN,
)

#: What encoders of segments return.
DONE = 0
MORE_SCRATCH = 1
#: Positions that ``encode_unigram_segments`` needs in its state.
STATE = max(SEGMENT, NEEDED, WRITTEN) + 1
#: Where the running sum of sentencepiece goes back to 0.
RESET = np.float32(100000.0)
#: In place of a piece's id: an unknown character.
UNKNOWN = -1
_START = 0xFFFFFFFF
_UNREACHED = -np.inf


class UnigramScratch(NamedTuple):
    """Scratch arrays for a text of up to `capacity` characters; places are those between characters."""

    codes: NDArray[np.int32]  # [capacity + 1] code of each character, 0 after the last; then the end of each piece, by start
    best32: NDArray[np.float32]  # [capacity + 1] score of the best path to each place
    best: NDArray[np.float64]  # [capacity + 1] the same by tokenizers' rule
    back: NDArray[np.int64]  # [capacity + 1] the last piece of that path: id << 32 | place where it begins


def new_unigram_scratch(capacity: int, rule: int) -> UnigramScratch:
    """Allocate scratch for texts of up to `capacity` bytes, for tables of one rule."""
    short, double = (1, capacity + 1) if rule == RULE_TOKENIZERS else (capacity + 1, 1)
    return UnigramScratch(
        codes=np.zeros(capacity + 1, np.int32),
        best32=np.zeros(short, np.float32),
        best=np.zeros(double, np.float64),
        back=np.zeros(capacity + 1, np.int64),
    )


@helper
def write_codes(tables: Any, data: Any, first: int, end: int, codes: Any, best: Any) -> int:
    """Write the code of each character of ``data[first:end]``, 0 after the last; returns their number.

    All places but the first become unreached in `best`.
    """
    n = np.int64(0)
    at = first
    best[0] = 0
    while at < end:
        lead = np.int64(data[np.uint64(at)])
        if lead < 0x80:
            codes[np.uint64(n)] = tables.code_of[np.uint64(lead)]
            at += 1
        else:
            code, length = character(tables, data, at)
            codes[np.uint64(n)] = code
            at += length
        n += 1
        best[np.uint64(n)] = _UNREACHED
    codes[n] = 0
    return n


@helper
def walk_trie_32(tables: Any, n: int, codes: Any, best: Any, back: Any) -> int:
    """Forward pass over `n` characters by sentencepiece's rule."""
    units = tables.units
    root = np.int64(tables.numbers[UNIGRAM_ROOT_BASE])
    unknown_score = np.float32(tables.unknown_score[0])
    longest = np.int64(tables.numbers[UNIGRAM_LONGEST])
    for i in range(n):
        here = best[np.uint64(i)]
        if here > RESET or here < -RESET:
            for k in range(i + 1, min(n, i + longest) + 1):
                best[k] = np.float32(best[k] - here)
            here = np.float32(0.0)
        k = np.int64(i) + 1
        base = root
        unit = base + np.int64(codes[np.uint64(i)])
        token = np.int64(UNKNOWN)
        score = unknown_score
        if np.int64(units[np.uint64(unit)]) == base:
            token = np.int64(units[np.uint64(unit + 2)])
            base = np.int64(units[np.uint64(unit + 1)])
            if token >= 0:
                score = load_float(units, unit + 3)
            candidate = np.float32(score + here)
            if candidate > best[np.uint64(k)]:
                best[np.uint64(k)] = candidate
                back[np.uint64(k)] = token << 32 | i
            unit = base + np.int64(codes[np.uint64(k)])
            while np.int64(units[np.uint64(unit)]) == base:
                k += 1
                base = np.int64(units[np.uint64(unit + 1)])
                candidate = np.float32(load_float(units, unit + 3) + here)
                if candidate > best[np.uint64(k)]:
                    best[np.uint64(k)] = candidate
                    back[np.uint64(k)] = np.int64(units[np.uint64(unit + 2)]) << 32 | i
                unit = base + np.int64(codes[np.uint64(k)])
        else:
            candidate = np.float32(score + here)
            if candidate > best[np.uint64(k)]:
                best[np.uint64(k)] = candidate
                back[np.uint64(k)] = token << 32 | i
    return 0

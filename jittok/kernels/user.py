"""Encoding and decoding that a user's own ``@njit`` functions can call; see :mod:`jittok.kernels`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, public_kernel
from jittok.errors import ArgumentError, UnsupportedError
from jittok.kernels.merge import new_merge_lanes
from jittok.kernels.segments import DONE, MORE_CACHE, encode_segments
from jittok.kernels.split import CHUNK, POSITION, SEGMENT, new_chunk
from jittok.kernels.word_cache import (
    EXTRA_ROOM,
    NEW_PLACES,
    NEW_WORDS_ROOM,
    WRITTEN,
    empty_cache,
    new_word_cache,
    new_word_scratch,
)
from jittok.tables import MERGE_RANKED, N_MASKS, MergeTables, SplitTables

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

#: What the kernels return instead of a number of ids or bytes.
TOO_LONG = -1  # more codepoints than the workspace is made for
NO_ROOM = -2  # the output is too small
INVALID = -3  # a surrogate, a number that is no codepoint, an id that the model does not have, or a wrong range

#: Bytes that may be read beyond the end of a text.
_TEXT_PADDING = 64


class EncodeTables(NamedTuple):
    """A tokenizer's tables for :func:`encode_codepoints` and :func:`decode_bytes`; read-only."""

    split: SplitTables
    merges: MergeTables


class Workspace(NamedTuple):
    """Scratch arrays and word cache of one thread; see :func:`new_workspace`."""

    text: NDArray[np.uint8]  # [4 * capacity + 64] the text in UTF-8
    ends: NDArray[np.int64]  # [2] 0 and the text's length
    out_end: NDArray[np.int64]  # [1]
    no_words: NDArray[np.int32]  # [0]
    # The same memory read-only, as the engine's kernels take it: flags are part of Numba's types.
    text_view: NDArray[np.uint8]
    start_view: NDArray[np.int64]
    end_view: NDArray[np.int64]
    chunk: Any
    cache: Any
    scratch: Any
    lanes: Any


def tables(tokenizer: Tokenizer, *, normalized: bool = False) -> EncodeTables:
    """Return the tables to pass to the kernels.

    Parameters
    ----------
    tokenizer
        Any that jittok loads, if its model follows one cut of the text: most of the byte-level family.
    normalized
        Say that the codepoints passed later are normalised already. Otherwise a tokenizer that has a
        normalizer is refused, because the kernels do not normalise.

    Returns
    -------
    EncodeTables
        It stays valid as long as it is referenced; the tokenizer is not needed.

    Raises
    ------
    UnsupportedError
        The tokenizer normalises, or cuts or rewrites the text in several steps.
    """
    plan = tokenizer.plan
    if plan.normalizer is not None and not normalized:
        raise UnsupportedError(
            "this tokenizer normalises text, which the kernels do not; normalise it first (tokenizer.normalize) and"
            " pass normalized=True"
        )
    if plan.stages:
        raise UnsupportedError(
            f"this tokenizer takes {len(plan.stages) + 1} steps to cut text, and the kernels take one;"
            " use Tokenizer.encode_batch"
        )
    if not isinstance(plan.model, MergeTables):
        raise UnsupportedError(
            "these kernels are for byte-pair encoding; jittok.kernels.wordpiece has those of WordPiece"
        )
    return EncodeTables(plan.last_split, plan.model)


def new_workspace(tables: EncodeTables, capacity: int = 1 << 16, cache_bits: int = 16) -> Workspace:
    """Allocate what :func:`encode_codepoints` needs besides tables; each thread needs one of its own.

    Parameters
    ----------
    tables
        Of the tokenizer. A workspace serves this one only, as it remembers words.
    capacity
        The most codepoints that one call encodes. Costs about 120 bytes for each.
    cache_bits
        Base-two logarithm of the number of slots for words that are remembered, from 13 to 24; half of them are
        used before all is forgotten. Costs 56 bytes for each slot.

    Raises
    ------
    ArgumentError
        An argument is out of range.
    """
    if not 0 < capacity <= 1 << 28:
        raise ArgumentError(f"capacity={capacity}; expected from 1 to 2**28")
    if not 13 <= cache_bits <= 24:
        raise ArgumentError(f"cache_bits={cache_bits}; expected from 13 to 24")
    text = np.zeros(4 * capacity + _TEXT_PADDING, np.uint8)
    ends = np.zeros(2, np.int64)
    return Workspace(
        text=text,
        ends=ends,
        out_end=np.zeros(1, np.int64),
        no_words=np.zeros(0, np.int32),
        text_view=_read_only(text),
        start_view=_read_only(ends[:1]),
        end_view=_read_only(ends[1:]),
        chunk=new_chunk(int(tables.split.numbers[N_MASKS])),
        cache=new_word_cache(cache_bits, cache_bits - 2, 1 << (cache_bits + 1), 1 << (cache_bits + 3)),
        scratch=new_word_scratch(max(4 * capacity, 4 * CHUNK + 80)),
        lanes=new_merge_lanes(NEW_WORDS_ROOM, NEW_PLACES),
    )


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


@helper
def write_utf8(codepoints: Any, first: int, last: int, text: Any) -> int:
    """Write codepoints as UTF-8 from the start of `text`; returns the number of bytes, or INVALID."""
    at = np.int64(0)
    for i in range(first, last):
        codepoint = np.int64(codepoints[i])
        if codepoint < 0:
            return INVALID
        if codepoint < 0x80:
            text[at] = np.uint8(codepoint)
            at += 1
        elif codepoint < 0x800:
            text[at] = np.uint8(0xC0 | codepoint >> 6)
            text[at + 1] = np.uint8(0x80 | (codepoint & 63))
            at += 2
        elif codepoint < 0x10000:
            if 0xD800 <= codepoint < 0xE000:
                return INVALID
            text[at] = np.uint8(0xE0 | codepoint >> 12)
            text[at + 1] = np.uint8(0x80 | (codepoint >> 6 & 63))
            text[at + 2] = np.uint8(0x80 | (codepoint & 63))
            at += 3
        elif codepoint < 0x110000:
            text[at] = np.uint8(0xF0 | codepoint >> 18)
            text[at + 1] = np.uint8(0x80 | (codepoint >> 12 & 63))
            text[at + 2] = np.uint8(0x80 | (codepoint >> 6 & 63))
            text[at + 3] = np.uint8(0x80 | (codepoint & 63))
            at += 4
        else:
            return INVALID
    return at


@public_kernel(out=np.int32)
def encode_codepoints(tables: Any, workspace: Any, codepoints: Any, first: int, last: int, out: Any) -> int:
    """Encode ``codepoints[first:last]`` as one text: ``special="text"``, no special tokens added.

    Added tokens are not looked for and the text is not normalised; otherwise the ids are those of
    :meth:`jittok.Tokenizer.encode`.

    Parameters
    ----------
    tables : EncodeTables
        From :func:`tables`.
    workspace : Workspace
        From :func:`new_workspace`. No two threads may use one at a time.
    codepoints : uint32[n]
        Unicode scalar values.
    first, last : int
        The range, ``0 <= first <= last <= n``.
    out : int32
        Output, of at least ``4 * (last - first) + EXTRA_ROOM`` places. Places beyond the ids may be written.

    Returns
    -------
    int
        The number of ids, or a negative status: TOO_LONG, NO_ROOM or INVALID.

    Notes
    -----
    Linear. Nothing is allocated.
    """
    n = last - first
    if first < 0 or n < 0 or last > codepoints.size:
        return INVALID
    if 4 * n + _TEXT_PADDING > workspace.text.size:
        return TOO_LONG
    if 4 * n + EXTRA_ROOM > out.size:
        return NO_ROOM
    size = write_utf8(codepoints, first, last, workspace.text)
    if size < 0:
        return INVALID
    workspace.ends[1] = size
    state = workspace.chunk.state
    for i in range(state.size):
        state[i] = 0
    state[SEGMENT] = 0
    state[POSITION] = 0
    status = MORE_CACHE
    while status == MORE_CACHE:
        status = encode_segments(
            tables.split,
            tables.merges,
            workspace.text_view,
            workspace.start_view,
            workspace.end_view,
            1,
            workspace.chunk,
            workspace.cache,
            workspace.scratch,
            workspace.lanes,
            out,
            workspace.out_end,
            workspace.no_words,
            workspace.no_words,
        )
        if status == MORE_CACHE:
            empty_cache(workspace.cache)
    if status != DONE:
        return TOO_LONG
    return state[WRITTEN]


@public_kernel(out=np.uint8)
def decode_bytes(tables: Any, ids: Any, first: int, last: int, out: Any) -> int:
    """Write the bytes of ``ids[first:last]``; for byte-level models, whose tokens are byte strings.

    Parameters
    ----------
    tables : EncodeTables
        From :func:`tables`.
    ids : int32[n]
        Token ids of the model. Those of added tokens are not known here.
    first, last : int
        The range, ``0 <= first <= last <= n``.
    out : uint8
        Output.

    Returns
    -------
    int
        The number of bytes, or a negative status: NO_ROOM, or INVALID for a wrong id, a wrong range, or a model
        that is not byte-level.
    """
    merges = tables.merges
    if merges.numbers[MERGE_RANKED] != 1 or first < 0 or last < first or last > ids.size:
        return INVALID
    at = np.int64(0)
    for i in range(first, last):
        token = np.int64(ids[i])
        if token < 0 or token >= merges.token_indptr.size - 1:
            return INVALID
        begin = merges.token_indptr[token]
        end = merges.token_indptr[token + 1]
        if begin == end:
            return INVALID
        if at + end - begin > out.size:
            return NO_ROOM
        for j in range(begin, end):
            out[at] = merges.token_bytes[j]
            at += 1
    return at

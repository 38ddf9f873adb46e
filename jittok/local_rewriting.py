"""Rewriting steps done codepoint by codepoint, where no alignment is wanted.

Most codepoints become the same wherever they stand, so that the steps need not be run: a table says what. The others, and
what stands next to them, are stretches that the steps themselves rewrite, each as a text of its own. So the steps must not
look further than that: :func:`build_local_rewriter` knows for each how far it looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jittok import tables
from jittok.rewriting import PADDING, Rewritten, applied
from jittok.tables import LocalTables, SuspicionTables, read_only
from jittok.unicode.graphemes import (
    BREAK,
    CONJUNCT,
    CONSONANT,
    CR,
    EXTEND,
    HANGUL_L,
    PREPEND,
    SPACING_MARK,
    ZWJ,
    grapheme_classes,
)
from jittok.unicode.normalization import fold_pages

if TYPE_CHECKING:
    from jittok.rewriting import _Operation
    from jittok.tables import PrecompiledTables, SubstitutionTables

#: The one regular expression that is known to look no further than a run of blanks.
BLANKS_PATTERN = " {2,}"
#: Bytes of the longest cluster that becomes what a charsmap says of its beginning.
_SHORT = 5
#: Bytes of the longest string that one codepoint may become.
_LONGEST = 255


@dataclass(frozen=True, slots=True)
class LocalSteps:
    """Steps in a row that work codepoint by codepoint, or white space that is stripped.

    Attributes
    ----------
    operations
        The steps; none where white space is stripped.
    tables
        What they come to.
    strips
        Whether white space is left out at the left and at the right.
    """

    operations: tuple[_Operation, ...]
    tables: LocalTables | None
    strips: tuple[bool, bool] = (False, False)


@dataclass(frozen=True, slots=True)
class LocalRewriter:
    """Rewrites as the steps do that it was made from. Without `groups` it cannot: one of them looks too far."""

    groups: tuple[LocalSteps, ...]

    def apply(self, data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Rewritten:
        """Rewrite segments of valid UTF-8; see :meth:`jittok.rewriting.Rewriter.apply`."""
        from jittok.kernels.local_rewriting import trim_ends

        starts, ends = np.array(starts), np.array(ends)
        for group in self.groups:
            if group.tables is None:
                left, right = group.strips
                trim_ends(int(left), int(right), read_only(data), starts, ends)
            else:
                data, starts, ends = _rewritten(group.operations, group.tables, data, starts, ends)
        nothing = np.zeros(0, np.int32)
        return Rewritten(data, starts, ends, np.zeros(0, np.int64), nothing, nothing)


def _rewritten(
    operations: tuple[_Operation, ...],
    local: LocalTables,
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Segments rewritten by some operations: data with PADDING zero bytes, starts and ends."""
    from jittok.kernels.local_rewriting import ROOM, LocalText, fill_holes, rewrite_locally

    n = len(starts)
    size = int((ends - starts).sum())
    room, room_for_holes = size + (size >> 3) + 2 * ROOM, (size >> 3) + 64
    data, starts, ends = read_only(data), read_only(starts), read_only(ends)
    while True:
        text = LocalText(
            data=np.empty(room, np.uint8),
            starts=np.empty(n, np.int64),
            ends=np.empty(n, np.int64),
            hole_indptr=np.empty(n + 1, np.int64),
            hole_start=np.empty(room_for_holes, np.int64),
            hole_end=np.empty(room_for_holes, np.int64),
            hole_at=np.empty(room_for_holes, np.int64),
        )
        written = int(rewrite_locally(local, data, starts, ends, text))
        if written >= 0:
            break
        room, room_for_holes = 2 * room, 2 * room_for_holes
    n_holes = int(text.hole_indptr[n]) if n else 0
    if n_holes == 0:
        result = text.data
        starts, ends = text.starts, text.ends
    else:
        hole_start, hole_end = read_only(text.hole_start[:n_holes]), read_only(text.hole_end[:n_holes])
        done = applied(operations, data, hole_start, hole_end, alignment=False)
        result = np.empty(written + int((done.ends - done.starts).sum()) + PADDING, np.uint8)
        starts, ends = np.empty(n, np.int64), np.empty(n, np.int64)
        filling = read_only(done.data), read_only(done.starts), read_only(done.ends)
        written = int(fill_holes(text, *filling, result, starts, ends))
    result[written : written + PADDING] = 0
    return result[: written + PADDING], starts, ends


# ------------------------------------------------------------------------------------------------------ building


def build_local_rewriter(operations: Sequence[_Operation], suspicion: SuspicionTables) -> LocalRewriter:
    """Build the tables by which steps are done codepoint by codepoint.

    Parameters
    ----------
    operations
        The steps.
    suspicion
        Which codepoints they may change.

    Returns
    -------
    LocalRewriter
        Without groups if a step looks too far. About 10 ms for a normalization form.
    """
    pages = suspicion.class_of.reshape(-1, 128)
    candidates = pages[suspicion.page_of].ravel() != tables.SUSPICION_NONE
    candidates[0xD800:0xE000] = False
    groups: list[LocalSteps] = []
    together: list[_Operation] = []

    def close() -> bool:
        if not together:
            return True
        local = _local_tables(tuple(together), candidates)
        if local is not None:
            groups.append(LocalSteps(tuple(together), local))
        together.clear()
        return local is not None

    for operation in operations:
        if operation.name == "edit_ends" and len(operation.tables[2]) == 0:
            if not close():
                return LocalRewriter(())
            groups.append(LocalSteps((), None, (bool(operation.tables[0]), bool(operation.tables[1]))))
        elif operation.name in ("substitute", "replace_literal", "replace_matches", "apply_precompiled"):
            together.append(operation)
        else:
            return LocalRewriter(())
    return LocalRewriter(tuple(groups) if close() else ())


class _Images:
    """What candidates have become after some steps: codepoints one after another."""

    def __init__(self, codepoints: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        self.codepoints = codepoints
        self.counts = counts
        ends = np.cumsum(counts)
        padded = np.append(codepoints, 0)
        #: The first and the last codepoint of each, -1 where there is none.
        self.first = np.where(counts > 0, padded[ends - counts], -1)
        self.last = np.where(counts > 0, padded[ends - 1], -1)

    def holding(self, codepoint: int) -> NDArray[np.bool_]:
        """Which hold a codepoint."""
        holds = np.zeros(len(self.counts), np.bool_)
        holds[np.repeat(np.arange(len(self.counts)), self.counts)[self.codepoints == codepoint]] = True
        return holds

    def are(self, codepoints: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which are one codepoint, the one given for each."""
        result: NDArray[np.bool_] = (self.counts == 1) & (self.first == codepoints)
        return result


def _local_tables(operations: tuple[_Operation, ...], suspected: NDArray[np.bool_]) -> LocalTables | None:
    """Tables of steps in a row; None if one looks too far."""
    is_candidate = suspected.copy()
    has_clusters = any(operation.name == "apply_precompiled" for operation in operations)
    classes = grapheme_classes()
    breaks = classes & BREAK
    joins = (breaks == EXTEND) | (breaks == ZWJ) | (breaks == SPACING_MARK)
    # After a codepoint of a few kinds only, all of three bytes or more with them.
    may_join = (breaks >= HANGUL_L) | (classes & CONJUNCT == CONSONANT)
    if has_clusters:
        is_candidate |= joins | (breaks == PREPEND) | (breaks == CR)
        for operation in operations:
            if operation.name == "apply_precompiled":
                # A character that becomes itself takes what joins it with it, too.
                charsmap: PrecompiledTables = operation.tables[0]
                everything = np.arange(0x110000)
                is_candidate |= (_looked_up(charsmap.page_of, charsmap.entry, everything) & tables.CHARSMAP_MAPPED) != 0
        is_candidate[0xD800:0xE000] = False
    codepoints = np.flatnonzero(is_candidate)
    n = len(codepoints)
    is_other = np.zeros(n, np.bool_)
    is_mark = np.zeros(n, np.bool_)
    is_repeated = np.zeros(n, np.bool_)
    is_joining = np.zeros(n, np.bool_)
    #: What a step shortens lets the next one look further, so that all add up.
    reach = 0
    is_only = len(operations) == 1
    images = _Images(codepoints, np.ones(n, np.int64))
    for operation in operations:
        if operation.name == "substitute":
            substitution: SubstitutionTables = operation.tables[0]
            if substitution.numbers[tables.SUBSTITUTION_REORDERS]:
                is_other |= _may_join(substitution, images.first)
                reach += 1
        elif operation.name == "apply_precompiled":
            precompiled: PrecompiledTables = operation.tables[0]
            first, last = images.first, images.last
            entry = _looked_up(precompiled.page_of, precompiled.entry, first)
            is_mapped = (entry & tables.CHARSMAP_MAPPED) != 0
            # A cluster becomes what its beginning does, and only where it is short.
            is_other |= (entry & tables.CHARSMAP_CONTINUES) != 0
            is_other |= breaks[last] == PREPEND
            is_joining |= may_join[first]
            reach += 1
            if _looked_up(precompiled.page_of, precompiled.entry, np.flatnonzero(breaks == PREPEND)).any():
                # So many reach a cluster's end, or are too long for a rule of all of it.
                reach += _SHORT - 1
            if is_only:
                is_mark |= joins[first] & ~is_mapped & ~is_other
                is_other |= is_mapped & (joins[first] | (breaks[first] == CR))
            else:
                is_other |= joins[first] | (breaks[last] == CR)
        else:
            pattern = [ord(" ")] * 2
            if operation.name == "replace_literal":
                pattern = operation.tables[0].tolist()
            elif operation.pattern != BLANKS_PATTERN:
                return None
            if not pattern:
                return None
            if len(pattern) > 1:
                holds = images.holding(pattern[0])
                if len(set(pattern)) == 1:
                    is_itself = images.are(codepoints) & (codepoints == pattern[0])
                    is_repeated |= is_itself
                    holds &= ~is_itself
                is_other |= holds
                reach += len(pattern) - 1
        before = images
        images = _run_on(operation, images)
        if operation.name == "apply_precompiled":
            is_other |= is_mapped & images.are(before.first) & before.are(before.first)
        if not is_only:  # then what was on both sides meets
            is_other |= images.counts == 0
    is_kept = images.are(codepoints)
    is_other |= is_repeated & ~is_kept
    is_kept &= ~is_other
    is_repeated &= is_kept
    is_mark &= ~is_other
    is_mapped = ~(is_other | is_kept)
    is_other |= is_mapped & (images.counts > _LONGEST // 4)
    is_mapped &= ~is_other

    entry = np.zeros(0x110000, np.uint32)
    if has_clusters:
        entry[np.flatnonzero(may_join)] = tables.LOCAL_JOINS
        entry[codepoints[is_kept & is_joining]] |= tables.LOCAL_JOINS
    entry[codepoints[is_mark]] = tables.LOCAL_MARK
    entry[codepoints[is_repeated]] = tables.LOCAL_REPEATED
    entry[codepoints[is_other]] = tables.LOCAL_OTHER
    mapped = np.flatnonzero(is_mapped)
    places, strings = _strings(images, mapped)
    flags = tables.LOCAL_MAPPED | is_joining[mapped].astype(np.uint32) * np.uint32(tables.LOCAL_JOINS)
    entry[codepoints[mapped]] = flags | places << tables.LOCAL_OFFSET
    page_of, pages = fold_pages(entry)
    numbers = np.zeros(tables.LOCAL_NUMBERS, np.int64)
    numbers[tables.LOCAL_REACH] = max(reach, 1)
    is_pair = entry[:128] == tables.LOCAL_REPEATED
    stops = np.concatenate([[False], (entry[:128] != 0) & ~is_pair, np.ones(128, np.bool_), [False]])
    edges = np.flatnonzero(np.diff(stops.astype(np.int8)))
    return LocalTables(
        page_of=page_of,
        entry=pages,
        strings=read_only(strings),
        stops=read_only(np.stack([edges[::2], edges[1::2] - edges[::2]], axis=1).astype(np.int64)),
        pairs=read_only(np.flatnonzero(is_pair)),
        numbers=read_only(numbers),
    )


def _looked_up(
    page_of: NDArray[np.uint16], values: NDArray[np.unsignedinteger], codepoints: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The value of each codepoint in a table of two levels."""
    found: NDArray[np.int64] = values[page_of[codepoints >> 7].astype(np.int64) << 7 | codepoints & 127].astype(np.int64)
    return found


def _may_join(form: SubstitutionTables, codepoints: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which codepoints begin with a mark, or with what may compose with something before it, once taken apart."""
    number = _looked_up(form.page_of, form.class_of, np.maximum(codepoints, 0))
    joins: NDArray[np.bool_] = (form.combining[number] > 0) | ((form.flags[number] & tables.SUBSTITUTION_SECOND) != 0)
    expands = (form.flags[number] & tables.SUBSTITUTION_EXPANDS) != 0
    begin = form.expansion_indptr[number[expands]]
    has_some = form.expansion_indptr[number[expands] + 1] > begin
    # The combining class, and whether it may compose.
    packed = np.append(form.expansion, 0)[begin]
    joins[expands] |= has_some & (packed >> 21 != 0)
    joins &= codepoints >= 0
    return joins


def _run_on(operation: _Operation, images: _Images) -> _Images:
    """What an operation makes of each text by itself."""
    from jittok.kernels.normalize import AlignedText
    from jittok.rewriting import _run

    nothing = np.empty(0, np.int32)
    indptr = np.concatenate([[0], np.cumsum(images.counts)])
    codepoints = np.append(images.codepoints, 0).astype(np.uint32)
    done = _run(operation, AlignedText(codepoints, indptr, nothing, nothing), False, None)
    return _Images(done.codepoints[: int(done.indptr[-1])].astype(np.int64), np.diff(done.indptr))


def _strings(images: _Images, chosen: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Where the UTF-8 of each chosen image begins, with its length in front, and all of them."""
    ends = np.cumsum(images.counts)
    strings = bytearray()
    place_of: dict[bytes, int] = {}
    places = np.zeros(len(chosen), np.uint32)
    begins = (ends - images.counts)[chosen].tolist()
    text = images.codepoints.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    for row, (begin, end) in enumerate(zip(begins, ends[chosen].tolist(), strict=True)):
        string = text[begin:end].encode("utf-8", "surrogatepass")
        place = place_of.get(string)
        if place is None:
            place = place_of[string] = len(strings)
            strings += bytes([len(string)]) + string
        places[row] = place
    return places, np.frombuffer(bytes(strings) + b"\0", np.uint8)

"""Rewriting steps to the tables of :mod:`jittok.kernels.normalize`."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok import tables
from jittok.tables import CleanUpTables, SplitAutomaton, SubstitutionTables, SuspicionTables, read_only
from jittok.unicode import bert
from jittok.unicode.normalization import fold_pages, load_normalization

_N_CODEPOINTS = 0x110000


def _substitution_tables(
    keys: NDArray[np.int32], indptr: NDArray[np.int32], values: NDArray[np.int32], **numbers: bool
) -> SubstitutionTables:
    """Tables from the expansions of single codepoints, in their order; numbers: hangul, reorders, composes."""
    data = load_normalization()
    reorders = numbers.get("reorders", False)
    marks = data["combining_codepoints"] if reorders else np.zeros(0, dtype=np.int32)
    classes = data["combining_classes"] if reorders else np.zeros(0, dtype=np.uint8)
    pairs = data["composition"].astype(np.int64) if numbers.get("composes") else np.zeros((0, 3), dtype=np.int64)

    combining_of = np.zeros(_N_CODEPOINTS, dtype=np.uint8)
    combining_of[marks] = classes
    second = np.zeros(_N_CODEPOINTS, dtype=np.bool_)
    if len(pairs):
        second[pairs[:, 1]] = True
        second[0x1161:0x1176] = True  # Hangul vowels and final consonants
        second[0x11A8:0x11C3] = True

    # Codepoints that expand have a class each; the others share one for each combining class and flag.
    class_of = np.zeros(_N_CODEPOINTS, dtype=np.uint16)
    plain = np.flatnonzero(second | (combining_of > 0))
    kinds, which = np.unique(combining_of[plain].astype(np.int64) * 2 + second[plain], return_inverse=True)
    class_of[plain] = which + 1
    class_of[keys] = np.arange(len(keys)) + 1 + len(kinds)
    n_classes = 1 + len(kinds) + len(keys)
    combining = np.zeros(n_classes, dtype=np.uint8)
    combining[1 : 1 + len(kinds)] = kinds >> 1
    combining[1 + len(kinds) :] = combining_of[keys]
    flags = np.zeros(n_classes, dtype=np.uint8)
    flags[1 : 1 + len(kinds)] = (kinds & 1) * tables.SUBSTITUTION_SECOND
    flags[1 + len(kinds) :] = tables.SUBSTITUTION_EXPANDS + second[keys] * tables.SUBSTITUTION_SECOND
    expansion_indptr = np.zeros(n_classes + 1, dtype=np.int32)
    expansion_indptr[1 + len(kinds) :] = indptr

    packed = values.astype(np.int64) | (combining_of[values].astype(np.int64) << 21)
    packed |= second[values].astype(np.int64) << 30

    page_of, pages = fold_pages(class_of)
    options = np.zeros(tables.SUBSTITUTION_NUMBERS, dtype=np.int64)
    options[tables.SUBSTITUTION_HANGUL] = numbers.get("hangul", False)
    options[tables.SUBSTITUTION_REORDERS] = reorders
    options[tables.SUBSTITUTION_COMPOSES] = numbers.get("composes", False)
    return SubstitutionTables(
        page_of=page_of,
        class_of=pages,
        combining=read_only(combining),
        flags=read_only(flags),
        expansion_indptr=read_only(expansion_indptr),
        expansion=read_only(packed.astype(np.uint32)),
        pairs=read_only((pairs[:, 0] << 21) | pairs[:, 1]),
        composed=read_only(pairs[:, 2].astype(np.uint32)),
        numbers=read_only(options),
    )


@cache
def unicode_form_tables(form: str) -> SubstitutionTables:
    """Tables of NFC, NFD, NFKC or NFKD of Unicode 9.0."""
    data = load_normalization()
    keys, indptr, values = (data[f"canonical_{part}"] for part in ("from", "indptr", "to"))
    if "K" in form:
        # A compatibility decomposition comes before a canonical one.
        extra = data["compatible_from"]
        kept = np.flatnonzero(~np.isin(keys, extra))
        lengths = np.concatenate((np.diff(indptr)[kept], np.diff(data["compatible_indptr"])))
        starts = np.concatenate((indptr[:-1][kept], data["compatible_indptr"][:-1] + len(values)))
        keys = np.concatenate((keys[kept], extra))
        order = np.argsort(keys, kind="stable")
        keys, lengths, starts = keys[order], lengths[order], starts[order]
        pool = np.concatenate((values, data["compatible_to"]))
        indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        places = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths) + np.repeat(starts, lengths)
        values = pool[places]
    return _substitution_tables(keys, indptr, values, hangul=True, reorders=True, composes=form[-1] == "C")


@cache
def lowercase_tables() -> SubstitutionTables:
    """Tables of full lower-casing without context, Unicode 17.0."""
    data = load_normalization()
    return _substitution_tables(data["lowercase_from"], data["lowercase_indptr"], data["lowercase_to"])


@cache
def removal_tables(kind: str) -> SubstitutionTables:
    """Tables that leave out the "marks" of StripAccents, or the "nonspacing_marks" of BertNormalizer."""
    keys = np.flatnonzero(bert.membership(getattr(bert, kind)())).astype(np.int32)
    return _substitution_tables(keys, np.zeros(len(keys) + 1, np.int32), np.zeros(0, np.int32))


#: What the clean-up of NMT makes blanks of, as tokenizers has it, and what it leaves out.
_NMT_TO_BLANK = (9, 10, 12, 13, 0x1680, *range(0x200B, 0x2010), 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD)
_NMT_REMOVED = (*range(1, 9), 11, *range(14, 0x20), 0x7F, 0x8F, 0x9F)


@cache
def nmt_tables() -> SubstitutionTables:
    """Tables of the clean-up of NMT."""
    keys = np.array(sorted(_NMT_TO_BLANK + _NMT_REMOVED), np.int32)
    is_blank = np.isin(keys, _NMT_TO_BLANK)
    indptr = np.concatenate(([0], np.cumsum(is_blank))).astype(np.int32)
    return _substitution_tables(keys, indptr, np.full(int(indptr[-1]), 0x20, np.int32))


def nmt_suspicion() -> NDArray[np.uint8]:
    """SUSPICION_* of each codepoint, uint8[0x110000], for the clean-up of NMT."""
    suspicion = np.zeros(_N_CODEPOINTS, np.uint8)
    suspicion[list(_NMT_TO_BLANK + _NMT_REMOVED)] = tables.SUSPICION_CHANGES
    return suspicion


def byte_suspicion() -> NDArray[np.uint8]:
    """SUSPICION_* of each codepoint, uint8[0x110000], for writing in the byte alphabet."""
    suspicion = np.full(_N_CODEPOINTS, tables.SUSPICION_CHANGES, np.uint8)
    suspicion[0x21:0x7F] = 0
    return suspicion


def removal_suspicion() -> NDArray[np.uint8]:
    """SUSPICION_* of each codepoint, uint8[0x110000], for StripAccents."""
    return bert.membership(bert.marks()) * np.uint8(tables.SUSPICION_CHANGES)


#: White space that clean-up makes blanks of: all but U+000B, U+000C and U+0085, which it leaves out.
_TO_BLANK = (9, 10, 13, 0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)


@cache
def clean_up_tables(
    clean_text: bool, handle_chinese_chars: bool, strip_accents: bool, lowercase: bool
) -> CleanUpTables:
    """Tables of BERT's clean-up: four steps, which the reference runs one after the other, in one.

    They are decided codepoint by codepoint but for the order of combining marks, which NFD may change: the entries
    have what is needed to notice that.
    """
    data = load_normalization()
    entry = np.zeros(_N_CODEPOINTS, np.int64)
    lower = np.arange(_N_CODEPOINTS, dtype=np.int64)
    expansion = bytearray()
    if lowercase:
        keys, indptr, values = (data[f"lowercase_{part}"] for part in ("from", "indptr", "to"))
        single = np.diff(indptr) == 1
        lower[keys[single]] = values[indptr[:-1][single]]
        entry[keys[single]] = _content(lower[keys[single]])
        for i in np.flatnonzero(~single).tolist():
            entry[keys[i]] = _expansion(values[indptr[i] : indptr[i + 1]].tolist(), expansion)
    if strip_accents:
        _add_strip_accents(entry, lower, expansion)
    if handle_chinese_chars:
        entry[bert.membership(bert.CHINESE)] |= tables.CLEAN_UP_PADDED
    if clean_text:
        entry[np.array(_TO_BLANK)] = _content(np.array([0x20]))
        entry[0x20] = 0
        entry[bert.membership(bert.removed())] = tables.CLEAN_UP_REMOVED << tables.CLEAN_UP_KIND
    page_of, pages = fold_pages(entry)
    numbers = np.zeros(tables.CLEAN_UP_NUMBERS, np.int64)
    numbers[tables.CLEAN_UP_LOWERS] = lowercase
    numbers[tables.CLEAN_UP_CLEANS] = clean_text
    return CleanUpTables(page_of, pages, read_only(np.frombuffer(bytes(expansion), np.uint8)), read_only(numbers))


def _add_strip_accents(entry: NDArray[np.int64], lower: NDArray[np.int64], expansion: bytearray) -> None:
    """Entries of the codepoints that NFD takes apart or that are marks; their parts become `lower` of them."""
    data = load_normalization()
    combining = np.zeros(_N_CODEPOINTS, np.int64)
    combining[data["combining_codepoints"]] = data["combining_classes"]
    left_out = bert.membership(bert.nonspacing_marks())
    # Marks that stay as they are.
    marks = data["combining_codepoints"]
    marks = marks[~left_out[marks]]
    entry[marks] = np.where(entry[marks] == 0, tables.CLEAN_UP_SELF << tables.CLEAN_UP_KIND, entry[marks])
    entry[marks] |= combining[marks] << tables.CLEAN_UP_COMBINING | tables.CLEAN_UP_MARK | tables.CLEAN_UP_KEPT
    # Marks that go.
    marks = np.flatnonzero(left_out)
    entry[marks] = tables.CLEAN_UP_CONTENT << tables.CLEAN_UP_KIND | combining[marks] << tables.CLEAN_UP_COMBINING
    entry[marks] |= (combining[marks] > 0) * tables.CLEAN_UP_MARK
    # What is taken apart: nearly always one codepoint stays.
    keys, indptr, parts = (data[f"canonical_{part}"] for part in ("from", "indptr", "to"))
    first, last = parts[indptr[:-1]], parts[indptr[1:] - 1]
    stays = ~left_out[parts]
    before = np.concatenate(([0], np.cumsum(stays)))
    kept = parts[stays]
    n_kept = before[indptr[1:]] - before[indptr[:-1]]
    entry[keys] = tables.CLEAN_UP_CONTENT << tables.CLEAN_UP_KIND
    single = n_kept == 1
    entry[keys[single]] = _content(lower[kept[before[indptr[:-1][single]]]])
    for i in np.flatnonzero(n_kept > 1).tolist():
        entry[keys[i]] = _expansion(lower[kept[before[indptr[i]] : before[indptr[i + 1]]]].tolist(), expansion)
    n_marks = np.concatenate(([0], np.cumsum(stays & (combining[parts] > 0))))
    entry[keys] |= combining[last] << tables.CLEAN_UP_COMBINING
    entry[keys] |= (combining[first] > 0) * tables.CLEAN_UP_MARK
    entry[keys] |= (n_marks[indptr[1:]] > n_marks[indptr[:-1]]) * tables.CLEAN_UP_KEPT
    entry[0xAC00:0xD7A4] = tables.CLEAN_UP_HANGUL << tables.CLEAN_UP_KIND


def _content(codepoints: NDArray[Any]) -> NDArray[np.int64]:
    """Entries that put one codepoint in the place of another."""
    c = codepoints.astype(np.int64)
    two = 0xC0 | c >> 6 | (0x80 | c & 63) << 8
    three = 0xE0 | c >> 12 | (0x80 | c >> 6 & 63) << 8 | (0x80 | c & 63) << 16
    four = 0xF0 | c >> 18 | (0x80 | c >> 12 & 63) << 8 | (0x80 | c >> 6 & 63) << 16 | (0x80 | c & 63) << 24
    size = 1 + (c >= 0x80) + (c >= 0x800) + (c >= 0x10000)
    content = np.select([size == 1, size == 2, size == 3], [c, two, three], four)
    kind = tables.CLEAN_UP_CONTENT << tables.CLEAN_UP_KIND | 1 << tables.CLEAN_UP_CODEPOINTS
    entries: NDArray[np.int64] = content | size << tables.CLEAN_UP_BYTES | kind
    return entries


def _expansion(codepoints: list[int], expansion: bytearray) -> int:
    """An entry that puts several codepoints in the place of one; adds them to `expansion`, their length first."""
    begin = len(expansion)
    encoded = "".join(map(chr, codepoints)).encode()
    expansion += bytes([len(encoded)]) + encoded
    return begin | len(codepoints) << tables.CLEAN_UP_CODEPOINTS | tables.CLEAN_UP_EXPANSION << tables.CLEAN_UP_KIND


def clean_up_suspicion(cleaner: CleanUpTables) -> NDArray[np.uint8]:
    """SUSPICION_* of each codepoint, uint8[0x110000], for BERT's clean-up."""
    pages: NDArray[np.uint8] = (cleaner.entry != 0).reshape(-1, 128) * np.uint8(tables.SUSPICION_CHANGES)
    return pages[cleaner.page_of].ravel()


@cache
def unicode_form_suspicion(form: str) -> NDArray[np.uint8]:
    """SUSPICION_* of each codepoint, uint8[0x110000], for a normalization form."""
    data = load_normalization()
    suspicion = np.zeros(_N_CODEPOINTS, dtype=np.uint8)
    suspicion[data["combining_codepoints"]] = tables.SUSPICION_CONTEXT
    if form.endswith("C"):
        suspicion[data["composition"][:, 1]] = tables.SUSPICION_CONTEXT
        suspicion[0x1161:0x1176] = tables.SUSPICION_CONTEXT
        suspicion[0x11A8:0x11C3] = tables.SUSPICION_CONTEXT
        stays = np.zeros(_N_CODEPOINTS, dtype=np.bool_)
        stays[data["composition"][:, 2]] = True
        changes = data["canonical_from"]
        suspicion[changes[~stays[changes]]] = tables.SUSPICION_CHANGES
    else:
        suspicion[data["canonical_from"]] = tables.SUSPICION_CHANGES
        suspicion[0xAC00:0xD7A4] = tables.SUSPICION_CHANGES
    if "K" in form:
        suspicion[data["compatible_from"]] = tables.SUSPICION_CHANGES
    suspicion.flags.writeable = False
    return suspicion


def lowercase_suspicion() -> NDArray[np.uint8]:
    """SUSPICION_* of each codepoint, uint8[0x110000], for lower-casing."""
    suspicion = np.zeros(_N_CODEPOINTS, dtype=np.uint8)
    suspicion[load_normalization()["lowercase_from"]] = tables.SUSPICION_CHANGES
    return suspicion


def match_suspicion(automaton: SplitAutomaton) -> NDArray[np.uint8]:
    """SUSPICION_* of each codepoint, uint8[0x110000], for replacing matches: those that a match begins with."""
    begins = automaton.transitions[automaton.start : automaton.start + automaton.end_class] > 1
    kinds = np.zeros(256, dtype=np.uint8)
    kinds[: len(begins)] = begins * tables.SUSPICION_CHANGES
    pages = automaton.classes.class_of.reshape(-1, 128)
    return kinds[pages[automaton.classes.page_of]].ravel()


def suspicion_tables(codepoints: NDArray[np.uint8], numbers: NDArray[np.int64]) -> SuspicionTables:
    """Fold one SUSPICION_* for each codepoint into tables."""
    page_of, class_of = fold_pages(codepoints)
    numbers = numbers.copy()
    numbers[tables.SUSPICION_ASCII] = bool(codepoints[:128].any())
    return SuspicionTables(page_of, class_of, read_only(numbers))


@cache
def no_suspicion() -> SuspicionTables:
    """Tables by which every text that is not empty may change."""
    numbers = np.zeros(tables.SUSPICION_NUMBERS, np.int64)
    numbers[tables.SUSPICION_ALWAYS] = 1
    numbers[[tables.SUSPICION_PREFIX, tables.SUSPICION_PREFIX_2]] = -1
    return SuspicionTables(
        read_only(np.zeros(_N_CODEPOINTS >> 7, np.uint16)), read_only(np.zeros(128, np.uint8)), read_only(numbers)
    )


def failure_links(pattern: list[int]) -> NDArray[np.int32]:
    """For each prefix of `pattern` the length of its longest proper prefix that is also its suffix."""
    failure = [0] * len(pattern)
    length = 0
    for i in range(1, len(pattern)):
        while length and pattern[i] != pattern[length]:
            length = failure[length - 1]
        if pattern[i] == pattern[length]:
            length += 1
        failure[i] = length
    return read_only(np.array(failure, dtype=np.int32))


def codepoint_array(text: str) -> NDArray[np.uint32]:
    """The codepoints of a string, read-only."""
    return read_only(np.array([ord(character) for character in text], dtype=np.uint32))

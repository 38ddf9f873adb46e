"""Rewrite text by a chain of normalizers, keeping track of where every character comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok import spec, tables
from jittok.build import normalizer_tables as build
from jittok.errors import UnsupportedError
from jittok.tables import read_only
from jittok.vocabulary import byte_alphabet

if TYPE_CHECKING:
    from jittok.kernels.charsmap import NormalizedText
    from jittok.kernels.normalize import AlignedText
    from jittok.local_rewriting import LocalRewriter
    from jittok.tables import SubstitutionTables, SuspicionTables

#: What a rewriter can be built from: normalizers, and the pre-tokenizers that rewrite before they cut.
RewritingStep = (
    spec.UnicodeForm
    | spec.Lowercase
    | spec.Replace
    | spec.Prepend
    | spec.Strip
    | spec.StripAccents
    | spec.BertNormalizer
    | spec.MapBytes
    | spec.Nmt
    | spec.Precompiled
    | spec.SentencePieceNormalizer
    | spec.LlamaCppCleanUp
    | spec.ByteLevel
    | spec.Metaspace
)


@dataclass(frozen=True, slots=True)
class _StripNonspacing:
    """The marks that BertNormalizer leaves out, a step of its own."""


#: Kernels that work on UTF-8 instead of codepoints.
_ON_BYTES = ("clean_up", "apply_charsmap")
#: Texts of so many bytes are worth the tables of a :class:`~jittok.local_rewriting.LocalRewriter`.
LOCAL_BYTES = 1 << 15
#: Zero bytes after rewritten text, so that kernels may load whole words at its end.
PADDING = 64


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Rewritten segments, one after another.

    Attributes
    ----------
    data
        uint8, UTF-8, with 64 zero bytes at the end.
    starts, ends
        int64[n], byte ranges of `data`.
    codepoint_indptr
        int64[n + 1], segment `i` has the codepoints ``codepoint_indptr[i]`` to ``codepoint_indptr[i + 1]``.
    source_start, source_end
        int32 for each codepoint: the codepoints of the segment as it was given (counted from its beginning)
        that it comes from. Both never decrease within a segment. Empty where alignment was not asked for, or
        `stays`.
    stays
        True where nothing moved: each codepoint became one with as many bytes. Only where `may_stay` was given.
    joined
        bool[n], where alignment was asked for: whether a segment begins with what a Replace step put in for several
        codepoints. In tokenizers that comes from the last of these alone, and so not from the beginning of the text.
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    codepoint_indptr: NDArray[np.int64]
    source_start: NDArray[np.int32]
    source_end: NDArray[np.int32]
    stays: bool = False
    joined: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class _Operation:
    """One kernel with its tables: ``kernel(*tables, [at_start,] text, out, [scratch])``.

    The kernels ``clean_up`` and ``apply_charsmap`` work on UTF-8 instead of codepoints; the first of them leaves some
    texts to other `steps`.
    """

    name: str
    tables: tuple[Any, ...]
    at_start_only: bool = False
    steps: tuple[RewritingStep | _StripNonspacing, ...] = ()
    pattern: str = ""  # of replace_matches


@dataclass(frozen=True, slots=True)
class _Segments:
    """Segments of UTF-8 between operations. Sources as in :class:`AlignedText`; None: of the text as given."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    indptr: NDArray[np.int64] | None = None
    source_start: NDArray[np.int32] | None = None
    source_end: NDArray[np.int32] | None = None
    stays: bool = False
    joined: NDArray[np.bool_] | None = None  # as in Rewritten


class Rewriter:
    """A chain of rewriting steps; immutable. Made by :func:`build_rewriter`."""

    __slots__ = ("_forms", "_keeps_ascii", "_local", "_operations", "_suspicion", "compact", "steps")

    steps: tuple[RewritingStep | _StripNonspacing, ...]

    def __init__(
        self,
        steps: tuple[RewritingStep | _StripNonspacing, ...],
        operations: tuple[_Operation, ...],
        suspicion: SuspicionTables,
        forms: SubstitutionTables,
        compact: bool = False,
    ):
        self.steps = steps
        self.compact = compact
        self._operations = operations
        self._suspicion = suspicion
        self._forms = forms
        #: Made for the first long text: only speed follows from it.
        self._local: LocalRewriter | None = None
        # True where no text that is ASCII changes.
        unless = [tables.SUSPICION_ALWAYS, tables.SUSPICION_ASCII]
        unless += [tables.SUSPICION_STRIP_LEFT, tables.SUSPICION_STRIP_RIGHT]
        prefixes = suspicion.numbers[[tables.SUSPICION_PREFIX, tables.SUSPICION_PREFIX_2]]
        self._keeps_ascii = not suspicion.numbers[unless].any() and bool((prefixes < 0).all())

    def __reduce__(self) -> tuple[Callable[..., Rewriter], tuple[Any, ...]]:
        return _rebuilt, (self.steps, self.compact)

    def __bool__(self) -> bool:
        """False where no step does anything."""
        return bool(self._operations)

    @property
    def always(self) -> bool:
        """Whether to run it on every text: to do it takes hardly longer than to see that there is nothing to do."""
        return len(self._operations) == 1 and self._operations[0].name in _ON_BYTES

    def changes(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Say which segments may change; the others are certain to stay as they are.

        Parameters
        ----------
        data, starts, ends
            Segments as byte ranges of valid UTF-8.

        Returns
        -------
        bool[n]
            True also for some that do not change.
        """
        out = np.zeros(len(starts), dtype=np.bool_)
        if self.always:
            np.less(starts, ends, out=out)
        elif self._operations and len(starts):
            if self._keeps_ascii and int(data[int(starts.min()) : int(ends.max())].max(initial=0)) < 0x80:
                return out  # without the kernel, which for plain English need not even be compiled
            from jittok.kernels.normalize import may_change

            data, starts, ends = read_only(data), read_only(starts), read_only(ends)
            may_change(self._suspicion, self._forms, data, starts, ends, 0, len(starts), out)
        return out

    def keeps_first(self, data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> bool:
        """Whether it is certain that every segment still begins with what its first codepoint became.

        Parameters
        ----------
        data, starts, ends
            Segments as byte ranges of valid UTF-8.
        """
        numbers = self._suspicion.numbers
        prefixes = numbers[[tables.SUSPICION_PREFIX, tables.SUSPICION_PREFIX_2]]
        unsure = numbers[[tables.SUSPICION_ALWAYS, tables.SUSPICION_STRIP_LEFT]]
        if unsure.any() or (prefixes >= 0).any():
            return False
        starts = starts[starts < ends]
        if not len(starts):
            return True
        # The first codepoints, of which a mask has the bits of the first byte.
        lead, *tail = (data[np.minimum(starts + k, len(data) - 1)].astype(np.int64) for k in range(4))
        size = 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)
        codepoints = lead & np.array([0, 0x7F, 0x1F, 0xF, 7])[size]
        for k, byte in enumerate(tail, 1):
            codepoints = np.where(k < size, codepoints << 6 | byte & 0x3F, codepoints)
        pages = self._suspicion.page_of[codepoints >> 7].astype(np.int64)
        kinds = self._suspicion.class_of[pages << 7 | codepoints & 127]
        return not (kinds != tables.SUSPICION_NONE).any()

    def apply(
        self,
        data: NDArray[np.uint8],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        *,
        alignment: bool = True,
        at_start: NDArray[np.bool_] | None = None,
        may_stay: bool = False,
    ) -> Rewritten:
        """Rewrite segments.

        Parameters
        ----------
        data, starts, ends
            Segments as byte ranges of valid UTF-8.
        alignment
            Whether to say where each codepoint comes from.
        at_start
            bool[n], which segments begin where their original text begins: only these get the prefix of a
            Metaspace step with ``prepend_scheme="first"``. None: all.
        may_stay
            Whether the caller looks at :attr:`Rewritten.stays`, so that alignment need not be made for text that
            stays where it is. Only BERT's clean-up notices that.

        Returns
        -------
        Rewritten
            Linear time and memory in the text; about 5 bytes, with alignment 13, for each codepoint and step.
        """
        if not alignment and self._operations:
            local = self._local
            if local is None and int((ends - starts).sum()) >= LOCAL_BYTES:
                from jittok.local_rewriting import build_local_rewriter

                self._local = local = build_local_rewriter(self._operations, self._suspicion)
            if local is not None and local.groups:
                return local.apply(data, starts, ends)
        segments = applied(self._operations, data, starts, ends, alignment, at_start, may_stay)
        assert segments.indptr is not None
        nothing = np.zeros(0, dtype=np.int32)
        return Rewritten(
            data=segments.data,
            starts=segments.starts,
            ends=segments.ends,
            codepoint_indptr=segments.indptr,
            source_start=nothing if segments.source_start is None else segments.source_start,
            source_end=nothing if segments.source_end is None else segments.source_end,
            stays=segments.stays,
            joined=segments.joined,
        )

    @property
    def gives_runs(self) -> bool:
        """Whether there is :meth:`apply_in_runs`."""
        return len(self._operations) == 1 and self._operations[0].name == "apply_charsmap"

    @property
    def keeps_blanks(self) -> bool:
        """Whether U+0020 in the result is itself and does not stand for U+2581: SentencePiece without escaped blanks."""
        numbers = [op.tables[0].numbers for op in self._operations if op.name == "apply_charsmap"]
        return any(n[tables.CHARSMAP_BLANK] == 1 and not n[tables.CHARSMAP_COMPACT] for n in numbers)

    def behind_blanks(self) -> NDArray[np.uint16] | None:
        """What SentencePiece's rules put behind a blank.

        Returns
        -------
        uint16[n], or None
            The first two bytes of each such character, its first byte the higher one. None: this is not its normalizer.
        """
        strings = [op.tables[0].strings.tobytes() for op in self._operations if op.name == "apply_charsmap"]
        if not strings:
            return None
        heads: set[int] = set()
        # One string may be the end of another, so blanks inside count too.
        for string in b"\0".join(strings).split(b"\0"):
            following = zip(string, string[1:], string[2:], strict=False)
            heads.update((one << 8) | other for blank, one, other in following if blank == ord(" "))
        return np.array(sorted(heads), np.uint16)

    def apply_in_runs(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64], alignment: bool
    ) -> NormalizedText:
        """As :meth:`apply`, where the only step is SentencePiece's, with an alignment that costs next to nothing.

        Parameters
        ----------
        data, starts, ends
            Segments as byte ranges of valid UTF-8.
        alignment
            Whether runs are wanted.
        """
        return _normalized(self._operations[0], _Segments(data, starts, ends), alignment)

    def apply_strings(self, texts: Sequence[str]) -> list[str]:
        """Rewrite strings: for the contents of added tokens, and to look at.

        Lone surrogates are kept as they are, but by SentencePiece's normalizer: that makes U+FFFD of each byte.
        """
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        data = np.frombuffer(b"".join(encoded) + bytes(PADDING), dtype=np.uint8)
        bounds = np.zeros(len(encoded) + 1, dtype=np.int64)
        bounds[1:] = np.cumsum([len(text) for text in encoded])
        done = self.apply(data, bounds[:-1].copy(), bounds[1:].copy(), alignment=False)
        content = done.data.tobytes()
        ranges = zip(done.starts.tolist(), done.ends.tolist(), strict=True)
        rewritten = [content[start:end].decode("utf-8", "surrogatepass") for start, end in ranges]
        return [text.replace(" ", "\u2581") for text in rewritten] if self.compact else rewritten

    def apply_aligned(self, text: bytes) -> tuple[str, NDArray[np.int64]]:
        """Rewrite one text, and say where each codepoint of the result comes from.

        Parameters
        ----------
        text
            UTF-8; only SentencePiece's normalizer takes what is not.

        Returns
        -------
        rewritten : str
            As :meth:`apply_strings` gives it.
        spans : int64[n, 2]
            Codepoints of `text` for each codepoint of the result.
        """
        data = np.frombuffer(text + bytes(PADDING), dtype=np.uint8)
        done = self.apply(data, np.array([0]), np.array([len(text)]))
        result = done.data[int(done.starts[0]) : int(done.ends[0])].tobytes().decode()
        spans = np.stack([done.source_start, done.source_end], axis=1).astype(np.int64)
        return result.replace(" ", "\u2581") if self.compact else result, spans


def _rebuilt(steps: tuple[RewritingStep | _StripNonspacing, ...], compact: bool) -> Rewriter:
    """For unpickling."""
    return build_rewriter(steps, compact=compact)


def applied(
    operations: Sequence[_Operation],
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    alignment: bool,
    at_start: NDArray[np.bool_] | None = None,
    may_stay: bool = False,
) -> _Segments:
    """Run operations on segments; see :meth:`Rewriter.apply`."""
    segments = _Segments(data, starts, ends)
    remaining = list(reversed(operations))
    text: AlignedText | None = None
    joined = None
    while remaining:
        operation = remaining.pop()
        if operation.name not in _ON_BYTES:
            if text is None:
                text = _decoded(segments, alignment)
            before, text = text, _run(operation, text, alignment, at_start)
            if alignment:
                joined = _joined(operation, before, text, joined)
            continue
        if text is not None:
            segments, text = _encoded(text), None
        if operation.name == "apply_charsmap":
            segments = _charsmap_applied(operation, segments, alignment)
            continue
        # Where nothing moves in this step alone, something may have moved in another.
        is_only = text is None and segments.data is data and not remaining
        done = _cleaned_up(operation, segments, alignment, may_stay and is_only)
        if done is None:
            remaining += reversed(build_rewriter(operation.steps)._operations)
        else:
            segments = done
    if text is None and segments.indptr is None:  # there was no operation
        text = _decoded(segments, alignment)
    if text is not None:
        segments = _encoded(text)
    return segments if joined is None else replace(segments, joined=joined)


def _joined(
    operation: _Operation, before: AlignedText, after: AlignedText, joined: NDArray[np.bool_] | None
) -> NDArray[np.bool_] | None:
    """What :attr:`Rewritten.joined` is after an operation, and was before it; None: no segment is."""
    is_replace = operation.name in ("replace_literal", "replace_matches")
    if joined is None and not is_replace:
        return None
    first, then = before.indptr[:-1], after.indptr[:-1]
    is_there = (first < before.indptr[1:]) & (then < after.indptr[1:])
    result = np.zeros(len(first), np.bool_) if joined is None else joined & is_there
    first, then = first[is_there], then[is_there]
    if is_replace:
        old_end, new_end = before.source_end[first], after.source_end[then]
        is_beginning = after.source_start[then] == 0
        result[is_there] = is_beginning & ((new_end > old_end) | ((new_end == old_end) & result[is_there]))
    return result if result.any() else None


def _run(
    operation: _Operation, text: AlignedText, alignment: bool, at_start: NDArray[np.bool_] | None
) -> AlignedText:
    """Run one operation on codepoints."""
    from jittok.kernels import charsmap, normalize

    n_segments = len(text.indptr) - 1
    n_codepoints = int(text.indptr[-1])
    kernel: Any = getattr(charsmap if operation.name == "apply_precompiled" else normalize, operation.name)
    capacity = n_codepoints + (n_codepoints >> 3) + 8 * n_segments + 64
    while True:
        out = _new_text(capacity, n_segments, alignment)
        if operation.name == "substitute":
            scratch = np.empty(capacity, dtype=np.uint32)
            status = int(kernel(*operation.tables, text, out, scratch))
        elif operation.name == "edit_ends":
            where = np.ones(n_segments, dtype=np.bool_)
            if operation.at_start_only and at_start is not None:
                where = np.ascontiguousarray(at_start)
            status = int(kernel(*operation.tables, where, text, out))
        else:
            status = int(kernel(*operation.tables, text, out))
        if status >= 0:
            return out
        capacity = -status


def _decoded(segments: _Segments, alignment: bool) -> AlignedText:
    """Segments as codepoints."""
    from jittok.kernels.normalize import decode_segments

    n_bytes = int((segments.ends - segments.starts).sum())
    text = _new_text(n_bytes, len(segments.starts), alignment)
    decode_segments(read_only(segments.data), read_only(segments.starts), read_only(segments.ends), text)
    if segments.source_start is not None and segments.source_end is not None and alignment:
        n = len(segments.source_start)
        text.source_start[:n] = segments.source_start
        text.source_end[:n] = segments.source_end
    return text


def _encoded(text: AlignedText) -> _Segments:
    """Segments of codepoints as UTF-8."""
    from jittok.kernels.normalize import encode_text

    n_segments, n_codepoints = len(text.indptr) - 1, int(text.indptr[-1])
    encoded = np.empty(4 * n_codepoints + PADDING, dtype=np.uint8)
    starts = np.empty(n_segments, dtype=np.int64)
    ends = np.empty(n_segments, dtype=np.int64)
    size = int(encode_text(text, encoded, starts, ends))
    encoded[size : size + PADDING] = 0
    return _Segments(
        encoded[: size + PADDING],
        starts,
        ends,
        text.indptr,
        text.source_start[:n_codepoints],
        text.source_end[:n_codepoints],
    )


def _cleaned_up(operation: _Operation, segments: _Segments, alignment: bool, may_stay: bool) -> _Segments | None:
    """Run BERT's clean-up, without alignment at first if that may turn out not to be needed; None: step by step."""
    from jittok.kernels.normalize import OUT_OF_ORDER, CleanText, clean_up

    n_segments = len(segments.starts)
    room = 3 * int((segments.ends - segments.starts).sum()) + PADDING
    given_start, given_end = segments.source_start, segments.source_end
    is_given = alignment and given_start is not None and given_end is not None
    nothing = np.zeros(0, dtype=np.int32)
    for aligned in (False, True) if alignment and may_stay and not is_given else (alignment,):
        out = CleanText(
            data=np.empty(room, dtype=np.uint8),
            starts=np.empty(n_segments, dtype=np.int64),
            ends=np.empty(n_segments, dtype=np.int64),
            indptr=np.empty(n_segments + 1, dtype=np.int64),
            source_start=np.empty(room if aligned else 0, dtype=np.int32),
            source_end=np.empty(room if aligned else 0, dtype=np.int32),
            state=np.zeros(1, dtype=np.int64),
        )
        size = int(
            clean_up(
                operation.tables[0],
                read_only(segments.data),
                read_only(segments.starts),
                read_only(segments.ends),
                read_only(given_start if is_given and given_start is not None else nothing),
                read_only(given_end if is_given and given_end is not None else nothing),
                out,
            )
        )
        if size == OUT_OF_ORDER:
            return None
        stays = may_stay and not is_given and bool(out.state[0])
        if stays:
            break
    out.data[size : size + PADDING] = 0
    n_codepoints = int(out.indptr[-1])
    return _Segments(
        out.data[: size + PADDING],
        out.starts,
        out.ends,
        out.indptr,
        out.source_start[:n_codepoints],
        out.source_end[:n_codepoints],
        stays,
    )


def _charsmap_applied(operation: _Operation, segments: _Segments, alignment: bool) -> _Segments:
    """Run SentencePiece's normalization."""
    done = _normalized(operation, segments, alignment)
    n_codepoints = int(done.indptr[-1])
    if not alignment:
        return _Segments(done.data, done.starts, done.ends, done.indptr)
    from jittok.kernels.charsmap import write_sources

    source_start, source_end = np.empty(n_codepoints, np.int32), np.empty(n_codepoints, np.int32)
    write_sources(done, source_start, source_end)
    return _Segments(done.data, done.starts, done.ends, done.indptr, source_start, source_end)


def _normalized(operation: _Operation, segments: _Segments, alignment: bool) -> NormalizedText:
    """Text normalized as SentencePiece does it, with runs if alignment is wanted."""
    from jittok.kernels.charsmap import ROOM, NormalizedText, apply_charsmap

    n_segments = len(segments.starts)
    room = 2 * int((segments.ends - segments.starts).sum()) + 8 * n_segments + 4 * ROOM + PADDING
    while True:
        out = NormalizedText(
            data=np.empty(room, dtype=np.uint8),
            starts=np.empty(n_segments, dtype=np.int64),
            ends=np.empty(n_segments, dtype=np.int64),
            indptr=np.empty(n_segments + 1, dtype=np.int64),
            run_indptr=np.empty(n_segments + 1, dtype=np.int64),
            run_at=np.empty(room + n_segments if alignment else 0, dtype=np.int32),
            run_source=np.empty(room + n_segments if alignment else 0, dtype=np.int32),
        )
        arguments = read_only(segments.data), read_only(segments.starts), read_only(segments.ends)
        size = int(apply_charsmap(operation.tables[0], *arguments, out))
        if size >= 0:
            break
        room = -size
    out.data[size : size + PADDING] = 0
    return out._replace(data=out.data[: size + PADDING])


def _new_text(capacity: int, n_segments: int, alignment: bool) -> AlignedText:
    """Arrays for text of at most `capacity` codepoints; never of length 0, which means no alignment."""
    from jittok.kernels.normalize import AlignedText

    room = max(capacity, 1) if alignment else 0
    return AlignedText(
        codepoints=np.empty(max(capacity, 1), dtype=np.uint32),
        indptr=np.zeros(n_segments + 1, dtype=np.int64),
        source_start=np.empty(room, dtype=np.int32),
        source_end=np.empty(room, dtype=np.int32),
    )


def _clean_up_operation(step: spec.BertNormalizer) -> _Operation:
    """BERT's clean-up in one, with the steps that do the same one by one."""
    strips, lowers = step.strips_accents, step.lowercase
    cleaner = build.clean_up_tables(step.clean_text, step.handle_chinese_chars, strips, lowers)
    if not strips:  # then it never leaves a text to other steps
        return _Operation("clean_up", (cleaner,))
    apart: tuple[RewritingStep | _StripNonspacing, ...] = (
        spec.BertNormalizer(step.clean_text, step.handle_chinese_chars, strip_accents=False, lowercase=False),
        spec.UnicodeForm("NFD"),
        _StripNonspacing(),
    )
    return _Operation("clean_up", (cleaner,), steps=(*apart, spec.Lowercase()) if lowers else apart)


def build_rewriter(steps: Sequence[RewritingStep | _StripNonspacing], *, compact: bool = False) -> Rewriter:
    """Build the rewriter of a chain of steps.

    Parameters
    ----------
    steps
        Normalizers; also ByteLevel, of which only `add_prefix_space` rewrites, and Metaspace, which replaces
        blanks and puts one in front of texts that do not begin with one.
    compact
        For SentencePiece's normalizer, if that escapes white space: write U+0020 for every U+2581, and no other
        U+0020. :meth:`Rewriter.apply_strings` gives U+2581 all the same.

    Returns
    -------
    Rewriter

    Raises
    ------
    UnsupportedError
        For a step that is none of these, and for a regular expression that cannot be compiled.
    RegexError
        For a pattern that is not a regular expression.

    Notes
    -----
    Rewriters are kept: the same chains come again and again.
    """
    return _built_rewriter(tuple(steps), compact)


@lru_cache(maxsize=32)
def _built_rewriter(steps: tuple[RewritingStep | _StripNonspacing, ...], compact: bool) -> Rewriter:
    operations: list[_Operation] = []
    suspicion = np.zeros(0x110000, dtype=np.uint8)
    numbers = np.zeros(tables.SUSPICION_NUMBERS, dtype=np.int64)
    numbers[tables.SUSPICION_PREFIX] = numbers[tables.SUSPICION_PREFIX_2] = -1
    forms: str | None = None
    nothing = build.codepoint_array("")

    def suspect_prefix(codepoint: int) -> None:
        place = tables.SUSPICION_PREFIX
        if numbers[place] not in (-1, codepoint):
            place = tables.SUSPICION_PREFIX_2
        if numbers[place] not in (-1, codepoint):
            numbers[tables.SUSPICION_ALWAYS] = 1
        numbers[place] = codepoint

    def replace(pattern: str, content: str) -> None:
        codepoints = [ord(character) for character in pattern]
        failure = build.failure_links(codepoints)
        operations.append(
            _Operation(
                "replace_literal", (build.codepoint_array(pattern), failure, build.codepoint_array(content))
            )
        )
        if pattern == content:
            return
        if codepoints:
            suspicion[codepoints[0]] = tables.SUSPICION_CHANGES
        else:
            numbers[tables.SUSPICION_ALWAYS] = 1

    for step in steps:
        if isinstance(step, spec.SentencePieceNormalizer):
            if len(steps) > 1:
                raise UnsupportedError("SentencePiece's normalizer cannot be combined with other steps")
            from jittok.build.charsmap import charsmap_tables

            operation = _Operation("apply_charsmap", (charsmap_tables(step, compact),))
            return Rewriter(steps, (operation,), build.no_suspicion(), build.lowercase_tables(), compact)
        if isinstance(step, spec.LlamaCppCleanUp):
            if len(steps) > 1:
                raise UnsupportedError("llama.cpp's clean-up cannot be combined with other steps")
            from jittok.build.charsmap import clean_up_rules

            operation = _Operation("apply_charsmap", (clean_up_rules(step),))
            return Rewriter(steps, (operation,), build.no_suspicion(), build.lowercase_tables())
        if isinstance(step, spec.UnicodeForm):
            operations.append(_Operation("substitute", (build.unicode_form_tables(step.form),)))
            new = build.unicode_form_suspicion(step.form)
            if forms not in (None, step.form):  # only one form can be looked at in context
                new = np.where(new == tables.SUSPICION_CONTEXT, tables.SUSPICION_CHANGES, new)
            forms = forms or step.form
            suspicion = _combine(suspicion, new)
        elif isinstance(step, spec.Lowercase):
            operations.append(_Operation("substitute", (build.lowercase_tables(),)))
            suspicion = _combine(suspicion, build.lowercase_suspicion())
        elif isinstance(step, spec.Replace) and step.is_regex:
            from jittok.build.regex_automaton import compile_split, matches_empty

            automaton = compile_split(step.pattern)
            operations.append(
                _Operation(
                    "replace_matches", (automaton, build.codepoint_array(step.content)), pattern=step.pattern
                )
            )
            suspicion = _combine(suspicion, build.match_suspicion(automaton))
            if matches_empty(automaton):
                numbers[tables.SUSPICION_ALWAYS] = 1
        elif isinstance(step, spec.Replace):
            replace(step.pattern, step.content)
        elif isinstance(step, spec.Prepend):
            if step.content:
                operations.append(_Operation("edit_ends", (0, 0, build.codepoint_array(step.content), -1)))
                numbers[tables.SUSPICION_ALWAYS] = 1
        elif isinstance(step, spec.Strip):
            if step.left or step.right:
                operations.append(_Operation("edit_ends", (int(step.left), int(step.right), nothing, -1)))
                numbers[tables.SUSPICION_STRIP_LEFT] |= step.left
                numbers[tables.SUSPICION_STRIP_RIGHT] |= step.right
        elif isinstance(step, spec.StripAccents):
            operations.append(_Operation("substitute", (build.removal_tables("marks"),)))
            suspicion = _combine(suspicion, build.removal_suspicion())
        elif isinstance(step, spec.BertNormalizer):
            cleaner = _clean_up_operation(step)
            operations.append(cleaner)
            if len(steps) == 1:  # then it is not asked
                return Rewriter(steps, (cleaner,), build.no_suspicion(), build.lowercase_tables())
            suspicion = _combine(suspicion, build.clean_up_suspicion(cleaner.tables[0]))
        elif isinstance(step, spec.MapBytes):
            operations.append(_Operation("map_bytes", (read_only(byte_alphabet()),)))
            suspicion = _combine(suspicion, build.byte_suspicion())
        elif isinstance(step, spec.Nmt):
            operations.append(_Operation("substitute", (build.nmt_tables(),)))
            suspicion = _combine(suspicion, build.nmt_suspicion())
        elif isinstance(step, spec.Precompiled):
            from jittok.build.charsmap import precompiled_suspicion, precompiled_tables

            operations.append(_Operation("apply_precompiled", (precompiled_tables(step.charsmap),)))
            suspicion = _combine(suspicion, precompiled_suspicion(step.charsmap))
        elif isinstance(step, _StripNonspacing):
            operations.append(_Operation("substitute", (build.removal_tables("nonspacing_marks"),)))
        elif isinstance(step, spec.ByteLevel):
            if step.add_prefix_space:
                operations.append(_Operation("edit_ends", (0, 0, build.codepoint_array(" "), ord(" "))))
                suspect_prefix(ord(" "))
        elif isinstance(step, spec.Metaspace):
            replace(" ", step.replacement)
            if step.prepend_scheme != "never":
                prefix = build.codepoint_array(step.replacement)
                only = step.prepend_scheme == "first"
                operations.append(_Operation("edit_ends", (0, 0, prefix, int(prefix[0])), at_start_only=only))
                suspect_prefix(int(prefix[0]))
        else:
            raise UnsupportedError(
                f"the rewriting step {step!r} is not known; expected one of UnicodeForm, Lowercase, Replace, "
                "Prepend, Strip, StripAccents, BertNormalizer, MapBytes, Nmt, Precompiled, SentencePieceNormalizer, "
                "ByteLevel, Metaspace"
            )
    return Rewriter(
        steps,
        tuple(operations),
        build.suspicion_tables(suspicion, numbers),
        build.unicode_form_tables(forms) if forms else build.lowercase_tables(),
    )


def _combine(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The graver suspicion of each codepoint."""
    changes = (one == tables.SUSPICION_CHANGES) | (other == tables.SUSPICION_CHANGES)
    context = np.maximum(one, other)
    return np.where(changes, np.uint8(tables.SUSPICION_CHANGES), context)

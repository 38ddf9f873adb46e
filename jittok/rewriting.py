"""Rewrite text by a chain of normalizers, keeping track of where every character comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok import spec, tables
from jittok.build import normalizer_tables as build
from jittok.errors import UnsupportedError
from jittok.tables import read_only

if TYPE_CHECKING:
    from jittok.kernels.normalize import AlignedText
    from jittok.tables import SubstitutionTables, SuspicionTables

#: What a rewriter can be built from: normalizers, and the pre-tokenizers that rewrite before they cut.
RewritingStep = (
    spec.UnicodeForm | spec.Lowercase | spec.Replace | spec.Prepend | spec.Strip | spec.ByteLevel | spec.Metaspace
)

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
        that it comes from. Both never decrease within a segment. Empty where alignment was not asked for.
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    codepoint_indptr: NDArray[np.int64]
    source_start: NDArray[np.int32]
    source_end: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class _Operation:
    """One kernel with its tables: ``kernel(*tables, [at_start,] text, out, [scratch])``."""

    name: str
    tables: tuple[Any, ...]
    at_start_only: bool = False


class Rewriter:
    """A chain of rewriting steps; immutable. Made by :func:`build_rewriter`."""

    __slots__ = ("_forms", "_keeps_ascii", "_operations", "_suspicion", "steps")

    steps: tuple[RewritingStep, ...]

    def __init__(
        self,
        steps: tuple[RewritingStep, ...],
        operations: tuple[_Operation, ...],
        suspicion: SuspicionTables,
        forms: SubstitutionTables,
    ):
        self.steps = steps
        self._operations = operations
        self._suspicion = suspicion
        self._forms = forms
        # True where no text that is ASCII changes.
        unless = [tables.SUSPICION_ALWAYS, tables.SUSPICION_ASCII]
        unless += [tables.SUSPICION_STRIP_LEFT, tables.SUSPICION_STRIP_RIGHT]
        prefixes = suspicion.numbers[[tables.SUSPICION_PREFIX, tables.SUSPICION_PREFIX_2]]
        self._keeps_ascii = not suspicion.numbers[unless].any() and bool((prefixes < 0).all())

    def __reduce__(self) -> tuple[Callable[..., Rewriter], tuple[Any, ...]]:
        return build_rewriter, (self.steps,)

    def __bool__(self) -> bool:
        """False where no step does anything."""
        return bool(self._operations)

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
        if self._operations and len(starts):
            if self._keeps_ascii and int(data[int(starts.min()) : int(ends.max())].max(initial=0)) < 0x80:
                return out  # without the kernel, which for plain English need not even be compiled
            from jittok.kernels.normalize import may_change

            data, starts, ends = read_only(data), read_only(starts), read_only(ends)
            may_change(self._suspicion, self._forms, data, starts, ends, 0, len(starts), out)
        return out

    def apply(
        self,
        data: NDArray[np.uint8],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        *,
        alignment: bool = True,
        at_start: NDArray[np.bool_] | None = None,
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

        Returns
        -------
        Rewritten
            Linear time and memory in the text; about 5 bytes, with alignment 13, for each codepoint and step.
        """
        from jittok.kernels import normalize as kernels

        n_segments = len(starts)
        n_bytes = int((ends - starts).sum())
        everywhere = np.ones(n_segments, dtype=np.bool_)
        at_start = everywhere if at_start is None else np.ascontiguousarray(at_start)
        text = _new_text(n_bytes, n_segments, alignment)
        n_codepoints = int(kernels.decode_segments(read_only(data), read_only(starts), read_only(ends), text))
        for operation in self._operations:
            kernel: Any = getattr(kernels, operation.name)
            capacity = n_codepoints + (n_codepoints >> 3) + 8 * n_segments + 64
            while True:
                out = _new_text(capacity, n_segments, alignment)
                if operation.name == "substitute":
                    scratch = np.empty(capacity, dtype=np.uint32)
                    status = int(kernel(*operation.tables, text, out, scratch))
                elif operation.name == "edit_ends":
                    where = at_start if operation.at_start_only else everywhere
                    status = int(kernel(*operation.tables, where, text, out))
                else:
                    status = int(kernel(*operation.tables, text, out))
                if status >= 0:
                    break
                capacity = -status
            text, n_codepoints = out, status
        encoded = np.empty(4 * n_codepoints + PADDING, dtype=np.uint8)
        new_starts = np.empty(n_segments, dtype=np.int64)
        new_ends = np.empty(n_segments, dtype=np.int64)
        size = int(kernels.encode_text(text, encoded, new_starts, new_ends))
        encoded[size : size + PADDING] = 0
        return Rewritten(
            data=encoded[: size + PADDING],
            starts=new_starts,
            ends=new_ends,
            codepoint_indptr=text.indptr,
            source_start=text.source_start[:n_codepoints],
            source_end=text.source_end[:n_codepoints],
        )

    def apply_strings(self, texts: Sequence[str]) -> list[str]:
        """Rewrite strings: for the contents of added tokens, and to look at.

        Lone surrogates are kept as they are.
        """
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        data = np.frombuffer(b"".join(encoded) + bytes(PADDING), dtype=np.uint8)
        bounds = np.zeros(len(encoded) + 1, dtype=np.int64)
        bounds[1:] = np.cumsum([len(text) for text in encoded])
        done = self.apply(data, bounds[:-1].copy(), bounds[1:].copy(), alignment=False)
        content = done.data.tobytes()
        ranges = zip(done.starts.tolist(), done.ends.tolist(), strict=True)
        return [content[start:end].decode("utf-8", "surrogatepass") for start, end in ranges]


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


def build_rewriter(steps: Sequence[RewritingStep]) -> Rewriter:
    """Build the rewriter of a chain of steps.

    Parameters
    ----------
    steps
        Normalizers; also ByteLevel, of which only `add_prefix_space` rewrites, and Metaspace, which replaces
        blanks and puts one in front of texts that do not begin with one.

    Returns
    -------
    Rewriter

    Raises
    ------
    UnsupportedError
        For a step that is none of these, and for a regular expression that cannot be compiled.
    RegexError
        For a pattern that is not a regular expression.
    """
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
            operations.append(_Operation("replace_matches", (automaton, build.codepoint_array(step.content))))
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
                "Prepend, Strip, ByteLevel, Metaspace"
            )
    return Rewriter(
        tuple(steps),
        tuple(operations),
        build.suspicion_tables(suspicion, numbers),
        build.unicode_form_tables(forms) if forms else build.lowercase_tables(),
    )


def _combine(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The graver suspicion of each codepoint."""
    changes = (one == tables.SUSPICION_CHANGES) | (other == tables.SUSPICION_CHANGES)
    context = np.maximum(one, other)
    return np.where(changes, np.uint8(tables.SUSPICION_CHANGES), context)

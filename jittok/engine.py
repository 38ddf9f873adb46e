"""Text to ids: runs a :class:`~jittok.build.plan.Plan` over chunks of documents on a thread pool.

A *part* is a stretch of one document that takes the steps on its own: text, or an added token. Parts stay in the
order of the documents, so the ids of a chunk come out in order, and a document's are found by counting.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import is_ready, mask_code
from jittok.build.plan import MARK, AddedTokenStage, MarkStage, Plan, SplitStage, WordSplit
from jittok.encodings import EncodedTexts
from jittok.errors import ArgumentError, ArgumentTypeError, FormatError, SpecialTokenError, TextError, UnsupportedError
from jittok.memory import Buffers, Idle, large_copy
from jittok.outputs import Output, Outputs
from jittok.post_processing import Framing
from jittok.ranges import Chunk, Ranges
from jittok.spec import Metaspace
from jittok.tables import (
    EDGE_BYTE,
    MASK_BASE,
    MASK_STRIDE,
    MERGE_BYTE_FALLBACK,
    MERGE_RANKED,
    MERGE_UNKNOWN,
    MISSING_UNKNOWN,
    N_MASKS,
    PIECE_MARK,
    RULE_SENTENCEPIECE,
    TOKEN_NORMALIZED,
    TOKEN_SPECIAL,
    TOKEN_STRIP_LEFT,
    TOKEN_STRIP_RIGHT,
    UNIGRAM_BYTE_FALLBACK,
    UNIGRAM_MISSING,
    UNIGRAM_RULE,
    UNIGRAM_UNKNOWN,
    WORDPIECE_MISSING,
    WORDPIECE_SKIP_SPACE,
    WORDPIECE_UNKNOWN,
    Blanks,
    MergeTables,
    PieceTables,
    Runs,
    SplitTables,
    UnigramTables,
    WordPieceTables,
    read_only,
)
from jittok.threads import Helpers

if TYPE_CHECKING:
    from jittok.kernels.charsmap import NormalizedText
    from jittok.kernels.unigram_cache import PieceNumbers
    from jittok.rewriting import Rewriter, Rewritten
    from jittok.spec import MarianModel

SpecialPolicy = Literal["parse", "text", "raise"] | Collection[str]

#: Bytes of text in a chunk: enough work for a call, few enough to share out and to interrupt.
CHUNK_BYTES = 1 << 20
#: A worker that has seen less text than this keeps a small cache, which costs nothing to make.
SMALL_TEXT = 1 << 18
#: Text for which it pays to look for machine code of the split's mask program, and to compile it.
LITTLE_TEXT = 1 << 12
MUCH_TEXT = 1 << 20
#: Bits of the number of slots in a worker's cache of pre-tokens: of a small one, and of the largest.
SMALL_CACHE_BITS = 13
LARGEST_CACHE_BITS = 20
#: Bytes after text, so that kernels may load whole words at its end.
PADDING = 64
#: A large cache begins with room for about so many tokens of the vocabulary, or all of a smaller one.
PRELOADED_TOKENS = 1 << 15
#: One of so many bytes of text is looked at to guess how many words there will be.
SAMPLE_STEP = 4096
#: Bits of the number of slots for words of a unigram model, 80 bytes each: at most, and what they begin with for much text.
MOST_UNIGRAM_BITS = 20
UNIGRAM_BITS = 18
#: Up to so many bytes of text, lengths of pieces are taken from the text: a table of all takes longer to make.
FEW_LOCATED = 1 << 15
#: Bytes of the longest text that the scratch arrays of a unigram model begin with.
LATTICE_BYTES = 1 << 16
#: Bytes of memory for results that are kept for the next ones, at most.
SPARE_BYTES = 1 << 27
#: More ids than there are that kernels may write, and more than that.
EXTRA_IDS = 64
#: Texts shorter than this are encoded on one thread.
PARALLEL_BYTES = 1 << 19

_NOTHING = np.empty(0, np.int32)
_NO_LENGTHS = read_only(np.zeros(0, np.uint16))

#: The arrays of workers of tokenizers that are gone, a megabyte and a half each: new memory is paid for page by page.
_SPARE: deque[tuple[Any, Any, Any, Any]] = deque(maxlen=2)


class Parts(NamedTuple):
    """Stretches of documents, in order.

    ``token`` is -1 for text, else the id of an added token. Text of a part is ``data[start:end]``; where
    ``codepoints`` is given, it says for each codepoint of `data` where it comes from in its document. ``origins`` tells of
    documents what :class:`~jittok.rewriting.Rewritten` does of segments.
    """

    data: NDArray[np.uint8]
    document: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    token: NDArray[np.int32]
    codepoints: Sources | None
    origins: NDArray[np.int64] | None = None


class Sources(NamedTuple):
    """Where the codepoints of rewritten text come from, in codepoints of their documents."""

    number: NDArray[np.int32]  # [len(data) + 1] number of the codepoint that each byte belongs to
    start: NDArray[np.int32]  # [codepoints]
    end: NDArray[np.int32]  # [codepoints]


class Words(NamedTuple):
    """What a model is given of documents."""

    parts: Parts
    indptr: NDArray[np.int64]  # of the documents as given
    text: NDArray[np.int64]  # [n_words] which parts are words
    start: NDArray[np.int64]  # [n_words] word i is parts.data[start[i] : end[i]]
    end: NDArray[np.int64]


class Enabled(NamedTuple):
    """Which added tokens of each stage are wanted, in the order of its tables."""

    raw: NDArray[np.bool_]
    normalized: NDArray[np.bool_]
    raises: bool  # special tokens are an error
    later: tuple[NDArray[np.bool_], ...] = ()


class Found(NamedTuple):
    """The added tokens of a stage in documents."""

    stage: AddedTokenStage
    rows: NDArray[np.int64]  # as find_added_tokens gives them


class Source(NamedTuple):
    """Documents, of which a range at a time is made into bytes."""

    #: [n + 1] where each document begins, in bytes or about: chunks of equal size are cut by it.
    positions: NDArray[np.int64]
    make: Callable[[int, int], tuple[NDArray[np.uint8], NDArray[np.int64]]]  # UTF-8 of documents [first, last)

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.positions) - 1

    @property
    def size(self) -> int:
        """Bytes in all, or about."""
        return int(self.positions[-1] - self.positions[0])

    @staticmethod
    def of_arrays(data: NDArray[np.uint8], indptr: NDArray[np.int64]) -> Source:
        """Documents that are bytes already: document i is ``data[indptr[i]:indptr[i + 1]]``."""
        return Source(indptr, lambda first, last: (data, indptr[first : last + 1]))


def _find_runs(split: SplitTables) -> Runs:
    from jittok.build.split_runs import find_runs

    return find_runs(split)


def segments_of(
    split: WordSplit, data: NDArray[np.uint8], indptr: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """What the last cut is given of documents: text, and where each segment begins and ends there.

    Parameters
    ----------
    split
        The steps.
    data : uint8[m]
        Valid UTF-8.
    indptr : int64[n + 1]
        Document i is ``data[indptr[i]:indptr[i + 1]]``.

    Returns
    -------
    data, start, end
        Read-only.
    """
    start, end = _frozen(indptr[:-1]), _frozen(indptr[1:])
    normalizer = split.normalizer
    if normalizer is not None and normalizer.always:
        done = normalizer.apply(data, start, end, alignment=False)
        data, start, end = done.data, _frozen(done.starts), _frozen(done.ends)
        normalizer = None
    if normalizer is None and not split.stages:
        return _prefixed(data, start, end) if split.prefixed else (_frozen(data), start, end)
    aligned = _asks_for_start(split.stages)
    if normalizer is None:  # what was rewritten already begins where documents do
        indptr = np.append(start, end[-1:])
    elif len(start):
        data, indptr = data[int(indptr[0]) :], indptr - indptr[0]
    start, end = np.ascontiguousarray(indptr[:-1]), np.ascontiguousarray(indptr[1:])
    parts = Parts(data, np.arange(len(start)), start, end, np.full(len(start), -1, np.int32), None)
    if normalizer is not None:
        parts = _rewrite(parts, normalizer, indptr, aligned)
    for stage in split.stages:
        if isinstance(stage, SplitStage):
            parts = _cut(parts, stage)
        else:
            parts = _rewrite(parts, stage, indptr, aligned)
    start, end = _frozen(parts.start), _frozen(parts.end)
    return _prefixed(parts.data, start, end) if split.prefixed else (_frozen(parts.data), start, end)


def _prefixed(
    data: NDArray[np.uint8],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    unless_marked: bool = True,
    wanted: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Segments with a blank in front of each `wanted` one that is not empty, `unless_marked` by one or by U+2581."""
    from jittok.kernels.pieces import insert_blanks

    new = np.empty(int((end - start).sum()) + len(start) + PADDING, np.uint8)
    new_start, new_end = np.empty(len(start), np.int64), np.empty(len(start), np.int64)
    chosen = _frozen(np.empty(0, np.bool_) if wanted is None else wanted)
    n = insert_blanks(_frozen(data), start, end, int(unless_marked), chosen, new, new_start, new_end)
    new[n:] = 0
    return _frozen(new), _frozen(new_start), _frozen(new_end)


def _asks_for_start(stages: Iterable[SplitStage | Rewriter]) -> bool:
    """Whether a step asks if what it is given begins where the text began, which only alignment can tell."""
    return any(
        isinstance(step, Metaspace) and step.prepend_scheme == "first"
        for stage in stages
        if not isinstance(stage, SplitStage)
        for step in stage.steps
    )


class Worker:
    """The scratch arrays and the word cache of one thread."""

    __slots__ = ("bytes_seen", "cache", "chunk", "lanes", "scratch")

    def __init__(self, n_masks: int, lattice: bool, id_bits: int) -> None:
        from jittok.kernels.merge import new_merge_lanes
        from jittok.kernels.split import new_chunk
        from jittok.kernels.word_cache import NEW_PLACES, NEW_WORDS_ROOM, new_word_cache, new_word_scratch

        try:
            chunk, scratch, lanes, cache = _SPARE.pop()
        except IndexError:
            chunk = scratch = lanes = cache = None
        # What is used again is made as good as new: what kernels read of one tokenizer may be out of bounds in another's.
        if chunk is not None and len(chunk.masks) == MASK_BASE + n_masks * MASK_STRIDE:
            self.chunk = _cleared(chunk)
            chunk.text.fill(EDGE_BYTE)
            chunk.entries.fill(EDGE_BYTE)
        else:
            self.chunk = new_chunk(n_masks)
        if scratch is not None and (not lattice or len(scratch.codes) > 1):
            self.scratch = _cleared(scratch._replace(token_lengths=_NO_LENGTHS), scratch.key_masks)
        else:
            self.scratch = new_word_scratch(unigram=lattice)
        self.lanes = new_merge_lanes(NEW_WORDS_ROOM, NEW_PLACES) if lanes is None else _cleared(lanes)
        if cache is not None and cache.id_bits[0] == id_bits:
            self.cache = _cleared(cache)
        else:
            self.cache = new_word_cache(SMALL_CACHE_BITS, SMALL_CACHE_BITS - 2, 1 << 14, 1 << 16, id_bits)
        self.bytes_seen = 0

    def __del__(self, keep: Callable[[Any], None] = _SPARE.append, little: int = LITTLE_TEXT) -> None:
        """Leave the arrays to the next tokenizer, if little was done with them."""
        # What it needs is bound above: globals may be gone. The last attribute that is set says whether all are there.
        if hasattr(self, "bytes_seen") and self.bytes_seen < little:
            keep((self.chunk, self.scratch, self.lanes, self.cache))


def _cleared(tables: Any, *kept: NDArray[Any]) -> Any:
    """The same arrays, filled with zeros but for some and for those that are never written to."""
    for array in tables:
        if array.flags.writeable and not any(array is other for other in kept):
            array.fill(0)
    return tables


class Engine:
    """Encodes texts by a plan. Immutable but for its workers, which only one thread holds at a time."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._workers: Idle[Worker] = Idle()
        self._lattices: Idle[Any] = Idle()  # scratch arrays and word caches of unigram models
        self._buffers = Buffers(SPARE_BYTES)
        #: Ids for each byte of the last text: only the size of arrays follows from it.
        self._density = 0.5
        #: The process that they belong to, their number, and themselves.
        self._helpers: tuple[int, int, Helpers | None] = (0, 0, None)
        self._model = plan.model
        #: Address of the machine code that splits, 0 without; and whether it is settled that there is none.
        self._mask_code: int | None = None
        self._compiled_mask_code = False
        #: Bytes of text that a worker may have to expect: only the size of caches follows from it.
        self._text_size = 0
        #: Tokens that a new cache begins with; it has room for three times as many words.
        n_preloaded = 0
        #: Bits of an id in a slot of a cache: fewer for small vocabularies, of which more ids fit.
        self._id_bits = 16 if getattr(plan.model, "reachable", _NOTHING).size in range(1, 1 + (1 << 16)) else 18
        #: Id that stands for an unknown token which the vocabulary lacks; -1: none.
        self._missing_unknown = -1
        #: Whether a token always stands for the same bytes.
        self._is_ranked = False
        #: Whether characters that the vocabulary lacks leave no token behind.
        self._drops = False
        #: See ``_text_lengths``.
        self._lengths: dict[bool, NDArray[np.integer[Any]]] = {}
        #: Bytes of text of which a unigram model was to give spans.
        self._located = 0
        #: Id of tokens that are shown as the normalised text they stand for; -1: there is none.
        self._shown_as_text = -1
        #: White space that pre-tokens may begin with, and tokens' spans do not.
        self._blanks = Blanks(*(read_only(np.zeros(0, dtype)) for dtype in (np.uint16, np.uint32)))
        numbers = plan.model.numbers
        if isinstance(plan.model, MergeTables):
            reachable = plan.model.reachable
            n_preloaded = min(int(reachable.sum()), PRELOADED_TOKENS)
            unknown = int(numbers[MERGE_UNKNOWN])
            self._is_ranked = bool(numbers[MERGE_RANKED])
            if unknown >= 0 and reachable[unknown] == MISSING_UNKNOWN:
                self._missing_unknown = unknown
            fallback = bool(numbers[MERGE_BYTE_FALLBACK]) and bool((plan.model.fallback_symbol >= 0).all())
            self._drops = not self._is_ranked and unknown < 0 and not fallback
        elif isinstance(plan.model, UnigramTables):
            if numbers[UNIGRAM_MISSING]:
                self._missing_unknown = int(numbers[UNIGRAM_UNKNOWN])
            self._shown_as_text = int(numbers[UNIGRAM_UNKNOWN])
        elif isinstance(plan.model, PieceTables):
            n_preloaded = min(int(plan.model.reachable.sum()), PRELOADED_TOKENS)
            if plan.is_sentencepiece:
                self._shown_as_text = int(numbers[MERGE_UNKNOWN])
        else:
            if numbers[WORDPIECE_MISSING]:
                self._missing_unknown = int(numbers[WORDPIECE_UNKNOWN])
            if numbers[WORDPIECE_SKIP_SPACE]:
                self._blanks = Blanks(plan.model.page_of, plan.model.code_of)
        self._cache_bits = max((3 * n_preloaded).bit_length(), SMALL_CACHE_BITS + 2)
        #: Which added tokens are wanted, by the policies that are strings.
        self._enabled_by: dict[str, Enabled] = {}
        #: Whether plain text goes to the kernel as it is, and nothing about the ids is asked afterwards.
        self._is_direct = not plan.stages and self._missing_unknown < 0
        #: Whether every text is normalised, in one pass, and then goes to the kernel.
        self._is_cleaned = self._is_direct and plan.normalizer is not None and plan.normalizer.always
        self._is_direct = self._is_direct and not self._is_cleaned
        #: How texts are given to the model with blanks instead of U+2581; None: they are rewritten.
        self._blank_prefix: str | None = None
        if isinstance(plan.model, PieceTables) and plan.model.numbers[PIECE_MARK]:
            self._blank_prefix = plan.blank_prefix
        #: Whether rewritten text has U+2581 where the model takes blanks for it: SentencePiece's normalizer writes blanks.
        self._has_marks = plan.marks is not None or (self._blank_prefix is not None and not plan.is_sentencepiece)
        #: Whether a step asks if what it is given begins where the text began, which only alignment can tell.
        self._needs_sources = _asks_for_start(plan.stages)

    def clear_cache(self) -> None:
        """Forget all pre-tokens that workers remember, and give spare memory back."""
        self._workers.clear()
        self._buffers.clear()
        self._lattices.clear()
        _SPARE.clear()

    def cache_bytes(self) -> int:
        """Memory that idle workers hold."""
        groups = [group for worker in self._workers.all() for group in (worker.cache, worker.scratch)]
        groups += [group for scratch, _, cache, _ in self._lattices.all() for group in (scratch, cache)]
        return sum(array.nbytes for group in groups for array in group)

    def encode(
        self,
        data: NDArray[np.uint8],
        indptr: NDArray[np.int64],
        *,
        spans: bool = False,
        words: bool = False,
        special: SpecialPolicy = "parse",
        threads: int | None = None,
    ) -> EncodedTexts:
        """Ids of documents, without the template's special tokens.

        Parameters
        ----------
        data : uint8[m]
            Valid UTF-8.
        indptr : int64[n + 1]
            Document i is ``data[indptr[i]:indptr[i + 1]]``.
        spans, words
            Whether to give codepoint spans, and pre-token numbers.
        special
            What special tokens in the text become; see :meth:`jittok.Tokenizer.encode`.
        threads
            At most so many threads; None: as many as there are processors, or one inside a worker process.

        Raises
        ------
        SpecialTokenError
            `special` is "raise" and a document holds a special token.
        ArgumentError
            `special` or `threads` is none of the values allowed.
        """
        source = Source.of_arrays(data, indptr)
        return self.encode_source(source, spans=spans, words=words, special=special, threads=threads)

    def encode_source(
        self, source: Source, *, spans: bool = False, words: bool = False, special: SpecialPolicy = "parse",
        threads: int | None = None, framing: Framing | None = None,
    ) -> EncodedTexts:  # fmt: skip
        """As :meth:`encode`, for documents that are made into bytes a chunk at a time.

        With `framing`, which goes without `spans` and `words`, there are special tokens around the ids of each.
        """
        enabled = self._enabled(special)
        n_threads = self._n_threads(source, threads)
        ranges = Ranges(source.positions, n_threads, CHUNK_BYTES)
        rooms = [self._room(source, *bounds, framing) for bounds in pairwise(ranges.bounds)]
        outputs = Outputs(ranges, rooms, spans, words, self._buffers, framing)
        indptr = np.zeros(source.n_documents + 1, np.int64)

        def encode(chunk: Chunk) -> None:
            data, begins = self._made(source, chunk, enabled)
            output = outputs.of(chunk, int(begins[-1] - begins[0]) + EXTRA_IDS)
            ends = indptr[chunk.first + 1 : chunk.last + 1]
            self._encode_chunk(data, begins, chunk.first, enabled, output, ends)
            outputs.put(chunk, output, ends)

        self._run_all(encode, ranges)
        output = outputs.whole(indptr[1:], None if n_threads == 1 else self._threads(n_threads - 1).submit)
        if source.size >= PARALLEL_BYTES:
            n_special = 0 if framing is None else framing.n_special * source.n_documents
            self._density = max(output.used - n_special, 0) / source.size
        return EncodedTexts(
            _frozen(output.ids[: output.used]),
            _frozen(indptr),
            None if output.spans is None else _frozen(output.spans[: output.used]),
            None if output.words is None else _frozen(output.words[: output.used]),
            output.shown or None,
        )

    def encode_piece(self, piece: bytes) -> NDArray[np.int32]:
        """Ids of bytes that are not split, and need not be UTF-8.

        Parameters
        ----------
        piece
            Any bytes.

        Raises
        ------
        UnsupportedError
            The model does not merge bytes by their ranks.
        """
        from jittok.kernels.bpe import merge_bytes
        from jittok.kernels.word_cache import new_word_scratch

        merges = self.plan.model
        if not isinstance(merges, MergeTables) or not self._is_ranked:
            raise UnsupportedError("only models of byte ranks encode bytes that are no text")
        data = _frozen(np.frombuffer(piece + b"\0" * 8, np.uint8)[: len(piece)])
        out = np.empty(len(piece), np.int32)
        return out[: int(merge_bytes(merges, data, new_word_scratch(max(1, len(piece))), out))]

    def _n_threads(self, source: Source, threads: int | None) -> int:
        """How many threads to use."""
        n = max(min(thread_count(threads), source.n_documents), 1) if source.size >= PARALLEL_BYTES else 1
        self._text_size = max(self._text_size, source.size // n)
        return n

    def count(
        self,
        data: NDArray[np.uint8],
        indptr: NDArray[np.int64],
        *,
        special: SpecialPolicy = "parse",
        threads: int | None = None,
    ) -> NDArray[np.int64]:
        """Number of ids of each document; see :meth:`encode`. Ids are dropped a chunk at a time."""
        return self.count_source(Source.of_arrays(data, indptr), special=special, threads=threads)

    def count_source(
        self, source: Source, *, special: SpecialPolicy = "parse", threads: int | None = None
    ) -> NDArray[np.int64]:
        """As :meth:`count`, for documents that are made into bytes a chunk at a time."""
        enabled = self._enabled(special)
        counts = np.empty(source.n_documents, np.int64)
        spare: Idle[Output] = Idle()

        def run(chunk: Chunk) -> None:
            output = spare.take() or Output(0, False, False)
            output.used = 0
            output.shown = {}
            ends = counts[chunk.first : chunk.last]
            self._encode_chunk(*self._made(source, chunk, enabled), chunk.first, enabled, output, ends)
            ends[1:] = np.diff(ends)
            spare.give(output)

        self._run_all(run, Ranges(source.positions, self._n_threads(source, threads), CHUNK_BYTES))
        return counts

    def _made(self, source: Source, chunk: Chunk, enabled: Enabled) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The bytes of a chunk's documents; if one has none, what is raised is what the first document raises that fails."""
        try:
            return source.make(chunk.first, chunk.last)
        except TextError:
            # Special tokens may be refused in a document before that one.
            for document in range(chunk.first, chunk.last) if enabled.raises else ():
                made, output = source.make(document, document + 1), Output(0, False, False)
                self._encode_chunk(*made, document, enabled, output, np.empty(1, np.int64))
            raise

    def _room(self, source: Source, first: int, last: int, framing: Framing | None) -> int:
        """Ids to make room for, for documents `first` to `last`, which are a range."""
        n_special = 0 if framing is None else framing.n_special * (last - first)
        size = int(source.positions[last] - source.positions[first])
        if first == 0 and last == source.n_documents:
            # Most text has a token for every two characters or more; a single chunk tells itself.
            room = size // 2
            if size <= CHUNK_BYTES + CHUNK_BYTES // 2:
                return 0
        elif last == source.n_documents:
            # Nothing follows, and a chunk begins with room for as many ids as it has bytes.
            room = min(int(1.25 * max(self._density, 0.5) * size) + CHUNK_BYTES // 2, size)
        elif first == 0:
            # Nothing goes before.
            room = min(int(1.25 * self._density * size) + CHUNK_BYTES // 16, size)
        else:
            # Others will be moved by what is too much, the better if that fits the processor's cache.
            room = min(int(1.02 * self._density * size) + CHUNK_BYTES // 64, size)
        return room + n_special + EXTRA_IDS

    def _run_all(self, run: Callable[[Chunk], object], ranges: Ranges) -> None:
        """Run all chunks of all ranges: on this thread and on others, as many as there are ranges.

        A thread that only waited for the others would interrupt them whenever one of its tasks is done. What is
        raised is what the first of the chunks that fail raises.
        """
        if len(ranges) == 1:
            for chunk in ranges.chunks():
                run(chunk)
            return
        errors: dict[int, Exception] = {}

        def work() -> None:
            for chunk in ranges.chunks():
                try:
                    run(chunk)
                except Exception as error:
                    errors[chunk.first] = error
                    ranges.drop(chunk.first)  # those before it may fail, too

        n_helpers = len(ranges) - 1
        helpers = [self._threads(n_helpers).submit(work) for _ in range(n_helpers)]
        try:
            work()
        finally:
            ranges.drop(0)
            for helper in helpers:
                if not helper.cancel():
                    helper.wait()
        if errors:
            raise errors[min(errors)]

    def _threads(self, n: int) -> Helpers:
        """So many threads, or more. They belong to one process: a fork makes its own."""
        pid, size, helpers = self._helpers
        if helpers is None or pid != os.getpid() or size < n:
            helpers = Helpers(n)
            self._helpers = os.getpid(), n, helpers
        return helpers

    def _enabled(self, special: SpecialPolicy) -> Enabled:
        """Which added tokens are wanted."""
        if isinstance(special, str) and special in self._enabled_by:
            return self._enabled_by[special]
        is_ordinary = self.plan.added_tokens.flags & TOKEN_SPECIAL == 0
        if special in ("parse", "text", "raise"):
            wanted = is_ordinary if special == "text" else np.ones(len(is_ordinary), np.bool_)
            enabled = self._enabled_in_stages(wanted, special == "raise")
            return self._enabled_by.setdefault(str(special), enabled)
        if isinstance(special, str | bytes) or not isinstance(special, Iterable):
            kind = ArgumentError if isinstance(special, str) else ArgumentTypeError
            raise kind(f"special={special!r} is not known; expected 'parse', 'text', 'raise' or a set of special tokens")
        chosen = set(special)
        unknown = chosen - self._special.keys()
        if unknown:
            raise ArgumentError(
                f"special names {sorted(unknown, key=str)[0]!r}, which is not a special token of this tokenizer; "
                "tokenizer.special_tokens lists them"
            )
        is_ordinary[[place for content in chosen for place in self._special[content]]] = True
        return self._enabled_in_stages(is_ordinary, False)

    def _enabled_in_stages(self, wanted: NDArray[np.bool_], raises: bool) -> Enabled:
        def of(stage: AddedTokenStage | None) -> NDArray[np.bool_]:
            return np.zeros(0, np.bool_) if stage is None else _frozen(wanted[stage.members])

        later = tuple(map(of, self.plan.later_tokens))
        return Enabled(of(self.plan.raw_tokens), of(self.plan.normalized_tokens), raises, later)

    @cached_property
    def _special(self) -> dict[str, list[int]]:
        """Where each special token stands among the added tokens."""
        added = self.plan.added_tokens
        places: dict[str, list[int]] = {}
        for place in added.where(TOKEN_SPECIAL).tolist():
            places.setdefault(added.contents[place], []).append(place)
        return places

    def _encode_chunk(
        self,
        data: NDArray[np.uint8],
        indptr: NDArray[np.int64],
        first_document: int,
        enabled: Enabled,
        output: Output,
        ends: NDArray[np.int64],
    ) -> None:
        """Append the ids of the documents of one chunk to `output`, and write into `ends` where each one's end there."""
        spans, words = output.spans is not None, output.words is not None
        found: list[Found] = []
        if self._blank_prefix is not None and not (spans or words):
            if self._has_no_tokens(data, indptr, enabled, found):
                self._append_ids(*self._with_blanks(data, indptr), output, ends)
            else:
                parts = self._cut_parts(data, indptr, first_document, enabled, found)
                self._append_parts(self._blank_parts(parts, indptr), first_document, indptr, output, ends)
            return
        if self._is_direct and (self._is_ranked or not (spans or words)) and self._is_plain(data, indptr, enabled, found):
            start, end = _frozen(indptr[:-1]), _frozen(indptr[1:])
            first = output.used
            self._append_ids(data, start, end, output, ends)
            if output.spans is not None:
                self._find_spans(data, start, start, ends, output, first)
            return
        if self._is_cleaned and not (spans or words):
            cleaned = self._cleaned(data, indptr, enabled)
            if cleaned is not None:
                self._append_ids(
                    _frozen(cleaned.data), _frozen(cleaned.starts), _frozen(cleaned.ends), output, ends
                )
                return
        if indptr[0] > 0:
            # Positions from here on count from the beginning of the chunk.
            for one in found:
                one.rows[:, 1:3] -= indptr[0]
            data, indptr = data[int(indptr[0]) :], indptr - indptr[0]
        if spans and self._append_located(data, indptr, first_document, enabled, output, ends):
            return
        marked = self.plan.marks is not None and not (spans or words) and self._knows_beginnings(data, indptr)
        aligned = not marked and (spans or self._needs_sources)
        parts = self._parts(data, indptr, first_document, enabled, aligned, found, marked)
        if not (spans and parts.codepoints is not None) and not (self._drops and (spans or words)):
            self._append_parts(parts, first_document, indptr, output, ends, has_marks=self._has_marks)
            return
        result = self._merge(parts, indptr, first_document, spans, words)
        np.add(result.indptr[1:], output.used, out=ends)
        output.add(result.ids, result.spans, result.word_ids, result.shown)

    def _knows_beginnings(self, data: NDArray[np.uint8], indptr: NDArray[np.int64]) -> bool:
        """Whether it is known what comes from where a document begins, if the plan's `marks` asks for that."""
        plan = self.plan
        if plan.normalizer is None or plan.marks is None or plan.marks.prefix != "first":
            return True
        return plan.normalizer.keeps_first(data, indptr[:-1], indptr[1:])

    def _append_ids(
        self,
        text: NDArray[np.uint8],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        output: Output,
        ends: NDArray[np.int64],
    ) -> None:
        """Append the ids of texts that are ready for the last cut, and the numbers of their words if these are kept."""
        from jittok.kernels.word_cache import EXTRA_ROOM

        n_bytes = int((end - start).sum())
        output.reserve(n_bytes + EXTRA_ROOM)
        word = _NOTHING if output.words is None else output.words
        output.used = self._run_kernel(text, start, end, n_bytes, output.ids, output.used, ends, word)

    def _append_parts(
        self,
        parts: Parts,
        first_document: int,
        indptr: NDArray[np.int64],
        output: Output,
        ends: NDArray[np.int64],
        *,
        given: Parts | None = None,
        prefixes: NDArray[np.int64] | None = None,
        runs: NormalizedText | None = None,
        has_marks: bool = False,
    ) -> None:
        """Append the ids of parts of documents, and what else is wanted.

        Where spans are wanted, the text is as it was given; or `given` are the parts as they were, and each text part has
        so many more codepoints in front as `prefixes` say, or `runs` tell where they come from. Spans or word numbers are
        not for models that drop characters. `has_marks` as in :meth:`_run_kernel`.
        """
        from jittok.kernels.added_parts import find_positions, join_details, join_parts
        from jittok.kernels.spans import EMPTY_BYTES, LENGTHS_BY_ID, drop_prefixes, find_spans, follow_runs
        from jittok.kernels.word_cache import EXTRA_ROOM

        text = np.flatnonzero(parts.token < 0)
        start, end = _frozen(parts.start[text]), _frozen(parts.end[text])
        n_bytes = int((end - start).sum())
        n_tokens = len(parts.token) - len(text)
        output.reserve(n_bytes + n_tokens + EXTRA_ROOM)
        first = output.used
        begin = first + n_tokens
        part_end = np.zeros(len(text), np.int64)
        word = _NOTHING if output.words is None else output.words[begin:]
        length = _NOTHING
        if output.spans is not None and not self._is_ranked:
            length = np.empty(n_bytes + EXTRA_ROOM, np.int32)
        # Where texts are one pre-token each, the last cut is not that of words.
        wanted = _NOTHING if self.plan.whole else word
        n = self._run_kernel(
            parts.data, start, end, n_bytes, output.ids[begin:], 0, part_end, wanted, length, has_marks
        )
        ids, length = output.ids[begin : begin + n], length[:n]
        output.used = begin + n
        if self.plan.whole:
            word[:n] = 0
        if self._missing_unknown >= 0:
            self._refuse_unknown(parts, text, ids, part_end, first_document)
        if output.spans is not None:
            spans, edges = output.new_spans(first)[n_tokens:], _frozen(part_end)
            lengths = self._token_lengths if self._is_ranked else length
            options = (LENGTHS_BY_ID if self._is_ranked else 0) + (EMPTY_BYTES if self.plan.is_sentencepiece else 0)
            find_spans(_frozen(parts.data), start, start, edges, ids, lengths, options, self._blanks, spans)
            if runs is not None:
                shown = self._shown_whole(parts.data, start, ids, part_end, length, spans, runs)
                for row, string in shown.items():
                    number = int(np.searchsorted(part_end, row, side="right"))
                    output.shown[first + row + int(text[number]) - number] = string
                follow_runs(spans, edges, runs.run_indptr, runs.run_at, runs.run_source)
            elif prefixes is not None:
                drop_prefixes(spans, edges, _frozen(prefixes[text]))
        as_given = parts if given is None else given
        if output.spans is not None and n_tokens:
            tokens = np.flatnonzero(parts.token >= 0)
            texts_before = tokens - np.arange(n_tokens)
            rows = first + np.concatenate([[0], part_end])[texts_before] + np.arange(n_tokens)
            output.shown.update(self._shown_tokens(as_given, tokens, rows))
        if len(text) == len(parts.token) == len(ends) and bool((parts.document == np.arange(len(ends))).all()):
            # One part each. White space that documents begin with may have been dropped.
            if output.spans is None or bool((as_given.start == indptr[:-1]).all()):
                np.add(part_end, first, out=ends)
                return
        document, token = _frozen(parts.document), _frozen(parts.token)
        if output.spans is not None or output.words is not None:
            starts, stops = np.zeros((2, len(token)), np.int64)
            spans, numbers = np.empty((0, 2), np.int64), _NOTHING
            if output.spans is not None:
                spans = output.spans[first : output.used]
                find_positions(
                    _frozen(as_given.data), _frozen(indptr), document, _frozen(as_given.start), _frozen(as_given.end),
                    token, starts, stops,
                )  # fmt: skip
            if output.words is not None:
                numbers = output.words[first : output.used]
            join_details(document, token, _frozen(part_end), _frozen(starts), _frozen(stops), spans, numbers)
        output.used = join_parts(document, token, _frozen(part_end + begin), output.ids, first, ends)

    def _parts(
        self,
        data: NDArray[np.uint8],
        indptr: NDArray[np.int64],
        first_document: int,
        enabled: Enabled,
        aligned: bool,
        found: Sequence[Found] = (),
        marked: bool = False,
    ) -> Parts:
        """Documents of which the first begins at 0, after all steps before the last cut.

        `found` has the tokens that were found already. `marked`: the plan's `marks` does the work of its stages.
        """
        plan = self.plan
        parts = self._cut_parts(data, indptr, first_document, enabled, found)
        if plan.normalizer is not None:
            parts = _rewrite(parts, plan.normalizer, indptr, aligned)
            parts = self._find_added(
                parts, plan.normalized_tokens, enabled.normalized, enabled.raises, first_document, found
            )
        if marked and plan.marks is not None:
            return _marked(parts, plan.marks)
        for step in plan.stages:
            parts = _cut(parts, step) if isinstance(step, SplitStage) else _rewrite(parts, step, indptr, aligned)
        return parts

    def _cut_parts(
        self,
        data: NDArray[np.uint8],
        indptr: NDArray[np.int64],
        first_document: int,
        enabled: Enabled,
        found: Sequence[Found] = (),
    ) -> Parts:
        """Documents cut at all that is found in the text as given: without a normalizer, at all added tokens."""
        plan, n_documents = self.plan, len(indptr) - 1
        parts = Parts(
            data,
            np.arange(n_documents),
            np.ascontiguousarray(indptr[:-1]),
            np.ascontiguousarray(indptr[1:]),
            np.full(n_documents, -1, np.int32),
            None,
        )
        for stage, wanted in zip((plan.raw_tokens, *plan.later_tokens), (enabled.raw, *enabled.later), strict=True):
            parts = self._find_added(parts, stage, wanted, enabled.raises, first_document, found)
        if plan.codes is not None:
            parts = _with_codes(parts, plan.codes)
        if plan.normalizer is None:
            parts = self._find_added(
                parts, plan.normalized_tokens, enabled.normalized, enabled.raises, first_document, found
            )
        return parts

    def words(
        self, data: NDArray[np.uint8], indptr: NDArray[np.int64], *, special: SpecialPolicy = "parse"
    ) -> Words:
        """What the model is given of documents: their pre-tokens, and the added tokens between.

        Parameters
        ----------
        data, indptr, special
            As those of :meth:`encode`; `indptr` begins with 0.

        Returns
        -------
        Words
            Each for itself has an encoding; :meth:`with_ids` puts them together.
        """
        from jittok.kernels.split import ISOLATED

        parts = self._parts(data, indptr, 0, self._enabled(special), True)
        if not self.plan.whole:
            parts = _cut(parts, SplitStage(self.plan.last_split, ISOLATED, False))
        text = np.flatnonzero(parts.token < 0)
        return Words(parts, indptr, text, _frozen(parts.start[text]), _frozen(parts.end[text]))

    def with_ids(
        self, words: Words, ids: NDArray[np.int32], lengths: NDArray[np.int32], ends: NDArray[np.int64]
    ) -> EncodedTexts:
        """What :meth:`encode` would give if the model had these ids for the words, with spans and word ids.

        Parameters
        ----------
        words
            From :meth:`words`.
        ids, lengths
            Of all words one after another: ids, and the bytes of text that each stands for.
        ends : int64[n_words]
            Where the ids of each word end.

        Raises
        ------
        FormatError
            An id stands for an unknown token that the vocabulary lacks.
        """
        counts = np.diff(ends, prepend=0)
        if self._missing_unknown >= 0:
            self._refuse_unknown(words.parts, words.text, ids, ends, 0)
        id_starts = np.repeat(words.start, counts) if self._drops else None
        span_array = self._text_spans(
            words.parts, words.indptr, words.text, words.start, words.end, _frozen(ids), ends, _frozen(lengths), id_starts
        )
        shown: dict[int, str] = {}
        if self._shown_as_text >= 0 and words.parts.codepoints is not None:
            shown = self._shown_texts(words.parts, words.start, ids, ends, lengths)
        word = np.zeros(len(ids), np.int32)
        n_words = np.ones(len(words.text), np.int64)
        return self._joined(words.parts, words.indptr, words.text, ids, counts, span_array, word, n_words, shown)

    def _append_located(
        self,
        data: NDArray[np.uint8],
        indptr: NDArray[np.int64],
        first_document: int,
        enabled: Enabled,
        output: Output,
        ends: NDArray[np.int64],
    ) -> bool:
        """As :meth:`_encode_chunk`, with spans, where texts are rewritten in one step and are one pre-token each.

        Returns whether they are: so it is with SentencePiece's models.
        """
        plan = self.plan
        by_runs = self._is_cleaned and plan.normalizer is not None and plan.normalizer.gives_runs
        if not plan.whole or not (by_runs or self._blank_prefix is not None):
            return False
        if not by_runs:
            # U+2581 in a text has not as many bytes as a blank.
            if MARK.encode() in data[int(indptr[0]) : int(indptr[-1])].tobytes():
                return False
            given = self._cut_parts(data, indptr, first_document, enabled)
            parts = self._blank_parts(given, indptr)
            prefixes = parts.end - parts.start - (given.end - given.start)
            self._append_parts(parts, first_document, indptr, output, ends, given=given, prefixes=prefixes)
            return True
        assert plan.normalizer is not None
        given = self._cut_parts(data, indptr, first_document, enabled)
        text = np.flatnonzero(given.token < 0)
        runs = plan.normalizer.apply_in_runs(data, given.start[text], given.end[text], True)
        if self._holds(plan.normalized_tokens, enabled.normalized, runs.data, runs.starts, runs.ends):
            return False
        start, end = np.zeros((2, len(given.token)), np.int64)
        start[text], end[text] = runs.starts, runs.ends
        parts = given._replace(data=runs.data, start=start, end=end)
        self._append_parts(parts, first_document, indptr, output, ends, given=given, runs=runs)
        return True

    def _with_blanks(
        self, data: NDArray[np.uint8], indptr: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """Documents with a blank in front, where they get one: data, starts and ends."""
        starts, ends = _frozen(indptr[:-1]), _frozen(indptr[1:])
        if self._blank_prefix == "never" or not len(starts):
            return data, starts, ends
        return _prefixed(data, starts, ends, self._blank_prefix == "unless marked")

    def _blank_parts(self, parts: Parts, indptr: NDArray[np.int64]) -> Parts:
        """Parts of text as given, with a blank in front of the text where it gets one, and blanks instead of U+2581."""
        if self._blank_prefix == "never" or not len(parts.token):
            return parts
        # The text of added tokens is not copied.
        end = np.where(parts.token < 0, parts.end, parts.start)
        # Some get a blank only where a document begins.
        wanted = parts.start == indptr[parts.document] if self._needs_sources else None
        new, start, end = _prefixed(
            parts.data, _frozen(parts.start), _frozen(end), self._blank_prefix == "unless marked", wanted
        )
        return parts._replace(data=new, start=start, end=end)

    def _is_plain(
        self, data: NDArray[np.uint8], indptr: NDArray[np.int64], enabled: Enabled, found: list[Found]
    ) -> bool:
        """Whether no document holds an added token, nor anything that the normalizer changes."""
        if not self._has_no_tokens(data, indptr, enabled, found):
            return False
        normalizer = self.plan.normalizer
        return normalizer is None or not normalizer.changes(data, indptr[:-1], indptr[1:]).any()

    def _has_no_tokens(
        self, data: NDArray[np.uint8], indptr: NDArray[np.int64], enabled: Enabled, found: list[Found] | None = None
    ) -> bool:
        """Whether no document holds an added token. `found` receives those of the stages up to the first that has some."""
        start, end = indptr[:-1], indptr[1:]
        if self._holds_raw(data, start, end, enabled, found):
            return False
        if self.plan.normalizer is not None:  # what is found here may not be what will be
            found = None
        return not self._holds(self.plan.normalized_tokens, enabled.normalized, data, start, end, found)

    def _holds_raw(
        self,
        data: NDArray[np.uint8],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        enabled: Enabled,
        found: list[Found] | None = None,
    ) -> bool:
        """Whether some text holds an added token that is found in the text as given, or begins with a language code."""
        plan = self.plan
        if plan.codes is not None and _code_ends(data, start, end)[0].size:
            return True
        stages = zip((plan.raw_tokens, *plan.later_tokens), (enabled.raw, *enabled.later), strict=True)
        return any(self._holds(stage, wanted, data, start, end, found) for stage, wanted in stages)

    def _holds(
        self,
        stage: AddedTokenStage | None,
        wanted: NDArray[np.bool_],
        data: NDArray[np.uint8],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        found: list[Found] | None = None,
    ) -> bool:
        """Whether some text holds an added token of a stage; `found` receives all of these."""
        if stage is None or not wanted.any():
            return False
        from jittok.added_tokens import find_added_tokens, holds_added_tokens

        if found is None:
            return holds_added_tokens(stage.tables, wanted, data, start, end)
        rows = find_added_tokens(stage.tables, wanted, data, start, end)
        found.append(Found(stage, rows))
        return len(rows) > 0

    def _cleaned(
        self,
        data: NDArray[np.uint8],
        indptr: NDArray[np.int64],
        enabled: Enabled,
    ) -> Rewritten | NormalizedText | None:
        """Documents that hold no added token, normalised; None if one does."""
        assert self.plan.normalizer is not None
        start, end = np.ascontiguousarray(indptr[:-1]), np.ascontiguousarray(indptr[1:])
        if self._holds_raw(data, start, end, enabled):
            return None
        done: Rewritten | NormalizedText
        if self.plan.normalizer.gives_runs:
            done = self.plan.normalizer.apply_in_runs(data, start, end, False)
        else:
            done = self.plan.normalizer.apply(data, start, end, alignment=False)
        if self._holds(self.plan.normalized_tokens, enabled.normalized, done.data, done.starts, done.ends):
            return None
        return done

    def _find_added(
        self,
        parts: Parts,
        stage: AddedTokenStage | None,
        wanted: NDArray[np.bool_],
        raises: bool,
        first_document: int,
        found: Sequence[Found] = (),
    ) -> Parts:
        """Cut text parts at the added tokens in them, which `found` may have: then no stage before had any."""
        if stage is None:
            return parts
        from jittok.added_tokens import find_added_tokens

        text = np.flatnonzero(parts.token < 0)
        rows = next((one.rows for one in found if one.stage is stage), None)
        if rows is None:
            rows = find_added_tokens(stage.tables, wanted, parts.data, parts.start[text], parts.end[text])
        if not len(rows):
            return parts
        if raises:
            self._refuse_special(parts, text, rows, first_document)
        return _with_tokens(parts, rows)

    def _refuse_special(
        self, parts: Parts, text: NDArray[np.int64], rows: NDArray[np.int64], first_document: int
    ) -> None:
        added = self.plan.added_tokens
        special = added.where(TOKEN_SPECIAL)
        special_ids = added.ids[special]
        for row in rows:
            places = special[special_ids == row[3]]
            if len(places):
                content = added.contents[int(places[0])]
                document = first_document + int(parts.document[text[row[0]]])
                raise SpecialTokenError(
                    f"text {document} holds the special token {content!r}; pass special='parse' to make it one "
                    "token, special='text' to treat it as ordinary text, or a set of the special tokens to allow"
                )

    def _acquire(self, text: NDArray[np.uint8], n_bytes: int) -> Worker:
        worker = self._workers.take()
        if worker is None:
            lattice = isinstance(self._model, UnigramTables)
            worker = Worker(int(self.plan.last_split.numbers[N_MASKS]), lattice, self._id_bits)
        before = worker.bytes_seen
        worker.bytes_seen = before + n_bytes
        if before < SMALL_TEXT <= worker.bytes_seen:
            self._enlarge(worker, text)
        may_compile = worker.bytes_seen >= MUCH_TEXT
        if self._mask_code is None and worker.bytes_seen < LITTLE_TEXT:
            return worker  # to look for it takes longer than it saves
        if self._mask_code is None or (self._mask_code == 0 and may_compile and not self._compiled_mask_code):
            self._mask_code = mask_code(self.plan.last_split, may_compile, _find_runs)
            self._compiled_mask_code = may_compile
        worker.chunk.code[0] = self._mask_code
        return worker

    def _enlarge(self, worker: Worker, text: NDArray[np.uint8]) -> None:
        """Give a worker a larger cache with what it knows, or an emptied one if it is as large as may be.

        `text` is some of the text to come.
        """
        from jittok.kernels.word_cache import SLOT_WORDS, new_word_cache, refill_cache

        merges = self.plan.model
        if isinstance(merges, MergeTables) and self._model is merges and worker.bytes_seen >= SMALL_TEXT:
            # Read at random for every new word: worth large pages once there is much text.
            self._model = merges._replace(
                pair_slots=large_copy(merges.pair_slots),
                byte_pair=large_copy(merges.byte_pair),
                symbol_token=large_copy(merges.symbol_token),
            )
        elif isinstance(merges, PieceTables) and self._model is merges and worker.bytes_seen >= SMALL_TEXT:
            self._model = merges._replace(
                pair_slots=large_copy(merges.pair_slots), symbol_token=large_copy(merges.symbol_token)
            )
        old = worker.cache
        bits = (len(old.slots) // SLOT_WORDS).bit_length()
        if worker.bytes_seen < SMALL_TEXT and bits <= SMALL_CACHE_BITS + 2:
            worker.cache = new_word_cache(bits, bits - 2, 1 << (bits + 1), 1 << (bits + 3), self._id_bits)
        elif bits > LARGEST_CACHE_BITS:
            for array in old:
                if array.flags.writeable:
                    array[:] = 0
            self._preload(old)
            return
        else:
            # Texts have a new word for every 100 bytes or so, fewer as they go on; half of the slots are used.
            expected = (self._text_size // 64 + len(old.slots) // SLOT_WORDS).bit_length()
            if text.size and (text[::SAMPLE_STEP] >= 0x80).mean() > 0.2:
                # Other scripts have a new word for every 30 bytes, and growing costs much.
                expected = max(expected, (self._text_size // 12).bit_length())
            bits = min(max(bits, self._cache_bits, expected), LARGEST_CACHE_BITS)
            worker.cache = new_word_cache(bits, bits - 3, 1 << (bits + 2), 1 << (bits + 3), self._id_bits)
        refill_cache(old, worker.cache)
        self._preload(worker.cache)

    def _preload(self, cache: Any) -> None:
        """Put the tokens that merging makes into a cache; without the kernel for it, they are found when they come."""
        from jittok.kernels.bpe import preload_tokens

        merges = self.plan.model
        if isinstance(merges, MergeTables | PieceTables):
            arguments = merges, cache, PRELOADED_TOKENS
            if is_ready(preload_tokens, *arguments):
                preload_tokens(*arguments)

    def _merge(
        self, parts: Parts, indptr: NDArray[np.int64], first_document: int, spans: bool, words: bool
    ) -> EncodedTexts:
        """Cut text parts for the last time, merge, and put added tokens between."""
        from jittok.kernels.word_cache import EXTRA_ROOM

        plan = self.plan
        has_tokens = bool((parts.token >= 0).any())
        text = np.flatnonzero(parts.token < 0) if has_tokens else np.arange(len(parts.token))
        start, end = _frozen(parts.start[text]), _frozen(parts.end[text])
        by_length = spans and not self._is_ranked
        located = self._drops and (spans or words)
        n_bytes = int((end - start).sum())
        ids = np.empty(n_bytes + EXTRA_ROOM, np.int32)
        word = _NOTHING
        if words or located:
            word = np.zeros(n_bytes + EXTRA_ROOM, np.int32)
        length = np.empty(n_bytes + EXTRA_ROOM, np.int32) if by_length else _NOTHING
        part_end = np.zeros(len(start), np.int64)
        # Where texts are one pre-token each, the last cut is not that of words.
        wanted = _NOTHING if plan.whole and not located else word
        n = self._run_kernel(parts.data, start, end, n_bytes, ids, 0, part_end, wanted, length, self._has_marks)
        ids, word, length = ids[:n], word[:n], length[:n]
        if plan.whole:
            word[:] = 0
        if self._missing_unknown >= 0:
            self._refuse_unknown(parts, text, ids, part_end, first_document)
        counts = part_end.copy()
        counts[1:] -= part_end[:-1]
        n_words = np.zeros(len(text), np.int64)  # pre-tokens of each part
        id_starts = None
        if located:
            # Not every pre-token has an id: number them all, and look up where those of the ids begin.
            word_start, first_word = _pre_tokens(parts, plan.last_split, start, end)
            n_words = np.diff(first_word)
            number = np.repeat(first_word[:-1], counts) + word
            if len(number) and number.max() >= len(word_start):
                raise FormatError("the split tables contradict each other; the jittok file is damaged")
            id_starts = word_start[number]
        elif words:
            has_ids = counts > 0
            n_words[has_ids] = word[part_end[has_ids] - 1] + 1
        span_array = None
        shown: dict[int, str] = {}
        if spans:
            span_array = self._text_spans(parts, indptr, text, start, end, ids, part_end, length, id_starts)
            if self._shown_as_text >= 0 and parts.codepoints is not None:
                shown = self._shown_texts(parts, start, ids, part_end, length)
        return self._joined(parts, indptr, text, ids, counts, span_array, word if words else None, n_words, shown)

    def _joined(
        self,
        parts: Parts,
        indptr: NDArray[np.int64],
        text: NDArray[np.int64],
        ids: NDArray[np.int32],
        counts: NDArray[np.int64],
        span_array: NDArray[np.int64] | None,
        word: NDArray[np.int32] | None,
        n_words: NDArray[np.int64],
        shown: dict[int, str],
    ) -> EncodedTexts:
        """Documents from the ids of their text parts, and the added tokens between.

        `counts` and `n_words` are the ids and pre-tokens of each part of `text`; spans, words and
        what is shown are those of `ids`.
        """
        has_tokens = len(text) < len(parts.token)
        if not has_tokens:
            all_ids, all_counts = ids, counts
        else:
            all_counts = np.ones(len(parts.token), np.int64)
            all_counts[text] = counts
            ends = np.cumsum(all_counts)
            is_text = np.repeat(parts.token < 0, all_counts)
            if shown:
                places = np.flatnonzero(is_text)
                shown = {int(places[row]): string for row, string in shown.items()}
            all_ids = np.empty(int(ends[-1]) if len(ends) else 0, np.int32)
            all_ids[is_text] = ids
            tokens = np.flatnonzero(parts.token >= 0)
            all_ids[~is_text] = parts.token[tokens]
            if span_array is not None:
                shown = shown | self._shown_tokens(parts, tokens, np.flatnonzero(~is_text))
                both = np.empty((len(all_ids), 2), np.int64)
                both[is_text] = span_array
                both[~is_text] = _part_spans(parts, indptr, tokens)
                span_array = both
            if word is not None:
                numbers = np.zeros(len(all_ids), np.int32)
                numbers[is_text] = word
                word = numbers
        part_ends = np.cumsum(all_counts)
        ends_of_documents = np.searchsorted(parts.document, np.arange(len(indptr)), side="left")
        out_indptr = np.concatenate([[0], part_ends])[ends_of_documents]
        if word is not None:
            all_words = np.ones(len(parts.token), np.int64)
            all_words[text] = n_words
            word = _document_words(word, parts, all_counts, all_words)
        return EncodedTexts(
            _frozen(all_ids),
            _frozen(out_indptr),
            None if span_array is None else _frozen(span_array),
            None if word is None else _frozen(word),
            shown,
        )

    def _shown_texts(
        self,
        parts: Parts,
        start: NDArray[np.int64],
        ids: NDArray[np.int32],
        part_end: NDArray[np.int64],
        length: NDArray[np.int32],
    ) -> dict[int, str]:
        """Strings of the unknown tokens that do not follow from the text under their spans.

        They begin or end inside what a codepoint became, or see :meth:`_loses_context`.
        """
        rows = np.flatnonzero(ids == self._shown_as_text)
        if not rows.size or parts.codepoints is None:
            return {}
        at, stop = _byte_ranges(rows, start, part_end, length)
        number, source = parts.codepoints.number, parts.codepoints.start
        part = np.searchsorted(part_end, rows, side="right")
        if not self.plan.is_sentencepiece:
            # Several steps may have rewritten and cut the text: what the model saw is all that is sure.
            return self._strings(parts.data, rows, at, stop)
        wanted = _is_inner(source, number[start[part]], number[at], number[stop], rows + 1 < part_end[part])
        wanted |= self._loses_context(parts.data, start[part], at, stop)
        return self._strings(parts.data, rows[wanted], at[wanted], stop[wanted])

    def _shown_tokens(
        self, parts: Parts, tokens: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> dict[int, str]:
        """Strings of the added tokens found in text that are not shown by their contents, by their `rows` among the ids.

        They took white space with them, or were found in text that is normalised.
        """
        contents, sorted_ids = self._varying_tokens
        if not contents:
            return {}
        ids = parts.token[tokens]
        places = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
        shown: dict[int, str] = {}
        for number in np.flatnonzero(sorted_ids[places] == ids).tolist():
            part = int(tokens[number])
            text = parts.data[int(parts.start[part]) : int(parts.end[part])].tobytes().decode()
            if text != contents[int(ids[number])]:
                shown[int(rows[number])] = text
        return shown

    @cached_property
    def _varying_tokens(self) -> tuple[dict[int, str | None], NDArray[np.int64]]:
        """By their ids, the contents of added tokens that may be shown otherwise where they stand in text; and these ids.

        None instead of a content: several tokens have that id, or the model's unknown token has it.
        """
        added = self.plan.added_tokens
        if not self.plan.shows_found:
            return {}, added.ids[:0]
        ids, counts = np.unique(added.ids, return_counts=True)
        ambiguous = set(ids[counts > 1].tolist()) | {self._shown_as_text}
        may_vary = added.flags & (TOKEN_STRIP_LEFT | TOKEN_STRIP_RIGHT | TOKEN_NORMALIZED) != 0
        may_vary |= np.isin(added.ids, list(ambiguous))
        contents = {
            int(added.ids[place]): None if int(added.ids[place]) in ambiguous else added.contents[place]
            for place in np.flatnonzero(may_vary).tolist()
        }
        return contents, np.array(sorted(contents), np.int64)

    def _shown_whole(
        self,
        text: NDArray[np.uint8],
        start: NDArray[np.int64],
        ids: NDArray[np.int32],
        part_end: NDArray[np.int64],
        length: NDArray[np.int32],
        spans: NDArray[np.int64],
        done: NormalizedText,
    ) -> dict[int, str]:
        """As :meth:`_shown_texts`, of whole texts and `spans` in them as normalised."""
        rows = np.flatnonzero(ids == self._shown_as_text)
        if not rows.size:
            return {}
        from jittok.kernels.charsmap import write_sources

        n = int(done.indptr[-1])
        source_start, source_end = np.empty(n, np.int32), np.empty(n, np.int32)
        write_sources(done, source_start, source_end)
        part = np.searchsorted(part_end, rows, side="right")
        begin = done.indptr[part]
        first, after = (begin + spans[rows, side] for side in (0, 1))
        at, stop = _byte_ranges(rows, start, part_end, length)
        wanted = _is_inner(source_start, begin, first, after, rows + 1 < part_end[part])
        wanted |= self._loses_context(text, start[part], at, stop)
        return self._strings(text, rows[wanted], at[wanted], stop[wanted])

    def _loses_context(
        self, data: NDArray[np.uint8], begin: NDArray[np.int64], at: NDArray[np.int64], stop: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Which tokens, data[at:stop] in texts from `begin` on, may differ from what their source alone becomes.

        So it is where extra blanks are left out that belong to what a codepoint became (of U+309B behind a blank U+3099
        stays), where a token has the blank that is put around texts, and where U+FFFD stands for an invalid byte, to
        which no rule applies. Some others may be among them.
        """
        heads = self._behind_blanks
        may_differ = np.zeros(len(at), np.bool_)
        if heads is not None:
            mark = MARK.encode()
            before, second = data[np.maximum(at - 1, 0)], data[np.minimum(at + 1, len(data) - 1)]
            head = (data[at].astype(np.uint16) << 8) | second
            # What stands for a blank, U+0020 or U+2581, ends with one of two bytes, and begins with one of two.
            may_differ |= ((at == begin) | (before == ord(" ")) | (before == mark[-1])) & np.isin(head, heads)
            blanks = np.flatnonzero((data == ord(" ")) | (data == mark[0]))
            may_differ |= np.searchsorted(blanks, stop) > np.searchsorted(blanks, at)
        if "\ufffd".encode() in data.tobytes():
            may_differ[:] = True
        return may_differ

    def _strings(
        self, data: NDArray[np.uint8], rows: NDArray[np.int64], at: NDArray[np.int64], stop: NDArray[np.int64]
    ) -> dict[int, str]:
        """The text of tokens, with U+2581 for blanks where they stand for it."""
        normalizer = self.plan.normalizer
        keeps_blanks = not self.plan.is_sentencepiece or (normalizer is not None and normalizer.keeps_blanks)
        mark = " " if keeps_blanks else MARK
        return {
            row: data[begin:end].tobytes().decode().replace(" ", mark)
            for row, begin, end in zip(rows.tolist(), at.tolist(), stop.tolist(), strict=True)
        }

    @cached_property
    def _behind_blanks(self) -> NDArray[np.uint16] | None:
        return None if self.plan.normalizer is None else self.plan.normalizer.behind_blanks()

    def _refuse_unknown(
        self,
        parts: Parts,
        text: NDArray[np.int64],
        ids: NDArray[np.int32],
        part_end: NDArray[np.int64],
        first_document: int,
    ) -> None:
        found = np.flatnonzero(ids == self._missing_unknown)
        if found.size:
            part = int(np.searchsorted(part_end, found[0], side="right"))
            document = first_document + int(parts.document[text[part]])
            is_wordpiece = isinstance(self._model, WordPieceTables)
            what = "a word that the vocabulary does not cover" if is_wordpiece else "a character that the vocabulary lacks"
            raise FormatError(
                f"text {document} holds {what}, and the model's unk_token is not in the vocabulary; add it to "
                "model.vocab, or set model.unk_token to a token that is there"
            )

    def _run_kernel(
        self,
        data: NDArray[np.uint8],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        n_bytes: int,
        out: NDArray[np.int32],
        first: int,
        part_end: NDArray[np.int64],
        word: NDArray[np.int32] = _NOTHING,
        length: NDArray[np.int32] = _NOTHING,
        has_marks: bool = False,
    ) -> int:
        """Ids of parts, `n_bytes` in all, written to `out` from `first` on; returns where they end there.

        `part_end`, and `word` and `length` where they are not empty, receive what ``encode_segments`` says. `has_marks`
        says that U+2581 is never a blank in the text, where the model takes blanks for it.
        """
        from jittok.kernels import segments
        from jittok.kernels.segments import MORE_CACHE, MORE_SCRATCH
        from jittok.kernels.split import POSITION, SEGMENT
        from jittok.kernels.word_cache import NEEDED, WRITTEN, new_word_scratch

        if not len(start):
            return first
        plan = self.plan
        model = self._model
        lattice = isinstance(model, UnigramTables)
        if isinstance(model, UnigramTables) and model.numbers[UNIGRAM_RULE] == RULE_SENTENCEPIECE:
            return self._run_unigram(model, data, start, end, out, first, part_end, word, length)
        text = data[start[0] : end[-1]]
        worker = self._acquire(text, n_bytes)
        if length.size:
            worker.scratch = worker.scratch._replace(token_lengths=self._text_lengths(has_marks))
        state = worker.chunk.state
        state[:] = 0
        state[SEGMENT] = 0
        state[POSITION] = start[0]
        state[WRITTEN] = first
        data = _frozen(data)
        encode: Callable[..., int] = segments.encode_segments
        if isinstance(model, WordPieceTables):
            encode = segments.encode_wordpiece_segments
        elif isinstance(model, PieceTables):
            encode = segments.encode_piece_segments
        elif lattice:
            encode = segments.encode_unigram_words
        while True:
            status = encode(
                plan.last_split,
                self._model,
                data,
                start,
                end,
                len(start),
                worker.chunk,
                worker.cache,
                worker.scratch,
                worker.lanes,
                out,
                part_end,
                word,
                length,
            )
            if status == MORE_SCRATCH:
                token_lengths = worker.scratch.token_lengths
                worker.scratch = new_word_scratch(int(state[NEEDED]), lattice)._replace(token_lengths=token_lengths)
            elif status == MORE_CACHE:
                self._enlarge(worker, text)
            else:
                break
        n = int(state[WRITTEN])
        # What one huge text needed serves this call only.
        if worker.scratch.symbols.size > 1 << 16:
            worker.scratch = new_word_scratch(unigram=lattice)
        self._workers.give(worker)
        return n

    def _run_unigram(
        self,
        model: UnigramTables,
        data: NDArray[np.uint8],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        out: NDArray[np.int32],
        first: int,
        part_end: NDArray[np.int64],
        word: NDArray[np.int32],
        length: NDArray[np.int32],
    ) -> int:
        """As :meth:`_run_kernel`, by SentencePiece's rule, under which a text is one pre-token."""
        from jittok.kernels.unigram import DONE, MORE_SCRATCH, STATE, new_unigram_scratch
        from jittok.kernels.unigram_cache import encode_unigram_text, new_unigram_cache, refill_unigram_cache
        from jittok.kernels.word_cache import NEEDED, WRITTEN

        # A slot for 16 bytes of text: often enough.
        bits = min(max((self._text_size >> 5).bit_length(), SMALL_CACHE_BITS), UNIGRAM_BITS)
        idle = self._lattices.take()
        if idle is None:
            scratch = new_unigram_scratch(LATTICE_BYTES, RULE_SENTENCEPIECE)
            cache = new_unigram_cache(model, bits, grows=True, numbers=self._piece_numbers)
            state = np.zeros(STATE, np.int64)
        else:
            scratch, bits, cache, state = idle
        if length.size:
            self._located += int((end - start).sum())
            if self._located > FEW_LOCATED:
                cache = cache._replace(lengths=self._piece_lengths)
        state[:] = 0
        state[WRITTEN] = first
        arguments = _frozen(data), start, end, len(start), state
        while True:
            status = encode_unigram_text(model, *arguments, scratch, cache, out, part_end, length)
            if status == DONE:
                break
            if status == MORE_SCRATCH:
                scratch = new_unigram_scratch(int(state[NEEDED]), RULE_SENTENCEPIECE)
            else:
                bits += 1
                old, cache = cache, new_unigram_cache(
                    model, bits, grows=bits < MOST_UNIGRAM_BITS, numbers=self._piece_numbers
                )
                cache = cache._replace(lengths=old.lengths)
                refill_unigram_cache(old, cache)
        n = int(state[WRITTEN])
        word[first:n] = 0
        if len(scratch.codes) > 16 * LATTICE_BYTES:
            scratch = new_unigram_scratch(LATTICE_BYTES, RULE_SENTENCEPIECE)
        self._lattices.give((scratch, bits, cache, state))
        return n

    def _find_spans(
        self,
        data: NDArray[np.uint8],
        start: NDArray[np.int64],
        origin: NDArray[np.int64],
        part_end: NDArray[np.int64],
        output: Output,
        first: int,
    ) -> None:
        """Spans of the ids of `output` from `first` on, which are those of parts of text as it was given."""
        from jittok.kernels.spans import find_spans

        ids, spans = output.ids[first : output.used], output.new_spans(first)
        find_spans(
            _frozen(data), start, origin, part_end - first, ids, self._token_lengths, 1, self._blanks, spans
        )

    @cached_property
    def _token_lengths(self) -> NDArray[np.integer[Any]]:
        """Bytes of each token, in as little memory as may be: read for each id of a text."""
        assert isinstance(self.plan.model, MergeTables)
        lengths = np.diff(self.plan.model.token_indptr)
        return lengths.astype(np.uint16 if lengths.max(initial=0) < 1 << 16 else np.int32)

    @cached_property
    def _piece_numbers(self) -> PieceNumbers:
        """What caches of words take from the tables of a unigram model."""
        from jittok.kernels.unigram_cache import piece_numbers

        assert isinstance(self.plan.model, UnigramTables)
        return piece_numbers(self.plan.model)

    @cached_property
    def _piece_lengths(self) -> NDArray[np.integer[Any]]:
        """Bytes of each piece of a unigram model."""
        from jittok.build.unigram_tables import piece_lengths

        assert isinstance(self.plan.model, UnigramTables)
        # Where lengths are asked for, the stages write U+2581, not `marks`, which has blanks for it.
        return piece_lengths(self.plan.model, marks=self.plan.marks is not None)

    def _text_lengths(self, has_marks: bool) -> NDArray[np.integer[Any]]:
        """Bytes of text of each token, 0 for the unknown one; of length 0 where they do not follow from the id."""
        if has_marks not in self._lengths:
            self._lengths[has_marks] = self._make_text_lengths(has_marks)
        return self._lengths[has_marks]

    def _make_text_lengths(self, has_marks: bool) -> NDArray[np.integer[Any]]:
        model = self.plan.model
        nothing: NDArray[np.integer[Any]] = read_only(np.zeros(0, np.uint16))
        if isinstance(model, UnigramTables):
            # By tokenizers' rule, a piece named after a byte may stand in the text, too.
            if model.numbers[UNIGRAM_BYTE_FALLBACK]:
                return nothing
            lengths = self._piece_lengths.astype(np.int32)
            unknown = int(model.numbers[UNIGRAM_UNKNOWN])
        elif isinstance(model, PieceTables):
            lengths = np.diff(model.token_indptr).astype(np.int32)
            if has_marks and model.numbers[PIECE_MARK]:
                blanks = np.concatenate([[0], np.cumsum(model.token_bytes == 0x20)])
                lengths += 2 * np.diff(blanks[model.token_indptr]).astype(np.int32)
            unknown = int(model.numbers[MERGE_UNKNOWN])
            fallback = model.fallback_token[model.fallback_token >= 0]
            if model.reachable[fallback].any():
                return nothing
            lengths[fallback] = 1
        else:
            return nothing
        if unknown >= len(lengths):
            lengths = np.concatenate([lengths, np.zeros(unknown + 1 - len(lengths), np.int32)])
        if unknown >= 0:
            lengths[unknown] = 0
        return read_only(lengths.astype(np.uint16) if lengths.max(initial=0) < 1 << 16 else lengths)

    def _text_spans(
        self,
        parts: Parts,
        indptr: NDArray[np.int64],
        text: NDArray[np.int64],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        ids: NDArray[np.int32],
        part_end: NDArray[np.int64],
        length: NDArray[np.int32],
        word_starts: NDArray[np.int64] | None,
    ) -> NDArray[np.int64]:
        """Spans of the ids of text parts. `word_starts`: where each id's pre-token begins, if ids may be missing."""
        from jittok.kernels.spans import EMPTY_BYTES, LENGTHS_BY_ID, find_source_spans, find_spans

        by_token = self._is_ranked and not len(length)
        options = (LENGTHS_BY_ID if by_token else 0) + (EMPTY_BYTES if self.plan.is_sentencepiece else 0)
        lengths = self._token_lengths if by_token else length
        spans = np.empty((len(ids), 2), np.int64)
        if parts.codepoints is None and word_starts is None:
            origins = _frozen(indptr[parts.document[text]])
            find_spans(
                _frozen(parts.data), start, origins, part_end, ids, lengths, options, self._blanks, spans
            )
            return spans
        # Rewritten text: byte ranges, then the codepoints there, then where these come from.
        sources = parts.codepoints or _own_sources(parts.data, indptr)
        places = np.empty(0, np.int64) if word_starts is None else word_starts
        sources = Sources(*map(_frozen, sources))
        data = _frozen(parts.data)
        find_source_spans(
            data, start, part_end, ids, lengths, options, _frozen(places), self._blanks, sources, spans
        )
        return spans


def _rewrite(parts: Parts, rewriter: Rewriter, indptr: NDArray[np.int64], spans: bool) -> Parts:
    """Rewrite the text parts that a rewriter may change; the others stay where they are."""
    text = np.flatnonzero(parts.token < 0)
    changed = text[rewriter.changes(parts.data, parts.start[text], parts.end[text])]
    if not changed.size:
        return parts
    if parts.codepoints is None:
        at_start = parts.start[changed] == indptr[parts.document[changed]]
    else:
        origin = 0 if parts.origins is None else parts.origins[parts.document[changed]]
        at_start = parts.codepoints.start[parts.codepoints.number[parts.start[changed]]] == origin
    # Where alignment leads through an earlier rewriting, "as it was" is not enough.
    done = rewriter.apply(
        parts.data,
        parts.start[changed],
        parts.end[changed],
        alignment=spans,
        at_start=at_start,
        may_stay=parts.codepoints is None,
    )
    if done.stays:
        return parts._replace(data=_overwritten(parts, parts.start[changed], done))
    # Of what stays as it is, bytes [base, used) are kept, before those that are new.
    others = parts.start < parts.end
    others[changed] = False
    base, used = 0, 0
    if others.any():
        base, used = int(parts.start.min()), int(parts.end.max())
    new = np.concatenate([parts.data[base:used], done.data]) if used else done.data
    start, end = parts.start - base, parts.end - base
    if not used:
        start[:] = end[:] = 0
    start[changed] = done.starts + (used - base)
    end[changed] = done.ends + (used - base)
    sources = None
    if spans:
        from jittok.kernels.spans import follow_sources, own_positions

        # Zero bytes after the text count as codepoints too.
        n = len(done.source_start) + len(done.data) - int((done.ends - done.starts).sum())
        old, kept = None, slice(0, 0)
        if used or parts.codepoints is not None or not at_start.all():
            old = parts.codepoints or _own_sources(parts.data, indptr)
            kept = slice(int(old.number[base]), int(old.number[used]))
        n_kept = kept.stop - kept.start
        nothing = np.empty(0, np.int32)
        sources = Sources(np.empty(len(new) + 1, np.int32), *(np.zeros(n_kept + n, np.int32) for _ in range(2)))
        own_positions(_frozen(new), _frozen(np.array([0, len(new)])), sources.number, nothing, nothing)
        if old is None:
            # Whole documents: positions in a segment are positions in its document.
            sources.start[: len(done.source_start)] = done.source_start
            sources.end[: len(done.source_end)] = done.source_end
        else:
            sources.start[:n_kept] = old.start[kept]
            sources.end[:n_kept] = old.end[kept]
            # Alignment counts codepoints of the segment as it was given; from there, the way leads through `old`.
            follow_sources(
                _frozen(done.codepoint_indptr),
                _frozen(old.number[parts.start[changed]]),
                _frozen(done.source_start),
                _frozen(done.source_end),
                _frozen(old.start),
                _frozen(old.end),
                sources.start[n_kept:],
                sources.end[n_kept:],
            )
    origins = parts.origins
    if done.origins is not None:
        origins = np.zeros(len(indptr) - 1, np.int64) if origins is None else origins.copy()
        at = np.flatnonzero(at_start & (done.origins != 0))
        origin = done.origins[at].astype(np.int64)
        if parts.codepoints is not None:
            first = parts.codepoints.number[parts.start[changed[at]]]
            origin = np.where(origin < 0, -1, parts.codepoints.start[first + np.maximum(origin, 0)])
        origins[parts.document[changed[at]]] = origin
    return parts._replace(data=new, start=start, end=end, codepoints=sources, origins=origins)


def _marked(parts: Parts, marks: MarkStage) -> Parts:
    """Text parts as Metaspace makes them, with U+0020 for each U+2581; nothing is known of their positions."""
    from jittok.kernels.word_marks import ROOM, mark_words

    text = np.flatnonzero(parts.token < 0)
    start, end = _frozen(parts.start[text]), _frozen(parts.end[text])
    prefixed = np.full(len(text), marks.prefix == "always")
    if marks.prefix == "first":
        # What a document begins with may be an added token, but no empty text comes before that.
        prefixed = np.diff(parts.document, prepend=-1)[text] > 0
    new = np.empty(int((end - start).sum()) + len(text) + max(ROOM, PADDING), np.uint8)
    new_start, new_end = parts.start.copy(), parts.end.copy()
    out_start, out_end = np.empty_like(start), np.empty_like(end)
    n = mark_words(_frozen(parts.data), start, end, int(marks.separates), prefixed, new, out_start, out_end)
    new[n : n + PADDING] = 0
    new_start[text], new_end[text] = out_start, out_end
    return parts._replace(data=new, start=new_start, end=new_end)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The array C-contiguous and read-only, as every kernel gets its inputs: flags are part of Numba's types."""
    array = np.ascontiguousarray(array)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def thread_count(threads: int | None) -> int:
    """How many threads to use where a caller says `threads`: None is one for each processor, in a worker process one."""
    if threads is None:
        import multiprocessing

        if multiprocessing.parent_process() is not None:
            return 1
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise ArgumentError(f"threads={threads!r}; expected a whole number of at least 1, or None")
    return int(threads)


def _with_tokens(parts: Parts, rows: NDArray[np.int64]) -> Parts:
    """Parts with the added tokens of `rows` (number among the text parts, start, end, id) cut out of the text parts."""
    from jittok.kernels.added_parts import cut_parts

    most = len(parts.token) + 2 * len(rows)
    document, start, end = (np.empty(most, np.int64) for _ in range(3))
    token = np.empty(most, np.int32)
    n = cut_parts(
        _frozen(parts.document), _frozen(parts.start), _frozen(parts.end), _frozen(parts.token), _frozen(rows),
        document, start, end, token,
    )  # fmt: skip
    return parts._replace(document=document[:n], start=start[:n], end=end[:n], token=token[:n])


def _code_ends(
    data: NDArray[np.uint8], start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which segments begin with a language code such as ``>>fr<<``, and where that ends."""
    long = np.flatnonzero(end - start >= 4)
    first = start[long]
    found, ends = [], []
    for segment in long[(data[first] == ord(">")) & (data[first + 1] == ord(">"))].tolist():
        at = data[int(start[segment]) : int(end[segment])].tobytes().find(b"<<")
        if at > 0:
            found.append(segment)
            ends.append(int(start[segment]) + at + 2)
    return np.array(found, np.int64), np.array(ends, np.int64)


def _with_codes(parts: Parts, model: MarianModel) -> Parts:
    """Text parts with the language codes that they begin with cut off, which are tokens, known or unknown."""
    text = np.flatnonzero(parts.token < 0)
    start = parts.start[text]
    found, ends = _code_ends(parts.data, start, parts.end[text])
    if not found.size:
        return parts
    codes = [parts.data[int(start[i]) : int(e)].tobytes().decode() for i, e in zip(found, ends, strict=True)]
    ids = [model.vocab.get(code, model.unk_id) for code in codes]
    return _with_tokens(parts, np.stack([found, start[found], ends, np.array(ids, np.int64)], axis=1))


def _cut(parts: Parts, stage: SplitStage) -> Parts:
    """Text parts cut at a pattern."""
    from jittok.kernels.split import split_segments

    text = np.flatnonzero(parts.token < 0)
    start, end = _frozen(parts.start[text]), _frozen(parts.end[text])
    capacity = int((end - start).sum()) + 1
    out_start, out_end, out_from = (np.empty(capacity, np.int64) for _ in range(3))
    if stage.group:
        out_start, out_end, out_from = _cut_groups(parts.data, start, end, stage)
        n = len(out_start)
    else:
        n = split_segments(
            stage.tables, stage.behavior, int(stage.invert), _frozen(parts.data), start, end, out_start, out_end, out_from
        )
    source = text[out_from[:n]]
    if len(text) == len(parts.token):
        return parts._replace(
            document=parts.document[source], start=out_start[:n], end=out_end[:n], token=np.full(n, -1, np.int32)
        )
    tokens = np.flatnonzero(parts.token >= 0)
    order = np.argsort(np.concatenate([source, tokens]), kind="stable")
    return parts._replace(
        document=np.concatenate([parts.document[source], parts.document[tokens]])[order],
        start=np.concatenate([out_start[:n], parts.start[tokens]])[order],
        end=np.concatenate([out_end[:n], parts.end[tokens]])[order],
        token=np.concatenate([np.full(n, -1, np.int32), parts.token[tokens]])[order],
    )


def _cut_groups(
    data: NDArray[np.uint8], start: NDArray[np.int64], end: NDArray[np.int64], stage: SplitStage
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Segments cut before or after each group of codepoints in runs, and which segment each piece comes from."""
    from jittok.kernels.split import MERGED_WITH_PREVIOUS, REMOVED, split_segments

    capacity = int((end - start).sum()) + 1
    runs, run_ends, of_segment = (np.empty(capacity, np.int64) for _ in range(3))
    n = split_segments(stage.tables, REMOVED, 1, _frozen(data), start, end, runs, run_ends, of_segment)
    runs, run_ends = runs[:n], run_ends[:n]
    # Every byte of a run: its place, and how many codepoints of the run begin there or behind it.
    lengths = run_ends - runs
    place = np.arange(int(lengths.sum())) + np.repeat(runs - np.cumsum(lengths) + lengths, lengths)
    begins = (data[place] & 0xC0) != 0x80
    so_far = np.concatenate([[0], np.cumsum(begins)])
    left = np.repeat(so_far[np.cumsum(lengths)], lengths) - so_far[:-1]
    cuts = place[begins & (left % stage.group == 0)]
    if stage.behavior == MERGED_WITH_PREVIOUS:
        cuts = np.concatenate([cuts[~np.isin(cuts, runs)], run_ends])
    first = np.unique(np.concatenate([start, cuts]))
    owner = np.searchsorted(start, first, side="right") - 1
    kept = (owner >= 0) & (first < end[owner])
    first, owner = first[kept], owner[kept]
    last = np.minimum(np.append(first[1:], end[-1:]), end[owner])
    return first, last, owner


def _overwritten(parts: Parts, starts: NDArray[np.int64], done: Rewritten) -> NDArray[np.uint8]:
    """The bytes of parts with rewritten segments, which are as long as before, in the places from `starts` on."""
    used, size, first = int(parts.end.max()), int(done.ends[-1]), int(starts[0])
    if first == 0 and size == used:
        return done.data
    new = np.zeros(used + PADDING, np.uint8)
    if int(starts[-1]) - first == int(done.starts[-1]):  # nothing lies between them
        new[:first] = parts.data[:first]
        new[first : first + size] = done.data[:size]
        new[first + size : used] = parts.data[first + size : used]
        return new
    new[:used] = parts.data[:used]
    new[np.arange(size) + np.repeat(starts - done.starts, done.ends - done.starts)] = done.data[:size]
    return new


def _own_sources(data: NDArray[np.uint8], indptr: NDArray[np.int64]) -> Sources:
    """Sources of text that is still as given: each codepoint comes from itself."""
    from jittok.kernels.spans import own_positions

    size = int(indptr[-1])
    sources = Sources(np.empty(size + 1, np.int32), np.empty(size, np.int32), np.empty(size, np.int32))
    n = own_positions(_frozen(data), _frozen(indptr), *sources)
    return Sources(sources.number, sources.start[:n], sources.end[:n])


def _byte_ranges(
    rows: NDArray[np.int64], start: NDArray[np.int64], part_end: NDArray[np.int64], length: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the tokens `rows` begin and end in the text, of parts that begin at `start`."""
    ends = np.cumsum(length, dtype=np.int64)
    part = np.searchsorted(part_end, rows, side="right")
    first_token = np.concatenate([[0], part_end])[part]
    stop = start[part] + ends[rows] - np.where(first_token > 0, ends[first_token - 1], 0)
    return stop - length[rows], stop


def _is_inner(
    source: NDArray[np.integer[Any]],
    begin: NDArray[np.integer[Any]],
    first: NDArray[np.integer[Any]],
    after: NDArray[np.integer[Any]],
    goes_on: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Which stretches of codepoints, from `first` to `after`, begin or end inside what one codepoint became.

    Parameters
    ----------
    source
        Where each codepoint begins that another comes from.
    begin
        The first codepoint of the stretch's text.
    goes_on
        Whether the text goes on after it.
    """
    is_inner: NDArray[np.bool_] = (first > begin) & (source[first - 1] == source[np.minimum(first, len(source) - 1)])
    is_inner |= goes_on & (source[after - 1] == source[np.minimum(after, len(source) - 1)])
    return is_inner


def _part_spans(parts: Parts, indptr: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Spans of whole parts."""
    sources = parts.codepoints
    if sources is None:
        sources = _own_sources(parts.data, indptr)
    first = sources.number[parts.start[rows]]
    last = np.maximum(sources.number[parts.end[rows]] - 1, first)
    return np.stack([sources.start[first], sources.end[last]], axis=1)


def _pre_tokens(
    parts: Parts, split: SplitTables, start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where every pre-token of text parts begins, and the number of the first one of each part (one more at the end)."""
    from jittok.kernels.split import ISOLATED, split_segments

    capacity = int((end - start).sum()) + 1
    out_start, out_end, out_from = (np.empty(capacity, np.int64) for _ in range(3))
    n = split_segments(split, ISOLATED, 0, _frozen(parts.data), start, end, out_start, out_end, out_from)
    return out_start[:n], np.searchsorted(out_from[:n], np.arange(len(start) + 1))


def _document_words(
    word: NDArray[np.int32], parts: Parts, counts: NDArray[np.int64], words: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Number pre-tokens through each document, from the `word` numbers inside each part.

    `counts` and `words` are the ids and the pre-tokens of each part, `word` is for each id.
    """
    before = np.cumsum(words) - words
    first_part = np.searchsorted(parts.document, parts.document, side="left")
    numbers: NDArray[np.int64] = word + np.repeat(before - before[first_part], counts)
    return numbers.astype(np.int32)

"""Training of unigram models, exactly as SentencePiece does it (Kudo 2018, "Subword regularization").

:func:`seed_state` finds the seed pieces and all places where they occur; :class:`_State` is what is left after any number
of rounds, and all that a checkpoint has to hold. A round is some iterations of expectation and maximisation, and a
pruning.
"""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from jittok.errors import ArgumentError
from jittok.tables import read_only
from jittok.training.sentencepiece_corpus import SentencePieceCorpus
from jittok.training.sentencepiece_options import BLANK, BOUNDARY, OUTSIDE, SentencePieceOptions

EStep = Literal["exact", "linear"]
T = TypeVar("T")
U = TypeVar("U")

#: Edges that one call of a kernel goes through, at most by a word more: Ctrl-C acts between calls.
SLICE_EDGES = 1 << 21
#: Pieces, and suffixes, that one call of a kernel goes through.
SLICE_PIECES = 1 << 15
SLICE_SUFFIXES = 1 << 20
#: The exact way has as many groups as the reference has threads; the linear one always so many.
LINEAR_GROUPS = 16
#: In :class:`Followers`: what follows is of the next sentence; there is none.
NEXT_SENTENCE, NO_SENTENCE = 256, 512


class Followers(NamedTuple):
    """What comes after words: seed pieces must be followed by at least two different bytes.

    All arrays are of one length; every word is there at least once, and no pair of word and follower twice.
    """

    word: NDArray[np.int64]  # number of the word
    follow: NDArray[np.int64]  # first byte of the next character, plus NEXT_SENTENCE if that is the next sentence's first
    count: NDArray[np.int64]  # how often


@dataclass(frozen=True)
class _State:
    """All that is needed to go on with training.

    Attributes
    ----------
    round, iteration
        How many rounds are done, and how many iterations of this one.
    strings, indptr
        uint32[m], int64[n + 1]: all seed pieces.
    seeds
        int64[pieces]: which of these are left, in the order that the reference has them.
    scores
        float32[pieces], their scores.
    places, lengths
        int32[pieces]: a place where each occurs, and its characters.
    lattices
        All words; see :class:`jittok.kernels.train_unigram.Lattices`.
    groups
        int64[groups + 1]: where the words of each group begin.
    shift
        Bits of an edge that are its length.
    """

    round: int
    iteration: int
    strings: NDArray[np.uint32]
    indptr: NDArray[np.int64]
    seeds: NDArray[np.int64]
    scores: NDArray[np.float32]
    places: NDArray[np.int32]
    lengths: NDArray[np.int32]
    lattices: Any
    groups: NDArray[np.int64]
    shift: int

    def pieces(self) -> list[str]:
        """The strings of the pieces that are left."""
        text = self.strings.tobytes()
        bounds = (4 * self.indptr).tolist()
        return [text[bounds[seed] : bounds[seed + 1]].decode("utf-32-le") for seed in self.seeds.tolist()]


# ------------------------------------------------------------------------------------------------------ seed pieces


def _lead_byte(codepoints: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first byte of the UTF-8 of each codepoint."""
    return np.select(
        [codepoints < 0x80, codepoints < 0x800, codepoints < 0x10000],
        [codepoints, 0xC0 | codepoints >> 6, 0xE0 | codepoints >> 12],
        0xF0 | codepoints >> 18,
    )


def _utf8_length(codepoints: NDArray[np.int64]) -> NDArray[np.int64]:
    return 1 + (codepoints >= 0x80).astype(np.int64) + (codepoints >= 0x800) + (codepoints >= 0x10000)


def _letters(corpus: SentencePieceCorpus, options: SentencePieceOptions) -> tuple[Any, NDArray[np.int32], NDArray[np.int64]]:
    """What is known of each symbol, the symbol of each codepoint, and the symbol that stands for each follower.

    Symbols are in the order of first bytes, those that stand for followers before all characters with that byte.
    """
    from jittok.kernels import train_unigram as kernels
    from jittok.unicode.sentencepiece_scripts import script_numbers

    characters = np.flatnonzero(np.bincount(corpus.codepoints, minlength=0x110000)).astype(np.int64)
    leads = _lead_byte(characters)
    # As numbers that sort as wanted: the first byte, 0 for its follower, then characters by codepoint.
    keys = np.sort(np.concatenate((np.arange(257) << 32, leads << 32 | (characters + 1))))
    n = kernels.FIRST_LETTER + len(keys)
    codepoint = (keys & 0xFFFFFFFF) - 1
    is_character = codepoint >= 0
    symbols = np.arange(kernels.FIRST_LETTER, n)
    lead = np.zeros(n, np.int32)
    lead[symbols] = keys >> 32
    n_bytes = np.zeros(n, np.int32)
    n_bytes[symbols] = _utf8_length(codepoint)
    script = np.zeros(n, np.uint8)
    script[symbols[is_character]] = _scripts(script_numbers(codepoint[is_character]))
    flags = np.full(n, kernels.IS_OUTSIDE, np.uint8)
    digits = ((codepoint >= 0x30) & (codepoint <= 0x39)) | ((codepoint >= 0xFF10) & (codepoint <= 0xFF19))
    outside = ~is_character | np.isin(codepoint, [0, 0x20, ord(BOUNDARY), ord(OUTSIDE)])
    flags[symbols] = (
        outside * kernels.IS_OUTSIDE | (codepoint == ord(BLANK)) * kernels.IS_BLANK | digits * kernels.IS_DIGIT
    )
    if not options.split_by_number:
        script[symbols[digits]] = kernels.ANY_SCRIPT
    symbol_of = np.zeros(0x110000, np.int32)
    symbol_of[codepoint[is_character]] = symbols[is_character]
    piece = np.full(n, -1, np.int32)
    letters = kernels.Letters(lead, n_bytes, script, flags, piece)
    return letters, symbol_of, symbols[~is_character]


def _scripts(numbers: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Scripts as the kernels take them."""
    from jittok.kernels.train_unigram import INHERITED
    from jittok.unicode.sentencepiece_scripts import script_names

    inherited = script_names().index("Inherited")
    return np.where(numbers == inherited, np.uint8(INHERITED), numbers)


def _piece_flags(options: SentencePieceOptions) -> int:
    from jittok.kernels import train_unigram as kernels

    return (
        kernels.BY_SCRIPT * options.split_by_unicode_script
        | kernels.BY_WHITESPACE * options.split_by_whitespace
        | kernels.BLANK_SUFFIX * options.treat_whitespace_as_suffix
        | kernels.BLANKS_ONLY * options.allow_whitespace_only_pieces
        | kernels.SINGLE_DIGITS * options.split_digits
    )


def _grown(arrays: T, length: int, used: int) -> T:
    """A NamedTuple of arrays with room for `length` items, of which the first `used` are copied."""
    grown = []
    for array in arrays:  # type: ignore[attr-defined]
        wider = np.empty(length, array.dtype)
        wider[:used] = array[:used]
        grown.append(wider)
    return type(arrays)(*grown)


def _candidates(text: Any, order: Any, part_of: Any, weights: Any, letters: Any, options: SentencePieceOptions) -> Any:
    """All strings that may be seed pieces, in post-order."""
    from jittok.kernels import suffix_array as repeats_of
    from jittok.kernels import train_unigram as kernels

    n = len(text)
    most = options.max_sentencepiece_length
    size = min(SLICE_SUFFIXES, n + 1)
    repeats = repeats_of.new_repeats(size + most + 3)
    stack = np.zeros((most + 4, 3), np.int64)
    state = np.zeros(repeats_of.REPEATS_STATE, np.int64)
    candidates = kernels.Candidates(
        *(np.empty(0, dtype) for dtype in (np.int32, np.int32, np.int32, np.int32, np.uint8, np.int64))
    )
    found = 0
    flags = _piece_flags(options)
    for stop in [*range(size, n + 1, size), n + 1]:
        repeats_of.right_maximal_repeats(text, order, part_of, weights, most + 1, stop, stack, state, repeats)
        n_repeats = int(state[repeats_of.FOUND])
        if found + n_repeats > len(candidates.left):
            candidates = _grown(candidates, found + n_repeats + found // 2, found)
        found = int(
            kernels.keep_pieces(text, order, repeats, n_repeats, letters, flags, most, candidates, found)
        )
    return _grown(candidates, found, found)


def _merge_line_ends(candidates: Any) -> NDArray[np.bool_]:
    """Add what was found at the ends of lines to what it is a part of; returns which candidates are left.

    "x" and "x at the end of a line" are both repeats if the lines after that begin with different bytes, and the reference
    adds their counts.
    """
    left = np.ones(len(candidates.left), np.bool_)
    ends = np.flatnonzero(candidates.at_line_end)
    if len(ends) == 0:
        return left
    keys = candidates.left.astype(np.int64) << 32 | candidates.length
    others = np.flatnonzero(candidates.at_line_end == 0)
    others = others[np.argsort(keys[others])]
    if len(others) == 0:
        return left
    at = np.minimum(np.searchsorted(keys[others], keys[ends]), len(others) - 1)
    same = keys[others[at]] == keys[ends]
    candidates.weight[others[at[same]]] += candidates.weight[ends[same]]
    left[ends[same]] = False
    return left


def _seed_size(options: SentencePieceOptions) -> int:
    return options.seed_sentencepiece_size or max(100_000, 8 * options.vocab_size)


def _physical_order(n_words: int, groups: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Words by group, and where each group begins: word `i` is in group ``i % groups``."""
    order = np.concatenate([np.arange(group, n_words, groups) for group in range(groups)])
    sizes = [len(range(group, n_words, groups)) for group in range(groups)]
    return order, np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def seed_state(
    corpus: SentencePieceCorpus, followers: Followers, options: SentencePieceOptions, groups: int
) -> _State:
    """Find the seed pieces, and where they occur in the words.

    Parameters
    ----------
    corpus
        The words.
    followers
        What comes after them.
    options
        What may be a piece, and how many there may be.
    groups
        How many groups the words are in.

    Returns
    -------
    _State
        That before the first round.
    """
    from jittok.kernels import train_unigram as kernels
    from jittok.kernels.suffix_array import suffix_array

    letters, symbol_of, follow_symbols = _letters(corpus, options)
    n_words = len(corpus.counts)
    order_of_words, group_starts = _physical_order(n_words, groups)
    # The first part of each word is where its edges are; further parts only tell what else follows it.
    by_word = np.argsort(followers.word, kind="stable")
    words = followers.word[by_word]
    is_first = np.ones(len(words), np.bool_)
    is_first[1:] = words[1:] != words[:-1]
    firsts = by_word[is_first]
    assert len(firsts) == n_words, "every word has a follower"
    parts = np.concatenate((firsts[order_of_words], by_word[~is_first]))
    follow = followers.follow[parts]
    part_word = followers.word[parts].astype(np.int32)
    symbols = follow_symbols[np.where(follow == NO_SENTENCE, 256, follow & 0xFF)]
    part_follow = (symbols | (follow >= NEXT_SENTENCE).astype(np.int64) << 24).astype(np.int32)
    word_lengths = np.diff(corpus.indptr)
    size = int(word_lengths[part_word].sum()) + 2 * len(parts) + int((follow >= NEXT_SENTENCE).sum()) + 1
    if size >= 1 << 31:
        raise ArgumentError(
            f"texts: {size:,} different characters are more than 2**31; train on a sample of the texts"
        )
    text, part_of, begin = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(len(parts), np.int32)
    kernels.write_parts(corpus.codepoints, corpus.indptr, symbol_of, part_word, part_follow, text, part_of, begin)
    weights = np.append(followers.count[parts], 0)
    order = suffix_array(text, len(letters.lead))
    candidates = _candidates(text, order, part_of, weights, letters, options)
    del part_of
    # Letters come first, by count and then by their UTF-8.
    letter_codes, letter_counts = _letter_pieces(corpus)
    n_letters = len(letter_codes)
    letters.piece[symbol_of[letter_codes]] = np.arange(n_letters)
    chosen = np.flatnonzero(_merge_line_ends(candidates))
    seed_scores = candidates.weight.astype(np.float32) * candidates.length.astype(np.float32)
    ranking = np.lexsort((candidates.left[chosen], -candidates.n_bytes[chosen], -seed_scores[chosen]))
    chosen = chosen[ranking[: _seed_size(options)]]
    piece = np.full(len(candidates.left), -1, np.int32)
    piece[chosen] = np.arange(n_letters, n_letters + len(chosen))
    scores = np.empty(n_letters + len(chosen), np.float32)
    raw = np.concatenate((letter_counts.astype(np.float32), seed_scores[chosen]))
    kernels.to_log_probabilities(raw, scores)
    del raw, seed_scores, ranking
    limit = int(begin[n_words]) if len(parts) > n_words else size - 1
    parent, occurrence = np.empty(len(piece), np.int32), np.empty(len(piece), np.int32)
    lowest = np.empty(size, np.int32)
    stack = np.empty(options.max_sentencepiece_length + 4, np.int64)
    kernels.place_pieces(order, candidates, piece, limit, stack, parent, occurrence, lowest)
    del order
    word_begin = begin[:n_words].copy()
    physical_lengths = word_lengths[order_of_words].astype(np.int32)
    starts = np.empty(limit + 1, np.int64)
    n_edges = int(kernels.count_edges(word_begin, physical_lengths, lowest, parent, starts))
    shift = max(options.max_sentencepiece_length.bit_length(), 1)
    if len(scores) + 1 >= 1 << (32 - shift):
        raise ArgumentError(
            f"seed_sentencepiece_size: {len(scores):,} seed pieces of up to {options.max_sentencepiece_length} characters "
            "are more than there is room for; give a smaller one"
        )
    lattices = kernels.Lattices(
        word_begin, physical_lengths, corpus.counts[order_of_words], starts, np.empty(n_edges, np.uint32)
    )
    kernels.write_edges(
        text, lattices, lowest, parent, candidates.length, piece, letters.piece, len(scores), shift
    )
    places = np.zeros(len(scores), np.int32)
    places[n_letters:] = occurrence[chosen]
    lengths = np.ones(len(scores), np.int32)
    lengths[n_letters:] = candidates.length[chosen]
    strings, indptr = _strings(text, symbol_of, places, lengths, letter_codes)
    return _State(
        0, 0, strings, indptr, np.arange(len(scores)), scores, places, lengths, lattices, group_starts, shift
    )


def _letter_pieces(corpus: SentencePieceCorpus) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All characters that are pieces, and how often they occur in the words, the most frequent first."""
    is_there = corpus.letter_counts > 0
    codes, counts = corpus.letters[is_there].astype(np.int64), corpus.letter_counts[is_there]
    order = np.lexsort((codes, -counts))
    return codes[order], counts[order]


def _strings(
    text: NDArray[np.int32],
    symbol_of: NDArray[np.int32],
    places: NDArray[np.int32],
    lengths: NDArray[np.int32],
    letter_codes: NDArray[np.int64],
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The codepoints of all pieces."""
    indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    n_letters = len(letter_codes)
    at = np.repeat(places - indptr[:-1], lengths) + np.arange(indptr[-1])
    codepoint_of = np.zeros(int(symbol_of.max(initial=0)) + 1, np.uint32)
    known = np.flatnonzero(symbol_of)
    codepoint_of[symbol_of[known]] = known
    strings = np.empty(int(indptr[-1]), np.uint32)
    strings[:n_letters] = letter_codes
    strings[n_letters:] = codepoint_of[text[at[n_letters:]]]
    return strings, indptr


# ---------------------------------------------------------------------------------------------------------- rounds


class _Workers:
    """Threads that do tasks in order; the results come in order too."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.is_stopped = threading.Event()

    def map(self, run: Callable[[U], T], tasks: list[U]) -> Iterator[T]:
        """Yield the result of each task; at most one more than there are threads is begun ahead of what is taken."""
        if self.threads == 1 or len(tasks) < 2:
            yield from map(run, tasks)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(self.threads, thread_name_prefix="jittok") as pool:
            pending: deque[Any] = deque()
            try:
                for task in tasks:
                    pending.append(pool.submit(run, task))
                    if len(pending) > self.threads:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                if pending:  # an interruption: let those that run end at their next slice
                    self.is_stopped.set()
                    for future in pending:
                        future.cancel()


class _Trainer:
    """Goes from one state to the next."""

    def __init__(self, options: SentencePieceOptions, e_step: EStep, threads: int, state: _State) -> None:
        from jittok.kernels import train_unigram as kernels

        self.kernels = kernels
        self.options = options
        self.e_step = e_step
        self.state = state
        self.objective = math.nan
        self.workers = _Workers(threads)
        self._local = threading.local()
        lattices = state.lattices
        self._longest = int(lattices.length.max(initial=1))
        ends = lattices.starts[lattices.begin + lattices.length.astype(np.int64)]
        self._edges = np.concatenate(([0], np.cumsum(ends - lattices.starts[lattices.begin])))
        self._most_edges = int(np.diff(self._edges).max(initial=1))

    def _scratch(self) -> tuple[Any, Any]:
        """Scratch arrays of this thread."""
        if not hasattr(self._local, "scratch"):
            self._local.scratch = self.kernels.new_scratch(self._longest, self._most_edges)
            self._local.search = self.kernels.new_search()
        return self._local.scratch, self._local.search

    def _slices(self, group: int) -> Iterator[tuple[int, int]]:
        """The words of a group, in slices of about :data:`SLICE_EDGES`."""
        first, last = self.state.groups[group : group + 2].tolist()
        while first < last and not self.workers.is_stopped.is_set():
            stop = int(np.searchsorted(self._edges, self._edges[first] + SLICE_EDGES, side="right"))
            stop = min(max(stop, first + 1), last)
            yield first, stop
            first = stop

    def _sums(self, run: Callable[[int, int, Any, NDArray[Any]], Any], dtype: Any) -> NDArray[Any]:
        """What `run` adds up over the words of each group, the groups' sums added in order."""
        n = len(self.state.seeds)
        free: deque[NDArray[Any]] = deque()

        def work(group: int) -> NDArray[Any]:
            try:
                sums = free.pop()
                sums[:] = 0
            except IndexError:
                sums = np.zeros(n, dtype)
            scratch, _ = self._scratch()
            for first, last in self._slices(group):
                run(first, last, scratch, sums)
            return sums

        total: NDArray[Any] | None = None
        for sums in self.workers.map(work, list(range(len(self.state.groups) - 1))):
            if total is None:
                total = sums
            else:
                total += sums
                free.append(sums)
        assert total is not None
        return total

    def _scores(self) -> NDArray[np.float32]:
        """Scores, and that of unknown characters behind them."""
        scores = self.state.scores
        return read_only(np.append(scores, scores.min() - np.float32(10)))

    def iterate(self) -> None:
        """One step of expectation and maximisation."""
        kernels, state = self.kernels, self.state
        objectives: list[Any] = []
        scores = self._scores()
        if self.e_step == "exact":
            tables = kernels.functions()

            def run(first: int, last: int, scratch: Any, sums: NDArray[Any]) -> None:
                objectives.append(np.zeros(1))
                kernels.expect(state.lattices, first, last, scores, state.shift, tables, scratch, sums, objectives[-1])

            expected = self._sums(run, np.float32)
        else:
            probabilities = read_only(np.exp(scores.astype(np.float64)))
            longest = self.options.max_sentencepiece_length

            def run(first: int, last: int, scratch: Any, sums: NDArray[Any]) -> None:
                objectives.append(np.zeros(1))
                kernels.expect_linear(
                    state.lattices, first, last, probabilities, state.shift, longest, scratch, sums, objectives[-1]
                )

            expected = self._sums(run, np.float64).astype(np.float32)
        self.objective = -sum(float(value[0]) for value in objectives) / max(int(state.lattices.counts.sum()), 1)
        kept, new_scores = np.empty(len(expected), np.int64), np.empty(len(expected), np.float32)
        n = int(kernels.maximize(expected, kept, new_scores))
        self._keep(kept[:n], new_scores[:n].copy())
        self.state = replace(self.state, iteration=state.iteration + 1)

    def _keep(self, kept: NDArray[np.int64], scores: NDArray[np.float32]) -> None:
        """Give up all pieces but some, which get this order and these scores."""
        state = self.state
        new_piece = np.full(len(state.seeds) + 1, -1, np.int32)
        new_piece[kept] = np.arange(len(kept), dtype=np.int32)
        new_piece[-1] = len(kept)

        def work(group: int) -> int:
            first, last = state.groups[group : group + 2].tolist()
            return int(self.kernels.drop_edges(state.lattices, first, last, new_piece, state.shift))

        deque(self.workers.map(work, list(range(len(state.groups) - 1))), maxlen=0)
        self.state = replace(
            state, seeds=state.seeds[kept], scores=scores, places=state.places[kept], lengths=state.lengths[kept]
        )

    def prune(self) -> None:
        """Give up the pieces that are missed least."""
        kernels, state = self.kernels, self.state
        scores = self._scores()

        def run(first: int, last: int, scratch: Any, sums: NDArray[Any]) -> None:
            kernels.count_best(state.lattices, first, last, scores, state.shift, scratch, sums)

        counts = self._sums(run, np.float32)
        # As the reference adds them up: in order, in float64.
        total = np.array([np.add.accumulate(counts, dtype=np.float64)[-1]], np.float32)
        n = len(counts)
        action, loss = np.empty(n, np.uint8), np.empty(n, np.float32)

        def lose(first: int) -> None:
            if self.workers.is_stopped.is_set():
                return
            scratch, search = self._scratch()
            kernels.lose(
                state.lattices, first, min(first + SLICE_PIECES, n), scores, state.shift, state.places, state.lengths,
                counts, total, scratch, search, action, loss,
            )  # fmt: skip

        deque(self.workers.map(lose, list(range(0, n, SLICE_PIECES))), maxlen=0)
        kept = np.flatnonzero(action == kernels.KEEP)
        candidates = np.flatnonzero(action == kernels.CANDIDATE)
        candidates = candidates[np.argsort(-loss[candidates], kind="stable")]
        size = max(self.desired, int(np.float32(self.options.shrinking_factor) * np.float32(n)))
        if len(kept) <= size:  # else the reference never meets its limit
            candidates = candidates[: size - len(kept)]
        kept = np.concatenate((kept, candidates))
        self._keep(kept, state.scores[kept])
        self.state = replace(self.state, round=state.round + 1, iteration=0)

    @property
    def desired(self) -> int:
        """How many pieces the rounds end with: some more than wanted."""
        return int(self.options.vocab_size * 1.1)

    def is_done(self) -> bool:
        """Whether there are few enough pieces."""
        return self.state.round > 0 and self.state.iteration == 0 and len(self.state.seeds) <= self.desired

    def advance(self) -> None:
        """The next iteration, and the pruning if that was the last one of a round."""
        self.iterate()
        if self.state.iteration == self.options.num_sub_iterations:
            self.prune()

    def finish(self, corpus_letters: list[tuple[str, int]]) -> list[tuple[str, float]]:
        """The pieces of the model, in order, with scores.

        Parameters
        ----------
        corpus_letters
            The alphabet and its counts, the most frequent first.
        """
        state = self.state
        scratch, _ = self._scratch()
        unreachable = np.empty(len(state.seeds), np.uint8)
        self.kernels.find_unreachable(
            state.lattices, self._scores(), state.shift, state.places, state.lengths, scratch, unreachable
        )
        kept = np.flatnonzero(unreachable == 0)
        pieces = state.pieces()
        found = [(pieces[k], state.scores[k]) for k in kept.tolist()]
        least = state.scores[kept].min(initial=np.float32(np.finfo(np.float32).max))
        scores = dict(found)
        chosen: dict[str, np.float32] = {}
        penalty = np.float32(0)
        for letter, _ in corpus_letters:
            if letter in scores:
                chosen[letter] = scores[letter]
            else:
                chosen[letter] = np.float32(least + penalty)
                penalty = np.float32(penalty + np.float32(0.0001))
        room = self.options.vocab_size - len(self.options.meta_pieces())
        by_score = sorted(found, key=_by_score)
        for piece, score in by_score:
            if len(chosen) == room:
                break
            chosen.setdefault(piece, score)
        return [(piece, float(score)) for piece, score in sorted(chosen.items(), key=_by_score)]


def _by_score(item: tuple[str, np.float32]) -> tuple[float, bytes]:
    return -float(item[1]), item[0].encode()

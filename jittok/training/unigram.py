"""Training of unigram models, exactly as SentencePiece does it (Kudo 2018, "Subword regularization").

:func:`seed_state` finds the seed pieces and all places where they occur; :class:`_State` is what is left after any number
of rounds, and all that a checkpoint has to hold. A round is some iterations of expectation and maximisation, and a
pruning.
"""

from __future__ import annotations

import bisect
import math
import os
import re
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import compress, islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from jittok.encodings import whole_number
from jittok.engine import thread_count
from jittok.errors import ArgumentError, FormatError, MissingFileError, TextWarning, TrainingWarning
from jittok.tables import read_only
from jittok.training.followers import NEXT_SENTENCE, NO_SENTENCE, Followers, load_followed
from jittok.training.progress import Checkpoint, Progress, check_checkpoint, check_no_words, check_unreachable, warn_caller
from jittok.training.sentencepiece_corpus import SentencePieceCorpus
from jittok.training.sentencepiece_options import (
    BLANK,
    BOUNDARY,
    MOST_THREADS,
    OUTSIDE,
    SentencePieceOptions,
    checkpoint_settings,
    model_spec,
    sentencepiece_options,
)
from jittok.training.workers import Workers, run_aside

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

EStep = Literal["exact", "linear"]
T = TypeVar("T")

#: Edges that one call of a kernel goes through, at most by a word more: Ctrl-C acts between calls.
SLICE_EDGES = 1 << 19
#: Pieces, and suffixes, that one call of a kernel goes through.
SLICE_PIECES = 1 << 14
SLICE_SUFFIXES = 1 << 18
#: Words whose edges one call of a kernel writes.
SLICE_WORDS = 1 << 14
#: The exact way has as many groups as the reference has threads; the linear one always so many.
LINEAR_GROUPS = 16
#: Lines of a file of seeds that are checked together.
SEEDS_AT_ONCE = 1 << 16
CHECKPOINT_KIND = "unigram training"
CHECKPOINT_SECONDS = 60.0
Unreachable = Literal["error", "warn", "stop"]


@dataclass(frozen=True)
class _State:
    """All that is needed to go on with training.

    Attributes
    ----------
    round, iteration
        How many rounds are done, and how many iterations of this one.
    letters
        uint32[k], the alphabet, the most frequent first.
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
    letters: NDArray[np.uint32]
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
        lengths = np.diff(self.indptr)[self.seeds]
        ends = np.cumsum(lengths)
        places = np.repeat(self.indptr[self.seeds] - ends + lengths, lengths) + np.arange(int(lengths.sum()))
        text = self.strings[places].tobytes().decode("utf-32-le")
        bounds = [0, *ends.tolist()]
        return [text[begin:end] for begin, end in zip(bounds, bounds[1:], strict=False)]


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


def _letters(
    codepoints: NDArray[np.uint32], options: SentencePieceOptions
) -> tuple[Any, NDArray[np.int32], NDArray[np.int64]]:
    """What is known of each symbol of a text, the symbol of each codepoint, and the symbol that stands for each follower.

    Symbols are in the order of first bytes, those that stand for followers before all characters with that byte.
    """
    from jittok.kernels import train_unigram as kernels
    from jittok.unicode.sentencepiece_scripts import script_numbers

    characters = np.flatnonzero(np.bincount(codepoints, minlength=0x110000)).astype(np.int64)
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
    flags[symbols] = outside * kernels.IS_OUTSIDE | (codepoint == ord(BLANK)) * kernels.IS_BLANK | digits * kernels.IS_DIGIT
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


def _candidates(parts: Parts, order: NDArray[np.int32], options: SentencePieceOptions, workers: Workers) -> Any:
    """All strings that may be seed pieces, in post-order."""
    from jittok.kernels import suffix_array as repeats_of
    from jittok.kernels import train_unigram as kernels

    text, letters, weights = parts.text, parts.letters, parts.weights
    part_of = np.repeat(np.arange(len(weights), dtype=np.int32), np.diff(parts.part_ends, prepend=0, append=len(text)))
    most = options.max_sentencepiece_length
    flags = _piece_flags(options)

    def find(bounds: tuple[int, int]) -> Any:
        """Those of some ranks; no repeat reaches across where another first symbol begins."""
        begin, end = bounds
        stack = np.zeros((most + 4, 3), np.int64)
        state = np.zeros(repeats_of.REPEATS_STATE, np.int64)
        state[repeats_of.RANK] = begin
        size = min(SLICE_SUFFIXES, end - begin + 1)
        repeats = repeats_of.new_repeats(size + most + 3)
        candidates = kernels.new_candidates()
        found = 0
        for stop in [*range(begin + size, end + 1, size), end + 1]:
            if workers.is_stopped.is_set():
                break
            repeats_of.right_maximal_repeats(text, order, part_of, weights, most + 1, stop, stack, state, repeats)
            n_repeats = int(state[repeats_of.FOUND])
            if found + n_repeats > len(candidates.left):
                candidates = _grown(candidates, found + n_repeats + found // 2, found)
            found = int(kernels.keep_pieces(text, order, repeats, n_repeats, letters, flags, most, candidates, found))
        return _grown(candidates, found, found)

    some = list(workers.map(find, _rank_ranges(text, order)))
    kind, columns = type(some[0]), [list(arrays) for arrays in zip(*some, strict=True)]
    del some  # so that no more than a column is there twice
    joined = []
    while columns:
        joined.append(np.concatenate(columns.pop(0)))
    return kind(*joined)


def _rank_ranges(text: NDArray[np.int32], order: NDArray[np.int32]) -> list[tuple[int, int]]:
    """Cut the ranks of a suffix array into parts of about :data:`SLICE_SUFFIXES` where other first symbols begin."""

    def first_symbol(rank: int) -> int:
        return int(text[order[rank]])

    ranges, begin, n = [], 0, len(order)
    while begin < n:
        least = min(begin + SLICE_SUFFIXES, n)
        end = bisect.bisect_right(range(n), first_symbol(least - 1), least, key=first_symbol)
        ranges.append((begin, end))
        begin = end
    return ranges


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


@dataclass(frozen=True)
class Parts:
    """The text that seed pieces are found in: words, each with what follows it.

    Attributes
    ----------
    text, n_places
        int32[n], symbols; the first `n_places` of them are one part of each word, further parts only tell what else
        follows it.
    begin, length, counts
        int32[words], int32[words], int64[words]: where each word begins, its characters, and how often it occurs.
    groups
        int64[groups + 1]: where the words of each group begin.
    part_ends, weights
        int64[parts], int64[parts + 1]: where each part ends, and how often it occurs.
    letters, symbol_of
        What is known of each symbol; int32[0x110000], the symbol of each codepoint.
    alphabet
        uint32[k], codepoints, the most frequent first.
    pieces, piece_counts
        int64[j], int64[j]: those letters that occur, in the order that the reference has them, and how often.
    """

    text: NDArray[np.int32]
    n_places: int
    begin: NDArray[np.int32]
    length: NDArray[np.int32]
    counts: NDArray[np.int64]
    groups: NDArray[np.int64]
    part_ends: NDArray[np.int64]
    weights: NDArray[np.int64]
    letters: Any
    symbol_of: NDArray[np.int32]
    alphabet: NDArray[np.uint32]
    pieces: NDArray[np.int64]
    piece_counts: NDArray[np.int64]


def lay_out(corpus: SentencePieceCorpus, followers: Followers, options: SentencePieceOptions, groups: int) -> Parts:
    """Write words and what follows them as one text.

    Parameters
    ----------
    corpus
        The words.
    followers
        What comes after them.
    options
        What may be a piece.
    groups
        How many groups the words are in.

    Returns
    -------
    Parts
    """
    from jittok.kernels import train_unigram as kernels

    letters, symbol_of, follow_symbols = _letters(corpus.codepoints, options)
    n_words = len(corpus.counts)
    order, group_starts = _physical_order(n_words, groups)
    by_word = np.argsort(followers.word, kind="stable")
    words = followers.word[by_word]
    is_first = np.ones(len(words), np.bool_)
    is_first[1:] = words[1:] != words[:-1]
    firsts = by_word[is_first]
    assert len(firsts) == n_words, "every word has a follower"
    parts = np.concatenate((firsts[order], by_word[~is_first]))
    follow = followers.follow[parts]
    part_word = followers.word[parts].astype(np.int32)
    symbols = follow_symbols[np.where(follow == NO_SENTENCE, 256, follow & 0xFF)]
    part_follow = (symbols | (follow >= NEXT_SENTENCE).astype(np.int64) << 24).astype(np.int32)
    lengths = np.diff(corpus.indptr)
    ends = np.cumsum(lengths[part_word] + 2 + (follow >= NEXT_SENTENCE))
    size = int(ends[-1]) + 1
    if size >= 1 << 31:
        raise ArgumentError(
            f"texts: {size:,} characters of different words are 2**31 or more; train on a sample of the texts"
        )
    text, begin = np.empty(size, np.int32), np.empty(len(parts), np.int32)
    kernels.write_parts(corpus.codepoints, corpus.indptr, symbol_of, part_word, part_follow, text, begin)
    # Letters come first, by count and then by their UTF-8.
    is_there = corpus.letter_counts > 0
    codes, counts = corpus.letters[is_there].astype(np.int64), corpus.letter_counts[is_there]
    by_count = np.lexsort((codes, -counts))
    return Parts(
        text=text,
        n_places=int(begin[n_words]) if len(parts) > n_words else size - 1,
        begin=begin[:n_words].copy(),
        length=lengths[order].astype(np.int32),
        counts=corpus.counts[order],
        groups=group_starts,
        part_ends=ends,
        weights=np.append(followers.times[parts], 0),
        letters=letters,
        symbol_of=symbol_of,
        alphabet=corpus.letters,
        pieces=codes[by_count],
        piece_counts=counts[by_count],
    )


class _Seeds(NamedTuple):
    """Seed pieces in the order that the reference has them.

    Attributes
    ----------
    candidates, piece
        Strings that occur, in post-order of the suffix array, and which piece each is, -1 for none.
    letters
        int64[letters]: the pieces of the letters.
    raw
        float32[pieces]: what the reference takes the logarithm of.
    strings, indptr
        uint32[m], int64[pieces + 1]: their codepoints; None where all but the letters are candidates.
    """

    candidates: Any
    piece: NDArray[np.int32]
    letters: NDArray[np.int64]
    raw: NDArray[np.float32]
    strings: NDArray[np.uint32] | None = None
    indptr: NDArray[np.int64] | None = None


def _seeds_of_text(parts: Parts, order: NDArray[np.int32], options: SentencePieceOptions, workers: Workers) -> _Seeds:
    """All letters, and the strings of the text whose count times length is largest."""
    n_letters = len(parts.pieces)
    candidates = _candidates(parts, order, options, workers)
    chosen = np.flatnonzero(_merge_line_ends(candidates))
    seed_scores = candidates.weight.astype(np.float32) * candidates.length.astype(np.float32)
    ranking = run_aside(np.lexsort, (candidates.left[chosen], -candidates.n_bytes[chosen], -seed_scores[chosen]))
    chosen = chosen[ranking[: _seed_size(options)]]
    piece = np.full(len(candidates.left), -1, np.int32)
    piece[chosen] = np.arange(n_letters, n_letters + len(chosen))
    raw = np.concatenate((parts.piece_counts.astype(np.float32), seed_scores[chosen]))
    return _Seeds(candidates, piece, np.arange(n_letters), raw)


def _seeds_of_file(parts: Parts, order: NDArray[np.int32], options: SentencePieceOptions, workers: Workers) -> _Seeds:
    """All letters, and the strings of a file; those that do not occur are among them, as in the reference."""
    from jittok.kernels import train_unigram as kernels

    letters = [chr(letter) for letter in parts.pieces.tolist()]
    scored = dict(zip(letters, parts.piece_counts.astype(np.float32).tolist(), strict=True))
    for string, count in _valid_seeds(options):
        if string in scored:
            continue
        if len(scored) >= options.seed_sentencepiece_size:
            break
        scored[string] = float(np.float32(np.uint64(count * len(string) % (1 << 64))))
    # The order of strings is that of their UTF-8.
    ranked = sorted(scored, key=lambda string: (-scored[string], string))
    strings = np.frombuffer("".join(ranked).encode("utf-32-le"), np.uint32)
    lengths = np.array([len(string) for string in ranked], np.int32)
    indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    number = {string: i for i, string in enumerate(ranked)}
    symbols = parts.symbol_of[strings]
    left, right = np.empty(len(ranked), np.int32), np.empty(len(ranked), np.int32)

    def find(first: int) -> None:
        if not workers.is_stopped.is_set():
            kernels.find_strings(
                parts.text, order, symbols, indptr, first, min(first + SLICE_PIECES, len(ranked)), left, right
            )

    deque(workers.map(find, list(range(0, len(ranked), SLICE_PIECES))), maxlen=0)
    # Characters that are not in the text have the symbol 0, which ends it.
    is_absent = np.zeros(len(ranked), np.bool_)
    is_absent[np.repeat(np.arange(len(ranked)), lengths)[symbols == 0]] = True
    found = np.flatnonzero((left <= right) & (lengths > 1) & ~is_absent)
    # Longer strings before those that they begin with.
    found = found[np.lexsort((-lengths[found], -left[found], right[found]))]
    none, weight = np.zeros(len(found), np.int32), np.zeros(len(found), np.int64)
    candidates = kernels.Candidates(left[found], right[found], lengths[found], none, none.astype(np.uint8), weight)
    raw = np.array([scored[string] for string in ranked], np.float32)
    return _Seeds(candidates, found.astype(np.int32), np.array([number[letter] for letter in letters]), raw, strings, indptr)


def _valid_seeds(options: SentencePieceOptions) -> Iterator[tuple[str, int]]:
    """The strings of the file of seeds that may be pieces, and the numbers behind them."""
    from jittok.kernels import train_unigram as kernels

    lines = _seed_lines(options.seed_sentencepieces_file)
    while some := list(islice(lines, SEEDS_AT_ONCE)):
        codepoints = np.frombuffer("".join(string for string, _ in some).encode("utf-32-le"), np.uint32)
        letters, symbol_of, _ = _letters(codepoints, options)
        indptr = np.cumsum([0, *(len(string) for string, _ in some)])
        valid = np.empty(len(some), np.uint8)
        most, flags = options.max_sentencepiece_length, _piece_flags(options)
        kernels.valid_pieces(symbol_of[codepoints], indptr, letters, flags, most, valid)
        yield from compress(some, valid.tolist())


def _seed_lines(path: str) -> Iterator[tuple[str, int]]:
    """The lines of a file of seeds: a string, a tab, and how often it occurs; further fields are not looked at."""
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                fields = line.removesuffix(b"\n").split(b"\t")
                where = f"seed_sentencepieces_file: {path}, line {number}"
                if len(fields) < 2 or re.fullmatch(rb"[ \t-\r]*[+]?[0-9]+[ \t-\r]*", fields[1]) is None:
                    raise FormatError(f"{where}: expected a piece, a tab and how often it occurs, got {line[:60]!r}")
                count = int(fields[1])
                if not 0 < count < 1 << 63:
                    raise FormatError(f"{where}: the piece occurs {count} times; expected 1 to 2**63 - 1")
                try:
                    yield fields[0].decode(), count
                except UnicodeDecodeError:
                    raise FormatError(f"{where}: the piece {fields[0][:60]!r} is not UTF-8; leave it out") from None
    except OSError as error:
        raise MissingFileError(f"seed_sentencepieces_file: cannot read {path}: {error.strerror or error}") from None


def seed_state(parts: Parts, options: SentencePieceOptions, threads: int = 1) -> _State:
    """Find the seed pieces, and where they occur in the words.

    Parameters
    ----------
    parts
        The text.
    options
        What may be a piece, and how many there may be; or the file that names them.
    threads
        At most so many threads; the state does not depend on it.

    Returns
    -------
    _State
        That before the first round.

    Raises
    ------
    MissingFileError, FormatError
        The file of seeds cannot be read, or is none.
    """
    from jittok.kernels import train_unigram as kernels
    from jittok.kernels.suffix_array import suffix_array

    workers = Workers(threads)
    text, letters = parts.text, parts.letters
    order = run_aside(suffix_array, text, len(letters.lead))
    find_seeds = _seeds_of_file if options.seed_sentencepieces_file else _seeds_of_text
    seeds = find_seeds(parts, order, options, workers)
    candidates, piece, n = seeds.candidates, seeds.piece, len(seeds.raw)
    scores = np.empty(n, np.float32)
    kernels.to_log_probabilities(seeds.raw, scores)
    letters.piece[parts.symbol_of[parts.pieces]] = seeds.letters
    shift = options.max_sentencepiece_length.bit_length()
    if n + 1 >= 1 << (32 - shift):
        raise ArgumentError(
            f"seed_sentencepiece_size: {n:,} seed pieces of up to {options.max_sentencepiece_length} characters "
            "are more than there is room for; give a smaller one"
        )
    parent, occurrence = np.empty(len(piece), np.int32), np.empty(len(piece), np.int32)
    lowest = np.empty(parts.n_places, np.int32)
    # One string may begin with all shorter ones.
    stack = np.empty(options.max_sentencepiece_length + 4, np.int64)
    run_aside(kernels.place_pieces, order, candidates, piece, stack, parent, occurrence, lowest)
    del order
    starts = np.empty(parts.n_places + 1, np.int32)
    n_edges = int(run_aside(kernels.count_edges, parts.begin, parts.length, lowest, parent, starts))
    if n_edges >= 1 << 31:
        raise ArgumentError(f"texts: seed pieces occur {n_edges:,} times, 2**31 or more; train on a sample of the texts")
    edges = np.empty(n_edges, np.uint32)
    lattices = kernels.Lattices(parts.begin, parts.length, parts.counts, starts, edges)
    _write_edges(workers, text, lattices, lowest, parent, candidates.length, piece, letters.piece, n, shift)
    del lowest, parent
    is_placed = piece >= 0
    placed = piece[is_placed]
    # Letters are where they are, and what does not occur is given up in the first iteration.
    places, lengths = np.zeros(n, np.int32), np.ones(n, np.int32)
    places[placed] = occurrence[is_placed]
    lengths[placed] = candidates.length[is_placed]
    strings, indptr = seeds.strings, seeds.indptr
    if strings is None or indptr is None:
        indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        symbols = np.empty(int(indptr[-1]), np.uint32)
        kernels.copy_strings(text, places.astype(np.int64), indptr, symbols)
        codepoint_of = np.zeros(len(letters.lead), np.uint32)
        known = np.flatnonzero(parts.symbol_of)
        codepoint_of[parts.symbol_of[known]] = known
        strings = codepoint_of[symbols]
        strings[indptr[seeds.letters]] = parts.pieces
    return _State(
        0, 0, parts.alphabet, strings, indptr, np.arange(n), scores, places, lengths, lattices, parts.groups, shift
    )


def _write_edges(workers: Workers, text: NDArray[np.int32], lattices: Any, *arguments: Any) -> None:
    """Write the edges of all words, on threads."""
    from jittok.kernels import train_unigram as kernels

    n_words = len(lattices.begin)

    def write(first: int) -> None:
        if not workers.is_stopped.is_set():
            kernels.write_edges(text, lattices, first, min(first + SLICE_WORDS, n_words), *arguments)

    deque(workers.map(write, list(range(0, n_words, SLICE_WORDS))), maxlen=0)


# ---------------------------------------------------------------------------------------------------------- rounds


def _uninterrupted(run: Callable[..., None], *arguments: Any) -> None:
    """Call `run`, and let Ctrl-C act only when it is done: a tenth of a second at most, and never by halves."""
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not is_main or not callable(before):  # no KeyboardInterrupt comes here
        run(*arguments)
        return
    caught: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda number, frame: caught.append((number, frame)))
    try:
        run(*arguments)
    finally:
        signal.signal(signal.SIGINT, before)
    if caught:
        before(*caught[0])


class _Trainer:
    """Goes from one state to the next."""

    def __init__(self, options: SentencePieceOptions, e_step: EStep, threads: int, state: _State) -> None:
        from jittok.kernels import train_unigram as kernels

        self.kernels = kernels
        self.options = options
        self.e_step = e_step
        self.state = state
        self.objective = math.nan
        self.workers = Workers(threads)
        self._local = threading.local()
        lattices = state.lattices
        self._longest = int(lattices.length.max(initial=1))
        ends = lattices.starts[lattices.begin + lattices.length.astype(np.int64)]
        self._edges = np.concatenate(([0], np.cumsum(ends - lattices.starts[lattices.begin], dtype=np.int64)))
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
        if not len(scores):
            raise ArgumentError("the texts are too few for a unigram model: no piece is expected to occur; give more text")
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
        if not np.isfinite(new_scores[:n]).all():
            raise ArgumentError(
                f"texts: the longest word has {state.lattices.length.max():,} characters, too many for sums in float32; "
                "give shorter texts, or e_step='linear'"
            )
        _uninterrupted(self._keep, kept[:n], new_scores[:n].copy(), state.round, state.iteration + 1)

    def _keep(self, kept: NDArray[np.int64], scores: NDArray[np.float32], round_: int, iteration: int) -> None:
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
            state, round=round_, iteration=iteration, seeds=state.seeds[kept], scores=scores,
            places=state.places[kept], lengths=state.lengths[kept],
        )  # fmt: skip

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
        _uninterrupted(self._keep, kept, state.scores[kept], state.round + 1, 0)

    @property
    def desired(self) -> int:
        """How many pieces the rounds end with: some more than wanted."""
        return int(self.options.vocab_size * 1.1)

    def is_done(self) -> bool:
        """Whether there are few enough pieces."""
        return self.state.round > 0 and self.state.iteration == 0 and len(self.state.seeds) <= self.desired

    def advance(self) -> None:
        """The next iteration, or the pruning that ends a round."""
        if self.state.iteration == self.options.num_sub_iterations:
            self.prune()
        else:
            self.iterate()

    def finish(self) -> list[tuple[str, float]]:
        """The pieces of the model, in order, with scores."""
        state, n = self.state, len(self.state.seeds)
        unreachable, scores = np.empty(n, np.uint8), self._scores()
        step = max(SLICE_PIECES >> 2, 1)

        def find(first: int) -> None:
            if not self.workers.is_stopped.is_set():
                scratch, _ = self._scratch()
                self.kernels.find_unreachable(
                    state.lattices, first, min(first + step, n), scores, state.shift, state.places, state.lengths,
                    scratch, unreachable,
                )  # fmt: skip

        deque(self.workers.map(find, list(range(0, n, step))), maxlen=0)
        kept = np.flatnonzero(unreachable == 0)
        pieces = state.pieces()
        found = [(pieces[k], score) for k, score in zip(kept.tolist(), state.scores[kept].tolist(), strict=True)]
        least = state.scores[kept].min(initial=np.float32(np.finfo(np.float32).max))
        score_of = dict(found)
        chosen: dict[str, float] = {}
        penalty = np.float32(0)
        for letter in map(chr, state.letters.tolist()):
            if letter in score_of:
                chosen[letter] = score_of[letter]
            else:
                chosen[letter] = float(np.float32(least + penalty))
                penalty = np.float32(penalty + np.float32(0.0001))
        room = self.options.vocab_size - len(self.options.meta_pieces())
        for piece, score in sorted(found, key=_by_score):
            if len(chosen) == room:
                break
            chosen.setdefault(piece, score)
        return sorted(chosen.items(), key=_by_score)


def _by_score(item: tuple[str, float]) -> tuple[float, str]:
    """The order of strings is that of their UTF-8."""
    return -item[1], item[0]


# ---------------------------------------------------------------------------------------------------- checkpoints


def _stored(state: _State) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """A state as JSON values and arrays."""
    fields = {name: getattr(state, name) for name in _State.__dataclass_fields__ if name != "lattices"}
    arrays = {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}
    arrays.update({f"lattices_{name}": array for name, array in state.lattices._asdict().items()})
    return {name: value for name, value in fields.items() if name not in arrays}, arrays


def _restored(values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], groups: int, where: str) -> _State:
    """The state that :func:`_stored` stated.

    Raises
    ------
    FormatError
        It contradicts itself.
    """
    from jittok.kernels.train_unigram import Lattices

    broken = FormatError(f"{where}: the checkpoint contradicts itself; train from the beginning")
    try:
        lattices = Lattices(*(np.array(arrays[f"lattices_{name}"]) for name in Lattices._fields))
        fields: dict[str, Any] = {
            name: np.array(arrays[name]) if name in arrays else int(values[name])
            for name in _State.__dataclass_fields__
            if name != "lattices"
        }
        state = _State(lattices=lattices, **fields)
        kinds: dict[str, Any] = {
            "letters": np.uint32, "strings": np.uint32, "indptr": np.int64, "seeds": np.int64, "scores": np.float32,
            "places": np.int32, "lengths": np.int32, "groups": np.int64,
        }  # fmt: skip
        of_lattices: tuple[Any, ...] = (np.int32, np.int32, np.int64, np.int32, np.uint32)
        holds = all(fields[name].dtype == kind and fields[name].ndim == 1 for name, kind in kinds.items()) and all(
            array.dtype == kind and array.ndim == 1 for array, kind in zip(list[Any](lattices), of_lattices, strict=True)
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise broken from None
    if not holds or not _is_sound(state, groups):
        raise broken
    return state


def _is_sound(state: _State, groups: int) -> bool:
    """Whether no kernel would reach beyond an array."""

    def within(array: NDArray[Any], low: int, high: int) -> bool:
        return len(array) == 0 or bool(low <= array.min() and array.max() <= high)

    lattices, n = state.lattices, len(state.seeds)
    n_words, n_places, n_seeds = len(lattices.begin), len(lattices.starts) - 1, len(state.indptr) - 1
    if n == 0 or n_seeds < 1 or n_words == 0 or not 1 <= state.shift <= 16 or state.round < 0 or state.iteration < 0:
        return False
    if not len(lattices.begin) == len(lattices.length) == len(lattices.counts):
        return False
    if not n == len(state.scores) == len(state.places) == len(state.lengths) or not np.isfinite(state.scores).all():
        return False
    if not within(lattices.length, 1, n_places) or not within(state.lengths, 1, (1 << state.shift) - 1):
        return False
    ends = lattices.begin.astype(np.int64) + lattices.length
    if not within(lattices.begin, 0, n_places) or not within(ends, 0, n_places) or (ends[:-1] >= lattices.begin[1:]).any():
        return False
    if not within(state.places, 0, n_places) or not within(state.places.astype(np.int64) + state.lengths, 0, n_places):
        return False
    if len(state.groups) != groups + 1 or state.groups[0] != 0 or state.groups[-1] != n_words:
        return False
    if (np.diff(state.groups) < 0).any() or (np.diff(state.indptr) < 1).any() or state.indptr[0] != 0:
        return False
    if state.indptr[-1] != len(state.strings) or not within(state.seeds, 0, n_seeds - 1):
        return False
    from jittok.kernels.train_unigram import check_edges

    return int(check_edges(lattices, n, state.shift)) == 0


# ---------------------------------------------------------------------------------------------------- the function


def train_unigram(
    texts: object = None,
    *,
    vocab_size: int = 8000,
    reference_threads: int = 16,
    e_step: EStep = "exact",
    counts: Any = None,
    threads: int | None = None,
    memory_limit: int | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    unreachable: Unreachable | None = None,
    **options: Any,
) -> Tokenizer:
    """Train a SentencePiece unigram model: the pieces and scores of sentencepiece 0.2.3, bit for bit.

    Parameters
    ----------
    texts
        One sentence each: the path of a file with one a line, or any iterable of texts; see
        :func:`~jittok.training.sentencepiece_corpus.count_texts`.
    vocab_size
        Pieces, meta pieces among them.
    reference_threads
        The ``num_threads`` of the reference, whose float32 sums depend on it, and so do some pieces. 16 is its default.
    e_step
        "exact"; or "linear": expectations in float64 and without logarithms, about twice as fast in all. About one
        piece in a thousand differs then, no more than between two numbers of `reference_threads`, which is not used.
    counts
        Instead of texts: see :func:`~jittok.training.sentencepiece_corpus.words_of_counts`. They do not say which words
        ended sentences, which the reference's choice of seed pieces depends on: every word that occurs twice is taken
        to have done so. The model is not exactly that of the texts then.
    threads
        How many threads to use; the result does not depend on it. None: one for each processor.
    memory_limit
        Bytes that the tables of words may take while they are counted; what does not fit goes to temporary files. The
        result does not depend on it.
    progress
        Whether to show how far it is.
    checkpoint
        A file that is written to at the end of an iteration every minute, and when training is interrupted.
    resume
        A checkpoint to go on from, instead of `texts`, to the same result. Options must be as before.
    unreachable
        What to do if there are fewer pieces than asked for: "error", or make a smaller vocabulary and "warn" or just
        "stop". None: an error, unless ``hard_vocab_limit=False``.
    **options
        Of the trainer, by the reference's names (``seed_sentencepiece_size``, ``shrinking_factor``,
        ``num_sub_iterations``, ``byte_fallback``, ``user_defined_symbols``, ``required_chars`` and so on): see
        :class:`~jittok.training.sentencepiece_options.SentencePieceOptions`. Of the texts: ``field``, ``column`` and
        ``errors`` of :func:`~jittok.training.texts.read_texts`.

    Returns
    -------
    Tokenizer
        ``save("x.model")`` writes a file for sentencepiece, ``save("tokenizer.json")`` one for tokenizers.
        The same for every number of threads; as in the reference, the order of texts matters, because what follows a
        word decides about seed pieces.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An option is wrong, nothing is left to train on, or the size cannot be reached; the message says which can.
    TextError, FormatError, MissingFileError
        The texts, counts, rules or checkpoint cannot be read.
    OutputError
        The checkpoint cannot be written.

    Warns
    -----
    TextWarning
        Texts were left out that are not just empty, or characters in them replaced.
    TrainingWarning
        The vocabulary is smaller than asked for.
    """
    from jittok.tokenizer import Tokenizer

    if e_step not in ("exact", "linear"):
        raise ArgumentError(f"e_step={e_step!r}: expected 'exact' or 'linear'")
    check_unreachable(unreachable)
    if "num_threads" in options:
        raise ArgumentError("num_threads: the reference's is reference_threads here, and jittok's own is threads")
    check_checkpoint(checkpoint)
    reading: dict[str, Any] = {name: options.pop(name) for name in ("field", "column", "errors") if name in options}
    if whole_number("reference_threads", reference_threads, 1) > MOST_THREADS:
        raise ArgumentError(f"reference_threads={reference_threads}: expected 1 to {MOST_THREADS}")
    if reference_threads != 16:
        options["num_threads"] = reference_threads
    checked = sentencepiece_options("unigram", vocab_size=vocab_size, **options)
    groups = checked.num_threads if e_step == "exact" else LINEAR_GROUPS
    n_threads = thread_count(threads)
    settings = {**checkpoint_settings(checked), "e_step": e_step}
    parts: Parts | None = None
    if resume is not None:
        check_no_words(texts, counts)
        state = _resumed(resume, settings, groups)
    else:
        reading = {
            **reading, "counts": counts, "threads": n_threads, "memory_limit": memory_limit, "progress": progress
        }  # fmt: skip
        parts = _read_parts(texts, checked, groups, reading)
        state = seed_state(parts, checked, n_threads)
    pieces = _learned(_Trainer(checked, e_step, n_threads, state), settings, checkpoint, progress)
    stops = not checked.hard_vocab_limit if unreachable is None else unreachable != "error"
    size = len(pieces) + len(checked.meta_pieces())
    if size < checked.vocab_size:
        if not stops:
            raise ArgumentError(_largest(size, checked, e_step, n_threads, parts))
        if unreachable == "warn":
            warn_caller(
                f"vocab_size={vocab_size} cannot be reached with these texts; the vocabulary has {size} pieces",
                TrainingWarning,
            )
    strings, scores = [piece for piece, _ in pieces], [score for _, score in pieces]
    return Tokenizer.deferred(model_spec(checked, strings, scores, stop=stops))


def _read_parts(texts: object, options: SentencePieceOptions, groups: int, reading: dict[str, Any]) -> Parts:
    """The text that seed pieces are found in; tells what was left out."""
    corpus, followers = load_followed(texts, options, **reading)
    if len(corpus.letters) == 0 or not (corpus.letter_counts > 0).any():
        raise ArgumentError("texts: nothing is left to train on but symbols; expected other text too")
    report = corpus.report
    if any("blanks" not in reason and reason != "empty" for reason in report.skipped) or report.replaced:
        warn_caller(report.summary(), TextWarning)
    return lay_out(corpus, followers, options, groups)


def _learned(
    trainer: _Trainer,
    settings: Mapping[str, Any],
    checkpoint: str | os.PathLike[str] | None,
    progress: bool,
) -> list[tuple[str, float]]:
    """All rounds, with a bar and checkpoints; the pieces."""
    written = time.monotonic()

    def write() -> None:
        if checkpoint is not None:
            values, arrays = _stored(trainer.state)
            Checkpoint(checkpoint, CHECKPOINT_KIND).write({"settings": dict(settings), **values}, arrays)

    with Progress(None, "iteration", "training unigram", progress) as bar:
        try:
            while not trainer.is_done():
                n = len(trainer.state.seeds)
                trainer.advance()
                bar.advance(trainer.state.iteration > 0, f"{n:,} pieces, {trainer.objective:.4f} nats a word")
                if time.monotonic() - written > CHECKPOINT_SECONDS:
                    write()
                    written = time.monotonic()
        except KeyboardInterrupt:
            write()
            raise
    return trainer.finish()


def _resumed(path: str | os.PathLike[str], settings: Mapping[str, Any], groups: int) -> _State:
    """Where a checkpoint goes on, if its settings are these."""
    values, arrays = Checkpoint(path, CHECKPOINT_KIND).read()
    stored = values.get("settings", {})
    for name, value in settings.items():
        if stored.get(name) != value:
            raise ArgumentError(
                f"{path}: the checkpoint was made with {name}={stored.get(name)!r}, not {value!r}; give the same options "
                "as before"
            )
    return _restored(values, arrays, groups, str(path))


def _largest(size: int, options: SentencePieceOptions, e_step: EStep, threads: int, parts: Parts | None) -> str:
    """The message that a size cannot be reached, with one that can: fewer pieces may lead to fewer still."""
    tried = options.vocab_size
    while parts is not None and size < tried:
        tried = size
        smaller = replace(options, vocab_size=tried)
        trainer = _Trainer(smaller, e_step, threads, seed_state(parts, smaller, threads))
        while not trainer.is_done():
            trainer.advance()
        size = len(trainer.finish()) + len(smaller.meta_pieces())
    return (
        f"vocab_size={options.vocab_size} cannot be reached with these texts; expected at most {size}. Give a smaller one "
        "or more text, or take what there is with hard_vocab_limit=False"
    )

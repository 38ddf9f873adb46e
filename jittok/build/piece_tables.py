"""The pieces of a SentencePiece model -> PieceTables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.build.hash_tables import EMPTY, fill_slots, hash_key
from jittok.build.junctions import distinct_pairs, junction_bitmap
from jittok.build.merge_tables import MOST_TOKENS, NO_MERGE, _direct_slots, _pair_slots
from jittok.errors import UnsupportedError
from jittok.spec import BPEModel
from jittok.tables import (
    MERGE_BYTE_FALLBACK,
    MERGE_CUT,
    MERGE_DIRECT,
    MERGE_FUSE_UNKNOWN,
    MERGE_RANKED,
    MERGE_UNIT,
    MERGE_UNKNOWN,
    PIECE_ALL_PAIRS,
    PIECE_FIRST,
    PIECE_MARK,
    PIECE_NUMBERS,
    PIECE_TIED,
    UNIT_BEGINS,
    UNIT_UNKNOWN,
    PieceTables,
    read_only,
)
from jittok.token_columns import Columns, byte_ids, columns_of, ids_of
from jittok.unicode.intervals import sorted_unique

#: Types of pieces, as the model file numbers them.
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

#: The space symbol.
MARK = "\u2581"
#: Takes a whole text as one word.
WHOLE_PATTERN = r"[\s\S]+"
#: Symbols below this have a table of their pairs.
_UNITS_IN_TABLE = 256
_N_CODEPOINTS = 0x110000
#: Within unused pieces, unused pieces are taken apart down to this depth; see ``kernels.pieces``.
_MOST_DEPTH = 100


class PieceModel(NamedTuple):
    """Tables, and how a text may be cut into words before it is given to them."""

    tables: PieceTables
    split_pattern: str  # for an isolated split that changes no ids


def build_sentencepiece_merges(
    pieces: Sequence[str],
    scores: NDArray[np.float32],
    types: Sequence[int],
    *,
    model_type: str = "bpe",
    byte_fallback: bool = False,
    blank_is_mark: bool = False,
    all_pairs: bool = False,
) -> PieceModel:
    """Flatten a SentencePiece model of type bpe, char or word.

    Parameters
    ----------
    pieces : sequence of str
        What each id stands for, with U+2581 for a blank.
    scores : float32[n]
        The piece of highest score is merged first; ordered by their bits as sentencepiece does, so that -0 is below 0.
    types : sequence of int
        Of each piece: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
    model_type
        "bpe"; "char", whose tokens are characters and user-defined symbols; or "word", whose tokens are words that
        begin at each U+2581.
    byte_fallback
        Whether an unknown character becomes the byte pieces of its UTF-8 form.
    blank_is_mark
        Whether texts are given with blanks for U+2581 (both stand for it then). Only where `may_leave_blanks` says so.
    all_pairs
        Tables for sampling instead; see :class:`~jittok.tables.PieceTables`.

    Returns
    -------
    PieceModel

    Raises
    ------
    UnsupportedError
        There are more pieces or characters than the tables hold.
    """
    if len(pieces) > MOST_TOKENS:
        raise UnsupportedError(f"the model has {len(pieces)} pieces; up to {MOST_TOKENS} are supported")
    unknown = next((i for i, kind in enumerate(types) if kind == UNKNOWN), -1)
    fallback = None
    if byte_fallback:
        ids = {piece: i for i, piece in enumerate(pieces)}
        fallback = np.array([ids[f"<0x{byte:02X}>"] for byte in range(256)], np.int64)
    kinds = np.array(types, np.uint8)
    build = _Builder(columns_of(pieces), kinds, unknown, fallback, mark=blank_is_mark, joins=True)
    if model_type == "word":
        return PieceModel(build.words(), WHOLE_PATTERN)
    merged = np.zeros(0, np.int64)
    ranks = np.zeros(0, np.int64)
    if model_type == "bpe":
        bits = np.ascontiguousarray(scores, np.float32).view(np.int32).astype(np.int64)
        order = np.where(bits >= 0, bits, -(bits + (1 << 31)) - 1)
        merged = np.flatnonzero(((kinds == NORMAL) | (kinds == UNUSED)) & (build.n_characters > 1))
        merged = merged[np.argsort(-order[merged], kind="stable")]
        values = order[merged]
        first = np.concatenate([[True], values[1:] != values[:-1]]) if len(merged) else np.zeros(0, np.bool_)
        ranks = np.flatnonzero(first)[np.cumsum(first) - 1] if len(merged) else ranks
    symbols = build.symbols(merged)
    symbol_of = {pieces[i]: int(symbols[i]) for i in np.flatnonzero(symbols >= 0).tolist()}
    symbol_of.update(build.other_units())
    left, right, number = _all_pairs([pieces[i] for i in merged.tolist()], symbol_of, build.n_first)
    tables = build.merges(merged, ranks, left, right, number)
    if not all_pairs:
        tables = build.pruned(tables, merged, ranks)
    return PieceModel(tables, word_pattern(tables))


def last_pairs(
    pieces: Sequence[str], scores: NDArray[np.float32], types: Sequence[int], *, byte_fallback: bool = False
) -> tuple[list[int], list[str], list[str], bool]:
    """The pieces of a BPE model that merging their own text makes, and the two parts that do it at last.

    Parameters
    ----------
    pieces, scores, types, byte_fallback
        As for :func:`build_sentencepiece_merges`.

    Returns
    -------
    made : list of int
        Ids, those of higher scores first.
    left, right : list of str
        The parts. Those that are no pieces are single characters.
    is_tied : bool
        Whether two of them have the same score, so that the one further left is merged first.
    """
    tables = build_sentencepiece_merges(pieces, scores, types, byte_fallback=byte_fallback, all_pairs=True).tables
    first = int(tables.numbers[PIECE_FIRST])
    merged = tables.symbol_token[first:].tolist()
    unused = tables.list_token.tolist()
    merged = [unused[-2 - token] if token < -1 else token for token in merged]
    left, right = _last_pairs(columns_of([pieces[i] for i in merged]), tables)
    units = {symbol >> 2: chr(codepoint) for codepoint, symbol in _unit_symbols(tables, pieces)}

    def part(symbol: int) -> str:
        return pieces[merged[symbol - first]] if symbol >= first else units[symbol]

    kept = np.flatnonzero(left >= 0).tolist()
    ranks = tables.merge_rank[kept]
    return (
        [merged[i] for i in kept],
        [part(int(left[i])) for i in kept],
        [part(int(right[i])) for i in kept],
        bool(len(np.unique(ranks)) < len(ranks)),
    )


def _unit_symbols(tables: PieceTables, pieces: Sequence[str]) -> list[tuple[int, int]]:
    characters = {ord(character) for piece in pieces for character in piece}
    return [(codepoint, _unit_entry(tables, codepoint)) for codepoint in characters]


def _last_pairs(texts: Columns, tables: PieceTables) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    from jittok.kernels.pieces import find_last_pairs
    from jittok.kernels.word_cache import new_word_scratch

    data, indptr = texts
    n = len(indptr) - 1
    data = np.append(data, np.zeros(64, np.uint8))
    left, right = np.empty(n, np.int32), np.empty(n, np.int32)
    scratch = new_word_scratch(max(64, int(np.diff(indptr).max(initial=0))))
    reverse = np.zeros(n + 1, np.uint64)
    find_last_pairs(tables, read_only(data), read_only(indptr), scratch, reverse, left, right)
    return left, right


def build_listed_merges(
    model: BPEModel,
    pairs: NDArray[np.int64],
    last_merges: Callable[[], tuple[NDArray[np.int64], NDArray[np.int64]]],
    *,
    blank_is_mark: bool = False,
) -> PieceTables | None:
    """Tables of a model that lists its merges, over characters; None where these cannot express it.

    That is where characters may be dropped, a token stands for some of them only, or a merge is one of tokens that
    stand for unknown characters or their bytes.

    Parameters
    ----------
    model
        Without a subword prefix or suffix.
    pairs : int64[2, n_merges]
        Ids that each merge joins.
    last_merges
        Gives the ids of tokens that merging their own text makes, and the last merge of each, in the order of merges.
        That is the only one that ever makes the token; see :class:`~jittok.tables.PieceTables`.
    blank_is_mark
        As for :func:`build_sentencepiece_merges`.
    """
    vocab = model.vocab
    fallback = byte_ids(vocab) if model.byte_fallback else np.zeros(0, np.int64)
    by_bytes = bool(len(fallback)) and int(fallback.min()) >= 0
    unknown = -1 if model.unk_token is None else vocab.get(model.unk_token, -1)
    if not by_bytes and (unknown < 0 or model.byte_fallback):
        return None
    if (pairs == unknown).any() or (len(fallback) and np.isin(pairs, fallback).any()):
        return None
    pieces = _by_id(vocab)
    types = np.full(len(pieces.indptr) - 1, NORMAL, np.uint8)
    mark = blank_is_mark and MARK in vocab
    build = _Builder(pieces, types, unknown, fallback if by_bytes else None, mark=mark, joins=model.fuse_unk)
    merged, by = last_merges()
    symbol_of = build.symbols(merged)
    left, right = (symbol_of[side[by]] for side in pairs)
    if len(by) and min(int(left.min()), int(right.min())) < 0:
        return None
    ranks = np.arange(len(merged))
    return build.of_last_pairs(merged, ranks, left, right)


def _by_id(vocab: Mapping[str, int]) -> Columns:
    """Tokens by id, empty where there is none."""
    columns, ids = columns_of(vocab), ids_of(vocab)
    if np.array_equal(ids, np.arange(len(ids))):
        return columns
    place_of = np.full(int(ids.max(initial=-1)) + 1, -1, np.int64)
    place_of[ids] = np.arange(len(ids))
    return columns.take(place_of)


def may_leave_blanks(pieces: Sequence[str], types: Sequence[int], model_type: str = "bpe") -> bool:
    """Whether texts may be given with blanks instead of U+2581: nothing but normal pieces holds either.

    U+2581 must be a piece, for the bytes of a blank are not its; and what has a length of its own must not hold it.
    """
    if model_type == "word":
        return False
    normal = {piece for piece, kind in zip(pieces, types, strict=True) if kind == NORMAL}
    others = (p for p, kind in zip(pieces, types, strict=True) if kind in (USER_DEFINED, UNUSED))
    return MARK in normal and not any(MARK in piece or " " in piece for piece in others)


def word_pattern(tables: PieceTables) -> str:
    """A pattern for an isolated split that changes no ids: shorter words, of which fewer are new.

    No symbol that the tables can make spans the places where it cuts, and where unknown tokens are joined, one of the
    characters there is known, so that no two of them meet.
    """
    numbers = tables.numbers
    if not numbers[MERGE_CUT]:
        return WHOLE_PATTERN
    known: Callable[[str], bool] = lambda character: True  # noqa: E731
    if numbers[MERGE_FUSE_UNKNOWN] and not numbers[MERGE_BYTE_FALLBACK]:
        known = lambda character: not _unit_entry(tables, ord(character)) & UNIT_UNKNOWN  # noqa: E731
        # The pattern cuts at blanks too, which are U+2581 only where the tables say so.
        if not known(MARK) or not (numbers[PIECE_MARK] or known(" ")):
            return WHOLE_PATTERN
    ids = tables.symbol_token[tables.symbol_token >= 0]
    chosen = np.concatenate([ids, tables.list_token]).astype(np.int64)
    return split_pattern(Columns(tables.token_bytes, tables.token_indptr).take(chosen), known)


def _unit_entry(tables: PieceTables, codepoint: int) -> int:
    return int(tables.symbol_of[(int(tables.page_of[codepoint >> 7]) << 7) | codepoint & 127])


def split_pattern(spanned: Sequence[str] | Columns, known: Callable[[str], bool] = lambda character: True) -> str:
    """A pattern for an isolated split at places that none of these strings spans.

    It cuts before or after each run of U+2581, which a blank is taken for, too. If the former, also before and after
    runs of *joiners*: ASCII punctuation and what strings join it with, directly or by others of them, as far as that
    is no ASCII letter or digit; and around each *loner*: an ASCII character that strings join with U+2581 at most.

    Parameters
    ----------
    spanned
        The strings.
    known
        Whether a character may be a joiner or a loner.
    """
    columns = spanned if isinstance(spanned, Columns) else columns_of(spanned)
    codepoints, ends = _codepoints(columns)
    codes = codepoints.astype(np.int64)
    codes[codes == 0x20] = ord(MARK)
    lefts, rights = distinct_pairs(*_neighbours(codes, ends))
    left_inner, right_inner = lefts != ord(MARK), rights != ord(MARK)
    before = not (left_inner & ~right_inner).any()
    after = not (~left_inner & right_inner).any()
    if not before:
        return f"[^ {MARK}]+[ {MARK}]*|[ {MARK}]+" if after else WHOLE_PATTERN
    inside = left_inner & right_inner
    group = _groups(lefts[inside].tolist(), rights[inside].tolist())
    others = {root for code, root in group.items() if not known(chr(code)) or (code < 0x80 and chr(code).isalnum())}
    marks = {root for code, root in group.items() if code < 0x80} - others
    joiners = [chr(code) for code in sorted(group) if group[code] in marks]
    loners = [chr(code) for code in range(128) if code != 0x20 and code not in group and known(chr(code))]
    parts = [_character_class(joiners) + "+"] if joiners else []
    parts += [_character_class(loners)] if loners else []
    if not parts:
        return f"[ {MARK}]*[^ {MARK}]+|[ {MARK}]+"
    rest = _character_class([" ", MARK, *joiners, *loners], "^") + "+"
    return f"[ {MARK}]*(?:{'|'.join([rest, *parts])})|[ {MARK}]+"


def _groups(left: list[int], right: list[int]) -> dict[int, int]:
    """For each number in pairs, one that stands for all that pairs join it with."""
    group: dict[int, int] = {}
    for one, other in zip(left, right, strict=True):
        while (above := group.setdefault(one, one)) != one:
            group[one] = group[above]
            one = above
        while (above := group.setdefault(other, other)) != other:
            group[other] = group[above]
            other = above
        group[one] = other
    for number in group:
        root = number
        while group[root] != root:
            root = group[root]
        group[number] = root
    return group


def _codepoints(columns: Columns) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The codepoints of strings one after another, and where each begins and the last one ends."""
    data, indptr = columns
    begins = np.zeros(int(indptr[-1]) + 1, np.int64)
    np.cumsum((data[: indptr[-1]] & 0xC0) != 0x80, out=begins[1:])
    text = data[: indptr[-1]].tobytes().decode("utf-8", "surrogatepass")
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32), begins[indptr]


def _neighbours(
    codes: NDArray[np.int64], ends: NDArray[np.int64], chosen: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs of codepoints that stand side by side in a string, or in a chosen one."""
    sizes = np.diff(ends)
    inside = np.ones(len(codes), np.bool_) if chosen is None else np.repeat(chosen, sizes)
    inside[ends[:-1][sizes > 0]] = False
    inside = inside[1:]
    return codes[:-1][inside], codes[1:][inside]


def _character_class(characters: Iterable[str], before: str = "") -> str:
    """A class of a regular expression."""
    return f"[{before}{''.join(chr(92) + c if c in '^-[]&~#|' + chr(92) else c for c in characters)}]"


def _all_pairs(
    pieces: Sequence[str], symbol_of: Mapping[str, int], n_first: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Every way to write a piece as two symbols: left, right, and the piece's position."""
    get = symbol_of.get
    left: list[int] = []
    right: list[int] = []
    number: list[int] = []
    for position, piece in enumerate(pieces):
        for cut in range(1, len(piece)):
            a = get(piece[:cut])
            if a is not None:
                b = get(piece[cut:])
                if b is not None:
                    left.append(a)
                    right.append(b)
                    number.append(position)
    return np.array(left, np.int64), np.array(right, np.int64), np.array(number, np.int64)


class _Builder:
    """Collects the symbols of a model, and makes tables of them."""

    def __init__(
        self,
        pieces: Columns,
        types: NDArray[np.uint8],
        unknown: int,
        fallback: NDArray[np.int64] | None,
        *,
        mark: bool,
        joins: bool,
    ) -> None:
        self.pieces, self.types = pieces, types
        self.n_pieces = len(types)
        self.mark = mark
        self.numbers = np.zeros(PIECE_NUMBERS, np.int64)
        self.numbers[[MERGE_RANKED, MERGE_UNIT]] = 1
        self.numbers[MERGE_UNKNOWN] = unknown
        self.numbers[MERGE_FUSE_UNKNOWN] = joins
        self.numbers[MERGE_BYTE_FALLBACK] = fallback is not None
        self.numbers[PIECE_MARK] = mark
        self.numbers[PIECE_TIED] = NO_MERGE
        self.fallback = np.full(256, -1, np.int32)
        if fallback is not None:
            self.fallback[:] = fallback
        self.codes, self.ends = _codepoints(pieces)
        self.n_characters = np.diff(self.ends)
        self.texts = self._as_texts(pieces)
        self.indptr = self.texts.indptr
        self.bytes = np.append(self.texts.data, np.zeros(64, np.uint8))
        #: The characters that have symbols, from symbol 1 on.
        self.units = np.zeros(0, np.int64)
        self.tokens = np.zeros(0, np.int64)  # id of each symbol that no merge makes, -1: unknown
        self.n_first = 1
        self.defined: dict[str, int] = {}

    def _as_texts(self, pieces: Columns) -> Columns:
        """Pieces as texts hold them."""
        data, indptr = pieces
        if not self.mark:
            return pieces
        blob = data.tobytes()
        mark = MARK.encode()
        # A mark is nowhere a part of two pieces.
        marks = np.zeros(len(data) + 1, np.int64)
        if len(data) > 2:
            np.cumsum((data[:-2] == mark[0]) & (data[1:-1] == mark[1]) & (data[2:] == mark[2]), out=marks[1:-2])
            marks[-2:] = marks[-3]
        shorter = np.frombuffer(blob.replace(mark, b" "), np.uint8)
        return Columns(read_only(shorter), read_only(indptr - (len(mark) - 1) * marks[indptr]))

    def text(self, piece: str) -> bytes:
        """A piece as texts hold it."""
        if self.mark:
            piece = piece.replace(MARK, " ")
        return piece.encode("utf-8", "surrogatepass")

    def symbols(self, merged: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number all symbols; returns the one of each piece that may merge, -1 elsewhere."""
        is_normal, is_defined = self.types == NORMAL, self.types == USER_DEFINED
        counted = is_normal | (self.types == UNUSED)
        # Of few pieces, the different codepoints are numbered: a place for each there might be takes longer to make.
        all_codes, n, distinct = self.codes, max(int(self.codes.max(initial=0)), 0x20) + 1, None
        if 8 * len(all_codes) < n:
            distinct = sorted_unique(self.codes)
            all_codes, n = np.searchsorted(distinct, self.codes).astype(np.uint32), len(distinct)
        codes = all_codes if counted.all() else all_codes[np.repeat(counted, self.n_characters)]
        alone = np.flatnonzero((self.n_characters == 1) & (is_normal | is_defined))
        singles = all_codes[self.ends[alone]].astype(np.int64)
        counts = np.bincount(codes, minlength=n)
        counts[singles] += 1
        if self.mark:
            counts[0x20 if distinct is None else distinct == 0x20] = 0
        # Characters of many pieces come first: pairs of the first symbols have a table.
        units = np.flatnonzero(counts)
        units = units[np.argsort(-counts[units], kind="stable")]
        self.units = units if distinct is None else distinct[units].astype(np.int64)
        token_of = np.full(n, -1, np.int32)
        token_of[singles] = alone
        self.tokens = np.append(-1, token_of[units]).astype(np.int64)
        symbol_of = np.full(self.n_pieces, -1, np.int64)
        unit_of = np.full(n, -1, np.int32)
        unit_of[units] = np.arange(1, len(units) + 1)
        known = alone[~is_defined[alone]]
        symbol_of[known] = unit_of[all_codes[self.ends[known]]]
        defined = np.flatnonzero(is_defined & (self.n_characters > 1))
        if len(defined):
            names = self.pieces.take(defined).strings()
            self.defined = {name: len(self.tokens) + number for number, name in enumerate(names)}
            self.tokens = np.concatenate([self.tokens, defined])
        self.n_first = len(self.tokens)
        if self.n_first + len(merged) > MOST_TOKENS:
            raise UnsupportedError(
                f"the pieces have {self.n_first} different characters, which are too many; up to "
                f"{MOST_TOKENS - len(merged)} are supported"
            )
        symbol_of[merged] = self.n_first + np.arange(len(merged))
        return symbol_of

    def other_units(self) -> dict[str, int]:
        """The symbols of characters that may merge and are no pieces."""
        unknown = np.flatnonzero(self.tokens[1 : len(self.units) + 1] < 0)
        return dict(zip(map(chr, self.units[unknown].tolist()), (unknown + 1).tolist(), strict=True))

    def merges(
        self,
        merged: NDArray[np.int64],
        ranks: NDArray[np.int64],
        left: NDArray[np.int64],
        right: NDArray[np.int64],
        number: NDArray[np.int64],
    ) -> PieceTables:
        """Tables with these pairs; `merged` are the ids of what the merges make, `ranks` theirs."""
        n_merges = len(merged)
        tied = np.flatnonzero(np.bincount(ranks, minlength=n_merges)[ranks] > 1) if n_merges else ranks
        numbers = self.numbers.copy()
        numbers[PIECE_FIRST] = self.n_first
        numbers[PIECE_TIED] = tied[0] if len(tied) else NO_MERGE
        numbers[PIECE_ALL_PAIRS] = 1
        numbers[MERGE_CUT] = 1
        tokens = np.concatenate([self.tokens, merged]).astype(np.int32)
        sizes = 1 + (self.units >= 0x80).astype(np.int64) + (self.units >= 0x800) + (self.units >= 0x10000)
        if self.mark:
            sizes[self.units == ord(MARK)] = 1
        defined = [len(self.text(piece)) for piece in self.defined]
        lengths = np.concatenate([[0], sizes, defined, np.diff(self.indptr)[merged]]).astype(np.int32)
        unused = np.flatnonzero(self.types[merged] == UNUSED)
        list_token = tokens[self.n_first + unused]
        tokens[self.n_first + unused] = -2 - np.arange(len(unused))
        unit_pair = np.full(_UNITS_IN_TABLE * _UNITS_IN_TABLE, NO_MERGE, np.int32)
        near = (left < _UNITS_IN_TABLE) & (right < _UNITS_IN_TABLE)
        unit_pair[(left | right << 8)[near]] = number[near]
        page_of, symbol_of = self._unit_table()
        edges, node_symbol = self._trie()
        return _read_only(
            PieceTables(
                page_of=page_of,
                symbol_of=symbol_of,
                unit_pair=unit_pair,
                pair_slots=_pair_slots(left, right, number),
                merge_rank=ranks.astype(np.int32),
                symbol_token=tokens,
                symbol_bytes=lengths,
                list_indptr=np.zeros(len(unused) + 1, np.int32),
                list_symbols=np.zeros(0, np.int32),
                list_token=list_token,
                fallback_token=self.fallback,
                edge_slots=edges,
                node_symbol=node_symbol,
                direct_slots=np.full(8, EMPTY, np.uint64),
                token_bytes=self.bytes,
                token_indptr=self.indptr,
                reachable=np.zeros(self.n_pieces, np.uint8),
                crossed=self._crossed(merged),
                numbers=numbers,
            )
        )

    def pruned(self, tables: PieceTables, merged: NDArray[np.int64], ranks: NDArray[np.int64]) -> PieceTables:
        """The tables with the one pair that makes each piece, and what unused pieces are taken apart to."""
        left, right = _last_pairs(self.texts.take(merged), tables)
        return self.of_last_pairs(merged, ranks, left.astype(np.int64), right.astype(np.int64))

    def of_last_pairs(
        self,
        merged: NDArray[np.int64],
        ranks: NDArray[np.int64],
        left: NDArray[np.int64],
        right: NDArray[np.int64],
    ) -> PieceTables:
        """The tables with the pair `left`, `right` for each merge; -1 where there is none."""
        kept = np.flatnonzero(left >= 0)
        place = np.full(self.n_first + len(merged), -1, np.int64)
        place[: self.n_first] = np.arange(self.n_first)
        place[self.n_first + kept] = self.n_first + np.arange(len(kept))
        made = merged[kept]
        old_ranks = ranks[kept]
        first = np.concatenate([[True], old_ranks[1:] != old_ranks[:-1]]) if len(kept) else np.zeros(0, np.bool_)
        new_ranks = np.flatnonzero(first)[np.cumsum(first) - 1] if len(kept) else old_ranks
        new_left, new_right = place[left[kept]], place[right[kept]]
        result = self.merges(made, new_ranks, new_left, new_right, np.arange(len(kept)))
        numbers = result.numbers.copy()
        numbers[PIECE_ALL_PAIRS] = 0
        reachable = np.zeros(self.n_pieces, np.uint8)
        ids = result.symbol_token
        reachable[ids[ids >= 0]] = 1
        # Nested in too many others, one may not be found by its own text.
        reachable[self.tokens[list(self.defined.values())]] = 0
        lists = [
            self._parts(result, self.n_first + int(i), new_left, new_right, 0)
            for i in np.flatnonzero(ids[self.n_first :] < -1)
        ]
        indptr = np.zeros(len(lists) + 1, np.int32)
        np.cumsum([len(parts) for parts in lists], out=indptr[1:])
        return _read_only(
            result._replace(
                numbers=numbers,
                reachable=reachable,
                list_indptr=indptr,
                list_symbols=np.array([symbol for parts in lists for symbol in parts], np.int32),
            )
        )

    def _parts(
        self, tables: PieceTables, symbol: int, left: NDArray[np.int64], right: NDArray[np.int64], depth: int
    ) -> list[int]:
        """The symbols that an unused symbol is taken apart to, by the pairs that make it and its parts."""
        if depth > _MOST_DEPTH or tables.symbol_token[symbol] >= -1:
            return [symbol]
        number = symbol - self.n_first
        return [
            part
            for side in (left, right)
            for part in self._parts(tables, int(side[number]), left, right, depth + 1)
        ]

    def words(self) -> PieceTables:
        """Tables of a word model: symbol ``1 + i`` is the piece of id i."""
        self.tokens = np.full(1, -1, np.int64)
        known = np.flatnonzero((self.types == NORMAL) | (self.types == USER_DEFINED)).tolist()
        nothing = np.zeros(0, np.int64)
        tables = self.merges(nothing, np.zeros(0, np.int64), *(np.zeros(0, np.int64) for _ in range(3)))
        numbers = tables.numbers.copy()
        numbers[MERGE_DIRECT] = max(len(known), 1)
        numbers[MERGE_CUT] = 0
        return _read_only(
            tables._replace(
                symbol_token=np.arange(-1, self.n_pieces, dtype=np.int32),
                symbol_bytes=np.append(0, np.diff(self.indptr)).astype(np.int32),
                direct_slots=_direct_slots(dict(zip(known, self._bytes_of(known), strict=True)), known),
                numbers=numbers,
            )
        )

    def _bytes_of(self, ids: Sequence[int]) -> list[bytes]:
        data, bounds = self.texts.data.tobytes(), self.indptr.tolist()
        return [data[bounds[i] : bounds[i + 1]] for i in ids]

    def _unit_table(self) -> tuple[NDArray[np.uint16], NDArray[np.int32]]:
        """Two levels from a codepoint to its entry."""
        begins = np.array([ord(piece[0]) for piece in self.defined], np.int64)
        # Page 0 is that of ASCII, page 1 that of codepoints that no piece holds.
        pages = sorted_unique(np.concatenate([self.units, begins]) >> 7)
        pages = pages[pages > 0]
        page_of = np.ones(_N_CODEPOINTS >> 7, np.uint16)
        page_of[0] = 0
        page_of[pages] = np.arange(2, len(pages) + 2)

        def place(codepoints: NDArray[np.int64]) -> NDArray[np.int64]:
            places: NDArray[np.int64] = page_of[codepoints >> 7].astype(np.int64) << 7 | codepoints & 127
            return places

        symbols = np.arange(1, len(self.units) + 1)
        entries = np.full((len(pages) + 2) << 7, UNIT_UNKNOWN, np.int32)
        entries[place(self.units)] = symbols << 2 | np.where(self.tokens[symbols] < 0, UNIT_UNKNOWN, 0)
        if self.mark:
            entries[0x20] = entries[place(np.array([ord(MARK)]))[0]]
        entries[place(begins)] |= UNIT_BEGINS
        return page_of, entries

    def _trie(self) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """The trie of user-defined symbols of more than one character, and of shorter ones that begin them."""
        if not self.defined:
            return _no_trie()
        symbols = dict(self.defined)
        of_units = self.tokens[1 : len(self.units) + 1]
        is_defined = (of_units >= 0) & (self.types[of_units] == USER_DEFINED)
        single = {chr(self.units[i]): i + 1 for i in np.flatnonzero(is_defined).tolist()}
        symbols.update(single)
        edges: dict[tuple[int, int], int] = {}
        ends: dict[int, int] = {}
        for piece, symbol in symbols.items():
            node = 0
            for byte in self.text(piece):
                node = edges.setdefault((node, byte), len(edges) + 1)
            ends[node] = symbol
        node_symbol = np.full(len(edges) + 1, -1, np.int32)
        node_symbol[list(ends)] = list(ends.values())
        if len(edges) >= 1 << 24:
            raise UnsupportedError("the user-defined symbols are too long, all together; up to 16 MB are supported")
        keys = np.array([node << 8 | byte for node, byte in edges], np.uint64)
        children = np.array(list(edges.values()), np.uint64)
        return fill_slots(hash_key(keys), keys << np.uint64(32) | children), node_symbol

    def _crossed(self, merged: NDArray[np.int64]) -> NDArray[np.uint64]:
        chosen = np.zeros(self.n_pieces, np.bool_)
        chosen[merged] = True
        chosen[self.tokens[list(self.defined.values())]] = True
        codes = self.codes.astype(np.int64)
        if self.mark:
            codes[codes == ord(MARK)] = 0x20
        return junction_bitmap(*_neighbours(codes, self.ends, chosen))


@cache
def _no_trie() -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """The trie of no symbols."""
    return read_only(np.full(8, EMPTY, np.uint64)), read_only(np.full(1, -1, np.int32))


def _read_only(tables: PieceTables) -> PieceTables:
    return PieceTables(*[read_only(array) for array in tables])

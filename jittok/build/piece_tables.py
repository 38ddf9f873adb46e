"""The pieces of a SentencePiece model -> PieceTables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.build.hash_tables import EMPTY, fill_slots, hash_key
from jittok.build.junctions import crossed_junctions
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
from jittok.unicode.intervals import sorted_unique

#: Types of pieces, as the model file numbers them.
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

#: The space symbol.
MARK = "\u2581"
#: Stands between strings that follow one another: no character.
_BOUND = "\ud800"
#: Takes a whole text as one word.
WHOLE_PATTERN = r"[\s\S]+"
#: Symbols below this have a table of their pairs.
_UNITS_IN_TABLE = 256
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
    build = _Builder(pieces, types, unknown, byte_fallback=byte_fallback, mark=blank_is_mark, joins=True)
    if model_type == "word":
        return PieceModel(build.words(), WHOLE_PATTERN)
    merged: list[int] = []
    if model_type == "bpe":
        bits = np.ascontiguousarray(scores, np.float32).view(np.int32).astype(np.int64)
        order = np.where(bits >= 0, bits, -(bits + (1 << 31)) - 1)
        merged = [i for i, kind in enumerate(types) if kind in (NORMAL, UNUSED) and len(pieces[i]) > 1]
        merged.sort(key=lambda i: -int(order[i]))
        values = order[merged]
        first = np.concatenate([[True], values[1:] != values[:-1]]) if merged else np.zeros(0, np.bool_)
        ranks = np.flatnonzero(first)[np.cumsum(first) - 1] if merged else np.zeros(0, np.int64)
    else:
        ranks = np.zeros(0, np.int64)
    symbol_of = build.symbols(merged)
    left, right, number = _all_pairs([pieces[i] for i in merged], symbol_of, build.n_first)
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
    left, right = _last_pairs([pieces[i].encode("utf-8", "surrogatepass") for i in merged], tables)
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


def _last_pairs(texts: Sequence[bytes], tables: PieceTables) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    from jittok.kernels.pieces import find_last_pairs
    from jittok.kernels.word_cache import new_word_scratch

    indptr = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=indptr[1:])
    data = np.frombuffer(b"".join(texts) + bytes(64), np.uint8)
    left, right = np.empty(len(texts), np.int32), np.empty(len(texts), np.int32)
    scratch = new_word_scratch(max(64, int(np.diff(indptr).max(initial=0))))
    reverse = np.zeros(len(texts) + 1, np.uint64)
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
    fallback = [vocab.get(f"<0x{byte:02X}>", -1) for byte in range(256)] if model.byte_fallback else []
    by_bytes = bool(fallback) and min(fallback) >= 0
    unknown = -1 if model.unk_token is None else vocab.get(model.unk_token, -1)
    if not by_bytes and (unknown < 0 or model.byte_fallback):
        return None
    if np.isin(pairs, [*fallback, *([unknown] if unknown >= 0 else [])]).any():
        return None
    pieces = [""] * (max(vocab.values(), default=-1) + 1)
    for piece, identifier in vocab.items():
        pieces[identifier] = piece
    mark = blank_is_mark and MARK in vocab
    build = _Builder(pieces, [NORMAL] * len(pieces), unknown, byte_fallback=by_bytes, mark=mark, joins=model.fuse_unk)
    made, by = last_merges()
    merged = made.tolist()
    symbol_of = build.symbols(merged)
    left, right = (np.array([symbol_of.get(pieces[i], -1) for i in side[by].tolist()], np.int64) for side in pairs)
    if len(by) and min(int(left.min()), int(right.min())) < 0:
        return None
    ranks = np.arange(len(merged))
    return build.of_last_pairs(merged, ranks, left, right)


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
    chosen = np.concatenate([ids, tables.list_token]).tolist()
    indptr, data = tables.token_indptr.tolist(), tables.token_bytes.tobytes()
    return split_pattern([data[indptr[i] : indptr[i + 1]].decode("utf-8", "surrogatepass") for i in chosen], known)


def _unit_entry(tables: PieceTables, codepoint: int) -> int:
    return int(tables.symbol_of[(int(tables.page_of[codepoint >> 7]) << 7) | codepoint & 127])


def split_pattern(spanned: Sequence[str], known: Callable[[str], bool] = lambda character: True) -> str:
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
    group: dict[str, str] = {}

    def find(character: str) -> str:
        while group.setdefault(character, character) != character:
            group[character] = group[group[character]]
            character = group[character]
        return character

    joined: set[str] = set()
    # Strings follow one another, each with a character in front that stands for a bound.
    text = f"{_BOUND}{_BOUND.join(spanned)}{_BOUND}".replace(" ", MARK)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    pairs = sorted_unique(codes[:-1] << np.uint64(32) | codes[1:])
    lefts, rights = pairs >> np.uint64(32), pairs & np.uint64(0xFFFFFFFF)
    bounds = np.array([ord(MARK), ord(_BOUND)], np.uint64)
    before = not (~np.isin(lefts, bounds) & (rights == ord(MARK))).any()
    after = not ((lefts == ord(MARK)) & ~np.isin(rights, bounds)).any()
    if not before:
        return f"[^ {MARK}]+[ {MARK}]*|[ {MARK}]+" if after else WHOLE_PATTERN
    for pair in pairs.tolist():
        left, right = chr(pair >> 32), chr(pair & 0xFFFFFFFF)
        if MARK not in (left, right) and _BOUND not in (left, right):
            joined.update((left, right))
            group[find(left)] = find(right)
    ascii_characters = [chr(i) for i in range(128) if chr(i) != " "]
    others = {find(c) for c in joined if not known(c) or (c < "\x80" and c.isalnum())}
    marks = {find(c) for c in ascii_characters if c in joined} - others
    joiners = sorted(c for c in joined if find(c) in marks)
    loners = [c for c in ascii_characters if c not in joined and known(c)]
    parts = [_character_class(joiners) + "+"] if joiners else []
    parts += [_character_class(loners)] if loners else []
    if not parts:
        return f"[ {MARK}]*[^ {MARK}]+|[ {MARK}]+"
    rest = _character_class([" ", MARK, *joiners, *loners], "^") + "+"
    return f"[ {MARK}]*(?:{'|'.join([rest, *parts])})|[ {MARK}]+"


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
        pieces: Sequence[str],
        types: Sequence[int],
        unknown: int,
        *,
        byte_fallback: bool,
        mark: bool,
        joins: bool,
    ) -> None:
        self.pieces, self.types = pieces, types
        self.mark = mark
        self.numbers = np.zeros(PIECE_NUMBERS, np.int64)
        self.numbers[[MERGE_RANKED, MERGE_UNIT]] = 1
        self.numbers[MERGE_UNKNOWN] = unknown
        self.numbers[MERGE_FUSE_UNKNOWN] = joins
        self.numbers[MERGE_BYTE_FALLBACK] = byte_fallback
        self.numbers[PIECE_MARK] = mark
        self.numbers[PIECE_TIED] = NO_MERGE
        self.fallback = np.full(256, -1, np.int32)
        if byte_fallback:
            ids = {piece: i for i, piece in enumerate(pieces)}
            self.fallback[:] = [ids[f"<0x{byte:02X}>"] for byte in range(256)]
        texts = [self.text(piece) for piece in pieces]
        self.indptr = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=self.indptr[1:])
        self.bytes = np.frombuffer(b"".join(texts) + bytes(64), np.uint8)
        self.texts = texts
        self.units: dict[str, int] = {}
        self.tokens: list[int] = []  # id of each symbol that no merge makes, -1: unknown
        self.n_first = 1
        self.defined: dict[str, int] = {}

    def text(self, piece: str) -> bytes:
        """A piece as texts hold it."""
        if self.mark:
            piece = piece.replace(MARK, " ")
        return piece.encode("utf-8", "surrogatepass")

    def symbols(self, merged: Sequence[int]) -> dict[str, int]:
        """Number all symbols; returns those that may merge."""
        kinds = zip(self.pieces, self.types, strict=True)
        counts = Counter("".join([piece for piece, kind in kinds if kind in (NORMAL, UNUSED)]))
        alone: dict[str, int] = {}
        for i, (piece, kind) in enumerate(zip(self.pieces, self.types, strict=True)):
            if len(piece) == 1 and kind in (NORMAL, USER_DEFINED):
                alone[piece] = i
                counts[piece] += 1
        if self.mark:
            counts.pop(" ", None)
        # Characters of many pieces come first: pairs of the first symbols have a table.
        for character, _ in counts.most_common():
            self.units[character] = len(self.units) + 1
        self.tokens = [-1, *(alone.get(character, -1) for character in self.units)]
        for i, (piece, kind) in enumerate(zip(self.pieces, self.types, strict=True)):
            if kind == USER_DEFINED and len(piece) > 1:
                self.defined[piece] = len(self.tokens)
                self.tokens.append(i)
        self.n_first = len(self.tokens)
        if self.n_first + len(merged) > MOST_TOKENS:
            raise UnsupportedError(
                f"the pieces have {self.n_first} different characters, which are too many; up to "
                f"{MOST_TOKENS - len(merged)} are supported"
            )
        frozen = {piece for piece, kind in zip(self.pieces, self.types, strict=True) if kind == USER_DEFINED}
        result = {character: symbol for character, symbol in self.units.items() if character not in frozen}
        result.update((self.pieces[i], self.n_first + number) for number, i in enumerate(merged))
        return result

    def merges(
        self,
        merged: Sequence[int],
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
        tokens = np.array([*self.tokens, *merged], np.int32)
        lengths = np.array(
            [0, *(len(self.text(c)) for c in self.units), *(len(self.text(p)) for p in self.defined),
             *(len(self.texts[i]) for i in merged)], np.int32,
        )  # fmt: skip
        unused = [i for i in range(n_merges) if self.types[merged[i]] == UNUSED]
        list_token = tokens[[self.n_first + i for i in unused]]
        tokens[[self.n_first + i for i in unused]] = -2 - np.arange(len(unused))
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
                reachable=np.zeros(len(self.pieces), np.uint8),
                crossed=self._crossed(merged),
                numbers=numbers,
            )
        )

    def pruned(self, tables: PieceTables, merged: Sequence[int], ranks: NDArray[np.int64]) -> PieceTables:
        """The tables with the one pair that makes each piece, and what unused pieces are taken apart to."""
        left, right = _last_pairs([self.texts[i] for i in merged], tables)
        return self.of_last_pairs(merged, ranks, left.astype(np.int64), right.astype(np.int64))

    def of_last_pairs(
        self,
        merged: Sequence[int],
        ranks: NDArray[np.int64],
        left: NDArray[np.int64],
        right: NDArray[np.int64],
    ) -> PieceTables:
        """The tables with the pair `left`, `right` for each merge; -1 where there is none."""
        kept = np.flatnonzero(left >= 0)
        place = np.full(self.n_first + len(merged), -1, np.int64)
        place[: self.n_first] = np.arange(self.n_first)
        place[self.n_first + kept] = self.n_first + np.arange(len(kept))
        made = [merged[i] for i in kept.tolist()]
        old_ranks = ranks[kept]
        first = np.concatenate([[True], old_ranks[1:] != old_ranks[:-1]]) if len(kept) else np.zeros(0, np.bool_)
        new_ranks = np.flatnonzero(first)[np.cumsum(first) - 1] if len(kept) else old_ranks
        new_left, new_right = place[left[kept]], place[right[kept]]
        result = self.merges(made, new_ranks, new_left, new_right, np.arange(len(kept)))
        numbers = result.numbers.copy()
        numbers[PIECE_ALL_PAIRS] = 0
        reachable = np.zeros(len(self.pieces), np.uint8)
        ids = result.symbol_token
        reachable[ids[ids >= 0]] = 1
        # Nested in too many others, one may not be found by its own text.
        reachable[[self.tokens[symbol] for symbol in self.defined.values()]] = 0
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
        self.tokens = [-1]
        known = [i for i, kind in enumerate(self.types) if kind in (NORMAL, USER_DEFINED)]
        tables = self.merges([], np.zeros(0, np.int64), *(np.zeros(0, np.int64) for _ in range(3)))
        numbers = tables.numbers.copy()
        numbers[MERGE_DIRECT] = max(len(known), 1)
        numbers[MERGE_CUT] = 0
        return _read_only(
            tables._replace(
                symbol_token=np.arange(-1, len(self.pieces), dtype=np.int32),
                symbol_bytes=np.array([0, *map(len, self.texts)], np.int32),
                direct_slots=_direct_slots(self.texts, known),
                numbers=numbers,
            )
        )

    def _unit_table(self) -> tuple[NDArray[np.uint16], NDArray[np.int32]]:
        """Two levels from a codepoint to its entry."""
        entries: dict[int, int] = {}
        for character, symbol in self.units.items():
            entries[ord(character)] = symbol << 2 | (UNIT_UNKNOWN if self.tokens[symbol] < 0 else 0)
        if self.mark:
            entries[0x20] = entries[ord(MARK)]
        for piece in self.defined:
            entries[ord(piece[0])] = entries.get(ord(piece[0]), UNIT_UNKNOWN) | UNIT_BEGINS
        # Page 0 is that of ASCII, page 1 that of codepoints that no piece holds.
        page_of = np.ones(0x110000 >> 7, np.uint16)
        page_of[0] = 0
        symbol_of = [np.full(128, UNIT_UNKNOWN, np.int32), np.full(128, UNIT_UNKNOWN, np.int32)]
        for codepoint, entry in entries.items():
            if codepoint >= 128 and page_of[codepoint >> 7] == 1:
                page_of[codepoint >> 7] = len(symbol_of)
                symbol_of.append(symbol_of[1].copy())
            symbol_of[page_of[codepoint >> 7]][codepoint & 127] = entry
        return page_of, np.concatenate(symbol_of)

    def _trie(self) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """The trie of user-defined symbols of more than one character, and of shorter ones that begin them."""
        symbols = dict(self.defined)
        single = {c: s for c, s in self.units.items() if self.tokens[s] >= 0 and self.types[self.tokens[s]] == USER_DEFINED}
        symbols.update(single if symbols else {})
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

    def _crossed(self, merged: Sequence[int]) -> NDArray[np.uint64]:
        chosen = np.zeros(len(self.pieces), np.bool_)
        chosen[list(merged)] = True
        chosen[[self.tokens[symbol] for symbol in self.defined.values()]] = True
        return crossed_junctions(self.bytes, self.indptr, chosen)


def _read_only(tables: PieceTables) -> PieceTables:
    return PieceTables(*[read_only(array) for array in tables])

"""A byte-pair model's vocabulary and merges -> MergeTables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.build.hash_tables import EMPTY, PAIR_FACTOR, fill_lines, fill_slots, hash_key
from jittok.build.junctions import crossed_junctions
from jittok.errors import FormatError, UnsupportedError
from jittok.spec import BPEModel, NumberedMerges, RankModel
from jittok.tables import (
    MERGE_BYTE_FALLBACK,
    MERGE_CUT,
    MERGE_DIRECT,
    MERGE_FUSE_UNKNOWN,
    MERGE_NUMBERS,
    MERGE_RANKED,
    MERGE_UNIT,
    MERGE_UNKNOWN,
    MERGE_VARIANTS,
    MISSING_UNKNOWN,
    MergeTables,
    PieceTables,
    read_only,
)
from jittok.token_columns import ColumnMerges, Columns, byte_ids, columns_of, find_ids, ids_of
from jittok.unicode.intervals import sorted_unique

#: Ids and symbols are packed into 20 bits, merge numbers into 24.
MOST_TOKENS = (1 << 20) - 512
MOST_MERGES = (1 << 24) - 2
NO_MERGE = (1 << 24) - 1
_NO_INTS = np.zeros(0, np.int32)


#: Where in the key of a unit the number of its form is.
_VARIANT_SHIFT = 21


class _Units(NamedTuple):
    """Single bytes or characters that have ids.

    Attributes
    ----------
    keys : int64[n]
        Each byte or codepoint, and 2**21 times the number of its form (bit 0: with the prefix, bit 1: the suffix).
    ids : int64[n]
    """

    keys: NDArray[np.int64]
    ids: NDArray[np.int64]


def byte_alphabet() -> dict[str, int]:
    """The printable character that stands for each byte in byte-level vocabularies (GPT-2's rule).

    Printable Latin-1 characters stand for themselves, the other bytes in turn for U+0100, U+0101, ...

    Examples
    --------
    >>> byte_alphabet()["Ġ"]
    32
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    alphabet = {chr(byte): byte for byte in printable}
    others = [byte for byte in range(256) if byte not in set(printable)]
    alphabet.update((chr(256 + i), byte) for i, byte in enumerate(others))
    return alphabet


def build_merge_tables(
    model: BPEModel | RankModel, *, byte_level: bool, blank_is_mark: bool = False
) -> MergeTables | PieceTables:
    """Flatten a byte-pair model.

    Parameters
    ----------
    model
        The model as its file states it.
    byte_level
        Whether the vocabulary of a :class:`~jittok.spec.BPEModel` is written in the byte alphabet.
    blank_is_mark
        Whether texts may be given with blanks for U+2581, which is then in no text for itself, if the vocabulary allows.

    Raises
    ------
    UnsupportedError
        More tokens or merges than the tables hold; byte fallback together with a subword prefix or suffix, or
        with a byte-level vocabulary that lacks bytes.
    FormatError
        A merge names a token that the vocabulary lacks.

    Returns
    -------
    MergeTables or PieceTables
        The latter for characters, where each of them has a token or becomes the unknown one, or bytes.
    """
    general, pairs = _merges(model, byte_level=byte_level, all_pairs=False)
    if isinstance(model, RankModel) or byte_level or model.ignore_merges:
        return general
    if model.continuing_subword_prefix or model.end_of_word_suffix:
        return general
    from jittok.build.piece_tables import build_listed_merges

    tables = build_listed_merges(model, pairs, lambda: _last_merges(general), blank_is_mark=blank_is_mark)
    return general if tables is None else tables


def build_sampling_merges(model: BPEModel | RankModel, *, byte_level: bool) -> MergeTables:
    """Flatten a byte-pair model for sampling: general tables, and no token is looked up whole.

    Parameters
    ----------
    model, byte_level
        As for :func:`build_merge_tables`, which raises what the model cannot be.
    """
    return _merges(model, byte_level=byte_level, all_pairs=True)[0]


def last_pairs(
    model: BPEModel | RankModel, *, byte_level: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The tokens that merging their own text makes, and the pair that does it at last, in the order of the merges.

    It is the only pair that ever makes the token: what happens within its text does not depend on what stands around
    it, as long as nothing is merged across its ends. So a model that lists these pairs only, in this order, is the same.

    Parameters
    ----------
    model, byte_level
        As for :func:`build_merge_tables`, which raises what the model cannot be.

    Returns
    -------
    made, left, right : int64[n]
        Ids.
    """
    general, pairs = _merges(model, byte_level=byte_level, all_pairs=True)
    made, by = _last_merges(general)
    return made.astype(np.int64), pairs[0, by], pairs[1, by]


def _merges(
    model: BPEModel | RankModel, *, byte_level: bool, all_pairs: bool
) -> tuple[MergeTables, NDArray[np.int64]]:
    """Tables, and the pairs of ids that merge."""
    if isinstance(model, RankModel):
        by_rank = {rank: token for token, rank in model.ranks.items()}
        _check_size(max(by_rank), 0)
        tokens = _tokens_of([by_rank.get(rank, b"") for rank in range(max(by_rank) + 1)])
        single = {token[0]: rank for token, rank in model.ranks.items() if len(token) == 1}
        pairs, results = _rank_pairs(model.ranks)
        units = _Units(np.array(list(single), np.int64), np.array(list(single.values()), np.int64))
        return _build(tokens, pairs, results, units, None, byte_level=True, all_pairs=all_pairs), pairs
    prefix, suffix = model.continuing_subword_prefix or "", model.end_of_word_suffix or ""
    if model.byte_fallback and (prefix or suffix):
        raise UnsupportedError(
            "model.byte_fallback together with continuing_subword_prefix or end_of_word_suffix is not supported"
        )
    vocab = model.vocab
    _check_size(int(ids_of(vocab).max(initial=0)), len(model.merges))
    pairs, results = _listed_pairs(model)
    units = _units(vocab, prefix, suffix, byte_level=byte_level)
    if model.byte_fallback and byte_level and len(units.keys) < 256:
        raise UnsupportedError(
            "model.byte_fallback is on, but the byte-level vocabulary lacks some of the 256 bytes; this is not supported"
        )
    tokens = _token_bytes(vocab, byte_level)
    return _build(tokens, pairs, results, units, model, byte_level=byte_level, all_pairs=all_pairs), pairs


def _units(vocab: Mapping[str, int], prefix: str, suffix: str, *, byte_level: bool) -> _Units:
    """The ids of single bytes or characters."""
    keys, found = [], []
    forms = [
        (variant, prefix if variant & 1 else "", suffix if variant & 2 else "")
        for variant in range((1 if prefix else 0) + (2 if suffix else 0) + 1)
        if (prefix or not variant & 1) and (suffix or not variant & 2)
    ]
    if byte_level:
        alphabet = byte_alphabet()
        values = np.fromiter(alphabet.values(), np.int64, len(alphabet))
        for variant, before, after in forms:
            ids = find_ids(vocab, [before + character + after for character in alphabet])
            keys.append(values[ids >= 0] | variant << _VARIANT_SHIFT)
            found.append(ids[ids >= 0])
        return _Units(np.concatenate(keys), np.concatenate(found))
    columns, ids = columns_of(vocab), ids_of(vocab)
    counts = columns.character_counts()
    for variant, before, after in forms:
        places = np.flatnonzero(counts == len(before) + len(after) + 1)
        if before or after:
            tokens = columns.take(places).strings()
            kept = [token.startswith(before) and token.endswith(after) for token in tokens]
            tokens, places = list(compress(tokens, kept)), places[kept]
            text = "".join(token[len(before)] for token in tokens)
        else:
            text = columns.take(places).data.tobytes().decode("utf-8", "surrogatepass")
        codepoints = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
        keys.append(codepoints | variant << _VARIANT_SHIFT)
        found.append(ids[places])
    return _Units(np.concatenate(keys), np.concatenate(found))


def _check_size(largest_id: int, n_merges: int) -> None:
    if largest_id > MOST_TOKENS:
        raise UnsupportedError(f"the vocabulary has the id {largest_id}; ids up to {MOST_TOKENS} are supported")
    if n_merges > MOST_MERGES:
        raise UnsupportedError(f"the model has {n_merges} merges; up to {MOST_MERGES} are supported")


class _Tokens(NamedTuple):
    """Bytes of text that each token stands for, by id; those outside the byte alphabet, and holes, have none."""

    data: bytes
    indptr: NDArray[np.int64]

    def of(self, number: int) -> bytes:
        return self.data[int(self.indptr[number]) : int(self.indptr[number + 1])]


def _tokens_of(parts: Sequence[bytes]) -> _Tokens:
    indptr = np.zeros(len(parts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=indptr[1:])
    return _Tokens(b"".join(parts), indptr)


def _token_bytes(vocab: Mapping[str, int], byte_level: bool) -> _Tokens:
    """The tokens of a vocabulary by id; of two with the same id, the last."""
    columns, ids = columns_of(vocab), ids_of(vocab)
    if (ids[1:] <= ids[:-1]).any():
        place_of = np.full(int(ids.max()) + 1, -1, np.int64)
        place_of[ids] = np.arange(len(ids))
        ids = np.flatnonzero(place_of >= 0)
        columns = columns.take(place_of[ids])
    data, ends = columns
    lengths = np.diff(ends)
    if byte_level:
        data, lengths = _from_alphabet(columns)
    indptr = np.zeros(int(ids.max(initial=-1)) + 2, np.int64)
    indptr[ids + 1] = lengths
    return _Tokens(data.tobytes(), np.cumsum(indptr))


def _from_alphabet(columns: Columns) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes that tokens in the byte alphabet stand for, and their numbers; a token with anything else has none."""
    byte_of = _byte_of_pair()
    data, indptr = columns
    begins = (data & 0xC0) != 0x80
    at = np.flatnonzero(begins)
    first = data[at]
    # Characters of the alphabet have one or two bytes.
    pair = first.astype(np.uint16) << 8
    wide = np.flatnonzero(first >= 0x80)
    pair[wide] |= data[np.minimum(at[wide] + 1, len(data) - 1)]
    values = byte_of[pair]
    count = np.zeros(len(data) + 1, np.int64)
    np.cumsum(begins, out=count[1:])
    ends = count[indptr]
    lengths = np.diff(ends)
    is_outside = values < 0
    if is_outside.any():
        outside = np.zeros(len(values) + 1, np.int64)
        np.cumsum(is_outside, out=outside[1:])
        bad = np.diff(outside[ends]) > 0
        values = values[np.repeat(~bad, lengths)]
        lengths[bad] = 0
    return values.astype(np.uint8), lengths


@cache
def _byte_of_pair() -> NDArray[np.int16]:
    """The byte that a character of the alphabet stands for, by its first byte in UTF-8 and the second; -1 elsewhere."""
    byte_of = np.full(1 << 16, -1, np.int16)
    for character, byte in byte_alphabet().items():
        byte_of[int.from_bytes(character.encode().ljust(2, b"\0"), "big")] = byte
    return byte_of


def _rank_pairs(ranks: Mapping[bytes, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every way to write a token as two tokens, in order of the token's rank."""
    get = ranks.get
    left: list[int] = []
    right: list[int] = []
    result: list[int] = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        for cut in range(1, len(token)):
            a = get(token[:cut])
            if a is not None:
                b = get(token[cut:])
                if b is not None:
                    left.append(a)
                    right.append(b)
                    result.append(rank)
    return np.array([left, right], np.int64).reshape(2, -1), np.array(result, np.int64)


def _listed_pairs(model: BPEModel) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs of ids that a model lists, in order of rank; of equal pairs the last counts, as in tokenizers."""
    vocab, drop = model.vocab, len(model.continuing_subword_prefix or "")
    if isinstance(model.merges, ColumnMerges) and model.merges.vocab is vocab:
        return np.stack(model.merges.ids[:2]), model.merges.ids[2]  # no pair comes twice
    try:
        if isinstance(model.merges, NumberedMerges) and model.merges.vocab is vocab:
            left, right, result = model.merges.ids
        else:
            left = [vocab[a] for a, _ in model.merges]
            right = [vocab[b] for _, b in model.merges]
            result = [vocab[a + b[drop:]] for a, b in model.merges]
    except KeyError as error:
        raise FormatError(
            f"model.merges needs the token {error.args[0]!r}, which model.vocab lacks; add it or drop the merge"
        ) from None
    pairs = np.array([left, right], np.int64).reshape(2, -1)
    keys = (pairs[0] << 32 | pairs[1])[::-1]
    made = np.array(result, np.int64)
    if len(sorted_unique(made)) == len(made):  # so no pair comes twice
        return pairs, made
    _, last = np.unique(keys, return_index=True)
    kept = np.sort(len(keys) - 1 - last)
    return pairs[:, kept], made[kept]


def _pair_slots(
    left: NDArray[np.int64], right: NDArray[np.int64], number: NDArray[np.int64] | None = None
) -> NDArray[np.uint64]:
    """Hash table from two symbols to the merge number, which is the position in the arrays if none is given."""
    keys = left.astype(np.uint64) << np.uint64(20) | right.astype(np.uint64)
    with np.errstate(over="ignore"):
        hashes = keys * PAIR_FACTOR >> np.uint64(40)
    numbers = np.arange(len(left), dtype=np.uint64) if number is None else number.astype(np.uint64)
    return fill_lines(hashes, keys << np.uint64(24) | numbers)


def _build(
    tokens: _Tokens,
    pairs: NDArray[np.int64],
    results: NDArray[np.int64],
    units: _Units,
    model: BPEModel | None,
    *,
    byte_level: bool,
    all_pairs: bool = False,
) -> MergeTables:
    size = len(tokens.indptr) - 1
    complete = byte_level and not _variants(model) and len(units.keys) == 256
    unknown = -1 if model is None or model.unk_token is None else model.vocab.get(model.unk_token, -1)
    missing_unknown = model is not None and model.unk_token is not None and unknown < 0 and not complete
    # An unknown token that the vocabulary lacks is one token more, whose id the engine takes for an error.
    size += missing_unknown
    token_indptr = np.append(tokens.indptr, tokens.indptr[-1:]) if missing_unknown else tokens.indptr
    token_bytes = np.frombuffer(tokens.data + bytes(64), np.uint8)
    numbers = np.zeros(MERGE_NUMBERS, np.int64)
    numbers[MERGE_UNIT] = 0 if byte_level else 1
    numbers[MERGE_UNKNOWN] = -1
    fallback = np.full(256, -1, np.int32)
    if model is not None:
        numbers[MERGE_UNKNOWN] = size - 1 if missing_unknown else unknown
        numbers[MERGE_FUSE_UNKNOWN] = model.fuse_unk
        numbers[MERGE_BYTE_FALLBACK] = model.byte_fallback
        numbers[MERGE_VARIANTS] = _variants(model)
        if model.byte_fallback:
            fallback[:] = byte_ids(model.vocab)
    keys, unit_ids = units.keys.astype(np.uint64), units.ids.astype(np.uint64)
    general = MergeTables(
        pair_slots=_pair_slots(pairs[0], pairs[1]),
        byte_pair=_NO_INTS,
        merge_result=results.astype(np.int32),
        symbol_token=np.arange(size, dtype=np.int32),
        unit_slots=fill_slots(hash_key(keys), keys << np.uint64(32) | unit_ids),
        fallback_symbol=fallback,
        direct_slots=np.full(8, EMPTY, np.uint64),
        token_bytes=token_bytes,
        token_indptr=token_indptr,
        reachable=np.zeros(size, np.uint8),
        crossed=np.zeros(1, np.uint64),
        numbers=numbers,
    )
    if missing_unknown:
        general.reachable[size - 1] = MISSING_UNKNOWN
    tables = general
    if complete and not all_pairs:
        tables = _ranked(general, pairs, units.ids[np.argsort(units.keys)])
    direct = model is None or model.ignore_merges
    if direct and not all_pairs:
        wanted = np.flatnonzero((np.diff(token_indptr) > 0) & (tables.reachable == 0)).tolist()
        tables = tables._replace(direct_slots=_direct_slots({i: tokens.of(i) for i in wanted}, wanted))
        tables.numbers[MERGE_DIRECT] = len(wanted)
        # A part must not be taken for a whole pre-token that is a token by itself.
        if wanted:
            tables.numbers[MERGE_CUT] = 0
    for array in tables:
        array.setflags(write=False)
    return tables


def _variants(model: BPEModel | RankModel | None) -> int:
    """Bit 0: units that are not a word's first have a form of their own; bit 1: the last one has."""
    if not isinstance(model, BPEModel):
        return 0
    return (1 if model.continuing_subword_prefix else 0) | (2 if model.end_of_word_suffix else 0)


def _last_merges(general: MergeTables) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The tokens that merging their own text makes, and the last merge of each, in the order of the merges."""
    from jittok.kernels.canonical import find_last_merges
    from jittok.kernels.word_cache import new_word_scratch

    lengths = np.diff(general.token_indptr)
    tokens = np.flatnonzero(lengths > 1)
    last_merge = np.empty(len(tokens), np.int32)
    frozen = MergeTables(*[read_only(array) for array in general])
    find_last_merges(frozen, tokens, new_word_scratch(max(8, int(lengths.max(initial=0)))), last_merge)
    # No merge is the last one of two tokens.
    made = np.full(len(general.merge_result), -1, np.int64)
    reached = last_merge >= 0
    made[last_merge[reached]] = tokens[reached]
    by = np.flatnonzero(made >= 0)
    return made[by], by


def _ranked(general: MergeTables, pairs: NDArray[np.int64], byte_ids: NDArray[np.int64]) -> MergeTables:
    """Tables with the one pair that can make each token; see :class:`~jittok.tables.MergeTables`."""
    lengths = np.diff(general.token_indptr)
    made, by = _last_merges(general)
    symbol_token = np.concatenate([byte_ids, made]).astype(np.int32)
    symbol_of = np.full(len(lengths), -1, np.int64)
    symbol_of[symbol_token] = np.arange(len(symbol_token))
    left, right = symbol_of[pairs[0, by]], symbol_of[pairs[1, by]]
    byte_pair = np.full(65536, NO_MERGE, np.int32)
    of_bytes = (left < 256) & (right < 256)
    byte_pair[(left | right << 8)[of_bytes]] = np.flatnonzero(of_bytes)
    reachable = np.zeros(len(lengths), np.uint8)
    reachable[symbol_token] = 1
    numbers = general.numbers.copy()
    numbers[MERGE_RANKED] = 1
    numbers[[MERGE_UNKNOWN, MERGE_FUSE_UNKNOWN, MERGE_BYTE_FALLBACK]] = -1, 0, 0  # no byte is unknown
    numbers[MERGE_CUT] = 1
    return general._replace(
        pair_slots=_pair_slots(left, right),
        byte_pair=byte_pair,
        merge_result=np.arange(256, 256 + len(made), dtype=np.int32),
        symbol_token=symbol_token,
        unit_slots=np.full(8, EMPTY, np.uint64),
        fallback_symbol=np.full(256, -1, np.int32),
        reachable=reachable,
        crossed=crossed_junctions(general.token_bytes, general.token_indptr, reachable.astype(np.bool_)),
        numbers=numbers,
    )


def _direct_slots(tokens: Sequence[bytes] | Mapping[int, bytes], wanted: Sequence[int]) -> NDArray[np.uint64]:
    """Hash table of tokens to look up whole, by the words kernel's hash of their bytes."""
    hashes = np.array([hash_token(tokens[i]) for i in wanted], np.uint64)
    slots = (hashes & np.uint64(0xFFFFFFFF)) << np.uint64(32) | np.array(wanted, np.uint64)
    return fill_slots(hashes >> np.uint64(32), slots)


def hash_token(token: bytes) -> int:
    """The words kernel's ``hash_bytes``, in plain Python."""
    mask = (1 << 64) - 1
    value = len(token) * 0xC2B2AE3D27D4EB4F & mask
    for at in range(0, len(token), 8):
        value = (value ^ int.from_bytes(token[at : at + 8], "little")) * 0x9E3779B97F4A7C15 & mask
        value ^= value >> 32
    value = value * 0xD6E8FEB86659FD93 & mask
    return value ^ value >> 29

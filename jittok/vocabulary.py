"""Tokens by id and ids by token.

Building is vectorised over the whole vocabulary, and looking up needs no dictionary: string to id is a
binary search in sorted hashes, so a saved vocabulary is usable as soon as it is memory-mapped.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ._jit import JIT_DISABLED, is_ready
from .errors import ArgumentTypeError, FormatError, TokenIdError
from .spec import (
    AddedToken,
    AddedTokens,
    BPEModel,
    ByteLevel,
    DecodeByteLevel,
    DecodeLlamaCpp,
    MapBytes,
    Model,
    PieceType,
    RankModel,
    SentencePieceModel,
    TokenizerSpec,
    UnigramModel,
    WordLevelModel,
    WordPieceModel,
)
from .tables import (
    ADDED,
    NORMALIZED,
    PRESENT,
    SPECIAL,
    STRIPS,
    TOKEN_NORMALIZED,
    TOKEN_SPECIAL,
    TOKEN_STRIP_LEFT,
    TOKEN_STRIP_RIGHT,
    VocabularyTables,
    read_only,
)
from .token_columns import Columns, columns_of, has_unique_ids, id_bounds, ids_of

#: Of so many times fewer ids than there are, white space is counted in their tokens only.
_FEW_IDS = 16

#: White space as Unicode has it (property White_Space, the same in versions 8 to 18).
WHITE_SPACE = frozenset(
    [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
)


def byte_alphabet() -> NDArray[np.uint32]:
    """Return the codepoint that stands for each byte in byte-level vocabularies (uint32[256]).

    Printable bytes of Latin-1 stand for themselves; the other 68 are given U+0100, U+0101, ... in order.

    Notes
    -----
    Source: the rule of GPT-2's ``bytes_to_unicode``.
    """
    bytes_ = np.arange(256, dtype=np.uint32)
    printable = ((bytes_ >= 0x21) & (bytes_ <= 0x7E)) | ((bytes_ >= 0xA1) & (bytes_ != 0xAD))
    return np.where(printable, bytes_, 0xFF + np.cumsum(~printable)).astype(np.uint32)


def alphabet_bytes() -> NDArray[np.int16]:
    """Return the byte that each codepoint below 0x144 stands for, -1 for none (int16[0x144])."""
    result = np.full(0x144, -1, dtype=np.int16)
    result[byte_alphabet()] = np.arange(256)
    return result


def is_byte_level(spec: TokenizerSpec) -> bool:
    """Return whether the model's token strings are written in the byte alphabet."""
    steps = (*spec.normalizers, *spec.pre_tokenizers, *spec.decoders)
    return any(isinstance(step, ByteLevel | MapBytes | DecodeByteLevel) for step in steps)


def check_vocabulary(spec: TokenizerSpec) -> None:
    """Check the ids of a tokenizer's tokens.

    Parameters
    ----------
    spec
        A tokenizer; of its model only the vocabulary is read.

    Raises
    ------
    FormatError
        As :func:`build_vocabulary`.
    """
    model = spec.model
    added = spec.added
    n_tokens = len(added.last_of_each_id())
    if isinstance(model, (UnigramModel, SentencePieceModel)):
        n_tokens += len(model.pieces)
        greatest = len(model.pieces) - 1
    else:
        by_token: Mapping[Any, int] = model.ranks if isinstance(model, RankModel) else model.vocab
        n_tokens += len(by_token)
        least, greatest = id_bounds(by_token)
        if least < 0:
            worst = next(token for token, token_id in by_token.items() if token_id == least)
            raise FormatError(f"the vocabulary's token {worst!r} has the id {least}: expected 0 or more")
    least, greatest_added = added.id_bounds()
    if least < 0:
        content, wrong = next(pair for pair in zip(added.contents, added.id_list(), strict=True) if pair[1] < 0)
        raise FormatError(f"the added token {content!r} has the id {wrong}: expected 0 or more")
    greatest = max(greatest, greatest_added)
    # Tables are as long as the greatest id; a file of a few bytes must not ask for gigabytes.
    limit = min(16 * n_tokens + 2_000_000, 2**31 - 1)
    if greatest > limit:
        raise FormatError(
            f"the greatest token id is {greatest}, but there are only {n_tokens} tokens; expected at most {limit}"
        )
    # Two tokens may share an id, as the reference allows, where that leaves no doubt about the ids of a text.
    may_share = isinstance(model, (WordPieceModel, WordLevelModel, UnigramModel, SentencePieceModel)) or (
        isinstance(model, BPEModel) and not model.merges and not model.ignore_merges
    )
    if may_share or has_unique_ids(by_token):
        return
    twice = int(np.argmax(np.bincount(ids_of(by_token))))
    names = [repr(token) for token, token_id in by_token.items() if token_id == twice][:2]
    raise FormatError(f"the vocabulary gives the id {twice} to two tokens, {' and '.join(names)}")


def build_vocabulary(spec: TokenizerSpec) -> VocabularyTables:
    """Build the look-up tables of a tokenizer's tokens.

    Parameters
    ----------
    spec
        A tokenizer; of its model only the vocabulary is read.

    Returns
    -------
    VocabularyTables
        Where an added token and a token of the model have the same id, the added token's string holds.

    Raises
    ------
    FormatError
        An id is negative, given to two tokens of the model, or out of proportion to their number.

    Notes
    -----
    Linear plus one sort; about 0.15 s for 200,000 tokens. Bytes of an added token that is no token of the
    model are its own UTF-8, even where all its characters are letters of the byte alphabet.
    """
    model = spec.model
    check_vocabulary(spec)
    added = spec.added.last_of_each_id()
    by_token: Iterable[Any]
    if isinstance(model, (UnigramModel, SentencePieceModel)):
        by_token, ids = model.pieces, np.arange(len(model.pieces))
    else:
        by_token = model.ranks if isinstance(model, RankModel) else model.vocab
        ids = ids_of(by_token)
    size = int(max(ids.max(initial=-1), added.ids.max(initial=-1))) + 1
    columns = columns_of(by_token)
    n_tokens = len(ids)
    place_of = np.full(size, -1, np.int64)
    place_of[ids] = np.arange(n_tokens)
    flags = np.zeros(size, dtype=np.uint8)
    flags[ids] = PRESENT
    if isinstance(model, SentencePieceModel):
        flags[model.of_type(PieceType.CONTROL, PieceType.UNKNOWN)] |= SPECIAL
    of_model = flags.astype(bool)
    if len(added):
        contents = columns_of(added.contents)
        # The model may make the same string from the text's bytes; another string replaces the model's.
        shared = np.flatnonzero(of_model[added.ids])
        numbers = added.ids[shared]
        of_model[numbers] = _same_strings(columns, place_of[numbers], contents, shared)
        place_of[added.ids] = n_tokens + np.arange(len(added))
        columns = Columns(
            np.concatenate([columns.data, contents.data]),
            np.concatenate([columns.indptr, columns.indptr[-1] + contents.indptr[1:]]),
        )
    flags[added.ids] |= added_token_flags(added, spec.reference)
    strings, string_indptr = columns.take(place_of) if size else Columns(np.zeros(0, np.uint8), np.zeros(1, np.int64))
    _check_surrogates(strings, model)
    token_bytes, bytes_indptr = strings, string_indptr
    if spec.decoders and isinstance(spec.decoders[0], DecodeLlamaCpp):
        by_id = Columns(strings, string_indptr).strings()
        token_bytes, bytes_indptr = _joined(llama_cpp_bytes(by_id, spec.decoders[0]))
    elif is_byte_level(spec) and not isinstance(model, RankModel):
        token_bytes, bytes_indptr = _from_alphabet(strings, string_indptr, of_model)

    # Added tokens first: of two equal strings (in odd files) theirs is the one that is found.
    present = np.flatnonzero(flags)
    order = (flags[present] & ADDED) == 0
    if isinstance(model, UnigramModel | SentencePieceModel):
        # Here the model itself may have a string twice, and says which one is found.
        found = model.vocab
        if len(found) < n_tokens:
            by_id = Columns(strings, string_indptr).take(present).strings()
            order = order * 2 + np.array([found.get(s) != i for i, s in zip(present.tolist(), by_id, strict=True)])
    present = present[np.argsort(order, kind="stable")] if order.any() else present
    hashes = _hashes(strings, string_indptr)[present]
    keys = np.sort(hashes.astype(np.uint64) << np.uint64(32) | np.arange(len(hashes), dtype=np.uint64))
    order = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
    tables = VocabularyTables(
        strings,
        string_indptr,
        token_bytes,
        bytes_indptr,
        flags,
        hashes[order],
        present[order].astype(np.int32),
    )
    for array in tables:
        array.flags.writeable = False
    return tables


def llama_cpp_bytes(tokens: list[str], step: DecodeLlamaCpp) -> list[bytes]:
    """Return the bytes that each token leaves in text, by llama.cpp's rules.

    Parameters
    ----------
    tokens
        By id.
    step
        How they are written, and their types.

    Returns
    -------
    list of bytes
        A character that is not in the byte alphabet stands for itself.
    """
    result = []
    alphabet = {chr(i): bytes([byte]) for i, byte in enumerate(alphabet_bytes().tolist()) if byte >= 0}
    types = step.types.ljust(len(tokens), bytes([PieceType.USER_DEFINED]))
    for token, kind in zip(tokens, types, strict=False):
        if kind == PieceType.NORMAL and step.style != "pieces":
            result.append(b"".join(alphabet.get(character) or character.encode() for character in token))
        elif kind == PieceType.NORMAL:
            result.append(token.replace("\u2581", " ").encode())
        elif kind == PieceType.USER_DEFINED:
            result.append(unescaped(token.encode()) if step.style == "escaped" else token.encode())
        elif kind == PieceType.BYTE:
            digits = token[3:5]
            result.append(bytes([int(digits, 16)]) if re.fullmatch("[0-9a-fA-F]{2}", digits) else b"")
        else:
            result.append(b"")
    return result


def unescaped(token: bytes) -> bytes:
    r"""Return the bytes of a token of RWKV's: ``\t``, ``\n``, ``\r`` and ``\xNN`` stand for bytes, ``\`` for what follows.

    Parameters
    ----------
    token
        As the file has it.
    """
    result = bytearray()
    at = 0
    while at < len(token):
        byte = token[at : at + 1]
        at += 1
        if byte != b"\\":
            result += byte
            continue
        if at == len(token):
            break
        byte = token[at : at + 1]
        at += 1
        if byte == b"x":
            value = 0
            digits = token[at : at + 2]
            if len(digits) < 2:
                break
            for digit in digits:
                value = value << 4 & 0xFF
                value = value + (digit - 0x57 if digit >= 0x61 else digit - 0x30) & 0xFF
            result.append(value)
            at += 2
        else:
            result += {b"t": b"\t", b"n": b"\n", b"r": b"\r"}.get(byte, byte)
    return bytes(result)


def added_token_flags(tokens: AddedTokens, reference: str) -> NDArray[np.uint8]:
    """Return the bits of ``VocabularyTables.flags`` of each of some added tokens; `reference` says how they are shown."""
    flags = tokens.flags
    result = np.full(len(flags), PRESENT | ADDED, np.uint8)
    for given, bit in (
        (TOKEN_SPECIAL, SPECIAL),
        (TOKEN_STRIP_LEFT | TOKEN_STRIP_RIGHT, STRIPS),
        (TOKEN_NORMALIZED, NORMALIZED),
    ):
        if bit == STRIPS and reference == "llama.cpp":
            continue  # it shows them as they are
        result[(flags & given) != 0] |= bit
    return result


def _same_strings(
    left: Columns, left_places: NDArray[np.int64], right: Columns, right_places: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether strings of two columns are the same, one by one."""
    pairs = (columns.take(places) for columns, places in ((left, left_places), (right, right_places)))
    blobs = [(columns.data.tobytes(), columns.indptr.tolist()) for columns in pairs]
    (a, a_at), (b, b_at) = blobs
    n = len(left_places)
    return np.array([a[a_at[i] : a_at[i + 1]] == b[b_at[i] : b_at[i + 1]] for i in range(n)], np.bool_)


def _check_surrogates(strings: NDArray[np.uint8], model: Model) -> None:
    """Refuse tokens with half of a surrogate pair, which in UTF-8 would be 0xED and then 0xA0 or more."""
    if isinstance(model, RankModel) or len(strings) < 2:
        return
    for place in np.flatnonzero((strings[:-1] == 0xED) & (strings[1:] >= 0xA0))[:1].tolist():
        near = strings[max(place - 20, 0) : place + 3].tobytes().decode("utf-8", "backslashreplace")
        raise FormatError(f"the vocabulary's token {near!r} holds a lone surrogate; no text can contain it")


def _hashes(strings: NDArray[np.uint8], indptr: NDArray[np.int64]) -> NDArray[np.uint32]:
    """``crc32`` of each string."""
    from .kernels.hash_tables import check_sums

    sums = np.empty(len(indptr) - 1, np.uint32)
    arguments = read_only(strings), read_only(indptr), _remainders(), sums
    if not JIT_DISABLED and is_ready(check_sums, *arguments):
        check_sums(*arguments)
        return sums
    blob, bounds = strings.tobytes(), indptr.tolist()
    parts = [blob[a:b] for a, b in zip(bounds, bounds[1:], strict=False)]
    return np.fromiter(map(crc32, parts), np.uint32, len(parts))


def _joined(parts: list[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    indptr = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)), out=indptr[1:])
    return np.frombuffer(b"".join(parts), dtype=np.uint8).copy(), indptr


@cache
def _remainders() -> NDArray[np.uint32]:
    """The remainder of each byte for CRC-32."""
    values = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = np.where(values & 1, values >> 1 ^ np.uint32(0xEDB88320), values >> 1).astype(np.uint32)
    return read_only(values)


def _from_alphabet(
    strings: NDArray[np.uint8], indptr: NDArray[np.int64], of_model: NDArray[np.bool_]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes that byte-level token strings stand for.

    A token of the model with any character outside the alphabet stands for its own UTF-8, as the
    reference decodes it; so does every token that is not the model's.
    """
    begins = (strings & 0xC0) != 0x80
    first = np.flatnonzero(begins)
    # Characters of the alphabet have one or two bytes.
    pair = strings[first].astype(np.uint16) << 8
    wide = np.flatnonzero(pair >= 0x8000)
    pair[wide] |= strings[np.minimum(first[wide] + 1, len(strings) - 1)]
    mapped = _byte_of_pair()[pair]
    count = np.zeros(len(strings) + 1, np.int64)
    np.cumsum(begins, out=count[1:])
    ends = count[indptr]
    lengths = np.diff(ends)
    outside = np.zeros(len(mapped) + 1, np.int64)
    np.cumsum(mapped < 0, out=outside[1:])
    is_mapped = of_model & (np.diff(outside[ends]) == 0)
    own_sizes = np.diff(indptr)
    sizes = np.where(is_mapped, lengths, own_sizes)
    result_indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    if is_mapped.all():
        return mapped.astype(np.uint8), result_indptr
    result = np.empty(int(result_indptr[-1]), np.uint8)
    places = np.repeat(is_mapped, sizes)
    result[places] = mapped[np.repeat(is_mapped, lengths)]
    result[~places] = strings[np.repeat(~is_mapped, own_sizes)]
    return result, result_indptr


@cache
def _byte_of_pair() -> NDArray[np.int16]:
    """The byte that a character of the alphabet stands for, by its first byte in UTF-8 and the second; -1 elsewhere."""
    byte_of = np.full(1 << 16, -1, np.int16)
    for byte, codepoint in enumerate(byte_alphabet().tolist()):
        byte_of[int.from_bytes(chr(codepoint).encode().ljust(2, b"\0"), "big")] = byte
    return byte_of


class Vocabulary:
    """Look-ups in :class:`~jittok.tables.VocabularyTables`.

    Parameters
    ----------
    tables
        The arrays, or what builds them.
    added_tokens
        The added tokens, which :attr:`special_tokens` lists. Two of them may have the same id.
    shown
        Gives what an added token that is looked for in normalised text is shown as where the text is not known: its content,
        normalised. None: its content.
    unknown, surface
        Id of the token for unknown text, where that is shown as the text that it stands for: which `surface` gives
        from the original text. -1: no such token.

    Attributes
    ----------
    size
        One more than the greatest id.
    unknown
        As given.
    """

    def __init__(
        self,
        tables: VocabularyTables | Callable[[], VocabularyTables],
        added_tokens: Iterable[AddedToken] = (),
        shown: Callable[[int], str] | None = None,
        unknown: int = -1,
        surface: Callable[[str], str] | None = None,
    ) -> None:
        self._tables = tables
        self.added_tokens = AddedTokens.of(added_tokens)
        self._shown = shown
        self.unknown = unknown
        self._surface = surface

    @cached_property
    def _added_ids(self) -> dict[str, int]:
        return dict(zip(self.added_tokens.contents, self.added_tokens.ids.tolist(), strict=True))

    @cached_property
    def tables(self) -> VocabularyTables:
        """The arrays; built when they are needed for the first time."""
        return self._tables if isinstance(self._tables, VocabularyTables) else self._tables()

    @property
    def size(self) -> int:
        """One more than the greatest id."""
        return len(self.tables.flags)

    def __len__(self) -> int:
        """Return the number of different tokens (holes in the ids are not counted)."""
        return len(self.tables.hash_ids)

    @property
    def special_tokens(self) -> dict[str, int]:
        """The special tokens and their ids, in order of id."""
        added = self.added_tokens
        special = added.where(TOKEN_SPECIAL)
        special = special[np.argsort(added.ids[special], kind="stable")]
        return {added.contents[place]: int(added.ids[place]) for place in special.tolist()}

    @cached_property
    def _string_blob(self) -> bytes:
        return self.tables.strings.tobytes()

    @cached_property
    def _bytes_blob(self) -> bytes:
        tables = self.tables
        return self._string_blob if tables.token_bytes is tables.strings else tables.token_bytes.tobytes()

    def string_of(self, token_id: int) -> bytes:
        """Return the string of an id inside the vocabulary, as UTF-8; empty for a hole."""
        indptr = self.tables.string_indptr
        return self._string_blob[int(indptr[token_id]) : int(indptr[token_id + 1])]

    def bytes_of(self, token_id: int) -> bytes:
        """Return the bytes of text that an id inside the vocabulary stands for; empty for a hole."""
        indptr = self.tables.bytes_indptr
        return self._bytes_blob[int(indptr[token_id]) : int(indptr[token_id + 1])]

    def contains_id(self, token_id: int) -> bool:
        """Return whether there is a token of this id."""
        return 0 <= token_id < self.size and bool(self.tables.flags[token_id] & PRESENT)

    def id_to_token(self, token_id: int) -> str | None:
        """Return the token string of an id, or None where there is no such token.

        Parameters
        ----------
        token_id
            Any whole number.

        Returns
        -------
        str or None
            In the byte alphabet where the vocabulary is byte-level; for a rank file the token's bytes
            decoded, with U+FFFD where they are not UTF-8.
        """
        number = token_number(token_id)
        return self.string_of(number).decode("utf-8", "replace") if self.contains_id(number) else None

    def token_to_id(self, token: str | bytes) -> int | None:
        """Return the id of a token string (for a rank file: of a token's text or bytes), or None.

        Notes
        -----
        A binary search among CRC-32 values, then a comparison with the few that are equal.
        """
        if isinstance(token, str):
            if token in self._added_ids:
                return self._added_ids[token]
            try:
                key = token.encode()
            except UnicodeEncodeError:
                return None
        elif isinstance(token, bytes):
            key = token
        else:
            raise ArgumentTypeError(f"token: expected str, got {type(token).__name__}")
        hashes = self.tables.hashes
        # A NumPy scalar: a Python int would make searchsorted convert the whole array.
        value = np.uint32(crc32(key))
        at = int(np.searchsorted(hashes, value))
        while at < len(hashes) and hashes[at] == value:
            token_id = int(self.tables.hash_ids[at])
            if self.string_of(token_id) == key:
                return token_id
            at += 1
        return None

    def ids_of(self, tokens: Sequence[str]) -> NDArray[np.int64]:
        """Return what :meth:`token_to_id` gives for each of many strings, -1 for None (int64[n])."""
        result = np.full(len(tokens), -1, np.int64)
        hashes = self.tables.hashes
        keys = [token.encode("utf-8", "surrogatepass") for token in tokens]
        values = np.fromiter(map(crc32, keys), np.uint32, len(keys))
        at = np.searchsorted(hashes, values)
        if len(hashes):
            known = hashes[np.minimum(at, len(hashes) - 1)] == values
            for place in np.flatnonzero(known).tolist():
                found = self.token_to_id(tokens[place])
                result[place] = -1 if found is None else found
        return result

    def tokens(self, ids: NDArray[np.integer]) -> list[str]:
        """Return the token strings of ids that are all inside the vocabulary."""
        indptr = self.tables.string_indptr
        begins, ends = indptr[ids].tolist(), indptr[np.asarray(ids) + 1].tolist()
        blob = self._string_blob
        return [blob[begin:end].decode("utf-8", "replace") for begin, end in zip(begins, ends, strict=True)]

    def tokens_in_text(
        self,
        ids: NDArray[np.integer],
        spans: NDArray[np.int64] | None,
        slice_of: Callable[[int], str | None],
        shown: Mapping[int, str] | None = None,
    ) -> list[str]:
        """Return token strings as the reference shows them for a text.

        Parameters
        ----------
        ids, spans
            The tokens and their spans, which may be None.
        slice_of
            Gives the text under the token of a position, or None.
        shown
            By position, tokens that are shown otherwise: unknown ones that are a part of a rewritten character, and
            added tokens as they were found in the text.

        Returns
        -------
        list of str
            Without spans, nobody knows what was found: then added tokens that are looked for in normalised text are shown
            normalised.
        """
        result = self.tokens(ids)
        if spans is None:
            if self._shown is not None:
                for row in np.flatnonzero(self.tables.flags[ids] & NORMALIZED).tolist():
                    result[row] = self._shown(int(ids[row]))
            return result
        if self._surface is not None:
            for row in np.flatnonzero(ids == self.unknown).tolist():
                result[row] = self.surface_of(slice_of(row)) or result[row]
        for row, text in (shown or {}).items():
            result[row] = text
        return result

    def surface_of(self, text: str | None) -> str | None:
        """Return what an unknown token is shown as that stands for some of the original text."""
        return text if not text or self._surface is None else self._surface(text)

    def trim_counts(self, ids: NDArray[np.integer]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Return how many characters of white space token strings begin and end with.

        Parameters
        ----------
        ids
            The tokens that it is asked of, inside the vocabulary.

        Returns
        -------
        leading, trailing : int32[k]
            White space is U+0120 (the blank of the byte alphabet) or any character of White_Space.
        places : int32[n]
            Where the counts of each token are: its id, where those of all tokens are known.
        """
        if "_trim_counts" not in vars(self) and len(ids) * _FEW_IDS < self.size:
            used, places = np.unique(ids, return_inverse=True)
            return *self._counts(used), read_only(places.astype(np.int32))
        return *self._trim_counts, read_only(np.asarray(ids, np.int32))

    @cached_property
    def _trim_counts(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return self._counts(np.arange(self.size))

    def _counts(self, ids: NDArray[np.integer]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        texts = self.tokens(ids)
        codepoints = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        ends = np.cumsum(lengths)
        begins = ends - lengths
        ink = np.flatnonzero(~np.isin(codepoints, [0x120, *WHITE_SPACE]))
        # First and last character of each token that is not white space; none: all of it counts twice.
        first = np.append(ink, len(codepoints))[np.searchsorted(ink, begins)]
        last = np.insert(ink, 0, -1)[np.searchsorted(ink, ends)]
        leading = np.minimum(first, ends) - begins
        trailing = ends - np.maximum(last + 1, begins)
        return read_only(leading.astype(np.int32)), read_only(trailing.astype(np.int32))


def outer_white_space(text: str, more: str = "") -> tuple[int, int]:
    """Return how many characters of White_Space, or of `more`, `text` begins and ends with (all of it twice if blank)."""
    left = 0
    while left < len(text) and (ord(text[left]) in WHITE_SPACE or text[left] in more):
        left += 1
    right = 0
    while right < len(text) and (ord(text[-1 - right]) in WHITE_SPACE or text[-1 - right] in more):
        right += 1
    return left, right


def token_number(token_id: object) -> int:
    """Return `token_id` as an int, or raise: bools, floats and strings are no token ids."""
    if isinstance(token_id, bool | np.bool_):
        raise ArgumentTypeError(f"token id: expected a whole number, got {token_id!r}")
    try:
        return operator.index(token_id)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(f"token id: expected a whole number, got {type(token_id).__name__}") from None


def unknown_id(token_id: int, position: int | None, size: int) -> TokenIdError:
    """Return the error for an id without a token."""
    where = "" if position is None else f" at position {position}"
    return TokenIdError(f"token id {token_id}{where} is not in the vocabulary, whose ids run from 0 to {size - 1}")

"""The large parts of a tokenizer.json, read by kernels: vocabulary, merges, and added tokens.

What is left goes through the json module. So does the whole file where a part is not as plain as the reference writes
it, or anything is wrong with the file: what is read here is then read again, and refused in the same words as ever.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok import _jit
from jittok.formats._json import MAX_TOKEN_ID, Node
from jittok.spec import AddedTokens
from jittok.tables import read_only
from jittok.token_columns import ColumnMerges, ColumnPieces, Columns, ColumnVocab
from jittok.unicode.intervals import sorted_unique

#: Smaller files are read faster without.
_LEAST_BYTES = 1 << 13
#: Places in a file must fit in 31 bits.
_MOST_BYTES = (1 << 31) - 1
#: Smaller files have too few added tokens to make it worth while, and a token has more bytes than this.
_MANY_BYTES = 1_500_000
_TOKEN_BYTES = 90
#: Without compiled code, kernels are tried on files up to this size.
_MOST_INTERPRETED = 1 << 15

_FIELDS = ("added_tokens", "model", "vocab", "merges")
#: Stands for each part in what is left.
_LEFT_OUT = ["this was read already"]
_MARK = json.dumps(_LEFT_OUT).encode()


class ScoredPieces(NamedTuple):
    """The vocabulary of a unigram model.

    Attributes
    ----------
    pieces
        With columns.
    scores : float64[n]
        Finite.
    vocab
        Pieces and their positions; None where a piece comes twice.
    """

    pieces: ColumnPieces
    scores: NDArray[np.float64]
    vocab: ColumnVocab | None


class Parts(NamedTuple):
    """What was read.

    Attributes
    ----------
    rest
        The file without it.
    vocab, merges
        For the fields of the model; None where they are in the rest.
    added
        Likewise; their flags as in :class:`~jittok.spec.AddedTokens`.
    """

    rest: bytes
    vocab: ColumnVocab | ScoredPieces | None
    merges: ColumnMerges | None
    added: AddedTokens | None

    def put_into(self, root: Node) -> bool:
        """Put vocabulary and merges where they were left out of the rest, which is parsed now; False if they were not.

        Added tokens are replaced by none.
        """
        fields = root.value
        if type(fields) is not dict:
            return False
        model = fields.get("model")
        for holder, name, part in (
            (model, "vocab", self.vocab),
            (model, "merges", self.merges),
            (fields, "added_tokens", self.added),
        ):
            if part is None:
                continue
            if type(holder) is not dict or holder.get(name) != _LEFT_OUT:
                return False
            holder[name] = part if holder is model else []
        return True


def read_parts(data: bytes, flags: Mapping[str, int]) -> Parts | None:
    """Read the large parts of a tokenizer.json.

    Parameters
    ----------
    data
        The whole file.
    flags
        The flags of added tokens, and their bits.

    Returns
    -------
    Parts or None
        None where it is best to read the whole file with the json module.
    """
    if not _LEAST_BYTES <= len(data) <= _MOST_BYTES or (_jit.JIT_DISABLED and len(data) > _MOST_INTERPRETED):
        return None
    reader = _Reader(data)
    return reader.read(flags) if reader.is_ready() else None


class _Reader:
    """Goes through a file once."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.array = np.frombuffer(data, np.uint8)  # read-only, as bytes are
        self.state = np.zeros(2, np.int64)
        self.ends = np.zeros(2, np.int64)
        self.names = _names(_FIELDS)

    #: What :meth:`is_ready` found; to ask takes longer than to read a small file.
    _is_ready = False

    def is_ready(self) -> bool:
        """Whether the kernels are compiled; if not, they are soon."""
        if _Reader._is_ready:
            return True
        from jittok.kernels import json_model

        some, numbers, slots = np.zeros(1, np.uint8), np.zeros(1, np.int64), np.zeros(1, np.uint64)
        places = np.zeros(1, np.int32)
        frozen = read_only(some), read_only(numbers)
        kernels: list[tuple[Any, tuple[Any, ...]]] = [
            (json_model.find_field, (*self.names, self.array, self.state)),
            (json_model.read_vocab, (self.array, 0, some, numbers, numbers, self.ends)),
            (json_model.read_merges,
             (self.array, 0, *frozen, read_only(slots), some, places, places, places, self.ends)),
            (json_model.read_scored, (self.array, 0, _powers(), some, numbers, np.zeros(1), self.ends)),
            (json_model.index_tokens, (*frozen, slots)),
            (json_model.find_tokens, (read_only(slots), *frozen, *frozen, places)),
        ]  # fmt: skip
        _Reader._is_ready = all([_jit.is_ready(kernel, *arguments) for kernel, arguments in kernels])
        return _Reader._is_ready

    def read(self, flags: Mapping[str, int]) -> Parts | None:
        """See :func:`read_parts`."""
        from jittok.kernels.json_model import ADDED_TOKENS, END, MERGES, SKIP, STATE_AT, STATE_SEEN, find_field

        vocab: ColumnVocab | ScoredPieces | None = None
        merges: ColumnMerges | None = None
        added: AddedTokens | None = None
        late = -1  # where merges are that come before their vocabulary
        left_out: list[tuple[int, int]] = []
        while True:
            field = find_field(*self.names, self.array, self.state)
            if field < 0:
                return None
            if field == END:
                break
            at = int(self.state[STATE_AT])
            end = -1
            if field == ADDED_TOKENS:
                end, added = self._added(at, flags)
            elif field == MERGES:
                if vocab is None:
                    late = at
                else:
                    end, merges = self._merges(at, vocab)
                    if end < 0:
                        return None
            else:
                end, vocab = self._vocab(at)
                if end < 0:
                    return None
            if end < 0:
                self.state[STATE_SEEN] |= SKIP
            else:
                self.state[STATE_AT] = end
                left_out.append((at, end))
        if vocab is not None and late >= 0:
            end, merges = self._merges(late, vocab)
            if end < 0:
                return None
            left_out.append((late, end))
        if not left_out:
            return None
        kept, done = [], 0
        for first, end in sorted(left_out):
            kept += [self.data[done:first], _MARK]
            done = end
        return Parts(b"".join((*kept, self.data[done:])), vocab, merges, added)

    def _vocab(self, at: int) -> tuple[int, ColumnVocab | ScoredPieces | None]:
        """The vocabulary at a place, and where it ends; -1 where it cannot be read."""
        from jittok.kernels.json_model import read_scored, read_vocab

        # Memory that nothing is written to costs nothing.
        room = (len(self.data) - at) // 4 + 2
        tokens, indptr = np.empty(len(self.data) - at, np.uint8), np.empty(room, np.int64)
        is_list = self.data[at : at + 1] == b"["
        ids, scores = np.empty(room - 1, np.int64), np.empty(room - 1, np.float64)
        if is_list:
            end = read_scored(self.array, at, _powers(), tokens, indptr, scores, self.ends)
        else:
            end = read_vocab(self.array, at, tokens, indptr, ids, self.ends)
        n = int(self.ends[1])
        if end < 0 or n == 0 or n > MAX_TOKEN_ID:
            return -1, None
        indptr = indptr[: n + 1].copy()
        columns = _columns(tokens[: int(indptr[-1])], indptr)
        if columns is None:
            return -1, None
        slots = _index(columns)
        if is_list:
            found = None if slots is None else ColumnVocab(columns, np.arange(n), slots)
            return end, ScoredPieces(ColumnPieces(columns), scores[:n].copy(), found)
        ids = ids[:n].copy()
        if slots is None:
            return -1, None
        vocab = ColumnVocab(columns, ids, slots)
        return (end, vocab) if vocab.id_bounds[1] < MAX_TOKEN_ID else (-1, None)

    def _merges(self, at: int, vocab: ColumnVocab | ScoredPieces) -> tuple[int, ColumnMerges | None]:
        """The merges at a place, and where they end; -1 where they cannot be read."""
        from jittok.kernels.json_model import read_merges

        if isinstance(vocab, ScoredPieces):
            return -1, None
        room = (len(self.data) - at) // 5 + 2
        left, right, made = (np.empty(room, np.int32) for _ in range(3))
        text = np.empty(len(self.data) - at, np.uint8)
        end = read_merges(self.array, at, *vocab.columns, vocab.slots, text, left, right, made, self.ends)
        n = int(self.ends[1])
        if end < 0:
            return -1, None
        # Of a merge that comes twice the later rank counts, which the json module's way sees to.
        if np.bincount(made[:n], minlength=1).max() > 1:
            pairs = left[:n].astype(np.int64) << 32 | right[:n]
            if len(sorted_unique(pairs)) < n:
                return -1, None
        return end, ColumnMerges(vocab, left[:n].copy(), right[:n].copy(), made[:n].copy())

    def _added(self, at: int, flags: Mapping[str, int]) -> tuple[int, AddedTokens | None]:
        """The added tokens at a place of a large file, and where they end; -1 where they cannot be read."""
        if len(self.data) < _MANY_BYTES or self.data[at : at + 1] != b"[":
            return -1, None
        from jittok.kernels.json_tokens import ESCAPED, read_added_tokens

        # Memory that nothing is written to costs nothing.
        room = (len(self.data) - at) // _TOKEN_BYTES + 1
        ids, bits = np.empty(room, np.int64), np.empty(room, np.uint8)
        contents, sizes = np.empty(len(self.data), np.uint8), np.zeros(2, np.int64)
        given = read_only(np.array([0, 0, *flags.values()], np.uint8))
        arguments = *_names(("id", "content", *flags)), given, self.array, at, ids, bits, contents, sizes
        if not _jit.is_ready(read_added_tokens, *arguments):
            return -1, None
        end = read_added_tokens(*arguments)
        if end < 0:
            return -1, None
        n = int(sizes[0])
        try:
            strings = contents[: int(sizes[1])].tobytes().decode().split("\n")[:n]
            for place in np.flatnonzero(bits[:n] & ESCAPED).tolist():
                strings[place] = json.loads(f'"{strings[place]}"')
                strings[place].encode()  # no half of a surrogate pair
        except ValueError:
            return -1, None
        if ids[:n].max(initial=0) >= MAX_TOKEN_ID:
            return -1, None
        return end, AddedTokens(strings, ids[:n], bits[:n] & np.uint8(255 - ESCAPED))


@cache
def _names(names: tuple[str, ...]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    data = "".join(names).encode()
    return read_only(np.frombuffer(data, np.uint8)), read_only(np.cumsum([0, *map(len, names)]))


@cache
def _powers() -> NDArray[np.float64]:
    return read_only(np.array([float(f"1e{exponent}") for exponent in range(309)]))


def _columns(tokens: NDArray[np.uint8], indptr: NDArray[np.int64]) -> Columns | None:
    """Tokens as columns; None if one of them is not UTF-8."""
    data = tokens.tobytes()
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    # All is UTF-8, and so is each, if none begins inside a character.
    if not data.isascii():
        begins = indptr[:-1].compress(indptr[:-1] < len(data))
        if ((tokens.take(begins) & 0xC0) == 0x80).any():
            return None
    return Columns(np.frombuffer(data, np.uint8), read_only(indptr))


def _index(columns: Columns) -> NDArray[np.uint64] | None:
    """The hash table of tokens; None if one of them comes twice."""
    from jittok.kernels.json_model import index_tokens

    n = len(columns.indptr) - 1
    slots = np.zeros(1 << max(3, (2 * n - 1).bit_length()), np.uint64)
    return read_only(slots) if index_tokens(*columns, slots) == n else None

"""Vocabularies and merges in arrays, whose strings are made when they are asked for: most loads never do.

:class:`ColumnVocab` stands for a dictionary of tokens and ids, :class:`ColumnMerges` for a tuple of pairs of tokens,
:class:`ColumnPieces` for a tuple of tokens.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from functools import cached_property
from itertools import accumulate, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.tables import read_only
from jittok.unicode.intervals import sorted_unique

#: Of a vocabulary of which more tokens are looked up one by one, a dictionary is made.
_MOST_FOUND = 64
#: Tokens whose columns plain Python makes faster.
_FEW = 64


class Columns(NamedTuple):
    """Tokens one after another: token i is ``data[indptr[i]:indptr[i + 1]]``, in UTF-8.

    Attributes
    ----------
    data : uint8[m]
    indptr : int64[n + 1]
    """

    data: NDArray[np.uint8]
    indptr: NDArray[np.int64]

    def strings(self) -> list[str]:
        """The tokens."""
        blob, bounds = self.data.tobytes(), self.indptr.tolist()
        return [blob[a:b].decode("utf-8", "surrogatepass") for a, b in zip(bounds, bounds[1:], strict=False)]

    def take(self, order: NDArray[np.int64]) -> Columns:
        """Tokens by their positions, in another order.

        Parameters
        ----------
        order : int64[k]
            Positions; -1 for an empty token.
        """
        lengths = np.diff(self.indptr, append=self.indptr[-1:])[order]  # the last is nothing
        indptr = np.zeros(len(order) + 1, np.int64)
        np.cumsum(lengths, out=indptr[1:])
        from_place = np.repeat(self.indptr[order] - indptr[:-1], lengths) + np.arange(int(indptr[-1]))
        return Columns(read_only(self.data[from_place]), read_only(indptr))

    def character_counts(self) -> NDArray[np.int64]:
        """Codepoints of each token."""
        begins = np.zeros(len(self.data) + 1, np.int64)
        np.cumsum((self.data & 0xC0) != 0x80, out=begins[1:])
        return np.diff(begins[self.indptr])


def columns_of(tokens: Iterable[str] | Iterable[bytes]) -> Columns:
    """Tokens as columns.

    Parameters
    ----------
    tokens
        A sequence, or what has them as keys. Those that are in columns already are not copied.
    """
    if isinstance(tokens, ColumnVocab | ColumnPieces):
        return tokens.columns
    parts: list[Any] = list(tokens)
    if len(parts) <= _FEW:
        encoded = [part if type(part) is bytes else part.encode("utf-8", "surrogatepass") for part in parts]
        bounds = np.array([0, *accumulate(map(len, encoded))], np.int64)
        bounds.flags.writeable = False
        return Columns(np.frombuffer(b"".join(encoded), np.uint8), bounds)
    ends = np.zeros(len(parts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=ends[1:])
    if parts and isinstance(parts[0], bytes):
        return Columns(read_only(np.frombuffer(b"".join(parts), np.uint8)), read_only(ends))
    text = "".join(parts)
    data = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    if len(data) > len(text):
        # Where each character begins, and the last one ends.
        ends = np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data))[ends]
    return Columns(read_only(data), read_only(ends))


def ids_of(vocab: Mapping[Any, int]) -> NDArray[np.int64]:
    """Ids in the order of the tokens."""
    if isinstance(vocab, ColumnVocab):
        return vocab.ids
    return np.fromiter(vocab.values(), np.int64, len(vocab))


def id_bounds(vocab: Mapping[Any, int]) -> tuple[int, int]:
    """The least and the greatest id; 0 and -1 where there is none."""
    if isinstance(vocab, ColumnVocab):
        return vocab.id_bounds
    return min(vocab.values(), default=0), max(vocab.values(), default=-1)


def has_unique_ids(vocab: Mapping[Any, int]) -> bool:
    """Whether no two tokens have the same id."""
    if isinstance(vocab, ColumnVocab):
        return vocab.has_unique_ids
    return len(set(vocab.values())) == len(vocab)


def find_ids(vocab: Mapping[str, int], tokens: Sequence[str]) -> NDArray[np.int64]:
    """The ids of tokens, -1 for those that are not there (int64[k])."""
    if isinstance(vocab, ColumnVocab):
        return vocab.find(tokens)
    return np.fromiter(map(vocab.get, tokens, repeat(-1)), np.int64, len(tokens))


def byte_ids(vocab: Mapping[str, int]) -> NDArray[np.int64]:
    """The ids of the tokens ``<0x00>`` to ``<0xFF>``, -1 for those that are not there (int64[256])."""
    return find_ids(vocab, [f"<0x{byte:02X}>" for byte in range(256)])


class ColumnVocab(Mapping[str, int]):
    """Tokens and ids.

    Parameters
    ----------
    columns
        The tokens, each once.
    ids : int64[n]
    slots : uint64[power of two]
        Of ``kernels.json_model.index_tokens``, which finds tokens without a dictionary. None: made when it is needed.
    """

    def __init__(self, columns: Columns, ids: NDArray[np.int64], slots: NDArray[np.uint64] | None = None) -> None:
        self.columns = columns
        self.ids = read_only(ids)
        self._items: dict[str, int] | None = None
        self._found: dict[str, int] = {}  # what was looked up by itself
        if slots is not None:
            self.slots = read_only(slots)

    @cached_property
    def slots(self) -> NDArray[np.uint64]:
        """The hash table of the tokens."""
        from jittok.kernels.json_model import index_tokens

        slots = np.zeros(1 << (2 * len(self.ids)).bit_length(), np.uint64)
        index_tokens(*self.columns, slots)
        return read_only(slots)

    def _load(self) -> dict[str, int]:
        if self._items is None:
            self._items = dict(zip(self.columns.strings(), self.ids.tolist(), strict=True))
        return self._items

    def __getitem__(self, token: str) -> int:
        if self._items is not None:
            return self._items[token]
        if not isinstance(token, str):
            raise KeyError(token)
        found = self._found.get(token)
        if found is None:
            if len(self._found) == _MOST_FOUND:
                return self._load()[token]
            found = self._found[token] = self._find_one(token)
        if found < 0:
            raise KeyError(token)
        return found

    def _find_one(self, token: str) -> int:
        from jittok.kernels.json_model import find_tokens

        text = np.frombuffer(token.encode("utf-8", "surrogatepass"), np.uint8)
        place = np.empty(1, np.int32)
        find_tokens(self.slots, *self.columns, read_only(text), read_only(np.array([0, len(text)])), place)
        return -1 if place[0] < 0 else int(self.ids[place[0]])

    @cached_property
    def id_bounds(self) -> tuple[int, int]:
        """The least and the greatest id; 0 and -1 where there is none."""
        return (int(self.ids.min()), int(self.ids.max())) if len(self.ids) else (0, -1)

    @cached_property
    def has_unique_ids(self) -> bool:
        """Whether no two tokens have the same id."""
        return bool((self.ids[1:] > self.ids[:-1]).all()) or len(sorted_unique(self.ids)) == len(self.ids)

    def find(self, tokens: Sequence[str]) -> NDArray[np.int64]:
        """The ids of tokens, -1 for those that are not there (int64[k])."""
        from jittok.kernels.json_model import find_tokens

        places = np.empty(len(tokens), np.int32)
        find_tokens(self.slots, *self.columns, *columns_of(tokens), places)
        ids = self.ids[places]  # of -1 the last one's
        ids[places < 0] = -1
        return ids

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self.ids)

    def keys(self) -> KeysView[str]:
        """The tokens."""
        return self._load().keys()

    def values(self) -> ValuesView[int]:
        """The ids."""
        return self._load().values()

    def items(self) -> ItemsView[str, int]:
        """Tokens and ids."""
        return self._load().items()

    def __repr__(self) -> str:
        return repr(self._load())

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._load(),)


class LazyTuple(Sequence[Any]):
    """What is as good as a tuple, which is made when it is looked at."""

    @cached_property
    def _items(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple | LazyTuple):
            return self._items == tuple(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return repr(self._items)

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self._items,)


class ColumnMerges(LazyTuple):
    """Merges in order of rank.

    Parameters
    ----------
    vocab
        The tokens.
    left, right, made : int32[n]
        Positions in the vocabulary, of both parts and of what they make.

    Attributes
    ----------
    vocab
        As given.
    ids
        For each merge the ids of its parts and of its result, int64[n] each.
    """

    def __init__(
        self, vocab: ColumnVocab, left: NDArray[np.int32], right: NDArray[np.int32], made: NDArray[np.int32]
    ) -> None:
        self.vocab = vocab
        self._places = left, right
        self._made = made

    @cached_property
    def ids(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """For each merge the ids of its parts and of its result."""
        ids = self.vocab.ids
        return ids[self._places[0]], ids[self._places[1]], ids[self._made]

    @cached_property
    def _items(self) -> tuple[tuple[str, str], ...]:
        names = list(self.vocab)
        left, right = (map(names.__getitem__, places.tolist()) for places in self._places)
        return tuple(zip(left, right, strict=True))

    def __len__(self) -> int:
        return len(self._places[0])


class ColumnPieces(LazyTuple):
    """Tokens, of which one may come twice.

    Parameters
    ----------
    columns
        The tokens.

    Attributes
    ----------
    columns
        As given.
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    @cached_property
    def _items(self) -> tuple[str, ...]:
        return tuple(self.columns.strings())

    def __len__(self) -> int:
        return len(self.columns.indptr) - 1

"""Four encoders of byte pairs that give the same symbols at a different cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from jittok.errors import ArgumentError, ArgumentTypeError

Algorithm = Literal["naive", "naive_presplit", "heap_tree", "heap_list"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)

Pair = tuple[str, str]


class BytePairEncoder:
    """Applies the same merges to any number of texts.

    Parameters
    ----------
    merges
        Pairs of symbols in the order of their ranks, the first being merged first; or a mapping from pairs to how often each
        occurred in training: more frequent ones are merged first, and of equally frequent ones the first. A symbol is a
        character or what another merge makes.
    algorithm
        - "naive": look at all pairs of the text, merge the best one, begin again. Quadratic.
        - "naive_presplit": the same for each word alone. A word begins at white space or U+2581, and each punctuation
          character is a word. It is linear in the number of words, and an approximation: what merges across words or
          punctuation is not merged (with ``[("a", "."), (".", "b")]``, "a.b" becomes "a.", "b", but here "a", ".", "b").
        - "heap_tree": a priority queue of merges and a balanced ordered tree of symbols. O(n log n).
        - "heap_list": the same queue and a linked list. O(n log n), with less work for each merge.

    Raises
    ------
    ArgumentError
        There is no such algorithm, or a merge has an empty symbol.
    ArgumentTypeError
        The merges are not pairs of str.

    Notes
    -----
    Source: Becquin, "Byte Pair Encoding and Data Structures" (2021).

    Examples
    --------
    >>> from jittok.study import BytePairEncoder
    >>> frequencies = {("e", "r"): 25, ("h", "e"): 12, ("l", "l"): 11, ("l", "o"): 10, ("he", "ll"): 4, ("lo", "w"): 3,
    ...                ("hell", "o"): 2}
    >>> encoder = BytePairEncoder(frequencies)
    >>> encoder.encode("lower"), encoder.encode("hello")
    (['low', 'er'], ['hello'])
    """

    def __init__(
        self, merges: Iterable[Pair] | Mapping[Pair, int], algorithm: Algorithm = "heap_list"
    ) -> None:
        from jittok.kernels.study_bpe import PairTable, fill_pairs

        if algorithm not in ALGORITHMS:
            raise ArgumentError(f"algorithm={algorithm!r}: expected one of {', '.join(ALGORITHMS)}")
        self.algorithm = algorithm
        if isinstance(merges, Mapping):
            pairs = sorted(merges, key=lambda pair: -merges[pair])
        else:
            pairs = list(merges)
        for pair in pairs:
            if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
                raise ArgumentTypeError(f"merges: expected pairs of str, got {pair!r}")
            if not pair[0] or not pair[1]:
                raise ArgumentError(f"merges: a symbol of {pair!r} is empty")
        #: Symbols by number; characters that no merge knows are added when a text has them.
        self._symbols: list[str] = []
        self._number: dict[str, int] = {}
        rows = [[self._numbered(part) for part in (left, right, left + right)] for left, right in pairs]
        columns = np.array(rows, np.int32).reshape(len(rows), 3).T.copy()
        size = 1 << (2 * len(rows) + 1).bit_length()
        self._table = PairTable(np.full(size, -1, np.int64), np.zeros(size, np.int64))
        fill_pairs(self._table, *columns)

    def encode(self, text: str) -> list[str]:
        """Return the symbols of a text.

        Parameters
        ----------
        text
            Any str.
        """
        return [self._symbols[number] for number in self.encode_numbers(text).tolist()]

    def encode_numbers(self, text: str) -> NDArray[np.int32]:
        """Return the symbols of a text as numbers of no meaning, which the kernels work on.

        Parameters
        ----------
        text
            Any str.

        Returns
        -------
        int32[n]
        """
        symbols = self.numbers(text)
        return self.merge(symbols, word_ends(text) if self.algorithm == "naive_presplit" and len(symbols) else None)

    def numbers(self, text: str) -> NDArray[np.int32]:
        """Return the characters of a text as numbers of no meaning.

        Parameters
        ----------
        text
            Any str.

        Returns
        -------
        int32[n]
        """
        return np.fromiter(map(self._numbered, text), np.int32, len(text))

    def merge(self, symbols: NDArray[np.int32], ends: NDArray[np.int64] | None = None) -> NDArray[np.int32]:
        """Merge symbols: the algorithm alone, without the way from and to strings, as one measures it.

        Parameters
        ----------
        symbols : int32[n]
            As :meth:`numbers` gives them; overwritten.
        ends : int64[w], optional
            As :func:`word_ends` gives them; only "naive_presplit" has words.

        Returns
        -------
        int32[m]
            The first ones of `symbols`.
        """
        from jittok.kernels import study_bpe as kernels

        n = len(symbols)
        if n == 0:
            return symbols
        if self.algorithm == "naive":
            return symbols[: int(kernels.bpe_naive(self._table, symbols))]
        if self.algorithm == "naive_presplit":
            ends = np.array([n]) if ends is None else ends
            return symbols[: int(kernels.bpe_naive_presplit(self._table, symbols, ends))]
        agenda = kernels.Agenda(np.empty(2 * n, np.int64), np.empty(2 * n, np.int32))
        sizes = np.empty(n, np.int32)
        if self.algorithm == "heap_tree":
            tree = kernels.SymbolTree(np.zeros(2 << (n - 1).bit_length(), np.int32))
            return symbols[: int(kernels.bpe_heap_tree(self._table, symbols, agenda, sizes, tree))]
        links = np.empty(n, np.int32), np.empty(n, np.int32)
        return symbols[: int(kernels.bpe_heap_list(self._table, symbols, agenda, sizes, *links))]

    def _numbered(self, symbol: str) -> int:
        number = self._number.setdefault(symbol, len(self._symbols))
        if number == len(self._symbols):
            self._symbols.append(symbol)
        return number


def bpe(text: str, merges: Iterable[Pair] | Mapping[Pair, int], algorithm: Algorithm = "heap_list") -> list[str]:
    """Apply byte-pair merges to a text, by one of four algorithms.

    Parameters
    ----------
    text
        Any str.
    merges, algorithm
        See :class:`BytePairEncoder`, which is better for many texts.

    Returns
    -------
    list of str
        The symbols.

    Examples
    --------
    >>> import jittok.study
    >>> jittok.study.bpe("lower", [("e", "r"), ("l", "o"), ("lo", "w")], algorithm="naive")
    ['low', 'er']
    """
    return BytePairEncoder(merges, algorithm).encode(text)


def word_ends(text: str) -> NDArray[np.int64]:
    """Return where words end: before white space and U+2581, and around punctuation.

    Parameters
    ----------
    text
        A str that is not empty.

    Returns
    -------
    int64[w]
        In characters, rising; the last one is the end of the text.
    """
    codepoints = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    alone = _is_in(codepoints, "P")
    begins = alone | _is_in(codepoints, "Z") | np.isin(codepoints, [0x2581, *range(9, 14)])
    begins[1:] |= alone[:-1]
    ends: NDArray[np.int64] = np.append(np.flatnonzero(begins[1:]) + 1, len(codepoints)).astype(np.int64)
    return ends


def _is_in(codepoints: NDArray[np.uint32], category: str) -> Any:
    """bool[n]: which codepoints are of a general category."""
    from jittok.unicode.classes import general_category

    intervals = general_category(category)
    assert intervals is not None
    # Where the codepoints in it begin and end, by turns.
    return np.searchsorted(intervals, codepoints, side="right") & 1 == 1

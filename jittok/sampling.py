"""Other segmentations than the best one: the n best, samples, and the distribution that they are drawn from.

Texts here are normalized ones, as a unigram model sees them: spaces are U+2581.
"""

from __future__ import annotations

import math
import secrets
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.errors import ArgumentError
from jittok.tables import RULE_SENTENCEPIECE, UNIGRAM_MISSING, UNIGRAM_RULE, UnigramTables, read_only

#: sentencepiece takes no more either.
MOST_BEST = 512
#: Hypotheses that a search has room for at first.
_HYPOTHESES = 4096


class Segmentation(NamedTuple):
    """One way to cut a text into pieces."""

    ids: NDArray[np.int32]
    lengths: NDArray[np.int32]  # bytes of the normalized text that each id stands for
    score: float  # sum of the scores of the pieces


class UnigramLattice:
    """All segmentations of one text.

    Parameters
    ----------
    tables
        The model.
    text
        The normalized text; bytes in UTF-8.
    """

    def __init__(self, tables: UnigramTables, text: str | bytes) -> None:
        from jittok.kernels.lattice import Lattice, list_edges
        from jittok.kernels.unigram import UNKNOWN, new_unigram_scratch

        self._tables = tables
        self._data = read_only(np.frombuffer(_utf8(text), np.uint8))
        size = len(self._data)
        rule = int(tables.numbers[UNIGRAM_RULE])
        self._kind: Any = np.float32 if rule == RULE_SENTENCEPIECE else np.float64
        self._scratch = new_unigram_scratch(size, rule)
        self._best = np.zeros(size + 1, self._kind)
        capacity = 4 * size + 16
        while True:
            integers = (np.zeros(capacity, np.int32) for _ in range(4))
            start, stop, token, by_end = integers
            self._lattice = Lattice(
                start, stop, token, np.zeros(capacity, self._kind), by_end, np.zeros(size + 2, np.int32)
            )
            found = int(list_edges(tables, self._data, self._scratch, self._best, self._lattice))
            n_edges, self._n = found >> 32, found & 0xFFFFFFFF
            if n_edges <= capacity:
                break
            capacity = n_edges
        self._n_edges = n_edges
        if tables.numbers[UNIGRAM_MISSING] and (token[:n_edges] == UNKNOWN).any():
            raise ArgumentError("the text has characters that are no pieces, and the model has no piece for unknown ones")

    def n_best(self, size: int) -> list[Segmentation]:
        """The best segmentations, the best one first.

        Parameters
        ----------
        size
            How many; there may be fewer.

        Returns
        -------
        list of Segmentation
            By sentencepiece's rule the same as its ``nbest_encode``, in the same order where scores are equal. Joined
            unknown characters and pieces of bytes may make two of them look alike.
        """
        from jittok.kernels.lattice import NO_ROOM, Search, search_best

        if size < 1:
            raise ArgumentError(f"size={size}; expected 1 or more segmentations")
        if self._n == 0:
            return [self._empty()]
        capacity, room = _HYPOTHESES, min(size, 16) * len(self._data)
        while True:
            edge, following, heap, kept = (np.zeros(capacity, np.int32) for _ in range(4))
            done, total = (np.zeros(capacity, self._kind) for _ in range(2))
            search = Search(edge, following, done, total, heap, kept)
            ids, lengths = np.zeros(room, np.int32), np.zeros(room, np.int32)
            ends, scores = np.zeros(size, np.int64), np.zeros(size, self._kind)
            found = search_best(
                self._tables, self._data, self._n, size, self._scratch, self._best, self._lattice, search,
                ids, ends, lengths, scores,
            )  # fmt: skip
            if found != NO_ROOM:
                break
            capacity, room = 4 * capacity, min(4 * room, size * len(self._data))
        return self._segmentations(ids, lengths, ends, scores, int(found))

    def sample(self, size: int = 1, *, alpha: float = 1.0, seed: int | None = None) -> list[Segmentation]:
        """Draw segmentations independently.

        Parameters
        ----------
        size
            How many.
        alpha
            A segmentation's probability is proportional to the exponential of its score times this: 0 makes all alike,
            1 is the model's own distribution, a large number leaves only the best.
        seed
            The same seed draws the same ones; None: any.

        Returns
        -------
        list of Segmentation
        """
        from jittok.kernels.lattice import sample_paths

        if size < 0:
            raise ArgumentError(f"size={size}; expected 0 or more segmentations")
        weights = self._weights(alpha)
        if self._n == 0:
            return [self._empty() for _ in range(size)]
        state = np.array([secrets.randbits(64) if seed is None else seed & 0xFFFFFFFFFFFFFFFF], np.uint64)
        found: list[Segmentation] = []
        at_once = max(1, (1 << 20) // len(self._data))
        while len(found) < size:
            count = min(at_once, size - len(found))
            ids, lengths = np.zeros(count * len(self._data), np.int32), np.zeros(count * len(self._data), np.int32)
            ends, scores = np.zeros(count, np.int64), np.zeros(count, np.float64)
            sample_paths(
                self._tables, self._data, self._n, count, self._scratch, self._lattice,
                weights, state, ids, ends, lengths, scores,
            )  # fmt: skip
            found += self._segmentations(ids, lengths, ends, scores, count)
        return found

    def log_sum(self, alpha: float = 1.0) -> float:
        """Logarithm of the sum of the weights of all segmentations.

        A segmentation's probability is ``exp(alpha * score - log_sum)``.

        Parameters
        ----------
        alpha
            See :meth:`sample`.
        """
        weights = self._weights(alpha)
        return math.log(weights.total[self._n]) + math.log(2) * int(weights.total_exponent[self._n])

    def mean_score(self, alpha: float = 1.0) -> float:
        """Mean score of a sample.

        Parameters
        ----------
        alpha
            See :meth:`sample`.
        """
        return float(self._weights(alpha).mean[self._n])

    def entropy(self, alpha: float = 1.0) -> float:
        """Entropy of the distribution that samples are drawn from, in nats.

        Parameters
        ----------
        alpha
            See :meth:`sample`.
        """
        return max(0.0, self.log_sum(alpha) - alpha * self.mean_score(alpha))

    def _weights(self, alpha: float) -> Any:
        from jittok.kernels.lattice import POWERS, Weights, sum_paths

        if not (0 <= alpha < 1e30):
            raise ArgumentError(f"alpha={alpha}; expected a number from 0 up")
        logarithms = alpha / math.log(2) * self._lattice.score[: self._n_edges].astype(np.float64)
        # Beyond these nothing is left but the best path, and exponents stay whole numbers.
        exponents = np.floor(np.clip(logarithms, -1e15, 1e15))
        power = np.exp2(2.0 - np.arange(POWERS))
        power[-1] = 0.0
        places = self._n + 1
        weights = Weights(
            fraction=np.exp2(np.clip(logarithms - exponents, 0.0, 1.0)),
            exponent=exponents.astype(np.int64),
            power=power,
            total=np.zeros(places, np.float64),
            total_exponent=np.zeros(places, np.int64),
            mean=np.zeros(places, np.float64),
        )
        sum_paths(self._n, self._lattice, weights)
        return weights

    def _segmentations(self, ids: Any, lengths: Any, ends: Any, scores: Any, count: int) -> list[Segmentation]:
        found, first = [], 0
        for last, score in zip(ends[:count].tolist(), scores[:count].tolist(), strict=True):
            found.append(Segmentation(ids[first:last].copy(), lengths[first:last].copy(), score))
            first = last
        return found

    @staticmethod
    def _empty() -> Segmentation:
        return Segmentation(np.zeros(0, np.int32), np.zeros(0, np.int32), 0.0)


def _utf8(text: str | bytes) -> bytes:
    return text.encode("utf-8") if isinstance(text, str) else text


def best(tables: UnigramTables, text: str | bytes) -> Segmentation:
    """The best segmentation of a text, by the rules of the model's reference.

    Parameters
    ----------
    tables
        The model.
    text
        The normalized text.

    Returns
    -------
    Segmentation
        Its score is that of :func:`score`.
    """
    from jittok.kernels.unigram import STATE, encode_unigram_segments, new_unigram_scratch

    data = read_only(np.frombuffer(_utf8(text), np.uint8))
    size = len(data)
    ids, lengths, ends = np.zeros(size, np.int32), np.zeros(size + 1, np.int32), np.zeros(1, np.int64)
    starts, stops = read_only(np.zeros(1, np.int64)), read_only(np.array([size], np.int64))
    scratch = new_unigram_scratch(size, int(tables.numbers[UNIGRAM_RULE]))
    encode_unigram_segments(tables, data, starts, stops, 1, np.zeros(STATE, np.int64), scratch, ids, ends, lengths)
    count = int(ends[0])
    return Segmentation(ids[:count], lengths[:count], score(tables, text, lengths[:count]))


def score(tables: UnigramTables, text: str | bytes, lengths: Any) -> float:
    """Score of a given segmentation: the sum of those of its pieces.

    Parameters
    ----------
    tables
        The model.
    text
        The normalized text.
    lengths
        Bytes of each part of it. A part that is no piece counts as so many unknown characters.

    Returns
    -------
    float
        Added up from the end as the n-best search does, in float32 by sentencepiece's rule.
    """
    data = _utf8(text)
    ends = np.cumsum(np.asarray(lengths, np.int64))
    if int(ends[-1] if len(ends) else 0) != len(data) or (np.asarray(lengths) <= 0).any():
        raise ArgumentError(f"lengths that add up to {ends[-1:].tolist()}; expected the bytes of the text, {len(data)}")
    kind: Any = np.float32 if tables.numbers[UNIGRAM_RULE] == RULE_SENTENCEPIECE else np.float64
    total = kind(0)
    starts = ends - np.asarray(lengths, np.int64)
    with np.errstate(over="ignore"):  # the unknown score of a model without normal pieces is the largest number
        for first, last in zip(reversed(starts.tolist()), reversed(ends.tolist()), strict=True):
            token = find_piece(tables, data[first:last])
            if token >= 0:
                total = kind(kind(tables.scores[token]) + total)
                continue
            characters = sum(byte & 0xC0 != 0x80 for byte in data[first:last])
            # Bytes of one unknown character may be parts of their own: it counts where it begins.
            for _ in range(characters):
                total = kind(kind(tables.unknown_score[0]) + total)
    return float(total)


def find_piece(tables: UnigramTables, piece: bytes) -> int:
    """Id of the piece that some text is, -1 for none.

    Parameters
    ----------
    tables
        The model.
    piece
        UTF-8; other bytes are no piece.
    """
    from jittok.tables import UNIGRAM_ROOT_BASE

    try:
        text = piece.decode("utf-8")
    except UnicodeDecodeError:
        return -1
    base, node = int(tables.numbers[UNIGRAM_ROOT_BASE]), -1
    for character in text:
        codepoint = ord(character)
        page = int(tables.page_of[codepoint >> 7])
        node = base + int(tables.code_of[page << 7 | codepoint & 127])
        if int(tables.units[node]) != base:
            return -1
        base = int(tables.units[node + 1])
    return int(tables.units[node + 2]) if node >= 0 else -1


def nbest_encode(tables: UnigramTables, text: str | bytes, nbest_size: int) -> list[Segmentation]:
    """The `nbest_size` best segmentations, as sentencepiece's ``nbest_encode``.

    Parameters
    ----------
    tables
        The model.
    text
        The normalized text.
    nbest_size
        Up to 512. With 1 or less it is the best one by the model's own rules, which may differ from the first of
        several where sums are rounded.

    Returns
    -------
    list of Segmentation
    """
    if nbest_size > MOST_BEST:
        raise ArgumentError(f"nbest_size={nbest_size}; expected at most {MOST_BEST}")
    if nbest_size <= 1:
        return [best(tables, text)]
    return UnigramLattice(tables, text).n_best(nbest_size)


def sample_encode(
    tables: UnigramTables, text: str | bytes, *, nbest_size: int = -1, alpha: float = 0.1, seed: int | None = None
) -> Segmentation:
    """Draw a segmentation, as sentencepiece's ``encode(enable_sampling=True)``.

    Parameters
    ----------
    tables
        The model.
    text
        The normalized text.
    nbest_size
        Below 0: out of all; 0 or 1: the best one; else out of so many best ones.
    alpha
        See :meth:`UnigramLattice.sample`.
    seed
        The same seed draws the same one; None: any.

    Returns
    -------
    Segmentation
    """
    if 0 <= nbest_size <= 1:
        return best(tables, text)
    lattice = UnigramLattice(tables, text)
    if nbest_size < 0:
        return lattice.sample(1, alpha=alpha, seed=seed)[0]
    if nbest_size > MOST_BEST:
        raise ArgumentError(f"nbest_size={nbest_size}; expected at most {MOST_BEST}")
    if not (0 <= alpha < float("inf")):
        raise ArgumentError(f"alpha={alpha}; expected a number from 0 up")
    found = lattice.n_best(nbest_size)
    weights = alpha * np.array([segmentation.score for segmentation in found], np.float64)
    weights = np.cumsum(np.exp(weights - weights.max()))
    draw = np.random.default_rng(seed).random() * weights[-1]
    return found[min(int(np.searchsorted(weights, draw, side="right")), len(found) - 1)]

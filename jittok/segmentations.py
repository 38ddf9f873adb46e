"""Other segmentations of texts than the one of encoding: the n best, samples, and what all of them come to.

The functions of :mod:`jittok.sampling` and :mod:`jittok.merge_sampling` know a single text as the model is given it. Here
are whole documents, whose words (see :class:`~jittok.engine.Words`) are independent of each other.
"""

from __future__ import annotations

import heapq
import math
import secrets
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.build.plan import Plan, sampling_tables
from jittok.engine import Words
from jittok.errors import ArgumentError, ArgumentTypeError, UnsupportedError
from jittok.merge_sampling import CHANCE_BITS, sample_piece_ids
from jittok.sampling import MOST_BEST, Segmentation, UnigramLattice, best, nbest_encode
from jittok.spec import BPEModel, PieceType, RankModel, SentencePieceModel, TokenizerSpec, UnigramModel
from jittok.tables import MergeTables, PieceTables, UnigramTables, read_only

#: What is sampled unless a call says otherwise: sentencepiece's alpha, and the dropout of the paper.
ALPHA = 0.1
DROPOUT = 0.1


class Drawn(NamedTuple):
    """Ids of all words of some documents, one word after another."""

    ids: NDArray[np.int32]
    lengths: NDArray[np.int32]  # bytes of text that each id stands for
    ends: NDArray[np.int64]  # [n_words] where the ids of each word end
    score: float | None = None  # sum of the scores of the pieces, of unigram models


class Segmentations:
    """Finds segmentations by the model of a tokenizer.

    Parameters
    ----------
    spec, plan
        The tokenizer's.
    """

    def __init__(self, spec: TokenizerSpec, plan: Plan) -> None:
        self._spec = spec
        self._plan = plan

    # ------------------------------------------------------------------------------------------ all of a text

    def n_best(self, words: Words, size: int) -> list[Drawn]:
        """The best segmentations of one document.

        Parameters
        ----------
        words
            What the model is given of it.
        size
            How many; there may be fewer.

        Returns
        -------
        list of Drawn
            The best first.

        Raises
        ------
        UnsupportedError
            The model is no unigram model.
        ArgumentError
            `size` is below 1 or above 512.
        """
        tables = self._unigram("n-best segmentations")
        if not 1 <= size <= MOST_BEST:
            raise ArgumentError(f"n={size}: expected from 1 to {MOST_BEST} segmentations")
        return _combinations([nbest_encode(tables, text, size) for text in _texts(words)], size)

    def entropy(self, words: Words, alpha: float) -> float:
        """Entropy, in nats, of the distribution that :meth:`draw` draws from; of all documents together.

        Parameters
        ----------
        words
            What the model is given.
        alpha
            See :meth:`draw`.
        """
        tables = self._unigram("an entropy")
        _check_alpha(alpha)
        return math.fsum(UnigramLattice(tables, text).entropy(alpha) for text in _texts(words))

    def score(self, ids: Sequence[int], pieces: Sequence[str]) -> float:
        """Score of a given segmentation: the sum of those of its pieces.

        Parameters
        ----------
        ids
            Of the pieces; -1 for a string that is none, whose characters are unknown.
        pieces
            Their strings; of an unknown piece, the text that it stands for.

        Returns
        -------
        float
            Added up from the end, in float32 by sentencepiece's rule, as n-best lists have it. Control pieces and added
            tokens count nothing. Byte pieces count as one unknown character for each that they make.
        """
        tables = self._unigram("a score")
        model = self._spec.model
        kind: Any = np.float32 if isinstance(model, SentencePieceModel) else np.float64
        total = kind(0)
        for token, piece in zip(reversed(ids), reversed(pieces), strict=True):
            unknown = 0
            if isinstance(model, SentencePieceModel) and 0 <= token < len(model.types):
                piece_type = model.types[token]
                if piece_type == PieceType.CONTROL:
                    continue
                if piece_type == PieceType.UNKNOWN:
                    unknown = 1 if piece == model.pieces[token] else len(piece)
                elif piece_type == PieceType.BYTE:
                    if int(piece[3:5], 16) & 0xC0 == 0x80:  # a character counts where it begins
                        continue
                    unknown = 1
            elif isinstance(model, UnigramModel) and token == model.unk_id:
                unknown = 1 if piece == model.pieces[token] else len(piece)
            elif token < 0:
                unknown = len(piece)
            elif token >= len(tables.scores):
                continue
            if unknown == 0:
                total = kind(kind(tables.scores[token]) + total)
            for _ in range(unknown):
                total = kind(kind(tables.unknown_score[0]) + total)
        return float(total)

    # -------------------------------------------------------------------------------------------------- samples

    def draw(
        self,
        words: Words,
        size: int,
        *,
        alpha: float | None = None,
        dropout: float | None = None,
        nbest_size: int = -1,
        seed: int | None = None,
    ) -> list[Drawn]:
        """Draw segmentations of documents independently.

        Parameters
        ----------
        words
            What the model is given.
        size
            How many of each document.
        alpha
            Of unigram models: see :meth:`jittok.Tokenizer.sample_encode`.
        dropout
            Of byte-pair models: how often a merge is left out.
        nbest_size
            Of unigram models: below 0 to draw from all segmentations, 0 or 1 for the best, else from so many.
        seed
            The same seed draws the same ones; None: any.

        Raises
        ------
        UnsupportedError
            The model has no other segmentations.
        ArgumentError, ArgumentTypeError
            An argument is out of range, or not for this kind of model.
        """
        if seed is None:
            seed = secrets.randbits(64)
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            raise ArgumentTypeError(f"seed: expected a whole number or None, got {type(seed).__name__}")
        seed = int(seed) & 0x7FFFFFFFFFFFFFFF
        if isinstance(self._plan.model, UnigramTables):
            if dropout is not None:
                raise ArgumentError("dropout is for byte-pair models; a unigram model is sampled with alpha")
            return self._draw_paths(words, size, ALPHA if alpha is None else alpha, nbest_size, seed)
        if not self._merges:
            raise UnsupportedError(f"{self._name} has no other segmentations than the one of encode(); use that")
        if alpha is not None or nbest_size >= 0:
            raise ArgumentError("alpha and nbest_size are for unigram models; a byte-pair model is sampled with dropout")
        chance = self._spec.extra.get("dropout", DROPOUT) if dropout is None else dropout
        if isinstance(chance, bool) or not isinstance(chance, int | float | np.number) or not 0 <= chance <= 1:
            raise ArgumentError(f"dropout={dropout!r}: expected a number from 0 to 1")
        return [self._draw_merges(words, float(chance), _mixed(seed, turn) if turn else seed) for turn in range(size)]

    def _draw_paths(self, words: Words, size: int, alpha: float, nbest_size: int, seed: int) -> list[Drawn]:
        tables = self._unigram("samples")
        _check_alpha(alpha)
        if isinstance(nbest_size, bool) or not isinstance(nbest_size, int | np.integer):
            raise ArgumentTypeError(f"nbest_size: expected a whole number, got {type(nbest_size).__name__}")
        if nbest_size > MOST_BEST:
            raise ArgumentError(f"nbest_size={nbest_size}: expected at most {MOST_BEST}")
        if nbest_size > 1:
            return self._draw_best(words, size, float(alpha), nbest_size, seed)
        found: list[list[Segmentation]] = []
        for number, text in enumerate(_texts(words)):
            if nbest_size < 0:
                found.append(UnigramLattice(tables, text).sample(size, alpha=float(alpha), seed=_mixed(seed, number)))
            else:
                found.append([best(tables, text)] * size)
        return [_joined([row[turn] for row in found]) for turn in range(size)]

    def _draw_best(self, words: Words, size: int, alpha: float, nbest_size: int, seed: int) -> list[Drawn]:
        """Draw from the best segmentations of each document."""
        document = words.parts.document[words.text]
        bounds = np.searchsorted(document, np.arange(len(words.indptr)))
        chosen: list[list[Drawn]] = []
        for number, (first, last) in enumerate(zip(bounds.tolist(), bounds[1:].tolist(), strict=False)):
            one = words._replace(text=words.text[first:last], start=words.start[first:last], end=words.end[first:last])
            found = self.n_best(one, nbest_size)
            weights = alpha * np.array([drawn.score for drawn in found], np.float64)
            weights = np.cumsum(np.exp(weights - weights.max()))
            draws = np.random.default_rng(_mixed(seed, number)).random(size) * weights[-1]
            places = np.minimum(np.searchsorted(weights, draws, side="right"), len(found) - 1)
            chosen.append([found[place] for place in places.tolist()])
        return [_joined_documents([row[turn] for row in chosen]) for turn in range(size)]

    def _draw_merges(self, words: Words, dropout: float, seed: int) -> Drawn:
        tables = self._sampling_tables
        data = _padded(words)
        if isinstance(tables, PieceTables):
            return Drawn(*sample_piece_ids(tables, data, words.start, words.end, dropout=dropout, seed=seed))
        from jittok.kernels.dropout import sample_merges
        from jittok.kernels.word_cache import new_word_scratch

        sizes = words.end - words.start
        total, longest = int(sizes.sum()), max(8192, int(sizes.max(initial=0)))
        ids, lengths = np.empty(total, np.int32), np.empty(total, np.int32)
        ends = np.zeros(len(sizes), np.int64)
        heap, skipped = (np.empty(3 * longest, np.int64) for _ in range(2))
        n = sample_merges(
            tables, read_only(data), read_only(words.start), read_only(words.end),
            round(dropout * (1 << CHANCE_BITS)), seed, 0,
            new_word_scratch(longest), heap, skipped, np.zeros(1, np.uint64), ids, lengths, ends,
        )  # fmt: skip
        return Drawn(ids[:n], lengths[:n], ends)

    # --------------------------------------------------------------------------------------------------- inside

    def _unigram(self, what: str) -> UnigramTables:
        tables = self._plan.model
        if not isinstance(tables, UnigramTables):
            raise UnsupportedError(f"only unigram models give {what}; this is {self._name}")
        return tables

    @property
    def _name(self) -> str:
        model = self._spec.model
        if isinstance(model, SentencePieceModel):
            return f"a SentencePiece model of type {model.algorithm}"
        return f"a {type(model).__name__.removesuffix('Model')} model"

    @property
    def _merges(self) -> bool:
        model = self._spec.model
        if isinstance(model, SentencePieceModel):
            return model.algorithm == "bpe"
        return isinstance(model, BPEModel | RankModel)

    @cached_property
    def _sampling_tables(self) -> MergeTables | PieceTables:
        return sampling_tables(self._spec)


def _check_alpha(alpha: object) -> None:
    if isinstance(alpha, bool) or not isinstance(alpha, int | float | np.number) or not 0 <= alpha < 1e30:
        raise ArgumentError(f"alpha={alpha!r}: expected a number from 0 up")


def _texts(words: Words) -> list[bytes]:
    data = words.parts.data
    bounds = zip(words.start.tolist(), words.end.tolist(), strict=True)
    return [data[start:end].tobytes() for start, end in bounds]


def _padded(words: Words) -> NDArray[np.uint8]:
    """The bytes of all words, and a few more, so that kernels may look at the bytes of a character at once."""
    data, last = words.parts.data, int(words.end.max(initial=0))
    return data if len(data) >= last + 4 else np.concatenate([data[:last], np.zeros(4, np.uint8)])


def _mixed(seed: int, number: int) -> int:
    """A seed of its own for each number."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _joined(segmentations: Sequence[Segmentation]) -> Drawn:
    if len(segmentations) == 1:
        ids, lengths, score = segmentations[0]
        return Drawn(ids, lengths, np.array([len(ids)], np.int64), score)
    nothing = np.zeros(0, np.int32)
    return Drawn(
        np.concatenate([nothing, *(one.ids for one in segmentations)]),
        np.concatenate([nothing, *(one.lengths for one in segmentations)]),
        np.cumsum([len(one.ids) for one in segmentations], dtype=np.int64),
        math.fsum(one.score for one in segmentations),
    )


def _joined_documents(documents: Sequence[Drawn]) -> Drawn:
    if len(documents) == 1:
        return documents[0]
    nothing = np.zeros(0, np.int32)
    before = np.cumsum([0, *(len(one.ids) for one in documents)]).tolist()
    return Drawn(
        np.concatenate([nothing, *(one.ids for one in documents)]),
        np.concatenate([nothing, *(one.lengths for one in documents)]),
        np.concatenate([np.zeros(0, np.int64), *(one.ends + n for one, n in zip(documents, before, strict=False))]),
        math.fsum(one.score or 0.0 for one in documents),
    )


def _combinations(lists: Sequence[Sequence[Segmentation]], size: int) -> list[Drawn]:
    """The best ways to choose one of each list, of which each has the best first.

    Cost: the number of lists times `size` log `size`.
    """
    if len(lists) == 1:
        return [_joined([one]) for one in lists[0]]
    scores = [0.0]
    steps: list[list[tuple[int, int]]] = []
    for choices in lists:
        more = [one.score for one in choices]
        # Sums whose places both rise along rows and columns: the next one is beside one that is taken.
        heap = [(-(scores[0] + more[0]), 0, 0)]
        taken: list[tuple[int, int]] = []
        sums: list[float] = []
        while heap and len(taken) < size:
            total, i, j = heapq.heappop(heap)
            taken.append((i, j))
            sums.append(-total)
            if j + 1 < len(more):
                heapq.heappush(heap, (-(scores[i] + more[j + 1]), i, j + 1))
            if j == 0 and i + 1 < len(scores):
                heapq.heappush(heap, (-(scores[i + 1] + more[0]), i + 1, 0))
        steps.append(taken)
        scores = sums
    found = []
    for place in range(len(scores)):
        chosen: list[Segmentation] = []
        for choices, taken in zip(reversed(lists), reversed(steps), strict=True):
            place, choice = taken[place]
            chosen.append(choices[choice])
        found.append(_joined(chosen[::-1]))
    return found

"""Byte-pair merges as SentencePiece's trainer learns them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok.errors import ArgumentError
from jittok.memory import zeros
from jittok.tables import read_only
from jittok.training.sentencepiece_corpus import Alphabet, CountedWords, alphabet_of, count_texts
from jittok.training.sentencepiece_options import BLANK, SentencePieceOptions, model_spec, sentencepiece_options

if TYPE_CHECKING:
    from jittok.kernels.train_sentencepiece_bpe import Trainer
    from jittok.tokenizer import Tokenizer

#: Places that a kernel looks at before it comes back: some tenths of a second.
SLICE = 1 << 22


@dataclass(frozen=True)
class LearnedPieces:
    """Pieces in the order in which they were made.

    Attributes
    ----------
    pieces
        Strings.
    counts
        int64[n], how often each occurred when it was made.
    is_exhausted
        Whether there are no more.
    """

    pieces: list[str]
    counts: NDArray[np.int64]
    is_exhausted: bool


def learn_pieces(words: CountedWords, alphabet: Alphabet, options: SentencePieceOptions, n: int) -> LearnedPieces:
    """Learn up to `n` pieces.

    Parameters
    ----------
    words, alphabet
        The corpus.
    options
        Which pieces are valid.
    n
        How many to make.
    """
    from jittok.kernels import train_sentencepiece_bpe as kernels

    trainer, letters = _new_trainer(words, alphabet, options, n)
    while True:
        status = int(kernels.merge_pairs(trainer, n, SLICE))
        if status in (kernels.DONE, kernels.EXHAUSTED):
            break
        trainer = _with_room(trainer, status)
    made = int(trainer.numbers[kernels.N_PIECES])
    first_symbol = int(trainer.numbers[kernels.N_LETTERS])
    lengths = trainer.kind[first_symbol : first_symbol + made] & kernels.LENGTH_MASK
    # All letters of all pieces, one piece after another.
    indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    cells = np.repeat(trainer.piece_where[:made] - indptr[:-1], lengths) + np.arange(int(indptr[-1]))
    text = letters[trainer.cells[kernels.CELL * cells + kernels.LETTER]].astype("<u4").tobytes().decode("utf-32-le")
    bounds = indptr.tolist()
    pieces = [text[begin:end] for begin, end in zip(bounds, bounds[1:], strict=False)]
    return LearnedPieces(pieces, trainer.piece_count[:made].copy(), status == kernels.EXHAUSTED)


def _new_trainer(
    words: CountedWords, alphabet: Alphabet, options: SentencePieceOptions, n: int
) -> tuple[Trainer, NDArray[np.uint32]]:
    """The trainer at its beginning, and the codepoints of its letters."""
    from jittok.kernels import train_sentencepiece_bpe as kernels

    wanted = alphabet.letters if len(alphabet.letters) else alphabet.characters
    barred = np.isin(wanted, np.array([0, 0x1F, 0x20, 0x2585], np.uint32))
    # In order of codepoints, so that the order of letters is that of their UTF-8.
    letters = np.concatenate((np.zeros(1, np.uint32), np.sort(wanted[~barred])))
    n_letters = len(letters)
    letter_of = np.zeros(0x110000, np.int32)
    letter_of[letters[1:]] = np.arange(1, n_letters, dtype=np.int32)
    letter_of[ord(" ")] = letter_of[ord(BLANK)]
    n_cells = int(words.indptr[-1]) + len(words.counts) + 2
    if n_cells >= 1 << 31:
        raise ArgumentError(
            f"the words that differ have {n_cells} characters together; expected less than {1 << 31}. Train on a sample"
        )
    cells = zeros(kernels.CELL * n_cells, np.int32)
    weights = np.zeros(int((words.counts >= 1 << 31).sum()) + 1, np.int64)
    used = int(
        kernels.lay_out_words(
            read_only(words.data), read_only(words.indptr), read_only(words.counts), read_only(letter_of), cells, weights
        )
    )
    cells = cells[: kernels.CELL * used]
    n_symbols = n_letters + n
    bits = max(n_letters - 1, 1).bit_length()
    key = np.zeros(n_symbols, np.uint64)
    key[:n_letters] = np.arange(n_letters, dtype=np.uint64) << np.uint64(kernels.KEY_SHIFT - bits)
    kind = np.zeros(n_symbols, np.int64)
    kind[:n_letters] = _letter_kinds(letters, options)
    kind[0] = 1 << kernels.BARRED
    n_pairs = 4 * n_letters + used // 4 + 1024
    numbers = np.zeros(16, np.int64)
    numbers[kernels.N_LETTERS] = n_letters
    numbers[kernels.LETTER_BITS] = bits
    numbers[kernels.MOST_LETTERS] = options.max_sentencepiece_length
    numbers[kernels.RULES] = (
        kernels.BLANKS_BEHIND * options.treat_whitespace_as_suffix
        | kernels.BLANKS_INSIDE * (not options.split_by_whitespace)
        | kernels.BLANKS_ALONE * options.allow_whitespace_only_pieces
        | kernels.ANY_SCRIPTS * (not options.split_by_unicode_script)
    )
    trainer = kernels.Trainer(
        cells=cells,
        weights=weights,
        kind=kind,
        key=key,
        left_mark=np.zeros(n_symbols, np.int32),
        left_pair=np.zeros(n_symbols, np.int32),
        right_mark=np.zeros(n_symbols, np.int32),
        right_pair=np.zeros(n_symbols, np.int32),
        count=np.empty(n_pairs, np.int64),
        pair_key=np.empty(n_pairs, np.uint64),
        where=np.empty(n_pairs, np.int32),
        left=np.empty(n_pairs, np.int32),
        right=np.empty(n_pairs, np.int32),
        begin=np.empty(n_pairs, np.int64),
        n_places=np.empty(n_pairs, np.int32),
        # All places there ever are: a merge takes one symbol away and brings two at most.
        places=np.empty(3 * used, np.int32),
        heap_count=np.empty(n_pairs, np.int64),
        heap_pair=np.empty(n_pairs, np.int32),
        events=np.empty(2 * used, np.int32),
        piece_where=np.empty(n, np.int32),
        piece_count=np.empty(n, np.int64),
        known=np.zeros(1 << max(2 * n, 16).bit_length(), np.int32),
        numbers=numbers,
    )
    while True:
        slots = max(2 * len(trainer.count), 16).bit_length()
        slot_key, slot_pair = np.zeros(1 << slots, np.uint64), np.empty(1 << slots, np.int32)
        if int(kernels.find_pairs(trainer, slot_key, slot_pair)) == kernels.DONE:
            break
        trainer = _with_room(trainer, kernels.NO_PAIR_ROOM)
    return trainer, letters


def _with_room(trainer: Trainer, status: int) -> Trainer:
    """The trainer with twice as much of the room that is lacking."""
    from jittok.kernels import train_sentencepiece_bpe as kernels

    lacking = {
        kernels.NO_PAIR_ROOM: ("count", "pair_key", "where", "left", "right", "begin", "n_places"),
        kernels.NO_PLACE_ROOM: ("places",),
        kernels.NO_HEAP_ROOM: ("heap_count", "heap_pair"),
        kernels.NO_EVENT_ROOM: ("events",),
    }
    fields = trainer._asdict()
    for name in lacking.get(status, ()):
        old = fields[name]
        fields[name] = np.empty(2 * len(old), old.dtype)
        fields[name][: len(old)] = old
    return kernels.Trainer(**fields)


def _letter_kinds(letters: NDArray[np.uint32], options: SentencePieceOptions) -> NDArray[np.int64]:
    """What letters may be joined to, as kernels have it."""
    from jittok.kernels import train_sentencepiece_bpe as kernels
    from jittok.unicode.sentencepiece_scripts import script_names, script_numbers

    script = script_numbers(letters).astype(np.int64) + 1
    script[script == script_names().index("Inherited") + 1] = kernels.NO_SCRIPT
    is_blank = letters == ord(BLANK)
    script[is_blank] = kernels.NO_SCRIPT
    is_digit = ((letters >= 0x30) & (letters <= 0x39)) | ((letters >= 0xFF10) & (letters <= 0xFF19))
    if not options.split_by_number:
        script[is_digit] = kernels.ANY_SCRIPT
    last = np.where(script == kernels.NO_SCRIPT, kernels.ANY_SCRIPT, script)
    blank = is_blank.astype(np.int64)
    kinds: NDArray[np.int64] = (
        1
        | script << kernels.FIRST_SCRIPT
        | last << kernels.LAST_SCRIPT
        | (is_digit & options.split_digits).astype(np.int64) << kernels.ALONE
        | blank << kernels.BLANK_FIRST
        | blank << kernels.BLANK_LAST
        | blank << kernels.BLANKS
    )
    return kinds


def train_sentencepiece_bpe(
    texts: Iterable[str | bytes], *, vocab_size: int = 8000, threads: int = 1, **options: Any
) -> Tokenizer:
    """Train a SentencePiece BPE model, exactly as sentencepiece 0.2.3 does.

    Parameters
    ----------
    texts
        One sentence each.
    vocab_size
        Pieces, meta pieces among them.
    threads
        Workers that read texts; the result does not depend on it.
    **options
        See :class:`~jittok.training.sentencepiece_options.SentencePieceOptions`.
    """
    from jittok.tokenizer import Tokenizer

    checked = sentencepiece_options("bpe", vocab_size=vocab_size, **options)
    words = count_texts(texts, checked, threads=threads)
    alphabet = alphabet_of(words, checked)
    room = checked.vocab_size - len(checked.meta_pieces()) - len(alphabet.letters)
    learned = learn_pieces(words, alphabet, checked, room)
    strings = learned.pieces + [chr(letter) for letter in alphabet.letters.tolist()]
    return Tokenizer(model_spec(checked, [(piece, -float(i)) for i, piece in enumerate(strings)]))

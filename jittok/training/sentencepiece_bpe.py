"""Byte-pair merges as SentencePiece's trainer learns them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from jittok.encodings import whole_number
from jittok.engine import thread_count
from jittok.errors import ArgumentError, ArgumentTypeError, FormatError, TextWarning, TrainingWarning, UnsupportedError
from jittok.memory import zeros
from jittok.tables import read_only
from jittok.training.character_coverage import balanced_pieces
from jittok.training.progress import Checkpoint, Progress, check_checkpoint, check_no_words, check_unreachable, warn_caller
from jittok.training.sentencepiece_corpus import (
    Alphabet,
    CountedWords,
    WordCounter,
    alphabet_of_all,
    merged_counters,
    spilling,
    text_counter,
    words_of_counts,
)
from jittok.training.sentencepiece_options import (
    BLANK,
    SentencePieceOptions,
    checkpoint_settings,
    model_spec,
    sentencepiece_options,
)
from jittok.training.workers import Workers, run_aside

if TYPE_CHECKING:
    from jittok.kernels.train_sentencepiece_bpe import Trainer

#: Places that a kernel looks at before it comes back: about a tenth of a second.
SLICE = 1 << 20
CHECKPOINT_KIND = "SentencePiece BPE training"
CHECKPOINT_SECONDS = 60.0
Unreachable = Literal["error", "warn", "stop"]


@dataclass(frozen=True)
class LearnedPieces:
    """Pieces in the order in which they were made.

    Attributes
    ----------
    pieces
        Strings.
    counts
        int64[n], how often each occurred when it was made; 0 for those made when no pair was left that occurs.
    """

    pieces: list[str]
    counts: NDArray[np.int64]


class PieceLearner:
    """Learns pieces, and can be put aside at any time.

    Parameters
    ----------
    trainer
        The arrays that kernels work on.
    letters
        uint32[k], the codepoints of its letters.
    """

    def __init__(self, trainer: Trainer, letters: NDArray[np.uint32]):
        self.trainer = trainer
        self.letters = letters

    @staticmethod
    def begin(
        words: Sequence[CountedWords], alphabet: Alphabet, options: SentencePieceOptions, most: int, threads: int = 1
    ) -> PieceLearner:
        """Begin with words.

        Parameters
        ----------
        words, alphabet
            The corpus. A word may be in several lists.
        options
            Which pieces are valid.
        most
            Most pieces that are ever made.
        threads
            At most so many threads; what is learned does not depend on it.
        """
        return PieceLearner(*_new_trainer(words, alphabet, options, most, threads))

    @property
    def n_pieces(self) -> int:
        """How many there are."""
        from jittok.kernels import train_sentencepiece_bpe as kernels

        return int(self.trainer.numbers[kernels.N_PIECES])

    def learn(self, n: int, after_slice: Callable[[], None] = lambda: None) -> None:
        """Make pieces until there are `n`, or no pair is left.

        Parameters
        ----------
        n
            How many.
        after_slice
            Called about ten times a second.
        """
        from jittok.kernels import train_sentencepiece_bpe as kernels

        while True:
            status = int(kernels.merge_pairs(self.trainer, n, SLICE))
            if status in (kernels.DONE, kernels.EXHAUSTED):
                return
            if status != kernels.PAUSED:
                self.trainer = _with_room(self.trainer, status)
            after_slice()

    def learned(self) -> LearnedPieces:
        """All pieces so far."""
        from jittok.kernels import train_sentencepiece_bpe as kernels

        trainer = self.trainer
        made = self.n_pieces
        first_symbol = int(trainer.numbers[kernels.N_LETTERS])
        lengths = trainer.kind[first_symbol : first_symbol + made] & kernels.LENGTH_MASK
        # All letters of all pieces, one piece after another.
        indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        cells = np.repeat(trainer.piece_where[:made] - indptr[:-1], lengths) + np.arange(int(indptr[-1]))
        # No piece has NUL, so they can be cut there at once.
        text = np.zeros(int(indptr[-1]) + made, "<u4")
        text[np.arange(int(indptr[-1])) + np.repeat(np.arange(made), lengths)] = self.letters[
            trainer.cells[kernels.CELL * cells + kernels.LETTER]
        ]
        pieces = text.tobytes().decode("utf-32-le").split("\0")[:-1]
        return LearnedPieces(pieces, trainer.piece_count[:made].copy())

    def state(self) -> dict[str, NDArray[Any]]:
        """All that is needed to go on."""
        from jittok.kernels import train_sentencepiece_bpe as kernels

        numbers = self.trainer.numbers
        used = {
            **dict.fromkeys(_PAIR_FIELDS, int(numbers[kernels.N_PAIRS])),
            **dict.fromkeys(_HEAP_FIELDS, int(numbers[kernels.N_WAITING])),
            "places": int(numbers[kernels.N_PLACES]),
            "events": 0,
        }
        fields = self.trainer._asdict()
        return {"letters": self.letters, **{name: array[: used.get(name)] for name, array in fields.items()}}

    @staticmethod
    def resume(state: Mapping[str, NDArray[Any]]) -> PieceLearner:
        """Go on from a :meth:`state`.

        Raises
        ------
        FormatError
            It contradicts itself.
        """
        from jittok.kernels import train_sentencepiece_bpe as kernels

        try:
            fields = {name: np.array(state[name]) for name in kernels.Trainer._fields}
            letters = np.array(state["letters"])
        except KeyError as error:
            raise FormatError(f"the checkpoint has no {error}; train from the beginning") from None
        try:
            problem = _fault_of(fields, letters)
        except (ValueError, IndexError):  # of sizes that do not fit
            problem = "sizes"
        if not problem and int(kernels.check_cells(kernels.Trainer(**fields))) < len(fields["cells"]) // kernels.CELL:
            problem = "symbols and pairs"
        if problem:
            raise FormatError(f"the checkpoint contradicts itself ({problem}); train from the beginning")
        n_cells = len(fields["cells"]) // kernels.CELL
        for name, size in (("places", 3 * n_cells), ("events", 2 * n_cells)):
            fields[name] = _longer(fields[name], max(size, 4))
        for name in (*_PAIR_FIELDS, *_HEAP_FIELDS):
            fields[name] = _longer(fields[name], 2 * len(fields[name]) + 1024)
        return PieceLearner(kernels.Trainer(**fields), letters)


_DTYPES: Mapping[str, Any] = {
    **dict.fromkeys(("weights", "kind", "count", "begin", "heap_count", "piece_count", "numbers"), np.int64),
    **dict.fromkeys(("key", "pair_key"), np.uint64),
}
_PAIR_FIELDS = ("count", "pair_key", "where", "left", "right", "begin", "n_places")
_HEAP_FIELDS = ("heap_count", "heap_pair")


def _longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    longer: NDArray[Any] = np.empty(max(size, len(array)), array.dtype)
    longer[: len(array)] = array
    return longer


def _fault_of(fields: Mapping[str, NDArray[Any]], letters: NDArray[Any]) -> str:
    """Say what kernels must not be given, or nothing."""
    from jittok.kernels import train_sentencepiece_bpe as kernels

    numbers, cells = fields["numbers"], fields["cells"]
    for name, array in (*fields.items(), ("letters", letters)):
        expected = np.uint32 if name == "letters" else _DTYPES.get(name, np.int32)
        if array.dtype != expected or array.ndim != 1:
            return f"type or shape of {name}"
    if numbers.shape != (16,) or len(cells) % kernels.CELL or len(cells) < 2 * kernels.CELL:
        return "numbers or cells"
    n_pairs, n_places, n_pieces, n_letters = (
        int(numbers[i]) for i in (kernels.N_PAIRS, kernels.N_PLACES, kernels.N_PIECES, kernels.N_LETTERS)
    )
    n_cells = len(cells) // kernels.CELL
    n_symbols = len(fields["kind"])
    most = len(fields["piece_where"])

    def within(array: NDArray[Any], low: int, stop: int) -> bool:
        return not len(array) or bool(array.min() >= low and array.max() < stop)

    columns = cells.reshape(-1, kernels.CELL)
    lengths = fields["kind"][: n_letters + n_pieces] & kernels.LENGTH_MASK
    pair_lengths = (fields["pair_key"] >> np.uint64(kernels.KEY_SHIFT)).astype(np.int64)
    known = fields["known"]
    piece_lengths = lengths[n_letters:]
    checks = {
        "sizes": all(
            len(fields[name]) == n_symbols for name in ("key", "left_mark", "left_pair", "right_mark", "right_pair")
        )
        and all(len(fields[name]) == n_pairs for name in _PAIR_FIELDS)
        and len(fields["places"]) == n_places
        and len(fields["heap_pair"]) == len(fields["heap_count"]) == int(numbers[kernels.N_WAITING])
        and len(fields["piece_count"]) == most
        and n_symbols == n_letters + most
        and 0 <= n_pieces <= most
        and len(letters) == n_letters
        and len(known) & (len(known) - 1) == 0
        and len(known) > most,
        "cells": within(columns[:, kernels.SYMBOL], 0, n_letters + n_pieces)
        and within(columns[:, kernels.PAIR], -1, n_pairs)
        and within(columns[:, kernels.LETTER], 0, n_letters)
        and within(columns[:, kernels.WEIGHT], 1 - len(fields["weights"]), 1 << 31)
        and columns[0, kernels.SYMBOL] == columns[-1, kernels.SYMBOL] == 0,
        "pairs": within(fields["left"], 0, n_letters + n_pieces)
        and within(fields["right"], 0, n_letters + n_pieces)
        and within(fields["begin"], 0, n_places + 1)
        and within(fields["n_places"], 0, n_places + 1)
        and (not n_pairs or int((fields["begin"] + fields["n_places"]).max()) <= n_places)
        and within(fields["places"], 1, n_cells)
        and within(fields["heap_pair"], 0, n_pairs),
        "letters of pairs": not n_pairs
        or (within(fields["where"], 0, n_cells) and int((fields["where"] + pair_lengths).max()) <= n_cells),
        "pieces": within(known, 0, n_pieces + 1)
        and (not n_pieces or int((fields["piece_where"][:n_pieces] + piece_lengths).max()) <= n_cells)
        and within(fields["piece_where"][:n_pieces], 0, n_cells),
        "kinds": bool((fields["kind"] >= 0).all())
        and bool((fields["kind"][1:n_letters] & kernels.LENGTH_MASK == 1).all())
        and int(fields["kind"][0]) == 1 << kernels.BARRED
        and within(piece_lengths, 2, int(numbers[kernels.MOST_LETTERS]) + 1)
        and 1 <= int(numbers[kernels.MOST_LETTERS]) <= 512,
        "marked pairs": within(fields["left_pair"], -1, n_pairs) and within(fields["right_pair"], -1, n_pairs),
        "free places": int(np.count_nonzero(known)) <= n_pieces,
        "bits": int(numbers[kernels.LETTER_BITS]) == max(n_letters - 1, 1).bit_length(),
    }
    return next((name for name, holds in checks.items() if not holds), "")


def _new_trainer(
    several: Sequence[CountedWords], alphabet: Alphabet, options: SentencePieceOptions, n: int, threads: int
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
    n_symbols = n_letters + n
    kind = np.zeros(n_symbols, np.int64)
    kind[:n_letters] = _letter_kinds(letters, options)
    kind[0] = 1 << kernels.BARRED
    rules = (
        kernels.BLANKS_BEHIND * options.treat_whitespace_as_suffix
        | kernels.BLANKS_INSIDE * (not options.split_by_whitespace)
        | kernels.BLANKS_ALONE * options.allow_whitespace_only_pieces
        | kernels.ANY_SCRIPTS * (not options.split_by_unicode_script)
    )
    letter_of, letter_kind = read_only(letter_of), read_only(kind[:n_letters].copy())
    workers = Workers(threads)
    counters = workers.map(lambda words: _parts_of_words(words, letter_of, letter_kind, rules, workers), list(several))
    words = merged_counters(list(counters)).words()
    n_cells = int(words.indptr[-1]) + len(words.counts) + 2
    if n_cells >= 1 << 31:
        raise ArgumentError(
            f"the words that differ have {n_cells} characters together; expected less than {1 << 31}. Train on a sample"
        )
    cells = zeros(kernels.CELL * n_cells, np.int32)
    weights = np.zeros(int((words.counts >= 1 << 31).sum()) + 1, np.int64)
    arguments = read_only(words.data), read_only(words.indptr), read_only(words.counts), letter_of
    used = int(run_aside(kernels.lay_out_words, *arguments, cells, weights))
    cells = cells[: kernels.CELL * used]
    bits = max(n_letters - 1, 1).bit_length()
    key = np.zeros(n_symbols, np.uint64)
    key[:n_letters] = np.arange(n_letters, dtype=np.uint64) << np.uint64(kernels.KEY_SHIFT - bits)
    n_pairs = 1 << 14
    numbers = np.zeros(16, np.int64)
    numbers[kernels.N_LETTERS] = n_letters
    numbers[kernels.LETTER_BITS] = bits
    numbers[kernels.MOST_LETTERS] = options.max_sentencepiece_length
    numbers[kernels.RULES] = rules
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
        if int(run_aside(kernels.find_pairs, trainer, slot_key, slot_pair)) == kernels.DONE:
            break
        trainer = _with_room(trainer, kernels.NO_PAIR_ROOM)
    return trainer, letters


def _parts_of_words(
    words: CountedWords, letter_of: NDArray[np.int32], kind: NDArray[np.int64], rules: int, workers: Workers
) -> WordCounter:
    """Count the parts of words that pieces may lie in."""
    from jittok.kernels import train_sentencepiece_bpe as kernels
    from jittok.kernels.sentencepiece_corpus import WHOLE

    counter = WordCounter(WHOLE)
    arguments = read_only(words.data), read_only(words.indptr), read_only(words.counts), letter_of, kind, rules
    room = max(1 << 16, int(np.diff(words.indptr).max(initial=0)))
    starts, ends, weights = (np.empty(room, np.int64) for _ in range(3))
    n_parts = np.zeros(1, np.int64)
    at = 0
    while at < len(words.counts) and not workers.is_stopped.is_set():
        at = int(kernels.cut_words(*arguments, at, starts, ends, weights, n_parts))
        n = int(n_parts[0])
        counter.add(words.data, starts[:n], ends[:n], weights[:n])
    return counter


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


# -------------------------------------------------------------------------------------------------------- training


def train_sentencepiece_bpe(
    texts: object = None,
    *,
    vocab_size: int | None = None,
    vocab_sizes: Iterable[int] | None = None,
    counts: Any = None,
    threads: int | None = None,
    memory_limit: int | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    unreachable: Unreachable | None = None,
    **options: Any,
) -> Any:
    """Train a SentencePiece BPE model: the pieces and scores of sentencepiece 0.2.3.

    Parameters
    ----------
    texts
        One sentence each: the path of a file with one a line, or any iterable of texts; see
        :func:`~jittok.training.sentencepiece_corpus.count_texts`.
    vocab_size
        Pieces, meta pieces among them; 8,000 if not given.
    vocab_sizes
        Instead of `vocab_size`: several, learned in one run. Each gets what its own run would.
    counts
        Instead of texts: see :func:`~jittok.training.sentencepiece_corpus.words_of_counts`.
    threads
        At most so many threads; the result does not depend on it. None: one for each processor.
    memory_limit
        Bytes that the tables of words may take while they are counted; what does not fit goes to temporary files. The
        result does not depend on it.
    progress
        Whether to show how far it is.
    checkpoint
        A file that is written to every minute, and when training is interrupted.
    resume
        A checkpoint to go on from, instead of `texts`, to the same result. Options must be as before.
    unreachable
        What to do if there are fewer pieces than asked for: "error", or make a smaller vocabulary and "warn" or just
        "stop". None: an error, unless ``hard_vocab_limit=False``.
    **options
        Of the trainer, by the reference's names: see
        :class:`~jittok.training.sentencepiece_options.SentencePieceOptions`. Of the texts: ``field``, ``column`` and
        ``errors`` of :func:`~jittok.training.texts.read_texts`.

    Returns
    -------
    Tokenizer, or dict of int to Tokenizer
        With `vocab_sizes`, by size, the smallest first. ``save("x.model")`` writes a file for sentencepiece.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An option is wrong, nothing is left to train on, or the size cannot be reached; the message says which can.
    TextError, FormatError, MissingFileError
        The texts, counts, rules or checkpoint cannot be read.
    OutputError
        The checkpoint cannot be written.

    Warns
    -----
    TextWarning
        Texts were left out that are not just empty, or characters in them replaced.
    TrainingWarning
        A vocabulary is smaller than asked for.
    """
    from jittok.tokenizer import Tokenizer

    if options.pop("base", None) is not None:
        raise UnsupportedError('base= is for rules="tokenizers"; SentencePiece models are trained from the beginning')
    check_checkpoint(checkpoint)
    reading: dict[str, Any] = {name: options.pop(name) for name in ("field", "column", "errors") if name in options}
    if vocab_sizes is not None and vocab_size is not None:
        raise ArgumentError("vocab_size and vocab_sizes exclude each other; give one")
    check_unreachable(unreachable)
    if vocab_sizes is None:
        sizes = [8000 if vocab_size is None else vocab_size]
    elif isinstance(vocab_sizes, str) or not isinstance(vocab_sizes, Iterable):
        raise ArgumentTypeError(f"vocab_sizes: expected a list of whole numbers, got {vocab_sizes!r}")
    else:
        sizes = sorted({whole_number("vocab_sizes", size, 1) for size in vocab_sizes})
    if not sizes:
        raise ArgumentError("vocab_sizes: expected at least one size")
    # Each of several sizes reads them.
    options = {name: tuple(value) if isinstance(value, Iterator) else value for name, value in options.items()}
    each = {size: sentencepiece_options("bpe", **{**options, "vocab_size": size}) for size in sizes}
    settings = checkpoint_settings(each[sizes[-1]])
    if resume is not None:
        check_no_words(texts, counts)
        learner, alphabet = _resumed(resume, settings)
    else:
        with spilling(memory_limit, threads) as spill:
            reading = {"spill": spill, "threads": threads, "progress": progress, **reading}
            words = _words(texts, counts, each[sizes[-1]], reading)
        alphabet = alphabet_of_all(words, each[sizes[0]], thread_count(threads))
        room = _room(each[sizes[-1]], alphabet)
        learner = PieceLearner.begin(words, alphabet, each[sizes[-1]], room, thread_count(threads))
        del words
    _learn(learner, alphabet, _room(each[sizes[-1]], alphabet), settings, checkpoint, progress)
    learned = learner.learned()
    del learner
    result = {}
    for size, chosen in each.items():
        pieces = _vocabulary(learned, alphabet, chosen, _room(chosen, alphabet))
        # Scores count down from 0, which is -0.0 in the reference too.
        scores = (-np.arange(len(pieces), dtype=np.float64)).tolist()
        spec = model_spec(chosen, pieces, scores, stop=None if unreachable is None else unreachable != "error")
        reached = min(size, len(pieces) + len(chosen.meta_pieces()))
        if reached < size and unreachable == "warn":
            warn_caller(
                f"vocab_size={size} cannot be reached with these texts; the vocabulary has {reached} pieces",
                TrainingWarning,
            )
        result[size] = Tokenizer.deferred(spec)
    return result[sizes[0]] if vocab_sizes is None else result


def _words(texts: object, counts: Any, options: SentencePieceOptions, reading: dict[str, Any]) -> list[CountedWords]:
    if (texts is None) == (counts is None):
        raise ArgumentTypeError("expected either texts or counts")
    if counts is not None:
        words = [words_of_counts(counts, options)]
    else:
        words = text_counter(texts, options, **reading).words_of_threads(Workers(thread_count(reading["threads"])))
    report = words[0].report
    if any("blanks" not in reason and reason != "empty" for reason in report.skipped) or report.replaced:
        warn_caller(report.summary(), TextWarning)
    return words


def _room(options: SentencePieceOptions, alphabet: Alphabet) -> int:
    """How many merges there is room for."""
    return options.vocab_size - len(options.meta_pieces()) - len(alphabet.letters)


def _learn(
    learner: PieceLearner,
    alphabet: Alphabet,
    n: int,
    settings: dict[str, Any],
    checkpoint: str | os.PathLike[str] | None,
    progress: bool,
) -> None:
    """Learn `n` pieces, with a bar and checkpoints."""
    written = time.monotonic()

    def write() -> None:
        if checkpoint is not None:
            arrays = {f"alphabet_{name}": getattr(alphabet, name) for name in _ALPHABET_FIELDS}
            Checkpoint(checkpoint, CHECKPOINT_KIND).write({"settings": settings}, {**arrays, **learner.state()})

    with Progress(n, "merge", "learning merges", progress) as bar:
        done = 0

        def after_slice() -> None:
            nonlocal done, written
            bar.advance(learner.n_pieces - done)
            done = learner.n_pieces
            if time.monotonic() - written > CHECKPOINT_SECONDS:
                write()
                written = time.monotonic()

        try:
            learner.learn(n, after_slice)
        except KeyboardInterrupt:
            write()
            raise
        bar.advance(learner.n_pieces - done)


_ALPHABET_FIELDS = ("letters", "counts", "characters", "character_counts")


def _resumed(path: str | os.PathLike[str], settings: dict[str, Any]) -> tuple[PieceLearner, Alphabet]:
    """Where a checkpoint goes on, if its settings are these."""
    state, arrays = Checkpoint(path, CHECKPOINT_KIND).read()
    stored = state.get("settings", {})
    for name, value in settings.items():
        if stored.get(name) != value:
            raise ArgumentError(
                f"{path}: the checkpoint was made with {name}={stored.get(name)!r}, not {value!r}; give the same options "
                "as before"
            )
    try:
        alphabet = Alphabet(*(np.array(arrays[f"alphabet_{name}"]) for name in _ALPHABET_FIELDS))
    except KeyError as error:
        raise FormatError(f"{path}: the checkpoint has no {error}; train from the beginning") from None
    return PieceLearner.resume(arrays), alphabet


def _vocabulary(
    learned: LearnedPieces, alphabet: Alphabet, options: SentencePieceOptions, room: int
) -> list[str]:
    """Pieces in order: merges, then letters."""
    pieces = learned.pieces[:room]
    if options.auto_character_coverage:
        return balanced_pieces(pieces, learned.counts[:room], alphabet.characters, alphabet.character_counts, room)
    return pieces + [chr(letter) for letter in alphabet.letters.tolist()]

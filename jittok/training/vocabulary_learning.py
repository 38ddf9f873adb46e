"""What learning byte-pair merges and WordPiece vocabularies share: options, alphabets, checkpoints, sizes, results."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.build.merge_tables import byte_alphabet
from jittok.encodings import whole_number
from jittok.errors import ArgumentError, ArgumentTypeError, FormatError, TrainingWarning
from jittok.spec import (
    AddedToken,
    DecodeBPE,
    DecodeByteLevel,
    DecodeMetaspace,
    Decoder,
    DecodeReplace,
    DecodeStrip,
    DecodeWordPiece,
    Metaspace,
    PostProcessor,
)
from jittok.tables import read_only
from jittok.text import codepoints_below
from jittok.token_columns import ColumnMerges, Columns, ColumnVocab
from jittok.training.counting import checked_memory_limit
from jittok.training.progress import Checkpoint, Progress, check_no_words, warn_caller
from jittok.training.steps import Steps, read_steps, steps_from_settings
from jittok.training.word_counts import WordCounts, check_words, count_words, merge_counts

if TYPE_CHECKING:
    from jittok.training.merge_learning import Letters, MergeLearner, Words

Unreachable = Literal["warn", "stop", "error"]

#: As in tokenizers.
DEFAULT_SIZE = 30_000
CHECKPOINT_KIND = "merges"
#: Seconds between two checkpoints.
CHECKPOINT_SECONDS = 60.0


@dataclass(frozen=True)
class BPEOptions:
    """What decides the vocabulary, besides the words; see :func:`train_bpe`."""

    min_frequency: int = 0
    special_tokens: tuple[AddedToken, ...] = ()
    initial_alphabet: tuple[str, ...] = ()
    limit_alphabet: int | None = None
    max_token_length: int | None = None
    continuing_subword_prefix: str = ""
    end_of_word_suffix: str = ""


# ---------------------------------------------------------------------------------------------------- the arguments


def bpe_options(
    *,
    min_frequency: int,
    special_tokens: Iterable[str | AddedToken],
    initial_alphabet: Iterable[str],
    limit_alphabet: int | None,
    max_token_length: int | None,
    continuing_subword_prefix: str | None,
    end_of_word_suffix: str | None,
) -> BPEOptions:
    """Check options; the arguments are those of :func:`train_bpe`."""
    return BPEOptions(
        whole_number("min_frequency", min_frequency, 0),
        special_added_tokens(special_tokens),
        _letters_of("initial_alphabet", initial_alphabet),
        None if limit_alphabet is None else whole_number("limit_alphabet", limit_alphabet, 0),
        None if max_token_length is None else whole_number("max_token_length", max_token_length, 1),
        _optional_text("continuing_subword_prefix", continuing_subword_prefix),
        _optional_text("end_of_word_suffix", end_of_word_suffix),
    )


def special_added_tokens(given: Iterable[str | AddedToken]) -> tuple[AddedToken, ...]:
    """Special tokens as callers give them, each once."""
    if isinstance(given, str | AddedToken) or not isinstance(given, Iterable):
        raise ArgumentTypeError(f"special_tokens: expected a list of str or AddedToken, got {type(given).__name__}")
    tokens: dict[str, AddedToken] = {}
    for item in given:
        if isinstance(item, str):
            token = AddedToken(0, item, special=True, normalized=False)
        elif isinstance(item, AddedToken):
            token = replace(item, id=0, special=True)
        else:
            raise ArgumentTypeError(f"special_tokens: expected str or AddedToken, got {type(item).__name__}")
        if not token.content:
            raise ArgumentError("special_tokens: a special token is empty; leave it out")
        _without_surrogates("special_tokens", token.content)
        if tokens.setdefault(token.content, token) != token:
            raise ArgumentError(f"special_tokens: {token.content!r} is there twice, with different flags; give it once")
    return tuple(tokens.values())


def _letters_of(name: str, given: Iterable[str]) -> tuple[str, ...]:
    if not isinstance(given, Iterable):
        raise ArgumentTypeError(f"{name}: expected characters, got {type(given).__name__}")
    if given == "byte-level":
        return tuple(byte_alphabet())
    letters = []
    for item in given:
        if not isinstance(item, str) or not item:
            raise ArgumentTypeError(f"{name}: expected characters, got {item!r}")
        _without_surrogates(name, item)
        letters.append(item[0])  # of a longer string, the first, as the reference does
    return tuple(dict.fromkeys(letters))


def _optional_text(name: str, value: str | None) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{name}: expected a str or None, got {type(value).__name__}")
    return _without_surrogates(name, value)


def _without_surrogates(name: str, value: str) -> str:
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ArgumentError(f"{name}={value!r} has a lone surrogate, which no text can contain; leave it out")
    return value


def check_sizes(vocab_size: int | None, vocab_sizes: Iterable[int] | None) -> list[int]:
    """The sizes asked for, rising, each once."""
    if vocab_sizes is None:
        return [DEFAULT_SIZE if vocab_size is None else whole_number("vocab_size", vocab_size, 0)]
    if vocab_size is not None:
        raise ArgumentError("vocab_size and vocab_sizes are both given; give one of them")
    if isinstance(vocab_sizes, str | int) or not isinstance(vocab_sizes, Iterable):
        raise ArgumentTypeError(f"vocab_sizes: expected a list of whole numbers, got {vocab_sizes!r}")
    sizes = sorted({whole_number("vocab_sizes", size, 0) for size in vocab_sizes})
    if not sizes:
        raise ArgumentError("vocab_sizes is empty; give the sizes of the vocabularies")
    return sizes


def gather_counts(
    texts: object,
    counts: Any,
    normalizer: object,
    pre_tokenizer: object,
    reading: Mapping[str, Any],
    unreachable: Unreachable | None,
) -> tuple[WordCounts, Steps]:
    """Count the words of texts, or merge the counts given; and say by which steps words are made.

    Parameters
    ----------
    texts, counts, normalizer, pre_tokenizer
        As given to :func:`train_bpe`.
    reading
        Further arguments of :func:`~jittok.count_words`.
    unreachable
        What to do if there are no words: see :func:`train_bpe`.
    """
    if (texts is None) == (counts is None):
        raise ArgumentError("give either texts or counts=, not " + ("both" if counts is not None else "neither"))
    if counts is None:
        counted = count_words(texts, normalizer=normalizer, pre_tokenizer=pre_tokenizer, **reading)
        return _not_empty(counted, unreachable), read_steps(normalizer, pre_tokenizer)
    items = counts if isinstance(counts, list | tuple) else [counts]
    for item in items:
        if not isinstance(item, WordCounts | str | os.PathLike):
            raise ArgumentTypeError(f"counts: expected WordCounts or the paths of their files, got {type(item).__name__}")
    merged = _not_empty(merge_counts(items, memory_limit=reading["memory_limit"]), unreachable)
    if "rules" in merged.settings:
        raise ArgumentError(
            f"counts: the words were counted with rules={merged.settings['rules']!r}; train with these, or count the words "
            "by jittok.count_words"
        )
    asked = read_steps(normalizer, pre_tokenizer)
    if not merged.settings:
        return merged, asked
    steps = steps_from_settings(merged.settings)
    for name, given in (("normalizer", normalizer), ("pre_tokenizer", pre_tokenizer)):
        if given is not None and getattr(asked, f"{name}s") != getattr(steps, f"{name}s"):
            raise ArgumentError(
                f"{name}: the words were counted with {getattr(steps, f'{name}s')!r}; leave the argument out, or count "
                "the words anew"
            )
    return merged, steps


def _not_empty(counts: WordCounts, unreachable: Unreachable | None) -> WordCounts:
    if not len(counts.counts):
        found = counts.report.summary()
        message = f"there are no words to learn from ({found}); expected texts with at least one word"
        if unreachable in ("error", "stop"):
            raise ArgumentError(message)
        warn_caller(message, TrainingWarning)
    return counts


# ----------------------------------------------------------------------------------------------------- the alphabet


class Start(NamedTuple):
    """Where learning starts.

    Attributes
    ----------
    words
        Words in the symbols that there are.
    tokens, lengths
        The string of each symbol, and its letters.
    merges
        int32[m, 3], merges learned before.
    n_first
        Number of tokens that there were before these.
    """

    words: Words | Letters
    tokens: list[str]
    lengths: list[int]
    merges: NDArray[np.int32]
    n_first: int


def start_with_letters(counts: WordCounts, byte_level: bool, options: BPEOptions) -> Start:
    """Choose the alphabet, and number special tokens and letters.

    Parameters
    ----------
    counts
        Words in UTF-8.
    byte_level
        Whether their bytes are letters, each by its printable character.
    options
        What decides the alphabet.

    Raises
    ------
    ArgumentError
        See :func:`jittok.training.word_counts.check_words`.
    """
    from jittok.training.merge_learning import Letters

    check_words(counts, bytewise=byte_level)
    codepoints, totals, seen = _count_letters(counts, byte_level, bool(options.end_of_word_suffix))
    kept = _alphabet(dict(zip(codepoints, totals, strict=True)), options)
    tokens: dict[str, int] = {}
    lengths: list[int] = []

    def add(token: str) -> int:
        if token not in tokens:
            tokens[token] = len(tokens)
            lengths.append(0)
        return tokens[token]

    for special in options.special_tokens:
        add(special.content)  # it has as many letters as the first merge that makes it
    for character in kept:
        lengths[add(character)] = 1
    prefix, suffix = options.continuing_subword_prefix, options.end_of_word_suffix
    # What is put around letters, in the order of ids, and in which places of words: bits 1, at the beginning; 2, at the end.
    variants: dict[tuple[str, str], list[int]] = {}
    for kind in (1, 0, 3, 2):
        around = "" if kind & 1 else prefix, suffix if kind & 2 else ""
        variants.setdefault(around, []).append(kind)
    places = [_BYTES[letter] for letter in codepoints] if byte_level else codepoints
    symbols = np.full((4, max(places, default=0) + 1), -1, np.int32)
    for (before, after), kinds in variants.items():
        for letter, place, found in zip(codepoints, places, seen, strict=True):
            for kind in kinds:
                if found >> kind & 1 and chr(letter) in tokens:
                    symbols[kind, place] = add(before + chr(letter) + after)
                    lengths[symbols[kind, place]] = 1
    letters = Letters(counts.data, counts.indptr, counts.counts, byte_level, bool(suffix), symbols)
    return Start(letters, list(tokens), lengths, np.zeros((0, 3), np.int32), len(tokens))


_BYTES = {ord(letter): byte for letter, byte in byte_alphabet().items()}


def _count_letters(counts: WordCounts, byte_level: bool, last_differs: bool) -> tuple[list[int], list[int], list[int]]:
    """Codepoints of the letters, rising; how often each occurs; and in which places of words it does, in bits."""
    from jittok.kernels.train_bpe import count_letters

    size = 256 if byte_level else codepoints_below(counts.data[: int(counts.indptr[-1])])
    totals, seen = np.zeros(size, np.int64), np.zeros(size, np.uint8)
    count_letters(counts.data, counts.indptr, counts.counts, int(byte_level), int(last_differs), totals, seen)
    found = np.flatnonzero(seen)
    letters = found.tolist()
    if byte_level:
        codepoints = {byte: letter for letter, byte in _BYTES.items()}
        letters = [codepoints[byte] for byte in letters]
        order = sorted(range(len(letters)), key=letters.__getitem__)
        letters, found = sorted(letters), found[order]
    return letters, totals[found].tolist(), seen[found].tolist()


def _alphabet(totals: Mapping[int, int], options: BPEOptions) -> list[str]:
    """The letters that become tokens, by codepoint."""
    first = {ord(letter) for letter in options.initial_alphabet}
    letters = first | totals.keys()
    if options.limit_alphabet is not None and len(letters) > options.limit_alphabet:
        others = sorted(letters - first, key=lambda letter: (-totals[letter], letter))
        letters = set([*sorted(first), *others][: options.limit_alphabet])
    return [chr(letter) for letter in sorted(letters)]


# --------------------------------------------------------------------------------------------------------- learning


class Checkpoints:
    """Writes down what was learned, from time to time.

    Parameters
    ----------
    path
        The file; None: never.
    settings
        What it is that is learned: JSON values.
    """

    def __init__(self, path: str | os.PathLike[str] | None, settings: Mapping[str, Any]) -> None:
        self._file = None if path is None else Checkpoint(path, CHECKPOINT_KIND)
        self._settings = settings
        self._last = time.monotonic()

    def write(self, learner: MergeLearner, start: Start, *, now: bool = False) -> None:
        """Write it, if it is time for that or `now`."""
        if self._file is None or not (now or time.monotonic() - self._last > CHECKPOINT_SECONDS):
            return
        words = learner.words()
        state = {"settings": self._settings, "tokens": learner.tokens, "n_first": start.n_first}
        arrays: dict[str, NDArray[Any]] = {
            "symbols": words.symbols,
            "indptr": words.indptr,
            "counts": words.counts,
            "lengths": learner.lengths,
            "merges": np.concatenate([start.merges, learner.merges]),
        }
        self._file.write(state, arrays)
        self._last = time.monotonic()


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Start]:
    """Read what :class:`Checkpoints` wrote: its settings, and where to go on."""
    from jittok.training.merge_learning import Words

    metadata, arrays = Checkpoint(path, CHECKPOINT_KIND).read()
    try:
        words = Words(*(arrays[name] for name in Words._fields))
        tokens, n_first = list(metadata["tokens"]), int(metadata["n_first"])
        lengths, merges = arrays["lengths"].tolist(), arrays["merges"]
        indptr, symbols = words.indptr, words.symbols
        valid = (
            len(indptr) == len(words.counts) + 1
            and indptr[0] == 0
            and indptr[-1] == len(symbols)
            and not (np.diff(indptr) < 0).any()
            and len(lengths) == len(tokens) == len(set(tokens))
            and 0 <= n_first <= len(tokens)
            and merges.ndim == 2
            and merges.shape[1] == 3
            and {symbols.dtype, merges.dtype} == {np.dtype(np.int32)}
            and {indptr.dtype, words.counts.dtype} == {np.dtype(np.int64)}
            and all(part.size == 0 or (part.min() >= 0 and part.max() < len(tokens)) for part in (symbols, merges))
        )
        settings = dict(metadata["settings"])
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path}: not as a checkpoint is written ({error}); train from the beginning") from None
    if not valid:
        raise FormatError(f"{path}: the checkpoint contradicts itself; train from the beginning")
    return settings, Start(words, tokens, lengths, merges, n_first)


def learn(
    start: Start,
    options: BPEOptions,
    size: int,
    checkpoints: Checkpoints,
    progress: bool,
    *,
    threads: int = 1,
    by_likelihood: bool = False,
) -> Learned:
    """Learn merges until there are `size` tokens, or no pair is left.

    Parameters
    ----------
    start
        Words, and the tokens that there are.
    options
        What restricts merges.
    size
        Number of tokens.
    checkpoints
        Where to note what was learned.
    progress
        Whether to show it.
    threads
        At most so many; what is learned does not depend on it.
    by_likelihood
        See :class:`jittok.training.merge_learning.Rules`.
    """
    from jittok.training.merge_learning import UNLIMITED, MergeLearner, Rules

    rules = Rules(
        options.min_frequency,
        UNLIMITED if options.max_token_length is None else options.max_token_length,
        options.continuing_subword_prefix.encode(),
        by_likelihood,
    )
    learner = MergeLearner(start.words, start.tokens, start.lengths, rules, size, threads)
    with Progress(max(size - len(start.tokens), 0), "merge", "Learning merges", progress) as bar:
        shown = len(start.tokens)

        def after_slice(n: int) -> None:
            nonlocal shown
            bar.advance(n - shown)
            shown = n
            checkpoints.write(learner, start)

        try:
            learner.run(after_slice)
        except KeyboardInterrupt:
            checkpoints.write(learner, start, now=True)
            raise
        bar.advance(learner.size - shown)
    return Learned(learner.columns(), np.concatenate([start.merges, learner.merges]))


class Learned(NamedTuple):
    """What was learned.

    Attributes
    ----------
    columns
        The tokens.
    merges
        int32[m, 3]: left, right and result of each, the merges that there were at the start among them.
    """

    columns: Columns
    merges: NDArray[np.int32]

    def vocabulary(self, n: int) -> ColumnVocab:
        """The first `n` tokens, whose numbers are their ids."""
        columns = Columns(self.columns.data, read_only(self.columns.indptr[: n + 1]))
        return ColumnVocab(columns, np.arange(n))


def first_merges(merges: NDArray[np.int32], n_first: int, size: int) -> NDArray[np.int32]:
    """Those merges that a run would learn that stops at `size` tokens.

    Parameters
    ----------
    merges
        int32[m, 3]
    n_first
        Number of tokens before the first merge.
    size
        Number of tokens wanted.
    """
    if size <= n_first:
        return merges[:0]
    # Results never jump ahead, and the last token of that size has the id size - 1.
    reached = np.flatnonzero(merges[:, 2] >= size - 1)
    return merges if len(reached) == 0 else merges[: reached[0] + 1]


def merges_of(vocabulary: ColumnVocab, merges: NDArray[np.int32]) -> ColumnMerges:
    """Merges as pairs, each once: of a pair that comes again, the later place counts, as in tokenizers.

    Parameters
    ----------
    vocabulary
        Tokens, their results among them.
    merges
        int32[m, 3]: left, right and result.
    """
    if not (np.diff(merges[:, 2]) > 0).all():  # else there is no result twice, so no pair either
        backwards = merges[::-1, :2].astype(np.int64)
        _, last = np.unique(backwards[:, 0] << 32 | backwards[:, 1], return_index=True)
        merges = merges[np.sort(len(merges) - 1 - last)]
    return ColumnMerges(vocabulary, *(np.ascontiguousarray(column) for column in merges.T))


def check_room(sizes: Iterable[int], n_first: int, unreachable: Unreachable | None, has_base: bool = False) -> None:
    """Raise, or warn, if a size asked for is less than the `n_first` tokens that there are before anything is learned."""
    least = min(sizes)
    if least >= n_first:
        return
    if has_base:
        message = f"vocab_size={least:,} is less than the {n_first:,} tokens of the base and new letters; ask for more"
    else:
        message = (
            f"vocab_size={least:,} is less than the {n_first:,} special tokens and letters; ask for at least {n_first:,}, "
            "or limit the alphabet with limit_alphabet="
        )
    if unreachable in ("error", "stop"):
        raise ArgumentError(message)
    warn_caller(message, TrainingWarning)


def report_size(asked: int, reached: int, unreachable: Unreachable | None) -> None:
    """Say that a vocabulary has not the size that was asked for.

    Parameters
    ----------
    asked, reached
        Numbers of tokens. Whether more were reached than asked for, :func:`check_room` says.
    unreachable
        What to do: see :func:`train_bpe`.
    """
    if unreachable == "stop" or reached >= asked:
        return
    message = (
        f"vocab_size={asked:,} cannot be reached, because no pair is left to merge; the largest that can be is {reached:,}. "
        "Ask for that, or give more text; min_frequency= and max_token_length= leave pairs out too"
    )
    if unreachable == "error":
        raise ArgumentError(message)
    warn_caller(message, TrainingWarning)


def resumed(resume: str | os.PathLike[str], settings: Mapping[str, Any], texts: object, counts: object) -> Start:
    """Where a checkpoint goes on, if its settings are these."""
    check_no_words(texts, counts)
    stored, start = read_checkpoint(resume)
    for name, value in settings.items():
        if stored.get(name) != value:
            raise ArgumentError(
                f"{resume}: the checkpoint was made with other {name}: {stored.get(name)!r}, not {value!r}; give the same "
                "arguments as before"
            )
    return start


def plain_options(options: BPEOptions) -> dict[str, Any]:
    """Options as JSON values."""
    values = asdict(options)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def reading_arguments(
    options: Mapping[str, Any], threads: int | None, memory_limit: int | None, progress: bool
) -> dict[str, Any]:
    """Arguments for :func:`jittok.count_words`; raise if there are others among `options`, or one is impossible."""
    known = ("field", "column", "errors", "keep_line_ends")
    for name in options:
        if name not in known:
            raise ArgumentTypeError(f"unexpected argument {name}=; expected one of the signature, or {', '.join(known)}")
    memory_limit = checked_memory_limit(memory_limit)
    return {**options, "threads": threads, "memory_limit": memory_limit, "progress": progress}


# ------------------------------------------------------------------------------------------------------- the result


def chosen_decoders(decoder: object, steps: Steps, prefix: str, suffix: str) -> tuple[Decoder, ...]:
    """The decoders asked for, or those that undo what the steps do.

    Parameters
    ----------
    decoder
        None; an object as in a tokenizer.json; a component of :mod:`jittok.spec`, or several.
    steps
        What is done to text.
    prefix, suffix
        Of tokens that continue or end a word.
    """
    if decoder is not None:
        if isinstance(decoder, Mapping):
            from jittok.formats import tokenizer_json

            return tokenizer_json.read_decoders(decoder)
        items = tuple(decoder) if isinstance(decoder, list | tuple) else (decoder,)
        for item in items:
            if not isinstance(item, Decoder):
                raise ArgumentTypeError(
                    f"decoder: expected None, an object as in a tokenizer.json or a decoder of jittok.spec, got {item!r}"
                )
        return items
    if steps.byte_level:
        return (DecodeByteLevel(), DecodeReplace(suffix, " "), DecodeStrip(" ", 0, 1)) if suffix else (DecodeByteLevel(),)
    metaspace = next((step for step in steps.pre_tokenizers if isinstance(step, Metaspace)), None)
    if metaspace is not None:
        return (DecodeMetaspace(metaspace.replacement, metaspace.prepend_scheme),)
    if suffix:
        return (DecodeBPE(suffix),)
    return (DecodeWordPiece(prefix, cleanup=False),) if prefix else ()


def chosen_post_processors(post_processor: object, vocab: Mapping[str, int]) -> tuple[PostProcessor, ...]:
    """The post-processors asked for.

    Parameters
    ----------
    post_processor
        None; an object as in a tokenizer.json; a component of :mod:`jittok.spec`, or several.
    vocab
        Ids of all tokens.
    """
    if post_processor is None:
        return ()
    if isinstance(post_processor, Mapping):
        from jittok.formats import tokenizer_json

        return tokenizer_json.read_post_processors(post_processor, set(vocab.values()))
    items = tuple(post_processor) if isinstance(post_processor, list | tuple) else (post_processor,)
    for item in items:
        if not isinstance(item, PostProcessor):
            raise ArgumentTypeError(
                "post_processor: expected None, an object as in a tokenizer.json or a post-processor of jittok.spec, got "
                f"{item!r}"
            )
    return items


def with_ids(special: Iterable[AddedToken], vocab: Mapping[str, int]) -> tuple[AddedToken, ...]:
    """Special tokens with the ids that they have in a vocabulary, in order of id."""
    return tuple(sorted((replace(token, id=vocab[token.content]) for token in special), key=lambda token: token.id))

"""Byte-pair encoding, learned from a corpus: :func:`train_bpe`.

The rules are those of tokenizers' trainer, without its accidents:

- Ids: special tokens, letters by codepoint, letters with a prefix or a suffix (those with a prefix first, then those
  with a suffix, then those with both, each by codepoint), merges in the order in which they are learned. A token that
  comes again keeps its first id, and a merge that makes it is learned all the same.
- The next merge is the pair of the greatest count; among equal ones that of the least ids, left before right. Overlapping
  pairs all count ("aaa" has two of "aa"); merging goes from left to right. All counts are 64-bit.
- Letters that `limit_alphabet` leaves out vanish, and their neighbours become adjacent. The rarest go, of equal ones
  those of greater codepoints.
- `max_token_length` counts letters, and holds from the first merge on.
- The name of a merge is both tokens' names, without the second one's prefix.
"""

from __future__ import annotations

import inspect
import os
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.build.merge_tables import byte_alphabet
from jittok.encodings import whole_number
from jittok.errors import ArgumentError, ArgumentTypeError, FormatError, TrainingWarning
from jittok.spec import (
    AddedToken,
    BPEModel,
    ByteLevel,
    DecodeBPE,
    DecodeByteLevel,
    DecodeMetaspace,
    Decoder,
    DecodeReplace,
    DecodeStrip,
    DecodeWordPiece,
    Metaspace,
    PostProcessor,
    TokenizerSpec,
)
from jittok.training.array_file import read_arrays, write_arrays
from jittok.training.steps import Steps, read_steps, steps_from_settings
from jittok.training.word_counts import WordCounts, count_words

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer
    from jittok.training.merge_learning import Letters, MergeLearner, Words

Unreachable = Literal["warn", "stop", "error"]

#: As in tokenizers.
DEFAULT_SIZE = 30_000
CHECKPOINT_KIND = "jittok training checkpoint"
CHECKPOINT_VERSION = 1
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
        if tokens.setdefault(token.content, token) != token:
            raise ArgumentError(f"special_tokens: {token.content!r} is there twice, with different flags; give it once")
    return tuple(tokens.values())


def _letters_of(name: str, given: Iterable[str]) -> tuple[str, ...]:
    if not isinstance(given, Iterable):
        raise ArgumentTypeError(f"{name}: expected characters, got {type(given).__name__}")
    letters = []
    for item in given:
        if not isinstance(item, str) or not item:
            raise ArgumentTypeError(f"{name}: expected characters, got {item!r}")
        letters.append(item[0])  # of a longer string, the first, as the reference does
    return tuple(dict.fromkeys(letters))


def _optional_text(name: str, value: str | None) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{name}: expected a str or None, got {type(value).__name__}")
    return value


def check_sizes(vocab_size: int | None, vocab_sizes: Iterable[int] | None) -> list[int]:
    """The sizes asked for."""
    if vocab_sizes is None:
        return [DEFAULT_SIZE if vocab_size is None else whole_number("vocab_size", vocab_size, 0)]
    if vocab_size is not None:
        raise ArgumentError("vocab_size and vocab_sizes are both given; give one of them")
    if isinstance(vocab_sizes, str | int) or not isinstance(vocab_sizes, Iterable):
        raise ArgumentTypeError(f"vocab_sizes: expected a list of whole numbers, got {vocab_sizes!r}")
    sizes = [whole_number("vocab_sizes", size, 0) for size in vocab_sizes]
    if not sizes:
        raise ArgumentError("vocab_sizes is empty; give the sizes of the vocabularies")
    return sizes


def check_unreachable(value: str) -> None:
    """Raise unless `value` says what to do about sizes that cannot be reached."""
    if value not in ("warn", "stop", "error"):
        raise ArgumentError(f"unreachable={value!r}: expected 'warn', 'stop' or 'error'")


def gather_counts(
    texts: object,
    counts: WordCounts | str | os.PathLike[str] | Sequence[WordCounts | str | os.PathLike[str]] | None,
    normalizer: object,
    pre_tokenizer: object,
    reading: Mapping[str, Any],
) -> tuple[WordCounts, Steps]:
    """Count the words of texts, or merge the counts given; and say by which steps words are made.

    Parameters
    ----------
    texts, counts, normalizer, pre_tokenizer
        As given to :func:`train_bpe`.
    reading
        Further arguments of :func:`~jittok.count_words`.
    """
    if (texts is None) == (counts is None):
        raise ArgumentError("give either texts or counts=, not " + ("both" if counts is not None else "neither"))
    if counts is None:
        return count_words(
            texts, normalizer=normalizer, pre_tokenizer=pre_tokenizer, **reading
        ), read_steps(normalizer, pre_tokenizer)
    items = counts if isinstance(counts, list | tuple) else [counts]
    loaded = []
    for item in items:
        if isinstance(item, str | os.PathLike):
            item = WordCounts.load(item)
        if not isinstance(item, WordCounts):
            raise ArgumentTypeError(f"counts: expected WordCounts or the paths of their files, got {type(item).__name__}")
        loaded.append(item)
    if not loaded:
        raise ArgumentError("counts is empty; give at least one WordCounts")
    merged = loaded[0].merge(*loaded[1:]) if len(loaded) > 1 else loaded[0]
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
    """
    from jittok.training.merge_learning import Letters

    codepoints, totals, seen = _count_letters(counts, byte_level, bool(options.end_of_word_suffix))
    kept = _alphabet(dict(zip(codepoints, totals, strict=True)), options)
    tokens: dict[str, int] = {}
    lengths: list[int] = []

    def add(token: str, length: int) -> int:
        if token not in tokens:
            tokens[token] = len(tokens)
            lengths.append(length)
        return tokens[token]

    for special in options.special_tokens:
        add(special.content, len(special.content))
    for letter in kept:
        add(letter, 1)
    prefix, suffix = options.continuing_subword_prefix, options.end_of_word_suffix
    # In the order of ids. Bits: 1, at the beginning of a word; 2, at its end.
    variants = [(kind, "" if kind & 1 else prefix, suffix if kind & 2 else "") for kind in (1, 0, 3, 2)]
    places = [_BYTES[letter] for letter in codepoints] if byte_level else codepoints
    symbols = np.full((4, max(places, default=0) + 1), -1, np.int32)
    for kind, before, after in variants:
        for letter, place, kinds in zip(codepoints, places, seen, strict=True):
            if kinds >> kind & 1 and chr(letter) in tokens:
                symbols[kind, place] = add(before + chr(letter) + after, 1)
    letters = Letters(counts.data, counts.indptr, counts.counts, byte_level, bool(suffix), symbols)
    return Start(letters, list(tokens), lengths, np.zeros((0, 3), np.int32), len(tokens))


_BYTES = {ord(letter): byte for letter, byte in byte_alphabet().items()}


def _count_letters(
    counts: WordCounts, byte_level: bool, last_differs: bool
) -> tuple[list[int], list[int], list[int]]:
    """Codepoints of the letters, rising; how often each occurs; and in which places of words it does, in bits."""
    from jittok.kernels.train_bpe import count_letters

    size = 256 if byte_level else 0x110000
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


class Checkpoint:
    """Writes down what was learned, from time to time.

    Parameters
    ----------
    path
        The file; None: never.
    settings
        What it is that is learned: JSON values.
    """

    def __init__(self, path: str | os.PathLike[str] | None, settings: Mapping[str, Any]) -> None:
        self._path = None if path is None else Path(path)
        self._settings = settings
        self._last = time.monotonic()

    def write(self, learner: MergeLearner, start: Start, *, now: bool = False) -> None:
        """Write it, if it is time for that or `now`."""
        if self._path is None or not (now or time.monotonic() - self._last > CHECKPOINT_SECONDS):
            return
        words = learner.words()
        metadata = {"settings": self._settings, "tokens": learner.tokens, "n_first": start.n_first}
        arrays = {
            "symbols": words.symbols,
            "indptr": words.indptr,
            "counts": words.counts,
            "lengths": learner.lengths,
            "merges": np.concatenate([start.merges, learner.merges]),
        }
        write_arrays(self._path, CHECKPOINT_KIND, CHECKPOINT_VERSION, metadata, arrays)
        self._last = time.monotonic()


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Start]:
    """Read what :class:`Checkpoint` wrote: its settings, and where to go on."""
    from jittok.training.merge_learning import Words

    metadata, arrays = read_arrays(Path(path), CHECKPOINT_KIND, CHECKPOINT_VERSION)
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
            and all(part.size == 0 or (part.min() >= 0 and part.max() < len(tokens)) for part in (symbols, merges))
        )
        settings = dict(metadata["settings"])
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path}: not as a checkpoint is written ({error}); train from the beginning") from None
    if not valid:
        raise FormatError(f"{path}: the checkpoint contradicts itself; train from the beginning")
    return settings, Start(words, tokens, lengths, merges, n_first)


def learn(
    start: Start, options: BPEOptions, size: int, checkpoint: Checkpoint, progress: bool
) -> tuple[list[str], NDArray[np.int32]]:
    """Learn merges until there are `size` tokens, or no pair is left.

    Parameters
    ----------
    start
        Words, and the tokens that there are.
    options
        What restricts merges.
    size
        Number of tokens.
    checkpoint
        Where to note what was learned.
    progress
        Whether to show it.

    Returns
    -------
    tokens
        All of them.
    merges
        int32[m, 3], those of `start` among them.
    """
    from jittok.training.merge_learning import UNLIMITED, MergeLearner, Rules
    from jittok.training.progress import progress_bar

    rules = Rules(
        options.min_frequency,
        UNLIMITED if options.max_token_length is None else options.max_token_length,
        options.continuing_subword_prefix.encode(),
    )
    learner = MergeLearner(start.words, start.tokens, start.lengths, rules, size)
    with progress_bar(max(size - start.n_first, 0), "merges", "learning merges", progress) as bar:

        def after_slice(n: int) -> None:
            bar.update_to(n - start.n_first)
            checkpoint.write(learner, start)

        try:
            learner.run(after_slice)
        except KeyboardInterrupt:
            checkpoint.write(learner, start, now=True)
            raise
        bar.update_to(learner.size - start.n_first)
    return learner.tokens, np.concatenate([start.merges, learner.merges])


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


def pairs_of(merges: NDArray[np.int32], tokens: Sequence[str]) -> list[tuple[str, str]]:
    """Merges as pairs of strings, each once: of a pair that comes again, the later place counts, as in tokenizers."""
    left, right = merges[:, 0].tolist(), merges[:, 1].tolist()
    pairs = [(tokens[a], tokens[b]) for a, b in zip(left, right, strict=True)]
    if len(np.unique(merges[:, 2])) == len(merges):
        return pairs  # no result twice, so no pair either
    places = {pair: place for place, pair in enumerate(pairs)}
    return sorted(places, key=places.__getitem__)


def report_size(asked: int, reached: int, n_first: int, unreachable: Unreachable) -> None:
    """Say that a vocabulary has not the size that was asked for.

    Parameters
    ----------
    asked, reached
        Numbers of tokens.
    n_first
        Of special tokens and letters.
    unreachable
        What to do: see :func:`train_bpe`.
    """
    if reached == asked:
        return
    if reached > asked:
        message = (
            f"vocab_size={asked:,} is less than the {n_first:,} special tokens and letters; ask for at least {n_first:,}, "
            "or limit the alphabet with limit_alphabet="
        )
        if unreachable != "warn":
            raise ArgumentError(message)
    else:
        what = "there are no words to learn from" if reached == 0 else "no pair is left to merge"
        message = (
            f"vocab_size={asked:,} cannot be reached, because {what}; the largest that can be is {reached:,}. Ask for that, "
            "or give more text; min_frequency= and max_token_length= leave pairs out too"
        )
        if unreachable == "stop":
            return
    if unreachable == "error":
        raise ArgumentError(message)
    warnings.warn(message, TrainingWarning, stacklevel=4)


def report_texts(counts: WordCounts) -> None:
    """Warn of texts that were skipped or altered."""
    if counts.report.skipped or counts.report.replaced:
        warnings.warn(counts.report.summary(), TrainingWarning, stacklevel=4)


# ------------------------------------------------------------------------------------------------ an existing model


class Base(NamedTuple):
    """A vocabulary to go on with."""

    spec: TokenizerSpec
    model: BPEModel
    ids: dict[str, int]  # of all tokens, in order of id


def read_base(base: Tokenizer | str | os.PathLike[str]) -> Base:
    """Take an existing tokenizer apart.

    Parameters
    ----------
    base
        A tokenizer with a :class:`~jittok.spec.BPEModel`, or the path of one.
    """
    from jittok.tokenizer import Tokenizer, load

    if isinstance(base, str | os.PathLike):
        base = load(base)
    if not isinstance(base, Tokenizer):
        raise ArgumentTypeError(f"base: expected a Tokenizer or the path of one, got {type(base).__name__}")
    model = base.spec.model
    if not isinstance(model, BPEModel):
        raise ArgumentError(
            f"base: only a BPE vocabulary with merges can be continued, this is a {type(model).__name__}; convert it to a "
            "tokenizer.json first"
        )
    ids = dict(model.vocab)
    for token in base.spec.added_tokens:
        if ids.setdefault(token.content, token.id) != token.id:
            raise ArgumentError(f"base: the token {token.content!r} has two ids; it cannot be continued")
    if len(set(ids.values())) != len(ids):
        raise ArgumentError("base: two tokens have the same id; it cannot be continued")
    return Base(base.spec, model, dict(sorted(ids.items(), key=lambda item: item[1])))


def start_with_base(counts: WordCounts, byte_level: bool, options: BPEOptions, base: Base) -> Start:
    """Number the tokens of a base and the letters that it lacks, and merge words as the base does.

    Parameters
    ----------
    counts, byte_level, options
        As for :func:`start_with_letters`.
    base
        What to go on with.
    """
    from jittok.tokenizer import Tokenizer
    from jittok.training.merge_learning import Words

    model = base.model
    prefix, suffix = options.continuing_subword_prefix, options.end_of_word_suffix
    known = tuple(AddedToken(0, token) for token in base.ids)
    start = start_with_letters(counts, byte_level, replace(options, special_tokens=(*known, *options.special_tokens)))
    tokens = start.tokens
    added = {token.content for token in (*base.spec.added_tokens, *options.special_tokens)} - model.vocab.keys()
    special = {token for token in added if len(token) > 1}
    words_spec = TokenizerSpec(
        replace(
            model,
            vocab={token: number for number, token in enumerate(tokens) if token not in special},
            unk_token=None,
            byte_fallback=False,
            fuse_unk=False,
        ),
        pre_tokenizers=(ByteLevel(add_prefix_space=False, use_regex=False),) if byte_level else (),
    )
    batch = Tokenizer(words_spec).encode_batch((counts.data, counts.indptr), add_special_tokens=False)
    lengths = [max(len(token.removeprefix(prefix).removesuffix(suffix)), 1) for token in tokens]
    return start._replace(words=Words(batch.ids, batch.indptr, counts.counts), lengths=lengths)


# ------------------------------------------------------------------------------------------------------- the result


def chosen_decoders(
    decoder: object, steps: Steps, prefix: str, suffix: str
) -> tuple[Decoder, ...]:
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


# ------------------------------------------------------------------------------------------------------ the function


def train_bpe(
    texts: object = None,
    *,
    vocab_size: int | None = None,
    rules: Literal["tokenizers", "sentencepiece"] = "tokenizers",
    counts: Any = None,
    base: Tokenizer | str | os.PathLike[str] | None = None,
    vocab_sizes: Iterable[int] | None = None,
    min_frequency: int = 0,
    special_tokens: Iterable[str | AddedToken] = (),
    initial_alphabet: Iterable[str] = (),
    limit_alphabet: int | None = None,
    max_token_length: int | None = None,
    continuing_subword_prefix: str | None = None,
    end_of_word_suffix: str | None = None,
    normalizer: object = None,
    pre_tokenizer: object = None,
    decoder: object = None,
    post_processor: object = None,
    unk_token: str | None = None,
    fuse_unk: bool = False,
    byte_fallback: bool = False,
    threads: int | None = None,
    memory_limit: int | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    unreachable: Unreachable = "warn",
    **options: Any,
) -> Any:
    """Learn a byte-pair vocabulary.

    Parameters
    ----------
    texts
        What to learn from: the path of a file, or any iterable of texts; see :func:`jittok.count_words`.
    vocab_size
        Number of tokens: special tokens, letters and merges. None: 30,000, or as many as can be reached.
    rules
        "tokenizers", or "sentencepiece": then all options are those of SentencePiece's trainer, by its names, and the
        result is saved as .model.
    counts
        Instead of texts: what :func:`jittok.count_words` gave, or its file, or several of either. They say how words
        were made, so that `normalizer` and `pre_tokenizer` need not be given.
    base
        A tokenizer to go on with, or its path: all its ids and merges stay, new ones come after them. Normalizers and
        all else are the base's.
    vocab_sizes
        Instead of `vocab_size`: several, learned in one run. Each gets what its own run would.
    min_frequency
        Least count of a pair that is merged.
    special_tokens
        Strings or :class:`~jittok.AddedToken`; they get the first ids.
    initial_alphabet
        Letters that become tokens even if they are not in the texts; of a byte-level model, in its byte alphabet.
    limit_alphabet
        Most letters to keep; the others vanish from the words.
    max_token_length
        Most letters of a token.
    continuing_subword_prefix, end_of_word_suffix
        What is put before the letters of a word but the first, and behind its last one.
    normalizer, pre_tokenizer
        What makes words of texts: a name, such as "Whitespace" or "NFC", that of a known encoding ("gpt2", "cl100k",
        ...), the object as a tokenizer.json has it, or components of :mod:`jittok.spec`. Without a pre-tokenizer, a whole
        text is a word.
    decoder, post_processor
        As in a tokenizer.json, or components of :mod:`jittok.spec`. The decoder is by default the one that undoes the
        pre-tokenizer.
    unk_token, fuse_unk, byte_fallback
        Of the model, see :class:`jittok.spec.BPEModel`.
    threads
        At most so many threads for counting; the result is the same for any number. None: one for each processor.
    memory_limit
        Bytes that the tables of words may take while they are counted; see :func:`jittok.count_words`.
    progress
        Whether to show a bar.
    checkpoint
        A file that what was learned is written to every minute, and when training is interrupted.
    resume
        A checkpoint to go on from, instead of `texts`, to the same result. All other arguments must be as before.
    unreachable
        What to do if there are fewer pairs than `vocab_size` needs, or more letters than it allows: "error"; "warn",
        and return the largest vocabulary that can be reached, or all letters, as tokenizers does; "stop", return the
        largest without a warning, but raise where it would be larger than asked for.
    **options
        Of the texts: ``field``, ``column``, ``errors`` and ``keep_line_ends`` of :func:`jittok.count_words`. With
        rules="sentencepiece", of the trainer.

    Returns
    -------
    Tokenizer, or dict of int to Tokenizer
        With `vocab_sizes`, by size. The same for every number of threads and order of texts.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument has an impossible value or type, or the size cannot be reached.
    TextError, MissingFileError, FormatError
        The texts, counts or checkpoint cannot be read.

    Examples
    --------
    >>> import jittok
    >>> tok = jittok.train_bpe(["low lower lowest"] * 3, vocab_size=12, pre_tokenizer="Whitespace")
    >>> tok.encode("lowest low").tokens
    ['lowe', 'st', 'low']
    """
    if rules == "sentencepiece":
        return _train_by_sentencepiece_rules(dict(locals()))
    if rules != "tokenizers":
        raise ArgumentError(f"rules={rules!r}: expected 'tokenizers' or 'sentencepiece'")
    reading = reading_arguments(options, threads, memory_limit, progress)
    check_unreachable(unreachable)
    sizes = check_sizes(vocab_size, vocab_sizes)
    known = None if base is None else read_base(base)
    if known is not None:
        if continuing_subword_prefix is None:
            continuing_subword_prefix = known.model.continuing_subword_prefix
        if end_of_word_suffix is None:
            end_of_word_suffix = known.model.end_of_word_suffix
        for name, given, has in (
            ("continuing_subword_prefix", continuing_subword_prefix, known.model.continuing_subword_prefix),
            ("end_of_word_suffix", end_of_word_suffix, known.model.end_of_word_suffix),
        ):
            if (given or "") != (has or ""):
                raise ArgumentError(f"{name}={given!r}, but the base has {has!r}; leave the argument out")
        if normalizer is None:
            normalizer = known.spec.normalizers
        if pre_tokenizer is None:
            pre_tokenizer = known.spec.pre_tokenizers
    chosen = bpe_options(
        min_frequency=min_frequency,
        special_tokens=special_tokens,
        initial_alphabet=initial_alphabet,
        limit_alphabet=limit_alphabet,
        max_token_length=max_token_length,
        continuing_subword_prefix=continuing_subword_prefix,
        end_of_word_suffix=end_of_word_suffix,
    )
    if resume is None:
        counted, steps = gather_counts(texts, counts, normalizer, pre_tokenizer, reading)
        report_texts(counted)
        settings = {"rules": "tokenizers bpe", "steps": steps.settings(), "options": plain_options(chosen)}
        if known is None:
            start = start_with_letters(counted, steps.byte_level, chosen)
        else:
            start = start_with_base(counted, steps.byte_level, chosen, known)
    else:
        steps = read_steps(normalizer, pre_tokenizer)
        settings = {"rules": "tokenizers bpe", "steps": steps.settings(), "options": plain_options(chosen)}
        start = resumed(resume, settings, texts, counts)
    tokens, merges = learn(start, chosen, max(sizes), Checkpoint(checkpoint, settings), progress)
    results = {}
    for size in sizes:
        used = first_merges(merges, start.n_first, size)
        n = max(min(len(tokens), size), start.n_first)
        if vocab_size is not None or vocab_sizes is not None or unreachable == "error":
            report_size(size, n, start.n_first, unreachable)
        pairs = pairs_of(used, tokens)
        if known is None:
            spec = _new_spec(tokens[:n], pairs, chosen, steps, unk_token, fuse_unk, byte_fallback, decoder, post_processor)
        else:
            spec = _continued_spec(tokens[:n], pairs, chosen, steps, known)
        results[size] = _tokenizer(spec)
    return results[sizes[0]] if vocab_sizes is None else results


def _tokenizer(spec: TokenizerSpec) -> Tokenizer:
    from jittok.tokenizer import Tokenizer

    return Tokenizer(spec)


def _new_spec(
    tokens: list[str],
    pairs: list[tuple[str, str]],
    options: BPEOptions,
    steps: Steps,
    unk_token: str | None,
    fuse_unk: bool,
    byte_fallback: bool,
    decoder: object,
    post_processor: object,
) -> TokenizerSpec:
    vocab = {token: number for number, token in enumerate(tokens)}
    if unk_token is not None and unk_token not in vocab:
        raise ArgumentError(f"unk_token={unk_token!r} is not in the vocabulary; add it to special_tokens")
    prefix, suffix = options.continuing_subword_prefix, options.end_of_word_suffix
    model = BPEModel(
        vocab, tuple(pairs), unk_token, fuse_unk, byte_fallback, prefix or None, suffix or None
    )
    return TokenizerSpec(
        model,
        added_tokens=with_ids(options.special_tokens, vocab),
        normalizers=steps.normalizers,
        pre_tokenizers=steps.pre_tokenizers,
        post_processors=chosen_post_processors(post_processor, vocab),
        decoders=chosen_decoders(decoder, steps, prefix, suffix),
    )


def _continued_spec(
    tokens: list[str], pairs: list[tuple[str, str]], options: BPEOptions, steps: Steps, base: Base
) -> TokenizerSpec:
    """The base with what was learned behind it. All its tokens come into the vocabulary, so that they keep their ids."""
    vocab = dict(base.ids)
    following = max(vocab.values(), default=-1) + 1
    vocab.update((token, following + i) for i, token in enumerate(tokens[len(vocab) :]))
    known = set(base.model.merges)
    merges = (*base.model.merges, *(pair for pair in pairs if pair not in known))
    added = {token.content: token for token in base.spec.added_tokens}
    added.update((token.content, token) for token in with_ids(options.special_tokens, vocab))
    return replace(
        base.spec,
        model=replace(base.model, vocab=vocab, merges=merges),
        added_tokens=tuple(sorted(added.values(), key=lambda token: token.id)),
        normalizers=steps.normalizers,
        pre_tokenizers=steps.pre_tokenizers,
        source_format="tokenizer.json",
    )


def resumed(resume: str | os.PathLike[str], settings: Mapping[str, Any], texts: object, counts: object) -> Start:
    """Where a checkpoint goes on, if its settings are these."""
    if texts is not None or counts is not None:
        raise ArgumentError("resume= goes on with the words of the checkpoint; leave texts and counts out")
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
    """Arguments for :func:`jittok.count_words`; raise if there are others among `options`."""
    known = ("field", "column", "errors", "keep_line_ends")
    for name in options:
        if name not in known:
            raise ArgumentTypeError(f"unexpected argument {name}=; expected one of the signature, or {', '.join(known)}")
    return {**options, "threads": threads, "memory_limit": memory_limit, "progress": progress}


def _train_by_sentencepiece_rules(arguments: dict[str, Any]) -> Any:
    from jittok.training.sentencepiece_bpe import train_sentencepiece_bpe

    options = arguments.pop("options")
    arguments.pop("rules")
    defaults = {name: parameter.default for name, parameter in inspect.signature(train_bpe).parameters.items()}
    given = {name: value for name, value in arguments.items() if value is not defaults[name]}
    return train_sentencepiece_bpe(given.pop("texts", None), **given, **options)

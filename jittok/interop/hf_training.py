"""Training through the wrapper of tokenizers: what its trainers make of a wrapper's components and texts.

Trainers are any objects with the attributes and the class name of tokenizers' own, which is not needed: the classes here
have both.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, ArgumentTypeError, MissingFileError, TextError, TrainingWarning, UnsupportedError
from ..formats.tokenizer_json import assign_added_ids
from ..spec import (
    BPEModel,
    ByteLevel,
    Template,
    TemplatePiece,
    TokenizerSpec,
    WordLevelModel,
    WordPieceModel,
)
from ..tokenizer import SpecialPolicy, Tokenizer
from ..training.bpe import train_bpe
from ..training.word_counts import WordCounts, count_words
from ..training.wordpiece import train_wordpiece
from ..vocabulary import byte_alphabet

if TYPE_CHECKING:
    from .huggingface import HfTokenizer


@dataclass
class WordLevelTrainer:
    """Words that occur often enough are the vocabulary, the most frequent ones first.

    Attributes
    ----------
    vocab_size
        Most tokens, special ones among them.
    min_frequency
        Least count of a word.
    show_progress
        Whether to show a bar.
    special_tokens
        Strings or added tokens, which get the first ids.
    """

    vocab_size: int = 30_000
    min_frequency: int = 0
    show_progress: bool = True
    special_tokens: Sequence[Any] = ()


@dataclass
class BpeTrainer(WordLevelTrainer):
    """Byte-pair merges; see :func:`jittok.train_bpe`.

    Attributes
    ----------
    limit_alphabet, initial_alphabet, continuing_subword_prefix, end_of_word_suffix, max_token_length
        As there.
    """

    limit_alphabet: int | None = None
    initial_alphabet: Sequence[str] = ()
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None
    max_token_length: int | None = None


@dataclass
class WordPieceTrainer(BpeTrainer):
    """WordPiece by count; see :func:`jittok.train_wordpiece`."""

    continuing_subword_prefix: str | None = "##"


_TRAINERS: dict[type, type[WordLevelTrainer]] = {
    BPEModel: BpeTrainer,
    WordPieceModel: WordPieceTrainer,
    WordLevelModel: WordLevelTrainer,
}


def lines_of(files: Iterable[str]) -> Iterator[str]:
    """Yield the lines of files, with their ends.

    Parameters
    ----------
    files
        Paths of UTF-8 files.

    Raises
    ------
    MissingFileError, TextError
        A file cannot be read.
    """
    for path in files:
        try:
            with open(path, encoding="utf-8", newline="\n") as stream:
                yield from stream
        except OSError as error:
            raise MissingFileError(f"{os.fsdecode(path)}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise TextError(f"{os.fsdecode(path)}: no UTF-8 at byte {error.start} of a part of it") from None


def texts_of(iterator: Iterable[Any]) -> Iterator[str]:
    """Yield the texts of an iterable of texts or of lists of texts.

    Parameters
    ----------
    iterator
        Strings, or lists and tuples of strings.

    Raises
    ------
    ArgumentTypeError
        Anything else.
    """
    for item in iterator:
        for text in (item,) if isinstance(item, str) else item if isinstance(item, list | tuple) else (None,):
            if not isinstance(text, str):
                raise ArgumentTypeError(f"iterator: expected texts, or lists of texts, got {type(item).__name__}")
            yield text


def train(tokenizer: HfTokenizer, texts: Iterator[str], trainer: Any = None) -> None:
    """Give a wrapper another vocabulary, learned from texts; special tokens of the trainer become added tokens.

    Parameters
    ----------
    tokenizer
        Its added tokens, normalizers and pre-tokenizers make the words.
    texts
        See :func:`texts_of`.
    trainer
        One of tokenizers, or of the classes here; None for that of the model with its defaults.

    Raises
    ------
    ArgumentError
        The trainer is not one for this model, or the post-processor names tokens that the new vocabulary has not.
    UnsupportedError
        The model is Unigram: the rules of tokenizers' trainer are not jittok's.
    """
    spec = tokenizer.tokenizer.spec
    model = spec.model
    if not isinstance(model, BPEModel | WordPieceModel | WordLevelModel):
        raise UnsupportedError(
            f"a vocabulary of {type(model).__name__} is not trained as tokenizers does; use jittok.train_unigram, which "
            "follows SentencePiece, or a model of BPE, WordPiece or WordLevel"
        )
    kind = _TRAINERS[type(model)]
    if trainer is None:
        trainer = kind()
    elif type(trainer).__name__ != kind.__name__:
        name = type(trainer).__name__
        raise ArgumentError(
            f"trainer: a {name} can only train a {name.removesuffix('Trainer')} model; for a {type(model).__name__} a "
            f"{kind.__name__} is needed"
        )
    given: dict[str, Any] = {field.name: getattr(trainer, field.name, field.default) for field in fields(kind)}
    special = given.pop("special_tokens") or ()
    contents = [str(getattr(token, "content", token)) for token in special]
    progress = bool(given.pop("show_progress"))
    steps: dict[str, Any] = {"normalizer": list(spec.normalizers), "pre_tokenizer": list(spec.pre_tokenizers)}
    counts = None
    if spec.added_tokens:
        counts = _words_with_added_tokens(spec, texts, "text" if tokenizer.encode_special_tokens else "parse")
        steps = {}
    learned: BPEModel | WordPieceModel | WordLevelModel
    with warnings.catch_warnings():
        # The reference makes the vocabulary that can be reached without a word.
        warnings.simplefilter("ignore", TrainingWarning)
        if isinstance(model, WordLevelModel):
            learned = _word_level(model, texts, counts, contents, steps, progress, **given)
        else:
            given["initial_alphabet"] = given["initial_alphabet"] or ()
            if isinstance(model, WordPieceModel):
                given["continuing_subword_prefix"] = given["continuing_subword_prefix"] or ""
            learner: Any = train_bpe if isinstance(model, BPEModel) else train_wordpiece
            source: dict[str, Any] = {"texts": texts} if counts is None else {"counts": counts}
            made = learner(**source, special_tokens=contents, progress=progress, **given, **steps).spec.model
            learned = _with_vocabulary(model, made)
    added = assign_added_ids(spec.added, learned.vocab)
    extra = {name: value for name, value in spec.extra.items() if name != "special_tokens"}
    changed = replace(spec, model=learned, added_tokens=added, extra=extra)
    _check_post_processors(changed)
    tokenizer.tokenizer = Tokenizer(changed)
    tokenizer.add_special_tokens(list(special))


def _with_vocabulary(model: BPEModel | WordPieceModel, made: Any) -> BPEModel | WordPieceModel:
    """The model with what was learned; its other options stay."""
    if isinstance(model, WordPieceModel):
        return replace(model, vocab=made.vocab, continuing_subword_prefix=made.continuing_subword_prefix)
    ends = {name: getattr(made, name) for name in ("continuing_subword_prefix", "end_of_word_suffix")}
    return replace(model, vocab=made.vocab, merges=made.merges, **ends)


def _words_with_added_tokens(spec: TokenizerSpec, texts: Iterator[str], special: SpecialPolicy) -> WordCounts:
    """Count the words of texts in which added tokens are looked for first; each that is found is a word too.

    Words are as the model would see them, those of a ByteLevel pre-tokenizer in its alphabet.
    """
    # A model of merges maps bytes to that alphabet itself, one of whole words leaves out white space itself.
    byte_level = bool(spec.pre_tokenizers) and isinstance(spec.pre_tokenizers[-1], ByteLevel)
    model = WordLevelModel({}, "") if byte_level else BPEModel({}, ())
    tok = Tokenizer.deferred(replace(spec, model=model, post_processors=(), decoders=(), extra={}))
    counts: Counter[bytes] = Counter()
    while batch := list(islice(texts, 4096)):
        source, _ = tok._source(batch, "replace", "replace")
        data, indptr = source.make(0, source.n_documents)
        parts = tok._engine.words(data[int(indptr[0]) :], indptr - indptr[0], special=special).parts
        content = parts.data.tobytes()
        counts.update(content[begin:end] for begin, end in zip(parts.start.tolist(), parts.end.tolist(), strict=True))
    del counts[b""]
    return WordCounts.from_mapping(counts)


def _word_level(
    model: WordLevelModel,
    texts: Iterator[str],
    counted: WordCounts | None,
    special: list[str],
    steps: Mapping[str, Any],
    progress: bool,
    vocab_size: int,
    min_frequency: int,
) -> WordLevelModel:
    counts = count_words(texts, progress=progress, **steps) if counted is None else counted
    pre_tokenizers = steps.get("pre_tokenizer")
    if pre_tokenizers and isinstance(pre_tokenizers[-1], ByteLevel):
        letters = list(map(chr, byte_alphabet().tolist()))
        words = [("".join(letters[byte] for byte in word), count) for word, count in counts.items()]
    else:
        words = [(word.decode("utf-8"), count) for word, count in counts.items()]
    words.sort(key=lambda item: (-item[1], item[0]))
    tokens = [*special, *(word for word, count in words if count >= min_frequency)][:vocab_size]
    return replace(model, vocab={token: number for number, token in enumerate(tokens)})


def _check_post_processors(spec: TokenizerSpec) -> None:
    known = {*spec.model.vocab.values(), *spec.added.ids.tolist()}  # type: ignore[union-attr]
    for step in spec.post_processors:
        for piece in (*step.single, *(step.pair or ())) if isinstance(step, Template) else ():
            if not known.issuperset(piece.ids):
                raise ArgumentError(
                    f"the post-processor names {piece.tokens}, with ids that the new vocabulary has not; set post_processor "
                    "to None before training, and to what is wanted afterwards"
                )


def train_new(
    tokenizer: HfTokenizer,
    texts: Iterator[str],
    vocab_size: int,
    new_special_tokens: Sequence[Any] | None = None,
    special_tokens_map: Mapping[str, str] | None = None,
    **options: Any,
) -> HfTokenizer:
    """Return a wrapper with the same components and settings, and a vocabulary learned from texts.

    Parameters
    ----------
    tokenizer
        Stays as it is.
    texts
        See :func:`texts_of`.
    vocab_size
        Tokens wanted.
    new_special_tokens
        Special tokens besides those that there are.
    special_tokens_map
        New names of special tokens.
    **options
        Further attributes of the trainer.

    Raises
    ------
    ArgumentError, ArgumentTypeError, UnsupportedError
        As :func:`train`; or an option is none of the trainer's.
    """
    spec = tokenizer.tokenizer.spec
    names = dict(special_tokens_map or {})
    model: Any = spec.model
    kind = _TRAINERS.get(type(model))
    if kind is None:
        raise UnsupportedError(f"a vocabulary of {type(model).__name__} is not trained as tokenizers does")
    special = [
        replace(token, content=names.get(token.content, token.content)) for token in spec.added_tokens if token.special
    ]
    if isinstance(model, BPEModel):
        for name in ("continuing_subword_prefix", "end_of_word_suffix"):
            if getattr(model, name) is not None:
                options.setdefault(name, getattr(model, name))
        if any(isinstance(step, ByteLevel) for step in spec.pre_tokenizers):
            options["initial_alphabet"] = list(map(chr, byte_alphabet().tolist()))
    unknown = getattr(model, "unk_token", None)
    if unknown in names:
        model = replace(model, unk_token=names[unknown])
    try:
        trainer = kind(vocab_size=vocab_size, special_tokens=[*special, *(new_special_tokens or ())], **options)
    except TypeError as error:
        raise ArgumentTypeError(f"an option that a {kind.__name__} does not have: {error}") from None
    result = type(tokenizer)(Tokenizer.deferred(replace(spec, model=model, added_tokens=(), post_processors=())))
    train(result, texts, trainer)
    made = result.tokenizer.spec
    result.tokenizer = Tokenizer(replace(made, post_processors=_renumbered(spec, names, result)))
    result._truncation, result._padding = tokenizer._truncation, tokenizer._padding
    result._take_settings(tokenizer, names)
    result.extra_special_tokens = [*result.extra_special_tokens, *map(str, new_special_tokens or ())]
    return result


def _renumbered(spec: TokenizerSpec, names: Mapping[str, str], tokenizer: HfTokenizer) -> tuple[Any, ...]:
    """Post-processors with the ids that their tokens have in another vocabulary."""

    def piece(given: TemplatePiece) -> TemplatePiece:
        tokens = tuple(names.get(token, token) for token in given.tokens)
        ids = [tokenizer.token_to_id(token) for token in tokens]
        if any(number is None for number in ids):
            raise ArgumentError(
                f"the post-processor needs the tokens {tokens}, which are not all in the new vocabulary; name them in "
                "new_special_tokens="
            )
        return replace(given, tokens=tokens, ids=tuple(number for number in ids if number is not None))

    return tuple(
        replace(
            step,
            single=tuple(map(piece, step.single)),
            pair=None if step.pair is None else tuple(map(piece, step.pair)),
        )
        if isinstance(step, Template)
        else step
        for step in spec.post_processors
    )

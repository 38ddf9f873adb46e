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

import hashlib
import inspect
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from jittok.build.merge_tables import byte_alphabet
from jittok.engine import thread_count
from jittok.errors import ArgumentError, ArgumentTypeError
from jittok.spec import AddedToken, BPEModel, ByteLevel, RankModel, TokenizerSpec
from jittok.token_columns import ColumnMerges
from jittok.training.progress import check_checkpoint, check_unreachable
from jittok.training.steps import Steps, read_steps
from jittok.training.vocabulary_learning import (
    BPEOptions,
    Checkpoints,
    Start,
    Unreachable,
    bpe_options,
    check_room,
    check_sizes,
    chosen_decoders,
    chosen_post_processors,
    first_merges,
    gather_counts,
    learn,
    merges_of,
    plain_options,
    reading_arguments,
    report_size,
    resumed,
    start_with_letters,
    with_ids,
)
from jittok.training.word_counts import WordCounts

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer


# ------------------------------------------------------------------------------------------------ an existing model


class Base(NamedTuple):
    """A vocabulary to go on with."""

    spec: TokenizerSpec
    model: BPEModel  # of byte ranks: their tokens in the byte alphabet, without merges
    ids: dict[str, int]  # of all tokens, in order of id
    has_ranks: bool


def read_base(base: Tokenizer | str | os.PathLike[str]) -> Base:
    """Take an existing tokenizer apart.

    Parameters
    ----------
    base
        A tokenizer with a :class:`~jittok.spec.BPEModel` or a :class:`~jittok.spec.RankModel`, or the path of one.
    """
    from jittok.tokenizer import Tokenizer, load

    if isinstance(base, str | os.PathLike):
        base = load(base)
    if not isinstance(base, Tokenizer):
        raise ArgumentTypeError(f"base: expected a Tokenizer or the path of one, got {type(base).__name__}")
    model = base.spec.model
    has_ranks = isinstance(model, RankModel)
    if isinstance(model, RankModel):
        letters = {byte: letter for letter, byte in byte_alphabet().items()}
        vocab = {"".join(map(letters.__getitem__, token)): rank for token, rank in model.ranks.items()}
        model = BPEModel(vocab, ())
    if not isinstance(model, BPEModel):
        raise ArgumentError(
            f"base: only a BPE vocabulary with merges or byte ranks can be continued, this is a {type(model).__name__}; "
            "convert it to a tokenizer.json first"
        )
    ids = dict(model.vocab)
    for token in base.spec.added_tokens:
        if ids.setdefault(token.content, token.id) != token.id:
            raise ArgumentError(f"base: the token {token.content!r} has two ids; it cannot be continued")
    if len(set(ids.values())) != len(ids):
        raise ArgumentError("base: two tokens have the same id; it cannot be continued")
    return Base(base.spec, model, dict(sorted(ids.items(), key=lambda item: item[1])), has_ranks)


def _digest(base: Base | None) -> str | None:
    """What tells a base from others, for checkpoints: its merges are not in them."""
    if base is None:
        return None
    content = json.dumps([base.ids, list(base.model.merges)]).encode("utf-8", "surrogatepass")
    return f"{len(base.ids)} tokens, BLAKE2b {hashlib.blake2b(content, digest_size=16).hexdigest()}"


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
    vocab = {token: number for number, token in enumerate(tokens) if token not in special}
    if base.has_ranks:
        words_spec = TokenizerSpec(RankModel(_as_bytes(vocab)), reference="tiktoken")
    else:
        words_spec = TokenizerSpec(
            replace(model, vocab=vocab, unk_token=None, byte_fallback=False, fuse_unk=False),
            pre_tokenizers=(ByteLevel(add_prefix_space=False, use_regex=False),) if byte_level else (),
        )
    batch = Tokenizer(words_spec).encode_batch((counts.data, counts.indptr), add_special_tokens=False)
    lengths = [max(len(token.removeprefix(prefix).removesuffix(suffix)), 1) for token in tokens]
    return start._replace(words=Words(batch.ids, batch.indptr, counts.counts), lengths=lengths)


def _as_bytes(vocab: Mapping[str, int]) -> dict[bytes, int]:
    """Tokens in the byte alphabet as the bytes that they stand for."""
    alphabet = byte_alphabet()
    return {bytes(map(alphabet.__getitem__, token)): number for token, number in vocab.items()}


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
    unreachable: Unreachable | None = None,
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
        all else are the base's. One of byte ranks (.tiktoken, tekken.json) is continued with further ranks; pass a file
        that is no known encoding as :func:`jittok.load` gives it, which needs its pattern.
    vocab_sizes
        Instead of `vocab_size`: several, learned in one run. Each gets what its own run would.
    min_frequency
        Least count of a pair that is merged.
    special_tokens
        Strings or :class:`~jittok.AddedToken`; they get the first ids.
    initial_alphabet
        Letters that become tokens even if they are not in the texts; of a byte-level model, in its byte alphabet.
        "byte-level": all 256 of that, without which bytes that are not in the texts are lost when encoding.
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
        What to do if there are fewer pairs than `vocab_size` needs, more letters and special tokens than it allows, or no
        words: "error"; "warn", and return the largest vocabulary that can be reached, or all letters, as tokenizers does;
        "stop", return the largest without a warning, but raise where it would be larger than asked for, or of no words.
        None: "warn", and with rules="sentencepiece" what ``hard_vocab_limit`` says.
    **options
        Of the texts: ``field``, ``column``, ``errors`` and ``keep_line_ends`` of :func:`jittok.count_words`. With
        rules="sentencepiece", of the trainer.

    Returns
    -------
    Tokenizer, or dict of int to Tokenizer
        With `vocab_sizes`, by size, the smallest first. The same for every number of threads and order of texts.

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
    if unk_token is not None and not isinstance(unk_token, str):
        raise ArgumentTypeError(f"unk_token: expected a str or None, got {type(unk_token).__name__}")
    for name, flag in (("fuse_unk", fuse_unk), ("byte_fallback", byte_fallback)):
        if not isinstance(flag, bool):
            raise ArgumentTypeError(f"{name}: expected True or False, got {flag!r}")
    check_checkpoint(checkpoint)
    sizes = check_sizes(vocab_size, vocab_sizes)
    known = None if base is None else read_base(base)
    if known is not None:
        ours = {"unk_token": unk_token, "decoder": decoder, "post_processor": post_processor}
        for name, value in {**ours, "fuse_unk": fuse_unk or None, "byte_fallback": byte_fallback or None}.items():
            if value is not None:
                raise ArgumentError(f"{name}: the base has its own; leave the argument out")
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
            if known.has_ranks:  # their letters are bytes
                pre_tokenizer = (*pre_tokenizer, ByteLevel(add_prefix_space=False, use_regex=False))
    chosen = bpe_options(
        min_frequency=min_frequency,
        special_tokens=special_tokens,
        initial_alphabet=initial_alphabet,
        limit_alphabet=limit_alphabet,
        max_token_length=max_token_length,
        continuing_subword_prefix=continuing_subword_prefix,
        end_of_word_suffix=end_of_word_suffix,
    )
    what = {"rules": "tokenizers bpe", "options": plain_options(chosen), "base": _digest(known)}
    if resume is None:
        counted, steps = gather_counts(texts, counts, normalizer, pre_tokenizer, reading, unreachable)
        settings = {**what, "steps": steps.settings()}
        if known is None:
            start = start_with_letters(counted, steps.byte_level, chosen)
        else:
            start = start_with_base(counted, steps.byte_level, chosen, known)
    else:
        steps = read_steps(normalizer, pre_tokenizer)
        settings = {**what, "steps": steps.settings()}
        start = resumed(resume, settings, texts, counts)
    asked = vocab_size is not None or vocab_sizes is not None
    if asked:
        check_room(sizes, start.n_first, unreachable, known is not None)
    if unk_token is not None and unk_token not in start.tokens:
        raise ArgumentError(f"unk_token={unk_token!r} is not in the vocabulary; add it to special_tokens")
    learned = learn(
        start, chosen, max(sizes), Checkpoints(checkpoint, settings), progress, threads=thread_count(threads)
    )
    n_tokens = len(learned.columns.indptr) - 1
    first = {token: number for number, token in enumerate(start.tokens)}  # special tokens are among them
    results = {}
    for size in sizes:
        used = first_merges(learned.merges, start.n_first, size)
        n = max(min(n_tokens, size), start.n_first)
        if asked or unreachable == "error":
            report_size(size, n, unreachable)
        vocab = learned.vocabulary(n)
        merges = merges_of(vocab, used)
        if known is None:
            special = with_ids(chosen.special_tokens, first)
            spec = _new_spec(merges, special, chosen, steps, unk_token, fuse_unk, byte_fallback, decoder, post_processor)
        else:
            spec = _continued_spec(merges, chosen, steps, known)
        results[size] = _tokenizer(spec)
    return results[sizes[0]] if vocab_sizes is None else results


def _tokenizer(spec: TokenizerSpec) -> Tokenizer:
    from jittok.tokenizer import Tokenizer

    return Tokenizer.deferred(spec)


def _new_spec(
    merges: ColumnMerges,
    special: tuple[AddedToken, ...],
    options: BPEOptions,
    steps: Steps,
    unk_token: str | None,
    fuse_unk: bool,
    byte_fallback: bool,
    decoder: object,
    post_processor: object,
) -> TokenizerSpec:
    vocab, prefix, suffix = merges.vocab, options.continuing_subword_prefix, options.end_of_word_suffix
    model = BPEModel(vocab, merges, unk_token, fuse_unk, byte_fallback, prefix or None, suffix or None)
    return TokenizerSpec(
        model,
        added_tokens=special,
        normalizers=steps.normalizers,
        pre_tokenizers=steps.pre_tokenizers,
        post_processors=chosen_post_processors(post_processor, vocab),
        decoders=chosen_decoders(decoder, steps, prefix, suffix),
    )


def _continued_spec(merges: ColumnMerges, options: BPEOptions, steps: Steps, base: Base) -> TokenizerSpec:
    """The base with what was learned behind it. All its tokens come into the vocabulary, so that they keep their ids."""
    vocab = dict(base.ids)
    following = max(vocab.values(), default=-1) + 1
    vocab.update((token, following + i) for i, token in enumerate(list(merges.vocab)[len(vocab) :]))
    if base.has_ranks:
        special = base.ids.keys() - base.model.vocab.keys() | {token.content for token in options.special_tokens}
        ranks = _as_bytes({token: number for token, number in vocab.items() if token not in special})
        model: BPEModel | RankModel = RankModel(ranks)
    else:
        known = set(base.model.merges)
        all_merges = (*base.model.merges, *(pair for pair in merges if pair not in known))
        model = replace(base.model, vocab=vocab, merges=all_merges)
    added = {token.content: token for token in base.spec.added_tokens}
    added.update((token.content, token) for token in with_ids(options.special_tokens, vocab))
    result = replace(
        base.spec,
        model=model,
        added_tokens=tuple(sorted(added.values(), key=lambda token: token.id)),
        normalizers=steps.normalizers,
        pre_tokenizers=steps.pre_tokenizers,
        source_format="tokenizer.json",
    )
    if not base.has_ranks:
        return result
    # It is none of the known encodings any more.
    extra = {name: value for name, value in base.spec.extra.items() if name != "encoding"}
    return replace(
        result, pre_tokenizers=steps.pre_tokenizers[:-1], source_format=base.spec.source_format, extra=extra
    )


def _train_by_sentencepiece_rules(arguments: dict[str, Any]) -> Any:
    from jittok.training.sentencepiece_bpe import train_sentencepiece_bpe

    options = arguments.pop("options")
    arguments.pop("rules")
    defaults = {name: parameter.default for name, parameter in inspect.signature(train_bpe).parameters.items()}
    given = {name: value for name, value in arguments.items() if value is not defaults[name]}
    return train_sentencepiece_bpe(given.pop("texts", None), **given, **options)

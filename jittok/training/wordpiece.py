"""WordPiece vocabularies, learned from a corpus: :func:`train_wordpiece`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal

from jittok.encodings import whole_number
from jittok.engine import thread_count
from jittok.errors import ArgumentError, ArgumentTypeError
from jittok.spec import AddedToken, DecodeWordPiece, TokenizerSpec, WordPieceModel
from jittok.training.progress import check_checkpoint, check_unreachable
from jittok.training.steps import read_steps
from jittok.training.vocabulary_learning import (
    Checkpoints,
    Unreachable,
    bpe_options,
    check_room,
    check_sizes,
    chosen_decoders,
    chosen_post_processors,
    gather_counts,
    learn,
    plain_options,
    reading_arguments,
    report_size,
    resumed,
    start_with_letters,
    with_ids,
)


def train_wordpiece(
    texts: object = None,
    *,
    vocab_size: int | None = None,
    counts: Any = None,
    vocab_sizes: Iterable[int] | None = None,
    score: Literal["count", "likelihood"] = "count",
    min_frequency: int = 0,
    special_tokens: Iterable[str | AddedToken] = (),
    initial_alphabet: Iterable[str] = (),
    limit_alphabet: int | None = None,
    max_token_length: int | None = None,
    continuing_subword_prefix: str = "##",
    end_of_word_suffix: str | None = None,
    unk_token: str = "[UNK]",
    max_input_chars_per_word: int = 100,
    normalizer: object = None,
    pre_tokenizer: object = None,
    decoder: object = None,
    post_processor: object = None,
    threads: int | None = None,
    memory_limit: int | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    unreachable: Unreachable | None = None,
    **options: Any,
) -> Any:
    """Learn a WordPiece vocabulary.

    By count, the tokens are those of the byte-pair merges that :func:`jittok.train_bpe` would learn with the prefix, as
    tokenizers' trainer has it; the letters that continue words are numbered by codepoint, where there it is by chance.

    Parameters
    ----------
    texts
        What to learn from: the path of a file, or any iterable of texts; see :func:`jittok.count_words`.
    vocab_size
        Number of tokens: special tokens, letters and merges. None: 30,000, or as many as can be reached.
    counts
        Instead of texts: what :func:`jittok.count_words` gave, or its file, or several of either.
    vocab_sizes
        Instead of `vocab_size`: several, learned in one run. Each gets what its own run would.
    score
        Which pair is merged next. "count": the one that occurs most often. "likelihood": the one of the greatest
        count(ab) / (count(a) count(b)), in float64, which is what makes the text most likely; of equal ones the one of the
        least ids. As this is 1 for letters that are only found together, once, give a `min_frequency` with it.
    min_frequency
        Least count of a pair that is merged.
    special_tokens
        Strings or :class:`~jittok.AddedToken`; they get the first ids. For BERT: "[PAD]", "[UNK]", "[CLS]", "[SEP]" and
        "[MASK]".
    initial_alphabet
        Letters that become tokens even if they are not in the texts.
    limit_alphabet
        Most letters to keep; the others vanish from the words.
    max_token_length
        Most letters of a token.
    continuing_subword_prefix, end_of_word_suffix
        What is put before the letters of a word but the first, and behind its last one.
    unk_token, max_input_chars_per_word
        Of the model, see :class:`jittok.spec.WordPieceModel`.
    normalizer, pre_tokenizer
        What makes words of texts, such as "BertNormalizer" and "BertPreTokenizer"; see :func:`jittok.train_bpe`.
    decoder, post_processor
        As in a tokenizer.json, or components of :mod:`jittok.spec`. The decoder is by default WordPiece's.
    threads, memory_limit, progress, checkpoint, resume, unreachable, **options
        As for :func:`jittok.train_bpe`.

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
    >>> tok = jittok.train_wordpiece(["low lower lowest"] * 3, vocab_size=18, pre_tokenizer="Whitespace")
    >>> tok.encode("lowest low").tokens
    ['lowe', '##st', 'low']
    """
    if score not in ("count", "likelihood"):
        raise ArgumentError(f"score={score!r}: expected 'count' or 'likelihood'")
    if not isinstance(unk_token, str):
        raise ArgumentTypeError(f"unk_token: expected a str, got {type(unk_token).__name__}")
    most_letters = whole_number("max_input_chars_per_word", max_input_chars_per_word, 0)
    reading = reading_arguments(options, threads, memory_limit, progress)
    check_unreachable(unreachable)
    check_checkpoint(checkpoint)
    sizes = check_sizes(vocab_size, vocab_sizes)
    chosen = bpe_options(
        min_frequency=min_frequency,
        special_tokens=special_tokens,
        initial_alphabet=initial_alphabet,
        limit_alphabet=limit_alphabet,
        max_token_length=max_token_length,
        continuing_subword_prefix=continuing_subword_prefix,
        end_of_word_suffix=end_of_word_suffix,
    )
    what = {"rules": f"wordpiece by {score}", "options": plain_options(chosen)}
    if resume is None:
        counted, steps = gather_counts(texts, counts, normalizer, pre_tokenizer, reading, unreachable)
        settings = {**what, "steps": steps.settings()}
        start = start_with_letters(counted, steps.byte_level, chosen)
    else:
        steps = read_steps(normalizer, pre_tokenizer)
        settings = {**what, "steps": steps.settings()}
        start = resumed(resume, settings, texts, counts)
    checkpoints = Checkpoints(checkpoint, settings)
    by_likelihood, n_threads = score == "likelihood", thread_count(threads)
    asked = vocab_size is not None or vocab_sizes is not None
    if asked:
        check_room(sizes, start.n_first, unreachable)
    learned = learn(start, chosen, max(sizes), checkpoints, progress, threads=n_threads, by_likelihood=by_likelihood)
    n_tokens = len(learned.columns.indptr) - 1
    first = {token: number for number, token in enumerate(start.tokens)}  # special tokens are among them
    results = {}
    for size in sizes:
        n = max(min(n_tokens, size), start.n_first)
        if asked or unreachable == "error":
            report_size(size, n, unreachable)
        vocab = learned.vocabulary(n)
        prefix, suffix = chosen.continuing_subword_prefix, chosen.end_of_word_suffix
        if decoder is None:
            decoders: Any = (DecodeWordPiece(prefix),)
        else:
            decoders = chosen_decoders(decoder, steps, prefix, suffix)
        spec = TokenizerSpec(
            WordPieceModel(vocab, unk_token, prefix, most_letters),
            added_tokens=with_ids(chosen.special_tokens, first),
            normalizers=steps.normalizers,
            pre_tokenizers=steps.pre_tokenizers,
            post_processors=chosen_post_processors(post_processor, vocab),
            decoders=decoders,
        )
        from jittok.tokenizer import Tokenizer

        results[size] = Tokenizer.deferred(spec)
    return results[sizes[0]] if vocab_sizes is None else results

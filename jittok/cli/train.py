"""``jittok train``: learn a vocabulary from files."""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

from jittok.cli.arguments import number_with_unit, whole_number, whole_numbers
from jittok.errors import ArgumentError, JittokWarning, OutputError


def add(commands: Any) -> None:
    """Define the command's arguments."""
    parser = commands.add_parser(
        "train",
        help="learn a vocabulary from files",
        description=(
            "Learn a vocabulary from text files in UTF-8, a line a text; from a field of .jsonl files or a column of"
            " .parquet files; compressed or not (.gz, .bz2, .xz, .zst); or from files of word counts."
        ),
    )
    models = parser.add_subparsers(title="models", required=True, metavar="MODEL")
    _add_bpe(models)
    _add_unigram(models)
    _add_wordpiece(models)


def _add_unigram(models: Any) -> None:
    parser = models.add_parser(
        "unigram",
        help="unigram model",
        description="Learn a unigram model as SentencePiece does; the reference's other options go by --option.",
    )
    add_common(parser)
    parser.add_argument(
        "--reference-threads",
        type=whole_number(1),
        default=16,
        metavar="N",
        help="the reference's num_threads, which its sums depend on (default: 16)",
    )
    parser.add_argument(
        "--e-step",
        choices=("exact", "linear"),
        default="exact",
        help="sum as the reference does, or about twice as fast with other rounding (default: exact)",
    )
    _add_checkpoints(parser)
    parser.set_defaults(run=run_unigram)


def _add_bpe(models: Any) -> None:
    parser = models.add_parser(
        "bpe", help="byte-pair encoding", description="Learn byte-pair merges, by tokenizers' rules or SentencePiece's."
    )
    add_common(parser)
    _add_merge_options(parser)
    parser.add_argument(
        "--rules",
        choices=("tokenizers", "sentencepiece"),
        default="tokenizers",
        help="whose rules (default: tokenizers); with sentencepiece, options go by --option",
    )
    parser.add_argument("--prefix", metavar="P", help="put before the letters of a word but the first")
    parser.add_argument("--base", metavar="X", help="tokenizer to go on with: all its ids and merges stay")
    parser.set_defaults(run=run_bpe)


def _add_wordpiece(models: Any) -> None:
    parser = models.add_parser("wordpiece", help="WordPiece", description="Learn a WordPiece vocabulary.")
    add_common(parser)
    _add_merge_options(parser)
    parser.add_argument(
        "--prefix", metavar="P", default="##", help="put before the letters of a word but the first (default: ##)"
    )
    parser.add_argument(
        "--score",
        choices=("count", "likelihood"),
        default="count",
        help="merge the pair that occurs most often, or makes the text most likely (default: count)",
    )
    parser.set_defaults(run=run_wordpiece)


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add what all models take.

    Parameters
    ----------
    parser
        Of the model.
    """
    parser.add_argument("files", nargs="*", metavar="FILE", help="texts; with --counts, files of word counts")
    parser.add_argument("--vocab-size", type=whole_number(1), metavar="N", help="number of tokens")
    parser.add_argument("--out", required=True, type=Path, metavar="X", help="file to write; its suffix decides the format")
    parser.add_argument("--format", metavar="F", help="format to write, whatever the suffix of --out")
    parser.add_argument("--threads", type=whole_number(1), metavar="N", help="threads (default: one for each core)")
    parser.add_argument(
        "--memory-limit", type=number_with_unit, metavar="SIZE", help="memory for counting words, such as 500M or 4G"
    )
    parser.add_argument("--field", default="text", metavar="NAME", help="field of .jsonl files (default: text)")
    parser.add_argument("--column", default="text", metavar="NAME", help="column of .parquet files (default: text)")
    parser.add_argument(
        "--errors",
        choices=("replace", "skip", "strict"),
        default="replace",
        help="what to do with texts that are not UTF-8 (default: replace)",
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other argument of the function, VALUE as JSON or plain text; may be repeated",
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress")


def _add_merge_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--counts", action="store_true", help="the files are word counts that jittok.count_words made")
    parser.add_argument(
        "--vocab-sizes",
        type=whole_numbers,
        metavar="N,N,...",
        help="several sizes from one run; {size} in --out is replaced by each",
    )
    parser.add_argument(
        "--pre-tokenizer",
        metavar="P",
        help='what cuts texts into words: a name ("gpt2", "cl100k", "Whitespace", ...), an object of a tokenizer.json, or '
        "none, where a line is a word (default: gpt2; BertPreTokenizer for wordpiece; that of the counts or the base)",
    )
    parser.add_argument(
        "--normalizer",
        metavar="P",
        help="what is done to texts before: a name (NFC, ...), an object, or none (default: none; BertNormalizer for "
        "wordpiece; that of the counts or the base)",
    )
    parser.add_argument(
        "--min-frequency", type=whole_number(0), default=0, metavar="N", help="least count of a pair that is merged"
    )
    parser.add_argument("--special-token", action="append", default=[], metavar="T", help="special token; may be repeated")
    parser.add_argument("--limit-alphabet", type=whole_number(0), metavar="N", help="most letters to keep")
    parser.add_argument("--max-token-length", type=whole_number(1), metavar="N", help="most letters of a token")
    parser.add_argument("--suffix", metavar="S", help="put behind the last letter of a word")
    _add_checkpoints(parser)


def _add_checkpoints(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--checkpoint", metavar="FILE", help="write down what was learned, every minute and when interrupted"
    )
    parser.add_argument("--resume", metavar="FILE", help="go on from a checkpoint, instead of files")
    parser.add_argument(
        "--unreachable",
        choices=("warn", "stop", "error"),
        help="what to do if the texts have too few pairs or pieces (default: warn; an error for SentencePiece models)",
    )


def run_bpe(options: argparse.Namespace) -> int:
    """Learn byte-pair merges."""
    import jittok
    from jittok.tokenizer import format_of

    if options.rules == "sentencepiece":
        _check_output(options, "sentencepiece", "jittok")
        return _write(options, _trained(jittok.train_bpe, **_sentencepiece_arguments(options)))
    _check_output(options, "tokenizer.json", "tiktoken", "jittok")
    arguments = _merge_arguments(options, None, "gpt2")
    if options.base is not None:
        arguments["base"] = options.base
    elif format_of(options.out, options.format) == "tiktoken" and not _is_byte_level(arguments):
        raise ArgumentError("only byte-level merges can be written as ranks; give --pre-tokenizer gpt2, or another format")
    elif _is_byte_level(arguments):
        arguments.setdefault("initial_alphabet", "byte-level")  # so that any text has tokens
    arguments["continuing_subword_prefix"] = options.prefix
    return _write(options, _trained(jittok.train_bpe, **arguments))


def _is_byte_level(arguments: dict[str, Any]) -> bool:
    """Whether a model sees bytes; counts say it themselves."""
    from jittok.training.steps import read_steps
    from jittok.training.word_counts import WordCounts

    if "counts" in arguments:
        return bool(WordCounts.load(arguments["counts"][0]).settings.get("byte_level", False))
    return read_steps(None, arguments["pre_tokenizer"]).byte_level


#: What says something to tokenizers' rules only: its name, and the value when it is not given.
_ONLY_TOKENIZERS: dict[str, Any] = {
    "pre_tokenizer": None,
    "normalizer": None,
    "min_frequency": 0,
    "special_token": [],
    "limit_alphabet": None,
    "max_token_length": None,
    "suffix": None,
    "prefix": None,
    "base": None,
}


def _sentencepiece_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments for SentencePiece's rules; raise for what would say nothing there."""
    for name, default in _ONLY_TOKENIZERS.items():
        if getattr(options, name) != default:
            flag = "--" + name.replace("_", "-")
            raise ArgumentError(f"{flag} is for tokenizers' rules; give options of SentencePiece's trainer by --option")
    arguments = {
        "rules": "sentencepiece",
        "vocab_size": options.vocab_size,
        "vocab_sizes": options.vocab_sizes,
        "memory_limit": options.memory_limit,
        **_running(options),
    }
    return {**{name: value for name, value in arguments.items() if value is not None}, **other_options(options)}


def run_unigram(options: argparse.Namespace) -> int:
    """Learn a unigram model."""
    import jittok

    _check_output(options, "sentencepiece", "tokenizer.json", "jittok")
    arguments = {
        "vocab_size": options.vocab_size,
        "memory_limit": options.memory_limit,
        "reference_threads": options.reference_threads,
        "e_step": options.e_step,
        **_running(options),
    }
    arguments = {name: value for name, value in arguments.items() if value is not None}
    return _write(options, _trained(jittok.train_unigram, **{**arguments, **other_options(options)}))


def run_wordpiece(options: argparse.Namespace) -> int:
    """Learn a WordPiece vocabulary."""
    import jittok

    _check_output(options, "vocab.txt", "tokenizer.json", "jittok")
    unknown = other_options(options).get("unk_token", "[UNK]")
    if unknown not in options.special_token:
        options.special_token.append(unknown)  # without it no text with another letter could be encoded
    steps = _merge_arguments(options, "BertNormalizer", "BertPreTokenizer")
    arguments = {**steps, "score": options.score, "continuing_subword_prefix": options.prefix}
    return _write(options, _trained(jittok.train_wordpiece, **arguments))


def other_options(options: argparse.Namespace) -> dict[str, Any]:
    """What was given by ``--option``.

    Parameters
    ----------
    options
        The command's arguments.
    """
    result: dict[str, Any] = {}
    for item in options.option:
        name, equals, value = item.partition("=")
        if not equals or not name.isidentifier():
            raise ArgumentError(f"--option {item!r}: expected NAME=VALUE")
        result[name] = _json_or_text(value)
    return result


def _json_or_text(value: str) -> Any:
    value = {"True": "true", "False": "false", "None": "null"}.get(value, value)  # as Python writes them
    try:
        return json.loads(value)
    except ValueError:
        return value


def _component(value: str | None, default: str | None) -> Any:
    """A normalizer or pre-tokenizer: a name, or an object."""
    if value is None:
        return default
    if value == "none":
        return None
    if not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise ArgumentError(f"not JSON: {value!r}: {error}") from None


def _files(options: argparse.Namespace) -> list[Path]:
    if not options.files:
        raise ArgumentError("no files are given; name at least one")
    return [Path(name) for name in options.files]


def _shows_progress(options: argparse.Namespace) -> bool:
    return not options.quiet and sys.stderr.isatty()


def _merge_arguments(
    options: argparse.Namespace, normalizer: str | None, pre_tokenizer: str | None
) -> dict[str, Any]:
    """Arguments of both functions that learn merges; with what makes words of texts where nothing else says it."""
    is_own = not options.counts and getattr(options, "base", None) is None
    arguments: dict[str, Any] = {
        "vocab_size": options.vocab_size,
        "vocab_sizes": options.vocab_sizes,
        "normalizer": _component(options.normalizer, normalizer if is_own else None),
        "pre_tokenizer": _component(options.pre_tokenizer, pre_tokenizer if is_own else None),
        "min_frequency": options.min_frequency,
        "special_tokens": options.special_token,
        "limit_alphabet": options.limit_alphabet,
        "max_token_length": options.max_token_length,
        "end_of_word_suffix": options.suffix,
        "memory_limit": options.memory_limit,
        **_running(options),
    }
    return {**arguments, **other_options(options)}


def _running(options: argparse.Namespace) -> dict[str, Any]:
    """What to learn from, and how to go about it: the arguments that all functions have."""
    return {
        "threads": options.threads,
        "progress": _shows_progress(options),
        "checkpoint": options.checkpoint,
        "resume": options.resume,
        "unreachable": options.unreachable,
        "field": options.field,
        "column": options.column,
        "errors": options.errors,
        **_sources(options),
    }


def _sources(options: argparse.Namespace) -> dict[str, Any]:
    """What to learn from; nothing where a checkpoint has it."""
    if options.resume is None:
        return {"counts" if getattr(options, "counts", False) else "texts": _files(options)}
    if options.files:
        raise ArgumentError("--resume goes on with the words of the checkpoint; name no files")
    return {}


def _trained(train: Any, **arguments: Any) -> Any:
    """Call a function, and print its warnings as plain lines."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", JittokWarning)
        result = train(**arguments)
    for warning in caught:
        print(f"jittok: warning: {warning.message}", file=sys.stderr)
    return result


def _check_output(options: argparse.Namespace, *formats: str) -> None:
    """Raise where the result could not be written, before it is learned."""
    from jittok.tokenizer import format_of

    if getattr(options, "vocab_sizes", None) is not None and "{size}" not in str(options.out):
        raise ArgumentError("--vocab-sizes needs {size} in --out, which each size is put in for")
    chosen = format_of(options.out, options.format)
    if chosen not in formats:
        raise ArgumentError(f"--out {options.out}: such a vocabulary cannot be written as {chosen}; expected one of "
                            f"{', '.join(formats)}")  # fmt: skip
    if not options.out.parent.is_dir():
        raise OutputError(f"--out {options.out}: there is no folder {options.out.parent}; make it first")
    if options.out.is_dir() and chosen != "vocab.txt":
        raise OutputError(f"--out {options.out} is a folder; give the name of a file")
    if not os.access(options.out if options.out.exists() else options.out.parent, os.W_OK):
        raise OutputError(f"--out {options.out} cannot be written: no permission; choose another place")


def _write(options: argparse.Namespace, trained: Any) -> int:
    results = trained if isinstance(trained, dict) else {None: trained}
    for size, tokenizer in results.items():
        path = str(options.out).replace("{size}", str(size)) if size is not None else str(options.out)
        _trained(tokenizer.save, path=path, format=options.format)
        print(f"{path}: {tokenizer.vocab_size:,} tokens")
    return 0

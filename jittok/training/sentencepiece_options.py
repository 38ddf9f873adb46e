"""The options of SentencePiece's trainers, checked once, and the model that a trainer of these options writes.

Names, defaults and meanings are those of sentencepiece 0.2.3, so that a command line of ``spm_train`` carries over.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import Any, Literal, get_type_hints

from jittok.errors import ArgumentError, ArgumentTypeError, FormatError, MissingFileError
from jittok.formats import sentencepiece_model
from jittok.spec import PieceType, SentencePieceModel, SentencePieceNormalizer, TokenizerSpec

#: U+2581 stands for a blank, U+2585 for every character outside of the alphabet, U+001F for a place where no piece
#: may reach across.
BLANK, OUTSIDE, BOUNDARY = "\u2581", "\u2585", "\x1f"

#: What the reference sets on its command line and jittok takes as arguments of its own, or not at all.
_ELSEWHERE = {
    "input": "pass the texts, or paths, as `texts`",
    "model_type": "call train_bpe or train_unigram",
    "model_prefix": "save the result with `.save(path)`",
    "sentence_iterator": "pass it as `texts`",
    "model_writer": "save the result with `.save(path)`",
    "input_format": "count words with jittok.count_words and pass them as `counts=`",
    "use_all_vocab": "it is for word and character models, which jittok does not train",
    "pretokenizer": "cut with `pretokenization_delimiter`, or cut the texts before",
    "minloglevel": "see `progress=`",
    # Of the other rules.
    "special_tokens": "use control_symbols or user_defined_symbols",
    "initial_alphabet": "use required_chars",
    "limit_alphabet": "use character_coverage",
    "max_token_length": "use max_sentencepiece_length",
    "min_frequency": "choose a smaller vocab_size",
    "normalizer": "use normalization_rule_name or normalization_rule_tsv",
    "pre_tokenizer": "use split_by_whitespace, split_by_unicode_script and so on",
}
#: Most threads of the reference.
MOST_THREADS = 1024
#: Ranges as the reference checks them.
_RANGES: dict[str, tuple[float, float]] = {
    "vocab_size": (1, 2**31 - 1),
    "character_coverage": (0.98, 1.0),
    "max_sentencepiece_length": (1, 512),
    "num_sub_iterations": (1, 10),
    "num_threads": (1, MOST_THREADS),
    "shrinking_factor": (0.5, 0.95),
    "max_sentence_length": (10, 1 << 30),
    "input_sentence_size": (0, 2**63 - 1),
    "seed_sentencepiece_size": (0, 2**31 - 1),
}
#: Fields of the normalizer's part of the file; the others are the trainer's.
_NORMALIZER_FIELDS = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces", "normalization_rule_tsv")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentencePieceOptions:
    """What to train, and on what: the options of ``spm_train``, by its names. Made by :func:`sentencepiece_options`.

    Attributes
    ----------
    model_type
        "bpe" or "unigram".
    vocab_size
        Pieces, meta pieces among them.
    character_coverage
        The alphabet is the most frequent characters that together make at least this part of the text; 0.98 to 1.
    input_sentence_size
        0: use all texts. Else so many.
    shuffle_input_sentence
        Take a random sample, the same each time; False: the first texts.
    seed_sentencepiece_size, shrinking_factor, num_sub_iterations, seed_sentencepieces_file
        Of unigram models only.
    max_sentence_length
        Texts of more bytes are left out.
    num_threads
        Of unigram models only, where the result depends on it.
    max_sentencepiece_length
        Most characters of a piece.
    split_by_unicode_script
        No piece has letters of two scripts.
    split_by_number
        Digits are of the script "common"; False: they go with any.
    split_by_whitespace
        No piece has blanks but at its beginning (or end).
    treat_whitespace_as_suffix
        Blanks end words instead of beginning them.
    allow_whitespace_only_pieces
        Pieces may consist of blanks alone.
    split_digits
        Every digit is a piece of its own.
    pretokenization_delimiter
        No piece reaches across this string, which is left out.
    control_symbols, user_defined_symbols
        Meta pieces besides the four below; the latter are found in text.
    required_chars
        Characters that are in the alphabet however rare they are.
    byte_fallback
        Add the 256 byte pieces.
    auto_character_coverage
        BPE with `byte_fallback` only: trade single characters for merges, by how many tokens each saves.
    vocabulary_output_piece_score
        Whether a .vocab file has the scores.
    hard_vocab_limit
        Whether a `vocab_size` that cannot be reached is an error.
    unk_id, bos_id, eos_id, pad_id
        Ids of the meta pieces, -1 for none.
    unk_piece, bos_piece, eos_piece, pad_piece
        Their strings.
    unk_surface
        What the unknown piece becomes in decoded text.
    normalization_rule_name
        "nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf" or "identity".
    normalization_rule_tsv, denormalization_rule_tsv
        Paths of files with rules; "" for none.
    add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces
        See :class:`~jittok.spec.SentencePieceNormalizer`.
    given
        Names of the options that were given; the reference writes just these to the file.
    """

    model_type: Literal["bpe", "unigram"]
    vocab_size: int = 8000
    character_coverage: float = 0.9995
    input_sentence_size: int = 0
    shuffle_input_sentence: bool = True
    seed_sentencepiece_size: int = 1_000_000
    shrinking_factor: float = 0.75
    max_sentence_length: int = 4192
    num_threads: int = 16
    num_sub_iterations: int = 2
    max_sentencepiece_length: int = 16
    split_by_unicode_script: bool = True
    split_by_number: bool = True
    split_by_whitespace: bool = True
    treat_whitespace_as_suffix: bool = False
    allow_whitespace_only_pieces: bool = False
    split_digits: bool = False
    pretokenization_delimiter: str = ""
    control_symbols: tuple[str, ...] = ()
    user_defined_symbols: tuple[str, ...] = ()
    required_chars: str = ""
    byte_fallback: bool = False
    auto_character_coverage: bool = False
    vocabulary_output_piece_score: bool = True
    hard_vocab_limit: bool = True
    seed_sentencepieces_file: str = ""
    unk_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    pad_id: int = -1
    unk_piece: str = "<unk>"
    bos_piece: str = "<s>"
    eos_piece: str = "</s>"
    pad_piece: str = "<pad>"
    unk_surface: str = sentencepiece_model.UNK_SURFACE
    normalization_rule_name: str = "nmt_nfkc"
    normalization_rule_tsv: str = ""
    denormalization_rule_tsv: str = ""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True
    given: frozenset[str] = frozenset()

    def meta_pieces(self) -> dict[int, tuple[str, PieceType]]:
        """The meta pieces by their ids.

        Raises
        ------
        ArgumentError
            Two of them are the same, share an id, or have no place in the vocabulary.
        """
        return _meta_pieces(self)

    def normalizer(self) -> SentencePieceNormalizer:
        """What is done with text before training: user-defined symbols are ordinary text to it.

        Raises
        ------
        ArgumentError
            There are no such rules.
        MissingFileError, FormatError
            A file of rules cannot be read.
        """
        return SentencePieceNormalizer(
            self.charsmap(),
            self.add_dummy_prefix,
            self.remove_extra_whitespaces,
            self.escape_whitespaces,
            self.treat_whitespace_as_suffix,
        )

    def charsmap(self) -> bytes:
        """The rules of normalization, as they are stored."""
        if self.normalization_rule_tsv:
            return _compiled_rules(self.normalization_rule_tsv, "normalization_rule_tsv")
        from jittok.build.charsmap import named_charsmap

        return b"" if self.normalization_rule_name == "identity" else named_charsmap(self.normalization_rule_name)


def checkpoint_settings(options: SentencePieceOptions) -> dict[str, Any]:
    """Options as a checkpoint keeps them, to compare with those that training goes on with."""
    values = {name: value for name, value in asdict(options).items() if name != "given"}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _check_names(given: Iterable[str]) -> None:
    known = {field.name for field in fields(SentencePieceOptions)} - {"model_type", "given"}
    for name in given:
        if name in known:
            continue
        if name in _ELSEWHERE:
            raise ArgumentError(f"{name}: not an option of SentencePiece's trainer here; {_ELSEWHERE[name]}")
        near = difflib.get_close_matches(name, known, 1)
        raise ArgumentError(
            f"{name}: not an option of SentencePiece's trainer"
            + (f"; did you mean {near[0]}?" if near else "; expected one of " + ", ".join(sorted(known)))
        )


def _converted(name: str, value: Any, expected: Any) -> Any:
    """Return `value` as the type of the option `name`."""
    if expected is bool:
        if isinstance(value, bool):
            return value
        raise ArgumentTypeError(f"{name}: expected True or False, got {value!r}")
    if expected is int:
        if isinstance(value, int) and not isinstance(value, bool):
            return int(value)
        if hasattr(value, "__index__") and not isinstance(value, bool):
            return int(value.__index__())
        raise ArgumentTypeError(f"{name}: expected a whole number, got {value!r}")
    if expected is float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        raise ArgumentTypeError(f"{name}: expected a number, got {value!r}")
    if expected is str:
        if hasattr(value, "__fspath__"):
            value = value.__fspath__()
        if isinstance(value, str):
            return _checked_text(name, value)
        raise ArgumentTypeError(f"{name}: expected a string, got {type(value).__name__}")
    # Strings: a list, or comma-separated with quotes as on the reference's command line.
    if isinstance(value, str):
        value = next(csv.reader([value]), [])
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        raise ArgumentTypeError(f"{name}: expected a list of strings, got {type(value).__name__}")
    items = tuple(value)
    for item in items:
        if not isinstance(item, str):
            raise ArgumentTypeError(f"{name}: expected strings, got {item!r}")
        if not item or "\0" in item:
            raise ArgumentError(f"{name}: {item!r} cannot be a piece; expected at least one character, and no NUL")
        _checked_text(name, item)
    return items


def _checked_text(name: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ArgumentError(f"{name}: {value!r} has a lone surrogate, which has no UTF-8 form; remove it") from None
    return value


def sentencepiece_options(model_type: Literal["bpe", "unigram"], /, **given: Any) -> SentencePieceOptions:
    """Check options, and fill in the defaults.

    Parameters
    ----------
    model_type
        What is trained.
    **given
        Attributes of :class:`SentencePieceOptions`; lists may be comma-separated strings, as on the command line.

    Returns
    -------
    SentencePieceOptions

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An option is not known, has another type or a value out of range, or contradicts another one.
    """
    if model_type not in ("bpe", "unigram"):
        raise ArgumentError(f"model_type={model_type!r}: expected 'bpe' or 'unigram'")
    given = {name: value for name, value in given.items() if value is not None}
    _check_names(given)
    hints = get_type_hints(SentencePieceOptions)
    values = {name: _converted(name, value, hints[name]) for name, value in given.items()}
    options = SentencePieceOptions(model_type=model_type, **values, given=frozenset(values))
    _check_values(options)
    options.meta_pieces()
    return options


def _check_values(options: SentencePieceOptions) -> None:
    for name, (low, high) in _RANGES.items():
        value = getattr(options, name)
        if not low <= value <= high:
            raise ArgumentError(f"{name}={value}: expected {low} to {high}")
    if 0 < options.input_sentence_size <= 100:
        raise ArgumentError(f"input_sentence_size={options.input_sentence_size}: expected 0 (all), or more than 100")
    for name in ("unk_piece", "bos_piece", "eos_piece", "pad_piece"):
        if not getattr(options, name) or "\0" in getattr(options, name):
            raise ArgumentError(f"{name}: expected at least one character, and no NUL")
    if not options.escape_whitespaces:
        raise ArgumentError("escape_whitespaces=False: pieces cannot be trained on text with blanks; leave it True")
    for character in (" ", OUTSIDE, BOUNDARY):
        if character in options.required_chars and character != BOUNDARY:
            raise ArgumentError(f"required_chars: U+{ord(character):04X} cannot be in the alphabet; leave it out")
    if options.seed_sentencepieces_file and options.model_type != "unigram":
        raise ArgumentError("seed_sentencepieces_file is for unigram models; leave it out")
    if options.auto_character_coverage:
        if options.model_type != "bpe":
            raise ArgumentError("auto_character_coverage is for BPE models; leave it out")
        if not options.byte_fallback:
            raise ArgumentError("auto_character_coverage needs byte_fallback=True")
        if options.required_chars:
            raise ArgumentError("auto_character_coverage and required_chars exclude each other; leave one out")
    if options.denormalization_rule_tsv:  # which is not used before the end
        _compiled_rules(options.denormalization_rule_tsv, "denormalization_rule_tsv")
    if not options.normalization_rule_tsv:
        from jittok.build.charsmap import RULE_NAMES

        if options.normalization_rule_name not in RULE_NAMES:
            raise ArgumentError(
                f"normalization_rule_name={options.normalization_rule_name!r}: expected one of {', '.join(RULE_NAMES)}"
            )


def _meta_pieces(options: SentencePieceOptions) -> dict[int, tuple[str, PieceType]]:
    found: dict[int, tuple[str, PieceType]] = {}
    named = [(name, getattr(options, f"{name}_id"), getattr(options, f"{name}_piece")) for name in _NAMES]
    has_unknown = False
    for name, number, piece in named:
        if number < 0:
            continue
        if number >= options.vocab_size:
            raise ArgumentError(f"{name}_id={number}: expected less than vocab_size={options.vocab_size}, or -1")
        if number in found:
            raise ArgumentError(f"{name}_id={number}: {found[number][0]!r} has this id; expected another one, or -1")
        is_unknown = piece == options.unk_piece
        if is_unknown and has_unknown:
            raise ArgumentError(f"{name}_piece={piece!r}: this is the unknown piece; expected another string")
        has_unknown |= is_unknown
        found[number] = (piece, PieceType.UNKNOWN if is_unknown else PieceType.CONTROL)
    if not has_unknown and not options.byte_fallback:
        raise ArgumentError("unk_id=-1: without byte_fallback=True there must be an unknown piece; give it an id")
    byte_pieces = [f"<0x{value:02X}>" for value in range(256)] if options.byte_fallback else []
    seen = set()
    following = 0
    for pieces, kind, name in (
        (options.control_symbols, PieceType.CONTROL, "control_symbols"),
        (options.user_defined_symbols, PieceType.USER_DEFINED, "user_defined_symbols"),
        (byte_pieces, PieceType.BYTE, "byte_fallback"),
    ):
        for piece in pieces:
            if piece in seen:
                raise ArgumentError(f"{name}: {piece!r} is there twice among the symbols; expected each once")
            if piece == options.unk_piece:
                raise ArgumentError(f"{name}: {piece!r} is the unknown piece; leave it out")
            seen.add(piece)
            own = [number for _, number, named_piece in named[1:] if named_piece == piece and number >= 0]
            if own:
                found[own[0]] = (found[own[0]][0], kind)
                continue
            while following in found:
                following += 1
            found[following] = (piece, kind)
    strings: set[str] = set()
    for piece, _ in found.values():
        if piece in strings:
            raise ArgumentError(f"{piece!r} is there twice among the meta pieces; expected each once")
        strings.add(piece)
    if len(found) > options.vocab_size:
        raise ArgumentError(f"vocab_size={options.vocab_size}: there are {len(found)} meta pieces; expected more")
    return found


_NAMES = ("unk", "bos", "eos", "pad")


def _compiled_rules(path: str, name: str) -> bytes:
    try:
        with open(path, encoding="utf-8", newline="\n") as lines:
            return _compiled(tuple(lines), path)
    except OSError as error:
        raise MissingFileError(f"{name}: cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise FormatError(f"{path}: expected UTF-8") from None


@lru_cache(maxsize=2)
def _compiled(lines: tuple[str, ...], path: str) -> bytes:
    """Rules of a file: compiled once, though they are checked long before they are used."""
    from jittok.build.charsmap import compile_charsmap, read_rules

    return compile_charsmap(read_rules(lines, path))


def model_spec(
    options: SentencePieceOptions, pieces: Sequence[str], piece_scores: Sequence[float], *, stop: bool | None = None
) -> TokenizerSpec:
    """Make the model that the reference would write.

    Parameters
    ----------
    options
        What was asked for.
    pieces, piece_scores
        What was trained, in order, and the score of each.
    stop
        Whether a vocabulary that did not become full is made all the same. None: if not ``hard_vocab_limit``.

    Returns
    -------
    TokenizerSpec
        Meta pieces at their ids, and `pieces` around them. The trainer's and normalizer's specs hold what was given.

    Raises
    ------
    ArgumentError
        The vocabulary is not full, and `stop` is false; the message says how large it can be. Or a meta piece has an
        id further back, or is among `pieces`.
    """
    from jittok.formats._sentencepiece_schema import CLASSES, MODEL_TYPES

    meta = options.meta_pieces()
    strings, scores = list(pieces), list(piece_scores)
    types = bytearray([PieceType.NORMAL]) * len(pieces)
    for number in sorted(meta):
        if number <= len(strings) and number < options.vocab_size:
            piece, kind = meta[number]
            strings.insert(number, piece)
            scores.insert(number, 0.0)
            types.insert(number, kind)
    size = len(strings)
    for number, (piece, _) in meta.items():
        if number >= size:
            raise ArgumentError(
                f"{piece!r} has the id {number}, but there are only {size} pieces before it; give it a smaller id, or "
                "train on more text"
            )
    if len(set(strings)) < size:
        twice = next((piece for piece, _ in meta.values() if strings.count(piece) > 1), strings[0])
        raise ArgumentError(f"{twice!r} is a meta piece and was found in training too; give it another string")
    assert size <= options.vocab_size, "more pieces than the vocabulary has room for"
    if size < options.vocab_size and not (not options.hard_vocab_limit if stop is None else stop):
        raise ArgumentError(
            f"vocab_size={options.vocab_size} cannot be reached with these texts; expected at most {size}. Give a "
            "smaller one or more text, or take what there is with hard_vocab_limit=False"
        )
    trainer = CLASSES["TrainerSpec"](model_type=MODEL_TYPES[options.model_type.upper()], vocab_size=size)
    normalizer = CLASSES["NormalizerSpec"](
        name=b"user_defined" if options.normalization_rule_tsv else options.normalization_rule_name.encode(),
        precompiled_charsmap=options.charsmap(),
    )
    for name in options.given - {"vocab_size", "normalization_rule_name", "denormalization_rule_tsv"}:
        value = getattr(options, name)
        target = normalizer if name in _NORMALIZER_FIELDS else trainer
        if isinstance(value, tuple):
            getattr(target, name).extend(item.encode() for item in value)
        else:
            setattr(target, name, value.encode() if isinstance(value, str) else value)
    denormalizer = None
    if options.denormalization_rule_tsv:
        path = options.denormalization_rule_tsv
        denormalizer = CLASSES["NormalizerSpec"](
            name=b"user_defined",
            precompiled_charsmap=_compiled_rules(path, "denormalization_rule_tsv"),
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            escape_whitespaces=False,
            normalization_rule_tsv=path.encode(),
        ).SerializeToString(deterministic=True)
    return sentencepiece_model.spec_of_parts(
        tuple(strings),
        tuple(scores),
        bytes(types),
        trainer.SerializeToString(deterministic=True),
        normalizer.SerializeToString(deterministic=True),
        denormalizer,
    )


def vocabulary_text(spec: TokenizerSpec) -> str:
    """What the reference writes to a .vocab file: a line for each piece.

    Parameters
    ----------
    spec
        Of a SentencePiece model; its trainer's ``vocabulary_output_piece_score`` says whether scores are there too.

    Raises
    ------
    ArgumentError
        It is of another model.
    """
    model = spec.model
    if not isinstance(model, SentencePieceModel):
        raise ArgumentError("only SentencePiece models have such a file")
    with_scores = sentencepiece_model.facts(model)["trainer_spec"].get("vocabulary_output_piece_score", True)
    lines = [
        f"{piece}\t{score:g}\n" if with_scores else f"{piece}\n"
        for piece, score in zip(model.pieces, model.scores, strict=True)
    ]
    return "".join(lines)

"""TokenizerSpec -> Plan: the steps that text goes through, with the tables of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from jittok.errors import UnsupportedError
from jittok.spec import (
    AddedTokens,
    BertPreTokenizer,
    BPEModel,
    ByteLevel,
    CharDelimiterSplit,
    DigitGroups,
    Digits,
    FixedLength,
    LlamaCppCleanUp,
    MapBytes,
    MarianModel,
    Metaspace,
    Normalizer,
    PieceType,
    Prepend,
    PreTokenizer,
    Punctuation,
    RankModel,
    Replace,
    SentencePieceModel,
    SentencePieceNormalizer,
    Split,
    TokenizerSpec,
    UnicodeScripts,
    UnigramModel,
    Whitespace,
    WhitespaceSplit,
    WordLevelModel,
    WordPieceModel,
)
from jittok.tables import (
    PIECE_MARK,
    TOKEN_NORMALIZED,
    AddedTokenTables,
    MergeTables,
    ModelTables,
    PieceTables,
    SplitTables,
    UnigramTables,
)
from jittok.token_columns import id_bounds
from jittok.unicode.intervals import EMPTY

# What builds tables is imported where it is needed: a jittok file brings most of them along.
if TYPE_CHECKING:
    from jittok.rewriting import Rewriter

#: The split that GPT-2 published, which tokenizers' ByteLevel uses.
GPT2_PATTERN = r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
#: Takes a whole segment as one pre-token.
WHOLE_PATTERN = r"[\s\S]+"
#: What ``Whitespace`` keeps. This and the others use the classes of the Rust regex engine.
WHITESPACE_PATTERN = r"\w+|[^\w\s]+"
#: ``Whitespace`` and ``WhitespaceSplit`` with the white space that they drop left in front of what follows it.
WHITESPACE_BEFORE_PATTERN = r"\s*\w+|\s*[^\w\s]+|\s+"
WHITESPACE_SPLIT_BEFORE_PATTERN = r"\s*\S+|\s+"

#: Longer than any word: the tables' limit.
_MOST_INPUT = (1 << 31) - 1

#: Tables of so many tokens and merges may be built at the first text; and with such ids.
_MOST_WAITING = 1 << 12
_MOST_WAITING_ID = 1 << 19

#: What stands for a blank in many vocabularies.
MARK = "\u2581"

#: Cuts before blanks and marks.
BEFORE_MARKS_PATTERN = f"[ {MARK}]?[^ {MARK}]+|[ {MARK}]"

BEHAVIORS = ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")


@dataclass(frozen=True, slots=True)
class SplitStage:
    """Cut every segment at a pattern.

    Attributes
    ----------
    tables
        The pattern.
    behavior
        What becomes of its matches, one of BEHAVIORS by number.
    invert
        Whether what lies between matches counts as a match, and the other way round.
    group
        If above 0, the pattern is that of runs, and these are cut: before each group of so many codepoints, counted from
        the end of the run, or, with the behavior "merged_with_previous", after each group, the first shorter one too.
    """

    tables: SplitTables
    behavior: int
    invert: bool
    group: int = 0


@dataclass(frozen=True, slots=True)
class AddedTokenStage:
    """Find added tokens: which of the tokenizer's, by position in its list, and the tables that find them."""

    members: NDArray[np.int64]
    tables: AddedTokenTables


@dataclass(frozen=True, slots=True)
class MarkStage:
    """Write text as Metaspace makes it, with U+0020 for each U+2581: all stages in one, where positions do not matter.

    Attributes
    ----------
    separates
        Whether white space separates words and is left out, as by WhitespaceSplit; then each word gets U+2581 in front.
    prefix
        Which texts get it in front otherwise: "always", "first" (what a document begins with) or "never".
    """

    separates: bool
    prefix: Literal["always", "first", "never"]


@dataclass(frozen=True, slots=True)
class Plan:
    """All steps from text to ids, in the order in which they run.

    Attributes
    ----------
    added_tokens
        The tokenizer's added tokens, in the order of their ids.
    raw_tokens, normalized_tokens
        Those found in the text as given, and in the normalised text; None if there are none.
    later_tokens
        More of those found in the text as given, one stage after the other, in what the raw tokens leave: where the
        longest token of a text is found first, wherever it stands.
    codes
        The model that has ids for language codes, which are looked for where what the raw tokens leave begins; None: no
        such are.
    normalizer
        Rewrites the text between raw added tokens; None if nothing is to be done.
    stages
        Rewriting and cutting of the text between added tokens, before the last cut.
    last_split
        The last cut, done together with the merges.
    model
        The tables of the model. For WordPiece, `last_split` may leave white space (Unicode White_Space) in: a
        pre-token is white space and then a word without any, or a word, or white space alone. The model skips it;
        white space alone gives no ids and is no word.
    whole
        Whether what the stages leave is one pre-token each: the last cut is made for speed alone.
    blank_prefix
        See :func:`blank_prefix`.
    marks
        What does the work of all stages where no positions are asked for; None: nothing does. Then `last_split` cuts
        before blanks and U+2581, which are the same to the model.
    is_sentencepiece
        Whether the reference is sentencepiece, by whose rule all but the last token of a character's bytes have empty
        spans.
    shows_found
        Whether added tokens are shown as they were found, with the white space that they took with them.
    """

    added_tokens: AddedTokens
    raw_tokens: AddedTokenStage | None
    normalized_tokens: AddedTokenStage | None
    normalizer: Rewriter | None
    stages: tuple[SplitStage | Rewriter, ...]
    last_split: SplitTables
    model: ModelTables
    whole: bool = False
    blank_prefix: str | None = None
    marks: MarkStage | None = None
    is_sentencepiece: bool = False
    shows_found: bool = False
    later_tokens: tuple[AddedTokenStage, ...] = ()
    codes: MarianModel | None = None

    def with_added_tokens(self, spec: TokenizerSpec) -> Plan:
        """Return this plan, with the added tokens of `spec` instead."""
        return replace(self, **_added_stages(spec, self.normalizer))

    @property
    def added_stages(self) -> tuple[AddedTokenStage, ...]:
        """All stages that find added tokens."""
        stages = (self.raw_tokens, *self.later_tokens, self.normalized_tokens)
        return tuple(stage for stage in stages if stage is not None)

    def table_groups(self) -> list[tuple[NDArray[Any], ...]]:
        """The tables of all steps."""
        groups: list[tuple[NDArray[Any], ...]] = [self.last_split, self.model]
        groups += [stage.tables for stage in self.stages if isinstance(stage, SplitStage)]
        groups += [stage.tables for stage in self.added_stages]
        return groups


def build_plan(spec: TokenizerSpec) -> Plan:
    """Build every table that encoding reads.

    Raises
    ------
    UnsupportedError
        The spec combines steps in a way that is not supported; the message names them.
    RegexError
        A split pattern is invalid.
    FormatError
        The model contradicts itself.
    """
    normalizer = normalizer_of(spec)
    stages, last, skips_blanks = _stages(
        spec.pre_tokenizers,
        may_skip_blanks=isinstance(spec.model, WordPieceModel | WordLevelModel),
        takes_bytes=is_byte_level(spec),
    )
    model = _model_tables(spec, skips_blanks)
    whole = last is _whole_split()
    marks = _mark_stage(spec, model)
    if marks is not None:
        whole, last = False, _cut_tables("split", BEFORE_MARKS_PATTERN)[0]
    if whole and isinstance(model, PieceTables):
        from jittok.build.piece_tables import word_pattern

        last = _cut_tables("split", word_pattern(model))[0]
    return Plan(
        **_added_stages(spec, normalizer),
        normalizer=normalizer if normalizer else None,
        stages=tuple(stages),
        last_split=last,
        model=model,
        whole=whole,
        marks=marks,
    )


def can_wait(spec: TokenizerSpec) -> bool:
    """Whether the plan is sure to be built without an error, and in a few milliseconds: when it is needed, if ever.

    Parameters
    ----------
    spec
        A tokenizer.

    Raises
    ------
    UnsupportedError, RegexError
        As :func:`build_plan`, of the steps before the model: what their patterns come to is made now, and kept.
    """
    model = spec.model
    if isinstance(model, (WordPieceModel, WordLevelModel)):
        size = len(model.vocab)
        is_sure = isinstance(model, WordLevelModel) or model.max_input_chars_per_word >= 0
    elif isinstance(model, BPEModel):
        size = len(model.vocab) + len(model.merges)
        # What these say is of this vocabulary was looked for in it.
        is_sure = not model.merges or getattr(model.merges, "vocab", None) is model.vocab
        is_sure &= not (model.byte_fallback or model.continuing_subword_prefix or model.end_of_word_suffix)
    else:
        return False
    if not is_sure or size + len(spec.added) > _MOST_WAITING:
        return False
    least, greatest = id_bounds(model.vocab)
    if least < 0 or greatest >= _MOST_WAITING_ID:
        return False
    _check_steps(spec.normalizers, spec.pre_tokenizers, not isinstance(model, BPEModel), is_byte_level(spec))
    return True


@lru_cache(maxsize=64)
def _check_steps(
    normalizers: tuple[Normalizer, ...], pre_tokenizers: tuple[PreTokenizer, ...], may_skip_blanks: bool, takes_bytes: bool
) -> None:
    """Raise for steps that cannot be built. What was found to be right is kept: the same steps come again and again."""
    if normalizers:
        from jittok.rewriting import build_rewriter

        build_rewriter(normalizers)
    _stages(pre_tokenizers, may_skip_blanks=may_skip_blanks, takes_bytes=takes_bytes)


def is_byte_level(spec: TokenizerSpec) -> bool:
    """Whether the model takes the bytes of the text, and its tokens are written in the byte alphabet.

    A ByteLevel decoder alone does not count: without the pre-tokenizer the model sees the text's own characters. Where
    ByteLevel is not the last pre-tokenizer, or the model is not one of merges, the text itself is written in the
    alphabet.
    """
    if isinstance(spec.model, RankModel):
        return True
    steps = spec.pre_tokenizers
    return isinstance(spec.model, BPEModel) and len(steps) > 0 and isinstance(steps[-1], ByteLevel)


def _model_tables(spec: TokenizerSpec, skips_blanks: bool) -> ModelTables:
    if isinstance(spec.model, WordPieceModel | WordLevelModel):
        from jittok.build.wordpiece_tables import build_wordpiece_tables
        from jittok.unicode import classes

        model = spec.model
        vocab = model.vocab
        if any(isinstance(step, LlamaCppCleanUp) for step in spec.normalizers):
            vocab = _with_marks(vocab)
        missing = model.unk_token not in model.vocab
        blanks = classes.binary_property("whitespace")
        return build_wordpiece_tables(
            vocab,
            # An unknown token that the vocabulary lacks is one token more, whose id the engine takes for an error.
            unknown=max(model.vocab.values(), default=-1) + 1 if missing else model.vocab[model.unk_token],
            is_missing=missing,
            suffix_indicator=(
                _unused_character(model.vocab)
                if isinstance(model, WordLevelModel)
                else model.continuing_subword_prefix
            ),
            max_input=_MOST_INPUT if isinstance(model, WordLevelModel) else model.max_input_chars_per_word,
            space=blanks if skips_blanks and blanks is not None else EMPTY,
            skip_space=skips_blanks,
        )
    if isinstance(spec.model, UnigramModel):
        from jittok.build.unigram_tables import build_unigram_tables

        unknown = spec.model.unk_id
        return build_unigram_tables(
            spec.model.pieces,
            spec.model.scores,
            rule="tokenizers",
            # An unknown piece that the vocabulary lacks is one piece more, whose id the engine takes for an error.
            unknown=len(spec.model.pieces) if unknown is None else unknown,
            is_missing=unknown is None,
            byte_fallback=spec.model.byte_fallback,
            space_as_blank=mark_steps(spec) is not None and _unigram_takes_blanks(spec.model),
        )
    if isinstance(spec.model, SentencePieceModel):
        return _sentencepiece_tables(spec, spec.model)
    if isinstance(spec.model, MarianModel):
        return _marian_tables(spec.model)
    from jittok.build.merge_tables import build_merge_tables

    return build_merge_tables(
        spec.model,
        byte_level=is_byte_level(spec),
        blank_is_mark=blank_prefix(spec) is not None or mark_steps(spec) is not None,
    )


def sampling_tables(spec: TokenizerSpec) -> MergeTables | PieceTables:
    """Tables of a byte-pair model in which merges may be left out: with all pairs.

    Parameters
    ----------
    spec
        Its model is a :class:`~jittok.spec.BPEModel`, a :class:`~jittok.spec.RankModel`, or one of SentencePiece's BPE.
    """
    if isinstance(spec.model, SentencePieceModel):
        tables = _sentencepiece_tables(spec, spec.model, all_pairs=True)
        assert isinstance(tables, PieceTables)
        return tables
    from jittok.build.merge_tables import build_sampling_merges

    assert isinstance(spec.model, BPEModel | RankModel)
    return build_sampling_merges(spec.model, byte_level=is_byte_level(spec))


def _with_marks(vocab: Mapping[str, int]) -> dict[str, int]:
    """Tokens as words after llama.cpp's clean-up have them: what begins with U+2581 may also stand inside a word."""
    from jittok.unicode.llama_cpp import OTHER_MARK

    inside = {token.replace(MARK, OTHER_MARK): token_id for token, token_id in vocab.items()}
    first = {
        MARK + token[1:].replace(MARK, OTHER_MARK): token_id for token, token_id in vocab.items() if token[:1] == MARK
    }
    return inside | first


def _unused_character(vocab: Mapping[str, int]) -> str:
    """A character that no token begins with: with it for a suffix indicator, WordPiece finds whole words only."""
    used = {token[:1] for token in vocab}
    return next(chr(codepoint) for codepoint in range(0xE000, 0x110000) if chr(codepoint) not in used)


def blank_prefix(spec: TokenizerSpec) -> str | None:
    """How text gets a blank in front, where that and U+2581 for blanks is all that is done to it; None elsewhere.

    "never", "always", or "unless marked": where it begins with neither a blank nor U+2581.
    """
    steps = (*spec.normalizers, *spec.pre_tokenizers)
    if isinstance(spec.model, SentencePieceModel):
        step = spec.normalizers[0] if spec.normalizers else None
        if not isinstance(step, SentencePieceNormalizer) or spec.model.algorithm == "unigram" or not _is_compact(spec):
            return None
        if step.charsmap or step.remove_extra_whitespaces or len(spec.added.where(TOKEN_NORMALIZED)) > 0:
            return None
        if step.add_dummy_prefix and step.treat_whitespace_as_suffix:
            return None
        return "always" if step.add_dummy_prefix else "never"
    replaces = Replace(" ", MARK, is_regex=False)
    if steps in ((Prepend(MARK), replaces), (replaces, Prepend(MARK))) and not spec.pre_tokenizers:
        return None if len(spec.added.where(TOKEN_NORMALIZED)) else "always"
    if len(steps) == 1 and isinstance(steps[0], Metaspace) and steps[0].replacement == MARK and not steps[0].split:
        return "never" if steps[0].prepend_scheme == "never" else "unless marked"
    return None


def mark_steps(spec: TokenizerSpec) -> MarkStage | None:
    """What the pre-tokenizers come to where they are a Metaspace that splits, alone or after WhitespaceSplit."""
    *before, last = spec.pre_tokenizers or (None,)
    if not isinstance(last, Metaspace) or last.replacement != MARK or not last.split:
        return None
    if before and (before != [WhitespaceSplit()] or last.prepend_scheme != "always"):
        return None
    return MarkStage(bool(before), last.prepend_scheme)


def _mark_stage(spec: TokenizerSpec, model: ModelTables) -> MarkStage | None:
    """As :func:`mark_steps`, where the model takes a blank for U+2581."""
    steps = mark_steps(spec)
    if steps is None:
        return None
    if isinstance(model, PieceTables):
        return steps if model.numbers[PIECE_MARK] else None
    if not isinstance(model, UnigramTables) or not isinstance(spec.model, UnigramModel):
        return None
    if not _unigram_takes_blanks(spec.model):
        return None
    blank, mark = (int(model.code_of[int(model.page_of[c >> 7]) << 7 | c & 127]) for c in (0x20, ord(MARK)))
    return steps if blank == mark else None


def _unigram_takes_blanks(model: UnigramModel) -> bool:
    """Whether ids are the same with a blank for U+2581: the bytes of an unknown one are not."""
    if not model.byte_fallback:
        return True
    return MARK in model.pieces and model.pieces.index(MARK) != model.unk_id


def _sentencepiece_tables(
    spec: TokenizerSpec, model: SentencePieceModel, *, all_pairs: bool = False
) -> PieceTables | UnigramTables:
    if model.algorithm == "unigram":
        from jittok.build.unigram_tables import build_unigram_tables

        return build_unigram_tables(
            model.pieces,
            model.scores,
            np.frombuffer(model.types, np.uint8),
            rule="llama.cpp" if spec.reference == "llama.cpp" else "sentencepiece",
            byte_fallback=model.byte_fallback,
            space_as_blank=_is_compact(spec),
        )
    from jittok.build.piece_tables import build_sentencepiece_merges

    built = build_sentencepiece_merges(
        model.pieces,
        np.array(model.scores, np.float32),
        list(model.types),
        model_type=model.algorithm,
        byte_fallback=model.byte_fallback,
        blank_is_mark=_is_compact(spec),
        all_pairs=all_pairs,
    )
    return built.tables


def _marian_tables(model: MarianModel) -> UnigramTables:
    from jittok.build.unigram_tables import build_unigram_tables

    types = np.frombuffer(model.types, np.uint8)
    return build_unigram_tables(
        model.pieces, model.scores, types, unknown=model.unknown_text, ids=model.table_ids
    )


def _is_compact(spec: TokenizerSpec) -> bool:
    """Whether normalised text has U+0020 for U+2581, which is a third as long."""
    model = spec.model
    if not isinstance(model, SentencePieceModel) or len(spec.normalizers) != 1:
        return False
    step = spec.normalizers[0]
    if not isinstance(step, SentencePieceNormalizer) or not step.escape_whitespaces:
        return False
    if model.algorithm == "unigram":
        # Where U+2581 is no piece, the ids are those of its bytes, not of U+0020.
        kinds = {kind for piece, kind in zip(model.pieces, model.types, strict=True) if piece == MARK}
        return not model.byte_fallback or not kinds.isdisjoint((PieceType.NORMAL, PieceType.USER_DEFINED))
    from jittok.build.piece_tables import may_leave_blanks

    return may_leave_blanks(model.pieces, list(model.types), model.algorithm)


@dataclass(frozen=True, slots=True)
class WordSplit:
    """The steps from text to words.

    Attributes
    ----------
    normalizer
        None if nothing is to be done.
    stages
        See :class:`Plan`.
    last_split
        The last cut.
    blanks
        "kept": pre-tokens are words. "skipped": `last_split` leaves white space (Unicode White_Space) in, and a pre-token
        is white space and then a word without any, or a word, or white space alone, which is none. "marked": a blank
        that a pre-token begins with stands for U+2581.
    prefixed
        Whether what is not empty, and begins with neither a blank nor U+2581, gets a blank in front before the last cut.
    """

    normalizer: Rewriter | None
    stages: tuple[SplitStage | Rewriter, ...]
    last_split: SplitTables
    blanks: Literal["kept", "skipped", "marked"] = "kept"
    prefixed: bool = False


@lru_cache(maxsize=8)
def build_word_split(normalizers: tuple[Normalizer, ...], pre_tokenizers: tuple[PreTokenizer, ...]) -> WordSplit:
    """Build the tables that make words of text, without a model. A last ByteLevel does not map them to its alphabet.

    Parameters
    ----------
    normalizers, pre_tokenizers
        The steps.

    Raises
    ------
    UnsupportedError, RegexError
        As :func:`build_plan`.
    """
    normalizer = None
    if normalizers:
        from jittok.rewriting import build_rewriter

        normalizer = build_rewriter(normalizers)
    normalizer = normalizer if normalizer else None
    if len(pre_tokenizers) == 1 and isinstance(pre_tokenizers[0], Metaspace):
        step = pre_tokenizers[0]
        if step.split and step.replacement == MARK:
            # Blanks are as good as marks to cut at; to write marks takes longer than all the rest.
            from jittok.build.regex_automaton import compile_split
            from jittok.build.split_windows import build_split_tables

            last = build_split_tables(compile_split(BEFORE_MARKS_PATTERN))
            return WordSplit(normalizer, (), last, "marked", step.prepend_scheme != "never")
    takes_bytes = bool(pre_tokenizers) and isinstance(pre_tokenizers[-1], ByteLevel)
    stages, last, skips_blanks = _stages(pre_tokenizers, may_skip_blanks=True, takes_bytes=takes_bytes)
    return WordSplit(normalizer, tuple(stages), last, "skipped" if skips_blanks else "kept")


def restored_plan(
    spec: TokenizerSpec,
    stages: tuple[SplitStage | Rewriter, ...],
    last_split: SplitTables,
    model: ModelTables,
    whole: bool,
) -> Plan:
    """The plan of `spec` from stored tables; what is quickly built is built anew."""
    normalizer = normalizer_of(spec)
    return Plan(
        **_added_stages(spec, normalizer),
        normalizer=normalizer if normalizer else None,
        stages=stages,
        last_split=last_split,
        model=model,
        whole=whole,
        marks=_mark_stage(spec, model),
    )


def normalizer_of(spec: TokenizerSpec) -> Rewriter | None:
    """What normalises text; None if nothing is to be done. It is kept: a second call costs little."""
    if not spec.normalizers:
        return None
    from jittok.rewriting import build_rewriter

    return build_rewriter(spec.normalizers, compact=_is_compact(spec))


def _added_stages(spec: TokenizerSpec, normalizer: Rewriter | None) -> dict[str, Any]:
    """The fields of a plan that follow from the added tokens."""
    added = spec.added
    raw = np.flatnonzero(added.flags & TOKEN_NORMALIZED == 0)
    normalized = added.where(TOKEN_NORMALIZED)
    is_llama_cpp = spec.reference == "llama.cpp"
    rules = {"skipping": spec.reference != "tiktoken" and not is_llama_cpp, "ascii_space": is_llama_cpp}
    later: list[NDArray[np.int64]] = []
    if is_llama_cpp and len(raw):
        from jittok.build.added_tokens import levels

        raw, *later = [raw[level] for level in levels(added.take(raw).contents)]
    stages = [_added_stage(added, level, None, rules) for level in later]
    is_sentencepiece = isinstance(spec.model, SentencePieceModel | MarianModel)
    return {
        "later_tokens": tuple(stage for stage in stages if stage is not None),
        "added_tokens": added,
        "blank_prefix": blank_prefix(spec),
        "is_sentencepiece": is_sentencepiece,
        "shows_found": not is_llama_cpp and not is_sentencepiece,
        "codes": spec.model if isinstance(spec.model, MarianModel) else None,
        "raw_tokens": _added_stage(added, raw, None, rules),
        "normalized_tokens": _added_stage(added, normalized, normalizer, rules),
    }


def _added_stage(
    tokens: AddedTokens, members: NDArray[np.int64], normalizer: Rewriter | None, rules: dict[str, bool]
) -> AddedTokenStage | None:
    """Tables for some of the added tokens, their content normalised if a normalizer is given, to be found by the rules."""
    if not len(members):
        return None
    from jittok.build.added_tokens import build_added_tokens

    in_order = len(members) == len(tokens) and bool((members[1:] > members[:-1]).all())
    chosen = tokens if in_order else tokens.take(members)
    if normalizer:
        chosen = AddedTokens(normalizer.apply_strings(chosen.contents), chosen.ids, chosen.flags)
    return AddedTokenStage(members, build_added_tokens(chosen, **rules))


def _stages(
    pre_tokenizers: tuple[PreTokenizer, ...], *, may_skip_blanks: bool, takes_bytes: bool = True
) -> tuple[list[SplitStage | Rewriter], SplitTables, bool]:
    """Stages of the pre-tokenizers, the last cut, and whether that leaves blanks in front of words.

    The cut that leaves them saves the passes that drop white space, where the model skips it: `may_skip_blanks`. The
    bytes of a last ByteLevel are the model's matter if it `takes_bytes`.
    """
    from jittok.rewriting import build_rewriter

    stages: list[SplitStage | Rewriter] = []

    def cut(kind: str, *arguments: Any, behavior: str = "isolated", invert: bool = False, group: int = 0) -> None:
        for tables in _cut_tables(kind, *arguments):
            stages.append(SplitStage(tables, BEHAVIORS.index(behavior), invert, group))

    for number, step in enumerate(pre_tokenizers):
        if may_skip_blanks:
            tables = _words_after_blanks(pre_tokenizers[number:])
            if tables is not None:
                return stages, tables, True
        if isinstance(step, Split):
            cut("split", step.pattern, step.dialect, not step.is_regex, behavior=step.behavior, invert=step.invert)
        elif isinstance(step, ByteLevel):
            if step.add_prefix_space:
                stages.append(build_rewriter([step]))
            if step.use_regex:
                cut("split", GPT2_PATTERN)
            if not takes_bytes or number + 1 < len(pre_tokenizers):
                stages.append(build_rewriter([MapBytes()]))
        elif isinstance(step, Digits):
            # A run of digits is one match, so cutting it out alone is what the reference calls contiguous.
            cut("digits", step.individual)
        elif isinstance(step, Metaspace):
            stages.append(build_rewriter([step]))
            if step.split:
                cut("split", step.replacement, "oniguruma", True, behavior="merged_with_next")
        elif isinstance(step, Whitespace):
            cut("split", WHITESPACE_PATTERN, "rust", behavior="removed", invert=True)
        elif isinstance(step, Punctuation):
            cut("punctuation", behavior=step.behavior)
        elif isinstance(step, CharDelimiterSplit):
            cut("split", step.delimiter, "oniguruma", True, behavior="removed")
        elif isinstance(step, FixedLength):
            cut("fixed length", step.length)
        elif isinstance(step, UnicodeScripts):
            cut("scripts", behavior="removed", invert=True)
        elif isinstance(step, DigitGroups):
            behavior = "merged_with_next" if step.cut == "before" else "merged_with_previous"
            cut("split", f"(?:{step.digits})+", "llama.cpp", behavior=behavior, group=step.size)
        elif isinstance(step, WhitespaceSplit | BertPreTokenizer):
            cut("split", r"\s", "rust", behavior="removed")
            if isinstance(step, BertPreTokenizer):
                cut("punctuation")
        else:
            raise UnsupportedError(f"the pre-tokenizer {type(step).__name__} is not supported")
    if stages:
        final = stages[-1]
        # An isolated cut leaves no text out and joins nothing, so the merges can follow at once.
        is_isolated = isinstance(final, SplitStage) and final.behavior == BEHAVIORS.index("isolated")
        if isinstance(final, SplitStage) and is_isolated and not final.group:
            return stages[:-1], final.tables, False
    return stages, _whole_split(), False


@cache
def _whole_split() -> SplitTables:
    """Tables of the cut that makes each segment one pre-token."""
    return _cut_tables("split", WHOLE_PATTERN)[0]


@lru_cache(maxsize=64)
def _cut_tables(kind: str, *arguments: Any) -> tuple[SplitTables, ...]:
    """Tables of the cuts of a kind, one after the other. They are kept: the same patterns come again and again."""
    from jittok.build import regex_automaton
    from jittok.build.split_windows import build_split_tables

    if kind == "scripts":
        return tuple(map(build_split_tables, regex_automaton.compile_scripts()))
    if kind == "split":
        literal = len(arguments) > 2 and bool(arguments[2])
        automaton = regex_automaton.compile_split(*arguments[:2], literal=literal)
    elif kind == "digits":
        automaton = regex_automaton.compile_digits(*arguments)
    elif kind == "fixed length":
        automaton = regex_automaton.compile_fixed_length(*arguments)
    else:
        automaton = regex_automaton.compile_bert() if kind == "bert" else regex_automaton.compile_punctuation()
    return (build_split_tables(automaton),)


def _words_after_blanks(steps: tuple[PreTokenizer, ...]) -> SplitTables | None:
    """Tables of the cut of these steps that leaves white space in front of words, if there is one."""
    if len(steps) == 1:
        if isinstance(steps[0], BertPreTokenizer):
            return _cut_tables("bert")[0]
        if isinstance(steps[0], Whitespace):
            return _cut_tables("split", WHITESPACE_BEFORE_PATTERN, "rust")[0]
        if isinstance(steps[0], WhitespaceSplit):
            return _cut_tables("split", WHITESPACE_SPLIT_BEFORE_PATTERN, "rust")[0]
    if steps == (WhitespaceSplit(), Punctuation("isolated")):
        return _cut_tables("bert")[0]
    return None

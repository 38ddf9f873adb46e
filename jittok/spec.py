"""What a tokenizer file says, as plain immutable dataclasses.

A reader in :mod:`jittok.formats` turns a file into a :class:`TokenizerSpec`; :mod:`jittok.build` turns
that into tables. Nothing here knows about tables, kernels or file syntax.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import compress
from operator import lt
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from jittok.tables import (
    TOKEN_NORMALIZED,
    TOKEN_SINGLE_WORD,
    TOKEN_SPECIAL,
    TOKEN_STRIP_LEFT,
    TOKEN_STRIP_RIGHT,
    read_only,
)

SplitBehavior = Literal["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
Reference = Literal["tokenizers", "tiktoken", "sentencepiece", "mistral_common", "llama.cpp", "transformers"]
RegexDialect = Literal["oniguruma", "rust", "llama.cpp"]


@dataclass(frozen=True, slots=True)
class AddedToken:
    """A token that is looked for in the text before the model sees it."""

    id: int
    content: str
    special: bool = False
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = True


class AddedTokens(Sequence[AddedToken]):
    """Added tokens in columns, of which there may be hundreds of thousands; a sequence of :class:`AddedToken`.

    Parameters
    ----------
    contents, ids, flags
        As the attributes.

    Attributes
    ----------
    contents
        A string each.
    ids : int64[n]
    flags : uint8[n]
        ``TOKEN_*`` bits of :mod:`jittok.tables`.
    """

    __slots__ = ("_flags", "_ids", "_rises", "contents")

    def __init__(
        self, contents: Iterable[str], ids: NDArray[np.int64] | list[int], flags: NDArray[np.uint8] | list[int]
    ) -> None:
        self.contents = tuple(contents)
        # Lists become arrays when these are asked for, which those of a small file seldom are.
        self._ids = ids if type(ids) is list else read_only(np.asarray(ids, np.int64))
        self._flags = flags if type(flags) is list else read_only(np.asarray(flags, np.uint8))
        self._rises: bool | None = None

    @property
    def ids(self) -> NDArray[np.int64]:
        """The ids."""
        if type(self._ids) is list:
            self._ids = read_only(np.array(self._ids, np.int64))
        return self._ids  # type: ignore[return-value]

    @property
    def flags(self) -> NDArray[np.uint8]:
        """The flags."""
        if type(self._flags) is list:
            self._flags = read_only(np.array(self._flags, np.uint8))
        return self._flags  # type: ignore[return-value]

    def id_bounds(self) -> tuple[int, int]:
        """The least and the greatest id; 0 and -1 where there is none."""
        ids = self._ids
        if type(ids) is list or not len(ids):
            return min(ids, default=0), max(ids, default=-1)
        return int(self.ids.min()), int(self.ids.max())

    def id_list(self) -> list[int]:
        """The ids, not to be changed."""
        return self._ids if type(self._ids) is list else self._ids.tolist()  # type: ignore[union-attr]

    @classmethod
    def of(cls, tokens: Iterable[AddedToken]) -> AddedTokens:
        """Columns of tokens.

        Parameters
        ----------
        tokens
            Any; returned as they are if they are in columns already.
        """
        if isinstance(tokens, AddedTokens):
            return tokens
        tokens = list(tokens)
        flags = [
            token.single_word * TOKEN_SINGLE_WORD
            | token.lstrip * TOKEN_STRIP_LEFT
            | token.rstrip * TOKEN_STRIP_RIGHT
            | token.normalized * TOKEN_NORMALIZED
            | token.special * TOKEN_SPECIAL
            for token in tokens
        ]
        # What is far beyond any vocabulary is refused later, whatever it is exactly.
        ids = np.array([max(min(token.id, 1 << 62), -(1 << 62)) for token in tokens], np.int64)
        return cls([token.content for token in tokens], ids, np.array(flags, np.uint8))

    def with_ids(self, ids: list[int]) -> AddedTokens:
        """The tokens with other ids."""
        return AddedTokens(self.contents, ids, self._flags)

    def take(self, order: NDArray[np.int64]) -> AddedTokens:
        """The tokens at some positions."""
        return AddedTokens(map(self.contents.__getitem__, order.tolist()), self.ids[order], self.flags[order])

    def last_of_each_id(self) -> AddedTokens:
        """Without those whose id a later token has too."""
        if self.rises:
            return self
        _, places = np.unique(self.ids[::-1], return_index=True)
        return self if len(places) == len(self) else self.take(np.sort(len(self) - 1 - places))

    @property
    def rises(self) -> bool:
        """Whether each id is greater than the one before it."""
        if self._rises is None:
            ids = self._ids
            rises = all(map(lt, ids, ids[1:])) if type(ids) is list else (self.ids[1:] > self.ids[:-1]).all()
            self._rises = bool(rises)
        return self._rises

    def where(self, flag: int) -> NDArray[np.int64]:
        """Positions of the tokens that have a flag."""
        return np.flatnonzero(self.flags & flag)

    def __len__(self) -> int:
        return len(self.contents)

    @overload
    def __getitem__(self, index: int) -> AddedToken: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[AddedToken, ...]: ...
    def __getitem__(self, index: int | slice) -> AddedToken | tuple[AddedToken, ...]:
        if isinstance(index, slice):
            return tuple(map(self.__getitem__, range(*index.indices(len(self)))))
        return _added_token(int(self.ids[index]), self.contents[index], int(self.flags[index]))

    def __iter__(self) -> Iterator[AddedToken]:
        return map(_added_token, self.ids.tolist(), self.contents, self.flags.tolist())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, AddedTokens):
            same = np.array_equal(self.ids, other.ids) and np.array_equal(self.flags, other.flags)
            return same and self.contents == other.contents
        return tuple(self) == other if isinstance(other, tuple | list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return AddedTokens, (self.contents, self.ids, self.flags)


def _added_token(token_id: int, content: str, flags: int) -> AddedToken:
    return AddedToken(
        token_id,
        content,
        bool(flags & TOKEN_SPECIAL),
        bool(flags & TOKEN_SINGLE_WORD),
        bool(flags & TOKEN_STRIP_LEFT),
        bool(flags & TOKEN_STRIP_RIGHT),
        bool(flags & TOKEN_NORMALIZED),
    )


# ---------------------------------------------------------------------------------------------- normalizers


@dataclass(frozen=True, slots=True)
class UnicodeForm:
    """NFC, NFD, NFKC or NFKD."""

    form: Literal["NFC", "NFD", "NFKC", "NFKD"]


@dataclass(frozen=True, slots=True)
class Lowercase:
    """Full lower-casing of each codepoint, without context (no final sigma)."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace every match of `pattern` with `content`."""

    pattern: str
    content: str
    is_regex: bool = False


@dataclass(frozen=True, slots=True)
class Prepend:
    """Put `content` before a text that is not empty."""

    content: str


@dataclass(frozen=True, slots=True)
class Strip:
    """Remove white space at the ends."""

    left: bool = True
    right: bool = True


@dataclass(frozen=True, slots=True)
class StripAccents:
    """Leave out combining marks (general category M of Unicode 9.0), without taking characters apart first."""


@dataclass(frozen=True, slots=True)
class BertNormalizer:
    """BERT's clean-up.

    Attributes
    ----------
    clean_text
        Leave out control characters, and make every white space a blank.
    handle_chinese_chars
        Put a blank before and after each Chinese character.
    strip_accents
        Take characters apart (NFD) and leave out the marks; None: if `lowercase`.
    lowercase
        Lower-case each codepoint.
    """

    clean_text: bool = True
    handle_chinese_chars: bool = True
    strip_accents: bool | None = None
    lowercase: bool = True

    @property
    def strips_accents(self) -> bool:
        """What `strip_accents` comes to."""
        return self.lowercase if self.strip_accents is None else self.strip_accents


@dataclass(frozen=True, slots=True)
class MapBytes:
    """Each byte of the text's UTF-8 as a character of the byte alphabet (the normalizer ByteLevel)."""


@dataclass(frozen=True, slots=True)
class Nmt:
    """The clean-up of NMT: some control characters left out, some white space and marks made blanks."""


@dataclass(frozen=True, slots=True)
class Precompiled:
    """A charsmap as tokenizers applies it: to each grapheme cluster shorter than six bytes, else to each codepoint.

    Attributes
    ----------
    charsmap
        A double array and the strings that its values point into; see :mod:`jittok.build.charsmap`.
    """

    charsmap: bytes


@dataclass(frozen=True, slots=True)
class SentencePieceNormalizer:
    """What SentencePiece does with text before its model sees it.

    The longest rule of the charsmap that matches is applied at each place, and bytes that are not UTF-8 become
    U+FFFD, one each. User-defined symbols go before rules and stay as they are written.

    Attributes
    ----------
    charsmap
        The rules: a double array and the strings that its values point into; see :mod:`jittok.build.charsmap`.
        Empty: no rules.
    add_dummy_prefix
        Put a blank before what is not empty, or behind it with `treat_whitespace_as_suffix`.
    remove_extra_whitespaces
        Leave out blanks at the ends, and all but one of each run.
    escape_whitespaces
        Make blanks U+2581.
    treat_whitespace_as_suffix
        See `add_dummy_prefix`.
    symbols
        The user-defined symbols.
    """

    charsmap: bytes = b""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True
    treat_whitespace_as_suffix: bool = False
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LlamaCppNormalizer(SentencePieceNormalizer):
    """What llama.cpp does with text before a unigram model (its tokenizer "t5") sees it.

    That is what SentencePiece does, but for U+2581 in the text itself, which is never left out at the end, and texts of
    nothing but blanks that are kept, which get no blank in front.
    """


@dataclass(frozen=True, slots=True)
class LlamaCppCleanUp:
    """What llama.cpp makes of text for a WordPiece vocabulary (its tokenizer "bert"): words, each behind a U+2581.

    Words end at white space, and each character of punctuation, symbol of ASCII and Chinese character is one. Control
    characters and U+FFFD are left out. U+2581 in the text becomes U+E000, which as a private character is in no word.

    Attributes
    ----------
    lowercase
        Lower-case each codepoint.
    strip_accents
        Of what has a canonical decomposition keep only its first codepoint, and leave out combining marks.
    """

    lowercase: bool = True
    strip_accents: bool = True


Normalizer = (
    UnicodeForm
    | Lowercase
    | Replace
    | Prepend
    | Strip
    | StripAccents
    | BertNormalizer
    | MapBytes
    | Nmt
    | Precompiled
    | SentencePieceNormalizer
    | LlamaCppCleanUp
)


# ------------------------------------------------------------------------------------------- pre-tokenizers


@dataclass(frozen=True, slots=True)
class Split:
    """Cut at the matches of `pattern`; `behavior` says what becomes of them."""

    pattern: str
    behavior: SplitBehavior = "isolated"
    invert: bool = False
    is_regex: bool = True
    dialect: RegexDialect = "oniguruma"


@dataclass(frozen=True, slots=True)
class ByteLevel:
    """Map each UTF-8 byte to a printable character, after an optional GPT-2 split."""

    add_prefix_space: bool = True
    use_regex: bool = True
    trim_offsets: bool = True


@dataclass(frozen=True, slots=True)
class Digits:
    """Cut at digits (general category N); each alone when `individual`."""

    individual: bool = False


@dataclass(frozen=True, slots=True)
class Metaspace:
    """Replace blanks with `replacement`, put one in front by `prepend_scheme`, and cut before each."""

    replacement: str = "\u2581"
    prepend_scheme: Literal["always", "first", "never"] = "always"
    split: bool = True


@dataclass(frozen=True, slots=True)
class WhitespaceSplit:
    """Cut at white space, which is left out."""


@dataclass(frozen=True, slots=True)
class Whitespace:
    r"""Runs of word characters, and runs of what is neither that nor white space: ``\w+|[^\w\s]+``."""


@dataclass(frozen=True, slots=True)
class Punctuation:
    """Cut at each character of punctuation; `behavior` says what becomes of it."""

    behavior: SplitBehavior = "isolated"


@dataclass(frozen=True, slots=True)
class BertPreTokenizer:
    """Cut at white space, which is left out, and around each character of punctuation."""


@dataclass(frozen=True, slots=True)
class CharDelimiterSplit:
    """Cut at each `delimiter`, a single character, which is left out."""

    delimiter: str


@dataclass(frozen=True, slots=True)
class FixedLength:
    """Cut into parts of `length` codepoints; the last one may be shorter."""

    length: int = 5


@dataclass(frozen=True, slots=True)
class UnicodeScripts:
    """Cut where the script changes.

    Hiragana and Katakana count as Han, and a blank as what is before it; blanks at the beginning are left out.
    """


@dataclass(frozen=True, slots=True)
class DigitGroups:
    """Cut between groups of `size` digits in each run of them, counted from the right.

    Attributes
    ----------
    digits
        A class of a regular expression of llama.cpp's dialect.
    size
        Digits of a group.
    cut
        "after" each group, of which the first may be shorter, or "before" each whole one.
    """

    digits: str
    size: int = 3
    cut: Literal["after", "before"] = "after"


PreTokenizer = (
    Split
    | ByteLevel
    | Digits
    | Metaspace
    | WhitespaceSplit
    | Whitespace
    | Punctuation
    | BertPreTokenizer
    | CharDelimiterSplit
    | FixedLength
    | UnicodeScripts
    | DigitGroups
)


# ---------------------------------------------------------------------------------------------------- model


class NumberedMerges(tuple[tuple[str, str], ...]):
    """Merges in order of rank, and the ids that a reader looked up to check them.

    Attributes
    ----------
    vocab
        The vocabulary that the ids are of.
    ids
        For each merge the ids of its parts and of its result.
    """

    vocab: Mapping[str, int]
    ids: tuple[list[int], list[int], list[int]]


@dataclass(frozen=True, slots=True)
class BPEModel:
    """Byte-pair encoding over characters, as tokenizer.json and vocab.json + merges.txt state it.

    `vocab` maps token strings (in the byte alphabet when the file is byte-level) to ids; `merges` lists
    the pairs in order of rank.
    """

    vocab: Mapping[str, int]
    merges: Sequence[tuple[str, str]]
    unk_token: str | None = None
    fuse_unk: bool = False
    byte_fallback: bool = False
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None
    ignore_merges: bool = False


@dataclass(frozen=True, slots=True)
class RankModel:
    """Byte-pair encoding over bytes, as a .tiktoken file states it: each token's rank is also its id."""

    ranks: Mapping[bytes, int]


@dataclass(frozen=True, slots=True)
class WordPieceModel:
    """Greedy longest match first within each word (WordPiece).

    Attributes
    ----------
    vocab
        Token strings to ids. One that continues a word is written with the prefix.
    unk_token
        Stands for a whole word that the tokens do not make up. It may be missing from `vocab`, which is an
        error when it is needed.
    continuing_subword_prefix
        What tokens that continue a word begin with; may be empty.
    max_input_chars_per_word
        Longer words are unknown; counted in codepoints.
    """

    vocab: Mapping[str, int]
    unk_token: str = "[UNK]"
    continuing_subword_prefix: str = "##"
    max_input_chars_per_word: int = 100


@dataclass(frozen=True, slots=True)
class WordLevelModel:
    """Whole pre-tokens only.

    Attributes
    ----------
    vocab
        Token strings to ids.
    unk_token
        Stands for a pre-token that is not in the vocabulary. It may itself be missing from `vocab`, which is an error
        when it is needed.
    """

    vocab: Mapping[str, int]
    unk_token: str = "<unk>"


@dataclass(frozen=True, slots=True)
class UnigramModel:
    """A unigram language model, as a tokenizer.json states it.

    Attributes
    ----------
    pieces
        Token strings; the position is the id. The same string may come twice.
    scores
        The score of each, a float64 read by the reference's own rule, which is not the nearest one to the decimal
        number (see :func:`jittok.formats.tokenizer_json.read_score`).
    unk_id
        The piece that stands for what no other does; None: text that needs it is an error.
    byte_fallback
        Unknown text becomes tokens such as <0x0A>, if all that it needs are there.
    """

    pieces: Sequence[str]
    scores: tuple[float, ...]
    unk_id: int | None = None
    byte_fallback: bool = False

    @property
    def vocab(self) -> dict[str, int]:
        """Token strings to ids; of a string that comes twice, the later id."""
        return {piece: token_id for token_id, piece in enumerate(self.pieces)}


class PieceType(IntEnum):
    """What a piece of a SentencePiece model is for; the numbers are those of the file."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True, slots=True)
class SentencePieceMessages:
    """Parts of a SentencePiece file as they are written there, so that a copy has the same bytes.

    Attributes
    ----------
    trainer_spec, normalizer_spec, self_test_data, denormalizer_spec
        Serialized messages; None where the file has none.
    presence
        For each piece, one byte: 1 if it has a score, plus 2 if it has a type, plus 4 if that is normal although the
        piece is taken for an unused one. Empty: all have scores, and those that are not normal have types, as the
        trainer writes them.
    others
        Fields that are not known, serialized.
    """

    trainer_spec: bytes | None = None
    normalizer_spec: bytes | None = None
    self_test_data: bytes | None = None
    denormalizer_spec: bytes | None = None
    presence: bytes = b""
    others: bytes = b""


@dataclass(frozen=True, slots=True)
class SentencePieceModel:
    """The pieces of a SentencePiece file, and what it says about using them.

    Attributes
    ----------
    algorithm
        The algorithm.
    pieces
        Token strings; the position is the id. Within the types normal, user-defined and unused all differ, and
        within the others; only for "bpe" all of them do. A NUL alone is an unused piece.
    scores
        The score of each piece: float32 values. Finite for "unigram".
    types
        The :class:`PieceType` of each piece, one byte each.
    byte_fallback
        Unknown characters become byte pieces, of which there are all 256.
    treat_whitespace_as_suffix
        U+2581 ends words instead of beginning them.
    unk_id, bos_id, eos_id, pad_id
        -1 where there is none. `unk_id` may only be -1 with `byte_fallback`.
    unk_surface
        What the unknown piece becomes in decoded text.
    messages
        What is needed to write the file again.
    """

    algorithm: Literal["unigram", "bpe", "char", "word"]
    pieces: tuple[str, ...]
    scores: tuple[float, ...]
    types: bytes
    byte_fallback: bool = False
    treat_whitespace_as_suffix: bool = False
    unk_id: int = -1
    bos_id: int = -1
    eos_id: int = -1
    pad_id: int = -1
    unk_surface: str = " \u2047 "
    messages: SentencePieceMessages = field(default_factory=SentencePieceMessages)

    def of_type(self, *types: PieceType) -> list[int]:
        """The ids of all pieces of some types, rising."""
        wanted = bytes(kind in types for kind in range(256))
        return list(compress(range(len(self.types)), self.types.translate(wanted)))

    def with_types(self, types: bytes) -> SentencePieceModel:
        """Return this model with pieces of other types.

        Parameters
        ----------
        types
            As :attr:`types`.
        """
        presence = self.messages.presence
        if presence:  # a type that is not the usual one has to be written
            pairs = zip(presence, self.types, types, strict=True)
            presence = bytes(old if before == after else old | 2 for old, before, after in pairs)
        return replace(self, types=types, messages=replace(self.messages, presence=presence))

    @property
    def vocab(self) -> dict[str, int]:
        """Token strings to ids; control, unknown and byte pieces before others of the same string."""
        reserved = bytes((PieceType.UNKNOWN, PieceType.CONTROL, PieceType.BYTE))
        result: dict[str, int] = {}
        for token_id, piece in enumerate(self.pieces):
            if piece not in result or self.types[token_id] in reserved:
                result[piece] = token_id
        return result


@dataclass(frozen=True, slots=True)
class MarianModel:
    """The pieces of a SentencePiece unigram model, whose ids another vocabulary has.

    A language code such as ``>>fr<<`` that a text begins with is one token. Pieces, unknown characters and codes that the
    vocabulary lacks become the unknown token, each for itself.

    Attributes
    ----------
    vocab
        Token strings to ids.
    pieces, scores, types
        As in :class:`SentencePieceModel`.
    unk_id
        The id of the unknown token.
    """

    vocab: Mapping[str, int]
    pieces: tuple[str, ...]
    scores: tuple[float, ...]
    types: bytes
    unk_id: int

    @property
    def unknown_text(self) -> int:
        """The id that the tables have for unknown characters, whose string may yet be in the vocabulary."""
        return max(self.vocab.values()) + 1

    @property
    def table_ids(self) -> list[int]:
        """The ids that the tables have for pieces: larger ones for those that the vocabulary lacks."""
        following = self.unknown_text + 1
        return [self.vocab.get(piece, following + number) for number, piece in enumerate(self.pieces)]


Model = MarianModel | BPEModel | RankModel | WordPieceModel | WordLevelModel | UnigramModel | SentencePieceModel


# ------------------------------------------------------------------------------------------ post-processors


@dataclass(frozen=True, slots=True)
class TemplatePiece:
    """One item of a template: `sequence` "A" or "B", or the special token's `ids` and `tokens`."""

    type_id: int
    sequence: Literal["A", "B"] | None = None
    ids: tuple[int, ...] = ()
    tokens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Template:
    """What surrounds one sequence, and a pair of sequences. `pair` is None where the file has none."""

    single: tuple[TemplatePiece, ...]
    pair: tuple[TemplatePiece, ...] | None


@dataclass(frozen=True, slots=True)
class TrimOffsets:
    """ByteLevel or RobertaProcessing post-processing: leave white space out of the spans."""

    add_prefix_space: bool = True


PostProcessor = Template | TrimOffsets


# -------------------------------------------------------------------------------------------------- decoders


@dataclass(frozen=True, slots=True)
class DecodeByteLevel:
    """Byte-alphabet characters back to bytes; all tokens as one byte string, invalid UTF-8 replaced."""


@dataclass(frozen=True, slots=True)
class DecodeFuse:
    """Join all tokens into one."""


@dataclass(frozen=True, slots=True)
class DecodeReplace:
    """Replace `pattern` in every token."""

    pattern: str
    content: str
    is_regex: bool = False


@dataclass(frozen=True, slots=True)
class DecodeByteFallback:
    """Tokens such as <0x0A> back to bytes."""


@dataclass(frozen=True, slots=True)
class DecodeStrip:
    """Remove up to `start` / `stop` copies of `content` at the ends of every token."""

    content: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class DecodeMetaspace:
    """The replacement character back to blanks, the first one dropped where a prefix was added."""

    replacement: str = "\u2581"
    prepend_scheme: Literal["always", "first", "never"] = "always"


@dataclass(frozen=True, slots=True)
class DecodeBPE:
    """`suffix` becomes a blank, or nothing at the end."""

    suffix: str = "</w>"


@dataclass(frozen=True, slots=True)
class DecodeWordPiece:
    """A blank before each token but the first, or, where it begins with `prefix`, the token without that.

    Attributes
    ----------
    prefix
        What tokens that continue a word begin with.
    cleanup
        Also take out the blanks before English punctuation and contractions, in each token for itself.
    """

    prefix: str = "##"
    cleanup: bool = True


@dataclass(frozen=True, slots=True)
class DecodeCTC:
    """Connectionist temporal classification: of equal tokens in a row one stays, and pads are left out.

    Attributes
    ----------
    pad_token
        What is left out of every token.
    word_delimiter_token
        What becomes a blank, with `cleanup`.
    cleanup
        Also take out the blanks before English punctuation and contractions, as :class:`DecodeWordPiece` does.
    """

    pad_token: str = "<pad>"
    word_delimiter_token: str = "|"
    cleanup: bool = True


@dataclass(frozen=True, slots=True)
class DecodeSentencePiece:
    """Pieces to text as SentencePiece does it: always the only decoder, and only for its own models.

    Control pieces leave nothing, byte pieces become characters (U+FFFD for each byte that is in none), U+2581 becomes
    a blank.

    Attributes
    ----------
    drop_first
        Leave out U+2581 where it is the first thing of a text: because a dummy prefix was added, or extra blanks removed.
    drop_leading
        Leave it out as long as nothing else came: because extra blanks were removed.
    unk_surface
        What the unknown piece becomes.
    denormalizer
        What the text goes through in the end; None: nothing.
    """

    drop_first: bool = True
    drop_leading: bool = True
    unk_surface: str = " \u2047 "
    denormalizer: SentencePieceNormalizer | None = None


@dataclass(frozen=True, slots=True)
class DecodeLlamaCpp:
    r"""Tokens to bytes as llama.cpp does it, one after another: always the only decoder.

    Control and unknown tokens leave nothing, nor do those that are unused or of no type; user-defined tokens stand for
    themselves.

    Attributes
    ----------
    style
        What normal tokens are written in: "pieces" with U+2581 for blanks, or the byte "alphabet"; "escaped": the latter,
        but user-defined tokens have bytes as in ``\x0a``.
    types
        The :class:`PieceType` of each token, one byte each; 0: none. Later ids are those of user-defined tokens.
    """

    style: Literal["pieces", "alphabet", "escaped"]
    types: bytes


@dataclass(frozen=True, slots=True)
class DecodeMarian:
    """Pieces to text between special tokens, each of which has a blank behind it; no blanks at the ends of all.

    Attributes
    ----------
    special
        The special tokens.
    drop_first, drop_leading
        As in :class:`DecodeSentencePiece`, between special tokens.
    hidden
        Pieces that leave nothing.
    """

    special: tuple[str, ...]
    drop_first: bool = True
    drop_leading: bool = True
    hidden: tuple[str, ...] = ()


Decoder = (
    DecodeByteLevel
    | DecodeFuse
    | DecodeReplace
    | DecodeByteFallback
    | DecodeStrip
    | DecodeMetaspace
    | DecodeBPE
    | DecodeWordPiece
    | DecodeCTC
    | DecodeSentencePiece
    | DecodeLlamaCpp
    | DecodeMarian
)


# ------------------------------------------------------------------------------------------------- tokenizer


@dataclass(frozen=True, slots=True)
class TokenizerSpec:
    """All that a tokenizer file says.

    Attributes
    ----------
    model
        The vocabulary and merges.
    added_tokens
        In order of id; kept in columns, as ``added``.
    normalizers, pre_tokenizers, post_processors, decoders
        Steps in the order they run; Sequences of the file are flattened. An empty tuple means none.
        Without decoders, tokens are joined with a blank between them, as the reference does, unless the
        model is a :class:`RankModel`.
    reference
        The library whose ids are right: "tokenizers", "tiktoken", "sentencepiece", "mistral_common", "llama.cpp", or
        "transformers" itself. It decides defaults, and where two of them use a model of the same form otherwise.
    default_special
        What a special token written in the text becomes unless a call says otherwise.
    source_format
        Name of the file format it came from.
    stored_truncation, stored_padding
        As in the file; shown, never applied by native calls.
    extra
        Further facts for display or saving, JSON-serialisable.
    """

    model: Model
    added_tokens: Sequence[AddedToken] = ()
    normalizers: tuple[Normalizer, ...] = ()
    pre_tokenizers: tuple[PreTokenizer, ...] = ()
    post_processors: tuple[PostProcessor, ...] = ()
    decoders: tuple[Decoder, ...] = ()
    reference: Reference = "tokenizers"
    default_special: Literal["parse", "text", "raise"] = "parse"
    source_format: str = "tokenizer.json"
    stored_truncation: Mapping[str, Any] | None = None
    stored_padding: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Keep the added tokens in columns."""
        object.__setattr__(self, "added_tokens", AddedTokens.of(self.added_tokens))

    @property
    def added(self) -> AddedTokens:
        """The added tokens, in columns."""
        assert isinstance(self.added_tokens, AddedTokens)
        return self.added_tokens

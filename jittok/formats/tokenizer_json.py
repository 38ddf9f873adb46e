"""HuggingFace ``tokenizer.json`` with a BPE, WordPiece or Unigram model, read as tokenizers 0.23.3 reads it.

The rules here were measured on that library: which fields may be missing or null, which may not, and what
it makes of files that contradict themselves. Where it would crash later (a template that names an unknown
token), the file is refused at load. What is not supported is refused by name.
"""

from __future__ import annotations

import binascii
import json
import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import chain, count, product, repeat
from operator import add, itemgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from jittok.errors import FormatError, JittokError, UnsupportedError
from jittok.formats._json import MAX_TOKEN_ID, Fields, Node, parse_json, paused_collection
from jittok.formats._templates import Around, composed
from jittok.formats.json_parts import ScoredPieces, read_parts
from jittok.spec import (
    AddedToken,
    AddedTokens,
    BertNormalizer,
    BertPreTokenizer,
    BPEModel,
    ByteLevel,
    CharDelimiterSplit,
    DecodeBPE,
    DecodeByteFallback,
    DecodeByteLevel,
    DecodeCTC,
    DecodeFuse,
    DecodeLlamaCpp,
    DecodeMarian,
    DecodeMetaspace,
    Decoder,
    DecodeReplace,
    DecodeSentencePiece,
    DecodeStrip,
    DecodeWordPiece,
    DigitGroups,
    Digits,
    FixedLength,
    LlamaCppCleanUp,
    Lowercase,
    MapBytes,
    Metaspace,
    Nmt,
    Normalizer,
    NumberedMerges,
    PostProcessor,
    Precompiled,
    Prepend,
    PreTokenizer,
    Punctuation,
    RankModel,
    Replace,
    SentencePieceNormalizer,
    Split,
    SplitBehavior,
    Strip,
    StripAccents,
    Template,
    TemplatePiece,
    TokenizerSpec,
    TrimOffsets,
    UnicodeForm,
    UnicodeScripts,
    UnigramModel,
    Whitespace,
    WhitespaceSplit,
    WordLevelModel,
    WordPieceModel,
)
from jittok.tables import (
    TOKEN_NORMALIZED,
    TOKEN_SINGLE_WORD,
    TOKEN_SPECIAL,
    TOKEN_STRIP_LEFT,
    TOKEN_STRIP_RIGHT,
)
from jittok.token_columns import ColumnMerges, ColumnVocab, find_ids, has_unique_ids, ids_of

#: The fields of a tokenizer.json.
TOP_LEVEL = (
    "version",
    "truncation",
    "padding",
    "added_tokens",
    "normalizer",
    "pre_tokenizer",
    "post_processor",
    "decoder",
    "model",
)
_TOP_LEVEL = frozenset(TOP_LEVEL)
_BEHAVIORS: dict[str, SplitBehavior] = {
    "Removed": "removed",
    "Isolated": "isolated",
    "MergedWithPrevious": "merged_with_previous",
    "MergedWithNext": "merged_with_next",
    "Contiguous": "contiguous",
}
_BEHAVIOR_NAMES = {value: name for name, value in _BEHAVIORS.items()}
_SMALL_BYTES = 1 << 16  # of a file that leaves the garbage collector little to do
_FEW = 100  # tokens that plain Python goes through faster than NumPy
_MAX_NESTING = 60  # of Sequences; the reference's JSON parser gives up at about that depth

Step = TypeVar("Step")


def read(data: bytes, where: str) -> TokenizerSpec:
    """Read a tokenizer.json.

    Parameters
    ----------
    data
        The whole file.
    where
        Name of the file, for messages.

    Returns
    -------
    TokenizerSpec
        What the file says. Costs about as much as ``json.loads`` plus a tenth of a second for 150,000 merges.

    Raises
    ------
    FormatError
        The file is malformed or contradicts itself.
    UnsupportedError
        It asks for a component that jittok does not have.
    """
    if len(data) < _SMALL_BYTES:
        return _read(data, where)
    with paused_collection():
        return _read(data, where)


def _read(data: bytes, where: str) -> TokenizerSpec:
    parts = read_parts(data, _FLAGS)
    if parts is not None:
        try:
            root = parse_json(parts.rest, where, parse_float=read_score)
            if parts.put_into(root):
                return from_json(root, parts.added)
        except JittokError:
            pass  # raised again below, with the places of the whole file
    return from_json(parse_json(data, where, parse_float=read_score))


def read_score(number: str) -> float:
    """Read a decimal number as the reference does: quickly, and not always to the nearest float.

    Parameters
    ----------
    number
        As JSON has it.

    Returns
    -------
    float
        All its digits, as far as they fit in 64 bits as one whole number (further ones are left out), are rounded to
        a float, and that is multiplied with or divided by a power of ten, which rounds again. Infinite where that is
        beyond the range of floats.

    Examples
    --------
    >>> read_score("-10.53339672088623")
    -10.53339672088623
    """
    mantissa, _, power = number.lower().partition("e")
    negative = mantissa.startswith("-")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    exponent = int(power) if power else 0
    digits = whole + fraction
    if len(digits) < 20:  # below 2**64 for certain
        value = int(digits)
        exponent -= len(fraction)
    else:
        value, taken = 0, 0
        for digit in digits:
            following = value * 10 + int(digit)
            if following >= 1 << 64:
                break
            value, taken = following, taken + 1
        exponent += len(whole) - taken
    result = float(value)
    while exponent < -308 and result:
        result /= 1e308
        exponent += 308
    if result:
        try:
            result = result * _power_of_ten(exponent) if exponent >= 0 else result / _power_of_ten(-exponent)
        except OverflowError:
            result = float("inf")
    return -result if negative else result


@cache
def _power_of_ten(exponent: int) -> float:
    if exponent > 308:
        raise OverflowError
    return float(f"1e{exponent}")


def from_json(root: Node, added: AddedTokens | None = None) -> TokenizerSpec:
    """Make a spec from a parsed tokenizer.json; see :func:`read`.

    Parameters
    ----------
    root
        The whole file.
    added
        Its added tokens, as they are stated there; None: they are in `root`.
    """
    fields = root.mapping()
    if not fields.keys() <= _TOP_LEVEL:
        key = next(key for key in fields if key not in _TOP_LEVEL)
        raise UnsupportedError(
            f"{root.where}: unknown field {key!r} at the top level; expected only {', '.join(TOP_LEVEL)}"
        )
    if "version" in fields and root.child("version").string() != "1.0":
        raise root.child("version").wrong("'1.0', the only version there is")
    model = _model(root.child("model"))
    vocab = _vocab_of(root.child("model").child("vocab"), model)
    added_tokens = assign_added_ids(_added_tokens(root) if added is None else added, vocab)
    known_ids = _KnownIds(vocab, added_tokens)
    post_processors, takes_pairs = _post_processors(root.optional("post_processor"), known_ids)
    extra = _dropout(root.child("model"), model)
    return TokenizerSpec(
        model=model,
        added_tokens=added_tokens,
        normalizers=_flatten(root.optional("normalizer"), "normalizer", _NORMALIZERS, "normalizers"),
        pre_tokenizers=_flatten(root.optional("pre_tokenizer"), "pre-tokenizer", _PRE_TOKENIZERS, "pretokenizers"),
        post_processors=post_processors,
        decoders=_decoders(root.optional("decoder")),
        stored_truncation=_truncation(root.optional("truncation")),
        stored_padding=_padding(root.optional("padding")),
        extra=extra if takes_pairs else {**extra, "takes_pairs": False},
    )


class _KnownIds:
    """The ids of tokens."""

    def __init__(self, vocab: Mapping[str, int], added: AddedTokens) -> None:
        self._vocab = vocab.values() if type(vocab) is dict else ids_of(vocab)
        self._added = added.id_list() if len(added) < _FEW else added.ids

    def __contains__(self, token_id: object) -> bool:
        # Nearly always among the added tokens.
        return token_id in self._added or token_id in self._vocab


def _vocab_of(node: Node, model: BPEModel | WordPieceModel | WordLevelModel | UnigramModel) -> Mapping[str, int]:
    """Tokens and ids of a model, which is made of the vocabulary at `node`."""
    if isinstance(node.value, ScoredPieces) and node.value.vocab is not None:
        return node.value.vocab
    return model.vocab


# ---------------------------------------------------------------------------------------------------- model


def _model(node: Node) -> BPEModel | WordPieceModel | WordLevelModel | UnigramModel:
    fields = node.mapping()
    kind = fields["type"] if "type" in fields else _guess_model_type(fields)
    if kind == "WordPiece":
        return _word_piece(node)
    if kind == "Unigram":
        return _unigram(node)
    if kind == "WordLevel":
        return WordLevelModel(read_vocab(node.child("vocab"), lenient=True), node.child("unk_token").string())
    if kind != "BPE":
        raise node.error(f"expected a model of type BPE, WordPiece, WordLevel or Unigram, got type {kind!r}")
    vocab = read_vocab(node.child("vocab"), lenient=True)
    prefix = _optional_string(node, "continuing_subword_prefix")
    merges = read_merges(node.child("merges"), vocab, prefix or "")
    if merges and not has_unique_ids(vocab):
        raise repeated_id(node.child("vocab"))
    return BPEModel(
        vocab=vocab,
        merges=merges,
        unk_token=_optional_string(node, "unk_token"),  # may be absent from the vocabulary: an error when met
        fuse_unk=_optional_flag(node, "fuse_unk"),
        byte_fallback=_optional_flag(node, "byte_fallback"),
        continuing_subword_prefix=prefix,
        end_of_word_suffix=_optional_string(node, "end_of_word_suffix"),
        ignore_merges=_optional_flag(node, "ignore_merges"),
    )


def _dropout(node: Node, model: object) -> dict[str, float]:
    """The chance that a merge is left out, if it is more than none: what samples are drawn with."""
    dropout = node.optional("dropout") if isinstance(model, BPEModel) else None
    if dropout is None:
        return {}
    if type(dropout.value) not in (int, float) or not 0 <= dropout.value <= 1:
        raise dropout.wrong("a number from 0 to 1")
    return {"dropout": float(dropout.value)} if dropout.value > 0 else {}


def _word_piece(node: Node) -> WordPieceModel:
    """A WordPiece model: no field may be missing; the unknown token may, from the vocabulary."""
    vocab = read_vocab(node.child("vocab"), lenient=True)
    unk_token, prefix = _WORD_PIECE.of(node)
    return WordPieceModel(vocab, unk_token, prefix, node.child("max_input_chars_per_word").integer(limit=1 << 64))


_WORD_PIECE = Fields(unk_token=str, continuing_subword_prefix=str)


def _unigram(node: Node) -> UnigramModel:
    """A Unigram model; `unk_id` may be missing or null, `byte_fallback` only missing."""
    entries = node.child("vocab").value
    pieces: Sequence[str]
    if isinstance(entries, ScoredPieces):
        pieces, scores = entries.pieces, tuple(entries.scores.tolist())
    else:
        pieces, scores = _scored_pieces(node)
    unk_id = node.optional("unk_id")
    if unk_id is not None and unk_id.integer(limit=1 << 64) >= len(pieces):
        raise unk_id.error(f"the unknown token's id is {unk_id.value}, but there are {len(pieces)} tokens")
    byte_fallback = node.child("byte_fallback").boolean() if "byte_fallback" in node.mapping() else False
    return UnigramModel(pieces, scores, None if unk_id is None else unk_id.value, byte_fallback)


def _scored_pieces(node: Node) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Pieces and scores of a Unigram model."""
    entries = node.child("vocab").value
    if type(entries) is not list:
        raise node.child("vocab").wrong("an array of [token, score]")
    if len(entries) > MAX_TOKEN_ID:
        raise node.child("vocab").error(f"{len(entries)} tokens; expected at most {MAX_TOKEN_ID}")
    try:
        pieces = tuple(map(itemgetter(0), entries))
        scores = tuple(map(itemgetter(1), entries))
        valid = set(map(type, pieces)) <= {str} and set(map(type, scores)) <= {int, float}
        valid &= set(map(type, entries)) <= {list} and set(map(len, entries)) <= {2}
    except (TypeError, IndexError, KeyError):
        valid = False
    if not valid:
        for item in node.child("vocab").items():
            if type(item.value) is not list or len(item.value) != 2:
                raise item.wrong("[token, score]")
            token, score = item.items()
            token.string()
            if type(score.value) not in (int, float):
                raise score.wrong("a number")
    try:
        scores = tuple(map(float, scores))
    except OverflowError:
        scores = (float("inf"),)
    if not all(map(math.isfinite, scores)):
        for item in node.child("vocab").items():
            if type(item.value[1]) is int or not math.isfinite(item.value[1]):
                raise item.wrong("a score within the range of floats")
    return pieces, scores


def _guess_model_type(fields: Mapping[str, Any]) -> str | None:
    """Say which model a file means that is older than the field "type"."""
    if "vocab" not in fields:
        return None
    if isinstance(fields["vocab"], list | ScoredPieces):
        return "Unigram"
    if "merges" in fields:
        return "BPE"
    return "WordPiece" if "max_input_chars_per_word" in fields else "WordLevel"


def _optional_string(node: Node, key: str) -> str | None:
    value = node.mapping().get(key)
    return value if value is None or type(value) is str else node.child(key).string()


def _optional_flag(node: Node, key: str) -> bool:
    value = node.mapping().get(key)
    return False if value is None else node.child(key).boolean()


def read_vocab(node: Node, *, lenient: bool = False) -> Mapping[str, int]:
    """Check a mapping from token to id: not empty, ids unique and below `MAX_TOKEN_ID`, holes allowed.

    The reference takes an empty vocabulary, with which every text has no ids, and two tokens of one id, of
    which it decodes to either. `lenient` lets both pass.
    """
    if isinstance(node.value, ColumnVocab):
        return node.value
    vocab = node.mapping()
    if not vocab:
        if lenient:
            return vocab
        raise node.error("the vocabulary is empty; expected an object of token: id")
    ids = vocab.values()
    if set(map(type, ids)) != {int} or min(ids) < 0 or max(ids) >= MAX_TOKEN_ID:
        for token in vocab:
            node.child(token).integer(limit=MAX_TOKEN_ID)
    if not lenient and len(set(ids)) != len(vocab):
        raise repeated_id(node)
    return vocab


def repeated_id(node: Node) -> FormatError:
    """Make an error that names two tokens of one id, which make merges ambiguous."""
    first: dict[int, str] = {}
    for token, token_id in node.value.items():
        if token_id in first:
            return node.error(
                f"the tokens {first[token_id]!r} and {token!r} have the same id, {token_id}; expected unique ids"
            )
        first[token_id] = token
    raise AssertionError("no repeated id")  # the caller found one


def read_merges(node: Node, vocab: Mapping[str, int], prefix: str) -> Sequence[tuple[str, str]]:
    """Check merges in either form, ``["a", "b"]`` or ``"a b"``, and return them in order of rank."""
    if isinstance(node.value, ColumnMerges) and node.value.vocab is vocab:
        if prefix:
            raise node.error("these merges are not those of tokens with a prefix")  # they are read again
        return node.value
    if type(node.value) is not list:
        raise node.wrong("an array of merges")
    values: list[Any] = node.value
    kinds = set(map(type, values))
    if kinds == {str}:
        # The reference drops comment lines here too, and refuses tokens with a blank, as it cannot tell
        # where the first one ends.
        kept = values
        if any(map(str.startswith, values, repeat("#version"))):
            kept = [merge for merge in values if not merge.startswith("#version")]
        if kept and set(map(str.count, kept, repeat(" "))) == {1}:
            parts = " ".join(kept).split(" ")
            return check_merges(parts[::2], parts[1::2], vocab, prefix, partial(_merge_error, node))
        pairs = [tuple(merge.split(" ")) for merge in kept]
    elif kinds == {list}:
        pairs = list(map(tuple, values))
    elif not values:
        pairs = []
    else:
        for item in node.items():
            if type(item.value) is not type(values[0]) or type(item.value) not in (str, list):
                raise item.wrong('a merge, ["a", "b"] or "a b", all in the same form')
    if set(map(len, pairs)) - {2}:
        for item in node.items():
            if isinstance(item.value, str):
                if not item.value.startswith("#version") and len(item.value.split(" ")) != 2:
                    raise item.error(
                        f"expected two tokens with one blank between them, got {item.value!r}; "
                        'tokens that hold a blank need the form ["a", "b"]'
                    )
            elif len(item.value) != 2:
                raise item.error(f"expected two tokens, got {len(item.value)}")
    left, right = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return check_merges(left, right, vocab, prefix, partial(_merge_error, node))


def _merge_error(node: Node, index: int, message: str) -> FormatError:
    if node.value and type(node.value[0]) is str:
        kept = [i for i, merge in enumerate(node.value) if not merge.startswith("#version")]
        index = kept[index]
    return FormatError(f"{node.where}: {node.path}[{index}]: {message}")


def check_merges(
    left: Sequence[Any],
    right: Sequence[Any],
    vocab: Mapping[str, int],
    prefix: str,
    make_error: Callable[[int, str], FormatError],
) -> NumberedMerges:
    """Check that the parts and the result of every merge are in the vocabulary.

    The result of (a, b) is a + b without the first ``len(prefix)`` bytes of b, whatever they are. Of a merge
    that comes twice, the reference keeps the later rank.
    """
    find = vocab.get
    try:
        ids: tuple[list[Any], list[Any]] = list(map(find, left)), list(map(find, right))
    except TypeError:  # not hashable
        ids = [None], [None]
    if None in ids[0] or None in ids[1]:
        for index, pair in enumerate(zip(left, right, strict=True)):
            for part in pair:
                if type(part) is not str:
                    raise make_error(index, f"expected two strings, got {list(pair)!r}")
                if part not in vocab:
                    raise make_error(index, f"the part {part!r} of this merge is not in the vocabulary")
    results: Iterable[Any] = map(add, left, right)
    if prefix:
        results = [_strip_join(a, b, prefix) for a, b in zip(left, right, strict=True)]
    made: list[Any] = list(map(find, results))
    if None in made:
        index = made.index(None)
        raise make_error(index, f"the result of merging {left[index]!r} and {right[index]!r} is not in the vocabulary")
    pairs: Sequence[tuple[str, str]] = list(zip(left, right, strict=True))
    if len(set(made)) != len(made):  # else no pair can come twice
        ranks = {pair: rank for rank, pair in enumerate(pairs)}
        if len(ranks) != len(pairs):
            order = sorted(ranks.values())
            pairs = [pairs[rank] for rank in order]
            ids, made = ([ids[0][r] for r in order], [ids[1][r] for r in order]), [made[r] for r in order]
    merges = NumberedMerges(pairs)
    merges.vocab, merges.ids = vocab, (*ids, made)
    return merges


def _strip_join(a: str, b: str, prefix: str) -> str | None:
    tail = b.encode()
    cut = len(prefix.encode())
    if cut > len(tail):
        return None
    try:
        return a + tail[cut:].decode()
    except UnicodeDecodeError:
        return None


# ---------------------------------------------------------------------------------------------- added tokens


def _added_tokens(root: Node) -> AddedTokens:
    """The added tokens, as the file states them."""
    nothing = AddedTokens((), [], [])
    columns: list[tuple[Any, ...]] = []
    if "added_tokens" not in root.mapping():
        return nothing
    node = root.child("added_tokens")
    if type(node.value) is not list:
        raise node.wrong("an array of added tokens")
    # The quick check first, the one that words the error after it.
    try:
        columns = list(zip(*map(itemgetter("id", "content", *_FLAGS), node.value), strict=True))
        valid = not columns or (
            set(map(type, columns[0])) == {int}
            and 0 <= min(columns[0]) <= max(columns[0]) < MAX_TOKEN_ID
            and set(map(type, columns[1])) == {str}
            and set(map(type, chain.from_iterable(columns[2:]))) == {bool}
        )
    except (KeyError, TypeError, IndexError):
        valid = False
    if not valid:
        for bad in node.items():
            bad.child("id").integer(limit=MAX_TOKEN_ID)
            bad.child("content").string()
            for flag in _FLAGS:
                bad.child(flag).boolean()
    if not columns:
        return nothing
    flags = list(map(_FLAG_BITS.__getitem__, zip(*columns[2:], strict=True)))
    return AddedTokens(columns[1], list(columns[0]), flags)


#: The flags of an added token, and their bits in :class:`~jittok.spec.AddedTokens`.
_FLAGS = {
    "single_word": TOKEN_SINGLE_WORD,
    "lstrip": TOKEN_STRIP_LEFT,
    "rstrip": TOKEN_STRIP_RIGHT,
    "normalized": TOKEN_NORMALIZED,
    "special": TOKEN_SPECIAL,
}
#: The sum of the bits of each combination.
_FLAG_BITS = {
    given: sum(bit for flag, bit in zip(given, _FLAGS.values(), strict=True) if flag)
    for given in product((False, True), repeat=len(_FLAGS))
}


def assign_added_ids(tokens: Iterable[AddedToken], vocab: Mapping[str, int]) -> AddedTokens:
    """Give added tokens the ids that the reference gives them, whatever the file says.

    The reference adds them anew by their content: one that is in the model's vocabulary keeps that id; any
    other gets the next free id, counted from the *number* of entries of the vocabulary, so that a vocabulary
    with holes can see an id used twice (the added token then hides the other). A content that comes again
    takes the later flags, but stays special once it was. Empty contents are dropped.

    Returns
    -------
    AddedTokens
        In order of id.
    """
    added = AddedTokens.of(tokens)
    if len(added) < _FEW and "" not in added.contents and len(set(added.contents)) == len(added):
        new = count(len(vocab))
        if type(vocab) is dict:
            known = list(map(vocab.get, added.contents, repeat(-1)))
        else:
            known = find_ids(vocab, added.contents).tolist()
        result = added.with_ids([next(new) if token_id < 0 else token_id for token_id in known])
        if result.rises:
            return result
    if "" in added.contents:
        added = added.take(np.array([place for place, content in enumerate(added.contents) if content], np.int64))
    contents, flags = added.contents, added.flags
    if len(set(contents)) < len(contents):
        places: dict[str, int] = {}
        again = flags.copy()
        last = []
        for place, content in enumerate(contents):
            first = places.setdefault(content, place)
            # The id is that of the first, the flags are those of the last.
            again[first] = flags[place] | (again[first] & TOKEN_SPECIAL)
            last.append(first)
        # Of two tokens with one id, the one that was added last counts.
        order = list(dict.fromkeys(reversed(last)))[::-1]
        in_order = np.array(sorted(set(last)), np.int64)
        ids = dict(zip(in_order.tolist(), _new_ids([contents[place] for place in in_order], vocab).tolist(), strict=True))
        contents = tuple(contents[place] for place in order)
        flags = again[order]
        numbers = np.array([ids[place] for place in order], np.int64)
    else:
        numbers = _new_ids(contents, vocab)
    added = AddedTokens(contents, numbers, flags).last_of_each_id()
    return added if added.rises else added.take(np.argsort(added.ids, kind="stable"))


def _new_ids(contents: Sequence[str], vocab: Mapping[str, int]) -> NDArray[np.int64]:
    """The id of each content in the vocabulary; of those that are not there, numbers from its size on."""
    ids = find_ids(vocab, contents)
    new = np.flatnonzero(ids < 0)
    if len(new):
        ids[new] = len(vocab) + np.arange(len(new))
    return ids


# ------------------------------------------------------------------------------------- chains of components


def read_normalizers(block: Mapping[str, Any]) -> tuple[Normalizer, ...]:
    """Read what a tokenizer.json may have in the field "normalizer".

    Parameters
    ----------
    block
        The object.

    Raises
    ------
    FormatError, UnsupportedError
        No tokenizer.json could have it, or jittok does not have the component.
    """
    return _flatten(Node(dict(block), "normalizer", ""), "normalizer", _NORMALIZERS, "normalizers")


def read_pre_tokenizers(block: Mapping[str, Any]) -> tuple[PreTokenizer, ...]:
    """Read what a tokenizer.json may have in the field "pre_tokenizer".

    Parameters
    ----------
    block
        The object.

    Raises
    ------
    FormatError, UnsupportedError
        No tokenizer.json could have it, or jittok does not have the component.
    """
    return _flatten(Node(dict(block), "pre_tokenizer", ""), "pre_tokenizer", _PRE_TOKENIZERS, "pretokenizers")


def read_decoders(block: Mapping[str, Any]) -> tuple[Decoder, ...]:
    """Read what a tokenizer.json may have in the field "decoder".

    Parameters
    ----------
    block
        The object.

    Raises
    ------
    FormatError, UnsupportedError
        No tokenizer.json could have it, or jittok does not have the component.
    """
    return _decoders(Node(dict(block), "decoder", ""))


def read_post_processors(block: Mapping[str, Any], known_ids: Container[int]) -> tuple[PostProcessor, ...]:
    """Read what a tokenizer.json may have in the field "post_processor".

    Parameters
    ----------
    block
        The object.
    known_ids
        The ids of all tokens.

    Raises
    ------
    FormatError, UnsupportedError
        No tokenizer.json could have it, or jittok does not have the component.
    """
    steps, takes_pairs = _post_processors(Node(dict(block), "post_processor", ""), known_ids)
    if not takes_pairs:
        raise UnsupportedError("post_processor: these post-processors, one after another, cannot take pairs of texts")
    return steps


def _decoders(node: Node | None) -> tuple[Decoder, ...]:
    decoders: tuple[Decoder, ...] = _flatten(node, "decoder", _DECODERS, "decoders")
    if node is not None and not decoders:
        # An empty Sequence joins the tokens without a blank; no decoder at all joins them with one.
        return (DecodeFuse(),)
    return decoders


def _flatten(
    node: Node | None,
    role: str,
    readers: Mapping[str, Callable[[Node], Step]],
    members: str,
    depth: int = 0,
) -> tuple[Step, ...]:
    """Read a component, or the components of a Sequence, which run one after the other."""
    if node is None:
        return ()
    kind = _type_of(node, role)
    if kind == "Sequence":
        if depth == _MAX_NESTING:
            raise node.error(f"Sequences nested more than {_MAX_NESTING} deep")
        steps: list[Step] = []
        for member in node.child(members).items():
            steps += _flatten(member, role, readers, members, depth + 1)
        return tuple(steps)
    if kind not in readers:
        raise UnsupportedError(
            f"{node.place}: the {role} {kind} is not supported; supported are Sequence, {', '.join(readers)}"
        )
    return (readers[kind](node),)


def _type_of(node: Node, role: str) -> str:
    if type(node.value) is not dict or type(node.value.get("type")) is not str:
        raise node.error(f'expected a {role}, an object with a field "type"')
    return node.value["type"]  # type: ignore[no-any-return]


def _pattern(node: Node) -> tuple[str, bool]:
    """Return the text of a ``{"String": ...}`` or ``{"Regex": ...}`` and whether it is a regex."""
    if type(node.value) is not dict or len(node.value) != 1 or not node.value.keys() <= {"String", "Regex"}:
        raise node.wrong('{"String": ...} or {"Regex": ...}')
    is_regex = "Regex" in node.value
    return node.child("Regex" if is_regex else "String").string(), is_regex


def _replace(node: Node) -> Replace:
    pattern, is_regex = _pattern(node.child("pattern"))
    return Replace(pattern, node.child("content").string(), is_regex)


def _bert_normalizer(node: Node) -> BertNormalizer:
    strip_accents = node.optional("strip_accents")
    clean_text, handle_chinese_chars, lowercase = _BERT_NORMALIZER.of(node)
    strips = None if strip_accents is None else strip_accents.boolean()
    return BertNormalizer(clean_text, handle_chinese_chars, strips, lowercase)


_BERT_NORMALIZER = Fields(clean_text=bool, handle_chinese_chars=bool, lowercase=bool)


def _precompiled(node: Node) -> Precompiled:
    text = node.child("precompiled_charsmap").string()
    try:
        blob = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise node.child("precompiled_charsmap").error("expected base64") from None
    from jittok.build.charsmap import parse_charsmap

    parse_charsmap(blob, node.child("precompiled_charsmap").place)
    return Precompiled(blob)


_NORMALIZERS: dict[str, Callable[[Node], Normalizer]] = {
    "NFC": lambda node: UnicodeForm("NFC"),
    "NFD": lambda node: UnicodeForm("NFD"),
    "NFKC": lambda node: UnicodeForm("NFKC"),
    "NFKD": lambda node: UnicodeForm("NFKD"),
    "ByteLevel": lambda node: MapBytes(),
    "Lowercase": lambda node: Lowercase(),
    "Replace": _replace,
    "Prepend": lambda node: Prepend(node.child("prepend").string()),
    "Strip": lambda node: Strip(node.child("strip_left").boolean(), node.child("strip_right").boolean()),
    "StripAccents": lambda node: StripAccents(),
    "BertNormalizer": _bert_normalizer,
    "Nmt": lambda node: Nmt(),
    "Precompiled": _precompiled,
}


def _byte_level(node: Node) -> ByteLevel:
    use_regex = node.child("use_regex").boolean() if "use_regex" in node.mapping() else True
    return ByteLevel(node.child("add_prefix_space").boolean(), use_regex, node.child("trim_offsets").boolean())


def _split(node: Node) -> Split:
    pattern, is_regex = _pattern(node.child("pattern"))
    behavior = _BEHAVIORS[node.child("behavior").one_of(*_BEHAVIORS)]
    return Split(pattern, behavior, node.child("invert").boolean(), is_regex)


def _metaspace(node: Node) -> Metaspace:
    replacement = node.child("replacement").character()
    scheme = "always"
    if "prepend_scheme" in node.mapping():
        scheme = node.child("prepend_scheme").one_of("always", "first", "never")
    add_prefix_space = node.optional("add_prefix_space")
    if add_prefix_space is not None and not add_prefix_space.boolean() and scheme != "never":
        raise node.error(f'add_prefix_space is false but prepend_scheme is {scheme!r}; set prepend_scheme to "never"')
    split = node.optional("split")
    _optional_string(node, "str_rep")  # of old files; only its type is looked at
    return Metaspace(replacement, scheme, True if split is None else split.boolean())  # type: ignore[arg-type]


def _punctuation(node: Node) -> Punctuation:
    behavior = "Isolated"
    if "behavior" in node.mapping():
        behavior = node.child("behavior").one_of(*_BEHAVIORS)
    return Punctuation(_BEHAVIORS[behavior])


def _fixed_length(node: Node) -> FixedLength:
    length = node.child("length").integer() if "length" in node.mapping() else 5
    if length == 0:
        raise node.child("length").wrong("a length of at least 1")
    return FixedLength(length)


_PRE_TOKENIZERS: dict[str, Callable[[Node], PreTokenizer]] = {
    "ByteLevel": _byte_level,
    "Split": _split,
    "Digits": lambda node: Digits(node.child("individual_digits").boolean()),
    "Metaspace": _metaspace,
    "Whitespace": lambda node: Whitespace(),
    "WhitespaceSplit": lambda node: WhitespaceSplit(),
    "Punctuation": _punctuation,
    "BertPreTokenizer": lambda node: BertPreTokenizer(),
    "CharDelimiterSplit": lambda node: CharDelimiterSplit(node.child("delimiter").character()),
    "FixedLength": _fixed_length,
    "UnicodeScripts": lambda node: UnicodeScripts(),
}


def _decode_byte_level(node: Node) -> DecodeByteLevel:
    _byte_level(node)  # the options mean nothing here, but must be there
    return DecodeByteLevel()


def _decode_replace(node: Node) -> DecodeReplace:
    replace = _replace(node)
    return DecodeReplace(replace.pattern, replace.content, replace.is_regex)


def _decode_strip(node: Node) -> DecodeStrip:
    start, stop = node.child("start").integer(), node.child("stop").integer()
    return DecodeStrip(node.child("content").character(), start, stop)


def _decode_ctc(node: Node) -> DecodeCTC:
    pad, delimiter = node.child("pad_token").string(), node.child("word_delimiter_token").string()
    return DecodeCTC(pad, delimiter, node.child("cleanup").boolean())


def _decode_metaspace(node: Node) -> DecodeMetaspace:
    metaspace = _metaspace(node)
    return DecodeMetaspace(metaspace.replacement, metaspace.prepend_scheme)


_DECODE_WORD_PIECE = Fields(prefix=str, cleanup=bool)
_DECODERS: dict[str, Callable[[Node], Decoder]] = {
    "ByteLevel": _decode_byte_level,
    "Fuse": lambda node: DecodeFuse(),
    "Replace": _decode_replace,
    "ByteFallback": lambda node: DecodeByteFallback(),
    "Strip": _decode_strip,
    "Metaspace": _decode_metaspace,
    "CTC": _decode_ctc,
    "BPEDecoder": lambda node: DecodeBPE(node.child("suffix").string()),
    "WordPiece": lambda node: DecodeWordPiece(*_DECODE_WORD_PIECE.of(node)),
}


# ------------------------------------------------------------------------------------------ post-processors


def _post_processors(node: Node | None, known_ids: Container[int]) -> tuple[tuple[PostProcessor, ...], bool]:
    """Read the post-processors, and whether they can take pairs.

    Measured: each runs on what the one before it made. A Template sets the type ids even where no special
    tokens are asked for; without one, the second sequence of a pair has type id 1.
    """
    result = composed(_flatten_post_processors(node, known_ids, 0))
    if result is None:
        assert node is not None
        raise UnsupportedError(
            f"{node.place}: of several post-processors that add special tokens, one leaves what the next cannot take (a "
            "template takes one part or two), or changes type ids only where special tokens are added"
        )
    return result


def _flatten_post_processors(node: Node | None, known_ids: Container[int], depth: int) -> tuple[PostProcessor | Around, ...]:
    if node is None:
        return ()
    kind = _type_of(node, "post-processor")
    if kind not in ("RobertaProcessing", "BertProcessing") and {"sep", "cls"} <= node.value.keys():
        # The reference looks at these two fields before it looks at the type.
        raise node.error(f'a {kind} must not have the fields "sep" and "cls"')
    if kind == "Sequence":
        if depth == _MAX_NESTING:
            raise node.error(f"Sequences nested more than {_MAX_NESTING} deep")
        steps: list[PostProcessor | Around] = []
        for member in node.child("processors").items():
            steps += _flatten_post_processors(member, known_ids, depth + 1)
        return tuple(steps)
    if kind == "ByteLevel":
        byte_level = _byte_level(node)
        return (TrimOffsets(byte_level.add_prefix_space),) if byte_level.trim_offsets else ()
    if kind == "TemplateProcessing":
        return (_template(node, known_ids),)
    if kind == "RobertaProcessing":
        return _roberta(node, known_ids)
    if kind == "BertProcessing":
        # The reference takes it for the other kind when it has the other kind's fields.
        if type(node.value.get("trim_offsets")) is type(node.value.get("add_prefix_space")) is bool:
            return _roberta(node, known_ids)
        return (_around(node, known_ids, like_roberta=False),)
    raise UnsupportedError(
        f"{node.place}: the post-processor {kind} is not supported; supported are Sequence, ByteLevel, "
        "TemplateProcessing, RobertaProcessing, BertProcessing"
    )


def _roberta(node: Node, known_ids: Container[int]) -> tuple[PostProcessor | Around, ...]:
    """RobertaProcessing: offsets trimmed first, then ``<s> A </s>`` or ``<s> A </s></s> B </s>``, type ids 0."""
    trim_offsets = node.child("trim_offsets").boolean()
    add_prefix_space = node.child("add_prefix_space").boolean()
    around = _around(node, known_ids, like_roberta=True)
    return (TrimOffsets(add_prefix_space), around) if trim_offsets else (around,)


def _around(node: Node, known_ids: Container[int], *, like_roberta: bool) -> Around:
    def token(key: str) -> TemplatePiece:
        pair = list(node.child(key).items())
        if len(pair) != 2:
            raise node.child(key).wrong("[token, id]")
        content = pair[0].string()
        return TemplatePiece(0, ids=(_known_id(pair[1], known_ids),), tokens=(content,))

    return Around(token("cls"), token("sep"), like_roberta)


def _known_id(node: Node, known_ids: Container[int]) -> int:
    token_id = node.integer()
    if token_id not in known_ids:
        raise node.error(f"the id {token_id} is neither in the vocabulary nor an added token's")
    return token_id


def _template(node: Node, known_ids: Container[int]) -> Template:
    special = node.child("special_tokens")
    # The quick checks first, the ones that word the error after them.
    tokens = {
        key: _template_token(entry, known_ids) or _checked_template_token(special.child(key), known_ids)
        for key, entry in special.mapping().items()
    }

    def pieces(name: str) -> tuple[TemplatePiece, ...]:
        template = node.child(name)
        return tuple(
            [
                _template_piece(entry, tokens) or _checked_template_piece(template.item(index), tokens)
                for index, entry in enumerate(template.array())
            ]
        )

    single = pieces("single")
    if "B" in [piece.sequence for piece in single]:
        raise node.child("single").error("the template for one sequence uses sequence B")
    return Template(single, pieces("pair"))


#: Ids and contents of what a template takes for one token.
_TemplateToken = tuple[tuple[int, ...], tuple[str, ...]]


def _template_token(entry: Any, known_ids: Container[int]) -> _TemplateToken | None:
    """Read a special token of a template; None if anything is wrong with it."""
    try:
        ids, texts = entry["ids"], entry["tokens"]
        if type(entry["id"]) is not str or type(ids) is not list or type(texts) is not list or len(ids) != len(texts):
            return None
    except (KeyError, TypeError):
        return None
    for token_id, text in zip(ids, texts, strict=True):
        if type(token_id) is not int or type(text) is not str or token_id not in known_ids:
            return None
    return tuple(ids), tuple(texts)


def _checked_template_token(entry: Node, known_ids: Container[int]) -> _TemplateToken:
    """Read a special token of a template, or raise."""
    entry.child("id").string()
    ids = tuple(_known_id(item, known_ids) for item in entry.child("ids").items())
    texts = tuple(item.string() for item in entry.child("tokens").items())
    if len(ids) != len(texts):
        raise entry.error(f"{len(ids)} ids but {len(texts)} tokens; expected as many of each")
    return ids, texts


def _template_piece(entry: Any, tokens: Mapping[str, _TemplateToken]) -> TemplatePiece | None:
    """Read an item of a template; None if anything is wrong with it."""
    try:
        ((kind, body),) = entry.items()
        name, type_id = body["id"], body["type_id"]
        if type(type_id) is not int or not 0 <= type_id < 1 << 31:
            return None
        if kind == "SpecialToken":
            return TemplatePiece(type_id, None, *tokens[name])
        return TemplatePiece(type_id, name) if kind == "Sequence" and name in ("A", "B") else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _checked_template_piece(item: Node, tokens: Mapping[str, _TemplateToken]) -> TemplatePiece:
    """Read an item of a template, or raise."""
    kinds = item.value.keys() if type(item.value) is dict else ()
    if len(kinds) != 1 or not set(kinds) <= {"Sequence", "SpecialToken"}:
        raise item.wrong('{"Sequence": ...} or {"SpecialToken": ...}')
    kind = next(iter(kinds))
    body = item.child(kind)
    type_id = body.child("type_id").integer(limit=1 << 31)
    if kind == "Sequence":
        name = body.child("id").one_of("A", "B")
        return TemplatePiece(type_id, name)  # type: ignore[arg-type]
    name = body.child("id").string()
    if name not in tokens:
        raise body.child("id").error(f"the template names the token {name!r}, which is not among its special_tokens")
    return TemplatePiece(type_id, None, *tokens[name])


# ------------------------------------------------------------------------------------ truncation and padding


def _truncation(node: Node | None) -> dict[str, Any] | None:
    if node is None:
        return None
    direction = node.child("direction").one_of("Left", "Right") if "direction" in node.mapping() else "Right"
    return {
        "direction": direction,
        "max_length": node.child("max_length").integer(limit=1 << 64),
        "strategy": node.child("strategy").one_of("LongestFirst", "OnlyFirst", "OnlySecond"),
        "stride": node.child("stride").integer(limit=1 << 64),
    }


def _padding(node: Node | None) -> dict[str, Any] | None:
    if node is None:
        return None
    strategy = node.child("strategy")
    if type(strategy.value) is dict and strategy.value.keys() == {"Fixed"}:
        strategy.child("Fixed").integer(limit=1 << 64)
    elif strategy.value != "BatchLongest":
        raise strategy.wrong('"BatchLongest" or {"Fixed": length}')
    multiple = node.optional("pad_to_multiple_of")
    return {
        "strategy": strategy.value,
        "direction": node.child("direction").one_of("Left", "Right"),
        "pad_to_multiple_of": None if multiple is None else multiple.integer(limit=1 << 64),
        "pad_id": node.child("pad_id").integer(),
        "pad_type_id": node.child("pad_type_id").integer(),
        "pad_token": node.child("pad_token").string(),
    }


# -------------------------------------------------------------------------------------------------- writing


def write(spec: TokenizerSpec) -> bytes:
    """Write a spec as a tokenizer.json that the reference loads with the same behaviour.

    Parameters
    ----------
    spec
        Its model must be a :class:`~jittok.spec.BPEModel`, :class:`~jittok.spec.WordPieceModel`,
        :class:`~jittok.spec.WordLevelModel` or :class:`~jittok.spec.UnigramModel`; of others
        :func:`jittok.formats.conversion.convert` makes one.

    Returns
    -------
    bytes
        The file, UTF-8.

    Raises
    ------
    UnsupportedError
        The format cannot say what the spec says.
    """
    model = spec.model
    if not isinstance(model, BPEModel | WordPieceModel | WordLevelModel | UnigramModel):
        kind, other = ("byte ranks", ".tiktoken") if isinstance(model, RankModel) else ("a SentencePiece model", ".model")
        raise UnsupportedError(f"a tokenizer.json cannot be written from {kind}; save as {other} or jittok")
    in_order = spec.added.take(np.argsort(spec.added.ids, kind="stable"))
    if assign_added_ids(spec.added, model.vocab) != in_order:
        raise UnsupportedError(
            "a tokenizer.json cannot keep the ids of these added tokens: tokenizers numbers those that are not "
            "in the vocabulary one by one from the vocabulary's size"
        )
    document = {
        "version": "1.0",
        "truncation": spec.stored_truncation,
        "padding": spec.stored_padding,
        "added_tokens": [
            {
                "id": token.id,
                "content": token.content,
                "single_word": token.single_word,
                "lstrip": token.lstrip,
                "rstrip": token.rstrip,
                "normalized": token.normalized,
                "special": token.special,
            }
            for token in spec.added_tokens
        ],
        **{name: component(spec, name) for name in _WRITERS},
        "model": _write_model(model, spec.extra.get("dropout")),
    }
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    if isinstance(model, UnigramModel):
        # No string can hold this, as its quotation marks would have backslashes.
        text = text.replace('"vocab":[]', _write_scored(model))
    return text.encode("utf-8")


def component(spec: TokenizerSpec, name: str) -> dict[str, Any] | None:
    """Return a field of a tokenizer.json: "normalizer", "pre_tokenizer", "post_processor" or "decoder".

    Parameters
    ----------
    spec
        A tokenizer.
    name
        The field.

    Raises
    ------
    UnsupportedError
        The format cannot say what the spec says.
    """
    field, members, write_step = _WRITERS[name]
    return _chain([write_step(step) for step in getattr(spec, field)], members)


def _write_score(score: float) -> str:
    """A decimal number that the reference reads as this score: mostly the shortest.

    A few floats in a thousand are read from no number; they never come out of a file, and get the nearest that is.
    """
    candidates = [repr(score)]
    if read_score(candidates[0]) == score:
        return candidates[0]
    near = score
    for _ in range(4):
        near = math.nextafter(near, math.inf)
    for _ in range(9):
        for digits in (16, 17, 18, 19):
            mantissa, exponent = f"{near:.{digits - 1}e}".split("e")
            # Zeros at the end change nothing but how the number is rounded.
            candidates += [f"{mantissa}{zeros}e{exponent}" for zeros in ("", "0", "00", "000")[: 20 - digits]]
        near = math.nextafter(near, -math.inf)
    return min(candidates, key=lambda text: abs(read_score(text) - score))


def _write_scored(model: UnigramModel) -> str:
    """The vocabulary of a Unigram model."""
    entries = (
        f"[{json.dumps(piece, ensure_ascii=False)},{_write_score(score)}]"
        for piece, score in zip(model.pieces, model.scores, strict=True)
    )
    return f'"vocab":[{",".join(entries)}]'


def _write_model(
    model: BPEModel | WordPieceModel | WordLevelModel | UnigramModel, dropout: float | None
) -> dict[str, Any]:
    if isinstance(model, UnigramModel):
        return {
            "type": "Unigram",
            "unk_id": model.unk_id,
            "vocab": [],  # put in later, as the scores are not the shortest decimal numbers
            "byte_fallback": model.byte_fallback,
        }
    if isinstance(model, WordPieceModel):
        return {
            "type": "WordPiece",
            "unk_token": model.unk_token,
            "continuing_subword_prefix": model.continuing_subword_prefix,
            "max_input_chars_per_word": model.max_input_chars_per_word,
            "vocab": dict(model.vocab),
        }
    if isinstance(model, WordLevelModel):
        return {"type": "WordLevel", "vocab": dict(model.vocab), "unk_token": model.unk_token}
    return {
        "type": "BPE",
        "dropout": dropout,
        "unk_token": model.unk_token,
        "continuing_subword_prefix": model.continuing_subword_prefix,
        "end_of_word_suffix": model.end_of_word_suffix,
        "fuse_unk": model.fuse_unk,
        "byte_fallback": model.byte_fallback,
        "ignore_merges": model.ignore_merges,
        "vocab": dict(model.vocab),
        "merges": list(model.merges),
    }


def _chain(steps: list[dict[str, Any]], members: str) -> dict[str, Any] | None:
    if not steps:
        return None
    return steps[0] if len(steps) == 1 else {"type": "Sequence", members: steps}


def _write_pattern(pattern: str, is_regex: bool) -> dict[str, str]:
    return {"Regex" if is_regex else "String": pattern}


def _write_normalizer(step: Normalizer) -> dict[str, Any]:
    if isinstance(step, UnicodeForm):
        return {"type": step.form}
    if isinstance(step, Lowercase):
        return {"type": "Lowercase"}
    if isinstance(step, Replace):
        return {"type": "Replace", "pattern": _write_pattern(step.pattern, step.is_regex), "content": step.content}
    if isinstance(step, Prepend):
        return {"type": "Prepend", "prepend": step.content}
    if isinstance(step, StripAccents):
        return {"type": "StripAccents"}
    if isinstance(step, BertNormalizer):
        return {
            "type": "BertNormalizer",
            "clean_text": step.clean_text,
            "handle_chinese_chars": step.handle_chinese_chars,
            "strip_accents": step.strip_accents,
            "lowercase": step.lowercase,
        }
    if isinstance(step, Nmt):
        return {"type": "Nmt"}
    if isinstance(step, MapBytes):
        return {"type": "ByteLevel"}
    if isinstance(step, Precompiled):
        return {"type": "Precompiled", "precompiled_charsmap": b64encode(step.charsmap).decode()}
    if isinstance(step, SentencePieceNormalizer):
        raise UnsupportedError("a tokenizer.json cannot hold SentencePiece's normalizer; save as .model or jittok")
    if isinstance(step, LlamaCppCleanUp):
        raise UnsupportedError("a tokenizer.json cannot hold llama.cpp's clean-up; save as jittok")
    return {"type": "Strip", "strip_left": step.left, "strip_right": step.right}


def _write_pre_tokenizer(step: PreTokenizer) -> dict[str, Any]:
    if isinstance(step, ByteLevel):
        return {
            "type": "ByteLevel",
            "add_prefix_space": step.add_prefix_space,
            "trim_offsets": step.trim_offsets,
            "use_regex": step.use_regex,
        }
    if isinstance(step, Digits):
        return {"type": "Digits", "individual_digits": step.individual}
    if isinstance(step, Metaspace):
        return {
            "type": "Metaspace",
            "replacement": step.replacement,
            "prepend_scheme": step.prepend_scheme,
            "split": step.split,
        }
    if isinstance(step, Punctuation):
        return {"type": "Punctuation", "behavior": _BEHAVIOR_NAMES[step.behavior]}
    if isinstance(step, CharDelimiterSplit):
        return {"type": "CharDelimiterSplit", "delimiter": step.delimiter}
    if isinstance(step, FixedLength):
        return {"type": "FixedLength", "length": step.length}
    if isinstance(step, Whitespace | WhitespaceSplit | BertPreTokenizer | UnicodeScripts):
        return {"type": type(step).__name__}
    if isinstance(step, DigitGroups):
        raise UnsupportedError("a tokenizer.json cannot hold llama.cpp's groups of digits; save as jittok")
    if step.is_regex and step.dialect != "oniguruma":
        raise UnsupportedError(f"a tokenizer.json cannot hold a pattern of the {step.dialect} dialect: {step.pattern}")
    return {
        "type": "Split",
        "pattern": _write_pattern(step.pattern, step.is_regex),
        "behavior": _BEHAVIOR_NAMES[step.behavior],
        "invert": step.invert,
    }


def _write_post_processor(step: PostProcessor) -> dict[str, Any]:
    if isinstance(step, TrimOffsets):
        return {
            "type": "ByteLevel",
            "add_prefix_space": step.add_prefix_space,
            "trim_offsets": True,
            "use_regex": True,
        }
    if step.pair is None:
        raise UnsupportedError("a tokenizer.json needs a template for pairs too")
    special: dict[str, Any] = {}

    def piece(item: TemplatePiece) -> dict[str, Any]:
        if item.sequence is not None:
            return {"Sequence": {"id": item.sequence, "type_id": item.type_id}}
        name = "".join(item.tokens)
        ids, tokens = list(item.ids), list(item.tokens)
        while name in special and (special[name]["ids"], special[name]["tokens"]) != (ids, tokens):
            name += "'"  # another token of that name
        special[name] = {"id": name, "ids": ids, "tokens": tokens}
        return {"SpecialToken": {"id": name, "type_id": item.type_id}}

    single = [piece(item) for item in step.single]
    pair = [piece(item) for item in step.pair]
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special}


def _write_decoder(step: Decoder) -> dict[str, Any]:
    if isinstance(step, DecodeByteLevel):
        return {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    if isinstance(step, DecodeFuse):
        return {"type": "Fuse"}
    if isinstance(step, DecodeReplace):
        return {"type": "Replace", "pattern": _write_pattern(step.pattern, step.is_regex), "content": step.content}
    if isinstance(step, DecodeByteFallback):
        return {"type": "ByteFallback"}
    if isinstance(step, DecodeStrip):
        return {"type": "Strip", "content": step.content, "start": step.start, "stop": step.stop}
    if isinstance(step, DecodeMetaspace):
        return {
            "type": "Metaspace",
            "replacement": step.replacement,
            "prepend_scheme": step.prepend_scheme,
            "split": True,
        }
    if isinstance(step, DecodeWordPiece):
        return {"type": "WordPiece", "prefix": step.prefix, "cleanup": step.cleanup}
    if isinstance(step, DecodeCTC):
        return {
            "type": "CTC",
            "pad_token": step.pad_token,
            "word_delimiter_token": step.word_delimiter_token,
            "cleanup": step.cleanup,
        }
    if isinstance(step, DecodeSentencePiece):
        raise UnsupportedError("a tokenizer.json cannot hold SentencePiece's decoder; save as .model or jittok")
    if isinstance(step, DecodeLlamaCpp | DecodeMarian):
        raise UnsupportedError(f"a tokenizer.json cannot hold the decoder {type(step).__name__}; save as jittok")
    return {"type": "BPEDecoder", "suffix": step.suffix}


#: By field: the attribute of a spec, the field of a Sequence that has its members, and what writes one of them.
_WRITERS: dict[str, tuple[str, str, Callable[[Any], dict[str, Any]]]] = {
    "normalizer": ("normalizers", "normalizers", _write_normalizer),
    "pre_tokenizer": ("pre_tokenizers", "pretokenizers", _write_pre_tokenizer),
    "post_processor": ("post_processors", "processors", _write_post_processor),
    "decoder": ("decoders", "decoders", _write_decoder),
}

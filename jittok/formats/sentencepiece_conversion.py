"""SentencePiece's models as what a tokenizer.json can say, and back.

Merges carry over exactly: whichever order a model of pieces with scores merges in, each piece is only ever made of one
pair (:func:`jittok.build.piece_tables.last_pairs`), so that listing these pairs in the order of the scores is the same
model. What remains different is noted, by sentences that say for which texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from jittok.errors import FormatError, UnsupportedError
from jittok.formats.sentencepiece_model import make_spec
from jittok.spec import (
    AddedToken,
    BPEModel,
    DecodeByteFallback,
    DecodeFuse,
    Decoder,
    DecodeReplace,
    DecodeSentencePiece,
    DecodeStrip,
    Metaspace,
    Normalizer,
    PieceType,
    Precompiled,
    Prepend,
    PreTokenizer,
    Replace,
    SentencePieceModel,
    SentencePieceNormalizer,
    Strip,
    TokenizerSpec,
    UnigramModel,
    WhitespaceSplit,
)

_BLANK = "\u2581"
_BLANKS = Replace(" {2,}", " ", is_regex=True)
#: Blanks that come last, or U+2581, which SentencePiece takes for them there.
_LAST_BLANKS = Replace(f"[ {_BLANK}]+\\z", "", is_regex=True)

#: Where ids may differ.
NOTE_SUMS = (
    "scores are added in float64 by tokenizers, in float32 by sentencepiece: two segmentations whose scores are equal but "
    "for rounding may change places"
)
NOTE_RULES = (
    "rules of normalization are applied to grapheme clusters by tokenizers, to the longest match by sentencepiece: "
    "characters with several combining marks may come out differently"
)
NOTE_SYMBOLS = (
    "tokenizers normalizes each part of a text between added tokens for itself: blanks beside user-defined symbols and "
    "other added tokens, the blank in front of a text that begins with one, and blanks at the end of a text, differ"
)
NOTE_BLANKS = (
    "blanks at the ends of texts, several in a row, and white space other than blanks are treated in another way"
)
NOTE_STRIP = "tokenizers takes all white space off the beginning of texts, sentencepiece only blanks"


def from_sentencepiece(spec: TokenizerSpec) -> tuple[TokenizerSpec, tuple[str, ...]]:
    """Say with the components of a tokenizer.json what a SentencePiece model does.

    Parameters
    ----------
    spec
        Its model must be a :class:`~jittok.spec.SentencePieceModel`.

    Returns
    -------
    spec : TokenizerSpec
        Control and unknown pieces are special tokens, which tokenizers finds in texts unless it is told not to
        (``encode_special_tokens``).
    notes : tuple of str
        For which texts ids may differ; empty: for none.

    Raises
    ------
    UnsupportedError
        It does something that no component of a tokenizer.json does.
    """
    model = spec.model
    assert isinstance(model, SentencePieceModel)
    step = next((step for step in spec.normalizers if isinstance(step, SentencePieceNormalizer)), SentencePieceNormalizer())
    decoder = next((step for step in spec.decoders if isinstance(step, DecodeSentencePiece)), DecodeSentencePiece())
    for holds, what in (
        (model.algorithm == "word", "a model of whole words"),
        (model.treat_whitespace_as_suffix, "blanks behind words (treat_whitespace_as_suffix)"),
        (decoder.denormalizer is not None, "rules of denormalization"),
        (not step.escape_whitespaces, "blanks that stay blanks (escape_whitespaces=False)"),
        (bool(model.of_type(PieceType.UNUSED)), "unused pieces"),
        (bool(spec.added_tokens), "added tokens besides a SentencePiece model's pieces"),
    ):
        if holds:
            raise UnsupportedError(f"a tokenizer.json cannot hold {what}")
    notes = []
    converted: UnigramModel | BPEModel
    if model.algorithm == "unigram":
        notes.append(NOTE_SUMS)
        unknown = model.unk_id if model.unk_id >= 0 else None
        converted = UnigramModel(model.pieces, model.scores, unknown, model.byte_fallback)
    else:
        converted = _as_merges(model)
    if step.charsmap:
        notes.append(NOTE_RULES)
    if step.symbols and (step.add_dummy_prefix or step.remove_extra_whitespaces):
        notes.append(NOTE_SYMBOLS)
    if step.remove_extra_whitespaces and not step.add_dummy_prefix:
        notes.append(NOTE_STRIP)
    special = set(model.of_type(PieceType.CONTROL, PieceType.UNKNOWN))
    added = sorted(special | set(model.of_type(PieceType.USER_DEFINED)))
    result = TokenizerSpec(
        model=converted,
        added_tokens=tuple(
            AddedToken(number, model.pieces[number], special=number in special, normalized=False) for number in added
        ),
        normalizers=_normalizers(step),
        pre_tokenizers=_pre_tokenizers(step, model.pieces),
        decoders=_decoders(decoder, model.byte_fallback),
    )
    return result, tuple(notes)


def _normalizers(step: SentencePieceNormalizer) -> tuple[Normalizer, ...]:
    found: list[Normalizer] = []
    if step.charsmap:
        found.append(Precompiled(step.charsmap))
    if step.remove_extra_whitespaces:
        # With symbols in a text, each part between them is normalised for itself, and blanks beside symbols are to stay.
        if step.symbols:
            found.append(_BLANKS)
        elif step.add_dummy_prefix:
            found += [_BLANKS, _LAST_BLANKS, Prepend(" "), _BLANKS]
        else:
            found += [_BLANKS, _LAST_BLANKS, Strip(right=False)]
    else:
        # Metaspace would put no blank before a text that begins with one.
        found += [*([Prepend(_BLANK)] if step.add_dummy_prefix else []), Replace(" ", _BLANK)]
    return tuple(found)


def _pre_tokenizers(step: SentencePieceNormalizer, pieces: Sequence[str]) -> tuple[PreTokenizer, ...]:
    """Words begin with blanks, unless there are pieces that go across."""
    if not step.remove_extra_whitespaces and crosses(pieces):
        return ()
    with_prefix = step.symbols and step.add_dummy_prefix and step.remove_extra_whitespaces
    scheme: Literal["first", "never"] = "first" if with_prefix else "never"
    return (Metaspace(_BLANK, scheme, split=not crosses(pieces)),)


def crosses(pieces: Iterable[str]) -> bool:
    """Whether some piece goes on behind a blank, so that texts must not be cut at blanks.

    Parameters
    ----------
    pieces
        The pieces.
    """
    return any(_BLANK in piece[1:] for piece in pieces)


def _decoders(step: DecodeSentencePiece, byte_fallback: bool) -> tuple[Decoder, ...]:
    found: list[Decoder] = [DecodeReplace(_BLANK, " ")]
    if byte_fallback:
        found.append(DecodeByteFallback())
    found.append(DecodeFuse())
    if step.drop_first:
        found.append(DecodeStrip(" ", 1, 0))
    return tuple(found)


# ---------------------------------------------------------------------------------------------------- merges


def _as_merges(model: SentencePieceModel) -> BPEModel:
    """The merges of a model of type bpe (or char, which has none)."""
    if len(set(model.pieces)) != len(model.pieces):
        raise UnsupportedError("a tokenizer.json cannot hold two pieces of the same string")
    vocab = {piece: number for number, piece in enumerate(model.pieces)}
    for number in model.of_type(PieceType.UNKNOWN, PieceType.CONTROL):
        if len(model.pieces[number]) == 1:
            raise UnsupportedError(
                f"a tokenizer.json cannot hold the control piece {model.pieces[number]!r} of one character, which texts "
                "would get"
            )
    merges: list[tuple[str, str]] = []
    if model.algorithm == "bpe":
        from jittok.build.piece_tables import last_pairs

        made, left, right, is_tied = last_pairs(
            model.pieces, np.array(model.scores, np.float32), list(model.types), byte_fallback=model.byte_fallback
        )
        for number, *parts in zip(made, left, right, strict=True):
            unknown = next((part for part in parts if part not in vocab), None)
            if unknown is not None:
                raise UnsupportedError(
                    f"a tokenizer.json cannot hold the piece {model.pieces[number]!r}, as {unknown!r} in it is "
                    "no piece"
                )
        merges = list(zip(left, right, strict=True))
        if is_tied:
            merges = _untied([model.scores[number] for number in made], merges)
    unk = model.pieces[model.unk_id] if model.unk_id >= 0 else None
    return BPEModel(vocab, tuple(merges), unk_token=unk, fuse_unk=True, byte_fallback=model.byte_fallback)


def _untied(scores: list[float], merges: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """An order of merges for pieces of which some have the same score, where there is one.

    There is for runs of one character that come last, as blanks in the models of Llama and Mistral do.
    """
    first = next(i for i in range(len(scores) - 1) if scores[i] == scores[i + 1])
    tied = ["".join(merge) for merge in merges[first:]]
    character = tied[0][0]
    lengths = {len(piece) for piece in tied}
    ordered = _run_merges(lengths) if all(piece == character * len(piece) for piece in tied) else None
    kept = merges[:first]
    if (
        ordered is None
        or len({score for score in scores[first:]}) != 1
        or any(character * 2 in left + right for left, right in kept)
    ):
        raise UnsupportedError(
            f"a tokenizer.json cannot hold several pieces of the same score, such as {tied[0]!r} and {tied[1]!r}, of which "
            "sentencepiece merges the one further left first"
        )
    return kept + [(character * left, character * right) for left, right in ordered]


def _run_merges(lengths: set[int]) -> list[tuple[int, int]] | None:
    """Merges for runs of a character that give what merging the leftmost pair first gives; None if none were found.

    Doubling comes first, which makes as many of the longest as there can be, and then what is left over is joined from
    the left. If the longest is a power of two, both ways are the same for all runs if they are for runs of up to twice
    its length: they go on with the rest of a run as if it were alone.
    """
    longest = max(lengths)
    if longest & (longest - 1):
        return None
    pairs = [(half, half) for half in (1 << i for i in range(longest.bit_length())) if 2 * half in lengths]
    pairs += [
        (left, right)
        for left in range(longest, 0, -1)
        for right in range(left - 1, 0, -1)
        if left + right in lengths and (left in lengths or left == 1) and (right in lengths or right == 1)
    ]
    ranks = {pair: rank for rank, pair in enumerate(pairs)}
    leftmost = {(a, b): 0 for a in range(1, longest) for b in range(1, longest) if a + b in lengths}
    for length in range(1, 4 * longest + 1):
        if _merge_run(length, ranks) != _merge_run(length, leftmost):
            return None
    return pairs


def _merge_run(length: int, ranks: dict[tuple[int, int], int]) -> list[int]:
    parts = [1] * length
    while True:
        found = [(ranks[pair], i) for i, pair in enumerate(zip(parts, parts[1:], strict=False)) if pair in ranks]
        if not found:
            return parts
        _, i = min(found)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


# --------------------------------------------------------------------------------- from a tokenizer.json


def to_sentencepiece(spec: TokenizerSpec) -> tuple[TokenizerSpec, tuple[str, ...]]:
    """Say with a SentencePiece model what a tokenizer.json does, where one can.

    Parameters
    ----------
    spec
        Its model must be a :class:`~jittok.spec.UnigramModel`, or a :class:`~jittok.spec.BPEModel` of characters.

    Returns
    -------
    spec : TokenizerSpec
        Special tokens are control pieces, which sentencepiece never finds in texts; other added tokens are user-defined.
    notes : tuple of str
        For which texts ids may differ; empty: for none.

    Raises
    ------
    UnsupportedError
        A SentencePiece model has no such step or model; the message names it.
    """
    model = spec.model
    assert isinstance(model, UnigramModel | BPEModel)
    if spec.post_processors:
        raise UnsupportedError(
            "a SentencePiece model cannot hold a template of special tokens around texts; leave it out, or save as "
            "tokenizer.json or jittok"
        )
    tokens = _pieces_by_id(model.vocab if isinstance(model, BPEModel) else model.pieces, spec.added_tokens)
    types = _types(tokens, spec)
    symbols = tuple(piece for piece, kind in zip(tokens, types, strict=True) if kind == PieceType.USER_DEFINED)
    step, others = _step_of(spec, tokens, symbols)
    notes = list(others)
    if isinstance(model, UnigramModel):
        notes.append(NOTE_SUMS)
        scores = [*model.scores, *([0.0] * (len(tokens) - len(model.scores)))]
        single = [float(np.float32(score)) for score in scores]
        if single != scores:
            notes.append("scores are rounded to float32")
        kind: Literal["unigram", "bpe"] = "unigram"
    else:
        single = _scores_of_merges(model, tokens, types)
        kind = "bpe"
    if step.charsmap:
        notes.append(NOTE_RULES)
    if symbols and (step.add_dummy_prefix or step.remove_extra_whitespaces):
        notes.append(NOTE_SYMBOLS)
    if step.remove_extra_whitespaces and not step.add_dummy_prefix:
        notes.append(NOTE_STRIP)
    try:
        made = make_spec(
            kind,
            list(zip(tokens, single, map(PieceType, types), strict=True)),
            normalizer=step,
            trainer={"byte_fallback": model.byte_fallback, **_pieces_of_roles(tokens, types)},
        )
    except FormatError as error:
        raise UnsupportedError(f"a SentencePiece model cannot hold these tokens: {error}") from None
    if isinstance(model, BPEModel):
        _check_merges(model, made, spec.added_tokens)
    return made, tuple(notes)


def _pieces_by_id(vocab: Mapping[str, int] | Sequence[str], added: Iterable[AddedToken]) -> list[str]:
    ids = dict(vocab) if isinstance(vocab, Mapping) else {piece: i for i, piece in enumerate(vocab)}
    size = len(ids)
    if not isinstance(vocab, Mapping) and size < len(vocab):
        raise UnsupportedError("a SentencePiece model cannot hold two pieces of the same string")
    ids.update({token.content: token.id for token in added})
    by_id = {number: piece for piece, number in ids.items()}
    for number in range(len(ids)):
        if number not in by_id:
            raise UnsupportedError(
                f"a SentencePiece model cannot hold ids with gaps or repeats: none of {len(ids)} tokens "
                f"has the id {number}"
            )
    return [by_id[number] for number in range(len(ids))]


def _types(tokens: Sequence[str], spec: TokenizerSpec) -> list[int]:
    model = spec.model
    assert isinstance(model, UnigramModel | BPEModel)
    added = {token.content: token for token in spec.added_tokens}
    for token in spec.added_tokens:
        if token.single_word or token.lstrip or token.rstrip or token.normalized:
            raise UnsupportedError(
                f"a SentencePiece model cannot hold the added token {token.content!r} with single_word, lstrip, rstrip or "
                "normalized"
            )
    if isinstance(model, UnigramModel):
        unknown = None if model.unk_id is None else model.pieces[model.unk_id]
    else:
        unknown = model.unk_token
    types = []
    for piece in tokens:
        if piece == unknown:
            types.append(PieceType.UNKNOWN)
        elif piece in added:
            types.append(PieceType.CONTROL if added[piece].special else PieceType.USER_DEFINED)
        elif model.byte_fallback and len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
            types.append(PieceType.BYTE)
        else:
            types.append(PieceType.NORMAL)
    return [int(kind) for kind in types]


def _step_of(
    spec: TokenizerSpec, tokens: Sequence[str], symbols: tuple[str, ...]
) -> tuple[SentencePieceNormalizer, tuple[str, ...]]:
    """The normalizer that the steps of a tokenizer.json come from, and where it does something else."""
    charsmap = b""
    steps = spec.normalizers
    if steps and isinstance(steps[0], Precompiled):
        charsmap, steps = steps[0].charsmap, steps[1:]
    crossed = crosses(tokens)
    given = (_ordered(steps), _without_cuts(spec.pre_tokenizers, crossed))
    for prefix in (True, False):
        for extra in (True, False):
            step = SentencePieceNormalizer(charsmap, prefix, extra, symbols=symbols)
            made = _normalizers(replace(step, charsmap=b""))
            if given == (_ordered(made), _without_cuts(_pre_tokenizers(step, tokens), crossed)):
                return step, ()
            # Where nothing is taken out, the marks may also be put in by Metaspace, or before texts are cut.
            if given == (_ordered(made), ()) and not extra:
                return step, ()
    cuts = [s for s in spec.pre_tokenizers if not isinstance(s, WhitespaceSplit)]
    marks = cuts[0] if len(cuts) == 1 else None
    if isinstance(marks, Metaspace) and marks.replacement == _BLANK and (not marks.split or not crossed):
        taken_out = [s for s in steps if isinstance(s, Strip) or s in (_BLANKS, replace(_BLANKS, content=_BLANK))]
        if len(taken_out) == len(steps) and (taken_out or not symbols):
            extra = bool(taken_out) or len(spec.pre_tokenizers) > 1
            prefix = marks.prepend_scheme != "never"
            return SentencePieceNormalizer(charsmap, prefix, extra, symbols=symbols), (NOTE_BLANKS,)
    raise UnsupportedError(
        "a SentencePiece model cannot hold these steps: "
        f"{', '.join(type(step).__name__ for step in (*spec.normalizers, *spec.pre_tokenizers)) or 'none'}; it can only "
        "have a charsmap, blanks taken out, one put in front, and U+2581 for blanks"
    )


def _ordered(steps: Sequence[Normalizer]) -> tuple[Normalizer, ...]:
    """Prepend of a mark and Replace of blanks by marks may change places."""
    return (steps[1], steps[0]) if tuple(steps) == (Replace(" ", _BLANK), Prepend(_BLANK)) else tuple(steps)


def _without_cuts(steps: Sequence[PreTokenizer], crossed: bool) -> tuple[PreTokenizer, ...]:
    """Cuts at marks change nothing where no piece goes across, and Metaspace does nothing to text that has marks."""
    return tuple(
        replace(step, split=True) if isinstance(step, Metaspace) and not crossed else step
        for step in steps
        if step != Metaspace(_BLANK, "never", split=False) and (crossed or step != Metaspace(_BLANK, "never", split=True))
    )


def _pieces_of_roles(tokens: Sequence[str], types: Sequence[int]) -> dict[str, str]:
    """Names of special pieces other than the usual ones."""
    unknown = next((piece for piece, kind in zip(tokens, types, strict=True) if kind == PieceType.UNKNOWN), None)
    return {} if unknown in (None, "<unk>") else {"unk_piece": str(unknown)}


def _scores_of_merges(model: BPEModel, tokens: Sequence[str], types: Sequence[int]) -> list[float]:
    """Scores that fall with the number of the merge; lower ones for all that no merge makes."""
    if not model.byte_fallback and not (model.fuse_unk and model.unk_token in model.vocab):
        raise UnsupportedError(
            "a SentencePiece model needs an unknown token of which several in a row are one (fuse_unk), or byte fallback"
        )
    if model.continuing_subword_prefix or model.end_of_word_suffix:
        raise UnsupportedError("a SentencePiece model cannot hold a subword prefix or suffix")
    from jittok.build.merge_tables import last_pairs

    made, _, _ = last_pairs(model, byte_level=False)
    if model.ignore_merges:
        ids = set(made.tolist())
        bad = next((p for p, kind in zip(tokens, types, strict=True)
                    if kind == PieceType.NORMAL and len(p) > 1 and model.vocab.get(p) not in ids), None)  # fmt: skip
        if bad is not None:
            raise UnsupportedError(
                f"a SentencePiece model cannot find whole words such as {bad!r} that no merge makes (ignore_merges)"
            )
    scores = [0.0] * len(tokens)
    ranks = {number: rank for rank, number in enumerate(made.tolist())}
    others = len(ranks)
    for number, kind in enumerate(types):
        if number in ranks:
            scores[number] = float(-ranks[number])
        elif kind == PieceType.NORMAL and len(tokens[number]) > 1:
            scores[number] = float(-others)
            others += 1
    return scores


def _check_merges(model: BPEModel, made: TokenizerSpec, added: Iterable[AddedToken]) -> None:
    """Refuse where the pieces would merge otherwise than the model's list says."""
    from jittok.build import merge_tables, piece_tables

    pieces = made.model
    assert isinstance(pieces, SentencePieceModel)
    ids, left, right = merge_tables.last_pairs(model, byte_level=False)
    tokens = pieces.pieces
    wanted = [(tokens[i], tokens[a], tokens[b]) for i, a, b in zip(ids.tolist(), left.tolist(), right.tolist(), strict=True)]
    numbers, lefts, rights, _ = piece_tables.last_pairs(
        tokens, np.array(pieces.scores, np.float32), list(pieces.types), byte_fallback=pieces.byte_fallback
    )
    found = list(zip([tokens[i] for i in numbers], lefts, rights, strict=True))
    if found != wanted:
        for pair in (set(found) ^ set(wanted)) or {found[0]}:
            raise UnsupportedError(
                f"a SentencePiece model cannot hold these merges: it would make {pair[0]!r} "
                f"{'also' if pair in found else 'not'} of {pair[1]!r} and {pair[2]!r}"
            )

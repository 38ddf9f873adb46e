"""SentencePiece's unigram models as what a tokenizer.json can say."""

from __future__ import annotations

from typing import Literal

from jittok.errors import UnsupportedError
from jittok.spec import (
    AddedToken,
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
)

_BLANK = "\u2581"


def as_unigram(spec: TokenizerSpec) -> TokenizerSpec:
    """Say with the components of a tokenizer.json what a SentencePiece unigram model does.

    The ids are the same but for a few corners where the libraries differ: tokenizers adds scores in float64, applies
    rules of normalization to grapheme clusters, takes all white space off the ends of text (none where there are
    user-defined symbols), finds control symbols in it, and shows unknown pieces as they are called.

    Parameters
    ----------
    spec
        Its model must be a :class:`~jittok.spec.SentencePieceModel` of the algorithm "unigram".

    Returns
    -------
    TokenizerSpec

    Raises
    ------
    UnsupportedError
        It does something that no component of a tokenizer.json does.
    """
    model = spec.model
    assert isinstance(model, SentencePieceModel) and model.algorithm == "unigram"
    step = next((step for step in spec.normalizers if isinstance(step, SentencePieceNormalizer)), SentencePieceNormalizer())
    decoder = next((step for step in spec.decoders if isinstance(step, DecodeSentencePiece)), DecodeSentencePiece())
    for holds, what in (
        (model.treat_whitespace_as_suffix, "blanks behind words (treat_whitespace_as_suffix)"),
        (decoder.denormalizer is not None, "rules of denormalization"),
        (not step.escape_whitespaces, "blanks that stay blanks (escape_whitespaces=False)"),
        (bool(model.of_type(PieceType.UNUSED)), "unused pieces"),
        (bool(spec.added_tokens), "added tokens besides a SentencePiece model's pieces"),
    ):
        if holds:
            raise UnsupportedError(f"a tokenizer.json cannot hold {what}; save as .model or jittok")
    special = set(model.of_type(PieceType.CONTROL, PieceType.UNKNOWN))
    added = sorted(special | set(model.of_type(PieceType.USER_DEFINED)))
    return TokenizerSpec(
        model=UnigramModel(model.pieces, model.scores, model.unk_id if model.unk_id >= 0 else None, model.byte_fallback),
        added_tokens=tuple(
            AddedToken(number, model.pieces[number], special=number in special, normalized=False) for number in added
        ),
        normalizers=_normalizers(step),
        pre_tokenizers=_pre_tokenizers(step, model),
        decoders=_decoders(decoder, model),
    )


def _normalizers(step: SentencePieceNormalizer) -> tuple[Normalizer, ...]:
    found: list[Normalizer] = []
    if step.charsmap:
        found.append(Precompiled(step.charsmap))
    if step.remove_extra_whitespaces:
        # With symbols in a text, each part between them is normalised for itself, and blanks beside symbols are to stay.
        found += [*([] if step.symbols else [Strip()]), Replace(" {2,}", " ", is_regex=True)]
    else:
        # Metaspace would put no blank before a text that begins with one.
        found += [*([Prepend(_BLANK)] if step.add_dummy_prefix else []), Replace(" ", _BLANK)]
    return tuple(found)


def _pre_tokenizers(step: SentencePieceNormalizer, model: SentencePieceModel) -> tuple[PreTokenizer, ...]:
    """Words begin with blanks, unless there are pieces that go across."""
    crosses = any(_BLANK in piece[1:] for piece in model.pieces)
    scheme: Literal["always", "first", "never"] = "first" if step.symbols else "always"
    if not (step.add_dummy_prefix and step.remove_extra_whitespaces):
        scheme = "never"
    return (Metaspace(_BLANK, scheme, split=not crosses),)


def _decoders(step: DecodeSentencePiece, model: SentencePieceModel) -> tuple[Decoder, ...]:
    found: list[Decoder] = [DecodeReplace(_BLANK, " ")]
    if model.byte_fallback:
        found.append(DecodeByteFallback())
    found.append(DecodeFuse())
    if step.drop_first:
        found.append(DecodeStrip(" ", 1, 0))
    return tuple(found)

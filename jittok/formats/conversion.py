"""One format's tokenizer as another format can say it: the same ids for every text, or an error that says why not.

What two formats cannot agree on for some texts only (sums of scores in float64 and float32) is noted.
"""

from __future__ import annotations

from dataclasses import replace

from jittok.errors import ConversionError, UnsupportedError
from jittok.spec import (
    BPEModel,
    MarianModel,
    RankModel,
    SentencePieceModel,
    Split,
    Template,
    TokenizerSpec,
    UnigramModel,
    WordPieceModel,
)

#: Formats that specs are converted to.
TARGETS = ("tokenizer.json", "sentencepiece", "tiktoken", "vocab.txt", "merges", "jittok")


def convert(
    spec: TokenizerSpec, format: str, *, exact: bool = True, template: bool = True, alone: bool = False
) -> tuple[TokenizerSpec, tuple[str, ...]]:
    """Say in the terms of a format what a spec says.

    Parameters
    ----------
    spec
        Of any format.
    format
        One of :data:`TARGETS`.
    exact
        Refuse where ids may differ for some texts.
    template
        Keep the special tokens that are put around texts. If false they are left out, which some formats cannot hold.
    alone
        The result is written as one file, without the others that stand beside a vocab.txt.

    Returns
    -------
    spec : TokenizerSpec
        What the writer of the format takes.
    notes : tuple of str
        For which texts ids may differ; empty with `exact`.

    Raises
    ------
    ConversionError
        With `exact`, ids may differ.
    UnsupportedError
        The format cannot hold this tokenizer; the message names what it cannot.
    """
    try:
        spec, notes = _converted(spec, format, template=template, alone=alone)
    except UnsupportedError as error:
        raise type(error)(f"{error}; save as jittok, which holds everything, or in another format") from None
    if notes and exact:
        raise ConversionError(
            f"as {format}, ids would not be the same for all texts: {'; '.join(notes)}. Accept that with exact=False "
            "(--inexact), or save as jittok"
        )
    return spec, notes


def _converted(
    spec: TokenizerSpec, format: str, *, template: bool, alone: bool
) -> tuple[TokenizerSpec, tuple[str, ...]]:
    if not template:
        spec = replace(
            spec, post_processors=tuple(step for step in spec.post_processors if not isinstance(step, Template))
        )
    notes: tuple[str, ...] = ()
    if format != "jittok" and isinstance(spec.model, MarianModel):
        raise UnsupportedError(
            f"one side of a Marian pair has the ids of a vocabulary that both share, which the format {format} cannot state"
        )
    if format != "jittok" and spec.reference == "llama.cpp":
        raise UnsupportedError(
            f"a tokenizer from a GGUF file goes by llama.cpp's rules, which the format {format} cannot state (which tokens "
            "are found first, its Unicode data, its normalization, its decoding)"
        )
    if format == "tokenizer.json":
        spec, notes = _to_tokenizer_json(spec)
    elif format == "sentencepiece":
        spec, notes = _to_sentencepiece(spec)
    elif format == "tiktoken":
        spec = _to_tiktoken(spec)
    elif format == "vocab.txt":
        notes = _to_vocab_txt(spec, alone)
    elif format == "merges" and isinstance(spec.model, RankModel):
        from jittok.formats.byte_level_conversion import from_ranks

        spec = from_ranks(spec)
    return spec, notes


def _to_tokenizer_json(spec: TokenizerSpec) -> tuple[TokenizerSpec, tuple[str, ...]]:
    if isinstance(spec.model, RankModel):
        from jittok.formats.byte_level_conversion import from_ranks

        return from_ranks(spec), ()
    if isinstance(spec.model, SentencePieceModel):
        from jittok.formats.sentencepiece_conversion import from_sentencepiece

        return from_sentencepiece(spec)
    steps = spec.pre_tokenizers
    if any(isinstance(step, Split) and step.is_regex and step.dialect != "oniguruma" for step in steps):
        from jittok.build.regex_translation import translate

        steps = tuple(
            replace(step, pattern=translate(step.pattern, step.dialect, "oniguruma"), dialect="oniguruma")
            if isinstance(step, Split) and step.is_regex
            else step
            for step in steps
        )
        spec = replace(spec, pre_tokenizers=steps)
    return spec, ()


def _to_sentencepiece(spec: TokenizerSpec) -> tuple[TokenizerSpec, tuple[str, ...]]:
    if isinstance(spec.model, UnigramModel | BPEModel):
        from jittok.formats.sentencepiece_conversion import to_sentencepiece

        return to_sentencepiece(spec)
    if not isinstance(spec.model, SentencePieceModel):
        kind = type(spec.model).__name__.removesuffix("Model")
        raise UnsupportedError(
            f"a SentencePiece model cannot be written from a {kind} model, whose algorithm it does not have"
        )
    return spec, ()


def _to_tiktoken(spec: TokenizerSpec) -> TokenizerSpec:
    if isinstance(spec.model, BPEModel):
        from jittok.formats.byte_level_conversion import to_ranks

        return to_ranks(spec)
    if not isinstance(spec.model, RankModel):
        kind = type(spec.model).__name__.removesuffix("Model")
        raise UnsupportedError(
            f"ranks cannot be written from a {kind} model, which does not merge pairs of tokens"
        )
    return spec


def _to_vocab_txt(spec: TokenizerSpec, alone: bool) -> tuple[str, ...]:
    if not alone or not isinstance(spec.model, WordPieceModel):
        return ()
    from jittok.formats.vocab_txt import ends_put_around, lost

    notes = lost(spec)
    ends = ends_put_around(spec)
    if ends is not None:
        notes.append(f"readers of a vocab.txt put {ends} around texts, and this tokenizer puts nothing there")
    return tuple(notes)


def files_of(spec: TokenizerSpec, format: str) -> dict[str, bytes]:
    """Write a converted spec as the files of a directory.

    Parameters
    ----------
    spec
        Of :func:`convert`.
    format
        "merges" or "vocab.txt".

    Returns
    -------
    dict of str to bytes
        Their contents by name.
    """
    from jittok.formats import merges_txt, vocab_txt

    return merges_txt.files_of(spec) if format == "merges" else vocab_txt.files_of(spec)


def content_of(spec: TokenizerSpec, format: str) -> bytes:
    """Write a converted spec as one file.

    Parameters
    ----------
    spec
        Of :func:`convert`.
    format
        "tokenizer.json", "sentencepiece", "tiktoken" or "vocab.txt".

    Returns
    -------
    bytes
        The file.
    """
    from jittok.formats import sentencepiece_model, tiktoken_file, tokenizer_json, vocab_txt

    writers = {
        "tokenizer.json": tokenizer_json.write,
        "sentencepiece": sentencepiece_model.write,
        "tiktoken": tiktoken_file.write,
        "vocab.txt": vocab_txt.write,
    }
    return writers[format](spec)

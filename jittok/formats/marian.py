"""Marian pairs: a directory with ``source.spm``, ``target.spm`` and the ``vocab.json`` that has the ids of both.

The ids are those of transformers' MarianTokenizer: text is cut into pieces by the SentencePiece model of its side, and
the vocabulary says their ids. Both models are unigram models.
"""

from __future__ import annotations

from pathlib import Path

from jittok.errors import ArgumentError, FormatError, UnsupportedError
from jittok.formats import sentencepiece_model
from jittok.formats._json import MAX_TOKEN_ID, Node, parse_json
from jittok.formats.merges_txt import read_file
from jittok.spec import (
    AddedToken,
    DecodeMarian,
    MarianModel,
    PieceType,
    SentencePieceModel,
    SentencePieceNormalizer,
    Template,
    TemplatePiece,
    TokenizerSpec,
)

#: The files that a directory must hold.
FILE_NAMES = ("source.spm", "target.spm", "vocab.json")
SIDES = ("source", "target")
_CONFIG = "tokenizer_config.json"
_TARGET_VOCAB = "target_vocab.json"
_ROLES = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


def read(directory: Path, side: str = "source") -> TokenizerSpec:
    """Read one side of a pair.

    Parameters
    ----------
    directory
        Holds ``source.spm``, ``target.spm`` and ``vocab.json``; also ``tokenizer_config.json``, which may name the special
        tokens, and ``target_vocab.json`` if that says that the sides have vocabularies of their own.
    side
        "source" or "target": whose SentencePiece model cuts text, and decodes.

    Returns
    -------
    TokenizerSpec

    Raises
    ------
    MissingFileError
        A file is missing.
    FormatError
        A file is malformed; the message names it and the place.
    UnsupportedError
        The SentencePiece model is no unigram model.
    """
    if side not in SIDES:
        raise ArgumentError(f"side={side!r}; expected 'source' or 'target'")
    config = _config(directory)
    stated = None if config is None else config.optional("separate_vocabs")
    separate = stated is not None and stated.value is True
    vocab_file = directory / (_TARGET_VOCAB if separate and side == "target" else "vocab.json")
    spm_file = directory / f"{side}.spm"
    spec = sentencepiece_model.read(read_file(spm_file), str(spm_file))
    vocab = _vocab(vocab_file)
    names = {role: _name(config, role, default) for role, default in _ROLES.items()}
    unknown, end = (_id_of(vocab, names[role], vocab_file, role) for role in ("unk_token", "eos_token"))
    model, normalizer = spec.model, spec.normalizers[0]
    assert isinstance(model, SentencePieceModel) and isinstance(normalizer, SentencePieceNormalizer)
    if model.algorithm != "unigram":
        raise UnsupportedError(
            f"{spm_file}: a model of type {model.algorithm}; of Marian pairs only unigram models are read"
        )
    if model.byte_fallback:
        raise UnsupportedError(f"{spm_file}: a model with byte fallback; of Marian pairs only models without are read")
    added = tuple(
        AddedToken(vocab[name], name, special=True, normalized=False)
        for name in sorted({name for name in names.values() if name in vocab}, key=vocab.__getitem__)
    )
    return TokenizerSpec(
        model=MarianModel(vocab, model.pieces, model.scores, model.types, unknown),
        added_tokens=added,
        normalizers=(normalizer,),
        post_processors=(_template(end, names["eos_token"]),),
        decoders=(
            DecodeMarian(
                tuple(token.content for token in added),
                drop_first=normalizer.add_dummy_prefix or normalizer.remove_extra_whitespaces,
                drop_leading=normalizer.remove_extra_whitespaces,
                hidden=tuple(model.pieces[i] for i in model.of_type(PieceType.CONTROL)),
            ),
        ),
        reference="transformers",
        source_format="marian",
        extra={"side": side},
    )


def _template(end: int, name: str) -> Template:
    last = TemplatePiece(0, ids=(end,), tokens=(name,))
    single = (TemplatePiece(0, "A"), last)
    return Template(single, (TemplatePiece(0, "A"), TemplatePiece(0, "B"), last))


def _config(directory: Path) -> Node | None:
    file = directory / _CONFIG
    return parse_json(read_file(file), str(file)) if file.is_file() else None


def _name(config: Node | None, role: str, default: str) -> str:
    """A special token, which the configuration may name by its string or as an object."""
    node = None if config is None else config.optional(role)
    if node is None or node.value is None:
        return default
    return node.child("content").string() if isinstance(node.value, dict) else node.string()


def _vocab(file: Path) -> dict[str, int]:
    root = parse_json(read_file(file), str(file))
    if not isinstance(root.value, dict):
        raise root.wrong("an object of token: id")
    for token, token_id in root.value.items():
        if type(token_id) is not int or not 0 <= token_id < MAX_TOKEN_ID:
            raise FormatError(f"{file}: the id of {token!r} is {token_id!r}; expected a whole number below {MAX_TOKEN_ID}")
    if len(set(root.value.values())) < len(root.value):
        raise FormatError(f"{file}: two tokens have the same id; expected one for each")
    return dict(root.value)


def _id_of(vocab: dict[str, int], name: str, file: Path, role: str) -> int:
    if name not in vocab:
        raise FormatError(f"{file}: the {role} {name!r} is not in the vocabulary")
    return vocab[name]

r"""``vocab.txt``: a WordPiece vocabulary, one token a line, the number of the line its id.

The file says nothing else. How text is cleaned up and which tokens are special stands in what transformers keeps
beside it (``tokenizer_config.json``, ``special_tokens_map.json``, ``added_tokens.json``); where that is silent,
BERT's defaults hold, by which transformers builds its fast tokenizer:

- Clean-up with lower case (and so without accents), blanks around Chinese characters, words cut at white space and
  punctuation, ``[CLS] A [SEP]`` and ``[CLS] A [SEP] B [SEP]`` around texts.
- Lines end with ``\n`` or ``\r\n`` only; every other character of a line, blanks and U+2028 among them, belongs to the
  token. Of a token that comes twice the later line counts. An empty line is an empty token, which no text has.

Unlike there, a byte-order mark at the beginning is left out, and special tokens that no file names and the
vocabulary lacks are not made up: a vocabulary with neither ``[CLS]`` nor ``[SEP]`` has no template.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jittok.errors import FormatError, UnsupportedError
from jittok.formats._json import MAX_TOKEN_ID, Node, decode_utf8
from jittok.formats.merges_txt import (
    Side,
    added_tokens,
    differences,
    optional_json,
    read_file,
    written_json,
    written_tokens,
)
from jittok.formats.tokenizer_json import assign_added_ids
from jittok.spec import (
    BertNormalizer,
    BertPreTokenizer,
    DecodeWordPiece,
    Template,
    TemplatePiece,
    TokenizerSpec,
    WordPieceModel,
)

#: BERT's special tokens by role.
SPECIAL_TOKENS = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
#: Tokenizer classes that are BERT's under another name; each also with "Fast" at the end.
CLASSES = tuple(
    f"{name}Tokenizer"
    for name in (
        "Bert",
        "DistilBert",
        "Electra",
        "MobileBert",
        "SqueezeBert",
        "ConvBert",
        "LayoutLM",
        "Lxmert",
        "RetriBert",
        "DPRContextEncoder",
        "DPRQuestionEncoder",
        "DPRReader",
    )
)
_MODEL_TYPES = (
    "bert",
    "distilbert",
    "electra",
    "mobilebert",
    "squeezebert",
    "convbert",
    "layoutlm",
    "lxmert",
    "retribert",
    "dpr",
    "visual_bert",
)


def read(path: Path) -> TokenizerSpec:
    """Read a vocab.txt and what stands beside it.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    TokenizerSpec
        ``extra`` holds "tokenizer_class" (None where no file names it) and the "special_tokens" by role.

    Raises
    ------
    MissingFileError
        The file cannot be read.
    FormatError
        It is malformed, or lacks the unknown token or one of the two tokens around texts.
    UnsupportedError
        The files beside it name a tokenizer that is not BERT's.
    """
    side = Side.read(path.parent)
    return _spec_of(read_vocabulary(read_file(path), str(path)), side, _class_name(side, path.parent), str(path))


def _spec_of(vocab: dict[str, int], side: Side, class_name: str | None, where: str) -> TokenizerSpec:
    named = {role: token for role, token in SPECIAL_TOKENS.items() if token in vocab}
    tokens, roles = added_tokens(side, named)
    unknown = roles.get("unk_token", SPECIAL_TOKENS["unk_token"])
    if unknown not in vocab:
        raise FormatError(
            f"{where}: no line is {unknown!r}, the token for words that the vocabulary does not cover; add it, or name "
            'another one as "unk_token" in a tokenizer_config.json beside the file'
        )
    added = assign_added_ids(tokens, vocab)
    ids = {**vocab, **{token.content: token.id for token in added}}
    config = side.config
    strip_accents = config.optional("strip_accents")
    normalizer = BertNormalizer(
        clean_text=True,
        handle_chinese_chars=_given_flag(side, "tokenize_chinese_chars"),
        strip_accents=None if strip_accents is None else strip_accents.boolean(),
        lowercase=_given_flag(side, "do_lower_case"),
    )
    template = _template(roles, ids, where)
    return TokenizerSpec(
        model=WordPieceModel(vocab, unknown),
        added_tokens=added,
        normalizers=(normalizer,),
        pre_tokenizers=(BertPreTokenizer(),),
        post_processors=() if template is None else (template,),
        decoders=(DecodeWordPiece(),),
        source_format="vocab.txt",
        extra={"tokenizer_class": class_name, "special_tokens": roles},
    )


def read_vocabulary(data: bytes, where: str) -> dict[str, int]:
    """Read the lines of a vocab.txt.

    Parameters
    ----------
    data
        The whole file.
    where
        Its name, for messages.

    Returns
    -------
    dict of str to int
        Tokens and their ids, in the order of the file.

    Raises
    ------
    FormatError
        The file is empty, not UTF-8, or has no line ends that are known.
    """
    text = decode_utf8(data, where).removeprefix("\ufeff")
    if not text:
        raise FormatError(f"{where}: the file is empty; expected one token a line")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    if len(lines) == 1 and "\r" in text.rstrip("\r\n"):
        raise FormatError(f"{where}: lines end with \\r alone; save the file with \\n or \\r\\n")
    if len(lines) > MAX_TOKEN_ID:
        raise FormatError(f"{where}: {len(lines)} lines; expected at most {MAX_TOKEN_ID}")
    vocab: dict[str, int] = {}
    for number, line in enumerate(lines):
        token = line.removesuffix("\r")
        vocab.pop(token, None)  # a later line counts, in its place
        vocab[token] = number
    return vocab


def _class_name(side: Side, directory: Path) -> str | None:
    """The tokenizer class that the files name, if they do; raise if it is not BERT's."""
    node = side.config.optional("tokenizer_class")
    if node is not None:
        name = node.string()
        if name.removesuffix("Fast") not in CLASSES:
            raise UnsupportedError(
                f"{node.place}: {name!r} with vocab.txt is not supported; supported are {', '.join(CLASSES)}"
            )
        return name
    model_type = optional_json(directory / "config.json").optional("model_type")
    if model_type is None:
        return None
    if model_type.string() not in _MODEL_TYPES:
        raise UnsupportedError(
            f"{model_type.place}: the tokenizer of {model_type.value!r} models is not supported with vocab.txt; "
            f"supported are {', '.join(_MODEL_TYPES)}"
        )
    return "BertTokenizer"


def _given_flag(side: Side, key: str) -> bool:
    """A setting that is true unless the configuration says otherwise."""
    return side.config.child(key).boolean() if key in side.config.mapping() else True


def _template(roles: Mapping[str, str], ids: Mapping[str, int], where: str) -> Template | None:
    if "cls_token" not in roles and "sep_token" not in roles:
        return None
    for role in ("cls_token", "sep_token"):
        if role not in roles:
            other = roles["sep_token" if role == "cls_token" else "cls_token"]
            raise FormatError(
                f"{where}: {other!r} is there, but not {SPECIAL_TOKENS[role]!r}, and texts get both around them; add "
                f'it, or name another one as "{role}" in a tokenizer_config.json beside the file'
            )

    def token(role: str, type_id: int) -> TemplatePiece:
        return TemplatePiece(type_id, ids=(ids[roles[role]],), tokens=(roles[role],))

    single = (token("cls_token", 0), TemplatePiece(0, "A"), token("sep_token", 0))
    return Template(single, (*single, TemplatePiece(1, "B"), token("sep_token", 1)))


def write(spec: TokenizerSpec) -> bytes:
    """Write the vocabulary of a spec as a vocab.txt; it cannot say anything else.

    Parameters
    ----------
    spec
        Its model must be a :class:`~jittok.spec.WordPieceModel`.

    Returns
    -------
    bytes
        The file, UTF-8.

    Raises
    ------
    UnsupportedError
        The format cannot hold this vocabulary.
    """
    model = spec.model
    if not isinstance(model, WordPieceModel):
        raise UnsupportedError("only a WordPiece vocabulary can be saved as vocab.txt; save as tokenizer.json")
    tokens = sorted(model.vocab, key=model.vocab.__getitem__)
    for number, token in enumerate(tokens):
        if model.vocab[token] != number:
            raise UnsupportedError(
                f"a vocab.txt cannot hold ids with gaps or repeats: {number} is the line of {token!r}, whose id is "
                f"{model.vocab[token]}; save as tokenizer.json"
            )
        if "\n" in token or token.endswith("\r") or (number == 0 and token.startswith("\ufeff")):
            raise UnsupportedError(f"a vocab.txt cannot hold the token {token!r}; save as tokenizer.json")
    return "".join(f"{token}\n" for token in tokens).encode()


def ends_put_around(spec: TokenizerSpec) -> str | None:
    """Name the tokens that all readers of the format put around texts, and this tokenizer does not; None if it is not so.

    transformers and tokenizers' BertWordPieceTokenizer ask for both, and no setting leaves them out.

    Parameters
    ----------
    spec
        One with a :class:`~jittok.spec.WordPieceModel`.
    """
    first, last = SPECIAL_TOKENS["cls_token"], SPECIAL_TOKENS["sep_token"]
    assert isinstance(spec.model, WordPieceModel)
    has_template = any(isinstance(step, Template) for step in spec.post_processors)
    return None if has_template or not {first, last} <= spec.model.vocab.keys() else f"{first} and {last}"


def lost(spec: TokenizerSpec) -> list[str]:
    """Tell what a vocab.txt of this spec alone does not say, and its readers take otherwise, or why they refuse it.

    Parameters
    ----------
    spec
        One that :func:`write` takes.
    """
    try:
        found = _read_back(spec, {})
    except FormatError as error:
        reason = str(error).removeprefix("vocab.txt: ").partition("; add it")[0]
        return [f"readers refuse this vocab.txt alone: {reason}; save as tokenizer.json, or to a directory"]
    if ends_put_around(spec) is not None:  # said for itself: no other file beside it helps
        found = replace(found, post_processors=spec.post_processors)
    return [f"a vocab.txt alone does not say {what}; save to a directory" for what in differences(spec, found)]


def files_of(spec: TokenizerSpec) -> dict[str, bytes]:
    """Write a spec as a vocab.txt and the tokenizer_config.json that says the rest.

    Parameters
    ----------
    spec
        Its model must be a :class:`~jittok.spec.WordPieceModel`.

    Returns
    -------
    dict of str to bytes
        The files by name.

    Raises
    ------
    UnsupportedError
        The two files cannot say what the spec says; the message names it.
    """
    vocabulary = write(spec)
    ends = ends_put_around(spec)
    if ends is not None:
        raise UnsupportedError(
            f"a vocab.txt cannot hold this tokenizer: its readers put {ends} around texts, and this tokenizer puts nothing "
            "there; save as tokenizer.json"
        )
    config = _config_of(spec)
    try:
        found = _read_back(spec, config)
    except FormatError as error:
        raise UnsupportedError(f"a vocab.txt cannot hold this tokenizer: {error}; save as tokenizer.json") from None
    different = differences(spec, found)
    if different:
        raise UnsupportedError(
            f"a vocab.txt with its tokenizer_config.json cannot hold {'; '.join(different)}; save as tokenizer.json"
        )
    return {"vocab.txt": vocabulary, "tokenizer_config.json": written_json(config)}


def _read_back(spec: TokenizerSpec, config: dict[str, Any]) -> TokenizerSpec:
    assert isinstance(spec.model, WordPieceModel)
    empty = Node({}, "vocab.txt", "")
    return _spec_of(dict(spec.model.vocab), Side(Node(config, "tokenizer_config.json", ""), empty, empty), None, "vocab.txt")


def _config_of(spec: TokenizerSpec) -> dict[str, Any]:
    """What a tokenizer_config.json would have to say."""
    model = spec.model
    assert isinstance(model, WordPieceModel)
    step = next((step for step in spec.normalizers if isinstance(step, BertNormalizer)), BertNormalizer())
    contents = {token.content for token in spec.added_tokens}
    roles: dict[str, str | None] = {
        role: SPECIAL_TOKENS[role] if SPECIAL_TOKENS[role] in contents else None for role in ("pad_token", "mask_token")
    }
    template = next((step for step in spec.post_processors if isinstance(step, Template)), None)
    around = [piece.tokens for piece in template.single if piece.sequence is None] if template is not None else []
    roles["unk_token"] = model.unk_token
    roles["cls_token"] = roles["sep_token"] = None
    if [len(tokens) for tokens in around] == [1, 1]:
        roles["cls_token"], roles["sep_token"] = around[0][0], around[1][0]
    return {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": step.lowercase,
        "strip_accents": step.strip_accents,
        "tokenize_chinese_chars": step.handle_chinese_chars,
        **roles,
        "added_tokens_decoder": written_tokens(spec.added_tokens),
    }

"""Directories with ``vocab.json`` and ``merges.txt``: GPT-2, RoBERTa, CLIP, Whisper, Qwen2 and their kin.

These two files hold only the BPE model. How text is split and which tokens are special depends on the class
that ``tokenizer_config.json`` names (``tokenizer_class``, or else ``model_type`` of ``config.json``); the rules
of each are those by which transformers builds its fast tokenizer. Where no file names a class, only what the
vocabulary itself shows is used:

- Byte-level, split by the GPT-2 pattern, no blank put in front, nothing added around a text.
- ``<|endoftext|>`` is a special token if it is in the vocabulary. So are ``<s>``, ``<pad>``, ``</s>``,
  ``<unk>`` and ``<mask>`` if all five are in it.
- A vocabulary with ``<|startoftext|>``, ``<|endoftext|>`` and ``!</w>`` is CLIP's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from jittok.errors import FormatError, MissingFileError, UnsupportedError
from jittok.formats._json import MAX_TOKEN_ID, Node, decode_utf8, parse_json
from jittok.formats.tokenizer_json import assign_added_ids, check_merges, read_vocab
from jittok.spec import (
    AddedToken,
    BPEModel,
    ByteLevel,
    DecodeByteLevel,
    Lowercase,
    Normalizer,
    PostProcessor,
    PreTokenizer,
    Replace,
    Split,
    Template,
    TemplatePiece,
    TokenizerSpec,
    TrimOffsets,
    UnicodeForm,
)

#: Names that the pair of files goes by.
FILE_NAMES = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))

_ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_ROBERTA_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")

_GPT2_TOKENS = {role: "<|endoftext|>" for role in ("bos_token", "eos_token", "unk_token")}
#: What each class takes for its special tokens where the files do not say.
_DEFAULT_TOKENS: dict[str, dict[str, str]] = {
    "GPT2": _GPT2_TOKENS,
    "Whisper": _GPT2_TOKENS,
    "Roberta": {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "sep_token": "</s>",
        "pad_token": "<pad>",
        "cls_token": "<s>",
        "mask_token": "<mask>",
    },
    "CLIP": {
        "bos_token": "<|startoftext|>",
        "eos_token": "<|endoftext|>",
        "unk_token": "<|endoftext|>",
        "pad_token": "<|endoftext|>",
    },
    "Qwen2": {role: "<|endoftext|>" for role in ("eos_token", "unk_token", "pad_token")},
}
#: Classes that are one of these under another name.
_CLASSES = {
    "GPT2Tokenizer": "GPT2",
    "WhisperTokenizer": "Whisper",
    "RobertaTokenizer": "Roberta",
    "BartTokenizer": "Roberta",
    "LongformerTokenizer": "Roberta",
    "LEDTokenizer": "Roberta",
    "CLIPTokenizer": "CLIP",
    "Qwen2Tokenizer": "Qwen2",
}
_MODEL_TYPES = {
    "gpt2": "GPT2",
    "gpt_neo": "GPT2",
    "gptj": "GPT2",
    "opt": "GPT2",
    "phi": "GPT2",
    "whisper": "Whisper",
    "roberta": "Roberta",
    "bart": "Roberta",
    "longformer": "Roberta",
    "led": "Roberta",
    "clip": "CLIP",
    "qwen2": "Qwen2",
    "qwen2_moe": "Qwen2",
    "qwen3": "Qwen2",
    "qwen3_moe": "Qwen2",
}
_CLIP_PATTERN = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
_QWEN2_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class Side:
    """The files that transformers keeps next to a vocabulary, parsed; empty where a file does not exist."""

    config: Node
    special_tokens_map: Node
    added_tokens: Node

    @staticmethod
    def read(directory: Path) -> Side:
        """Read what there is of them."""
        return Side(
            optional_json(directory / "tokenizer_config.json"),
            optional_json(directory / "special_tokens_map.json"),
            optional_json(directory / "added_tokens.json"),
        )


def read(directory: Path, vocab_name: str = "vocab.json", merges_name: str = "merges.txt") -> TokenizerSpec:
    """Read the two files and what stands beside them in `directory`.

    Parameters
    ----------
    directory
        Where the files are.
    vocab_name, merges_name
        Names of the two.

    Returns
    -------
    TokenizerSpec
        ``extra`` holds "tokenizer_class" (None where no file names it) and the "special_tokens" by role.

    Raises
    ------
    MissingFileError
        One of the two does not exist.
    FormatError
        A file is malformed, or they contradict each other.
    UnsupportedError
        The class is not one of those above.
    """
    vocab_path, merges_path = directory / vocab_name, directory / merges_name
    vocab = read_vocab(parse_json(read_file(vocab_path), str(vocab_path)))
    merges = read_merges(read_file(merges_path), str(merges_path), vocab)
    side = Side.read(directory)
    kind, class_name = _kind(side.config, directory)
    if kind is None:
        kind = "CLIP" if {"<|startoftext|>", "<|endoftext|>", "!</w>"} <= vocab.keys() else "GPT2"
        named = _conventional_tokens(kind, vocab)
    else:
        named = dict(_DEFAULT_TOKENS[kind])
    if kind != "CLIP" and {"a</w>", "e</w>"} <= vocab.keys():
        raise UnsupportedError(
            f"{vocab_path}: tokens end in </w>, so this is not a byte-level vocabulary of the GPT-2 kind; add a "
            "tokenizer_config.json with its tokenizer_class, or convert it to tokenizer.json"
        )
    tokens, roles = added_tokens(side, named)
    added = assign_added_ids(tokens, vocab)
    ids = {token.content: token.id for token in added}

    def id_of(content: str) -> int | None:
        return ids.get(content, vocab.get(content))

    model = BPEModel(
        vocab,
        merges,
        unk_token=roles["unk_token"] if kind == "CLIP" else None,
        end_of_word_suffix="</w>" if kind == "CLIP" else None,
    )
    return TokenizerSpec(
        model=model,
        added_tokens=added,
        normalizers=_NORMALIZERS.get(kind, ()),
        pre_tokenizers=_pre_tokenizers(kind, flag(side.config, "add_prefix_space", False)),
        post_processors=_post_processors(kind, roles, id_of, side.config),
        decoders=(DecodeByteLevel(),),
        source_format="merges",
        extra={"tokenizer_class": class_name, "special_tokens": roles},
    )


def read_file(path: Path) -> bytes:
    """Read a whole file; raise `MissingFileError` where that fails."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise MissingFileError(f"{path}: cannot be read: {reason}") from None


def read_merges(data: bytes, where: str, vocab: Mapping[str, int]) -> tuple[tuple[str, str], ...]:
    r"""Read the lines of a merges.txt: two tokens with a blank between them.

    Lines end with ``\n`` only (the byte alphabet has letters that other line splitters cut at), comment lines
    that start with ``#version`` and empty lines are left out.
    """
    pairs: list[tuple[str, ...]] = []
    numbers: list[int] = []
    for number, line in enumerate(decode_utf8(data, where).split("\n"), 1):
        line = line.removesuffix("\r")
        if not line or line.startswith("#version"):
            continue
        pair = tuple(line.split(" "))
        if len(pair) != 2:
            raise FormatError(
                f"{where}: line {number}: expected two tokens with one blank between them, got {line[:60]!r}"
            )
        pairs.append(pair)
        numbers.append(number)
    return check_merges(
        pairs, vocab, "", lambda index, message: FormatError(f"{where}: line {numbers[index]}: {message}")
    )


# ------------------------------------------------------------------------------------------- the files beside


def optional_json(path: Path) -> Node:
    """Parse a JSON object; an empty one where the file does not exist."""
    if not path.is_file():
        return Node({}, str(path), "")
    node = parse_json(read_file(path), str(path))
    node.mapping()
    return node


def flag(node: Node, key: str, default: bool) -> bool:
    """Return a field that is true or false, `default` where it is missing or null."""
    child = node.optional(key)
    return default if child is None else child.boolean()


def _kind(config: Node, directory: Path) -> tuple[str | None, str | None]:
    """Return the kind of tokenizer and the class name the files give, or None for both."""
    node = config.optional("tokenizer_class")
    if node is not None:
        name = node.string()
        kind = _CLASSES.get(name.removesuffix("Fast"))
        if kind is None:
            raise UnsupportedError(
                f"{node.place}: {name!r} with vocab.json and merges.txt is not supported; supported are "
                f"{', '.join(_CLASSES)}"
            )
        return kind, name
    model_type = optional_json(directory / "config.json").optional("model_type")
    if model_type is not None:
        kind = _MODEL_TYPES.get(model_type.string())
        if kind is None:
            raise UnsupportedError(
                f"{model_type.place}: the tokenizer of {model_type.value!r} models is not supported with "
                f"vocab.json and merges.txt; supported are {', '.join(_MODEL_TYPES)}"
            )
        return kind, f"{kind}Tokenizer"
    return None, None


def _conventional_tokens(kind: str, vocab: Mapping[str, int]) -> dict[str, str]:
    if kind == "CLIP":
        return dict(_DEFAULT_TOKENS["CLIP"])
    if all(token in vocab for token in _ROBERTA_TOKENS):
        return dict(_DEFAULT_TOKENS["Roberta"])
    return dict(_GPT2_TOKENS) if "<|endoftext|>" in vocab else {}


def added_tokens(side: Side, named: dict[str, str]) -> tuple[list[AddedToken], dict[str, str]]:
    """Return the tokens in the order in which they are added, and the special tokens by role.

    First come those of ``added_tokens_decoder`` (or of the older added_tokens.json) in order of their ids,
    then the special tokens by role (`named` where no file says otherwise), then the further special ones.
    """
    tokens: dict[str, AddedToken] = {}
    roles = {role: _special(content) for role, content in named.items()}
    if named.get("mask_token") == "<mask>":
        # RoBERTa's mask takes the blank before it along, so that it can stand for a word.
        roles["mask_token"] = replace(roles["mask_token"], lstrip=True)
    extra: dict[str, AddedToken] = {}
    sources = [side.config]
    decoder = side.config.optional("added_tokens_decoder")
    if decoder is None:
        sources.append(side.special_tokens_map)
    for source in sources:
        for role in _ROLES:
            if role in source.mapping():
                if source.value[role] is None:
                    roles.pop(role, None)
                else:
                    roles[role] = _token(source.child(role), roles.get(role))
        for key in ("additional_special_tokens", "extra_special_tokens"):
            node = source.optional(key)
            if node is not None:
                members = node.items() if type(node.value) is list else map(node.child, node.mapping())
                for token in map(_token, members):
                    extra.setdefault(token.content, token)
    special = {token.content for token in (*roles.values(), *extra.values())}
    if decoder is not None:
        by_id: list[tuple[int, AddedToken]] = []
        for key in decoder.mapping():
            if not key.isascii() or not key.isdigit() or len(key) > 8 or int(key) >= MAX_TOKEN_ID:
                raise decoder.error(f"expected ids below {MAX_TOKEN_ID} as field names, got {key!r}")
            by_id.append((int(key), _token(decoder.child(key), None, special=False)))
        for _, token in sorted(by_id, key=lambda pair: pair[0]):
            tokens[token.content] = token
    else:
        older = read_vocab(side.added_tokens) if side.added_tokens.value else {}
        for content in sorted(older, key=older.__getitem__):
            is_special = content in special
            tokens[content] = AddedToken(0, content, special=is_special, normalized=not is_special)
    named_contents = {token.content for token in roles.values()}
    for content in named_contents & tokens.keys():
        tokens[content] = replace(tokens[content], special=True)
    for role in _ROLES:
        if role in roles:
            tokens.setdefault(roles[role].content, roles[role])
    for content, token in extra.items():
        tokens.setdefault(content, token)
    return list(tokens.values()), {role: token.content for role, token in roles.items()}


def _special(content: str) -> AddedToken:
    return AddedToken(0, content, special=True, normalized=False)


def _token(node: Node, default: AddedToken | None = None, *, special: bool = True) -> AddedToken:
    """Read a token that is a string, or an object with its flags."""
    if type(node.value) is str:
        return default if default is not None and default.content == node.value else _special(node.value)
    return AddedToken(
        0,
        node.child("content").string(),
        special=special or flag(node, "special", False),
        single_word=flag(node, "single_word", False),
        lstrip=flag(node, "lstrip", False),
        rstrip=flag(node, "rstrip", False),
        normalized=flag(node, "normalized", True),
    )


# --------------------------------------------------------------------------------------- the parts by kind

_NORMALIZERS: dict[str, tuple[Normalizer, ...]] = {
    "CLIP": (UnicodeForm("NFC"), Replace(r"\s+", " ", is_regex=True), Lowercase()),
    "Qwen2": (UnicodeForm("NFC"),),
}


def _pre_tokenizers(kind: str, add_prefix_space: bool) -> tuple[PreTokenizer, ...]:
    if kind == "CLIP":
        return (Split(_CLIP_PATTERN, "removed", invert=True), ByteLevel(add_prefix_space=False))
    if kind == "Qwen2":
        return (Split(_QWEN2_PATTERN), ByteLevel(add_prefix_space, use_regex=False))
    return (ByteLevel(add_prefix_space),)


def _post_processors(
    kind: str, roles: Mapping[str, str], id_of: Callable[[str], int | None], config: Node
) -> tuple[PostProcessor, ...]:
    def token(content: str | None, type_id: int = 0) -> tuple[TemplatePiece, ...]:
        token_id = None if content is None else id_of(content)
        if content is None or token_id is None:
            raise config.error(
                f"a {kind} tokenizer puts the token {content!r} around a text, but it is neither in the "
                "vocabulary nor an added token"
            )
        return (TemplatePiece(type_id, ids=(token_id,), tokens=(content,)),)

    a, b = TemplatePiece(0, "A"), TemplatePiece(1, "B")
    if kind == "Whisper":
        for key in ("language", "task"):
            if config.optional(key) is not None:
                raise UnsupportedError(f"{config.place}: a stored {key} is not supported; set it to null")
        prefix = token("<|startoftranscript|>")
        if not flag(config, "predict_timestamps", False):
            prefix += token("<|notimestamps|>")
        eos = roles.get("eos_token")
        return (Template((*prefix, a, *token(eos)), (*prefix, a, b, *token(eos, 1))),)
    if kind in ("Roberta", "CLIP"):
        start = token(roles.get("cls_token" if kind == "Roberta" else "bos_token"))
        end = token(roles.get("sep_token" if kind == "Roberta" else "eos_token"))
        single = (*start, a, *end)
        template = Template(single, (*single, *end, replace(b, type_id=0), *end))
        if kind == "Roberta" and flag(config, "trim_offsets", True):
            return (TrimOffsets(flag(config, "add_prefix_space", False)), template)
        return (template,)
    add_bos = flag(config, "add_bos_token", False) and "bos_token" in roles
    add_eos = flag(config, "add_eos_token", False) and "eos_token" in roles
    if not add_bos and not add_eos:
        return ()

    def around(sequence: TemplatePiece) -> tuple[TemplatePiece, ...]:
        before = token(roles["bos_token"], sequence.type_id) if add_bos else ()
        after = token(roles["eos_token"], sequence.type_id) if add_eos else ()
        return (*before, sequence, *after)

    return (Template(around(a), (*around(a), *around(b))),)

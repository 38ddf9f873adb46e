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

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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

    def tokens_by_content(self) -> dict[str, int] | None:
        """The ids of all added tokens, where ``added_tokens_decoder`` gives them."""
        decoder = self.config.optional("added_tokens_decoder")
        if decoder is None:
            return None
        return {token.content: token_id for token_id, token in _by_id(decoder)}


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
    return _spec_of(vocab, merges, side, _kind(side.config, directory), str(vocab_path))


def _spec_of(
    vocab: Mapping[str, int],
    merges: Sequence[tuple[str, str]],
    side: Side,
    named_class: tuple[str | None, str | None],
    where: str,
) -> TokenizerSpec:
    kind, class_name = named_class
    if kind is None:
        kind = "CLIP" if {"<|startoftext|>", "<|endoftext|>", "!</w>"} <= vocab.keys() else "GPT2"
        named = _conventional_tokens(kind, vocab)
    else:
        named = dict(_DEFAULT_TOKENS[kind])
    if kind != "CLIP" and {"a</w>", "e</w>"} <= vocab.keys():
        raise UnsupportedError(
            f"{where}: tokens end in </w>, so this is not a byte-level vocabulary of the GPT-2 kind; add a "
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
        unk_token=roles.get("unk_token") if kind == "CLIP" else None,
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
    left, right = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return check_merges(
        left, right, vocab, "", lambda index, message: FormatError(f"{where}: line {numbers[index]}: {message}")
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
        for _, token in _by_id(decoder):
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


def _by_id(decoder: Node) -> list[tuple[int, AddedToken]]:
    """The members of ``added_tokens_decoder`` in order of their ids."""
    by_id: list[tuple[int, AddedToken]] = []
    for key in decoder.mapping():
        if not key.isascii() or not key.isdigit() or len(key) > 8 or int(key) >= MAX_TOKEN_ID:
            raise decoder.error(f"expected ids below {MAX_TOKEN_ID} as field names, got {key!r}")
        by_id.append((int(key), _token(decoder.child(key), None, special=False)))
    return sorted(by_id, key=lambda pair: pair[0])


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


# -------------------------------------------------------------------------------------------------- writing

_PARTS = {
    "normalizers": "the normalizer",
    "pre_tokenizers": "the pre-tokenizer",
    "post_processors": "the post-processor",
    "decoders": "the decoder",
}


def differences(wanted: TokenizerSpec, found: TokenizerSpec) -> list[str]:
    """Name, in words, what one spec has otherwise than another, but for what changes nothing but spans.

    Parameters
    ----------
    wanted, found
        What is to be said, and what files say.
    """
    result = []
    wanted, found = _without_spans(wanted), _without_spans(found)
    if wanted.model != found.model:
        for name in type(wanted.model).__dataclass_fields__:
            value = getattr(wanted.model, name)
            if value != getattr(found.model, name, None):
                result.append(f"model.{name}" + ("" if isinstance(value, Mapping | tuple) else f"={value!r}"))
    if wanted.added_tokens != found.added_tokens:
        other = next(iter(set(wanted.added_tokens) ^ set(found.added_tokens)))
        result.append(f"the added tokens (such as {other.content!r})")
    for name, what in _PARTS.items():
        if getattr(wanted, name) != getattr(found, name):
            steps = ", ".join(type(step).__name__ for step in getattr(wanted, name))
            result.append(f"{what} ({steps or 'none'})")
    return result


def _without_spans(spec: TokenizerSpec) -> TokenizerSpec:
    steps = tuple(replace(s, trim_offsets=True) if isinstance(s, ByteLevel) else s for s in spec.pre_tokenizers)
    processors = tuple(step for step in spec.post_processors if not isinstance(step, TrimOffsets))
    return replace(spec, pre_tokenizers=steps, post_processors=processors)


def written_json(content: Mapping[str, Any]) -> bytes:
    """A file of an object."""
    return (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode()


def written_tokens(tokens: Iterable[AddedToken]) -> dict[str, dict[str, Any]]:
    """Added tokens as the field "added_tokens_decoder" has them."""
    return {
        str(token.id): {
            "content": token.content,
            "lstrip": token.lstrip,
            "normalized": token.normalized,
            "rstrip": token.rstrip,
            "single_word": token.single_word,
            "special": token.special,
        }
        for token in tokens
    }


def files_of(spec: TokenizerSpec) -> dict[str, bytes]:
    """Write a spec as vocab.json, merges.txt and a tokenizer_config.json that names the class of tokenizer.

    Parameters
    ----------
    spec
        Its model must be a :class:`~jittok.spec.BPEModel`.

    Returns
    -------
    dict of str to bytes
        The files by name.

    Raises
    ------
    UnsupportedError
        No class of tokenizer has these steps, or the files cannot hold a token; the message names it.
    """
    model = spec.model
    if not isinstance(model, BPEModel):
        raise UnsupportedError(
            f"a vocab.json with merges.txt cannot be written from a {type(model).__name__.removesuffix('Model')} model; "
            "save as tokenizer.json or jittok"
        )
    for pair in model.merges:
        if any(not part or " " in part or "\n" in part or "\r" in part for part in pair) or pair[0].startswith("#version"):
            raise UnsupportedError(f"a merges.txt cannot hold the merge {pair!r}; save as tokenizer.json")
    spec = replace(spec, model=_plain_model(model))
    best: tuple[bool, int, str] | None = None
    for kind, (name, config) in _configs_of(spec).items():
        side = Side(Node(config, "tokenizer_config.json", ""), Node({}, "", ""), Node({}, "", ""))
        try:
            found = _spec_of(dict(model.vocab), model.merges, side, (kind, name), "vocab.json")
            different, failed = differences(spec, found), False
        except (FormatError, UnsupportedError) as error:
            different, failed = [str(error)], True
        if not different:
            lines = "".join(f"{a} {b}\n" for a, b in model.merges)
            return {
                "vocab.json": json.dumps(dict(model.vocab), ensure_ascii=False).encode(),
                "merges.txt": f"#version: 0.2\n{lines}".encode(),
                "tokenizer_config.json": written_json(config),
            }
        reason = "; ".join(different)
        best = min(best or (True, 1 << 30, ""), (failed, len(reason), reason))
    raise UnsupportedError(
        f"a vocab.json with merges.txt cannot hold {best[2] if best else 'it'}: no known class "
        f"({', '.join(_CLASSES)}) has that; save as tokenizer.json or jittok"
    )


def _plain_model(model: BPEModel) -> BPEModel:
    """The model without settings that change nothing, as all bytes have tokens and merges make every other one."""
    from jittok.build.merge_tables import byte_alphabet, last_pairs

    prefix, suffix = model.continuing_subword_prefix or None, model.end_of_word_suffix or None
    model = replace(model, continuing_subword_prefix=prefix, end_of_word_suffix=suffix)
    if prefix or suffix or not byte_alphabet().keys() <= model.vocab.keys():
        return model
    ignores = model.ignore_merges
    if ignores:
        made = set(last_pairs(model, byte_level=True)[0].tolist())
        letters = set(byte_alphabet())
        ignores = any(len(token) > 1 and i not in made for token, i in model.vocab.items() if letters.issuperset(token))
    return replace(model, ignore_merges=ignores, unk_token=None, fuse_unk=False, byte_fallback=False)


def _configs_of(spec: TokenizerSpec) -> dict[str, tuple[str, dict[str, Any]]]:
    """What a tokenizer_config.json would have to say for each class, by kind; and the class's name."""
    contents = {token.content for token in spec.added_tokens}
    template = next((step for step in spec.post_processors if isinstance(step, Template)), None)
    first = last = None
    if template is not None:
        place = next((i for i, piece in enumerate(template.single) if piece.sequence), 0)
        before, after = template.single[:place], template.single[place + 1 :]
        first = before[0].tokens[0] if before and before[0].tokens else None
        last = after[-1].tokens[0] if after and after[-1].tokens else None
    byte_level = next((step for step in spec.pre_tokenizers if isinstance(step, ByteLevel)), None)
    result = {}
    for name, kind in _CLASSES.items():
        if kind in result:
            continue
        roles: dict[str, str | None] = {
            role: token if token in contents else None for role, token in _DEFAULT_TOKENS[kind].items()
        }
        prefix = byte_level is not None and byte_level.add_prefix_space
        config: dict[str, Any] = {"tokenizer_class": name, "add_prefix_space": prefix}
        if kind == "Roberta":
            roles["cls_token"], roles["sep_token"] = first, last
            config["trim_offsets"] = any(isinstance(step, TrimOffsets) for step in spec.post_processors)
        elif kind == "CLIP":
            roles["bos_token"], roles["eos_token"] = first, last
            roles["unk_token"] = spec.model.unk_token if isinstance(spec.model, BPEModel) else None
        elif kind == "Whisper":
            roles["eos_token"] = last
            config["predict_timestamps"] = template is not None and len(template.single) == 3
        elif template is not None:
            roles.update({"bos_token": first} if first else {})
            roles.update({"eos_token": last} if last else {})
            config["add_bos_token"], config["add_eos_token"] = first is not None, last is not None
        config.update(roles)
        config["added_tokens_decoder"] = written_tokens(spec.added_tokens)
        result[kind] = name, config
    return result

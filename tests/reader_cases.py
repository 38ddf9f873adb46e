"""Small files of every format, and ways to damage them, for tests and for ``scripts/fuzz_readers.py``."""

from __future__ import annotations

import json
import random
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gguf_files import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED, gguf, vocabulary

import jittok
from jittok.build.merge_tables import byte_alphabet
from jittok.errors import JittokError
from jittok.formats import sentencepiece_model
from jittok.spec import PieceType, SentencePieceNormalizer

TEXTS = ["", "ab abc don't  12 \u00e9\u65e5\U0001f600\n\n", "<x>y b</s>", "a"]


class Case(NamedTuple):
    """Files of a directory, of which one is damaged and one is loaded."""

    files: dict[str, bytes]
    damaged: str
    loaded: str
    options: dict[str, Any]


def _flags(content: str, token_id: int, **more: Any) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"id": token_id, "content": content, **flags, **more}


def _document(model: dict[str, Any], **parts: Any) -> dict[str, Any]:
    size = len(model["vocab"])
    return {
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 9, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 8}, "direction": "Left", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0,
                    "pad_token": "a"},
        "added_tokens": [_flags("<x>", size, special=True), _flags("</s>", size + 1, lstrip=True, normalized=True)],
        "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": model, **parts,
    }  # fmt: skip


def _byte_level() -> dict[str, Any]:
    vocab = {letter: number for number, letter in enumerate("abcdĠ12")}
    vocab.update({"ab": 7, "abc": 8, "Ġab": 9})
    model = {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": None,
        "fuse_unk": False, "byte_fallback": False, "ignore_merges": True, "vocab": vocab,
        "merges": [["a", "b"], ["ab", "c"], ["Ġ", "ab"]],
    }  # fmt: skip
    split = {"type": "Split", "pattern": {"Regex": r"(?i:'s|'t)|[^\r\n\p{L}]?\p{L}+|\s+(?!\S)|\s"}, "behavior": "Isolated",
        "invert": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<x>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<x>": {"id": "<x>", "ids": [10], "tokens": ["<x>"]}},
    }
    return _document(
        model,
        normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Prepend", "prepend": " "}]},
        pre_tokenizer={"type": "Sequence", "pretokenizers": [split, byte_level]},
        post_processor={"type": "Sequence", "processors": [byte_level, template]},
        decoder=byte_level,
    )


def _word_piece() -> dict[str, Any]:
    vocab = {token: number for number, token in enumerate(("[UNK]", "[SEP]", "[CLS]", "a", "##b", "ab", "12"))}
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
        "vocab": vocab}
    normalizer = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
        "lowercase": True}
    return _document(
        model,
        normalizer=normalizer,
        pre_tokenizer={"type": "BertPreTokenizer"},
        post_processor={"type": "BertProcessing", "sep": ["[SEP]", 1], "cls": ["[CLS]", 2]},
        decoder={"type": "WordPiece", "prefix": "##", "cleanup": True},
    )


def _unigram(charsmap: bytes) -> dict[str, Any]:
    model = {"type": "Unigram", "unk_id": 0, "byte_fallback": False,
             "vocab": [["<unk>", 0.0], ["\u2581", -1.5], ["a", -2.25e0], ["b", -2.5], ["\u2581ab", -3.0], ["1",
             -10.53339672088623]]}  # fmt: skip
    decoders = [
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}, {"type": "BPEDecoder", "suffix": "</w>"},
        {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True},
        {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
    ]  # fmt: skip
    normalizers = [
        {"type": "Precompiled", "precompiled_charsmap": b64encode(charsmap).decode()},
        {"type": "Strip", "strip_left": True, "strip_right": False}, {"type": "Nmt"}, {"type": "Lowercase"},
            {"type": "StripAccents"},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
    ]  # fmt: skip
    pre_tokenizers = [
        {"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Isolated"}, {"type": "Digits",
            "individual_digits": True},
        {"type": "CharDelimiterSplit", "delimiter": "z"}, {"type": "UnicodeScripts"}, {"type": "FixedLength", "length": 7},
        {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
    ]  # fmt: skip
    return _document(
        model,
        normalizer={"type": "Sequence", "normalizers": normalizers},
        pre_tokenizer={"type": "Sequence", "pretokenizers": pre_tokenizers},
        post_processor={"type": "RobertaProcessing", "sep": ["a", 2], "cls": ["b", 3], "trim_offsets": True,
            "add_prefix_space": True},
        decoder={"type": "Sequence", "decoders": decoders},
    )


def _word_level() -> dict[str, Any]:
    model = {"type": "WordLevel", "vocab": {"a": 0, "ab": 1, "<unk>": 2}, "unk_token": "<unk>"}
    return _document(model, pre_tokenizer={"type": "Whitespace"}, normalizer={"type": "ByteLevel"})


def small_charsmap() -> bytes:
    """Rules for a few characters."""
    from jittok.build.charsmap import compile_charsmap

    return compile_charsmap({"\u00e9": "e", "\uff21": "A", "ab": "ba", "\u3000": " "})


def _sentencepiece(kind: str) -> bytes:
    pieces = [("<unk>", 0.0, PieceType.UNKNOWN), ("<s>", 0.0, PieceType.CONTROL), ("<x>", 0.0, PieceType.USER_DEFINED)]
    pieces += [(piece, -float(i), PieceType.NORMAL) for i, piece in enumerate(("\u2581a", "ab", "\u2581ab", "\u2581", "a",
        "b", "1"))]
    pieces.append(("un", -3.0, PieceType.UNUSED))
    spec = sentencepiece_model.make_spec(kind, pieces,
        normalizer=SentencePieceNormalizer(small_charsmap()))  # type: ignore[arg-type]
    return sentencepiece_model.write(spec)


def _ranks() -> dict[bytes, int]:
    ranks = {bytes((value,)): value for value in range(256)}
    ranks.update({b"ab": 256, b"abc": 257, b" ab": 258})
    return ranks


PATTERN = r"\p{L}+|\s+|[^\s\p{L}]+"


def _rank_lines() -> bytes:
    return b"".join(b64encode(token) + b" %d\n" % rank for token, rank in _ranks().items())


def _tekken() -> dict[str, Any]:
    return {
        "config": {"pattern": r"\p{L}+|\s+|[^\s\p{L}]+", "num_vocab_tokens": 259, "default_vocab_size": 262,
                   "default_num_special_tokens": 3, "version": "v13"},
        "vocab": [{"rank": rank, "token_bytes": b64encode(token).decode(), "token_str": None} for token,
        rank in _ranks().items()],
        "special_tokens": [{"rank": rank, "token_str": name, "is_control": True} for rank, name in enumerate(("<unk>",
        "<x>", "</s>"))],
    }  # fmt: skip


def dumped(value: Any) -> bytes:
    """JSON, as files have it."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def json_documents() -> dict[str, tuple[Any, Case]]:
    """Content of every kind of JSON file that is read, and its case."""
    result = {}
    for name, value in (
        ("byte-level", _byte_level()), ("wordpiece", _word_piece()), ("unigram", _unigram(small_charsmap())), ("wordlevel",
            _word_level()),
    ):  # fmt: skip
        result[f"tokenizer.json {name}"] = value, Case({}, "tokenizer.json", "tokenizer.json", {})
    result["tekken.json"] = _tekken(), Case({}, "tekken.json", "tekken.json", {})
    vocab = {letter: number for number, letter in enumerate([*byte_alphabet(), "ab", "<|endoftext|>"])}
    pair = {"vocab.json": dumped(vocab), "merges.txt": b"#version: 0.2\na b\n"}
    flags = _flags("<x>", 258)
    del flags["id"]
    gpt2 = {
        "tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True, "add_bos_token": True, "bos_token": "<|endoftext|>",
        "unk_token": flags, "pad_token": None, "added_tokens_decoder": {"258": flags}, "additional_special_tokens": ["<y>",
        flags],
        "extra_special_tokens": {"image_token": "<z>"},
    }  # fmt: skip
    bert = {"tokenizer_class": "BertTokenizer", "do_lower_case": False, "strip_accents": None,
        "tokenize_chinese_chars": True,
            "mask_token": flags}  # fmt: skip
    lines = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\nab\n"
    result["vocab.json"] = vocab, Case({"merges.txt": pair["merges.txt"]}, "vocab.json", ".", {})
    result["tokenizer_config.json of merges"] = gpt2, Case(pair, "tokenizer_config.json", ".", {})
    result["special_tokens_map.json of merges"] = gpt2, Case(pair, "special_tokens_map.json", ".", {})
    result["added_tokens.json of merges"] = {"<x>": 258, "ab": 256}, Case(pair, "added_tokens.json", ".", {})
    result["config.json of merges"] = {"model_type": "gpt2"}, Case(pair, "config.json", ".", {})
    result["tokenizer_config.json of vocab.txt"] = bert, Case({"vocab.txt": lines}, "tokenizer_config.json", ".", {})
    result["special_tokens_map.json of vocab.txt"] = bert, Case({"vocab.txt": lines}, "special_tokens_map.json", ".", {})
    result["added_tokens.json of vocab.txt"] = {"<x>": 8}, Case({"vocab.txt": lines}, "added_tokens.json", ".", {})
    marian = {"source.spm": _sentencepiece("unigram"), "target.spm": _sentencepiece("unigram")}
    numbers = {"</s>": 0, "<unk>": 1, "\u2581a": 2, "ab": 3, "b": 4, ">>x<<": 5, "<x>": 6}
    facts = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": False, "eos_token": "</s>", "pad_token": flags}
    shared = Case({**marian, "vocab.json": dumped(numbers)}, "tokenizer_config.json", ".", {})
    result["vocab.json of Marian"] = numbers, Case(marian, "vocab.json", ".", {})
    result["tokenizer_config.json of Marian"] = facts, shared
    kimi = {"added_tokens_decoder": {"300": flags}, "tokenizer_class": "TikTokenTokenizer", "bos_token": "<x>"}
    ranks = {"x.tiktoken": _rank_lines()}
    result["tokenizer_config.json of ranks"] = kimi, Case(ranks, "tokenizer_config.json", "x.tiktoken", {"pattern": PATTERN})
    return result


def _gguf(kind: str) -> dict[str, Any]:
    """The values of a GGUF file of each kind."""
    special = [("<unk>", UNKNOWN, 0.0), ("<s>", CONTROL, 0.0), ("</s>", CONTROL, 0.0), ("<x>", USER_DEFINED, 0.0)]
    alphabet = [(character, NORMAL) for character in byte_alphabet()]
    if kind == "gpt2":
        values = {"merges": ["a b", "ab c"], "pre": "gpt-2", "bos_token_id": 259, "eos_token_id": 259, "add_bos_token": True}
        return vocabulary(kind, [*alphabet, ("ab", NORMAL), ("abc", NORMAL), ("y z", UNUSED), ("<x>", CONTROL)], **values)
    if kind == "bert":
        strings = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u2581", "\u2581a", "b", "\u2581ab", "\u258112"]
        kinds = [CONTROL, UNKNOWN, CONTROL, CONTROL, *[NORMAL] * 5]
        ids = {"bos_token_id": 2, "seperator_token_id": 3, "unknown_token_id": 1}
        return vocabulary(kind, list(zip(strings, kinds, strict=True)), **ids)
    if kind == "rwkv":
        tokens = [("<s>", CONTROL), *((f"\\x{byte:02x}", NORMAL) for byte in range(256)), ("ab", NORMAL)]
        return vocabulary(kind, tokens)
    letters = [("\u2581", NORMAL, -1.0), ("a", NORMAL, -2.0), ("b", NORMAL, -3.0), ("\u2581ab", NORMAL, -4.0)]
    if kind == "t5":
        values = {"add_space_prefix": True, "remove_extra_whitespaces": True, "eos_token_id": 2}
        values["precompiled_charsmap"] = np.frombuffer(small_charsmap(), "u1")
        return vocabulary(kind, [*special, *letters], **values)
    fallback = [(f"<0x{byte:02X}>", BYTE, 0.0) for byte in range(256)]
    return vocabulary(kind, [*special, *fallback, *letters], bos_token_id=1, add_eos_token=True, add_space_prefix=True)


#: Values that a GGUF file may have where another is expected.
GGUF_OTHERS: list[Any] = [
    True, 0, 255, 2**31, "", "x", "bert", [], ["a", "b"], [b"\xff"], np.int64(-1), np.uint64(2**63), np.float32("nan"),
    np.zeros(0, "<i4"), np.full(3, -1, "<i8"), np.full(300, 9, "<i4"), np.ones(270, "<f4"), np.full(260, np.nan, "<f8"),
]  # fmt: skip


def _jittok_header(content: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a jittok file, with what it holds as text parsed, and what follows it."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    for name in ("spec", "plan"):
        header["__metadata__"][name] = json.loads(header["__metadata__"][name])
    return header, content[end:]


def _jittok_content(header: Any, arrays: bytes) -> bytes:
    if type(header) is dict and type(header.get("__metadata__")) is dict:
        texts = {
            name: value if name not in ("spec", "plan") else json.dumps(value)
            for name, value in header["__metadata__"].items()
        }
        header = {**header, "__metadata__": texts}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-(len(encoded) + 8) % 64)
    return len(encoded).to_bytes(8, "little") + encoded + arrays


def other_documents() -> dict[str, tuple[Any, list[Any], Callable[[Any], bytes]]]:
    """Of files that are no JSON but hold values of several types: the values, others for them, and how they are written."""
    result: dict[str, tuple[Any, list[Any], Callable[[Any], bytes]]] = {}
    for name, case in cases().items():
        content = case.files[case.damaged]
        if name.startswith("GGUF"):
            result[name] = _gguf(name.split()[1]), GGUF_OTHERS, gguf
        elif name.startswith("jittok"):
            header, arrays = _jittok_header(content)
            result[name] = header, OTHERS, partial(_jittok_content, arrays=arrays)
    return result


def cases() -> dict[str, Case]:
    """One case for each kind of file, with its content."""
    result = {}
    for name, (value, case) in json_documents().items():
        result[name] = case._replace(files={**case.files, case.damaged: dumped(value)})
    for kind in ("unigram", "bpe", "char", "word"):
        result[f"sentencepiece {kind}"] = Case({"x.model": _sentencepiece(kind)}, "x.model", "x.model", {})
    options = {"pattern": PATTERN, "special_tokens": {"<x>": 300}}
    result["tiktoken"] = Case({"x.tiktoken": _rank_lines()}, "x.tiktoken", "x.tiktoken", options)
    for kind in ("llama", "gpt2", "bert", "t5", "rwkv"):
        result[f"GGUF {kind}"] = Case({"x.gguf": gguf(_gguf(kind))}, "x.gguf", "x.gguf", {})
    pair_of_models = result["vocab.json of Marian"]
    result["source.spm of Marian"] = pair_of_models._replace(damaged="source.spm")
    vocab_txt = result["tokenizer_config.json of vocab.txt"]
    result["vocab.txt"] = vocab_txt._replace(damaged="vocab.txt", loaded="vocab.txt")
    pair = result["tokenizer_config.json of merges"]
    result["merges.txt"] = pair._replace(damaged="merges.txt", loaded="merges.txt")
    from jittok.formats import jittok_file

    for name in ("tokenizer.json byte-level", "tokenizer.json unigram"):
        tok = jittok.load_bytes(result[name].files["tokenizer.json"])
        content = jittok_file.write(tok.spec, tok.plan, tok._vocabulary.tables)
        result[f"jittok {name.split()[1]}"] = Case({"x.jittok": content}, "x.jittok", "x.jittok", {})
    return result


def run(case: Case, content: bytes, directory: Path) -> str:
    """Load a case with other content of the damaged file, and use it.

    Returns "used", or the message of jittok's own exception; any other exception goes through.
    """
    for name, data in {**case.files, case.damaged: content}.items():
        (directory / name).write_bytes(data)
    try:
        tok = jittok.load(directory / case.loaded, **case.options)
    except JittokError as error:
        assert str(error)
        return str(error)
    assert tok.plan is not None  # what is wrong with a file is said when it is loaded, not when its tables are built
    try:
        batch = tok.encode_batch(TEXTS, spans=True, special="parse")
        tok.decode_batch(batch)
        encoding = tok.encode(TEXTS[1], TEXTS[2], special="parse")
        assert len(encoding.tokens) == len(encoding.ids)
        tok.decode(encoding.ids)
        return "used"
    except JittokError as error:
        assert str(error)
        return str(error)


def flipped(content: bytes, rng: random.Random) -> bytes:
    """The content with some bits, bytes or stretches changed."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        at = rng.randrange(len(changed))
        kind = rng.randrange(5)
        if kind < 3:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 3:
            changed[at] = rng.randrange(256)
        else:
            stop = min(len(changed), at + rng.randrange(1, 20))
            changed[at:stop] = changed[at:stop] * rng.choice([0, 2])
        if not changed:
            break
    return bytes(changed)


#: Values of other types and sizes than what stands in a file.
OTHERS: list[Any] = [
    None, True, False, -1, 0, 1, 255, 1.5, -0.0, 1e308, 10**30, 2**31, 2**32, 2**63, 2**64, "", "x", "\u2581", "\0", "(",
        "[", "é" * 300,
    [], [[]], {}, {"type": "Sequence"}, ["a", "b"], {"a": 1}, {"Regex": "("}, {"String": ""},
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every path of a JSON value; of long lists and objects the first and last members."""
    yield path
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = list(range(len(value)))
    if len(keys) > 20:
        keys = keys[:2] + keys[-1:]
    for key in keys:
        yield from places(value[key], (*path, key))


def replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """A copy with another value at a path; ``...`` leaves the member out."""
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1 and other is ...:
        del copy[path[0]]
    else:
        copy[path[0]] = replaced(value[path[0]], path[1:], other)
    return copy


def wrong_types(
    value: Any, others: list[Any] = OTHERS, write: Callable[[Any], bytes] = dumped
) -> Iterator[tuple[tuple[Any, ...], Any, bytes]]:
    """Path, other value and content, for every path and other value."""
    nested = others is OTHERS
    for path in places(value) if nested else [(key,) for key in value]:
        for other in [*others, *([...] if path else [])]:
            yield path, other, write(replaced(value, path, other))

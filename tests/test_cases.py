"""Assertions of the reference libraries' own tests, where they concern byte-pair encoding and its steps."""

import functools
import json
import re
from pathlib import Path

import pytest
from specs import CASES, model_path

import jittok


def records(name):
    if CASES is None:
        return []
    path = Path(CASES) / "cases" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def cases(name, applies):
    chosen = [pytest.param(r, id=f"{r['test']}-{i}") for i, r in enumerate(records(name)) if applies(r)]
    skip = pytest.mark.skip(reason="set JITTOK_TEST_CASES to a folder that holds cases/ to replay them")
    return chosen or [pytest.param(None, marks=skip)]


# ----------------------------------------------------------------------------------------------------- tiktoken

ENCODINGS = {"gpt2": "r50k_base", "r50k_base": "r50k_base", "p50k_base": "p50k_base", "cl100k_base": "cl100k_base"}
CALLS = {"encode", "encode_ordinary", "decode", "decode_with_offsets"}


@functools.cache
def encoding(name):
    return jittok.load(model_path(f"tiktoken/{ENCODINGS[name]}/{ENCODINGS[name]}.tiktoken")).as_tiktoken()


def evaluate(node, name):
    """The value of a recorded expression; `name` is the encoding that stands for ``make_enc()``."""
    if isinstance(node, list):
        return [evaluate(item, name) for item in node]
    if not isinstance(node, dict):
        return node
    if "is" in node:
        return evaluate(node["is"], name)
    if "part_of" in node:
        return evaluate(node["part_of"], name)
    if node["call"] == "get_encoding":
        return encoding(node["args"][0])
    if node["call"] == "make_enc":
        return encoding(name)
    arguments = evaluate(node.get("args", []), name)
    return getattr(evaluate(node["on"], name), node["call"])(
        *arguments, **evaluate_keywords(node.get("kwargs", {}))
    )


def evaluate_keywords(kwargs):
    return {key: set(value) if isinstance(value, list) else value for key, value in kwargs.items()}


def evaluable(record):
    text = json.dumps(record["what"])
    names = set(re.findall(r'"call": "(\w+)"', text)) - {"get_encoding", "make_enc"}
    known = set(re.findall(r'"get_encoding".*?"args": \["(\w+)"\]', text)) <= set(ENCODINGS)
    return bool(names) and names <= CALLS and known and '"expr"' not in text


@pytest.mark.parametrize("record", cases("tiktoken_py", evaluable))
def test_tiktoken(record):
    what = record["what"]
    for name in ("r50k_base", "cl100k_base") if "make_enc" in json.dumps(what) else (None,):
        actual = evaluate(what, name)
        if what.get("var") in ("p", "o"):  # text and offsets of decode_with_offsets
            actual = actual[0 if what["var"] == "p" else 1]
        assert actual == record["expected"]


# --------------------------------------------------------------------------------------------------- tokenizers


def load(tmp_path, vocab, merges=(), pre_tokenizer=None, normalizer=None, decoder=None, **options):
    block = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer, "post_processor": None, "decoder": decoder,
        "model": {"type": "BPE", "vocab": vocab, "merges": [list(pair) for pair in merges or ()], **options},
    }  # fmt: skip
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(block), encoding="utf-8")
    return jittok.load(path)


def is_bpe(record):
    # Left out: dropout, and a record whose test changes the model on the way.
    changed = record["test"] == "test_ignore_merges" and len(record.get("expected_ids", ())) > 1
    of_bpe = record["component"] == "model" and "/bpe/" in record["file"]
    return of_bpe and "dropout" not in record["test"] and not changed


@pytest.mark.parametrize("record", cases("hf_tokenizers_rust", is_bpe))
def test_bpe_model(tmp_path, record):
    options = {key: json.loads(value) for key, value in record["options"].items()}
    tok = load(tmp_path, {token: int(number) for token, number in record["vocab"]}, record["merges"], **options)
    encoding = tok.encode(record["input"])
    assert encoding.ids.tolist() == record["expected_ids"]
    assert list(encoding.tokens) == record["expected_tokens"]
    at = [0]
    for character in record["input"]:
        at.append(at[-1] + len(character.encode()))
    assert [[at[a], at[b]] for a, b in encoding.spans.tolist()] == record["expected_offsets"]


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
SEQUENCE = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Punctuation"}]}
PRE_TOKENIZERS = {
    "BertPreTokenizer": {"type": "BertPreTokenizer"},
    "ByteLevel::default().add_prefix_space(false)": BYTE_LEVEL,
    "Digits::new(false)": {"type": "Digits", "individual_digits": False},
    "Digits::new(true)": {"type": "Digits", "individual_digits": True},
    "Punctuation::default()": {"type": "Punctuation"},
    "Sequence::new(pretokenizers)": SEQUENCE,
    "Whitespace {}": {"type": "Whitespace"},
    "WhitespaceSplit": {"type": "WhitespaceSplit"},
}


def pre_tokenizer_of(record):
    config = record["config"]
    if config.startswith("Split::new"):
        # The table's own pattern, inverted: words and punctuation are what is kept.
        behavior = config.split("behavior=")[1]
        return {"type": "Split", "pattern": {"Regex": r"\w+|[^\w\s]+"}, "behavior": behavior, "invert": True}
    return PRE_TOKENIZERS.get(config)


def is_split(record):
    return record["component"] == "pre_tokenizer" and pre_tokenizer_of(record) is not None


@pytest.mark.parametrize("record", cases("hf_tokenizers_rust", is_split))
def test_pre_tokenizers(tmp_path, record):
    block, text = pre_tokenizer_of(record), record["input"]
    assert text.isascii()  # bytes are characters
    characters = sorted(set(text)) if block["type"] != "ByteLevel" else byte_letters()
    tok = load(tmp_path, {character: i for i, character in enumerate(characters)}, pre_tokenizer=block)
    encoding = tok.encode(text)
    words = {}
    for number, (start, end) in zip(encoding.word_ids.tolist(), encoding.spans.tolist(), strict=True):
        first, _ = words.get(number, (start, end))
        words[number] = (first, end)
    assert [list(word) for word in words.values()] == [span for _, span in record["expected_splits"]]


def byte_letters():
    from jittok.vocabulary import byte_alphabet

    return [chr(codepoint) for codepoint in byte_alphabet()]


NORMALIZERS = {
    "test_prepend": {"type": "Prepend", "prepend": "\u2581"},
    "test_replace": {"type": "Replace", "pattern": {"String": "''"}, "content": '"'},
    "test_replace_regex": {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
    # these tests take the text apart first
    "test_strip_accents": {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "StripAccents"}]},
    "test_strip_accents_multiple": {"type": "StripAccents"},
}


@pytest.mark.parametrize(
    "record", cases("hf_tokenizers_rust", lambda r: r["component"] == "normalizer" and r["test"] in NORMALIZERS)
)
def test_normalizers(tmp_path, record):
    tok = load(tmp_path, {"a": 0}, normalizer=NORMALIZERS[record["test"]])
    assert tok.normalize(record["input"]) == record["expected"]


DECODERS = {
    "ByteLevel": lambda: BYTE_LEVEL,
    "BPEDecoder": lambda suffix="</w>": {"type": "BPEDecoder", "suffix": suffix},
    "Fuse": lambda: {"type": "Fuse"},
    "Replace": lambda pattern, content: {"type": "Replace", "pattern": {"String": pattern}, "content": content},
    "ByteFallback": lambda: {"type": "ByteFallback"},
    "WordPiece": lambda prefix="##", cleanup=True: {"type": "WordPiece", "prefix": prefix, "cleanup": cleanup},
    "Metaspace": lambda replacement="\u2581", prepend_scheme="always", split=True: {
        "type": "Metaspace", "replacement": replacement, "prepend_scheme": prepend_scheme, "split": split,
    },
}  # fmt: skip


def decoder_call(record):
    """Return the decoder's block and its tokens, if the record decodes literal tokens with one of DECODERS."""
    what = record["what"]
    if what.get("call") != "decode" or not record["file"].endswith("test_decoders.py"):
        return None
    made, tokens = what["on"].get("is"), what["args"][0]
    if not isinstance(made, dict) or made.get("call") not in DECODERS or not all(type(t) is str for t in tokens):
        return None
    if not all(type(item) in (str, bool) for item in [*made.get("args", []), *made.get("kwargs", {}).values()]):
        return None
    return DECODERS[made["call"]](*made.get("args", []), **made.get("kwargs", {})), tokens


@pytest.mark.parametrize("record", cases("hf_tokenizers_py", lambda r: decoder_call(r) is not None))
def test_decoders(tmp_path, record):
    decoder, tokens = decoder_call(record)
    vocab = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
    assert load(tmp_path, vocab, decoder=decoder).decode([vocab[token] for token in tokens]) == record["expected"]

"""tekken.json: the reader, and ids as mistral_common gives them."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from pathlib import Path

import pytest
import tiktoken

import jittok
from jittok.errors import FormatError, SpecialTokenError
from jittok.formats.tekken_json import read

PATTERN = r" ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
TOKENS = [*(bytes((byte,)) for byte in range(256)), b"th", b"the", b" the", b"\xc3\xa9", b"  ", b"unused"]
NAMES = ["<unk>", "<s>", "</s>", "[INST]"]


def document(**changes):
    block = {
        "config": {
            "pattern": PATTERN, "num_vocab_tokens": len(TOKENS), "default_vocab_size": 266,
            "default_num_special_tokens": 5, "version": "v13",
        },
        "vocab": [
            {"rank": rank, "token_bytes": b64encode(token).decode(), "token_str": None} for rank, token in enumerate(TOKENS)
        ],
        "special_tokens": [{"rank": rank, "token_str": name, "is_control": True} for rank, name in enumerate(NAMES)],
    }  # fmt: skip
    config = block["config"] | changes.pop("config", {})
    return block | {"config": {key: value for key, value in config.items() if value is not None}} | changes


@pytest.fixture
def load(tmp_path):
    def load(**changes):
        path = tmp_path / "tekken.json"
        path.write_text(json.dumps(document(**changes)), encoding="utf-8")
        return jittok.load(path)

    return load


def test_ids_are_ranks_after_the_special_tokens(load):
    tok = load()
    reference = tiktoken.Encoding(
        "x", pat_str=PATTERN, mergeable_ranks={token: rank for rank, token in enumerate(TOKENS[:261])}, special_tokens={}
    )
    for text in ("", "the theme", "a  the\u00e9 unused [INST] <s>", "\ud800", "\U0001f600" * 3):
        encoded = tok.encode(text)
        assert encoded.ids.tolist() == [5 + token_id for token_id in reference.encode(text)]
        if text != "\ud800":
            assert tok.decode(encoded) == text
    assert tok.vocab_size == 266
    assert tok.special_tokens == {**{name: i for i, name in enumerate(NAMES)}, "<SPECIAL_4>": 4}


def test_special_tokens_are_text_unless_asked_for(load):
    tok = load()
    assert 3 not in tok.encode("[INST]").ids
    assert tok.encode("[INST]", special="parse").ids.tolist() == [3]
    with pytest.raises(SpecialTokenError):
        tok.encode("[INST]", special="raise")
    assert tok.decode([1, 5 + 256, 2]) == "<s>th</s>"
    assert tok.decode([1, 5 + 256, 2], skip_special_tokens=True) == "th"


def test_old_files_have_known_special_tokens(load):
    tok = load(config={"version": "v3", "default_num_special_tokens": 22, "default_vocab_size": 283}, special_tokens=None)
    assert tok.id_to_token(3) == "[INST]" and tok.id_to_token(20) == "<SPECIAL_20>" and tok.id_to_token(21) == "<SPECIAL_21>"
    assert tok.encode("the").ids.tolist() == [22 + 257]


def test_it_is_read_from_memory_and_kept_in_a_jittok_file(tmp_path, load):
    tok = load()
    assert jittok.load_bytes(json.dumps(document()).encode()) == tok
    tok.save(tmp_path / "t.jittok")
    assert jittok.load(tmp_path / "t.jittok") == tok


BAD = {
    "no config": ({"config": {"pattern": None}}, "config: the field 'pattern' is missing"),
    "size": ({"config": {"default_vocab_size": 999}}, "need 994 of the vocabulary, which has 262"),
    "too small": ({"config": {"default_vocab_size": 100}}, "expected at least 256"),
    "special tokens": ({"config": {"default_num_special_tokens": 3}}, "4 special tokens; expected at most 3"),
    "unnamed": ({"special_tokens": None}, "files of version v13 must name them"),
    "twice": ({"special_tokens": [{"rank": 0, "token_str": "a"}, {"rank": 1, "token_str": "a"}]}, "'a' comes twice"),
    "empty": ({"special_tokens": [{"rank": 0, "token_str": ""}]}, "a token that is not empty"),
    "vocab": ({"vocab": {}}, "vocab: expected an array"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_named(name):
    changes, message = BAD[name]
    with pytest.raises(FormatError, match=message):
        read(json.dumps(document(**changes)).encode(), "t.json")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"rank": 8, "token_bytes": "Bw=="}, r"vocab\[7\].rank: expected the rank 7"),
        ({"rank": 7, "token_bytes": "BwAA"}, r"vocab\[7\].token_bytes: expected the byte 0x07"),
        ({"rank": 7, "token_bytes": "%"}, r"vocab\[7\].token_bytes: expected a token in base64"),
        ({"rank": 7}, r"vocab\[7\]: the field 'token_bytes' is missing"),
        (5, r"vocab\[7\]: expected an object"),
    ],
)
def test_entries_that_are_wrong_are_named(entry, message):
    block = document()
    block["vocab"][7] = entry
    with pytest.raises(FormatError, match=message):
        read(json.dumps(block).encode(), "t.json")


def test_a_file_cut_off_anywhere_is_an_error():
    whole = json.dumps(document()).encode()
    for size in range(0, len(whole) - 1, 97):
        with pytest.raises(FormatError):
            read(whole[:size], "t.json")


def test_ids_of_the_published_file():
    """Against what mistral_common gave, where that package (for its file) and the golden outputs are at hand."""
    common = pytest.importorskip("mistral_common", reason="the published file is part of mistral-common")
    cases = os.environ.get("JITTOK_TEST_CASES")
    if not cases:
        pytest.skip("JITTOK_TEST_CASES is not set: no golden outputs")
    tok = jittok.load(Path(common.__file__).parent / "data" / "tekken_240718.json")
    lines = (Path(cases) / "golden" / "tekken__tekken_240718__mistral_common.jsonl").read_text("utf-8").splitlines()
    compared = 0
    for line in lines[1:]:
        case = json.loads(line)
        encoded = tok.encode(case["text"])
        assert encoded.ids.tolist() == case["ids"]
        assert [tok.decode_bytes([i]).hex() for i in case["ids"]] == case["tokens_hex"]
        assert tok.decode(case["ids"]) == case["decoded"]
        compared += 1
    assert compared > 300

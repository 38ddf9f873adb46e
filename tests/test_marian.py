"""Marian pairs: the reader, and ids as transformers' MarianTokenizer gives them (recorded with transformers 5.24)."""

from __future__ import annotations

import json
import os
import pickle
import random
from pathlib import Path

import pytest
from sentencepiece_files import small_model

import jittok
from jittok.cli import main
from jittok.errors import ArgumentError, FormatError, JittokError, MissingFileError, UnsupportedError

NORMAL, UNKNOWN, CONTROL = 1, 2, 3
RESERVED = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
SOURCE = [*RESERVED, ("\u2581", -2.0, NORMAL), ("\u2581a", -2.5, NORMAL), ("a", -3.0, NORMAL), ("b", -3.5, NORMAL),
          ("ab", -3.0, NORMAL), ("x", -4.0, NORMAL), (">", -5.0, NORMAL), ("<", -5.0, NORMAL)]  # fmt: skip
TARGET = [*RESERVED, ("\u2581", -2.0, NORMAL), ("\u2581b", -2.5, NORMAL), ("a", -3.0, NORMAL), ("b", -3.5, NORMAL),
          ("\u00e9", -3.0, NORMAL), ("\u00e9\u00e8", -3.0, NORMAL), ("<", -5.0, NORMAL)]  # fmt: skip
#: Of both sides; "x" of the source is not there, and what only the target has comes from unknown text too.
VOCAB = {
    "</s>": 0, "<unk>": 1, "\u2581": 5, "\u2581a": 6, "a": 7, "b": 8, "ab": 9, ">": 10, "<": 11, "\u2581b": 12, "\u00e9": 13,
    "\u00e9\u00e8": 14, ">>fr<<": 15, ">>de<<": 16, "<pad>": 17,
}  # fmt: skip

#: Text, ids of the source side, ids of the target side, and what they are decoded to.
RECORDED = [
    ("", [0], [0], "</s>", "</s>"),
    (" ", [0], [0], "</s>", "</s>"),
    ("ab a  b", [5, 9, 6, 5, 8, 0], [5, 7, 8, 5, 7, 12, 0], "ab a b</s>", "ab a b</s>"),
    (">>fr<< ab", [15, 5, 9, 0], [15, 5, 7, 8, 0], ">>fr<< ab</s>", ">>fr<< ab</s>"),
    (">>fr<<b", [15, 5, 8, 0], [15, 12, 0], ">>fr<< b</s>", ">>fr<< b</s>"),
    (">>xx yy<< a", [1, 6, 0], [1, 5, 7, 0], "<unk> a</s>", "<unk> a</s>"),
    (" >>fr<<a", [5, 10, 10, 1, 11, 11, 7, 0], [5, 1, 11, 11, 7, 0], ">><unk> <<a</s>", "<unk> <<a</s>"),
    ("</s>>>de<<a", [0, 16, 6, 0], [0, 16, 5, 7, 0], "</s> >>de<< a</s>", "</s> >>de<< a</s>"),
    ("a</s> b<unk>", [6, 0, 5, 8, 1, 0], [5, 7, 0, 12, 1, 0], "a</s> b<unk> </s>", "a</s> b<unk> </s>"),
    ("\xe9", [5, 13, 0], [5, 13, 0], "\xe9</s>", "\xe9</s>"),
    ("\xe9\xe8", [5, 14, 0], [5, 14, 0], "\xe9\xe8</s>", "\xe9\xe8</s>"),
    ("a\xe9\xe8\xe9", [6, 1, 0], [5, 7, 14, 13, 0], "a<unk> </s>", "a\xe9\xe8\xe9</s>"),
    ("\xe9 \xe8xx", [5, 13, 5, 1, 1, 1, 0], [5, 13, 5, 1, 0], "\xe9 <unk> <unk> <unk> </s>", "\xe9 <unk> </s>"),
    ("\u2581a\u2581", [5, 6, 0], [5, 5, 7, 0], "a</s>", "a</s>"),
    ("<pad>", [17, 0], [17, 0], "<pad> </s>", "<pad> </s>"),
    (">><<", [1, 0], [1, 0], "<unk> </s>", "<unk> </s>"),
    ("\u4e2da", [5, 1, 7, 0], [5, 1, 7, 0], "<unk> a</s>", "<unk> a</s>"),
]


@pytest.fixture
def pair(tmp_path):
    """A directory with a small pair; arguments replace files."""

    def pair(**files):
        contents = {
            "source.spm": small_model(SOURCE), "target.spm": small_model(TARGET), "vocab.json": json.dumps(VOCAB).encode(),
        } | {name.replace("_spm", ".spm").replace("_json", ".json"): content for name, content in files.items()}  # fmt: skip
        for name, content in contents.items():
            if content is not None:
                (tmp_path / name).write_bytes(content)
        return tmp_path

    return pair


def test_recorded_ids(pair):
    source, target = jittok.load(pair()), jittok.load(pair(), side="target")
    texts = [row[0] for row in RECORDED]
    for tok, ids, decoded in ((source, 1, 3), (target, 2, 4)):
        for row in RECORDED:
            assert tok.encode(row[0]).ids.tolist() == row[ids]
            assert tok.decode(row[ids]) == row[decoded]
            stream = tok.decode_stream()
            assert "".join(map(stream.push, row[ids])) + stream.finish() == row[decoded]
        for spans in (False, True):
            assert tok.encode_batch(texts, spans=spans).to_lists() == [row[ids] for row in RECORDED]
        assert tok.count_batch(texts).tolist() == [len(row[ids]) for row in RECORDED]


def test_facts(pair, tmp_path):
    tok = jittok.load(pair())
    assert tok.vocab_size == 15 and tok.id_to_token(13) == "\u00e9"
    assert tok.special_tokens == {"</s>": 0, "<unk>": 1, "<pad>": 17}
    encoded = tok.encode(">>fr<< ab \u00e9\u00e8 </s>x")
    assert encoded.tokens == [">>fr<<", "\u2581", "ab", "\u2581", "\u00e9\u00e8", "</s>", "\u2581", "<unk>", "</s>"]
    assert encoded.spans.tolist() == [[0, 6], [7, 7], [7, 9], [9, 10], [10, 12], [13, 17], [17, 17], [17, 18], [0, 0]]
    assert tok.encode("ab", add_special_tokens=False).ids.tolist() == [5, 9]
    assert tok.encode("a</s>", special="text").tokens == ["\u2581a", "<", "<unk>", ">", "</s>"]
    tok.save(tmp_path / "pair.jittok")
    for other in (jittok.load(tmp_path / "pair.jittok"), pickle.loads(pickle.dumps(tok))):
        assert other == tok
        assert other.encode(">>xx<<ax\u00e9").ids.tolist() == tok.encode(">>xx<<ax\u00e9").ids.tolist()
    with pytest.raises(UnsupportedError, match="Marian pair"):
        tok.save(tmp_path / "x.json")
    assert jittok.load(pair(), format="marian") == tok
    for seed in range(20):
        assert max(tok.sample_encode("abx\u00e9ab", seed=seed).ids.tolist()) < 18


def test_configuration(pair):
    other = {token.replace("</s>", "[END]"): token_id for token, token_id in VOCAB.items()}
    config = {"eos_token": {"content": "[END]"}, "pad_token": None, "separate_vocabs": True}
    where = pair(
        tokenizer_config_json=json.dumps(config).encode(),
        vocab_json=json.dumps(other).encode(),
        target_vocab_json=json.dumps({"[END]": 0, "<unk>": 2, "\u2581b": 1}).encode(),
    )
    assert jittok.load(where).encode("a").tokens == ["\u2581a", "[END]"]
    assert jittok.load(where, side="target").encode("ba").ids.tolist() == [1, 2, 0]


def test_what_is_wrong_is_named(pair, tmp_path):
    with pytest.raises(ArgumentError, match="expected 'source' or 'target'"):
        jittok.load(pair(), side="left")
    with pytest.raises(ArgumentError, match="side= is for Marian pairs"):
        jittok.load(pair() / "source.spm", side="target")
    for content, message in (
        (b"[1]", "an object of token: id"),
        (b'{"</s>": 0, "<unk>": "1"}', "the id of '<unk>' is '1'"),
        (b'{"</s>": 0, "<unk>": 0}', "two tokens have the same id"),
        (b'{"</s>": 0}', "the unk_token '<unk>' is not in the vocabulary"),
    ):
        with pytest.raises(FormatError, match=message):
            jittok.load(pair(vocab_json=content))
    with pytest.raises(UnsupportedError, match="of type bpe"):
        jittok.load(pair(source_spm=small_model(SOURCE, model_type=2)))
    (tmp_path / "target.spm").unlink()
    with pytest.raises(MissingFileError, match="not all of them"):
        jittok.load(tmp_path, format="marian")


def test_damaged_jittok_files(pair, tmp_path):
    tok = jittok.load(pair())
    tok.save(tmp_path / "pair.jittok")
    data = (tmp_path / "pair.jittok").read_bytes()
    rng = random.Random(1)
    for _ in range(300):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            jittok.tokenizer._from_bytes(bytes(changed)).encode(">>fr<< ab")
        except JittokError:
            pass


def test_real_pair():
    root = os.environ.get("JITTOK_TEST_DATA")
    if not root or not (Path(root) / "models/unigram/opus-mt-en-fr/vocab.json").exists():
        pytest.skip("set JITTOK_TEST_DATA to a folder that holds models/ with opus-mt-en-fr to test with a real pair")
    directory = Path(root) / "models/unigram/opus-mt-en-fr"
    source, target = jittok.load(directory), jittok.load(directory, side="target")
    text = ">>fr<< \u0153uvre \u4e2d\u6587 world.</s>"
    assert source.encode(text).ids.tolist() == [1, 49, 11700, 6020, 158, 49, 42788, 46035, 522, 3, 0, 0]
    assert target.encode(text).ids.tolist() == [1, 755, 49, 42788, 46035, 49, 18088, 3, 0, 0]


def test_command_line(pair, capsys):
    assert main(["info", str(pair()), "--side", "target"]) == 0
    out = capsys.readouterr().out
    assert "marian; ids as transformers gives them" in out and "Marian, 15 entries, 10 pieces" in out
    assert "side='target'" in out

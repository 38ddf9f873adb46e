"""``jittok train``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

import jittok
from jittok.cli import main
from jittok.cli.train import other_options

TEXT = Path(jittok.__file__).parent / "data" / "hamlet.txt"


def test_bpe(tmp_path, capsys):
    out = tmp_path / "tokenizer.json"
    assert main(["train", "bpe", str(TEXT), "--vocab-size", "500", "--pre-tokenizer", "gpt2", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: 500 tokens\n"
    trained = jittok.load(out)
    assert trained.decode(trained.encode("東京 is not in Hamlet").ids) == "東京 is not in Hamlet"  # all bytes are there
    second = tmp_path / "second.json"
    assert main(["train", "bpe", str(TEXT), "--base", str(out), "--vocab-size", "600", "--out", str(second)]) == 0
    assert jittok.load(second).spec.model.merges[: 500 - 256] == trained.spec.model.merges


def test_several_sizes_from_counts(tmp_path):
    counts = tmp_path / "counts"
    jittok.count_words(TEXT, pre_tokenizer="Whitespace").save(counts)
    arguments = ["train", "bpe", "--counts", str(counts), str(counts), "--vocab-sizes", "300,400", "--special-token", "<s>"]
    assert main([*arguments, "--out", str(tmp_path / "t{size}.json"), "--memory-limit", "100M"]) == 0
    for size in (300, 400):
        trained = jittok.load(tmp_path / f"t{size}.json")
        assert trained.vocab_size == size
        assert trained.token_to_id("<s>") == 0


def test_wordpiece(tmp_path):
    out = tmp_path / "vocab.txt"
    steps = ["--normalizer", "BertNormalizer", "--pre-tokenizer", json.dumps({"type": "BertPreTokenizer"})]
    options = ["--vocab-size", "300", "--score", "likelihood", "--min-frequency", "5", "--special-token", "[UNK]"]
    assert main(["train", "wordpiece", str(TEXT), *steps, *options, "--out", str(out)]) == 0
    assert len(out.read_text(encoding="utf-8").splitlines()) == 300


def test_wordpiece_has_an_unknown_token(tmp_path):
    out = tmp_path / "vocab.txt"
    arguments = ["train", "wordpiece", str(TEXT), "--pre-tokenizer", "BertPreTokenizer", "--vocab-size", "200"]
    assert main([*arguments, "--out", str(out)]) == 0
    assert jittok.load(out).encode("東", add_special_tokens=False).tokens == ["[UNK]"]
    assert main([*arguments, "--special-token", "[PAD]", "--option", "unk_token=<u>", "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8").splitlines()[:2] == ["[PAD]", "<u>"]


def test_byte_level_counts_give_the_vocabulary_of_their_text(tmp_path):
    counts = tmp_path / "counts"
    jittok.count_words(TEXT, pre_tokenizer="gpt2").save(counts)
    arguments = ["train", "bpe", "--vocab-size", "400", "--out"]
    assert main([*arguments, str(tmp_path / "a.json"), "--counts", str(counts)]) == 0
    assert main([*arguments, str(tmp_path / "b.json"), "--pre-tokenizer", "gpt2", str(TEXT)]) == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_sentencepiece_rules(tmp_path, capsys):
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(json.dumps({"body": line}) + "\n" for line in TEXT.read_text("utf-8").splitlines()[:500]))
    arguments = ["train", "bpe", "--rules", "sentencepiece", "--field", "body", str(lines)]
    sizes = ["--vocab-sizes", "100,200", "--memory-limit", "2M"]
    assert main([*arguments, *sizes, "--out", str(tmp_path / "{size}.model")]) == 0
    expected = jittok.train_bpe(lines, rules="sentencepiece", field="body", vocab_size=100)
    assert jittok.load(tmp_path / "100.model").spec.model.pieces == expected.spec.model.pieces
    assert jittok.load(tmp_path / "200.model").vocab_size == 200
    capsys.readouterr()
    out = ["--out", str(tmp_path / "x.model")]
    for wrong, message in (
        (["--special-token", "<x>"], "--special-token is for tokenizers' rules"),
        (["--min-frequency", "2"], "--min-frequency is for tokenizers' rules"),
        (["--resume", "nothing"], "name no files"),
        (["--out", str(tmp_path / "x.json")], "cannot be written as tokenizer.json"),
        (["--counts"], "no file of jittok word counts"),
        (["--vocab-size", "100000", "--unreachable", "error"], "cannot be reached"),
    ):
        assert main([*arguments, *out, *wrong]) == 1
        assert message in capsys.readouterr().err


def test_the_place_of_the_result_is_looked_at_first(tmp_path, capsys):
    for model, name, message in (
        ("bpe", "a.model", "cannot be written as sentencepiece"),
        ("wordpiece", "a.tiktoken", "cannot be written as tiktoken"),
        ("unigram", "a.txt", "cannot be written as vocab.txt"),
        ("bpe", "a.vocabulary", "cannot tell a format"),
        ("bpe", "no folder/a.json", "there is no folder"),
    ):
        # The texts do not exist, which would be told later.
        assert main(["train", model, "no texts", "--vocab-size", "300", "--out", str(tmp_path / name)]) == 1
        assert message in capsys.readouterr().err
    assert main(["train", "unigram", str(TEXT), "--option", "vocab_size=100", "--out", str(tmp_path / "a.model")]) == 0


def test_warnings_and_errors(tmp_path, capsys):
    text, out = tmp_path / "text.txt", tmp_path / "tokenizer.json"
    text.write_text("ab ab\n")
    arguments = ["train", "bpe", str(text), "--vocab-size", "50", "--pre-tokenizer", "Whitespace", "--out", str(out)]
    assert main(arguments) == 0
    assert "jittok: warning: vocab_size=50 cannot be reached" in capsys.readouterr().err
    assert main([*arguments, "--unreachable", "error"]) == 1
    assert "jittok: error: vocab_size=50 cannot be reached" in capsys.readouterr().err
    for wrong, message in (
        (["train", "bpe", "--out", str(out)], "no files are given"),
        ([*arguments, "--option", "field"], "expected NAME=VALUE"),
        ([*arguments, "--option", "colour=red"], "unexpected argument colour="),
        ([*arguments, "--normalizer", "{"], "not JSON"),
        (["train", "bpe", str(text), "--vocab-sizes", "5,6", "--out", str(out)], "{size} in --out"),
        ([*arguments, "--resume", "nothing"], "name no files"),
    ):
        assert main(wrong) == 1
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main([*arguments, "--memory-limit", "much"])
    assert "argument --memory-limit: 'much' is not a number above 0 such as" in capsys.readouterr().err


@pytest.mark.parametrize(("given", "value"), [("true", True), ("0.5", 0.5), ("nfkc", "nfkc"), ("[1]", [1])])
def test_other_options(given, value):
    class Options:
        option = [f"name={given}"]

    assert other_options(Options()) == {"name": value}


def test_words_are_those_of_the_usual_steps(tmp_path):
    """Without the options a whole line would be a word, its end included."""
    out = tmp_path / "vocab.txt"
    assert main(["train", "wordpiece", str(TEXT), "--vocab-size", "200", "--out", str(out)]) == 0
    steps = {"normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}
    expected = jittok.train_wordpiece(TEXT, vocab_size=200, special_tokens=["[UNK]"], **steps)
    assert jittok.load(out).spec.model.vocab == expected.spec.model.vocab
    assert main(["train", "bpe", str(TEXT), "--vocab-size", "300", "--out", str(tmp_path / "x.tiktoken")]) == 0
    ranks = (tmp_path / "x.tiktoken").read_bytes()
    arguments = ["--pre-tokenizer", "gpt2", "--out", str(tmp_path / "y.tiktoken")]
    assert main(["train", "bpe", str(TEXT), "--vocab-size", "300", *arguments]) == 0
    assert (tmp_path / "y.tiktoken").read_bytes() == ranks
    arguments = ["--pre-tokenizer", "none", "--out", str(tmp_path / "lines.json")]
    assert main(["train", "bpe", str(TEXT), "--vocab-size", "300", *arguments]) == 0
    assert "\n" in jittok.load(tmp_path / "lines.json").spec.model.vocab


def test_true_and_false_as_python_writes_them():
    assert other_options(argparse.Namespace(option=["a=True", "b=false", "c=None", "d=none"])) == {
        "a": True, "b": False, "c": None, "d": "none",
    }  # fmt: skip

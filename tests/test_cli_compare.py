"""`jittok compare` and `jittok verify`."""

import base64
import json

import numpy as np
import pytest

import jittok
from jittok.cli import main

TEXTS = ["To be, or not to be", "na\u00efve  <|endoftext|> \u65e5\u672c", "\U0001f642 it's", "abab abc"]


@pytest.fixture
def files(tmp_path):
    """A corpus, a tokenizer.json, one that differs in a merge, and a rank file."""
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(TEXTS), encoding="utf-8")
    base = jittok.load_default()
    base.save(tmp_path / "a.json")
    block = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    block["model"]["merges"] = [pair for pair in block["model"]["merges"] if "".join(pair) != "\u0120be"]
    (tmp_path / "b.json").write_text(json.dumps(block), encoding="utf-8")
    tokens = [*(bytes([byte]) for byte in range(256)), b"ab", b"abab"]
    ranks = b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))
    (tmp_path / "r.tiktoken").write_bytes(ranks)
    return tmp_path


def test_a_tokenizer_and_its_copy_are_equal(files, capsys):
    assert main(["compare", "default", str(files / "a.json"), str(files / "corpus.txt")]) == 0
    out = capsys.readouterr().out
    assert "documents:  4," in out and "ids:        equal" in out


def test_differences_are_shown_with_what_is_around_them(files, capsys):
    a, b = str(files / "a.json"), str(files / "b.json")
    assert main(["compare", a, b, str(files / "corpus.txt")]) == 1
    out = capsys.readouterr().out
    assert "documents differ" in out and "document 0, token " in out and "\u2038" in out
    assert main(["compare", a, b, str(files / "corpus.txt"), "--json", "--show", "1"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["documents"] == 4 and found["differing"]["ids"] >= 1 and not found["equal"]
    (first,) = found["first"]
    one, other = (jittok.load(path).encode(TEXTS[0], add_special_tokens=False).ids.tolist() for path in (a, b))
    at = first["token"]
    assert one[:at] == other[:at] and one[at : at + 4] == first["a"]["ids"] and other[at : at + 4] == first["b"]["ids"]
    assert first["text"].replace("\u2038", "") == TEXTS[0] and first["text"].index("\u2038") == first["place"]


def test_an_installed_library_may_be_one_of_them(files, capsys):
    pytest.importorskip("tokenizers")
    path = str(files / "a.json")
    assert main(["compare", path, f"tokenizers:{path}", str(files / "corpus.txt")]) == 0
    assert main(["compare", str(files / "b.json"), f"tokenizers:{path}", str(files / "corpus.txt"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["b"] == f"tokenizers:{path}"


def test_a_tokenizer_is_verified_with_its_reference(files, capsys):
    pytest.importorskip("tokenizers")
    assert main(["verify", str(files / "a.json"), str(files / "corpus.txt"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["reference"] == "tokenizers" and found["differing"] == {"ids": 0, "spans": 0, "round trip": 0}
    assert found["notes"] == [] and found["equal"]
    # Nothing was verified where the library does not read the file.
    assert main(["verify", "default", str(files / "corpus.txt")]) == 1
    out = capsys.readouterr().out
    assert "note: not compared with tokenizers" in out and "ids:        not compared" in out and " 0 tokens" not in out
    assert main(["verify", "default", str(files / "corpus.txt"), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["differing"]["ids"] is None and found["tokens"] > 4 and not found["equal"]


def test_rank_files_are_verified_with_tiktoken(files, capsys):
    pytest.importorskip("tiktoken")
    details = ["--pattern", r"\w+|\W+", "--special-tokens", "{}"]
    assert main(["verify", str(files / "r.tiktoken"), str(files / "corpus.txt"), "--json", *details]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["reference"] == "tiktoken" and found["notes"] == [] and found["tokens"] > 4


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["compare", "default", "default"], "are the same"),
        (["compare", "default", "tokenizers:none.json"], "there is no such file"),
        (["compare", "default", "none.json"], "none.json"),
        (["compare", "default", "other:none.json"], "expected one of tokenizers:FILE"),
        (["compare", "default", "tokenizers"], "expected one of tokenizers:FILE"),
    ],
)
def test_refusals(files, capsys, wrong, message):
    assert main([*wrong, str(files / "corpus.txt")]) == 1
    assert message in capsys.readouterr().err
    assert main(["verify", "default", str(files / "none.txt")]) == 1


def test_records_that_are_left_out_are_named(files, capsys):
    path = files / "odd.jsonl"
    arguments = ["compare", "default", str(files / "b.json"), str(path), "-q"]
    path.write_text('{"text": 3}\n{"text": "To be"}\nnot JSON\n{"text": ""}\n')
    main(arguments)
    captured = capsys.readouterr()
    assert "documents:  1," in captured.out
    assert "2 records without a text left out; the first is " in captured.err
    assert f"{path}: line 1: the field 'text'" in captured.err
    path.write_text("not JSON\n")
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert f"a record without a text left out: {path}: line 1: not JSON" in error and "no documents in" in error


@pytest.mark.parametrize("content", ["", "\n\n\n"])
@pytest.mark.parametrize("command", [["verify"], ["compare", "default"]])
def test_without_documents(files, capsys, content, command):
    (files / "empty.txt").write_text(content)
    assert main([*command, str(files / "a.json"), str(files / "empty.txt")]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and "no documents in" in captured.err


def test_bytes_that_are_no_text_are_replaced_for_both(files, capsys):
    pytest.importorskip("tokenizers")
    (files / "bad.txt").write_bytes(b"a\xff\xfe b\n\xc3\n\xed\xa0\x80 x\n\0y\r\n")
    assert main(["verify", str(files / "a.json"), str(files / "bad.txt"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["documents"] == 4 and found["differing"] == {"ids": 0, "spans": 0, "round trip": 0}


def test_what_is_replaced_is_told(files, capsys):
    path = files / "bad.txt"
    path.write_bytes(b"a\n\xff b\nc\n\xc3\n")
    assert main(["compare", "default", str(files / "a.json"), str(path), "-q"]) == 0
    error = capsys.readouterr().err
    assert "2 records with U+FFFD for what is no text; the first is " in error
    assert f"{path}: line 2: invalid UTF-8 at byte 0 (invalid start byte)" in error
    path = files / "lone.jsonl"
    path.write_bytes(b'{"text": "a"}\n{"text": "b\\ud800"}\n')
    assert main(["verify", str(files / "a.json"), str(path), "-q"]) == 0
    error = capsys.readouterr().err
    assert f"a record with U+FFFD for what is no text: {path}: line 2: lone surrogate U+D800 at character 1" in error
    path.write_bytes(b'{"text": "a\xff"}\n{"text": "b"}\n')
    assert main(["compare", "default", str(files / "a.json"), str(path), "-q"]) == 0
    captured = capsys.readouterr()
    assert f"{path}: line 1: not UTF-8" in captured.err and "documents:  2," in captured.out
    assert main(["encode", "-t", "default", str(files / "lone.jsonl"), "--out", str(files / "out"), "-q"]) == 1
    assert f"{path}: line 1: invalid UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["bench", "default"], ["compare", "default", "a.json"], ["report", "default"]])
def test_how_much_text_is_taken(files, capsys, command):
    command = [str(files / part) if part.endswith(".json") else part for part in command]
    with pytest.raises(SystemExit, match="2"):
        main([*command, str(files / "corpus.txt"), "--megabytes", "0"])
    assert "argument --megabytes: '0': expected a number greater than 0" in capsys.readouterr().err


def test_documents_of_which_all_differ(files, capsys):
    model = {"type": "WordLevel", "vocab": {"u": 7}, "unk_token": "u"}
    (files / "w.json").write_text(json.dumps({"version": "1.0", "model": model}))
    assert main(["compare", str(files / "a.json"), str(files / "w.json"), str(files / "corpus.txt"), "--show", "2"]) == 1
    out = capsys.readouterr().out
    assert "4 documents differ" in out and out.count("\ndocument ") == 2


def test_a_reference_that_fails_on_a_text(files, capsys):
    """WordLevel without its unknown token; a panic is told in the same way."""
    pytest.importorskip("tokenizers")
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "u"}
    path = files / "w.json"
    path.write_text(json.dumps({"version": "1.0", "model": model}))
    assert main(["compare", "default", f"tokenizers:{path}", str(files / "corpus.txt")]) == 1
    error = capsys.readouterr().err
    assert "the library fails on 4 documents, of which the first is 'To be" in error and "[UNK]" in error


def test_a_reference_that_is_not_installed(files, capsys, monkeypatch):
    import importlib.util

    found = importlib.util.find_spec
    without = lambda name, *more: None if name == "tokenizers" else found(name, *more)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", without)
    assert main(["verify", str(files / "a.json"), str(files / "corpus.txt")]) == 1
    out = capsys.readouterr().out
    assert "ids:        not compared" in out and "tokenizers is not installed" in out
    assert main(["compare", "default", f"tokenizers:{files / 'a.json'}", str(files / "corpus.txt")]) == 1
    assert "tokenizers is not installed" in capsys.readouterr().err


def test_columns_of_bytes_and_of_strings_that_are_no_text(files, capsys):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    contents = [b"one line", b"no \xff text"]
    bounds, data = pa.py_buffer(np.array([0, 8, 17], np.int32).tobytes()), pa.py_buffer(b"".join(contents))
    columns = {"bytes": pa.array(contents), "large": pa.array(contents, pa.large_binary())}
    columns["strings"] = pa.Array.from_buffers(pa.string(), 2, [None, bounds, data])
    for name, column in columns.items():
        parquet.write_table(pa.table({"text": column}), files / f"{name}.parquet")
        assert main(["compare", "default", str(files / "a.json"), str(files / f"{name}.parquet")]) == 0
        assert "documents:  2," in capsys.readouterr().out

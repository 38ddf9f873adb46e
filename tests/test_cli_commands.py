"""``jittok decode``, ``bench`` and ``completion``."""

import io
import json

import numpy as np
import pytest
from specs import model_path

import jittok
from jittok.cli import main

TEXTS = ["To be, or not to be", "naïve café\twith a tab", "", "中文"]


@pytest.fixture(scope="module")
def tok():
    return jittok.load_default()


class TestDecode:
    def test_what_encode_wrote(self, tok, tmp_path, capsys):
        (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
        assert main(["encode", str(tmp_path / "texts.txt"), "--out", str(tmp_path / "out"), "-q"]) == 0
        capsys.readouterr()
        assert main(["decode", str(tmp_path / "out" / "texts.txt.ids.npy")]) == 0
        assert capsys.readouterr().out == "\n".join(TEXTS) + "\n"

    def test_lines(self, tok, tmp_path, capsys):
        lines = [
            " ".join(map(str, tok.encode(TEXTS[0]).ids.tolist())),
            str(tok.encode(TEXTS[1]).ids.tolist()),
            "",
            ",".join(map(str, tok.encode(TEXTS[3]).ids.tolist())),
        ]
        (tmp_path / "ids.txt").write_text("\n".join(lines) + "\n")
        assert main(["decode", str(tmp_path / "ids.txt"), "--json"]) == 0
        assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == TEXTS
        assert main(["decode", str(tmp_path / "ids.txt"), "--end", "\\0"]) == 0
        assert capsys.readouterr().out == "\0".join(TEXTS) + "\0"

    def test_standard_input(self, tok, monkeypatch, capsys):
        monkeypatch.setattr("sys.stdin", io.StringIO(str(tok.encode("a text").ids.tolist()) + "\n"))
        assert main(["decode", "-"]) == 0
        assert capsys.readouterr().out == "a text\n"

    @pytest.mark.parametrize(
        ("content", "message"), [("12 x 3\n", "line 1: 'x' is no id"), ("1\n99999999\n", "99999999"), ("-5\n", "-5")]
    )
    def test_no_ids(self, tmp_path, capsys, content, message):
        (tmp_path / "ids.txt").write_text(content)
        assert main(["decode", str(tmp_path / "ids.txt")]) == 1
        assert message in capsys.readouterr().err

    def test_no_arrays(self, tmp_path, capsys):
        assert main(["decode", str(tmp_path / "a.ids.npy")]) == 1
        assert "no such file" in capsys.readouterr().err
        np.save(tmp_path / "a.ids.npy", np.arange(3))
        np.save(tmp_path / "a.indptr.npy", np.array([0, 4]))
        assert main(["decode", str(tmp_path / "a.ids.npy")]) == 1
        assert "do not rise" in capsys.readouterr().err
        assert main(["decode", str(tmp_path / "a.npy")]) == 1
        assert "NAME.ids.npy" in capsys.readouterr().err
        (tmp_path / "a.indptr.npy").write_bytes(b"nothing")
        assert main(["decode", str(tmp_path / "a.ids.npy")]) == 1
        assert "no array" in capsys.readouterr().err
        (tmp_path / "b.txt").write_bytes(b"\xff\xfe")
        assert main(["decode", str(tmp_path / "b.txt")]) == 1
        assert "not text" in capsys.readouterr().err
        assert main(["decode", str(tmp_path / "none.txt")]) == 1
        assert "none.txt" in capsys.readouterr().err


class TestBench:
    @pytest.fixture
    def corpus(self, tmp_path):
        path = tmp_path / "corpus.txt"
        path.write_text("\n".join(["The quick brown fox jumps over the lazy dog.", "naïve café"] * 500), encoding="utf-8")
        return str(path)

    def test_alone(self, corpus, capsys):
        assert main(["bench", "default", corpus, "--rounds", "1"]) == 0
        out = capsys.readouterr().out
        assert "1,000 documents" in out and "jittok" in out

    def test_beside_others(self, corpus, capsys):
        path = str(model_path("bbpe/gpt2/tokenizer.json"))
        assert main(["bench", path, corpus, "--rounds", "1", "--json", "--megabytes", "0.01"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["bytes"] >= 10_000
        row = found["libraries"]["tokenizers"]
        assert row["ids"] == "equal" and row["unseen_cpu"] > 0 and row["again_wall"] > 0

    def test_nothing_to_measure(self, tmp_path, capsys):
        (tmp_path / "empty.txt").write_text("")
        assert main(["bench", "default", str(tmp_path / "empty.txt")]) == 1
        assert "no documents" in capsys.readouterr().err
        with pytest.raises(SystemExit, match="2"):
            main(["bench", "default", str(tmp_path / "empty.txt"), "--rounds", "0"])
        assert "argument --rounds: '0': expected a whole number of at least 1" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion(shell, capsys):
    pytest.importorskip("shtab", reason="needs shtab: pip install 'jittok[cli]'")
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert "decode" in out and "--vocab-size" in out


def test_help_is_by_task(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["--help"])
    assert exit_.value.code == 0
    out = capsys.readouterr().out
    for command in ("encode", "decode", "count", "train", "info", "bench", "warmup", "completion"):
        assert f"jittok {command}" in out


class TestShow:
    def test_brackets_and_ids(self, capsys):
        assert main(["show", "To be, or", "--ids", "--color", "never"]) == 0
        out, err = capsys.readouterr()
        assert out.splitlines()[0] == "[To][ be][,][ or]" and "'\u0120be'" in out and "2-5" in out and "4 tokens" in err

    def test_colours(self, capsys, monkeypatch, tmp_path):
        (tmp_path / "text.txt").write_text("a\n\nb", encoding="utf-8")
        assert main(["show", "--file", str(tmp_path / "text.txt"), "--color", "always"]) == 0
        out = capsys.readouterr().out
        lines = out.removesuffix("\n").split("\n")
        assert lines[1] == "" and all(line.startswith("\x1b[48;5;") and line.endswith("\x1b[0m") for line in lines if line)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("é".encode())))
        assert main(["show"]) == 0
        assert capsys.readouterr().out == "[é]\n"

    def test_page(self, capsys):
        assert main(["show", "a <b>", "--html"]) == 0
        out = capsys.readouterr().out
        assert out.startswith("<!DOCTYPE html>") and "&lt;" in out and "<b>" not in out.replace("<body>", "")

    def test_no_text(self, capsys, tmp_path):
        assert main(["show", "--file", str(tmp_path / "none")]) == 1
        (tmp_path / "bad").write_bytes(b"a\xff")
        assert main(["show", "--file", str(tmp_path / "bad")]) == 1
        assert "byte 1" in capsys.readouterr().err

"""Reports: the numbers, the command, and the page in a real browser."""

import html.parser
import json
import os
import re
from pathlib import Path

import pytest
from browser import Browser, find_browser

import jittok
from jittok import cli
from jittok.errors import ArgumentError
from jittok.report import ALL, measure_report

HAMLET = Path(jittok.__file__).parent / "data" / "hamlet.txt"


@pytest.fixture(scope="module")
def tokenizers():
    text = HAMLET.read_text(encoding="utf-8")
    return {
        "built-in": jittok.load_default(),
        "small & <own>": jittok.train_bpe([text], vocab_size=600, pre_tokenizer="gpt2"),
        "pieces": jittok.train_bpe(text.split("\n"), vocab_size=500, rules="sentencepiece", byte_fallback=True),
    }


TEXTS = {"english": ["To be, or not to be", "that is the question"], "Japanese": ["吾輩は猫である。"], "empty": []}


def test_numbers(tokenizers):
    report = measure_report(tokenizers, TEXTS, rounds=1)
    assert [one.name for one in report.tokenizers] == list(tokenizers)
    for one, tok in zip(report.tokenizers, tokenizers.values(), strict=True):
        assert list(one.groups) == ["english", "Japanese", ALL]
        total = 0
        for name in ("english", "Japanese"):
            group = one.groups[name]
            assert group.tokens == sum(tok.count(text, add_special_tokens=False) for text in TEXTS[name])
            assert group.characters == sum(map(len, TEXTS[name]))
            assert group.bytes == sum(len(text.encode()) for text in TEXTS[name])
            assert group.characters_per_token == (group.characters / group.tokens if group.tokens else 0)
            total += group.tokens
        assert one.groups["english"].words == 10 and one.groups["english"].fertility == one.groups["english"].tokens / 10
        assert one.groups[ALL].tokens == total == sum(row.count for row in one.rarest) or one.used > len(one.rarest)
        all_texts = [text for texts in TEXTS.values() for text in texts]
        ids = set(tok.encode_batch(all_texts, add_special_tokens=False).ids.tolist())
        assert one.used == len(ids) and one.frequencies[-1][0] == len(ids)
        assert len(one.longest[0].text) == max(len(row.text) for row in [*one.longest, *one.rarest, *one.commonest])
        assert all(row.token == tok.id_to_token(row.id) for row in one.longest)
        assert one.rarest[0].count <= one.rarest[-1].count and one.commonest[0].count == one.frequencies[0][1]
        assert one.unseen_speed > 0 and one.again_speed > 0
    # One of the trained ones has three bytes for each of the eight characters, the other one only the bytes of Hamlet.
    _, merges, pieces = (one.groups for one in report.tokenizers)
    assert pieces["Japanese"].byte_tokens == 24 and pieces["english"].byte_tokens == 0
    assert merges["Japanese"].tokens == 0 and merges["english"].byte_tokens == 0
    assert json.loads(json.dumps(report.to_dict()))["tokenizers"][0]["groups"]["english"]["words"] == 10


def test_unknown_tokens():
    texts = ["to be or not to be"] * 3
    tok = jittok.train_wordpiece(texts, vocab_size=14, pre_tokenizer="Whitespace", special_tokens=["[UNK]"])
    report = measure_report({"a": tok}, {"x": ["to be 猫"]}, rounds=0)
    assert report.tokenizers[0].groups["x"].unknown == 1


def test_wrong_arguments(tokenizers):
    with pytest.raises(ArgumentError, match="at least one"):
        measure_report({}, TEXTS)
    with pytest.raises(ArgumentError, match="at least one"):
        measure_report(tokenizers, {"a": []})
    with pytest.raises(ArgumentError, match="cannot be named"):
        measure_report(tokenizers, {"all": ["a"]})


def test_texts_without_tokens(tmp_path, capsys):
    """Of blanks, BERT makes nothing."""
    tok = jittok.train_wordpiece(["to be"], vocab_size=9, pre_tokenizer="Whitespace", special_tokens=["[UNK]"])
    report = measure_report({"a": tok, "b": tok}, {"blank": [" ", "\t \n"]}, rounds=1)
    group = report.tokenizers[0].groups["blank"]
    assert (group.documents, group.characters, group.tokens, group.characters_per_token) == (2, 4, 0, 0)
    page = report.to_html()
    checker = Checker()
    checker.feed(page)
    assert checker.open == [] and page.count("<svg") == 4
    # One of them has tokens, or just one of one kind.
    report = measure_report({"a": tok, "b": jittok.load_default()}, {"blank": [" "]}, rounds=0)
    assert "rank 1 of 1 in use" in report.to_html()
    tok.save(tmp_path / "tokenizer.json")
    (tmp_path / "blank.txt").write_text("   \n \t \n", encoding="utf-8")
    out = tmp_path / "page.html"
    given = [str(tmp_path / "tokenizer.json"), str(tmp_path / "blank.txt"), "--out", str(out), "--rounds", "0"]
    assert cli.main(["report", *given]) == 0
    assert "0 tokens, 0.000 characters per token" in capsys.readouterr().out and out.exists()


class Checker(html.parser.HTMLParser):
    """Whether every tag is closed, and nothing refers to another place."""

    def __init__(self):
        super().__init__()
        self.open, self.links = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "link"):
            self.open.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href") and not value.startswith("data:")]

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page(tokenizers):
    page = measure_report(tokenizers, TEXTS, rounds=1).to_html("A <title>")
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == [] and checker.links == []
    assert "<own>" not in page and "small &amp; &lt;own&gt;" in page and "A &lt;title&gt;" in page
    assert "http" not in page.replace("http-equiv", "")
    numbers = json.loads(re.search(r'id="numbers">(.*?)</script>', page).group(1))
    assert numbers["tokenizers"][1]["name"] == "small & <own>"
    assert page.count("<svg") == 4


def test_command(tmp_path, capsys, tokenizers):
    tokenizers["small & <own>"].save(tmp_path / "tokenizer.json")
    first, second = tmp_path / "english.txt", tmp_path / "all.txt"
    first.write_text("To be, or not to be\n\nthat is the question\n", encoding="utf-8")
    second.write_text("Être ou ne pas être\n", encoding="utf-8")
    out = tmp_path / "page.html"
    given = ["default", str(tmp_path / "tokenizer.json"), str(first), str(second), "--out", str(out), "--rounds", "0"]
    assert cli.main(["report", *given]) == 0
    printed = capsys.readouterr().out
    assert str(out) in printed and f"{tmp_path.name}/tokenizer.json" in printed
    assert "english.txt" in out.read_text(encoding="utf-8")
    assert cli.main(["report", *given, "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)["tokenizers"][0]["groups"]
    assert list(groups) == ["all.txt", "english.txt", "all"] and groups["english.txt"]["documents"] == 2
    assert cli.main(["report", "default"]) == 1
    assert "name files of text" in capsys.readouterr().err
    assert cli.main(["report", str(first), str(second)]) == 1
    assert "not a tokenizer file" in capsys.readouterr().err
    assert cli.main(["report", "-t", "default", str(first), "--out", str(tmp_path / "no" / "page.html")]) == 1
    assert "cannot write" in capsys.readouterr().err
    assert cli.main(["report", "default", "default", str(first)]) == 1
    assert "a tokenizer is given twice: default" in capsys.readouterr().err


def test_file_given_twice(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("one.txt").write_text("to be\n", encoding="utf-8")
    for given in (["one.txt", "one.txt"], ["one.txt", "./one.txt"], [str(tmp_path / "one.txt"), "*.txt"]):
        assert cli.main(["report", "default", *given, "--rounds", "0", "--json"]) == 1
        assert "a file of text is given twice" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["report", "default"], ["bench", "default"], ["verify", "default"]])
@pytest.mark.parametrize("megabytes", ["nan", "-1", "0", "inf", "1e999", "٣", "1_0", " 1", ""])
def test_megabytes(tmp_path, capsys, command, megabytes):
    path = tmp_path / "one.txt"
    path.write_text("to be\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="2"):
        cli.main([*command, str(path), f"--megabytes={megabytes}"])
    assert f"argument --megabytes: {megabytes!r}: expected a number greater than 0" in capsys.readouterr().err


def test_megabytes_of_all(tmp_path, capsys):
    path = tmp_path / "one.txt"
    path.write_text("to be\nor not\n", encoding="utf-8")
    assert groups_of(capsys, str(path), "--megabytes", "1e300")["one.txt"]["documents"] == 2


def test_help(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["report", "--help"])
    assert "jittok report [options] X [X ...] FILE" in capsys.readouterr().out


def groups_of(capsys, *given):
    """The groups that the command counts."""
    assert cli.main(["report", "default", *given, "--rounds", "0", "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)["tokenizers"][0]["groups"]
    assert groups.pop(ALL)["documents"] == sum(group["documents"] for group in groups.values())
    return groups


def characters_of(capsys, *given):
    return {name: group["characters"] for name, group in groups_of(capsys, *given).items()}


# Every text has a length of its own, so that a group's characters say which texts are in it.
ROWS = [
    {"text": "x", "lang": "en"},
    {"text": "x" * 2},
    {"text": "x" * 4, "lang": "fr"},
    {"text": "x" * 8, "lang": None},
    {"text": "x" * 16, "lang": 3},
    {"text": "x" * 32, "lang": "en"},
    {"lang": "xx"},
    {"text": None, "lang": "xx"},
    {"text": "", "lang": "xx"},
    {"text": "x" * 64, "lang": ""},
    {"text": "x" * 128, "lang": "de"},
    {"text": "x" * 256, "lang": True},
    {"text": "x" * 512, "lang": "3"},
    {"text": "x" * 1024, "lang": ["en", "ü"]},
]
EXPECTED = {"(none)": 74, "3": 528, '["en", "ü"]': 1024, "de": 128, "en": 33, "fr": 4, "true": 256}


@pytest.mark.parametrize("much", [1 << 18, 0], ids=["few", "many"])
def test_groups_of_a_field(tmp_path, capsys, monkeypatch, much):
    """The label is that of the text's own record; of many lines, which a kernel reads, too."""
    monkeypatch.setattr("jittok.corpus.reading._MUCH", much)
    path = tmp_path / "rows.jsonl"
    lines = ["", "no JSON", *(json.dumps(row) for row in ROWS)]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    assert characters_of(capsys, str(path), "--group", "lang") == EXPECTED
    other = tmp_path / "other.jsonl"
    other.write_text('{"content": {"text": "to be", "kind": "play"}}\n', encoding="utf-8")
    assert characters_of(capsys, str(other), "--field", "content.text", "--group", "content.kind") == {"play": 5}


def test_groups_of_the_first_megabytes(tmp_path, capsys):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    assert characters_of(capsys, str(path), "--group", "lang", "--megabytes", "7e-6") == {"en": 1, "fr": 4, "(none)": 2}


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_groups_of_a_column(tmp_path, capsys, kind):
    pyarrow = pytest.importorskip("pyarrow")
    feather, parquet = pytest.importorskip("pyarrow.feather"), pytest.importorskip("pyarrow.parquet")
    labels = ["en", None, "xx", "it", "", "en"]
    columns = {
        "text": ["x", "x" * 2, None, "x" * 8, "x" * 16, "x" * 32],
        "lang": labels,
        "code": pyarrow.array(labels).dictionary_encode(),
        "number": [1, None, 5, 2, 1, 3],
        "lists": [["a"], None, [], ["a"], ["b"], ["a"]],
    }
    path = tmp_path / f"rows.{kind}"
    write = parquet.write_table if kind == "parquet" else feather.write_feather
    write(pyarrow.table(columns), str(path))
    for name in ("lang", "code"):
        assert characters_of(capsys, str(path), "--group", name) == {"en": 33, "(none)": 18, "it": 8}
    assert characters_of(capsys, str(path), "--group", "number") == {"1": 17, "(none)": 2, "2": 8, "3": 32}
    assert characters_of(capsys, str(path), "--group", "lists") == {'["a"]': 41, "(none)": 2, '["b"]': 16}
    assert cli.main(["report", "default", str(path), "--group", "nope", "--rounds", "0"]) == 1
    assert "no column 'nope'; give another one with --group" in capsys.readouterr().err
    assert cli.main(["report", "default", str(path), "--column", "number", "--rounds", "0"]) == 1
    assert "give another one with --column" in capsys.readouterr().err


def test_field_that_no_record_has(tmp_path, capsys):
    path, other = tmp_path / "rows.jsonl", tmp_path / "other.jsonl"
    path.write_text('{"text": "to be"}\n{"text": "or not"}\n', encoding="utf-8")
    other.write_text('{"text": "to", "lang": "en"}\n', encoding="utf-8")
    assert cli.main(["report", "default", str(path), "--group", "lang", "--rounds", "0"]) == 1
    assert "no record with a text has the field 'lang'" in capsys.readouterr().err
    # Some files may have none.
    assert characters_of(capsys, str(path), str(other), "--group", "lang") == {"(none)": 11, "en": 2}


def test_labels_and_titles_that_are_not_utf_8(tmp_path, capsys):
    path, out = tmp_path / "rows.jsonl", tmp_path / "page.html"
    path.write_text('{"text": "to be", "lang": "\\ud800"}\n', encoding="utf-8")
    assert cli.main(["report", "default", str(path), "--group", "lang", "--rounds", "0", "--out", str(out)]) == 0
    assert 'data-value="\ufffd"' in out.read_text(encoding="utf-8")


@pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed that shows the page (JITTOK_TEST_BROWSER=...)")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_browser(tmp_path, tokenizers, dark):
    """No errors in the console, nothing asked of a network; a hover, a click on the legend and one on a heading work."""
    texts = {**TEXTS, "hamlet": HAMLET.read_text(encoding="utf-8").split("\n")[:2000]}
    page = tmp_path / "page.html"
    page.write_text(measure_report(tokenizers, texts, rounds=1).to_html(), encoding="utf-8")
    with Browser(tmp_path / "profile", dark=dark) as browser:
        browser.open(page)
        style = "getComputedStyle(document.body)"
        ground, ink = browser.run(f"[{style}.backgroundColor, {style}.color]")
        expected = "rgb(20, 23, 28) rgb(230, 233, 238)" if dark else "rgb(255, 255, 255) rgb(28, 31, 36)"
        assert f"{ground} {ink}" == expected
        fill = browser.run("getComputedStyle(document.querySelector('svg text')).fill")
        assert fill not in (ground, "rgb(0, 0, 0)")

        state = "getComputedStyle(document.getElementById('tip')).display"
        assert browser.run(state) == "none"
        browser.hover("svg .s0 rect")
        assert browser.run(state) == "block"
        assert "built-in\nenglish\n" in browser.run("document.getElementById('tip').textContent")
        browser.hover("circle[data-tip]")
        assert "rank 1 of" in browser.run("document.getElementById('tip').textContent")
        browser.hover("h1")
        assert browser.run(state) == "none"

        hidden = "[...document.querySelectorAll('.s1')].every(e => e.style.display === 'none')"
        assert browser.run("document.querySelectorAll('.s1').length") > 10 and not browser.run(hidden)
        browser.click(".legend button[data-series='1']")
        assert browser.run(hidden)
        assert browser.run("document.querySelector('.legend button[data-series=\"1\"]').ariaPressed") == "false"
        browser.click(".legend button[data-series='1']")
        assert not browser.run(hidden)

        column = "[...document.querySelectorAll('table')[1].tBodies[0].rows].map(r => Number(r.children[4].dataset.value))"
        before = browser.run(column)
        browser.run("document.querySelectorAll('table')[1].querySelectorAll('th button')[4].id = 'sorter'")
        browser.click("#sorter")
        assert browser.run(column) == sorted(before, reverse=True)
        browser.click("#sorter")
        assert browser.run(column) == sorted(before)
        folder = os.environ.get("JITTOK_TEST_SCREENSHOTS")
        if folder:
            browser.run("scrollTo(0, 0)")
            browser.screenshot(Path(folder) / f"report-{'dark' if dark else 'light'}.png")
        assert browser.faults() == []

"""Corpora as batches of documents: separators, JSON lines, tables, compression, positions, problems."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import random
import sys
import threading
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jittok.cli.arguments import SEPARATORS
from jittok.corpus import blocks
from jittok.corpus import reading as module
from jittok.corpus.blocks import read_blocks
from jittok.corpus.reading import Reading, read_documents
from jittok.corpus.sources import Source, find_sources, kind_of
from jittok.errors import ArgumentError, FormatError, MissingFileError

CUSTOM = [b"--", b"\n\n", b"aba", b"\r\n", b"<|end|>"]


def by_hand(content, separator):
    """What the documents are, said in the plainest way."""
    if separator == "none-per-file":
        return [content]
    if separator == "blank-line":
        documents, lines = [], []
        for line in [*content.replace(b"\r\n", b"\n").split(b"\n"), b""]:
            if line:
                lines.append(line)
            elif lines:
                documents.append(b"\n".join(lines))
                lines = []
        return documents
    mark = {"newline": b"\n", "nul": b"\0"}.get(separator, separator)
    pieces = content.split(mark)
    return pieces[:-1] if pieces[-1] == b"" else pieces


CONTENTS = [
    b"",
    b"\n",
    b"one",
    b"one\n",
    b"one\ntwo\n\n\nthree",
    b"\n\n\none\n\ntwo two\ntwo\n\n\n\n",
    b"a\0b\0\0c\0",
    b"\0",
    b"word " * 300 + b"\n" + b"x" * 77 + b"\n\n" + b"y\n" * 50,
    "é\n中文\n\n👩\n".encode() * 20,
    b"ababababa--a---b----<|end|><|end|x<|end|>",
    b"\n" * 7 + b"aba" * 5,
]


def texts_of(path, separator, block_size, **options):
    """Documents, and the blocks they came in, whose numbers and places are checked."""
    content = path.read_bytes()
    found, problems = [], []
    for block in read_blocks(str(path), separator, block_size, **options):
        assert block.indptr[0] == 0 and block.indptr[-1] == len(block.data)
        for i, start in enumerate(block.starts.tolist()):
            text = bytes(block.data[block.indptr[i] : block.indptr[i + 1]])
            assert content[start : start + len(text)] == text and block.ends[i] >= start + len(text)
            found.append((int(block.numbers[i]), text, int(block.ends[i])))
        problems += block.problems
    return found, problems


@pytest.mark.parametrize("separator", [*SEPARATORS, *CUSTOM])
@pytest.mark.parametrize("block_size", [1, 2, 3, 7, 64, 1 << 20])
@pytest.mark.parametrize("content", CONTENTS)
def test_documents_do_not_depend_on_the_block_size(tmp_path, content, block_size, separator):
    path = tmp_path / "text"
    path.write_bytes(content)
    documents, problems = texts_of(path, separator, block_size)
    assert [text for _, text, _ in documents] == by_hand(content, separator)
    assert [number for number, _, _ in documents] == list(range(len(documents)))
    assert problems == []
    assert texts_of(path, separator, 1 << 20)[0] == documents


@pytest.mark.parametrize("part", [7, 100, 1 << 18])
@pytest.mark.parametrize("separator", ["newline", "nul"])
def test_blocks_that_a_kernel_cuts(tmp_path, monkeypatch, separator, part):
    monkeypatch.setattr(blocks, "_MUCH", 1)
    monkeypatch.setattr(blocks, "_PART", part)
    source = random.Random(7)
    mark = {"newline": b"\n", "nul": b"\0"}[separator]
    path = tmp_path / "text"
    for longest in (1, 3, 70, 200, 3000):
        lengths = [source.randrange(longest) for _ in range(300)]
        path.write_bytes(mark.join(source.randbytes(n).replace(b"\n", b"x").replace(b"\0", b"y") for n in lengths))
        expected = by_hand(path.read_bytes(), separator)
        for size in (64, 100, 1000, 1 << 20):
            documents, _ = texts_of(path, separator, size)
            assert [text for _, text, _ in documents] == expected


@pytest.mark.parametrize("block_size", [1, 2, 3, 5, 1000])
def test_blank_lines_of_windows_files(tmp_path, block_size):
    path = tmp_path / "text"
    path.write_bytes(b"one\r\ntwo\r\n\r\nthree\r\n\r\n\r\nfour")
    documents, _ = texts_of(path, "blank-line", block_size)
    assert [text for _, text, _ in documents] == [b"one\r\ntwo", b"three", b"four"]


@settings(deadline=None, max_examples=300)
@given(
    st.text(alphabet="ab-\n\r\0x", max_size=60).map(str.encode),
    st.sampled_from([*SEPARATORS, *CUSTOM]),
    st.integers(1, 20),
    st.integers(0, 12),
    st.sampled_from([None, 1, 3, 10, 70]),
    st.data(),
)
def test_limits_and_positions(tmp_path_factory, content, separator, block_size, limit, part, data):
    path = tmp_path_factory.getbasetemp() / "limits"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        if part is not None:  # cut by the kernel
            patch.setattr(blocks, "_MUCH", 1)
            patch.setattr(blocks, "_PART", part)
        check_limits_and_positions(path, separator, block_size, limit, data)


def check_limits_and_positions(path, separator, block_size, limit, data):
    expected, _ = texts_of(path, separator, 1 << 20)
    documents, problems = texts_of(path, separator, block_size, limit=limit)
    assert documents == [row for row in expected if len(row[1]) <= limit]
    assert [problem.number for problem in problems] == [row[0] for row in expected if len(row[1]) > limit]
    assert all("longer than" in problem.reason for problem in problems)
    if not expected:
        return
    # reading from after any document gives those that follow
    number, _, end = data.draw(st.sampled_from(expected))
    rest, _ = texts_of(path, separator, block_size, position=end, number=number + 1)
    assert rest == expected[number + 1 :]


@pytest.mark.parametrize("block_size", [1 << 16, 1 << 18])
def test_long_records_are_not_held(tmp_path, block_size):
    path = tmp_path / "long"
    size = 40_000_000
    with open(path, "wb") as file:
        file.write(b"first\n")
        file.seek(size)
        file.write(b"\nlast\n")
    list(read_blocks(str(path), "newline", block_size, limit=100))  # compiles
    tracemalloc.start()
    documents, problems = [], []
    for block in read_blocks(str(path), "newline", block_size, limit=1 << 20):
        documents += [bytes(block.data[a:b]) for a, b in zip(block.indptr, block.indptr[1:], strict=False)]
        problems += block.problems
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert documents == [b"first", b"last"]
    assert [(problem.number, problem.position) for problem in problems] == [(1, 6)]
    assert peak < 8 << 20


# ------------------------------------------------------------------------------------------------------- sources


def test_sources(tmp_path):
    for name in ("b.txt", "a.jsonl.gz", ".hidden", "_SUCCESS", "below/c.parquet", "below/.git/d", "below/e.arrow"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_bytes(b"x")
    names = ["a.jsonl.gz", "b.txt", "below/c.parquet", "below/e.arrow"]
    found = find_sources([tmp_path])
    assert [os.path.relpath(source.path, tmp_path) for source in found] == names
    assert [source.kind for source in found] == ["jsonl", "text", "parquet", "arrow"]
    assert find_sources([str(tmp_path / "**" / "*.*")]) == found
    assert [source.name for source in find_sources([str(tmp_path / "*.txt"), "-"], "jsonl")] == ["b.txt", "stdin"]
    assert find_sources(["-"], "jsonl") == [Source("-", "jsonl")]
    assert kind_of("A.JSONL.zst") == "jsonl" and kind_of("README") == "text"
    (tmp_path / "empty").mkdir()
    for given_, message in (("empty", "no files"), ("*.none", "no file fits"), ("absent", "does not exist")):
        with pytest.raises(MissingFileError, match=message):
            find_sources([tmp_path / given_])
    with pytest.raises(ArgumentError, match="once"):
        find_sources(["-", "-"])


def compressed(content, tmp_path):
    """The same content under many names: in one piece, and in two pieces one after another."""
    import pyarrow

    half = len(content) // 2
    files = {"plain.jsonl": content}
    for suffix, compress in ((".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)):
        files[f"one.jsonl{suffix}"] = compress(content)
        files[f"two.jsonl{suffix}"] = compress(content[:half]) + compress(content[half:])
    parts = [pyarrow.compress(part, codec="zstd", asbytes=True) for part in (content, content[:half], content[half:])]
    files |= {"one.jsonl.zst": parts[0], "two.jsonl.zst": parts[1] + parts[2]}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    return [tmp_path / name for name in files]


def all_of(path, reading=None, **options):
    texts, problems, sizes = [], [], 0
    for documents in read_documents(find_sources([path])[0], reading or Reading(), **options):
        part = documents.texts
        if isinstance(part, tuple):
            data, indptr = part
            part = [bytes(data[a:b]).decode() for a, b in zip(indptr, indptr[1:], strict=False)]
        texts += part if isinstance(part, list) else part.to_pylist()
        problems += documents.problems
        assert len(documents) == len(documents.numbers) == len(documents.ends)
        sizes += documents.size
    return texts, problems, sizes


def test_compressed_files(tmp_path):
    pytest.importorskip("pyarrow")
    lines = [{"text": f"{i} é " * (i % 50)} for i in range(800)]
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    for path in compressed(content, tmp_path):
        texts, problems, size = all_of(path)
        assert texts == [line["text"] for line in lines], path
        assert problems == [] and size == len(content)
    (tmp_path / "bad.gz").write_bytes(gzip.compress(content)[:-20])
    with pytest.raises(FormatError, match=r"bad.gz: cannot be decompressed"):
        all_of(tmp_path / "bad.gz")


def zstandard(content):
    return pytest.importorskip("pyarrow").compress(content, codec="zstd", asbytes=True)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress, zstandard])
@pytest.mark.parametrize("content", [b"", b"1", b"one\ntwo\n", b"a line\n" * 20_000])
def test_standard_input(monkeypatch, pack, content):
    lines = content.decode().splitlines()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(pack(content))))
    assert all_of("-")[0] == lines
    # a pipe, which is written to bit by bit
    reader, writer = os.pipe()

    def write():
        data = pack(content)
        with open(writer, "wb", buffering=0) as file:
            for begin in range(0, len(data), 5000):
                file.write(data[begin : begin + 5000])

    thread = threading.Thread(target=write)
    thread.start()
    with open(reader, "rb") as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert all_of("-")[0] == lines
    thread.join()


# ---------------------------------------------------------------------------------------------------- JSON lines


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("text", {"text": "a"}),
        ("data.text", {"data": {"text": "a"}}),
        ("data.text", {"data.text": "a", "data": {"text": "b"}}),
        ("data.1.x", {"data": [0, {"x": "a"}]}),
        ("/da~1ta/1", {"da/ta": [0, "a"]}),
        ("/a.b", {"a.b": "a"}),
    ],
)
def test_fields(tmp_path, field, line):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(line))
    assert all_of(path, Reading(field=field))[0] == ["a"]


LINES = [
    '{"text": "a"}',
    ' \t{ "text" :\r"a" , "b" : [ ] , "c" : { } } \t\r',
    '{"text": "first", "text": "last"}',
    '{"text": "first", "text": 1}',
    '{"text": 1, "text": "last"}',
    r'{"te\u0078t": "escaped key"}',
    r'{"text": "first", "te\u0078t": "last"}',
    r'{"text": "\" \\ \/ \b \f \n \r \t \u0000 \u001f \u007f \u0080 \u07FF \u0800 \uffff \ud83d\ude00 \uD83D\uDE00"}',
    r'{"text": "\ud83d"}',
    r'{"text": "\ude00"}',
    r'{"text": "\ud83dx"}',
    r'{"text": "\ud83d\u0041"}',
    r'{"text": "\ud83d\ud83d\ude00"}',
    r'{"other": "\ud83d", "text": "a"}',
    r'{"text": "\u12"}',
    r'{"text": "\u12g4"}',
    r'{"text": "\x41"}',
    r'{"text": "\u 123"}',
    r'{"other": "\q", "text": "a"}',
    r'{"text": "a\"}',
    r'{"text": "\u00',
    '{"text": "a',
    '{"text": "tab\tinside"}',
    '{"other": "\x01", "text": "a"}',
    '{"text": "\x7f\x80\u2028"}',
    *(f'{{"n": {n}, "text": "a"}}' for n in (
        "0", "-0", "12", "-12.5e+3", "1E5", "1e-05", "0.0", "01", "-", "+1", "1.", ".5", "1e", "1e+", "--1", "0x10", "1_0",
        "NaN", "Infinity", "-Infinity", "nan", "true", "false", "null", "True", "nul", "nulll", "tru", "\u0661",
        "9" * 999, "9" * 1001, "9" * 5000,
    )),
    *(f'{{"other": {value}, "text": "a"}}' for value in (
        "[]", "[1]", "[1,]", "[,1]", "[1 2]", "{}", '{"a"}', '{"a":}', '{"a":1,}', '{"a" 1}', "{1:2}", '{"a":1]', "[1}",
        '[["text"], {"text": "inner"}]', "[" * 61 + "]" * 61, "[" * 59 + "]" * 59, '"' + "x" * 200 + '"', '"\\\\"',
    )),
    '{"text": "a"} x',
    '{"text": "a"}{"text": "b"}',
    '{"text": "a"',
    '{"text": "a",}',
    '{"text" "a"}',
    "{'text': 'a'}",
    '{"text": "a"}}',
    "[]",
    '"text"',
    "1",
    "",
    "  \t",
    "\ufeff{\"text\": \"a\"}",
    '{"text": null}',
    '{"text": ["a"]}',
    '{"text": {"text": "a"}}',
    '{"data": {"text": "a"}}',
    '{"data": {"text": "first"}, "data": {"text": "last"}}',
    '{"data": {"text": "first"}, "data": 1}',
    '{"data": {"text": "first"}, "data": {"x": "y"}}',
    '{"data": {"text": "first", "text": "last"}, "text": "top"}',
    '{"data": [{"text": "one"}, {"text": "two", "x": [{"text": "three"}]}]}',
    '{"data": {"1": {"text": "key"}}}',
    '{"data": [[{"text": "deep"}], {"data": {"text": "deeper"}}]}',
    '{"data.text": "whole", "data": {"text": "a"}}',
    '{"data.text": null, "data": {"text": "a"}}',
    r'{"data\u002etext": "whole", "data": {"text": "a"}}',
    '{"/text": "whole", "text": "a"}',
    '{"": "empty", "": {"": "twice"}}',
    '{"text": ""}',
    '{"text": "' + "long " * 40 + '", "data": {"text": "' + "é中\U0001f600" * 30 + '"}}',
]
FIELDS = ["text", "data.text", "data.1.text", "data.0.0.text", "/text", "/data/text", "", ".", "data.01.text", "1"]


def both_ways(path, field):
    """What a file of JSON lines has, by the kernel and by the json module alone."""
    found = []
    for least in (0, 1 << 60):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_MUCH", least)
            found.append(all_of(path, Reading(field=field)))
    return found


@pytest.mark.parametrize("field", FIELDS)
def test_the_kernel_reads_lines_as_json_does(tmp_path, field):
    path = tmp_path / "a.jsonl"
    path.write_bytes("\n".join(LINES).encode())
    kernel, plain = both_ways(path, field)
    assert kernel == plain
    assert kernel[0] or field in ("", "1")
    for line in LINES:
        path.write_bytes(line.encode())
        kernel, plain = both_ways(path, field)
        assert kernel == plain, line


def test_the_kernel_reads_most_lines(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    objects = [{"n": [i, {"x": None}], "data": [{"text": "no"}, {"text": f"é\n{i}\U0001f600"}]} for i in range(50)]
    path.write_text("".join(json.dumps(line, ensure_ascii=i % 2 == 0) + "\n" for i, line in enumerate(objects)))
    monkeypatch.setattr(module, "_MUCH", 0)
    monkeypatch.setattr(module, "_field_reader", lambda reading: None)
    assert all_of(path, Reading(field="data.1.text"))[0] == [line["data"][1]["text"] for line in objects]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["text", "data", "0", "1", "data.text", 'te"xt\\']), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, max_examples=200)
@given(st.lists(JSON, max_size=5), st.sampled_from(FIELDS), st.booleans(), st.data())
def test_the_kernel_reads_any_line_as_json_does(tmp_path_factory, values, field, ascii_only, data):
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    lines = [json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass") for value in values]
    for i, line in enumerate(lines):
        if len(line) and data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(line) - 1))
            by = data.draw(st.sampled_from([b"", b'"', b"\\", b"{", b"]", b",", b":", b" ", b"\xff", b"u", b"0", b"\xc3"]))
            lines[i] = line[:at] + by + line[at + data.draw(st.integers(0, 1)) :]
    path.write_bytes(b"\n".join(lines))
    kernel, plain = both_ways(path, field)
    assert kernel == plain


def test_lines_that_are_no_documents(tmp_path):
    good = json.dumps({"text": "good \ud83d\ude00"})
    bad = {
        b"{": "not JSON",
        b"[1]": "not JSON",
        b'{"text": 1}': "not a string",
        b'{"text": {"a": "b"}}': "not a string",
        b'{"text": null}': "no field",
        b'{"other": "x"}': "no field",
        b'{"text": "\xff"}': "not UTF-8",
        b"  ": "blank",
        b"[" * 100_000: "not JSON",
        b'{"text": "' + b"x" * 200_000 + b'"}': "too long",
    }
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join([good.encode(), *bad, good.encode()]))
    texts, problems, _ = all_of(path, Reading(limit=150_000))
    assert texts == ["good \U0001f600"] * 2
    assert [problem.kind for problem in problems] == list(bad.values())
    assert [problem.number for problem in problems] == list(range(1, 1 + len(bad)))
    assert [problem.position for problem in problems[:2]] == [len(good) + 1, len(good) + 3]


# -------------------------------------------------------------------------------------------------------- tables


def tables(tmp_path, table):
    """A table as files of several kinds."""
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, tmp_path / "a.parquet", row_group_size=70)
    with pyarrow.ipc.new_file(str(tmp_path / "a.arrow"), table.schema) as file:
        file.write_table(table, max_chunksize=60)
    with pyarrow.ipc.new_stream(str(tmp_path / "s.arrow"), table.schema) as stream:
        stream.write_table(table, max_chunksize=60)
    for name in ("a.parquet", "s.arrow", "a.arrow"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    return [tmp_path / name for name in ("a.parquet", "a.arrow", "s.arrow", "a.parquet.gz", "a.arrow.gz", "s.arrow.gz")]


def kinds_of_columns():
    pa = pytest.importorskip("pyarrow")
    return {
        "string": pa.string(),
        "large": pa.large_string(),
        "binary": pa.binary(),
        "view": pa.string_view(),
        "dictionary": pa.dictionary(pa.int32(), pa.string()),
    }


@pytest.mark.parametrize("kind", ["string", "large", "binary", "view", "dictionary"])
def test_tables(tmp_path, monkeypatch, kind):
    pa = pytest.importorskip("pyarrow")
    monkeypatch.setattr(module, "BATCH_BYTES", 2000)
    values = [None if i % 31 == 30 else f"text {i} é" * (i % 7) for i in range(500)]
    column = pa.array(values, pa.string())
    column = column.dictionary_encode() if kind == "dictionary" else column.cast(kinds_of_columns()[kind])
    table = pa.table({"n": range(500), "body": column, "other": [[i] for i in range(500)]})
    for path in tables(tmp_path, table) if kind != "view" else tables(tmp_path, table)[1:3]:
        reading = Reading(column="body", keep_columns=True)
        texts, problems, _ = all_of(path, reading)
        texts = [text.decode() if isinstance(text, bytes) else text for text in texts]
        assert texts == [value for value in values if value is not None]
        assert [problem.number for problem in problems] == [i for i in range(500) if values[i] is None]
        assert {problem.kind for problem in problems} == {"null"}
        source = find_sources([path])[0]
        batches = list(read_documents(source, reading))
        assert len(batches) > 3
        numbers = np.concatenate([batch.columns.column(0).to_numpy() for batch in batches])
        assert numbers.tolist() == [i for i in range(500) if values[i] is not None]
        for first in (0, 1, 69, 70, 130, 499, 500):
            rest, _, _ = all_of(path, reading, number=first)
            assert len(rest) == sum(value is not None for value in values[first:])
        with pytest.raises(ArgumentError, match="no column 'text'"):
            all_of(path)
        with pytest.raises(ArgumentError, match="not of strings"):
            all_of(path, Reading(column="n"))
    long = all_of(tmp_path / "a.arrow", Reading(column="body", limit=40))[1]
    kinds = ["null" if value is None else "too long" if len(value.encode()) > 40 else "" for value in values]
    expected = {i: kind for i, kind in enumerate(kinds) if kind}
    assert {problem.number: problem.kind for problem in long} == expected


def test_files_that_are_no_tables(tmp_path):
    pytest.importorskip("pyarrow")
    source = random.Random(3)
    for name in ("a.parquet", "a.arrow"):
        for size in (0, 3, 8, 1000):
            (tmp_path / name).write_bytes(source.randbytes(size))
            with pytest.raises(FormatError, match=name):
                all_of(tmp_path / name)

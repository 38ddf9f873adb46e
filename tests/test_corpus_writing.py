"""What corpus jobs write, read back as those who take it do."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from byte_tokenizer import Bytes
from test_corpus_jobs import content, shards_of

from jittok.corpus import json_columns
from jittok.corpus import reading as reading_module
from jittok.corpus import writing as module
from jittok.corpus.job import encode_corpus
from jittok.corpus.reading import Reading
from jittok.errors import ArgumentError

TEXTS = ["one", "", "two é", "a", "x" * 50, "", "last"]
IDS = [list(text.encode()) for text in TEXTS]


@pytest.fixture
def inputs(tmp_path):
    path = tmp_path / "texts"
    path.write_text("\n".join(TEXTS))
    return [path]


def encode(inputs, tmp_path, **arguments):
    out = tmp_path / "out"
    encode_corpus(Bytes(), inputs, out, overwrite=True, **arguments)
    return out


@pytest.mark.parametrize("vocab_size", [256, 1 << 16, (1 << 16) + 1])
def test_raw(tmp_path, inputs, monkeypatch, vocab_size):
    monkeypatch.setattr(Bytes, "id_limit", vocab_size)
    out = encode(inputs, tmp_path, format="raw", document_end=vocab_size - 1, name="some.json")
    about = json.loads((out / "texts.json").read_text())
    assert (about["tokenizer"], about["vocab_size"]) == ("some.json", vocab_size)
    arrays = {}
    for key in ("ids", "indptr"):
        array = about["arrays"][key]
        arrays[key] = np.memmap(out / array["file"], np.dtype(array["dtype"]).newbyteorder("<"), "r")
        assert len(arrays[key]) == array["length"]
    assert arrays["ids"].dtype == (np.uint16 if vocab_size <= 1 << 16 else np.uint32)
    assert arrays["ids"].tolist() == [number for ids in IDS for number in [*ids, vocab_size - 1]]
    assert arrays["indptr"].tolist() == np.cumsum([0, *(len(ids) + 1 for ids in IDS)]).tolist()


@pytest.mark.parametrize(("vocab_size", "code", "kind"), [(65_499, 8, np.uint16), (65_500, 4, np.int32)])
def test_megatron(tmp_path, inputs, monkeypatch, vocab_size, code, kind):
    """Field by field, as ``megatron.core.datasets.indexed_dataset`` reads them."""
    monkeypatch.setattr(Bytes, "id_limit", vocab_size)
    out = encode(inputs, tmp_path, format="megatron", document_end=7)
    with open(out / "texts.idx", "rb") as index:
        assert index.read(9) == b"MMIDIDX\x00\x00"
        assert struct.unpack("<Q", index.read(8)) == (1,)
        assert struct.unpack("<B", index.read(1)) == (code,)
        (n,) = struct.unpack("<Q", index.read(8))
        (n_bounds,) = struct.unpack("<Q", index.read(8))
        rest = index.read()
    assert (n, n_bounds) == (len(TEXTS), len(TEXTS) + 1)
    lengths = np.frombuffer(rest, np.int32, n)
    pointers = np.frombuffer(rest, np.int64, n, 4 * n)
    documents = np.frombuffer(rest, np.int64, n_bounds, 12 * n)
    assert len(rest) == 12 * n + 8 * n_bounds
    assert lengths.tolist() == [len(ids) + 1 for ids in IDS]
    assert documents.tolist() == list(range(n + 1))
    tokens = (out / "texts.bin").read_bytes()
    assert len(tokens) == lengths.sum() * np.dtype(kind).itemsize
    for i, ids in enumerate(IDS):
        assert np.frombuffer(tokens, kind, lengths[i], pointers[i]).tolist() == [*ids, 7]


@pytest.mark.parametrize("length", [1, 7, 64, 1000])
@pytest.mark.parametrize("end", [None, 10])
def test_packed_sequences(tmp_path, inputs, length, end):
    out = encode(inputs, tmp_path, format="packed", sequence_length=length, document_end=end, document_index=True, pad_id=9)
    rows = np.load(out / "texts.npy", mmap_mode="r")
    about = json.loads((out / "texts.json").read_text())
    flat = [number for ids in IDS for number in (ids if end is None else [*ids, end])]
    assert rows.dtype == np.int32 and rows.shape == (-(-len(flat) // length), length)
    assert rows.reshape(-1)[: about["tokens"]].tolist() == flat
    assert about["tokens"] == len(flat) and about["padding"] == rows.size - len(flat)
    assert set(rows.reshape(-1)[len(flat) :].tolist()) <= {9}
    starts = np.load(out / "texts.documents.npy")
    assert len(starts) == len(TEXTS) + 1
    for ids, a, b in zip(IDS, starts, starts[1:], strict=False):
        assert rows.reshape(-1)[a:b].tolist() == (ids if end is None else [*ids, end])


def test_no_tokens_are_lost_between_shards_of_packed_sequences(tmp_path, inputs):
    out = encode(inputs, tmp_path, format="packed", sequence_length=4, shard_tokens=6)
    shards = shards_of(out)
    assert len(shards) == 3
    found = [np.load(out / f"{shard['name']}.npy").reshape(-1)[: shard["tokens"]] for shard in shards]
    assert np.concatenate(found).tolist() == [number for ids in IDS for number in ids]


def test_an_empty_file(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    for form in ("npy", "raw", "megatron", "packed"):
        out = encode([tmp_path / "empty"], tmp_path, format=form, sequence_length=3 if form == "packed" else None)
        assert shards_of(out)[0]["tokens"] == 0
    assert np.load(out / "empty.npy").shape == (0, 3)


# -------------------------------------------------------------------------------------------------------- tables


def read_table(path):
    pyarrow = pytest.importorskip("pyarrow")
    if path.suffix == ".parquet":
        return pytest.importorskip("pyarrow.parquet").read_table(path)
    with pyarrow.memory_map(str(path)) as file:
        return pyarrow.ipc.open_file(file).read_all()


@pytest.mark.parametrize("rows", [3, 7, 8192])
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_tables(tmp_path, monkeypatch, form, rows):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(module, "ROWS", rows)
    names = pa.array(["a", "b", None, "a", "b", "c", "a"]).dictionary_encode()
    table = pa.table({"name": names, "text": TEXTS, "nested": [[{"x": i}] for i in range(7)]})
    source = tmp_path / "texts.parquet"
    pq.write_table(table, source, row_group_size=5)
    out = encode([source], tmp_path, format=form, reading=Reading(keep_columns=True))
    found = read_table(out / f"texts.parquet.{form}")
    assert found.schema.names == ["name", "nested", "ids"]
    assert found.schema.field("ids").type == pa.list_(pa.int32())
    assert found.column("ids").to_pylist() == IDS
    assert found.column("nested").equals(table.column("nested"))
    assert found.column("name").to_pylist() == table.column("name").to_pylist()
    if form == "parquet":
        about = pq.ParquetFile(out / "texts.parquet.parquet").metadata
        assert [about.row_group(i).num_rows for i in range(about.num_row_groups)] == [
            min(rows, 7 - first) for first in range(0, 7, rows)
        ]


def test_datasets_loads_what_is_written(tmp_path, inputs):
    datasets = pytest.importorskip("datasets")
    out = encode(inputs, tmp_path, format="parquet")
    loaded = datasets.load_dataset("parquet", data_files=str(out / "texts.parquet"), split="train", cache_dir=str(tmp_path))
    assert list(loaded["ids"]) == IDS


def test_row_groups_end_where_they_have_enough_ids(tmp_path, monkeypatch, inputs):
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(module, "ROW_GROUP_IDS", 8)
    results = []
    for size in (1, 5, 1000):
        out = encode(inputs, tmp_path, format="parquet", reading=Reading(batch_bytes=size))
        about = pq.ParquetFile(out / "texts.parquet").metadata
        assert [about.row_group(i).num_rows for i in range(about.num_row_groups)] == [3, 2, 2]
        results.append(content(out)["texts.parquet"])
    assert len(set(results)) == 1


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize("batch_bytes", [50, 300, None])
def test_fields_of_json_lines_are_columns(tmp_path, monkeypatch, form, batch_bytes):
    pytest.importorskip("pyarrow")
    lines = [
        {"text": "one", "n": 1, "x": 1, "ok": True, "url": "a", "meta": {"k": ["v"]}, "mixed": 1, "never": None},
        {"n": 2, "x": 0.5, "text": "two", "mixed": "s", "ok": None},
        {"text": "three", "n": 3.5, "x": 1 << 60, "ok": 1, "url": "\ud800", "meta": None, "new": [1], "never": "once"},
        {"text": None, "n": 4},
        {"text": "four", "n": 1 << 70, "other_fields": {"a": "é"}},
    ]
    monkeypatch.setattr(json_columns, "SAMPLE", len(json.dumps(lines[0])) + len(json.dumps(lines[1])) + 5)
    monkeypatch.setattr(reading_module, "SAMPLE", json_columns.SAMPLE)
    source = tmp_path / "a.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    reading = Reading(keep_columns=True, batch_bytes=batch_bytes)
    out = encode([source], tmp_path, format=form, reading=reading, on_error="skip")
    table = read_table(out / f"a.jsonl.{form}")
    names = ["n", "x", "ok", "url", "meta", "mixed", "never", "other_fields", "ids"]
    assert table.schema.names == names
    kinds = ["int64", "double", "bool", "string", "string", "string", "string", "string"]
    assert [str(kind) for kind in table.schema.types[:-1]] == kinds
    rows = [list(row.values())[:-1] for row in table.to_pylist()]
    assert rows == [
        [1, 1.0, True, "a", '{"k": ["v"]}', "1", None, None],
        [2, 0.5, None, None, None, '"s"', None, None],
        [None, None, None, None, None, None, '"once"', rows[2][-1]],
        [None, None, None, None, None, None, None, rows[3][-1]],
    ]
    assert json.loads(rows[2][-1]) == {"n": 3.5, "x": 1 << 60, "ok": 1, "url": "\ud800", "new": [1]}
    assert json.loads(rows[3][-1]) == {"n": 1 << 70, "other_fields": {"a": "é"}}
    assert table.column("ids").to_pylist() == [list(line["text"].encode()) for line in lines if line["text"]]


def test_the_text_is_no_other_field(tmp_path):
    pytest.importorskip("pyarrow")
    source = tmp_path / "a.jsonl"
    for field, line, rest in (
        ("data.text", {"data": {"text": "a", "n": 1}}, '{"n": 1}'),
        ("data.1", {"data": [0, "a"]}, "[0, null]"),
        ("data.text", {"data.text": "a", "data": {"text": "b"}}, '{"text": "b"}'),
    ):
        source.write_text(json.dumps(line))
        reading = Reading(field=field, keep_columns=True)
        table = read_table(encode([source], tmp_path, format="parquet", reading=reading) / "a.jsonl.parquet")
        assert table.to_pylist() == [{"data": rest, "other_fields": None, "ids": [ord("a")]}]


def test_other_columns_that_do_not_fit(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    for name, column in (("a", "n"), ("b", "m")):
        pq.write_table(pa.table({"text": TEXTS, column: range(7)}), tmp_path / f"{name}.parquet")
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    with pytest.raises(ArgumentError, match="different columns"):
        encode(paths, tmp_path, format="parquet", shard_tokens=1000, reading=Reading(keep_columns=True))
    out = encode(paths, tmp_path, format="parquet", reading=Reading(keep_columns=True))
    assert read_table(out / "b.parquet.parquet").schema.names == ["m", "ids"]
    pq.write_table(pa.table({"text": TEXTS, "ids": range(7)}), paths[0])
    with pytest.raises(ArgumentError, match="column 'ids' already"):
        encode(paths[:1], tmp_path, format="arrow", reading=Reading(keep_columns=True))
    out = encode(paths[:1], tmp_path, format="arrow")
    assert read_table(out / "a.parquet.arrow").schema.names == ["ids"]


def test_writers_know_their_files(tmp_path, inputs):
    pytest.importorskip("pyarrow")
    for form in module.FORMATS:
        length = 5 if form == "packed" else None
        out = encode(inputs, tmp_path / form, format=form, sequence_length=length, document_index=True)
        made = sorted(path.name for path in out.iterdir() if path.name != "manifest.jsonl")
        about = module.Writing(form, 256, length=length, with_documents=True)
        assert made == sorted(module.file_names("texts", about))

"""Arrow, pandas, polars and HuggingFace datasets in and out."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import jittok
from jittok.errors import ArgumentError, ArgumentTypeError, SpecialTokenError, TextError
from jittok.interop.datasets import encoder
from jittok.interop.frames import encode_series
from jittok.interop.shared_file import shared_tokenizer, tokenizer_bytes

TEXTS = ["To be, or not to be", "", "naïve café", None, "中文 text", "a" * 300, None, "the end"]


@pytest.fixture(scope="module")
def tok():
    return jittok.load_default()


@pytest.fixture(scope="module")
def expected(tok):
    return [None if text is None else tok.encode(text).ids.tolist() for text in TEXTS]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()])
def test_every_type_of_string(tok, expected, kind):
    array = pa.array(TEXTS, pa.string()).cast(kind)
    ids = tok.encode_arrow(array)
    assert ids.type == pa.list_(pa.int32()) and ids.to_pylist() == expected
    ids.validate(full=True)
    assert tok.encode_arrow(array[2:7]).to_pylist() == expected[2:7]
    there = pa.array([text for text in TEXTS if text is not None]).cast(kind)
    assert tok.encode_arrow(there).to_pylist() == [row for row in expected if row is not None]
    assert tok.encode_arrow(array[:0]).to_pylist() == []


def test_dictionary(tok, expected):
    array = pa.array([*TEXTS, *TEXTS]).dictionary_encode()
    assert tok.encode_arrow(array).to_pylist() == [*expected, *expected]
    chunked = pa.chunked_array([array[:5], array[5:5], array[5:]])
    ids = tok.encode_arrow(chunked)
    assert ids.to_pylist() == [*expected, *expected] and [len(chunk) for chunk in ids.chunks] == [5, 0, 11]
    assert tok.encode_arrow(pa.chunked_array([], array.type)).to_pylist() == []


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_chunks(tok, expected, monkeypatch, threads, kind):
    monkeypatch.setattr("jittok.engine.CHUNK_BYTES", 40)
    monkeypatch.setattr("jittok.engine.PARALLEL_BYTES", 1)
    texts, rows = TEXTS * 30, expected * 30
    array = pa.array(texts, pa.string()).cast(kind)
    chunked = pa.chunked_array([array[:3], array[3:3], array[3:100], array[100:101], array[101:]])
    ids = tok.encode_arrow(chunked, threads=threads)
    assert ids.to_pylist() == rows
    assert [len(chunk) for chunk in ids.chunks] == [len(chunk) for chunk in chunked.chunks]
    # Without nulls nothing is copied, and chunks of work lie across those of the array.
    kept = pa.chunked_array([chunk.cast(pa.string()).drop_null().cast(kind) for chunk in chunked.chunks])
    there = [row for row in rows if row is not None]
    assert tok.encode_arrow(kept, threads=threads).to_pylist() == there
    assert tok.encode_batch(kept, threads=threads).to_lists() == there
    spans = tok.encode_batch(kept, spans=True, threads=threads)
    assert spans.to_lists() == there and spans[2].spans.tolist() == tok.encode("naïve café").spans.tolist()
    assert tok.count_batch(kept, threads=threads).tolist() == [len(row) for row in there]


def test_nothing_is_copied(tok):
    array = pa.array(["one text"] * 100)
    assert tok.encode_arrow(array).values.buffers()[1].address % 4 == 0
    batch = tok.encode_batch(array)
    assert batch.to_arrow().values.buffers()[1].address == batch.ids.ctypes.data


def test_nulls_only(tok):
    assert tok.encode_arrow(pa.nulls(3)).to_pylist() == [None] * 3
    assert tok.encode_arrow(pa.nulls(3, pa.string())).to_pylist() == [None] * 3
    assert tok.encode_arrow(pa.chunked_array([pa.nulls(2, pa.string()), pa.array(["a"])])).null_count == 2


def test_tables(tok, expected):
    table = pa.table({"id": range(len(TEXTS)), "text": TEXTS})
    done = tok.encode_arrow(table, "text")
    assert done.column_names == ["id", "text", "input_ids"] and done["input_ids"].to_pylist() == expected
    assert done["text"].chunk(0).buffers()[2].address == table["text"].chunk(0).buffers()[2].address
    batch = pa.RecordBatch.from_pydict({"text": TEXTS})
    done = tok.encode_arrow(batch, "text", output="ids", max_length=2)
    assert isinstance(done, pa.RecordBatch) and done.schema.names == ["text", "ids"]
    assert done.column("ids").to_pylist() == [row and row[:2] for row in expected]


@pytest.mark.parametrize(
    ("data", "arguments", "message", "kind"),
    [
        (pa.table({"a": ["x"]}), {}, "which one has the text", ArgumentTypeError),
        (pa.table({"a": ["x"]}), {"column": "b"}, "there are a", ArgumentError),
        (pa.table([["x"], ["y"]], names=["a", "a"]), {"column": "a"}, "several", ArgumentError),
        (pa.table({"a": ["x"]}), {"column": "a", "output": "a"}, "already", ArgumentError),
        (pa.table({"a": [1]}), {"column": "a"}, "strings", ArgumentTypeError),
        (pa.array(["x"]), {"column": "a"}, "RecordBatch or Table", ArgumentTypeError),
        (["x"], {}, "expected an Arrow array", ArgumentTypeError),
        (pa.array(["x"]), {"spans": True}, "use encode_batch", ArgumentTypeError),
    ],
)
def test_wrong_arguments(tok, data, arguments, message, kind):
    with pytest.raises(kind, match=message):
        tok.encode_arrow(data, **arguments)


def test_invalid_utf_8_names_the_text(tok):
    chunked = pa.chunked_array([pa.array([b"good"]), pa.array([b"good", b"bad \xff"])])
    with pytest.raises(TextError, match=r"texts\[2\]"):
        tok.encode_arrow(chunked)
    replaced = tok.encode_arrow(chunked, errors="replace").to_pylist()
    assert replaced[2] == tok.encode("bad \ufffd").ids.tolist()

def test_errors_name_the_row_that_nulls_are_counted_in(tok):
    array = pa.array([None, b"a", None, b"\xff"])
    for data in (array, pa.chunked_array([array[:2], array[2:]])):
        with pytest.raises(TextError, match=r"texts\[3\]"):
            tok.encode_arrow(data)
    table = pa.table({"text": pa.array([None, None, "a<|endoftext|>"])})
    with pytest.raises(SpecialTokenError, match=r"text 2 holds the special token"):
        tok.encode_arrow(table, "text", special="raise")


def test_pandas(tok, expected):
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    series = pandas.Series(TEXTS, index=range(10, 10 + len(TEXTS)), name="text")
    ids = encode_series(tok, series)
    assert ids.name == "text" and ids.index.tolist() == series.index.tolist()
    assert [None if row is pandas.NA or row is None else list(row) for row in ids] == expected
    with pytest.raises(ArgumentTypeError, match="expected texts"):
        encode_series(tok, pandas.Series([1, 2]))


def test_polars(tok, expected):
    polars = pytest.importorskip("polars", reason="needs polars")
    ids = encode_series(tok, polars.Series("text", TEXTS))
    assert ids.dtype == polars.List(polars.Int32) and ids.to_list() == expected and ids.name == "text"


def test_no_series(tok):
    with pytest.raises(ArgumentTypeError, match="pandas or polars"):
        encode_series(tok, ["a"])


def test_function_for_datasets(tok, expected):
    encode = encoder(tok, max_length=3)
    rows = encode({"text": ["one", "To be, or not to be"], "id": [1, 2]})
    assert [row.tolist() for row in rows["input_ids"]][1] == tok.encode("To be, or not to be").ids.tolist()[:3]
    assert list(rows) == ["input_ids"]
    again = pickle.loads(pickle.dumps(encode))
    assert [row.tolist() for row in again({"text": ["one"]})["input_ids"]] == [rows["input_ids"][0].tolist()]
    assert encoder(tok)(pa.table({"text": TEXTS}))["input_ids"].to_pylist() == expected
    for batch in ({"other": []}, {"text": "one text"}, ["text"]):
        with pytest.raises(ArgumentError, match="batched=True"):
            encode(batch)


def test_what_is_pickled_follows_from_the_settings_alone(tok, tmp_path):
    before = pickle.dumps(encoder(tok, max_length=5, threads=1))
    tok.encode_batch(["some text"] * 1000, spans=True)
    assert pickle.dumps(encoder(tok, threads=1, max_length=5)) == before
    assert pickle.dumps(encoder(tok, max_length=6, threads=1)) != before
    program = (
        "import jittok, pickle, hashlib; from jittok.interop.datasets import encoder; "
        "print(hashlib.sha256(pickle.dumps(encoder(jittok.load_default(), max_length=5, threads=1))).hexdigest())"
    )
    seen = set()
    for seed in "1", "2":
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        seen.add(subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True).stdout)
    import hashlib

    assert seen == {hashlib.sha256(before).hexdigest().encode() + b"\n"}


@pytest.mark.filterwarnings("ignore")
def test_datasets(tok, expected, tmp_path):
    datasets = pytest.importorskip("datasets", reason="needs HuggingFace datasets")
    texts = [text for text in TEXTS if text is not None]
    rows = [row for row in expected if row is not None]
    data = datasets.Dataset.from_dict({"text": texts * 20})
    data.to_parquet(str(tmp_path / "texts.parquet"))
    data = datasets.Dataset.from_parquet(str(tmp_path / "texts.parquet"), cache_dir=str(tmp_path / "cache"))
    done = data.map(encoder(tok), batched=True, batch_size=50)
    assert [list(row) for row in done["input_ids"]] == rows * 20 and done["text"][0] == texts[0]
    tok.encode_batch(texts)
    again = data.map(encoder(jittok.load_default()), batched=True, batch_size=50)
    assert again._fingerprint == done._fingerprint  # found in the cache
    assert data.map(encoder(tok, max_length=3), batched=True)._fingerprint != done._fingerprint
    arrow = data.with_format("arrow").map(encoder(tok), batched=True, batch_size=50)
    assert arrow.with_format(None)["input_ids"][:3] == done["input_ids"][:3]


def test_one_file_for_all_processes(tok, monkeypatch, tmp_path):
    monkeypatch.setenv("JITTOK_CACHE_DIR", str(tmp_path))
    shared_tokenizer.cache_clear()
    content = tokenizer_bytes(tok)
    shared = shared_tokenizer(content)
    assert shared.encode("one text") == tok.encode("one text")
    files = list((tmp_path / "shared").iterdir())
    assert len(files) == 1 and files[0].read_bytes() == content
    files[0].write_bytes(content[:100])  # as after a power failure
    shared_tokenizer.cache_clear()
    assert shared_tokenizer(content).encode("one text") == tok.encode("one text")
    assert list((tmp_path / "shared").iterdir()) == files
    shared_tokenizer.cache_clear()
    monkeypatch.setenv("JITTOK_CACHE_DIR", "/proc/nowhere")
    with pytest.raises(jittok.errors.OutputError, match="JITTOK_CACHE_DIR"):
        shared_tokenizer(content)
    with pytest.raises(ArgumentTypeError, match="path"):
        tokenizer_bytes(5)
    shared_tokenizer.cache_clear()


def test_numpy_strings(tok):
    assert tok.encode_batch(np.array(["a b", "c"])).to_lists() == [tok.encode(text).ids.tolist() for text in ("a b", "c")]


def test_chunks_that_are_all_empty():
    tok = jittok.load_default()
    empty = pa.chunked_array([[], []], pa.string())
    assert len(tok.encode_batch(empty)) == 0
    assert tok.encode_arrow(empty).to_pylist() == []
    assert tok.encode_arrow(pa.table({"text": empty}), "text").num_rows == 0


def test_no_text_in_a_data_set():
    encode = encoder(jittok.load_default())
    found = encode({"text": ["one", None, ""]})["input_ids"]
    assert found[1] is None and found[0].tolist() == jittok.load_default().encode("one").ids.tolist() and len(found[2]) == 0


def test_frames_that_hold_no_texts():
    pandas = pytest.importorskip("pandas")
    tok = jittok.load_default()
    with pytest.raises(TextError, match="lone surrogate at character 1"):
        encode_series(tok, pandas.Series(["a", "b\ud800"], dtype=object))
    with pytest.raises(ArgumentTypeError, match="one column of a frame"):
        encode_series(tok, pandas.DataFrame({"a": ["x"]}))

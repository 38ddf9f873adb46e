"""Corpus jobs: what they write, and that nothing that happens to them changes it."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest
from byte_tokenizer import Bytes
from hypothesis import given, settings
from hypothesis import strategies as st

from jittok.corpus import files, job, overlap, writing
from jittok.corpus.blocks import Block
from jittok.corpus.job import encode_corpus
from jittok.corpus.reading import Reading
from jittok.errors import ArgumentError, FormatError, OutputError, SpecialTokenError, TextError

CODE = Path(__file__).parent
posix = pytest.mark.skipif(os.name != "posix", reason="signals and limits are POSIX's")


def texts(n, seed=1):
    source = random.Random(seed)
    return ["".join(source.choices("ab é\U0001f600", k=source.choice([0, 1, 5, 40]))) for _ in range(n)]


def content(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def lines_of(folder):
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]


def shards_of(folder):
    return [line["shard"] for line in lines_of(folder) if "shard" in line]


def make_inputs(folder, n_files=3, n=60):
    (folder / "in").mkdir()
    for number in range(n_files):
        path = folder / "in" / f"part{number}.jsonl"
        lines = [json.dumps({"text": text}) for text in texts(n, number)]
        lines[5], lines[-1] = "{", '{"text": 1}'
        path.write_text("\n".join(lines))
    (folder / "in" / "z.txt").write_text("\n".join(text.replace("\n", "") for text in texts(n, 99)))


def documents_of(folder):
    """Every document of an output of arrays, in order."""
    found = []
    for shard in shards_of(folder):
        ids, indptr = (np.load(folder / f"{shard['name']}.{part}.npy") for part in ("ids", "indptr"))
        assert (len(ids), len(indptr) - 1) == (shard["tokens"], shard["documents"])
        found += [bytes(ids[a:b].astype(np.uint8)).decode() for a, b in zip(indptr, indptr[1:], strict=False)]
    return found


# --------------------------------------------------------------------------------------------------------- shards


@pytest.mark.parametrize("shard_tokens", [None, 1, 50, 999, 10**9])
def test_shards(tmp_path, shard_tokens):
    make_inputs(tmp_path)
    out = tmp_path / "out"
    expected = [text for number in range(3) for i, text in enumerate(texts(60, number)) if i not in (5, 59)] + texts(60, 99)
    summary = encode_corpus(Bytes(), [tmp_path / "in"], out, shard_tokens=shard_tokens, on_error="skip")
    assert documents_of(out) == expected
    assert summary.documents == len(expected) and summary.tokens == sum(len(text.encode()) for text in expected)
    assert summary.rejected == {"not JSON": 3, "not a string": 3}
    shards = shards_of(out)
    assert summary.shards == len(shards)
    if shard_tokens is None:
        assert [shard["name"] for shard in shards] == ["part0.jsonl", "part1.jsonl", "part2.jsonl", "z.txt"]
    else:
        assert [shard["name"] for shard in shards] == [f"shard-{i:05d}" for i in range(len(shards))]
        for shard in shards[:-1]:
            assert shard["tokens"] >= shard_tokens > shard["tokens"] - 200
    rejects = [json.loads(line) for path in sorted(out.glob("*.rejects.jsonl")) for line in path.read_text().splitlines()]
    assert [(Path(reject["source"]).name, reject["record"]) for reject in rejects] == [
        (f"part{number}.jsonl", record) for number in range(3) for record in (5, 59)
    ]
    assert rejects[0]["place"].endswith("part0.jsonl: line 6") and "not JSON" in rejects[0]["reason"]
    for shard in shards:
        for file in shard["files"]:
            data = (out / file["file"]).read_bytes()
            assert (len(data), f"{zlib.crc32(data):08x}") == (file["bytes"], file["crc32"])
    # done is done
    before = content(out)
    again = encode_corpus(Bytes(), [tmp_path / "in"], out, shard_tokens=shard_tokens, on_error="skip")
    assert (again.documents, again.tokens, again.shards) == (summary.documents, summary.tokens, summary.shards)
    assert (again.rejected, again.n_bytes) == (summary.rejected, summary.n_bytes)
    assert (again.resumed_documents, again.was_complete) == (summary.documents, True)
    assert (summary.resumed_documents, summary.was_complete) == (0, False)
    assert content(out) == before


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 300), st.integers(1, 60), st.integers(1, 10), st.sampled_from(["npy", "raw", "megatron", "packed"]))
def test_output_does_not_depend_on_blocks(tmp_path_factory, shard_tokens, block_size, limit, form):
    folder = tmp_path_factory.mktemp("blocks")
    (folder / "in").mkdir()
    (folder / "in" / "a.txt").write_text("\n".join(texts(30, limit)))
    (folder / "in" / "b.txt").write_bytes(b"ok\nno\xff\nok\n")
    options = {"shard_tokens": shard_tokens, "format": form, "on_error": "skip", "document_end": 255}
    options |= {"sequence_length": 7} if form == "packed" else {}
    results = []
    for number, size in enumerate((block_size, 1 << 20)):
        reading = Reading(batch_bytes=size, limit=limit)
        encode_corpus(Bytes(), [folder / "in"], folder / str(number), reading=reading, **options)
        results.append(content(folder / str(number)))
    assert results[0] == results[1]


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_documents_that_cannot_be_encoded(tmp_path, on_error):
    data = b"one\ntwo\xff\n<s>\nthree\n" + b"x\xc3\n" + b"four\n"
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    out = tmp_path / "out"

    def run(special):
        return encode_corpus(Bytes(), [path], out, on_error=on_error, special=special, overwrite=True)

    if on_error == "stop":
        with pytest.raises(TextError, match=r"a.txt: line 2: invalid UTF-8 at byte 7 \(0xFF"):
            run(None)
        assert list(out.iterdir()) == []
        path.write_bytes(data.replace(b"\xff", b"").replace(b"\xc3", b""))
        with pytest.raises(SpecialTokenError, match=r"a.txt: line 3: the text holds <s>"):
            run("raise")
        return
    assert run("raise").rejected == {"not UTF-8": 2, "special token": 1}
    assert documents_of(out) == ["one", "three", "four"]
    rejects = [json.loads(line) for line in (out / "a.txt.rejects.jsonl").read_text().splitlines()]
    assert [(reject["record"], reject["position"]) for reject in rejects] == [(1, 4), (2, 9), (4, 19)]
    assert run(None).rejected == {"not UTF-8": 2}


class Counts(Bytes):
    """Counts how often it is asked."""

    def __init__(self):
        self.calls = 0

    def encode_batch(self, texts, **arguments):
        self.calls += 1
        return super().encode_batch(texts, **arguments)


@pytest.mark.parametrize(
    ("name", "bad", "good"),
    [("a.txt", b"\xff\n", b"one\n"), ("a.jsonl", b'{"text": "\\ud83d"}\n', b'{"text": "one"}\n')],
)
def test_many_documents_that_are_no_text(tmp_path, name, bad, good):
    # A file in another encoding: the encoder is not asked about each of its lines.
    (tmp_path / name).write_bytes((bad + good) * 1000)
    tokenizer = Counts()
    summary = encode_corpus(tokenizer, [tmp_path / name], tmp_path / "out", on_error="skip")
    assert summary.rejected == {"not UTF-8": 1000}
    assert documents_of(tmp_path / "out") == ["one"] * 1000
    assert tokenizer.calls < 20


def test_problems_and_documents_stop_in_order(tmp_path):
    path = tmp_path / "a.jsonl"
    for lines, message in ((['{"text": "\\ud800"}', "{"], "line 1: "), (["{", '{"text": "\\ud800"}'], "line 1: not JSON")):
        path.write_text("\n".join(lines))
        with pytest.raises((TextError, FormatError), match=message):
            encode_corpus(Bytes(), [path], tmp_path / "out")


# ---------------------------------------------------------------------------------------------------- interruptions


class Stops(Bytes):
    """Raises after so many batches."""

    def __init__(self, batches):
        self.left = batches

    def encode_batch(self, texts, **arguments):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().encode_batch(texts, **arguments)


FORMS = [
    {"format": "npy"},
    {"format": "raw", "document_end": 10},
    {"format": "megatron"},
    {"format": "packed", "sequence_length": 16, "document_end": 10, "document_index": True},
    {"format": "parquet"},
    {"format": "arrow"},
]


@pytest.mark.parametrize("shard_tokens", [None, 300])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form["format"])
def test_an_interrupted_job_goes_on(tmp_path, monkeypatch, form, shard_tokens):
    if form["format"] in ("parquet", "arrow"):
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(writing, "ROWS", 7)
    make_inputs(tmp_path)
    options = {**form, "shard_tokens": shard_tokens, "on_error": "skip", "reading": Reading(batch_bytes=500)}
    encode_corpus(Bytes(), [tmp_path / "in"], tmp_path / "whole", **options)
    expected = content(tmp_path / "whole")
    runs = 0
    while True:
        try:
            encode_corpus(Stops(3 + runs), [tmp_path / "in"], tmp_path / "out", **options)
            break
        except KeyboardInterrupt:
            runs += 1
            assert not list((tmp_path / "out").glob(".*"))
            recorded = {file["file"] for shard in shards_of(tmp_path / "out") for file in shard["files"]} if (
                tmp_path / "out" / "manifest.jsonl").exists() else set()  # fmt: skip
            assert {path.name for path in (tmp_path / "out").iterdir()} - {"manifest.jsonl"} == recorded
    assert runs > 3
    assert content(tmp_path / "out") == expected


def kills(tmp_path, way, **arguments):
    command = [sys.executable, str(CODE / "corpus_kills.py"), way, str(tmp_path), json.dumps(arguments)]
    environment = {**os.environ, "PYTHONPATH": path_of_jittok()}
    done = subprocess.run(command, capture_output=True, text=True, cwd=CODE, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout)


def path_of_jittok():
    import jittok

    return os.pathsep.join([str(Path(jittok.__file__).parent.parent), str(CODE)])


@posix
@pytest.mark.parametrize("form", [{"format": "npy", "shard_tokens": 400}, {"format": "raw"}], ids=["shards", "files"])
def test_killed_at_every_step(tmp_path, form):
    make_inputs(tmp_path, 2, 20)
    assert kills(tmp_path, "steps", **form, on_error="skip", reading={"batch_bytes": 300}) > 50


@posix
@pytest.mark.parametrize("form", [{"format": "npy"}, {"format": "megatron"}], ids=lambda form: form["format"])
def test_killed_at_any_time(tmp_path, form):
    make_inputs(tmp_path, 2, 40)
    assert kills(tmp_path, "times", **form, shard_tokens=250, on_error="skip", reading={"batch_bytes": 300}) == 50


def test_a_changed_job_is_refused(tmp_path):
    make_inputs(tmp_path)
    out = tmp_path / "out"
    options = {"shard_tokens": 300, "on_error": "skip", "reading": Reading(batch_bytes=500)}

    def run(tokenizer=None, **changes):
        encode_corpus(tokenizer or Bytes(), [tmp_path / "in"], out, **{**options, **changes})

    with pytest.raises(KeyboardInterrupt):
        run(Stops(5))
    before = content(out)
    other = Bytes()
    other.fingerprint = "other"
    changes = [
        ({"tokenizer": other}, "tokenizer.fingerprint is 'bytes' there, and 'other' now"),
        ({"shard_tokens": 301}, "shard_tokens is 300 there, and 301 now"),
        ({"document_end": 3}, "writing.end"),
        ({"reading": Reading(field="body")}, "reading.field is 'text' there"),
        ({"on_error": "stop"}, "on_error"),
    ]
    for change, message in changes:
        with pytest.raises(OutputError, match=message):
            run(**change)
    path = tmp_path / "in" / "z.txt"
    text = path.read_text()
    path.write_text(text + "x")
    with pytest.raises(OutputError, match=r"inputs\[3\].bytes"):
        run()
    path.unlink()
    with pytest.raises(OutputError, match="inputs has 4 entries there, and 3 now"):
        run()
    assert content(out) == before
    name = shards_of(out)[0]["files"][0]["file"]
    (out / name).write_bytes(b"short")
    path.write_text(text)
    os.utime(path, ns=(0, lines_of(out)[0]["job"]["inputs"][3]["modified"]))
    with pytest.raises(OutputError, match=f"{name}.* is not as manifest.jsonl says"):
        run()
    run(overwrite=True)
    assert len(documents_of(out)) == 3 * 58 + 60


def test_a_broken_manifest(tmp_path):
    make_inputs(tmp_path)
    out = tmp_path / "out"
    encode_corpus(Bytes(), [tmp_path / "in"], out, shard_tokens=300, on_error="skip")
    expected = content(out)
    whole = expected["manifest.jsonl"]
    for cut in (len(whole) - 1, len(whole) - 40, whole.index(b"\n") + 1, whole.index(b"\n") + 9, 5, 0):
        (out / "manifest.jsonl").write_bytes(whole[:cut])
        if cut <= 5:
            with pytest.raises(OutputError, match="exists"):
                encode_corpus(Bytes(), [tmp_path / "in"], out, shard_tokens=300, on_error="skip")
            continue
        encode_corpus(Bytes(), [tmp_path / "in"], out, shard_tokens=300, on_error="skip")
        assert content(out) == expected
    (out / "manifest.jsonl").write_bytes(b"{}\nnonsense\n")
    with pytest.raises(OutputError, match="line 2: not a line of a manifest"):
        encode_corpus(Bytes(), [tmp_path / "in"], out, shard_tokens=300, on_error="skip")


@posix
def test_a_full_disk(tmp_path):
    make_inputs(tmp_path)
    out = tmp_path / "out"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    encode_corpus(Bytes(), [tmp_path / "in"], tmp_path / "whole", shard_tokens=2000, on_error="skip")
    resource.setrlimit(resource.RLIMIT_FSIZE, (7000, hard))
    try:
        with pytest.raises(OutputError, match=r"cannot write .*shard-0000\d.*File too large"):
            encode_corpus(Bytes(), [tmp_path / "in"], out, shard_tokens=2000, on_error="skip")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(out.glob(".*"))
    encode_corpus(Bytes(), [tmp_path / "in"], out, shard_tokens=2000, on_error="skip")
    assert content(out) == content(tmp_path / "whole")


def test_two_jobs_in_one_folder(tmp_path):
    pytest.importorskip("fcntl")
    make_inputs(tmp_path)
    refused = []

    class Meanwhile(Bytes):
        def encode_batch(self, texts, **arguments):
            if not refused:
                with pytest.raises(OutputError, match="another job is writing"):
                    encode_corpus(Bytes(), [tmp_path / "in"], tmp_path / "out", on_error="skip")
                refused.append(True)
            return super().encode_batch(texts, **arguments)

    encode_corpus(Meanwhile(), [tmp_path / "in"], tmp_path / "out", on_error="skip")
    assert refused


def test_wrong_arguments(tmp_path):
    (tmp_path / "a").write_text("a")
    for arguments, message in (
        ({"on_error": "replace"}, "on_error"),
        ({"shard_tokens": 0}, "shard_tokens"),
        ({"format": "packed"}, "length"),
        ({"sequence_length": 4}, "length"),
        ({"document_end": 256}, "document_end"),
        ({"format": "packed", "sequence_length": 4, "pad_id": -1}, "pad_id"),
    ):
        with pytest.raises(ArgumentError, match=message):
            encode_corpus(Bytes(), [tmp_path / "a"], tmp_path / "out", **arguments)
    with pytest.raises(ArgumentError, match="no input"):
        encode_corpus(Bytes(), [], tmp_path / "out")


# --------------------------------------------------------------------------------------------------------- threads


def test_ahead():
    def items(n, fails):
        yield from range(n)
        if fails:
            raise ValueError("here")

    assert list(overlap.ahead(items(100, False))) == list(range(100))
    taken = []
    with pytest.raises(ValueError, match="here"):
        for item in overlap.ahead(items(10, True)):
            taken.append(item)
    assert taken == list(range(10))
    closed = threading.Event()

    def endless():
        try:
            while True:
                yield 1
        finally:
            closed.set()

    iterator = overlap.ahead(endless())
    next(iterator)
    iterator.close()
    assert closed.wait(10)


def test_behind():
    done = []
    behind = overlap.Behind()
    for i in range(100):
        behind.do(lambda i=i: done.append(i))
    behind.close()
    assert done == list(range(100))
    behind = overlap.Behind()
    behind.do(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        behind.close()
    behind = overlap.Behind()
    behind.do(lambda: 1 // 0)
    behind.stop()


def test_the_report_says_how_far_it_is(tmp_path):
    make_inputs(tmp_path)
    reports = []
    summary = encode_corpus(
        Bytes(),
        [tmp_path / "in"],
        tmp_path / "out",
        on_error="skip",
        reading=Reading(batch_bytes=400),
        report=lambda done, summary: reports.append((done, summary.n_bytes)),
    )
    size = sum(path.stat().st_size for path in (tmp_path / "in").iterdir())
    assert reports == sorted(reports) and len(reports) > 10
    assert reports[-1] == (size, size) and summary.n_bytes == size
    assert job.Summary(**summary.as_json()) == summary
    assert Block.__doc__


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_batches_side_by_side(threads):
    source = random.Random(threads)
    taken, running, most = [], set(), [0]

    def items():
        for i in range(40):
            taken.append(i)
            yield i

    def work(item):
        running.add(item)
        most[0] = max(most[0], len(running))
        threading.Event().wait(source.random() / 500)
        running.discard(item)
        if item == 30:
            raise KeyError(item)
        return -item

    found = []
    with pytest.raises(KeyError):
        for item, result in overlap.side_by_side(work, items(), threads):
            found.append((item, result))
            assert len(taken) <= len(found) + 2 * threads + 1
    assert found == [(i, -i) for i in range(30)]
    assert 1 <= most[0] <= threads
    assert not running


@given(st.binary(max_size=40), st.binary(max_size=300))
def test_checksums_of_two_parts(first, second):
    joined = files.shifted_checksum(zlib.crc32(first), len(second)) ^ zlib.crc32(second)
    assert joined == zlib.crc32(first + second)

"""Counting the words of a corpus, against tokenizers' pre-tokenizers and Python's Counter."""

from __future__ import annotations

import _thread
import bz2
import functools
import gzip
import itertools
import json
import lzma
import os
import pickle
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, normalizers, pre_tokenizers

import jittok
from jittok import spec
from jittok.errors import (
    ArgumentError,
    ArgumentTypeError,
    FormatError,
    MissingFileError,
    OutputError,
    TextError,
    TextWarning,
    UnsupportedError,
)
from jittok.training import counting, progress, steps, texts, word_counts

CORPORA = Path(os.environ.get("JITTOK_TEST_DATA", "")) / "corpora"
CL100K = steps._PATTERNS["cl100k"]
ODD = ["", " ", "\n", "\r\n", "a\0b \0", "\u2028a\u2029 b\u0085c", "\ufeffx", "e\u0301 ſ's I'LL", "x" * 15 + " " + "x" * 16,
       "\u3000\u3000中文、日本語 한국어", "a" * 14 + "\0",
       "\U0001f468\u200d\U0001f469 👍🏽", "  \t \n indented\n    more",
       "\u2581a \u2581\u2581 b\u2581 \u2582 " + "\u2581long" * 9 + " " + "long" * 9]  # fmt: skip

#: jittok's settings, and the reference's normalizer and pre-tokenizer.
SETTINGS = {
    "gpt2": ({"pre_tokenizer": "gpt2"}, None, pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "ByteLevel": ({"pre_tokenizer": "ByteLevel"}, None, pre_tokenizers.ByteLevel()),
    "cl100k": (
        {"pre_tokenizer": "cl100k"},
        None,
        pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(CL100K), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        ),
    ),
    "whitespace": ({"pre_tokenizer": {"type": "Whitespace"}}, None, pre_tokenizers.Whitespace()),
    "whitespace split": ({"pre_tokenizer": spec.WhitespaceSplit()}, None, pre_tokenizers.WhitespaceSplit()),
    "bert": (
        {"normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"},
        normalizers.BertNormalizer(),
        pre_tokenizers.BertPreTokenizer(),
    ),
    "metaspace": ({"pre_tokenizer": "Metaspace"}, None, pre_tokenizers.Metaspace()),
    "metaspace never": (
        {"pre_tokenizer": spec.Metaspace(prepend_scheme="never")},
        None,
        pre_tokenizers.Metaspace(prepend_scheme="never"),
    ),
    "metaspace, not alone": (
        {"normalizer": "NFC", "pre_tokenizer": [spec.Metaspace(prepend_scheme="first"), "Punctuation"]},
        normalizers.NFC(),
        pre_tokenizers.Sequence([pre_tokenizers.Metaspace(prepend_scheme="first"), pre_tokenizers.Punctuation()]),
    ),
    "metaspace first": (
        {"normalizer": "NFKC", "pre_tokenizer": spec.Metaspace(prepend_scheme="first")},
        normalizers.NFKC(),
        pre_tokenizers.Metaspace(prepend_scheme="first"),
    ),
    "punctuation": (
        {"normalizer": ["NFD", "Lowercase"], "pre_tokenizer": ["WhitespaceSplit", "Punctuation", "Digits"]},
        normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()]),
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation(), pre_tokenizers.Digits()]),
    ),
    "none": ({}, None, None),
}


@functools.cache
def byte_alphabet() -> dict[str, int]:
    """Characters of the byte alphabet, and their bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + i): byte for i, byte in enumerate(others)}


def reference(lines, normalizer, pre_tokenizer, byte_level):
    """Word counts as the reference makes them."""
    found = Counter()
    for line in lines:
        text = line if normalizer is None else normalizer.normalize_str(line)
        words = [text] if pre_tokenizer is None else [word for word, _ in pre_tokenizer.pre_tokenize_str(text)]
        found.update(word for word in words if word)
    if byte_level:
        alphabet = byte_alphabet()
        return {bytes(alphabet[character] for character in word): n for word, n in found.items()}
    return {word.encode(): n for word, n in found.items()}


def check(lines, name, **options):
    arguments, normalizer, pre_tokenizer = SETTINGS[name]
    counts = jittok.count_words(lines, **arguments, **options)
    expected = reference(lines, normalizer, pre_tokenizer, counts.settings["byte_level"])
    assert dict(counts.items()) == expected
    words = [word for word, _ in counts.items()]
    assert words == sorted(words)
    assert len(counts) == len(expected) and counts.total == sum(expected.values())
    return counts


def lines_of(name, n_bytes=150_000):
    path = CORPORA / f"{name}.txt"
    if not path.exists():
        pytest.skip("JITTOK_TEST_DATA does not name a folder with corpora/")
    with open(path, "rb") as file:
        return file.read(n_bytes).decode("utf-8", "ignore").splitlines(keepends=True)


@pytest.mark.parametrize("name", SETTINGS)
def test_as_reference_on_odd_texts(name):
    check(ODD, name)
    check(ODD * 3, name)


@pytest.mark.parametrize("corpus", ["english", "multi", "code"])
@pytest.mark.parametrize("name", SETTINGS)
def test_as_reference_on_corpora(name, corpus):
    check(lines_of(corpus), name)


LINES = st.lists(
    st.one_of(
        st.sampled_from(ODD), st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.text("ab \n", max_size=40)
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(LINES, st.sampled_from(sorted(SETTINGS)))
def test_as_reference_on_any_text(lines, name):
    check(lines, name)


# ------------------------------------------------------------------------------------------------ long words


def small_tables(monkeypatch):
    """Have tables begin small, so that they grow soon, and texts come in small pieces."""
    monkeypatch.setattr(counting, "_SLOT_BITS", 12)
    monkeypatch.setattr(counting, "_LONG_BITS", 9)
    monkeypatch.setattr(counting, "_KEPT", 1 << 13)
    monkeypatch.setattr(counting, "PARALLEL_BYTES", 1 << 12)
    monkeypatch.setattr(texts, "BATCH_BYTES", 1 << 14)


def test_long_words_and_many_words(monkeypatch):
    small_tables(monkeypatch)
    rng = random.Random(1)
    words = ["".join(rng.choices("abcé", k=rng.choice([1, 7, 8, 9, 15, 16, 17, 40]))) for _ in range(12_000)]
    lines = [" ".join(words[i : i + 50]) for i in range(0, len(words), 50)]
    lines += ["y" * 100_000, "y" * 100_000, "é" * 5_000 + " y", "z" * 7_000]
    for name in ("whitespace", "gpt2", "none", "metaspace"):
        check(lines, name)


def test_words_with_the_same_beginning():
    rng = random.Random(2)
    words = {"samebyte" * k + "".join(rng.choices("ab", k=rng.randrange(9))) for k in range(1, 4) for _ in range(200)}
    words |= {"sam" + "\0" * k for k in range(30)} | {"samebyte" + "\0" * k for k in range(30)} | {"sam", "samebyte"}
    check(list(words), "none")


@given(
    st.lists(st.dictionaries(st.text("ab\0é", min_size=1, max_size=20), st.integers(1, 1 << 40), max_size=30), max_size=6)
)
@settings(deadline=None, max_examples=60)
def test_merge(parts):
    expected = Counter()
    for part in parts:
        expected.update(part)
    counts = [word_counts.WordCounts.from_mapping(part) for part in parts]
    if not counts:
        with pytest.raises(ArgumentError, match="at least one"):
            word_counts.merge_counts([])
        return
    merged = counts[0].merge(*counts[1:])
    assert dict(merged.items()) == {word.encode(): n for word, n in expected.items()}
    assert merged == word_counts.merge_counts(counts[::-1]) == word_counts.merge_counts(counts, memory_limit=1)


@pytest.mark.parametrize("words", [["b", "a"], ["a", "a"], ["ab", "a"], ["a", "aaaaaaaaab", "aaaaaaaaaa"]])
def test_words_in_another_order_are_refused(words):
    indptr = np.cumsum([0] + [len(word) for word in words])
    data = np.frombuffer("".join(words).encode(), np.uint8)
    counts = word_counts.WordCounts(data, indptr, np.ones(len(words), np.int64))
    for use in (counts.merge, lambda: jittok.train_bpe(counts=counts), lambda: jittok.train_wordpiece(counts=[counts])):
        with pytest.raises(ArgumentError, match="expected words in the order of their bytes"):
            use()


def test_counts_are_64_bit():
    big = word_counts.WordCounts.from_mapping({"a": 3 << 40, b"b": 1})
    assert dict(big.merge(big).items()) == {b"a": 6 << 40, b"b": 2}


# ------------------------------------------------------------------------------------------------ determinism


def corpus_of_many_words(n=15_000):
    rng = random.Random(5)
    return [f"{rng.randrange(1 << 30):x} the {rng.randrange(5000)}-é{'long' * rng.randrange(9)}\n" for _ in range(n)]


def test_threads_order_shards_and_memory_make_no_difference(monkeypatch, tmp_path):
    small_tables(monkeypatch)
    lines = corpus_of_many_words()
    loaded = []
    load_run = counting.load_run
    monkeypatch.setattr(counting, "load_run", lambda path: loaded.append(path) or load_run(path))
    arguments = {"pre_tokenizer": "gpt2"}
    counts = jittok.count_words(lines, threads=1, **arguments)
    assert not loaded
    files = []

    def save(result):
        files.append(tmp_path / str(len(files)))
        result.save(files[-1])

    save(counts)
    save(jittok.count_words(lines, threads=3, **arguments))
    shuffled = random.Random(6).sample(lines, len(lines))
    save(jittok.count_words(shuffled, threads=2, **arguments))
    for threads in (1, 2):
        save(jittok.count_words(shuffled, threads=threads, memory_limit=1, **arguments))
        assert len(loaded) > 3
        loaded.clear()
    shards = [jittok.count_words(lines[i::3], **arguments) for i in range(3)]
    save(shards[0].merge(shards[2], shards[1]))
    for i, shard in enumerate(shards):
        shard.save(tmp_path / f"shard{i}")
    saved = [tmp_path / f"shard{i}" for i in (1, 2, 0)]
    save(word_counts.merge_counts(saved, memory_limit=200_000))
    save(pickle.loads(pickle.dumps(counts)))
    assert len({file.read_bytes() for file in files}) == 1


def test_hash_seed_makes_no_difference(tmp_path):
    code = (
        "import sys, jittok\n"
        "lines = [f'word{i * 7919 % 1000} {i}' for i in range(3000)] + ['', '\\0']\n"
        "jittok.count_words(lines, pre_tokenizer='gpt2', normalizer='NFC').save(sys.argv[1])\n"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(jittok.__file__).parent.parent)}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / seed)], check=True, env=environment)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


@pytest.mark.parametrize("threads", [1, 2])
def test_interruption(threads):
    def endless():
        for i in itertools.count():
            yield f"text number {i} " * 50

    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        jittok.count_words(endless(), pre_tokenizer="gpt2", threads=threads)
    for thread in threading.enumerate():
        if thread.name == "jittok-count":
            thread.join(2)
            assert not thread.is_alive()


def test_errors_in_threads():
    def failing():
        yield from ["a text"] * 200_000
        raise RuntimeError("the source failed")

    with pytest.raises(RuntimeError, match="the source failed"):
        jittok.count_words(failing(), pre_tokenizer="gpt2", threads=2)


# ---------------------------------------------------------------------------------------------------- sources


DOCUMENTS = ["first text\n", "\n", "the second, é\r\n", "third\0 one\u2028still third\n", "\r\n", "no end"]


def test_sources(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    arguments = {"pre_tokenizer": "gpt2"}
    expected = jittok.count_words(DOCUMENTS, **arguments)
    assert expected.report.texts == 6
    assert expected.report.kept == {"blank": 2, "with NUL": 1, "with U+2028": 1}
    content = "".join(DOCUMENTS).encode()
    files = {"a.txt": content, "a.txt.gz": gzip.compress(content), "a.bz2": bz2.compress(content)}
    files |= {"a.xz": lzma.compress(content), "noname": content}
    files["a.jsonl"] = "".join(json.dumps({"text": text}) + "\n" for text in DOCUMENTS).encode()
    files["b.jsonl.gz"] = gzip.compress(files["a.jsonl"])
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pyarrow.output_stream(str(tmp_path / "a.zst"), compression="zstd") as stream:
        stream.write(content)
    parquet.write_table(pyarrow.table({"n": range(6), "text": DOCUMENTS}), tmp_path / "a.parquet")
    encoded = [text.encode() for text in DOCUMENTS]
    indptr = np.cumsum([2, *map(len, encoded)])
    sources = [tmp_path / name for name in (*files, "a.zst", "a.parquet")]
    sources += [str(tmp_path / "a.txt"), [tmp_path / "a.txt"], encoded, iter(DOCUMENTS), [DOCUMENTS[:2], DOCUMENTS[2:]]]
    sources += [np.array(DOCUMENTS, object), (np.frombuffer(b"xx" + content + b"yy", np.uint8), indptr)]
    sources += [pyarrow.array(DOCUMENTS), pyarrow.chunked_array([DOCUMENTS[:1], DOCUMENTS[1:]], pyarrow.large_string())]
    for source in sources:
        counts = jittok.count_words(source, **arguments)
        assert counts == expected, source
        assert counts.report == expected.report, source


def test_names_of_files_in_a_list(tmp_path, monkeypatch):
    """They are texts, which is told: a path alone, and Path objects, are files."""
    (tmp_path / "some.txt").write_text("a b a\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.warns(TextWarning, match=r"the first text is 'some.txt', and there is such a file.*Path"):
        counts = jittok.count_words(["some.txt", "b"], pre_tokenizer="WhitespaceSplit")
    assert dict(counts.items()) == {b"some.txt": 1, b"b": 1}
    for source in ("some.txt", [Path("some.txt")]):
        assert dict(jittok.count_words(source, pre_tokenizer="WhitespaceSplit").items()) == {b"a": 2, b"b": 1}


def test_line_ends(tmp_path):
    (tmp_path / "a").write_bytes(b"one\n\ntwo\r\nthree")
    with_ends = jittok.count_words(tmp_path / "a")
    assert dict(with_ends.items()) == {b"one\n": 1, b"\n": 1, b"two\r\n": 1, b"three": 1}
    without = jittok.count_words(tmp_path / "a", keep_line_ends=False)
    assert dict(without.items()) == {b"one": 1, b"two\r": 1, b"three": 1}
    assert without.report.texts == 4 and without.report.kept == {"blank": 1}


def test_blocks_are_cut_between_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "BATCH_BYTES", 100)
    lines = [f"{i} " * (i % 80) + "\n" for i in range(500)] + ["the end"]
    (tmp_path / "a").write_bytes("".join(lines).encode())
    assert jittok.count_words(tmp_path / "a") == jittok.count_words(lines)


def test_parquet_and_json_with_gaps(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    column = pyarrow.array(["a", None, "b", None])
    parquet.write_table(pyarrow.table({"body": column}), tmp_path / "a.parquet")
    with pytest.warns(TextWarning, match="skipped 2 of 4: 2 null"):
        counts = jittok.count_words(tmp_path / "a.parquet", column="body")
    assert dict(counts.items()) == {b"a": 1, b"b": 1}
    with pytest.warns(TextWarning):
        assert jittok.count_words(column) == counts
    with pytest.raises(ArgumentError, match="no column 'text'; give another one .*: body"):
        jittok.count_words(tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text('{"body": "a"}\n\n{"other": 1}\n{"body": "b"}\n{"body": null}')
    with pytest.warns(TextWarning, match="skipped 3 of 5: 1 blank lines of JSON, 2 without the field 'body'"):
        assert jittok.count_words(tmp_path / "a.jsonl", field="body") == counts
    for bad in ('{"text": "a"}\n{"text"', "[1]", '{"text": 1}'):
        (tmp_path / "bad.jsonl").write_text(bad)
        with pytest.raises(FormatError, match=f"bad.jsonl: line {bad.count(chr(10)) + 1}: "):
            jittok.count_words(tmp_path / "bad.jsonl")


def test_json_lines_that_are_not_utf8(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"text": "a"}\n{"text": "b\xff"}\n{"text": "c"}\n')
    with pytest.warns(TextWarning, match="replaced characters in 1 of 3: 1 not UTF-8"):
        assert dict(jittok.count_words(path).items()) == {b"a": 1, "b\ufffd".encode(): 1, b"c": 1}
    with pytest.warns(TextWarning, match="skipped 1 of 3: 1 not UTF-8"):
        assert dict(jittok.count_words(path, errors="skip").items()) == {b"a": 1, b"c": 1}
    with pytest.raises(TextError, match="a.jsonl: line 2: invalid UTF-8 at byte 11"):
        jittok.count_words(path, errors="strict")


def test_bad_sources(tmp_path):
    for bad in (b"text", None, 5, {"a": 1}, [1], ["a", b"b"], [None]):
        with pytest.raises(ArgumentTypeError):
            jittok.count_words(bad)
    with pytest.raises(MissingFileError, match="pass \\[text\\] for"):
        jittok.count_words("no such file")
    for name, content in (("a.gz", gzip.compress(b"a text" * 99)[:-9]), ("a.xz", b"no xz"), ("a.parquet", b"PAR1")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FormatError, match=name):
            jittok.count_words(tmp_path / name)
    with pytest.raises(ArgumentTypeError, match="memory_limit"):
        jittok.count_words(["a"], memory_limit="1 GB")
    for argument in ({"errors": "ignore"}, {"threads": 0}, {"memory_limit": 0}, {"memory_limit": True}):
        with pytest.raises(ArgumentError):
            jittok.count_words(["a"], **argument)


def test_invalid_text(tmp_path):
    items = [b"good", b"b\xffad", "née".encode(), b"\xc3"]
    (tmp_path / "a.txt").write_bytes(b"\n".join(items))
    pair = np.frombuffer(b"".join(items), np.uint8), np.cumsum([0, *map(len, items)])
    replaced = {item.decode("utf-8", "replace").encode(): 1 for item in items}
    for source in (items, tmp_path / "a.txt", pair):
        with pytest.warns(TextWarning, match="replaced characters in 2 of 4: 2 not UTF-8"):
            counts = jittok.count_words(source, keep_line_ends=False)
        assert dict(counts.items()) == replaced
        with pytest.warns(TextWarning, match="skipped 2 of 4: 2 not UTF-8"):
            counts = jittok.count_words(source, keep_line_ends=False, errors="skip")
        assert dict(counts.items()) == {b"good": 1, "née".encode(): 1}
        assert counts.report.texts == 4 and counts.report.n_bytes == 8
        with pytest.raises(TextError, match=r"(texts\[1\]|a.txt: line 2): invalid UTF-8 at byte 1"):
            jittok.count_words(source, keep_line_ends=False, errors="strict")
    with pytest.warns(TextWarning, match="1 with lone surrogates"):
        counts = jittok.count_words(["a\ud800", "b"])
    assert dict(counts.items()) == {"a\ufffd".encode(): 1, b"b": 1}


@pytest.mark.parametrize("threads", [1, 2])
def test_many_strings(threads):
    class Derived(str):
        pass

    some = ["plain words", "née à 東京 🙂", "", "\0", "x" * 300, "a\u2028b"]
    many = some * 30_000  # several batches, which kernels read
    expected = Counter({text.encode(): 30_000 for text in some if text})
    counts = jittok.count_words(many, threads=threads)
    assert Counter(dict(counts.items())) == expected
    assert (counts.report.texts, counts.report.n_bytes) == (len(many), 30_000 * sum(len(text.encode()) for text in some))
    assert dict(jittok.count_words([text.encode() for text in many], threads=threads).items()) == expected
    # What kernels do not read: strings of other types, and lone surrogates.
    assert Counter(dict(jittok.count_words([*many, Derived("née")], threads=threads).items())) == expected + Counter(
        {"née".encode(): 1}
    )
    with pytest.warns(TextWarning, match="replaced characters in 1 of 180,001: 1 with lone surrogates"):
        counts = jittok.count_words([*many, "a\ud800"], threads=threads)
    assert Counter(dict(counts.items())) == expected + Counter({"a\ufffd".encode(): 1})
    for wrong in (b"bytes", 3):
        with pytest.raises(ArgumentTypeError, match=r"texts\[180000\]"):
            jittok.count_words([*many, wrong], threads=threads)


def test_report_of_many_texts():
    many = ["plain"] * 1000 + ["\0 and \0"] * 3 + ["\u2028" * 70] * 2 + ["\u2027 \u00a8"] + [""] * 5 + ["x" * (2 << 20)]
    report = jittok.count_words(many, pre_tokenizer="gpt2").report
    assert report.kept == {"with NUL": 3, "with U+2028": 2, "blank": 5, "longer than 1,048,576 bytes": 1}
    assert report.summary().startswith("1,012 texts, 2.1 MB; kept 5 blank, 1 longer than 1,048,576 bytes, ")


# ------------------------------------------------------------------------------------------------------ files


def test_saved_counts_are_checked(tmp_path):
    counts = jittok.count_words(ODD, pre_tokenizer="gpt2")
    path = tmp_path / "folder" / "counts"
    counts.save(path)
    loaded = jittok.WordCounts.load(path)
    assert loaded == counts and loaded.report == counts.report
    content = path.read_bytes()
    assert [file.name for file in path.parent.iterdir()] == ["counts"]
    damaged = tmp_path / "damaged"
    rng = random.Random(3)
    for at in [0, 9, 20, len(content) - 1, *rng.sample(range(len(content)), 60)]:
        damaged.write_bytes(content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :])
        with pytest.raises(FormatError, match="damaged"):
            jittok.WordCounts.load(damaged)
        damaged.write_bytes(content[:at])
        with pytest.raises(FormatError, match="damaged"):
            jittok.WordCounts.load(damaged)
    with pytest.raises(MissingFileError):
        jittok.WordCounts.load(tmp_path / "none")
    with pytest.raises(OutputError):
        counts.save(path / "below")


def test_settings_must_be_equal():
    one, other = (jittok.count_words(["a b"], pre_tokenizer=name) for name in ("gpt2", "Whitespace"))
    with pytest.raises(ArgumentError, match="different settings cannot be merged: byte_level is True here and False"):
        one.merge(other)
    assert one != other


def test_bad_counts():
    for bad in ({"a": 0}, {"a": 1.5}, {"a": True}):
        with pytest.raises(ArgumentError, match="occurs"):
            jittok.WordCounts.from_mapping(bad)
    with pytest.raises(ArgumentTypeError):
        jittok.WordCounts.from_mapping({1: 1})
    with pytest.raises(ArgumentTypeError, match="expected a mapping"):
        jittok.WordCounts.from_mapping([("a", 1)])
    most = (1 << 63) - 1
    with pytest.raises(ArgumentError, match="less than 2\\*\\*63"):
        jittok.WordCounts.from_mapping({"a": most, b"a": 1})
    with pytest.raises(ArgumentError, match="divide all counts"):
        jittok.WordCounts.from_mapping({"a": most}).merge(jittok.WordCounts.from_mapping({"a": 1}))
    data = np.zeros(4, np.uint8)
    for indptr, counts in (([0, 5], [1]), ([1, 2], [1]), ([0, 3, 2], [1, 1]), ([0, 1], [1, 1]), ([0, 1], [0])):
        with pytest.raises(ArgumentError):
            jittok.WordCounts(data, np.array(indptr), np.array(counts))


# ------------------------------------------------------------------------------------------------------ steps


def test_steps():
    assert steps.read_steps() == ((), ())
    block = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, {"type": "Whitespace"}]}
    read = steps.read_steps(["NFC", spec.Lowercase(), {"type": "Prepend", "prepend": "_"}], block)
    assert read.normalizers == (spec.UnicodeForm("NFC"), spec.Lowercase(), spec.Prepend("_"))
    assert read.pre_tokenizers == (spec.Digits(True), spec.Whitespace())
    assert not read.byte_level and steps.read_steps(None, "o200k").byte_level
    for given_steps in (read, steps.read_steps("BertNormalizer", "cl100k"), steps.Steps()):
        stated = json.loads(json.dumps(given_steps.settings()))
        assert steps.steps_from_settings(stated) == given_steps
    assert steps.steps_from_settings({}) == steps.Steps()
    for bad in ({"normalizers": 5}, {"normalizers": [{"kind": "Digits"}]}, {"pre_tokenizers": [{"kind": "X"}]}):
        with pytest.raises(FormatError):
            steps.steps_from_settings(bad)
    with pytest.raises(ArgumentError, match="'Nonsense' is not known; expected one of gpt2, cl100k"):
        steps.read_steps(None, "Nonsense")
    with pytest.raises(ArgumentError, match="needs arguments"):
        steps.read_steps("Replace", None)
    with pytest.raises(ArgumentTypeError, match="got int"):
        steps.read_steps(5)
    with pytest.raises(UnsupportedError):
        steps.read_steps(None, {"type": "Nonsense"})


# --------------------------------------------------------------------------------------------------- progress


def test_checkpoint(tmp_path):
    checkpoint = progress.Checkpoint(tmp_path / "c", "a test")
    with pytest.raises(MissingFileError):
        checkpoint.read()
    arrays = {"a": np.arange(5, dtype=np.int32), "b": np.zeros((2, 3)), "c": np.zeros(0, np.uint8)}
    for number in (1, 2):
        checkpoint.write({"number": number}, arrays)
        state, read = checkpoint.read()
        assert state == {"number": number} and read.keys() == arrays.keys()
        for name, array in arrays.items():
            assert read[name].dtype == array.dtype and np.array_equal(read[name], array)
    with pytest.raises(FormatError, match="not of jittok checkpoint of others"):
        progress.Checkpoint(tmp_path / "c", "others").read()
    with pytest.raises(FormatError, match="version 1"):
        progress.Checkpoint(tmp_path / "c", "a test", version=2).read()
    content = bytearray((tmp_path / "c").read_bytes())
    content[-40] ^= 1
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(FormatError, match="checksum"):
        checkpoint.read()


@pytest.mark.parametrize("with_tqdm", [True, False])
def test_progress(with_tqdm, monkeypatch, capsys):
    if with_tqdm:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm", None)
        monkeypatch.setattr(progress, "_LINE_SECONDS", 0.0)
    with progress.Progress(2_000_000, "B", "counting words") as bar:
        bar.advance(1_000_000, "half")
        bar.advance(1_000_000)
    shown = capsys.readouterr().err
    assert "counting words" in shown and ("100%" if with_tqdm else "1 of 2 MB half") in shown
    jittok.count_words(["a"], progress=True)
    with progress.Progress(2, "merge", "silent", enabled=False) as bar:
        bar.advance(1)
    assert "silent" not in capsys.readouterr().err


def test_slices_follow_the_clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    slices = progress.Slices(10)
    for _ in range(40):
        now[0] += slices.next() * 1e-4  # so long does a step take
    assert 500 < slices.next() < 2000

"""The command line, with a stand-in tokenizer: reading, writing, errors. One id for each byte."""

from __future__ import annotations

import base64
import importlib
import io
import json
import os
import pkgutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from byte_tokenizer import Bytes

import jittok
from jittok.cli import arguments, main

LOAD_TOKENIZER = arguments.load_tokenizer


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    monkeypatch.setattr(arguments, "load_tokenizer", lambda options: Bytes())


def test_encode_npy(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("jittok.corpus.blocks.BLOCK_SIZE", 8)
    one, two, out = tmp_path / "one.txt", tmp_path / "two.txt", tmp_path / "made" / "out"
    one.write_bytes(b"first line\nsecond\n\nfourth")
    two.write_bytes(b"")
    assert main(["encode", str(one), str(two), "--tokenizer", "any", "--out", str(out), "--threads", "2"]) == 0
    ids, indptr = np.load(out / "one.txt.ids.npy"), np.load(out / "one.txt.indptr.npy")
    assert ids.dtype == np.int32 and indptr.dtype == np.int64
    assert bytes(ids.astype(np.uint8)) == b"first linesecondfourth"
    assert indptr.tolist() == [0, 10, 16, 16, 22]
    assert np.load(out / "two.txt.ids.npy").shape == (0,)
    assert np.load(out / "two.txt.indptr.npy").tolist() == [0]
    assert len(list(out.iterdir())) == 5
    assert json.loads((out / "manifest.jsonl").read_text().splitlines()[-1])["complete"]["documents"] == 4
    assert "4 documents, 22 tokens" in capsys.readouterr().out


def test_encode_raw(tmp_path):
    one = tmp_path / "one.txt"
    one.write_bytes(b"ab\0\0c\0")
    assert main(["encode", str(one), "--out", str(tmp_path), "--format", "raw", "--separator", "nul"]) == 0
    about = json.loads((tmp_path / "one.txt.json").read_text())
    said = {"file": "one.txt.ids.bin", "dtype": "uint16", "byte_order": "little", "length": 3}
    assert about["arrays"]["ids"] == said
    assert np.fromfile(tmp_path / "one.txt.ids.bin", "<u2").tolist() == list(b"abc")
    assert np.fromfile(tmp_path / "one.txt.indptr.bin", "<i8").tolist() == [0, 2, 2, 3]
    assert about["arrays"]["indptr"]["length"] == 4


def test_existing_output_is_kept_unless_told(tmp_path, capsys):
    one = tmp_path / "one.txt"
    one.write_bytes(b"new\n")
    (tmp_path / "one.txt.ids.npy").write_bytes(b"old")
    assert main(["encode", str(one), "--out", str(tmp_path)]) == 1
    assert "--overwrite" in capsys.readouterr().err
    assert (tmp_path / "one.txt.ids.npy").read_bytes() == b"old"
    assert main(["encode", str(one), "--out", str(tmp_path), "--overwrite"]) == 0
    assert np.load(tmp_path / "one.txt.ids.npy").tolist() == list(b"new")


def test_invalid_utf8_names_file_and_position(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("jittok.corpus.blocks.BLOCK_SIZE", 16)
    one = tmp_path / "one.txt"
    one.write_bytes(b"good line\n" * 5 + b"b\xffd line\n")
    assert main(["encode", str(one), "--out", str(tmp_path / "out")]) == 1
    message = capsys.readouterr().err
    assert str(one) in message and "byte 51 (0xFF" in message
    assert list((tmp_path / "out").iterdir()) == []
    assert main(["count", str(one)]) == 1
    assert "byte 51 (0xFF" in capsys.readouterr().err


def test_missing_file_and_unwritable_directory(tmp_path, capsys):
    assert main(["count", str(tmp_path / "absent")]) == 1
    assert "absent" in capsys.readouterr().err
    assert main(["count", str(tmp_path)]) == 1
    one = tmp_path / "one.txt"
    one.write_bytes(b"x")
    assert main(["encode", str(one), "--out", str(one / "below")]) == 1
    assert "--out" in capsys.readouterr().err
    if os.path.isdir("/proc/self/fd"):  # nothing can be made there, not even by root
        assert main(["encode", str(one), "--out", "/proc/self/fd"]) == 1
        assert "/proc/self/fd" in capsys.readouterr().err


def test_two_files_of_one_name(tmp_path, capsys):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text").write_bytes(b"x")
    both = [str(tmp_path / name / "text") for name in ("a", "b")]
    assert main(["encode", *both, "--out", str(tmp_path / "out")]) == 1
    assert "'text'" in capsys.readouterr().err


def test_interruption_leaves_nothing(tmp_path, capsys, monkeypatch):
    def interrupted(self, texts, **_):
        raise KeyboardInterrupt

    one = tmp_path / "one.txt"
    one.write_bytes(b"x\n")
    monkeypatch.setattr(Bytes, "encode_batch", interrupted)
    assert main(["encode", str(one), "--out", str(tmp_path / "out")]) == 130
    assert list((tmp_path / "out").iterdir()) == []


def test_count(tmp_path, capsys):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"ab\ncd\n")
    two.write_bytes(b"xyz")
    assert main(["count", str(one), str(two)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[1:4] == [["4", "2", "6", str(one)], ["3", "1", "3", str(two)], ["7", "3", "9", "total"]]


def test_standard_input(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"ab\ncd")))
    assert main(["encode", "-", "--out", str(tmp_path)]) == 0
    assert np.load(tmp_path / "stdin.indptr.npy").tolist() == [0, 2, 4]


@pytest.mark.parametrize(
    "arguments", [[], ["encode"], ["encode", "x"], ["count", "x", "--separator", "tab"], ["warmup", "wordpiece2"]]
)
def test_wrong_arguments(arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2


def test_threads_must_be_positive(tmp_path, capsys):
    (tmp_path / "x").write_bytes(b"x")
    with pytest.raises(SystemExit, match="2"):
        main(["count", str(tmp_path / "x"), "--threads", "0"])
    assert "--threads" in capsys.readouterr().err


def test_help_needs_neither_numba_nor_numpy():
    code = (
        "import sys; from jittok.cli import _parser; _parser().format_help();"
        " sys.exit(bool({'numba', 'numpy'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[1])


def test_info_of_a_specification(capsys, monkeypatch):
    from jittok.spec import AddedToken, BPEModel, DecodeByteLevel, Split, TokenizerSpec

    pattern = r"\p{L}+|" + "x" * 200
    spec = TokenizerSpec(
        model=BPEModel({"a": 0, "b": 1, "ab": 2}, (("a", "b"),), ignore_merges=True),
        added_tokens=(AddedToken(3, "<end>", special=True), AddedToken(4, "plain")),
        pre_tokenizers=(Split(pattern),),
        decoders=(DecodeByteLevel(),),
        stored_truncation={"max_length": 512},
    )
    known = SimpleNamespace(spec=spec, vocab_size=5, special_tokens={"<end>": 3}, nbytes=1_234_567)
    monkeypatch.setattr(arguments, "load_tokenizer", lambda options: known)
    assert main(["info", "some.json"]) == 0
    out = capsys.readouterr().out
    parts = ["BPE, 3 entries, 1 merges, ignore_merges", "5 entries", "3  <end>", "1 that are not special"]
    parts += [repr(pattern), "DecodeByteLevel()", "max_length=512 (stored", "none stored", "1.2 MB", "some.json"]
    for part in parts:
        assert part in out


def is_kernel(value):
    """Whether it is a function made by ``@kernel``."""
    if hasattr(value, "targetoptions"):
        return not value.targetoptions.get("no_cpython_wrapper")
    return type(value).__name__ == "Kernel"


class TestEngine:
    """With the built-in tokenizer."""

    @pytest.fixture(autouse=True)
    def engine(self, monkeypatch):
        monkeypatch.setattr(arguments, "load_tokenizer", LOAD_TOKENIZER)

    def test_demo(self, capsys):
        assert main(["demo", "--rounds", "1"]) == 0
        out = capsys.readouterr().out
        assert "decoded again it is the same text" in out and "MB/s" in out and "' question'" in out

    def test_warmup_leaves_no_kernel_uncompiled(self, capsys):
        assert main(["warmup"]) == 0
        out = capsys.readouterr().out
        assert "bpe: ready" in out and "wordpiece: ready" in out
        uncompiled = []
        # What no tokenizer uses to encode: slower forms to compare with, and sampling.
        for_comparison = {"max_match", "lin_max_match", "wordpiece_end_to_end", "encode_unigram_nested"}
        for_comparison |= {"encode_unigram_segments", "sample_pieces"}
        # What only much text, or going on from a checkpoint, needs.
        for_comparison |= {"move_words", "refill_unigram_cache", "check_edges", "symbols_of_cells"}
        for_comparison |= {"join_pairs", "place_part", "check_cells"}
        # What seed pieces from a file need.
        for_comparison |= {"valid_pieces", "find_strings"}
        # What files with many added tokens, and single pieces, need.
        for_comparison |= {"read_added_tokens", "merge_bytes"}
        # What only normalizers that strip white space need.
        for_comparison |= {"trim_ends"}
        for module in pkgutil.iter_modules(jittok.kernels.__path__, "jittok.kernels."):
            for name, value in vars(importlib.import_module(module.name)).items():
                if not is_kernel(value) or value.py_func.__module__ != module.name or ".user" in module.name:
                    continue
                if name in for_comparison or module.name.endswith((".lattice", ".study_bpe")):
                    continue
                if not (getattr(value, "_compiled", ()) or getattr(value, "dispatcher", value).signatures):
                    uncompiled.append(f"{module.name}.{name}")
        assert uncompiled == []

    def test_warmup_of_one_family(self, capsys):
        assert main(["warmup", "wordpiece"]) == 0
        out = capsys.readouterr().out
        assert "wordpiece: ready" in out and "bpe" not in out

    def test_warmup_of_one_tokenizer(self, capsys):
        assert main(["warmup", "--tokenizer", "default"]) == 0
        assert "default: ready" in capsys.readouterr().out

    @pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
    def test_ctrl_c_leaves_nothing(self, tmp_path):
        """The real thing: a process that is stopped while it reads a pipe."""
        out = tmp_path / "out"
        arguments = [sys.executable, "-m", "jittok", "encode", "-", "--out", str(out)]

        def listen() -> None:
            # A shell's background jobs ignore the interrupt, and so would what they start.
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        with subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=Path(__file__).parents[1],
            preexec_fn=listen,
        ) as process:
            # More than the batches that are encoded at the same time, so that some are written.
            process.stdin.write(b"some text\n" * 4_000_000)
            process.stdin.flush()
            deadline = time.monotonic() + 120
            while not (out.is_dir() and list(out.iterdir())) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert list(out.iterdir())
            # Python drops an interrupt that falls into a finaliser, as while modules are imported: press again.
            # While kernels are compiled, which may take a minute on a busy machine, it waits.
            for _ in range(60):
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(timeout=5)
                    break
                except subprocess.TimeoutExpired:
                    continue
            process.kill()
            error = process.stderr.read()
            assert process.wait() == 130
        assert b"interrupted" in error
        assert list(out.iterdir()) == []

    def test_rank_file_that_says_too_little(self, tmp_path, capsys):
        ranks = tmp_path / "own.tiktoken"
        lines = [base64.b64encode(bytes([byte])) + b" %d" % byte for byte in range(256)]
        ranks.write_bytes(b"\n".join([*lines, base64.b64encode(b"ab") + b" 256"]) + b"\n")
        (tmp_path / "text").write_bytes(b"abc<end>\n")
        arguments = [str(tmp_path / "text"), "-t", str(ranks)]
        assert main(["count", *arguments]) == 1
        assert "pattern" in capsys.readouterr().err
        arguments += ["--pattern", "cl100k", "--special-tokens", '{"<end>": 300}', "--special", "parse"]
        assert main(["encode", *arguments, "--out", str(tmp_path)]) == 0
        assert np.load(tmp_path / "text.ids.npy").tolist() == [256, 99, 300]
        special = tmp_path / "special.json"
        special.write_text('{"<end>": 301}', encoding="utf-8")
        assert main(["info", str(ranks), "--pattern", "cl100k", "--special-tokens", str(special)]) == 0
        assert "301  <end>" in capsys.readouterr().out

    @pytest.mark.parametrize("given", ["[1]", "{", '{"a": "b"}', "absent.json"])
    def test_wrong_special_tokens(self, given, capsys):
        assert main(["info", "any.tiktoken", "--pattern", "cl100k", "--special-tokens", given]) == 1
        assert "--special-tokens" in capsys.readouterr().err

    def test_info(self, capsys):
        assert main(["info", "default"]) == 0
        out = capsys.readouterr().out
        assert "32,768 entries" in out and "<|endoftext|>" in out

    def test_encode_equals_the_api(self, tmp_path, monkeypatch):
        from jittok.cli.demo import hamlet

        monkeypatch.setattr("jittok.corpus.blocks.BLOCK_SIZE", 10_000)
        text = hamlet()
        (tmp_path / "hamlet").write_text(text, encoding="utf-8", newline="\n")
        assert main(["encode", str(tmp_path / "hamlet"), "--out", str(tmp_path)]) == 0
        batch = jittok.load_default().encode_batch(text.split("\n")[:-1])
        assert np.array_equal(np.load(tmp_path / "hamlet.ids.npy"), batch.ids)
        assert np.array_equal(np.load(tmp_path / "hamlet.indptr.npy"), batch.indptr)

    def test_special_tokens_in_the_text(self, tmp_path, capsys):
        (tmp_path / "one").write_text("a <|endoftext|> b\n", encoding="utf-8")
        arguments = ["encode", str(tmp_path / "one"), "--out", str(tmp_path), "--overwrite", "--special"]
        number = jittok.load_default().token_to_id("<|endoftext|>")
        for policy, there in (("parse", True), ("text", False)):
            assert main([*arguments, policy]) == 0
            assert (number in np.load(tmp_path / "one.ids.npy")) == there
        assert main([*arguments, "raise"]) == 1
        assert "<|endoftext|>" in capsys.readouterr().err

    def test_invalid_utf8(self, tmp_path, capsys):
        (tmp_path / "one").write_bytes(b"good\nb\xffd\n")
        assert main(["count", str(tmp_path / "one")]) == 1
        assert "byte 6 (0xFF" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------- corpus jobs


def test_json_lines_with_problems(tmp_path, capsys):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": {"b": "one"}}\n{"a": 1}\n\n{"a": {"b": "three"}}\n')
    command = [str(path), "--field", "a.b"]
    assert main(["encode", *command, "--out", str(tmp_path / "out")]) == 1
    assert "a.jsonl: line 2: there is no field 'a.b'" in capsys.readouterr().err
    command += ["--on-error", "skip", "--json"]
    assert main(["encode", *command, "--out", str(tmp_path / "out")]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["documents"], summary["tokens"], summary["rejected"]) == (2, 8, {"no field": 1})
    assert summary["n_bytes"] == path.stat().st_size
    reject = json.loads((tmp_path / "out" / "a.jsonl.rejects.jsonl").read_text())
    assert (reject["record"], reject["position"]) == (1, 20)
    assert main(["count", *command]) == 0
    counted = json.loads(capsys.readouterr().out)
    assert (counted["tokens"], counted["documents"], counted["rejected"]) == (8, 2, {"no field": 1})
    assert main(["count", *command[:-1]]) == 0
    assert "1 records left out: 1 no field" in capsys.readouterr().out


def test_shards_that_are_gone_on_with(tmp_path, capsys, monkeypatch):
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / str(number)).write_text(f"text {number}|and|more")
    command = ["encode", str(tmp_path / "in"), "--shard-tokens", "10", "--separator-text", "|", "--document-end", "\n"]
    command += ["--format", "packed", "--seq-len", "4", "--pad", "\t", "--document-index"]
    assert main([*command, "--out", str(tmp_path / "whole")]) == 0
    assert "9 documents, 48 tokens" in capsys.readouterr().out
    done = []

    def third(self, texts, **_):
        done.append(texts)
        if len(done) == 3:
            raise KeyboardInterrupt
        return encode(self, texts)

    encode = Bytes.encode_batch
    with monkeypatch.context() as patch:
        patch.setattr(Bytes, "encode_batch", third)
        assert main([*command, "--out", str(tmp_path / "out")]) == 130
    assert "the same command" in capsys.readouterr().err
    assert main([*command, "--out", str(tmp_path / "out"), "--special", "text"]) == 1
    assert "special is None there, and 'text' now" in capsys.readouterr().err
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    assert "of the documents were done before" in capsys.readouterr().out
    names = sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert [(tmp_path / "out" / name).read_bytes() for name in names] == [
        (tmp_path / "whole" / name).read_bytes() for name in names
    ]
    rows = np.load(tmp_path / "out" / "shard-00000.npy")
    assert bytes(rows.astype(np.uint8)) == b"text 0\nand\n\t"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--document-end", "no such"], "no token 'no such'"),
        (["--format", "packed"], "--seq-len"),
        (["--separator-text", ""], "--separator-text is empty"),
        (["--column", "x", "--input-format", "parquet"], "a: cannot be read as Parquet"),
    ],
)
def test_wrong_jobs(tmp_path, capsys, arguments, message):
    (tmp_path / "a").write_text("a")
    assert main(["encode", str(tmp_path / "a"), "--out", str(tmp_path / "out"), *arguments]) == 1
    assert message in capsys.readouterr().err


def test_numbers_with_units():
    texts = ("12", "4k", "1.5M", "2G", "1 t", "500MB", "4GiB")
    numbers = [12, 4000, 1_500_000, 2_000_000_000, 10**12, 500_000_000, 4 << 30]
    assert [arguments.number_with_unit(text) for text in texts] == numbers
    for wrong in ("many", "infG", "nanM", "0", "-5", "0.0001k", "1.5", "9" * 5000, "٣", "٣M", "²k", "1_000", "1\n"):
        with pytest.raises(SystemExit, match="2"):
            main(["encode", "x", "--out", "y", f"--shard-tokens={wrong}"])


_TRAIN = ["train", "bpe", "--out", "y"]


@pytest.mark.parametrize(
    ("command", "option", "least"),
    [
        (["bench", "default", "x"], "--rounds", 1),
        (["bench", "default", "x"], "--threads", 1),
        (["verify", "default", "x"], "--show", 0),
        (["count", "x"], "--threads", 1),
        (["demo"], "--rounds", 1),
        (["report", "default", "x"], "--rounds", 0),
        (_TRAIN, "--vocab-size", 1),
        (_TRAIN, "--vocab-sizes", 1),
        (_TRAIN, "--threads", 1),
        (_TRAIN, "--min-frequency", 0),
        (_TRAIN, "--limit-alphabet", 0),
        (_TRAIN, "--max-token-length", 1),
        (["train", "unigram", "--out", "y"], "--reference-threads", 1),
    ],
)
def test_whole_numbers(capsys, command, option, least):
    for wrong in (str(least - 1), "-3", "٣", "３", "1_0", "1.0", "nan", "inf", "1e3", "", "9" * 19, "9" * 5000):
        with pytest.raises(SystemExit, match="2"):
            main([*command, f"{option}={wrong}"])
        assert f"expected a whole number of at least {least}" in capsys.readouterr().err


def test_formats_are_those_of_the_writers():
    from jittok.corpus.sources import KINDS
    from jittok.corpus.writing import FORMATS

    assert arguments.FORMATS == FORMATS and arguments.KINDS == KINDS

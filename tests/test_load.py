"""Loading: tables of small models wait for the first text, and what is wrong with a file does not."""

import contextlib
import gc
import json
import os
import pickle
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from reader_cases import json_documents

import jittok
from jittok.build.plan import build_plan, can_wait
from jittok.errors import FormatError, JittokError, MissingFileError, RegexError, UnsupportedError
from jittok.token_columns import _MOST_FOUND
from jittok.tokenizer import Tokenizer

TEXTS = ["ab abc don't 12", "", "<x>y b a", "\u00e9\u65e5 ab"]
WAITING = ["tokenizer.json byte-level", "tokenizer.json wordpiece", "tokenizer.json wordlevel"]
DOCUMENTS = {name: value for name, (value, _) in json_documents().items()}


def load(value, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return jittok.load(path)


@pytest.fixture(params=[name for name in DOCUMENTS if name in WAITING])
def value(request):
    return json.loads(json.dumps(DOCUMENTS[request.param]))


def test_some_wait():
    assert set(WAITING) <= set(DOCUMENTS)


def test_tables_wait_and_are_the_same(value, tmp_path):
    tok = load(value, tmp_path)
    assert "plan" not in vars(tok) and "_engine" not in vars(tok)
    assert tok.vocab_size and tok.id_to_token(0) is not None
    assert "plan" not in vars(tok)
    at_once = Tokenizer(tok.spec, plan=build_plan(tok.spec))
    assert "plan" in vars(at_once)
    assert tok.encode_batch(TEXTS).to_lists() == at_once.encode_batch(TEXTS).to_lists()
    assert "plan" in vars(tok)
    assert tok == at_once and tok.nbytes == at_once.nbytes


def test_not_used_before_it_is_pickled(value, tmp_path):
    tok = load(value, tmp_path)
    again = pickle.loads(pickle.dumps(tok))
    assert again.encode_batch(TEXTS).to_lists() == tok.encode_batch(TEXTS).to_lists()
    assert load(value, tmp_path).with_added_tokens(["12"]).count("ab 12 ab") > 0


def test_first_used_by_several_threads(value, tmp_path):
    expected = load(value, tmp_path).encode_batch(TEXTS).to_lists()
    tok = load(value, tmp_path)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: tok.encode_batch(TEXTS).to_lists(), range(8)))
    assert results == [expected] * 8


def test_a_wrong_pattern_is_refused_when_loading(tmp_path):
    value = json.loads(json.dumps(DOCUMENTS["tokenizer.json byte-level"]))
    value["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(ab"
    with pytest.raises(RegexError, match=r"tokenizer\.json"):
        load(value, tmp_path)
    value["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = r"(a)\1"
    with pytest.raises(UnsupportedError, match=r"tokenizer\.json"):
        load(value, tmp_path)


def test_models_that_cannot_be_are_refused_when_loading(tmp_path):
    value = json.loads(json.dumps(DOCUMENTS["tokenizer.json byte-level"]))
    value["model"].update(byte_fallback=True)
    with pytest.raises(UnsupportedError, match="byte_fallback"):
        load(value, tmp_path)
    value["model"].update(continuing_subword_prefix="b", merges=[])
    with pytest.raises(UnsupportedError, match="byte_fallback"):
        load(value, tmp_path)
    value["model"].update(byte_fallback=False, continuing_subword_prefix=None, merges=[["a", "c"]])
    with pytest.raises(FormatError, match="merges"):
        load(value, tmp_path)


def test_only_what_is_sure_waits(tmp_path):
    spec = load(DOCUMENTS["tokenizer.json byte-level"], tmp_path).spec
    assert can_wait(spec)
    from dataclasses import replace

    # Merges that nobody compared with the vocabulary, and ids that no table can hold.
    assert not can_wait(replace(spec, model=replace(spec.model, merges=(("a", "zz"),))))
    assert not can_wait(replace(spec, model=replace(spec.model, vocab={"a": 1 << 70}, merges=())))
    assert not can_wait(replace(spec, model=replace(spec.model, vocab={"a": -1}, merges=())))


def test_a_tokenizer_is_freed_at_once(tmp_path):
    value = DOCUMENTS["tokenizer.json byte-level"]
    text = "".join(value["model"]["vocab"]).replace("\u0120", " ")
    gc.collect()
    gc.disable()
    try:
        for _ in range(2):
            tokenizer = load(value, tmp_path)
            batch = tokenizer.encode_batch([text], spans=True)
            freed = [weakref.ref(thing) for thing in (tokenizer, tokenizer._engine)]
            del tokenizer
            assert [thing() for thing in freed] == [None, None]
            assert batch[0].tokens
    finally:
        gc.enable()


def test_tokenizers_take_over_arrays_of_others(tmp_path):
    found = []
    for _ in range(3):
        for value in DOCUMENTS.values():
            if isinstance(value, dict) and "model" in value:
                try:
                    tokenizer = load(value, tmp_path)
                    found.append(tokenizer.encode("ab cab \u0120 bcab" * 20).ids.tolist())
                except JittokError as error:
                    found.append(str(error))
    third = len(found) // 3
    assert third > 1 and found[:third] == found[third : 2 * third] == found[2 * third :]


def test_many_look_ups_one_by_one(tmp_path):
    tokens = [chr(0x4E00 + i) for i in range(3 * _MOST_FOUND)]
    value = json.loads(json.dumps(DOCUMENTS["tokenizer.json byte-level"]))
    vocab = {token: number for number, token in enumerate([*value["model"]["vocab"], *tokens, "\u0120" * 3000, "x" * 6000])}
    value["model"]["vocab"] = vocab
    found = load(value, tmp_path).spec.model.vocab
    for token, number in vocab.items():
        assert found[token] == number and token in found
        assert token + "\0" not in found
    assert found.get(5) is None


def test_paths_that_are_no_files(tmp_path):
    (tmp_path / "file").write_bytes(b"{}")
    for name in ("none", "file/below", "a\0b"):
        with pytest.raises(MissingFileError):
            jittok.load(str(tmp_path / name))
    with pytest.raises(FormatError, match="empty"):
        (tmp_path / "file").write_bytes(b"")
        jittok.load(tmp_path / "file")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
class TestNamedPipes:
    @staticmethod
    def load(path):
        """Load in a thread, which a pipe that never ends cannot keep the tests waiting for."""
        results = []

        def run():
            try:
                results.append(jittok.load(path))
            except JittokError as error:
                results.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(60)
        assert results, "still waiting for the pipe"
        return results[0]

    @pytest.mark.parametrize("size", [0, 1 << 17], ids=["small", "more than a pipe holds"])
    def test_a_slow_writer(self, size, tmp_path):
        fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")
        content = json.dumps(DOCUMENTS["tokenizer.json byte-level"]).encode() + b" " * size
        os.mkfifo(tmp_path / "pipe")
        writer = os.open(tmp_path / "pipe", os.O_RDWR)  # opened both ways, it need not wait for a reader

        def write():
            for part in (content[:100], content[100:]):
                time.sleep(0.05)  # the reader finds nothing meanwhile
                written = 0
                while written < len(part):
                    written += os.write(writer, part[written:])
                # What nobody has read when the pipe is closed is lost.
                limit = time.monotonic() + 60
                while time.monotonic() < limit and fcntl.ioctl(writer, termios.FIONREAD, bytes(4)) != bytes(4):
                    time.sleep(0.001)
            os.close(writer)

        starting = threading.Thread(target=write, daemon=True)
        starting.start()
        tok = self.load(tmp_path / "pipe")
        starting.join(60)
        (tmp_path / "tokenizer.json").write_bytes(content)
        assert tok == jittok.load(tmp_path / "tokenizer.json")

    def test_nobody_writes(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        error = self.load(tmp_path / "pipe")
        assert isinstance(error, FormatError)
        assert "empty" in str(error)


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="no paths of open files")
@pytest.mark.parametrize("n_tokens", [0, 20_000])
def test_what_is_written_to_a_pipe_is_read_once(n_tokens):
    vocab = {"<unk>": 0, "a": 1, **{f"token{number}": number for number in range(2, n_tokens)}}
    model = {"type": "WordLevel", "unk_token": "<unk>", "vocab": vocab}
    with written_slowly(json.dumps({"version": "1.0", "added_tokens": [], "model": model})) as path:
        assert jittok.load(path).encode("a").ids.tolist() == [1]
    for other in ('{"version":', '{"a": []}', json.dumps({"a": [], "b": "c" * 100_000})):
        with written_slowly(other) as path:
            with pytest.raises(JittokError, match="JSON"):
                jittok.load(path)
    with written_slowly("[UNK]\n[CLS]\n[SEP]\na\n") as path:
        with pytest.raises(UnsupportedError, match="vocab.txt cannot be read from a pipe"):
            jittok.load(path)


@contextlib.contextmanager
def written_slowly(text):
    """The path of a pipe to which a thread writes."""
    reading, writing = os.pipe()

    def write():
        time.sleep(0.05)
        with open(writing, "wb") as file:
            file.write(text.encode())

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    yield f"/dev/fd/{reading}"
    thread.join(10)
    os.close(reading)

"""Malformed, truncated and hostile input gives a jittok exception that names the place, or a documented result."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import random_configs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jittok
from jittok.errors import (
    FormatError,
    JittokError,
    MissingFileError,
    OutputError,
    RegexError,
    TextError,
    TokenIdError,
    UnsupportedError,
)
from jittok.formats import jittok_file

CODE = Path(__file__).parent


def block(**parts):
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": model, **parts,
    }  # fmt: skip


def model(**parts):
    return block(model={**block()["model"], **parts})


def load(tmp_path, content, name="tokenizer.json"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return jittok.load(path)


@pytest.fixture(scope="module")
def default():
    return jittok.load_default()


# ----------------------------------------------------------------------------------------------- tokenizer files

_SPECIAL = {"id": "[X]", "ids": [7], "tokens": ["[X]"]}
_TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {},
}


def split(regex):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", FormatError, "empty"),
        (b"not JSON at all", FormatError, "tokenizer"),
        (json.dumps(block()).encode()[:-20], FormatError, "tokenizer.json"),
        (b'{"model": ' * 5000, FormatError, "tokenizer"),
        (b"\xff\xfe\x00{", FormatError, "tokenizer"),
        ([], FormatError, "tokenizer"),
        (block(model=None), FormatError, "model"),
        (model(vocab=["a"]), FormatError, "model.vocab"),
        (model(vocab={"a": "0"}), FormatError, "model.vocab"),
        (model(vocab={"a": -1, "b": 1, "ab": 2}), FormatError, "-1"),
        (model(vocab={"a": 0, "b": 0, "ab": 2}), FormatError, "same id"),
        (model(vocab={"a": 0, "b": 1, "ab": 1 << 30}), JittokError, str(1 << 30)),
        (model(merges=[["a", "c"]]), FormatError, "'c'"),
        (model(merges=[["b", "a"]]), FormatError, "not in the vocabulary"),
        (model(merges=["a b c"]), FormatError, "model.merges"),
        (model(merges=[["a"]]), FormatError, "model.merges"),
        (model(merges=5), FormatError, "model.merges"),
        (model(type="Magic"), FormatError, "Magic"),
        (block(normalizer={"type": "Magic"}), UnsupportedError, "normalizer"),
        (block(pre_tokenizer={"type": "Magic"}), UnsupportedError, "pre_tokenizer"),
        (block(pre_tokenizer=split("(")), RegexError, r"tokenizer\.json: .*\("),
        (block(pre_tokenizer=split("[z-a]")), RegexError, r"tokenizer\.json"),
        (block(pre_tokenizer=split(r"(a)\1")), UnsupportedError, r"tokenizer\.json"),
        (block(normalizer={"type": "Replace", "pattern": {"Regex": "+"}, "content": ""}), RegexError, r"tokenizer\.json"),
        (block(added_tokens=[{"id": 3}]), FormatError, "added_tokens"),
        (block(post_processor=_TEMPLATE), FormatError, r"\[CLS\]"),
        (block(post_processor={**_TEMPLATE, "special_tokens": {"[CLS]": _SPECIAL}}), FormatError, "7"),
    ],
)  # fmt: skip
def test_malformed_tokenizer_json(tmp_path, content, error, message):
    with pytest.raises(error, match=message) as caught:
        load(tmp_path, content)
    assert "tokenizer.json" in str(caught.value)


def test_missing_files(tmp_path):
    with pytest.raises(MissingFileError, match=r"nothing\.json"):
        jittok.load(tmp_path / "nothing.json")
    with pytest.raises(JittokError, match=str(tmp_path)):
        jittok.load(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"!!! 0\n", "line 1"),
        (b"YQ== 0\nYg== x\n", "line 2"),
        (b"YQ== 0\nYg== 0\n", "tiktoken"),
        (b"YQ== 0\nYg== -1\n", "tiktoken"),
    ],
)
def test_malformed_rank_files(tmp_path, content, message):
    path = tmp_path / "x.tiktoken"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message):
        jittok.load(path, format="tiktoken", pattern=r"\S+|\s+", special_tokens={})


# ------------------------------------------------------------------------------------------------- jittok files


def contents():
    """Small jittok files of several kinds."""
    result = []
    for seed in (1, 2, 4, 9):
        tok = (
            jittok.load_default() if seed == 0 else _from_block(random_configs.configuration(random.Random(seed)))
        )
        result.append(jittok_file.write(tok.spec, tok.plan, tok._vocabulary.tables))
    return result


def _from_block(configuration):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return load(Path(folder), configuration)


def changed(content, rng):
    """The file cut short, or with other bytes in its header, its metadata or its arrays."""
    content = bytearray(content)
    header_end = 8 + int.from_bytes(content[:8], "little")
    kind = rng.choice(["cut", "header", "values", "values", "bytes"])
    if kind == "cut":
        return bytes(content[: rng.randrange(len(content))])
    if kind == "header":
        for _ in range(rng.choice([1, 3])):
            content[rng.randrange(8, header_end)] = ord(rng.choice('0123456789aZ-"{}[],'))
    elif kind == "bytes":
        for _ in range(rng.choice([1, 10])):
            content[rng.randrange(len(content))] = rng.randrange(256)
    else:
        header = json.loads(bytes(content[8:header_end]))
        del header["__metadata__"]
        entry = header[rng.choice(sorted(header))]
        begin, end = entry["data_offsets"]
        size = int(entry["dtype"][1:]) // 8
        for _ in range(rng.choice([1, 2, 20]) if end > begin else 0):
            at = header_end + begin + size * rng.randrange((end - begin) // size)
            value = rng.choice([0, 1, 2, 255, (1 << 8 * size) - 1, rng.getrandbits(8 * size), rng.randrange(256)])
            content[at : at + size] = value.to_bytes(size, "little")
    return bytes(content)


def use(content):
    """Load a jittok file and run every kernel; jittok's own exceptions are all that may come of it."""
    texts = [
        "",
        "abc don't  1234 \u00e9\u65e5\U0001f600\n\n",
        "a" * 50 + "\u3000" * 20,
        "<x>y b c</s>",
        *"ab ",
    ] * 2
    try:
        tok = jittok.tokenizer._from_bytes(content)
        for spans in (False, True):
            batch = tok.encode_batch(texts, spans=spans, special="parse")
        tok.decode_batch(batch)
        encoding = tok.encode(texts[1], texts[3])
        tok.decode(encoding.ids)
        assert len(encoding.tokens) == len(encoding.ids)
        return "used"
    except JittokError:
        return "refused"


def test_changed_jittok_files():
    files = contents()
    assert [use(content) for content in files] == ["used"] * len(files)
    results = [use(changed(random.Random(seed).choice(files), random.Random(-seed))) for seed in range(400)]
    assert results.count("refused") > 100
    assert results.count("used") > 10


def test_changed_jittok_files_with_bounds_checks(tmp_path):
    # Without the JIT every access is checked. Bounds checks are not part of Numba's cache key.
    command = [sys.executable, __file__, "30"]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=CODE)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_jittok_file_of_another_version(tmp_path, default):
    path = tmp_path / "x.jittok"
    default.save(path)
    content = path.read_bytes()
    version = f'"version":"{jittok_file.VERSION}"'.encode()
    assert version in content
    with pytest.raises(FormatError, match="version"):
        load(tmp_path, content.replace(version, b'"version":"9"'), "x.jittok")
    with pytest.raises(FormatError, match="truncated"):
        load(tmp_path, content[:1000], "x.jittok")
    with pytest.raises(FormatError, match=r"x\.jittok"):
        load(tmp_path, content[:-1000], "x.jittok")


# ------------------------------------------------------------------------------------------------------- calls


@pytest.mark.parametrize("token_id", [-1, 1 << 30, 10**9])
def test_ids_outside_the_vocabulary(default, token_id):
    with pytest.raises(TokenIdError, match=str(token_id)):
        default.decode([0, token_id])
    with pytest.raises(TokenIdError, match="position 1"):
        default.decode_batch([[0], [1, token_id]][1:])


def test_invalid_text(default):
    with pytest.raises(TextError, match="1"):
        default.encode(b"a\xff")
    with pytest.raises(TextError, match=r"texts\[1\]"):
        default.encode_batch([b"a", b"\xed\xa0\x80"])
    with pytest.raises(TextError, match="surrogate"):
        default.encode("a\ud800b")
    replaced = default.encode("a\ud800b", surrogates="replace")
    assert default.decode(replaced) == "a\ufffdb"
    assert default.decode(default.encode(b"a\xffb", errors="replace")) == "a\ufffdb"


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.binary(max_size=12), max_size=5))
def test_any_bytes(data):
    tok = jittok.load_default()
    texts = [item.decode("utf-8", "replace") for item in data]
    batch = tok.encode_batch(data, errors="replace")
    assert tok.decode_batch(batch) == texts


def test_nul_and_nothing(default):
    assert default.decode(default.encode("a\0b\0")) == "a\0b\0"
    assert default.encode("").ids.tolist() == []
    batch = default.encode_batch([])
    assert len(batch) == 0
    assert batch.ids.tolist() == []
    assert default.encode_batch([""], spans=True).spans.tolist() == []
    assert default.count_batch([]).tolist() == []
    assert default.decode([]) == ""
    assert default.decode_batch([]) == []


@pytest.mark.parametrize(
    "text",
    ["a" * 3_000_000, " " * 3_000_000, "\n" * 1_000_000, "\u65e5" * 700_000, "ab" * 1_000_000, "'" * 1_000_000],
)
def test_one_giant_text(default, text):
    encoding = default.encode_batch([text, "next"], spans=True)
    assert default.decode(encoding[0].ids) == text
    assert encoding[0].spans[-1, 1] == len(text)
    assert encoding[1].ids.tolist() == default.encode("next").ids.tolist()


def test_output_that_cannot_be_written(tmp_path, default):
    with pytest.raises(OutputError, match="missing"):
        default.save(tmp_path / "missing" / "x.jittok")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file"):
        default.save(tmp_path / "file" / "x.jittok")


def test_arrays_that_are_no_text(default):
    data = np.frombuffer("aé".encode(), np.uint8)
    assert (
        default.encode_batch((data, np.array([0, 1, 3]))).to_lists() == default.encode_batch(["a", "é"]).to_lists()
    )
    with pytest.raises(JittokError):
        default.encode_batch((data, np.array([0, 2, 3])))  # cut inside a character
    with pytest.raises(JittokError):
        default.encode_batch((data, np.array([0, 9])))
    with pytest.raises(JittokError):
        default.encode_batch((data, np.array([3, 0])))


if __name__ == "__main__":
    np.seterr(all="ignore")
    FILES = contents()
    for number in range(int(sys.argv[1])):
        use(changed(random.Random(number).choice(FILES), random.Random(-number)))

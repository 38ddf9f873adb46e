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
    with pytest.raises(MissingFileError, match="is empty"):
        jittok.load("")


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


# ------------------------------------------------------------------------------------------------- WordPiece

_BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_PIECES = ["a", "##b", "c", "##cc"]
_WORDS = ["a", "ab", "abccb", "zz", "b", "##b a z", "[CLS] a [MASK]", "", "c" * 101, "\u4e2da", "\u00c1b \U0001f600"]


def _lines(*tokens, end="\n"):
    return "".join(token + end for token in tokens)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (_lines(*_BERT, *_PIECES, end="\r\n"), None),
        ("\ufeff" + _lines(*_BERT, *_PIECES), None),
        ("\ufeff" + _lines(*_BERT, *_PIECES, end="\r\n")[:-2], None),
        # Of two equal lines the later one counts, and an empty line is a token that no text has.
        (_lines(*_BERT, *_PIECES, "a", "##b"), {"c": 7, "##cc": 8, "a": 9, "##b": 10}),
        (_lines(*_BERT, "", *_PIECES, "", ""), {"a": 6, "##b": 7, "c": 8, "##cc": 9, "": 11}),
        (_lines(*_BERT, "##a", "##b"), {"##a": 5, "##b": 6}),
        (_lines(*_BERT), {}),
    ],
    ids=["CRLF", "byte-order mark", "both, no last line end", "duplicates", "empty lines", "only suffixes", "no pieces"],
)
def test_odd_vocabularies(tmp_path, text, tokens):
    from tokenizers import BertWordPieceTokenizer

    pieces = {piece: 5 + number for number, piece in enumerate(_PIECES)} if tokens is None else tokens
    vocab = {**dict(zip(_BERT, range(5), strict=True)), **pieces}
    reference = BertWordPieceTokenizer(vocab=vocab)
    path = tmp_path / "vocab.txt"
    path.write_text(text, encoding="utf-8", newline="")
    ours = jittok.load(path)
    for word in _WORDS:
        expected = reference.encode(word)
        actual = ours.encode(word)
        assert actual.ids.tolist() == expected.ids, word
        assert actual.spans.tolist() == [list(span) for span in expected.offsets]
        assert ours.encode(word, "ab").ids.tolist() == reference.encode(word, "ab").ids
    assert ours.encode_batch(_WORDS).to_lists() == [encoding.ids for encoding in reference.encode_batch(_WORDS)]


def wordpiece(vocab=None, *, model=None, **fields):
    """A tokenizer.json with a WordPiece model, BERT's in all that `model` and `fields` do not say."""
    if vocab is None:
        vocab = {token: number for number, token in enumerate([*_BERT, *_PIECES])}
    options = {"unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", **options, **(model or {}), "vocab": vocab},
        **fields,
    }  # fmt: skip


def test_a_missing_unknown_token_is_an_error_where_it_is_needed(tmp_path):
    from tokenizers import Tokenizer

    content = wordpiece({"a": 0, "##b": 1, "[CLS]": 2, "[SEP]": 3})
    reference = Tokenizer.from_str(json.dumps(content))
    ours = load(tmp_path, content)
    assert ours.encode_batch(["ab a", "abb"]).to_lists() == [e.ids for e in reference.encode_batch(["ab a", "abb"])]
    with pytest.raises(Exception, match=r"Missing \[UNK\]"):
        reference.encode("ab z")
    path = tmp_path / "saved.jittok"
    ours.save(path)
    for tok in (ours, jittok.load(path)):
        with pytest.raises(FormatError, match="text 0 holds a word that the vocabulary does not cover"):
            tok.encode("ab z")
        with pytest.raises(FormatError, match="text 2 holds a word .* unk_token"):
            tok.encode_batch(["a", "ab", "a" * 101], threads=2)
        assert tok.encode("ab", add_special_tokens=False).ids.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (wordpiece(model={"unk_token": None}), r"model\.unk_token: expected a string"),
        (wordpiece({"[UNK]": -1}), r"model\.vocab\.\[UNK\]: expected an integer"),
        (wordpiece({"[UNK]": "0"}), r"model\.vocab\.\[UNK\]: expected an integer"),
        (wordpiece(["[UNK]"]), r"model\.vocab: expected an object"),
        (wordpiece(model={"max_input_chars_per_word": -1}), r"model\.max_input_chars_per_word: expected an integer"),
        (wordpiece(model={"continuing_subword_prefix": None}), r"model\.continuing_subword_prefix: expected a string"),
        (wordpiece({"a": 0}), r"post_processor\.cls\[1\]: the id 2 is neither in the vocabulary nor"),
        (wordpiece(post_processor={"type": "BertProcessing", "sep": ["[SEP]", 99], "cls": ["[CLS]", 2]}), "the id 99 is"),
        (wordpiece(post_processor={"type": "BertProcessing", "sep": ["[SEP]", 3]}), "the field 'cls' is missing"),
        (wordpiece(decoder={"type": "WordPiece", "prefix": None, "cleanup": True}), r"decoder\.prefix: expected a string"),
        (wordpiece(normalizer={"type": "BertNormalizer"}), "the field 'clean_text' is missing"),
    ],
)  # fmt: skip
def test_malformed_wordpiece(tmp_path, content, message):
    with pytest.raises(FormatError, match=message) as caught:
        load(tmp_path, content)
    assert "tokenizer.json" in str(caught.value)


@pytest.mark.parametrize("options", [{"max_input_chars_per_word": 0}, {"max_input_chars_per_word": 1 << 63},
                                     {"continuing_subword_prefix": ""}, {"unk_token": ""}], ids=str)  # fmt: skip
@pytest.mark.parametrize("more", [{}, {"": 9}, {"##": 9}, {"a\r": 9}, {"q": 5}, {"q": 500_000}], ids=str)
def test_odd_wordpiece_models(tmp_path, options, more):
    from tokenizers import Tokenizer

    vocab = {token: number for number, token in enumerate([*_BERT, *_PIECES])}
    if options.get("unk_token") == "":
        more = {**more, "": 10}
    content = wordpiece({**vocab, **more}, model=options)
    reference, ours = Tokenizer.from_str(json.dumps(content)), load(tmp_path, content)
    assert ours.encode_batch(_WORDS).to_lists() == [encoding.ids for encoding in reference.encode_batch(_WORDS)]
    if more.get("q") != 5:  # which token of an id is shown changes from process to process in the reference
        for word in _WORDS:
            assert list(ours.encode(word).tokens) == reference.encode(word).tokens


def test_a_word_of_a_million_characters(tmp_path):
    from tokenizers import Tokenizer

    vocab = {token: number for number, token in enumerate([*_BERT, "ab", "##ab", "##abab", "\u4e00", "##\u4e00"])}
    content = wordpiece(vocab)
    ours, reference = load(tmp_path, content), Tokenizer.from_str(json.dumps(content))
    letters, accented = "ab" * 500_000, "a\u0301b" * 333_333
    for word in (letters, accented, letters + " ab"):
        encoding, expected = ours.encode(word), reference.encode(word)
        assert encoding.ids.tolist() == expected.ids  # one unknown token, whose span is the whole word
        assert encoding.spans.tolist() == [list(span) for span in expected.offsets]
    # Without a limit, which the reference needs time for that grows with the square of the length.
    ours = load(tmp_path, wordpiece(vocab, model={"max_input_chars_per_word": 1 << 40}))
    encoding = ours.encode(letters, add_special_tokens=False)
    assert encoding.ids.tolist() == [5] + [7] * 249_999 + [6]
    assert encoding.spans[-1].tolist() == [999_998, 1_000_000]
    assert ours.encode(letters + "z", add_special_tokens=False).ids.tolist() == [1]
    assert ours.count("\u4e00" * 1_000_000, add_special_tokens=False) == 1_000_000


# ------------------------------------------------------------------------------------------------- jittok files


def contents():
    """Small jittok files of several kinds."""
    result = []
    for seed in (1, 2, 4, 9):
        tok = (
            jittok.load_default() if seed == 0 else _from_block(random_configs.configuration(random.Random(seed)))
        )
        result.append(jittok_file.write(tok.spec, tok.plan, tok._vocabulary.tables))
    for seed in (1, 2):
        tok = _from_block(random_configs.wordpiece_configuration(random.Random(seed)))
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

"""The vocabulary, merges and added tokens of a tokenizer.json: kernels read what the json module reads, or nothing."""

import json
import random

import numpy as np
import pytest

import jittok
from jittok.errors import JittokError
from jittok.formats import json_parts, tokenizer_json
from jittok.formats._json import parse_json
from jittok.token_columns import ColumnMerges, ColumnPieces, ColumnVocab, columns_of

TOKENS = ["a", "b", "ab", "abb", "é", "aé", "語", "🙂", "🙂a", " ", "Ġ", "\x1f", "\n"]
TOKENS += ['"', "\\", "\\u0041", "/", "\u2028", "\x7f", ""]


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    """Take the kernels for files of any size."""
    monkeypatch.setattr(json_parts, "_LEAST_BYTES", 1)
    monkeypatch.setattr(json_parts, "_MANY_BYTES", 1)


def by_json(data):
    return tokenizer_json.from_json(parse_json(data, "file", parse_float=tokenizer_json.read_score))


def outcome(read, data):
    try:
        return read(data)
    except JittokError as error:
        return type(error), str(error)


def same(data):
    """Check that a file is read, or refused, as the json module's way does it; returns what was read of it by kernels."""
    assert outcome(lambda content: tokenizer_json.read(content, "file"), data) == outcome(by_json, data)
    return json_parts.read_parts(data, tokenizer_json._FLAGS)


def document(model, **others):
    return {"version": "1.0", "added_tokens": [], "normalizer": None, "decoder": None, **others, "model": model}


def bpe(tokens=TOKENS, merges=(("a", "b"), ("ab", "b"), ("a", "é"), ("🙂", "a"))):
    vocab = {token: number for number, token in enumerate(tokens)}
    return {"type": "BPE", "vocab": vocab, "merges": list(map(list, merges))}


def unigram(scores=(-1.5, 0, -10.53339672088623, 1e-5, -3.4028234663852886e38, -0.0)):
    return {"type": "Unigram", "unk_id": 0, "vocab": [[f"t{number}", score] for number, score in enumerate(scores)]}


def string(text, chance):
    """A string of JSON, with escapes where none is needed."""
    parts = []
    for character in text:
        plain = json.dumps(character, ensure_ascii=False)[1:-1]
        if chance.random() < 0.3:
            plain = json.dumps(character)[1:-1]
        if len(plain) == 1 and chance.random() < 0.2:
            plain = f"\\u{ord(character):04X}" if chance.random() < 0.5 else f"\\u{ord(character):04x}"
        if character == "/" and chance.random() < 0.5:
            plain = "\\/"
        parts.append(plain)
    return f'"{"".join(parts)}"'


def written(value, chance):
    """JSON with white space anywhere, keys in any order, and escapes of any kind."""

    def space():
        return "".join(chance.choice(" \n\t\r") for _ in range(chance.choice((0, 0, 0, 1, 2))))

    if isinstance(value, str):
        return space() + string(value, chance) + space()
    if isinstance(value, dict):
        items = list(value.items())
        if "type" in value or "version" in value:
            chance.shuffle(items)
        names = [json.dumps(key) if set(map(type, value.values())) != {int} else string(key, chance) for key, _ in items]
        fields = (f"{space()}{key}{space()}:{written(v, chance)}" for key, (_, v) in zip(names, items, strict=True))
        return f"{space()}{{{','.join(fields)}{space()}}}{space()}"
    if isinstance(value, list | tuple):
        return f"{space()}[{','.join(written(item, chance) for item in value)}{space()}]{space()}"
    return space() + json.dumps(value) + space()


class TestReading:
    def test_merges_in_pairs(self):
        parts = same(json.dumps(document(bpe())).encode())
        assert isinstance(parts.vocab, ColumnVocab) and isinstance(parts.merges, ColumnMerges)
        assert dict(parts.vocab) == bpe()["vocab"]
        assert list(parts.merges) == [("a", "b"), ("ab", "b"), ("a", "é"), ("🙂", "a")]

    def test_merges_in_strings_and_before_the_vocabulary(self):
        model = {"type": "BPE", "merges": ["a b", "ab b", "# #", "#v ersion"], "vocab": {}}
        for number, token in enumerate(["a", "b", "ab", "abb", "#", "##", "#v", "ersion", "#version"]):
            model["vocab"][token] = number
        assert same(json.dumps(document(model)).encode()).merges is not None
        model["merges"][0] = "#version: 0.2"
        assert same(json.dumps(document(model)).encode()) is None

    def test_scores(self):
        parts = same(json.dumps(document(unigram())).encode())
        assert isinstance(parts.vocab.pieces, ColumnPieces) and np.signbit(parts.vocab.scores[5])
        text = json.dumps(document(unigram())).replace("1e-05", "-0")
        assert not np.signbit(same(text.encode()).vocab.scores[3])

    @pytest.mark.parametrize(
        "number",
        ["1e400", "1e-400", "12345678901234567890", "0.12345678901234567890", "01", "1.", ".5", "1e", "+1", "-", "1E+2"]
        + ["2e-3", "--1", "NaN", "Infinity", "null", '"1"', "123456789012345678.9", "9007199254740993"]
        + ["-9007199254740993", "0e5", "1.0e-308"],
    )
    def test_numbers(self, number):
        same(json.dumps(document(unigram())).replace("-1.5", number).encode())

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('"ab": 2', '"ab": 2, "ab": 2'),
            ('"ab": 2', '"ab": 2, "a\\u0062": 3'),
            ('"ab": 2', '"ab": 02'),
            ('"ab": 2', '"ab": -2'),
            ('"ab": 2', '"ab": 2.0'),
            ('"ab": 2', '"ab": 123456789'),
            ('"ab": 2', '"ab": 99999999'),
            ('"ab": 2', '"ab": 2e0'),
            ('"ab": 2', '"ab" 2'),
            ('"ab": 2', '"ab": 2,'),
            ('"ab": 2', '"a\\ud83d": 2'),
            ('"ab": 2', '"a\\ude42b": 2'),
            ('"ab": 2', '"a\\ud83d\\ud83d": 2'),
            ('"ab": 2', '"a\\x62": 2'),
            ('"ab": 2', '"a\nb": 2'),
            ('["a", "b"]', '["a", "b", "c"]'),
            ('["a", "b"]', '["a"]'),
            ('["a", "b"]', '["a", "b"], ["a", "b"]'),
            ('["a", "b"]', '"a b"'),
            ('["a", "b"]', '["a", 1]'),
            ('["a", "b"]', '["b", "b"]'),
            ('"merges": [', '"merges": [,'),
            ('"merges": ', '"merges": [], "merges": '),
            ('"vocab": ', '"vocab": {"a": 1}, "vocab": '),
            ('"vocab": ', '"voc\\u0061b": '),
            ('"model": ', '"model": {}, "model": '),
            ('"model": ', '"model": ["this was read already"], "model": '),
            ('"added_tokens": []', '"added_tokens": ["this was read already"]'),
            ('"model": {', '"model": {"x": {"vocab": {"q": 1}, "merges": []}, '),
            ('"type": "BPE"', '"type": "WordPiece"'),
            ('"type": "BPE"', '"type": "BPE", "continuing_subword_prefix": "#"'),
            ('"type": "BPE"', '"type": "BPE", "unk_token": 5'),
            ('"decoder": null', '"decoder": nul'),
            ('"decoder": null', '"decoder": {"type": "no"}'),
        ],
    )
    def test_odd(self, old, new):
        text = json.dumps(document(bpe()))
        assert old in text
        same(text.replace(old, new).encode())

    def test_not_utf8(self):
        data = json.dumps(document(bpe()), ensure_ascii=False).encode()
        for token in (b"\xff", b"\xc3", b"\xed\xa0\x80"):
            same(data.replace(b'"ab"', b'"' + token + b'"', 1))
        # Parts of one character in two tokens are no character.
        same(data.replace(b'"a": 0, "b": 1', b'"x\xc3": 0, "\xa9": 1'))

    def test_truncated(self):
        for model in (bpe(), unigram()):
            data = json.dumps(document(model), ensure_ascii=False).encode()
            for size in range(0, len(data), 3):
                same(data[:size])

    def test_added_tokens(self):
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "special"), False)
        added = [
            {"id": 30 + i, "content": text, **flags, "normalized": bool(i % 2)}
            for i, text in enumerate(["<x>", 'a"\n', "é"])
        ]
        parts = same(json.dumps(document(bpe(), added_tokens=added)).encode())
        assert len(parts.added) == 3
        added[1]["content"] = "\ud800"
        same(json.dumps(document(bpe(), added_tokens=added)).encode())

    def test_random(self):
        """Random documents, a third of them damaged."""
        read = 0
        for seed in range(400):
            chance = random.Random(seed)
            letters = "ab é語🙂\"\\/\n"
            tokens = list(dict.fromkeys("".join(chance.choices(letters, k=chance.randrange(4))) for _ in range(12)))
            merges = [(a, b) for a in tokens for b in tokens if a and b and a + b in tokens and chance.random() < 0.8]
            model = bpe(tokens, merges)
            if chance.random() < 0.3 and not any(" " in token for token in tokens):
                model["merges"] = [f"{a} {b}" for a, b in merges]
            if chance.random() < 0.3:
                model = {"type": "WordPiece", "unk_token": tokens[0], "vocab": model["vocab"]}
                model |= {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
            elif chance.random() < 0.3:
                model = unigram([chance.uniform(-20, 0) for _ in range(5)])
            data = bytearray(written(document(model), chance).encode())
            if chance.random() < 0.3:
                for _ in range(chance.randrange(1, 3)):
                    data[chance.randrange(len(data))] = chance.choice(b'"\\{}[]:, \n0123456789abue\x00\xff')
            read += same(bytes(data)) is not None
        assert read > 200


class TestColumns:
    def test_vocabulary(self):
        parts = json_parts.read_parts(json.dumps(document(bpe())).encode(), tokenizer_json._FLAGS)
        vocab = parts.vocab
        assert vocab["ab"] == 2 and vocab.get("none") is None and "é" in vocab and 5 not in vocab
        assert vocab.find(["🙂", "none", ""]).tolist() == [7, -1, 19]
        assert vocab._items is None  # no dictionary was needed
        assert vocab == bpe()["vocab"] and bpe()["vocab"] == vocab and list(vocab) == TOKENS
        assert list(vocab.items()) == list(bpe()["vocab"].items()) and repr(vocab) == repr(bpe()["vocab"])

    def test_merges(self):
        merges = json_parts.read_parts(json.dumps(document(bpe())).encode(), tokenizer_json._FLAGS).merges
        expected = tuple(map(tuple, bpe()["merges"]))
        assert len(merges) == 4 and merges == expected and expected == merges and merges != expected[1:]
        assert merges[1] == ("ab", "b") and hash(merges) == hash(expected) and repr(merges) == repr(expected)

    def test_strings(self):
        columns = columns_of(TOKENS)
        assert columns.strings() == TOKENS
        assert columns.character_counts().tolist() == list(map(len, TOKENS))
        order = np.array([3, -1, 0, 7, 7])
        assert columns.take(order).strings() == ["abb", "", "a", "🙂", "🙂"]
        assert columns_of([b"ab", b"", b"\xff"]).indptr.tolist() == [0, 2, 2, 3]


def test_what_is_made_of_columns(tmp_path):
    """A vocabulary that kernels read is written, converted and continued like any other."""
    letters = [chr(97 + number) for number in range(26)]
    pairs = [(a, b) for a in letters for b in letters]
    vocab = {token: number for number, token in enumerate([*letters, *(a + b for a, b in pairs)])}
    model = {"type": "BPE", "vocab": vocab, "merges": [list(pair) for pair in pairs]}
    step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    content = json.dumps({"model": model, "pre_tokenizer": step, "decoder": step}).encode()
    assert len(content) > 1 << 13  # else no kernel reads it
    tok = jittok.load_bytes(content)
    tok.save(tmp_path / "merges", "merges")
    assert json.loads((tmp_path / "merges" / "vocab.json").read_text()) == vocab
    checkpoint = tmp_path / "checkpoint"
    longer = jittok.train_bpe(["abcd" * 5], base=tok, vocab_size=len(vocab) + 1, checkpoint=checkpoint)
    assert longer.encode("abcd").tokens == ["abcd"] and longer.spec.model.vocab["zz"] == vocab["zz"]

"""The wrapper with the methods of tokenizers.Tokenizer, compared with that library; and the calls of transformers."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import random
from functools import cache

import numpy as np
import pytest
import tokenizers
from specs import model_path
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

import jittok
from jittok import errors
from jittok.interop.huggingface import HfAddedToken, HfDecodeStream, HfEncoding, HfTokenizer

LISTS = ("ids", "type_ids", "tokens", "word_ids", "offsets", "special_tokens_mask", "attention_mask", "sequence_ids")
TEXTS = ["Hello, y'all!", "", "one two  three four five six", "naïve café", ("a b c", "d e f g"), ("", "x"), "<s> x"]
TRUNCATIONS = [None, {"max_length": 8, "stride": 1}, {"max_length": 6, "direction": "left", "strategy": "longest_first"}]
PADDINGS = [
    None,
    {},
    {"length": 10, "direction": "left", "pad_id": 1, "pad_type_id": 3, "pad_token": "<p>"},
    {"pad_to_multiple_of": 8},
]


def bert():
    words = "[PAD] [UNK] [CLS] [SEP] hello , y ' all ! one two three four five six na ##ive cafe a b c d e f g x".split()
    library = tokenizers.Tokenizer(models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    library.normalizer = normalizers.BertNormalizer()
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    library.decoder = decoders.WordPiece()
    library.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    return library


def byte_level():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ġ", "t"), ("Ġt", "w"), ("Ã", "©"), ("o", "n")]
    vocab = {token: number for number, token in enumerate([*alphabet, *("".join(merge) for merge in merges)])}
    library = tokenizers.Tokenizer(models.BPE(vocab, merges))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens(["<s>", "</s>"])
    library.add_tokens([tokenizers.AddedToken("four", lstrip=True)])
    library.post_processor = processors.RobertaProcessing(("</s>", vocab["on"] + 2), ("<s>", vocab["on"] + 1))
    return library


def no_template():
    library = tokenizers.Tokenizer(models.WordLevel({"a": 0, "b": 1, "x": 2, "?": 3}, unk_token="?"))
    library.pre_tokenizer = pre_tokenizers.Whitespace()
    return library


MADE = {"bert": bert, "byte-level": byte_level, "no template": no_template}
REAL = ["bbpe/gpt2", "bbpe/roberta-base", "wordpiece/bert-base-uncased", "unigram/t5-small"]


@cache
def ours_of(name):
    if name in MADE:
        return jittok.load_bytes(MADE[name]().to_str().encode())
    return jittok.load(model_path(f"{name}/tokenizer.json"))


def pair_of(name):
    """The library's tokenizer, and the wrapper."""
    if name in MADE:
        return MADE[name](), ours_of(name).as_hf()
    return tokenizers.Tokenizer.from_file(str(model_path(f"{name}/tokenizer.json"))), ours_of(name).as_hf()


def same(expected, found, label, nested=True):
    for name in LISTS:
        if name == "sequence_ids" and label[0] in ("post_process", "no template"):
            continue  # there the library takes padding, or both texts, for the first one
        if name == "type_ids" and label[-1] == "window":
            continue  # the library leaves the type of the pair's further windows as it was; see docs/differences.md
        assert getattr(found, name) == getattr(expected, name), (name, label)
    assert len(found) == len(expected), label
    if label[0] in ("post_process", "no template"):
        return
    assert found.n_sequences == expected.n_sequences, label
    for place in sorted({0, 1, len(expected) // 2, len(expected) - 1} & set(range(len(expected)))):
        for method in ("token_to_sequence", "token_to_chars", "token_to_word"):
            assert getattr(found, method)(place) == getattr(expected, method)(place), (method, place, label)
        for method in ("char_to_token", "char_to_word", "word_to_tokens", "word_to_chars"):
            for text in (0, 1):
                found_value = getattr(found, method)(place, text)
                assert found_value == getattr(expected, method)(place, text), (method, place, text, label)
    if nested:
        assert len(found.overflowing) == len(expected.overflowing), label
        for one, other in zip(expected.overflowing, found.overflowing, strict=True):
            same(one, other, (*label, "window"), nested=False)


@pytest.mark.parametrize("name", [*MADE, *REAL])
def test_encode_and_encode_batch(name):
    library, ours = pair_of(name)
    for truncation in TRUNCATIONS:
        for padding in PADDINGS:
            for one in (library, ours):
                one.no_truncation() if truncation is None else one.enable_truncation(**truncation)
                one.no_padding() if padding is None else one.enable_padding(**padding)
            assert ours.truncation == library.truncation and ours.padding == library.padding
            for special in (True, False):
                label = (name, truncation, padding, special)
                expected = library.encode_batch(TEXTS, add_special_tokens=special)
                for one, other in zip(expected, ours.encode_batch(TEXTS, add_special_tokens=special), strict=True):
                    same(one, other, label)
                for text in TEXTS[2:5]:
                    texts = text if isinstance(text, tuple) else (text,)
                    words = [text.split() for text in texts]
                    for given, how in ((texts, {}), (words, {"is_pretokenized": True})):
                        how["add_special_tokens"] = special
                        same(library.encode(*given, **how), ours.encode(*given, **how), label)


@pytest.mark.parametrize("name", REAL)
def test_random_texts(name):
    library, ours = pair_of(name)
    rng = random.Random(3)
    pieces = ["word", " ", "  ", "é", "日本", "🙂", "\n", "don't", "12", "<s>", "[SEP]", "\u00a0", "ﬁ", "_"]
    texts = ["".join(rng.choice(pieces) for _ in range(rng.randrange(12))) for _ in range(60)]
    texts += [(rng.choice(texts), rng.choice(texts)) for _ in range(10)]
    for one in (library, ours):
        one.enable_truncation(9)
        one.enable_padding()
    for text, one, other in zip(texts, library.encode_batch(texts), ours.encode_batch(texts), strict=True):
        same(one, other, (name, text))
    rows = [[rng.randrange(library.get_vocab_size() + 5) for _ in range(8)] for _ in range(30)]
    for skip in (True, False):
        assert ours.decode_batch(rows, skip_special_tokens=skip) == library.decode_batch(rows, skip_special_tokens=skip)
    assert [ours.decode(row) for row in rows] == [library.decode(row) for row in rows]


def test_encodings_are_made_when_asked_for(monkeypatch):
    ours = ours_of("bert").as_hf()
    calls = []
    original = jittok.Tokenizer.encode_batch

    def encode_batch(self, *arguments, **keywords):
        calls.append(keywords.get("spans", False))
        return original(self, *arguments, **keywords)

    monkeypatch.setattr(jittok.Tokenizer, "encode_batch", encode_batch)
    first, second = ours.encode_batch(["hello", "all"])
    assert first.ids == [2, 4, 3] and second.attention_mask == [1, 1, 1] and calls == [False]
    assert first.offsets == [(0, 0), (0, 5), (0, 0)] and second.tokens == ["[CLS]", "all", "[SEP]"]
    assert calls == [False, True]
    assert first.ids is not first.ids  # a list that is changed changes nothing


def test_inputs_of_batches():
    library, ours = pair_of("bert")
    batches = [
        ("one", "two"),
        [["one", "two"]],
        [("one", "two"), "all"],
        np.array(["one", "two"]),
        [],
    ]
    for batch in batches:
        assert [e.tokens for e in ours.encode_batch(batch)] == [e.tokens for e in library.encode_batch(batch)]
    words = [[["one", "two"], ["a"]], (("a", "b"), ("c",)), ["one", "two"], np.array(["a", "b"])]
    for batch in ([words[0]], [words[1]], [words[2], words[0]], [words[3]]):
        expected = library.encode_batch(batch, is_pretokenized=True)
        assert [e.tokens for e in ours.encode_batch(batch, is_pretokenized=True)] == [e.tokens for e in expected]
    for bad, pretokenized in ((3, False), ("one", False), ([3], False), ([["a", 3]], False), (["one"], True)):
        with pytest.raises(TypeError):
            library.encode_batch(bad, is_pretokenized=pretokenized)
        with pytest.raises(errors.ArgumentTypeError):
            ours.encode_batch(bad, is_pretokenized=pretokenized)
    with pytest.raises(errors.ArgumentTypeError, match="TextInputSequence must be str"):
        ours.encode(["one"])
    with pytest.raises(errors.ArgumentTypeError, match="InputSequence must be Union"):
        ours.encode("one", is_pretokenized=True)


def test_async_calls():
    ours = ours_of("bert").as_hf()

    async def calls():
        one = await ours.async_encode("one", "two")
        many = await ours.async_encode_batch(["one"])
        fast = await ours.async_encode_batch_fast(["one"])
        return one, many[0], fast[0], await ours.async_decode_batch([[4]])

    one, many, fast, texts = asyncio.run(calls())
    assert one.ids == [2, 10, 3, 11, 3] and many.ids == fast.ids == [2, 10, 3] and texts == ["hello"]


def test_changing_encodings():
    library, ours = pair_of("bert")
    for direction in ("left", "right"):
        pairs = [one.encode("hello all one two", "three four") for one in (library, ours)]
        for one in pairs:
            one.pad(12, direction=direction, pad_id=7, pad_type_id=2, pad_token="P")
        same(*pairs, ("pad", direction))
        for one in pairs:
            one.pad(14, direction="right")
        same(*pairs, ("pad again", direction))
        for one in pairs:
            one.truncate(5, 2, direction)
        same(*pairs, ("truncate", direction))
        for one in pairs:
            one.truncate(0)
        same(*pairs, ("truncate to nothing", direction))
    parts = [[one.encode(text) for text in ("hello", "all one")] for one in (library, ours)]
    for growing in (True, False):
        same(tokenizers.Encoding.merge(parts[0], growing), HfEncoding.merge(parts[1], growing), ("merge", growing))
    for part in parts:
        part[0].set_sequence_id(1)
    assert parts[1][0].sequence_ids == parts[0][0].sequence_ids
    assert len(HfEncoding()) == 0 and HfEncoding().tokens == []
    for copied in (pickle.loads(pickle.dumps(parts[1][1])), copy.deepcopy(parts[1][1])):
        same(parts[0][1], copied, ("copied",))
    with pytest.raises(errors.ArgumentError, match="Invalid truncation direction value : up"):
        parts[1][0].truncate(1, direction="up")
    with pytest.raises(errors.ArgumentError, match="direction"):
        parts[1][0].pad(9, direction="up")
    with pytest.raises(errors.ArgumentError, match="stride"):
        parts[1][1].truncate(2, 2)
    assert repr(parts[1][0]) == repr(parts[0][0])
    with pytest.warns(DeprecationWarning, match="word_ids"):
        assert parts[1][1].words == parts[1][1].word_ids


@pytest.mark.parametrize("name", ["bert", "no template"])
def test_post_process(name):
    library, ours = pair_of(name)
    for truncation in (None, {"max_length": 5}, {"max_length": 4, "direction": "left"}):
        for one in (library, ours):
            one.no_truncation()
            one.no_padding()
        inputs = [[one.encode(t, add_special_tokens=False) for t in ("a b x a", "b a")] for one in (library, ours)]
        for one in (library, ours):
            one.enable_padding(length=8)
            if truncation is not None:
                one.enable_truncation(**truncation)
        for special in (True, False):
            for count in (1, 2):
                results = [
                    one.post_process(*parts[:count], add_special_tokens=special) if count == 2
                    else one.post_process(parts[0], None, special)
                    for one, parts in zip((library, ours), inputs, strict=True)
                ]  # fmt: skip
                same(*results, ("post_process", name, truncation, special, count))


def test_settings_of_the_file():
    library = bert()
    library.enable_truncation(5, stride=1, strategy="only_first", direction="left")
    library.enable_padding(length=7, direction="left", pad_id=0, pad_token="[PAD]")
    tokenizer = jittok.load_bytes(library.to_str().encode())
    ours = tokenizer.as_hf()
    assert ours.truncation == library.truncation and ours.padding == library.padding
    same(library.encode("one two three four"), ours.encode("one two three four"), ("stored",))
    assert len(tokenizer.encode("one two three four")) == 6  # of native calls they are no part
    again = tokenizers.Tokenizer.from_str(ours.to_str())
    assert again.truncation == library.truncation and again.padding == library.padding
    ours.enable_padding(**ours.padding)
    ours.enable_truncation(**ours.truncation)
    ours.no_padding()
    ours.no_truncation()
    assert ours.padding is None and ours.truncation is None
    assert ours.encode("one two three four").ids == tokenizer.encode("one two three four").ids.tolist()
    for wrong in ({"max_length": 3, "stride": 4}, {"max_length": 3, "strategy": "all"}, {"max_length": -1}):
        with pytest.raises(errors.ArgumentError):
            ours.enable_truncation(**wrong)
    for wrong in ({"direction": "up"}, {"length": -1}, {"pad_id": -1}):
        with pytest.raises(errors.ArgumentError):
            ours.enable_padding(**wrong)


def test_files_and_strings(tmp_path):
    library, ours = pair_of("byte-level")
    for pretty in (False, True):
        ours.save(tmp_path / "saved.json", pretty)
        text = (tmp_path / "saved.json").read_text()
        assert text == ours.to_str(pretty)
        assert json.loads(text) == json.loads(ours.to_str())
        assert tokenizers.Tokenizer.from_str(text).encode("hello two").ids == library.encode("hello two").ids
    assert text.count("\n") > 100 and ours.to_str().count("\n") == 0
    for made in (
        HfTokenizer.from_file(tmp_path / "saved.json"),
        HfTokenizer.from_str(text),
        HfTokenizer.from_buffer(text.encode()),
        HfTokenizer.from_pretrained(tmp_path / "saved.json"),
        pickle.loads(pickle.dumps(ours)),
    ):
        assert made.encode("hello two").tokens == library.encode("hello two").tokens
    with pytest.raises(errors.UnsupportedError):
        ours_of_ranks().as_hf().to_str()


@cache
def ours_of_ranks():
    ranks = {bytes([byte]): byte for byte in range(256)}
    content = b"".join(b"%s %d\n" % (__import__("base64").b64encode(token), rank) for token, rank in ranks.items())
    return jittok.load_bytes(content, format="tiktoken", pattern=r"\w+|\W", special_tokens={"<x>": 256})


def test_other_models():
    ours = ours_of_ranks().as_hf()
    assert ours.encode("ab<x>").ids == [97, 98, 256] and ours.decode([97, 256]) == "a"
    assert ours.get_vocab_size() == 257 and ours.get_vocab()["a"] == 97


@pytest.mark.parametrize("name", [*MADE, *REAL])
def test_vocabulary(name):
    library, ours = pair_of(name)
    assert ours.get_vocab() == library.get_vocab()
    assert ours.get_vocab(with_added_tokens=False) == library.get_vocab(with_added_tokens=False)
    for added in (True, False):
        assert ours.get_vocab_size(added) == library.get_vocab_size(added)
    assert ours.get_added_tokens_decoder() == library.get_added_tokens_decoder()
    assert list(ours.get_added_tokens_decoder()) == list(library.get_added_tokens_decoder())
    for token in ("hello", "a", "[SEP]", "nothing of the kind"):
        assert ours.token_to_id(token) == library.token_to_id(token)
    for number in (0, 1, 5, 10**6):
        assert ours.id_to_token(number) == library.id_to_token(number)
    for pair in (True, False):
        assert ours.num_special_tokens_to_add(pair) == library.num_special_tokens_to_add(pair)


def test_adding_tokens():
    library, ours = pair_of("bert")
    lists = [
        ["new", "hello", "new", ""],
        [tokenizers.AddedToken("other", lstrip=True), tokenizers.AddedToken("[SEP]", special=True, normalized=False)],
    ]
    for tokens in lists:
        assert ours.add_tokens(tokens) == library.add_tokens(tokens)
    for tokens in (["new", "more"], [tokenizers.AddedToken("last", rstrip=True)]):
        assert ours.add_special_tokens(tokens) == library.add_special_tokens(tokens)
    assert ours.get_added_tokens_decoder() == library.get_added_tokens_decoder()
    text = "a new  other more last  x [SEP]"
    same(library.encode(text), ours.encode(text), ("added",))
    for one in (library, ours):
        one.encode_special_tokens = True
    same(library.encode("a [SEP] more"), ours.encode("a [SEP] more"), ("as text",))
    for wrong in ([3], "new"):
        with pytest.raises(errors.ArgumentTypeError):
            ours.add_tokens(wrong)


def test_added_token_objects():
    for arguments in ({}, {"special": True}, {"lstrip": True, "normalized": False}, {"special": True, "normalized": True}):
        one, other = tokenizers.AddedToken("x", **arguments), HfAddedToken("x", **arguments)
        assert other == one and repr(other) == repr(one) and str(other) == str(one)
        assert pickle.loads(pickle.dumps(other)) == other and hash(copy.copy(other)) == hash(other)
    assert HfAddedToken("x") != HfAddedToken("y") and HfAddedToken("x") != "x"


def test_decode_streams():
    library, ours = pair_of("byte-level")
    ids = library.encode("café", add_special_tokens=False).ids
    split = [library.token_to_id("Ã"), library.token_to_id("©")]
    for before in ([], ids[:2], [ids[0], split[0]], split):
        one, other = decoders.DecodeStream(before), HfDecodeStream(before)
        for step in ([ids[0]], ids, split[:1], split[1:], 5):
            assert other.step(ours, step) == one.step(library, step), (before, step)
            other, kept = copy.copy(other), other
            assert kept is not other


# ------------------------------------------------------------------------------------------------- transformers

NAMES = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}


def fast(**options):
    return ours_of("bert").as_hf("transformers", **{**NAMES, **options})


def test_calls_of_transformers():
    ours = fast(model_max_length=6)
    assert dict(ours("one two")) == {"input_ids": [2, 10, 11, 3], "attention_mask": [1] * 4}
    batch = ours(["one", "one two three"], padding=True, return_token_type_ids=True)
    assert batch["input_ids"] == [[2, 10, 3, 0, 0], [2, 10, 11, 12, 3]]
    assert batch["attention_mask"] == [[1, 1, 1, 0, 0], [1] * 5] and batch.token_type_ids[0] == [0] * 5
    assert ours("a b c d e f g", truncation=True)["input_ids"] == [2, 19, 20, 21, 22, 3]
    windows = ours("a b c d e f g", max_length=5, stride=1, return_overflowing_tokens=True)
    assert windows["input_ids"] == [[2, 19, 20, 21, 3], [2, 21, 22, 23, 3], [2, 23, 24, 25, 3]]
    assert windows["overflow_to_sample_mapping"] == [0, 0, 0]
    pair = ours("one", "two", return_offsets_mapping=True, return_special_tokens_mask=True, return_length=True)
    assert pair["offset_mapping"] == [(0, 0), (0, 3), (0, 0), (0, 3), (0, 0)]
    assert pair["special_tokens_mask"] == [1, 0, 1, 0, 1] and pair["length"] == [5]
    assert pair.sequence_ids() == [None, 0, None, 1, None] and pair.n_sequences == 2
    assert ours(["a", "b"], is_split_into_words=True)["input_ids"] == [2, 19, 20, 3]
    assert ours([["a"], ["b"]], is_split_into_words=True)["input_ids"] == [[2, 19, 3], [2, 20, 3]]
    assert ours("a", text_target="b")["labels"] == [2, 20, 3] and ours(text_target="b")["input_ids"] == [2, 20, 3]
    array = ours(["a", "b c"], padding="max_length", return_tensors="np")["input_ids"]
    assert array.dtype == np.int64 and array.tolist() == [[2, 19, 3, 0, 0, 0], [2, 20, 21, 3, 0, 0]]
    assert ours(["a", "b c"], padding=True, padding_side="left", pad_to_multiple_of=8)["input_ids"][0][:5] == [0] * 5
    assert ours("[SEP]", split_special_tokens=True, add_special_tokens=False)["input_ids"] != [3]
    assert ours.tokenize("one [SEP]") == ["one", "[SEP]"]
    for wrong in ({"padding": "some"}, {"truncation": "some"}, {"return_tensors": "tf"},
                  {"padding": True, "max_length": 6, "truncation": True, "pad_to_multiple_of": 4}):  # fmt: skip
        with pytest.raises(errors.ArgumentError):
            ours(["a"], **wrong)
    for text, other, error in ((None, None, ValueError), (3, None, ValueError), (["a"], "b", TypeError),
                               (["a"], ["b", "c"], ValueError)):  # fmt: skip
        with pytest.raises(error):
            ours(text, other)
    with pytest.raises(errors.ArgumentError, match="padding token"):
        ours_of("no template").as_hf()("a", padding=True)
    with pytest.raises(errors.ArgumentTypeError, match="model_name"):
        ours_of("bert").as_hf(model_name="x")
    with pytest.raises(errors.ArgumentError, match="like"):
        ours_of("bert").as_hf("spacy")


def test_batches_of_transformers():
    batch = fast()(["one two", "na##ive x"], return_offsets_mapping=True)
    assert batch[1].tokens == batch.tokens(1) and batch[:1]["input_ids"] == [[2, 10, 11, 3]] and len(batch) == 3
    assert batch.word_ids() == [None, 0, 1, None] and batch.is_fast
    assert batch.token_to_chars(2) == (4, 7) and batch.token_to_chars(2).start == 4 and batch.token_to_chars(0) is None
    assert batch.char_to_token(5) == 2 and batch.char_to_word(0, 5) == 1
    assert batch.word_to_tokens(0, 1) == (2, 3) and batch.word_to_chars(0, 1) == (4, 7)
    assert batch.token_to_word(0, -2) == 1 and batch.token_to_sequence(1, 1) == 0
    copied = pickle.loads(pickle.dumps(batch))
    assert dict(copied) == dict(batch) and copied[0].offsets == batch[0].offsets
    assert batch.input_ids == batch["input_ids"]
    with pytest.raises(AttributeError):
        _ = batch.nothing
    batch["labels"] = [1, 0]
    del batch["offset_mapping"]
    assert list(batch) == ["input_ids", "attention_mask", "labels"]


def test_padding_of_transformers():
    ours = fast()
    padded = ours.pad([{"input_ids": [1, 2]}, {"input_ids": [3]}])
    assert padded["input_ids"] == [[1, 2], [3, 0]] and padded["attention_mask"] == [[1, 1], [1, 0]]
    one = ours.pad({"input_ids": [1, 2], "special_tokens_mask": [0, 1]}, padding="max_length", max_length=4)
    assert one["input_ids"] == [1, 2, 0, 0] and one["special_tokens_mask"] == [0, 1, 1, 1]
    arrays = ours.pad({"input_ids": np.array([[1, 2]])}, padding="max_length", max_length=3, padding_side="left")
    assert arrays["input_ids"].tolist() == [[0, 1, 2]]
    assert dict(ours.pad({"input_ids": []})) == {"input_ids": []}
    assert ours.pad(ours(["a", "b c"]), pad_to_multiple_of=8)["input_ids"][0] == [2, 19, 3, 0, 0, 0, 0, 0]
    for wrong in ({"x": [1]}, {"input_ids": [[1]], "attention_mask": [[1], [1]]}):
        with pytest.raises(errors.ArgumentError):
            ours.pad(wrong)


def test_decoding_of_transformers():
    ours = fast()
    ids = ours("one , two !")["input_ids"]
    assert ours.decode(ids) == "[CLS] one, two! [SEP]" and ours.decode(ids, skip_special_tokens=True) == "one, two!"
    assert ours.batch_decode([ids, []]) == ["[CLS] one, two! [SEP]", ""] and ours.decode([[4], [8]]) == ["hello", "all"]
    assert ours.decode(4) == "hello" and ours.batch_decode(np.array([[4, 8]])) == ["hello all"]
    assert ours.encode("one", "two") == [2, 10, 3, 11, 3]
    assert ours.convert_tokens_to_ids(["one", "none", "[SEP]"]) == [10, 1, 3] and ours.convert_tokens_to_ids("two") == 11
    assert ours.convert_ids_to_tokens([2, 10, 999]) == ["[CLS]", "one", None]
    assert ours.convert_ids_to_tokens([2, 10], skip_special_tokens=True) == ["one"]
    assert ours.convert_ids_to_tokens(2) == "[CLS]"
    assert ours.convert_tokens_to_string(["one", "##ive"]) == "oneive"
    plain = tokenizers.Tokenizer(models.WordLevel({"a": 0, ".": 1}, unk_token="a"))
    cleaned = jittok.load_bytes(plain.to_str().encode()).as_hf("transformers", clean_up_tokenization_spaces=True)
    assert cleaned.decode([0, 1]) == "a." and cleaned.decode([0, 1], clean_up_tokenization_spaces=False) == "a ."


def test_special_tokens_of_transformers():
    ours = fast(mask_token="[NEW]")
    assert ours.mask_token_id == len(ours) - 1 and ours.pad_token_id == 0 and ours.bos_token is None
    ours.eos_token = "[SEP]"
    assert ours.eos_token_id == 3 and ours.special_tokens_map["eos_token"] == "[SEP]"
    ours.bos_token_id = 2
    assert ours.bos_token == "[CLS]"
    assert set(ours.all_special_tokens) == {"[PAD]", "[CLS]", "[SEP]", "[UNK]", "[NEW]"}
    assert ours.get_special_tokens_mask([2, 10, 3], already_has_special_tokens=True) == [1, 0, 1]
    assert ours.add_special_tokens({"bos_token": "<b>", "extra_special_tokens": ["<c>"]}) == 2
    assert ours.bos_token_id == len(ours) - 2 and "<c>" in ours.all_special_tokens
    assert ours.get_added_vocab()["<c>"] == len(ours) - 1 and ours.vocab_size == 27
    assert ours.added_tokens_decoder[3].content == "[SEP]" and ours.backend_tokenizer is ours
    with pytest.raises(errors.ArgumentTypeError):
        ours.pad_token = 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["bbpe/gpt2", "wordpiece/bert-base-uncased"])
def test_transformers_itself(name):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    path = model_path(f"{name}/tokenizer.json")
    token = "[PAD]" if name.startswith("wordpiece") else "<|endoftext|>"
    library = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path), pad_token=token)
    ours = jittok.load(path).as_hf("transformers", pad_token=token)
    for padding in (False, True, "max_length"):
        for truncation in (None, True, "only_first"):
            for length in (None, 6):
                for more in ({}, {"return_overflowing_tokens": True}, {"return_offsets_mapping": True}):
                    arguments = {"padding": padding, "truncation": truncation, "max_length": length, **more}
                    texts = ["Hello world, here", "x"], ["a pair of it", "y z"]
                    assert dict(ours(*texts, **arguments)) == dict(library(*texts, **arguments)), arguments
    ids = library("Hello , world!")["input_ids"]
    assert ours.decode(ids) == library.decode(ids)

"""Random tokenizer.json files with all components, in everything that tokenizers does with them."""

import json

import pytest
import random_pipelines

import jittok
from jittok._jit import JIT_DISABLED

SLICE = 3 if JIT_DISABLED else 20


@pytest.mark.parametrize("first", range(0, 6 * SLICE, SLICE))
def test_random_pipelines_give_what_the_reference_gives(first):
    pytest.importorskip("tokenizers")
    total = 0
    for seed in range(first, first + SLICE):
        compared, found = random_pipelines.compare(seed)
        assert found == []
        total += compared
    assert total > 5 * SLICE


def test_added_tokens_whose_ids_collide():
    pytest.importorskip("tokenizers")
    total = 0
    for seed in range(5000, 5000 + 2 * SLICE):
        compared, found = random_pipelines.compare(seed, colliding=True)
        assert found == []
        total += compared
    assert total > 10 * SLICE


def file_of(**blocks):
    model = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0], ["\u00e3", -1.0]]}
    return jittok.load_bytes(json.dumps({"version": "1.0", "model": model, **blocks}).encode())


def test_two_clean_ups_of_which_the_first_moves_text():
    """The second one saw that it moved nothing, and text came out where it had been before the first."""
    bert = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": False, "strip_accents": False}
    strip = {"type": "Strip", "strip_left": True, "strip_right": True}
    steps = [{**bert, "lowercase": True}, strip, {**bert, "lowercase": False}]
    model = {"type": "WordPiece", "unk_token": "u", "continuing_subword_prefix": "", "max_input_chars_per_word": 9}
    document = {"version": "1.0", "normalizer": {"type": "Sequence", "normalizers": steps}}
    letters = {letter: number for number, letter in enumerate("uabc")}
    tok = jittok.load_bytes(json.dumps({**document, "model": {**model, "vocab": letters}}).encode())
    texts = ["A\u200b\u200b", "\x85B", "c\x85"]
    batch = tok.encode_batch(texts, spans=True)
    assert batch.to_lists() == [[1], [2], [3]]
    assert [row.word_ids.tolist() for row in batch] == [[0], [0], [0]]
    assert [row.spans.tolist() for row in batch] == [[[0, 1]], [[1, 2]], [[0, 1]]]


def test_unknown_text_is_shown_as_the_model_saw_it():
    assert file_of(normalizer={"type": "ByteLevel"}).encode("\u00e9").tokens == ["\u00c3\u00a9"]
    # The letter that stands for the first byte is a piece, that for the second is not.
    assert file_of(pre_tokenizer={"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}).encode(
        "\u65e5"
    ).tokens == ["\u0120\u00e6\u0139\u00a5"]
    padded = {"type": "BertNormalizer", "clean_text": False, "handle_chinese_chars": True, "lowercase": False}
    cut = {"type": "CharDelimiterSplit", "delimiter": "\u65e5"}
    assert file_of(normalizer=padded, pre_tokenizer=cut).encode("a\u65e5").tokens == ["a", " ", " "]


def test_unknown_white_space_is_trimmed():
    trims = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    tok = file_of(post_processor=trims)
    assert tok.encode("\x85b").spans.tolist() == [[1, 2]]
    assert tok.encode_batch(["a\x85"], spans=True)[0].spans.tolist() == [[0, 1], [2, 2]]


@pytest.mark.parametrize("normalized", [False, True])
def test_a_token_that_the_model_makes_too_is_trimmed_as_it_is(normalized):
    """A blank becomes U+2581, which is an added token with lstrip as well."""
    added = {"id": 0, "content": "\u2581", "single_word": False, "lstrip": True, "rstrip": False, "normalized": normalized}
    trims = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "never", "split": True}
    model = {"type": "WordLevel", "vocab": {"\u2581": 0, "a": 1}, "unk_token": "a"}
    tok = file_of(added_tokens=[{**added, "special": True}], post_processor=trims, pre_tokenizer=metaspace, model=model)
    assert tok.encode("a ").spans.tolist() == [[0, 1], [1, 2]]
    assert tok.encode("a \u2581").spans.tolist() == [[0, 1], [2, 3]]


def lowercased(content, token, model):
    added = {"id": 0, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "special": True}
    blocks = {"normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"}, "model": model}
    return {"version": "1.0", "added_tokens": [{**added, **token}], **blocks}


@pytest.mark.parametrize(
    ("token", "tokens"),
    [
        ({"normalized": True}, ["a", "[UNK]", "[unk]", "a"]),  # the model gives the first, for the word that it lacks
        ({"normalized": True, "rstrip": True}, ["a", "[UNK]", "[unk]\u3000 ", "a"]),
        ({"normalized": False, "lstrip": True}, ["a", "[UNK]", " [UNK]", "a"]),
    ],
)
def test_tokens_are_shown_as_they_were_found(token, tokens):
    """What the model gives is shown as the vocabulary has it, an added token as it stands in the text."""
    tokenizers = pytest.importorskip("tokenizers")
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1}, "unk_token": "[UNK]"}
    content = json.dumps(lowercased("[UNK]", token, model))
    ours, text = jittok.load_bytes(content.encode()), "a b [UNK]\u3000 A"
    assert tokenizers.Tokenizer.from_str(content).encode(text).tokens == tokens
    assert ours.encode(text).tokens == tokens
    assert ours.encode_batch([text, text], spans=True)[1].tokens == tokens
    window = ours.encode_batch([text], spans=True, max_length=3, truncation_side="left")[0]
    assert window.tokens == tokens[1:]
    assert ours.encode([text], is_split_into_words=True).tokens == tokens


def test_tokens_that_share_white_space():
    """The first one takes it, the second has what is left; white space is shown as the normalizer leaves it."""
    tokenizers = pytest.importorskip("tokenizers")
    given = [("<a>", "rstrip", True), ("<b>", "lstrip", True), ("<c>", "lstrip", False), ("<d>", "rstrip", False)]
    base = {"single_word": False, "lstrip": False, "rstrip": False, "special": True}
    added = [
        {**base, "id": number, "content": content, side: True, "normalized": normalized}
        for number, (content, side, normalized) in enumerate(given, 3)
    ]
    model = {"type": "WordLevel", "vocab": {"u": 0, "a": 1, "b": 2}, "unk_token": "u"}
    trims = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    for post_processor in (None, trims):
        file = {
            "version": "1.0", "added_tokens": added, "normalizer": {"type": "NFKC"}, "pre_tokenizer": {"type": "Whitespace"},
            "post_processor": post_processor, "model": model,
        }  # fmt: skip
        content = json.dumps(file)
        ours, reference = jittok.load_bytes(content.encode()), tokenizers.Tokenizer.from_str(content)
        for text in ("<a> \u3000<b>", "a<a> <c> <d>\u3000<b>b", "<b> <c>", "<d> <c> <a>\u3000\u00a0<b><d> a", "a <b> <c>"):
            expected = reference.encode(text)
            actual = ours.encode(text)
            assert (actual.ids.tolist(), actual.tokens) == (expected.ids, expected.tokens)
            assert actual.spans.tolist() == [list(span) for span in expected.offsets]


def test_a_blank_that_is_put_in_front_is_not_trimmed_off_the_text():
    """The reference takes the blank that stands in front of the token, but not in the text, off the span."""
    added = {"id": 0, "content": "<x>", "single_word": False, "lstrip": True, "rstrip": False, "normalized": True}
    trims = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    prepend = {"type": "Prepend", "prepend": " "}
    tok = file_of(added_tokens=[{**added, "special": True}], post_processor=trims, normalizer=prepend)
    for text, span in (("<x>", [0, 3]), (" <x>", [1, 4])):
        assert tok.encode(text).spans.tolist()[0] == span
        assert tok.encode_batch([text], spans=True)[0].spans.tolist()[0] == span


@pytest.mark.parametrize("spans", [False, True])
def test_words_in_batches(spans):
    tok = jittok.load_default()
    documents = [["To", "be", ""], [], ["or not", " to be"], ["na\u00efve"]]
    batch = tok.encode_batch(documents, is_split_into_words=True, spans=spans)
    for row, words in zip(batch, documents, strict=True):
        one = tok.encode(words, is_split_into_words=True)
        assert row == one
        if spans:
            assert row.word_ids.tolist() == one.word_ids.tolist() and row.spans.tolist() == one.spans.tolist()
            assert row.tokens == one.tokens and row.surfaces == one.surfaces
            assert row.spans_in("bytes").tolist() == one.spans_in("bytes").tolist()
    windows = tok.encode_batch(documents, is_split_into_words=True, max_length=2, overflowing=True, spans=spans)
    assert windows.document_ids.tolist() == sorted(windows.document_ids.tolist())
    with pytest.raises(jittok.errors.ArgumentTypeError, match=r"texts\[1\]: expected a list of words"):
        tok.encode_batch([["a"], "b"], is_split_into_words=True)
    with pytest.raises(jittok.errors.ArgumentTypeError, match="texts: expected an iterable"):
        tok.encode_batch("ab", is_split_into_words=True)


def test_a_files_dropout_is_what_sampling_leaves_out_and_is_saved(tmp_path):
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]], "dropout": 1.0}
    tok = jittok.load_bytes(json.dumps({"version": "1.0", "model": model}).encode())
    assert tok.encode("ab").tokens == ["ab"]
    assert tok.sample_encode("ab").tokens == ["a", "b"]
    assert tok.sample_encode("ab", dropout=0).tokens == ["ab"]
    for name in ("tokenizer.json", "saved.jittok"):
        tok.save(tmp_path / name)
        assert jittok.load(tmp_path / name).sample_encode("ab").tokens == ["a", "b"]

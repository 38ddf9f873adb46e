import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import decoders, rank_spec, real

import jittok
from jittok import decoding, errors, spec
from jittok.decoding import Decoder, fallback_byte
from jittok.encodings import Batch
from jittok.vocabulary import Vocabulary, build_vocabulary

BYTE_LEVEL = ["gpt2", "roberta-base", "llama3", "qwen3", "deepseek-v4", "gpt-neox", "whisper-large-v3", "clip"]
OTHERS = ["wordpiece/bert-base-uncased", "wordpiece/bert-base-multilingual-cased", "bbpe/sqlpilot"]
OTHERS += ["sp-bpe/llama2", "sp-bpe/mistral-v3", "sp-bpe/phi-3", "sp-bpe/barthez"]


def decoder_of(made):
    return Decoder(made, Vocabulary(build_vocabulary(made), made.added_tokens))


def small(tokens, added=(), **kwargs):
    vocab = {token: number for number, token in enumerate(tokens)}
    return decoder_of(spec.TokenizerSpec(spec.BPEModel(vocab, ()), tuple(added), **kwargs))


def random_rows(size, count, rng, longest=30):
    return [[rng.randrange(size) for _ in range(rng.randrange(longest))] for _ in range(count)]


@pytest.mark.parametrize("name", [f"bbpe/{name}" for name in BYTE_LEVEL] + OTHERS)
def test_random_ids_as_tokenizers(name):
    made, reference = real(f"{name}/tokenizer.json")
    decoder = decoder_of(made)
    rng = random.Random(name)
    size = decoder.vocabulary.size
    rows = random_rows(size, 150, rng)
    # Special tokens, byte tokens and the first ids are rare among so many: more of them.
    rows += random_rows(300, 50, rng)
    specials = [token.id for token in made.added_tokens]
    rows += [[rng.choice([rng.choice(specials), rng.randrange(size)]) for _ in range(9)] for _ in range(50)]
    rows.append([rng.randrange(size) for _ in range(3000)])
    for skip in (False, True):
        expected = reference.decode_batch(rows, skip_special_tokens=skip)
        assert [decoder.decode(row, skip) for row in rows] == expected
        assert decoder.decode_batch(rows, skip) == expected


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base", "p50k_base"])
def test_random_ids_as_tiktoken(name):
    import tiktoken

    special = {"<|endoftext|>": 200_500, "<|x|>": 200_501}
    made = rank_spec(f"tiktoken/{name}/{name}.tiktoken", special.items())
    reference = tiktoken.Encoding(name, pat_str=r"\S+", mergeable_ranks=made.model.ranks, special_tokens=special)
    decoder = decoder_of(made)
    rng = random.Random(name)
    possible = [*made.model.ranks.values(), *special.values()]
    rows = [rng.choices(possible, k=rng.randrange(30)) for _ in range(200)] + [rng.choices(possible, k=2000)]
    for row in rows:
        assert decoder.decode_bytes(row) == reference.decode_bytes(row)
        assert decoder.decode(row) == reference.decode(row)
    assert decoder.decode_batch(rows) == reference.decode_batch(rows)
    assert decoder.decode([200_500, 64], skip_special_tokens=True) == reference.decode([64])


CHAINS = [
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": True},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
    {"type": "BPEDecoder", "suffix": "</w>"},
    {"type": "ByteFallback"},
    {"type": "Fuse"},
    {"type": "Replace", "pattern": {"String": "aa"}, "content": "b"},
    {"type": "Strip", "content": "_", "start": 1, "stop": 0},
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    [0, 4],
    [0, 5],
    [3, 4],
    [4, 5],
    [4, 6],
    [6, 4, 5, 7],
    [5, 7],
    [4, 7],
    [7, 4],
    [8, 7],
    [6, 8],
    [5, 8],
    [0, 3],
    [],
    None,
    {"type": "WordPiece", "prefix": "##", "cleanup": True},
    {"type": "WordPiece", "prefix": "##", "cleanup": False},
    {"type": "WordPiece", "prefix": "", "cleanup": True},
    {"type": "WordPiece", "prefix": "_", "cleanup": True},
    [24, 5],
    [6, 24],
    [24, 7],
    [24, 0],
    [4, 24],
    [24, 4],
    [5, 24],
    [8, 24],
    [24, 3],
]
TOKENS = [
    "▁▁a▁b",
    "▁",
    "c</w>",
    "</w>",
    "aaa",
    "_",
    "__x",
    "<0x61>",
    "<0xe5>",
    "<0x8F>",
    "<0xAB>",
    "<0xGG>",
    "<0x+1>",
]
TOKENS += ["##b", "##", "a##", "#", ".", " .", "!", ",", "?", "n't", "don't", "do not", "'", "' ", "'s", "##'re", " "]
TOKENS += ["x , y do not 've", "##日"]
TOKENS += ["Ġd", "ab c", "é", "\ufffd", "日", "", "Ã©"]


def chain(choice):
    if choice is None:
        return None
    if isinstance(choice, dict):
        return choice
    return {"type": "Sequence", "decoders": [CHAINS[i] for i in choice]}


@pytest.mark.parametrize("choice", CHAINS, ids=lambda c: c["type"] if isinstance(c, dict) else str(c))
def test_any_chain_as_tokenizers(choice):
    import json

    from tokenizers import Tokenizer

    block = {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": None,
        "post_processor": None, "decoder": chain(choice),
        "added_tokens": [{"id": len(TOKENS), "content": "<s>", "single_word": False, "lstrip": False,
                          "rstrip": False, "normalized": False, "special": True}],
        "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(TOKENS)}, "merges": []},
    }  # fmt: skip
    reference = Tokenizer.from_str(json.dumps(block))
    decoder = small(TOKENS, [spec.AddedToken(len(TOKENS), "<s>", special=True)], decoders=decoders(chain(choice)))
    rng = random.Random(str(choice))
    rows = random_rows(len(TOKENS) + 1, 400, rng, 8) + random_rows(len(TOKENS) + 1, 5, rng, 2000)
    for skip in (False, True):
        expected = reference.decode_batch(rows, skip_special_tokens=skip)
        for row, text in zip(rows, expected, strict=True):
            assert decoder.decode(row, skip) == text, row
        assert decoder.decode_batch(rows, skip) == expected


def test_strip_at_the_end():
    # tokenizers 0.23.3 panics where fewer characters are left than are to be stripped.
    step = spec.DecodeStrip("_", 2, 1)
    decoder = small(["___a__", "_", "__", "", "a_"], decoders=(step,))
    assert decoder.decode([0, 4, 3]) == "_a_a"
    assert decoder.decode([1, 2, 3]) == ""


def test_added_token_with_letters_of_the_byte_alphabet():
    # huggingface/tokenizers#1996: the reference garbles it.
    decoder = small(["x", "Ġ"], [spec.AddedToken(2, "Začuđen")], decoders=(spec.DecodeByteLevel(),))
    assert decoder.decode([0, 1, 2]) == "x Začuđen"
    assert decoder.decode([0, 1, 2] * 300) == "x Začuđen" * 300
    assert decoder.decode_bytes([2]) == "Začuđen".encode()


def test_invalid_utf8_is_replaced_as_pythons_and_rusts_decoders_do():
    from tokenizers import Tokenizer, models
    from tokenizers import decoders as reference_decoders

    from jittok.vocabulary import byte_alphabet

    letters = [chr(c) for c in byte_alphabet().tolist()]
    decoder = small(letters, decoders=(spec.DecodeByteLevel(),))
    reference = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    reference.decoder = reference_decoders.ByteLevel()
    rng = random.Random(5)
    leads = [0x41, 0x80, 0xBF, 0xC2, 0xE0, 0xE6, 0xED, 0xF0, 0xF1, 0xF4, 0xFF, 0x90, 0xA0]
    for row in [rng.choices(leads, k=rng.randrange(7)) for _ in range(2000)]:
        assert decoder.decode(row) == reference.decode(row) == bytes(row).decode("utf-8", "replace")


def test_decode_bytes():
    decoder = small(
        ["▁a", "<0xE5>", "b"],
        decoders=(
            spec.DecodeReplace("▁", " "), spec.DecodeByteFallback(), spec.DecodeFuse(), spec.DecodeStrip(" ", 1, 0)
        ),
    )  # fmt: skip
    assert decoder.decode_bytes([0, 1, 2]) == b"a\xe5b"
    assert decoder.decode([0, 1, 2]) == "a\ufffdb"
    assert small(["a", "b"]).decode_bytes([0, 1]) == b"a b"


# ---------------------------------------------------------------------------------------------- forms of ids


@pytest.fixture
def abc():
    return small(["a", "b", "c"], [spec.AddedToken(5, "<s>", special=True)], decoders=(spec.DecodeByteLevel(),))


def test_forms_of_ids(abc):
    import pyarrow as pa

    forms = [[0, 1, 2], (0, 1, 2), iter([0, 1, 2]), np.array([0, 1, 2]), np.array([0, 1, 2], np.uint8), range(3)]
    forms.append(Batch(np.array([0, 1, 2]), np.array([0, 3]))[0])
    for form in forms:
        assert abc.decode(form) == "abc"
    assert abc.decode(1) == "b"
    assert abc.decode(np.int64(1)) == "b"
    assert abc.decode([]) == abc.decode(np.array([])) == ""
    assert abc.decode([0, 5, 1]) == "a<s>b"
    assert abc.decode([0, 5, 1], skip_special_tokens=True) == "ab"
    assert abc.decode([5], skip_special_tokens=True) == ""

    rows = [[0, 1], [], [2]]
    flat = np.array([0, 1, 2])
    indptr = np.array([0, 2, 2, 3])
    column = pa.array([[9], *rows], pa.list_(pa.int32()))[1:]
    for form in [rows, map(list, rows), Batch(flat, indptr), (flat, indptr), pa.array(rows), column,
                 pa.chunked_array([rows[:1], rows[1:]]), [np.array(row, int) for row in rows]]:  # fmt: skip
        assert abc.decode_batch(form) == ["ab", "", "c"]
    assert abc.decode_batch(np.array([[0, 1], [1, 2]])) == ["ab", "bc"]
    assert abc.decode_batch([]) == []


@pytest.mark.parametrize("many", [0, 2000])
@pytest.mark.parametrize("bad", [3, 4, 6, -1, 2**31, -(2**31) - 1, 2**40, 2**70])
def test_ids_outside_the_vocabulary(abc, bad, many):
    ids = [0] * many + [1, bad, 2]
    with pytest.raises(errors.TokenIdError, match=rf"token id {bad} at position {many + 1} .*0 to 5"):
        abc.decode(ids)
    with pytest.raises(errors.TokenIdError, match=rf"token id {bad} at"):
        abc.decode_bytes(ids)
    with pytest.raises(errors.TokenIdError, match=rf"token id {bad} at position {many + 1} "):
        abc.decode_batch([[0, 1], ids])
    with pytest.raises(errors.TokenIdError):
        abc.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize(
    "bad", ["abc", b"abc", [0.5], ["a"], [None], [[0, 1]], [[0], [0, 1]], None, 1.5, object()]
)
def test_wrong_types_of_ids(abc, bad):
    with pytest.raises(errors.ArgumentTypeError):
        abc.decode(bad)


@pytest.mark.parametrize("bad", ["abc", 3, [0, 1], [["a"]], None])
def test_wrong_types_of_batches(abc, bad):
    with pytest.raises(errors.ArgumentTypeError):
        abc.decode_batch(bad)


def test_bad_row_pointers(abc):
    for indptr in ([0, 5], [-1, 2], [2, 1]):
        with pytest.raises(errors.ArgumentError):
            abc.decode_batch((np.array([0, 1, 2]), np.array(indptr)))


def test_a_regex_that_cannot_be_compiled_is_refused():
    with pytest.raises(errors.UnsupportedError, match="cannot compile"):
        small(["a"], decoders=(spec.DecodeReplace(r"(a)\1", "b", is_regex=True),))


def test_fallback_byte():
    assert fallback_byte("<0x0A>") == 10
    assert fallback_byte("<0xff>") == 255
    for other in ("<0x0A", "<0x0AB>", "0x0A", "<0xG0>", "<0x٣٣>", "<0x 1>", "<0x-1>", ""):
        assert fallback_byte(other) is None


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 255), max_size=40))
def test_small_and_large_paths_agree(row):
    from jittok.vocabulary import byte_alphabet

    if "both" not in _CACHE:
        letters = [chr(c) for c in byte_alphabet().tolist()]
        steps = (spec.DecodeByteFallback(), spec.DecodeFuse(), spec.DecodeStrip("<", 2, 0))
        fallback = [f"<0x{byte:02X}>" for byte in range(128, 256)] + letters[:128]
        _CACHE["both"] = (small(letters, decoders=(spec.DecodeByteLevel(),)), small(fallback, decoders=steps))
    for decoder in _CACHE["both"]:
        expected = decoder.decode(row)
        threshold = decoding._SMALL
        decoding._SMALL = -1
        try:
            assert decoder.decode(row) == expected
            assert decoder.decode_batch([row, row[:3]]) == [expected, decoder.decode(row[:3])]
        finally:
            decoding._SMALL = threshold


_CACHE = {}


@pytest.mark.parametrize("name", ["byte level", "word pieces"])
@pytest.mark.parametrize("skip", [False, True])
def test_many_texts_are_decoded_in_parts(name, skip, monkeypatch):
    if name == "byte level":
        tok = jittok.load_default()
    else:
        vocab = {"[PAD]": 0, "[UNK]": 1, "a": 2, "##b": 3, "##" + "long" * 40: 4, "##é": 5}
        model = {"type": "WordPiece", "vocab": vocab, "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
        model["max_input_chars_per_word"] = 100
        added = {"id": 0, "content": "[PAD]", "special": True, "normalized": False}
        added |= dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
        decoder = {"type": "WordPiece", "prefix": "##", "cleanup": False}
        block = {"version": "1.0", "model": model, "added_tokens": [added], "decoder": decoder}
        tok = jittok.load_bytes(json.dumps(block).encode())
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, tok.vocab_size, size).astype(np.int32) for size in rng.integers(0, 90, 60)]
    one_by_one = [tok.decode(row, skip_special_tokens=skip) for row in rows]
    monkeypatch.setattr(decoding, "CHUNK_IDS", 100)
    monkeypatch.setattr(decoding, "_SMALL", -1)
    assert tok.decode_batch(rows, skip_special_tokens=skip) == one_by_one
    indptr = np.cumsum([7, *map(len, rows)])
    flat = np.concatenate([np.zeros(7, np.int32), *rows])
    assert tok.decode_batch((flat, indptr), skip_special_tokens=skip) == one_by_one

"""The whole encode path on arbitrary text and arbitrary configurations, against the reference libraries."""

import dataclasses
import functools
import json
import os
import random
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import numpy as np
import pytest
import random_configs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from specs import model_path
from tokenizers import Tokenizer

import jittok
from jittok import engine, outputs, spec
from jittok._jit import JIT_DISABLED
from jittok.build.charsmap import compile_charsmap
from jittok.errors import FormatError, SpecialTokenError, TextError, UnsupportedError
from jittok.ranges import Ranges

CODE = Path(__file__).parent

# ------------------------------------------------------------------------------------------------------ texts

_RUNS = st.builds(
    lambda character, n: character * n,
    st.sampled_from(
        [*" \ta.1\n\r\0e\u0301\u0085\u00a0\u2028\u3000\u65e5\U0001f600\u200d'-_=/", "\r\n", "ab", " a"]
    ),
    st.integers(1, 40),
)
_PIECES = st.sampled_from(
    ["'s", "'RE", " I'LL", "don't", "123456", " the", "ing", "\n\n", "<|endoftext|>", "\U0001f468\u200d\U0001f469", "ſ",
     "e\u0301", "\u0130", "\u01c5", "\u1100\u1161", "\u0928\u094d", "\u0660\u0661", "\ufffd", "\ufeff", "http://x.y/z?q=1"]
)  # fmt: skip
_CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXTS = st.lists(st.one_of(st.text(_CHARACTERS, max_size=8), _RUNS, _PIECES), max_size=12).map("".join)
relaxed = settings(deadline=None, max_examples=30 if JIT_DISABLED else 150, suppress_health_check=list(HealthCheck))

# --------------------------------------------------------------------------------------------------- families


@functools.cache
def family(name):
    """A tokenizer, and the reference's function from text to ids."""
    if name == "default":
        reference = Tokenizer.from_str(jittok.load_default()._as_file("tokenizer.json").decode())
        return jittok.load_default(), lambda text: reference.encode(text, add_special_tokens=False).ids
    if name.endswith(".tiktoken"):
        import tiktoken

        tok = jittok.load(model_path(name))
        pattern = tok.spec.pre_tokenizers[0].pattern
        encoding = tiktoken.Encoding(
            name, pat_str=pattern, mergeable_ranks=dict(tok.spec.model.ranks), special_tokens={}
        )
        return tok, encoding.encode_ordinary
    path = model_path(name)
    reference = Tokenizer.from_file(str(path))
    return jittok.load(path), lambda text: reference.encode(text, add_special_tokens=False).ids


FAMILIES = [
    "default",
    "bbpe/gpt2/tokenizer.json",
    "bbpe/llama3/tokenizer.json",
    "bbpe/qwen3/tokenizer.json",
    "tiktoken/cl100k_base/cl100k_base.tiktoken",
    "tiktoken/o200k_base/o200k_base.tiktoken",
]


@pytest.mark.parametrize("name", FAMILIES)
def test_ids_equal_the_reference_and_texts_come_back(name):
    tok, reference = family(name)
    special = "text" if name.endswith(".tiktoken") else "parse"

    @relaxed
    @given(TEXTS)
    def check(text):
        encoding = tok.encode(text, add_special_tokens=False, special=special)
        assert encoding.ids.tolist() == list(reference(text))
        assert tok.decode(encoding) == tok.normalize(text)

    check()


#: Characters that share all bytes but the last are of one kind: of two, three and four bytes, and ASCII.
KINDS = ["éÈßà", "дВжи", "ряюь", "ΩЀ", "अकआइ", "ॐ।१", "한하", "中丰", "々あ", "ア", "’…—", "\uff21\uff42"]
KINDS += ["👍👎", "\U000e0101", "\U0001d400\U0001d401"]


@pytest.mark.parametrize("name", FAMILIES)
def test_long_texts_of_few_kinds_of_characters(name):
    """Blocks of 64 bytes with characters of none, one, two or more kinds, which are loaded in different ways."""
    tok, reference = family(name)
    special = "text" if name.endswith(".tiktoken") else "parse"
    rng = random.Random(name)
    for _ in range(12 if JIT_DISABLED else 150):
        kinds = rng.choices(KINDS, k=rng.choice([1, 1, 2, 2, 3, 8]))
        others = rng.choice(["", " ", " ", "ab ,.\n", "abcdefgh  1"])
        letters = "".join(kinds) * rng.choice([1, 4]) + others * rng.choice([1, 8])
        text = "".join(rng.choices(letters, k=rng.choice([30, 80, 300, 2500])))
        if rng.random() < 0.3:  # long stretches of ASCII between them
            text = "a b" * rng.randrange(80) + text + "x, " * rng.randrange(80) + text[:70]
        assert tok.encode(text, add_special_tokens=False, special=special).ids.tolist() == list(reference(text))


@pytest.mark.parametrize("name", ["default", "bbpe/gpt2/tokenizer.json"])
def test_spans_cover_what_the_tokens_say(name):
    tok, _ = family(name)
    flags = tok._vocabulary.tables.flags

    @relaxed
    @given(TEXTS)
    def check(text):
        encoding = tok.encode(text, add_special_tokens=False)
        spans = encoding.spans.tolist()
        covered = np.zeros(len(text), bool)
        before = 0
        for token_id, (start, end) in zip(encoding.ids.tolist(), spans, strict=True):
            assert before <= start < end <= len(text)
            before = start
            covered[start:end] = True
            piece = text[start:end].encode()
            if not flags[token_id] & 2:
                assert tok.decode_bytes([token_id]) in piece
        assert covered.all()

    check()


@relaxed
@given(st.lists(TEXTS, max_size=8))
def test_a_batch_is_its_texts_one_by_one(texts):
    tok, _ = family("default")
    batch = tok.encode_batch(texts, spans=True, add_special_tokens=False)
    for i, text in enumerate(texts):
        one = tok.encode(text, add_special_tokens=False)
        assert batch[i].ids.tolist() == one.ids.tolist()
        assert batch[i].spans.tolist() == one.spans.tolist()
    assert np.diff(batch.indptr).tolist() == tok.count_batch(texts, add_special_tokens=False).tolist()


@pytest.mark.parametrize("chunk_bytes", [1, 37, 1000])
def test_results_do_not_depend_on_threads_or_chunks(monkeypatch, chunk_bytes):
    rng = random.Random(chunk_bytes)
    texts = ["".join(random_configs.text(rng) for _ in range(rng.choice([0, 1, 5]))) for _ in range(150)]
    tok, _ = family("default")
    expected = tok.encode_batch(texts, spans=True, threads=1)
    monkeypatch.setattr(engine, "CHUNK_BYTES", chunk_bytes)
    monkeypatch.setattr(engine, "PARALLEL_BYTES", 1)
    tok = jittok.load_default()
    for threads in (1, 2, 3):
        actual = tok.encode_batch(texts, spans=True, threads=threads)
        assert np.array_equal(actual.ids, expected.ids)
        assert np.array_equal(actual.indptr, expected.indptr)
        assert np.array_equal(actual.spans, expected.spans)


# ---------------------------------------------------------------------------------------- chunks of the kernels

_SMALL_CHUNKS = """
import json, random, sys, tempfile, warnings
sys.path.insert(0, sys.argv[1])
import numpy as np
np.seterr(all="ignore")
import jittok.kernels.split as split
split.CHUNK = int(sys.argv[2])
split.WORTH_STARTING = max(2, split.CHUNK // 8)
import jittok.kernels.word_cache as words
assert words.CHUNK == split.CHUNK
import jittok, random_configs
from tokenizers import Tokenizer

default = jittok.load_default()
default = default, Tokenizer.from_str(default._as_file("tokenizer.json").decode())
compared = 0
for seed in range(int(sys.argv[3]), int(sys.argv[3]) + int(sys.argv[4])):
    rng = random.Random(seed)
    tok, reference = default
    if seed % 4 == 0:
        block = random_configs.configuration(rng)
        block["normalizer"] = None
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump(block, file)
            file.flush()
            try:
                tok, reference = jittok.load(file.name), Tokenizer.from_file(file.name)
            except jittok.errors.UnsupportedError:
                continue
    texts = [random_configs.text(rng) for _ in range(rng.choice([1, 3, 8]))]
    expected = [e.ids for e in reference.encode_batch(texts, add_special_tokens=False)]
    assert tok.encode_batch(texts, add_special_tokens=False).to_lists() == expected, (seed, texts)
    assert tok.encode_batch(texts, add_special_tokens=False, spans=True).to_lists() == expected, (seed, texts)
    compared += len(texts)
print(compared)
"""


@pytest.mark.skipif(JIT_DISABLED, reason="is plain Python in either case")
@pytest.mark.parametrize("size", [8, 9, 65])
def test_kernels_give_the_same_for_every_chunk_size(size):
    # A chunk's size is a constant of the compiled code, so this runs as plain Python in a process of its own.
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-c", _SMALL_CHUNKS, str(CODE), str(size), str(1000 * size), "20"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 30


# ---------------------------------------------------------------------------------------------- configurations


def differences(ours, reference, block, text, pair, add_special_tokens):
    """What differs from the reference, as (what, ours, theirs)."""
    expected = reference.encode(text, pair, add_special_tokens=add_special_tokens)
    actual = ours.encode(text, pair, add_special_tokens=add_special_tokens)
    words = [None if number < 0 else int(number) for number in actual.word_ids]
    found = [
        ("ids", actual.ids.tolist(), expected.ids),
        ("type ids", actual.type_ids.tolist(), expected.type_ids),
        ("mask", actual.special_tokens_mask.tolist(), expected.special_tokens_mask),
        ("words", words, expected.word_ids),
    ]
    names = str(block["normalizer"])
    # The reference gives a composed character the span of its first part only, and a replacement that of the last
    # character of what it replaces. Where bytes leave no token, it counts in UTF-8 of the letters for bytes.
    drops = ours._engine._drops
    byte_level = "'ByteLevel'" in str(block["pre_tokenizer"])
    # Of added tokens with white space around them that is no blank, the reference trims what clean-up or a replacement
    # makes of it, jittok what was there.
    cleaned = any(name in names for name in ("'Bert", "'Replace", "'Nmt", "'ByteLevel")) and bool(block["added_tokens"])
    trimmed = cleaned and "'trim_offsets': True" in str(block["post_processor"])
    if "'NF" not in names and "'Replace" not in names and not (drops and byte_level) and not trimmed:
        found.append(("spans", actual.spans.tolist(), [list(span) for span in expected.offsets]))
    found.append(("tokens", list(actual.tokens), expected.tokens))
    # Decoded added tokens that change when they are normalised: jittok keeps their text.
    changed = any(ours.normalize(t["content"]) != t["content"] for t in block["added_tokens"] if t["normalized"])
    # Added tokens of letters of the byte alphabet: the reference decodes them as bytes.
    if not changed and not any(t["content"] == "\u00e9" for t in block["added_tokens"]):
        found.append(("decoded", ours.decode(actual), reference.decode(expected.ids, skip_special_tokens=False)))
    return [item for item in found if item[1] != item[2]]


@pytest.mark.parametrize("first", range(0, 200, 20))
@pytest.mark.parametrize(
    "make",
    [
        random_configs.configuration,
        random_configs.wordpiece_configuration,
        random_configs.wordlevel_configuration,
    ],
)
def test_random_configurations_give_what_the_reference_gives(tmp_path, make, first):
    compared = 0
    n_seeds = 5 if JIT_DISABLED else 20
    for seed in range(first, first + n_seeds):
        rng = random.Random(seed)
        block = make(rng)
        path = tmp_path / f"{seed}.json"
        path.write_text(json.dumps(block), encoding="utf-8")
        try:
            ours = jittok.load(path)
        except UnsupportedError as error:
            assert "byte_fallback" in str(error)  # nothing else here is unsupported
            continue
        contents = [ours.normalize(t["content"]) for t in block["added_tokens"] if t["normalized"]]
        if not all(contents):
            continue  # the reference reads outside its memory
        if len(set(contents)) < len(contents):
            continue  # which of equal ones counts changes from process to process in the reference
        reference = Tokenizer.from_file(str(path))
        for _ in range(12):
            text, pair = random_configs.text(rng), random_configs.text(rng) if rng.random() < 0.2 else None
            add_special_tokens = rng.random() < 0.6
            try:
                reference.encode(text, pair, add_special_tokens=add_special_tokens)
            except Exception as error:
                assert "[UNK]" in str(error)  # the vocabulary lacks it: nothing else here is refused
                with pytest.raises(FormatError, match="unk_token"):
                    ours.encode(text, pair, add_special_tokens=add_special_tokens)
                continue
            assert not differences(ours, reference, block, text, pair, add_special_tokens), (seed, text, pair)
            compared += 1
    assert compared > 5 * n_seeds


def test_special_policies_with_random_added_tokens(tmp_path):
    compared = 0
    for seed in range(300, 340):
        rng = random.Random(seed)
        block = random_configs.configuration(rng)
        block["normalizer"] = None
        path = tmp_path / f"{seed}.json"
        path.write_text(json.dumps(block), encoding="utf-8")
        try:
            ours = jittok.load(path)
        except UnsupportedError:
            continue
        reference = Tokenizer.from_file(str(path))
        reference.encode_special_tokens = True
        for _ in range(5):
            text = random_configs.text(rng)
            expected = reference.encode(text, add_special_tokens=False).ids
            assert ours.encode(text, add_special_tokens=False, special="text").ids.tolist() == expected, (
                seed,
                text,
            )
            everything = ours.encode(text, special=set(ours.special_tokens))
            assert everything == ours.encode(text, special="parse")
            compared += 1
    assert compared > 100


def byte_pairs(vocab, merges=(), **options):
    model = {
        "type": "BPE",
        "vocab": {token: i for i, token in enumerate(vocab)},
        "merges": [list(m) for m in merges],
    }
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": {**model, **options},
    }  # fmt: skip


def load_block(tmp_path, block):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(block), encoding="utf-8")
    return jittok.load(path)


def test_an_unknown_token_that_is_missing_is_an_error_only_where_it_is_needed(tmp_path):
    tok = load_block(tmp_path, byte_pairs("ab", unk_token="<unk>"))
    assert tok.encode("abba").ids.tolist() == [0, 1, 1, 0]
    with pytest.raises(FormatError, match="text 1 holds a character that the vocabulary lacks"):
        tok.encode_batch(["ab", "axb"])
    path = tmp_path / "saved.jittok"
    tok.save(path)
    with pytest.raises(FormatError, match="unk_token"):
        jittok.load(path).encode("x")


def test_an_empty_vocabulary_gives_no_ids(tmp_path):
    tok = load_block(tmp_path, byte_pairs(""))
    assert tok.encode("xx").ids.tolist() == []
    assert tok.encode_batch(["xx", ""], spans=True).to_lists() == [[], []]


def test_two_tokens_may_share_an_id_where_nothing_is_merged(tmp_path):
    block = byte_pairs("ab")
    block["model"]["vocab"] = {"a": 0, "b": 0}
    assert load_block(tmp_path, block).encode("ab").ids.tolist() == [0, 0]


def test_a_replacement_covers_all_of_its_source(tmp_path):
    block = byte_pairs(["a", "b", "x"])
    block["normalizer"] = {"type": "Replace", "pattern": {"String": "---"}, "content": "x"}
    encoding = load_block(tmp_path, block).encode("a---b")
    assert encoding.spans.tolist() == [[0, 1], [1, 4], [4, 5]]


def test_dropped_characters_leave_the_words_where_they_are(tmp_path):
    block = byte_pairs("ab")
    block["pre_tokenizer"] = {"type": "Whitespace"}
    encoding = load_block(tmp_path, block).encode("xa b xx axb")
    assert encoding.ids.tolist() == [0, 1, 0, 1]
    assert encoding.word_ids.tolist() == [0, 1, 3, 3]
    assert encoding.spans.tolist() == [[0, 1], [3, 4], [8, 9], [9, 10]]


@pytest.mark.parametrize("order", [[0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]])
@pytest.mark.parametrize("spans", [False, True])
@pytest.mark.parametrize("rooms", [[20_000, 20_000], [100, 20_000], [20_000, 100], [1500, 20_000], [1500, 9000]])
@pytest.mark.parametrize("asked", [0, 8000])
def test_outputs_of_ranges_become_one(order, spans, rooms, asked):
    # Two threads, and which of them is next; also with room for less than there is, or than is asked for.
    sizes = np.random.default_rng(sum(order)).integers(0, 400, 40)
    expected = np.arange(sizes.sum(), dtype=np.int32)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    ranges = Ranges(np.arange(41) * 100, 2, 800)
    made = outputs.Outputs(ranges, rooms, spans, spans, engine.Buffers(1 << 20))
    all_ends = np.zeros(40, np.int64)
    threads = [ranges.chunks(), ranges.chunks()]
    found = []
    for which in order * 20:
        chunk = next(threads[which], None)
        if chunk is None:
            continue
        found += range(chunk.first, chunk.last)
        output = made.of(chunk, 2 * int(sizes[chunk.first : chunk.last].sum()))
        ends = all_ends[chunk.first : chunk.last]
        ends[:] = output.used + np.cumsum(sizes[chunk.first : chunk.last])
        ids = expected[bounds[chunk.first] : bounds[chunk.last]]
        pairs = np.stack([ids, ids + 1], axis=1).astype(np.int64)
        output.reserve(asked)
        output.add(ids, pairs if spans else None, -ids if spans else None)
        made.put(chunk, output, ends)
    assert sorted(found) == list(range(40))
    whole = made.whole(all_ends)
    assert whole.used == len(expected)
    np.testing.assert_array_equal(whole.ids[: whole.used], expected)
    np.testing.assert_array_equal(all_ends, bounds[1:])
    if spans:
        np.testing.assert_array_equal(whole.spans[: whole.used], np.stack([expected, expected + 1], axis=1))
        np.testing.assert_array_equal(whole.words[: whole.used], -expected)


def test_no_document_from_one_that_failed_on_is_begun():
    ranges = Ranges(np.arange(101), 3, 8)
    first, second = ranges.chunks(), ranges.chunks()
    begun = [next(first), next(second), next(first)]
    ranges.drop(50)
    rest = [*first, *second]
    assert max(chunk.last for chunk in rest) == 50
    assert sorted(i for chunk in begun + rest for i in range(chunk.first, chunk.last) if i < 50) == list(range(50))


@pytest.mark.parametrize("texts", [[""], [""] * 5000, [""] * 5000 + ["abc " * 20_000], ["a"] + [""] * 5000])
def test_empty_texts_ask_for_no_memory_but_that_of_their_special_tokens(texts, monkeypatch):
    rooms = []
    make_room = outputs.Output.make_room
    monkeypatch.setattr(outputs.Output, "make_room", lambda self, n, *rest: (rooms.append(n), make_room(self, n, *rest))[1])
    larger = outputs._larger
    monkeypatch.setattr(outputs, "_larger", lambda *given: (rooms.append(given[2]), larger(*given))[1])
    monkeypatch.setattr(engine, "CHUNK_BYTES", 100)
    added = {"id": 2, "content": "<s>", "special": True, "normalized": False}
    added |= dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
    ends = {"type": "BertProcessing", "sep": ["<s>", 2], "cls": ["<s>", 2]}
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}
    block = {"version": "1.0", "model": model, "added_tokens": [added], "post_processor": ends}
    monkeypatch.setattr(engine, "PARALLEL_BYTES", 1)
    batch = jittok.load_bytes(json.dumps(block).encode()).encode_batch(texts, threads=2)
    assert batch.ids.tolist() == [i for text in texts for i in (2, *(0 if c == "a" else 1 for c in text if c in "ab"), 2)]
    assert max(rooms) <= 2 * len(texts) + sum(map(len, texts)) + 4 * engine.EXTRA_IDS


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("chunk_bytes", [1, 100, 1 << 20])
def test_of_several_texts_that_fail_the_first_one_is_told(threads, chunk_bytes, monkeypatch):
    monkeypatch.setattr(engine, "CHUNK_BYTES", chunk_bytes)
    monkeypatch.setattr(engine, "PARALLEL_BYTES", 1)
    added = {"id": 2, "content": "<s>", "special": True, "normalized": False}
    added |= dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}
    tok = jittok.load_bytes(json.dumps({"version": "1.0", "model": model, "added_tokens": [added]}).encode())
    texts = ["ab"] * 40
    texts[20], texts[22] = "a<s>", "a\ud800"
    for encode in (tok.encode_batch, tok.count_batch):
        with pytest.raises(SpecialTokenError, match="20"):
            encode(texts, special="raise", threads=threads)
        with pytest.raises(TextError, match="22"):
            encode(texts, threads=threads)
        with pytest.raises(TextError, match="19"):
            encode([*texts[:19], "\ud800", *texts[20:]], special="raise", threads=threads)


def test_many_threads_give_what_one_gives_where_tokens_become_dense(monkeypatch):
    times = 10 if JIT_DISABLED else 1  # less text, in smaller chunks
    monkeypatch.setattr(engine, "CHUNK_BYTES", 2000 // times)
    monkeypatch.setattr(engine, "PARALLEL_BYTES", 1)
    texts = ["the same words again and again " * (20 // times)] * 40 + ["\u0e01\u0f40 qzx" * (100 // times)] * 20 + [""] * 3
    tokenizer = jittok.load_default()
    one = tokenizer.encode_batch(texts, spans=True, threads=1)
    for threads in (2, 3, 8):
        many = tokenizer.encode_batch(texts, spans=True, threads=threads)
        assert many == one and (many.spans == one.spans).all() and (many.word_ids == one.word_ids).all()
        assert (tokenizer.count_batch(texts, threads=threads) == np.diff(one.indptr)).all()
        with pytest.raises(SpecialTokenError, match="text 61 "):
            tokenizer.encode_batch([*texts[:61], "<|endoftext|>"], special="raise", threads=threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_invalid_bytes_in_a_later_chunk_are_named(monkeypatch, threads):
    monkeypatch.setattr(engine, "CHUNK_BYTES", 500)
    monkeypatch.setattr(engine, "PARALLEL_BYTES", 1)
    texts = [b"some text, and more of it "] * 300
    data = np.frombuffer(b"".join(texts), np.uint8).copy()
    indptr = np.arange(301) * len(texts[0])
    tokenizer = jittok.load_default()
    tokenizer.encode_batch((data, indptr), threads=threads)
    data[indptr[211] + 7] = 0xFF
    with pytest.raises(TextError, match=r"texts\[211\]: invalid UTF-8 at byte 7"):
        tokenizer.encode_batch((data, indptr), threads=threads)
    with pytest.raises(TextError, match=r"texts\[211\]: invalid UTF-8 at byte 7"):
        tokenizer.count_batch((data, indptr), threads=threads)
    replaced = tokenizer.encode_batch((data, indptr), threads=threads, errors="replace")
    assert replaced[211] == tokenizer.encode("some te\ufffdt, and more of it ").ids.tolist()


@pytest.mark.parametrize("options", [{}, {"max_length": 3}, {"max_length": 7, "truncation_side": "left"}])
@pytest.mark.parametrize("framed", [("before", "after"), ("before",), ("after",), ()])
def test_special_tokens_around_many_texts(monkeypatch, options, framed):
    if JIT_DISABLED and (options or len(framed) != 2):
        pytest.skip("takes minutes as plain Python")
    base = jittok.load_default()
    pieces = [spec.TemplatePiece(0, None, (1, 2))] * ("before" in framed) + [spec.TemplatePiece(0, "A")]
    pieces += [spec.TemplatePiece(0, None, (3,))] * ("after" in framed)
    if options.get("max_length") == 3 and len(framed) == 2:
        options = {"max_length": 4}
    tok = jittok.Tokenizer(dataclasses.replace(base.spec, post_processors=(spec.Template(tuple(pieces), None),)))
    rng = random.Random(5)
    texts = ["".join(random_configs.text(rng) for _ in range(rng.choice([0, 1, 5]))) for _ in range(90)]
    expected = [tok.encode(text, **options).ids.tolist() for text in texts]
    assert any(len(ids) == options.get("max_length", len(ids)) for ids in expected)
    monkeypatch.setattr(engine, "PARALLEL_BYTES", 1)
    for chunk_bytes in (1, 300, 1 << 20):
        monkeypatch.setattr(engine, "CHUNK_BYTES", chunk_bytes)
        for threads in (1, 2, 3):
            batch = tok.encode_batch(texts, threads=threads, **options)
            assert batch.to_lists() == expected
            assert batch.indptr.dtype == np.int64 and not batch.ids.flags.writeable
            assert batch[3].tokens == tok.encode(texts[3], **options).tokens
    assert tok.encode_batch([], **options).to_lists() == []


@pytest.mark.parametrize(
    ("steps", "text", "tokens"),
    [
        ([("ab", "c")], "ab.", ["c", "."]),
        ([("ab", "c")], "xab", ["▁", "x", "c"]),
        ([("x", "ab")], "x.", ["▁", "a", "b", "."]),
        ([("ab", "c"), ("c", "x")], "ab", ["x"]),
        ([("ab", "cx"), ("cx", "a")], "ab", ["a"]),
        ([("ab", "c"), "Prepend"], "ab", ["b", "c"]),
        (["Prepend", ("ba", "c")], "ax", ["▁", "c", "x"]),
        ([("ab", "")], "ab.", ["."]),
        ([("  ", " ")], "  a", ["▁", "a"]),
        ([("ab", "ab")], "ab.", ["a", "b", "."]),
        ([{"a": ""}], "ab", ["▁", "b"]),
        ([("ab", "c"), {"c": ""}], "abx", ["x"]),
        ([{"a": ""}, ("bx", "c")], "abx", ["c"]),
        ([{"a": ""}, {"b": ""}], "abx", ["▁", "x"]),
        ([("x", ""), {"a": ""}], "xab", ["b"]),
    ],
)
def test_what_comes_from_the_beginning_of_a_text(steps, text, tokens):
    """Only that gets Metaspace's prefix with "first"; what replaces several characters comes from the last of them."""
    names = ["<unk>", "▁", *"abcx."]
    normalizers = [
        {"type": "Prepend", "prepend": "b"}
        if step == "Prepend"
        else {"type": "Precompiled", "precompiled_charsmap": b64encode(compile_charsmap(step)).decode()}
        if isinstance(step, dict)
        else {"type": "Replace", "pattern": {"String": step[0]}, "content": step[1]}
        for step in steps
    ]
    block = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [[name, -1.0] for name in names]},
    }
    data = json.dumps(block)
    tok = jittok.load_bytes(data.encode())
    for spans in (False, True):
        assert [names[i] for i in tok.encode_batch([text], spans=spans)[0].ids] == tokens
    tokenizers = pytest.importorskip("tokenizers")
    assert tokenizers.Tokenizer.from_str(data).encode(text, add_special_tokens=False).tokens == tokens

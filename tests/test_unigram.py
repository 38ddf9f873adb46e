"""Unigram models: tables, forward passes, n-best and samples, against sentencepiece and tokenizers."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from specs import DATA

from jittok import sampling
from jittok import tables as t
from jittok._jit import JIT_DISABLED
from jittok.build import unigram_tables
from jittok.build.unigram_tables import build_unigram_tables, piece_lengths, piece_nodes
from jittok.build.validate import check_unigram
from jittok.errors import ArgumentError, FormatError, UnsupportedError
from jittok.kernels.split import SEGMENT
from jittok.kernels.unigram import (
    DONE,
    MORE_SCRATCH,
    STATE,
    encode_unigram_nested,
    encode_unigram_segments,
    new_unigram_scratch,
)
from jittok.kernels.unigram_cache import MORE_CACHE, encode_unigram_text, new_unigram_cache, refill_unigram_cache
from jittok.kernels.word_cache import EXTRA_ROOM, NEEDED, WRITTEN

NORMAL, UNKNOWN, CONTROL = unigram_tables.NORMAL, unigram_tables.UNKNOWN, unigram_tables.CONTROL
USER_DEFINED, UNUSED, BYTE = unigram_tables.USER_DEFINED, unigram_tables.UNUSED, unigram_tables.BYTE
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def flat(texts):
    """Texts as the kernels take them, a byte of something else between them."""
    encoded = [text.encode() for text in texts]
    starts = np.cumsum([0, *(len(text) + 1 for text in encoded)])[: len(texts)].astype(np.int64)
    ends = starts + np.array([len(text) for text in encoded], np.int64)
    return [t.read_only(array) for array in (np.frombuffer(b"a".join([*encoded, b""]) + b"a", np.uint8), starts, ends)]


def cut(ids, lengths, ends):
    pairs = list(zip(ids.tolist(), lengths.tolist(), strict=True))
    return [pairs[first:last] for first, last in zip([0, *ends.tolist()], ends.tolist(), strict=False)]


def trie(tables, texts, scratch_bytes=None):
    """(id, bytes) of each text by the trie pass; scratch grows from `scratch_bytes` on."""
    data, starts, ends = flat(texts)
    rule = int(tables.numbers[t.UNIGRAM_RULE])
    longest = max((len(text.encode()) for text in texts), default=0)
    scratch = new_unigram_scratch(longest if scratch_bytes is None else scratch_bytes, rule)
    out, lengths = np.full(data.size, -7, np.int32), np.full(data.size, -7, np.int32)
    out_end, state = np.zeros(len(texts), np.int64), np.zeros(STATE, np.int64)
    while True:
        status = encode_unigram_segments(tables, data, starts, ends, len(texts), state, scratch, out, out_end, lengths)
        if status == DONE:
            break
        assert status == MORE_SCRATCH and state[NEEDED] >= scratch.codes.size
        scratch = new_unigram_scratch(int(state[NEEDED]), rule)
    assert state[SEGMENT] == len(texts) and state[WRITTEN] == (out_end[-1] if len(texts) else 0)
    # Lengths may be left out.
    again, end_again = np.full(data.size, -7, np.int32), np.zeros(len(texts), np.int64)
    scratch = new_unigram_scratch(longest, rule)
    state = np.zeros(STATE, np.int64)
    encode_unigram_segments(tables, data, starts, ends, len(texts), state, scratch, again, end_again, lengths[:0])
    np.testing.assert_array_equal(out, again)
    found = cut(out, lengths, out_end)
    assert [sum(n for _, n in row) for row in found] == [len(text.encode()) for text in texts]
    return found


def cached(tables, texts, rounds=2, slot_bits=12):
    """Ids of each text by the pass with a cache of words, which sees them more than once."""
    data, starts, ends = flat(texts)
    cache = new_unigram_cache(tables, slot_bits)
    longest = max((len(text.encode()) for text in texts), default=0)
    scratch = new_unigram_scratch(longest, int(tables.numbers[t.UNIGRAM_RULE]))
    found, n = [], data.size + EXTRA_ROOM
    # Lengths not wanted, wanted, and wanted where those of pieces are known.
    lengths = [*(np.zeros(0, np.int32) for _ in range(rounds)), *(np.full(n, -7, np.int32) for _ in range(2))]
    if tables.code_of[0x20] and any("\u2581" in text for text in texts):
        lengths.pop()  # a piece with a blank has one length only
    for i, length in enumerate(lengths):
        if i == rounds + 1:
            cache = cache._replace(lengths=piece_lengths(tables))
        out, out_end = np.full(n, -7, np.int32), np.zeros(len(texts), np.int64)
        state = np.zeros(STATE, np.int64)
        last = len(texts)
        assert encode_unigram_text(tables, data, starts, ends, last, state, scratch, cache, out, out_end, length) == DONE
        bounds = list(zip([0, *out_end.tolist()], out_end.tolist(), strict=False))
        found.append([out[i:j].tolist() for i, j in bounds])
        if length.size:
            expected = [row for text in trie(tables, texts) for row in text]
            assert list(zip(out.tolist(), length.tolist(), strict=True))[: len(expected)] == expected
    assert all(row == found[0] for row in found)
    return found[0]


def nested(tables, texts):
    """(id, bytes) of each text by the pass that looks up every substring."""
    data, starts, ends = flat(texts)
    scratch = new_unigram_scratch(data.size, int(tables.numbers[t.UNIGRAM_RULE]))
    out, lengths = np.full(data.size, -7, np.int32), np.full(data.size, -7, np.int32)
    out_end = np.zeros(len(texts), np.int64)
    encode_unigram_nested(tables, data, starts, ends, scratch, out, out_end, lengths)
    return cut(out, lengths, out_end)


def sentencepiece_of(pieces, scores, types, byte_fallback=False):
    """The reference with a model of these pieces, and no normalization."""
    pytest.importorskip("google.protobuf")
    module = pytest.importorskip("sentencepiece.sentencepiece_model_pb2")
    from sentencepiece import SentencePieceProcessor

    model = module.ModelProto()
    for piece, score, kind in zip(pieces, scores, types, strict=True):
        model.pieces.add(piece=piece, score=float(np.float32(score)), type=kind)
    model.trainer_spec.model_type = model.trainer_spec.UNIGRAM
    model.trainer_spec.byte_fallback = byte_fallback
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = False
    model.normalizer_spec.remove_extra_whitespaces = False
    model.normalizer_spec.escape_whitespaces = False
    return SentencePieceProcessor(model_proto=model.SerializeToString())


def reference(processor, texts):
    """(id, bytes) of each text by sentencepiece; those of a byte piece are one byte."""
    found = []
    for text in texts:
        proto = processor.encode_as_proto(text)
        found.append([(p.id, 1 if processor.is_byte(p.id) else len(p.piece.encode())) for p in proto.pieces])
    return found


# ------------------------------------------------------------------------------------------------- random models

ALPHABET = "ab▁é中😀 "
pieces_of = st.text(st.sampled_from(ALPHABET), min_size=1, max_size=5)
#: Few values, so that ties are common, among them scores that float32 rounds and such as make the running sum large.
score_of = st.sampled_from([-1.0, -2.0, -3.0, -0.1, -1.1, -2.2, -9.7, 0.0, 0.5, -40000.0, -33333.3, 3000.7])


@st.composite
def models(draw):
    pieces = draw(st.lists(pieces_of, min_size=1, max_size=25, unique=True))
    kind = st.sampled_from([NORMAL] * 8 + [USER_DEFINED, UNUSED])
    byte_fallback = draw(st.booleans())
    types = [UNKNOWN, CONTROL, *(draw(kind) for _ in pieces)]
    scores = [0.0, 0.0, *(draw(score_of) for _ in pieces)]
    pieces = ["<unk>", "<s>", *pieces]
    if byte_fallback:
        pieces, scores, types = pieces + BYTES, scores + [0.0] * 256, types + [BYTE] * 256
    return pieces, scores, types, byte_fallback


LOG_SCORES = [-1.0, -2.0, -3.0, -7.1, -9.7, -13.3, 0.0, -400.5, -3000.7]

texts_of = st.lists(st.text(st.sampled_from(ALPHABET + "xß"), max_size=40), max_size=4)


@given(models(), texts_of)
@example((["<unk>", "<s>", "a", "aa"], [0, 0, -1.0, -2.0], [2, 3, 1, 1], False), ["aaaaa", "", "aaaxxa"])
@example((["<unk>", "<s>", "a", "aa"], [0, 0, -1.0, -2.0], [2, 3, 5, 1], False), ["aaaaa"])
@example((["<unk>", "<s>", "aé", "é"], [0, 0, -1.0, -2.0], [2, 3, 4, 4], False), ["aéaé"])
@example((["<unk>", "<s>", "aé", "é"], [0, 0, -1.0, -2.0], [2, 3, 4, 5], False), ["aéaéxé"])
@settings(max_examples=20 if JIT_DISABLED else 200, deadline=None)
def test_as_sentencepiece(model, texts):
    pieces, scores, types, byte_fallback = model
    tables = build_unigram_tables(pieces, scores, types, byte_fallback=byte_fallback)
    check_unigram(tables, len(pieces), "test")
    expected = reference(sentencepiece_of(pieces, scores, types, byte_fallback), texts)
    assert trie(tables, texts) == expected
    assert nested(tables, texts) == expected


@given(
    st.lists(st.text(st.sampled_from("abcé{"), min_size=1, max_size=5), min_size=1, max_size=30, unique=True),
    st.data(),
    st.lists(st.lists(st.text(st.sampled_from("abcé{x😀"), max_size=30), max_size=40), min_size=1, max_size=3),
    st.sampled_from([None, 31, 300]),
    st.booleans(),
)
@settings(max_examples=10 if JIT_DISABLED else 150, deadline=None)
def test_cached_words_as_sentencepiece(parts, data, lines, repeated, byte_fallback):
    """Words that are looked up, of models whose pieces stay inside words; with sums that are large, and reset."""
    value = st.sampled_from(LOG_SCORES if repeated else [*LOG_SCORES, -40000.0])
    blanks = [data.draw(st.booleans()) for _ in parts]
    names = list(dict.fromkeys("▁" * blank + part for part, blank in zip(parts, blanks, strict=True)))
    pieces = ["<unk>", "▁", *names]
    scores = [0.0, *(data.draw(value) for _ in pieces[1:])]
    types = [UNKNOWN, *(data.draw(st.sampled_from([NORMAL] * 12 + [USER_DEFINED, UNUSED])) for _ in pieces[1:])]
    types[1] = NORMAL
    if byte_fallback:
        pieces, scores, types = pieces + BYTES, scores + [0.0] * 256, types + [BYTE] * 256
    texts = ["▁".join(line * (repeated or 1)) for line in lines]
    tables = build_unigram_tables(pieces, scores, types, byte_fallback=byte_fallback, space_as_blank=True)
    assert tables.numbers[t.UNIGRAM_SPACE_FIRST] == 1
    processor = sentencepiece_of(pieces, scores, types, byte_fallback)
    expected = processor.encode(texts)
    assert cached(tables, texts) == expected
    assert cached(tables, [text.replace("▁", " ") for text in texts]) == expected


@given(models(), texts_of)
@settings(max_examples=10 if JIT_DISABLED else 100, deadline=None)
def test_cache_of_any_model(model, texts):
    """Where pieces may reach over words, nothing is looked up."""
    pieces, scores, types, byte_fallback = model
    tables = build_unigram_tables(pieces, scores, types, byte_fallback=byte_fallback)
    assert cached(tables, texts) == [[i for i, _ in row] for row in trie(tables, texts)]


@given(models(), st.text(st.sampled_from(ALPHABET + "x"), min_size=1, max_size=12), st.sampled_from([1, 2, 5, 40]))
@settings(max_examples=10 if JIT_DISABLED else 80, deadline=None)
def test_n_best_as_sentencepiece(model, text, size):
    pieces, scores, types, byte_fallback = model
    tables = build_unigram_tables(pieces, scores, types, byte_fallback=byte_fallback)
    processor = sentencepiece_of(pieces, scores, types, byte_fallback)
    found = sampling.nbest_encode(tables, text, size)
    expected = processor.nbest_encode_as_proto(text, size).nbests
    assert [row.ids.tolist() for row in found] == [[piece.id for piece in row.pieces] for row in expected]
    if size > 1:  # for a single one sentencepiece says 0
        assert [row.score for row in found] == [row.score for row in expected]
        if not byte_fallback:
            for row in found:
                joined = any(i == 0 and n > 1 for i, n in zip(row.ids, row.lengths, strict=True))
                assert joined or sampling.score(tables, text, row.lengths) == row.score


@given(
    st.lists(st.text(st.sampled_from("ab▁é中"), min_size=1, max_size=4), min_size=1, max_size=20, unique=True),
    st.data(),
    texts_of,
    st.booleans(),
)
@settings(max_examples=20 if JIT_DISABLED else 150, deadline=None)
def test_as_tokenizers(pieces, data, texts, byte_fallback):
    models = pytest.importorskip("tokenizers.models")
    value = st.sampled_from([-1.0, -2.0, -0.1, -0.2, -0.30000000000000004, -3.3, 0.0, 12.5, 31.0])
    pieces = ["<unk>", *pieces]
    scores = [data.draw(value) for _ in pieces]
    if byte_fallback:
        missing = data.draw(st.sets(st.sampled_from([0x78, 0xC3, 0xF0])))
        pieces += [name for byte, name in enumerate(BYTES) if byte not in missing]
        scores += [-5.0] * (len(pieces) - len(scores))
    texts = [*texts, "x<unk>x", "<unk>", "ax<0x41>"]
    model = models.Unigram(list(zip(pieces, scores, strict=True)), unk_id=0, byte_fallback=byte_fallback)
    tables = build_unigram_tables(pieces, scores, rule="tokenizers", unknown=0, byte_fallback=byte_fallback)
    check_unigram(tables, len(pieces), "test")
    found = trie(tables, texts)
    assert [[i for i, _ in row] for row in found] == [[token.id for token in model.tokenize(text)] for text in texts]
    assert nested(tables, texts) == found


def test_repeated_pieces_as_tokenizers():
    """Of equal entries the last one counts."""
    models = pytest.importorskip("tokenizers.models")
    vocabulary = [("<unk>", 0.0), ("a", -5.0), ("b", -1.0), ("a", -1.0), ("ab", -3.0)]
    tables = build_unigram_tables(*zip(*vocabulary, strict=True), rule="tokenizers", unknown=0)
    assert [i for i, _ in trie(tables, ["ab"])[0]] == [x.id for x in models.Unigram(vocabulary, 0).tokenize("ab")] == [3, 2]


# ------------------------------------------------------------------------------------------------- single rules


def build(pieces, **settings):
    """A model of normal pieces, after the unknown one."""
    names = ["<unk>", *pieces]
    kinds = [UNKNOWN] + [NORMAL] * len(pieces)
    return build_unigram_tables(names, [0.0, *pieces.values()], kinds, **settings)


def test_worked_example():
    """Becquin's example: XLNet's pieces of Sesquipedalophobia are the best path where scores are like these."""
    words = ["▁Se", "s", "qui", "ped", "alo", "phobia"]
    tables = build({**{word: -8.0 for word in words}, **{c: -12.0 for c in "▁Sesquipedalophobia" if c not in words}})
    assert trie(tables, ["▁Sesquipedalophobia"])[0] == [(1 + i, len(w.encode())) for i, w in enumerate(words)]
    assert piece_nodes(tables)[1] == ("▁Se", -8.0)


def test_reset_of_the_running_sum():
    """Beyond 100,000 the sum goes on from 0, else float32 has no room for small differences."""
    pieces = {"a": -9.01, "aa": -18.015, "aaa": -27.0, "b": -3.3, "ab": -12.3}
    text = "".join(random.Random(5).choices("ab", weights=[3, 1], k=200 if JIT_DISABLED else 60_000))
    tables = build(pieces)
    processor = sentencepiece_of(["<unk>", *pieces], [0.0, *pieces.values()], [UNKNOWN] + [NORMAL] * 5)
    assert trie(tables, [text]) == reference(processor, [text])


def test_space_as_blank():
    pieces = {"▁a": -1.0, "▁": -2.0, "b": -1.0, "é": -1.0}
    found = trie(build(pieces, space_as_blank=True), [" a b é", "▁a▁b é"])
    assert found == [[(1, 2), (2, 1), (3, 1), (2, 1), (4, 2)], [(1, 4), (2, 3), (3, 1), (2, 1), (4, 2)]]
    assert trie(build(pieces), [" a"]) == [[(0, 2)]]


def test_space_first():
    """Whether pieces stay inside words."""
    for pieces, expected in ((["▁a", "▁"], 1), (["a"], 0), (["▁a"], 0), (["▁", "▁a", "a▁"], 0), (["▁", "▁▁"], 0)):
        assert build(dict.fromkeys(pieces, -1.0)).numbers[t.UNIGRAM_SPACE_FIRST] == expected


def test_scratch_grows():
    tables = build({"a": -1.0, "aa": -1.5, "é": -2.0})
    texts = ["", "aaa", "é" * 50, "aa" * 300, "", "a"]
    assert trie(tables, texts, scratch_bytes=4) == trie(tables, texts) == nested(tables, texts)
    assert trie(tables, []) == []


def test_every_character():
    """All lengths of UTF-8, at the borders of their ranges, as pieces and as unknown ones."""
    characters = [chr(c) for c in (1, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x1FFFF)]
    characters += [chr(c) for c in (0x20000, 0x2FFFF, 0x30000, 0x3FFFF, 0xFFFFF, 0x100000, 0x10FFFF)]
    tables = build(dict.fromkeys(characters, -1.0))
    expected = [(1 + i, len(c.encode())) for i, c in enumerate(characters)]
    assert trie(tables, ["".join(characters), *characters]) == [expected, *([pair] for pair in expected)]
    neighbours = [chr(ord(c) - 1) for c in characters[1:] if chr(ord(c) - 1) not in (*characters, "\udfff")]
    assert trie(tables, neighbours) == [[(0, len(c.encode()))] for c in neighbours]


def test_missing_unknown_piece():
    """Its id stands for an error: tokenizers fails as soon as a path needs it, by rule of each pre-token."""
    tables = build_unigram_tables(["a", "b"], [-1.0, -2.0], rule="tokenizers", unknown=2, is_missing=True)
    assert trie(tables, ["ab", "axb", ""]) == [[(0, 1), (1, 1)], [(2, 3)], []]
    assert nested(tables, ["ab", "axb", ""]) == [[(0, 1), (1, 1)], [(2, 3)], []]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": [0.0]}, "1 scores"),
        ({"scores": [0.0, float("nan")]}, "not a number"),
        ({"scores": [0.0, float("-inf")]}, "not a number"),
        ({"types": [1, 1]}, "no unknown piece"),
        ({"unknown": -3}, "expected an id"),
        ({"rule": "kudo"}, "expected one of"),
        ({"byte_fallback": True}, "<0x00>"),
    ],
)
def test_bad_arguments(arguments, message):
    given_ = {"pieces": ["<unk>", "a"], "scores": [0.0, -1.0], "types": [2, 1]} | arguments
    with pytest.raises((ArgumentError, UnsupportedError), match=message):
        build_unigram_tables(**given_)


@settings(max_examples=20 if JIT_DISABLED else 150, deadline=None)
@given(st.data())
def test_damaged_tables(data):
    """A changed number is found, or does no harm."""
    pieces = {"a": -1.0, "ab": -2.0, "abc": -3.0, "▁": -1.0, "中a": -2.0}
    tables = build(pieces)
    name = data.draw(st.sampled_from([name for name in tables._fields if name != "scores"]))
    array = getattr(tables, name).copy()
    place = data.draw(st.integers(0, len(array) - 1))
    array[place] = data.draw(st.sampled_from([0, 1, 4, 8, 127, 30_000, *array[:64].tolist()]))
    damaged = tables._replace(**{name: t.read_only(array)})
    try:
        check_unigram(damaged, 6, "test")
    except FormatError:
        return
    texts = ["abcab▁a中axab", "", "b" * 30]
    trie(damaged, texts)


# ------------------------------------------------------------------------------------------- n-best and samples


def all_segmentations(pieces, text):
    """{(pieces): score} of all ways to cut a text, by trying."""
    found = {}
    for cuts in itertools.product([False, True], repeat=len(text) - 1):
        parts, first = [], 0
        for last in [*(i + 1 for i, here in enumerate(cuts) if here), len(text)]:
            parts.append(text[first:last])
            first = last
        if all(part in pieces for part in parts):
            found[tuple(parts)] = sum(pieces[part] for part in parts)
    return found


PIECES = {"a": -2.0, "b": -2.5, "ab": -3.0, "ba": -3.5, "aba": -4.25, "▁": -1.0, "▁a": -2.75, "abab": -7.0}


@pytest.mark.parametrize("rule", ["sentencepiece", "tokenizers"])
def test_all_segmentations(rule):
    text = "▁ababab"
    tables = build(PIECES, rule=rule, unknown=0)
    scores = all_segmentations(PIECES, text)
    lattice = sampling.UnigramLattice(tables, text)
    names = ["<unk>", *PIECES]
    found = lattice.n_best(1000)
    assert {tuple(names[i] for i in row.ids): row.score for row in found} == scores
    assert [row.score for row in found] == sorted(scores.values(), reverse=True)
    for alpha in (0.0, 0.3, 1.0):
        weights = np.exp(alpha * np.array(list(scores.values())))
        probabilities = weights / weights.sum()
        assert lattice.log_sum(alpha) == pytest.approx(math.log(weights.sum()))
        assert lattice.entropy(alpha) == pytest.approx(-(probabilities * np.log(probabilities)).sum())
        assert lattice.mean_score(alpha) == pytest.approx((probabilities * list(scores.values())).sum())
        size = 300 if JIT_DISABLED else 20_000
        drawn = lattice.sample(size, alpha=alpha, seed=7)
        for row in drawn[:100]:
            assert row.score == pytest.approx(scores[tuple(names[i] for i in row.ids)])
        counts = Counter(tuple(names[i] for i in row.ids) for row in drawn)
        for parts, probability in zip(scores, probabilities, strict=True):
            # six standard deviations, and a count more
            bound = 6 * math.sqrt(size * probability * (1 - probability)) + 1
            assert abs(counts[parts] - size * probability) <= bound


def test_seed_and_settings():
    tables = build(PIECES)
    draw = sampling.sample_encode
    text = "▁abababab"
    rows = [draw(tables, text, alpha=0.1, seed=seed).ids.tolist() for seed in range(20)]
    assert rows == [draw(tables, text, alpha=0.1, seed=seed).ids.tolist() for seed in range(20)]
    assert len({tuple(row) for row in rows}) > 3
    best = sampling.best(tables, text)
    for size in (0, 1):
        assert draw(tables, text, nbest_size=size).ids.tolist() == best.ids.tolist()
    among = {tuple(row.ids) for row in sampling.nbest_encode(tables, text, 3)}
    drawn = {tuple(draw(tables, text, nbest_size=3, alpha=0.1, seed=seed).ids) for seed in range(50)}
    assert drawn == among
    # A large alpha leaves only the best; a long text is no trouble.
    assert draw(tables, text, alpha=1e6, seed=1).ids.tolist() == best.ids.tolist()
    long = sampling.UnigramLattice(tables, text * (10 if JIT_DISABLED else 3000))
    assert sum(long.sample(1, alpha=5.0, seed=1)[0].lengths) == len(text.encode()) * (10 if JIT_DISABLED else 3000)
    assert [row.ids.tolist() for row in sampling.nbest_encode(tables, "", 3)] == [[]]
    assert draw(tables, "", seed=1).ids.tolist() == []
    for arguments in ({"nbest_size": 513}, {"alpha": -1.0}, {"alpha": float("nan")}):
        with pytest.raises(ArgumentError):
            draw(tables, text, **arguments)
    with pytest.raises(ArgumentError, match="no piece for unknown"):
        sampling.UnigramLattice(
            build_unigram_tables(["a"], [-1.0], rule="tokenizers", unknown=1, is_missing=True), "ax"
        )
    with pytest.raises(ArgumentError, match="add up"):
        sampling.score(tables, "ab", [1])


@pytest.mark.skipif(JIT_DISABLED, reason="takes minutes as plain Python")
def test_n_best_is_thinned_out_without_loss():
    """A text with more segmentations than a search can keep: the best are those of sentencepiece, and in order."""
    tables, text = build(PIECES), "▁" + "ab" * 60
    processor = sentencepiece_of(["<unk>", *PIECES], [0.0, *PIECES.values()], [UNKNOWN] + [NORMAL] * len(PIECES))
    found = sampling.nbest_encode(tables, text, 300)
    expected = processor.nbest_encode_as_proto(text, 300).nbests
    assert len(found) == 300 and len({tuple(row.ids) for row in found}) == 300
    scores = [row.score for row in found]
    assert scores == sorted(scores, reverse=True)
    if len(expected) > 1:  # sentencepiece gives up on large searches
        assert [row.ids.tolist() for row in found] == [[piece.id for piece in row.pieces] for row in expected]


# ----------------------------------------------------------------------------------------------- real vocabularies

REAL = {
    "xlnet-base-cased": "spiece.model",
    "t5-nai": "spiece.model",
    "deberta-v3": "spm.model",
    "opus-mt-en-fr": "source.spm",
    "sentencepiece-test-ja": "test_ja_model.model",
}


def real_model(name):
    path = Path(DATA or "", "models", "unigram", name, REAL[name])
    if not DATA or not path.exists():
        pytest.skip(f"JITTOK_TEST_DATA has no unigram/{name}")
    module = pytest.importorskip("sentencepiece.sentencepiece_model_pb2")
    from sentencepiece import SentencePieceProcessor

    model = module.ModelProto()
    model.ParseFromString(path.read_bytes())
    pieces = [piece.piece for piece in model.pieces]
    settings = {"byte_fallback": model.trainer_spec.byte_fallback}
    columns = [piece.score for piece in model.pieces], [piece.type for piece in model.pieces]
    return build_unigram_tables(pieces, *columns, **settings), SentencePieceProcessor(model_file=str(path)), len(pieces)


@pytest.mark.skipif(JIT_DISABLED, reason="takes minutes as plain Python")
@pytest.mark.parametrize("name", REAL)
def test_real_models(name):
    """Documents, one long one, and n-best lists are as sentencepiece has them, on text that it normalizes."""
    tables, processor, size = real_model(name)
    check_unigram(tables, size, name)
    for corpus in ("english", "code", "multi"):
        text = Path(DATA, "corpora", f"{corpus}.txt").read_text(encoding="utf-8")[:400_000]
        documents = [*text.split("\0"), text.replace("\0", "\n")]
        found = trie(tables, processor.normalize(documents))
        expected = processor.encode(documents)
        assert [[i for i, _ in row] for row in found] == expected
        assert cached(tables, processor.normalize(documents)) == expected
        for document in documents[:10]:
            sentence = document[:40]
            expected = processor.nbest_encode_as_proto(sentence, 20).nbests
            rows = sampling.nbest_encode(tables, processor.normalize(sentence), 20)
            assert [row.ids.tolist() for row in rows] == [[piece.id for piece in row.pieces] for row in expected]
            assert [row.score for row in rows] == [row.score for row in expected]


def test_cache_grows():
    n_words = 2500 if JIT_DISABLED else 5000
    letters = "abcdefghij"
    pieces = ["<unk>", "\u2581", *letters, "\u2581ab", "cde", "fghij", "aaa"]
    scores = [0.0, *(-1.0 - 0.37 * i for i in range(len(pieces) - 1))]
    tables = build_unigram_tables(pieces, scores, [UNKNOWN] + [NORMAL] * (len(pieces) - 1))
    words = ["\u2581" + "".join(letters[int(d)] for d in str(n)) * (1 + n % 4) + "?" * (n % 3) for n in range(n_words)]
    texts = ["".join(words[i : i + 100]) for i in range(0, n_words, 100)]
    texts += texts[::-1]
    data, starts, ends = flat(texts)
    scratch = new_unigram_scratch(1 << 16, t.RULE_SENTENCEPIECE)
    cache, bits, n_grown = new_unigram_cache(tables, 12, grows=True), 12, 0
    out, out_end = np.full(data.size + EXTRA_ROOM, -7, np.int32), np.zeros(len(texts), np.int64)
    state = np.zeros(STATE, np.int64)
    while (
        status := encode_unigram_text(
            tables, data, starts, ends, len(texts), state, scratch, cache, out, out_end, out[:0]
        )
    ) != DONE:
        assert status == MORE_CACHE
        bits, n_grown, old = bits + 1, n_grown + 1, cache
        cache = new_unigram_cache(tables, bits, grows=True)
        assert refill_unigram_cache(old, cache) == old.counters[0] > 2000
    assert n_grown >= 1
    assert cache.counters[0] == len(set(words))
    right, right_end = np.zeros(data.size, np.int32), np.zeros(len(texts), np.int64)
    encode_unigram_segments(
        tables, data, starts, ends, len(texts), np.zeros(STATE, np.int64), scratch, right, right_end, right[:0]
    )
    np.testing.assert_array_equal(out_end, right_end)
    np.testing.assert_array_equal(out[: out_end[-1]], right[: right_end[-1]])

"""SentencePiece BPE, character and word models on normalised text, against sentencepiece and slow twins."""

from __future__ import annotations

import functools
import json
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from reference import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    sentencepiece_bpe,
    sentencepiece_characters,
    sentencepiece_words,
    split_spans,
    with_unknown,
)
from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2
from specs import corpus_path, model_path
from tokenizers import Tokenizer

import jittok
from jittok.build.piece_tables import build_sentencepiece_merges, may_leave_blanks, split_pattern
from jittok.build.plan import Plan
from jittok.build.regex_automaton import compile_split
from jittok.build.split_windows import build_split_tables
from jittok.build.validate import check_pieces
from jittok.engine import Engine
from jittok.errors import ArgumentError
from jittok.formats import tokenizer_json
from jittok.merge_sampling import sample_piece_ids
from jittok.spec import AddedTokens
from jittok.tables import PieceTables

MARK = "\u2581"
MODEL_TYPES = {"bpe": 2, "word": 3, "char": 4}
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
relaxed = settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))


@functools.cache
def split_tables(pattern):
    return build_split_tables(compile_split(pattern))


class Model:
    """A small model, with its pieces as sentencepiece's file has them."""

    def __init__(self, pieces, scores, types, model_type="bpe", byte_fallback=False):
        self.pieces, self.scores, self.types = list(pieces), list(scores), list(types)
        self.model_type = model_type
        self.byte_fallback = byte_fallback
        if byte_fallback:
            self.pieces += BYTES
            self.scores += [0.0] * 256
            self.types += [BYTE] * 256

    def reference(self):
        """sentencepiece with this model, which takes text as it is."""
        proto = sentencepiece_model_pb2.ModelProto()
        for piece, score, kind in zip(self.pieces, self.scores, self.types, strict=True):
            proto.pieces.add(piece=piece, score=score, type=kind)
        proto.trainer_spec.model_type = MODEL_TYPES[self.model_type]
        proto.trainer_spec.byte_fallback = self.byte_fallback
        spec = proto.normalizer_spec
        spec.name = "identity"
        spec.add_dummy_prefix = spec.remove_extra_whitespaces = spec.escape_whitespaces = False
        return SentencePieceProcessor(model_proto=proto.SerializeToString())

    def build(self, **options):
        return build_sentencepiece_merges(
            self.pieces,
            np.array(self.scores, np.float32),
            self.types,
            model_type=self.model_type,
            byte_fallback=self.byte_fallback,
            **options,
        )

    def oracle(self, text):
        """Ids and their bytes, the slow way."""
        if self.model_type == "bpe":
            result = sentencepiece_bpe(self.pieces, self.scores, self.types, text)
        elif self.model_type == "char":
            result = sentencepiece_characters(self.pieces, self.types, text)
        else:
            result = sentencepiece_words(self.pieces, self.types, text)
        fallback = [self.pieces.index(byte) for byte in BYTES] if self.byte_fallback else []
        return with_unknown(result, self.types.index(UNKNOWN), text, fallback)


def engine_of(built):
    return Engine(Plan(AddedTokens.of(()), None, None, None, (), split_tables(built.split_pattern), built.tables))


def encode(engine, texts, **options):
    encoded = [text.encode() for text in texts]
    data = np.frombuffer(b"".join(encoded) + bytes(64), np.uint8)
    indptr = np.cumsum([0, *map(len, encoded)])
    return engine.encode(data, indptr, **options)


def ids_of(result, i=0):
    return result.ids[result.indptr[i] : result.indptr[i + 1]].tolist()


@st.composite
def models(draw, model_type=None):
    alphabet = draw(st.sampled_from(["ab", "abc" + MARK, "aé" + MARK, "ab" + MARK, "a.-1" + MARK, "x日本\U0001f600" + MARK]))
    texts = draw(st.sets(st.text(alphabet, min_size=1, max_size=5), max_size=30))
    texts |= draw(st.sets(st.text(alphabet, min_size=1, max_size=2), max_size=10))
    pieces = ["<unk>", "<s>", *sorted(texts)]
    n = len(pieces)
    values = st.sampled_from([-1.0, -2.0, -3.0, -0.0, 0.0, 1.0, -1e9, 1e-45, float("inf"), float("-inf"), float("nan")])
    if draw(st.booleans()):
        values = st.floats(width=32)
    kinds = st.sampled_from([NORMAL] * 12 + [UNUSED] * 2 + [USER_DEFINED, CONTROL])
    if draw(st.booleans()):
        kinds = st.just(NORMAL)
    types = [UNKNOWN, CONTROL, *(draw(kinds) for _ in range(n - 2))]
    order = draw(st.permutations(range(n)))
    return Model(
        [pieces[i] for i in order],
        [draw(values) for _ in range(n)],
        [types[i] for i in order],
        model_type or draw(st.sampled_from(["bpe"] * 4 + ["char", "word"])),
        draw(st.booleans()),
    )


TEXTS = st.lists(
    st.one_of(
        st.text("abcxé日本\U0001f600.-1\n" + MARK, max_size=12),
        st.builds(lambda c, n: c * n, st.sampled_from(["a", "b", MARK, "ab", MARK + "a"]), st.integers(1, 70)),
    ),
    max_size=5,
).map("".join)


@relaxed
@given(models(), st.lists(TEXTS, max_size=4))
@example(Model(["<unk>", MARK, MARK * 2, MARK * 3, MARK * 4], [0, 0, -5, -5, -5], [UNKNOWN] + [NORMAL] * 4), [MARK * 11])
@example(Model(["<unk>", "ab", "bc", "abc"], [0, 0, 1, 2], [UNKNOWN, UNUSED, UNUSED, UNUSED]), ["abcabbc", "ab", "aabc"])
@example(Model(["<unk>", "aa", "aaa", "a"], [0, 0, 0, 0], [UNKNOWN, *[NORMAL] * 3]), ["a" * 200])
def test_ids_equal_sentencepiece(model, texts):
    reference = model.reference()
    built = model.build()
    check_pieces(built.tables, len(model.pieces), "here")
    engine = engine_of(built)
    result = encode(engine, texts)
    details = encode(engine, texts, spans=True)
    for i, text in enumerate(texts):
        expected = reference.encode(text)
        assert [token for token, _ in model.oracle(text)] == expected
        assert ids_of(result, i) == expected
        assert ids_of(details, i) == expected


@relaxed
@given(models(), TEXTS)
def test_all_pairs_give_the_same_ids(model, text):
    built = model.build(all_pairs=True)
    assert ids_of(encode(engine_of(built), [text])) == [token for token, _ in model.oracle(text)] or UNUSED in model.types


@relaxed
@given(models("bpe"), TEXTS)
def test_blanks_for_marks(model, text):
    if may_leave_blanks(model.pieces, model.types):
        engine = engine_of(model.build(blank_is_mark=True))
        expected = model.reference().encode(text)
        some = "".join(" " if c == MARK and i % 3 else c for i, c in enumerate(text))
        assert ids_of(encode(engine, [text.replace(MARK, " ")])) == expected
        assert ids_of(encode(engine, [some])) == expected


def test_many_prefixes_of_user_defined_symbols():
    pieces = ["<unk>", *("a" * n for n in range(1, 81))]
    model = Model(pieces, [0.0] * 81, [UNKNOWN, *[USER_DEFINED] * 80])
    for text in ("a" * 63, "a" * 70, "a" * 200, "b" + "a" * 130):
        assert ids_of(encode(engine_of(model.build()), [text])) == model.reference().encode(text)


def test_unused_pieces_deeply_nested():
    pieces = ["<unk>", *("a" * n for n in range(1, 140))]
    model = Model(pieces, [float(n) for n in range(140)], [UNKNOWN, NORMAL, *[UNUSED] * 138])
    for n in (99, 100, 101, 102, 103, 104, 139, 140, 300):
        assert ids_of(encode(engine_of(model.build()), ["a" * n])) == model.reference().encode("a" * n)


def test_no_text_and_no_pieces():
    model = Model(["<unk>"], [0.0], [UNKNOWN])
    result = encode(engine_of(model.build()), ["", "ab", ""])
    assert result.indptr.tolist() == [0, 0, 1, 1]
    assert result.ids.tolist() == [0]


def splits(pattern, text):
    return [text[start:end] for start, end, _ in split_spans(compile_split(pattern), text)]


def test_split_patterns():
    some = split_pattern(["ab", MARK, MARK + "a", MARK * 3, "..", MARK + ".", "1"])
    assert splits(some, f"ab..c1\n{MARK * 2}a b") == ["ab", "..", "c", "1", "\n", MARK * 2 + "a", " b"]
    assert splits(split_pattern(["ab", "a."]), "ab.a 1") == ["ab.a", " 1"]
    assert split_pattern(["ab", MARK, "a" + MARK, MARK * 3]) == f"[^ {MARK}]+[ {MARK}]*|[ {MARK}]+"
    assert split_pattern(["ab", MARK + "a", "a" + MARK]) == split_pattern([f"a{MARK}b"]) == r"[\s\S]+"


# ------------------------------------------------------------------------------------------------------- sampling


def sample(built, texts, dropout, seed, first=0):
    encoded = [text.encode() for text in texts]
    data = np.frombuffer(b"".join(encoded) + bytes(64), np.uint8)
    indptr = np.cumsum([0, *map(len, encoded)])
    return sample_piece_ids(built.tables, data, indptr[:-1], indptr[1:], dropout=dropout, seed=seed, first_segment=first)


@functools.cache
def sampled_model():
    pieces = ["<unk>", "a", "b", "c", "ab", "bc", "abc", "ca", "abca"]
    return Model(pieces, [0, 0, 0, 0, -1, -2, -1, -2, -5], [UNKNOWN] + [NORMAL] * 5 + [UNUSED, NORMAL, NORMAL])


def distribution(model, text, dropout):
    """The exact probability of every result, by going through all decisions."""
    result, waiting = Counter(), [()]
    while waiting:
        decisions = waiting.pop()
        used = []

        def is_merged(decisions=decisions, used=used):
            used.append(decisions[len(used)] if len(used) < len(decisions) else True)
            return used[-1]

        pieces = sentencepiece_bpe(model.pieces, model.scores, model.types, text, is_merged)
        share = np.prod([1 - dropout if merged else dropout for merged in used])
        result[tuple(token for token, _ in pieces)] += share
        waiting += [(*used[:i], False) for i in range(len(decisions), len(used))]
    return result


@pytest.mark.parametrize("text", ["abca", "abcab", "abcabc"])
def test_dropout_has_the_exact_distribution(text):
    model, dropout, n = sampled_model(), 0.3, 20_000
    exact = distribution(model, text, dropout)
    assert sum(exact.values()) == pytest.approx(1)
    result = sample(model.build(all_pairs=True), [text] * n, dropout, seed=7)
    begins = [0, *result.ends.tolist()]
    ids = result.ids.tolist()
    seen = Counter(tuple(ids[a:b]) for a, b in zip(begins, begins[1:], strict=False))
    assert set(seen) <= set(exact)
    # Five standard deviations of each frequency.
    for outcome, share in exact.items():
        assert abs(seen[outcome] - n * share) <= 5 * (n * share * (1 - share)) ** 0.5 + 1
    # And what sentencepiece itself gives lies as near.
    reference = model.reference()
    theirs = Counter(
        tuple(reference.encode(text, enable_sampling=True, alpha=dropout, nbest_size=-1)) for _ in range(4000)
    )
    assert set(theirs) <= set(exact)
    for outcome, share in exact.items():
        assert abs(theirs[outcome] - 4000 * share) <= 5 * (4000 * share * (1 - share)) ** 0.5 + 1


@relaxed
@given(models("bpe"), st.lists(TEXTS, max_size=3), st.integers(0, 2**64 - 1))
def test_sampling_extremes_and_seeds(model, texts, seed):
    built, reference = model.build(all_pairs=True), model.reference()
    for dropout in (0.0, 1.0):
        result = sample(built, texts, dropout, seed)
        expected = [reference.encode(t, enable_sampling=True, alpha=dropout, nbest_size=-1) for t in texts]
        assert result.ids.tolist() == [token for ids in expected for token in ids]
    whole = sample(built, texts, 0.4, seed)
    assert whole.lengths.sum() == sum(len(t.encode()) for t in texts)
    parts = [sample(built, [text], 0.4, seed, first=i).ids.tolist() for i, text in enumerate(texts)]
    assert whole.ids.tolist() == [token for ids in parts for token in ids]


def test_dropout_outside_its_range():
    built = sampled_model().build(all_pairs=True)
    for dropout in (-0.1, 1.5, float("nan")):
        with pytest.raises(ArgumentError, match="dropout"):
            sample(built, ["abc"], dropout, 0)
    with pytest.raises(ArgumentError, match="all pairs"):
        sample(sampled_model().build(), ["abc"], 0.1, 0)


# ------------------------------------------------------------------------------------------------------ real models

REAL = [*(f"{name}/tokenizer.model" for name in ("llama2", "mistral-v1", "mistral-v3")), "barthez/sentencepiece.bpe.model"]


@functools.cache
def real(name, **options):
    content = model_path(f"sp-bpe/{name}").read_bytes()
    proto = sentencepiece_model_pb2.ModelProto.FromString(content)
    pieces, types = [p.piece for p in proto.pieces], [p.type for p in proto.pieces]
    scores = np.array([p.score for p in proto.pieces], np.float32)
    fallback = proto.trainer_spec.byte_fallback
    assert may_leave_blanks(pieces, types)
    built = build_sentencepiece_merges(pieces, scores, types, byte_fallback=fallback, **options)
    check_pieces(built.tables, len(pieces), name)
    return SentencePieceProcessor(model_proto=content), engine_of(built)


def documents(limit):
    for name in ("english", "multi", "code"):
        data = corpus_path(f"{name}.txt").read_bytes().split(b"\0")
        yield from (text.decode("utf-8", "replace") for text in data[:: max(1, len(data) // limit)])


@pytest.mark.parametrize("blank_is_mark", [False, True])
@pytest.mark.parametrize("name", REAL)
def test_real_models(name, blank_is_mark):
    reference, engine = real(name, blank_is_mark=blank_is_mark)
    texts = list(documents(60))
    normalized = [reference.normalize(text) for text in texts]
    given_texts = [text.replace(MARK, " ") for text in normalized] if blank_is_mark else normalized
    result = encode(engine, given_texts)
    for i, text in enumerate(texts):
        assert ids_of(result, i) == reference.encode(text)


@pytest.mark.parametrize("name", REAL[1:2] + REAL[3:])
def test_one_long_document(name):
    reference, engine = real(name, blank_is_mark=True)
    text = "".join(documents(60))[:1_000_000]
    assert ids_of(encode(engine, [reference.normalize(text).replace(MARK, " ")])) == reference.encode(text)


@pytest.mark.parametrize("kind", ["letter", "blanks", "letters", "pairs"])
def test_pathological_texts(kind):
    """Far from quadratic: a word of a million characters would take hours."""
    reference, engine = real(REAL[1], blank_is_mark=True)
    generator = random.Random(5)
    text = {
        "letter": "a" * 1_000_000,
        "blanks": " " * 1_000_000,
        "letters": "".join(generator.choices("abcdefghijklmnopqrstuvwxyz", k=200_000)),
        "pairs": "ab" * 500_000,
    }[kind]
    normalized = reference.normalize(text)
    assert ids_of(encode(engine, [normalized.replace(MARK, " ")])) == reference.encode(text)


# ------------------------------------------------------------------------------------ tokenizer.json over characters

JSON = ["llama2", "mistral-v1", "mistral-v3", "phi-3"]


@functools.cache
def json_model(name):
    path = model_path(f"sp-bpe/{name}/tokenizer.json")
    return jittok.load(path), Tokenizer.from_file(str(path))


def check_encodings(tok, reference, texts):
    batch = tok.encode_batch(texts, add_special_tokens=False)
    details = tok.encode_batch(texts, add_special_tokens=False, spans=True)
    for i, expected in enumerate(reference.encode_batch(texts, add_special_tokens=False)):
        assert batch[i].ids.tolist() == expected.ids
        assert details[i].ids.tolist() == expected.ids
    expected = reference.encode(texts[0], add_special_tokens=False)
    one = tok.encode(texts[0], add_special_tokens=False)
    assert list(one.word_ids) == expected.word_ids
    assert one.spans.tolist() == [list(offsets) for offsets in expected.offsets]


@pytest.mark.parametrize("name", JSON)
def test_tokenizer_json(name):
    tok, reference = json_model(name)
    assert isinstance(tok.plan.model, PieceTables)
    texts = ["", "a", " a", MARK, MARK + "a", "  a", "a b" + MARK + " c", "</s> x <s>y", "\u0958\u2fa1d\n\n", "\U0001f600 x"]
    check_encodings(tok, reference, ["Hello  world \u65e5\u672c\n x" + MARK, *texts, *documents(25)])


@pytest.mark.parametrize("name", JSON[:2])
def test_tokenizer_json_on_any_text(name):
    tok, reference = json_model(name)

    @relaxed
    @given(st.lists(st.text("ab c\n" + MARK + "é日\U0001f600<s>/1"), max_size=3))
    def check(texts):
        check_encodings(tok, reference, ["x", *texts])

    check()


def test_jittok_file_of_pieces(tmp_path):
    tok, _ = json_model("mistral-v1")
    tok.save(tmp_path / "x.jittok")
    again = jittok.load(tmp_path / "x.jittok")
    assert isinstance(again.plan.model, PieceTables)
    texts = list(documents(5))
    for options in ({}, {"spans": True}):
        first, second = tok.encode_batch(texts, **options), again.encode_batch(texts, **options)
        assert first.ids.tolist() == second.ids.tolist()
    assert list(tok.encode(texts[0]).word_ids) == list(again.encode(texts[0]).word_ids)


@st.composite
def listed_models(draw):
    """A tokenizer.json model over characters whose merges are in any order, as no training gives them."""
    alphabet = draw(st.sampled_from(["ab", "aé" + MARK, "ab" + MARK]))
    pieces = sorted(draw(st.sets(st.text(alphabet, min_size=2, max_size=5), max_size=20)) | set(alphabet[1:]))
    vocab = {piece: i for i, piece in enumerate(["<unk>", *pieces])}
    pairs = [(p[:i], p[i:]) for p in pieces for i in range(1, len(p)) if p[:i] in vocab and p[i:] in vocab]
    merges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    fallback = draw(st.booleans())
    if fallback:
        vocab.update({byte: len(vocab) + i for i, byte in enumerate(BYTES)})
    return {
        "type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": draw(st.booleans()), "byte_fallback": fallback,
        "ignore_merges": False, "vocab": vocab, "merges": [list(pair) for pair in merges],
    }  # fmt: skip


@relaxed
@given(
    listed_models(),
    st.sampled_from(["always", "first", "never", "prepend", None]),
    st.lists(st.one_of(TEXTS, st.text("ab " + MARK + "éx")), min_size=1, max_size=3),
)
@example(  # a blank that is not U+2581 is unknown, and one token with what is unknown before it
    {
        "type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": False, "ignore_merges": False,
        "vocab": {"<unk>": 0, "é": 1, MARK: 2}, "merges": [],
    },
    None,
    ["a ", "a b", "é b é"],
)  # fmt: skip
def test_listed_merges(model, scheme, texts):
    blank = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
    prepend = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": MARK}, blank]}
    metaspace = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": False}
    content = json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": prepend if scheme == "prepend" else None,
        "pre_tokenizer": metaspace if scheme in ("always", "first", "never") else None,
        "post_processor": None, "decoder": None, "model": model,
    })  # fmt: skip
    check_encodings(jittok.Tokenizer(tokenizer_json.read(content.encode(), "x")), Tokenizer.from_str(content), texts)


# ------------------------------------------------------------------------------------- added tokens between the texts

SPECIAL = ("<s>", "</s>", "<b" + MARK + ">")
TOKENS = {**dict.fromkeys(SPECIAL, True), "<x>": False, "b" + MARK + "a": False}


def added_token(number, content, special, normalized, strips, single_word):
    return {
        "id": 9000 + number, "content": content, "special": special, "normalized": normalized,
        "lstrip": strips == "left", "rstrip": strips == "right", "single_word": single_word,
    }  # fmt: skip


@st.composite
def added_tokens(draw):
    """Added tokens of all kinds; those that strip white space do it on one side, as the reference panics else."""
    strips = draw(st.sampled_from(["left", "right"]))
    return [
        added_token(
            number, content, special, draw(st.booleans()), draw(st.sampled_from([None, strips])),
            draw(st.sampled_from([False, False, True])),
        )
        for number, (content, special) in enumerate(TOKENS.items())
        if draw(st.booleans())
    ]  # fmt: skip


WITH_TOKENS = st.lists(
    st.one_of(st.sampled_from([*TOKENS, *SPECIAL, " ", MARK, "  ", "a", " b"]), st.text("ab " + MARK + "éx\n<", max_size=6)),
    max_size=8,
).map("".join)


class LongWay(Engine):
    """An engine that rewrites every text step by step, and knows where each codepoint comes from."""

    def _encode_chunk(self, data, indptr, first_document, enabled, output, ends):
        data, indptr = data[int(indptr[0]) :], indptr - indptr[0]
        parts = self._parts(data, indptr, first_document, enabled, True)
        wanted = output.spans is not None, output.words is not None
        result = self._merge(parts, indptr, first_document, *wanted)
        np.add(result.indptr[1:], output.used, out=ends)
        output.add(result.ids, result.spans, result.word_ids, result.shown)


def check_like_the_long_way(tok, texts, **options):
    long_way = LongWay(tok.plan)
    for wanted in ({}, {"spans": True}, {"words": True}, {"spans": True, "words": True}):
        results = [encode(one, texts, **wanted, **options) for one in (tok._engine, long_way)]
        for name in ("ids", "indptr", "spans", "word_ids"):
            ours, expected = (getattr(result, name) for result in results)
            assert ours is expected is None or ours.tolist() == expected.tolist(), (wanted, name)
        assert (results[0].shown or {}) == (results[1].shown or {})


@relaxed
@given(
    listed_models(),
    st.sampled_from(["always", "first", "never", "prepend"]),
    added_tokens(),
    st.lists(WITH_TOKENS, min_size=1, max_size=4),
)
def test_added_tokens_in_texts(model, scheme, added, texts):
    blank = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
    prepend = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": MARK}, blank]}
    metaspace = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": False}
    content = json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": prepend if scheme == "prepend" else None,
        "pre_tokenizer": None if scheme == "prepend" else metaspace,
        "post_processor": None, "decoder": None, "model": model,
    })  # fmt: skip
    tok = jittok.Tokenizer(tokenizer_json.read(content.encode(), "x"))
    check_encodings(tok, Tokenizer.from_str(content), texts)
    for special in ("parse", {token["content"] for token in added[::2] if token["special"]}):
        check_like_the_long_way(tok, texts, special=special)


@functools.cache
def real_with_tokens(name):
    tok = jittok.load(model_path(name))
    return tok, [content for content in tok.special_tokens if content][:6]


@pytest.mark.parametrize(
    "name",
    [*(f"sp-bpe/{name}/tokenizer.json" for name in JSON), "sp-bpe/barthez", "gguf/llama-spm"],
)
def test_added_tokens_in_texts_of_real_models(name):
    tok, tokens = real_with_tokens(name)
    generator = random.Random(7)
    texts = []
    for text in documents(8):
        cuts = sorted(generator.sample(range(len(text) + 1), min(6, len(text))))
        pieces = [text[i:j] for i, j in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        texts.append("".join(piece + generator.choice([*tokens, *tokens, MARK, "  ", ""]) for piece in pieces))
    texts += ["", tokens[0], tokens[0] * 3, " " + tokens[0] + " ", MARK + tokens[0] + MARK, tokens[0] + "a" + tokens[0]]
    for special in ("parse", "text", {tokens[0]}):
        check_like_the_long_way(tok, texts, special=special)

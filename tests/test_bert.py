"""BERT's normalizer, splits and decoder against tokenizers: one table for clean-up, and cuts that drop blanks."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_normalize import SCALARS, reference, rewrite, segments

import jittok
from jittok import engine, spec
from jittok.build.plan import SplitStage, _stages, build_plan
from jittok.formats import tokenizer_json
from jittok.formats.tokenizer_json import assign_added_ids
from jittok.kernels import normalize as kernels
from jittok.kernels.split import ISOLATED, split_segments
from jittok.rewriting import build_rewriter
from jittok.tokenizer import Tokenizer
from jittok.unicode import bert, intervals
from jittok.unicode.normalization import load_normalization
from jittok.vocabulary import WHITE_SPACE

tokenizers = pytest.importorskip("tokenizers")

JITTED = hasattr(kernels.clean_up, "py_func")
OPTIONS = list(itertools.product([True, False], [True, False], [None, True, False], [True, False]))
#: Every step alone, and the usual ones.
SOME_OPTIONS = [
    (True, True, None, True),
    (True, True, None, False),
    (True, False, False, False),
    (False, True, False, False),
    (False, False, True, False),
    (False, False, False, True),
]


@functools.cache
def bert_reference(options):
    return reference([spec.BertNormalizer(*options)])


def normalized(options, text):
    names = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
    return tokenizers.normalizers.BertNormalizer(**dict(zip(names, options, strict=True))).normalize_str(text)


# -------------------------------------------------------------------------------------------------- normalizer


@pytest.mark.parametrize("options", SOME_OPTIONS)
def test_every_codepoint(options):
    rewriter = build_rewriter([spec.BertNormalizer(*options)])
    joined = rewriter.apply_strings(SCALARS)
    names = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
    normalizer = tokenizers.normalizers.BertNormalizer(**dict(zip(names, options, strict=True)))
    assert joined == [normalizer.normalize_str(character) for character in SCALARS]


def test_strip_accents_takes_marks_and_nothing_apart():
    normalizer = tokenizers.normalizers.StripAccents()
    rewriter = build_rewriter([spec.StripAccents()])
    expected = [normalizer.normalize_str(character) for character in SCALARS]
    assert rewriter.apply_strings(SCALARS) == expected
    suspected = rewriter.changes(*segments(SCALARS)).tolist()
    assert suspected == [new != old for new, old in zip(expected, SCALARS, strict=True)]
    assert rewrite(rewriter, ["e\u0301\xe9"]) == [("e\xe9", [(0, 1), (2, 3)])]


def interesting() -> str:
    """Codepoints of every kind that clean-up tells apart, marks that stay above all."""
    data = load_normalization()
    random = np.random.default_rng(5)
    left_out = bert.nonspacing_marks()
    marks = data["combining_codepoints"]
    kept = marks[~intervals.contains(left_out, marks)]
    chosen = [ord(c) for c in "aeIZ \t\n\x00\x0b\x7f\x85\xa0"] + [0x130, 0x3A3, 0xAC00, 0xAC01, 0x4E2D, 0xF900]
    chosen += [0x2FA1D, 0x10400, 0x1E9B, 0x344, 0x345, 0xF73, 0xF75, 0xF81, 0x1D15E, 0x1D160, 0x200D, 0xFFFD, 0xE000]
    chosen += [0x301, 0x323, 0x334, 0x3099, 0x900, 0x93C, 0x958, 0x9CB, 0x2B820, 0x2B920, 0x3000, 0x1F600]
    chosen += kept.tolist()
    for codepoints in (data["canonical_from"], data["lowercase_from"], intervals.members(left_out)):
        chosen += random.choice(codepoints, 12, replace=False).tolist()
    return "".join(map(chr, sorted(set(chosen))))


TEXT = st.one_of(
    st.text(alphabet=interesting(), max_size=12),
    st.text(alphabet="e\xe9\u0301\u0323\u302e\u302f\U0001d165\U0001d16d\ua953\u1b44\u0900\u200b", max_size=8),
)


@settings(max_examples=400 if JITTED else 50, deadline=None)
@given(st.sampled_from(OPTIONS), TEXT, TEXT)
def test_random_text_with_alignment(options, text, other):
    rewriter = build_rewriter([spec.BertNormalizer(*options)])
    tokenizer = bert_reference(options)
    texts = [text, "", "Abc " * 20 + text, text + other]
    for given_, (new, sources) in zip(texts, rewrite(rewriter, texts), strict=True):
        assert new == normalized(options, given_)
        assert sources == tokenizer.encode(given_).offsets
    assert rewriter.apply_strings(texts) == [normalized(options, given_) for given_ in texts]


def test_marks_out_of_order_are_sorted_first():
    rewriter = build_rewriter([spec.BertNormalizer()])
    # Two marks of Hangul and of music that stay, in the wrong order, with one between them that does not.
    text = "A\u302e\u0301\U0001d165 \xe9"
    tokenizer = bert_reference((True, True, None, True))
    assert normalized((True, True, None, True), text) == "a\U0001d165\u302e e"
    assert rewrite(rewriter, [text]) == [("a\U0001d165\u302e e", tokenizer.encode(text).offsets)]


BLOCKS = st.sampled_from(["Plain Words, ", "x", "\n", "\xe9", "\u4e2d", "\x01", "\u0416", "E" * 63, "e" * 64, "\u0130"])


@settings(max_examples=300 if JITTED else 30, deadline=None)
@given(st.lists(BLOCKS, max_size=12), st.sampled_from(OPTIONS))
def test_blocks_of_ascii_end_anywhere(parts, options):
    text = "".join(parts)
    rewriter = build_rewriter([spec.BertNormalizer(*options)])
    done = rewrite(rewriter, [text, *parts])
    assert done[0] == (normalized(options, text), bert_reference(options).encode(text).offsets)
    assert [new for new, _ in done[1:]] == [normalized(options, part) for part in parts]


def test_text_that_stays_in_its_place_needs_no_alignment():
    rewriter = build_rewriter([spec.BertNormalizer()])

    def apply(texts, **options):
        return rewriter.apply(*segments(texts), **options)

    stays = apply(["Some\tASCII, ", "", "\u0416 \u2019"], may_stay=True)
    assert stays.stays
    assert len(stays.source_start) == 0
    assert stays.data[: stays.ends[-1]].tobytes().decode() == "some ascii, \u0436 \u2019"
    assert stays.starts.tolist() == [0, 12, 12]
    for text in ("x\x00", "\xe9", "\u4e2d", "\u3000", "\u212a", "\uac00"):
        moved = apply(["Ab", text], may_stay=True)
        assert not moved.stays
        assert len(moved.source_start) == moved.codepoint_indptr[-1]
    assert not apply(["Ab"]).stays
    assert not apply([text], may_stay=True, alignment=False).stays
    chain = build_rewriter([spec.Lowercase(), spec.BertNormalizer()])
    assert not chain.apply(*segments(["Ab"]), may_stay=True).stays


def test_no_text_and_pickle():
    import pickle

    rewriter = pickle.loads(pickle.dumps(build_rewriter([spec.BertNormalizer(), spec.StripAccents()])))
    assert rewriter.steps == (spec.BertNormalizer(), spec.StripAccents())
    done = rewriter.apply(*segments([]))
    assert len(done.starts) == 0
    assert rewriter.changes(*segments(["", "a", "\xe9"])).tolist() == [False, False, True]
    alone = build_rewriter([spec.BertNormalizer(lowercase=False)])
    assert alone.changes(*segments(["", "a"])).tolist() == [False, True]


def test_no_codepoint_needs_more_room_than_there_is():
    grown = build_rewriter([spec.BertNormalizer(False, True, True, True)]).apply(*segments(SCALARS), alignment=False)
    lengths = np.array([len(character.encode()) for character in SCALARS])
    assert (grown.ends - grown.starts <= 3 * lengths).all()


# ------------------------------------------------------------------------------------------------------- splits

BLANKS = "".join(map(chr, WHITE_SPACE))
BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
SPLITS = {
    "BertPreTokenizer": (spec.BertPreTokenizer(),),
    "Whitespace": (spec.Whitespace(),),
    "WhitespaceSplit": (spec.WhitespaceSplit(),),
    "CharDelimiterSplit": (spec.CharDelimiterSplit("a"),),
    "Sequence": (spec.WhitespaceSplit(), spec.Punctuation()),
    **{f"Punctuation {behavior}": (spec.Punctuation(behavior),) for behavior in BEHAVIORS},
}
#: Those that a model which skips white space can be given in one cut.
SKIPPING = ["BertPreTokenizer", "Whitespace", "WhitespaceSplit", "Sequence"]
#: Every codepoint of the planes that have punctuation, and some of the others, between letters.
EVERYTHING = "x".join(c for c in SCALARS if ord(c) < 0x20000 or ord(c) % 101 == 0)


def pre_tokenizer(name):
    pre = tokenizers.pre_tokenizers
    if name == "Sequence":
        return pre.Sequence([pre.WhitespaceSplit(), pre.Punctuation()])
    if name == "CharDelimiterSplit":
        return pre.CharDelimiterSplit("a")
    kind, _, behavior = name.partition(" ")
    return getattr(pre, kind)(*[behavior] if behavior else [])


def stage_pieces(name, text):
    """The pre-tokens of a text as (text, (first, last)), by the stages of a plan."""
    stages, last, skips = _stages(SPLITS[name], may_skip_blanks=False)
    assert not skips
    data, starts, ends = segments([text])
    parts = engine.Parts(data, np.zeros(1, np.int64), starts, ends, np.array([-1], np.int32), None)
    for stage in stages:
        assert isinstance(stage, SplitStage)
        parts = engine._cut(parts, stage)
    return cut_pieces(last, data, parts.start, parts.end)


def cut_pieces(last, data, starts, ends):
    """The pieces of the last cut, by the automaton."""
    outs = [np.empty(len(data) + 1, np.int64) for _ in range(3)]
    arrays = [engine._frozen(array) for array in (data, starts, ends)]
    n = split_segments(last, ISOLATED, 0, *arrays, *outs)
    number = np.cumsum((data & 0xC0) != 0x80) - 1
    content = data.tobytes()
    bounds = zip(outs[0][:n].tolist(), outs[1][:n].tolist(), strict=True)
    return [(content[a:b].decode(), (int(number[a]), int(number[b - 1]) + 1)) for a, b in bounds]


def without_blanks(pieces):
    """What a model sees of pieces that begin with white space."""
    for piece, (_, end) in pieces:
        word = piece.lstrip(BLANKS)
        if word:
            yield word, (end - len(word), end)


@pytest.mark.skipif(not JITTED, reason="a million codepoints take too long in plain Python")
@pytest.mark.parametrize("name", SPLITS)
def test_every_codepoint_is_cut_as_the_reference_cuts_it(name):
    assert stage_pieces(name, EVERYTHING) == pre_tokenizer(name).pre_tokenize_str(EVERYTHING)


SPLIT_TEXT = st.text(
    alphabet="aab.,$_\u2014\u055a\u166d\u061d\u200d\xb2\u4e2d\xe9\u0301 \n\u3000\u2028\x1c\x85", max_size=20
)


@settings(max_examples=150 if JITTED else 30, deadline=None)
@given(st.sampled_from(sorted(SPLITS)), SPLIT_TEXT)
def test_random_text_is_cut_as_the_reference_cuts_it(name, text):
    assert stage_pieces(name, text) == pre_tokenizer(name).pre_tokenize_str(text)


@functools.cache
def skipping_tables(name):
    stages, last, skips = _stages(SPLITS[name], may_skip_blanks=True)
    assert (stages, skips) == ([], True)
    return last


@pytest.mark.skipif(not JITTED, reason="a million codepoints take too long in plain Python")
@pytest.mark.parametrize("name", SKIPPING)
def test_one_cut_with_blanks_in_front_gives_the_same_words(name):
    pieces = cut_pieces(skipping_tables(name), *segments([EVERYTHING]))
    assert list(without_blanks(pieces)) == pre_tokenizer(name).pre_tokenize_str(EVERYTHING)


@functools.cache
def byte_engine(name):
    """An engine whose ids are bytes, so that word numbers tell where the cuts are."""
    plan = build_plan(spec.TokenizerSpec(spec.RankModel({bytes([byte]): byte for byte in range(256)})))
    return engine.Engine(dataclasses.replace(plan, last_split=skipping_tables(name)))


@settings(max_examples=150 if JITTED else 15, deadline=None)
@given(st.sampled_from(SKIPPING), st.lists(SPLIT_TEXT, max_size=4), st.integers(0, 2000))
def test_masks_and_automaton_cut_at_the_same_places(name, texts, size):
    texts = [*texts, "word. " * (size // 6) + "".join(texts)]
    data, starts, ends = segments(texts)
    encoded = byte_engine(name).encode(data, np.append(starts, ends[-1]), words=True)
    for i, text in enumerate(texts):
        words = encoded.word_ids[encoded.indptr[i] : encoded.indptr[i + 1]]
        cuts = np.flatnonzero(np.diff(words, prepend=-1)).tolist()
        content = text.encode()
        pieces = [content[a:b].decode() for a, b in zip(cuts, [*cuts, len(content)][1:], strict=True)]
        assert pieces == [piece for piece, _ in cut_pieces(skipping_tables(name), *segments([text]))]
        assert [word for word, _ in without_blanks([(piece, (0, 0)) for piece in pieces])] == [
            word for word, _ in pre_tokenizer(name).pre_tokenize_str(text)
        ]


def test_only_the_last_cut_may_leave_blanks():
    stages, _, skips = _stages((spec.Digits(True), spec.BertPreTokenizer()), may_skip_blanks=True)
    assert (len(stages), skips) == (1, True)
    stages, _, skips = _stages((spec.BertPreTokenizer(), spec.Digits(True)), may_skip_blanks=True)
    assert (len(stages), skips) == (2, False)
    stages, _, skips = _stages((spec.BertPreTokenizer(),), may_skip_blanks=False)
    assert (len(stages), skips) == (1, False)


# ------------------------------------------------------------------------------------------------ whole chunks


@pytest.fixture(scope="module")
def cleaned():
    """The default tokenizer with BERT's clean-up, and what the reference makes of it."""
    made = dataclasses.replace(
        jittok.load_default().spec,
        normalizers=(spec.BertNormalizer(),),
        added_tokens=(spec.AddedToken(70_000, "[MASK]", special=True, normalized=False),),
    )
    made = dataclasses.replace(made, added_tokens=assign_added_ids(made.added_tokens, made.model.vocab))
    return Tokenizer(made), tokenizers.Tokenizer.from_str(tokenizer_json.write(made).decode())


@pytest.mark.parametrize("chunk_bytes", [1, 60, 1000])
@pytest.mark.parametrize("alphabet", ["Ab\n.", "Ab\xe9\u0416\u4e2d\x00\u3000 "])
def test_ids_and_spans_in_chunks(monkeypatch, cleaned, chunk_bytes, alphabet):
    ours, reference_ = cleaned
    random = np.random.default_rng(chunk_bytes)
    parts = [*alphabet, *alphabet, "[MASK]"]
    texts = ["".join(random.choice(parts, random.integers(0, 60))) for _ in range(80 if JITTED else 12)]
    expected = reference_.encode_batch(texts, add_special_tokens=False)
    monkeypatch.setattr(engine, "CHUNK_BYTES", chunk_bytes)
    monkeypatch.setattr(engine, "PARALLEL_BYTES", 1)
    for threads in (1, 2):
        batch = ours.encode_batch(texts, spans=True, threads=threads, add_special_tokens=False)
        assert batch.to_lists() == [encoding.ids for encoding in expected]
        spans = [[tuple(span) for span in batch[i].spans.tolist()] for i in range(len(batch))]
        assert spans == [encoding.offsets for encoding in expected]
        assert ours.encode_batch(texts, threads=threads, add_special_tokens=False).to_lists() == batch.to_lists()

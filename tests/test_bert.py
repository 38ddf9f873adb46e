"""BERT's normalizer, splits and decoder against tokenizers: one table for clean-up, and cuts that drop blanks."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_normalize import SCALARS, reference, rewrite, segments

from jittok import spec
from jittok.kernels import normalize as kernels
from jittok.rewriting import build_rewriter
from jittok.unicode import bert, intervals
from jittok.unicode.normalization import load_normalization

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

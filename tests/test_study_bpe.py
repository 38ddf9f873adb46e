"""Four encoders of byte pairs: each other's oracle, and the engine's."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jittok
from jittok import spec, study
from jittok.errors import ArgumentError, ArgumentTypeError

#: The example of the article.
FREQUENCIES = {
    ("e", "r"): 25,
    ("h", "e"): 12,
    ("l", "l"): 11,
    ("l", "o"): 10,
    ("he", "ll"): 4,
    ("lo", "w"): 3,
    ("hell", "o"): 2,
}


@pytest.mark.parametrize("algorithm", study.ALGORITHMS)
def test_example(algorithm):
    assert study.bpe("lower", FREQUENCIES, algorithm) == ["low", "er"]
    assert study.bpe("hello", FREQUENCIES, algorithm) == ["hello"]
    assert study.bpe("hello lower", FREQUENCIES, algorithm=algorithm) == ["hello", " ", "low", "er"]
    assert study.bpe("", FREQUENCIES, algorithm) == []
    assert study.bpe("x", {}, algorithm) == ["x"]
    assert study.bpe("unknown 中文 \U0001f642", FREQUENCIES, algorithm) == list("unknown 中文 \U0001f642")


@st.composite
def merge_lists(draw, alphabet="ab"):
    """Merges whose parts exist, in any order of ranks."""
    symbols = list(alphabet)
    merges = []
    for _ in range(draw(st.integers(0, 10))):
        pair = draw(st.sampled_from(symbols)), draw(st.sampled_from(symbols))
        if pair not in merges:
            merges.append(pair)
            if pair[0] + pair[1] not in symbols:
                symbols.append(pair[0] + pair[1])
    return draw(st.permutations(merges))


def by_definition(text, merges):
    """Merge the leftmost pair of the lowest rank, until there is none."""
    rank = {pair: number for number, pair in reversed(list(enumerate(merges)))}
    symbols = list(text)
    while True:
        known = [(rank[pair], i) for i, pair in enumerate(zip(symbols, symbols[1:], strict=False)) if pair in rank]
        if not known:
            return symbols
        _, i = min(known)
        symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]


@settings(max_examples=300, deadline=None)
@given(merge_lists("abc"), st.text("abc", max_size=60))
def test_all_are_what_the_definition_says(merges, text):
    expected = by_definition(text, merges)
    for algorithm in study.ALGORITHMS:
        assert study.bpe(text, merges, algorithm) == expected, algorithm


@settings(max_examples=60, deadline=None)
@given(merge_lists("ab"), st.text("ab", max_size=200))
def test_the_engine_gives_the_same(merges, text):
    symbols = dict.fromkeys("ab")
    for left, right in merges:
        symbols.update(dict.fromkeys((left, right, left + right)))
    model = spec.BPEModel({symbol: number for number, symbol in enumerate(symbols)}, tuple(merges))
    base = jittok.load_default().spec
    tok = jittok.Tokenizer(
        dataclasses.replace(
            base, model=model, normalizers=(), pre_tokenizers=(), post_processors=(), decoders=(), added_tokens=()
        )
    )
    assert tok.encode(text).tokens == study.bpe(text, merges)


@pytest.mark.parametrize("algorithm", ["heap_tree", "heap_list"])
def test_long_texts(algorithm):
    merges = [("a", "a"), ("aa", "aa"), ("b", "a"), ("aaaa", "ba")]
    text = "aaab" * 5000 + "a" * 4999
    encoder = study.BytePairEncoder(merges, algorithm)
    assert encoder.encode(text) == study.BytePairEncoder(merges, "naive").encode(text)
    assert encoder.encode("aaaaba") == ["aaaaba"]


def test_words_are_an_approximation():
    merges = [("a", "."), (".", "b"), (" ", "c"), ("d", "\u2581"), ("\u2581", "e")]
    assert study.bpe("a.b", merges) == ["a.", "b"]
    assert study.bpe("a.b", merges, "naive_presplit") == ["a", ".", "b"]
    assert study.bpe("d\u2581e c", merges, "naive_presplit") == ["d", "\u2581e", " c"]
    assert study.bpe("d\u2581e c", merges) == ["d\u2581", "e", " c"]


def test_equal_frequencies_and_pairs_given_twice():
    assert study.bpe("abc", {("b", "c"): 5, ("a", "b"): 5}) == ["a", "bc"]
    assert study.bpe("abc", [("a", "b"), ("b", "c"), ("a", "b")]) == ["ab", "c"]


@pytest.mark.parametrize(
    ("merges", "algorithm", "kind", "message"),
    [
        ([], "other", ArgumentError, "expected one of naive"),
        (["ab"], "naive", ArgumentTypeError, "pairs of str"),
        ([("a", 1)], "naive", ArgumentTypeError, "pairs of str"),
        ([("a", "")], "naive", ArgumentError, "empty"),
    ],
)
def test_wrong_arguments(merges, algorithm, kind, message):
    with pytest.raises(kind, match=message):
        study.bpe("text", merges, algorithm)

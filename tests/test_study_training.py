"""Three ways to learn merges: each other's oracle, and that of the textbook trainer of the other tests."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jittok
from jittok import study
from jittok.errors import ArgumentError, ArgumentTypeError

HAMLET = (Path(jittok.__file__).parent / "data" / "hamlet.txt").read_text(encoding="utf-8")


def by_definition(words, n_merges):
    """Count everything anew with regular expressions over symbols joined by blanks."""
    texts = {" ".join(word): count for word, count in words.items()}
    merges = []
    while len(merges) < n_merges:
        counts = Counter()
        for text, count in texts.items():
            symbols = text.split()
            for i in range(len(symbols) - 1):
                counts[symbols[i], symbols[i + 1]] += count
        if not counts:
            break
        best = sorted(counts, key=lambda pair: (-counts[pair], pair))[0]
        merges.append(best)
        pattern = re.compile(r"(?<!\S)" + re.escape(" ".join(best)) + r"(?!\S)")
        texts = {pattern.sub("".join(best), text): count for text, count in texts.items()}
    return merges


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.text("abc", min_size=1, max_size=12), st.integers(1, 5), max_size=12), st.integers(0, 30))
def test_all_are_what_the_definition_says(words, n_merges):
    expected = by_definition(words, n_merges)
    for algorithm in study.TRAINING_ALGORITHMS:
        assert study.learn_merges(words, n_merges, algorithm) == expected, algorithm


def test_hamlet():
    words = Counter(re.findall(r"\w+", HAMLET.lower()))
    expected = study.learn_merges(words, 60, "textbook")
    assert study.learn_merges(words, 60, "incremental") == study.learn_merges(words, 60, "heap") == expected
    # The trainer of the engine breaks ties in another way, which rarely matters so early.
    trained = jittok.train_bpe([HAMLET.lower()], vocab_size=100, pre_tokenizer="Whitespace")
    ours = [tuple(pair) for pair in trained.spec.model.merges]
    assert len(set(ours[:20]) & set(expected[:20])) >= 18


def test_ends_when_nothing_is_left():
    for algorithm in study.TRAINING_ALGORITHMS:
        assert study.learn_merges({"ab": 1}, 10, algorithm) == [("a", "b")]
        assert study.learn_merges({}, 10, algorithm) == []


def test_wrong_arguments():
    with pytest.raises(ArgumentError, match="expected one of textbook"):
        study.learn_merges({"ab": 1}, 1, "other")
    with pytest.raises(ArgumentError, match="0 or more"):
        study.learn_merges({"ab": 1}, -1)


@pytest.mark.parametrize("algorithm", study.TRAINING_ALGORITHMS)
def test_words_that_never_occur_and_wrong_ones(algorithm):
    assert study.learn_merges({"a": 5, "aaa": 0}, 9, algorithm) == []
    with pytest.raises(ArgumentError, match="expected 0 or more"):
        study.learn_merges({"ab": -1}, 1, algorithm)
    for wrong in (["low"], {"low": "x"}, {b"low": 3}):
        with pytest.raises(ArgumentTypeError, match="words"):
            study.learn_merges(wrong, 1, algorithm)

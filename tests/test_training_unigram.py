"""Training of unigram models: pieces, their order and their float32 scores are sentencepiece's own."""

from __future__ import annotations

import io
import math
import os
import random
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import reference_training_unigram as textbook
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jittok
from jittok.errors import (
    ArgumentError,
    ArgumentTypeError,
    FormatError,
    MissingFileError,
    TrainingWarning,
    UnsupportedError,
)
from jittok.formats import sentencepiece_model
from jittok.kernels import suffix_array as suffix_kernels
from jittok.kernels import train_unigram as kernels
from jittok.training import followers, sentencepiece_corpus, unigram
from jittok.training.progress import Checkpoint
from jittok.training.sentencepiece_corpus import count_sentencepiece_words
from jittok.training.sentencepiece_options import sentencepiece_options

sentencepiece = pytest.importorskip("sentencepiece")
DATA = os.environ.get("JITTOK_TEST_DATA")
SYLLABLES = "the cat sat on a mat and then that rat ran to hat of man who had sand in his hand ing er ed".split()
WORDS = [a + b for a in SYLLABLES for b in SYLLABLES[::3]]


def reference(lines, vocab_size, threads=16, **options):
    """The file that sentencepiece trains."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=out,
        model_type="unigram",
        minloglevel=4,
        vocab_size=vocab_size,
        num_threads=threads,
        **options,
    )
    return out.getvalue()


def content(spec):
    model = spec.model
    return list(zip(model.pieces, model.scores, model.types, strict=True))


def check(lines, vocab_size, threads=16, **options):
    """Train both ways and compare; returns the tokenizer."""
    expected = sentencepiece_model.read(reference(lines, vocab_size, threads, **options), "reference")
    trained = jittok.train_unigram(lines, vocab_size=vocab_size, reference_threads=threads, threads=1, **options)
    assert content(trained.spec) == content(expected)
    return trained


def some_lines(n=60, seed=1, words=WORDS):
    draw = random.Random(seed)
    return [" ".join(draw.choices(words, k=draw.randrange(1, 9))) for _ in range(n)]


def corpus(name, size):
    if DATA is None:
        pytest.skip("JITTOK_TEST_DATA is not set: no corpora")
    with open(Path(DATA, "corpora", f"{name}.txt"), encoding="utf-8") as file:
        return file.read(size).split("\n")


# ------------------------------------------------------------------------------------------------- suffix arrays


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(1, 4), max_size=60))
def test_suffix_array(symbols):
    text = [*symbols, 0]
    order = suffix_kernels.suffix_array(np.array(text, np.int32), 5)
    assert order.tolist() == sorted(range(len(text)), key=lambda i: text[i:])


@pytest.mark.parametrize("period", [1, 2, 3, 1000])
def test_suffix_array_of_repetitions(period):
    text = np.append(np.arange(20_000) % period + 1, 0).astype(np.int32)
    order = suffix_kernels.suffix_array(text, period + 1)
    assert sorted(order.tolist()) == list(range(len(text)))
    rank = np.empty(len(text) + 1, np.int64)
    rank[order] = np.arange(len(text))
    rank[len(text)] = -1
    # Each suffix is smaller than the next in order: by its first symbol, or by what comes after.
    a, b = order[:-1], order[1:]
    assert ((text[a] < text[b]) | ((text[a] == text[b]) & (rank[a + 1] < rank[b + 1]))).all()


def repeats_of(parts, weights, most, step):
    text, part_of = [], []
    for number, part in enumerate(parts):
        text += [*part, suffix_kernels.SEPARATOR]
        part_of += [number] * (len(part) + 1)
    text = np.array([*text, 0], np.int32)
    part_of = np.array([*part_of, len(parts)], np.int32)
    order = suffix_kernels.suffix_array(text, 10)
    stack, state = np.zeros((most + 3, 3), np.int64), np.zeros(suffix_kernels.REPEATS_STATE, np.int64)
    repeats = suffix_kernels.new_repeats(step + most + 2)
    found, stop = [], 0
    while stop <= len(text):
        stop = min(stop + step, len(text) + 1)
        suffix_kernels.right_maximal_repeats(
            text, order, part_of, np.array([*weights, 0]), most, stop, stack, state, repeats
        )
        for k in range(state[suffix_kernels.FOUND]):
            first = order[repeats.left[k]]
            found.append((tuple(text[first : first + repeats.length[k]].tolist()), int(repeats.weight[k])))
    return found


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.lists(st.integers(2, 4), max_size=7), st.integers(1, 5)), max_size=6),
    st.integers(1, 8),
    st.integers(1, 30),
)
def test_right_maximal_repeats(weighted, most, step):
    parts, weights = [part for part, _ in weighted], [weight for _, weight in weighted]
    following, counts = {}, {}
    for number, part in enumerate(parts):
        for first in range(len(part)):
            for end in range(first + 1, min(len(part), first + most) + 1):
                found = tuple(part[first:end])
                following.setdefault(found, set()).add(part[end] if end < len(part) else (number, first))
                counts[found] = counts.get(found, 0) + weights[number]
    expected = {found: counts[found] for found, after in following.items() if len(after) > 1}
    found = repeats_of(parts, weights, most, step)
    assert dict(found) == expected
    assert len(found) == len(expected)


# ------------------------------------------------------------------------------------------------------ functions


def test_sums_are_those_of_the_c_library():
    draw = np.random.default_rng(1)
    a = -np.abs(draw.normal(0, 30, 4000)).astype(np.float32)
    b = (a + draw.normal(0, 8, 4000)).astype(np.float32)
    b[::50], b[1::50], a[2::50] = a[::50], -np.inf, 0
    table = kernels.functions()
    for x, y in zip(a, b, strict=True):
        exact = kernels.log_sum_exactly(max(x, y), min(x, y))
        assert kernels.log_sum(x, y, table.log_sum) == exact
        assert math.isclose(exact, np.logaddexp(float(x), float(y)), rel_tol=1e-6, abs_tol=1e-6)


def test_added_probabilities_are_those_of_the_c_library():
    draw = np.random.default_rng(2)
    table = kernels.functions().exp
    for x, count, before in zip(
        -draw.exponential(20, 3000), draw.exponential(50, 3000), draw.exponential(9, 3000), strict=True
    ):
        expected = np.array([before], np.float32)
        exact = np.float32(float(expected[0]) + float(count) * math.exp(float(np.float32(x))))
        kernels.add_probability(expected, 0, count, np.float32(x), table)
        assert expected[0] == exact


@pytest.mark.parametrize("x", [0.5, 1.0, 6.9, 7.0, 123.4, 1e9])
def test_digamma(x):
    step = 1e-3 * x
    slope = (math.lgamma(x + step) - math.lgamma(x - step)) / (2 * step)
    assert math.isclose(kernels.digamma(x), slope, rel_tol=1e-4, abs_tol=1e-4)
    assert kernels.digamma(x) == textbook.digamma(x)


# ---------------------------------------------------------------------------------------- against the references


OPTIONS = {
    "defaults": {},
    "one thread": {"threads": 1},
    "two threads": {"threads": 2},
    "byte fallback": {"byte_fallback": True},
    "symbols": {"user_defined_symbols": ["at", "\u2581th"], "control_symbols": ["<pad2>"]},
    "required": {"required_chars": "z\u00e9"},
    "no split at blanks": {"split_by_whitespace": False},
    "suffix": {"treat_whitespace_as_suffix": True},
    "no prefix": {"add_dummy_prefix": False},
    "digits": {"split_digits": True},
    "numbers": {"split_by_number": False},
    "scripts": {"split_by_unicode_script": False},
    "runs of blanks": {"allow_whitespace_only_pieces": True, "remove_extra_whitespaces": False},
    "short pieces": {"max_sentencepiece_length": 3},
    "few seeds": {"seed_sentencepiece_size": 20},
    "seeds by size": {"seed_sentencepiece_size": 0},
    "slow": {"shrinking_factor": 0.9, "num_sub_iterations": 3},
    "coverage": {"character_coverage": 0.98},
    "delimiter": {"pretokenization_delimiter": "n"},
    "identity": {"normalization_rule_name": "identity"},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name):
    options = {"hard_vocab_limit": False, **OPTIONS[name]}
    lines = some_lines() + ["x1 22 b3 7 10  201", "\u00e9t\u00e9 \u3042\u6f22 \u3042\u6f22 z", "  ", "a  b   a  b"]
    check(lines, 60 + 256 * ("byte_fallback" in options), **options)


ALPHABETS = ["ab", "abc", "ab1", "ab\u00e9", "a\u201cb", "a\u3042\u6f22b", "abcdefgh"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(
    st.sampled_from(ALPHABETS).flatmap(
        lambda letters: st.lists(st.text(letters + " ", min_size=1, max_size=25), min_size=2, max_size=20)
    ),
    st.integers(8, 40),
    st.sampled_from([1, 2, 3, 16]),
    st.sampled_from([name for name in OPTIONS if "byte" not in name and "thread" not in name and name != "identity"]),
)
def test_tiny_corpora(lines, vocab_size, threads, name):
    options = {"hard_vocab_limit": False, **OPTIONS[name]}
    try:
        expected = reference(lines, vocab_size, threads, **options)
    except (RuntimeError, ValueError, OSError):
        with pytest.raises(ArgumentError):
            jittok.train_unigram(lines, vocab_size=vocab_size, reference_threads=threads, **options)
        return
    trained = jittok.train_unigram(lines, vocab_size=vocab_size, reference_threads=threads, threads=1, **options)
    assert content(trained.spec) == content(sentencepiece_model.read(expected, "reference"))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.text("ab ", min_size=1, max_size=12).map(str.split).filter(bool), min_size=2, max_size=8),
    st.integers(6, 20),
    st.sampled_from([1, 3]),
)
def test_textbook(lists, vocab_size, threads):
    lines = [" ".join(words) for words in lists]
    sentences = ["".join(textbook.BLANK + word for word in words) for words in lists]
    expected = textbook.train(sentences, vocab_size, threads)
    trained = jittok.train_unigram(
        lines, vocab_size=vocab_size, reference_threads=threads, threads=1, character_coverage=1.0, hard_vocab_limit=False
    )
    assert [(piece, score) for piece, score, kind in content(trained.spec) if kind == 1] == expected


@pytest.mark.parametrize(
    ("name", "size", "vocab_size", "threads"),
    [("english", 100_000, 3000, 16), ("english", 60_000, 1000, 1), ("multi", 50_000, 1500, 2), ("code", 60_000, 1000, 16)],
)
@pytest.mark.filterwarnings("ignore::jittok.errors.TrainingWarning")
def test_corpora(name, size, vocab_size, threads, tmp_path):
    lines = corpus(name, size)
    expected = reference(lines, vocab_size, threads)
    trained = jittok.train_unigram(lines, vocab_size=vocab_size, reference_threads=threads)
    assert content(trained.spec) == content(sentencepiece_model.read(expected, "reference"))
    path = tmp_path / "trained.model"
    trained.save(path)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=expected)
    own = sentencepiece.SentencePieceProcessor(model_file=str(path))
    texts = [line for line in lines if "\0" not in line][:300]
    assert own.encode(texts) == theirs.encode(texts)
    assert [trained.encode(text).ids.tolist() for text in texts[:100]] == own.encode(texts[:100])
    linear = jittok.train_unigram(lines, vocab_size=vocab_size, e_step="linear")
    assert len(set(linear.spec.model.pieces) - set(trained.spec.model.pieces)) < 0.01 * vocab_size


@pytest.mark.parametrize("words", [WORDS, ["ab" * 20, "cab" * 90, "d"]])
def test_linear_expectations(words):
    """Both ways of summing give the same, but for rounding; long words are scaled."""
    options = sentencepiece_options("unigram", vocab_size=80)
    state = unigram.seed_state(
        unigram.lay_out(*followers.load_followed(some_lines(words=words), options), options, 1), options
    )
    n = len(state.seeds)
    scratch = kernels.new_scratch(400, 20_000)
    scores = np.append(state.scores, state.scores.min() - np.float32(10))
    expected, objective = np.zeros(n, np.float32), np.zeros(2)
    end = len(state.lattices.counts)
    kernels.expect(state.lattices, 0, end, scores, state.shift, kernels.functions(), scratch, expected, objective[:1])
    linear = np.zeros(n)
    probabilities = np.exp(scores.astype(np.float64))
    kernels.expect_linear(state.lattices, 0, end, probabilities, state.shift, 16, scratch, linear, objective[1:])
    assert np.allclose(expected, linear, rtol=1e-3, atol=1e-6)
    assert math.isclose(*objective, rel_tol=1e-5)


def test_linear_does_not_lose_long_words():
    draw = random.Random(5)
    lines = ["".join(draw.choices("abcd", k=700)) for _ in range(20)] + ["ab cd " * 30] * 5
    exact = jittok.train_unigram(lines, vocab_size=100, threads=1)
    linear = jittok.train_unigram(lines, vocab_size=100, threads=1, e_step="linear")
    assert len(set(exact.spec.model.pieces) - set(linear.spec.model.pieces)) <= 2
    assert np.isfinite(linear.spec.model.scores).all()


# ----------------------------------------------------------------------------------------------------- followers


def test_words_that_vanish_change_which_is_last():
    """Each line of blanks is replaced with the last line that is left, and what ends the text is a seed of its own."""
    draw = random.Random(7)
    options = sentencepiece_options("unigram", vocab_size=100)
    for _ in range(30):
        lines = [draw.choice(["  ", "\t", "a b", "b a", "c ab", "d"]) for _ in range(draw.randrange(2, 12))] + ["x y"]
        draw.shuffle(lines)
        _, quick = followers.load_followed(lines, options, threads=1)
        _, slow = followers._looked_at(lines, options, {})
        assert sorted(zip(*map(np.ndarray.tolist, quick), strict=True)) == sorted(
            zip(*map(np.ndarray.tolist, slow), strict=True)
        )


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("ab\u00e9\u6f22\U0001f600", max_size=70), max_size=12))
def test_ranked(strings):
    codepoints = np.frombuffer("".join(strings).encode("utf-32-le"), np.uint32)
    indptr = np.cumsum([0, *map(len, strings)])
    different = sorted(set(strings))
    assert followers.ranked(codepoints, indptr).tolist() == [different.index(string) for string in strings]


# ------------------------------------------------------------------------------ determinism, threads, checkpoints


def test_same_for_every_number_of_threads_and_kind_of_input(tmp_path):
    lines = some_lines(400)
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    expected = content(jittok.train_unigram(lines, vocab_size=80, threads=1).spec)
    for texts in (lines, iter(lines), [line.encode() for line in lines], path):
        assert content(jittok.train_unigram(texts, vocab_size=80, threads=3).spec) == expected
    linear = content(jittok.train_unigram(lines, vocab_size=80, threads=1, e_step="linear").spec)
    assert content(jittok.train_unigram(lines, vocab_size=80, threads=2, e_step="linear").spec) == linear


def test_slices_do_not_matter(monkeypatch):
    lines = some_lines(300)
    expected = content(jittok.train_unigram(lines, vocab_size=80, threads=1).spec)
    monkeypatch.setattr(unigram, "SLICE_EDGES", 7)
    monkeypatch.setattr(unigram, "SLICE_PIECES", 3)
    monkeypatch.setattr(unigram, "SLICE_SUFFIXES", 11)
    assert content(jittok.train_unigram(lines, vocab_size=80, threads=2).spec) == expected


@pytest.mark.parametrize("threads", [1, 3])
def test_memory_limit(monkeypatch, threads):
    lines = some_lines(300)
    expected = content(jittok.train_unigram(lines, vocab_size=80, threads=1).spec)
    monkeypatch.setattr(sentencepiece_corpus, "_SHORT_BITS", 8)
    monkeypatch.setattr(sentencepiece_corpus, "BATCH_BYTES", 1000)
    saved = []
    save = sentencepiece_corpus.save_run
    monkeypatch.setattr(sentencepiece_corpus, "save_run", lambda words, path: (saved.append(path), save(words, path)))
    trained = jittok.train_unigram(lines, vocab_size=80, threads=threads, memory_limit=1)
    assert content(trained.spec) == expected
    assert len(saved) > 2


def test_counts():
    """As if every word that occurs twice had ended a sentence."""
    lines = [" ".join([word] * (2 + k % 5)) for k, word in enumerate(WORDS)] + ["qq qq"]
    parts = [count_sentencepiece_words(part, vocab_size=80) for part in (lines[:100], lines[100:])]
    trained = jittok.train_unigram(counts=parts, vocab_size=80, threads=1)
    assert content(trained.spec) == content(jittok.train_unigram(counts=parts[::-1], vocab_size=80, threads=2).spec)
    assert content(trained.spec) == content(jittok.train_unigram(lines, vocab_size=80, threads=1).spec)


@pytest.mark.parametrize("after", [1, 2, 3, 5])
def test_resumed_from_an_interruption(tmp_path, monkeypatch, after):
    lines = some_lines(400)
    path = tmp_path / "checkpoint"
    expected = content(jittok.train_unigram(lines, vocab_size=80, threads=1, seed_sentencepiece_size=300).spec)
    advance, done = unigram._Trainer.advance, [0]

    def stop(self):
        done[0] += 1
        if done[0] > after:
            raise KeyboardInterrupt
        advance(self)

    monkeypatch.setattr(unigram._Trainer, "advance", stop)
    arguments = {"vocab_size": 80, "seed_sentencepiece_size": 300, "threads": 1}
    with pytest.raises(KeyboardInterrupt):
        jittok.train_unigram(lines, checkpoint=path, **arguments)
    monkeypatch.setattr(unigram._Trainer, "advance", advance)
    assert content(jittok.train_unigram(resume=path, **arguments).spec) == expected
    with pytest.raises(ArgumentError, match="vocab_size"):
        jittok.train_unigram(resume=path, **{**arguments, "vocab_size": 81})
    with pytest.raises(ArgumentError, match="leave texts and counts out"):
        jittok.train_unigram(lines, resume=path, **arguments)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("lattices_edges", lambda edges: edges | np.uint32(0x7FFFFF00)),
        ("lattices_edges", lambda edges: edges[:10]),
        ("lattices_starts", lambda starts: starts[::-1]),
        ("seeds", lambda seeds: seeds + 10**6),
        ("scores", lambda scores: scores * np.float32(np.nan)),
        ("places", lambda places: places - 1000),
        ("groups", lambda groups: groups[:3]),
        ("indptr", lambda indptr: indptr[::-1]),
        ("letters", lambda letters: letters.astype(np.int8)),
        ("lengths", None),
    ],
)
def test_broken_checkpoints(tmp_path, name, change):
    path = tmp_path / "checkpoint"
    options = sentencepiece_options("unigram", vocab_size=80)
    state = unigram.seed_state(unigram.lay_out(*followers.load_followed(some_lines(), options), options, 16), options)
    values, arrays = unigram._stored(state)
    settings_ = {"e_step": "exact"}
    file = Checkpoint(path, unigram.CHECKPOINT_KIND)
    file.write({"settings": settings_, **values}, arrays)
    assert len(unigram._resumed(path, settings_, 16).seeds) == len(state.seeds)
    changed = dict(arrays)
    if change is None:
        del changed[name]
    else:
        changed[name] = change(arrays[name])
    file.write({"settings": settings_, **values}, changed)
    with pytest.raises(FormatError, match="contradicts itself"):
        unigram._resumed(path, settings_, 16)


def test_an_interruption_does_not_cut_a_step_in_half():
    began, ended = threading.Event(), []

    def step():
        began.set()
        time.sleep(0.2)
        ended.append(True)

    def interrupt():
        began.wait()
        import _thread

        _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        unigram._uninterrupted(step)
    assert ended == [True]
    with pytest.raises(ZeroDivisionError):
        unigram._uninterrupted(lambda: 1 / 0)  # type: ignore[arg-type]


def test_progress(capfd):
    jittok.train_unigram(some_lines(), vocab_size=60, threads=1, progress=True)
    assert "training unigram" in capfd.readouterr().err


# -------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"texts": []}, "nothing is left"),
        ({"texts": ["", "  "]}, "nothing is left"),
        ({"texts": ["<s>"], "add_dummy_prefix": False}, "nothing is left"),
        ({"vocab_size": 10}, "the alphabet has"),
        ({"e_step": "quick"}, "e_step"),
        ({"num_threads": 3}, "reference_threads"),
        ({"reference_threads": 0}, "reference_threads=0"),
        ({"threads": 0}, "threads"),
        ({"unreachable": "maybe"}, "unreachable"),
        ({"shrinking_factor": 2.0}, "shrinking_factor"),
        ({"no_such_option": 1}, "no_such_option"),
        ({"user_defined_symbols": ["<unk>"]}, "unknown piece"),
    ],
)
def test_arguments(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        jittok.train_unigram(**{"texts": some_lines(), "vocab_size": 60, **arguments})


def test_other_errors():
    with pytest.raises(ArgumentTypeError, match="texts or counts"):
        jittok.train_unigram(vocab_size=60)
    with pytest.raises(UnsupportedError, match="memory_limit"):
        jittok.train_unigram(some_lines(), memory_limit=1 << 20, split_by_whitespace=False)


# ------------------------------------------------------------------------------------------------- a file of seeds


def random_seeds(draw, letters, n):
    """Lines of a file of seeds: pieces that may occur, some more than once, or not be valid."""
    strings = ["".join(draw.choices(letters + "▁", k=draw.randrange(1, 6))) for _ in range(n)]
    strings += ["▁" + string.replace("▁", "") for string in strings[::2]] + ["z", "aQ", "", "a" * 17]
    end = draw.choice(["\n", "\r\n", "\tmore\n"])
    return "".join(f"{string}\t{draw.choice([1, 2, 50, 10**11])}{end}" for string in strings)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"seed_sentencepiece_size": 9},
        {"seed_sentencepiece_size": 0},
        {"split_by_whitespace": False, "max_sentencepiece_length": 4},
        {"treat_whitespace_as_suffix": True, "byte_fallback": True, "vocab_size": 290},
        {"split_by_unicode_script": False, "user_defined_symbols": ["ab"]},
    ],
)
def test_seeds_from_a_file(tmp_path, options):
    path = tmp_path / "seeds.tsv"
    for seed in range(6):
        draw = random.Random(seed)
        letters = draw.choice(["ab", "abcé", "aあア1"])
        lines = ["".join(draw.choices(letters + " ", k=draw.randrange(1, 25))) for _ in range(20)]
        path.write_text(random_seeds(draw, letters, 40), encoding="utf-8", newline="")
        given = {"vocab_size": 20, "seed_sentencepieces_file": str(path), "hard_vocab_limit": False, **options}
        check(lines, threads=draw.choice([1, 16]), **given)


def test_seeds_from_a_file_on_english(tmp_path):
    path = tmp_path / "seeds.tsv"
    lines = corpus("english", 300_000)
    counts = Counter("▁" + word for line in lines for word in line.split())
    parts = Counter()
    for word, count in counts.items():
        for first in range(len(word)):
            for last in range(first + 2, min(first + 9, len(word)) + 1):
                parts[word[first:last]] += count
    path.write_text("".join(f"{part}\t{count}\n" for part, count in parts.most_common(30_000)), encoding="utf-8")
    one = check(lines, 2000, seed_sentencepieces_file=str(path))
    two = jittok.train_unigram(lines, vocab_size=2000, threads=2, seed_sentencepieces_file=str(path))
    assert content(one.spec) == content(two.spec)
    assert content(one.spec) != content(jittok.train_unigram(lines, vocab_size=2000).spec)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"ab\n", "line 2: expected a piece, a tab"),
        (b"\n", "line 2: expected a piece, a tab"),
        (b"ab\tx\n", "line 2: expected a piece, a tab"),
        (b"ab\t-3", "line 2: expected a piece, a tab"),
        (b"ab\t0\n", "occurs 0 times"),
        (b"ab\t9223372036854775808\n", "expected 1 to"),
        (b"a\xff\t3\n", "not UTF-8"),
    ],
)
def test_files_that_hold_no_seeds(tmp_path, line, message):
    path = tmp_path / "seeds.tsv"
    path.write_bytes(b"the\t3\n" + line)
    with pytest.raises(FormatError, match=message):
        jittok.train_unigram(some_lines(), vocab_size=60, seed_sentencepieces_file=str(path))
    with pytest.raises(MissingFileError, match="cannot read"):
        jittok.train_unigram(some_lines(), vocab_size=60, seed_sentencepieces_file=str(tmp_path / "none"))


def test_words_too_long_for_float32():
    word = "".join(np.random.default_rng(5).choice(list("abcdefgh"), 400_000))
    with pytest.raises(ArgumentError, match="has 400,001 characters, too many for sums in float32"):
        jittok.train_unigram([word], vocab_size=300, max_sentence_length=1 << 20)
    assert jittok.train_unigram([word], vocab_size=300, max_sentence_length=1 << 20, e_step="linear").vocab_size == 300


def test_a_size_that_cannot_be_reached():
    lines = some_lines()
    with pytest.raises(ArgumentError, match="cannot be reached with these texts; expected at most") as error:
        jittok.train_unigram(lines, vocab_size=500)
    largest = int(str(error.value).split("at most ")[1].split(".")[0])
    assert jittok.train_unigram(lines, vocab_size=largest).vocab_size == largest
    with pytest.warns(TrainingWarning, match="cannot be reached"):
        smaller = jittok.train_unigram(lines, vocab_size=500, unreachable="warn")
    assert largest <= smaller.vocab_size < 500
    assert content(smaller.spec) == content(jittok.train_unigram(lines, vocab_size=500, unreachable="stop").spec)


def test_texts_left_out_are_reported():
    with pytest.warns(TrainingWarning, match="skipped 3 of 63"):
        jittok.train_unigram([*some_lines(), "a" * 5000, "a \u2585", ""], vocab_size=60)


# ------------------------------------------------------------------------------------------------- tokenizer.json


TEXTS = ["the cat", "  that   rat \u00e9", "hatand the.man ", "", " ", "thecat cat\u2581the"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"byte_fallback": True},
        {"add_dummy_prefix": False},
        {"split_by_whitespace": False},
        {"remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True},
        {"normalization_rule_name": "identity"},
    ],
)
@pytest.mark.filterwarnings("ignore::jittok.errors.ConversionWarning")
def test_saved_for_tokenizers(tmp_path, options):
    tokenizers = pytest.importorskip("tokenizers")
    lines = [*some_lines(300), "a  b", "c   b"]
    size = 80 + 256 * ("byte_fallback" in options)
    trained = jittok.train_unigram(lines, vocab_size=size, threads=1, hard_vocab_limit=False, **options)
    trained.save(tmp_path / "tokenizer.json")
    trained.save(tmp_path / "trained.model")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    own = jittok.load(tmp_path / "tokenizer.json")
    model = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "trained.model"))
    for text in TEXTS + lines[:100]:
        ids = model.encode(text)
        assert theirs.encode(text, add_special_tokens=False).ids == ids, text
        assert own.encode(text).ids.tolist() == ids
        if model.unk_id() not in ids:
            assert theirs.decode(ids) == own.decode(ids) == model.decode(ids)


@pytest.mark.filterwarnings("ignore::jittok.errors.ConversionWarning")  # that not all texts have the same ids
def test_symbols_saved_for_tokenizers(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    trained = jittok.train_unigram(some_lines(300), vocab_size=80, user_defined_symbols=["<x>"], control_symbols=["<c>"])
    trained.save(tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in ("the<x>cat", "the <x> cat", "<x>the", "the cat"):
        ids = trained.encode(text).ids.tolist()
        assert theirs.encode(text, add_special_tokens=False).ids == ids or text.startswith("<x>")
        assert jittok.load(tmp_path / "tokenizer.json").encode(text).ids.tolist() == theirs.encode(text).ids
    assert theirs.token_to_id("<c>") == trained.token_to_id("<c>")


def test_what_a_tokenizer_json_cannot_hold(tmp_path):
    trained = jittok.train_unigram(some_lines(300), vocab_size=80, treat_whitespace_as_suffix=True)
    with pytest.raises(UnsupportedError, match="treat_whitespace_as_suffix"):
        trained.save(tmp_path / "tokenizer.json")


def test_command_line(tmp_path, capsys):
    from jittok.cli import main

    lines = some_lines(300)
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    out = tmp_path / "out.model"
    arguments = ["train", "unigram", str(tmp_path / "lines.txt"), "--vocab-size", "60", "--out", str(out), "-q"]
    assert main([*arguments, "--reference-threads", "2", "--option", "max_sentencepiece_length=5"]) == 0
    expected = jittok.train_unigram(lines, vocab_size=60, reference_threads=2, max_sentencepiece_length=5)
    assert content(jittok.load(out).spec) == content(expected.spec)
    assert main([*arguments, "--resume", "no file"]) != 0
    assert "name no files" in capsys.readouterr().err


def test_texts_that_leave_no_piece():
    """The reference fails here too: no piece is expected to occur half a time."""
    with pytest.raises(ArgumentError, match="too few for a unigram model"):
        jittok.train_unigram(["dddddddd"], vocab_size=8, add_dummy_prefix=False)

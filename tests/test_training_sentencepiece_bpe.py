"""Training by SentencePiece's rules: pieces, scores and files are sentencepiece's own."""

from __future__ import annotations

import io
import os
import pickle
import random
import warnings
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import reference_sentencepiece_training as textbook
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import jittok
from jittok.errors import (
    ArgumentError,
    ArgumentTypeError,
    FormatError,
    TextWarning,
    TrainingWarning,
    UnsupportedError,
)
from jittok.formats import sentencepiece_model
from jittok.training import sentencepiece_bpe, sentencepiece_corpus
from jittok.training import texts as text_reading
from jittok.training.progress import Checkpoint
from jittok.training.sentencepiece_bpe import PieceLearner, train_sentencepiece_bpe
from jittok.training.sentencepiece_corpus import (
    alphabet_of,
    count_sentencepiece_words,
    count_texts,
    load_corpus,
    word_settings,
)
from jittok.training.sentencepiece_options import sentencepiece_options, vocabulary_text
from jittok.unicode.sentencepiece_scripts import script_names, script_numbers

sentencepiece = pytest.importorskip("sentencepiece")
DATA = os.environ.get("JITTOK_TEST_DATA")


def reference(lines, **options):
    """The file that sentencepiece trains."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, model_type="bpe", minloglevel=4, **options
    )
    return out.getvalue()


def content(spec):
    model = spec.model
    return list(zip(model.pieces, model.scores, model.types, strict=True))


def check(lines, segment=(), **options):
    """Train both ways, and compare the files; also what sentencepiece makes of `segment` with each."""
    expected = sentencepiece_model.read(reference(lines, num_threads=1, **options), "reference")
    trained = train_sentencepiece_bpe(lines, num_threads=1, threads=1, **options)
    assert content(trained.spec) == content(expected)
    facts, own = (sentencepiece_model.facts(spec.model) for spec in (expected, trained.spec))
    # The rules are the same, but not stored in the same order.
    for part in (facts, own):
        part["normalizer_spec"].pop("precompiled_charsmap", None)
    assert own == facts
    if segment:
        theirs = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model.write(expected))
        ours = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model.write(trained.spec))
        for text in segment:
            ids = theirs.encode(text)
            assert ours.encode(text) == ids
            assert trained.encode(text).ids.tolist() == ids
    return trained


def sample(seed=1, n=400):
    """Lines of made-up words in several scripts."""
    random_ = random.Random(seed)
    stems = [
        "lo",
        "ra",
        "min",
        "the",
        "Ing",
        "ко",
        "да",
        "の",
        "カ",
        "漢",
        "é",
        "e\u0301",
        "12",
        "3",
        "٣",
        "!",
        "-",
        "️",
        "𝔘",
    ]
    words = ["".join(random_.choices(stems, k=random_.randint(1, 5))) for _ in range(300)]
    weights = [1 / (i + 1) for i in range(300)]
    return [" ".join(random_.choices(words, weights, k=random_.randint(0, 9))) for _ in range(n)]


LINES = sample()
OPTION_SETS = {
    "defaults": {},
    "coverage": {"character_coverage": 1.0},
    "less coverage": {"character_coverage": 0.98},
    "required characters": {"required_chars": "é漢zЖ", "character_coverage": 0.98},
    "user-defined symbols": {"user_defined_symbols": ["lo", "the", "<x>", "\u2581min", "12", "a b", "loмin"]},
    "symbols that overlap": {"user_defined_symbols": ["lo", "lora", "ralo", "r"]},
    "control symbols": {"control_symbols": ["<sep>", "min"]},
    "ends as symbols": {"user_defined_symbols": ["<s>"], "control_symbols": ["</s>"]},
    "byte fallback": {"byte_fallback": True, "vocab_size": 500},
    "byte fallback, all of it": {"byte_fallback": True, "vocab_size": 500, "unk_id": -1},
    "balanced": {"byte_fallback": True, "auto_character_coverage": True, "vocab_size": 500},
    "balanced, tight": {"byte_fallback": True, "auto_character_coverage": True, "vocab_size": 280},
    "whole lines": {"split_by_whitespace": False},
    "whole lines, blanks behind": {"split_by_whitespace": False, "treat_whitespace_as_suffix": True},
    "any scripts": {"split_by_unicode_script": False},
    "numbers": {"split_by_number": False},
    "digits": {"split_digits": True},
    "blanks behind": {"treat_whitespace_as_suffix": True},
    "blanks alone": {"allow_whitespace_only_pieces": True, "remove_extra_whitespaces": False},
    "blanks alone, behind": {
        "allow_whitespace_only_pieces": True, "remove_extra_whitespaces": False, "treat_whitespace_as_suffix": True,
    },
    "blanks alone in whole lines": {
        "allow_whitespace_only_pieces": True, "remove_extra_whitespaces": False, "split_by_whitespace": False,
    },
    "short pieces": {"max_sentencepiece_length": 3},
    "letters only": {"max_sentencepiece_length": 1, "hard_vocab_limit": False},
    "short lines": {"max_sentence_length": 40},
    "first lines": {"input_sentence_size": 150, "shuffle_input_sentence": False},
    "delimiter": {"pretokenization_delimiter": "o"},
    "identity": {"normalization_rule_name": "identity"},
    "nfkc": {"normalization_rule_name": "nfkc", "add_dummy_prefix": False},
    "other ids": {"pad_id": 0, "unk_id": 3, "bos_id": -1, "eos_id": 5, "pad_piece": "[PAD]", "unk_piece": "[UNK]"},
    "surface": {"unk_surface": "?", "vocabulary_output_piece_score": False},
    "more than there is": {"vocab_size": 5000, "hard_vocab_limit": False},
    "everything": {"vocab_size": 2000, "hard_vocab_limit": False, "character_coverage": 1.0, "split_by_whitespace": False},
}  # fmt: skip


@pytest.mark.parametrize("name", OPTION_SETS)
def test_options(name):
    odd = [
        "",
        "  ",
        "lo  ra\t",
        "  the",
        "x\u2585y",
        "<s> lo</s>",
        "a\x1fb",
        "nul\0nul",
        "e\u0301\u0300 \u3000カー",
        "lo" * 30,
    ]
    lines = [*LINES[:50], *odd, *LINES[50:]]
    options = {"vocab_size": 200, "hard_vocab_limit": False, **OPTION_SETS[name]}
    with pytest.warns(TrainingWarning, match="U\\+2585"):
        check(lines, segment=["lorathe Ing minko", "да漢カの 12!", "  lo  12٣", "zzz<s>the", "Ж é"], **options)


def test_rules_of_a_file(tmp_path):
    rules = tmp_path / "rules.tsv"
    rules.write_text("6C 6F\t72 61\n21\n", encoding="utf-8")
    check(LINES, vocab_size=150, normalization_rule_tsv=str(rules), denormalization_rule_tsv=str(rules))


@pytest.mark.parametrize("name", ["english", "multi", "code"])
@pytest.mark.parametrize("options", [{}, {"byte_fallback": True, "split_digits": True, "user_defined_symbols": "the,def"}])
def test_real_text(name, options):
    if DATA is None:
        pytest.skip("needs the corpora: set JITTOK_TEST_DATA to a folder that holds corpora/")
    with open(Path(DATA, "corpora", f"{name}.txt"), encoding="utf-8", newline="\n") as file:
        lines = file.read(300_000).split("\n")
    check(lines, segment=lines[:50], vocab_size=4000, **options)


# ----------------------------------------------------------------------------------------------- random, tiny


@st.composite
def small_options(draw):
    choices = {
        "character_coverage": [1.0, 0.98],
        "split_by_unicode_script": [False],
        "split_by_number": [False],
        "split_by_whitespace": [False],
        "split_digits": [True],
        "treat_whitespace_as_suffix": [True],
        "allow_whitespace_only_pieces": [True],
        "remove_extra_whitespaces": [False],
        "add_dummy_prefix": [False],
        "max_sentencepiece_length": [1, 2, 3, 5],
        "user_defined_symbols": [["ab"], ["ab", "aba", "\u2581a"]],
        "required_chars": ["z\u2581"],
        "pretokenization_delimiter": ["b", "\u2581"],
    }
    chosen = draw(st.lists(st.sampled_from(sorted(choices)), unique=True, max_size=4))
    options = {name: draw(st.sampled_from(choices[name])) for name in chosen}
    if draw(st.integers(0, 5)) == 0:
        options.update(byte_fallback=True, auto_character_coverage="required_chars" not in options)
    size = draw(st.sampled_from([8, 12, 20, 60, 300])) + (256 if "byte_fallback" in options else 0)
    return {**options, "vocab_size": size, "hard_vocab_limit": draw(st.booleans()), "num_threads": 1}


ALPHABETS = ["ab", "aab ", "ab1 ２", "ab\u0301é ", "aб漢か ー", "ab\u2581 "]
TEXTS = st.sampled_from(ALPHABETS).flatmap(lambda letters: st.lists(st.text(letters, max_size=25), min_size=1, max_size=12))


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(TEXTS, small_options())
def test_tiny_texts_like_sentencepiece(lines, options):
    try:
        expected = content(sentencepiece_model.read(reference(lines, **options), "reference"))
    except RuntimeError:
        expected = None
    try:
        found = content(train_sentencepiece_bpe(lines, threads=1, **options).spec)
    except ArgumentError as error:
        found = None
        if "nothing is left" in str(error) and expected is not None:
            # The reference makes a vocabulary of meta pieces.
            assert all(kind != 1 for _, _, kind in expected)
            return
    assert found == expected


@cache
def script_of(letter):
    return script_names()[script_numbers(np.array([ord(letter)]))[0]]


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(TEXTS, small_options())
def test_tiny_texts_like_a_textbook(lines, options):
    options = {**options, "vocab_size": 2000}
    chosen = sentencepiece_options("bpe", **options)
    try:
        corpus = load_corpus(lines, chosen, threads=1)
    except ArgumentError:
        assume(False)
    words = count_texts(lines, chosen, threads=1)
    alphabet = alphabet_of(words, chosen)
    bounds, points = corpus.indptr.tolist(), corpus.codepoints
    texts = {}
    for i, count in enumerate(corpus.counts.tolist()):
        word = "".join(map(chr, points[bounds[i] : bounds[i + 1]].tolist()))
        texts[word] = texts.get(word, 0) + count
    letters = set(map(chr, (alphabet.letters if len(alphabet.letters) else alphabet.characters).tolist()))
    learner = PieceLearner.begin([words], alphabet, chosen, 40)
    learner.learn(40)
    learned = learner.learned()
    assert (learned.pieces, learned.counts.tolist()) == textbook.train(texts, letters, 40, script_of, chosen)


# ------------------------------------------------------------------------------------------------- the same result


def test_threads_counts_and_sizes_give_the_same():
    lines = sample(2, 3000)
    options = {"byte_fallback": True, "split_digits": True, "character_coverage": 0.999}
    alone = train_sentencepiece_bpe(lines, vocab_size=550, threads=1, **options)
    wanted = sentencepiece_model.write(alone.spec)
    for threads in (2, 3):
        again = train_sentencepiece_bpe(lines, vocab_size=550, threads=threads, **options)
        assert sentencepiece_model.write(again.spec) == wanted
    assert sentencepiece_model.write(train_sentencepiece_bpe(lines[::-1], vocab_size=550, **options).spec) == wanted
    parts = [count_sentencepiece_words(lines[i::3], **options) for i in range(3)]
    counted = train_sentencepiece_bpe(counts=parts[::-1], vocab_size=550, **options)
    assert sentencepiece_model.write(counted.spec) == wanted
    several = train_sentencepiece_bpe(lines, vocab_sizes=[500, 550, 400], **options)
    assert list(several) == [400, 500, 550]
    for size, tokenizer in several.items():
        own = train_sentencepiece_bpe(lines, vocab_size=size, **options)
        assert sentencepiece_model.write(tokenizer.spec) == sentencepiece_model.write(own.spec)


@pytest.mark.parametrize("threads", [1, 2])
def test_memory_limit(monkeypatch, threads):
    wanted = content(train_sentencepiece_bpe(LINES, vocab_size=200).spec)
    counted = count_sentencepiece_words(LINES)
    monkeypatch.setattr(sentencepiece_corpus, "_SHORT_BITS", 8)
    monkeypatch.setattr(sentencepiece_corpus, "_LONG_BITS", 2)
    monkeypatch.setattr(sentencepiece_corpus, "_KEPT_BYTES", 16)
    monkeypatch.setattr(sentencepiece_corpus, "BATCH_BYTES", 100)
    saved = []
    save = sentencepiece_corpus.save_run
    monkeypatch.setattr(sentencepiece_corpus, "save_run", lambda words, path: (saved.append(path), save(words, path)))
    trained = jittok.train_bpe(LINES, rules="sentencepiece", vocab_size=200, threads=threads, memory_limit=1)
    assert content(trained.spec) == wanted
    assert len(saved) > 2
    assert count_sentencepiece_words(LINES, threads=threads, memory_limit=1) == counted
    with pytest.raises(ArgumentError, match="memory_limit"):
        train_sentencepiece_bpe(LINES, vocab_size=200, memory_limit=0)


def test_samples(monkeypatch):
    """The reference's differ from run to run; jittok's is always the same."""
    lines = [f"line {number} \r" for number in range(1000)] + [""]
    seen = []
    select = sentencepiece_corpus.TextCounter.work

    def work(self, batch):
        bounds, content = batch.indptr.tolist(), bytes(batch.data)
        seen.extend(content[a:b].decode() for a, b in zip(bounds, bounds[1:], strict=False))
        return select(self, batch)

    monkeypatch.setattr(sentencepiece_corpus.TextCounter, "work", work)
    options = {"vocab_size": 40, "input_sentence_size": 200, "hard_vocab_limit": False}
    first = content(train_sentencepiece_bpe(lines, threads=1, **options).spec)
    sample = seen[:]
    assert len(sample) == len(set(sample)) == 200
    assert sample == [line.rstrip("\r") for line in lines if line.rstrip("\r") in set(sample)]
    numbers = np.array([int(line.split()[1]) for line in sample])
    assert all(10 <= n <= 32 for n in np.bincount(numbers // 100))
    for batch_bytes in (100, 1 << 20):
        monkeypatch.setattr(text_reading, "BATCH_BYTES", batch_bytes)
        seen.clear()
        assert content(train_sentencepiece_bpe(iter(lines), threads=1, **options).spec) == first
        assert seen == sample
    few = {**options, "input_sentence_size": 2000}
    everything = content(train_sentencepiece_bpe(lines, vocab_size=40, hard_vocab_limit=False).spec)
    assert content(train_sentencepiece_bpe(lines, threads=2, **few).spec) == everything


def test_counts_can_be_saved_and_merged(tmp_path):
    parts = [count_sentencepiece_words(LINES[i::2], threads=1) for i in range(2)]
    parts[0].save(tmp_path / "counts")
    merged = parts[0].merge(parts[1])
    wanted = train_sentencepiece_bpe(LINES, vocab_size=150)
    assert content(train_sentencepiece_bpe(counts=merged, vocab_size=150).spec) == content(wanted.spec)
    from_file = train_sentencepiece_bpe(counts=[tmp_path / "counts", parts[1]], vocab_size=150)
    assert content(from_file.spec) == content(wanted.spec)
    with pytest.raises(ArgumentError, match="normalization_rule_name"):
        train_sentencepiece_bpe(counts=merged, vocab_size=150, normalization_rule_name="identity")


def test_files_are_read_line_by_line(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_bytes("\r\n".join(LINES).encode() + b"\n")
    out = tmp_path / "model"
    for rule in ("nmt_nfkc", "identity"):
        sentencepiece.SentencePieceTrainer.train(
            input=str(path), model_prefix=str(out), model_type="bpe", vocab_size=150, minloglevel=4,
            normalization_rule_name=rule,
        )  # fmt: skip
        expected = sentencepiece_model.read(out.with_suffix(".model").read_bytes(), "reference")
        trained = train_sentencepiece_bpe(str(path), vocab_size=150, normalization_rule_name=rule)
        assert content(trained.spec) == content(expected)
        assert vocabulary_text(trained.spec) == out.with_suffix(".vocab").read_bytes().decode()
    bytes_too = train_sentencepiece_bpe([line.encode() + b"\r\n" for line in LINES], vocab_size=150)
    assert content(bytes_too.spec) == content(train_sentencepiece_bpe(LINES, vocab_size=150).spec)


def test_a_checkpoint_goes_on_to_the_same_result(tmp_path, monkeypatch):
    lines = sample(3, 2000)
    wanted = train_sentencepiece_bpe(lines, vocab_size=380)
    path = tmp_path / "checkpoint"
    monkeypatch.setattr(sentencepiece_bpe, "SLICE", 300)
    learn = PieceLearner.learn

    def interrupted(self, n, after_slice):
        def stop():
            after_slice()
            if self.n_pieces > 100:
                raise KeyboardInterrupt

        learn(self, n, stop)

    monkeypatch.setattr(PieceLearner, "learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_sentencepiece_bpe(lines, vocab_size=380, checkpoint=path)
    monkeypatch.setattr(PieceLearner, "learn", learn)
    resumed = train_sentencepiece_bpe(resume=path, vocab_size=380)
    assert content(resumed.spec) == content(wanted.spec)
    with pytest.raises(ArgumentError, match="split_digits"):
        train_sentencepiece_bpe(resume=path, vocab_size=380, split_digits=True)
    with pytest.raises(ArgumentError, match="leave texts"):
        train_sentencepiece_bpe(lines, resume=path)
    broken = PieceLearner.begin(*corpus_of(lines, 380), 100).state()
    broken["cells"] = broken["cells"].copy()
    broken["cells"][5] = 1 << 30
    with pytest.raises(FormatError, match="cells"):
        PieceLearner.resume(broken)


def corpus_of(lines, size):
    options = sentencepiece_options("bpe", vocab_size=size)
    words = count_texts(lines, options)
    return [words], alphabet_of(words, options), options


def test_room_is_made_when_it_is_lacking(monkeypatch):
    wanted = content(train_sentencepiece_bpe(LINES, vocab_size=200).spec)
    begin = PieceLearner.begin

    def tight(words, alphabet, options, most, threads):
        learner = begin(words, alphabet, options, most, threads)
        numbers = learner.trainer.numbers
        used = {"count": int(numbers[1]), "heap_count": 1, "events": 4}
        for names, key in ((sentencepiece_bpe._PAIR_FIELDS, "count"), (sentencepiece_bpe._HEAP_FIELDS, "heap_count")):
            for name in names:
                array = getattr(learner.trainer, name)
                learner.trainer = learner.trainer._replace(**{name: array[: used[key]].copy()})
        learner.trainer = learner.trainer._replace(events=learner.trainer.events[:4].copy())
        return learner

    monkeypatch.setattr(PieceLearner, "begin", tight)
    assert content(train_sentencepiece_bpe(LINES, vocab_size=200).spec) == wanted
    monkeypatch.setattr(sentencepiece_corpus, "_SHORT_BITS", 8)
    monkeypatch.setattr(sentencepiece_corpus, "_LONG_BITS", 2)
    monkeypatch.setattr(sentencepiece_corpus, "_KEPT_BYTES", 16)
    monkeypatch.setattr(sentencepiece_corpus, "BATCH_BYTES", 100)
    assert content(train_sentencepiece_bpe(LINES, vocab_size=200).spec) == wanted


def test_counts_are_of_64_bits():
    counts = count_sentencepiece_words(["ab abc", "bcd"])
    many = type(counts)(counts.data, counts.indptr, counts.counts * (1 << 40), counts.settings)
    big = train_sentencepiece_bpe(counts=many, vocab_size=12)
    assert content(big.spec) == content(train_sentencepiece_bpe(["ab abc", "bcd"], vocab_size=12).spec)


def test_the_corpus_is_in_the_order_of_the_reference():
    options = sentencepiece_options("bpe", vocab_size=100, character_coverage=0.98)
    corpus = load_corpus(LINES, options)
    words = [
        "".join(map(chr, corpus.codepoints[a:b].tolist())) for a, b in zip(corpus.indptr, corpus.indptr[1:], strict=False)
    ]
    order = list(zip((-corpus.counts).tolist(), [word.encode() for word in words], strict=True))
    assert order == sorted(order) and len(set(words)) == len(words)
    assert any("\u2585" in word for word in words)


# ------------------------------------------------------------------------------------------------------ the result


def test_a_trained_tokenizer_is_like_any_other(tmp_path):
    trained = train_sentencepiece_bpe(LINES, vocab_size=150)
    path = tmp_path / "trained.model"
    trained.save(path)
    assert pickle.loads(pickle.dumps(trained)).spec == trained.spec
    loaded = jittok.load(path)
    assert loaded.spec == trained.spec
    assert loaded.encode("lora min").ids.tolist() == trained.encode("lora min").ids.tolist()
    with pytest.raises(AttributeError, match="no_such"):
        _ = train_sentencepiece_bpe(LINES, vocab_size=150).no_such


def test_sizes_that_cannot_be_reached():
    lines = ["ab abc", "b"]
    with pytest.raises(ArgumentError, match=r"vocab_size=100 .* at most (\d+)") as error:
        train_sentencepiece_bpe(lines, vocab_size=100)
    largest = int(str(error.value).split("at most ")[1].split(".")[0])
    assert len(train_sentencepiece_bpe(lines, vocab_size=largest).spec.model.pieces) == largest
    with pytest.raises(RuntimeError):
        reference(lines, vocab_size=largest + 1)
    assert len(train_sentencepiece_bpe(lines, vocab_size=100, unreachable="stop").spec.model.pieces) == largest
    with pytest.warns(TrainingWarning, match="cannot be reached"):
        train_sentencepiece_bpe(lines, vocab_size=100, unreachable="warn")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 5}, "alphabet has"),
        ({"vocab_size": 2}, "eos_id=2"),
        ({"vocab_size": 0}, "vocab_size=0"),
        ({"vocab_size": 200, "byte_fallback": True}, "259 meta pieces"),
        ({"character_coverage": 0.5}, "0.98 to 1"),
        ({"max_sentencepiece_length": 513}, "512"),
        ({"control_symbols": ["<a>"], "user_defined_symbols": ["<a>"]}, "twice"),
        ({"user_defined_symbols": ["<unk>"]}, "unknown piece"),
        ({"bos_id": 0}, "has this id"),
        ({"bos_piece": "</s>"}, "twice"),
        ({"unk_id": -1}, "byte_fallback"),
        ({"pad_id": 7999, "vocab_size": 8000}, "id 7999"),
        ({"required_chars": "x", "user_defined_symbols": ["x"]}, "found in training too"),
        ({"required_chars": "a b"}, "U\\+0020"),
        ({"escape_whitespaces": False}, "escape_whitespaces"),
        ({"auto_character_coverage": True}, "byte_fallback"),
        ({"normalization_rule_name": "nfc"}, "nmt_nfkc"),
        ({"split_digit": True}, "did you mean split_digits"),
        ({"model_prefix": "m"}, "save"),
        ({"special_tokens": ["<a>"]}, "control_symbols"),
        ({"user_defined_symbols": [""]}, "at least one character"),
        ({"vocab_sizes": [100, 200]}, "exclude"),
        ({"unreachable": "never"}, "unreachable"),
        ({"threads": 0}, "threads=0"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ArgumentError, match=message):
        train_sentencepiece_bpe(LINES, **{"vocab_size": 150, **options})


def test_wrong_sizes_and_counts():
    for train in (train_sentencepiece_bpe, jittok.train_unigram):
        for counts in (5, {"a": 1}, ["a", 5]):
            with pytest.raises(ArgumentTypeError, match="counts: expected WordCounts"):
                train(counts=counts, vocab_size=20)
    for sizes in (5, "ab", [100, "a"], [True]):
        with pytest.raises((ArgumentError, ArgumentTypeError), match="vocab_sizes"):
            train_sentencepiece_bpe(LINES, vocab_sizes=sizes)
    options = sentencepiece_options("bpe", vocab_size=20)
    counts = jittok.WordCounts.from_mapping({b"\xe2\x96\x81a\xff": 2}, word_settings(options))
    for train in (train_sentencepiece_bpe, jittok.train_unigram):
        with pytest.raises(ArgumentError, match="is not UTF-8"):
            train(counts=counts, vocab_size=20)


def test_wrong_types_and_texts(tmp_path):
    for options in (
        {"vocab_size": "12"},
        {"split_digits": 1},
        {"unk_piece": 3},
        {"control_symbols": 4},
        {"control_symbols": [4]},
    ):
        with pytest.raises(ArgumentTypeError, match=next(iter(options))):
            train_sentencepiece_bpe(LINES, **options)
    with pytest.raises(ArgumentTypeError, match="either texts or counts"):
        train_sentencepiece_bpe()
    for nothing in ([], ["", "\n"], ["   "]):
        with pytest.raises(ArgumentError, match="nothing is left"):
            train_sentencepiece_bpe(nothing, vocab_size=50)
    for texts in (["too long" * 10], ["\u2585"]):
        with pytest.warns(TrainingWarning, match="skipped 1 of 1"), pytest.raises(ArgumentError, match="nothing is left"):
            train_sentencepiece_bpe(texts, vocab_size=50, max_sentence_length=60)
    with pytest.raises(UnsupportedError, match="base"):
        train_sentencepiece_bpe(LINES, base=object())
    with pytest.raises(jittok.errors.MissingFileError, match="nowhere"):
        train_sentencepiece_bpe(LINES, normalization_rule_tsv=tmp_path / "nowhere")


def test_scripts_are_those_of_the_reference():
    """Each script's first letters go with each other, and not with letters of another."""
    random_ = random.Random(4)
    names = script_names()
    every = np.array([c for c in range(0x21, 0x110000) if not 0xD800 <= c < 0xE000 and c not in (0x2581, 0x2585)])
    numbers = script_numbers(every)
    anything = every.tolist()
    pairs = []
    for number in range(len(names)):
        own = every[numbers == number]
        if len(own) < 2 or names[number] == "Inherited":
            continue
        first = chr(own[random_.randrange(len(own))])
        for other in random_.choices(own.tolist(), k=4) + random_.choices(anything, k=4):
            pairs.append(first + chr(other))
    size = 3 + len(set("".join(pairs))) + 1 + len(pairs) * 3
    check(pairs, vocab_size=size, character_coverage=1.0, hard_vocab_limit=False, normalization_rule_name="identity")


def test_each_of_several_sizes_reads_the_symbols():
    lines = ["to be or not to be", "bee"] * 3
    symbols = ["q", "z"]
    trained = jittok.train_bpe(lines, rules="sentencepiece", vocab_sizes=[14, 16], user_defined_symbols=iter(symbols))
    for size, tokenizer in trained.items():
        alone = jittok.train_bpe(lines, rules="sentencepiece", vocab_size=size, user_defined_symbols=symbols)
        assert tokenizer.spec.model.pieces == alone.spec.model.pieces
        assert tokenizer.spec.model.pieces[3:5] == ("q", "z")


def test_a_long_symbol():
    symbol = "x" * 1500
    options = {"rules": "sentencepiece", "vocab_size": 20, "user_defined_symbols": [symbol]}
    trained = jittok.train_bpe(["to be or not to be", "bee"] * 3, **options)
    processor = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model.write(trained.spec))
    assert trained.encode(f"be {symbol}x to").tokens == processor.encode(f"be {symbol}x to", out_type=str)


def test_warn_is_not_the_default():
    options = {"rules": "sentencepiece", "vocab_size": 1000}
    with pytest.warns(TrainingWarning, match="cannot be reached") as caught:
        jittok.train_bpe(["to be or not to be"], unreachable="warn", **options)
    assert caught[0].filename == __file__
    with pytest.raises(ArgumentError, match="cannot be reached"):
        jittok.train_bpe(["to be or not to be"], **options)


@pytest.mark.parametrize("line", ["D800\t61", "61\tDFFF", "0\t61", " ".join(["61"] * 1001) + "\t62"])
def test_rules_that_cannot_be(tmp_path, line):
    path = tmp_path / "rules.tsv"
    path.write_text(f"41\t61\n{line}\n")
    for name in ("normalization_rule_tsv", "denormalization_rule_tsv"):
        with pytest.raises(FormatError, match=r"rules.tsv: line 2: "):
            jittok.train_bpe(["a b"], rules="sentencepiece", vocab_size=10, **{name: path})


def test_forged_checkpoints(tmp_path, monkeypatch):
    """Checkpoints that contradict themselves, under a right checksum, are refused, or go on within their arrays."""
    path, forged = tmp_path / "checkpoint", tmp_path / "forged"
    lines = [" ".join(random.Random(n).choices("abc de ab cab éa".split(), k=9)) for n in range(30)]
    options = {"rules": "sentencepiece", "vocab_size": 24}
    learn = PieceLearner.learn

    def interrupted(self, n, after_slice):
        learn(self, 6, after_slice)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(PieceLearner, "learn", interrupted)
        jittok.train_bpe(lines, checkpoint=path, **options)
    state, arrays = Checkpoint(path, sentencepiece_bpe.CHECKPOINT_KIND).read()
    expected = jittok.train_bpe(lines, **options)
    assert jittok.train_bpe(resume=path, **options) == expected
    source, n_refused = random.Random(1), 0
    names = sorted(name for name, array in arrays.items() if array.size and not name.startswith("alphabet"))
    for trial in range(150):
        name = source.choice(names)
        array = np.array(arrays[name])
        if trial % 5 == 0:
            array = array.astype(np.float64) if trial % 2 else array[:-1]
        else:
            value = source.choice([-1, 0, 1, 100, array.size, 2**31 - 1]) if array.dtype.kind == "i" else 1 << 60
            array[source.randrange(array.size)] = value & 0x7FFFFFFF if array.dtype == np.uint32 else value
        Checkpoint(forged, sentencepiece_bpe.CHECKPOINT_KIND).write(state, {**arrays, name: array})
        try:
            jittok.train_bpe(resume=forged, **options)
        except (FormatError, ArgumentError):
            n_refused += 1
    assert n_refused > 40


def test_the_error_for_no_text_says_what_was_left_out():
    for train in (partial(jittok.train_bpe, rules="sentencepiece"), jittok.train_unigram):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TextWarning)
            with pytest.raises(ArgumentError, match="left out: 1 empty, 2 longer than max_sentence_length"):
                train(["a" * 5000, "b" * 5000, ""], vocab_size=20)
        with pytest.raises(ArgumentError, match="nothing is left to train on; expected .* not empty$"):
            train([], vocab_size=20)

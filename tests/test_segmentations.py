"""N-best lists, samples, entropy and scores of whole texts; bos, eos and reverse order; vocabulary restriction."""

from __future__ import annotations

import base64
import itertools
import json
import math
import pickle
from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece_files import content, random_texts, reference, small_model

import jittok
from jittok._jit import JIT_DISABLED
from jittok.errors import ArgumentError, ArgumentTypeError, TextError, UnsupportedError
from jittok.spec import AddedToken, Metaspace, TokenizerSpec, UnigramModel, WordPieceModel
from jittok.tokenizer import Tokenizer

UNIGRAM = ["unigram/t5-nai/spiece.model", "unigram/xlnet-base-cased/spiece.model", "unigram/deberta-v3/spm.model"]
JAPANESE = "unigram/sentencepiece-test-ja/test_ja_model.model"
BPE = ["sp-bpe/llama2/tokenizer.model", "sp-bpe/barthez/sentencepiece.bpe.model"]
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
FOX = "The quick brown fox jumps over the lazy dog."


@cache
def loaded(name):
    return jittok.load_bytes(content(name))


def check_counts(ours, theirs):
    """Two samples of one distribution: their difference, squared and in standard deviations, is about 1 an outcome."""
    outcomes = [key for key in ours | theirs if ours[key] + theirs[key] >= 10]
    n, m = sum(ours.values()), sum(theirs.values())
    total = sum(
        (ours[key] * math.sqrt(m / n) - theirs[key] * math.sqrt(n / m)) ** 2 / (ours[key] + theirs[key]) for key in outcomes
    )
    bound = len(outcomes) + 6 * math.sqrt(2 * len(outcomes)) + 6
    assert total <= bound, (total, len(outcomes))


# --------------------------------------------------------------------------------------------------------- n-best


@pytest.mark.skipif(JIT_DISABLED, reason="takes minutes as plain Python")
@pytest.mark.parametrize("name", [*UNIGRAM, JAPANESE])
def test_n_best_as_sentencepiece(name):
    tok, processor = loaded(name), reference(name)
    texts = ["", " ", FOX, "a\u2581b", "ﬁne  ☃☃ naïve", "清水寺は京都にある。", *random_texts(25, 12, seed=5)]
    for text in texts:
        found = tok.nbest_encode(text, 20)
        expected = processor.nbest_encode_as_proto(text, 20).nbests
        assert [enc.ids.tolist() for enc in found] == [[piece.id for piece in row.pieces] for row in expected]
        assert [enc.score for enc in found] == [row.score for row in expected]
        for enc, row in zip(found, expected, strict=True):
            pieces = [piece.piece for piece in row.pieces]
            assert enc.tokens == pieces
            assert enc.surfaces == [piece.surface for piece in row.pieces]
            if not tok.spec.model.byte_fallback:  # joined bytes of unknown characters look like others
                assert tok.score(enc) == pytest.approx(enc.score, rel=1e-6)
        assert tok.nbest_encode(text, 1)[0] == tok.encode(text)


def test_n_best_of_many_words():
    """A tokenizer.json's words are independent of each other: the best sums of one choice for each."""
    pieces = {"▁": -3.0, "a": -1.0, "b": -1.5, "ab": -2.25, "▁a": -3.5, "ba": -2.0, "▁ab": -4.125}
    model = UnigramModel(("<unk>", *pieces), (-9.0, *pieces.values()), unk_id=0)
    tok = Tokenizer(TokenizerSpec(model, pre_tokenizers=(Metaspace(),), added_tokens=(AddedToken(8, "<x>"),)))
    text = "ab<x>ba abab"

    def ways(word):
        if not word:
            yield (), 0.0
        for piece, score in pieces.items():
            if word.startswith(piece):
                for rest, more in ways(word[len(piece) :]):
                    yield (piece, *rest), score + more

    words = [["▁ab"], ["<x>"], ["▁ba"], ["▁abab"]]
    choices = [[(("<x>",), 0.0)] if word == ["<x>"] else list(ways(word[0])) for word in words]
    everything = {
        tuple(piece for parts, _ in chosen for piece in parts): sum(score for _, score in chosen)
        for chosen in itertools.product(*choices)
    }
    found = tok.nbest_encode(text, 500)
    assert {tuple(enc.tokens): enc.score for enc in found} == pytest.approx(everything)
    scores = [enc.score for enc in found]
    assert scores == sorted(scores, reverse=True) and found[0] == tok.encode(text)
    assert [enc.score for enc in tok.nbest_encode(text, 7)] == pytest.approx(scores[:7])
    for enc in found[::20]:
        assert "".join(enc.tokens) == "▁ab<x>▁ba▁abab"
        assert enc.word_ids.tolist() == sorted(enc.word_ids.tolist()) and tok.score(enc) == pytest.approx(enc.score)
    weights = np.exp(0.5 * np.array(list(everything.values())))
    share = weights / weights.sum()
    assert tok.entropy(text, alpha=0.5) == pytest.approx(-(share * np.log(share)).sum())
    n = 200 if JIT_DISABLED else 4000
    drawn = Counter(tuple(enc.tokens) for enc in tok.sample_encode(text, alpha=0.5, seed=1, n=n))
    assert set(drawn) <= set(everything)
    for outcome, probability in zip(everything, share, strict=True):
        assert abs(drawn[outcome] - n * probability) <= 6 * math.sqrt(n * probability * (1 - probability)) + 2
    restricted = {tuple(enc.tokens) for enc in tok.sample_encode(text, alpha=0.1, seed=1, n=60, nbest_size=3)}
    assert restricted == {tuple(enc.tokens) for enc in found[:3]}


def test_entropy_and_score():
    tok = loaded(UNIGRAM[1])
    # What CalculateEntropy of sentencepiece 0.2.0 says; later versions have none.
    for alpha, expected in ((0.1, 17.24675), (0.5, 3.1027424), (1.0, 0.46726546)):
        assert tok.entropy(FOX, alpha=alpha) == pytest.approx(expected, rel=1e-4)
    processor = reference(UNIGRAM[1])
    pieces = tok.encode(FOX).tokens
    assert tok.score(pieces) == pytest.approx(sum(processor.get_score(processor.piece_to_id(p)) for p in pieces), rel=1e-6)
    assert tok.score(["<s>", *pieces, "</s>"]) == tok.score(pieces)
    unknown = min(processor.get_score(i) for i in range(processor.get_piece_size()) if not processor.is_unused(i)) - 10
    assert tok.score(["☃☃"]) == pytest.approx(2 * unknown)
    assert tok.score([]) == 0.0
    for wrong in ("text", 5, [3]):
        with pytest.raises(ArgumentTypeError, match="expected"):
            tok.score(wrong)


# -------------------------------------------------------------------------------------------------------- samples


@pytest.mark.skipif(JIT_DISABLED, reason="takes minutes as plain Python")
@pytest.mark.parametrize(("alpha", "nbest_size"), [(0.2, -1), (1.0, -1), (0.3, 8)])
@pytest.mark.parametrize("name", UNIGRAM[:2])
def test_samples_are_distributed_as_sentencepiece_has_it(name, alpha, nbest_size):
    tok, processor, n = loaded(name), reference(name), 3000
    text = "hello worlds"
    ours = tok.sample_encode(text, alpha=alpha, nbest_size=nbest_size, n=n, seed=11)
    theirs = (
        tuple(processor.encode(text, enable_sampling=True, alpha=alpha, nbest_size=nbest_size)) for _ in range(n)
    )
    check_counts(Counter(tuple(enc.ids.tolist()) for enc in ours), Counter(theirs))


@pytest.mark.skipif(JIT_DISABLED, reason="takes minutes as plain Python")
@pytest.mark.parametrize("dropout", [0.1, 0.5])
@pytest.mark.parametrize("name", BPE)
def test_dropout_is_distributed_as_sentencepiece_has_it(name, dropout):
    tok, processor, n = loaded(name), reference(name), 3000
    text = "walks"
    ours = Counter(tuple(enc.ids.tolist()) for enc in tok.sample_encode(text, dropout=dropout, n=n, seed=3))
    theirs = (tuple(processor.encode(text, enable_sampling=True, alpha=dropout, nbest_size=-1)) for _ in range(n))
    check_counts(ours, Counter(theirs))
    for extreme in (0.0, 1.0):
        for text in [FOX, "", "☃ naïve", *random_texts(10, 20)]:
            expected = processor.encode(text, enable_sampling=True, alpha=extreme, nbest_size=-1)
            assert tok.sample_encode(text, dropout=extreme).ids.tolist() == expected


def bpe_json(dropout, **options):
    """A tokenizer.json of the reference, and ours without the dropout, which jittok takes as an argument."""
    tokenizers = pytest.importorskip("tokenizers")
    merges = [("a", "b"), ("b", "c"), ("ab", "c"), ("a", "bc"), ("abc", "a"), ("c", "a"), ("ca", "b")]
    names = ["<unk>", "a", "b", "c", "ab", "bc", "abc", "abca", "ca", "cab", *options.pop("more", ())]
    vocab = {name: number for number, name in enumerate(names)}
    theirs = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab=vocab, merges=merges, dropout=dropout or None, unk_token="<unk>", **options)
    )
    block = json.loads(theirs.to_str())
    return theirs, jittok.load_bytes(json.dumps(block).encode())


BYTE_NAMES = tuple(f"<0x{byte:02X}>" for byte in range(256))


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("abcabca", {}),
        ("abcxéabc", {"fuse_unk": True}),
        ("abcéa", {"byte_fallback": True, "more": BYTE_NAMES}),
        ("abca", {"ignore_merges": True}),
    ],
)
def test_dropout_is_distributed_as_tokenizers_has_it(text, options, dropout):
    """There what was left out waits, and takes part again once something was not."""
    theirs, tok = bpe_json(dropout, **options)
    n = 300 if JIT_DISABLED else 3000
    ours = Counter(tuple(enc.tokens) for enc in tok.sample_encode(text, dropout=dropout, n=n, seed=4))
    check_counts(ours, Counter(tuple(theirs.encode(text).tokens) for _ in range(n)))


@settings(max_examples=10 if JIT_DISABLED else 40, deadline=None)
@given(st.text("abcx é", max_size=40), st.integers(-(2**70), 2**70))
def test_dropout_extremes_and_seeds(text, seed):
    theirs, tok = bpe_json(0)
    assert tok.sample_encode(text, dropout=0).ids.tolist() == theirs.encode(text).ids
    assert tok.sample_encode(text, dropout=1).tokens == [c if c in "abc" else "<unk>" for c in text]
    again = [tok.sample_encode(text, dropout=0.4, seed=seed, n=3) for _ in range(2)]
    assert again[0] == again[1]
    assert all("".join(enc.surfaces) == text for enc in again[0])


def test_dropout_of_byte_level_and_rank_files():
    tok = jittok.load_default()
    text = "or not to be, naïve ☃"
    assert tok.sample_encode(text, dropout=0) == tok.encode(text)
    assert tok.sample_encode(text, dropout=1).tokens == list(
        "".join(tok.id_to_token(i) for i in tok.encode(text)).replace(" ", "Ġ")
    )
    drawn = tok.sample_encode(text, dropout=0.5, seed=1, n=20)
    assert {tok.decode(enc) for enc in drawn} == {text} and len({tuple(enc.tokens) for enc in drawn}) > 10
    tokens = [*(bytes([byte]) for byte in range(256)), b"ab", b"aba"]
    ranks = b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))
    tok = jittok.load_bytes(ranks, format="tiktoken", pattern=r"\w+|\W+", special_tokens={})
    shapes = {tuple(enc.ids.tolist()) for enc in tok.sample_encode("aba", dropout=0.5, seed=0, n=100)}
    assert shapes == {(97, 98, 97), (256, 97), (257,)}


def test_batches():
    name = UNIGRAM[0]
    tok, texts = loaded(name), [FOX, "", "one two", FOX]
    first = tok.sample_encode_batch(texts, alpha=0.1, seed=5)
    assert first.to_lists() == tok.sample_encode_batch(texts, alpha=0.1, seed=5).to_lists()
    assert tok.decode_batch(first) == texts and first[1].ids.tolist() == []
    assert first.spans is not None and "".join(first[0].surfaces) == FOX
    assert first[0] != first[3]  # each text has random numbers of its own
    best = tok.sample_encode_batch(texts, nbest_size=1)
    assert best.to_lists() == tok.encode_batch(texts).to_lists()
    among = [{tuple(enc.ids.tolist()) for enc in tok.nbest_encode(text, 2)} for text in texts]
    drawn = tok.sample_encode_batch(texts, nbest_size=2, seed=1, add_eos=True)
    assert all(tuple(row[:-1]) in two for row, two in zip(drawn.to_lists(), among, strict=True))
    assert tok.sample_encode_batch([], seed=1).to_lists() == []
    data = np.frombuffer(b"xxone twothree", np.uint8), np.array([2, 9, 14])
    assert tok.decode_batch(tok.sample_encode_batch(data, seed=1)) == ["one two", "three"]


def test_errors_of_samples():
    unigram = Tokenizer(TokenizerSpec(UnigramModel(("<unk>", "a"), (0.0, -1.0), 0)))
    bpe = jittok.load_default()
    words = Tokenizer(TokenizerSpec(WordPieceModel({"[UNK]": 0, "a": 1})))
    for call in (
        lambda: bpe.nbest_encode("a", 2), lambda: bpe.entropy("a"), lambda: bpe.score(["a"]),
        lambda: words.sample_encode("a"), lambda: words.nbest_encode("a", 1), lambda: bpe.with_vocabulary(["a"]),
        lambda: bpe.encode("a", add_bos=True), lambda: unigram.encode_batch(["a"], reverse=True),
    ):  # fmt: skip
        with pytest.raises(UnsupportedError):
            call()
    for call in (
        lambda: unigram.nbest_encode("a", 513), lambda: unigram.nbest_encode("a", 0),
        lambda: unigram.sample_encode("a", dropout=0.1), lambda: bpe.sample_encode("a", alpha=0.1),
        lambda: bpe.sample_encode("a", nbest_size=2), lambda: unigram.sample_encode("a", nbest_size=600),
        lambda: unigram.sample_encode("a", alpha=-1), lambda: unigram.sample_encode("a", alpha=float("nan")),
        lambda: bpe.sample_encode("a", dropout=1.1), lambda: bpe.sample_encode("a", dropout=float("nan")),
        lambda: bpe.sample_encode("a", n=-1), lambda: unigram.entropy("a", alpha=-1),
        lambda: bpe.sample_encode("a", dropout="x"),
        lambda: unigram.sample_encode("a", alpha=True), lambda: unigram.entropy("a", alpha="x"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError):
            call()
    for call in (
        lambda: bpe.sample_encode("a", seed=0.5), lambda: unigram.nbest_encode(5, 2), lambda: unigram.nbest_encode("a", 1.5),
        lambda: unigram.sample_encode("a", nbest_size=1.5),
    ):  # fmt: skip
        with pytest.raises(ArgumentTypeError):
            call()
    with pytest.raises(TextError):
        unigram.nbest_encode("\ud800", 2)
    missing = Tokenizer(TokenizerSpec(UnigramModel(("a",), (-1.0,), None)))
    with pytest.raises(ArgumentError, match="no piece for unknown"):
        missing.nbest_encode("ab", 2)
    enc = unigram.nbest_encode("aa", 2)[0]
    assert pickle.loads(pickle.dumps(enc)).score == enc.score == -2.0
    assert unigram.encode("a").score is None


# ----------------------------------------------------------------------------------------- bos, eos, reverse order


@pytest.mark.parametrize("name", [BPE[0], UNIGRAM[1], JAPANESE])
def test_ends_and_reverse_order(name):
    tok, processor = loaded(name), reference(name)
    texts = [FOX, "", "☃ naïve", *random_texts(4, 10)]
    names = ("add_bos", "add_eos", "reverse")
    for wanted in itertools.product([False, True], repeat=3):
        options = dict(zip(names, wanted, strict=True))
        expected = [processor.encode(text, **options) for text in texts]
        assert [tok.encode(text, **options).ids.tolist() for text in texts] == expected
        for spans in (False, True):
            batch = tok.encode_batch(texts, spans=spans, **options)
            assert batch.to_lists() == expected
        assert [enc.tokens for enc in batch] == processor.encode(texts, out_type=str, **options)
        assert [tok.encode(text, **options).tokens for text in texts] == [enc.tokens for enc in batch]
        for text in texts[:2]:
            one, many = tok.encode(text, **options), tok.encode_batch([text], spans=True, **options)[0]
            assert one.spans.tolist() == many.spans.tolist() and one.word_ids.tolist() == many.word_ids.tolist()
    cut = tok.encode(FOX, add_bos=True, add_eos=True, reverse=True, max_length=5)
    whole = tok.encode(FOX, reverse=True).ids.tolist()
    assert cut.ids.tolist() == [tok.spec.model.bos_id, *whole[:3], tok.spec.model.eos_id]
    assert cut.special_tokens_mask.tolist() == [1, 0, 0, 0, 1]
    assert tok.encode(FOX, add_bos=True, add_special_tokens=False).ids[0] == tok.spec.model.bos_id
    with pytest.raises(ArgumentError, match="single texts"):
        tok.encode("a", "b", add_eos=True)
    with pytest.raises(ArgumentError, match="single texts"):
        tok.encode_batch(["a"], ["b"], reverse=True)


def test_missing_ends():
    tok = loaded(UNIGRAM[0])  # has no <s>
    with pytest.raises(ArgumentError, match="add_bos.*bos_id is -1"):
        tok.encode("a", add_bos=True)
    assert tok.encode("a", add_eos=True).tokens[-1] == "</s>"


# ------------------------------------------------------------------------------------------- vocabulary restriction


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # What sentencepiece 0.2.0 gives after SetVocabulary; later versions have none.
        (UNIGRAM[1], "17 261 267 15036 553 101 4617 17 597 0 189 17 0 12456 101 4617 101 368 150 553 101 4617"),
        (UNIGRAM[0], "14145 1707 3 29 9 2 162 3 2 1038 1707"),
        (BPE[0], "29871 29873 29877 29895 264 2133 29871 29876 29874 30085 345 29871 229 155 134 297 357 29876 29874"
                 " 29873 291 29874 29880 2133"),
    ],
)  # fmt: skip
def test_vocabulary_as_sentencepiece(name, expected):
    tok = loaded(name)
    restricted = tok.with_vocabulary(tok.id_to_token(i) for i in range(0, tok.vocab_size, 3))
    found = restricted.encode("tokenization naïve ☃ internationalization")
    assert " ".join(map(str, found.ids.tolist())) == expected
    assert restricted != tok and restricted.with_vocabulary(None) == tok
    assert pickle.loads(pickle.dumps(restricted)) == restricted


@settings(max_examples=10 if JIT_DISABLED else 60, deadline=None)
@given(st.data())
def test_restricted_models_are_those_of_files(data):
    """A file whose pieces have these types gives the same ids, and is what is written."""
    spm = pytest.importorskip("sentencepiece")
    names = data.draw(st.lists(st.text("ab▁é", min_size=1, max_size=4), min_size=1, max_size=12, unique=True))
    pieces = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL)]
    pieces += [(p, -float(data.draw(st.integers(1, 9))), data.draw(st.sampled_from([NORMAL] * 6 + [USER_DEFINED, UNUSED]))) for p in names]  # fmt: skip  # noqa: E501
    kind = data.draw(st.sampled_from([1, 2]))
    wanted = data.draw(st.sets(st.sampled_from([*names, "none"])))
    given_model = small_model(pieces, model_type=kind)
    try:
        tok = jittok.load_bytes(given_model).with_vocabulary(wanted)
    except jittok.errors.FormatError:
        return  # nothing in it stands for text
    types = [t if t in (UNKNOWN, CONTROL, USER_DEFINED) else NORMAL if p in wanted or len(p) == 1 else UNUSED for p, _, t in pieces]  # fmt: skip  # noqa: E501
    assert list(tok.spec.model.types) == types
    expected = small_model([(p, s, t) for (p, s, _), t in zip(pieces, types, strict=True)], model_type=kind)
    processor = spm.SentencePieceProcessor(model_proto=expected)
    texts = data.draw(st.lists(st.text("abé c", max_size=12), max_size=4))
    assert tok.encode_batch(texts).to_lists() == processor.encode(texts)
    from jittok.formats import sentencepiece_model

    assert jittok.load_bytes(sentencepiece_model.write(tok.spec)) == tok


def test_vocabulary_errors():
    word = jittok.load_bytes(small_model([("<unk>", 0.0, UNKNOWN), ("a", 0.0, NORMAL)], model_type=3))
    with pytest.raises(UnsupportedError, match="unigram or bpe"):
        word.with_vocabulary(["a"])
    tok = jittok.load_bytes(small_model([("<unk>", 0.0, UNKNOWN), ("a", 0.0, NORMAL)]))
    for wrong in ("ab", [1], 5):
        with pytest.raises(ArgumentTypeError, match="pieces"):
            tok.with_vocabulary(wrong)


def test_surfaces():
    tok = jittok.load_default()
    enc = tok.encode("To be ☃", "or")
    assert enc.surfaces[:2] == ["To", " be"] and enc.surfaces[-1] == "or"
    assert tok.encode(["To", "be"], is_split_into_words=True).surfaces == ["To", "be"]
    with pytest.raises(ArgumentError, match="spans"):
        _ = tok.encode_batch(["a"])[0].surfaces

"""What is done to logits: against transformers' recorded results, and against slow plain twins."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import reference_generation as twin
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import FIXTURES

import jittok.generation as generation
from jittok.errors import ArgumentError, ArgumentTypeError, GenerationError
from jittok.generation import LogitsProcessor, sample

END = 2


def distribution(row):
    kept = np.isfinite(row)
    result = np.zeros(len(row))
    result[kept] = np.exp(row[kept] - row[kept].max())
    return result / result.sum()


def recorded_cases():
    return json.loads((FIXTURES / "processors.json").read_text())["cases"]


def test_transformers_distributions():
    """Each alone and combined, to 1e-6; what is kept exactly."""
    cases = recorded_cases()
    alone = {next(iter(case["settings"])) for case in cases if len(case["settings"]) == 1}
    assert len(alone) == 11 and sum(len(case["settings"]) > 2 for case in cases) >= 30
    for case in cases:
        options = dict(case["settings"])
        flags = {
            "end_is_banned": options.pop("end_is_banned", False),
            "is_first": "forced_bos_token_id" in options,
            "is_last": "forced_eos_token_id" in options,
        }
        beams = case["least"]  # two tokens are kept in beam search
        process = LogitsProcessor(
            do_sample=True, num_beams=beams, eos_token_id=END, log_softmax=case["logarithms"], **options
        )
        logits = np.array(case["logits"], np.float32)
        assert process(logits, np.array(case["ids"]), **flags) is logits
        for row, (tokens, values) in zip(logits, case["kept"], strict=True):
            assert np.flatnonzero(np.isfinite(row)).tolist() == tokens, case["settings"]
            expected = np.full(len(row), -np.inf)
            expected[tokens] = values
            assert np.abs(distribution(row) - distribution(expected)).max() <= 1e-6, case["settings"]
            np.testing.assert_allclose(row[tokens], values, rtol=2e-6, atol=2e-6)


@st.composite
def problems(draw):
    size = draw(st.sampled_from([1, 2, 5, 63, 64, 65, 130, 700]))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    row = generator.normal(0, draw(st.sampled_from([0.01, 1.0, 6.0])), size).astype(np.float32)
    if draw(st.booleans()):
        row = np.round(row)  # many equal ones
    if draw(st.booleans()):
        row[generator.random(size) < 0.5] = -np.inf
        row[draw(st.integers(0, size - 1))] = 1.0
    ids = generator.integers(0, min(size + 1, 6), draw(st.integers(0, 12))).tolist()
    chosen = {
        "repetition_penalty": st.sampled_from([0.5, 1.1, 3.0]),
        "no_repeat_ngram_size": st.integers(1, 4),
        "bad_words_ids": st.lists(st.lists(st.integers(0, min(size - 1, 5)), min_size=1, max_size=3), max_size=4),
        "temperature": st.sampled_from([0.2, 0.9, 4.0]),
        "top_k": st.integers(1, size + 3),
        "top_p": st.sampled_from([0.0, 0.3, 0.8, 0.999]),
        "min_p": st.sampled_from([0.001, 0.1, 1.0]),
        "typical_p": st.sampled_from([0.05, 0.5, 0.97]),
    }
    return row, ids, {name: draw(how) for name, how in chosen.items() if draw(st.integers(0, 2)) == 0}


@settings(max_examples=150, deadline=None)
@given(problems(), st.booleans(), st.sampled_from([1, 2]))
def test_plain_twin(problem, log_probabilities, beams):
    row, ids, options = problem
    process = LogitsProcessor(do_sample=True, num_beams=beams, log_softmax=log_probabilities, **options)
    expected = twin.process(row, ids, log_probabilities=log_probabilities, least=beams, **options)
    logits = np.array([row])
    if not any(math.isfinite(x) for x in expected):
        with pytest.raises(GenerationError, match="masked"):
            process(logits, [ids])
        return
    # Equal and nearly equal probabilities at a threshold may fall to either side: then the rest must be alike.
    found = process(logits, np.array([ids], np.int64).reshape(1, -1))[0]
    expected = np.array(expected)
    differ = np.isfinite(found) != np.isfinite(expected)
    if differ.any():
        edited = {name: value for name, value in options.items() if not name.startswith(("top", "min", "typ"))}
        before = np.array(twin.process(row, ids, log_probabilities=log_probabilities, **edited))
        shares = distribution(before)
        assert differ.sum() <= 2 and shares[differ].max() - shares[differ].min() < 1e-4
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_each_function_is_its_setting():
    logits = np.random.default_rng(1).normal(0, 2, (3, 200)).astype(np.float32)
    ids = np.random.default_rng(2).integers(0, 9, (3, 14))
    pairs = [
        (generation.scale_by_temperature, (0.5,), {"temperature": 0.5}, {}),
        (generation.keep_top_k, (5,), {"top_k": 5}, {}),
        (generation.keep_top_p, (0.5,), {"top_p": 0.5}, {}),
        (generation.keep_min_p, (0.1,), {"min_p": 0.1}, {}),
        (generation.keep_typical, (0.5,), {"typical_p": 0.5}, {}),
        (generation.penalize_repetition, (ids, 1.5), {"repetition_penalty": 1.5}, {}),
        (generation.ban_repeated_ngrams, (ids, 2), {"no_repeat_ngram_size": 2}, {}),
        (generation.ban_words, (ids, [[1], [int(ids[0, -1]), 3]]), {"bad_words_ids": [[1], [int(ids[0, -1]), 3]]}, {}),
        (generation.ban_tokens, ([3, 4],), {}, {"end_ids": [3, 4], "is_banned": True}),
        (generation.log_softmax, (), {}, {"log_probabilities": True}),
    ]
    for function, arguments, options, more in pairs:
        found = logits.copy()
        assert function(found, *arguments) is found and not np.array_equal(found, logits)
        for row in range(3):
            expected = twin.process(logits[row], ids[row].tolist(), **options, **more)
            np.testing.assert_allclose(found[row], expected, rtol=1e-5, atol=1e-5, err_msg=function.__name__)
    forced = generation.force_token(logits.copy(), 7)
    assert (forced[:, 7] == 0).all() and np.isinf(np.delete(forced, 7, 1)).all()
    lengths = [0, 3, 14]
    found = generation.penalize_repetition(logits.copy(), ids, 1.5, lengths)
    for row in range(3):
        expected = twin.process(logits[row], ids[row, : lengths[row]].tolist(), repetition_penalty=1.5)
        np.testing.assert_allclose(found[row], expected, rtol=1e-6)


def test_exponentials():
    """The plain form of what kernels compute: close to the true ones, and 0 far below."""
    from jittok.kernels.machine import put_exponentials

    values = np.concatenate([-np.geomspace(1e-6, 86.9, 61), [0.0, -87.5, -np.inf]]).astype(np.float32)
    plain = np.zeros(64, np.float32)
    total = put_exponentials(plain, 0, values, 0, np.float32(0))
    true = np.exp(values.astype(np.float64))
    assert (plain[-2:] == 0).all() and np.abs(plain[:-2] / true[:-2] - 1).max() < 3e-7
    assert abs(float(total) / true.sum() - 1) < 1e-6


class TestRandomNumbers:
    def test_known_answers(self):
        """Those that the authors of Philox publish."""
        from jittok.kernels.logits import philox

        assert twin.philox((0, 0, 0, 0), (0, 0)) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
        ones = 0xFFFFFFFF
        assert twin.philox((ones,) * 4, (ones,) * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
        generator = np.random.default_rng(0)
        for _ in range(20):
            a, b, key = (int(x) for x in generator.integers(0, 2**64, 3, dtype=np.uint64))
            with np.errstate(over="ignore"):
                found = int(philox(np.uint64(a), np.uint64(b), np.uint64(key)))
            words = twin.philox((a % 2**32, a >> 32, b % 2**32, b >> 32), (key % 2**32, key >> 32))
            assert found == words[0] | words[1] << 32

    def test_draws_depend_on_stream_position_and_seed_only(self):
        logits = np.random.default_rng(1).normal(0, 2, (6, 300)).astype(np.float32)
        streams, positions = np.arange(6) * 7, np.arange(6) + 3
        tokens, scores = sample(logits, 5, streams, positions)
        order = [4, 0, 5, 1, 3, 2]
        again, _ = sample(logits[order], 5, streams[order], positions[order])
        assert again.tolist() == tokens[order].tolist()
        alone = [int(sample(logits[i : i + 1], 5, streams[i : i + 1], positions[i])[0][0]) for i in range(6)]
        assert alone == tokens.tolist()
        expected = [twin.log_softmax(row.tolist())[token] for row, token in zip(logits, tokens, strict=True)]
        np.testing.assert_allclose(scores, expected, atol=1e-5)
        assert any(sample(logits, seed, streams, positions)[0].tolist() != tokens.tolist() for seed in (6, 7))

    def test_frequencies(self):
        """Chi-squared of 20,000 draws from 70 tokens, some of them out, stays below what one in a million exceeds."""
        row = np.random.default_rng(4).normal(0, 1.5, 70).astype(np.float32)
        row[[3, 64, 69]] = -np.inf
        draws, _ = sample(np.repeat(row[None], 20_000, axis=0), 11)
        counts = np.bincount(draws, minlength=70)
        assert counts[[3, 64, 69]].sum() == 0
        expected = distribution(row) * 20_000
        large = expected >= 5
        squares = ((counts - expected)[large] ** 2 / expected[large]).sum()
        freedom = large.sum() - 1
        limit = freedom * (1 - 2 / (9 * freedom) + 4.75 * math.sqrt(2 / (9 * freedom))) ** 3  # Wilson and Hilferty
        assert squares < limit
        assert squares > freedom * (1 - 2 / (9 * freedom) - 4.75 * math.sqrt(2 / (9 * freedom))) ** 3


class TestBadInput:
    def test_logits(self):
        for value in (np.nan, -np.nan, np.inf):
            logits = np.zeros((3, 70), np.float32)
            logits[1, 65] = value
            with pytest.raises(GenerationError, match="row 1.*NaN or infinity"):
                generation.keep_top_k(logits, 2)
        logits = np.zeros((2, 4), np.float32)
        logits[1] = -np.inf
        with pytest.raises(GenerationError, match="row 1: every token is masked"):
            generation.log_softmax(logits)
        with pytest.raises(GenerationError, match="divided by the temperature"):
            generation.scale_by_temperature(np.full((1, 3), 1e30, np.float32), 1e-30)

    @pytest.mark.parametrize(
        ("logits", "error"),
        [
            (np.zeros((2, 3)), ArgumentTypeError),
            ([[1.0]], ArgumentTypeError),
            (np.zeros(3, np.float32), ArgumentError),
            (np.zeros((2, 0), np.float32), ArgumentError),
            (np.zeros((4, 6), np.float32)[:, ::2], ArgumentError),
            (np.broadcast_to(np.float32(1), (2, 3)), ArgumentError),
        ],
    )
    def test_arrays(self, logits, error):
        with pytest.raises(error, match="logits"):
            generation.keep_top_k(logits, 2)

    def test_other_arrays(self):
        logits = np.zeros((2, 5), np.float32)
        for ids in (np.zeros((3, 2), int), np.zeros(4, int), np.zeros((2, 2))):
            with pytest.raises(ArgumentError, match="ids of shape"):
                generation.penalize_repetition(logits, ids, 2.0)
        for lengths in ([1], [1, 3], [-1, 0]):
            with pytest.raises(ArgumentError, match="lengths"):
                generation.penalize_repetition(logits, np.zeros((2, 2), int), 2.0, lengths)
        with pytest.raises(ArgumentError, match="token 5 is not among the 5"):
            generation.ban_tokens(logits, 5)
        # Tokens that the vocabulary lacks are left alone.
        generation.penalize_repetition(logits, np.array([[-1, 99], [2**31 - 1, 0]]), 2.0)
        assert generation.keep_top_k(np.zeros((0, 5), np.float32), 1).shape == (0, 5)

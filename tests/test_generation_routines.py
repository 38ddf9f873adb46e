"""Routines around a step: what holds whatever the model, stop strings, streams, and what goes wrong."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import reference_generation as twin
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import FIXTURES

import jittok
from jittok.errors import ArgumentError, ArgumentTypeError, GenerationError, JittokError
from jittok.generation import Generated, GenerationSettings, StopStrings, TextStream, generate, stream


def bigram(size=7, seed=0, spread=2.0):
    """A step function that looks at the last token only, and its table."""
    table = np.random.default_rng(seed).normal(0, spread, (size, size)).astype(np.float32)
    table.flags.writeable = False

    def step(ids, state, beam_index):
        return table[ids[:, -1]], state

    return step, table


def script(texts, tokenizer, size=None):
    """A step that says these texts, one for each prompt, and their number of prompts."""
    rows = [tokenizer.encode(text).ids for text in texts]
    size = size or tokenizer.id_limit

    def step(ids, state, beam_index):
        at, rows_now = (0, np.arange(len(ids))) if beam_index is None else (state[0], state[1][beam_index])
        logits = np.zeros((len(ids), size), np.float32)
        for i, row in enumerate(rows_now):
            logits[i, rows[row][min(at, len(rows[row]) - 1)]] = 50
        return logits, (at + 1, rows_now)

    return step, rows


class TestStep:
    def test_what_a_step_gets(self):
        calls = []

        def step(ids, state, beam_index):
            calls.append((ids.tolist(), state, None if beam_index is None else beam_index.tolist()))
            logits = np.zeros((len(ids), 1, 5), np.float16)
            logits[:, 0, (ids[:, -1] + 1) % 5] = np.eye(5)[(ids[:, -1] + 1) % 5][:, (ids[:, -1] + 1) % 5] * 9
            return logits, len(calls)

        result = generate(step, [[1], [0, 2]], state="first", max_new_tokens=3, eos_token_id=4, pad_token_id=3)
        assert calls[0] == ([[3, 1], [0, 2]], "first", None)
        assert calls[1] == ([[2], [3]], 1, [0, 1])
        # The second prompt has ended: its row is gone.
        assert calls[2] == ([[3]], 2, [0]) and len(calls) == 3
        assert [sequence.ids.tolist() for sequence in result] == [[2, 3, 4], [3, 4]]
        assert [sequence.finish_reason for sequence in result] == ["end", "end"]
        assert result[0].sequence.tolist() == [1, 2, 3, 4] and result.of_prompt(1) == [result[1]]

    def test_a_state_is_put_in_order_by_the_index(self):
        """Each row's state, all its tokens, is the beginning of what beam search follows."""
        step, table = bigram(9)
        seen = []

        def keeps(ids, state, beam_index):
            state = ids if beam_index is None else np.concatenate([state[beam_index], ids], 1)
            seen.append(state)
            return table[state[:, -1]], state

        for options in ({"num_beams": 3}, {"num_beams": 4, "num_beam_groups": 2}, {"do_sample": True, "seed": 1}):
            seen.clear()
            result = generate(keeps, [[1], [3], [5]], max_new_tokens=5, **options)
            for sequence in result:
                assert sequence.sequence[:-1].tolist() in seen[-1].tolist()

    def test_logits_are_not_changed(self):
        step, table = bigram(50)
        before = table.copy()
        for options in ({}, {"do_sample": True, "top_k": 4, "seed": 0}, {"num_beams": 3}):
            generate(step, [[1]], max_new_tokens=4, repetition_penalty=2.0, no_repeat_ngram_size=1, **options)
            assert np.array_equal(table, before)

    def test_no_prompts(self):
        assert len(generate(lambda *_: 1 / 0, [], max_new_tokens=3)) == 0
        assert len(generate(lambda *_: 1 / 0, np.zeros((0, 4), int), max_new_tokens=3, num_beams=2)) == 0


class TestSearch:
    @pytest.mark.parametrize("power", [0.0, 1.0, 2.5])
    def test_a_wide_beam_finds_the_best(self, power):
        step, table = bigram(4, seed=3)
        logs = np.array([twin.log_softmax(row) for row in table.tolist()], np.float32)
        result = generate(
            step, [[1], [2]], max_new_tokens=4, num_beams=64, num_return_sequences=5, length_penalty=power
        )
        for prompt, start in ((0, 1), (1, 2)):
            expected = twin.best_sequences(logs, start, 4, 5, power)
            found = result.of_prompt(prompt)
            assert [sequence.ids.tolist() for sequence in found] == [ids for _, ids in expected]
            np.testing.assert_allclose([sequence.score for sequence in found], [s for s, _ in expected], rtol=1e-5)

    def test_order_of_prompts_and_threads(self):
        step, _ = bigram(80)
        prompts = [[3], [7, 2], [3], [9], [1, 1, 1]]
        order = [4, 2, 0, 3, 1]
        for options in (
            {"do_sample": True, "num_return_sequences": 2, "top_p": 0.9},
            {"do_sample": True, "num_beams": 3, "num_return_sequences": 2},
            {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1.0, "num_return_sequences": 3},
        ):
            def run(prompts, threads=1, options=options):
                return generate(step, prompts, max_new_tokens=7, seed=3, threads=threads, eos_token_id=5, **options)

            first = run(prompts)
            ids = [[sequence.ids.tolist() for sequence in first.of_prompt(i)] for i in range(5)]
            for threads in (2, 3, 8):
                again = run(prompts, threads)
                assert [[s.ids.tolist() for s in again.of_prompt(i)] for i in range(5)] == ids
            other = run([prompts[i] for i in order])
            moved = [[s.ids.tolist() for s in other.of_prompt(order.index(i))] for i in range(5)]
            assert [moved[i] for i in (1, 3, 4)] == [ids[i] for i in (1, 3, 4)]
            assert sorted([moved[0], moved[2]]) == sorted([ids[0], ids[2]])  # equal prompts: each has draws of its own
            if options.get("num_beams", 1) == 1:
                assert ids[0] != ids[2]
                assert run(prompts[:2], 2)[2].ids.tolist() == ids[1][0]
        assert generate(step, [[3]], max_new_tokens=9, do_sample=True)[0].ids.tolist() != generate(
            step, [[3]], max_new_tokens=9, do_sample=True
        )[0].ids.tolist()

    def test_beam_samples_have_the_right_frequencies(self):
        """Two drawn without replacement out of four, one token long: how often each pair comes."""
        probabilities = np.array([0.5, 0.25, 0.15, 0.1])
        logits = np.log(probabilities).astype(np.float32)
        prompts = [[0]] * 6000
        result = generate(
            lambda ids, state, index: (np.repeat(logits[None], len(ids), 0), state), prompts, max_new_tokens=1,
            do_sample=True, num_beams=2, num_return_sequences=2, seed=4,
        )  # fmt: skip
        # Of the four drawn (twice as many as beams), all of them, the two best are returned: always 0 and 1.
        assert {tuple(s.ids.tolist()) for s in result} == {(0,), (1,)}
        wide = np.log(np.array([0.3, 0.25, 0.2, 0.1, 0.06, 0.05, 0.04])).astype(np.float32)
        result = generate(
            lambda ids, state, index: (np.repeat(wide[None], len(ids), 0), state), prompts, max_new_tokens=1,
            do_sample=True, num_beams=2, seed=4,
        )  # fmt: skip
        best = np.bincount([int(s.ids[0]) for s in result], minlength=7) / len(prompts)
        shares = np.exp(wide.astype(np.float64))
        expected = np.zeros(7)

        def draw(left, chance, chosen):
            if len(chosen) == 4:
                expected[min(chosen)] += chance
                return
            for token in left:
                part = shares[token] / sum(shares[i] for i in left)
                draw(left - {token}, chance * part, [*chosen, token])

        draw(frozenset(range(7)), 1.0, [])
        assert np.abs(best - expected).max() < 5 * np.sqrt(0.25 / len(prompts))

    def test_lengths(self):
        step, _ = bigram(6)
        for options in ({}, {"do_sample": True, "seed": 1}, {"num_beams": 3}, {"num_beams": 2, "num_beam_groups": 2}):
            ends = {"eos_token_id": [0, 1, 2, 3, 4]}  # nearly everything ends
            short = generate(step, [[5], [5, 5]], max_length=6, min_length=4, **ends, **options)
            assert all(4 < len(s.sequence) <= 6 for s in short)
            new = generate(step, [[5], [5, 5]], max_new_tokens=6, min_new_tokens=3, **ends, **options)
            assert all(3 < len(s.ids) <= 6 for s in new)
            forced = generate(
                step, [[5]], max_new_tokens=4, forced_bos_token_id=2, forced_eos_token_id=1, min_new_tokens=4,
                eos_token_id=1, **options,
            )  # fmt: skip
            assert all(s.ids[0] == 2 and s.ids[-1] == 1 and len(s.ids) == 4 for s in forced)
            assert all(s.finish_reason == "end" for s in forced)
        lengths = [len(s.ids) for s in generate(step, [[5], [1, 2, 3]], max_length=5)]
        assert lengths == [4, 2]

    def test_a_limit_for_form_only(self):
        """Room is made as it is needed."""

        def step(ids, state, beam_index):
            logits = np.zeros((len(ids), 5), np.float32)
            logits[:, 4 if (state or 0) >= 700 else 1] = 40
            return logits, (state or 0) + 1

        for options in ({}, {"num_beams": 2, "early_stopping": True}, {"num_beams": 2, "num_beam_groups": 2}):
            result = generate(step, [[3], [3, 2]], max_new_tokens=2**31 - 1, eos_token_id=4, **options)
            if options.get("num_beam_groups") is None:
                assert [s.ids.tolist() for s in result] == [[1] * 700 + [4]] * 2
                assert [s.token_scores.shape for s in result] == [(701,)] * 2

    def test_fewer_candidates_than_beams(self):
        table = np.full((3, 3), -np.inf, np.float32)
        table[0, 1] = table[1, 2] = table[2, 0] = 0  # one way only
        step = lambda ids, state, index: (table[ids[:, -1]], state)  # noqa: E731
        for options in ({}, {"do_sample": True, "seed": 1}):
            result = generate(step, [[0]], max_new_tokens=4, num_beams=4, num_return_sequences=3, **options)
            assert [s.ids.tolist() for s in result] == [[1, 2, 0, 1]]
        one = generate(lambda ids, state, index: (np.zeros((len(ids), 1)), state), [[0]], max_new_tokens=2, num_beams=3)
        assert one[0].ids.tolist() == [0, 0]

    @pytest.mark.parametrize(
        ("size", "beams", "ends", "options"),
        [
            (20, 400, 0, {}), (20, 120, 0, {"do_sample": True}), (3, 1024, 0, {"do_sample": True}), (3, 1024, 2, {}),
            (60, 12, 40, {}), (60, 12, 40, {"do_sample": True, "top_k": 30, "typical_p": 0.9}), (1, 300, 1, {}),
            (8, 300, 0, {"num_beam_groups": 2, "diversity_penalty": 0.5}), (9, 500, 3, {"do_sample": True, "threads": 2}),
        ],
    )  # fmt: skip
    def test_more_candidates_than_tokens(self, monkeypatch, size, beams, ends, options):
        """Nothing is written behind the scratch: it lies in memory whose other items must stay."""
        from jittok.kernels import logits

        fences, new_work = [], logits.new_work

        def fenced(*arguments):
            work = new_work(*arguments)
            room = len(work.heap)
            memory = np.full(room + 20_000, 77, np.int64)
            fences.append(memory[room:])
            return work._replace(heap=memory[:room])

        monkeypatch.setattr(logits, "new_work", fenced)
        step, table = bigram(size, seed=5)
        options = {"max_new_tokens": 4, "num_beams": beams, "num_return_sequences": beams, "seed": 2} | options
        result = generate(step, [[0], [0, 0]], eos_token_id=list(range(ends)), **options)
        assert fences and all((fence == 77).all() for fence in fences)
        logs = np.array([twin.log_softmax(row) for row in table.tolist()])
        for number in (0, 1):
            found = result.of_prompt(number)
            scores = [sequence.score for sequence in found]
            assert scores == sorted(scores, reverse=True)
            ids = [tuple(sequence.ids.tolist()) for sequence in found]
            if "num_beam_groups" not in options:
                assert len(set(ids)) == len(ids)
                if "top_k" not in options:
                    for one in found:
                        path = one.sequence[-len(one.ids) - 1 :]
                        assert one.score == pytest.approx(logs[path[:-1], path[1:]].sum() / len(one.ids), rel=1e-4)
            if not ends and "num_beam_groups" not in options:
                assert len(ids) == min(beams, size**4)

    def test_beams_that_there_are_not_take_nothing(self):
        """Two tokens for groups of three beams: what the penalty costs does not depend on the tokens' numbers."""
        found = []
        for first in (0, 1):
            row = np.full((1, 4), -np.inf, np.float32)
            row[0, first : first + 2] = -0.474, -0.974
            result = generate(
                lambda ids, state, _, row=row: (np.repeat(row, len(ids), 0), state), [[3]], max_new_tokens=1, num_beams=6,
                num_beam_groups=2, diversity_penalty=0.5, num_return_sequences=4,
            )  # fmt: skip
            found.append([(int(sequence.ids[0]) - first, round(sequence.score, 4)) for sequence in result])
        assert found[0] == found[1] and len(found[0]) == 4

    def test_padding_outside_of_the_vocabulary(self):
        """Groups of beams that are done take the padding token, which then costs the others nothing."""
        table = np.random.default_rng(3).normal(size=(61, 61)).astype(np.float32)
        table[:, 2] += 2
        table[:, 0] = -np.inf
        prompts = np.random.default_rng(4).integers(3, 61, (5, 3))
        options = {"num_beams": 6, "num_beam_groups": 3, "diversity_penalty": 1.0, "early_stopping": True}

        def found(pad):
            step = lambda ids, state, _: (table[np.minimum(ids[:, -1], 60)], state)  # noqa: E731
            result = generate(step, prompts, max_new_tokens=12, eos_token_id=2, pad_token_id=pad, **options)
            return [(sequence.ids.tolist(), sequence.score) for sequence in result]

        assert found(61) == found(1_000_000) == found(0)


class TestText:
    tok = jittok.load_default()

    @settings(max_examples=60, deadline=None)
    @given(
        st.text(alphabet="ab\u00e9 \U0001f469\u200d", min_size=1, max_size=25),
        st.lists(st.text(alphabet="ab\u00e9\U0001f469", min_size=1, max_size=3), min_size=1, max_size=4),
        st.randoms(),
    )
    def test_stop_strings_like_find(self, text, stops, random):
        ids = self.tok.encode(text).ids.tolist()
        shown = TextStream(self.tok, stops=StopStrings(stops), skip_special_tokens=False)
        pieces, fork_at = [], random.randrange(len(ids) + 1)
        for i, token in enumerate(ids):
            if i == fork_at:
                other = shown.fork()
                other.push(ids[0])  # what a fork sees, the other does not
            pieces.append(shown.push(token))
        assert ("".join([*pieces, shown.finish()]), shown.is_stopped) == twin.cut_at_stop(text, stops)
        # What was given out before is never taken back.
        full = "".join(pieces)
        assert twin.cut_at_stop(text, stops)[0].startswith(full)

    def test_stop_across_tokens_ends_a_sequence(self):
        texts = ["one two<|EN", "ab STOPPING here", "caf\u00e9\u00e9!! \U0001f469 END of all"]
        step, rows = script(texts, self.tok)
        for options in ({}, {"num_beams": 2}):
            result = generate(
                step, [[1], [2], [3]], tokenizer=self.tok, max_new_tokens=14, stop_strings=["OPP", "\u00e9!", "END"],
                **options,
            )  # fmt: skip
            assert [s.text for s in result][1:] == ["ab ST", "caf\u00e9"]
            assert [s.finish_reason for s in result] == ["length", "stop", "stop"]
            assert self.tok.decode(result[1].ids).startswith("ab STOPP")
            assert len(result[1].ids) <= len(rows[1])

    def test_streams(self):
        texts = ["na\u00efve \U0001f469\u200d\U0001f469\u200d\U0001f467 text", "another, shorter"]
        step, rows = script(texts, self.tok)
        shown = {0: "", 1: ""}
        n = max(map(len, rows))
        result = generate(
            step, [[5], [6]], tokenizer=self.tok, max_new_tokens=n,
            on_text=lambda i, text: shown.__setitem__(i, shown[i] + text),
        )  # fmt: skip
        assert [shown[0], shown[1]] == result.texts and shown[0] == texts[0]
        chunks = list(stream(step, [[5], [6]], tokenizer=self.tok, max_new_tokens=n, stop_strings="er, s"))
        assert "".join(chunk.text for chunk in chunks if chunk.sequence == 1) == "anoth"
        last = [chunk for chunk in chunks if chunk.sequence == 1][-1]
        assert last.finish_reason == "stop" and "\ufffd" not in "".join(chunk.text for chunk in chunks)
        assert [chunk.token_id for chunk in chunks if chunk.sequence == 0] == result[0].ids.tolist()

    def test_text_is_what_follows_the_prompt(self):
        prompt = self.tok.encode("The quick brown").ids
        step, rows = script([" fox"], self.tok)
        result = generate(step, [prompt], tokenizer=self.tok, max_new_tokens=len(rows[0]))
        assert result[0].text == " fox"
        again = generate(step, ["The quick brown"], tokenizer=self.tok, max_new_tokens=1)
        assert again[0].prompt_ids.tolist() == prompt.tolist()

    def test_tokens_without_text(self):
        """A model with more tokens than its tokenizer, and special tokens."""
        size = self.tok.id_limit + 40
        end = self.tok.token_to_id("<|endoftext|>")
        rows = np.eye(size, dtype=np.float32)[[size - 1, end]] * 9
        step = lambda ids, state, index: (rows[: len(ids)], state)  # noqa: E731
        result = generate(step, [[1], [2]], tokenizer=self.tok, max_new_tokens=2, eos_token_id=end)
        assert result.texts == ["", ""] and result[1].ids.tolist() == [end]

    def test_forks_of_every_kind_of_decoder(self):
        from jittok.spec import (
            BPEModel,
            DecodeBPE,
            DecodeByteFallback,
            DecodeByteLevel,
            DecodeCTC,
            DecodeFuse,
            DecodeStrip,
            TokenizerSpec,
        )
        from jittok.tokenizer import Tokenizer

        vocab = {token: i for i, token in enumerate(["a", "b</w>", "<0xC3>", "<0xA9>", "\u00c3", "\u00a9", " ", "c</w>"])}
        for decoders in (
            (DecodeBPE("</w>"),), (DecodeByteFallback(), DecodeFuse(), DecodeStrip(" ", 1, 1)), (DecodeByteLevel(),),
            (DecodeCTC("a", " ", False),), (DecodeFuse(), DecodeBPE("</w>")), (),
        ):  # fmt: skip
            tok = Tokenizer(TokenizerSpec(model=BPEModel(vocab, ()), decoders=decoders))
            ids = [6, 0, 2, 3, 1, 4, 5, 7, 2, 6]
            for cut in range(len(ids)):
                one = tok.decode_stream()
                before = "".join(one.push(i) for i in ids[:cut])
                two = one.fork()
                for other in (0, 2, 4):  # the original goes another way
                    one.push(other)
                one.finish()
                assert before + "".join(two.push(i) for i in ids[cut:]) + two.finish() == tok.decode(ids), (decoders, cut)


class TestPrompts:
    def test_transformers_arrays(self):
        root = os.environ.get("JITTOK_TEST_DATA")
        if not root:
            pytest.skip("set JITTOK_TEST_DATA to a folder that holds models/ to test with real tokenizers")
        texts = ["Hello world", "The quick brown fox jumps over the lazy dog.", "na\u00efve caf\u00e9 \U0001f469\u200d\U0001f469\u200d\U0001f467 don't", "x"]  # noqa: E501
        targets = ["Bonjour le monde", "Le renard brun rapide saute par-dessus le chien paresseux.", "l'\u00e9t\u00e9", "y"]
        cases = json.loads((FIXTURES / "prompts.json").read_text(encoding="utf-8"))["cases"]
        loaded = {}
        for case in cases:
            folder = Path(root) / "models" / case["folder"]
            if not folder.is_dir():
                pytest.skip(f"{folder} is not there")
            side = {"side": "target"} if case["texts"] == "target" else {}
            key = (case["tokenizer"], *side)
            tok = loaded.setdefault(key, jittok.load(folder, **side) if key not in loaded else None)
            given_texts = (targets,) if case["texts"] == "target" else (texts, targets) if case["texts"] else (texts,)
            padded = tok.encode_batch(*given_texts).pad(side=case["side"], pad_id=case["pad_id"], **case["pad"])
            expected = case["arrays"]
            names = [name for name in expected if name != "labels"]
            arrays = padded.model_inputs(*names)
            for name in names:
                assert arrays[name].dtype == np.int64 and arrays[name].tolist() == expected[name], case
            mask = np.array(expected["attention_mask"])
            assert padded.position_ids.tolist() == ((mask.cumsum(1) - 1) * mask).tolist()
        assert len(cases) == 51 and len(loaded) == 5

    def test_padded(self):
        tok = jittok.load_default()
        batch = tok.encode_batch(["To be", "or not to be, that is", "x"])
        padded = batch.pad(side="left", pad_id=0, multiple_of=8)
        ids, mask = padded
        assert padded.ids is ids and padded.mask is mask and ids.shape[1] % 8 == 0
        assert padded.attention_mask.dtype == np.int64 and padded.type_ids.shape == ids.shape
        copy = pickle.loads(pickle.dumps(padded))
        assert np.array_equal(copy.ids, ids) and np.array_equal(copy.type_ids, padded.type_ids)
        assert batch.pad(max_length=12, pad_id=0).ids.shape == (3, 12)
        with pytest.raises(ArgumentError, match="length=3 and max_length=4"):
            batch.pad(3, max_length=4, pad_id=0)
        with pytest.raises(ArgumentError, match="nothing"):
            padded.model_inputs("nothing")
        step, _ = bigram(tok.id_limit if tok.id_limit < 2000 else 500)
        small = np.array([[1, 2], [3, 4]])
        for prompts in (small, small.tolist(), [np.array([1, 2], np.uint16), (3, 4)]):
            result = generate(step, prompts, max_new_tokens=2)
            assert [s.prompt_ids.tolist() for s in result] == small.tolist()
        seen = []

        def looks(ids, state, index):
            seen.append(ids)
            return np.zeros((len(ids), 9), np.float32), state

        for prompts in (batch, padded):
            result = generate(looks, prompts, max_new_tokens=1)
            assert [s.prompt_ids.tolist() for s in result] == batch.to_lists()
        assert seen[1] is padded.ids

    @pytest.mark.parametrize(
        "prompts",
        ["text", b"text", 5, None, [1, 2], [[]], [[1], []], [[-1]], [[2**31]], [[1.5]], [["a"]], [[[1]]], np.zeros(3, int),
         np.zeros((2, 0), int), np.zeros((1, 2)), ["text"], {1: 2}, [[1], "a"], [{1, 2}], [None], [b"ab"], [[1], [2, [3]]],
         [[10**30]], [np.array(5)], [1.5]],
    )  # fmt: skip
    def test_wrong(self, prompts):
        with pytest.raises((ArgumentError, ArgumentTypeError), match="prompt"):
            generate(lambda *_: 1 / 0, prompts, max_new_tokens=1)

    def test_padding_on_the_right(self):
        batch = jittok.load_default().encode_batch(["To be", "x"])
        with pytest.raises(ArgumentError, match="right.*side='left'"):
            generate(lambda *_: 1 / 0, batch.pad(pad_id=0), max_new_tokens=1)


class TestBadInput:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"num_beams": 0}, "num_beams=0"), ({"num_beams": 5000}, "1024"), ({"max_new_tokens": 0}, "max_new_tokens=0"),
            ({"stop_strings": ""}, "empty string"), ({"stop_strings": ["a", ""]}, "empty string"),
            ({"stop_strings": ["\ud800"]}, "surrogate"), ({"stop_strings": [5]}, "not str"),
            ({"stop_strings": "a"}, "tokenizer="),
            ({"stop_strings": "a" * 70_000}, "65536"),
            ({"temperature": 0}, "temperature=0"), ({"temperature": float("nan")}, "finite"), ({"top_p": 1.5}, "top_p"),
            ({"temperature": "1"}, "temperature"), ({"temperature": None}, "temperature=None"), ({"top_k": -1}, "top_k"),
            ({"min_p": -0.1}, "min_p"), ({"typical_p": 0}, "typical_p"), ({"repetition_penalty": 0}, "above"),
            ({"max_length": 3}, "give one of them"), ({"early_stopping": "always"}, "never"),
            ({"bad_words_ids": [[]]}, "empty"), ({"bad_words_ids": [["a"]]}, "whole numbers"),
            ({"bad_words_ids": "ab"}, "list of lists"), ({"eos_token_id": -1}, "-1"),
            ({"eos_token_id": "a"}, "whole numbers"), ({"num_beams": 3, "num_beam_groups": 2}, "multiple"),
            ({"diversity_penalty": 1.0}, "num_beam_groups"), ({"num_return_sequences": 2}, "num_return_sequences=2"),
            ({"num_beams": 2, "num_return_sequences": 3}, "at most"), ({"seed": -1}, "seed=-1"), ({"seed": "x"}, "seed"),
            ({"num_beams": 2, "num_beam_groups": 2, "do_sample": True}, "not drawn"), ({"threads": 0}, "threads=0"),
            ({"no_such": 1}, "no_such"), ({"pad_token_id": None}, "pad_token_id"), ({"num_beams": True}, "num_beams"),
            ({"num_beams": 2, "on_text": print}, "on_text"), ({"temperature": 1e-44}, "1e-37"),
            ({"settings": 5}, "settings=5"), ({"repetition_penalty": 1e39}, "1e37"),
            ({"tokenizer": "gpt2"}, "tokenizer='gpt2'"), ({"stop_strings": 5}, "stop_strings=5"),
            ({"early_stopping": np.array([1, 2])}, "early_stopping=array"), ({"early_stopping": 2}, "early_stopping=2"),
            ({"early_stopping": None}, "early_stopping=None"), ({"do_sample": "no"}, "do_sample='no'"),
            ({"do_sample": np.array([1, 2])}, "do_sample=array"), ({"temperature": 10**400}, "temperature: .* float"),
        ],
    )  # fmt: skip
    def test_settings(self, changes, message):
        with pytest.raises(JittokError, match=message) as info:
            generate(lambda *_: 1 / 0, [[1]], **{"max_new_tokens": 2} | changes)
        assert isinstance(info.value, ValueError | TypeError)

    def test_no_length(self):
        with pytest.raises(ArgumentError, match="max_new_tokens= or max_length="):
            generate(lambda *_: 1 / 0, [[1]])
        with pytest.raises(ArgumentError, match="prompt 1 has 3 tokens"):
            generate(lambda *_: 1 / 0, [[1], [1, 2, 3]], max_length=3)
        with pytest.raises(ArgumentError, match="beam search"):
            stream(lambda *_: 1 / 0, [[1]], max_new_tokens=2, num_beams=2)
        with pytest.raises(ArgumentTypeError, match="step="):
            generate(None, [[1]], max_new_tokens=2)

    @pytest.mark.parametrize("token", [{"eos_token_id": 6}, {"forced_bos_token_id": 6}, {"bad_words_ids": [[1, 6]]}])
    @pytest.mark.parametrize("beams", [1, 2])
    def test_tokens_that_there_are_not(self, token, beams):
        step, _ = bigram(6)
        with pytest.raises(ArgumentError, match="token 6 is not among the 6"):
            generate(step, [[1]], max_new_tokens=2, num_beams=beams, **token)

    @pytest.mark.parametrize(
        "result",
        [None, 5, (1,), (1, 2, 3), (np.zeros((1, 6)), 1), (np.zeros((2, 5)), 1), (np.zeros(6), 1),
         (np.zeros((2, 6), bool), 1), (np.zeros((2, 6), complex), 1), ("logits", 1), (None, 1), (np.zeros((2, 0, 6)), 1),
         ([[1.0], [2.0, 3.0]], 1),
         (np.zeros((2, 0)), 1), (np.full((2, 6), np.nan), 1), (np.full((2, 6), 1e300), 1), (np.full((2, 6), -np.inf), 1)],
    )  # fmt: skip
    @pytest.mark.parametrize("options", [{}, {"num_beams": 2}, {"num_beams": 2, "num_beam_groups": 2}, {"do_sample": True}])
    def test_step_gives_something_else(self, result, options):
        """In the third call: the tokens of two are kept."""
        step, _ = bigram(6)
        calls = []

        def breaks(ids, state, beam_index):
            calls.append(1)
            if len(calls) < 3:
                return step(ids, state, beam_index)
            if isinstance(result, tuple) and isinstance(result[0], np.ndarray) and result[0].shape[:1] == (2,):
                return np.repeat(result[0][:1], len(ids), 0), 1
            return result

        with pytest.raises(GenerationError, match="step 2") as info:
            generate(breaks, [[1], [2]], max_new_tokens=9, **options)
        partial = info.value.partial
        assert isinstance(partial, Generated) and len(partial) == 2
        assert all(len(s.ids) == 2 and s.finish_reason == "unfinished" for s in partial)

    @pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"do_sample": True, "seed": 1, "threads": 2}])
    def test_step_raises(self, options):
        step, _ = bigram(6)

        def breaks(ids, state, beam_index):
            if state == 4:
                raise MemoryError("no more")
            return step(ids, None, beam_index)[0], (state or 0) + 1

        with pytest.raises(GenerationError, match="step 4 raised MemoryError: no more") as info:
            generate(breaks, [[1], [2]], max_new_tokens=9, **options)
        assert isinstance(info.value.__cause__, MemoryError)
        assert [len(s.ids) for s in info.value.partial] == [4, 4]

    def test_what_was_finished_is_kept(self):
        def step(ids, state, beam_index):
            logits = np.zeros((len(ids), 5), np.float32)
            logits[:, 3] = 5
            if beam_index is None:
                logits[0, 4] = 99
            if state == 2:
                raise ValueError
            return logits, (state or 0) + 1

        for options in ({}, {"num_beams": 2, "early_stopping": True}):
            with pytest.raises(GenerationError) as info:
                generate(step, [[1], [2]], max_new_tokens=9, eos_token_id=4, **options)
            first, second = info.value.partial[0], info.value.partial[-1]
            assert first.prompt == 0 and first.ids.tolist() == [4] and first.finish_reason == "end"
            assert second.prompt == 1 and second.finish_reason == "unfinished" and len(second.ids) == 2

    def test_all_masked_by_the_settings(self):
        step, _ = bigram(3)
        for options in ({}, {"num_beams": 2}, {"do_sample": True}, {"do_sample": True, "num_beams": 2}):
            with pytest.raises(GenerationError, match="every token is masked") as info:
                generate(step, [[0]], max_new_tokens=9, no_repeat_ngram_size=1, **options)
            assert len(info.value.partial[0].ids) == 2

    def test_interrupts_are_not_swallowed(self):
        def step(ids, state, beam_index):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            generate(step, [[0]], max_new_tokens=9)


def test_more_ways_to_say_it():
    for value, kept in ((1, True), (np.True_, True), (0, False), (np.False_, False), ("never", "never")):
        assert GenerationSettings(early_stopping=value).early_stopping is kept
    assert GenerationSettings(do_sample=np.True_).do_sample is True
    step, _ = bigram(6)
    assert len(generate(step, [[1]], max_new_tokens=3, stop_strings=None, threads=10**9)[0].ids) == 3


@pytest.mark.parametrize("power", [1e300, -1e300])
def test_a_length_penalty_beyond_all_numbers(power):
    step, _ = bigram(6)
    calls = []

    def breaks(ids, state, beam_index):
        calls.append(1)
        return step(ids, state, beam_index) if len(calls) < 4 else None

    options = {"num_beams": 3, "length_penalty": power, "num_return_sequences": 3}
    for groups in ({}, {"num_beam_groups": 3}, {"early_stopping": "never"}):
        result = generate(step, [[1], [2]], max_new_tokens=4, eos_token_id=3, **options, **groups)
        assert all(np.isfinite(sequence.score) for sequence in result)
    with pytest.raises(GenerationError, match="step 3") as info:
        generate(breaks, [[1]], max_new_tokens=9, **options)
    assert all(np.isfinite(sequence.score) for sequence in info.value.partial)


def test_arrays_of_processors():
    from jittok.generation import LogitsProcessor, sample

    logits = np.arange(6, dtype=np.float32)[None]
    process = LogitsProcessor(repetition_penalty=2.0)
    assert process(logits.copy(), [[]]).tolist() == logits.tolist()
    assert process(logits.copy(), [[5, -100, 2**31 - 1]]).tolist() == [[0, 1, 2, 3, 4, 2.5]]
    for ids, lengths in (
        ([[2**32 + 5]], None), ([[1], [2, 3]], None), ([[1.0]], None), ([["a"]], None), ([[5]], ["a"]), ([[5]], [0.5]),
        ([[5]], [-1]), ([[5]], [2]), ([[5]], [[1]]), ([[5]], [2**70]),
    ):  # fmt: skip
        with pytest.raises((ArgumentError, ArgumentTypeError), match="ids|lengths"):
            process(logits.copy(), ids, lengths=lengths)
    streams = np.array([2**64 - 1], np.uint64)
    assert sample(logits, 1, [2**64 - 1], [3])[0].tolist() == sample(logits, 1, streams, 3)[0].tolist()
    for streams, positions in (
        ([-1], 0), (["a"], 0), ([1, 2], 0), ([[1], [2, 3]], 0), ([0.5], 0), (None, "a"), (None, [1, 2]), (None, -1),
        (None, 1.5), (None, 2**32), (None, 2**70),
    ):  # fmt: skip
        with pytest.raises((ArgumentError, ArgumentTypeError), match="streams|positions"):
            sample(logits, 1, streams, positions)


def test_settings_can_be_kept():
    step, _ = bigram(6)
    kept = GenerationSettings(max_new_tokens=3, num_beams=2)
    assert len(generate(step, [[1]], settings=kept)[0].ids) == 3
    assert len(generate(step, [[1]], settings=kept, max_new_tokens=2)[0].ids) == 2
    assert kept.max_new_tokens == 3 and kept.with_(top_k=4).top_k == 4
    assert repr(generate(step, [[1]], settings=kept)) == "Generated(1 sequences, 3 tokens)"

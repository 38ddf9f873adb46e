import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import rank_spec, real
from test_decode import CHAINS, TOKENS, chain, decoder_of, decoders, small

from jittok import errors, spec
from jittok._jit import JIT_DISABLED
from jittok.streaming import DecodeStream
from jittok.vocabulary import byte_alphabet


def pushes(decoder, ids, skip=False):
    stream = DecodeStream(decoder, skip)
    return [*(stream.push(i) for i in ids), stream.finish()]


@pytest.mark.parametrize(
    "name", ["bbpe/gpt2", "bbpe/qwen3", "bbpe/deepseek-v4", "bbpe/gpt-neox", "bbpe/whisper-large-v3"]
)
def test_text_as_tokenizers(name):
    from tokenizers.decoders import DecodeStream as Reference

    made, reference = real(f"{name}/tokenizer.json")
    decoder = decoder_of(made)
    for text in ["Hello, world! naïve 日本語 🙂🏳️‍🌈 ᚠᛇᚻ 𝒳 \0 x", "🤗" * 20, " leading", "", "क्षत्रिय"]:
        ids = reference.encode(text, add_special_tokens=False).ids
        stream = Reference(skip_special_tokens=False)
        expected = [stream.step(reference, i) or "" for i in ids]
        got = pushes(decoder, ids)
        assert got == [*expected, ""]
        assert "".join(got) == text


@pytest.mark.parametrize("skip", [False, True])
def test_word_pieces_as_tokenizers(skip):
    from tokenizers.decoders import DecodeStream as Reference

    made, reference = real("wordpiece/bert-base-uncased/tokenizer.json")
    decoder = decoder_of(made)
    rng = random.Random(7)
    texts = ["Hello, it's  unaffable! Don't (do not) ...", "\xe9\u4e2d\u6587 tokenizers", ""]
    rows = [reference.encode(text).ids for text in texts]
    rows += [[rng.randrange(decoder.vocabulary.size) for _ in range(12)] for _ in range(100)]
    for ids in rows:
        stream = Reference(skip_special_tokens=skip)
        assert pushes(decoder, ids, skip) == [*(stream.step(reference, i) or "" for i in ids), ""]
        assert "".join(pushes(decoder, ids, skip)) == reference.decode(ids, skip_special_tokens=skip)


NAMES = ["bbpe/gpt2", "bbpe/llama3", "bbpe/whisper-large-v3", "bbpe/clip", "wordpiece/bert-base-uncased"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("skip", [False, True])
def test_random_ids_give_what_decode_gives(name, skip):
    made, _ = real(f"{name}/tokenizer.json")
    decoder = decoder_of(made)
    rng = random.Random(name)
    specials = [token.id for token in made.added_tokens]
    for _ in range(300):
        ids = [rng.choice([rng.randrange(decoder.vocabulary.size), rng.randrange(256), rng.choice(specials)])
               for _ in range(20)]  # fmt: skip
        assert "".join(pushes(decoder, ids, skip)) == decoder.decode(ids, skip)


def test_rank_file():
    decoder = decoder_of(rank_spec("tiktoken/cl100k_base/cl100k_base.tiktoken", [("<|end|>", 100_300)]))
    rng = random.Random(0)
    for _ in range(300):
        ids = [rng.choice([rng.randrange(100_000), rng.randrange(256), 100_300]) for _ in range(20)]
        assert "".join(pushes(decoder, ids)) == decoder.decode(ids)
    # 👍 is two tokens of cl100k; B019 of the reported faults.
    assert pushes(decoder, [64, 9468, 239, 235, 65]) == ["a", "", "", "👍", "b", ""]


def test_broken_characters_are_held_back_with_what_follows():
    made, _ = real("bbpe/gpt2/tokenizer.json")
    assert pushes(decoder_of(made), [447, 447, 72, 220, 72]) == ["", "", "\ufffd\ufffdi", " ", "i", ""]
    assert pushes(decoder_of(made), [447]) == ["", "\ufffd"]


def test_a_stream_of_broken_characters_does_not_wait_for_ever():
    made, _ = real("bbpe/gpt2/tokenizer.json")
    decoder = decoder_of(made)
    stream = DecodeStream(decoder)
    parts = [stream.push(447) for _ in range(1000)]
    assert max(map(len, parts)) < 100
    assert sum(map(bool, parts)) > 10
    assert "".join(parts) + stream.finish() == decoder.decode([447] * 1000)


@pytest.mark.parametrize("choice", CHAINS, ids=lambda c: c["type"] if isinstance(c, dict) else str(c))
def test_any_chain_gives_what_decode_gives(choice):
    steps = decoders(chain(choice))
    tokens = list(TOKENS)
    decoder = small(tokens, [spec.AddedToken(len(tokens), "<s>", special=True)], decoders=steps)
    rng = random.Random(str(choice))
    for skip in (False, True):
        for _ in range(300):
            ids = [rng.randrange(len(tokens) + 1) for _ in range(rng.randrange(8))]
            assert "".join(pushes(decoder, ids, skip)) == decoder.decode(ids, skip), ids


def test_byte_tokens_come_out_when_their_run_ends():
    steps = (
        spec.DecodeReplace("▁", " "),
        spec.DecodeByteFallback(),
        spec.DecodeFuse(),
        spec.DecodeStrip(" ", 1, 0),
    )
    tokens = ["▁a", "b", *(f"<0x{byte:02X}>" for byte in range(256))]
    decoder = small(tokens, decoders=steps)
    smile = [2 + byte for byte in "🙂é".encode()]
    assert pushes(decoder, [0, *smile, 1, 0]) == ["a", "", "", "", "", "", "", "🙂éb", " a", ""]
    # The whole run is broken, the beginning too, as in `decode`.
    assert pushes(decoder, [0, *smile, 2 + 0xFF]) == ["a", *[""] * 7, "\ufffd" * 7]
    assert pushes(decoder, [0, *smile[:3]]) == ["a", "", "", "", "\ufffd" * 3]
    assert pushes(decoder, [smile[0], 1]) == ["", "\ufffdb", ""]
    assert "".join(pushes(decoder, [smile[0], 2 + 0xFF, 1])) == decoder.decode([smile[0], 2 + 0xFF, 1])


STEPS = st.one_of(
    st.builds(spec.DecodeFuse),
    st.builds(spec.DecodeByteFallback),
    st.builds(spec.DecodeByteLevel),
    st.builds(spec.DecodeBPE, st.sampled_from(["</w>", "a", " "])),
    st.builds(spec.DecodeWordPiece, st.sampled_from(["##", "a"]), st.booleans()),
    st.builds(spec.DecodeMetaspace, st.sampled_from(["▁", "a"]), st.sampled_from(["always", "first", "never"])),
    st.builds(spec.DecodeCTC, st.sampled_from(["<pad>", "b", ""]), st.sampled_from(["|", "a", ""]), st.booleans()),
    st.builds(
        spec.DecodeReplace,
        st.sampled_from(["a", " ", "ab", "a|b", "b*", "$"]),
        st.sampled_from(["", "_", " ", "ab"]),
        st.booleans(),
    ),
    st.builds(spec.DecodeStrip, st.sampled_from([" ", "a", "▁"]), st.integers(0, 3), st.integers(0, 3)),
)
PIECES = ["a", "b", "ab", "##a", "##b", "▁", "▁a", "a</w>", "<pad>", "|", " ", " .", "aa", "é", "Ã", "©", "Ġ", "日", "a b"]
PIECES += [f"<0x{byte:02X}>" for byte in [*"é日🙂".encode(), 0xFF, 0x41]]


@given(st.lists(STEPS, max_size=5), st.lists(st.integers(0, len(PIECES) + 1), max_size=14), st.booleans())
@settings(max_examples=800 if not JIT_DISABLED else 60, deadline=None)
def test_any_decoders_give_what_decode_gives(steps, ids, skip):
    added = [spec.AddedToken(len(PIECES), "<s>", special=True), spec.AddedToken(len(PIECES) + 1, "Ġé")]
    decoder = small(PIECES, added, decoders=tuple(steps))
    got = pushes(decoder, ids, skip)
    assert "".join(got) == decoder.decode(ids, skip)
    # Where nothing was said for the first ids alone, that holds for any beginning of them.
    assert "".join(pushes(decoder, ids[: len(ids) // 2], skip)) == decoder.decode(ids[: len(ids) // 2], skip)


def test_a_push_costs_the_same_however_long_the_text_is(monkeypatch):
    steps = (spec.DecodeReplace("▁", " "), spec.DecodeByteFallback(), spec.DecodeFuse(), spec.DecodeStrip(" ", 1, 2))
    decoder = small(PIECES, decoders=steps)
    monkeypatch.setattr(decoder, "decode", None)
    stream, longest = DecodeStream(decoder), 0
    for number in range(5000):
        stream.push(number % 3)
        longest = max(longest, sum(len(getattr(stage, "_held", "")) for stage in stream._stages))
    assert longest <= 2


def test_stripping_at_the_end():
    steps = (spec.DecodeFuse(), spec.DecodeStrip("_", 1, 2))
    decoder = small(["_", "a", "a_", "__b"], decoders=steps)
    rng = random.Random(1)
    for _ in range(500):
        ids = [rng.randrange(4) for _ in range(rng.randrange(7))]
        assert "".join(pushes(decoder, ids)) == decoder.decode(ids), ids


def test_never_half_a_character_and_never_raises_on_valid_ids():
    letters = [chr(c) for c in byte_alphabet().tolist()]
    decoder = small(letters, decoders=(spec.DecodeByteLevel(),))
    rng = random.Random(2)
    text = "".join(chr(rng.choice([0x41, 0xE9, 0x65E5, 0x1F642])) for _ in range(500))
    got = pushes(decoder, text.encode())
    assert "".join(got) == text
    assert "\ufffd" not in "".join(got)
    assert all(len(part) <= 1 for part in got)


def test_finish_starts_anew():
    decoder = small(["▁a", "▁b"], decoders=(spec.DecodeMetaspace(),))
    stream = DecodeStream(decoder)
    for _ in range(2):
        assert [stream.push(0), stream.push(1), stream.finish()] == ["a", " b", ""]


def test_bad_ids_leave_the_stream_as_it_was():
    decoder = small(["a", "b"], decoders=(spec.DecodeByteLevel(),))
    stream = DecodeStream(decoder)
    assert stream.push(0) == "a"
    for bad in (2, -1, 2**70):
        with pytest.raises(errors.TokenIdError, match=str(bad)):
            stream.push(bad)
    for bad in ("a", None, 0.5, [0]):
        with pytest.raises(errors.ArgumentTypeError):
            stream.push(bad)
    assert stream.push(1) == "b"


def test_takes_anything_that_has_a_decoder():
    class Owner:
        decoder = small(["a"], decoders=(spec.DecodeByteLevel(),))

    assert DecodeStream(Owner()).push(0) == "a"

"""SentencePiece's normalizer and tokenizers' Precompiled, against those libraries."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece_files import FILES, content, random_texts, read, reference, rewritten
from specs import CASES, DATA

from jittok import spec
from jittok.build.charsmap import (
    RULE_NAMES,
    build_double_array,
    compile_charsmap,
    named_charsmap,
    named_rules,
    parse_charsmap,
    read_rules,
    rules_of,
)
from jittok.errors import ArgumentError, FormatError, UnsupportedError
from jittok.formats import tokenizer_json
from jittok.rewriting import build_rewriter

SCALARS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def library(**arguments):
    return pytest.importorskip("sentencepiece").SentencePieceNormalizer(**arguments)


def corpus_sample(every):
    if DATA is None:
        pytest.skip("set JITTOK_TEST_DATA to a folder that holds corpora/ to test with real text")
    texts = []
    for name in ("english", "multi", "code"):
        path = Path(DATA) / "corpora" / f"{name}.txt"
        texts += [part.decode()[:20_000] for part in path.read_bytes().split(b"\0")[::every] if part]
    return texts


def assert_as_reference(processor, step, texts):
    """Normalized text and alignment, with blanks written in both ways."""
    results, sources = rewritten(build_rewriter([step]), texts, alignment=True)
    for text, got, (starts, ends) in zip(texts, results, sources, strict=True):
        wanted, offsets = processor.normalize(text, with_offsets=True)
        assert got.decode() == wanted, text
        if wanted:
            assert (starts, ends) == (list(offsets[:-1]), list(offsets[1:])), text
    assert rewritten(build_rewriter([step]), texts) == results
    if step.escape_whitespaces:
        compact = rewritten(build_rewriter([step], compact=True), texts)
        assert [text.replace(b" ", "\u2581".encode()) for text in compact] == results


@pytest.mark.parametrize("name", FILES)
def test_normalized_text_and_alignment(name):
    step = read(name).normalizers[0]
    assert_as_reference(reference(name), step, random_texts(1000, 40) + random_texts(100, 400, seed=1))


@pytest.mark.parametrize("name", ["unigram/t5-nai/spiece.model", "sp-bpe/mistral-v3/tokenizer.model", FILES[5]])
def test_normalized_real_text(name):
    assert_as_reference(reference(name), read(name).normalizers[0], corpus_sample(300))


@pytest.mark.parametrize("name", ["unigram/t5-nai/spiece.model", "unigram/sentencepiece-test-ja/test_ja_model.model"])
def test_all_codepoints(name):
    step = read(name).normalizers[0]
    texts = ["".join(f"x{c}" for c in SCALARS[i : i + 1000]) for i in range(0, len(SCALARS), 1000)]
    texts += ["".join(SCALARS[i : i + 1000]) for i in range(0, len(SCALARS), 1000)]
    results = rewritten(build_rewriter([step]), texts)
    assert [text.decode() for text in results] == [reference(name).normalize(text) for text in texts]


@pytest.mark.parametrize("name", ["unigram/t5-nai/spiece.model", "sp-bpe/llama2/tokenizer.model"])
def test_bytes_that_are_not_utf_8(name):
    source = random.Random(5)
    some = [0x20, 0x41, 0xE2, 0x96, 0x81, 0xC3, 0xA9, 0xF0, 0x9F, 0x98, 0x80, 0xFF, 0xED, 0xA0, 0xC0]
    texts = [bytes(source.choice(some) for _ in range(source.randrange(30))) for _ in range(2000)]
    wanted = [reference(name).normalize(text) for text in texts]
    wanted = [text if isinstance(text, bytes) else text.encode() for text in wanted]
    assert rewritten(build_rewriter([read(name).normalizers[0]]), texts) == wanted


def test_goldens_say_what_normalized_text_is():
    if CASES is None or DATA is None:
        pytest.skip("set JITTOK_TEST_DATA and JITTOK_TEST_CASES to test with the goldens")
    total = 0
    for path in sorted((Path(CASES) / "golden").glob("*__sentencepiece.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        family, name, _ = path.name.split("__")
        file = f"{family}/{name.removesuffix('-target')}/{rows[0]['file']}"
        rewriter = build_rewriter(read(file).normalizers)
        rows = [row for row in rows[1:] if "normalized" in row]
        assert rewriter.apply_strings([row["text"] for row in rows]) == [row["normalized"] for row in rows]
        total += len(rows)
    assert total > 3000


def test_cases_of_the_reference():
    if CASES is None:
        pytest.skip("set JITTOK_TEST_CASES to test with the cases of other projects")
    path = Path(CASES) / "cases" / "sentencepiece_normalizer_cc_0_2_3.jsonl"
    charsmaps = {"nmt_nfkc": named_charsmap("nmt_nfkc")}
    checked = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        flags = dict(case["normalizer"])
        name = flags.pop("name")
        if case["rules"]:
            charsmap = compile_charsmap({left: right for left, right in case["rules"]})
        elif name in charsmaps:
            charsmap = charsmaps[name]
        else:
            continue
        if isinstance(case["input"], dict) or "expected_normalized" not in case:
            continue
        step = spec.SentencePieceNormalizer(charsmap, **flags)
        assert build_rewriter([step]).apply_strings([case["input"]]) == [case["expected_normalized"]], case
        checked += 1
    assert checked > 80


FLAGS = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.text("ab é\u2581か", min_size=1, max_size=4), st.text("ab é\u2581か", max_size=3), max_size=8),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.lists(st.text("ab é\u2581か\n", max_size=90), min_size=1, max_size=5),
)
def test_rules_of_ones_own(rules, flags, texts):
    rules = {left: right for left, right in rules.items() if left != right}
    charsmap = compile_charsmap(rules)
    assert rules_of(charsmap) == rules
    given_flags = dict(zip(FLAGS, flags, strict=True))
    assert_as_reference_normalizer(charsmap, given_flags, texts)


def assert_as_reference_normalizer(charsmap, flags, texts):
    pb = pytest.importorskip("sentencepiece.sentencepiece_model_pb2")
    normalizer = library(normalizer_spec=pb.NormalizerSpec(precompiled_charsmap=charsmap, **flags))
    step = spec.SentencePieceNormalizer(charsmap, **flags)
    for compact in {False, step.escape_whitespaces}:
        got = build_rewriter([step], compact=compact).apply_strings(texts)
        assert got == [normalizer.normalize(text) for text in texts]


@settings(max_examples=60, deadline=None)
@given(
    st.sets(st.text("ab é\u2581か", min_size=1, max_size=4), max_size=8),
    st.dictionaries(st.text("ab é", min_size=1, max_size=3), st.text("ab é", max_size=3), max_size=5),
    st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()),
    st.lists(st.text("ab é\u2581か\n", max_size=90), min_size=1, max_size=5),
)
def test_symbols_go_before_rules(symbols, rules, flags, texts):
    from sentencepiece_files import small_model

    from jittok.formats import sentencepiece_model

    rules = {left: right for left, right in rules.items() if left != right}
    pieces = [("<unk>", 0.0, 2), ("x", -1.0, 1), *((symbol, 0.0, 4) for symbol in sorted(symbols - {"x"}))]
    normalizer = {"precompiled_charsmap": compile_charsmap(rules), **dict(zip(FLAGS, flags, strict=False))}
    data = small_model(pieces, normalizer, model_type=1, treat_whitespace_as_suffix=flags[3])
    processor = pytest.importorskip("sentencepiece").SentencePieceProcessor(model_proto=data)
    assert_as_reference(processor, sentencepiece_model.read(data, "x.model").normalizers[0], texts)


def test_long_texts_and_many_rules_that_begin_alike():
    rules = {"a" * n: "b" * n for n in range(1, 32)}
    texts = ["a" * n for n in (1, 31, 32, 63, 64, 1000)] + [" " * 5000 + "a \n" * 3000 + " " * 5000, " " * 70_000]
    assert_as_reference_normalizer(compile_charsmap(rules), {}, texts)
    with pytest.raises(FormatError, match="31"):
        compile_charsmap({"a" * n: "b" for n in range(1, 33)})


def test_output_that_is_much_longer_than_the_text():
    charsmap = compile_charsmap({"a": "x y" * 1000, "b": " " * 50})
    assert_as_reference_normalizer(charsmap, {}, ["aba" * 20, "b" * 100 + "a"])
    step = spec.SentencePieceNormalizer(charsmap)
    results, _ = rewritten(build_rewriter([step]), ["aba" * 20], alignment=True)
    assert results == rewritten(build_rewriter([step]), ["aba" * 20])


@pytest.mark.parametrize("name", RULE_NAMES[1:])
def test_named_rules_are_those_of_the_reference(name):
    rules = named_rules(name)
    normalizer = library(rule_name=name)
    assert rules == dict(normalizer.Decompile())


def test_names_of_rules():
    assert named_rules("identity") == {} and named_charsmap("identity") == b""
    with pytest.raises(ArgumentError, match="nmt_nfkc"):
        named_rules("nfc")


def test_rule_tables():
    lines = ["41 42\t43\t# AB => C\n", "U+E9\n", "61\t\n"]
    assert read_rules(lines, "rules.tsv") == {"AB": "C", "é": "", "a": ""}
    for line in ("", "xyz\t41", "\t41", "110000\t41"):
        with pytest.raises(FormatError, match="line 1"):
            read_rules([line], "rules.tsv")


@pytest.mark.parametrize("rules", [{"": "a"}, {"a\0": "b"}, {"a": "\0"}])
def test_rules_that_cannot_be(rules):
    with pytest.raises(FormatError):
        compile_charsmap(rules)


def test_rewriters_are_picklable_and_alone():
    step = spec.SentencePieceNormalizer()
    for compact in (False, True):
        rewriter = pickle.loads(pickle.dumps(build_rewriter([step], compact=compact)))
        assert rewriter.compact == compact
        assert rewriter.apply_strings(["a  b", "", " "]) == ["▁a▁b", "", ""]
    with pytest.raises(UnsupportedError):
        build_rewriter([step, spec.Lowercase()])


@pytest.mark.parametrize("compact", [False, True])
def test_alignment_of_one_text(compact):
    step = spec.SentencePieceNormalizer(compile_charsmap({"e\u0301": "é", "①": "(1)"}))
    rewriter = build_rewriter([step], compact=compact)
    text, spans = rewriter.apply_aligned("  be\u0301  ① ".encode())
    assert text == "\u2581bé\u2581(1)"
    assert spans.tolist() == [[2, 2], [2, 3], [3, 5], [5, 7], [7, 7], [7, 7], [7, 8]]
    assert rewriter.apply_aligned(b"")[1].shape == (0, 2) and rewriter.apply_aligned(b"  ")[0] == ""


# ------------------------------------------------------------------------------------------------- broken charsmaps


def damaged():
    """A charsmap and ways to break it."""
    blob = compile_charsmap({"a": "b", "ab": "c", "é": "e", "か\u3099": "が"})
    size = int.from_bytes(blob[:4], "little")
    yield "cut", blob[: size // 2]
    yield "no strings", blob[: 4 + size]
    yield "size", (size + 4).to_bytes(4, "little") + blob[4:]
    yield "size 0", bytes(4) + blob[4:]
    yield "no NUL", blob[:-1] + b"x"
    yield "not UTF-8", blob[:-2] + b"\xff\0"
    yield "short", b"\1"
    units = np.frombuffer(blob, "<u4", size // 4, 4)
    root = int(units[0] >> 10)
    for name, place, value in (
        ("root", 0, int(units[0]) | 0x80),
        ("outside", root ^ ord("a"), ord("a") | (1 << 20) << 10),
        ("cycle", root ^ ord("a"), ord("a") | ((root ^ ord("a")) ^ root) << 10),
        ("key is no UTF-8", root ^ 0x80, 0x80 | 1 << 10),
    ):
        changed = units.copy()
        changed[place] = value
        yield name, blob[:4] + changed.tobytes() + blob[4 + size :]


@pytest.mark.parametrize(("name", "blob"), list(damaged()), ids=[name for name, _ in damaged()])
def test_broken_charsmaps(name, blob):
    with pytest.raises(FormatError, match="^the file"):
        parse_charsmap(blob, "the file")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_bit_flips_in_charsmaps(data):
    blob = bytearray(compile_charsmap({"a": "b", "ab": "c", "é": "e", "か\u3099": "が", " ": "  "}))
    interesting = [i for i, byte in enumerate(blob) if byte] + [0, len(blob) - 1]
    for _ in range(data.draw(st.integers(1, 4))):
        blob[data.draw(st.sampled_from(interesting))] ^= 1 << data.draw(st.integers(0, 7))
    texts = ["aab éか\u3099 a" * 8, "", "か", "\x00\x80é"]
    try:
        parse_charsmap(bytes(blob), "the file")
    except FormatError:
        return
    # What is accepted is what the reference makes of it too.
    assert_as_reference_normalizer(bytes(blob), {}, texts)


def test_double_arrays_hold_their_keys():
    source = random.Random(3)
    keys = sorted({bytes(source.randrange(1, 256) for _ in range(source.randrange(1, 6))) for _ in range(3000)})
    units = build_double_array(keys, list(range(len(keys)))).tolist()

    def offset(unit):
        return (unit >> 10) << ((unit & 0x200) >> 6)

    for number, key in enumerate(keys):
        node = 0
        for byte in key:
            node ^= offset(units[node]) ^ byte
            assert units[node] & 0x800000FF == byte
        assert units[node] & 0x100 and units[node ^ offset(units[node])] & 0x7FFFFFFF == number
    assert len(units) % 256 == 0 and len(build_double_array([], [])) == 256


# ------------------------------------------------------------------------------------------------- tokenizers' own


def json_normalizer(name):
    root = tokenizer_json.read(content(f"{name}/tokenizer.json"), name)
    return next(step for step in root.normalizers if isinstance(step, spec.Precompiled))


CLUSTER_ATOMS = [
    *" \r\n\t\u2581aAbée\u0301\u0300\u0327\u0338\u20d2\ufe0f\u200d\u200c\uff21ﬁ\u1100\u1161\u11a8한か\u3099カ\uff76\uff9e",
    *"™©ℹ\u0915\u094d\u0958\u0937\u0600①½\ufdfa\u00ad\0\x01\x7f\u0344\u1e9b\u0323\U0001f1e6\U0001f468\U0001f3fd\u06dd\u0e33",
]


@pytest.mark.parametrize("name", ["unigram/t5-small", "unigram/nmt-joint"])
def test_precompiled(name):
    normalizers = pytest.importorskip("tokenizers").normalizers
    step = json_normalizer(name)
    rewriter, normalizer = build_rewriter([step]), normalizers.Precompiled(step.charsmap)
    source = random.Random(7)
    texts = ["".join(source.choice(CLUSTER_ATOMS) for _ in range(source.randrange(20))) for _ in range(5000)]
    texts += ["x".join(SCALARS[i : i + 1000]) for i in range(0, len(SCALARS), 1000)]
    texts += ["\u0301".join(SCALARS[i : i + 1000]) for i in range(0, 0x10000, 1000)]
    texts += corpus_sample(300)
    wanted = [normalizer.normalize_str(text) for text in texts]
    assert rewriter.apply_strings(texts) == wanted
    results, _ = rewritten(rewriter, texts, alignment=True)
    assert [text.decode() for text in results] == wanted


def test_clusters_are_those_of_unicode_17():
    # A mark belongs to the letter before it, so the rule for the letter takes both.
    normalizers = pytest.importorskip("tokenizers").normalizers
    charsmap = compile_charsmap({"a": "b", "\u0937": "X", "\u00a9": "Y", "\u0600": "Z"})
    rewriter, normalizer = build_rewriter([spec.Precompiled(charsmap)]), normalizers.Precompiled(charsmap)
    texts = [f"a{c}" for c in SCALARS] + [f"{c}a" for c in SCALARS[:0x3000]]
    texts += [f"\u0915{c}\u0937\u0301" for c in SCALARS[:0x11000]] + [f"©{c}\u200d©\u0301" for c in SCALARS[:0x3000]]
    texts = ["\n".join(texts[i : i + 500]) for i in range(0, len(texts), 500)]
    assert rewriter.apply_strings(texts) == [normalizer.normalize_str(text) for text in texts]


def test_precompiled_says_what_may_change():
    step = json_normalizer("unigram/t5-small")
    rewriter = build_rewriter([step])
    texts = random_texts(2000, 12) + ["plain text", "カ", "か\u3099"]
    changed = rewriter.apply_strings(texts)
    from sentencepiece_files import segments

    may = rewriter.changes(*segments(texts))
    assert all(said or text == after for said, text, after in zip(may, texts, changed, strict=True))
    assert not may[texts.index("plain text")] and not may[texts.index("カ")]


def test_precompiled_alignment():
    step = json_normalizer("unigram/t5-small")
    (text,), ((starts, ends),) = rewritten(build_rewriter([step]), ["ﬁe\u0301①a"], alignment=True)
    assert text.decode() == "fié1a"
    assert starts == [0, 0, 1, 3, 4] and ends == [1, 1, 3, 4, 5]


def test_nmt():
    normalizers = pytest.importorskip("tokenizers").normalizers
    rewriter = build_rewriter([spec.Nmt()])
    texts = ["x".join(SCALARS[i : i + 1000]) for i in range(0, len(SCALARS), 1000)]
    assert rewriter.apply_strings(texts) == [normalizers.Nmt().normalize_str(text) for text in texts]

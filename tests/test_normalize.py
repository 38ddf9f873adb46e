"""Rewriting against tokenizers' normalizers: the text, and where each character comes from."""

from __future__ import annotations

import base64
import functools
import json
import pickle
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jittok import rewriting, spec
from jittok.build.charsmap import compile_charsmap, named_charsmap
from jittok.errors import UnsupportedError
from jittok.kernels import normalize as kernels
from jittok.rewriting import Rewriter, build_rewriter
from jittok.unicode.normalization import load_normalization

tokenizers = pytest.importorskip("tokenizers")

EVERY = 1 if hasattr(kernels.substitute, "py_func") else 41  # fewer where kernels run as plain Python
SCALARS = [chr(c) for c in range(0, 0x110000, EVERY) if not 0xD800 <= c < 0xE000]
FORMS = ["NFC", "NFD", "NFKC", "NFKD"]


def segments(texts: list[str]):
    encoded = [text.encode() for text in texts]
    data = np.frombuffer(b"".join(encoded) + bytes(64), dtype=np.uint8)
    bounds = np.cumsum([0] + [len(text) for text in encoded]).astype(np.int64)
    return data, bounds[:-1].copy(), bounds[1:].copy()


def rewrite(rewriter: Rewriter, texts: list[str], **options):
    """Rewritten texts, and for each the list of (start, end) of its characters in the original."""
    done = rewriter.apply(*segments(texts), **options)
    assert done.data[done.ends[-1] if len(texts) else 0 :].tolist() == [0] * 64
    result = []
    for i in range(len(texts)):
        text = done.data[done.starts[i] : done.ends[i]].tobytes().decode()
        first, last = done.codepoint_indptr[i : i + 2].tolist()
        assert last - first == len(text)
        sources = list(
            zip(done.source_start[first:last].tolist(), done.source_end[first:last].tolist(), strict=True)
        )
        result.append((text, sources))
    return result


def as_json(step) -> dict:
    """The block that tokenizer.json has for a step."""
    if isinstance(step, spec.UnicodeForm):
        return {"type": step.form}
    if isinstance(step, spec.Lowercase):
        return {"type": "Lowercase"}
    if isinstance(step, spec.Prepend):
        return {"type": "Prepend", "prepend": step.content}
    if isinstance(step, spec.Strip):
        return {"type": "Strip", "strip_left": step.left, "strip_right": step.right}
    if isinstance(step, spec.StripAccents | spec.Nmt):
        return {"type": type(step).__name__}
    if isinstance(step, spec.Precompiled):
        return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(step.charsmap).decode()}
    if isinstance(step, spec.BertNormalizer):
        names = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
        return {"type": "BertNormalizer", **{name: getattr(step, name) for name in names}}
    pattern = {"Regex" if step.is_regex else "String": step.pattern}
    return {"type": "Replace", "pattern": pattern, "content": step.content}


@functools.cache
def form_reference(form: str):
    return reference([spec.UnicodeForm(form)])


def reference(steps, pre_tokenizers=()):
    """A tokenizer whose tokens are single characters, so that its offsets are the alignment."""
    characters = {"type": "Split", "pattern": {"Regex": "(?m:.)|\\n"}, "behavior": "Isolated", "invert": False}
    file = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": [as_json(step) for step in steps]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*pre_tokenizers, characters]},
        "model": {"type": "BPE", "vocab": {"u": 0}, "merges": [], "unk_token": "u"},
    }
    return tokenizers.Tokenizer.from_str(json.dumps(file))


# ------------------------------------------------------------------------------------- single codepoints


@pytest.mark.parametrize("name", [*FORMS, "Lowercase"])
def test_every_codepoint(name):
    step = spec.Lowercase() if name == "Lowercase" else spec.UnicodeForm(name)
    normalizer = getattr(tokenizers.normalizers, name)()
    rewriter = build_rewriter([step])
    expected = [normalizer.normalize_str(character) for character in SCALARS]
    assert rewriter.apply_strings(SCALARS) == expected
    suspected = rewriter.changes(*segments(SCALARS)).tolist()
    assert suspected == [new != old for new, old in zip(expected, SCALARS, strict=True)]


# -------------------------------------------------------------------------------------- normalization forms


def interesting() -> str:
    """Codepoints that take part in normalization, some of each kind, and some that do not."""
    data = load_normalization()
    random = np.random.default_rng(3)
    chosen = [ord(c) for c in "aeouAcqs \n"] + [0x1100, 0x1112, 0x1161, 0x1175, 0x11A8, 0x11C2, 0xAC00, 0xAC01]
    chosen += [0xD7A3, 0x11A7, 0x1113, 0xFB01, 0xFDFA, 0x1E9B, 0x344, 0x345, 0xF73, 0xF75, 0xF81, 0x1F600, 0x4E00]
    chosen += [
        0x323,
        0x301,
        0x302,
        0x308,
        0x304,
        0x31B,
        0x334,
        0x338,
        0x5B0,
        0x64B,
        0x651,
        0x653,
        0x94D,
        0x93C,
        0x9BE,
    ]
    for name in ("canonical_from", "compatible_from", "combining_codepoints"):
        chosen += random.choice(data[name], 12, replace=False).tolist()
    for pair in random.choice(data["composition"], 12, replace=False).tolist():
        chosen += pair
    return "".join(map(chr, sorted(set(chosen))))


MIXED = st.one_of(
    st.text(alphabet=interesting(), max_size=12), st.text(alphabet="ae\u0323\u0301\u0302\u1ea1\xe9", max_size=8)
)


@pytest.mark.parametrize("form", FORMS)
@given(text=MIXED)
@settings(max_examples=150, deadline=None)
def test_forms_of_random_text(form, text):
    rewriter = build_rewriter([spec.UnicodeForm(form)])
    normalizer = getattr(tokenizers.normalizers, form)()
    expected = normalizer.normalize_str(text)
    (actual, sources), (again, _) = rewrite(rewriter, [text, "a" + text])
    assert actual == expected
    assert again == normalizer.normalize_str("a" + text)
    changes = rewriter.changes(*segments([text, "abc" * 30 + text, text + "abc" * 30]))
    if expected != text:
        assert changes.all()
    assert sources == naive_sources(form, text)
    if form.endswith("D"):
        assert sources == form_reference(form).encode(text).offsets


def naive_sources(form: str, text: str) -> list[tuple[int, int]]:
    """Sources by definition: tokenizers' for the decomposed text, then joined where characters compose."""
    decomposed_form = form[:-1] + "D"
    tokenizer = form_reference(decomposed_form)
    decomposed = tokenizer.normalizer.normalize_str(text)
    sources = [list(source) for source in tokenizer.encode(text).offsets]
    if form.endswith("D"):
        return [tuple(source) for source in sources]
    data = load_normalization()
    table = {(first, second): result for first, second, result in data["composition"].tolist()}
    classes = dict(zip(data["combining_codepoints"].tolist(), data["combining_classes"].tolist(), strict=True))
    for syllable in range(0xAC00, 0xD7A4):
        index = syllable - 0xAC00
        lead_vowel = 0xAC00 + index // 28 * 28
        if index % 28:
            table[lead_vowel, 0x11A7 + index % 28] = syllable
        else:
            table[0x1100 + index // 588, 0x1161 + index % 588 // 28] = syllable
    done: list[list] = []  # codepoint, source, starter it follows
    starter = None
    for character, source in zip(map(ord, decomposed), sources, strict=True):
        combining = classes.get(character, 0)
        previous = classes.get(done[-1][0], 0) if done and done[-1] is not starter else 0
        adjacent = bool(done) and done[-1] is starter
        if starter is not None and (adjacent or previous < combining):
            composed = table.get((starter[0], character))
            if composed is not None:
                starter[0] = composed
                starter[1][1] = max(starter[1][1], source[1])
                continue
        done.append([character, source])
        if combining == 0:
            starter = done[-1]
    reached = 0
    for _, source in done:  # no character ends before one that it follows
        reached = source[1] = max(reached, source[1])
    return [tuple(source) for _, source in done]


def test_composed_characters_span_their_sources():
    rewriter = build_rewriter([spec.UnicodeForm("NFC")])
    done = rewrite(
        rewriter, ["xe\u0301z", "e\u0331\u0301z", "\u1100\u1161\u11a8\u1100\uac00\u11a8", "\xe9\u0323a"]
    )
    assert done == [
        ("x\xe9z", [(0, 1), (1, 3), (3, 4)]),
        ("\xe9\u0331z", [(0, 3), (1, 3), (3, 4)]),
        ("\uac01\u1100\uac01", [(0, 3), (3, 4), (4, 6)]),
        ("\u1eb9\u0301a", [(0, 2), (1, 2), (2, 3)]),
    ]
    kompatible = build_rewriter([spec.UnicodeForm("NFKC")])
    assert rewrite(kompatible, ["\ufb01\u0301x"]) == [("f\xedx", [(0, 1), (0, 2), (2, 3)])]


def test_nfc_offsets_are_the_reference_ones_where_nothing_composes():
    texts = ["abc", "caf\xe9 na\xefve", "\u0958\u0f43x", "q\u0301\u0323z", "\u212b\u2126", "\uac01\uac00"]
    tokenizer = reference([spec.UnicodeForm("NFC")])
    for text, (new, sources) in zip(texts, rewrite(build_rewriter([spec.UnicodeForm("NFC")]), texts), strict=True):
        encoding = tokenizer.encode(text)
        assert new == tokenizer.normalizer.normalize_str(text)
        assert sources == encoding.offsets


@pytest.mark.parametrize("form", FORMS)
def test_long_runs_of_marks_take_linear_time(form):
    n = 200_000 if hasattr(kernels.substitute, "py_func") else 400
    random = np.random.default_rng(1)
    classes = {"\u0301": 230, "\u0323": 220, "\u0334": 1, "\u05b0": 10, "\u0345": 240}
    marks = "".join(random.choice(list(classes), n))
    ((actual, sources),) = rewrite(build_rewriter([spec.UnicodeForm(form)]), ["e" + marks + "z"])
    ordered = "e" + "".join(sorted(marks, key=classes.__getitem__)) + "z"
    assert actual == getattr(tokenizers.normalizers, form)().normalize_str(ordered)
    assert sources[-1] == (n + 1, n + 2)


# ---------------------------------------------------------------------------------------------- other steps

WORDS = st.text(alphabet="aAbB \t\n\xe9\u0130\u3000_\u2581\u0301\u4e00\x00\u302e", max_size=12)
STEPS = st.one_of(
    st.just(spec.StripAccents()),
    st.builds(spec.BertNormalizer, st.booleans(), st.booleans(), st.sampled_from([None, True, False]), st.booleans()),
    st.just(spec.Lowercase()),
    st.sampled_from(["NFD", "NFKD"]).map(spec.UnicodeForm),
    st.builds(
        spec.Replace, st.text(alphabet="aAb ", min_size=1, max_size=1), st.text(alphabet="a_ X", max_size=3)
    ),
    st.builds(spec.Prepend, st.text(alphabet="a \u2581", min_size=1, max_size=2)),
    st.builds(spec.Strip, st.booleans(), st.booleans()),
)


@given(st.lists(STEPS, min_size=1, max_size=4), WORDS)
@settings(max_examples=250, deadline=None)
def test_chains_of_steps(steps, text):
    tokenizer = reference(steps)
    expected = tokenizer.normalizer.normalize_str(text)
    rewriter = build_rewriter(steps)
    done = rewrite(rewriter, [text, "", text])
    assert done[0] == done[2] == (expected, tokenizer.encode(text).offsets)
    assert done[1] == ("", [])
    if expected != text:
        assert rewriter.changes(*segments(["", text])).tolist() == [False, True]
    assert rewriter.apply_strings([text]) == [expected]
    plain = rewriter.apply(*segments([text]), alignment=False)
    assert plain.data[: plain.ends[0]].tobytes().decode() == expected
    assert len(plain.source_start) == 0


def assert_covering(sources, text, content, expected):
    """Compare sources with the reference's, which knows only the last character of what is replaced."""
    if not content:
        assert sources == expected
        return
    assert [end for _, end in sources] == [end for _, end in expected]
    assert all(start <= other for (start, _), (other, _) in zip(sources, expected, strict=True))
    # A span begins where the one before it ended, but for white space, or is the same one, or stands for an empty match.
    before = (0, 0)
    for source in sources:
        assert source == before or source[0] == before[1] or text[before[1] : source[0]].isspace()
        before = source
    assert before[1] == len(text) or not text


@pytest.mark.parametrize("content", ["", "x", "xy", "aab"])
@pytest.mark.parametrize("pattern", ["", "a", "aa", "aab", "abaab", "\U0001f600"])
def test_replace_string(pattern, content):
    texts = ["", "a", "aaaa", "aaabaab", "abaabaabaab", "x\U0001f600\U0001f600y", "abaaab" * 20]
    step = spec.Replace(pattern, content)
    tokenizer = reference([step])
    rewriter = build_rewriter([step])
    for text, done in zip(texts, rewrite(rewriter, texts), strict=True):
        assert done[0] == tokenizer.normalizer.normalize_str(text)
        assert_covering(done[1], text, content, tokenizer.encode(text).offsets)
    suspected = rewriter.changes(*segments(texts))
    changed = [new != old for (new, _), old in zip(rewrite(rewriter, texts), texts, strict=True)]
    assert all(suspect for suspect, change in zip(suspected, changed, strict=True) if change)


@pytest.mark.parametrize("step", [spec.Replace("  ", "\u2581"), spec.Replace("[ \u3000]{2,}", "<>", is_regex=True)])
def test_replaced_blanks(step):
    """Of a run of blanks, what becomes of it comes from the last, as in the reference."""
    texts = ["a  b", "     ", " a\u3000 \u3000b  "]
    tokenizer = reference([step])
    for text, done in zip(texts, rewrite(build_rewriter([step]), texts), strict=True):
        assert done == (tokenizer.normalizer.normalize_str(text), tokenizer.encode(text).offsets)
    mixed = spec.Replace(" xy", "-")
    assert rewrite(build_rewriter([mixed]), ["a xyb"]) == [("a-b", [(0, 1), (2, 4), (4, 5)])]


@pytest.mark.parametrize("scheme", ["always", "first", "never"])
def test_metaspace(scheme):
    texts = ["", " ", "a", " a b", "\u2581a", "\ta  b ", "\u3000a"]
    block = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": False}
    tokenizer = reference([], [block])
    rewriter = build_rewriter([spec.Metaspace("\u2581", scheme, split=False)])
    done = rewrite(rewriter, texts)
    for text, (new, sources) in zip(texts, done, strict=True):
        pieces = tokenizer.pre_tokenizer.pre_tokenize_str(text)
        assert new == "".join(piece for piece, _ in pieces)
        assert sources == tokenizer.encode(text).offsets
        if new != text:
            assert rewriter.changes(*segments([text])).all()
    inside = rewrite(rewriter, texts, at_start=np.zeros(len(texts), dtype=np.bool_))
    never = rewrite(build_rewriter([spec.Metaspace("\u2581", "never")]), texts)
    assert inside == (never if scheme == "first" else done)


def test_prefix_space():
    texts = ["", " ", "a", " a", "\ta", "\xa0a", "\u3000", "\n"]
    block = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": False}
    tokenizer = reference([], [block])
    rewriter = build_rewriter([spec.ByteLevel(add_prefix_space=True)])
    from_bytes = {chr(b if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174 else 0): b for b in range(256)}
    extra = [b for b in range(256) if not (33 <= b <= 126 or 161 <= b <= 172 or b >= 174)]
    from_bytes.update({chr(256 + i): b for i, b in enumerate(extra)})
    for text, (new, sources) in zip(texts, rewrite(rewriter, texts), strict=True):
        pieces = tokenizer.pre_tokenizer.pre_tokenize_str(text)
        assert bytes(from_bytes[c] for piece, _ in pieces for c in piece).decode() == new
        # Every byte of a character has that character's offsets.
        expected = [source for character, source in zip(new, sources, strict=True) for _ in character.encode()]
        assert expected == tokenizer.encode(text).offsets
        assert rewriter.changes(*segments([text])).tolist() == [new != text]
    assert not build_rewriter([spec.ByteLevel(add_prefix_space=False)])


# ------------------------------------------------------------------------------------------------ the rest


def test_changes_skips_ascii_in_any_place():
    rewriter = build_rewriter([spec.UnicodeForm("NFC")])
    texts = ["a" * n + "e\u0301" + "b" * m for n in (0, 1, 62, 63, 64, 65, 130) for m in (0, 1, 63, 64, 65)]
    same = [text.replace("e\u0301", "\xe9") for text in texts]
    assert rewriter.changes(*segments(texts)).all()
    assert not rewriter.changes(*segments(same)).any()
    assert not rewriter.changes(*segments(["", "abc", "\u0301", "\u05d0\u05b0\u05bc", "\u0e01\u0e49"])).any()


def test_more_output_than_room():
    texts = ["\ufdfa" * 300, "\u0130" * 50]
    rewriter = build_rewriter([spec.UnicodeForm("NFKD"), spec.Lowercase(), spec.Replace(" ", "-" * 40)])
    tokenizer = reference(rewriter.steps)
    for text, (new, sources) in zip(texts, rewrite(rewriter, texts), strict=True):
        assert new == tokenizer.normalizer.normalize_str(text)
        assert sources == tokenizer.encode(text).offsets


def test_pickle_and_no_segments():
    rewriter = build_rewriter([spec.UnicodeForm("NFKC"), spec.Lowercase()])
    copy = pickle.loads(pickle.dumps(rewriter))
    assert copy.steps == rewriter.steps
    assert copy.apply_strings(["\ufb01A"]) == ["fia"]
    assert rewrite(rewriter, []) == []
    assert rewriter.changes(*segments([])).tolist() == []
    assert not build_rewriter([])
    assert build_rewriter([]).apply_strings(["a\u0301"]) == ["a\u0301"]


def test_what_cannot_be_rewritten():
    with pytest.raises(UnsupportedError, match="Digits"):
        build_rewriter([spec.Digits()])


# ------------------------------------------------------------------------------------- regular expressions


@pytest.mark.parametrize(
    ("pattern", "content"),
    [
        (r"\s+", " "),
        (r" {2,}", "\u2581"),
        (r"\s*", "-"),
        (r"b*", "-"),
        (r"a|ab", "xy"),
        (r"ab|a", ""),
        (r"\s+$", ""),
        (r"a(?!b)", "_"),
        (r"\p{L}", "L"),
        (r"[\r\n]+", "\n"),
    ],
)
@given(text=st.text(alphabet="ab \t\n\u3000\xe9", max_size=10))
@settings(max_examples=40, deadline=None)
def test_replace_regex(pattern, content, text):
    steps = [spec.Replace(pattern, content, is_regex=True)]
    tokenizer, rewriter = regex_pair(pattern, content)
    expected = tokenizer.normalizer.normalize_str(text)
    done = rewrite(rewriter, [text, "", "b" + text])
    assert done[0][0] == expected
    assert_covering(done[0][1], text, content, tokenizer.encode(text).offsets)
    assert done[1] == ("", [])
    assert done[2][0] == tokenizer.normalizer.normalize_str("b" + text)
    if expected != text:
        assert rewriter.changes(*segments([text])).all()
    assert rewriter.steps == tuple(steps)


@functools.cache
def regex_pair(pattern: str, content: str):
    steps = [spec.Replace(pattern, content, is_regex=True)]
    return reference(steps), build_rewriter(steps)


def test_clip_normalizer():
    steps = [spec.UnicodeForm("NFD"), spec.Replace(r"\s+", " ", is_regex=True), spec.Lowercase()]
    texts = ["A  Photo\n\tof \u3000 a C\xc1T", "   ", "x"]
    tokenizer = reference(steps)
    for text, (new, sources) in zip(texts, rewrite(build_rewriter(steps), texts), strict=True):
        assert new == tokenizer.normalizer.normalize_str(text)
        assert [end for _, end in sources] == [end for _, end in tokenizer.encode(text).offsets]


# ------------------------------------------------------------------------------- codepoint by codepoint


#: Rules on what clusters are made of, and on what joins them.
ODD_RULES = {
    "a": "b", "b": "", "ab": "X", "\u0600": "P", "\u0301": "Q", "e\u0301": "\xe9", "\u4e2d": " ", "\r": " ", "\n": "",
    "\u200d": "ZZ", "c\u0e31": "K", "\xa9": "(c)", "\u0e31": "y", "\u0915": "k",
}  # fmt: skip
PARTS = [" ", "  ", "   ", "\n", "\t", "\u2581", "a", "b", "ab", "A"]
PARTS += ["Ab", "e", "c", "\xe9", "e\u0301", "\u0301", "\u0316"]
PARTS += ["\u0327", "\u200d", "\u0600", "\u06dd", "\xa0", "\u3000"]
PARTS += ["\x85", "\x01", "\x00", "``", "''", "`", "\u4e2d", "\uff0c"]
PARTS += ["\ufb01", "\uff21", "\u1100", "\u1161", "\u11a8", "\uac00"]
PARTS += ["\uac01", "\u1160", "\u0e01\u0e31", "\u0915\u094d\u0937"]
PARTS += ["\u0958", "\u094d", "\r\n", "\r", "word ", "\u200b", "\u2026"]
PARTS += ["\u2122\ufe0f", "\xb2\ufe0f", "\U0001f1eb\U0001f1f7"]
PARTS += ["\U0001f469\u200d\U0001f469", "\xa9", "\xa9\u200d\xa9"]
PARTS += ["\u01c5", "\u0344", "x" * 70, "\u0130", ".", "\u0f71", "\u0f72"]
PARTS += ["\u0374", "\u1ef1", "\ufdfa", "plain text of some length, ASCII only and so on "]


def random_local_step(source: random.Random):
    kind = source.randrange(8)
    if kind == 0:
        return spec.UnicodeForm(source.choice(FORMS))
    if kind == 1:
        return source.choice([spec.Lowercase(), spec.StripAccents(), spec.Nmt()])
    if kind <= 3:
        return spec.Precompiled(source.choice([named_charsmap("nmt_nfkc"), compile_charsmap(ODD_RULES)]))
    if kind <= 5:
        pattern = source.choice(["``", "''", "a", "ab", "aaa", "aab", "\u0301", "e\u0301", "  ", " ", "Ab", "\ufb01", "fi"])
        return spec.Replace(pattern, source.choice(['"', "", "a", "  ", "\u0301", "ab", " ", "'"]), is_regex=False)
    if kind == 6:
        return spec.Replace(" {2,}", source.choice(["\u2581", " ", ""]), is_regex=True)
    return spec.Strip(*source.choice([(True, False), (False, True), (True, True)]))


def test_codepoint_by_codepoint_is_step_by_step(monkeypatch):
    monkeypatch.setattr(rewriting, "LOCAL_BYTES", 0)
    source = random.Random(11)
    n_holes = n_local = 0
    for _ in range(120):
        steps = [random_local_step(source) for _ in range(source.choice([1, 1, 2, 2, 3, 4, 5]))]
        rewriter = build_rewriter(steps)
        lengths = [source.choice([0, 1, 2, 3, 6, 12, 30]) for _ in range(60)]
        texts = ["".join(source.choice(PARTS) for _ in range(length)) for length in lengths]
        normalize = reference(steps).normalizer.normalize_str
        expected = rewriter.apply(*segments(texts), alignment=True)
        done = rewriter.apply(*segments(texts), alignment=False)
        assert rewriter._local is not None and rewriter._local.groups
        n_local += 1
        for i, text in enumerate(texts):
            stepwise = expected.data[expected.starts[i] : expected.ends[i]].tobytes().decode()
            at_once = done.data[done.starts[i] : done.ends[i]].tobytes().decode()
            assert at_once == stepwise == normalize(text), (steps, text)
            n_holes += at_once != text
    assert n_local == 120 and n_holes > 1000


def test_steps_that_look_too_far_are_done_as_ever(monkeypatch):
    monkeypatch.setattr(rewriting, "LOCAL_BYTES", 0)
    for step in (spec.Replace("a+b", "c", is_regex=True), spec.Replace("", "-"), spec.Prepend("x")):
        rewriter = build_rewriter([spec.Lowercase(), step])
        done = rewriter.apply(*segments(["Aab ab"]), alignment=False)
        assert rewriter._local is not None and not rewriter._local.groups
        expected = rewriter.apply(*segments(["Aab ab"]), alignment=True)
        assert done.data[: done.ends[0]].tobytes() == expected.data[: expected.ends[0]].tobytes()


def test_more_holes_and_more_text_than_room(monkeypatch):
    monkeypatch.setattr(rewriting, "LOCAL_BYTES", 0)
    rewriter = build_rewriter([spec.UnicodeForm("NFKC")])
    texts = ["\ufdfa" * 3000, "e\u0301a" * 3000, "\u0301" * 3000, "", "x"]
    done = rewriter.apply(*segments(texts), alignment=False)
    normalize = reference([spec.UnicodeForm("NFKC")]).normalizer.normalize_str
    found = [done.data[a:b].tobytes().decode() for a, b in zip(done.starts, done.ends, strict=True)]
    assert found == [normalize(text) for text in texts]

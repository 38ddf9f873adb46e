"""Added-token search against tokenizers, tiktoken and a plain-Python oracle."""

from __future__ import annotations

import dataclasses
import json
import random
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jittok import added_tokens, errors, spec
from jittok._jit import JIT_DISABLED
from jittok.added_tokens import find_added_tokens
from jittok.build import added_tokens as build_module
from jittok.build.added_tokens import build_added_tokens
from jittok.formats import json_parts, tokenizer_json
from jittok.kernels import added_tokens as kernels
from jittok.spec import AddedToken
from jittok.tables import ADDED_TOKENS_PREFIX_PAIRS, AddedTokenTables
from jittok.unicode.normalization import load_word_classes

SPACES = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029"
)
SPACES += "\u202f\u205f\u3000"


def is_word(character: str) -> bool:
    classes = load_word_classes()
    codepoint = ord(character)
    return classes.class_of[(int(classes.page_of[codepoint >> 7]) << 7) | (codepoint & 127)] == 1


def find(tables: AddedTokenTables, texts: list[str], enabled=None, capacity: int = 4) -> list[list[int]]:
    """Run the kernel over `texts` as segments, with the retry protocol; positions relative to the segment."""
    encoded = [text.encode() for text in texts]
    data = np.frombuffer(b"".join(encoded) + bytes(64), dtype=np.uint8)
    bounds = np.cumsum([0] + [len(text) for text in encoded]).astype(np.int64)
    starts, ends = bounds[:-1].copy(), bounds[1:].copy()
    starts.flags.writeable = ends.flags.writeable = False
    wanted = np.ones(len(tables.ids), dtype=np.bool_) if enabled is None else np.array(enabled, dtype=np.bool_)
    while True:
        out = np.empty((capacity, 4), dtype=np.int64)
        count = added_tokens._find(tables, wanted, data, starts, ends, 0, len(texts), out)
        if count >= 0:
            break
        assert -count >= 2 * capacity
        capacity = -count
    assert find_added_tokens(tables, wanted, data, starts, ends).tolist() == out[:count].tolist()
    rows = out[:count].copy()
    rows[:, 1:3] -= starts[rows[:, 0]][:, None]
    return rows.tolist()


def oracle(tokens: list[AddedToken], text: str, enabled=None, skipping: bool = True) -> list[list[int]]:
    """The same rows, in characters, by trying everything everywhere."""
    wanted = [True] * len(tokens) if enabled is None else enabled
    rows = []
    low = taken = 0
    while low < len(text):
        at = [i for i, token in enumerate(tokens) if token.content and text.startswith(token.content, low)]
        at.sort(key=lambda i: -len(tokens[i].content))
        if not skipping:
            at = [i for i in at if wanted[i]]
        if not at:
            low += 1
            continue
        token = tokens[at[0]]
        start, stop = low, low + len(token.content)
        low = stop
        if not wanted[at[0]]:
            continue
        if token.single_word and (
            (start > 0 and is_word(text[start - 1])) or (stop < len(text) and is_word(text[stop]))
        ):
            continue
        if token.lstrip:
            start = max(len(text[:start].rstrip(SPACES)), taken)
        if token.rstrip:
            stop = len(text) - len(text[stop:].lstrip(SPACES))
        if start >= stop:
            continue
        rows.append([0, start, stop, token.id])
        taken = stop
    return rows


def to_bytes(rows: list[list[int]], text: str) -> list[list[int]]:
    at = [len(text[:i].encode()) for i in range(len(text) + 1)]
    return [[segment, at[start], at[stop], token] for segment, start, stop, token in rows]


ALPHABET = "abc <>\t_\u00e9\u3000\U0001f600"
CONTENTS = st.text(alphabet=ALPHABET, min_size=1, max_size=4)
FLAGS = st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.booleans())


@st.composite
def token_sets(draw):
    contents = draw(st.lists(CONTENTS, min_size=1, max_size=7, unique=True))
    tokens = []
    for content in contents:
        single_word, lstrip, rstrip, normalized, special = draw(FLAGS)
        tokens.append(AddedToken(0, content, special, single_word, lstrip, rstrip, normalized))
    return tokens


TEXTS = st.text(alphabet=ALPHABET, max_size=40)


def build(tokens, *, skipping=True, filtered=False, few=1000):
    """Tables; `filtered` as if there were too many kinds of endings, `few` as if there were many strings to sort."""
    with mock.patch.object(kernels, "MAX_ENDINGS", 0 if filtered else kernels.MAX_ENDINGS):
        with mock.patch.object(build_module, "_FEW", few):
            return build_added_tokens(tokens, skipping=skipping)


@given(
    token_sets(), TEXTS, st.lists(st.booleans(), min_size=7, max_size=7), st.booleans(), st.booleans(), st.booleans()
)
@settings(max_examples=600, deadline=None)
def test_equals_the_oracle(tokens, text, enabled, skipping, filtered, long):
    if long:  # beyond what one word of the filter holds
        tokens = [dataclasses.replace(token, content=token.content * 4) for token in tokens]
        text = text[:12] * 4 + tokens[0].content + text
    tokens = [AddedToken(i, *as_tuple(token)) for i, token in enumerate(tokens)]
    enabled = enabled[: len(tokens)]
    tables = build(tokens, skipping=skipping, filtered=filtered)
    assert (len(tables.prefixes) > 0) == filtered
    expected = to_bytes(oracle(tokens, text, enabled, skipping), text)
    assert find(tables, [text], enabled) == expected
    joined = find(tables, ["a<", text, "", text], enabled)
    assert [row[1:] for row in joined if row[0] == 1] == [row[1:] for row in expected]
    assert [row[1:] for row in joined if row[0] == 3] == [row[1:] for row in expected]


def as_tuple(token: AddedToken) -> tuple:
    return (token.content, token.special, token.single_word, token.lstrip, token.rstrip, token.normalized)


def reference_tokenizer(tokens: list[AddedToken], normalizer=None):
    tokenizers = pytest.importorskip("tokenizers")
    characters = sorted(set(ALPHABET) | {chr(c) for c in range(32, 127)})
    vocab = {character: i for i, character in enumerate(characters)}
    for token in tokens:  # ids that the reference gives
        if token.content not in vocab:
            vocab[token.content] = len(vocab)
    model = {"type": "BPE", "vocab": vocab, "merges": [], "unk_token": None}
    added = [
        {
            "id": vocab[token.content],
            "content": token.content,
            "special": token.special,
            "single_word": token.single_word,
            "lstrip": token.lstrip,
            "rstrip": token.rstrip,
            "normalized": token.normalized,
        }
        for token in tokens
    ]
    file = {"version": "1.0", "added_tokens": added, "normalizer": normalizer, "model": model}
    return tokenizers.Tokenizer.from_str(json.dumps(file)), vocab


@given(token_sets(), TEXTS, st.booleans())
@settings(max_examples=400, deadline=None)
def test_equals_tokenizers(tokens, text, encode_special_tokens):
    reference, vocab = reference_tokenizer(tokens)
    reference.encode_special_tokens = encode_special_tokens
    try:
        encoding = reference.encode(text)
    except BaseException as error:  # the reference panics on overlapping white space, see docs/differences.md
        assert "bad split" in str(error)
        return
    expected = list(zip(encoding.ids, encoding.offsets, strict=True))

    tokens = [AddedToken(vocab[token.content], *as_tuple(token)) for token in tokens]
    pieces: list[tuple[int, int, int]] = [(0, len(text), -1)]
    for normalized in (False, True):
        group = [token for token in tokens if token.normalized is normalized]
        enabled = [not (encode_special_tokens and token.special) for token in group]
        tables = build_added_tokens(group)
        done = []
        for begin, end, token_id in pieces:
            if token_id >= 0:
                done.append((begin, end, token_id))
                continue
            piece = text[begin:end]
            cursor = 0
            for _, start, stop, found in find(tables, [piece], enabled):
                start, stop = len(piece.encode()[:start].decode()), len(piece.encode()[:stop].decode())
                if cursor < start:
                    done.append((begin + cursor, begin + start, -1))
                done.append((begin + start, begin + stop, found))
                cursor = stop
            if cursor < len(piece):
                done.append((begin + cursor, end, -1))
        pieces = done
    actual = []
    for begin, end, token_id in pieces:
        if token_id >= 0:
            actual.append((token_id, (begin, end)))
        else:
            actual += [(vocab[text[i]], (i, i + 1)) for i in range(begin, end)]
    assert actual == expected


def test_word_characters_and_white_space():
    """What may touch a single_word token, and what lstrip takes, is what tokenizers says for every assigned codepoint."""
    reference, _ = reference_tokenizer([AddedToken(0, "<a>", single_word=True), AddedToken(0, "<b>", lstrip=True)])
    blocks = [*range(0, 0x33000, 0x80), *range(0x33000, 0x110000, 0x3F80), 0xE0000, 0xE0080, 0xE0100, 0x10FF80]
    for begin in blocks:
        characters = [chr(c) for c in range(begin, begin + 0x80) if not 0xD800 <= c < 0xE000]
        if not characters:
            continue
        encoding = reference.encode("".join(f"<a>{c}<b>|" for c in characters))
        word = set()
        space = set()
        found = {
            ("<a>" if token.startswith("<a>") else "<b>", start, end)
            for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True)
            if len(token) > 2
        }
        for i, character in enumerate(characters):
            at = 8 * i
            if ("<a>", at, at + 3) not in found:
                word.add(character)
            if ("<b>", at + 3, at + 7) in found:
                space.add(character)
        # The token's own neighbours "|" and "<" are not word characters.
        assert word == {c for c in characters if is_word(c)}
        assert space == {c for c in characters if c in SPACES}


def test_kernel_white_space_is_the_list_of_this_file():
    tables = build_added_tokens([AddedToken(7, "x", lstrip=True, rstrip=True)])
    tried = [c for c in range(0x3100) if not JIT_DISABLED or chr(c) in SPACES or c % 16 == 0]
    texts = [chr(c) + "x" + chr(c) for c in tried if chr(c) != "x"]
    rows = find(tables, texts)
    assert len(rows) == len(texts)
    for (segment, start, stop, _), text in zip(rows, texts, strict=True):
        assert texts[segment] == text
        inside = text.encode()[start:stop].decode()
        assert inside == (text if text[0] in SPACES else "x")


def test_all_the_text_is_a_token_or_nothing_is():
    tables = build_added_tokens([AddedToken(5, "<|end|>")])
    assert find(tables, []) == []
    assert find(tables, ["", "<|end|>", "<|end|", "|end|>", ">" * 200]) == [[1, 0, 7, 5]]
    assert find(build_added_tokens([]), ["abc", ""]) == []
    assert find(build_added_tokens([AddedToken(3, "")]), ["abc"]) == []


@pytest.mark.parametrize(
    "before", [0, 1, 62, 63, 64, 65, 127, 128, 4087, 4088, 4089, 4090, 4095, 4096, 4097, 9000]
)
def test_places_around_blocks_and_windows(before):
    tables = build_added_tokens([AddedToken(1, "<|end|>"), AddedToken(2, "<|end|><|x|>")])
    text = "a" * before + "<|end|>" + "b" * 70 + "<|end|><|x|>" + "c" * before
    at = before + 77
    assert find(tables, [text]) == [[0, before, before + 7, 1], [0, at, at + 12, 2]]


@settings(max_examples=100, deadline=None)
@given(contents=st.lists(st.text("ab\u00e9\U0001f600", max_size=6), max_size=12), skipping=st.booleans())
def test_automata_of_few_bytes_are_those_of_the_kernel(contents, skipping):
    tokens = [AddedToken(number, content) for number, content in enumerate(contents)]
    few = build_added_tokens(tokens, skipping=skipping)
    with mock.patch.object(build_module, "_TINY", 0):
        same = build_added_tokens(tokens, skipping=skipping)
    for one, other in zip(few, same, strict=True):
        assert one.dtype == other.dtype and one.tolist() == other.tolist()


def test_many_kinds_of_endings():
    tokens = [AddedToken(i, "<" + chr(97 + i) + chr(122 - i)) for i in range(26)]
    tables = build_added_tokens(tokens)
    assert len(tables.endings) == 0
    text = "".join(f"{'x' * i}{token.content}" for i, token in enumerate(tokens))
    assert [row[3] for row in find(tables, [text])] == list(range(26))
    tables = build_added_tokens([AddedToken(i, chr(97 + i) + ">") for i in range(26)])
    assert tables.endings.tolist() == [[ord(">"), 0, 0]]


@pytest.mark.parametrize("filtered", [False, True])
def test_hostile_tokens_take_linear_time(filtered):
    """Every prefix of a long run is a token; a search that goes back would take hours."""
    n = 300_000 if is_compiled() else 600
    tokens = [AddedToken(i, "a" * (i + 1)) for i in range(300)] + [AddedToken(300, "a" * (n // 2) + "b")]
    rows = find(build(tokens, filtered=filtered), ["a" * n, "a" * n + "b"])
    assert [row[2] - row[1] for row in rows if row[0] == 0] == [300] * (n // 300)
    assert [row[3] for row in rows if row[0] == 1] == [299] * (n // 600) + [300]


def test_too_much_work_is_left_to_the_automaton():
    """The trie would go down a long token at every place."""
    n = 100_000 if is_compiled() else 3000
    tokens = [AddedToken(0, "a" * 400 + "b"), *(AddedToken(i, chr(98 + i) * 2) for i in range(1, 20))]
    tables = build(tokens)
    assert len(tables.prefixes) and len(tables.labels) > 400
    assert find(tables, ["a" * n + "b" + "dd"]) == [[0, n - 400, n + 1, 0], [0, n + 1, n + 3, 2]]


def test_white_space_is_measured_once():
    n = 300_000 if is_compiled() else 600
    tokens = [AddedToken(0, " ", lstrip=True, rstrip=True), AddedToken(1, "  ", rstrip=True)]
    rows = find(build_added_tokens(tokens), [" " * n])
    assert rows == [[0, 2 * i, n, 1] for i in range(n // 2)]
    small = " " * 60
    assert find(build_added_tokens(tokens), [small]) == oracle(tokens, small)


def is_compiled() -> bool:
    return hasattr(kernels.find_added_tokens, "py_func")


def test_first_of_equal_contents_wins_and_ids_are_free():
    tables = build_added_tokens([AddedToken(1_000_000, "ab"), AddedToken(3, "ab")])
    assert find(tables, ["xab"]) == [[0, 1, 3, 1_000_000]]


def test_tiktoken_special_tokens():
    tiktoken = pytest.importorskip("tiktoken")
    specials = {"<|a|>": 300, "<|b|>": 301, "<<": 302}
    encoding = tiktoken.Encoding(
        "test", pat_str=r".|\n", mergeable_ranks={bytes([i]): i for i in range(256)}, special_tokens=specials
    )
    tokens = [AddedToken(token_id, content, special=True) for content, token_id in specials.items()]
    tables = build_added_tokens(tokens, skipping=False)
    random = np.random.default_rng(5)
    for _ in range(300):
        text = "".join(random.choice(["<", "|", "a", "b", ">", "<|a|>", "<|b|>", "<<"], size=12))
        allowed = {content for content in specials if random.random() < 0.6}
        expected = encoding.encode(text, allowed_special=allowed, disallowed_special=())
        actual = []
        cursor = 0
        for _, start, stop, token_id in find(tables, [text], [content in allowed for content in specials]):
            actual += list(text.encode()[cursor:start]) + [token_id]
            cursor = stop
        assert actual + list(text.encode()[cursor:]) == expected
        # The first one that is not allowed, for the policy "raise".
        rows = find(tables, [text], [content not in allowed for content in specials])
        raised = ""
        try:
            encoding.encode(text, allowed_special=allowed)
        except ValueError as error:
            raised = str(error)
        assert bool(rows) == bool(raised)
        if rows:
            assert repr(text[rows[0][1] : rows[0][2]]) in raised


def test_large_set():
    n = 100_000 if is_compiled() else 500
    tokens = [AddedToken(i, f"<extra_{i}>") for i in range(n)]
    tables = build_added_tokens(tokens)
    chosen = [0, n - 1, n // 2, 17]
    rows = find(tables, ["x".join(f"<extra_{i}>" for i in chosen) + "<extra_"])
    assert [row[3] for row in rows] == chosen


@given(
    st.lists(
        st.text("ab\0<\u00e9", max_size=4).flatmap(lambda text: st.sampled_from([text, text * 5, "ab" * 9 + text])),
        max_size=20,
    )
)
@settings(max_examples=300, deadline=None)
def test_many_strings_are_sorted_as_few_are(contents):
    tokens = [AddedToken(i, content) for i, content in enumerate(contents)]
    expected = build(tokens)
    for few in (-1, 1, 3):
        for one, other in zip(build(tokens, few=few), expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("least", [2, 4, 5])  # from five on, neighbours share a look at the bitmap
def test_many_random_tokens_in_text(least):
    n = 50_000 if is_compiled() else 300
    chooser = random.Random(3)
    contents = {"".join(chooser.choices("abcdefgh", k=chooser.randint(least, 12))) for _ in range(n)}
    contents = sorted(contents | {"\u65e5" * 3, "abcd\u00e9"})
    tables = build_added_tokens([AddedToken(i, content) for i, content in enumerate(contents)])
    assert len(tables.prefixes)
    assert tables.numbers[ADDED_TOKENS_PREFIX_PAIRS] == (least == 5)
    place_of = {content: i for i, content in enumerate(contents)}
    for size in (0, 1, 7, 8, 9, 300, 6000 if is_compiled() else 50):
        text = "".join(chooser.choices("abcdefgh\u00e9\u65e5 ", k=size))
        rows, low = [], 0
        while low < len(text):
            found = [text[low:end] for end in range(min(low + 12, len(text)), low, -1) if text[low:end] in place_of]
            if found:
                rows.append([0, low, low + len(found[0]), place_of[found[0]]])
            low += len(found[0]) if found else 1
        assert find(tables, [text]) == to_bytes(rows, text)


# ------------------------------------------------------------------------------------- hundreds of thousands in a file


def json_of(tokens, chooser, indent):
    """A tokenizer.json with these added tokens, their fields in any order."""
    stated = []
    for token in tokens:
        fields = list(dataclasses.asdict(token).items())
        chooser.shuffle(fields)
        stated.append(dict(fields))
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "<x>": 2}, "merges": []}
    document = {"version": "1.0", "added_tokens": stated, "model": model}
    return json.dumps(document, indent=indent, ensure_ascii=chooser.random() < 0.5).encode()


def as_many(data):
    """What is read when some tokens are many already."""
    with mock.patch.multiple(json_parts, _LEAST_BYTES=1, _MANY_BYTES=1):
        return tokenizer_json.read(data, "file")


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_many_added_tokens_are_read_as_few_are(indent):
    chooser = random.Random(str(indent))
    for _ in range(30):
        contents = ["<x>", "a", "\u00e9", "\\", '"', "\n", "\U0001f600", "", "plain", "]", "}, {", "<x>"]
        tokens = [
            AddedToken(chooser.randrange(9), chooser.choice(contents), *(chooser.random() < 0.5 for _ in range(5)))
            for _ in range(chooser.randint(1, 9))
        ]
        data = json_of(tokens, chooser, indent)
        with mock.patch.multiple(json_parts, _LEAST_BYTES=1, _MANY_BYTES=1):
            taken = json_parts.read_parts(data, tokenizer_json._FLAGS)
        assert taken is not None and taken.added == tuple(tokens)
        assert as_many(data).added_tokens == tokenizer_json.read(data, "file").added_tokens


def test_what_is_not_plain_is_read_or_refused_as_ever():
    data = json_of([AddedToken(3, "<y>"), AddedToken(4, "<z>", special=True)], random.Random(1), None)
    for at in range(len(data)):
        inserted = [data[:at] + byte + data[at:] for byte in (b",", b'"', b"0", b"\xff")]
        for changed in (data[:at], data[:at] + data[at + 1 :], *inserted):
            try:
                expected = tokenizer_json.read(changed, "file").added_tokens
            except errors.JittokError as error:
                with pytest.raises(type(error)) as raised:
                    as_many(changed)
                assert str(raised.value) == str(error)
            else:
                assert as_many(changed).added_tokens == expected


def test_another_field_of_that_name_is_none_of_the_files():
    data = json_of([AddedToken(0, "x")], random.Random(1), None)
    data = b'{"extra": ' + data + b', "added_tokens": [], "model": {}}'
    with pytest.raises(errors.UnsupportedError, match="extra"):
        as_many(data)


def test_columns_are_the_tokens():
    tokens = (AddedToken(3, "x", special=True), AddedToken(9, "", True, True, True, True, True), AddedToken(-1, "y"))
    columns = spec.AddedTokens.of(tokens)
    assert columns == tokens and tokens == columns and tuple(columns) == tokens and columns != tokens[:2]
    assert columns[1:] == tokens[1:] and columns[-1] == tokens[-1] and len(columns) == 3
    assert repr(columns) == repr(tokens) and columns == spec.AddedTokens.of(columns)


def test_tables_are_read_only():
    tables = build_added_tokens([AddedToken(1, "a")])
    assert all(not array.flags.writeable and array.flags.c_contiguous for array in tables)

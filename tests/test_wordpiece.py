"""WordPiece: tables, and the three encoders against each other, a slow twin and tokenizers."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import isolated_words, word_pieces
from specs import CASES, DATA

from jittok import tables as t
from jittok._jit import JIT_DISABLED
from jittok.build.validate import check_wordpiece
from jittok.build.wordpiece_tables import Node, build_wordpiece_tables, list_nodes
from jittok.decoding import word_piece
from jittok.errors import ArgumentError, FormatError
from jittok.kernels.word_cache import new_word_scratch
from jittok.kernels.wordpiece import NO_ROOM, lin_max_match, max_match, wordpiece_end_to_end, wordpiece_word
from jittok.spec import DecodeWordPiece
from jittok.unicode import bert, classes, intervals

WORD_ENCODERS = [max_match, lin_max_match]
#: Not the id of any token here.
UNKNOWN = 9999


def flat(texts):
    """Texts as the kernels take them, a byte of something else between them."""
    encoded = [text.encode() for text in texts]
    starts = np.cumsum([0, *(len(text) + 1 for text in encoded)])[: len(texts)].astype(np.int64)
    ends = starts + np.array([len(text) for text in encoded], np.int64)
    return [t.read_only(array) for array in (np.frombuffer(b"a".join([*encoded, b""]) + b"a", np.uint8), starts, ends)]


def ids_of(kernel, tables, texts):
    """(id, bytes) of each word."""
    data, starts, ends = flat(texts)
    ids, lengths = np.full(data.size, -7, np.int32), np.full(data.size, -7, np.int32)
    word_end = np.zeros(len(texts), np.int64)
    n = kernel(tables, data, starts, ends, ids, lengths, word_end)
    assert n == (word_end[-1] if len(texts) else 0)
    pairs = list(zip(ids[:n].tolist(), lengths[:n].tolist(), strict=True))
    return [pairs[first:last] for first, last in zip([0, *word_end[:-1].tolist()], word_end.tolist(), strict=True)]


def text_ids(tables, texts):
    """(id, first byte in the text, bytes) of each text."""
    data, starts, ends = flat(texts)
    ids, lengths = np.full(data.size, -7, np.int32), np.full(data.size, -7, np.int32)
    begins, text_end = np.full(data.size, -7, np.int64), np.zeros(len(texts), np.int64)
    n = wordpiece_end_to_end(tables, data, starts, ends, ids, lengths, begins, text_end)
    again, few = ids.copy(), np.zeros(len(texts), np.int64)
    assert n == wordpiece_end_to_end(tables, data, starts, ends, again, lengths.copy(), begins[:0], few)
    np.testing.assert_array_equal(ids[:n], again[:n])
    found, first = [], 0
    for start, last in zip(starts.tolist(), text_end.tolist(), strict=True):
        columns = ids[first:last], begins[first:last] - start, lengths[first:last]
        found.append(list(zip(*(column.tolist() for column in columns), strict=True)))
        first = last
    return found


def expected_words(vocabulary, words, indicator="##", max_input=100, in_bytes=False):
    found = []
    for word in words:
        pieces, at = [], 0
        for identifier, n in word_pieces(vocabulary, word, UNKNOWN, indicator, max_input, in_bytes):
            pieces.append((identifier, len(word[at : at + n].encode())))
            at += n
        found.append(pieces)
    return found


def build(tokens, **settings):
    vocabulary = {token: number for number, token in enumerate(tokens)}
    return build_wordpiece_tables(vocabulary, unknown=settings.pop("unknown", UNKNOWN), **settings), vocabulary


# ------------------------------------------------------------------------------------------------------- tables

EXAMPLE = ["a", "abcdx", "##b", "##c", "##cdy", "##dz"]


def test_worked_example():
    """The example of Song et al., Fast WordPiece Tokenization (2021): nodes, links, pops, and the word abcdz."""
    tables, vocabulary = build(EXAMPLE)
    a, b, c = vocabulary["a"], vocabulary["##b"], vocabulary["##c"]
    assert list_nodes(tables) == {
        "": Node((), None),
        "#": Node((), None),
        "##": Node((), None),
        "a": Node((a,), "##"),
        "ab": Node((a,), "##b"),
        "abc": Node((a, b), "##c"),
        "abcd": Node((a, b), "##cd"),
        "abcdx": Node((vocabulary["abcdx"],), "##"),
        "##b": Node((b,), "##"),
        "##c": Node((c,), "##"),
        "##cd": Node((c,), "##d"),
        "##cdy": Node((vocabulary["##cdy"],), "##"),
        "##d": Node((), None),
        "##dz": Node((vocabulary["##dz"],), "##"),
    }
    for encoder in WORD_ENCODERS:
        assert ids_of(encoder, tables, ["abcdz"]) == [[(a, 1), (b, 1), (c, 1), (vocabulary["##dz"], 2)]]
    assert [i for i, _, _ in text_ids(tables, ["abcdz"])[0]] == [a, b, c, vocabulary["##dz"]]


def test_memory_is_linear_in_the_vocabulary():
    """Pops of one node are as many as its characters: written out for each node they would be quadratic."""
    n = 1_000 if JIT_DISABLED else 20_000
    tables, _ = build(["a", "##a", "a" * n + "b"], max_input=n)
    assert sum(array.nbytes for array in tables[2:]) < 100 * n
    for word, count in (("a" * n + "b", 1), ("a" * n, n)):
        (pieces,) = ids_of(lin_max_match, tables, [word])
        assert len(pieces) == count
    (pieces,) = ids_of(lin_max_match, tables, ["a" * (n - 1) + "b"])
    assert pieces == [(UNKNOWN, n)]


def test_units_hold_a_trie():
    """Every node is the child of one parent, and steps for any code stay inside the array."""
    generator = random.Random(5)
    tokens = {"".join(generator.choices("abcdefgäöüßЖЩ", k=generator.randint(1, 6))) for _ in range(3000)}
    tables, vocabulary = build([*sorted(tokens), *("##" + token for token in sorted(tokens)[:1000])])
    units = tables.units.reshape(-1, 4)
    bases = units[(units[:, 0] >= 0) & (units[:, 1] > 0), 1]
    assert len(bases) == len(set(bases.tolist()))
    largest = int(tables.code_of.max()) & t.CHARACTER_CODE
    assert bases.max() + largest < tables.units.size
    prefixes = {token[:end] for token in vocabulary for end in range(len(token) + 1)}
    assert list_nodes(tables).keys() == prefixes
    assert len(units) < 2 * len(prefixes) + largest


def test_defined_oddities():
    """Empty tokens, one id for two tokens, only suffixes, nothing at all."""
    for encoder in WORD_ENCODERS:
        tables, _ = build(["", "a", "##b"])
        assert ids_of(encoder, tables, ["ab", "", "b"]) == [[(1, 1), (2, 1)], [], [(UNKNOWN, 1)]]
        tables = build_wordpiece_tables({"a": 5, "##b": 5, "##c": 2147483647}, unknown=0)
        assert ids_of(encoder, tables, ["abc"]) == [[(5, 1), (5, 1), (2147483647, 1)]]
        tables, _ = build(["##a", "##b"])
        assert ids_of(encoder, tables, ["ab", "##a", "##ab"]) == [[(UNKNOWN, 2)], [(0, 3)], [(0, 3), (1, 1)]]
        tables, _ = build([])
        assert ids_of(encoder, tables, ["a", "", "##"]) == [[(UNKNOWN, 1)], [], [(UNKNOWN, 2)]]
        tables, _ = build(["##"])
        assert ids_of(encoder, tables, ["##", "###", "a"]) == [[(0, 2)], [(UNKNOWN, 3)], [(UNKNOWN, 1)]]
        tables, _ = build([], suffix_indicator="")
        assert ids_of(encoder, tables, ["a", ""]) == [[(UNKNOWN, 1)], []]
        tables, _ = build(["a", "\ud800b"])  # a lone surrogate is in no text
        assert ids_of(encoder, tables, ["a", "b"]) == [[(0, 1)], [(UNKNOWN, 1)]]


def test_a_token_without_an_own_place():
    """The text of the indicator itself, with any of its prefixes in the vocabulary."""
    words = ["#", "##", "###", "####", "##a", "#a", "###a", "##ab", "a##", "##c"]
    for tokens in (["#"], ["##"], ["#", "##"], ["#", "###"], ["##", "##a"], ["#", "###", "##a", "a"], ["###"], ["#", "##a"]):
        tables, vocabulary = build(tokens)
        for encoder in WORD_ENCODERS:
            assert ids_of(encoder, tables, words) == expected_words(vocabulary, words), tokens


@pytest.mark.parametrize(
    "bad", [{"unknown": -1}, {"max_input": -1}, {"vocabulary": {"a": -1}}, {"vocabulary": {"a": 1 << 31}}]
)
def test_arguments_are_checked(bad):
    with pytest.raises(ArgumentError):
        build_wordpiece_tables(**{"vocabulary": {"a": 0}, "unknown": 1, **bad})


CHECKED = ["a", "abcdx", "##b", "##c", "##cdy", "##dz", "é", "##éü", "語", "##語a", "aab", "##aab", "##a"]


@pytest.mark.parametrize("indicator", ["##", "", "é#", "a"])
def test_tables_from_a_file_are_checked(indicator):
    """Right tables pass; whatever else passes with one value changed lets no kernel leave its arrays, or run on."""
    tables, vocabulary = build([token.replace("##", indicator) for token in CHECKED], suffix_indicator=indicator, unknown=0)
    check_wordpiece(tables, len(CHECKED), "here")
    with pytest.raises(FormatError, match="here"):
        check_wordpiece(tables, 3, "here")
    generator = random.Random(indicator)
    words = ["aabcdzé語éüaabcdyb##", "##", "##a", "é#b", "aaaa", "", "語aé"]
    refused = 0
    for _ in range(100 if JIT_DISABLED else 400):
        name = generator.choice(["units", "units", "units", *tables._fields])
        array = getattr(tables, name).copy()
        if not array.size:
            continue
        at = generator.randrange(array.size)
        values = [0, 1, 2, 3, 4, 8, 255, array[generator.randrange(array.size)], int(array[at]) - 4, int(array[at]) + 4]
        values += [-1, -2, -3, 1 << 30] if array.dtype.kind == "i" else [60]
        array[at] = np.array(generator.choice(values)).astype(array.dtype)
        changed = tables._replace(**{name: t.read_only(array)})
        try:
            check_wordpiece(changed, len(CHECKED), "here")
        except FormatError:
            refused += 1
            continue
        for encoder in WORD_ENCODERS:
            for word, pieces in zip(words, ids_of(encoder, changed, words), strict=True):
                assert all(0 <= i < len(CHECKED) for i, _ in pieces)
                assert sum(n for _, n in pieces) in (0, len(word.encode()))
        text_ids(changed, words)
    assert refused > 50


@pytest.mark.parametrize("number", [t.WORDPIECE_ROOT, t.WORDPIECE_SUFFIX_ROOT])
@pytest.mark.parametrize("indicator", ["##", ""])
def test_roots_inside_a_node_are_refused(number, indicator):
    tables, _ = build([token.replace("##", indicator) for token in CHECKED], suffix_indicator=indicator, unknown=0)
    for more in (1, 2, 3):
        numbers = tables.numbers.copy()
        numbers[number] += more
        with pytest.raises(FormatError, match="roots at multiples of four"):
            check_wordpiece(tables._replace(numbers=t.read_only(numbers)), len(CHECKED), "here")


def test_output_without_room():
    tables, _ = build(["a", "##a"])
    data, starts, ends = flat(["aaa", "aa"])
    word_end = np.zeros(2, np.int64)
    for room in range(6):
        ids = np.zeros(room, np.int32)
        for encoder in WORD_ENCODERS:
            assert (encoder(tables, data, starts, ends, ids, ids.copy(), word_end) == 5) == (room == 5)
            assert encoder(tables, data, starts, ends, ids, ids.copy(), word_end) in (5, NO_ROOM)
        n = wordpiece_end_to_end(tables, data, starts, ends, ids, ids.copy(), np.zeros(0, np.int64), word_end)
        assert n == (5 if room == 5 else NO_ROOM)


def test_longest_word():
    tokens = ["a", "##a", "é", "##é"]
    words = ["a" * 4, "a" * 5, "é" * 4, "éa", "aaaé", "aaaaé", "é" * 5]
    for in_bytes in (False, True):
        tables, vocabulary = build(tokens, max_input=4, max_input_in_bytes=in_bytes)
        expected = expected_words(vocabulary, words, max_input=4, in_bytes=in_bytes)
        for encoder in WORD_ENCODERS:
            assert ids_of(encoder, tables, words) == expected
        assert [[(i, n) for i, _, n in row] for row in text_ids(tables, words)] == expected
    tables, _ = build(tokens, max_input=0)
    for encoder in WORD_ENCODERS:
        assert ids_of(encoder, tables, ["a", ""]) == [[(UNKNOWN, 1)], []]


def test_white_space_before_a_word():
    space = classes.binary_property("whitespace")
    tables, _ = build(["ab", "##c", "##", "##d"], space=space, skip_space=True)
    words = [" ab", "\u3000\tabc", "  ", "", " x", "\n##d", " ##", "ab "]
    expected = [[(0, 3)], [(0, 6), (1, 1)], [], [], [(UNKNOWN, 2)], [(3, 4)], [(2, 3)], [(UNKNOWN, 3)]]
    for encoder in WORD_ENCODERS:
        assert ids_of(encoder, tables, words) == expected
    tables, _ = build(["ab", "##c"], space=space)
    for encoder in WORD_ENCODERS:
        assert ids_of(encoder, tables, [" ab"]) == [[(UNKNOWN, 3)]]


def test_word_for_the_batch_engine():
    """What the batch kernel calls: ids and lengths are left in the scratch arrays."""
    space = classes.binary_property("whitespace")
    tables, _ = build(["ab", "##c", "##"], space=space, skip_space=True)
    scratch = new_word_scratch()
    for word, expected in ((" abcc", [0, 1, 1]), ("x", [UNKNOWN]), ("\u2003", []), ("", []), ("\t##", [2])):
        data = np.frombuffer(b"#" + word.encode() + b"#", np.uint8)
        n = wordpiece_word(tables, data, 1, data.size - 1, scratch)
        assert scratch.symbols[:n].tolist() == expected
        assert scratch.lengths[:n].sum() == (len(word.encode()) if expected else 0)


def test_a_long_word_takes_linear_time():
    """A million characters; the definition would take hours."""
    n = 1_000 if JIT_DISABLED else 1_000_000
    tables, _ = build(["a", "##a", "##aa", "##aaaab", "é"], max_input=n)
    (pieces,) = ids_of(lin_max_match, tables, ["a" * n])
    assert len(pieces) == 1 + (n - 1) // 2 + (n - 1) % 2
    for word in ("a" * (n - 1) + "é", "##" + "a" * (n - 3) + "b"):
        (pieces,) = ids_of(lin_max_match, tables, [word])
        assert pieces == [(UNKNOWN, len(word.encode()))]
        assert text_ids(tables, [word]) == [[(UNKNOWN, 0, len(word.encode()))]]
    assert ids_of(lin_max_match, tables, ["a" * (n + 1)]) == [[(UNKNOWN, n + 1)]]


# ------------------------------------------------------------------------------------- against the definition


@st.composite
def vocabularies(draw):
    """An indicator, tokens over a tiny alphabet, with and without it, and words."""
    indicator = draw(st.sampled_from(["##", "##", "#", "", "ab", "###", "é"]))
    letters = draw(st.sampled_from(["ab", "abc", "a#", "ab#", "aé#", "ab語😀"]))
    plain = st.text(letters, max_size=5)
    token = st.one_of(plain, plain.map(lambda text: indicator + text))
    tokens = draw(st.lists(token, max_size=14, unique=True))
    word = st.text(letters + draw(st.sampled_from(["", "#", "z"])), max_size=12)
    return indicator, tokens, draw(st.lists(word, min_size=1, max_size=8)), draw(st.sampled_from([100, 100, 6]))


@settings(max_examples=300, deadline=None)
@given(vocabularies(), st.booleans())
@example(("##", ["#", "##a", "###a", "##", "a"], ["##b", "##", "###a", "#a"], 100), False)
@example(("###", ["#", "####"], ["###"], 100), False)
@example(("", ["a", "ab", "b", "bba"], ["abba", "abbab"], 100), True)
def test_encoders_agree(case, in_bytes):
    indicator, tokens, words, max_input = case
    options = {"max_input": max_input, "max_input_in_bytes": in_bytes}
    tables, vocabulary = build(tokens, suffix_indicator=indicator, **options)
    expected = expected_words(vocabulary, words, indicator, max_input, in_bytes)
    assert ids_of(max_match, tables, words) == expected
    assert ids_of(lin_max_match, tables, words) == expected
    # Without classes, a text is a word.
    assert [[(i, n) for i, _, n in row] for row in text_ids(tables, words)] == expected


@settings(max_examples=150, deadline=None)
@given(vocabularies())
def test_words_against_tokenizers(case):
    models = pytest.importorskip("tokenizers.models")
    indicator, tokens, words, max_input = case
    words = [word for word in words if word]
    if not words:
        return
    tables, vocabulary = build([*tokens, "[UNK]"], suffix_indicator=indicator, max_input=max_input, unknown=len(tokens))
    model = models.WordPiece(
        vocabulary, unk_token="[UNK]", max_input_chars_per_word=max_input, continuing_subword_prefix=indicator
    )
    expected = [[token.id for token in model.tokenize(word)] for word in words]
    for encoder in WORD_ENCODERS:
        assert [[i for i, _ in row] for row in ids_of(encoder, tables, words)] == expected


SPACES, ISOLATED = " \t\u3000", ".#，"


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["##", "#", ""]),
    st.lists(st.text("ab#.é，", min_size=1, max_size=4), max_size=14, unique=True),
    st.lists(st.text("aab#.é，z \t\u3000", max_size=20), min_size=1, max_size=5),
    st.sampled_from([100, 4]),
)
def test_running_text(indicator, tokens, texts, max_input):
    tables, vocabulary = build(
        tokens,
        suffix_indicator=indicator,
        max_input=max_input,
        space=intervals.from_codepoints(map(ord, SPACES)),
        isolated=intervals.from_codepoints(map(ord, ISOLATED)),
    )
    expected = []
    for text in texts:
        rows = []
        for position, word in isolated_words(text, set(SPACES), set(ISOLATED)):
            for identifier, n in word_pieces(vocabulary, word, UNKNOWN, indicator, max_input, False):
                rows.append((identifier, len(text[:position].encode()), len(text[position : position + n].encode())))
                position += n
        expected.append(rows)
    assert text_ids(tables, texts) == expected


# --------------------------------------------------------------------------------- cases of other projects' tests


def bert_classes():
    return {
        "space": classes.binary_property("whitespace"),
        "isolated": intervals.union(bert.punctuation(), bert.CHINESE),
    }


def cases(name, wanted):
    path = Path(CASES or "", "cases", name)
    if not CASES or not path.exists():
        return []
    return [case for case in map(json.loads, path.read_text(encoding="utf-8").splitlines()) if wanted(case)]


needs_cases = pytest.mark.skipif(not CASES, reason="JITTOK_TEST_CASES names no folder of cases")
FAST = cases("tf_text_fast_wordpiece_cc.jsonl", lambda case: True)


@needs_cases
@pytest.mark.parametrize("number", range(len(FAST)))
def test_fast_wordpiece_cases(number):
    """Single words, running text, and back to text. Offsets are in bytes, and so is the longest word."""
    case = FAST[number]
    unknown = case["vocab"].index(case["unk_token"])
    tables, _ = build(
        case["vocab"],
        unknown=unknown,
        suffix_indicator=case["suffix_indicator"],
        max_input=case["max_bytes_per_token"],
        max_input_in_bytes=True,
        **bert_classes(),
    )
    if case["test"] == "TokenizeDetokenize":
        words = case["input"].split(" ")
        rows = [row for encoder in WORD_ENCODERS for row in ids_of(encoder, tables, words)]
        ids = [i for row in rows for i, _ in row]
        assert ids == case["expected_token_ids"] * 2
        step = DecodeWordPiece(prefix=case["suffix_indicator"], cleanup=False)
        tokens = [case["vocab"][i] for i in case["expected_token_ids"]]
        text = "".join(word_piece(token, step, i == 0) for i, token in enumerate(tokens))
        assert text == case["expected_detokenized_text"]
        return
    columns = ("expected_token_ids", "expected_token_start_offsets", "expected_token_end_offsets")
    expected = [(i, first, last - first) for i, first, last in zip(*(case[key] for key in columns), strict=True)]
    if case["test"] == "TokenizeText":
        assert text_ids(tables, [case["input"]]) == [expected]
        return
    for encoder in WORD_ENCODERS:
        (pieces,) = ids_of(encoder, tables, [case["input"]])
        assert pieces == [(i, n) for i, _, n in expected]
        assert np.cumsum([0, *(n for _, n in pieces)])[:-1].tolist() == [first for _, first, _ in expected]


def leaves(nested):
    """The strings of nested lists, or of the innermost lists of them, in order."""
    return [nested] if isinstance(nested, str) else [leaf for part in nested for leaf in leaves(part)]


SINGLE = cases(
    "tf_text_py.jsonl",
    # Splitting unknown characters off is an option that jittok does not have.
    lambda case: "wordpiece" in case["file"]
    and "expected_subwords" in case.get("parameters", {})
    and "split_unknown_characters" not in case["parameters"],
)


@needs_cases
@pytest.mark.parametrize("number", range(len(SINGLE)))
def test_wordpiece_cases(number):
    case = SINGLE[number]["parameters"]
    longest = case.get("max_chars_per_token", 100)
    vocabulary = {token: i for i, token in enumerate(case["vocab"]) if len(token.removeprefix("##")) <= longest}
    unknown = vocabulary.get("[UNK]", len(case["vocab"]))
    tables = build_wordpiece_tables(
        vocabulary, unknown=unknown, max_input=case.get("max_bytes_per_word", 100), max_input_in_bytes=True
    )
    words = leaves(case["tokens"])
    for encoder in WORD_ENCODERS:
        found = []
        for word, pieces in zip(words, ids_of(encoder, tables, words), strict=True):
            if case.get("token_out_type") == "dtypes.int64":
                found += [i for i, _ in pieces]
            elif pieces[0][0] == unknown:
                # no unknown token: the reference gives the word itself
                found.append(word if case.get("unknown_token", "") is None else "[UNK]")
            else:
                found += [case["vocab"][i] for i, _ in pieces]
        expected = case["expected_subwords"]
        if case.get("token_out_type") == "dtypes.int64":
            assert found == [i for row in expected for word in row for i in word]
        else:
            assert found == leaves(expected)


BERT = cases("tf_text_py.jsonl", lambda case: case["test"] == "FastBertTokenizerTest.test_fast_bert_tokenizer")


@needs_cases
@pytest.mark.parametrize("number", range(len(BERT)))
def test_fast_bert_cases(number):
    """Running text; what lower-casing and the like would change comes normalised."""
    normalizers = pytest.importorskip("tokenizers.normalizers")
    outputs = cases("tf_text_py.jsonl", lambda case: case["test"].endswith("test_fast_bert_tokenizer_outputs"))
    text = json.dumps(outputs[0])
    vocabulary, _ = json.JSONDecoder().raw_decode(text, text.index('"vocab": ') + len('"vocab": '))
    case = BERT[number]["parameters"]
    tables, _ = build(vocabulary, unknown=vocabulary.index("[UNK]"), max_input_in_bytes=True, **bert_classes())
    texts = leaves(case["text_inputs"])
    lower = normalizers.BertNormalizer(handle_chinese_chars=False, lowercase=case["lower_case_nfd_strip_accents"])
    found = text_ids(tables, [lower.normalize_str(text) for text in texts])
    rows = case["expected_token_ids"]
    while isinstance(rows[0][0], list):
        rows = [row for part in rows for row in part]
    assert [[i for i, _, _ in row] for row in found] == rows


# ----------------------------------------------------------------------------------------------- real vocabularies


def read_vocabulary(name):
    path = Path(DATA or "", "models", "wordpiece", name, "vocab.txt")
    if not DATA or not path.exists():
        pytest.skip(f"JITTOK_TEST_DATA has no wordpiece/{name}")
    return {token: i for i, token in enumerate(path.read_text(encoding="utf-8").split("\n")[:-1])}


@pytest.mark.skipif(JIT_DISABLED, reason="takes minutes as plain Python")
@pytest.mark.parametrize(
    "name", ["bert-base-uncased", "bert-base-chinese", "bert-base-multilingual-cased", "tf-text-test-wp-en"]
)
def test_real_vocabularies(name):
    """Every token, pairs of tokens, and words of tokens are cut as by tokenizers; so is real text."""
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = read_vocabulary(name)
    unknown = "[UNK]" if "[UNK]" in vocabulary else "<unk>"
    vocabulary.setdefault(unknown, len(vocabulary))
    generator = random.Random(name)
    tokens = [token for token in vocabulary if token]
    parts = [token.removeprefix("##") for token in tokens]
    words = generator.sample(tokens, min(len(tokens), 8000))
    words += ["".join(generator.choices(parts, k=generator.randint(2, 5))) for _ in range(8000)]
    words = [word for word in words if word]
    tables = build_wordpiece_tables(vocabulary, unknown=vocabulary[unknown], **bert_classes())
    check_wordpiece(tables, len(vocabulary), name)
    model = tokenizers.models.WordPiece(vocabulary, unk_token=unknown)
    expected = [[token.id for token in model.tokenize(word)] for word in words]
    for encoder in WORD_ENCODERS:
        assert [[i for i, _ in row] for row in ids_of(encoder, tables, words)] == expected
    reference = tokenizers.Tokenizer(model)
    reference.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    # Chinese characters are words of their own once the normalizer has put blanks around them.
    normalizer = tokenizers.normalizers.BertNormalizer(lowercase=False)
    for corpus in ("english", "multi"):
        size = 300_000 if corpus == "english" else 1_500_000
        text = Path(DATA, "corpora", f"{corpus}.txt").read_text(encoding="utf-8")[:size]
        documents = [normalizer.normalize_str(text) for text in text.split("\0")]
        found = text_ids(tables, documents)
        for document, rows, encoding in zip(
            documents, found, reference.encode_batch(documents, add_special_tokens=False), strict=True
        ):
            assert [i for i, _, _ in rows] == encoding.ids
            if corpus == "english" and document.isascii():
                assert [(first, first + n) for _, first, n in rows] == encoding.offsets

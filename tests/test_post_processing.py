import json
import random

import numpy as np
import pytest
from specs import model_path, post_processors, spec_of

import jittok
from jittok import errors, spec
from jittok.encodings import EncodedTexts
from jittok.post_processing import PostProcessor, check_truncation, merged_words, room_for, windows
from jittok.tokenizer import Tokenizer
from jittok.vocabulary import Vocabulary, build_vocabulary

TEXTS = [
    "",
    "a",
    "one two three four five six seven",
    "  a  <mask>  b \n",
    " x\ty  z ",
    "naïve 日本語 🙂 ok",
    "a\u3000b \u00a0c",
]
TEXTS += ["    indented", "   ", "<mask>", " <mask> <mask>\n", "\n\n\n x", "Hello   there,   world!  "]


class Case:
    """A reference tokenizer, the same without post-processing, and jittok's post-processor."""

    def __init__(self, name, block=None, **changes):
        from tokenizers import Tokenizer

        block = block or json.loads(model_path(name).read_text())
        block = {**block, **changes, "truncation": None, "padding": None}
        self.reference = Tokenizer.from_str(json.dumps(block))
        self.raw = Tokenizer.from_str(json.dumps({**block, "post_processor": None}))
        made = spec_of(block)
        self.vocabulary = Vocabulary(build_vocabulary(made), made.added_tokens)
        self.processor = PostProcessor(made, self.vocabulary)

    def encoded(self, texts, is_split=False):
        """Return EncodedTexts as the engine would make them."""
        rows = [self.raw.encode(text, is_pretokenized=is_split) for text in texts]
        flat = [(i, s, w) for row in rows for i, s, w in zip(row.ids, row.offsets, row.word_ids, strict=True)]
        tokens = [(i, token) for row in rows for i, token in zip(row.ids, row.tokens, strict=True)]
        shown = {number: token for number, (i, token) in enumerate(tokens) if token != self.raw.id_to_token(i)}
        return EncodedTexts(
            np.array([i for i, _, _ in flat], dtype=np.int32),
            np.cumsum([0, *(len(row.ids) for row in rows)]),
            np.array([s for _, s, _ in flat], dtype=np.int64).reshape(-1, 2),
            np.array([w for _, _, w in flat], dtype=np.int32),
            shown or None,
        )


def none_is_minus_one(values):
    return [-1 if value is None else value for value in values]


def check_same(got, expected, check_types=True):
    assert got.ids.tolist() == expected.ids
    assert got.tokens == expected.tokens
    assert [tuple(span) for span in got.spans.tolist()] == expected.offsets
    assert got.word_ids.tolist() == none_is_minus_one(expected.word_ids)
    assert got.sequence_ids.tolist() == none_is_minus_one(expected.sequence_ids)
    assert got.special_tokens_mask.tolist() == expected.special_tokens_mask
    assert got.attention_mask.tolist() == expected.attention_mask
    if check_types:
        assert got.type_ids.tolist() == expected.type_ids


@pytest.fixture(scope="module")
def roberta():
    return Case("bbpe/roberta-base/tokenizer.json")


@pytest.fixture(scope="module")
def whisper():
    return Case("bbpe/whisper-large-v3/tokenizer.json")


@pytest.fixture(scope="module")
def gpt2():
    return Case("bbpe/gpt2/tokenizer.json")


@pytest.fixture(scope="module")
def trimming():
    """gpt2 with every kind of trimming: the blank put in front, and two words' worth of options."""
    block = json.loads(model_path("bbpe/gpt2/tokenizer.json").read_text())
    block["added_tokens"].append(
        {"id": 50257, "content": "<mask>", "single_word": False, "lstrip": True, "rstrip": True,
         "normalized": False, "special": True}
    )  # fmt: skip
    cases = []
    for in_front in (False, True):
        for add_prefix_space in (False, True):
            cases.append(
                Case(
                    None,
                    block,
                    pre_tokenizer={"type": "ByteLevel", "add_prefix_space": in_front, "trim_offsets": True,
                                   "use_regex": True},
                    post_processor={"type": "ByteLevel", "add_prefix_space": add_prefix_space,
                                    "trim_offsets": True, "use_regex": True},
                )
            )  # fmt: skip
    return cases


@pytest.fixture
def cases(gpt2, roberta, whisper, trimming):
    return [gpt2, roberta, whisper, *trimming]


# ---------------------------------------------------------------------------------- against the reference


def test_single_texts_and_pairs(cases):
    for case in cases:
        for special in (True, False):
            for text in TEXTS:
                got = case.processor.process(case.encoded([text]), add_special_tokens=special, texts=(text,))
                check_same(got, case.reference.encode(text, add_special_tokens=special))
            for text, pair in zip(TEXTS, TEXTS[::-1], strict=True):
                got = case.processor.process(
                    case.encoded([text]), case.encoded([pair]), add_special_tokens=special, texts=(text, pair)
                )
                check_same(got, case.reference.encode(text, pair, add_special_tokens=special))


def test_words(cases):
    words = ["Hello", "", "wörld", " x ", "日本語", "<mask>", "a b"]
    for case in cases:
        each = case.encoded(words)
        merged = merged_words(each, np.array([0, len(words)]), True)
        got = case.processor.process(merged, texts=(tuple(words),))
        check_same(got, case.reference.encode(words, is_pretokenized=True))


def random_settings(rng):
    return {
        "max_length": rng.randrange(12),
        "stride": rng.choice([0, 0, 0, 1, 2, 5]),
        "truncation": rng.choice(["longest_first", "only_first", "only_second"]),
        "truncation_side": rng.choice(["left", "right"]),
    }


def flattened(encoding):
    return [encoding, *encoding.overflowing]


def test_windows(cases):
    refused = compared = 0
    for number, case in enumerate(cases):
        rng = random.Random(number)
        for _ in range(120):
            chosen = random_settings(rng)
            text = rng.choice(TEXTS)
            pair = rng.choice([None, rng.choice(TEXTS)])
            special = rng.random() < 0.7
            parts = [case.encoded([part]) for part in (text, pair) if part is not None]

            def ours(case=case, parts=parts, special=special, chosen=chosen, text=text, pair=pair):
                return case.processor.process(
                    *parts,
                    add_special_tokens=special,
                    truncation=check_truncation(**chosen),
                    texts=(text,) if pair is None else (text, pair),
                )

            reference = case.reference
            room = chosen["max_length"] - special * reference.num_special_tokens_to_add(pair is not None)
            # Where the reference wraps around, panics, or does not see yet that it cannot: refused.
            if room < 0 or (chosen["stride"] and chosen["stride"] >= room):
                with pytest.raises(errors.ArgumentError):
                    ours()
                refused += 1
                continue
            try:
                reference.enable_truncation(
                    chosen["max_length"], stride=chosen["stride"], strategy=chosen["truncation"],
                    direction=chosen["truncation_side"],
                )  # fmt: skip
                arguments = (text,) if pair is None else (text, pair)
                expected = reference.encode(*arguments, add_special_tokens=special)
            except BaseException as error:  # its panic is no Exception
                assert "Truncation error" in str(error) or "stride" in str(error)
                if "original max length" in str(error):
                    continue  # it looked at the special tokens of a single text, which this is not
                with pytest.raises(errors.ArgumentError):
                    ours()
                refused += 1
                continue
            finally:
                reference.no_truncation()
            got = ours()
            compared += 1
            assert len(got.overflowing) == len(expected.overflowing), (chosen, text, pair)
            # Its further windows forget the types that the template gives.
            check_same(got, expected, check_types=not expected.overflowing)
            for mine, its in zip(got.overflowing, expected.overflowing, strict=True):
                check_same(mine, its, check_types=False)
    assert compared > 200
    assert refused > 50


def test_types_of_further_windows_are_the_templates():
    block = json.loads(model_path("bbpe/gpt2/tokenizer.json").read_text())
    template = {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 4}}],
        "pair": [
            {"SpecialToken": {"id": "!", "type_id": 3}},
            {"Sequence": {"id": "A", "type_id": 4}},
            {"Sequence": {"id": "B", "type_id": 6}},
        ],
        "special_tokens": {"!": {"id": "!", "ids": [0, 0], "tokens": ["!", "!"]}},
    }
    case = Case(None, block, post_processor=template)
    parts = [case.encoded(["one two three four five"]), case.encoded(["a b c d e"])]
    got = case.processor.process(*parts, truncation=check_truncation(6))
    assert [row.type_ids.tolist() for row in flattened(got)] == [[3, 3, 4, 4, 6, 6]] * 3 + [[3, 3, 4, 4, 6]] + [
        [3, 3, 4, 6, 6]
    ] * 2 + [[3, 3, 4, 6]] + [[3, 3, 4, 4, 6, 6], [3, 3, 4, 4, 6]] or len(got.overflowing) == 8
    assert {row.type_ids.tolist()[0] for row in flattened(got)} == {3}
    assert all(set(row.type_ids[row.sequence_ids == 1].tolist()) == {6} for row in flattened(got))


def test_batches_are_the_single_texts(cases):
    for number, case in enumerate(cases):
        rng = random.Random(number)
        texts = TEXTS + rng.choices(TEXTS, k=10)
        pairs = rng.choices(TEXTS, k=len(texts))
        data = np.frombuffer("".join(texts).encode(), np.uint8)
        source = data, np.cumsum([0, *(len(text.encode()) for text in texts)])
        pair_data = np.frombuffer("".join(pairs).encode(), np.uint8)
        pair_source = pair_data, np.cumsum([0, *(len(text.encode()) for text in pairs)])
        first, second = case.encoded(texts), case.encoded(pairs)
        for other in (None, second):
            for special in (True, False):
                for overflowing in (False, True):
                    for side in ("left", "right"):
                        for length, stride in ((None, 0), (9, 0), (9, 2)):
                            chosen = check_truncation(length, stride, "longest_first", side)
                            try:
                                batch = case.processor.process_batch(
                                    first, other, add_special_tokens=special, truncation=chosen,
                                    overflowing=overflowing,
                                    texts=(source,) if other is None else (source, pair_source),
                                )  # fmt: skip
                            except errors.ArgumentError as error:
                                assert "stride" in str(error)
                                assert other is not None
                                continue
                            row = 0
                            for i, text in enumerate(texts):
                                single = case.processor.process(
                                    case.encoded([text]),
                                    None if other is None else case.encoded([pairs[i]]),
                                    add_special_tokens=special,
                                    truncation=chosen,
                                    texts=(text,) if other is None else (text, pairs[i]),
                                )
                                rows = flattened(single) if overflowing else [single]
                                for expected in rows:
                                    got = batch[row]
                                    assert got == expected
                                    assert got.spans.tolist() == expected.spans.tolist()
                                    assert got.tokens == expected.tokens
                                    assert (got.spans_in("bytes") == expected.spans_in("bytes")).all()
                                    for name in ("word_ids", "type_ids", "special_tokens_mask", "sequence_ids"):
                                        assert getattr(got, name).tolist() == getattr(expected, name).tolist()
                                    assert not overflowing or batch.document_ids[row] == i
                                    row += 1
                            assert row == len(batch)
                            assert overflowing or batch.document_ids is None


def test_batch_without_spans(roberta):
    first = roberta.encoded(TEXTS)._replace(spans=None, word_ids=None)
    for special in (True, False):
        batch = roberta.processor.process_batch(first, add_special_tokens=special)
        assert batch.spans is None
        assert batch.word_ids is None
        assert batch.to_lists() == [roberta.reference.encode(t, add_special_tokens=special).ids for t in TEXTS]
    batch = roberta.processor.process_batch(first, truncation=check_truncation(4))
    roberta.reference.enable_truncation(4)
    assert batch.to_lists() == [roberta.reference.encode(t).ids for t in TEXTS]
    roberta.reference.no_truncation()
    assert roberta.processor.process_batch(roberta.encoded([])).to_lists() == []


def test_number_of_special_tokens(cases):
    for case in cases:
        for pair in (False, True):
            expected = case.reference.num_special_tokens_to_add(pair)
            assert case.processor.num_special_tokens_to_add(pair) == expected


# ------------------------------------------------------------------------------------------ refused settings


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_length": -1}, "max_length=-1"),
        ({"max_length": True}, "max_length=True"),
        ({"max_length": 4, "stride": -1}, "stride=-1"),
        ({"stride": 2}, "needs max_length"),
        ({"truncation": "longest"}, "longest_first"),
        ({"truncation": None}, "longest_first"),
        ({"truncation_side": "up"}, "'up'"),
    ],
)
def test_bad_settings(arguments, words):
    with pytest.raises(errors.ArgumentError, match=words):
        check_truncation(**arguments)


@pytest.mark.parametrize(
    "arguments", [{"max_length": "4"}, {"max_length": 4.0}, {"max_length": 4, "stride": None}]
)
def test_settings_of_wrong_types(arguments):
    with pytest.raises(errors.ArgumentTypeError):
        check_truncation(**arguments)


def test_impossible_settings_are_refused_whatever_the_text(roberta):
    for text in ("", "one", "one two three four five six"):
        encoded = roberta.encoded([text])
        for length, stride in ((1, 0), (0, 0), (6, 4), (6, 9), (2, 1)):
            chosen = check_truncation(length, stride)
            with pytest.raises(errors.ArgumentError, match=f"max_length={length}|stride={stride}"):
                roberta.processor.process(encoded, truncation=chosen)
            with pytest.raises(errors.ArgumentError, match=f"max_length={length}|stride={stride}"):
                roberta.processor.process_batch(encoded, truncation=chosen)


def test_impossible_settings_are_refused_before_texts_are_looked_at():
    template = spec.Template(
        (spec.TemplatePiece(0, None, (0,), ("a",)), spec.TemplatePiece(0, "A")),
        (spec.TemplatePiece(0, None, (0, 0), ("a", "a")), spec.TemplatePiece(0, "A"), spec.TemplatePiece(0, "B")),
    )
    tok = Tokenizer(spec.TokenizerSpec(spec.BPEModel({"a": 0}, ()), post_processors=(template,)))
    bad = b"\xff"
    with pytest.raises(errors.ArgumentError, match="max_length=0"):
        tok.encode(bad, max_length=0)
    with pytest.raises(errors.ArgumentError, match="stride=3"):
        tok.encode_batch([bad], max_length=4, stride=3)
    with pytest.raises(errors.TextError):
        tok.encode_batch([bad], max_length=4, stride=2)
    with pytest.raises(errors.ArgumentError, match="stride=2"):
        tok.encode_batch([bad], [bad], max_length=4, stride=2)
    with pytest.raises(errors.TextError):
        tok.encode(bad, bad, max_length=4, stride=2, add_special_tokens=False)


def test_a_batch_names_the_text_that_cannot_be_cut(gpt2):
    first, second = gpt2.encoded(["a", "a b c d"]), gpt2.encoded(["x", "one two three four"])
    chosen = check_truncation(3, 0, "only_first")
    with pytest.raises(errors.ArgumentError, match="text 1: truncation='only_first'"):
        gpt2.processor.process_batch(first, second, truncation=chosen)
    with pytest.raises(errors.ArgumentError, match="2 texts, but 1"):
        gpt2.processor.process_batch(first, gpt2.encoded(["a"]))


def test_two_templates_are_refused():
    template = spec.Template((spec.TemplatePiece(0, "A"),), None)
    made = spec.TokenizerSpec(spec.BPEModel({"a": 0}, ()), post_processors=(template, template))
    with pytest.raises(errors.UnsupportedError, match="template"):
        PostProcessor(made, Vocabulary(build_vocabulary(made)))


# ------------------------------------------------------------------------------------------------ small parts


def test_windows_cover_everything():
    for length in range(12):
        for size in range(1, 13):
            for stride in range(size):
                for side in ("left", "right"):
                    made = windows(length, size, stride, side)
                    covered = sorted({i for begin, end in made for i in range(begin, end)})
                    assert covered == list(range(length))
                    assert all(end - begin <= size for begin, end in made)
                    following = zip(made, made[1:], strict=False)
                    assert all(len(set(range(*a)) & set(range(*b))) == stride for a, b in following)


def test_room_is_used_up():
    for first in range(10):
        for second in range(10):
            for room in range(1, first + second):
                a, b = room_for(first, second, room, "longest_first")
                assert a + b == room
                assert 0 <= a <= first
                assert 0 <= b <= second


def test_template_pieces_with_several_ids():
    block = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "x", "type_id": 2}}, {"Sequence": {"id": "A", "type_id": 1}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"x": {"id": "x", "ids": [7, 8], "tokens": ["a", "b"]}},
    }
    made = spec.TokenizerSpec(
        spec.BPEModel({str(i): i for i in range(10)}, ()), post_processors=post_processors(block)
    )
    processor = PostProcessor(made, Vocabulary(build_vocabulary(made)))
    got = processor.process(EncodedTexts(np.array([3], np.int32), np.array([0, 1])))
    assert got == [7, 8, 3]
    assert got.type_ids.tolist() == [2, 2, 1]
    assert got.special_tokens_mask.tolist() == [1, 1, 0]
    assert processor.num_special_tokens_to_add() == 2
    assert processor.num_special_tokens_to_add(pair=True) == 0


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(
    ("single", "pair"),
    [("AA", "AB"), ("A.A", "ABA"), (".A.A", "ABB"), ("A", "BA"), ("A", "A.B.A.B"), (".", ".A"), ("A", "B"), (".A", ".")],
)
def test_windows_of_templates_with_texts_more_than_once_or_never(single, pair, wrapped):
    """Each window of a sequence meets those of all others, those of the same text too, in the template's order."""
    tokenizers = pytest.importorskip("tokenizers")

    def pieces(shape):
        special = {"SpecialToken": {"id": "<s>", "type_id": 0}}
        return [special if kind == "." else {"Sequence": {"id": kind, "type_id": 0}} for kind in shape]

    special = {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}}
    block = {"type": "TemplateProcessing", "single": pieces(single), "pair": pieces(pair), "special_tokens": special}
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "\u0120": 2, "<s>": 3}, "merges": []}
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False}
    if wrapped:
        block = {"type": "Sequence", "processors": [byte_level, block]}
    content = json.dumps({"version": "1.0", "model": model, "pre_tokenizer": byte_level, "post_processor": block})
    ours, reference = jittok.load_bytes(content.encode()), tokenizers.Tokenizer.from_str(content)
    first, second = ["ab  a bb", "a", "", "aab b"], [" bba", "b b", "a", ""]
    for seconds in (None, second):
        for special in (False, True):
            for length, stride, side in ((5, 0, "right"), (7, 1, "left"), (10, 2, "right")):
                reference.enable_truncation(length, stride=stride, direction=side)
                options = {"max_length": length, "stride": stride, "truncation_side": side, "add_special_tokens": special}
                rows = []
                for number, text in enumerate(first):
                    other = None if seconds is None else seconds[number]
                    expected = reference.encode(text, other, add_special_tokens=special)
                    got = ours.encode(text, other, **options)
                    mine, theirs = [got, *got.overflowing], [expected, *expected.overflowing]
                    assert [one.ids.tolist() for one in mine] == [one.ids for one in theirs]
                    assert [one.tokens for one in mine] == [one.tokens for one in theirs]
                    assert [[tuple(span) for span in one.spans.tolist()] for one in mine] == [one.offsets for one in theirs]
                    rows += mine
                batch = ours.encode_batch(first, seconds, spans=True, overflowing=True, **options)
                assert batch.to_lists() == [row.ids.tolist() for row in rows]
                assert [row.spans.tolist() for row in batch] == [row.spans.tolist() for row in rows]
                assert [row.tokens for row in batch] == [row.tokens for row in rows]
                kept = ours.encode_batch(first, seconds, **options)
                begins = [documents.index(number) for documents in [batch.document_ids.tolist()] for number in range(4)]
                assert kept.to_lists() == [rows[begin].ids.tolist() for begin in begins]


def test_a_template_that_combines_too_many_windows_is_an_error():
    pieces = [{"Sequence": {"id": "A", "type_id": 0}}] * 2
    block = {"type": "TemplateProcessing", "single": pieces, "pair": [*pieces, {"Sequence": {"id": "B", "type_id": 0}}]}
    block["special_tokens"] = {}
    vocab = {"a": 0, "b": 1}
    document = {"version": "1.0", "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "a"}, "post_processor": block}
    document["pre_tokenizer"] = {"type": "WhitespaceSplit"}
    tokenizer = jittok.load_bytes(json.dumps(document).encode())
    text = "a b " * 600
    with pytest.raises(errors.ArgumentError, match="combined with each other, 600 times 600"):
        tokenizer.encode(text, max_length=2)
    with pytest.raises(errors.ArgumentError, match="text 1: windows of several"):
        tokenizer.encode_batch(["a", text], max_length=2, overflowing=True)
    assert tokenizer.encode_batch(["a", text], max_length=2).to_lists() == [[0, 0], [0, 1, 0, 1]]
    assert len(tokenizer.encode_batch([text], max_length=300, overflowing=True)) == 16


def framed_by(block):
    vocab = {"a": 0, "b": 1, "<s>": 2, "</s>": 3}
    model = {"type": "WordLevel", "vocab": vocab, "unk_token": "a"}
    document = {"version": "1.0", "model": model, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": block}
    return json.dumps(document)


def template(single, pair):
    """A template of letters and tokens, as in ``"<s> A </s>:1"``."""

    def piece(text):
        name, _, type_id = text.partition(":")
        kind = "Sequence" if name in ("A", "B") else "SpecialToken"
        return {kind: {"id": name, "type_id": int(type_id or 0)}}

    special = {name: {"id": name, "ids": [number], "tokens": [name]} for name, number in (("<s>", 2), ("</s>", 3))}
    return {
        "type": "TemplateProcessing",
        "single": [piece(text) for text in single.split()],
        "pair": [piece(text) for text in pair.split()],
        "special_tokens": special,
    }


USUAL = template("<s> A", "<s> A </s> B:1")
BERT = {"type": "BertProcessing", "sep": ["</s>", 3], "cls": ["<s>", 2]}
ROBERTA = {**BERT, "type": "RobertaProcessing", "trim_offsets": True, "add_prefix_space": True}


@pytest.mark.parametrize(
    "steps",
    [
        [template("A:1", "A:1 B:2"), USUAL],
        [BERT, USUAL],
        [ROBERTA, USUAL],
        [USUAL, BERT],
        [USUAL, ROBERTA],
        [BERT, BERT],
        [ROBERTA, BERT],
        [template("A", "B A"), template("A", "A:2 B:3"), USUAL],
        [template("", "A")],
        [template("A", "")],
        [template("", ""), BERT],
        [template("A A", "A B A")],
    ],
)
def test_several_post_processors_that_add_tokens(steps):
    tokenizers = pytest.importorskip("tokenizers")
    content = framed_by({"type": "Sequence", "processors": steps})
    reference, ours = tokenizers.Tokenizer.from_str(content), jittok.load_bytes(content.encode())
    rows = []
    for special in (True, False):
        for pair in (None, "a b a"):
            expected = reference.encode("b b", pair, add_special_tokens=special)
            got = ours.encode("b b", pair, add_special_tokens=special)
            assert (got.ids.tolist(), got.type_ids.tolist()) == (expected.ids, expected.type_ids)
            assert [tuple(span) for span in got.spans.tolist()] == expected.offsets
            batch = ours.encode_batch(["b b"], None if pair is None else [pair], add_special_tokens=special, spans=True)
            assert batch.to_lists() == [expected.ids] and batch[0].type_ids.tolist() == expected.type_ids
            rows.append(expected.ids)
    assert len(set(map(tuple, rows))) > 1 or not any(rows)


def test_a_template_that_gets_more_than_two_parts(tmp_path):
    with pytest.raises(errors.UnsupportedError, match="a template takes one part or two"):
        jittok.load_bytes(framed_by({"type": "Sequence", "processors": [template("<s> A </s>", "A B"), USUAL]}).encode())
    # In the reference, a pair is a panic here.
    steps = [template("A", "<s> A B"), USUAL]
    tok = jittok.load_bytes(framed_by({"type": "Sequence", "processors": steps}).encode())
    assert tok.encode("b").ids.tolist() == [2, 1]
    tok.save(tmp_path / "x.jittok")
    for one in (tok, jittok.load(tmp_path / "x.jittok")):
        with pytest.raises(errors.ArgumentError, match="cannot take pairs"):
            one.encode("a", "b")
        with pytest.raises(errors.ArgumentError, match="cannot take pairs"):
            one.encode_batch(["a"], ["b"])
    with pytest.raises(errors.UnsupportedError, match="pairs"):
        tok.save(tmp_path / "tokenizer.json")

"""Tokenizers written in another format give the same ids in the library that the format belongs to, or are refused."""

import json
import random
import warnings
from pathlib import Path

import pytest
import sentencepiece
import tiktoken
import tiktoken.load
import tokenizers
from specs import DATA, model_path
from tokenizers import models, normalizers, pre_tokenizers

import jittok
from jittok.build.merge_tables import byte_alphabet
from jittok.build.regex_automaton import compile_split
from jittok.build.regex_translation import matches_everything, same_matches, translate
from jittok.cli import main
from jittok.errors import ConversionError, ConversionWarning, FormatError, RegexError, UnsupportedError
from jittok.formats import tiktoken_file
from jittok.formats.merges_txt import _CLIP_PATTERN, _QWEN2_PATTERN

TEXTS = [
    "", " ", "  ", "\n", "a", " a", "a ", "  a  b  ", "Hello, world! It's 2024; don't STOP.", "\tx\r\n\r\n  y\n ",
    "naïve Ünïcödé",
    "東京は日本の首都です。", "مرحبا بالعالم", "हिन्दी", "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 ok",
    "a\u0301e\u0301 \ufb01",
    "x" * 50, " " * 20 + "x", "a" + " " * 33 + "b" + " " * 7, "1234567890 12 1", "def f(x):\n    return x  # no\n\n\n",
    "'S 'll 'LL \u017f's",
    "\u2581a \u2581", "\u00a0x\u3000y\u2028z", "<0x41> <unk>", "[UNK] [CLS]", "e\u0323\u0302 \u1100\u1161\u11a8",
]  # fmt: skip


def corpus_texts(count=40):
    if DATA is None:
        return []
    found = []
    for corpus in ("english", "multi", "code"):
        path = Path(DATA) / "corpora" / f"{corpus}.txt"
        if path.exists():
            with path.open(encoding="utf-8", errors="replace") as file:
                found += [line.rstrip("\n") for line in file.read(200_000).split("\n")[:: 2000 // count]][:count]
    return found


def reference_ids(path, written, tok, texts):
    """What the format's own library makes of texts."""
    if written == "tokenizer.json":
        theirs = tokenizers.Tokenizer.from_file(str(path))
        return [encoding.ids for encoding in theirs.encode_batch(texts, add_special_tokens=True)]
    if written == "sentencepiece":
        return sentencepiece.SentencePieceProcessor(model_file=str(path)).encode(texts)
    if written == "tiktoken":
        from jittok.formats.conversion import convert

        spec, _ = convert(tok.spec, "tiktoken", template=False)
        special = {token.content: token.id for token in spec.added_tokens}
        ranks = tiktoken.load.load_tiktoken_bpe(str(path))
        theirs = tiktoken.Encoding("test", pat_str=spec.pre_tokenizers[0].pattern, mergeable_ranks=ranks,
            special_tokens=special)
        again = jittok.load(path, pattern=spec.pre_tokenizers[0].pattern, special_tokens=special)
        assert [again.encode(text, special="text").ids.tolist() for text in texts] == [
            theirs.encode_ordinary(text) for text in texts
        ]
        return [theirs.encode(text, allowed_special="all") for text in texts]
    config = json.loads((path / "tokenizer_config.json").read_text())
    if written == "vocab.txt":
        options = {
            "lowercase": config["do_lower_case"],
            "strip_accents": config["strip_accents"],
            "handle_chinese_chars": config["tokenize_chinese_chars"],
        }
        if {"[CLS]", "[SEP]"} <= set((path / "vocab.txt").read_text(encoding="utf-8").split("\n")):
            theirs = tokenizers.BertWordPieceTokenizer(str(path / "vocab.txt"), **options)
        else:  # that class wants both
            model = models.WordPiece.from_file(str(path / "vocab.txt"), unk_token=tok.spec.model.unk_token)
            theirs = tokenizers.Tokenizer(model)
            theirs.normalizer = normalizers.BertNormalizer(clean_text=True, **options)
            theirs.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        return [theirs.encode(text).ids for text in texts]
    # As transformers makes a tokenizer of each of these classes.
    name = config["tokenizer_class"]
    clip = {"end_of_word_suffix": "</w>", "unk_token": "<|endoftext|>"} if name == "CLIPTokenizer" else {}
    theirs = tokenizers.Tokenizer(models.BPE.from_file(str(path / "vocab.json"), str(path / "merges.txt"), **clip))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=config["add_prefix_space"])
    if name in ("Qwen2Tokenizer", "CLIPTokenizer"):
        regex = tokenizers.Regex(_CLIP_PATTERN if clip else _QWEN2_PATTERN)
        split = pre_tokenizers.Split(regex, "removed" if clip else "isolated", invert=bool(clip))
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=bool(clip))
        theirs.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
        steps = [normalizers.NFC()]
        if clip:
            steps += [normalizers.Replace(tokenizers.Regex(r"\s+"), " "), normalizers.Lowercase()]
        theirs.normalizer = normalizers.Sequence(steps)
    for token_id, token in config["added_tokens_decoder"].items():
        special = token.pop("special")
        theirs.add_tokens([tokenizers.AddedToken(**token, special=special)])
        assert theirs.token_to_id(token["content"]) == int(token_id)
    return [theirs.encode(text).ids for text in texts]


def check(tok, path, written, texts, **options):
    """Save, and compare the ids of the source, of the format's library, and of jittok's reader."""
    tok.save(path, written, **options)
    around = options.get("template", True) and written not in ("merges", "tiktoken", "sentencepiece")
    expected = [tok.encode(text, special="parse", add_special_tokens=around).ids.tolist() for text in texts]
    found = reference_ids(path, written, tok, texts)
    model = tok.spec.model
    for text, ids, wanted in zip(texts, found, expected, strict=True):
        if ids != wanted and not options.get("exact") and getattr(model, "scores", None):
            # Where sums of float32 and of float64 differ: as good, but for rounding.
            difference = sum(model.scores[i] for i in ids) - sum(model.scores[i] for i in wanted)
            assert abs(difference) < 1e-3 and not around, (text, ids, wanted)
            continue
        assert ids == wanted, text
    if written != "tiktoken":
        again = jittok.load(path)
        assert [again.encode(text, special="parse", add_special_tokens=around).ids.tolist() for text in texts] == found


# -------------------------------------------------------------------------------------------------- small models

LINES = [
    "the cat sat on the mat", "the dog and the cat don't run", "a naïve café in the old town", "1 22 333 4444 numbers",
    "newer lower widest", "東京 東京都 京都", "good goods goodness", "running runner runs", "  two  blanks ",
    "tabs\tand more",
] * 3  # fmt: skip


def words(rng, count=60):
    alphabet = "abcdefghij thecat \u2581ïé東京1 "
    return ["".join(rng.choice(alphabet) for _ in range(rng.randint(0, 25))) for _ in range(count)]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("pre_tokenizer", ["gpt2", "cl100k"])
def test_byte_level_merges_and_ranks(tmp_path, seed, pre_tokenizer):
    rng = random.Random(seed)
    tok = jittok.train_bpe(
        LINES + words(rng), vocab_size=330 + 20 * seed, pre_tokenizer=pre_tokenizer,
        special_tokens=["<|end|>"] * (seed == 1), initial_alphabet=byte_alphabet(), threads=1,
    )  # fmt: skip
    texts = [*TEXTS, *words(rng, 200), *LINES[:10], *(["a<|end|>b <|end|>"] if seed == 1 else [])]
    check(tok, tmp_path / "x.json", "tokenizer.json", texts)
    check(tok, tmp_path / "x.tiktoken", "tiktoken", texts)
    ranks = jittok.load(
        tmp_path / "x.tiktoken", pattern=pre_tokenizer, special_tokens={"<|end|>": 0} if seed == 1 else {}
    )
    texts = [text for text in texts if not text.endswith("  ")]  # its cl100k cuts blanks at the end in another way
    check(ranks, tmp_path / "y.json", "tokenizer.json", texts)
    if pre_tokenizer == "gpt2":
        check(tok, tmp_path / "merges", "merges", texts)
        check(ranks, tmp_path / "merges2", "merges", texts)


def test_ranks_with_tokens_that_no_merge_makes(tmp_path):
    ranks = {bytes((value,)): value for value in range(256)}
    for token in (b"ab", b"abc", b"cde", b"xyz", b"zz", b"zzz", b"zzzz", b"bc", b"abcd", b" ab", b"b a"):
        ranks[token] = len(ranks) + 3  # with gaps
    lines = b"".join(tiktoken_file.binascii.b2a_base64(token, newline=False) + b" %d\n" % rank for token,
        rank in ranks.items())
    (tmp_path / "x.tiktoken").write_bytes(lines)
    special = {"<s>": 1000, "<s><t>": 1001}
    tok = jittok.load(tmp_path / "x.tiktoken", pattern=r"\p{L}+| ?\P{L}", special_tokens=special)
    rng = random.Random(3)
    texts = ["".join(rng.choice("abcdexyz zz") for _ in range(rng.randint(0, 12))) for _ in range(500)]
    texts += ["a<s>b", "cde", "xyz", "cdex", "zzzzz", "<s><t>x"]
    check(tok, tmp_path / "x.json", "tokenizer.json", texts)
    document = json.loads((tmp_path / "x.json").read_text())
    assert document["model"]["ignore_merges"] and document["model"]["vocab"]["<s>"] == 1000
    check(jittok.load(tmp_path / "x.json"), tmp_path / "y.tiktoken", "tiktoken", texts)
    assert (tmp_path / "y.tiktoken").read_bytes() == lines
    two = jittok.load(tmp_path / "x.tiktoken", pattern=r"\p{L}+| ?\P{L}", special_tokens={"<s>": 1000, "<t>": 1000})
    with pytest.raises(UnsupportedError, match="same id, 1000"):
        two.save(tmp_path / "z.json")
    gaps = jittok.load(tmp_path / "x.tiktoken", pattern=r"\p{L}+", special_tokens={})
    with pytest.raises(UnsupportedError, match="leaves out some text"):
        gaps.save(tmp_path / "z.json")


@pytest.mark.parametrize("options", [
    {}, {"byte_fallback": True}, {"remove_extra_whitespaces": False}, {"add_dummy_prefix": False},
    {"add_dummy_prefix": False, "remove_extra_whitespaces": False},
    {"split_by_whitespace": False, "remove_extra_whitespaces": False, "byte_fallback": True},
])  # fmt: skip
def test_sentencepiece_merges(tmp_path, options):
    size = 120 + 256 * ("byte_fallback" in options)
    tok = jittok.train_bpe(
        LINES, vocab_size=size, rules="sentencepiece", normalization_rule_name="identity", threads=1, **options
    )
    rng = random.Random(5)
    texts = [*TEXTS, *LINES, *words(rng, 200)]
    texts.remove("<0x41> <unk>")  # in which tokenizers finds the unknown token
    texts += ["\u2581", " \u2581 ", "a\u2581\u2581b", "\u2581 a", " \u2581a \u2581\u2581 "]
    if options.get("remove_extra_whitespaces", True) and not options.get("add_dummy_prefix", True):
        texts = [text for text in texts if text[:1] == " " or not text[:1].isspace()]
    exact = {"exact": options != {"add_dummy_prefix": False}}
    with warnings.catch_warnings():
        warnings.simplefilter("error" if exact["exact"] else "ignore", ConversionWarning)
        check(tok, tmp_path / "x.json", "tokenizer.json", texts, **exact)
        again = jittok.load(tmp_path / "x.json")
        check(again, tmp_path / "y.model", "sentencepiece", texts, **exact)
    assert sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "y.model")).encode(texts) == [
        tok.encode(text).ids.tolist() for text in texts
    ]


def test_runs_of_one_score(tmp_path):
    """Blanks as in the models of Llama and Mistral: all runs have the same score, and the leftmost is merged first."""
    from jittok.formats.sentencepiece_model import make_spec
    from jittok.spec import PieceType, SentencePieceNormalizer
    from jittok.tokenizer import Tokenizer

    mark = "\u2581"
    pieces = [("<unk>", 0.0, PieceType.UNKNOWN), *((mark * n, -1e9, PieceType.NORMAL) for n in (2, 4, 8, 3, 7, 5, 6))]
    pieces += [(mark + "a", -1.0, PieceType.NORMAL), (mark, -1e9, PieceType.NORMAL), ("a", -1e9, PieceType.NORMAL)]
    step = SentencePieceNormalizer(remove_extra_whitespaces=False)
    texts = [" " * n + "a" * k + " " * m for n in range(40) for k in (0, 1, 2) for m in (0, 1, 9)]
    check(Tokenizer(make_spec("bpe", pieces, normalizer=step)), tmp_path / "x.json", "tokenizer.json", texts, exact=True)
    check(jittok.load(tmp_path / "x.json"), tmp_path / "x.model", "sentencepiece", texts, exact=True)
    tied = [*pieces, ("b", 0.0, PieceType.NORMAL), ("ab", -2.0, PieceType.NORMAL), ("ba", -2.0, PieceType.NORMAL)]
    with pytest.raises(UnsupportedError, match="the same score"):
        Tokenizer(make_spec("bpe", tied, normalizer=step)).save(tmp_path / "y.json")


def test_unigram_models_are_noted(tmp_path):
    tok = jittok.train_unigram(LINES, vocab_size=60, threads=1, hard_vocab_limit=False)
    with pytest.raises(ConversionError, match="float64") as caught:
        tok.save(tmp_path / "x.json", exact=True)
    assert "grapheme" in str(caught.value) and not (tmp_path / "x.json").exists()
    with pytest.warns(ConversionWarning, match="float64"):
        tok.save(tmp_path / "x.json")
    texts = [text for text in (*TEXTS, *LINES) if "<unk>" not in text]
    with pytest.warns(ConversionWarning):
        check(tok, tmp_path / "x.json", "tokenizer.json", texts)
    again = jittok.load(tmp_path / "x.json")
    with pytest.raises(ConversionError):
        again.save(tmp_path / "x.model", exact=True)
    with pytest.warns(ConversionWarning):
        check(again, tmp_path / "x.model", "sentencepiece", texts)
    assert jittok.load(tmp_path / "x.model").spec.model.scores == tok.spec.model.scores


@pytest.mark.parametrize("steps", [
    {}, {"lowercase": False}, {"strip_accents": False}, {"lowercase": False, "strip_accents": True,
    "handle_chinese_chars": False},
])  # fmt: skip
def test_word_piece(tmp_path, steps):
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "the", "cat", "京", "東", "é", "e"]
    vocab += ["##e", "T", "##he"]
    (tmp_path / "vocab.txt").write_text("\n".join(vocab) + "\n", encoding="utf-8")
    plain = jittok.load(tmp_path / "vocab.txt")
    plain.save(tmp_path / "x.json")
    document = json.loads((tmp_path / "x.json").read_text())
    document["normalizer"].update(steps)
    (tmp_path / "x.json").write_text(json.dumps(document))
    tok = jittok.load(tmp_path / "x.json")
    texts = [*TEXTS, "The cat", "the 東京", "é É ab [MASK] [SEP] abab"]
    check(tok, tmp_path / "bert", "vocab.txt", texts, exact=True)
    check(jittok.load(tmp_path / "bert"), tmp_path / "again.json", "tokenizer.json", texts, exact=True)
    if steps:
        with pytest.raises(ConversionError, match="the normalizer"):
            tok.save(tmp_path / "alone.txt", exact=True)
        with pytest.warns(ConversionWarning, match="the normalizer"):
            tok.save(tmp_path / "alone.txt")
    else:
        tok.save(tmp_path / "alone.txt", exact=True)
    assert (tmp_path / "alone.txt").read_bytes() == (tmp_path / "vocab.txt").read_bytes()


def test_word_piece_without_a_template(tmp_path):
    """Every reader of a vocab.txt puts [CLS] and [SEP] around texts, whatever stands beside the file."""
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b"]
    (tmp_path / "vocab.txt").write_text("\n".join(vocab) + "\n", encoding="utf-8")
    assert tokenizers.BertWordPieceTokenizer(str(tmp_path / "vocab.txt")).encode("ab").ids == [2, 5, 6, 3]
    jittok.load(tmp_path / "vocab.txt").save(tmp_path / "x.json", template=False)
    tok = jittok.load(tmp_path / "x.json")
    assert tok.encode("ab").ids.tolist() == [5, 6]
    with pytest.raises(UnsupportedError, match=r"readers put \[CLS\] and \[SEP\] around texts"):
        tok.save(tmp_path / "bert", "vocab.txt")
    with pytest.raises(ConversionError, match=r"readers of a vocab.txt put \[CLS\] and \[SEP\] around texts"):
        tok.save(tmp_path / "alone.txt", exact=True)
    with pytest.warns(ConversionWarning, match=r"put \[CLS\] and \[SEP\] around texts, and this tokenizer puts nothing"):
        tok.save(tmp_path / "alone.txt")
    assert main(["convert", str(tmp_path / "x.json"), str(tmp_path / "other.txt")]) == 1
    assert not (tmp_path / "bert").exists() and not (tmp_path / "other.txt").exists()


@pytest.mark.parametrize("one", ["[CLS]", "[SEP]"])
def test_word_piece_with_one_of_the_tokens_around_texts(one, tmp_path):
    """Readers of a vocab.txt ask for both or none, unless the file beside it names others."""
    vocab = {token: number for number, token in enumerate(["[UNK]", one, "a", "##b"])}
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "vocab": vocab}
    model["max_input_chars_per_word"] = 100
    (tmp_path / "x.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model}))
    tok = jittok.load(tmp_path / "x.json")
    with pytest.raises(ConversionError, match="readers refuse this vocab.txt alone"):
        tok.save(tmp_path / "alone.txt", exact=True)
    with pytest.warns(ConversionWarning, match=r"alone: '\[...\]' is there, but not [^;]*; save as tokenizer.json, or"):
        tok.save(tmp_path / "alone.txt")
    with pytest.raises(FormatError, match="is there, but not"):
        jittok.load(tmp_path / "alone.txt")
    with pytest.raises(TypeError, match="not found in the vocabulary"):
        tokenizers.BertWordPieceTokenizer(str(tmp_path / "alone.txt"))


# ----------------------------------------------------------------------------------------------------- refusals


def block(**parts):
    vocab = {letter: i for i, letter in enumerate(byte_alphabet())}
    for token in ("ab", "bc", "abc"):
        vocab[token] = len(vocab)
    model = {"type": "BPE", "vocab": vocab, "merges": [["a", "b"], ["b", "c"], ["ab", "c"]]}
    model.update(parts.pop("model", {}))
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "pre_tokenizer": byte_level, "decoder": byte_level, "model": model, **parts}


_ADDED = {"id": 259, "content": "<x>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
    "special": True}
_TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<x>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<x>": {"id": "<x>", "ids": [259], "tokens": ["<x>"]}},
}
_SPLIT = {"type": "Split", "pattern": {"Regex": r"\s+"}, "behavior": "Removed", "invert": False}
_CHARACTERS = {"a": 0, "b": 1, "ab": 2, "<unk>": 3}


@pytest.mark.parametrize(
    ("document", "written", "reason"),
    [
        (block(normalizer={"type": "NFC"}), "tiktoken", "no normalizer such as UnicodeForm"),
        (block(pre_tokenizer={**block()["pre_tokenizer"], "add_prefix_space": True}), "tiktoken", "no blank in front"),
        (block(pre_tokenizer={"type": "WhitespaceSplit"}), "tiktoken", "ByteLevel as the last"),
        (block(pre_tokenizer={"type": "Sequence", "pretokenizers": [_SPLIT, {**block()["decoder"], "use_regex": False}]}),
         "tiktoken", "only cuts out the matches"),
        (block(added_tokens=[{**_ADDED, "lstrip": True}]), "tiktoken", "lstrip"),
        (block(added_tokens=[_ADDED], post_processor=_TEMPLATE), "tiktoken", "template"),
        (block(model={"merges": [["a", "b"], ["ab", "c"], ["b", "c"]]}), "tiktoken", "comes before"),
        (block(model={"merges": [["a", "b"], ["b", "c"]]}), "tiktoken", "they would make b'abc'"),
        (block(model={"merges": [["a", "b"], ["b", "c"], ["a", "bc"]]}), "tiktoken", "they would make b'abc'"),
        (block(model={"vocab": {**block()["model"]["vocab"], "\u4e2d": 259}}), "tiktoken", "no letter of the byte alphabet"),
        (block(model={"vocab": {**block()["model"]["vocab"], "xyz": 259}}), "tiktoken", "b'xyz', which no merge makes"),
        (block(model={"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}), "tiktoken", "a token for each byte"),
        (block(model={"end_of_word_suffix": "</w>"}), "tiktoken", "suffix"),
        (block(model={"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}), "tiktoken", "WordLevel"),
        (block(), "sentencepiece", "these steps: ByteLevel"),
        (block(added_tokens=[_ADDED], post_processor=_TEMPLATE), "sentencepiece", "template"),
        (block(pre_tokenizer=None, model={"vocab": {"a": 0, "b": 7, "ab": 2}, "merges": [["a", "b"]]}), "sentencepiece",
        "gaps"),
        (block(pre_tokenizer=None, model={"vocab": _CHARACTERS, "merges": [["a", "b"]], "unk_token": "<unk>"}),
        "sentencepiece",
         "these steps: none"),
        (block(pre_tokenizer=None, normalizer={"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
               model={"vocab": _CHARACTERS, "merges": [["a", "b"]], "unk_token": "<unk>"}), "sentencepiece", "fuse_unk"),
        (block(pre_tokenizer=None, normalizer={"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
               model={"vocab": {**_CHARACTERS, "bb": 4, "aa": 5, "abb": 6, "aab": 7}, "unk_token": "<unk>", "fuse_unk": True,
                      "merges": [["b", "b"], ["a", "bb"], ["a", "b"]]}), "sentencepiece", "these merges"),
        (block(model={"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}), "sentencepiece", "WordLevel"),
        (block(), "vocab.txt", "only a WordPiece"),
        (block(normalizer={"type": "Lowercase"}), "merges", "the normalizer"),
        (block(pre_tokenizer={"type": "Whitespace"}), "merges", "the pre-tokenizer"),
        (block(decoder={"type": "Fuse"}), "merges", "the decoder"),
        (block(model={"vocab": {**block()["model"]["vocab"], "xyz": 259}, "ignore_merges": True}), "merges",
        "model.ignore_merges"),
        (block(pre_tokenizer=None, model={"vocab": {"a": 0, " ": 1, "a ": 2}, "merges": [["a", " "]]}), "merges",
        "the merge"),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_refused_with_the_reason(tmp_path, document, written, reason):
    document = {"added_tokens": [], "normalizer": None, "post_processor": None, "truncation": None, "padding": None,
        **document}
    (tmp_path / "in.json").write_text(json.dumps(document))
    tok = jittok.load(tmp_path / "in.json")
    with pytest.raises(UnsupportedError, match=reason):
        tok.save(tmp_path / "out", written, exact=True)
    assert [file.name for file in tmp_path.iterdir()] == ["in.json"]


def test_models_of_other_libraries_are_refused(tmp_path):
    from dataclasses import replace

    from jittok.tokenizer import Tokenizer

    tok = jittok.load_default()
    other = Tokenizer(replace(tok.spec, reference="llama.cpp"))
    for written in ("tokenizer.json", "tiktoken", "merges", "sentencepiece", "vocab.txt"):
        with pytest.raises(UnsupportedError, match="llama.cpp"):
            other.save(tmp_path / "x", written)
    other.save(tmp_path / "x.jittok")
    assert jittok.load(tmp_path / "x.jittok").spec.reference == "llama.cpp"


def test_a_template_may_be_left_out(tmp_path):
    (tmp_path / "in.json").write_text(json.dumps(block(added_tokens=[_ADDED], post_processor=_TEMPLATE)))
    tok = jittok.load(tmp_path / "in.json")
    check(tok, tmp_path / "x.tiktoken", "tiktoken", ["abc <x>abc", "bcab"], template=False)
    check(tok, tmp_path / "x.json", "tokenizer.json", ["abc <x>abc", "bcab"], template=False)
    tok.save(tmp_path / "x.jittok", template=False)
    assert jittok.load(tmp_path / "x.jittok").encode("ab").ids.tolist() == [256]
    tok.save(tmp_path / "y.jittok")
    assert jittok.load(tmp_path / "y.jittok") == tok


def test_command_line(tmp_path, capsys):
    tok = jittok.load_default()
    tok.save(tmp_path / "in.json")
    assert main(["convert", str(tmp_path / "in.json"), str(tmp_path / "out.jittok")]) == 0
    assert jittok.load(tmp_path / "out.jittok") == tok
    assert main(["convert", "default", str(tmp_path / "vocab.txt")]) == 1
    assert "only a WordPiece vocabulary" in capsys.readouterr().err
    (tmp_path / "b.json").write_text(json.dumps(block(added_tokens=[_ADDED])))
    assert main(["convert", str(tmp_path / "b.json"), str(tmp_path / "b.tiktoken")]) == 0
    assert 'special tokens: {"<x>": 259}' in capsys.readouterr().out
    assert main(["convert", str(tmp_path / "b.json"), str(tmp_path / "pair"), "--format", "merges"]) == 0
    assert sorted(file.name for file in (tmp_path / "pair").iterdir()) == ["merges.txt", "tokenizer_config.json",
        "vocab.json"]
    assert main(["convert", str(tmp_path / "pair"), str(tmp_path / "new" / "vocab.json")]) == 0
    assert (tmp_path / "new" / "merges.txt").read_bytes() == (tmp_path / "pair" / "merges.txt").read_bytes()
    jittok.train_unigram(LINES, vocab_size=60, threads=1, hard_vocab_limit=False).save(tmp_path / "u.model")
    assert main(["convert", str(tmp_path / "u.model"), str(tmp_path / "u.json")]) == 1
    assert "float64" in capsys.readouterr().err
    assert main(["convert", str(tmp_path / "u.model"), str(tmp_path / "u.json"), "--inexact"]) == 0
    assert "warning" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------ patterns


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (r"\p{L}+|\s+", r"\p{L}++|\s++", True),
        (r"\s+(?!\S)|\s+", r"\s+", False),
        (r"a|ab", r"a", True),
        (r"ab|a", r"a", False),
        (r"(?:a|b)c?", r"[ab]c?", True),
        (r"a+?", "a", True),
        (r"a+?b?", r"a", False),
        (r"a*", r"a+", False),
        (r"\w", r"[\w]", False),  # in Oniguruma, the latter lacks U+00B2
        (r"[^\S]", r"\s", True),
    ],
)
def test_patterns_are_compared_by_what_they_match(left, right, equal):
    assert same_matches(compile_split(left), compile_split(right)) == equal
    assert same_matches(compile_split(right), compile_split(left)) == equal


@pytest.mark.parametrize("pattern", [
    *{encoding.pattern for encoding in tiktoken_file.ENCODINGS.values()},
    r"\w+|[^\w\s]|\s", r"(?i:st|\p{Lu})x??|[\s\S]", r"a{2,3}?b|(?s:.)", r"\s+$|(?:a|bc)*+d|[\s\S]",
        r"[[:alpha:]]+|\h|[^z]|z",
    r"(?=a)a|[\^\-\]x]|(?!\d)[\s\S]|[\s\S]",
])  # fmt: skip
def test_patterns_are_translated(pattern):
    there = translate(pattern, "rust", "oniguruma")
    assert same_matches(compile_split(pattern, "rust"), compile_split(there))
    back = translate(there, "oniguruma", "rust")
    assert same_matches(compile_split(pattern, "rust"), compile_split(back, "rust"))
    # The references agree with the automata.
    theirs = pre_tokenizers.Split(tokenizers.Regex(there), "removed", invert=True)
    ranks = {bytes((value,)): value for value in range(256)}
    encoding = tiktoken.Encoding("test", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    for text in TEXTS:
        kept = "".join(piece for piece, _ in theirs.pre_tokenize_str(text)).encode()
        assert list(kept) == encoding.encode_ordinary(text)


def test_patterns_that_match_everything():
    for pattern, total in ((r"\s+|\S+", True), (r"\s+", False), (r"a|[^a]", True), (r"\s*", False), (r"\S|\s+(?=\S)",
        False)):
        assert matches_everything(compile_split(pattern)) == total
    with pytest.raises(RegexError):
        translate("(", "rust", "oniguruma")


# --------------------------------------------------------------------------------------------------- real models

_NO_TEMPLATE = {"exact": True, "template": False}
_EXACT = {"exact": True}
#: All handed models in all formats are for scripts/compare_conversions.py.
_REAL = [
    ("tiktoken/r50k_base/r50k_base.tiktoken", "tokenizer.json", _EXACT),
    ("tiktoken/r50k_base/r50k_base.tiktoken", "merges", _EXACT),
    ("bbpe/gpt2/tokenizer.json", "tiktoken", _EXACT),
    ("bbpe/gpt2/tokenizer.json", "merges", _EXACT),
    ("bbpe/gpt2/vocab.json", "tokenizer.json", _EXACT),
    ("bbpe/qwen3/tokenizer.json", "merges", _EXACT),
    ("bbpe/roberta-base/tokenizer.json", "merges", _EXACT),
    ("bbpe/clip/tokenizer.json", "merges", _EXACT),
    ("bbpe/robbert-1000/vocab.json", "tokenizer.json", _EXACT),
    ("sp-bpe/llama2/tokenizer.model", "tokenizer.json", _EXACT),
    ("sp-bpe/mistral-v1/tokenizer.model", "tokenizer.json", _EXACT),
    ("sp-bpe/llama2/tokenizer.json", "sentencepiece", _NO_TEMPLATE),
    ("sp-bpe/barthez/sentencepiece.bpe.model", "tokenizer.json", {}),
    ("unigram/t5-nai/spiece.model", "tokenizer.json", {}),
    ("unigram/t5-small/tokenizer.json", "sentencepiece", {"template": False}),
    ("wordpiece/bert-base-uncased/vocab.txt", "tokenizer.json", _EXACT),
    ("wordpiece/bert-base-uncased/tokenizer.json", "vocab.txt", _EXACT),
]


@pytest.mark.parametrize(("name", "written", "options"), _REAL)
def test_real_models(tmp_path, name, written, options):
    tok = jittok.load(model_path(name))
    exact = bool(options.get("exact"))
    special = list(tok.special_tokens)
    texts = [text for text in TEXTS if not any(token in text for token in [*special, "<unk>"])] + corpus_texts()
    if not exact:
        symbols = [token.content for token in tok.spec.added_tokens if not token.special]
        symbols += [symbol for step in tok.spec.normalizers for symbol in getattr(step, "symbols", ())]
        texts = [text for text in texts if not _is_corner(text) and not any(symbol in text for symbol in symbols)]
    elif written not in ("sentencepiece", "vocab.txt") and not name.endswith(".model"):
        texts += [f"x{token} y{token}{token}" for token in special[:3]]
    with warnings.catch_warnings():
        warnings.simplefilter("error" if exact else "ignore", ConversionWarning)
        check(tok, tmp_path / {"tokenizer.json": "x.json", "sentencepiece": "x.model"}.get(written, "x"), written, texts,
            **options)


def _is_corner(text):
    """Whether the notes of an inexact conversion are about such texts."""
    return text != " ".join(text.split(" ")).strip() or "\u2581" in text or any(ord(c) in (0x3000, 0xA0, 0x2028,
        0x323) for c in text)

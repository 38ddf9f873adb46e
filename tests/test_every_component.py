"""Every component that tokenizers 0.23 can write, with every option: jittok reads the file and does the same."""

import base64
import itertools

import pytest
import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors

import jittok
from jittok.errors import JittokError

FLAGS = (False, True)
BEHAVIORS = ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")
TEXTS = ["Hello, wörld! It's 12² 3x\u0301 \u3042\u30a2漢字 --- a  b\n\tc [x] Ａｂｃ \ufb01", "", " a", "a ", "e\u0301" * 3]
VOCAB = {c: i for i, c in enumerate(sorted({*"".join(TEXTS), *"abcdefghijklmnopqrstuvwxyzĠ▁Ċ"}))}
A, B = ("a", VOCAB["a"]), ("b", VOCAB["b"])


def _normalizers():
    yield from itertools.starmap(normalizers.BertNormalizer, itertools.product(FLAGS, FLAGS, (None, *FLAGS), FLAGS))
    for name in ("ByteLevel", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "StripAccents"):
        yield getattr(normalizers, name)()
    yield from map(normalizers.Prepend, ("▁", "", "abc"))
    for pattern, content in (("a", "bb"), ("a", ""), (Regex("a+"), "b"), (Regex(r"\s"), "  "), (" ", "▁")):
        yield normalizers.Replace(pattern, content)
    yield from itertools.starmap(normalizers.Strip, itertools.product(FLAGS, FLAGS))
    yield normalizers.Precompiled(base64.b64decode(base64.b64encode(_charsmap())))
    yield normalizers.Sequence([])
    yield normalizers.Sequence([normalizers.Sequence([normalizers.NFD()]), normalizers.StripAccents(),
        normalizers.Lowercase()])


def _charsmap():
    from jittok.build.charsmap import compile_charsmap

    return compile_charsmap({"\ufb01": "fi", "Ａ": "A", "e\u0301": "é"})


def _pre_tokenizers():
    for name in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts"):
        yield getattr(pre_tokenizers, name)()
    yield pre_tokenizers.CharDelimiterSplit("a")
    yield from map(pre_tokenizers.Digits, FLAGS)
    yield from map(pre_tokenizers.FixedLength, (1, 7))
    yield from map(pre_tokenizers.Punctuation, BEHAVIORS)
    for prefix, regex, trim in itertools.product(FLAGS, FLAGS, FLAGS):
        yield pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex, trim_offsets=trim)
    for mark, scheme, split in itertools.product("▁_", ("always", "first", "never"), FLAGS):
        yield pre_tokenizers.Metaspace(replacement=mark, prepend_scheme=scheme, split=split)
    for pattern, behavior, invert in itertools.product((" ", Regex(r"\s+"), Regex("[a-z]+"), "ab"), BEHAVIORS, FLAGS):
        yield pre_tokenizers.Split(pattern, behavior, invert)
    yield pre_tokenizers.Sequence([])
    yield pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True)])


def _decoders():
    for name in ("ByteFallback", "ByteLevel", "Fuse", "BPEDecoder", "CTC", "Metaspace", "WordPiece"):
        yield getattr(decoders, name)()
    yield from (decoders.BPEDecoder("x"), decoders.CTC("a", "b", False), decoders.Metaspace("_", "first", False))
    yield from (decoders.Replace("a", "b"), decoders.Replace(Regex("a+"), ""), decoders.Strip("a", 1, 0))
    yield from (decoders.Strip(" ", 0, 0), decoders.WordPiece("x", False), decoders.Sequence([]))
    yield decoders.Sequence([decoders.Replace("a", "b"), decoders.Fuse()])


def _processors():
    yield processors.BertProcessing(A, B)
    yield from (processors.ByteLevel(trim_offsets=trim, add_prefix_space=prefix) for trim in FLAGS for prefix in FLAGS)
    yield from (processors.RobertaProcessing(A, B, trim, prefix) for trim in FLAGS for prefix in FLAGS)
    yield processors.TemplateProcessing(single="a $A:3 b:2", pair="$B:1 a $A b", special_tokens=[A, B])
    two = {"id": "a", "ids": [0, 1], "tokens": ["x", "y"]}
    yield processors.TemplateProcessing(single=["a", "$"], pair=["$A", "$B:5"], special_tokens=[two])
    template = processors.TemplateProcessing(single="a $A", pair="$A $B", special_tokens=[A])
    yield from (processors.Sequence([]), processors.Sequence([processors.ByteLevel(), template]))
    yield processors.Sequence([processors.BertProcessing(A, B), processors.ByteLevel()])


_SMALL = {"a": 0, "b": 1, "ab": 2, "##b": 3, "<unk>": 4, "a</w>": 5, "b</w>": 6, "##bb": 7, "ab</w>": 8, " ": 9}
_PIECES = [("<unk>", 0.0), ("a", -1.0), ("ab", -1.5)]


def _models():
    bpe = models.BPE
    yield from (bpe(_SMALL, [("a", "b")]), bpe(_SMALL, [("a", "b")], dropout=0.0), bpe(_SMALL, [], ignore_merges=True),
        bpe())
    for option in ({}, {"fuse_unk": True}, {"byte_fallback": True}, {"ignore_merges": True}):
        yield bpe(_SMALL, [("a", "b")], unk_token="<unk>", **option)
    yield bpe(_SMALL, [("a", "##b")], unk_token="<unk>", continuing_subword_prefix="##")
    yield bpe(_SMALL, [("a", "b</w>")], unk_token="<unk>", end_of_word_suffix="</w>")
    yield models.WordPiece(_SMALL, unk_token="<unk>")
    yield models.WordPiece(_SMALL, unk_token="<unk>", max_input_chars_per_word=2, continuing_subword_prefix="")
    yield from (models.WordPiece(_SMALL, unk_token="zz"), models.WordLevel(_SMALL, "<unk>"), models.WordLevel(_SMALL,
        "nope"))
    yield from (models.Unigram(_PIECES, 0, False), models.Unigram(_PIECES, None, False), models.Unigram(_PIECES, 0, True))


def compare(theirs, texts):
    """Read what the reference writes, and compare ids, masks and decoded text."""
    ours = jittok.load_bytes(theirs.to_str().encode())
    for text, pair in itertools.product(texts, (None, "b c")):
        try:
            expected = theirs.encode(text, pair)
        except Exception:  # an unknown token that is missing
            with pytest.raises(JittokError):
                ours.encode(text, pair)
            continue
        found = ours.encode(text, pair)
        assert found.ids.tolist() == expected.ids, text
        assert found.type_ids.tolist() == expected.type_ids, text
        assert found.special_tokens_mask.tolist() == expected.special_tokens_mask, text
        assert ours.decode(found.ids) == theirs.decode(expected.ids, skip_special_tokens=False), text


@pytest.mark.parametrize("role", ["normalizer", "pre_tokenizer", "decoder", "post_processor"])
def test_components(role):
    components = {"normalizer": _normalizers, "pre_tokenizer": _pre_tokenizers, "decoder": _decoders,
        "post_processor": _processors}
    for component in components[role]():
        theirs = tokenizers.Tokenizer(models.BPE(vocab={**VOCAB, "<unk>": len(VOCAB)}, merges=[], unk_token="<unk>"))
        setattr(theirs, role, component)
        compare(theirs, TEXTS)


def test_models():
    for model, cut in itertools.product(_models(), FLAGS):
        theirs = tokenizers.Tokenizer(model)
        if cut:
            theirs.pre_tokenizer = pre_tokenizers.Whitespace()
        compare(theirs, ["ab abb b a", "", "abab"])


def test_there_are_no_other_components():
    """A new version with a new component is noticed here."""
    known = {
        normalizers: "BertNormalizer ByteLevel Lowercase NFC NFD NFKC NFKD Nmt Precompiled Prepend Replace Sequence "
        "Strip StripAccents",
        pre_tokenizers: "BertPreTokenizer ByteLevel CharDelimiterSplit Digits FixedLength Metaspace Punctuation Sequence "
        "Split UnicodeScripts Whitespace WhitespaceSplit",
        decoders: "BPEDecoder ByteFallback ByteLevel CTC Fuse Metaspace Replace Sequence Strip WordPiece",
        processors: "BertProcessing ByteLevel RobertaProcessing Sequence TemplateProcessing",
        models: "BPE Unigram WordLevel WordPiece",
    }
    bases = {"Normalizer", "PreTokenizer", "Decoder", "PostProcessor", "Model", "DecodeStream", "NORMALIZERS"}
    for module, names in known.items():
        found = {name for name in dir(module) if name[0].isupper()} - bases
        assert found == set(names.split())

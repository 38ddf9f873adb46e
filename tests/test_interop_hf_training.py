"""Components and training of the wrapper of tokenizers, compared with that library."""

import json
import warnings

import pytest

import jittok
from jittok.errors import ArgumentError, ArgumentTypeError, UnsupportedError
from jittok.interop.hf_training import BpeTrainer, WordLevelTrainer, WordPieceTrainer
from jittok.interop.huggingface import HfTokenizer

tokenizers = pytest.importorskip("tokenizers")
decoders, models, normalizers = tokenizers.decoders, tokenizers.models, tokenizers.normalizers
pre_tokenizers, processors, trainers = tokenizers.pre_tokenizers, tokenizers.processors, tokenizers.trainers

TEXTS = ["the lower house and the lowest house", "A new\nhouse, newer and wider", "na\u00efve 12 the the", ""] * 3


def both(model):
    return tokenizers.Tokenizer(model), HfTokenizer(model)


def same(library, ours, texts=TEXTS):
    assert json.loads(ours.to_str()) == json.loads(library.to_str())
    for text in texts:
        expected, found = library.encode(text), ours.encode(text)
        assert (found.ids, found.tokens, found.offsets) == (expected.ids, expected.tokens, expected.offsets)
        assert ours.decode(found.ids) == library.decode(expected.ids)


def test_components_of_the_library_are_taken():
    vocab = {"[UNK]": 0, "a": 1, "b": 2, "##b": 3, "ab": 4, "[CLS]": 5}
    library, ours = both(models.WordPiece(vocab, unk_token="[UNK]"))
    for one in (library, ours):
        one.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
        one.pre_tokenizer = pre_tokenizers.Whitespace()
        one.post_processor = processors.TemplateProcessing("[CLS] $A", "[CLS] $A $B:1", [("[CLS]", 5)])
        one.decoder = decoders.WordPiece()
        one.enable_truncation(7)
    texts = ["AB ab", "abb a", "xyz", "a b a b a b a b a b"]
    for text in texts:
        assert ours.encode(text).ids == library.encode(text).ids
        assert ours.decode(ours.encode(text).ids) == library.decode(library.encode(text).ids)
    assert ours.normalizer["type"] == "Sequence" and ours.pre_tokenizer == {"type": "Whitespace"}
    assert ours.post_processor["type"] == "TemplateProcessing" and ours.decoder["type"] == "WordPiece"
    assert ours.truncation["max_length"] == 7
    for one in (library, ours):
        one.normalizer = one.post_processor = None
    assert ours.normalizer is None and ours.post_processor is None
    assert [ours.encode(text).ids for text in texts] == [library.encode(text).ids for text in texts]
    ours.normalizer = "Lowercase"
    assert ours.normalizer == {"type": "Lowercase"} and ours.encode("AB").ids == [4]
    ours.normalizer = {"type": "Replace", "pattern": {"String": "x"}, "content": "a"}
    assert ours.encode("xb").ids == [4]
    block = ours.model
    assert block["type"] == "WordPiece" and block["vocab"] == vocab
    block["vocab"]["xb"] = 6
    ours.model, ours.normalizer = block, None
    assert ours.encode("xb").ids == [6]


def test_what_is_no_component_is_refused():
    ours = HfTokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder", "model"):
        with pytest.raises(ArgumentTypeError, match=name):
            setattr(ours, name, 3)
    with pytest.raises(ArgumentTypeError, match="model"):
        ours.model = None
    with pytest.raises(UnsupportedError, match="Other"):
        ours.normalizer = {"type": "Other"}
    with pytest.raises(jittok.errors.FormatError, match="neither in the vocabulary"):
        ours.post_processor = processors.BertProcessing(("x", 8), ("y", 9))
    with pytest.raises(ArgumentTypeError, match="pickled"):
        ours.normalizer = normalizers.Normalizer.custom(object())
    ranks = jittok.load_default().as_hf()
    if not hasattr(ranks.tokenizer.spec.model, "merges"):
        with pytest.raises(UnsupportedError, match="components"):
            ranks.normalizer = None


@pytest.mark.parametrize("size", [30, 60])
@pytest.mark.parametrize("byte_level", [False, True])
def test_bpe_is_trained_as_the_library_does(size, byte_level, tmp_path):
    for by_file in (False, True):
        library, ours = both(models.BPE(unk_token=None if byte_level else "<unk>"))
        special = ["<unk>", tokenizers.AddedToken("<x>", lstrip=True)]
        options = {"vocab_size": 300 + size if byte_level else size, "min_frequency": 2, "special_tokens": special}
        if byte_level:
            options["initial_alphabet"] = pre_tokenizers.ByteLevel.alphabet()
        for one in (library, ours):
            one.normalizer = normalizers.NFD()
            one.pre_tokenizer = pre_tokenizers.ByteLevel() if byte_level else pre_tokenizers.Metaspace()
            one.decoder = decoders.ByteLevel() if byte_level else decoders.Metaspace()
            trainer = trainers.BpeTrainer(show_progress=False, **options)
            if by_file:
                path = tmp_path / "texts.txt"
                path.write_text("\n".join(TEXTS), encoding="utf-8")
                one.train([str(path)], trainer)
            else:
                one.train_from_iterator([TEXTS[:5], TEXTS[5:]], trainer)
        same(library, ours, [*TEXTS, "<x> of  <x>"])
        again = HfTokenizer(models.BPE(unk_token=None if byte_level else "<unk>"))
        again.normalizer, again.pre_tokenizer = ours.normalizer, ours.pre_tokenizer
        if not by_file:
            again.train_from_iterator(iter(TEXTS), BpeTrainer(show_progress=False, **options))
            assert again.get_vocab() == ours.get_vocab()


def test_words_are_counted_as_the_library_does():
    for byte_level in (False, True):
        library, ours = both(models.WordLevel({}, unk_token="[UNK]"))
        for one in (library, ours):
            one.pre_tokenizer = pre_tokenizers.ByteLevel() if byte_level else pre_tokenizers.Whitespace()
            options = {"vocab_size": 9, "min_frequency": 4, "special_tokens": ["[UNK]", "the"], "show_progress": False}
            one.train_from_iterator(TEXTS, trainers.WordLevelTrainer(**options))
        assert ours.get_vocab() == library.get_vocab()
        same(library, ours)
    # "the" is an added token by now.
    library.train_from_iterator(TEXTS, trainers.WordLevelTrainer(special_tokens=["[UNK]"], show_progress=False))
    ours.train_from_iterator(TEXTS, WordLevelTrainer(special_tokens=["[UNK]"], show_progress=False))
    assert ours.get_vocab(False) == library.get_vocab(False) and ours.token_to_id("the") == 1


@pytest.mark.parametrize(
    "kind", ["WordLevel", "BPE", "byte-level BPE", "byte-level WordLevel", "words WordLevel", "words BPE"]
)
@pytest.mark.parametrize("as_text", [False, True])
def test_added_tokens_are_words_of_their_own(kind, as_text):
    texts = ["\u00e9b cb \u00e9 a", "<s> ab<s>", " x \u00c9 x  x", "x\u65e5\u65e5ab", "", "<s>"] * 3
    name = kind.split()[-1]
    trainer = trainers.BpeTrainer if name == "BPE" else trainers.WordLevelTrainer
    library, ours = both(getattr(models, name)(unk_token="u"))
    for one in (library, ours):
        one.normalizer = normalizers.Lowercase()
        one.pre_tokenizer = {
            "byte-level": pre_tokenizers.ByteLevel(),
            "words": pre_tokenizers.WhitespaceSplit(),
        }.get(kind.split()[0], pre_tokenizers.Metaspace(prepend_scheme="first"))
        one.add_tokens(["\u00e9", tokenizers.AddedToken(" x", rstrip=True, normalized=False), "\u65e5"])
        one.add_special_tokens([tokenizers.AddedToken("<s>", lstrip=True)])
        one.encode_special_tokens = as_text
        options = {"vocab_size": 40, "special_tokens": ["<x>", "u"], "show_progress": False}
        one.train_from_iterator(texts, trainer(**options))
    # The library's added tokens keep the ids that they had before.
    assert ours.get_vocab(False) == library.get_vocab(False)


def test_a_trained_model_has_the_ends_of_its_trainer():
    for ends in ({}, {"continuing_subword_prefix": "@@"}, {"end_of_word_suffix": "</w>"}):
        library, ours = both(models.BPE(continuing_subword_prefix="##", end_of_word_suffix="_", unk_token="u"))
        for one in (library, ours):
            one.pre_tokenizer = pre_tokenizers.Whitespace()
            one.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=90, show_progress=False, **ends))
        assert ends or ours.get_vocab() == library.get_vocab()  # letters with ends are numbered by chance there
        written = json.loads(library.to_str())["model"]
        names = [name for name in written if name not in ("vocab", "merges") or not ends]
        assert [ours.model[name] for name in names] == [written[name] for name in names]


def test_wordpiece_is_trained_as_the_library_does():
    # The library numbers letters by chance, and of pairs that are equally frequent takes the one of the least numbers.
    texts = ["ab " * 9 + "cd " * 7 + "ef " * 5 + "gh " * 3 + "abc " * 20]
    library, ours = both(models.WordPiece({}, unk_token="[UNK]"))
    for one in (library, ours):
        one.pre_tokenizer = pre_tokenizers.Whitespace()
        options = {"vocab_size": 16, "special_tokens": ["[UNK]"], "show_progress": False}
        one.train_from_iterator(texts, trainers.WordPieceTrainer(**options))
    assert set(ours.get_vocab()) == set(library.get_vocab()) and ours.get_vocab_size() == 16
    for text in ["abc ab cd ef gh", "a bd x", "abcd"]:
        assert ours.encode(text).tokens == library.encode(text).tokens


def test_training_without_a_trainer_and_with_a_wrong_one():
    ours = HfTokenizer(models.BPE())
    ours.pre_tokenizer = "Whitespace"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.train_from_iterator(TEXTS)
    assert ours.encode("house").tokens == ["house"]
    with pytest.raises(ArgumentError, match="can only train a WordPiece model; for a BPEModel a BpeTrainer"):
        ours.train_from_iterator(TEXTS, WordPieceTrainer())
    with pytest.raises(ArgumentTypeError, match="got int"):
        ours.train_from_iterator([3])
    with pytest.raises(jittok.errors.MissingFileError, match="nowhere"):
        ours.train(["nowhere.txt"])
    unigram = HfTokenizer({"type": "Unigram", "unk_id": 0, "vocab": [["a", 0.0]]})
    with pytest.raises(UnsupportedError, match="train_unigram"):
        unigram.train_from_iterator(TEXTS, trainers.UnigramTrainer())
    with pytest.raises(UnsupportedError, match="Unigram"):
        unigram.train_new_from_iterator(TEXTS, 10)
    ours.post_processor = {"type": "BertProcessing", "sep": ["ho", ours.token_to_id("ho")], "cls": ["house", 40]}
    with pytest.raises(ArgumentError, match="post_processor"):
        ours.train_from_iterator(["ab"])


def test_a_new_vocabulary_with_the_same_components():
    vocab = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "a": 5}
    first = HfTokenizer(models.WordPiece(vocab, unk_token="[UNK]"), pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]")
    first.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    first.normalizer, first.pre_tokenizer = "Lowercase", "BertPreTokenizer"
    first.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    first.padding_side = "left"
    new = first.train_new_from_iterator([TEXTS], 60, new_special_tokens=["[X]"], special_tokens_map={"[CLS]": "<s>"})
    assert first.get_vocab() == vocab and type(new) is HfTokenizer
    assert new.get_vocab_size() <= 60 and [new.id_to_token(i) for i in range(6)] == [
        "[PAD]", "[UNK]", "<s>", "[SEP]", "[MASK]", "[X]"
    ]  # fmt: skip
    encoding = new.encode("The House [X]", "the")
    assert encoding.tokens == ["<s>", "the", "house", "[X]", "[SEP]", "the", "[SEP]"]
    assert encoding.type_ids == [0, 0, 0, 0, 0, 1, 1]
    assert (new.cls_token, new.sep_token, new.pad_token, new.padding_side) == ("<s>", "[SEP]", "[PAD]", "left")
    with pytest.raises(ArgumentTypeError, match="WordPieceTrainer does not have"):
        first.train_new_from_iterator(TEXTS, 60, dropout=3)
    first.add_special_tokens({"mask_token": "[MASK]"})
    fast = jittok.load_default().as_hf("transformers")
    if fast.tokenizer.spec.model.__class__.__name__ == "BPEModel":
        assert len(fast.train_new_from_iterator(TEXTS, 280)) == 280

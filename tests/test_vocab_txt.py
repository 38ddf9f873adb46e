"""vocab.txt: lines, what stands beside the file, and what is refused. The reference's values are transformers 4.57's."""

from __future__ import annotations

import json

import pytest
from specs import model_path

from jittok import spec
from jittok.errors import FormatError, MissingFileError, UnsupportedError
from jittok.formats import tokenizer_json, vocab_txt
from jittok.formats.detect import detect_format, locate, read_spec

tokenizers = pytest.importorskip("tokenizers")

LINES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "c"]
TEXT = "".join(f"{line}\n" for line in LINES)


def write(folder, text=TEXT, **beside):
    """A vocab.txt, and JSON files beside it."""
    folder.mkdir(exist_ok=True)
    path = folder / "vocab.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    for name, content in beside.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return path


def read(folder, text=TEXT, **beside):
    return read_spec(write(folder, text, **beside))


def special(token_id, content, **flags):
    return spec.AddedToken(token_id, content, **{"special": True, "normalized": False, **flags})


def test_defaults_are_those_of_bert(tmp_path):
    found = read(tmp_path)
    assert found.model == spec.WordPieceModel({token: i for i, token in enumerate(LINES)}, "[UNK]", "##", 100)
    assert found.added_tokens == tuple(special(i, token) for i, token in enumerate(LINES[:5]))
    assert found.normalizers == (spec.BertNormalizer(True, True, None, True),)
    assert found.pre_tokenizers == (spec.BertPreTokenizer(),)
    assert found.decoders == (spec.DecodeWordPiece("##", True),)
    cls, sep = (spec.TemplatePiece(0, None, (i,), (token,)) for i, token in ((2, "[CLS]"), (3, "[SEP]")))
    a, b = spec.TemplatePiece(0, "A"), spec.TemplatePiece(1, "B")
    last = spec.TemplatePiece(1, None, (3,), ("[SEP]",))
    assert found.post_processors == (spec.Template((cls, a, sep), (cls, a, sep, b, last)),)
    assert (found.source_format, found.reference) == ("vocab.txt", "tokenizers")


@pytest.mark.parametrize(
    ("lines", "vocab"),
    [
        (TEXT.replace("\n", "\r\n"), LINES),
        (TEXT[:-1], LINES),
        ("\ufeff" + TEXT, LINES),
        (TEXT + "\u2028\nz\u2028z\n##\u2028\n\x85\nx\x0by\n\x0c\n  q \nr\u3000\n\x1c\n", None),
    ],
)
def test_lines_end_with_line_feeds_only(tmp_path, lines, vocab):
    odd = ["\u2028", "z\u2028z", "##\u2028", "\x85", "x\x0by", "\x0c", "  q ", "r\u3000", "\x1c"]
    expected = {token: i for i, token in enumerate(LINES + odd if vocab is None else vocab)}
    assert read(tmp_path, lines).model.vocab == expected


def test_empty_and_repeated_lines(tmp_path):
    found = read(tmp_path, TEXT + "\n\nd\na\n\n[SEP]\n")
    # The last of equal lines counts, and the others leave their numbers without a token.
    assert list(found.model.vocab.items())[-4:] == [("d", 10), ("a", 11), ("", 12), ("[SEP]", 13)]
    assert len(found.model.vocab) == 10
    assert special(13, "[SEP]") in found.added_tokens
    assert found.post_processors[0].single[-1].ids == (13,)


def test_what_the_configuration_says(tmp_path):
    settings = {"do_lower_case": False, "strip_accents": True, "tokenize_chinese_chars": False, "never_split": ["a"]}
    found = read(tmp_path, tokenizer_config={**settings, "tokenizer_class": "BertTokenizerFast"})
    assert found.normalizers == (spec.BertNormalizer(True, False, True, False),)
    assert found.extra["tokenizer_class"] == "BertTokenizerFast"
    assert read(tmp_path, tokenizer_config={"strip_accents": None}).normalizers == (spec.BertNormalizer(),)
    (tmp_path / "tokenizer_config.json").unlink()
    assert read(tmp_path, config={"model_type": "distilbert"}).normalizers == (spec.BertNormalizer(),)


def test_special_tokens_of_other_names(tmp_path):
    names = {"unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>"}
    mask = {"content": "<mask>", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False}
    lines = "<pad>\n<unk>\n<s>\n</s>\n<mask>\na\n##b\n"
    for beside in ("tokenizer_config", "special_tokens_map"):
        found = read(tmp_path / beside, lines, **{beside: {**names, "mask_token": mask}})
        assert found.model.unk_token == "<unk>"
        assert found.added_tokens[-1] == special(4, "<mask>", lstrip=True)
        assert [piece.tokens for piece in found.post_processors[0].single] == [("<s>",), (), ("</s>",)]
        assert detect_format(tmp_path / beside / "vocab.txt") == "vocab.txt"


def test_added_tokens_beside(tmp_path):
    beside = {"added_tokens": {"<x>": 8, "<y>": 9}, "tokenizer_config": {"additional_special_tokens": ["<y>", "<z>"]}}
    found = read(tmp_path / "older", **beside)
    assert found.added_tokens[5:] == (spec.AddedToken(8, "<x>"), special(9, "<y>"), special(10, "<z>"))
    flags = dict.fromkeys(("lstrip", "rstrip", "single_word", "special"), False)
    decoder = {"8": {"content": "<x>", "normalized": True, **flags}}
    found = read(tmp_path / "newer", tokenizer_config={"added_tokens_decoder": decoder})
    assert found.added_tokens[5:] == (spec.AddedToken(8, "<x>"),)


def test_named_special_tokens_that_the_vocabulary_lacks_get_new_ids(tmp_path):
    found = read(tmp_path, tokenizer_config={"cls_token": "<s>", "mask_token": "<m>"})
    assert [(token.id, token.content) for token in found.added_tokens][-2:] == [(8, "<s>"), (9, "<m>")]
    assert found.post_processors[0].single[0].ids == (8,)


def test_special_tokens_that_nothing_names(tmp_path):
    found = read(tmp_path, "[PAD]\n[UNK]\n[START]\n[END]\n##a\n")
    assert [token.content for token in found.added_tokens] == ["[PAD]", "[UNK]"]
    assert found.post_processors == ()


@pytest.mark.parametrize(
    ("lines", "config", "message"),
    [
        (TEXT.replace("[UNK]", "<unk>"), {}, r"no line is '\[UNK\]'.*\"unk_token\""),
        (TEXT, {"unk_token": "<unk>"}, "no line is '<unk>'"),
        (TEXT.replace("[CLS]", "x"), {}, r"'\[SEP\]' is there, but not '\[CLS\]'.*\"cls_token\""),
        (TEXT.replace("[SEP]", "x"), {}, r"'\[CLS\]' is there, but not '\[SEP\]'"),
        (TEXT, {"cls_token": None}, r"not '\[CLS\]'"),
        (TEXT, {"cls_token": 5}, "cls_token: expected an object"),
        (TEXT, {"do_lower_case": None}, "do_lower_case: expected true or false, got null"),
        (TEXT, {"strip_accents": "yes"}, "strip_accents: expected true or false"),
        (TEXT.replace("\n", "\r"), {}, r"lines end with \\r alone"),
        (TEXT.encode() + b"\xff\n", {}, "not UTF-8 at byte"),
        ("\ufeff", {}, "empty"),
        ("", {}, "empty"),
    ],
)
def test_bad_vocabularies(tmp_path, lines, config, message):
    path = write(tmp_path, lines, tokenizer_config=config)
    with pytest.raises(FormatError, match=message):
        read_spec(path, format="vocab.txt")


def test_other_tokenizers_are_refused_by_name(tmp_path):
    with pytest.raises(UnsupportedError, match="tokenizer_class: 'MPNetTokenizer' with vocab.txt"):
        read(tmp_path / "class", tokenizer_config={"tokenizer_class": "MPNetTokenizer"})
    with pytest.raises(UnsupportedError, match="model_type: the tokenizer of 'funnel' models"):
        read(tmp_path / "type", config={"model_type": "funnel"})
    with pytest.raises(MissingFileError, match="no such file"):
        read_spec(tmp_path / "none.txt")


def test_found_in_a_directory_and_by_content(tmp_path):
    path = write(tmp_path)
    assert locate(tmp_path) == ("vocab.txt", path)
    other = tmp_path / "bert-vocab.dat"
    for content in (TEXT, "\ufeff" + TEXT, TEXT.replace("\n", "\r\n"), "a\n##b\n<unk>\n"):
        other.write_text(content, newline="")
        assert detect_format(other) == "vocab.txt"
    other.write_text("## A heading\nand prose of words\n")
    with pytest.raises(FormatError, match="not a tokenizer file"):
        detect_format(other)


# ------------------------------------------------------------------------------------------------------ writing


def test_written_vocabularies_are_read_again(tmp_path):
    lines = TEXT + "\u2028\n##\x85\n\nx y\n\ufeff\nq\rr\n"
    found = read(tmp_path, lines)
    assert vocab_txt.write(found) == lines.encode()
    shuffled = spec.WordPieceModel(dict(reversed(found.model.vocab.items())))
    assert vocab_txt.write(spec.TokenizerSpec(shuffled)) == lines.encode()


@pytest.mark.parametrize(
    ("vocab", "message"),
    [
        ({"a": 0, "b": 2}, "gaps or repeats: 1 is the line of 'b'"),
        ({"a": 0, "b": 0}, "gaps or repeats"),
        ({"a\nb": 0}, "cannot hold the token"),
        ({"a\r": 0}, "cannot hold the token"),
        ({"\ufeffa": 0}, "cannot hold the token"),
    ],
)
def test_what_a_vocab_txt_cannot_say(vocab, message):
    with pytest.raises(UnsupportedError, match=message):
        vocab_txt.write(spec.TokenizerSpec(spec.WordPieceModel(vocab)))
    with pytest.raises(UnsupportedError, match="only a WordPiece vocabulary"):
        vocab_txt.write(spec.TokenizerSpec(spec.BPEModel(vocab, ())))


# -------------------------------------------------------------------------------------------------- real models


@pytest.mark.parametrize("name", ["bert-base-uncased", "bert-base-multilingual-cased", "bert-base-chinese"])
def test_real_vocabularies_equal_their_tokenizer_json(name, tmp_path):
    stated = tokenizer_json.read(model_path(f"wordpiece/{name}/tokenizer.json").read_bytes(), name)
    data = model_path(f"wordpiece/{name}/vocab.txt").read_bytes()
    config = {} if name.endswith("uncased") else {"tokenizer_config": {"do_lower_case": False}}
    found = read(tmp_path, data, **config)
    for part in ("model", "added_tokens", "normalizers", "pre_tokenizers", "post_processors", "decoders"):
        assert getattr(found, part) == getattr(stated, part)
    assert vocab_txt.write(stated) == data
    again = tokenizer_json.read(tokenizer_json.write(stated), "again")
    assert again == stated


def test_real_vocabulary_of_other_special_tokens(tmp_path):
    path = model_path("wordpiece/tf-text-test-wp-en/vocab.txt")
    found = read_spec(path)
    assert len(found.model.vocab) == 7010
    assert [token.content for token in found.added_tokens] == ["[PAD]", "[UNK]"]


def test_reads_as_the_references_own_reader(tmp_path):
    path = write(tmp_path)
    tokenizer = tokenizers.BertWordPieceTokenizer(str(path))
    written = tokenizers.Tokenizer.from_str(tokenizer_json.write(read_spec(path)).decode())
    for text in ("", "Ab ABB c!", "a\u4e2dc [MASK] \xe4b"):
        one, other = tokenizer.encode(text, "c a"), written.encode(text, "c a")
        assert (one.ids, one.type_ids, one.offsets) == (other.ids, other.type_ids, other.offsets)
        assert tokenizer.decode(one.ids) == written.decode(other.ids)

"""``jittok warmup``: compile now, so that later processes start fast (for example in a container image)."""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from jittok.cli import arguments
from jittok.errors import UnsupportedError

#: Families of models, each with kernels of its own.
FAMILIES = ("bpe", "wordpiece", "sentencepiece", "training", "generation")


def add(commands: Any) -> None:
    """Define the command's arguments."""
    parser = commands.add_parser(
        "warmup",
        help="compile the kernels and keep them on disk",
        description=(
            "Compile the kernels and leave them in the cache that later processes read: JITTOK_CACHE_DIR, else"
            " NUMBA_CACHE_DIR/jittok, else the user's cache folder. Code files are for a level of the CPU"
            " (x86-64-v3, say), so a cache in a container image serves every machine of that level."
        ),
    )
    parser.add_argument("family", nargs="?", choices=FAMILIES, help="only this family's kernels (default: all)")
    parser.add_argument("--tokenizer", "-t", metavar="X", help="only the kernels that this tokenizer file uses")
    arguments.add_tokenizer_details(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compile, and say how long it took and what is there now."""
    os.environ["JITTOK_BACKGROUND"] = "0"  # compile here and now
    from jittok import _jit

    if options.tokenizer:
        subjects: dict[str, Callable[[], Iterator[Any]]] = {
            options.tokenizer: lambda: iter([arguments.load_tokenizer(options)])
        }
    else:
        makers = {
            "bpe": bpe_tokenizers,
            "wordpiece": wordpiece_tokenizers,
            "sentencepiece": sentencepiece_tokenizers,
            "training": trained_tokenizers,
            "generation": generated_texts,
        }
        subjects = {family: makers[family] for family in FAMILIES if options.family in (None, family)}
    for name, tokenizers in subjects.items():
        start = time.perf_counter()
        for tokenizer in tokenizers():
            exercise(tokenizer)
        print(f"{name}: ready in {time.perf_counter() - start:.2f} s")
    read_lines()
    read_json()
    folder = None if _jit.JIT_DISABLED else _jit.cache_folder()
    if folder is None:
        print("nothing was kept on disk")
        return 1
    files = [file for file in folder.rglob("*") if file.suffix in (".code", ".nbc")]
    print(f"{len(files)} compiled kernels, {sum(file.stat().st_size for file in files):,} bytes, in {folder}")
    return 0


def bpe_tokenizers() -> Iterator[Any]:
    """Yield tokenizers that between them use every kernel of byte-pair encoding."""
    import jittok
    from jittok import spec
    from jittok.tokenizer import Tokenizer

    yield jittok.load_default()
    # built from a file's content, with many added tokens: the kernels that build tables
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256}
    many = tuple(spec.AddedToken(300 + number, f"<reserved {number}>", special=True) for number in range(2000))
    yield Tokenizer(spec.TokenizerSpec(model=spec.RankModel(ranks), added_tokens=many, reference="tiktoken"))
    # and with tokens of many kinds of endings, which are found in another way
    words = tuple(spec.AddedToken(300 + number, f"word {number} {chr(97 + number % 26)}") for number in range(2500))
    yield Tokenizer(spec.TokenizerSpec(model=spec.RankModel(ranks), added_tokens=words, reference="tiktoken"))
    vocab = {letter: number for number, letter in enumerate(["<unk>", "a", "b", "ab", "<end>"])}
    end = spec.TemplatePiece(0, None, (4,), ("<end>",))
    first, second = spec.TemplatePiece(0, "A"), spec.TemplatePiece(1, "B")
    template = spec.Template((first, end), (first, second, end))
    model = spec.BPEModel(vocab, (("a", "b"),), unk_token="<unk>", byte_fallback=True)
    yield Tokenizer(
        spec.TokenizerSpec(
            model=model,
            added_tokens=(spec.AddedToken(4, "<end>", special=True), spec.AddedToken(5, "ABBA")),
            normalizers=(
                spec.UnicodeForm("NFC"),
                spec.Replace(" ", "\u2581"),
                spec.Replace("\\s+", "_", is_regex=True),
                spec.Strip(),
                spec.Lowercase(),
                spec.BertNormalizer(),
            ),
            pre_tokenizers=(spec.Split("_", "removed", is_regex=False),),
            post_processors=(template, spec.TrimOffsets()),
            decoders=(spec.DecodeFuse(),),
        )
    )
    # Characters, and a blank in front of texts: the kernels of SentencePiece models.
    plain = spec.BPEModel({"<unk>": 0, "a": 1, "b": 2, "ab": 3, "\u2581": 4}, (("a", "b"),), unk_token="<unk>")
    yield Tokenizer(spec.TokenizerSpec(model=plain, pre_tokenizers=(spec.Metaspace(split=False),)))
    yield Tokenizer(spec.TokenizerSpec(model=plain, normalizers=(spec.MapBytes(),)))


def wordpiece_tokenizers() -> Iterator[Any]:
    """Yield tokenizers that between them use every kernel of WordPiece: BERT's, and one with the parts around it."""
    from jittok import spec
    from jittok.tokenizer import Tokenizer

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<end>"]
    pieces = [*special, "t", "##h", "##e", "x", "##x", "##xx", "the", "1", "##2"]
    vocab = {token: number for number, token in enumerate(pieces)}
    added = tuple(
        spec.AddedToken(number, token, special=True, normalized=False) for number, token in enumerate(special)
    )
    first, second = spec.TemplatePiece(0, "A"), spec.TemplatePiece(1, "B")
    last = spec.TemplatePiece(1, None, (3,), ("[SEP]",))
    start, end = (spec.TemplatePiece(0, None, (number,), (special[number],)) for number in (2, 3))
    template = spec.Template((start, first, end), (start, first, end, second, last))
    for lowercase in (True, False):
        yield Tokenizer(
            spec.TokenizerSpec(
                model=spec.WordPieceModel(vocab, "[UNK]"),
                added_tokens=(*added, spec.AddedToken(len(vocab), "abba")),
                normalizers=(spec.BertNormalizer(lowercase=lowercase),),
                pre_tokenizers=(spec.BertPreTokenizer(),),
                post_processors=(template,),
                decoders=(spec.DecodeWordPiece(),),
            )
        )
    yield Tokenizer(
        spec.TokenizerSpec(
            model=spec.WordPieceModel(vocab, "[UNK]"),
            added_tokens=added,
            normalizers=(spec.UnicodeForm("NFD"), spec.Lowercase(), spec.StripAccents()),
            pre_tokenizers=(spec.Whitespace(), spec.Punctuation()),
            decoders=(spec.DecodeWordPiece(),),
        )
    )


def sentencepiece_tokenizers() -> Iterator[Any]:
    """Yield tokenizers that between them use every kernel of SentencePiece: its files, and a unigram tokenizer.json."""
    from jittok import spec
    from jittok.build.charsmap import named_charsmap
    from jittok.formats.sentencepiece_model import make_spec
    from jittok.tokenizer import Tokenizer

    normal, unknown = spec.PieceType.NORMAL, spec.PieceType.UNKNOWN
    letters = ["\u2581", "t", "h", "e", "x", "\u2581t", "he", "\u2581the", "xx"]
    pieces = [("<unk>", 0.0, unknown), *((piece, -float(rank), normal) for rank, piece in enumerate(letters))]
    charsmap = named_charsmap("nfkc")
    for algorithm in ("unigram", "bpe"):
        yield Tokenizer(make_spec(algorithm, pieces, normalizer=spec.SentencePieceNormalizer(charsmap)))
    for others in ((), (spec.Replace(" {2,}", " ", is_regex=True), spec.UnicodeForm("NFC"))):
        yield Tokenizer(
            spec.TokenizerSpec(
                model=spec.UnigramModel(("<unk>", *letters), tuple(-float(rank) for rank in range(len(letters) + 1)), 0),
                normalizers=(spec.Precompiled(charsmap), *others),
                pre_tokenizers=(spec.Metaspace(),),
                decoders=(spec.DecodeMetaspace(),),
            )
        )


def trained_tokenizers() -> Iterator[Any]:
    """Count words and learn merges, with every kernel of that."""
    import tempfile
    from pathlib import Path

    import jittok

    lines = [f"word{number} {'long' * (number % 9)}word{number}\n" for number in range(40_000)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines.txt"
        path.write_text("".join(lines), encoding="utf-8")
        counts = jittok.count_words(path, pre_tokenizer="gpt2")
    counts.merge(jittok.count_words(lines[:9], pre_tokenizer="gpt2"))
    base = jittok.train_bpe(counts=counts, vocab_size=60)
    jittok.train_bpe(counts=counts, base=base, vocab_size=70)
    jittok.train_wordpiece(lines[:99], pre_tokenizer="Whitespace", vocab_size=70, score="likelihood")
    words = [f"{line} \u00e9t\u00e9 " * 3 for line in lines[:500]]
    yield jittok.train_bpe(words, rules="sentencepiece", vocab_size=60)
    jittok.train_bpe(words, rules="sentencepiece", vocab_size=60, memory_limit=1)
    yield jittok.train_unigram(words, vocab_size=60)
    jittok.train_unigram(words, vocab_size=60, e_step="linear")


def generated_texts() -> Iterator[Any]:
    """Generate with every routine; there is no tokenizer to exercise."""
    import numpy as np

    import jittok
    from jittok.generation import generate, keep_top_k, sample

    def step(ids: Any, state: Any, beam_index: Any) -> Any:
        return np.zeros((len(ids), 9), np.float32), state

    tokenizer = jittok.load_default()
    generate(step, [[1]], tokenizer=tokenizer, stop_strings="?", max_new_tokens=2)
    for options in ({"num_beams": 2}, {"num_beams": 2, "do_sample": True}, {"do_sample": True, "top_p": 0.5}):
        generate(step, [[1]], max_new_tokens=2, **options)
    sample(keep_top_k(np.zeros((1, 9), np.float32), 2), seed=1)
    yield from ()


def read_json() -> None:
    """Read files of the kind tokenizer.json that are large enough for kernels."""
    import json

    import jittok

    tokens = ["a", "b", "ab", *(f"token {number}" for number in range(1000))]
    vocab = {token: number for number, token in enumerate(tokens)}
    for model in (
        {"type": "BPE", "vocab": vocab, "merges": [["a", "b"]]},
        {"type": "Unigram", "vocab": [[token, -1.5] for token in tokens], "unk_id": 0},
    ):
        jittok.load_bytes(json.dumps({"model": model, "added_tokens": []}).encode()).token_to_id("a")


def read_lines() -> None:
    """Read a file, with the kernels that cut it into lines, and take a field from these."""
    import tempfile
    from pathlib import Path

    from jittok.corpus.reading import Reading, read_documents
    from jittok.corpus.sources import Source

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines.jsonl"
        path.write_bytes(b'{"text": "a line"}\n' * 50_000)
        for _ in read_documents(Source(str(path), "jsonl"), Reading()):
            pass


def exercise(tokenizer: Any) -> None:
    """Call everything that a kernel serves once, on ASCII and on other text, short and long.

    Parameters
    ----------
    tokenizer
        A loaded tokenizer.
    """
    import numpy as np

    from jittok.tokenizer import Tokenizer

    ascii_text = (
        "The quick brown fox's 12345 jumps.\n\n  def f(x):\treturn x + 1 <end> ABBA\n"
        + "antidisestablishmentarianism" * 20
    )
    other_text = (
        "naïve café, Ελληνικά, русский текст, 中文分词、日本語 한국어 العربية 👩‍👩‍👧 e\u0301\n"
        + "длинноеслово" * 40
    )
    texts = [ascii_text, other_text, "", "x" * 100_000]
    for text in texts:
        encoding = tokenizer.encode(text, special="parse")
        _ = encoding.spans
        tokenizer.decode(encoding.ids)
        tokenizer.count(text, special="parse")
    for spans in (False, True):
        tokenizer.encode_batch(texts, spans=spans, special="parse")
        tokenizer.encode_batch(texts, texts, spans=spans, special="parse")
        tokenizer.encode_batch(texts, max_length=8, spans=spans, overflowing=True, special="parse")
    tokenizer.encode_batch(texts, max_length=8, special="parse")
    tokenizer.encode_batch([other_text * 60], special="parse")  # much for normalizers to do
    encoded = [text.encode() for text in texts]
    tokenizer.encode_batch(encoded, special="parse")
    indptr = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=indptr[1:])
    joined = b"".join(encoded)
    for data in (np.frombuffer(joined, np.uint8), np.frombuffer(bytearray(joined), np.uint8)):
        batch = tokenizer.encode_batch((data, indptr), special="parse")
        tokenizer.count_batch((data, indptr), special="parse")
        tokenizer.decode_batch(batch)
    Tokenizer(tokenizer.spec)  # what builds tables
    for name, options in (("sample_encode", {"seed": 1}), ("nbest_encode", {"n": 3}), ("entropy", {"alpha": 1.0})):
        with contextlib.suppress(UnsupportedError):  # models with one segmentation
            getattr(tokenizer, name)("the text", **options)

"""Compare jittok with the reference libraries on every document of whole corpora.

    python scripts/compare_corpora.py --data DIR [--families gpt2 cl100k ...] [--corpora english ...] [--every N] [--spans N]
    python scripts/compare_corpora.py --data DIR --all [--only NAME] ...

DIR holds ``models/`` and ``corpora/`` (files of documents with a NUL between them). Prints, for each family and
corpus, how many documents agree in their ids, and exits with 1 if any does not. ``--every 20`` takes each twentieth
document; ``--all`` takes every tokenizer.json, SentencePiece model, rank file and vocab.txt in ``models/`` whose library
reads it. ``--spans 300`` compares tokens' spans and the numbers of their words too, on that many documents of each corpus.
"""

from __future__ import annotations

import argparse
import base64
import sys
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jittok

R50K = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
CL100K = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"""
    r"""\s+(?!\S)|\s"""
)
O200K = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)


class Family(NamedTuple):
    """A model, and where its reference's ids come from: a rank file with its pattern, or a tokenizer.json."""

    file: str
    reference_file: str
    pattern: str | None


FAMILIES = {
    # The ids of gpt2's tokenizer.json are the ranks of r50k_base, and tiktoken is quicker than tokenizers.
    "gpt2": Family("bbpe/gpt2/tokenizer.json", "tiktoken/r50k_base/r50k_base.tiktoken", R50K),
    "cl100k": Family(
        "tiktoken/cl100k_base/cl100k_base.tiktoken", "tiktoken/cl100k_base/cl100k_base.tiktoken", CL100K
    ),
    "o200k": Family("tiktoken/o200k_base/o200k_base.tiktoken", "tiktoken/o200k_base/o200k_base.tiktoken", O200K),
    "llama3": Family("bbpe/llama3/tokenizer.json", "bbpe/llama3/tokenizer.json", None),
    "qwen3": Family("bbpe/qwen3/tokenizer.json", "bbpe/qwen3/tokenizer.json", None),
    "deepseek-v4": Family("bbpe/deepseek-v4/tokenizer.json", "bbpe/deepseek-v4/tokenizer.json", None),
    "bert-base-uncased": Family(
        "wordpiece/bert-base-uncased/tokenizer.json", "wordpiece/bert-base-uncased/tokenizer.json", None
    ),
    "bert-base-multilingual-cased": Family(
        "wordpiece/bert-base-multilingual-cased/tokenizer.json",
        "wordpiece/bert-base-multilingual-cased/tokenizer.json",
        None,
    ),
}
CORPORA = ("english", "multi", "code")
#: Documents given to the libraries at a time.
GROUP = 200


def documents(path: Path) -> list[str]:
    """The documents of a corpus file."""
    parts = path.read_bytes().split(b"\0")
    if parts and not parts[-1]:
        parts.pop()
    return [part.decode("utf-8", "replace") for part in parts]


def every_family(models: Path, only: str) -> dict[str, Family]:
    """A family for each file in the folder of models, by its path."""
    found: dict[str, Family] = {}
    for name in ("tokenizer.json", "*.model", "*.tiktoken", "vocab.txt"):
        for path in sorted(models.glob(f"*/*/{name}")):
            file = str(path.relative_to(models))
            if only not in file:
                continue
            pattern = None
            try:
                if name == "*.tiktoken":
                    step = jittok.load(path).spec.pre_tokenizers[0]
                    pattern = step.pattern  # type: ignore[union-attr]
                else:
                    jittok.load(path)
            except jittok.errors.JittokError as error:
                print(f"{file}: {str(error).removeprefix(str(path))[:150]}", flush=True)
                continue
            found[file] = Family(file, file, pattern)
    return found


@lru_cache(maxsize=1)  # several corpora one after another need the same
def reference_ids(models: Path, family: Family) -> Callable[[Sequence[str]], list[list[int]]]:
    """The reference library's ids of ordinary text, a group of documents at a time."""
    path = models / family.reference_file
    if path.suffix == ".model":
        from sentencepiece import SentencePieceProcessor

        processor = SentencePieceProcessor(model_file=str(path))
        return lambda texts: processor.encode(list(texts))
    if path.name == "vocab.txt":
        return bert_ids(path, load_jittok(models, family))
    if family.pattern is not None:
        import tiktoken

        ranks = {}
        for line in path.read_bytes().splitlines():
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
        encoding = tiktoken.Encoding(path.stem, pat_str=family.pattern, mergeable_ranks=ranks, special_tokens={})
        return lambda texts: [encoding.encode_ordinary(text) for text in texts]
    reference = load_reference(path)
    return lambda texts: [e.ids for e in reference.encode_batch_fast(list(texts), add_special_tokens=False)]


def bert_ids(path: Path, ours: jittok.Tokenizer) -> Callable[[Sequence[str]], list[list[int]]]:
    """The tokenizers library's ids with a vocab.txt and the options that jittok found for it."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    step = ours.spec.normalizers[0]
    options = {name: getattr(step, name) for name in ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")}
    unknown = ours.spec.model.unk_token  # type: ignore[union-attr]
    reference = Tokenizer(models.WordPiece.from_file(str(path), unk_token=unknown))
    reference.normalizer = normalizers.BertNormalizer(**options)
    reference.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return lambda texts: [e.ids for e in reference.encode_batch_fast(list(texts), add_special_tokens=False)]


@lru_cache(maxsize=1)
def load_reference(path: Path) -> Any:
    """The tokenizers library's tokenizer, without stored truncation and padding."""
    from tokenizers import Tokenizer

    reference = Tokenizer.from_file(str(path))
    reference.no_truncation()
    reference.no_padding()
    return reference


@lru_cache(maxsize=1)
def load_jittok(models: Path, family: Family) -> jittok.Tokenizer:
    """The same model in jittok."""
    return jittok.load(models / family.file)


def compare_ids(models: Path, family: Family, texts: Sequence[str]) -> list[int]:
    """Numbers of the documents whose ids differ."""
    ours, reference = load_jittok(models, family), reference_ids(models, family)
    special = "parse" if family.reference_file.endswith(".json") else "text"
    differing = []
    for begin in range(0, len(texts), GROUP):
        group = texts[begin : begin + GROUP]
        batch = ours.encode_batch(group, add_special_tokens=False, special=special)
        for i, expected in enumerate(reference(group)):
            if batch[i].ids.tolist() != list(expected):
                differing.append(begin + i)
    return differing


def compare_spans(models: Path, family: Family, texts: Sequence[str]) -> list[tuple[int, int, list[int], list[int]]]:
    """Document, token, jittok's span and tokenizers' span, wherever they differ (tokenizer.json families).

    A token of -1 stands for ids that differ, -2 for word ids that do.
    """
    ours, reference = load_jittok(models, family), load_reference(models / family.file)
    differing = []
    for i, text in enumerate(texts):
        expected = reference.encode(text, add_special_tokens=False)
        actual = ours.encode(text, add_special_tokens=False)
        if actual.ids.tolist() != expected.ids:
            differing.append((i, -1, [], []))
            continue
        if actual.word_ids.tolist() != [-1 if word is None else word for word in expected.word_ids]:
            differing.append((i, -2, [], []))
        spans = actual.spans.tolist()
        for k, (a, b) in enumerate(zip(spans, expected.offsets, strict=True)):
            if a != list(b):
                differing.append((i, k, a, list(b)))
    return differing


def main() -> int:
    """Run the comparison; see the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with models/ and corpora/")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--all", action="store_true", help="every model in the folder")
    parser.add_argument("--only", default="", help="with --all: those whose path has this in it")
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA))
    parser.add_argument("--every", type=int, default=1, help="take each n-th document")
    parser.add_argument(
        "--spans", type=int, default=0, help="documents whose spans and word ids are compared (where tokenizers has them)"
    )
    arguments = parser.parse_args()
    failed = False
    models = arguments.data / "models"
    families = FAMILIES if not arguments.all else every_family(models, arguments.only)
    names = list(families) if arguments.all else arguments.families
    print(f"{'family':28} {'corpus':10} {'documents':>9} {'differ':>7} {'seconds':>8}")
    corpora = {corpus: documents(arguments.data / "corpora" / f"{corpus}.txt") for corpus in arguments.corpora}
    for name in names:
        for corpus, texts in corpora.items():
            started = time.perf_counter()
            sample = texts[:: arguments.every]
            differing = compare_ids(models, families[name], sample)
            failed |= bool(differing)
            seconds = time.perf_counter() - started
            print(f"{name:28} {corpus:10} {len(sample):9} {len(differing):7} {seconds:8.1f}", flush=True)
            for i in differing[:5]:
                print(f"    document {i * arguments.every}")
            if arguments.spans and families[name].file.endswith(".json"):
                step = max(1, len(texts) // arguments.spans)
                spans = compare_spans(models, families[name], texts[::step][: arguments.spans])
                print(f"{name:28} {corpus:10} spans that differ: {len(spans)}", flush=True)
                for row in spans[:20]:
                    print("    document {}, token {}: {} here, {} in tokenizers".format(*row))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

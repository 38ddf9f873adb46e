"""Training on random corpora, with random options, against the trainers of tokenizers and sentencepiece.

    python scripts/compare_random_training.py bpe 0 1000          # tokenizers' BpeTrainer, seeds 0 to 999
    python scripts/compare_random_training.py wordpiece 0 1000    # tokenizers' WordPieceTrainer
    python scripts/compare_random_training.py sentencepiece 0 1000
    python scripts/compare_random_training.py unigram 0 1000

A seed gives a small corpus of odd characters (marks, digits, runs, blank lines, texts of special tokens) and options.
tokenizers numbers some letters, and chooses among equally rare ones, by a random hash: where jittok's result differs, it
learns once more with the letters in the order of that run, and all else must then be the same. Differences are printed.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import warnings
from collections import Counter
from collections.abc import Callable
from itertools import takewhile
from typing import Any

import jittok
from jittok.build.merge_tables import byte_alphabet
from jittok.errors import JittokError
from jittok.formats import sentencepiece_model

POOL = (
    *("a", "b", "c", "ab", "A", "  ", "é", "e\u0301", "ß", "İ", "中", "日", "か", "カ", "ー", "д", "Ω", "ω", "ا", "ب", "ﬁ"),
    *("1", "2", "12", "٣", "²", "...", "!?", "-", "\t", "\u3000", "\u2028", "\u200d", "\ufeff", "\x00", "\x1f", "\ufffd"),
    *("👩\u200d👩\u200d👧", "\u0301", "▁", "##a", "</w>", "<s>", "<unk>", "[UNK]", "z" * 20, "aaaa", "\U00020000", "\n"),
)
PRE_TOKENIZERS = {
    "WhitespaceSplit": {"type": "WhitespaceSplit"},
    "Whitespace": {"type": "Whitespace"},
    "ByteLevel": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    "BertPreTokenizer": {"type": "BertPreTokenizer"},
    "Metaspace": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    "Digits": {"type": "Digits", "individual_digits": True},
    "Punctuation": {"type": "Punctuation", "behavior": "Isolated"},
    "none": None,
}
NORMALIZERS = {"none": None, "NFKC": {"type": "NFKC"}, "Lowercase": {"type": "Lowercase"}, "NFD": {"type": "NFD"}}


def corpus(draw: random.Random) -> list[str]:
    """Some lines, of few different strings or of many."""
    strings = draw.sample(POOL, draw.choice([2, 3, 5, 9, len(POOL)]))
    return [
        "".join(draw.choice(strings) + " " * (draw.random() < 0.3) for _ in range(draw.randrange(12)))
        for _ in range(draw.randrange(1, 60))
    ]


def chosen(draw: random.Random, choices: dict[str, tuple[float, tuple[Any, ...]]]) -> dict[str, Any]:
    """Options: for each name how often it is given, and its values."""
    return {name: draw.choice(values) for name, (often, values) in choices.items() if draw.random() < often}


# ------------------------------------------------------------------------------------------------------- tokenizers

OF_TOKENIZERS: dict[str, tuple[float, tuple[Any, ...]]] = {
    "vocab_size": (1, (5, 20, 50, 100, 1000)),
    "min_frequency": (0.4, (0, 1, 2, 3)),
    "limit_alphabet": (0.3, (0, 1, 3, 5, 10)),
    "max_token_length": (0.2, (2, 3, 8)),
    "initial_alphabet": (0.3, (["q"], ["a", "b"], ["中", "Z", "Y"])),
    "special_tokens": (0.4, (["<s>", "[UNK]"], ["ab"], ["a", "<s>"], ["##a", "z"], ["aa", "aaaa"])),
    "end_of_word_suffix": (0.2, ("</w>", "a")),
}


def tokenizers_result(kind: str, lines: list[str], steps: dict[str, Any], options: dict[str, Any]) -> Any:
    """Tokens by id, and merges, of tokenizers' trainer."""
    import tokenizers

    model = tokenizers.models.BPE() if kind == "bpe" else tokenizers.models.WordPiece(unk_token="[UNK]")
    file = json.loads(tokenizers.Tokenizer(model).to_str())
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps({**file, **steps}))
    options = dict(options)
    if "max_token_length" in options:  # one letter less than it says
        options["max_token_length"] += 1
    make = tokenizers.trainers.BpeTrainer if kind == "bpe" else tokenizers.trainers.WordPieceTrainer
    tokenizer.train_from_iterator(lines, make(show_progress=False, **options))
    model = json.loads(tokenizer.to_str())["model"]
    vocab = model["vocab"]
    return sorted(vocab, key=vocab.get), [tuple(pair) for pair in model.get("merges", ())]


def own_result(kind: str, lines: list[str] | None, steps: dict[str, Any], options: dict[str, Any], **more: Any) -> Any:
    """Tokens by id, and merges, of jittok."""
    train: Callable[..., Any] = jittok.train_bpe if kind == "bpe" else jittok.train_wordpiece
    model = train(lines, **steps, **{**options, **more}).spec.model
    return sorted(model.vocab, key=model.vocab.get), [tuple(pair) for pair in getattr(model, "merges", ())]


def kept_words(lines: list[str], steps: dict[str, Any], letters: set[str]) -> Any:
    """Counts of words without the letters that a run of tokenizers has left out."""
    found: Counter[str] = Counter()
    counts = jittok.count_words(lines, **steps)
    letter_of = {byte: letter for letter, byte in byte_alphabet().items()} if counts.settings.get("byte_level") else None
    for begin, end, count in zip(counts.indptr[:-1], counts.indptr[1:], counts.counts.tolist(), strict=True):
        word = counts.data[begin:end].tobytes()
        spelled = "".join(map(letter_of.__getitem__, word)) if letter_of else word.decode()
        found["".join(letter for letter in spelled if letter in letters)] += count
    found.pop("", None)
    return jittok.WordCounts.from_mapping(found)


def compare_tokenizers(kind: str, draw: random.Random) -> tuple[str, str]:
    """What came of one corpus, and a message."""
    lines = corpus(draw)
    name, normal = draw.choice(list(PRE_TOKENIZERS)), draw.choice(list(NORMALIZERS))
    steps = {"normalizer": NORMALIZERS[normal], "pre_tokenizer": PRE_TOKENIZERS[name]}
    options = chosen(draw, OF_TOKENIZERS)
    options.setdefault("special_tokens", [])
    if draw.random() < 0.2:
        options["continuing_subword_prefix"] = draw.choice(["##", "@@", "a"])
    if kind != "bpe":
        options.pop("max_token_length", None)  # tokenizers' trainer of WordPiece has none
    if "max_token_length" in options:  # which counts prefixes in one of the two
        options.pop("end_of_word_suffix", None)
        options["continuing_subword_prefix"] = ""
    expected = tokenizers_result(kind, lines, steps, options)
    try:
        got = own_result(kind, lines, steps, options)
    except JittokError as error:
        if expected[0] == options["special_tokens"]:
            return "no words", ""
        return "error", f"{error} (tokenizers: {len(expected[0])} tokens)"
    if got == expected:
        return "equal", ""
    prefix = options.get("continuing_subword_prefix", "##" if kind != "bpe" else "")
    suffix = options.get("end_of_word_suffix", "")
    special = options["special_tokens"]

    def is_letter(token: str) -> bool:
        return token in special or len(token.removeprefix(prefix).removesuffix(suffix)) <= 1 or len(token) == 1

    tokens, merges = expected
    if kind == "bpe" and not prefix:
        n_merged = len({a + b for a, b in merges} - set(special))
        first = max(tokens[: len(tokens) - n_merged], list(takewhile(is_letter, tokens)), key=len)
    else:
        first = list(takewhile(is_letter, tokens))
    more: dict[str, Any] = {"special_tokens": first}
    own_letters = {token for token in takewhile(is_letter, got[0]) if len(token) == 1}
    letters = {token for token in first if len(token) == 1}
    if own_letters != letters:
        is_limited = options.get("limit_alphabet", 1 << 30) <= max(len(own_letters), len(letters))
        if not is_limited:
            return "different", f"letters {own_letters ^ letters} {steps} {options}"
        if prefix or suffix:
            return "other letters by chance, not followed", ""
        counts = kept_words(lines, steps, letters)
        if not len(counts):
            return "other letters by chance, not followed", ""
        more.update(limit_alphabet=None, initial_alphabet=[], counts=counts)
        again = own_result(kind, None, {}, options, **more)
    else:
        again = own_result(kind, lines, steps, options, **more)
    if again == expected:
        return "equal but for chance", ""
    if kind != "bpe" and "counts" not in more:  # its merges are not told
        merges = own_result("bpe", lines, steps, {"continuing_subword_prefix": prefix, **options}, **more)[1]
    if {a + b.removeprefix(prefix) for a, b in merges} & set(first) - set(special):
        return "merges that make letters: tokenizers goes by counts out of date", ""
    at = next((i for i, (a, b) in enumerate(zip(again[0], tokens, strict=False)) if a != b), min(len(again[0]), len(tokens)))
    return "different", (
        f"{name} {normal} {options}\n   token {at} of {len(again[0])}, {len(tokens)}: "
        f"{again[0][at:at + 4]} and {tokens[at:at + 4]}; merges {len(again[1])}, {len(merges)}; other ones "
        f"{[(i, *pair) for i, pair in enumerate(zip(again[1], merges, strict=False)) if pair[0] != pair[1]][:5]}"
    )


# ---------------------------------------------------------------------------------------------------- sentencepiece

OF_SENTENCEPIECE: dict[str, tuple[float, tuple[Any, ...]]] = {
    "vocab_size": (1, (10, 20, 40, 80)),
    "character_coverage": (0.4, (0.98, 0.99, 1.0)),
    "required_chars": (0.15, ("é漢q", "ab")),
    "user_defined_symbols": (0.25, (["ab"], ["a", "aa"], ["<s>"], ["▁a", "12"], ["!?", "中日"])),
    "control_symbols": (0.15, (["<sep>"], ["b"])),
    "split_by_whitespace": (0.2, (False,)),
    "split_by_unicode_script": (0.25, (False,)),
    "split_by_number": (0.25, (False,)),
    "split_digits": (0.2, (True,)),
    "treat_whitespace_as_suffix": (0.2, (True,)),
    "allow_whitespace_only_pieces": (0.2, (True,)),
    "remove_extra_whitespaces": (0.3, (False,)),
    "max_sentencepiece_length": (0.2, (1, 2, 4)),
    "max_sentence_length": (0.1, (20,)),
    "add_dummy_prefix": (0.15, (False,)),
    "normalization_rule_name": (0.3, ("identity", "nfkc", "nfkc_cf", "nmt_nfkc_cf")),
    "pretokenization_delimiter": (0.1, ("-", "a")),
    "pad_id": (0.1, (3,)),
}


def compare_sentencepiece(kind: str, draw: random.Random) -> tuple[str, str]:
    """What came of one corpus, and a message."""
    import sentencepiece

    lines = corpus(draw)
    options = chosen(draw, OF_SENTENCEPIECE)
    if draw.random() < 0.2:
        options.update(byte_fallback=True, vocab_size=options["vocab_size"] + 256)
    if draw.random() < 0.7:
        options["hard_vocab_limit"] = False
    model_type, threads = ("bpe" if kind == "sentencepiece" else "unigram"), draw.choice([1, 2, 16])
    out = io.BytesIO()
    expected: Any
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=out,
            model_type=model_type,
            minloglevel=4,
            num_threads=threads,
            **options,
        )
        model = sentencepiece_model.read(out.getvalue(), "sentencepiece").model
        expected = list(zip(model.pieces, model.scores, model.types, strict=True))
    except (RuntimeError, OSError) as error:
        expected = str(error)
    try:
        if kind == "sentencepiece":
            trained = jittok.train_bpe(lines, rules="sentencepiece", **options)
        else:
            trained = jittok.train_unigram(lines, reference_threads=threads, **options)
        model = trained.spec.model
        got: Any = list(zip(model.pieces, model.scores, model.types, strict=True))
    except JittokError as error:
        got = str(error)
    if isinstance(got, str) and isinstance(expected, str):
        return "refused by both", ""
    if isinstance(got, str) or isinstance(expected, str):
        return "refused by one", f"{options}\n   jittok: {got if isinstance(got, str) else len(got)}; reference: " + (
            expected if isinstance(expected, str) else str(len(expected))
        )
    if got == expected:
        return "equal", ""
    at = next((i for i, (a, b) in enumerate(zip(got, expected, strict=False)) if a != b), min(len(got), len(expected)))
    return "different", f"{options} threads {threads}\n   piece {at}: {got[at:at + 4]} and {expected[at:at + 4]}"


def main() -> int:
    """Command line entry."""
    parser = argparse.ArgumentParser(description="Compare trainers on random corpora.")
    parser.add_argument("kind", choices=("bpe", "wordpiece", "sentencepiece", "unigram"))
    parser.add_argument("first", type=int, help="first seed")
    parser.add_argument("last", type=int, help="seed behind the last one")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    compare = compare_tokenizers if options.kind in ("bpe", "wordpiece") else compare_sentencepiece
    found: Counter[str] = Counter()
    for seed in range(options.first, options.last):
        what, message = compare(options.kind, random.Random(seed))
        found[what] += 1
        if message:
            print(f"{options.kind} {seed}: {what}: {message}", flush=True)
    print(f"{options.kind}: {sum(found.values())} corpora:", ", ".join(f"{what} {n}" for what, n in found.most_common()))
    return int("different" in found)


if __name__ == "__main__":
    raise SystemExit(main())

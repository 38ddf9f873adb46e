"""Repeat the experiment of the Fast WordPiece paper (Song et al., 2021, arXiv 2012.15524) with jittok's kernels.

    python scripts/wordpiece_experiment.py --models MODELS --corpora CORPORA --out docs/wordpiece.md --plot docs/img

MODELS holds ``wordpiece/<name>/vocab.txt`` and ``tokenizer.json`` of bert-base-uncased and
bert-base-multilingual-cased; CORPORA holds ``english.txt`` and ``multi.txt``, UTF-8, documents separated by one NUL
byte. The tables replace what stands in the file between the two marks; the plots are PNG files in the folder.

How it is measured
------------------
- Everything in one process and one thread, in turns, round by round; CPU time; the best round counts.
- Nothing is cached: the same kernels run on every word. nanotoken has a cache of words, which is emptied before each
  round, and fills while it runs.
- Single words: jittok's kernels take all words of a set in one call, as bytes in an array. tokenizers has a Python call
  for each word, ``models.WordPiece.tokenize``, whose cost (about 0.3 us) is in its time.
- Sentences are lines of text. The many languages are the translations of the Universal Declaration of Human Rights in
  ``multi.txt``: documents of its length, but for a translation of the bible that is in a wrong encoding.
- Sentences go from list[str] to ids, everything included. jittok and nanotoken give arrays, tokenizers lists of ids (from
  ``encode_batch_fast``, its fastest call). What the normalizer does (clean-up, blanks around Chinese characters) is done
  beforehand; tokenizers runs without a normalizer, nanotoken with it, on text that it leaves as it is.
- All ids are compared first.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import importlib.util
import math
import os
import platform
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jittok.build.wordpiece_tables import build_wordpiece_tables
from jittok.kernels.wordpiece import lin_max_match, max_match, wordpiece_end_to_end
from jittok.tables import read_only
from jittok.text import texts_from
from jittok.unicode import bert, classes, intervals

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
#: Speedups that the paper reports for its end-to-end tokenizer.
PAPER = {"HuggingFace tokenizers": 8.2, "TF Text": 5.1}
LENGTHS = [1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100, 150, 200, 300, 500, 700, 1000]
#: tokenizers' MaxMatch copies what it looks up, and is not asked for longer words.
LONGEST_TOKENIZERS = 300
#: Characters of a translation of the Universal Declaration of Human Rights.
DECLARATION = (7_500, 22_000)
#: Characters of all words of one length.
WORD_CHARACTERS = 100_000


# ------------------------------------------------------------------------------------------------------- inputs


@dataclasses.dataclass
class Model:
    vocabulary: dict[str, int]
    tables: Any
    path: Path


def load_model(folder: Path, name: str, max_input: int = 100) -> Model:
    text = (folder / "wordpiece" / name / "vocab.txt").read_text(encoding="utf-8")
    vocabulary = {token: number for number, token in enumerate(text.removesuffix("\n").split("\n"))}
    space = classes.binary_property("whitespace")
    assert space is not None
    tables = build_wordpiece_tables(
        vocabulary,
        unknown=vocabulary["[UNK]"],
        max_input=max_input,
        space=space,
        isolated=intervals.union(bert.punctuation(), bert.CHINESE),
    )
    return Model(vocabulary, tables, folder / "wordpiece" / name / "tokenizer.json")


def flatten(texts: list[str]) -> tuple[Any, Any, Any]:
    """Texts as the kernels take them."""
    encoded = [text.encode() for text in texts]
    ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
    return read_only(np.frombuffer(b"".join(encoded), np.uint8)), read_only(starts), read_only(ends)


class Output:
    """The arrays that kernels write to."""

    def __init__(self, n_bytes: int, n_texts: int) -> None:
        self.ids = np.zeros(n_bytes, np.int32)
        self.lengths = np.zeros(n_bytes, np.int32)
        self.begins = np.zeros(0, np.int64)
        self.ends = np.zeros(n_texts, np.int64)


def made_words(text: str, length: int) -> list[str]:
    """Words of one length: English ones, joined and cut."""
    known = sorted(set(re.findall("[a-z]{2,}", text.lower())))
    generator = random.Random(length)
    made = []
    for _ in range(max(20, WORD_CHARACTERS // length // 5)):
        word = ""
        while len(word) < length:
            word += generator.choice(known)
        made.append(word[:length])
    return made


def sentences(path: Path, normalize: Callable[[str], str], shortest: int, longest: int) -> list[list[str]]:
    """Lines, as long as sentences are, of each document of some length in characters that is in order."""
    documents = []
    for document in path.read_text(encoding="utf-8").split("\0"):
        if not shortest <= len(document) <= longest or re.search("[\x80-\x9f]", document):
            continue
        lines = [" ".join(line.split()) for line in normalize(document.replace("\n", "\x1e")).split("\x1e")]
        lines = [line for line in lines if 20 <= len(line) <= 1000]
        if len(lines) >= 3:
            documents.append(lines)
    return documents


# ------------------------------------------------------------------------------------------------------ measuring


def cpu_seconds(function: Callable[[], Any]) -> float:
    gc.disable()
    begin = time.process_time()
    function()
    seconds = time.process_time() - begin
    gc.enable()
    return seconds


def best_of(
    rounds: int, functions: dict[str, Callable[[], Any]], before: Callable[[], Any] | None = None
) -> dict[str, float]:
    """The least CPU seconds of each, in turns."""
    best = dict.fromkeys(functions, math.inf)
    for _ in range(rounds):
        for name, function in functions.items():
            if before is not None:
                before()
            best[name] = min(best[name], cpu_seconds(function))
    return best


def check(name: str, found: Any, expected: Any) -> None:
    if not np.array_equal(found, expected):
        raise SystemExit(f"{name}: ids differ from those of tokenizers")


def words_by_length(model: Model, english: str, rounds: int) -> list[tuple[int, dict[str, float]]]:
    """Nanoseconds for a word of each length."""
    from tokenizers import models

    reference = models.WordPiece(model.vocabulary, unk_token="[UNK]", max_input_chars_per_word=1 << 20)
    rows = []
    for length in LENGTHS:
        words = made_words(english, length)
        data, starts, ends = flatten(words)
        out = Output(len(data), len(words))
        repeats = max(1, 20_000 // (len(words) * length // 50 + 1))

        def run(kernel: Any, repeats: int, data: Any = data, starts: Any = starts, ends: Any = ends, out: Any = out) -> Any:
            for _ in range(repeats):
                n = kernel(model.tables, data, starts, ends, out.ids, out.lengths, out.ends)
            return out.ids[:n]

        slow = run(max_match, 1).copy()
        check("LinMaxMatch", run(lin_max_match, 1), slow)
        kernels = {"MaxMatch": max_match, "LinMaxMatch": lin_max_match}
        times = best_of(
            rounds, {name: lambda run=run, k=kernel, n=repeats: run(k, n) for name, kernel in kernels.items()}
        )
        times = {name: seconds / repeats for name, seconds in times.items()}
        if length <= LONGEST_TOKENIZERS:
            tokenize = reference.tokenize
            check("tokenizers", [token.id for word in words for token in tokenize(word)], slow)
            times |= best_of(rounds, {"tokenizers": lambda words=words, f=tokenize: [f(word) for word in words]})
        rows.append((length, {name: 1e9 * seconds / len(words) for name, seconds in times.items()}))
        print(length, {name: round(ns) for name, ns in rows[-1][1].items()}, flush=True)
    return rows


@dataclasses.dataclass
class Rate:
    """What one set of sentences took."""

    n_bytes: int
    n_words: int
    n_sentences: int
    words: dict[str, float]  # CPU seconds in all
    text: dict[str, float]


def sentences_of(model: Model, lines: list[str], rounds: int, nano: Any) -> Rate:
    from tokenizers import Tokenizer, models, pre_tokenizers

    reference_model = models.WordPiece(model.vocabulary, unk_token="[UNK]")
    reference = Tokenizer(reference_model)
    reference.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words = [word for line in lines for word, _ in reference.pre_tokenizer.pre_tokenize_str(line)]
    data, starts, ends = flatten(words)
    out = Output(len(data), len(words))
    tables = model.tables

    def kernel(function: Any) -> Any:
        return out.ids[: function(tables, data, starts, ends, out.ids, out.lengths, out.ends)]

    size = sum(len(line.encode()) for line in lines)
    whole = Output(size, len(lines))

    def end_to_end() -> Any:
        data, indptr, *_ = texts_from(lines)
        n = wordpiece_end_to_end(
            tables, data, indptr[:-1], indptr[1:], whole.ids, whole.lengths, whole.begins, whole.ends
        )
        return whole.ids[:n]

    def tokenizers_text() -> Any:
        return [encoding.ids for encoding in reference.encode_batch_fast(lines, add_special_tokens=False)]

    def tokenizers_words() -> Any:
        return [reference_model.tokenize(word) for word in words]

    single = {"MaxMatch": lambda: kernel(max_match), "LinMaxMatch": lambda: kernel(lin_max_match)}
    text = {"jittok": end_to_end, "tokenizers": tokenizers_text}
    expected = [identifier for ids in tokenizers_text() for identifier in ids]
    for name, function in (*single.items(), ("jittok", end_to_end)):
        check(name, function(), expected)
    before = None
    if nano is not None:
        before = nano.clear_cache
        text["nanotoken"] = lambda: nano.encode_batch(lines, add_special_tokens=False, parallel=False)
        check("nanotoken", text["nanotoken"]().ids, expected)
    return Rate(
        size,
        len(words),
        len(lines),
        best_of(rounds, {**single, "tokenizers": tokenizers_words}),
        best_of(rounds, text, before),
    )


# ------------------------------------------------------------------------------------------------------ report


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def growth(rows: list[tuple[int, dict[str, float]]], name: str, first: int, last: int) -> float:
    """The exponent of the length with which time grows between two lengths."""
    times = dict(rows)
    return math.log(times[last][name] / times[first][name]) / math.log(last / first)


def report_words(rows: list[tuple[int, dict[str, float]]]) -> str:
    shown = [1, 5, 10, 20, 50, 100, 200, 300, 500, 1000]
    cells = []
    for length, times in rows:
        if length in shown:
            cell = [str(length), *(f"{times[name]:,.0f}" for name in ("MaxMatch", "LinMaxMatch"))]
            cell += [f"{times['MaxMatch'] / times['LinMaxMatch']:.1f}x"]
            reference = times.get("tokenizers")
            cell += ["", ""] if reference is None else [f"{reference:,.0f}", f"{reference / times['LinMaxMatch']:.0f}x"]
            cells.append(cell)
    grown = {name: growth(rows, name, 100, 1000) for name in ("MaxMatch", "LinMaxMatch")}
    lines = [
        "### Single words by length",
        "",
        "bert-base-uncased, English words joined and cut to each length, nanoseconds for each word.",
        "",
        table(["characters", "MaxMatch", "LinMaxMatch", "ratio", "tokenizers", "its ratio to LinMaxMatch"], cells),
        "",
        f"From 100 to 1,000 characters the time grows with the length to the power of {grown['MaxMatch']:.2f} in"
        f" MaxMatch and {grown['LinMaxMatch']:.2f} in LinMaxMatch.",
        "",
        "![Time by length](img/wordpiece-words.png)",
    ]
    return "\n".join(lines)


def report_sentences(name: str, rate: Rate, title: str) -> list[str]:
    single = [["", "ns a word", "ratio of tokenizers to it"]]
    for key in ("MaxMatch", "LinMaxMatch", "tokenizers"):
        ratio = rate.words["tokenizers"] / rate.words[key]
        single.append([key, f"{1e9 * rate.words[key] / rate.n_words:.0f}", f"{ratio:.1f}"])
    text = [["", "us a sentence", "MB/s", "ratio of tokenizers to it"]]
    for key, seconds in rate.text.items():
        ratio = rate.text["tokenizers"] / seconds
        text.append([key, f"{1e6 * seconds / rate.n_sentences:.2f}", f"{rate.n_bytes / seconds / 1e6:.1f}", f"{ratio:.1f}"])
    return [
        f"### {title}",
        "",
        f"{name}; {rate.n_sentences:,} sentences, {rate.n_words:,} words, {rate.n_bytes / 1e6:.1f} MB.",
        "",
        "One word at a time:",
        "",
        table(single[0], single[1:]),
        "",
        "End to end, from strings to ids:",
        "",
        table(text[0], text[1:]),
        "",
    ]


def plot_words(rows: list[tuple[int, dict[str, float]]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    linear, logarithmic = figure.subplots(1, 2)
    for name, style in (("MaxMatch", "o-"), ("LinMaxMatch", "s-"), ("tokenizers", "^-")):
        points = [(length, times[name] / 1000) for length, times in rows if name in times]
        logarithmic.plot(*zip(*points, strict=True), style, label=name, markersize=3)
        if name != "tokenizers":
            points = [point for point in points if point[0] <= 100]
            linear.plot(*zip(*points, strict=True), style, label=name, markersize=3)
    logarithmic.set_xscale("log")
    logarithmic.set_yscale("log")
    linear.set_title("up to 100 characters")
    logarithmic.set_title("up to 1,000, both axes logarithmic")
    for axes in (linear, logarithmic):
        axes.set_xlabel("characters of the word")
        axes.set_ylabel("microseconds a word")
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, dpi=110)


def plot_languages(rates: list[Rate], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    axes = figure.subplots()
    ordered = sorted(rates, key=lambda rate: rate.text["tokenizers"] / rate.text["jittok"])
    for name, style in (("jittok", "s"), ("nanotoken", "^")):
        values = [rate.text["tokenizers"] / rate.text[name] for rate in ordered if name in rate.text]
        if values:
            axes.plot(range(len(values)), values, style, label=name, markersize=3)
    axes.axhline(PAPER["HuggingFace tokenizers"], color="gray", linestyle="--", label="Fast WordPiece, as published")
    axes.set_xlabel("translations of one document, by jittok's speed")
    axes.set_ylabel("times as fast as tokenizers")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=110)


@dataclasses.dataclass
class Results:
    """Everything that was measured."""

    by_length: list[tuple[int, dict[str, float]]]
    english: Rate
    many: Rate  # sentences of all documents together
    documents: list[Rate]  # one document each

    def ratio(self, rate: Rate) -> float:
        """How many times jittok is as fast as tokenizers, end to end."""
        return rate.text["tokenizers"] / rate.text["jittok"]


def experiment(models: Path, corpora: Path, rounds: int, most: int, most_documents: int | None = None) -> Results:
    """Measure everything; of each text at most so many sentences."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers.normalizers import BertNormalizer

    lower = BertNormalizer(clean_text=True, handle_chinese_chars=True, lowercase=True)
    cased = BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=False)
    english = (corpora / "english.txt").read_text(encoding="utf-8")[:3_000_000]

    def clean(normalizer: Any) -> Callable[[str], str]:
        # the record separator, which clean-up would remove, stands for line ends
        return lambda text: "\x1e".join(normalizer.normalize_str(part) for part in text.split("\x1e"))

    nano: dict[str, Any] = dict.fromkeys(("uncased", "cased"))
    if importlib.util.find_spec("nanotoken") is not None:
        import nanotoken

        for key, name in (("uncased", "bert-base-uncased"), ("cased", "bert-base-multilingual-cased")):
            nano[key] = nanotoken.Tokenizer(models / "wordpiece" / name / "tokenizer.json")
    else:
        print("nanotoken is not installed and is left out")

    by_length = words_by_length(load_model(models, "bert-base-uncased", 1 << 20), english, rounds)
    uncased = load_model(models, "bert-base-uncased")
    multilingual = load_model(models, "bert-base-multilingual-cased")
    generator = random.Random(1)

    lines = [line for document in sentences(corpora / "english.txt", clean(lower), 0, 1 << 30) for line in document]
    generator.shuffle(lines)
    on_english = sentences_of(uncased, lines[:most], rounds, nano["uncased"])
    documents = sentences(corpora / "multi.txt", clean(cased), *DECLARATION)
    lines = [line for document in documents for line in document]
    generator.shuffle(lines)
    on_multi = sentences_of(multilingual, lines[:most], rounds, nano["cased"])
    rates = [sentences_of(multilingual, document, rounds, nano["cased"]) for document in documents[:most_documents]]
    return Results(by_length, on_english, on_multi, rates)


def report(results: Results) -> list[str]:
    """What came out, as lines of Markdown."""
    ratios = sorted(map(results.ratio, results.documents))
    linear = results.english.words["tokenizers"] / results.english.words["LinMaxMatch"]
    published = ", ".join(f"{value} times {name}" for name, value in PAPER.items())
    return [
        report_words(results.by_length),
        "",
        *report_sentences("bert-base-uncased", results.english, "English sentences"),
        *report_sentences(
            "bert-base-multilingual-cased", results.many, f"{len(results.documents)} documents, many languages"
        ),
        f"End to end on many languages: {results.ratio(results.many):.1f} times tokenizers. The paper reports {published}.",
        "",
        f"English: LinMaxMatch alone, word by word, {linear:.1f} times tokenizers' model; end to end"
        f" {results.ratio(results.english):.1f} times tokenizers.",
        "",
        f"The {len(ratios)} documents one by one: from {ratios[0]:.1f} to {ratios[-1]:.1f} times tokenizers, half of them"
        f" above {ratios[len(ratios) // 2]:.1f}.",
        "",
        "![Speed by language](img/wordpiece-languages.png)",
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--corpora", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="Markdown file with the two marks")
    parser.add_argument("--plot", type=Path, help="folder for the plots; needs matplotlib")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=20_000, help="the most of each text")
    options = parser.parse_args()
    results = experiment(options.models, options.corpora, options.rounds, options.sentences)
    machine = f"{platform.machine()}, Python {platform.python_version()}, one thread, CPU time."
    lines = [BEGIN, "", machine, "", *report(results), END]
    print("\n".join(lines))
    text = options.out.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    options.out.write_text(before + "\n".join(lines) + rest.split(END)[1], encoding="utf-8")
    if options.plot is not None:
        options.plot.mkdir(parents=True, exist_ok=True)
        plot_words(results.by_length, options.plot / "wordpiece-words.png")
        plot_languages(results.documents, options.plot / "wordpiece-languages.png")


if __name__ == "__main__":
    main()

"""Repeat the measurements that jittok's documentation rests on, each as a table, a plot and a sentence.

    python scripts/reproduce.py                      # all of them; an hour and a half
    python scripts/reproduce.py bpe training         # some of them
    python scripts/reproduce.py --quick --out /tmp/x # small inputs, one round: whether everything runs, no result

| name | what | needs |
|---|---|---|
| bpe | four encoders of byte pairs on Hamlet, 1 to 1,000 lines | nothing |
| unigram | nested loops against a trie, by length of text | models, corpora |
| wordpiece | MaxMatch against LinMaxMatch by length of word; many languages | models, corpora |
| training | textbook, incremental and heap trainers, by text and by vocabulary | corpora for the large part |
| peers | other libraries: throughput, threads, start-up, hard inputs | models, corpora |

Results go to ``docs/results`` (``--out``): NAME.md, NAME.svg, NAME.json with the bare numbers. ``--data`` (default: the
environment variable JITTOK_TEST_DATA) is a folder with ``models/`` and ``corpora/``, as ``docs/results/README.md``
describes it; without it, what needs it is left out, which the last lines say. Needs ``pip install ".[benchmark]"``;
libraries that are not installed are left out.

Times are processor time of the process, one thread, unless a table says otherwise. All that is compared takes turns in
one process (peers: in processes of their own), and the best round counts. Published figures are from other machines,
so that the ratios within a column are what can be compared.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import importlib.util
import json
import lzma
import math
import os
import re
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import compare_peers
import compare_training
import numpy as np
import unigram_experiment
import wordpiece_experiment
from unigram_experiment import cpu_seconds, table

ROOT = Path(__file__).resolve().parents[1]
HAMLET = ROOT / "jittok" / "data" / "hamlet.txt"
ENGLISH = ROOT / "scripts" / "default_tokenizer" / "corpus" / "english.txt.xz"
LIBRARIES = ("tokenizers", "sentencepiece", "tiktoken", "gigatoken", "nanotoken", "splintr-rs")


@dataclasses.dataclass
class Options:
    """What a measurement is given."""

    data: Path | None
    out: Path
    quick: bool

    @property
    def models(self) -> Path:
        return self._folder("models")

    @property
    def corpora(self) -> Path:
        return self._folder("corpora")

    def _folder(self, name: str) -> Path:
        if self.data is None or not (self.data / name).is_dir():
            raise NotThere(f"needs {name}/ in the folder that --data or JITTOK_TEST_DATA names")
        return self.data / name


class NotThere(Exception):
    """Something that a measurement needs is not there."""


@dataclasses.dataclass
class Result:
    """What came out of one measurement."""

    title: str
    shows: str  # a sentence or two
    body: list[str]  # Markdown
    numbers: Any
    figure: str  # alternative text of the plot


def new_figure(columns: int) -> tuple[Any, Any]:
    """A figure and its axes."""
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "jittok"
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * columns, 3.8), layout="constrained")
    return figure, np.atleast_1d(figure.subplots(1, columns))


def save(figure: Any, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    # Matplotlib leaves blanks at the ends of lines.
    path.write_text("\n".join(line.rstrip() for line in path.read_text(encoding="utf-8").split("\n")), encoding="utf-8")


def power(times: dict[int, float], first: int, last: int) -> float:
    """The exponent of the size with which a time grows between two sizes."""
    return math.log(times[last] / times[first]) / math.log(last / first)


def duration(seconds: float) -> str:
    units = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
    unit, size = next(((unit, size) for unit, size in units.items() if seconds >= size), ("us", 1e-6))
    value = seconds / size
    return f"{value:.{max(0, 2 - int(math.log10(max(value, 1))))}f} {unit}"


# ------------------------------------------------------------------------------------------------ byte-pair encoders

#: Becquin, "Byte Pair Encoding and Data Structures" (2021): seconds by algorithm, for 1, 10, 100 and 1,000 lines.
BPE_PUBLISHED = {
    "naive": (27.1e-6, 162e-6, 85e-3, 18.6),
    "naive_presplit": (9.1e-6, 26.5e-6, 0.57e-3, 8.6e-3),
    "heap_tree": (14.7e-6, 54.4e-6, 1.76e-3, 33.9e-3),
    "heap_list": (8.6e-6, 24.7e-6, 0.68e-3, 12.8e-3),
}
BPE_SOURCE = "[Becquin, *Byte Pair Encoding and Data Structures* (2021)](https://guillaume-be.github.io/)"
BPE_NAMES = {
    "naive": "naive",
    "naive_presplit": "naive, pre-split",
    "heap_tree": "queue + tree",
    "heap_list": "queue + list",
}


def measure_bpe(options: Options) -> Result:
    import tempfile

    import jittok
    from jittok.study import ALGORITHMS, BytePairEncoder
    from jittok.study.byte_pairs import word_ends

    english = lzma.open(ENGLISH, "rt", encoding="utf-8").read()[: 200_000 if options.quick else None]
    size = 1000 if options.quick else 8000
    tok = jittok.train_bpe(
        english.split("\n"),
        vocab_size=size,
        rules="sentencepiece",
        character_coverage=1.0,
        normalization_rule_name="identity",
    )
    peers: dict[str, Callable[[str], Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        tok.save(f"{folder}/tokenizer.json")
        tok.save(f"{folder}/bpe.model")
        model = json.loads(Path(folder, "tokenizer.json").read_text(encoding="utf-8"))["model"]
        if importlib.util.find_spec("sentencepiece"):
            from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2

            proto = sentencepiece_model_pb2.ModelProto()
            proto.ParseFromString(Path(folder, "bpe.model").read_bytes())
            spec = proto.normalizer_spec
            # texts are normalised beforehand, for all
            spec.add_dummy_prefix = spec.remove_extra_whitespaces = spec.escape_whitespaces = False
            reference = SentencePieceProcessor(model_proto=proto.SerializeToString())
            peers["sentencepiece"] = reference.encode
    merges = [tuple(pair) for pair in model["merges"]]
    if importlib.util.find_spec("tokenizers"):
        from tokenizers import models

        whole = models.BPE(model["vocab"], merges, cache_capacity=0, unk_token="<unk>")
        peers["tokenizers"] = whole.tokenize

    lines = [line for line in HAMLET.read_text(encoding="utf-8").split("\n") if line.strip()]
    counts = (1, 10, 100) if options.quick else (1, 10, 100, 1000)
    encoders = {name: BytePairEncoder(merges, name) for name in ALGORITHMS}
    times: dict[str, dict[int, float]] = {name: {} for name in (*ALGORITHMS, *peers, "engine")}
    lengths, presplit_differs = [], {}
    for n in counts:
        text = tok.normalize(" ".join(lines[:n]))
        lengths.append(len(text))
        expected = encoders["heap_list"].encode(text)
        ids = [model["vocab"].get(token, 0) for token in expected]
        functions: dict[str, Callable[[], Any]] = {}
        for name, encoder in encoders.items():
            found = encoder.encode(text)
            if name == "naive_presplit":
                presplit_differs[n] = len(found), len(expected)
            elif found != expected:
                raise SystemExit(f"{name}: other symbols than heap_list")
            symbols = encoder.numbers(text)
            ends = word_ends(text) if name == "naive_presplit" else None
            functions[name] = lambda e=encoder, s=symbols, w=ends: e.merge(s.copy(), w)
        for name, function in peers.items():
            found = function(text)
            if [getattr(token, "id", token) for token in found] != ids:
                raise SystemExit(f"{name}: other ids than the four encoders")
            functions[name] = lambda f=function, t=text: f(t)
        given = " ".join(lines[:n])
        if tok.encode(given).ids.tolist() != ids:
            raise SystemExit("the engine: other ids than the four encoders")
        functions["engine"] = lambda t=given: tok.encode(t).ids
        for turn in range(1 if options.quick else 7):
            for name, function in functions.items():
                if turn > 2 and times[name][n] > 0.5:
                    continue  # slow enough that three times are enough
                guess = cpu_seconds(function) if n not in times[name] else times[name][n]
                copies = max(1, min(3000, int(0.01 / max(guess, 1e-6))))
                took = cpu_seconds(lambda f=function, c=copies: [f() for _ in range(c)]) / copies if copies > 1 else guess
                if copies == 1 and n in times[name]:
                    took = cpu_seconds(function)
                times[name][n] = min(times[name].get(n, math.inf), took)
        print(n, {name: duration(row[n]) for name, row in times.items()}, flush=True)

    names = {**BPE_NAMES, **{name: name for name in peers}, "engine": "jittok's engine, known words"}
    head = ["", *(f"{n:,} lines" if n > 1 else "1 line" for n in counts)]
    rows = [["characters", *(f"{length:,}" for length in lengths)]]
    rows += [[names[name], *(duration(row[n]) for n in counts)] for name, row in times.items()]
    body = ["Processor time to encode the text once:", "", table(head, rows), ""]
    rows = []
    for name, row in times.items():
        if name in ALGORITHMS:
            published = BPE_PUBLISHED[name]
            pairs = [(one, row[n]) for one, n in zip(published, counts, strict=False)]
            rows.append([names[name], *(f"{duration(one)} ({one / own:.1f}x)" for one, own in pairs)])
    body += [f"Published ({BPE_SOURCE}, Rust), in brackets how many times our kernel's time:", "", table(head, rows), ""]
    rows = []
    for name in ALGORITHMS:
        ours = [times[name][n] / times["heap_list"][n] for n in counts]
        theirs = [one / list_ for one, list_ in zip(BPE_PUBLISHED[name], BPE_PUBLISHED["heap_list"], strict=True)]
        rows.append([names[name], *(f"{a:,.1f} / {b:,.1f}" for a, b in zip(ours, theirs, strict=False))])
    body += ["Times of queue + list, ours / published, which no machine's speed is in:", "", table(head, rows), ""]
    first, last = (lengths[-2], lengths[-1]) if len(lengths) > 1 else (1, 1)
    growth = {
        name: power({length: row[n] for length, n in zip(lengths, counts, strict=True)}, first, last)
        for name, row in times.items()
    }
    body += [
        f"From {first:,} to {last:,} characters, time grows with the length to the power of "
        + ", ".join(f"{growth[name]:.2f} ({names[name]})" for name in times)
        + ".",
        "",
        f"The model is a BPE of {size:,} pieces, trained by SentencePiece's rules on the English part of the built-in"
        " tokenizer's corpus; the first lines of *Hamlet* that are not blank, joined by blanks and normalised beforehand,"
        " are one text without words. All give the same symbols, but for the pre-split one, which does not merge"
        " across punctuation: "
        + ", ".join(f"{a:,} symbols instead of {b:,}" for a, b in (presplit_differs[n] for n in counts if n > 1))
        + ". A call from Python costs 1 to 2 us, which is most of the time of one line. tokenizers' includes making a"
        " Python object for each token, sentencepiece's a list. The engine's is that of `Tokenizer.encode` with all its"
        " steps: added tokens, normalisation, words looked up, spans; about 0.1 ms of it is Python.",
    ]
    draw_bpe(lengths, {name: [row[n] for n in counts] for name, row in times.items()}, names, options.out / "bpe.svg")
    n = counts[-1]
    shows = (
        f"At {n:,} lines the naive encoder takes {times['naive'][n] / times['heap_list'][n]:,.0f} times as long as the"
        f" queue with a linked list, and its time grows with the length to the power of {growth['naive']:.1f}, theirs of"
        f" {growth['heap_tree']:.1f} (tree) and {growth['heap_list']:.1f} (list): the data structure decides, not the"
        " language, as the article found."
    )
    numbers = {"characters": lengths, "seconds": times}
    return Result("Four encoders of byte pairs on Hamlet", shows, body, numbers, "Time by length of text")


def draw_bpe(lengths: list[int], times: dict[str, list[float]], names: dict[str, str], path: Path) -> None:
    """Time by length of text, with lines for how it may grow."""
    figure, (axes,) = new_figure(1)
    for name, style in zip(times, ("o-", "s-", "^-", "d-", "x--", "+--", ".:"), strict=False):
        axes.loglog(lengths, times[name], style, label=names[name], markersize=4)
    grid = np.array([lengths[0] * 3, lengths[-1]], float)
    base = times["heap_list"][-1] / lengths[-1] / 4
    for label, values, above in (
        ("N", grid, -8),
        ("N log N", grid * np.log(grid) / math.log(lengths[-1]), 3),
        ("N²", grid**2 / lengths[-1] * times["naive"][-1] / times["heap_list"][-1] * 8, -3),
    ):
        axes.loglog(grid, base * values, color="gray", linestyle=":", linewidth=1)
        place = (grid[-1], base * values[-1])
        axes.annotate(label, place, fontsize=8, color="gray", xytext=(3, above), textcoords="offset points")
    axes.set_xlabel("characters")
    axes.set_ylabel("seconds")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    save(figure, path)


# ---------------------------------------------------------------------------------------------------------- unigram

#: Becquin, "A Rust SentencePiece implementation" (2020): microseconds for the short and the long sentence.
UNIGRAM_PUBLISHED = {
    "nested": (29.0, 614.5),
    "nested, faster hash map": (14.2, 238.9),
    "trie": (12.0, 44.8),
    "sentencepiece": (9.7, 29.8),
}
UNIGRAM_SOURCE = (
    "[Becquin, *A Rust SentencePiece implementation* (2020)](https://guillaume-be.github.io/2020-05-30/sentence_piece)"
)


def measure_unigram(options: Options) -> Result:
    lengths = [10, 100, 300, 3000] if options.quick else unigram_experiment.LENGTHS
    models, corpora = options.models, options.corpora
    named, rows = unigram_experiment.experiment(models, corpora, 1 if options.quick else 5, lengths)
    body = unigram_experiment.report(named, rows)
    body = body[: next(i for i, line in enumerate(body) if line.startswith("![")) - 1]
    cells = []
    for name, published in UNIGRAM_PUBLISHED.items():
        key = name.split(",")[0]
        row = [name]
        for (_, _, times), value in zip(named, published, strict=True):
            row += [f"{value:.1f}", f"{times[key]:.2f}", f"{value / times[key]:.1f}x"]
        cells.append(row)
    columns = ("published", "ours", "ratio")
    header = ["us", *(f"{sentence}, {what}" for sentence in ("short", "long") for what in columns)]
    body += ["", f"Beside the published figures ({UNIGRAM_SOURCE}, Rust and C++):", "", table(header, cells), ""]
    theirs = [UNIGRAM_PUBLISHED["nested"][i] / UNIGRAM_PUBLISHED["trie"][i] for i in (0, 1)]
    ours = [times["nested"] / times["trie"] for _, _, times in named]
    own = named[1][2]["trie"] / named[1][2]["sentencepiece"]
    against = [UNIGRAM_PUBLISHED["trie"][1] / UNIGRAM_PUBLISHED["sentencepiece"][1]]
    shows = (
        f"The trie is {ours[0]:.1f} and {ours[1]:.1f} times as fast as nested loops for the short and the long sentence"
        f" (published: {theirs[0]:.1f} and {theirs[1]:.1f}). The published trie took {against[0]:.1f} times"
        f" sentencepiece's time for the long sentence; this one takes {own:.2f} times its time."
    )
    figure, (axes,) = new_figure(1)
    for name, style in zip(unigram_experiment.ENCODERS, ("o-", "s-", "^-", "d-"), strict=True):
        points = [(length, times[name]) for length, times in rows if name in times]
        axes.loglog(*zip(*points, strict=True), style, label=name, markersize=4)
    for name, marker in (("nested", "o"), ("trie", "s"), ("sentencepiece", "^")):
        at, label = [n for _, n, _ in named], f"{name}, published"
        axes.loglog(at, UNIGRAM_PUBLISHED[name], marker, color="gray", markersize=5, label=label)
    axes.set_xlabel("characters of the text")
    axes.set_ylabel("microseconds a text")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    save(figure, options.out / "unigram.svg")
    numbers = {"sentences": named, "lengths": rows}
    return Result("Unigram: nested loops and a trie", shows, body, numbers, "Time by length of text")


# -------------------------------------------------------------------------------------------------------- WordPiece

WORDPIECE_SOURCE = "[Song et al., *Fast WordPiece Tokenization*, EMNLP 2021](https://arxiv.org/abs/2012.15524)"


def measure_wordpiece(options: Options) -> Result:
    if options.quick:
        wordpiece_experiment.LENGTHS[:] = [1, 5, 10, 20, 50, 100, 1000]
    models, corpora = options.models, options.corpora
    most = 300 if options.quick else 1000  # sentences, as in the paper
    rounds, documents = (1, 10) if options.quick else (5, None)
    results = wordpiece_experiment.experiment(models, corpora, rounds, most, documents)
    body = wordpiece_experiment.report(results)
    body[0] = body[0].split("![")[0].rstrip()
    body = [re.sub("^### ", "## ", line, flags=re.MULTILINE) for line in body if not line.startswith("![")]
    ratio = results.ratio(results.many)
    words = results.many.words["tokenizers"] / results.many.words["LinMaxMatch"]
    rows = [
        ["end to end, to HuggingFace tokenizers", "8.2x", f"{ratio:.1f}x"],
        ["end to end, to TF Text", "5.1x", "not measured (no package for this Python)"],
        ["single words, to both (first version of the paper)", "3x", f"{words:.1f}x (to tokenizers, called from Python)"],
    ]
    body += [
        f"Published ratios ({WORDPIECE_SOURCE}) beside ours"
        f" ({results.many.n_sentences:,} sentences of {len(results.documents)} documents in as many languages). The paper's"
        " times in nanoseconds are in its Table 2; only its ratios are repeated here.",
        "",
        table(["speed-up", "published", "ours"], rows),
        "",
    ]
    by_length = {length: times for length, times in results.by_length}
    lin = power({n: by_length[n]["LinMaxMatch"] for n in (100, 1000)}, 100, 1000)
    slow = power({n: by_length[n]["MaxMatch"] for n in (100, 1000)}, 100, 1000)
    ratios = sorted(map(results.ratio, results.documents))
    shows = (
        f"MaxMatch grows with the length of a word to the power of {slow:.1f}, LinMaxMatch to the power of {lin:.1f}; they"
        f" differ by {by_length[10]['MaxMatch'] / by_length[10]['LinMaxMatch']:.1f} times at ten characters. End to end,"
        f" jittok is {ratio:.0f} times as fast as tokenizers on many languages (published: 8.2 times), between"
        f" {ratios[0]:.0f} and {ratios[-1]:.0f} times by language."
    )
    figure, (left, right) = new_figure(2)
    for name, style in (("MaxMatch", "o-"), ("LinMaxMatch", "s-"), ("tokenizers", "^-")):
        points = [(length, times[name] / 1000) for length, times in results.by_length if name in times]
        left.loglog(*zip(*points, strict=True), style, label=name, markersize=3)
    left.set_xlabel("characters of the word")
    left.set_ylabel("microseconds a word")
    ordered = sorted(results.documents, key=results.ratio)
    for name, style in (("jittok", "s"), ("nanotoken", "^")):
        values = [rate.text["tokenizers"] / rate.text[name] for rate in ordered if name in rate.text]
        if values:
            right.plot(range(len(values)), values, style, label=name, markersize=3)
    right.axhline(8.2, color="gray", linestyle="--", label="Fast WordPiece, as published")
    right.set_xlabel("languages, by jittok's speed")
    right.set_ylabel("times as fast as tokenizers")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    save(figure, options.out / "wordpiece.svg")
    numbers = {
        "words": results.by_length,
        "english": dataclasses.asdict(results.english),
        "many": dataclasses.asdict(results.many),
        "languages": [dataclasses.asdict(rate) for rate in results.documents],
    }
    return Result("WordPiece: MaxMatch and LinMaxMatch", shows, body, numbers, "Time by length of word; speed by language")


# --------------------------------------------------------------------------------------------------------- training


def measure_training(options: Options) -> Result:
    import jittok
    from jittok.study import TRAINING_ALGORITHMS, learn_merges

    english = lzma.open(ENGLISH, "rt", encoding="utf-8").read().lower()

    def words_of(kilobytes: int) -> dict[str, int]:
        return dict(Counter(re.findall(r"\w+", english[: 1000 * kilobytes])))

    texts = (10, 20, 40) if options.quick else (25, 50, 100, 200, 400)
    sizes = (25, 50, 100) if options.quick else (125, 250, 500, 1000, 2000)
    middle, some = texts[len(texts) // 2], sizes[1]
    times: dict[str, dict[tuple[int, int], float]] = {name: {} for name in (*TRAINING_ALGORITHMS, "jittok")}
    letters = {n: sum(map(len, words_of(n))) for n in texts}
    jittok.train_bpe(["some words"], vocab_size=30, pre_tokenizer="Whitespace")
    for n, m in [*((n, some) for n in texts), *((middle, m) for m in sizes if m != some)]:
        words = words_of(n)
        counts = jittok.count_words([english[: 1000 * n]], pre_tokenizer="Whitespace")
        expected = None
        for name in TRAINING_ALGORITHMS:
            merges: list[Any] = []
            times[name][n, m] = cpu_seconds(lambda w=words, m=m, a=name, out=merges: out.extend(learn_merges(w, m, a)))
            expected = expected or merges
            if merges != expected:
                raise SystemExit(f"{name}: other merges than textbook")
        letters_there = len({letter for word in words for letter in word})

        def engine(counts: Any = counts, m: int = m, alphabet: int = letters_there) -> Any:
            return jittok.train_bpe(counts=counts, vocab_size=alphabet + m)

        times["jittok"][n, m] = min(cpu_seconds(engine) for _ in range(3))
        print(n, m, {name: duration(row[n, m]) for name, row in times.items()}, flush=True)

    names = {**{name: name for name in TRAINING_ALGORITHMS}, "jittok": "jittok.train_bpe (kernels)"}
    body = [f"Seconds to learn {some:,} merges from the words of the first N kB of the English text (lower case):", ""]
    head = ["", *(f"{n} kB ({letters[n]:,} letters)" for n in texts), "grows as N to the"]
    body += [
        table(
            head,
            [
                [
                    names[name],
                    *(duration(row[n, some]) for n in texts),
                    f"{power({n: row[n, some] for n in texts}, texts[0], texts[-1]):.2f}",
                ]
                for name, row in times.items()
            ],
        ),
        "",
        f"and M merges from {middle} kB:",
        "",
        table(
            ["", *(f"{m:,} merges" for m in sizes), "grows as M to the"],
            [
                [
                    names[name],
                    *(duration(row[middle, m]) for m in sizes),
                    f"{power({m: row[middle, m] for m in sizes}, sizes[0], sizes[-1]):.2f}",
                ]
                for name, row in times.items()
            ],
        ),
        "",
        "The first three are `jittok.study.learn_merges`, plain Python, which give the same merges; letters are those of the"
        " different words. Between them only the growth is to be compared; jittok's includes making the tokenizer.",
        "",
    ]
    by_text = {name: [row[n, some] for n in texts] for name, row in times.items()}
    by_merges = {name: [row[middle, m] for m in sizes] for name, row in times.items()}
    sides = (
        (f"letters of different words ({some:,} merges)", [letters[n] for n in texts], by_text),
        (f"merges ({middle} kB of text)", list(sizes), by_merges),
    )
    draw_training(sides, names, options.out / "training.svg")
    numbers: dict[str, Any] = {
        "letters": letters,
        "seconds": {name: [[*key, value] for key, value in row.items()] for name, row in times.items()},
    }
    large = ""
    try:
        corpora = options.corpora
    except NotThere as reason:
        body += [f"The large part is left out: {reason}."]
    else:
        megabytes, vocabularies = (1, 4, 16, 64), (1000, 4000, 16_000, 64_000)
        if options.quick:
            megabytes, vocabularies = megabytes[:2], vocabularies[:2]
        rows = compare_training.growth(corpora, options.out / "training-large.svg", megabytes, vocabularies)
        save_again = options.out / "training-large.svg"
        save_again.write_text(
            "\n".join(line.rstrip() for line in save_again.read_text(encoding="utf-8").split("\n")), encoding="utf-8"
        )
        numbers["large"] = rows
        cells = [
            [f"{n} MB", f"{words:,}", f"{reached:,}", duration(counting), duration(learning)]
            for n, reached, counting, learning, words, _ in rows
        ]
        body += [
            "jittok on large text, byte-level BPE with GPT-2's split, one thread:",
            "",
            table(["text", "different words", "tokens", "reading and counting", "learning"], cells),
            "",
            "![Learning by size of text and of vocabulary](training-large.svg)",
        ]
        last = rows[-1]
        # A little text has no large vocabulary: only the same number of tokens says what more text costs.
        of_little = {row[1]: row[3] for row in rows if row[0] == megabytes[0]}
        of_much = {row[1]: row[3] for row in rows if row[0] == megabytes[-1]}
        both = max(of_little.keys() & of_much.keys())
        large = (
            f" jittok's own: on {last[0]} MB, {last[1]:,} tokens are learned in {duration(last[3])}, after"
            f" {duration(last[2])} of reading and counting; {megabytes[-1] / megabytes[0]:.0f} times the text takes"
            f" {of_much[both] / of_little[both]:.1f} times as long to learn {both:,} tokens from."
        )
    biggest = (texts[-1], some)
    slower = times["heap"][middle, sizes[-1]] / times["heap"][middle, sizes[0]]
    shows = (
        "The textbook trainer's time is the product of text and merges; keeping counts makes training"
        f" {times['textbook'][biggest] / times['incremental'][biggest]:.0f} times as fast at {texts[-1]} kB, and with a heap"
        f" nearly independent of the number of merges ({slower:.1f} times the time for {sizes[-1] // sizes[0]} times the"
        f" merges).{large}"
    )
    return Result("Trainers: textbook, incremental, heap", shows, body, numbers, "Time by text and by merges")


def draw_training(sides: Any, names: dict[str, str], path: Path) -> None:
    """Time by what is on each side's axis: its label, the sizes, and for each algorithm the seconds."""
    figure, all_axes = new_figure(len(sides))
    for axes, (label, sizes, times) in zip(all_axes, sides, strict=True):
        for (name, seconds), style in zip(times.items(), ("o-", "s-", "^-", "d--"), strict=True):
            axes.loglog(sizes, seconds, style, label=names[name], markersize=4)
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.set_xticks([], minor=True)
        axes.set_xlabel(label)
        axes.set_ylabel("CPU seconds")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    save(figure, path)


# ------------------------------------------------------------------------------------------------------------ peers

PEER_FAMILIES = ("gpt2", "cl100k", "bert-base-uncased", "t5", "mistral-v1")
PEER_PARTS = {"throughput", "threads", "start-up", "pathological"}


def measure_peers(options: Options) -> Result:
    families = {}
    for family in PEER_FAMILIES[:1] if options.quick else PEER_FAMILIES:
        paths = {kind: str(options.models / path) for kind, path in compare_peers.FAMILIES[family].items()}
        families[family] = {kind: path for kind, path in paths.items() if os.path.exists(path)}
    families = {family: files for family, files in families.items() if files}
    corpora = {name: str(options.corpora / f"{name}.txt") for name in compare_peers.CORPORA}
    if options.quick:
        corpora = {"code": corpora["code"]}
    libraries = [name for name in compare_peers.LIBRARIES if importlib.util.find_spec(name)]
    rounds, limit = (1, 500_000) if options.quick else (2, 12_000_000)
    plan = compare_peers.Plan(libraries, families, corpora, rounds, limit)
    raw: dict[str, Any] = {}
    parts = {"throughput"} if options.quick else PEER_PARTS
    body = [compare_peers.report(plan, parts, raw, None).replace("### ", "## ")]
    groups: dict[str, dict[str, list[float]]] = {"cpu": {}, "repeat_cpu": {}}
    for name, answers in raw["throughput"].items():
        family = name.split("/")[0]
        for key, found in groups.items():
            own = compare_peers.rate(answers["jittok"], key)
            for peer, answer in answers.items():
                other = compare_peers.rate(answer, key)
                if peer != "jittok" and own and other:
                    found.setdefault(f"{family}: {peer}", []).append(own / other)
    means = {
        key: {pair: statistics.geometric_mean(values) for pair, values in found.items()} for key, found in groups.items()
    }
    rows = [[pair, f"{means['cpu'][pair]:.2f}x", f"{means['repeat_cpu'][pair]:.2f}x"] for pair in means["cpu"]]
    body.insert(0, table(["jittok to", "text not seen before", "the same text again"], rows) + "\n")
    body.insert(0, "Geometric means over the corpora of jittok's speed to that of another library:\n")
    fastest = [
        min((value, pair) for pair, value in means["cpu"].items() if pair.startswith(f"{family}:")) for family in families
    ]
    shows = (
        "On text not seen before, jittok is, on one thread, "
        + ", ".join(f"{value:.1f} times as fast as {pair.split(': ')[1]} ({pair.split(': ')[0]})" for value, pair in fastest)
        + ", the fastest other library of each family."
    )
    figure, axes_of = new_figure(2)
    titles = {"cpu": "text not seen before", "repeat_cpu": "the same text again"}
    for axes, (key, title) in zip(axes_of, titles.items(), strict=True):
        pairs = list(means[key])[::-1]
        axes.barh(pairs, [means[key][pair] for pair in pairs], color="#4a7bb7")
        axes.axvline(1, color="gray", linewidth=1)
        axes.set_xscale("log")
        axes.set_xticks([0.5, 1, 2, 5, 10, 20, 50], ["0.5", "1", "2", "5", "10", "20", "50"])
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("times as fast", fontsize=8)
        axes.tick_params(labelsize=7)
    save(figure, options.out / "peers.svg")
    return Result("jittok beside other libraries", shows, body, raw, "jittok's speed to that of other libraries")


# ------------------------------------------------------------------------------------------------------------- main

MEASUREMENTS: dict[str, Callable[[Options], Result]] = {
    "bpe": measure_bpe,
    "unigram": measure_unigram,
    "wordpiece": measure_wordpiece,
    "training": measure_training,
    "peers": measure_peers,
}


def machine() -> str:
    """The machine and the versions, as a sentence."""
    packages = []
    for name in ("jittok", "numba", "numpy", *LIBRARIES):
        try:
            packages.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            if name == "jittok":
                import jittok

                packages.append(f"jittok {jittok.__version__}")
    try:
        loads = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    except OSError:
        loads = "unknown"
    return f"{compare_peers.machine()}; {', '.join(packages)}; load of the machine when it ended: {loads}."


def write(name: str, result: Result, options: Options, seconds: float) -> None:
    body = "\n".join(result.body).rstrip()
    quick = " --quick" if options.quick else ""
    text = (
        f"# {result.title}\n\n**{result.shows}**\n\n![{result.figure}]({name}.svg)\n\n{body}\n\n"
        f"---\n\nMade by `python scripts/reproduce.py {name}{quick}` in {seconds / 60:.0f} minutes, "
        f"{time.strftime('%Y-%m-%d')}. {machine()} Bare numbers: [{name}.json]({name}.json).\n"
    )
    (options.out / f"{name}.md").write_text(text, encoding="utf-8")
    numbers = json.dumps(rounded(result.numbers), separators=(",", ":"))
    (options.out / f"{name}.json").write_text(numbers + "\n", encoding="utf-8")


def rounded(value: Any) -> Any:
    """Numbers to five digits, which is more than is known; keys as strings."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {str(key): rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(MEASUREMENTS)} (default: all)")
    parser.add_argument("--data", type=Path, help="folder with models/ and corpora/ (default: JITTOK_TEST_DATA)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results", help="folder (default: docs/results)")
    parser.add_argument("--quick", action="store_true", help="small inputs, one round: whether it runs")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in MEASUREMENTS]
    if unknown:
        parser.error(f"no measurement {', '.join(unknown)}; there are {', '.join(MEASUREMENTS)}")
    if given.quick and given.out == ROOT / "docs" / "results":
        parser.error("--quick gives no results: name another folder with --out")
    data = given.data or (Path(os.environ["JITTOK_TEST_DATA"]) if os.environ.get("JITTOK_TEST_DATA") else None)
    options = Options(data, given.out, given.quick)
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    warnings.simplefilter("ignore")
    ends = []
    for name in given.names or MEASUREMENTS:
        print(f"== {name}", flush=True)
        begin = time.perf_counter()
        try:
            result = MEASUREMENTS[name](options)
        except NotThere as reason:
            ends.append(f"{name}: left out: {reason}")
            continue
        write(name, result, options, time.perf_counter() - begin)
        ends.append(f"{name}: {options.out / name}.md\n    {result.shows}")
    print("\n".join(ends))
    return 0


if __name__ == "__main__":
    sys.exit(main())

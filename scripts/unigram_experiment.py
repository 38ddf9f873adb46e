"""Repeat the measurement of Becquin's article "A Rust SentencePiece implementation" (2020) with jittok's kernels.

    python scripts/unigram_experiment.py --models MODELS --corpora CORPORA --out docs/unigram.md --plot docs/img

MODELS holds ``unigram/xlnet-base-cased/spiece.model`` and ``tokenizer.json``; CORPORA holds ``english.txt``, UTF-8,
documents separated by one NUL byte. The tables replace what stands in the file between the two marks; the plot is a PNG
file in the folder.

How it is measured
------------------
- Everything in one process and one thread, in turns, round by round; CPU time; the best round counts.
- The two sentences of the article, and pieces of English text of growing length. All encoders get normalized text: spaces
  are U+2581 already, and the references have no normalizer that would change anything.
- jittok's kernels take many copies of a text in one call, as bytes in an array. sentencepiece takes them as one list, and
  gives lists. tokenizers has a Python call for each text, ``models.Unigram.tokenize``, which gives token objects; its cache,
  which would know each text from the second time on, is emptied before.
- All ids are compared first.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jittok.build.unigram_tables import build_unigram_tables
from jittok.kernels.unigram import STATE, encode_unigram_nested, encode_unigram_segments, new_unigram_scratch
from jittok.tables import UNIGRAM_RULE, read_only

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
SENTENCES = {
    "fox": "The quick brown fox jumps over the lazy dog",
    "Article 1": (
        "All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience"
        " and should act towards one another in a spirit of brotherhood."
    ),
}
LENGTHS = [10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 2000, 3000, 5000, 10000]
#: Nested loops and tokenizers are not asked for longer texts.
LONGEST_NESTED = 3000
ENCODERS = ["nested", "trie", "sentencepiece", "tokenizers"]


class Encoders:
    """Each encoder as a function of many copies of a text."""

    def __init__(self, folder: Path) -> None:
        from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2
        from tokenizers import models

        path = folder / "unigram" / "xlnet-base-cased"
        self.model = sentencepiece_model_pb2.ModelProto()
        self.model.ParseFromString((path / "spiece.model").read_bytes())
        pieces = self.model.pieces
        columns = [p.piece for p in pieces], [p.score for p in pieces], [p.type for p in pieces]
        self.tables = build_unigram_tables(*columns)
        self.original = SentencePieceProcessor(model_file=str(path / "spiece.model"))
        spec = self.model.normalizer_spec
        spec.precompiled_charsmap = b""
        spec.name = "identity"
        spec.add_dummy_prefix = spec.remove_extra_whitespaces = spec.escape_whitespaces = False
        self.reference = SentencePieceProcessor(model_proto=self.model.SerializeToString())
        vocabulary = json.loads((path / "tokenizer.json").read_text(encoding="utf-8"))["model"]
        self.tokenizers = models.Unigram([tuple(row) for row in vocabulary["vocab"]], vocabulary["unk_id"])

    def of(self, text: str, copies: int) -> dict[str, Callable[[], Any]]:
        """Functions that encode `copies` of a text, and return the ids of all."""
        encoded = text.encode()
        data = read_only(np.frombuffer(encoded * copies, np.uint8))
        ends = read_only(len(encoded) * np.arange(1, copies + 1))
        starts = read_only(ends - len(encoded))
        scratch = new_unigram_scratch(len(encoded), int(self.tables.numbers[UNIGRAM_RULE]))
        out, out_end, no_lengths = np.zeros(len(data), np.int32), np.zeros(copies, np.int64), np.zeros(0, np.int32)
        texts = [text] * copies

        def trie() -> Any:
            state = np.zeros(STATE, np.int64)
            encode_unigram_segments(
                self.tables, data, starts, ends, copies, state, scratch, out, out_end, no_lengths
            )
            return out[: out_end[-1]]

        def nested() -> Any:
            return out[: encode_unigram_nested(self.tables, data, starts, ends, scratch, out, out_end, no_lengths)]

        def sentencepiece() -> Any:
            return self.reference.encode(texts)

        def tokenizers() -> Any:
            found = []
            for text in texts:
                self.tokenizers._clear_cache()
                found.append(self.tokenizers.tokenize(text))
            return found

        functions = {"trie": trie, "sentencepiece": sentencepiece}
        if len(text) <= LONGEST_NESTED:
            functions |= {"nested": nested, "tokenizers": tokenizers}
        return {name: functions[name] for name in ENCODERS if name in functions}


def cpu_seconds(function: Callable[[], Any]) -> float:
    gc.disable()
    begin = time.process_time()
    function()
    seconds = time.process_time() - begin
    gc.enable()
    return seconds


def measure(encoders: Encoders, text: str, rounds: int) -> dict[str, float]:
    """Microseconds that each encoder takes for a text."""
    single = encoders.of(text, 1)
    expected = single["sentencepiece"]()[0]
    for name, function in single.items():
        found = function()
        ids = {"sentencepiece": lambda f: f[0], "tokenizers": lambda f: [token.id for token in f[0]]}.get(name, list)(found)
        if ids != expected:
            raise SystemExit(f"{name}: ids of {text[:40]!r} differ from those of sentencepiece")
    functions = {}
    for name, function in single.items():
        copies = max(1, min(20_000, int(0.02 / max(cpu_seconds(function), 1e-6))))
        functions[name] = (encoders.of(text, copies)[name], copies)
    best = dict.fromkeys(functions, math.inf)
    for _ in range(rounds):
        for name, (function, copies) in functions.items():
            best[name] = min(best[name], 1e6 * cpu_seconds(function) / copies)
    return best


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def cells(times: dict[str, float]) -> list[str]:
    row = [f"{times[name]:,.2f}" if name in times else "" for name in ENCODERS]
    row += [f"{times['nested'] / times['trie']:.1f}x" if "nested" in times else ""]
    row += [f"{times['sentencepiece'] / times['trie']:.1f}x"]
    return [*row, f"{times['tokenizers'] / times['trie']:.0f}x" if "tokenizers" in times else ""]


def growth(rows: list[tuple[int, dict[str, float]]], name: str, first: int, last: int) -> float:
    """The exponent of the length with which time grows between two lengths."""
    times = dict(rows)
    return math.log(times[last][name] / times[first][name]) / math.log(last / first)


def plot(rows: list[tuple[int, dict[str, float]]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    linear, logarithmic = figure.subplots(1, 2)
    for name, style in zip(ENCODERS, ("o-", "s-", "^-", "d-"), strict=True):
        points = [(length, times[name]) for length, times in rows if name in times]
        logarithmic.plot(*zip(*points, strict=True), style, label=name, markersize=3)
        points = [point for point in points if point[0] <= 300]
        linear.plot(*zip(*points, strict=True), style, label=name, markersize=3)
    logarithmic.set_xscale("log")
    logarithmic.set_yscale("log")
    linear.set_title("up to 300 characters")
    logarithmic.set_title("all, both axes logarithmic")
    for axes in (linear, logarithmic):
        axes.set_xlabel("characters of the text")
        axes.set_ylabel("microseconds a text")
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, dpi=110)


Row = tuple[int, dict[str, float]]


def experiment(
    models: Path, corpora: Path, rounds: int, lengths: list[int] = LENGTHS
) -> tuple[list[tuple[str, int, dict[str, float]]], list[Row]]:
    """Microseconds for the article's sentences (name, characters, times) and for texts of growing length."""
    encoders = Encoders(models)
    named = []
    for name, sentence in SENTENCES.items():
        text = encoders.original.normalize(sentence)
        named.append((name, len(text), measure(encoders, text, rounds)))
        print(name, named[-1][1:], flush=True)
    english = encoders.original.normalize((corpora / "english.txt").read_text(encoding="utf-8")[:200_000])
    rows = []
    for length in lengths:
        rows.append((length, measure(encoders, english[1000 : 1000 + length], rounds)))
        print(length, {key: round(value, 2) for key, value in rows[-1][1].items()}, flush=True)
    return named, rows


def report(named: list[tuple[str, int, dict[str, float]]], rows: list[Row]) -> list[str]:
    """What came out, as lines of Markdown."""
    header = ["", "nested", "trie", "sentencepiece", "tokenizers", "nested to trie", "sentencepiece to trie"]
    header += ["tokenizers to trie"]
    grown = {name: growth(rows, name, 300, LONGEST_NESTED) for name in ENCODERS}
    return [
        table([header[0], "characters", *header[1:]], [[name, str(n), *cells(times)] for name, n, times in named]),
        "",
        "By length, pieces of English text:",
        "",
        table(["characters", *header[1:]], [[f"{length:,}", *cells(times)] for length, times in rows]),
        "",
        f"From 300 to {LONGEST_NESTED:,} characters the time grows with the length to the power of "
        + ", ".join(f"{power:.2f} ({name})" for name, power in grown.items())
        + ".",
        "",
        "![Time by length](img/unigram-length.png)",
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--corpora", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--plot", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()

    named, rows = experiment(arguments.models, arguments.corpora, arguments.rounds)
    python = platform.python_version()
    machine = f"{platform.machine()}, Python {python}, one thread; XLNet's model, CPU microseconds a text."
    lines = [BEGIN, "", machine, "", *report(named, rows), END]
    text = arguments.out.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    arguments.out.write_text(before + "\n".join(lines) + rest.split(END)[1], encoding="utf-8")
    plot(rows, arguments.plot / "unigram-length.png")


if __name__ == "__main__":
    main()

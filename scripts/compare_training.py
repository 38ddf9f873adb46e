"""Time, memory and growth of training, against other trainers.

    python scripts/compare_training.py bpe --data DIR         # 20 MB of english.txt, 32,000 tokens, by tokenizers' rules
    python scripts/compare_training.py wordpiece --data DIR
    python scripts/compare_training.py threads --data DIR     # two threads against one, wall time, all trainers
    python scripts/compare_training.py growth --data DIR      # N megabytes x M tokens: docs/img/training-growth.png
    python scripts/compare_training.py all --data DIR         # all trainers: docs/img/training-growth-all.png

DIR holds ``english.txt``, ``code.txt`` and ``multi.txt``. Times are CPU seconds of all threads: the trainers take turns in
one process, after a run of each on little text, and what counts is the ratio of one turn's times. jittok's tokenizer is
not used, so its tables are not built. Peak memory is that of a process of its own for each. Peers that are not installed
are left out (tokenizers, gigabpe, rustbpe).
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def jittok_bpe(path: str, size: int) -> Any:
    import jittok

    return len(jittok.train_bpe(path, vocab_size=size, pre_tokenizer="gpt2").spec.model.vocab)


def gigabpe_bpe(path: str, size: int) -> Any:
    import gigabpe

    return len(gigabpe.train_bpe([path], size, special_tokens=[])[0])


def rustbpe_bpe(path: str, size: int) -> Any:
    import rustbpe

    tokenizer = rustbpe.Tokenizer()
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        tokenizer.train_from_iterator(file, size, pattern=GPT2)
    return len(tokenizer.get_mergeable_ranks())


def tokenizers_bpe(path: str, size: int) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train([path], trainers.BpeTrainer(vocab_size=size, show_progress=False))
    return tokenizer.get_vocab_size()


def jittok_wordpiece(path: str, size: int) -> Any:
    import jittok

    steps = {"normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}
    return len(jittok.train_wordpiece(path, vocab_size=size, special_tokens=SPECIAL, **steps).spec.model.vocab)


def tokenizers_wordpiece(path: str, size: int) -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train([path], trainers.WordPieceTrainer(vocab_size=size, special_tokens=SPECIAL, show_progress=False))
    return tokenizer.get_vocab_size()


TRAINERS: dict[str, dict[str, Callable[[str, int], Any]]] = {
    "bpe": {"jittok": jittok_bpe, "gigabpe": gigabpe_bpe, "rustbpe": rustbpe_bpe, "tokenizers": tokenizers_bpe},
    "wordpiece": {"jittok": jittok_wordpiece, "tokenizers": tokenizers_wordpiece},
}


def peak_memory(kind: str, name: str, path: str, size: int) -> tuple[float, float]:
    """Megabytes that a process of its own takes at most, and before the text is read."""
    code = (
        "import re, sys, json; sys.path.insert(0, sys.argv[1]); import compare_training as script\n"
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) / 1024\n"
        "run = script.TRAINERS[sys.argv[2]][sys.argv[3]]; run(sys.argv[4], 300)\n"
        "before = peak()\n"
        "run(sys.argv[5], int(sys.argv[6]))\n"
        "print(json.dumps([peak(), before]))"
    )
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as little:
        little.write("some words, and some more words\n" * 9)
        little.flush()
        arguments = [str(Path(__file__).parent), kind, name, little.name, path, str(size)]
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, *arguments], capture_output=True, text=True, check=True
        )
    peak, before = json.loads(done.stdout.splitlines()[-1])
    return peak, before


def compare(kind: str, data: Path, megabytes: float, size: int, rounds: int) -> None:
    trainers = {name: run for name, run in TRAINERS[kind].items() if importlib.util.find_spec(name)}
    with tempfile.TemporaryDirectory() as folder:
        text, little = Path(folder) / "text.txt", Path(folder) / "little.txt"
        content = (data / "english.txt").read_bytes()[: int(megabytes * 1e6)]
        text.write_bytes(content.decode("utf-8", "ignore").encode())
        little.write_bytes(content[:100_000].decode("utf-8", "ignore").encode())
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in trainers}
        for run in trainers.values():
            run(str(little), 1000)
        run_sizes = {}
        for _ in range(rounds):
            for name, run in trainers.items():
                wall, cpu = time.perf_counter(), time.process_time()
                run_sizes[name] = run(str(text), size)
                times[name].append((time.process_time() - cpu, time.perf_counter() - wall))
        print(f"{kind}: {len(content) / 1e6:.0f} MB of english.txt, {size:,} tokens, {rounds} rounds")
        print(f"{'trainer':12} {'CPU s':>8} {'to jittok':>10} {'(each round)':>24} {'wall s':>8} {'peak MB':>8}  tokens")
        for name, pairs in times.items():
            ratios = [pair[0] / own[0] for pair, own in zip(pairs, times["jittok"], strict=True)]
            spread = " ".join(f"{ratio:.2f}" for ratio in ratios)
            peak, before = peak_memory(kind, name, str(text), size)
            print(
                f"{name:12} {min(pair[0] for pair in pairs):8.2f} {statistics.median(ratios):10.2f} {spread:>24}"
                f" {min(pair[1] for pair in pairs):8.2f} {peak:8.0f}  {run_sizes[name]:,} ({before:.0f} MB before)"
            )


def all_trainers() -> dict[str, Callable[..., Any]]:
    """All of jittok's, with usual settings."""
    import jittok

    bert = {"normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}
    return {
        "counting": lambda path, vocab_size, **options: jittok.count_words(path, pre_tokenizer="gpt2", **options),
        "BPE": functools.partial(jittok.train_bpe, pre_tokenizer="gpt2"),
        "WordPiece": functools.partial(jittok.train_wordpiece, **bert),
        "SentencePiece BPE": functools.partial(jittok.train_bpe, rules="sentencepiece", hard_vocab_limit=False),
        "unigram": functools.partial(jittok.train_unigram, hard_vocab_limit=False),
    }


def compare_threads(data: Path, megabytes: float, size: int, rounds: int, names: Sequence[str]) -> None:
    """Wall time of two threads and of one, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"
        text.write_bytes((data / "english.txt").read_bytes()[: int(megabytes * 1e6)])
        for name, train in all_trainers().items():
            if name not in names:
                continue
            for threads in (1, 2):
                train(text, vocab_size=1000 if name != "unigram" else size, threads=threads)
            ratios, best = [], [float("inf")] * 2
            for _ in range(rounds):
                walls = []
                for at, threads in enumerate((1, 2)):
                    start = time.perf_counter()
                    train(text, vocab_size=size, threads=threads)
                    walls.append(time.perf_counter() - start)
                    best[at] = min(best[at], walls[-1])
                ratios.append(walls[0] / walls[1])
            print(
                f"{name:18} one thread {best[0]:.3f} s, two threads {best[1]:.3f} s: {best[0] / best[1]:.2f} times; "
                f"median of {rounds} rounds {statistics.median(ratios):.2f}",
                flush=True,
            )


def _long_text(data: Path) -> bytes:
    """All corpora, and for more than there is the same lines written backwards, which have other words."""
    parts = [(data / f"{name}.txt").read_text("utf-8", errors="replace") for name in ("english", "code", "multi")]
    whole = "\n".join(parts)
    return (whole + "\n".join(line[::-1] for line in whole.split("\n"))).encode()


def growth_of_all(data: Path, out: Path) -> None:
    """CPU time of all trainers on one thread, by megabytes and by tokens; a plot of both."""
    megabytes, sizes = (1, 4, 16, 64), (1000, 4000, 16_000, 64_000)
    encoded = _long_text(data)
    seconds: dict[tuple[str, int, int], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for n in megabytes:
            text = Path(folder) / f"{n}.txt"
            text.write_bytes(encoded[: int(n * 1e6)].decode("utf-8", "ignore").encode())
        del encoded
        for name, train in all_trainers().items():
            if name == "counting":
                continue
            train(Path(folder) / "1.txt", vocab_size=8000, threads=1)
            for n, size in [*((n, 16_000) for n in megabytes), *((4, size) for size in sizes if size != 16_000)]:
                start = time.process_time()
                train(Path(folder) / f"{n}.txt", vocab_size=size, threads=1)
                seconds[name, n, size] = time.process_time() - start
                print(f"{name}: {n} MB, {size:,} tokens: {seconds[name, n, size]:.2f} s", flush=True)
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for name in sorted({name for name, _, _ in seconds}):
        left.loglog(megabytes, [seconds[name, n, 16_000] for n in megabytes], marker="o", label=name)
        right.loglog(sizes, [seconds[name, 4, size] for size in sizes], marker="o", label=name)
    left.set_xlabel("text, MB (16,000 tokens)")
    right.set_xlabel("tokens (4 MB)")
    for axis in (left, right):
        axis.set_ylabel("CPU seconds")
        axis.legend(fontsize=7)
        axis.grid(alpha=0.3)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)
    print(out)


def growth(
    data: Path, out: Path, megabytes: Sequence[int] = (1, 4, 16, 64), sizes: Sequence[int] = (1000, 4000, 16_000, 64_000)
) -> list[tuple[int, int, float, float, int, int]]:
    """CPU time of counting and of merging, by megabytes and by tokens; a plot of both.

    Rows of megabytes, tokens, seconds of counting, seconds of learning, different words, letters of these.
    """
    import jittok

    encoded = _long_text(data)
    jittok.train_bpe(["some words"], pre_tokenizer="gpt2", vocab_size=300)
    rows = []
    for n in megabytes:
        start = time.process_time()
        content = encoded[: int(n * 1e6)]
        counts = jittok.count_words(content.decode("utf-8", "ignore").splitlines(keepends=True), pre_tokenizer="gpt2")
        counting = time.process_time() - start
        for size in sizes:
            start = time.process_time()
            reached = len(jittok.train_bpe(counts=counts, vocab_size=size).spec.model.vocab)
            rows.append((n, reached, counting, time.process_time() - start, len(counts), len(counts.data)))
            print("{} MB, {:,} tokens: counting {:.2f} s, learning {:.2f} s ({:,} words, {:,} letters)".format(*rows[-1]))
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for size_at, size in enumerate(sizes):
        chosen = rows[size_at :: len(sizes)]
        left.loglog(megabytes, [row[3] for row in chosen], marker="o", label=f"learning, {size // 1000}k tokens")
    left.loglog(megabytes, [row[2] for row in rows[:: len(sizes)]], "k--", marker="s", label="reading and counting")
    left.set_xlabel("text, MB")
    for n_at, n in enumerate(megabytes):
        chosen = rows[n_at * len(sizes) : (n_at + 1) * len(sizes)]
        right.loglog([row[1] for row in chosen], [row[3] for row in chosen], marker="o", label=f"{n} MB")
    right.set_xlabel("tokens")
    for axis in (left, right):
        axis.set_ylabel("CPU seconds")
        axis.legend(fontsize=7)
        axis.grid(alpha=0.3)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)
    print(out)
    return rows


def main() -> int:
    """Command line entry."""
    parser = argparse.ArgumentParser(description="Compare trainers.")
    parser.add_argument("what", choices=(*TRAINERS, "threads", "growth", "all"))
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--size", type=int, default=32_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="counting,BPE,WordPiece,SentencePiece BPE,unigram", help="trainers, for threads")
    parser.add_argument("--out", type=Path, help="the picture (default: in docs/img)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    pictures = Path(__file__).parent.parent / "docs" / "img"
    if options.what == "growth":
        growth(options.data, options.out or pictures / "training-growth.png")
    elif options.what == "all":
        growth_of_all(options.data, options.out or pictures / "training-growth-all.png")
    elif options.what == "threads":
        compare_threads(options.data, options.megabytes, options.size, options.rounds, options.only.split(","))
    else:
        compare(options.what, options.data, options.megabytes, options.size, options.rounds)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

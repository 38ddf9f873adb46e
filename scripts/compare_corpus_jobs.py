"""Corpus jobs against others who do the same: gigatoken's ``encode_files``, and ``datasets.map`` with tokenizers.

    python scripts/compare_corpus_jobs.py tokenizer.json TEXT [--megabytes 100] [--rounds 5] [--threads 2] [--only WHAT]

The lines of TEXT are repeated to so many megabytes, and written as text, JSON lines and Parquet. What is compared, in turn
and in one process, each side beginning with empty caches; output is written to disk on both, and synced:

- ``gigatoken``: from the text file to ids and offsets in NumPy files; wall seconds.
- ``datasets``: ``Dataset.map`` of the Parquet file (at most 25 MB of it), batched, with ``tokenizers``' ``encode_batch``;
  against a job from Parquet to Arrow, and against ``map`` with ``jittok.interop.datasets.encoder``.
- ``arrow``: ``encode_arrow`` of an Arrow array, against ``encode_batch`` of the same texts as a list of str.

What is not installed is left out. Printed are the least wall seconds of each side, and the ratio.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from measure_corpus_jobs import write_inputs

import jittok
from jittok.corpus import encode_corpus


def synced(path: Path) -> None:
    """Have a file that was written on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def race(title: str, sides: dict[str, Callable[[], Callable[[], None]]], rounds: int) -> None:
    """Run each side in turn: what is called first makes ready, what it returns is timed; print the least."""
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(rounds):
        for name, prepare in sides.items():
            work = prepare()
            begin = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - begin)
    names = list(sides)
    other = names[-1]
    for name in names:
        print(f"{title:12} {name:28} {best[name]:8.3f} s wall   {best[other] / best[name]:6.2f} times {other}", flush=True)


def job(tokenizer, source: Path, out: Path, form: str, threads: int) -> Callable[[], Callable[[], None]]:
    """One side: a job with an empty cache and a new folder."""

    def prepare() -> Callable[[], None]:
        shutil.rmtree(out, ignore_errors=True)
        tokenizer.clear_cache()
        return lambda: encode_corpus(tokenizer, [source], out, format=form, threads=threads) and None

    return prepare


def against_gigatoken(options: argparse.Namespace, tokenizer, folder: Path) -> None:
    """From a text file."""
    try:
        import awkward
        import gigatoken
    except ImportError:
        print("gigatoken    is not installed")
        return
    out = folder / "theirs"

    def prepare() -> Callable[[], None]:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        theirs = gigatoken.Tokenizer(options.tokenizer)
        source = gigatoken.TextFileSource([str(folder / "a.txt")], separator=b"\n")

        def work() -> None:
            layout = awkward.to_layout(theirs.encode_files(source))
            np.save(out / "ids.npy", np.asarray(layout.content.data))
            np.save(out / "offsets.npy", np.asarray(layout.offsets.data))
            synced(out / "ids.npy")
            synced(out / "offsets.npy")

        return work

    sides = {form: job(tokenizer, folder / "a.txt", folder / "ours", form, options.threads) for form in ("npy", "raw")}
    race("gigatoken", {**{f"jittok, {form}": side for form, side in sides.items()}, "gigatoken": prepare}, options.rounds)
    ours, theirs = np.load(folder / "check.npy", mmap_mode="r"), np.load(out / "ids.npy", mmap_mode="r")
    print(f"gigatoken    {len(ours):,} ids and {len(theirs):,};", "equal" if np.array_equal(ours, theirs) else "NOT equal")


def against_datasets(options: argparse.Namespace, tokenizer, folder: Path) -> None:
    """From a Parquet file."""
    try:
        import datasets
        import tokenizers
    except ImportError:
        print("datasets     datasets or tokenizers is not installed")
        return
    import pyarrow.parquet

    from jittok.interop.datasets import encoder

    datasets.disable_progress_bars()
    table = pyarrow.parquet.read_table(folder / "a.parquet")
    table = table.slice(0, max(1, table.num_rows * 25_000_000 // max(table.nbytes, 25_000_000)))
    path = folder / "small.parquet"
    pyarrow.parquet.write_table(table, path)
    theirs = tokenizers.Tokenizer.from_file(options.tokenizer)
    cache = folder / "cache"

    def mapped(function: Callable[[], Callable]) -> Callable[[], Callable[[], None]]:
        def prepare() -> Callable[[], None]:
            shutil.rmtree(cache, ignore_errors=True)
            tokenizer.clear_cache()
            data = datasets.Dataset.from_parquet(str(path), cache_dir=str(cache))
            return lambda: data.map(function(), batched=True, remove_columns=["text"], load_from_cache_file=False) and None

        return prepare

    def by_tokenizers() -> Callable:
        return lambda batch: {"input_ids": [one.ids for one in theirs.encode_batch(batch["text"])]}

    sides = {
        "jittok, job to Arrow": job(tokenizer, path, folder / "ours", "arrow", options.threads),
        "map with jittok's encoder": mapped(lambda: encoder(tokenizer, threads=options.threads)),
        "map with tokenizers": mapped(by_tokenizers),
    }
    race("datasets", sides, min(options.rounds, 3))


def against_lists(options: argparse.Namespace, tokenizer, folder: Path) -> None:
    """From Arrow to Arrow."""
    import pyarrow.parquet

    array = pyarrow.parquet.read_table(folder / "a.parquet").column("text").combine_chunks()
    texts = array.to_pylist()

    def arrow() -> Callable[[], None]:
        tokenizer.clear_cache()
        return lambda: tokenizer.encode_arrow(array, threads=options.threads) and None

    def lists() -> Callable[[], None]:
        tokenizer.clear_cache()
        return lambda: tokenizer.encode_batch(texts, threads=options.threads).to_arrow() and None

    def pylist() -> Callable[[], None]:
        tokenizer.clear_cache()
        return lambda: tokenizer.encode_batch(array.to_pylist(), threads=options.threads).to_arrow() and None

    race("arrow", {"encode_arrow": arrow, "through to_pylist()": pylist, "list of str at hand": lists}, options.rounds)


COMPARISONS = {"gigatoken": against_gigatoken, "datasets": against_datasets, "arrow": against_lists}


def main() -> None:
    """Compare; see the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", help="a tokenizer.json, which all libraries read")
    parser.add_argument("text", type=Path)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=list(COMPARISONS))
    options = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = str(options.threads)
    tokenizer = jittok.load(options.tokenizer)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder, options.text, options.megabytes)
        encode_corpus(tokenizer, [folder / "a.txt"], folder / "check", threads=options.threads)
        (folder / "check" / "a.txt.ids.npy").rename(folder / "check.npy")
        for name, compare in COMPARISONS.items():
            if options.only in (None, name):
                compare(options, tokenizer, folder)


if __name__ == "__main__":
    main()

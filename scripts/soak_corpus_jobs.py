"""How much memory a long corpus job takes, and that it does not grow when jobs are repeated (Linux).

    python scripts/soak_corpus_jobs.py TOKENIZER TEXT [--gigabytes 5] [--repeats 10] [--threads 2]
        [--input parquet] [--format npy]

The documents of TEXT (apart by NUL, or else lines) are repeated to so many gigabytes in one file. A new process encodes it
once: printed are the wall seconds and the most memory that the process took. Another one encodes a part, a tenth of it,
as many times as is wanted: printed is the memory that it holds after each. The exit code is 1 if the first took a
gigabyte or more, or the second grew by more than 3 % after the third time.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import shutil
import sys
import tempfile
import time
from pathlib import Path

from measure_corpus_jobs import write_inputs

import jittok
from jittok.corpus import encode_corpus

LIMIT = 1_000_000_000
GROWTH = 1.03


def memory(name: str) -> int:
    """Bytes that this process takes (VmRSS), or took at most (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def once(tokenizer, source: Path, out: Path, options: argparse.Namespace) -> float:
    """Encode a file into a new folder; return the seconds."""
    begin = time.perf_counter()
    summary = encode_corpus(tokenizer, [source], out, format=options.format, threads=options.threads)
    seconds = time.perf_counter() - begin
    print(f"  {summary.documents:,} documents, {summary.tokens:,} tokens", end="", flush=True)
    shutil.rmtree(out)
    return seconds


def one_long_job(source: Path, folder: Path, options: argparse.Namespace) -> None:
    """Encode a large file; exit with 1 if that takes too much memory."""
    tokenizer = jittok.load(options.tokenizer)
    seconds = once(tokenizer, source, folder / "out", options)
    print(f", {seconds:.1f} s, at most {memory('VmHWM') / 1e6:,.0f} MB", flush=True)
    sys.exit(memory("VmHWM") >= LIMIT)


def many_jobs(source: Path, folder: Path, options: argparse.Namespace) -> None:
    """Encode a file again and again; exit with 1 if memory grows."""
    tokenizer = jittok.load(options.tokenizer)
    held = []
    for _ in range(options.repeats):
        once(tokenizer, source, folder / "out", options)
        gc.collect()
        held.append(memory("VmRSS"))
        print(f", {held[-1] / 1e6:,.0f} MB", flush=True)
    sys.exit(held[-1] > GROWTH * held[min(2, len(held) - 1)])


def main() -> None:
    """Measure; see the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer")
    parser.add_argument("text", type=Path)
    parser.add_argument("--gigabytes", type=float, default=5)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--input", choices=("txt", "jsonl", "parquet"), default="parquet")
    parser.add_argument("--format", default="npy")
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as name:
        for work, share in ((one_long_job, 1.0), (many_jobs, 0.1)):
            folder = Path(name) / work.__name__
            folder.mkdir()
            write_inputs(folder, options.text, int(options.gigabytes * share * 1000), [f"a.{options.input}"])
            source = folder / f"a.{options.input}"
            print(f"{work.__name__.replace('_', ' ')}: {source.stat().st_size / 1e9:.2f} GB of {options.input}", flush=True)
            process = multiprocessing.get_context("spawn").Process(target=work, args=(source, folder, options))
            process.start()
            process.join()
            failed |= process.exitcode != 0
            shutil.rmtree(folder)
    sys.exit(failed)


if __name__ == "__main__":
    main()

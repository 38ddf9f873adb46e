"""How much faster two threads are than one, beside what this machine gives two processes that share nothing.

Each round encodes the same documents on one thread, then on two, then on one thread in each of two processes at once.
The last tells what the machine allows: where it gives two processes 1.7 times the speed of one, two threads cannot do
better. Medians are of the rounds' ratios; "fastest" is the ratio of the fastest times of all rounds, which noise spares.

Usage::

    python scripts/thread_scaling.py --tokenizer gpt2=models/gpt2 --corpus english.txt [--separator '\\0'] [--rounds 9]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
from pathlib import Path
from typing import Any

import jittok

#: Calls in a row that are timed together.
CALLS = 3


def documents(path: Path, separator: str) -> list[str]:
    """Return the documents of a text file."""
    text = path.read_bytes().decode()
    return [part for part in text.split(separator.encode().decode("unicode_escape")) if part]


def timed(tokenizer: jittok.Tokenizer, texts: Any, threads: int) -> tuple[float, float]:
    """Return the wall and the processor time of encoding, in seconds: the mean of calls in a row, but for a first one.

    That one finds in the processors' caches what ran there before.
    """
    tokenizer.encode_batch(texts, threads=threads)
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(CALLS):
        tokenizer.encode_batch(texts, threads=threads)
    return (time.perf_counter() - wall) / CALLS, (time.process_time() - cpu) / CALLS


def partner(connection: Any, path: str, texts: Any) -> None:
    """Encode on one thread whenever asked to, and say how long it took; until there is no more to be asked."""
    tokenizer = jittok.load(path)
    for _ in range(2):
        tokenizer.encode_batch(texts, threads=1)
    connection.send(0.0)
    while connection.recv():
        connection.send(timed(tokenizer, texts, 1)[0])


def scaling(path: str, texts: Any, rounds: int) -> dict[str, float]:
    """Return speed-ups by threads and by processes, and the growth of processor time, over all rounds."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=partner, args=(there, path, texts))
    process.start()
    tokenizer = jittok.load(path)
    for threads in (1, 2):
        tokenizer.encode_batch(texts, threads=threads)
    here.recv()
    one, two, apart, growth = [], [], [], []
    for _ in range(rounds):
        alone, alone_cpu = timed(tokenizer, texts, 1)
        both, both_cpu = timed(tokenizer, texts, 2)
        here.send(True)
        mine = timed(tokenizer, texts, 1)[0]
        other = here.recv()
        one.append(alone)
        two.append(both)
        apart.append(max(mine, other) / 2)
        growth.append(both_cpu / alone_cpu)
    here.send(False)
    process.join()
    return {
        "threads": statistics.median(a / b for a, b in zip(one, two, strict=True)),
        "fastest": min(one) / min(two),
        "processes": statistics.median(a / b for a, b in zip(one, apart, strict=True)),
        "fastest_processes": min(one) / min(apart),
        "growth": statistics.median(growth),
    }


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", action="append", required=True, metavar="NAME=PATH")
    parser.add_argument("--corpus", action="append", required=True, type=Path)
    parser.add_argument("--separator", default="\\n\\n", help="between documents (default: a blank line)")
    parser.add_argument("--form", action="append", choices=("list", "arrow"), help="what is given (default: both)")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    os.environ.setdefault("JITTOK_BACKGROUND", "0")
    print("| tokenizer | corpus | given as | two threads (median) | (fastest) | two processes | (fastest) | CPU time |")
    print("|---|---|---|---|---|---|---|---|")
    for named in arguments.tokenizer:
        name, _, path = named.partition("=")
        for corpus in arguments.corpus:
            texts = documents(corpus, arguments.separator)
            for form in arguments.form or ("list", "arrow"):
                given: Any = texts
                if form == "arrow":
                    import pyarrow

                    given = pyarrow.array(texts)
                found = scaling(path, given, arguments.rounds)
                print(
                    f"| {name} | {corpus.stem} | {form} | {found['threads']:.2f} | {found['fastest']:.2f} | "
                    f"{found['processes']:.2f} | {found['fastest_processes']:.2f} | {found['growth']:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()

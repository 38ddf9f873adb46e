"""Measure how long a new process takes to its first ids; prints a Markdown table.

Every row is the median of several new interpreters: wall time, and CPU time of the process itself. "warm": with
all kernels in the cache; "none": with an empty cache, where short texts are interpreted while a process in the
background compiles; "none, compiled at once": the same with JITTOK_BACKGROUND=0.

    python scripts/measure_startup.py [--repeat 7] [--cold-repeat 1] [FILE ...]

FILE: tokenizer.json files to measure besides the built-in tokenizer; each is measured as it is and as a jittok
file.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = """
import time, sys, json
import jittok
tokenizer = jittok.load(sys.argv[1])
result = {call}
print(json.dumps([time.process_time(), len(result), "numba" in sys.modules]))
"""
CALLS = {
    "load": "[]",
    "encode": "tokenizer.encode('Hello, world! To be, or not to be.').ids",
    "encode_batch": "tokenizer.encode_batch(['Hello, world!', 'To be, or not to be.'] * 8).ids",
    "encode_batch 1 MB": "tokenizer.encode_batch(['To be, or not to be, that is the question. '] * 24000).ids",
}


def run(path: Path, call: str, environment: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU seconds of one new process."""
    code = PROGRAM.format(call=CALLS[call])
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], env=environment, check=True, capture_output=True, text=True
    )
    return time.perf_counter() - start, json.loads(done.stdout)[0]


def wait_for_background(folder: str) -> None:
    """Return when no process compiles into a cache folder any more."""
    import fcntl

    for lock in Path(folder).rglob("background.lock"):
        with open(lock) as file:
            fcntl.flock(file, fcntl.LOCK_EX)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--repeat", type=int, default=7, help="processes for each row with a warm cache")
    parser.add_argument("--cold-repeat", type=int, default=1, help="processes for each row with no cache")
    options = parser.parse_args()

    import jittok

    base = {**os.environ, "PYTHONPATH": str(Path(jittok.__file__).parent.parent)}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        inputs: list[tuple[str, Path]] = []
        default = Path(scratch, "default.tokenizer.json")
        jittok.load_default().save(default, format="tokenizer.json")
        for name, file in [("default", default), *((str(f), f) for f in options.files)]:
            stored = Path(scratch, f"{len(inputs)}.jittok")
            jittok.load(file).save(stored)
            inputs += [(f"{name}, jittok file", stored), (f"{name}, {file.name}", file)]
        warm = {**base, "JITTOK_CACHE_DIR": str(Path(scratch, "warm")), "JITTOK_BACKGROUND": "0"}
        print("| tokenizer | cache | call | wall s | CPU s |\n|---|---|---|---|---|")

        def row(label: str, cache: str, call: str, results: list[tuple[float, float]]) -> None:
            wall, cpu = (statistics.median(column) for column in zip(*results, strict=True))
            print(f"| {label} | {cache} | {call} | {wall:.3f} | {cpu:.3f} |", flush=True)

        for label, path in inputs:
            for call in CALLS:
                run(path, call, warm)
                row(label, "warm", call, [run(path, call, warm) for _ in range(options.repeat)])
        for label, path in inputs[:2]:
            for cache, setting in (("none", "1"), ("none, compiled at once", "0")):
                for call in ("encode", "encode_batch 1 MB"):
                    results = []
                    for _ in range(options.cold_repeat):
                        with tempfile.TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as folder:
                            cold = {**base, "JITTOK_CACHE_DIR": folder, "JITTOK_BACKGROUND": setting}
                            results.append(run(path, call, cold))
                            wait_for_background(folder)
                    row(label, cache, call, results)


if __name__ == "__main__":
    main()

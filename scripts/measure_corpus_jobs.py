"""What a corpus job costs beside bare encoding, and how much memory it takes.

    python scripts/measure_corpus_jobs.py TOKENIZER TEXT [--megabytes 200] [--threads 2] [--rounds 5]

The documents of TEXT (apart by NUL, or else lines) are repeated to so many megabytes and written as text, JSON lines and
Parquet. In turn, each is encoded by a job, and the text's blocks, held in memory, by ``encode_batch``.
Printed are the least processor and wall seconds, the shares of the bare encoding's speed, and the greatest memory of a
process that runs one job (Linux).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import jittok
from jittok.corpus import encode_corpus
from jittok.corpus.blocks import read_blocks

FORMATS = {"a.txt": "npy", "a.jsonl": "npy", "a.parquet": "npy", "a.txt raw": "raw"}


def write_inputs(folder: Path, text: Path, megabytes: int, names: Sequence[str] = ("a.txt", "a.jsonl", "a.parquet")) -> None:
    """Write the files."""
    content = text.read_bytes()
    parts = content.split(b"\0" if b"\0" in content else b"\n")
    documents = [part.decode("utf-8", "replace").replace("\n", " ") for part in parts if part]
    times = max(1, megabytes * 1_000_000 // sum(len(document.encode()) for document in documents))
    if "a.txt" in names:
        with open(folder / "a.txt", "w", encoding="utf-8") as lines:
            lines.writelines("".join(document + "\n" for document in documents) for _ in range(times))
    if "a.jsonl" in names:
        objects = "".join(json.dumps({"text": document}, ensure_ascii=False) + "\n" for document in documents)
        with open(folder / "a.jsonl", "w", encoding="utf-8") as lines:
            lines.writelines(objects for _ in range(times))
    if "a.parquet" in names:
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.table({"text": documents})
        with pyarrow.parquet.ParquetWriter(folder / "a.parquet", table.schema) as writer:
            for _ in range(times):
                writer.write_table(table)


def seconds(work) -> tuple[float, float]:
    """Processor and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def run_job(tokenizer, folder: Path, name: str, threads: int) -> None:
    """Encode one of the files."""
    path = folder / name.split()[0]
    encode_corpus(tokenizer, [path], folder / "out", format=FORMATS[name], threads=threads)


def peak(arguments) -> float:
    """Megabytes that a process takes, in a process of its own."""
    path, folder, name, threads = arguments
    run_job(jittok.load(path), folder, name, threads)
    shutil.rmtree(folder / "out")
    # what getrusage says is that of the parent, if that is more
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000


def main() -> None:
    """Measure; see the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer")
    parser.add_argument("text", type=Path)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    tokenizer = jittok.load(options.tokenizer)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder, options.text, options.megabytes)
        names = list(FORMATS)

        def bare() -> None:
            for data, indptr in blocks:
                tokenizer.encode_batch((data, indptr), add_special_tokens=False, threads=options.threads)

        blocks = [(block.data, block.indptr) for block in read_blocks(str(folder / "a.txt"), "newline")]
        bare()
        best = {key: (float("inf"), float("inf")) for key in ("bare", *names)}
        for _ in range(options.rounds):
            for key in best:
                work = bare if key == "bare" else lambda key=key: run_job(tokenizer, folder, key, options.threads)
                best[key] = tuple(map(min, best[key], seconds(work)))
                shutil.rmtree(folder / "out", ignore_errors=True)
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            jobs = [(options.tokenizer, folder, key, options.threads) for key in names]
            memory = dict(zip(names, pool.imap(peak, jobs, chunksize=1), strict=True))
        for key, (cpu, wall) in best.items():
            share = f"{best['bare'][0] / cpu:6.0%} {best['bare'][1] / wall:6.0%}"
            print(f"{key:10} {cpu:8.2f} s cpu {wall:8.2f} s wall  {share}  {memory.get(key, 0):8,.0f} MB")


if __name__ == "__main__":
    main()

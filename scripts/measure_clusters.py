"""How fast Ray and Spark encode a Parquet file on this machine, by workers and rows in a batch, beside one process.

    python scripts/measure_clusters.py --corpus english.txt [--separator '\\0'] [--engine ray] [--engine spark]

Wall time of encoding and counting the ids, after one run that starts the engine; starting it is printed apart.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute
import pyarrow.parquet

import jittok

ROW_GROUP = 2000


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the wall seconds of a call, and what it returned."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def alone(path: str, threads: int, batch: int) -> int:
    """Encode in this process, batch by batch."""
    tokenizer = jittok.load_default()
    total = 0
    for rows in pyarrow.parquet.ParquetFile(path).iter_batches(batch):
        total += len(tokenizer.encode_arrow(rows, "text", threads=threads).column("input_ids").values)
    return total


def measure_ray(path: str, report: Callable[..., None]) -> None:
    """Actors, and rows in a batch."""
    import ray

    from jittok.interop.ray import Encoder

    environment = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}}
    seconds, _ = timed(
        lambda: len(ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, runtime_env=environment).keys())
    )
    print(f"starting Ray: {seconds:.1f} s", flush=True)
    ray.data.DataContext.get_current().enable_progress_bars = False
    arguments = Encoder.arguments(jittok.load_default(), "text")

    def count(table: pyarrow.Table) -> pyarrow.Table:
        ids = pyarrow.compute.list_value_length(table["input_ids"])
        return pyarrow.table({"n": [pyarrow.compute.sum(ids).as_py()]})

    def run(actors: int, batch: int | None) -> int:
        data = ray.data.read_parquet(path, override_num_blocks=8).map_batches(
            Encoder, fn_constructor_kwargs=arguments, batch_format="pyarrow", batch_size=batch,
            compute=ray.data.ActorPoolStrategy(size=actors),
        )  # fmt: skip
        return int(data.map_batches(count, batch_format="pyarrow", batch_size=None).sum("n"))

    run(2, None)
    for actors in (1, 2):
        for batch in (100, 1000, None):
            report(f"Ray, {actors} actors", "a block" if batch is None else batch, *timed(partial(run, actors, batch)))
    ray.shutdown()


def measure_spark(path: str, report: Callable[..., None]) -> None:
    """Workers, and rows in a batch."""
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import size
    from pyspark.sql.functions import sum as total

    from jittok.interop.spark import encode

    os.environ["PYSPARK_PYTHON"] = sys.executable
    tokenizer = jittok.load_default()

    def run(session: Any, batch: int) -> int:
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(batch))
        frame = encode(session.read.parquet(path), "text", tokenizer)
        return int(frame.select(total(size("input_ids"))).first()[0])

    for workers in (1, 2):
        builder = SparkSession.builder.master(f"local[{workers}]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.files.maxPartitionBytes", "4m")
        seconds, session = timed(builder.getOrCreate)
        session.sparkContext.setLogLevel("OFF")
        print(f"starting Spark with {workers} workers: {seconds:.1f} s", flush=True)

        run(session, 1000)
        for batch in (100, 1000, 10_000):
            report(f"Spark, {workers} workers", batch, *timed(partial(run, session, batch)))
        session.stop()


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--separator", default="\\n\\n", help="between documents (default: a blank line)")
    parser.add_argument("--megabytes", type=float, default=100, help="the corpus is repeated up to this size")
    parser.add_argument("--engine", action="append", choices=("ray", "spark"), help="default: both")
    options = parser.parse_args()
    separator = options.separator.encode().decode("unicode_escape")
    texts = [text for text in options.corpus.read_bytes().decode().split(separator) if text]
    size = sum(len(text.encode()) for text in texts)
    texts *= max(1, round(options.megabytes * 1e6 / size))
    size = sum(len(text.encode()) for text in texts)
    print(f"{size / 1e6:.0f} MB in {len(texts):,} rows\n")
    expected: list[int] = []

    def report(name: str, batch: object, seconds: float, n_ids: int) -> None:
        expected.append(n_ids)
        assert n_ids == expected[0], "the engines do not agree"
        print(f"| {name} | {batch} | {seconds:.2f} | {size / 1e6 / seconds:.0f} |", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "texts.parquet")
        pyarrow.parquet.write_table(pyarrow.table({"text": texts}), path, row_group_size=ROW_GROUP)
        print("| | rows in a batch | wall s | MB/s |\n|---|---|---|---|")
        alone(path, 2, 1000)
        for threads in (1, 2):
            for batch in (100, 1000, 10_000):
                report(f"one process, {threads} threads", batch, *timed(partial(alone, path, threads, batch)))
        for engine in options.engine or ("ray", "spark"):
            {"ray": measure_ray, "spark": measure_spark}[engine](path, report)


if __name__ == "__main__":
    main()

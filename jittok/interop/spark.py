"""Spark: encode a data frame on a cluster, and count its words for training."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError
from .shared_file import MERGED_AT_ONCE, shared_tokenizer, tokenizer_bytes

if TYPE_CHECKING:
    from ..training.word_counts import WordCounts


def encode(frame: Any, column: str, tokenizer: Any, *, output: str = "input_ids", **settings: Any) -> Any:
    """Return a data frame with a column of ids.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Has texts in a column; a null has no ids.
    column
        Its name.
    tokenizer
        A :class:`jittok.Tokenizer`, or the path of one that this machine can read. It is sent to each machine once, where
        the workers map one file into memory.
    output
        The name of the new column, an array of integers.
    **settings
        As in :meth:`jittok.Tokenizer.encode_arrow`; ``threads`` is 1 unless it is given.

    Raises
    ------
    ArgumentError
        There is no such column, or one named `output` already.

    Examples
    --------
    >>> encoded = jittok.interop.spark.encode(frame, "text", "tokenizer.json")  # doctest: +SKIP
    """
    from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

    names = frame.schema.names
    if column not in names:
        raise ArgumentError(f"column={column!r}: there are {', '.join(names)}")
    if output in names:
        raise ArgumentError(f"output={output!r}: there is such a column already; give another name")
    field = StructField(output, ArrayType(IntegerType(), False), frame.schema[column].nullable)
    sent = frame.sparkSession.sparkContext.broadcast(tokenizer_bytes(tokenizer))
    chosen = {"threads": 1, **settings}

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        encoder = shared_tokenizer(sent.value)
        for batch in batches:
            yield encoder.encode_arrow(batch, column, output=output, **chosen)

    return frame.mapInArrow(run, StructType([*frame.schema.fields, field]))


def count_words(frame: Any, column: str, **steps: Any) -> WordCounts:
    """Count the words of a data frame on the cluster; train with the result on one machine.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Has texts in a column; nulls are left out.
    column
        Its name.
    **steps
        ``normalizer`` and ``pre_tokenizer``, as in :func:`jittok.count_words`.

    Returns
    -------
    WordCounts
        The same as :func:`jittok.count_words` gives for all texts, however they are shared out.
    """
    from ..training.word_counts import count_words as count
    from ..training.word_counts import merge_counts

    if column not in frame.schema.names:
        raise ArgumentError(f"column={column!r}: there are {', '.join(frame.schema.names)}")

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        # One result for each task, not for each batch.
        texts = (text.as_py() for batch in batches for text in batch.column(0) if text.is_valid)
        counts = pickle.dumps(count(texts, threads=1, **steps))
        yield pyarrow.RecordBatch.from_pydict({"counts": pyarrow.array([counts], pyarrow.binary())})

    parts: list[WordCounts] = []
    for row in frame.select(column).mapInArrow(run, "counts binary").toLocalIterator():
        parts.append(pickle.loads(bytes(row["counts"])))
        if len(parts) == MERGED_AT_ONCE:
            parts = [merge_counts(parts)]
    return merge_counts(parts) if parts else count([], threads=1, **steps)

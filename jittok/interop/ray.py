"""Ray Data: encode a data set on a cluster, and count its words for training."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from .shared_file import MERGED_AT_ONCE, shared_tokenizer, tokenizer_bytes

if TYPE_CHECKING:
    from ..training.word_counts import WordCounts


class Encoder:
    """What ``ray.data.Dataset.map_batches`` takes as an actor: adds a column of ids to batches.

    On each machine the tables are one file, which the actors there map into memory.

    Parameters
    ----------
    tokenizer
        A :class:`jittok.Tokenizer`, or a path that every machine can read. Give what :meth:`arguments` returns instead,
        and the machine that starts the job alone has to read it.
    column
        The column with the text.
    output
        The column that the ids go to.
    **settings
        As in :meth:`jittok.Tokenizer.encode_arrow`; ``threads`` is 1 unless it is given.

    Examples
    --------
    Two actors, with batches as they are in memory::

        encoder = jittok.interop.ray.Encoder
        data = ray.data.read_parquet("corpus/").map_batches(
            encoder, fn_constructor_kwargs=encoder.arguments(tokenizer, "text"),
            batch_format="pyarrow", batch_size=None, compute=ray.data.ActorPoolStrategy(size=2),
        )
    """

    def __init__(self, tokenizer: Any, column: str = "text", output: str = "input_ids", **settings: Any) -> None:
        content = tokenizer if isinstance(tokenizer, bytes) else tokenizer_bytes(tokenizer)
        self._tokenizer = shared_tokenizer(content)
        self._column, self._output = column, output
        self._settings = {"threads": 1, **settings}

    @staticmethod
    def arguments(
        tokenizer: Any, column: str = "text", output: str = "input_ids", **settings: Any
    ) -> dict[str, Any]:
        """Return arguments of the constructor that hold the tokenizer itself, to be sent to other machines."""
        return {"tokenizer": tokenizer_bytes(tokenizer), "column": column, "output": output, **settings}

    def __call__(self, batch: Any) -> Any:
        """Return a batch, a ``pyarrow.Table``, with the new column; the map needs ``batch_format="pyarrow"``."""
        return self._tokenizer.encode_arrow(batch, self._column, output=self._output, **self._settings)


def count_words(dataset: Any, column: str = "text", *, batch_size: int | None = None, **steps: Any) -> WordCounts:
    """Count the words of a data set on the cluster; train with the result on one machine.

    Parameters
    ----------
    dataset : ray.data.Dataset
        Has texts in a column.
    column
        Its name.
    batch_size
        Rows that a task counts; None: a whole block.
    **steps
        ``normalizer`` and ``pre_tokenizer``, as in :func:`jittok.count_words`.

    Returns
    -------
    WordCounts
        The same as :func:`jittok.count_words` gives for all texts, however they are shared out.
    """
    from ..training.word_counts import merge_counts

    counting = {"column": column, "steps": steps}
    counted = dataset.map_batches(
        _count_batch, fn_kwargs=counting, batch_format="pyarrow", batch_size=batch_size, zero_copy_batch=True
    )
    parts: list[WordCounts] = []
    for row in counted.iter_rows():
        parts.append(pickle.loads(row["counts"]))
        if len(parts) == MERGED_AT_ONCE:
            parts = [merge_counts(parts)]
    return merge_counts(parts) if parts else _counted([], steps)


def _count_batch(batch: Any, column: str, steps: dict[str, Any]) -> Any:
    import pyarrow

    counts = _counted(batch.column(column), steps)
    return pyarrow.table({"counts": pyarrow.array([pickle.dumps(counts)], pyarrow.large_binary())})


def _counted(texts: Any, steps: dict[str, Any]) -> WordCounts:
    from ..training.word_counts import count_words as count

    return count(texts, threads=1, **steps)

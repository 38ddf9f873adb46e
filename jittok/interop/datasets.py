"""HuggingFace datasets: a function for ``Dataset.map`` whose fingerprint says what it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError
from .shared_file import tokenizer_bytes

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer


class Encoder:
    """Encodes a column of batches; see :func:`encoder`.

    What it pickles to, which ``datasets`` makes its fingerprint of, follows from the tokenizer and the settings alone: the
    same work is found in the cache by every later process.
    """

    def __init__(self, tokenizer: Tokenizer, column: str, output: str, settings: dict[str, Any]) -> None:
        self._tokenizer: Tokenizer | None = tokenizer
        self._state = tokenizer_bytes(tokenizer), column, output, tuple(sorted(settings.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_state, (self._state,)

    def __call__(self, batch: Any) -> Any:
        """Encode one batch, as ``Dataset.map(..., batched=True)`` gives it.

        Parameters
        ----------
        batch
            A mapping of columns to lists, or an Arrow table where the data set is in that format.

        Returns
        -------
        dict or pyarrow.Table
            The new column as a list of int32 arrays, None where there is no text; or the table with it.
        """
        from .shared_file import shared_tokenizer

        content, column, output, settings = self._state
        if self._tokenizer is None:
            self._tokenizer = shared_tokenizer(content)
        if type(batch).__module__.split(".")[0] == "pyarrow":
            return self._tokenizer.encode_arrow(batch, column, output=output, **dict(settings))
        if not isinstance(batch, Mapping) or column not in batch:
            names = ", ".join(map(str, batch)) if isinstance(batch, Mapping) else type(batch).__name__
            raise ArgumentError(f"column={column!r}: not in the batch, which has {names}; use map(..., batched=True)")
        texts = batch[column]
        if isinstance(texts, str):
            raise ArgumentError(f"column={column!r}: expected a list of texts, got one; use map(..., batched=True)")
        kept = [text for text in texts if text is not None]
        ids = self._tokenizer.encode_batch(kept, **dict(settings))
        bounds = ids.indptr.tolist()
        rows = (ids.ids[begin:end] for begin, end in zip(bounds, bounds[1:], strict=False))
        return {output: [None if text is None else next(rows) for text in texts]}


def encoder(tokenizer: Tokenizer, column: str = "text", *, output: str = "input_ids", **settings: Any) -> Encoder:
    """Return a function for ``Dataset.map(..., batched=True)``.

    Parameters
    ----------
    tokenizer
        Encodes; in processes that ``num_proc=`` starts, from one file that they share.
    column
        The column with the text.
    output
        The column that the ids go to.
    **settings
        As in :meth:`jittok.Tokenizer.encode_batch`; pass ``threads=1`` with ``num_proc=``.

    Examples
    --------
    >>> import jittok
    >>> from jittok.interop.datasets import encoder
    >>> encode = encoder(jittok.load_default())
    >>> [ids.tolist() for ids in encode({"text": ["", "one"]})["input_ids"]][0]
    []
    """
    return Encoder(tokenizer, column, output, settings)


def _from_state(state: tuple[bytes, str, str, tuple[tuple[str, Any], ...]]) -> Encoder:
    made = Encoder.__new__(Encoder)
    made._tokenizer, made._state = None, state
    return made

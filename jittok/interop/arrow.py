"""Arrow data in, Arrow data out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import (
    ArgumentError,
    ArgumentTypeError,
    FormatError,
    MissingDependencyError,
    SpecialTokenError,
    TextError,
)

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer

#: Settings of ``encode_batch`` that give something other than one row of ids for each text.
_OTHERS = ("pairs", "spans", "overflowing", "stride", "reverse")


def encode_arrow(tokenizer: Tokenizer, data: Any, column: str | None, output: str, settings: dict[str, Any]) -> Any:
    """See :meth:`jittok.Tokenizer.encode_arrow`."""
    try:
        import pyarrow
    except ImportError:
        raise MissingDependencyError("encode_arrow() needs pyarrow: pip install 'jittok[arrow]'") from None
    for name in _OTHERS:
        if name in settings:
            raise ArgumentTypeError(f"{name}=: encode_arrow() gives one list of ids for each text; use encode_batch()")
    if isinstance(data, pyarrow.RecordBatch | pyarrow.Table):
        names = data.schema.names
        if column is None:
            raise ArgumentTypeError(f"column=: which one has the text? There are {', '.join(names)}")
        if names.count(column) != 1:
            found = "there are several" if column in names else f"there are {', '.join(names) or 'none'}"
            raise ArgumentError(f"column={column!r}: expected the name of one column; {found}")
        if output in names:
            raise ArgumentError(f"output={output!r}: there is such a column already; give another name")
        ids = _lists(tokenizer, data.column(column), settings)
        if isinstance(data, pyarrow.Table):
            return data.append_column(output, ids)
        field = pyarrow.field(output, ids.type)
        return pyarrow.RecordBatch.from_arrays([*data.columns, ids], schema=data.schema.append(field))
    if column is not None:
        raise ArgumentTypeError(f"column={column!r}: expected a RecordBatch or Table to take it from, got {_name(data)}")
    if not isinstance(data, pyarrow.Array | pyarrow.ChunkedArray):
        raise ArgumentTypeError(f"data: expected an Arrow array, RecordBatch or Table, got {_name(data)}")
    return _lists(tokenizer, data, settings)


def _lists(tokenizer: Tokenizer, array: Any, settings: dict[str, Any]) -> Any:
    """The ids of an array, in chunks as it has them."""
    import pyarrow

    if pyarrow.types.is_dictionary(array.type):
        if isinstance(array, pyarrow.ChunkedArray):
            chunks = [_lists(tokenizer, chunk, settings) for chunk in array.chunks]
            return pyarrow.chunked_array(chunks, chunks[0].type if chunks else pyarrow.list_(pyarrow.int32()))
        # Each text of the dictionary is encoded once.
        return _lists(tokenizer, array.dictionary, settings).take(array.indices)
    if pyarrow.types.is_null(array.type):
        array = array.cast(pyarrow.string())
    elif str(array.type) in ("string_view", "binary_view"):  # for which Arrow has few functions
        plain = pyarrow.large_string() if str(array.type) == "string_view" else pyarrow.large_binary()
        if isinstance(array, pyarrow.ChunkedArray):  # whose own cast drops chunks that are empty
            array = pyarrow.chunked_array([chunk.cast(plain) for chunk in array.chunks], plain)
        else:
            array = array.cast(plain)
    if not array.null_count:
        lists = tokenizer.encode_batch(array, **settings).to_arrow()
    else:
        is_null = _flags(array)
        try:
            lists = tokenizer.encode_batch(array.drop_null(), **settings).to_arrow()
        except (FormatError, SpecialTokenError, TextError) as error:
            raise type(error)(_with_row(str(error), is_null)) from None
        counts = np.zeros(len(array), np.int64)
        counts[~is_null] = np.diff(np.asarray(lists.offsets))
        offsets = np.zeros(len(array) + 1, np.asarray(lists.offsets).dtype)
        np.cumsum(counts, out=offsets[1:])
        lists = type(lists).from_arrays(pyarrow.array(offsets), lists.values, mask=pyarrow.array(is_null))
    if not isinstance(array, pyarrow.ChunkedArray):
        return lists
    starts = np.cumsum([0, *map(len, array.chunks)]).tolist()
    parts = [lists.slice(start, len(chunk)) for start, chunk in zip(starts, array.chunks, strict=False)]
    return pyarrow.chunked_array(parts, lists.type)


def _with_row(message: str, is_null: Any) -> str:
    """An error's message with the row that it is about among all, where it counts texts without nulls."""

    def row(match: re.Match[str]) -> str:
        return f"{match[1]}{int(np.flatnonzero(~is_null)[int(match[2])])}"

    return re.sub(r"^(text |texts\[)(\d+)", row, message)


def _flags(array: Any) -> Any:
    """bool[n]: which items are null."""
    import pyarrow

    flags = array.is_null()
    if isinstance(flags, pyarrow.ChunkedArray):
        return np.concatenate([chunk.to_numpy(zero_copy_only=False) for chunk in flags.chunks])
    return flags.to_numpy(zero_copy_only=False)


def _name(value: object) -> str:
    return type(value).__name__

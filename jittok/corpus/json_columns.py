"""Fields of JSON lines, but for the text, as columns of a table whose types do not depend on how far one has read.

A table has its columns and their types before its first row. Here the lines at the beginning of a file say what they are; a
value that fits in no column later is kept all the same, as JSON, in the column ``other_fields``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from jittok.errors import MissingDependencyError

#: Bytes at the beginning of a file whose lines say which columns there are.
SAMPLE = 1 << 20
#: The column for what fits in no other.
OTHERS = "other_fields"


class JsonColumns:
    """Columns for the fields of JSON lines.

    Parameters
    ----------
    sample
        The beginning of a file.
    is_all
        Whether that is all of it, so that its last line is whole.
    field, path
        Where the text is: a key that has precedence, or else keys one below the other.

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    """

    def __init__(self, sample: bytes, is_all: bool, field: str, path: Sequence[str]) -> None:
        try:
            import pyarrow
        except ImportError:
            raise MissingDependencyError("to carry fields along, install pyarrow; or pass --no-columns") from None
        self._field, self._path = field, path
        lines = sample.split(b"\n")
        kinds: dict[str, set[type]] = {}
        for line in lines if is_all else lines[:-1]:
            try:
                record = json.loads(line.decode().removeprefix("\ufeff"))
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                self._without_text(record)
                for key, value in record.items():
                    kinds.setdefault(key, set()).add(_kind(value))
        kinds.pop(OTHERS, None)
        types = {bool: pyarrow.bool_(), int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string()}
        #: Of each column, what its values are: bool, int, float, str; object stands for JSON.
        self._columns = {key: _column_kind(found) for key, found in kinds.items() if _can_be_encoded(key)}
        fields = [pyarrow.field(key, types.get(kind, pyarrow.string())) for key, kind in self._columns.items()]
        self._schema = pyarrow.schema([*fields, pyarrow.field(OTHERS, pyarrow.string())])

    def batch(self, records: Sequence[dict[str, Any]]) -> Any:
        """The fields of some lines, as a pyarrow RecordBatch; the records are changed.

        Parameters
        ----------
        records
            Objects of lines.
        """
        import pyarrow

        rows: list[list[Any]] = [[] for _ in self._schema]
        for record in records:
            self._without_text(record)
            for values, (key, kind) in zip(rows, self._columns.items(), strict=False):
                value = record.pop(key, None)
                if value is not None and kind is object:
                    value = _as_json(value)
                elif value is not None and not _fits(value, kind):
                    record[key], value = value, None
                values.append(value)
            rows[-1].append(_as_json(record) if record else None)
        arrays = [pyarrow.array(values, kind) for values, kind in zip(rows, self._schema.types, strict=True)]
        return pyarrow.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _without_text(self, record: dict[str, Any]) -> None:
        if record.get(self._field) is not None:
            del record[self._field]
            return
        parent: Any = record
        for key in self._path[:-1]:
            if isinstance(parent, dict):
                parent = parent.get(key)
            elif isinstance(parent, list) and key.isdecimal() and int(key) < len(parent):
                parent = parent[int(key)]
        last = self._path[-1]
        if isinstance(parent, dict):
            parent.pop(last, None)
        elif isinstance(parent, list) and last.isdecimal() and int(last) < len(parent):
            parent[int(last)] = None


def _kind(value: Any) -> type:
    """What a value is: None, bool, int, float, str; anything else is an object."""
    kind = type(value)
    if kind is int and not -(1 << 63) <= value < 1 << 63:
        return object
    return kind if kind in (type(None), bool, int, float, str) else object


def _column_kind(kinds: set[type]) -> type:
    """What a column holds in which such values are."""
    kinds = kinds - {type(None)}
    if kinds == {int, float}:
        return float
    return kinds.pop() if len(kinds) == 1 else object


def _fits(value: Any, kind: type) -> bool:
    if kind is float and type(value) is int:
        return -(1 << 53) <= value <= 1 << 53
    return _kind(value) is kind and (kind is not str or _can_be_encoded(value))


def _can_be_encoded(text: str) -> bool:
    try:
        text.encode()
        return True
    except UnicodeEncodeError:
        return False


def _as_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if _can_be_encoded(text) else json.dumps(value)

"""A source as batches of documents: lines or other pieces of text, a field of JSON lines, a column of a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.blocks import LONGER, Block, Problem, Separator, blocks_of
from jittok.corpus.json_columns import SAMPLE, JsonColumns
from jittok.corpus.sources import Source
from jittok.corpus.streams import Stream
from jittok.errors import ArgumentError, FormatError, MissingDependencyError
from jittok.memory import Buffers
from jittok.tables import read_only
from jittok.text import Texts, find_invalid

#: The documents of a batch, as :meth:`Tokenizer.encode_batch` takes them: bytes and where each begins, or str, or an
#: Arrow array without nulls.
DocumentTexts: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.int64]] | list[str] | Any

#: Kinds of problems that a record can be; see :class:`~jittok.corpus.blocks.Problem`.
TOO_LONG, NOT_JSON, NO_FIELD, NOT_TEXT, IS_NULL = "too long", "not JSON", "no field", "not a string", "null"
NOT_UTF_8, SPECIAL_TOKEN = "not UTF-8", "special token"
#: Blank lines of a file of JSON lines, and documents that are there though something was replaced in them.
IS_BLANK, REPLACED = "blank", "replaced"

#: Bytes of JSON lines and of a table's column that are read at a time, about.
BATCH_BYTES = 4 << 20
#: Blocks of JSON lines from this size on are read by a kernel, which need not be compiled for smaller ones.
_MUCH = 1 << 18
_buffers = Buffers(1 << 26)
#: Longer records are left out unless one asks for them: encoding takes memory of 4 to 9 times their size.
MAX_RECORD = 1 << 26
#: Most rows of a table that are read at a time.
_MOST_ROWS = 1 << 14


@dataclass(frozen=True)
class Reading:
    """How sources are read.

    Attributes
    ----------
    separator
        What documents of text files end with; see :func:`~jittok.corpus.blocks.read_blocks`.
    field
        Where the text is in the object of a JSON line: ``text``; ``data.text`` or ``choices.0.text``, keys and
        positions apart by dots; or a JSON pointer, ``/data/text``. A field of just this name comes first.
    column
        Of tables.
    limit
        Most bytes of a record, 64 MiB by default; longer ones are problems, and are not held in memory. None: any.
    keep_separators
        Whether a document of a text file ends with what ended it.
    keep_columns
        Whether the batches hold the other columns of tables, or fields of JSON lines.
    replace_invalid
        Whether bytes of JSON lines that are not UTF-8 become U+FFFD.
    batch_bytes
        How much is read at a time, about.
    labels
        Whether the field or column holds labels of the documents, which need not be strings: other values become what
        they are in JSON, so that 3 is "3".
    """

    separator: Separator | bytes = "newline"
    field: str = "text"
    column: str = "text"
    limit: int | None = MAX_RECORD
    keep_separators: bool = False
    keep_columns: bool = False
    replace_invalid: bool = False
    batch_bytes: int | None = None
    labels: bool = False


@dataclass(frozen=True, slots=True)
class Documents:
    """Some documents of a source.

    Attributes
    ----------
    texts
        What they say.
    numbers
        int64[n], rising: the number of each document's record in its source, from 0.
    starts, ends
        int64[n], where each record begins, and where to go on after it: bytes of the decompressed file, or rows.
    problems
        Records that are no documents.
    size
        Bytes that were read for them, about.
    done
        How many bytes of the source itself, which may be compressed, have been read so far, about.
    columns
        A pyarrow RecordBatch of the other columns or fields, or None.
    """

    texts: DocumentTexts
    numbers: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    problems: tuple[Problem, ...] = ()
    size: int = 0
    done: int = 0
    columns: Any = None

    def __len__(self) -> int:
        return len(self.numbers)

    def part(self, first: int, last: int) -> Documents:
        """The documents from `first` to before `last`, without problems."""
        if isinstance(self.texts, tuple):
            data, indptr = self.texts
            texts: Any = data, indptr[first : last + 1]
        else:
            texts = self.texts[first:last]
        rows = slice(first, last)
        columns = None if self.columns is None else self.columns.slice(first, last - first)
        return Documents(texts, self.numbers[rows], self.starts[rows], self.ends[rows], (), 0, self.done, columns)

    def without(self, rows: NDArray[np.bool_], problems: tuple[Problem, ...]) -> Documents:
        """The documents but for `rows`, which are `problems`."""
        kept = np.flatnonzero(~rows)
        if isinstance(self.texts, tuple):
            data, indptr = self.texts
            data = data[indptr[0] : indptr[-1]][np.repeat(~rows, np.diff(indptr))]
            lengths = np.diff(indptr)[kept]
            texts: Any = data, np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        elif isinstance(self.texts, list):
            texts = [self.texts[i] for i in kept]
        else:
            texts = self.texts.take(kept)
        columns = None if self.columns is None else self.columns.take(kept)
        found = tuple(sorted((*self.problems, *problems)))
        return Documents(texts, self.numbers[kept], self.starts[kept], self.ends[kept], found, self.size, self.done, columns)


def place(source: Source, number: int, position: int, separator: Separator | bytes = "newline") -> str:
    """Where a record is, for people: ``a.jsonl: line 3``.

    Parameters
    ----------
    source
        Its file.
    number, position
        Of the record.
    separator
        What documents of text files end with.
    """
    if source.kind in ("parquet", "arrow"):
        return f"{source.path}: row {number:,}"
    if source.kind == "jsonl" or separator == "newline":
        return f"{source.path}: line {number + 1:,}"
    return f"{source.path}: document {number + 1:,}, at byte {position:,}"


def read_documents(
    source: Source, reading: Reading, position: int = 0, number: int = 0, columns: JsonColumns | None = None
) -> Iterator[Documents]:
    """Yield the documents of a source in batches of some megabytes.

    Parameters
    ----------
    source
        The file.
    reading
        How to read it.
    position, number
        Where to begin: an element of :attr:`Documents.ends`, and the number of the next record.
    columns
        Those to make of the fields of JSON lines; by default the source's own.

    Raises
    ------
    MissingFileError
        The file cannot be read.
    FormatError
        It cannot be decompressed, or is not what it should be.
    MissingDependencyError
        It needs an optional package.
    ArgumentError
        The table has no such column.
    """
    if source.kind == "text":
        return _read_text(source, reading, position, number)
    if source.kind == "jsonl":
        return _read_json_lines(source, reading, position, number, columns)
    return _read_table(source, reading, number)


def _read_text(source: Source, reading: Reading, position: int, number: int) -> Iterator[Documents]:
    seen = position
    with Stream(source.path) as stream:
        for block in blocks_of(
            stream, reading.separator, reading.batch_bytes, reading.keep_separators, reading.limit, position, number
        ):  # fmt: skip
            texts = block.data, block.indptr
            size, seen = stream.count - seen, stream.count
            yield Documents(texts, block.numbers, block.starts, block.ends, block.problems, size, stream.position())


# ---------------------------------------------------------------------------------------------------- JSON lines


def columns_of(source: Source, reading: Reading) -> JsonColumns:
    """What columns the fields of JSON lines are.

    Parameters
    ----------
    source
        A file of JSON lines.
    reading
        How it is read.
    """
    with Stream(source.path) as stream:
        return _columns_of(stream, reading)


def _columns_of(stream: Stream, reading: Reading) -> JsonColumns:
    sample = b""
    while len(sample) < SAMPLE and (more := stream.read(SAMPLE - len(sample))):
        sample += more
    stream.give_back(sample)
    return JsonColumns(sample, len(sample) < SAMPLE, reading.field, _path_of(reading.field))


def _read_json_lines(
    source: Source, reading: Reading, position: int, number: int, columns: JsonColumns | None
) -> Iterator[Documents]:
    text_of = _field_reader(reading)
    fields = _Fields(reading.field, not reading.keep_columns)
    seen = position
    with Stream(source.path) as stream:
        if reading.keep_columns:
            columns = columns or _columns_of(stream, reading)
        batch_bytes = reading.batch_bytes or BATCH_BYTES
        for block in blocks_of(stream, "newline", batch_bytes, False, reading.limit, position, number):
            problems = list(block.problems)
            found, ends, odd = fields.take(block)
            rows = odd.tolist()
            others: list[str | None] = []
            records: list[dict[str, Any]] = []
            for i in rows:
                text, kind, reason, record = text_of(bytes(block.data[block.indptr[i] : block.indptr[i + 1]]))
                if kind:
                    problems.append(Problem(int(block.numbers[i]), int(block.starts[i]), kind, reason))
                others.append(text)
                if text is not None:
                    records.append(record)
            texts = _joined(found, ends, rows, others)
            kept = np.ones(len(block.numbers), np.bool_)
            kept[[i for i, text in zip(rows, others, strict=True) if text is None]] = False
            numbers, starts, ends = block.numbers, block.starts, block.ends
            if not kept.all():
                numbers, starts, ends = numbers[kept], starts[kept], ends[kept]
            size, seen = stream.count - seen, stream.count
            batch = columns.batch(records) if columns is not None and reading.keep_columns else None
            done = stream.position()
            yield Documents(texts, numbers, starts, ends, tuple(sorted(problems)), size, done, batch)


class _Fields:
    """Takes a field from lines with a kernel, where that can be.

    Parameters
    ----------
    field
        As :class:`Reading` has it.
    alone
        Whether nothing else of a line is wanted.
    """

    def __init__(self, field: str, alone: bool) -> None:
        path = _path_of(field)
        names = [name.encode("utf-8", "surrogatepass") for name in (*path, "" if path == [field] else field)]
        self._keys = np.frombuffer(b"".join(names) + b"\0", np.uint8)
        self._bounds = np.cumsum([0, *map(len, names)])
        places = [min(int(key), (1 << 62)) if key.isdecimal() else -1 for key in path]
        self._places = np.array(places, np.int64)
        self._can_take = alone and len(path) < 50

    def take(self, block: Block) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """The strings of the field, where each ends, and which lines are left to :func:`_field_reader`: "" here."""
        n = len(block.numbers)
        if len(block.data) < _MUCH or not self._can_take:
            return np.zeros(0, np.uint8), np.zeros(n + 1, np.int64), np.arange(n)
        from jittok.kernels.json_lines import MOST_DEEP, read_fields

        out = _buffers.empty(len(block.data) + 64, np.uint8)
        ends = np.zeros(n + 1, np.int64)
        odd = np.empty(n, np.uint8)
        data, indptr = read_only(block.data), read_only(block.indptr)
        if (bad := _invalid_lines(data, indptr)).any():
            # what is not UTF-8 must not reach the kernel, and need not: an empty line is odd
            lengths = np.where(bad, 0, np.diff(indptr))
            data = read_only(data[np.repeat(~bad, np.diff(indptr))])
            indptr = read_only(np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]))
        keys, bounds, places = map(read_only, (self._keys, self._bounds, self._places))
        read_fields(data, indptr, keys, bounds, places, np.empty(MOST_DEEP + 1, np.int64), out, ends, odd)
        return out, ends, np.flatnonzero(odd)


def _invalid_lines(data: NDArray[np.uint8], indptr: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which texts are not UTF-8; where they are many, others too."""
    n = len(indptr) - 1
    bad = np.zeros(n, np.bool_)
    first = 0
    while first < n and (at := find_invalid(Texts(data, indptr[first:], False, False))) >= 0:
        first += at + 1
        bad[first - 1] = True
        if bad.sum() > 100:
            bad[first:] = True
            break
    return bad


def _joined(data: NDArray[np.uint8], ends: NDArray[np.int64], rows: list[int], others: list[str | None]) -> DocumentTexts:
    """Texts that end at `ends` in `data`, with `others` in place of those at `rows`, or left out where these are None."""
    given = [(row, text) for row, text in zip(rows, others, strict=True) if text is not None]
    if len(rows) == len(ends) - 1:
        return [text for _, text in given]
    left_out = 1 + np.array([row for row, text in zip(rows, others, strict=True) if text is None], np.int64)
    if not given:
        data = data[: ends[-1]]
        data.flags.writeable = False
        return data, np.delete(ends, left_out)
    pieces: list[Any] = []
    lengths = np.diff(ends)
    done = 0
    try:
        for row, text in given:
            content = text.encode()
            pieces += [data[done : ends[row]], content]
            done, lengths[row] = int(ends[row]), len(content)
    except UnicodeEncodeError:  # lone surrogates, which only str can hold
        texts: list[str | None] = [
            bytes(data[begin:end]).decode() for begin, end in zip(ends.tolist(), ends[1:].tolist(), strict=False)
        ]
        for row, other in zip(rows, others, strict=True):
            texts[row] = other
        return [text for text in texts if text is not None]
    pieces.append(data[done : ends[-1]])
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return np.frombuffer(b"".join(pieces), np.uint8), np.delete(bounds, left_out)


def _field_reader(reading: Reading) -> Callable[[bytes], tuple[str | None, str, str, Any]]:
    """Return what gives a line's text, the kind of problem with a reason, or "", and the whole object."""
    path = _path_of(reading.field)
    shown = repr(reading.field)

    def text_of(line: bytes) -> tuple[str | None, str, str, Any]:
        kind = reason = ""
        try:
            content = line.decode()
        except UnicodeDecodeError as error:
            if not reading.replace_invalid:
                at = f"invalid UTF-8 at byte {error.start} (0x{line[error.start]:02X}, {error.reason})"
                return None, NOT_UTF_8, at, None
            kind, reason = REPLACED, "not UTF-8"
            content = line.decode(errors="replace")
        try:
            value = json.loads(content.removeprefix("\ufeff"))
        except (ValueError, RecursionError) as error:
            if not content.strip():
                return None, IS_BLANK, "a blank line", None
            return None, NOT_JSON, f"not JSON ({error}); expected an object with the field {shown}", None
        if not isinstance(value, dict):
            return None, NOT_JSON, f"expected an object with the field {shown}, not {_type_name(value)}", None
        record = value
        text = record.get(reading.field)
        value = _follow(record, path) if text is None else text
        if reading.labels:
            value = _label(value)
        if isinstance(value, str):
            return value, kind, reason, record
        if value is None:
            return None, NO_FIELD, f"there is no field {shown}", None
        return None, NOT_TEXT, f"the field {shown} is not a string but {_type_name(value)}", None

    return text_of


def _label(value: Any) -> str | None:
    """A label as text."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str).strip('"')


def _path_of(field: str) -> list[str]:
    """The keys of a path: by dots, or a JSON pointer."""
    if field.startswith("/"):
        return [part.replace("~1", "/").replace("~0", "~") for part in field[1:].split("/")]
    return field.split(".")


def _follow(value: Any, path: list[str]) -> Any:
    for key in path:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def _type_name(value: object) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


# -------------------------------------------------------------------------------------------------------- tables


def _read_table(source: Source, reading: Reading, number: int) -> Iterator[Documents]:
    try:
        import pyarrow
    except ImportError:
        raise MissingDependencyError(f"{source.path}: to read Parquet and Arrow files, install pyarrow") from None
    name = "Parquet" if source.kind == "parquet" else "Arrow"
    read = _parquet_batches if source.kind == "parquet" else _arrow_batches
    with Stream(source.path) as stream:
        size = source.size() or 0
        try:
            for rows, first, share in read(_seekable(stream), reading, source.path, number):
                yield _of_rows(rows, first, reading, int(share * size), source.path)
        except (pyarrow.ArrowException, OSError) as error:
            raise FormatError(
                f"{source.path}: cannot be read as {name}: {str(error).rstrip('.')}. It is damaged, or no such file:"
                " its name, or --input-format, says what it is."
            ) from None


def _seekable(stream: Stream) -> Any:
    """A file that can be read at any place: the file itself, or a temporary one with what it holds."""
    import shutil
    import tempfile

    if stream.path != "-" and not stream.compression:
        return open(stream.path, "rb")
    file = tempfile.TemporaryFile()
    shutil.copyfileobj(stream, file, 1 << 20)
    file.seek(0)
    return file


def _parquet_batches(file: Any, reading: Reading, path: str, number: int) -> Iterator[tuple[Any, int, float]]:
    """Yield rows from `number` on, the number of the first, and the share of the file that is done."""
    import pyarrow.parquet

    with file, pyarrow.parquet.ParquetFile(file, buffer_size=1 << 20) as table:
        columns = _columns(table.schema_arrow, reading, path)
        total = table.metadata.num_rows
        first = 0
        for group in range(table.metadata.num_row_groups):
            about = table.metadata.row_group(group)
            n = about.num_rows
            if first + n <= number:
                first += n
                continue
            wanted = about.total_byte_size // (reading.batch_bytes or BATCH_BYTES) + 1
            at_once = max(1, min(n // wanted, _MOST_ROWS))
            for rows in table.iter_batches(batch_size=at_once, row_groups=[group], columns=columns):
                skipped = max(0, min(number - first, rows.num_rows))
                first += rows.num_rows
                if skipped < rows.num_rows:
                    rows = rows.slice(skipped)
                    yield rows, first - rows.num_rows, first / max(total, 1)


def _arrow_batches(file: Any, reading: Reading, path: str, number: int) -> Iterator[tuple[Any, int, float]]:
    """As for Parquet; of the file and the stream format."""
    import pyarrow
    import pyarrow.ipc

    with file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        size = file.seek(0, 2)
        file.seek(0)
        with pyarrow.PythonFile(file, "r") as content:
            table = pyarrow.ipc.open_file(content) if is_file else pyarrow.ipc.open_stream(content)
            columns = _columns(table.schema, reading, path)
            batches = (table.get_batch(i) for i in range(table.num_record_batches)) if is_file else table
            first = 0
            for rows in batches:
                rows = rows.select(columns)
                at_once = max(1, min(rows.num_rows * BATCH_BYTES // max(rows.nbytes, 1), _MOST_ROWS))
                for begin in range(max(0, number - first), rows.num_rows, at_once):
                    yield rows.slice(begin, at_once), first + begin, file.tell() / max(size, 1)
                first += rows.num_rows


def _columns(schema: Any, reading: Reading, path: str) -> list[str]:
    """Names of the columns to read, that of the text first."""
    names: list[str] = schema.names
    if reading.column not in names:
        option = "--group" if reading.labels else "--column"
        raise ArgumentError(f"{path} has no column {reading.column!r}; give another one with {option}: {', '.join(names)}")
    kept = [name for name in names if name != reading.column] if reading.keep_columns else []
    return [reading.column, *kept]


def _of_rows(rows: Any, first: int, reading: Reading, done: int, path: str) -> Documents:
    """The documents of a record batch; nulls, and texts that are too long, are problems."""
    import pyarrow
    import pyarrow.compute

    texts = rows.column(reading.column)
    kind = texts.type
    if pyarrow.types.is_dictionary(kind):
        texts = texts.dictionary_decode()
        kind = texts.type
    if "view" in str(kind):
        texts = texts.cast(pyarrow.large_binary() if "binary" in str(kind) else pyarrow.large_string())
        kind = texts.type
    is_text = _is_text(kind, pyarrow) or pyarrow.types.is_null(kind)
    if not is_text and reading.labels:
        texts = pyarrow.array([_label(value) for value in texts.to_pylist()], pyarrow.large_string())
    elif not is_text:
        raise ArgumentError(
            f"{path}: the column {reading.column!r} is not of strings but of {kind}; give another one with --column"
        )
    numbers = first + np.arange(len(texts))
    columns = rows.select([name for name in rows.schema.names if name != reading.column]) if reading.keep_columns else None
    whole = Documents(texts, numbers, numbers, numbers + 1, (), texts.nbytes, done, columns)
    bad = np.zeros(len(texts), np.bool_)
    problems = []
    if texts.null_count:
        bad = np.asarray(texts.is_null().to_numpy(zero_copy_only=False), np.bool_)
        problems += [Problem(int(n), int(n), IS_NULL, "null") for n in numbers[bad]]
    if reading.limit is not None and texts.nbytes > reading.limit:
        lengths = pyarrow.compute.fill_null(pyarrow.compute.binary_length(texts), 0).to_numpy(zero_copy_only=False)
        long = lengths > reading.limit
        reason = f"longer than {reading.limit:,} bytes; {LONGER}"
        problems += [Problem(int(n), int(n), TOO_LONG, reason) for n in numbers[long]]
        bad |= long
    return whole.without(bad, tuple(problems)) if problems else whole


def _is_text(kind: Any, pyarrow: Any) -> bool:
    tests = ("is_string", "is_large_string", "is_binary", "is_large_binary", "is_string_view", "is_binary_view")
    return any(getattr(pyarrow.types, test, lambda _: False)(kind) for test in tests)

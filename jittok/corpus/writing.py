"""The files of one shard, in the forms that trainers read.

What a writer makes depends on the documents it is given one after another, never on how they fall into batches.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.files import ArrayFile, OutputFile, Sink, output_error, write_whole
from jittok.errors import ArgumentError, MissingDependencyError, OutputError

Format = Literal["npy", "raw", "megatron", "packed", "parquet", "arrow"]
FORMATS: tuple[Format, ...] = ("npy", "raw", "megatron", "packed", "parquet", "arrow")

#: Documents in a row group of a Parquet file, and in a record batch of an Arrow file; fewer where they have many ids.
ROWS = 1 << 13
#: Ids after which a row group ends.
ROW_GROUP_IDS = 1 << 22


@dataclass(frozen=True)
class Writing:
    """How shards are written.

    Attributes
    ----------
    format
        ``npy``: ids (int32) and indptr (int64), NumPy's format. ``raw``: the same without headers, ids as uint16 or
        uint32, and a JSON file that says what they hold. ``megatron``: Megatron's .bin and .idx. ``packed``: all
        documents one after another in rows of one length. ``parquet``, ``arrow``: a list of ids for each document,
        beside the other columns.
    vocab_size
        Ids are smaller.
    end
        An id to put after each document, or None.
    length
        Of the rows of packed sequences.
    pad
        What the last row of packed sequences is filled up with.
    with_documents
        Whether packed sequences have an index of where documents begin.
    about
        Facts for the JSON file.
    """

    format: Format
    vocab_size: int
    end: int | None = None
    length: int | None = None
    pad: int = 0
    with_documents: bool = False
    about: tuple[tuple[str, str], ...] = ()

    def small_dtype(self) -> np.dtype[Any]:
        """The smaller of uint16 and uint32 that holds every id."""
        return np.dtype(np.uint16 if self.vocab_size <= 1 << 16 else np.uint32)


class ShardWriter:
    """Files of one shard; see :class:`Writing`.

    Attributes
    ----------
    documents, tokens
        What was written, ends of documents included.
    files
        What it is made of.
    """

    def __init__(self, folder: Path, name: str, writing: Writing) -> None:
        self.folder, self.name, self.writing = folder, name, writing
        self.documents = self.tokens = 0
        self.files: list[OutputFile] = []

    def _add(self, make: Callable[..., Any], suffix: str, *arguments: Any) -> Any:
        try:
            file = make(self.folder / f"{self.name}{suffix}", *arguments)
        except BaseException:
            self.discard()
            raise
        self.files.append(file)
        return file

    def append(self, ids: NDArray[np.int32], indptr: NDArray[np.int64], columns: Any = None) -> None:
        """Add documents: ids of the i-th are ``ids[indptr[i]:indptr[i + 1]]``."""
        ids, indptr = ids[indptr[0] : indptr[-1]], indptr - indptr[0]
        if self.writing.end is not None:
            ids, indptr = _with_ends(ids, indptr, self.writing.end)
        with self._errors():
            self._append(ids, indptr, columns)
        self.documents += len(indptr) - 1
        self.tokens += len(ids)

    def _append(self, ids: NDArray[np.int32], indptr: NDArray[np.int64], columns: Any) -> None:
        raise NotImplementedError

    def finish(self) -> list[OutputFile]:
        """Complete the files under their temporary names."""
        with self._errors():
            self._finish()
        return self.files

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Name the file in errors of the system that other libraries meet."""
        try:
            yield
        except OutputError:
            raise
        except OSError as error:
            raise output_error(self.files[0].path, error) from error

    def _finish(self) -> None:
        for file in self.files:
            file.close()

    def discard(self) -> None:
        """Remove what was written."""
        for file in self.files:
            file.discard()


def _with_ends(
    ids: NDArray[np.int32], indptr: NDArray[np.int64], end: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Documents with an id after each."""
    n = len(indptr) - 1
    bounds = indptr + np.arange(n + 1)
    result = np.empty(len(ids) + n, ids.dtype)
    is_text = np.ones(len(result), np.bool_)
    is_text[bounds[1:] - 1] = False
    result[is_text] = ids
    result[bounds[1:] - 1] = end
    return result, bounds


class _Arrays(ShardWriter):
    """``NAME.ids`` and ``NAME.indptr``; without headers, ``NAME.json`` says what they hold."""

    def __init__(self, folder: Path, name: str, writing: Writing) -> None:
        super().__init__(folder, name, writing)
        self._npy = writing.format == "npy"
        suffix = ".npy" if self._npy else ".bin"
        dtype = np.dtype(np.int32) if self._npy else writing.small_dtype()
        self._ids = self._add(ArrayFile, f".ids{suffix}", dtype, self._npy)
        self._indptr = self._add(ArrayFile, f".indptr{suffix}", np.int64, self._npy)
        self._indptr.append(np.zeros(1, np.int64))

    def _append(self, ids: NDArray[np.int32], indptr: NDArray[np.int64], columns: Any) -> None:
        self._ids.append(ids)
        self._indptr.append(indptr[1:] + self.tokens)

    def _finish(self) -> None:
        super()._finish()
        if not self._npy:
            arrays = {
                key: {
                    "file": file.path.name,
                    "dtype": file.dtype.name,
                    "byte_order": "little",
                    "length": file.length,
                }
                for key, file in (("ids", self._ids), ("indptr", self._indptr))
            }
            about = {**dict(self.writing.about), "vocab_size": self.writing.vocab_size, "arrays": arrays}
            self.files.append(_json_file(self.folder / f"{self.name}.json", about))


class _Megatron(ShardWriter):
    r"""Megatron's indexed dataset: ids in ``NAME.bin``, and in ``NAME.idx`` where each document lies.

    The index is, little-endian: ``MMIDIDX\0\0``, version 1 (int64), the code of the ids' type (uint8: 8 is uint16, 4 is
    int32), the numbers of sequences and of document bounds (int64), lengths of the sequences (int32), where they begin
    in the .bin, in bytes (int64), and the numbers of the sequences that documents begin with, and their end (int64).
    """

    #: Megatron takes uint16 below this, and int32 from there on.
    _SMALL = 65500

    def __init__(self, folder: Path, name: str, writing: Writing) -> None:
        super().__init__(folder, name, writing)
        self._code, dtype = (8, np.uint16) if writing.vocab_size < self._SMALL else (4, np.int32)
        self._bin = self._add(ArrayFile, ".bin", dtype, False)
        self._lengths: list[NDArray[np.int32]] = []

    def _append(self, ids: NDArray[np.int32], indptr: NDArray[np.int64], columns: Any) -> None:
        self._bin.append(ids)
        self._lengths.append(np.diff(indptr).astype(np.int32))

    def _finish(self) -> None:
        super()._finish()
        lengths = np.concatenate([np.zeros(0, np.int32), *self._lengths])
        n = len(lengths)
        starts = np.zeros(n, np.int64)
        np.cumsum(lengths[:-1], out=starts[1:], dtype=np.int64)
        index = self._add(OutputFile, ".idx")
        index.write(b"MMIDIDX\0\0" + (1).to_bytes(8, "little") + bytes([self._code]))
        index.write(n.to_bytes(8, "little") + (n + 1).to_bytes(8, "little"))
        for array in (lengths, starts * self._bin.dtype.itemsize, np.arange(n + 1, dtype=np.int64)):
            index.write(array.astype(array.dtype.newbyteorder("<")).tobytes())
        index.close()


class _Packed(ShardWriter):
    """``NAME.npy``: int32[rows, length]; all ids one after another, the last row filled up. ``NAME.json`` says how many."""

    def __init__(self, folder: Path, name: str, writing: Writing) -> None:
        super().__init__(folder, name, writing)
        assert writing.length is not None
        self._length = writing.length
        self._rows = self._add(ArrayFile, ".npy", np.int32, True, self._length)
        self._starts = self._add(ArrayFile, ".documents.npy", np.int64) if writing.with_documents else None
        if self._starts is not None:
            self._starts.append(np.zeros(1, np.int64))

    def _append(self, ids: NDArray[np.int32], indptr: NDArray[np.int64], columns: Any) -> None:
        self._rows.append(ids)
        if self._starts is not None:
            self._starts.append(indptr[1:] + self.tokens)

    def _finish(self) -> None:
        missing = -self._rows.length % self._length
        self._rows.append(np.full(missing, self.writing.pad, np.int32))
        super()._finish()
        about = {
            **dict(self.writing.about),
            "sequence_length": self._length,
            "sequences": self._rows.length // self._length,
            "documents": self.documents,
            "tokens": self.tokens,
            "padding": missing,
            "padding_id": self.writing.pad,
            "document_end": self.writing.end,
        }
        self.files.append(_json_file(self.folder / f"{self.name}.json", about))


class _Table(ShardWriter):
    """``NAME.parquet`` or ``NAME.arrow``: a column ``ids``, list<int32>, beside the others."""

    def __init__(self, folder: Path, name: str, writing: Writing) -> None:
        super().__init__(folder, name, writing)
        import_pyarrow()
        self._file = self._add(OutputFile, f".{writing.format}")
        self._writer: Any = None
        self._schema: Any = None
        self._pending: list[Any] = []  # tables of documents of which no row group has been made
        self._ids = 0

    def _append(self, ids: NDArray[np.int32], indptr: NDArray[np.int64], columns: Any) -> None:
        import pyarrow

        lists = pyarrow.LargeListArray.from_arrays(pyarrow.array(indptr), pyarrow.array(ids))
        names, arrays = ([], []) if columns is None else (columns.schema.names, columns.columns)
        if "ids" in names:
            raise ArgumentError("the input has a column 'ids' already; leave other columns out with --no-columns")
        table = pyarrow.table([*arrays, lists], names=[*names, "ids"])
        done = 0
        n = len(indptr) - 1
        # A row group ends with the document that fills it.
        rows = sum(part.num_rows for part in self._pending)
        while done < n:
            by_ids = int(np.searchsorted(indptr, indptr[done] + ROW_GROUP_IDS - self._ids, side="left"))
            last = min(max(by_ids, done + 1), done + ROWS - rows)
            part = table.slice(done, min(last, n) - done)
            self._pending.append(part)
            self._ids += int(indptr[min(last, n)] - indptr[done])
            if last > n:
                break
            done = last
            self._write_group()
            rows = 0

    def _write_group(self) -> None:
        import pyarrow

        if any(part.schema != self._pending[0].schema for part in self._pending):
            raise self._other_columns()
        table = pyarrow.concat_tables(self._pending).combine_chunks()
        lists = table.column("ids").combine_chunks()
        lists = lists.cast(pyarrow.list_(pyarrow.int32()))
        table = table.set_column(table.num_columns - 1, "ids", lists)
        self._open(table.schema)
        if table.schema != self._schema:
            raise self._other_columns()
        self._writer.write_table(table)
        self._pending, self._ids = [], 0

    def _other_columns(self) -> ArgumentError:
        return ArgumentError(
            f"{self.name}: the files of this shard have different columns; leave them out with --no-columns, or write an"
            " output for each file"
        )

    def _open(self, schema: Any) -> None:
        import pyarrow
        import pyarrow.parquet

        if self._writer is not None:
            return
        self._schema = schema
        if self.writing.format == "parquet":
            self._writer = pyarrow.parquet.ParquetWriter(Sink(self._file), schema, compression="zstd")
        else:
            self._writer = pyarrow.ipc.new_file(Sink(self._file), schema)

    def _finish(self) -> None:
        import pyarrow

        if self._pending:
            self._write_group()
        self._open(pyarrow.schema([("ids", pyarrow.list_(pyarrow.int32()))]))
        self._writer.close()
        self._file.close()

    def discard(self) -> None:
        """Remove what was written."""
        if self._writer is not None:
            # pyarrow would write the rest when the object goes
            with suppress(Exception):
                self._writer.close()
        super().discard()


def _json_file(path: Path, content: dict[str, Any]) -> OutputFile:
    return write_whole(path, (json.dumps(content, indent=2) + "\n").encode())


def import_pyarrow() -> Any:
    """Import pyarrow, or say that it is missing."""
    try:
        import pyarrow
    except ImportError:
        raise MissingDependencyError("to write Parquet and Arrow files, install pyarrow") from None
    return pyarrow


_WRITERS: dict[Format, type[ShardWriter]] = {
    "npy": _Arrays,
    "raw": _Arrays,
    "megatron": _Megatron,
    "packed": _Packed,
    "parquet": _Table,
    "arrow": _Table,
}


def open_shard(folder: Path, name: str, writing: Writing) -> ShardWriter:
    """Begin the files of a shard.

    Parameters
    ----------
    folder, name
        Where, and what their names begin with.
    writing
        How.
    """
    return _WRITERS[writing.format](folder, name, writing)


def file_names(name: str, writing: Writing) -> list[str]:
    """Return the names of a shard's files.

    Parameters
    ----------
    name
        What they begin with.
    writing
        How they are written.
    """
    suffixes = {
        "npy": [".ids.npy", ".indptr.npy"],
        "raw": [".ids.bin", ".indptr.bin", ".json"],
        "megatron": [".bin", ".idx"],
        "packed": [".npy", ".json"] + ([".documents.npy"] if writing.with_documents else []),
        "parquet": [".parquet"],
        "arrow": [".arrow"],
    }
    return [f"{name}{suffix}" for suffix in suffixes[writing.format]]

"""Files to shards of ids: resumable, each step overlapping the others.

See ``docs/decisions/0007-corpus-jobs.md`` for what holds when a job is killed, and why.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.blocks import Problem
from jittok.corpus.encoding import run_on_documents
from jittok.corpus.files import make_folder, publish, write_whole
from jittok.corpus.manifest import NAME, Manifest, read_lines
from jittok.corpus.overlap import Behind, ahead, side_by_side
from jittok.corpus.reading import Documents, Reading, columns_of, place, read_documents
from jittok.corpus.sources import Source, find_sources
from jittok.corpus.writing import Format, ShardWriter, Writing, file_names, open_shard
from jittok.engine import thread_count
from jittok.errors import ArgumentError, MissingFileError, OutputError

OnError = Literal["stop", "skip"]

#: Ids of a packed sequence, at most: a row is held in memory.
MOST_IN_SEQUENCE = 1 << 27


@dataclass
class Summary:
    """What a job did.

    Attributes
    ----------
    documents, tokens, shards
        Of the whole output.
    rejected
        Records left out of the whole output, by kind of problem.
    n_bytes
        Bytes that this run read, decompressed. Where all was done before, those of the input files, as the job's record has
        them.
    resumed_documents
        Documents that were done before this run.
    seconds
        That this run took.
    was_complete
        Whether all was done before this run.
    """

    documents: int = 0
    tokens: int = 0
    shards: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    n_bytes: int = 0
    resumed_documents: int = 0
    seconds: float = 0.0
    was_complete: bool = False

    def as_json(self) -> dict[str, Any]:
        """The summary as JSON values."""
        return asdict(self)


#: Called with the bytes of the source that are done, all bytes of earlier sources included, and the summary so far.
Report = Callable[[int, Summary], None]


def encode_corpus(
    tokenizer: Any,
    inputs: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    format: Format = "npy",
    reading: Reading | None = None,
    kind: Any = None,
    shard_tokens: int | None = None,
    document_end: int | None = None,
    sequence_length: int | None = None,
    pad_id: int | None = None,
    document_index: bool = False,
    on_error: OnError = "stop",
    overwrite: bool = False,
    add_special_tokens: bool = False,
    special: Any = None,
    threads: int | None = None,
    name: str = "",
    report: Report | None = None,
) -> Summary:
    """Encode files into shards of ids; go on where an earlier run of the same job was stopped.

    Parameters
    ----------
    tokenizer
        A :class:`jittok.Tokenizer`.
    inputs
        Files, folders, patterns, or ``-``; see :func:`~jittok.corpus.sources.find_sources`.
    out
        The folder for the output; made if missing. Its ``manifest.jsonl`` says what is done.
    format
        Of the output; see :class:`~jittok.corpus.writing.Writing`.
    reading, kind
        How the inputs are read, and what they are where their names do not say it.
    shard_tokens
        All input becomes one stream, and a shard ends with the document with which it has so many ids. By default each
        file has an output of its own.
    document_end
        An id to put after each document.
    sequence_length, pad_id, document_index
        Of packed sequences: their length; what the last of a shard is filled up with, by default `document_end` or 0; and
        whether to write where documents begin.
    on_error
        What records do that cannot be encoded: ``stop`` the job, or ``skip``: they are left out, counted, and written with
        place and reason to ``NAME.rejects.jsonl`` beside their shard.
    overwrite
        Begin anew, whatever is there.
    add_special_tokens, special, threads
        As :meth:`jittok.Tokenizer.encode_batch` takes them.
    name
        What the manifest calls the tokenizer.
    report
        Called now and then.

    Raises
    ------
    OutputError
        The output cannot be written, or is another job's.
    MissingFileError, FormatError, TextError, SpecialTokenError
        An input cannot be read, or with ``stop`` one of its records cannot be encoded.
    ArgumentError
        Arguments that do not fit each other.
    """
    if on_error not in ("stop", "skip"):
        raise ArgumentError(f"on_error={on_error!r}: expected 'stop' or 'skip'")
    if shard_tokens is not None and shard_tokens < 1:
        raise ArgumentError(f"shard_tokens is {shard_tokens}; give 1 or more")
    is_length = sequence_length is not None and 1 <= sequence_length <= MOST_IN_SEQUENCE
    if (format == "packed") != (sequence_length is not None) or (format == "packed" and not is_length):
        raise ArgumentError(
            f"packed sequences, and only these, need a length, 1 to {MOST_IN_SEQUENCE:,} ids: --format packed --seq-len N"
        )
    sources = find_sources(inputs, kind)
    if not sources:
        raise ArgumentError("no input is given")
    reading = reading or Reading()
    vocab_size = int(tokenizer.id_limit)  # there may be fewer tokens than that
    writing = Writing(
        format,
        vocab_size,
        document_end,
        sequence_length,
        (document_end or 0) if pad_id is None else pad_id,
        document_index,
        (("tokenizer", name),),
    )
    for label, number in (("document_end", document_end), ("pad_id", pad_id)):
        if number is not None and not 0 <= number < vocab_size:
            raise ArgumentError(f"{label} is {number}, but ids are 0 to {vocab_size - 1:,}")
    settings: dict[str, Any] = {"add_special_tokens": add_special_tokens}
    if special is not None:
        settings["special"] = special
    about = {
        "version": 2,
        "tokenizer": {"name": name, "fingerprint": getattr(tokenizer, "fingerprint", None), "vocab_size": vocab_size},
        "reading": {
            **{key: value for key, value in asdict(reading).items() if key != "batch_bytes"},
            "separator": _shown(reading.separator),
        },
        "writing": {key: value for key, value in asdict(writing).items() if key != "about"},
        "shard_tokens": shard_tokens,
        "on_error": on_error,
        "add_special_tokens": add_special_tokens,
        "special": special if special is None or isinstance(special, str) else sorted(special),
        "inputs": [_identity(source) for source in sources],
    }
    # Batches are encoded side by side, each by one thread: none waits for the other parts of a batch.
    settings["threads"] = 1
    folder = Path(out)
    make_folder(folder)
    with _locked(folder):
        job = _Job(folder, sources, reading, writing, shard_tokens, about, overwrite, report, thread_count(threads))
        return job.run(lambda texts: tokenizer.encode_batch(texts, **settings), on_error == "skip")


def _shown(separator: str | bytes) -> str:
    return separator if isinstance(separator, str) else "text: " + separator.decode("utf-8", "backslashreplace")


def _identity(source: Source) -> dict[str, Any]:
    """What tells an input from another of the same name."""
    if source.path == "-":
        return {"path": "-", "kind": source.kind}
    try:
        found = os.stat(source.path)
    except OSError as error:
        raise MissingFileError(f"cannot read {source.path!r}: {error.strerror}") from error
    return {"path": source.path, "kind": source.kind, "bytes": found.st_size, "modified": found.st_mtime_ns}


class _locked:
    """Keeps other jobs out of a folder, as long as this process lives."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._descriptor = folder, -1

    def __enter__(self) -> None:
        try:
            import fcntl
        except ImportError:  # Windows
            return
        try:
            self._descriptor = os.open(self._folder, os.O_RDONLY)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise OutputError(
                f"another job is writing to {str(self._folder)!r}. Wait for it, or give another --out."
            ) from None
        except OSError:  # a file system without locks
            pass

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


@dataclass
class _Shard:
    """A shard that is being written."""

    name: str
    writer: ShardWriter
    begin: tuple[int, int, int]
    rejects: list[dict[str, Any]] = field(default_factory=list)


class _Job:
    """One run of a job. What has to do with output runs in the thread that writes."""

    def __init__(
        self,
        folder: Path,
        sources: list[Source],
        reading: Reading,
        writing: Writing,
        shard_tokens: int | None,
        about: dict[str, Any],
        overwrite: bool,
        report: Report | None,
        threads: int,
    ) -> None:
        self._threads = threads
        self._folder, self._sources, self._reading, self._writing = folder, sources, reading, writing
        self._shard_tokens, self._report = shard_tokens, report
        self._shard: _Shard | None = None
        self._summary = Summary()
        names = [source.name for source in sources]
        if shard_tokens is None and len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ArgumentError(
                f"{names.count(twice)} files are named {twice!r}, and their output would have one name; encode them"
                " in separate runs with different --out, or all as one stream with --shard-tokens."
            )
        if overwrite:
            self._remove_old()
        self._manifest = Manifest(folder, about)
        if self._manifest.exists:
            self._check_shards()
        elif not overwrite:
            self._refuse_existing(names)
        self._remove_temporary()
        #: Source, number of the record, and position at which the next shard begins.
        self._at: tuple[int, int, int] = (0, 0, 0)
        if self._manifest.shards:
            first, number, position = self._manifest.shards[-1]["end"]
            self._at = (first, number, position)
        for shard in self._manifest.shards:
            self._summary.documents += shard["documents"]
            self._summary.tokens += shard["tokens"]
            # Records of an earlier version do not tell the kinds.
            for kind, count in shard.get("problems", {"not told": shard["rejected"]} if shard["rejected"] else {}).items():
                self._summary.rejected[kind] = self._summary.rejected.get(kind, 0) + count
        self._summary.resumed_documents = self._summary.documents
        self._summary.was_complete = self._manifest.is_complete
        if self._manifest.is_complete:
            self._summary.n_bytes = sum(entry.get("bytes", 0) for entry in about["inputs"])

    # ------------------------------------------------------------------------------------- what is there already

    def _names(self) -> Iterator[str]:
        for line in read_lines(self._folder / NAME)[0]:
            yield from (file["file"] for file in line.get("shard", {}).get("files", ()))

    def _remove_old(self) -> None:
        try:
            for name in list(self._names()):
                (self._folder / Path(name).name).unlink(missing_ok=True)
        except OutputError:  # no manifest of ours
            pass
        (self._folder / NAME).unlink(missing_ok=True)

    def _remove_temporary(self) -> None:
        """Remove what a killed run left under temporary names."""
        for path in self._folder.glob(".*.part"):
            path.unlink(missing_ok=True)

    def _refuse_existing(self, names: list[str]) -> None:
        for name in names if self._shard_tokens is None else [_shard_name(0)]:
            for file in file_names(name, self._writing):
                if (self._folder / file).exists():
                    raise OutputError(
                        f"{str(self._folder / file)!r} exists. Give another directory, or --overwrite to replace it."
                    )

    def _check_shards(self) -> None:
        for shard in self._manifest.shards:
            for file in shard["files"]:
                path = self._folder / file["file"]
                if not path.exists() or path.stat().st_size != file["bytes"]:
                    raise OutputError(
                        f"{str(path)!r} is not as {NAME} says: expected {file['bytes']:,} bytes. Put it back, or begin anew"
                        " with --overwrite."
                    )

    # ------------------------------------------------------------------------------------------------- reading

    def run(self, encode: Callable[[Any], Any], skip: bool) -> Summary:
        """Do what is left to do."""
        start = time.perf_counter()
        if not self._manifest.is_complete:
            behind = Behind()
            try:
                items = ahead(self._read(self._at))
                for (index, documents), result in side_by_side(
                    lambda item: self._encode(encode, *item, skip), items, self._threads
                ):
                    if documents is None or result is None:
                        behind.do(lambda index=index: self._end_source(index))  # type: ignore[misc]
                        continue
                    documents, batch = result
                    ids, indptr = batch.ids, batch.indptr
                    behind.do(
                        lambda a=index, b=documents, c=ids, d=indptr: self._take(a, b, c, d)  # type: ignore[misc]
                    )
                    self._summary.n_bytes += documents.size
                    if self._report is not None:
                        self._report(self._done_before(index) + documents.done, self._summary)
                behind.do(self._complete)
                behind.close()
            except BaseException:
                behind.stop()
                if self._shard is not None:
                    self._shard.writer.discard()
                self._remove_temporary()
                raise
        self._summary.shards = len(self._manifest.shards)
        self._summary.seconds = time.perf_counter() - start
        return self._summary

    def _encode(
        self, encode: Callable[[Any], Any], index: int, documents: Documents | None, skip: bool
    ) -> tuple[Documents, Any] | None:
        if documents is None:
            return None
        return run_on_documents(encode, documents, self._sources[index], self._reading, skip)

    def _read(self, at: tuple[int, int, int]) -> Iterator[tuple[int, Documents | None]]:
        first, number, position = at
        columns = None
        objects = [source for source in self._sources if source.kind == "jsonl" and source.path != "-"]
        if self._reading.keep_columns and self._shard_tokens is not None and objects:
            columns = columns_of(objects[0], self._reading)  # of one stream, whose shards have the same columns
        for index in range(first, len(self._sources)):
            for documents in read_documents(self._sources[index], self._reading, position, number, columns):
                yield index, documents
            yield index, None
            number = position = 0

    def _done_before(self, index: int) -> int:
        return sum(source.size() or 0 for source in self._sources[:index])

    # ------------------------------------------------------------------------------------------------- writing

    def _take(self, index: int, documents: Documents, ids: NDArray[np.int32], indptr: NDArray[np.int64]) -> None:
        """Put documents into shards."""
        problems = list(documents.problems)
        first, n = 0, len(documents)
        # ids up to each document, with what is put after it
        bounds = indptr if self._writing.end is None else indptr + np.arange(n + 1)
        while first < n or problems:
            shard = self._shard or self._open(index)
            last, is_full = n, False
            if self._shard_tokens is not None and first < n:
                wanted = bounds[first] + self._shard_tokens - shard.writer.tokens
                last = max(int(np.searchsorted(bounds, wanted, side="left")), first + 1)
                last, is_full = min(last, n), last <= n
            before = int(documents.numbers[last - 1]) if is_full else None
            while problems and (before is None or problems[0].number < before):
                self._reject(shard, index, problems.pop(0))
            if last > first:
                columns = None if documents.columns is None else documents.columns.slice(first, last - first)
                shard.writer.append(ids, indptr[first : last + 1], columns)
                self._summary.documents += last - first
                self._summary.tokens += int(bounds[last] - bounds[first])
            if is_full:
                self._close(shard, (index, int(documents.numbers[last - 1]) + 1, int(documents.ends[last - 1])))
            first = last

    def _open(self, index: int) -> _Shard:
        name = self._sources[index].name if self._shard_tokens is None else _shard_name(len(self._manifest.shards))
        self._shard = _Shard(name, open_shard(self._folder, name, self._writing), self._at)
        return self._shard

    def _reject(self, shard: _Shard, index: int, problem: Problem) -> None:
        source = self._sources[index]
        shard.rejects.append(
            {
                "place": place(source, problem.number, problem.position, self._reading.separator),
                "source": source.path,
                "record": problem.number,
                "position": problem.position,
                "kind": problem.kind,
                "reason": problem.reason,
            }
        )
        self._summary.rejected[problem.kind] = self._summary.rejected.get(problem.kind, 0) + 1

    def _end_source(self, index: int) -> None:
        """After the last document of a source."""
        following = (index + 1, 0, 0)
        if self._shard_tokens is None:
            self._close(self._shard or self._open(index), following)
        elif index + 1 == len(self._sources) and self._shard is not None:
            self._close(self._shard, following)

    def _close(self, shard: _Shard, end: tuple[int, int, int]) -> None:
        """Publish a shard and record it."""
        files = shard.writer.finish()
        if shard.rejects:
            lines = "".join(json.dumps(reject, ensure_ascii=False) + "\n" for reject in shard.rejects)
            path = self._folder / f"{shard.name}.rejects.jsonl"
            files.append(write_whole(path, lines.encode("utf-8", "backslashreplace")))
        about = {
            "name": shard.name,
            "begin": shard.begin,
            "end": end,
            "documents": shard.writer.documents,
            "tokens": shard.writer.tokens,
            "rejected": len(shard.rejects),
            "problems": dict(sorted(Counter(reject["kind"] for reject in shard.rejects).items())),
            "files": [file.about() for file in files],
        }
        self._manifest.begin()
        publish(files)
        self._manifest.add(about)
        self._shard, self._at = None, end

    def _complete(self) -> None:
        shards = self._manifest.shards
        self._manifest.complete({key: sum(shard[key] for shard in shards) for key in ("documents", "tokens", "rejected")})


def _shard_name(number: int) -> str:
    return f"shard-{number:05d}"

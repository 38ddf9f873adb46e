"""Which files are read: names, globs and folders, and what kind of file each is."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from jittok.corpus.streams import compression_of
from jittok.errors import ArgumentError, MissingFileError

Kind = Literal["text", "jsonl", "parquet", "arrow"]
KINDS: tuple[Kind, ...] = ("text", "jsonl", "parquet", "arrow")

_WHAT_TO_GIVE = "Give files, folders, patterns in quotes, or - for standard input."
_SUFFIXES: dict[str, Kind] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


class Source(NamedTuple):
    """A file of documents.

    Attributes
    ----------
    path
        Its name; ``-`` is standard input.
    kind
        What it is, decompressed.
    """

    path: str
    kind: Kind

    @property
    def name(self) -> str:
        """The last part of its name."""
        return "stdin" if self.path == "-" else Path(self.path).name

    def size(self) -> int | None:
        """Its size in bytes; None where it is not known."""
        try:
            return os.stat(self.path).st_size if self.path != "-" else None
        except OSError:
            return None


def kind_of(path: str) -> Kind:
    """What a file is, by its name: text unless it ends with .jsonl, .parquet, .arrow or the like.

    Parameters
    ----------
    path
        Its name, which may go on with the suffix of a compression.
    """
    name = path.removesuffix(compression_of(path))
    return _SUFFIXES.get(Path(name).suffix.lower(), "text")


def find_sources(inputs: Sequence[str | os.PathLike[str]], kind: Kind | None = None) -> list[Source]:
    """Find files.

    Parameters
    ----------
    inputs
        Names of files; ``-`` for standard input; folders, which stand for all files in them and below but hidden ones
        and those whose names begin with an underscore; patterns with ``*``, ``?``, ``[...]`` and ``**``. What a folder
        or a pattern stands for is sorted by name.
    kind
        What they are; by default each file's name says it.

    Raises
    ------
    MissingFileError
        A folder or a pattern stands for nothing, or a file is not there.
    ArgumentError
        Standard input is named twice.
    """
    paths: list[str] = []
    for given in [os.fspath(item) for item in inputs]:
        if given == "-" or os.path.isfile(given):
            paths.append(given)
        elif os.path.isdir(given):
            paths += _files_below(given)
        elif glob.has_magic(given):
            found = sorted(path for path in glob.glob(given, recursive=True) if os.path.isfile(path))
            if not found:
                raise MissingFileError(f"no file fits the pattern {given!r}. {_WHAT_TO_GIVE}")
            paths += found
        elif os.path.exists(given):
            paths.append(given)  # a pipe, perhaps
        else:
            raise MissingFileError(f"{given!r} does not exist. {_WHAT_TO_GIVE}")
    if paths.count("-") > 1:
        raise ArgumentError("- (standard input) is given more than once; it can be read once only.")
    return [Source(path, kind or kind_of(path)) for path in paths]


def _files_below(folder: str) -> list[str]:
    found: list[str] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        found += [os.path.join(parent, name) for name in names if not name.startswith((".", "_"))]
    if not found:
        raise MissingFileError(
            f"the folder {folder!r} holds no files but those whose names begin with a dot or an underscore. {_WHAT_TO_GIVE}"
        )
    return sorted(found)

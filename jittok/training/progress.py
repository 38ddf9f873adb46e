"""What long work needs besides its result: a progress bar, work in slices that Ctrl-C can stop, and checkpoints."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from jittok.errors import ArgumentError, ArgumentTypeError, OutputError
from jittok.training.array_file import read_arrays, write_arrays

#: Seconds that a call of a kernel should take: Ctrl-C acts between calls.
SLICE_SECONDS = 0.1
#: Seconds between lines, where there is no tqdm.
_LINE_SECONDS = 1.0


class Progress:
    """How far some work is, on standard error: tqdm's bar where tqdm is installed, else a line every second.

    Parameters
    ----------
    total
        Units of work in all; None where that is not known.
    unit
        What is counted: "B" for bytes, or a word in the singular such as "merge".
    description
        What is being done.
    enabled
        Whether to show anything.
    """

    def __init__(self, total: int | None, unit: str, description: str, enabled: bool = True) -> None:
        self._total, self._unit, self._description = total, unit, description
        self._enabled = enabled
        self._bar: Any = None
        self._done = 0
        self._note = ""
        self._printed = time.perf_counter()

    def __enter__(self) -> Progress:
        if self._enabled:
            try:
                from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]
            except ImportError:
                return self
            unit = self._unit if self._unit == "B" else f" {self._unit}s"
            self._bar = tqdm(
                total=self._total, desc=self._description, unit=unit, unit_scale=self._unit == "B", file=sys.stderr
            )
        return self

    def advance(self, n: int, note: str = "") -> None:
        """Say that `n` more units are done, with a `note` about how it stands."""
        if not self._enabled:
            return
        self._done += n
        if self._bar is not None:
            if note != self._note:
                self._note = note
                self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(n)
        elif time.perf_counter() - self._printed > _LINE_SECONDS:
            self._printed = time.perf_counter()
            scale, unit = (1e6, "MB") if self._unit == "B" else (1, f"{self._unit}s")
            of = f" of {self._total / scale:,.0f}" if self._total else ""
            print(f"{self._description}: {self._done / scale:,.0f}{of} {unit} {note}".rstrip(), file=sys.stderr)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


class Slices:
    """How many steps to have a kernel do at once, so that each call takes about :data:`SLICE_SECONDS`.

    Parameters
    ----------
    first
        Steps of the first call.

    Examples
    --------
    >>> slices = Slices(10)
    >>> left = 100
    >>> while left:
    ...     left -= min(slices.next(), left)  # here a kernel would be called
    """

    def __init__(self, first: int = 64) -> None:
        self._size = max(first, 1)
        self._began: float | None = None

    def next(self) -> int:
        """The number of steps of the next call, which begins now."""
        now = time.perf_counter()
        if self._began is not None:
            seconds = now - self._began
            # Compiling counts as well, so that a call may be far too short once: at most halved or doubled.
            factor = SLICE_SECONDS / max(seconds, 1e-9)
            self._size = max(int(self._size * min(max(factor, 0.5), 2.0)), 1)
        self._began = now
        return self._size


def check_unreachable(value: str | None) -> None:
    """Raise unless `value` says what to do about a size that cannot be reached."""
    if value not in (None, "error", "warn", "stop"):
        raise ArgumentError(f"unreachable={value!r}: expected 'error', 'warn' or 'stop'")


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn of what a caller of the package gave: the warning is located at the caller's line."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == __name__.split(".")[0]:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def check_no_words(texts: object, counts: object) -> None:
    """Raise if texts or counts come with a checkpoint to go on from, which has words of its own."""
    if texts is not None or counts is not None:
        raise ArgumentError("resume= goes on with the words of the checkpoint; leave texts and counts out")


def check_checkpoint(path: str | os.PathLike[str] | None) -> None:
    """Raise if a checkpoint could not be written there, before there is work to lose.

    Parameters
    ----------
    path
        The file; None: there will be none. Its folder is made.

    Raises
    ------
    ArgumentTypeError
        It is no path.
    OutputError
        Its folder cannot be made or written to, or there is a folder of its name.
    """
    if path is None:
        return
    if not isinstance(path, str | os.PathLike):
        raise ArgumentTypeError(f"checkpoint: expected the path of a file, got {type(path).__name__}")
    file = Path(path)
    if "\0" in str(file):
        raise OutputError(f"checkpoint: {str(file)!r} has a NUL character, which no file name can have")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"checkpoint: {file} cannot be written: {error.strerror or error}") from None
    if file.is_dir():
        raise OutputError(f"checkpoint: {file} is a folder; give the name of a file")
    if not os.access(file.parent, os.W_OK):
        raise OutputError(f"checkpoint: {file} cannot be written: its folder is read-only")


class Checkpoint:
    """A file that work can go on from. It is replaced as a whole, and has a checksum.

    Parameters
    ----------
    path
        The file.
    kind
        What work it belongs to; another's checkpoint is refused.
    version
        Of the content.

    Raises
    ------
    ArgumentTypeError
        `path` is no path.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str, version: int = 1) -> None:
        if not isinstance(path, str | os.PathLike):
            raise ArgumentTypeError(f"resume: expected the path of a checkpoint, got {type(path).__name__}")
        self.path = Path(path)
        self._kind, self._version = f"jittok checkpoint of {kind}", version

    def write(self, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace what is there: the old checkpoint stays whole until the new one is.

        Parameters
        ----------
        state
            JSON values.
        arrays
            By name.

        Raises
        ------
        OutputError
            The file cannot be written.
        """
        write_arrays(self.path, self._kind, self._version, state, arrays)

    def read(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What was written last: the state, and read-only arrays.

        Raises
        ------
        MissingFileError
            There is no such file.
        FormatError
            It is no checkpoint of this work, of another version, truncated or altered.
        """
        return read_arrays(self.path, self._kind, self._version)

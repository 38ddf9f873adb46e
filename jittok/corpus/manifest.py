"""The record of a job: a file that is only ever appended to, a line for each shard."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from jittok.corpus.files import output_error, sync_folder
from jittok.errors import OutputError

NAME = "manifest.jsonl"


class Manifest:
    """What a job is, and what of it is done.

    Parameters
    ----------
    folder
        Of the job's output.
    job
        What it is, as JSON values.

    Attributes
    ----------
    shards
        What was recorded of each.
    is_complete
        Whether the job has ended.

    Raises
    ------
    OutputError
        There is a manifest of another job, or it cannot be read.
    """

    def __init__(self, folder: Path, job: dict[str, Any]) -> None:
        self.path = folder / NAME
        self._job: dict[str, Any] = json.loads(json.dumps(job))
        self.shards: list[dict[str, Any]] = []
        self.is_complete = False
        self._end = 0  # of the last line that is whole
        lines, self._end = read_lines(self.path)
        if not lines:
            return
        difference = _difference(lines[0].get("job", {}), self._job)
        if difference:
            raise OutputError(
                f"{str(self.path)!r} is of another job: {difference}. Start it as it was started, give another --out, or"
                " --overwrite to begin anew."
            )
        self.shards = [line["shard"] for line in lines if "shard" in line]
        self.is_complete = "complete" in lines[-1]

    @property
    def exists(self) -> bool:
        """Whether there is one on disk."""
        return self._end > 0

    def begin(self) -> None:
        """Write down what the job is, if that was not done: before any file of its output has its name."""
        if not self.exists:
            self._write({"job": self._job})
            sync_folder(self.path.parent)

    def add(self, shard: dict[str, Any]) -> None:
        """Record a shard whose files are complete."""
        self.begin()
        self._write({"shard": shard})
        self.shards.append(shard)

    def complete(self, totals: dict[str, Any]) -> None:
        """Record that all is done."""
        self.begin()
        self._write({"complete": totals})
        self.is_complete = True

    def _write(self, line: dict[str, Any]) -> None:
        content = (json.dumps(line) + "\n").encode()
        try:
            with open(self.path, "r+b" if self.exists else "wb") as file:
                file.seek(self._end)
                file.truncate()
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise output_error(self.path, error) from error
        self._end += len(content)


def read_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Lines of a manifest but for a last one that was cut off, and where they end; none where there is no manifest.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    OutputError
        It is not a manifest.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise output_error(path, error) from error
    lines = []
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise OutputError(f"{str(path)!r}, line {number}: not a line of a manifest. Remove it, or give another --out.")
        lines.append(value)
    return lines, content.rfind(b"\n") + 1


def _difference(old: Any, new: Any, path: str = "") -> str:
    """Where two jobs differ first, in words; "" if they do not."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*new, *(key for key in old if key not in new)]:
            found = _difference(old.get(key), new.get(key), f"{path}.{key}" if path else key)
            if found:
                return found
        return ""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (one, other) in enumerate(zip(old, new, strict=True)):
            found = _difference(one, other, f"{path}[{i}]")
            if found:
                return found
        return ""
    if old == new:
        return ""
    if isinstance(old, list) and isinstance(new, list):
        return f"{path} has {len(old)} entries there, and {len(new)} now"
    return f"{path} is {old!r} there, and {new!r} now"

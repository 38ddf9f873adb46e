"""A tokenizer on many machines: sent once as bytes, kept as one file on each, memory-mapped by all processes there."""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentTypeError, OutputError

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer

#: Counts of tasks that wait to be merged into one: few passes over the total, and little memory.
MERGED_AT_ONCE = 32


def tokenizer_bytes(tokenizer: Any) -> bytes:
    """Return what a tokenizer is, as the content of a jittok file.

    Parameters
    ----------
    tokenizer
        A :class:`jittok.Tokenizer`, or the path of what :func:`jittok.load` reads.

    Raises
    ------
    ArgumentTypeError
        It is neither.
    FormatError, OSError
        As :func:`jittok.load`.
    """
    from ..tokenizer import Tokenizer, load

    if isinstance(tokenizer, str | os.PathLike):
        tokenizer = load(tokenizer)
    if not isinstance(tokenizer, Tokenizer):
        raise ArgumentTypeError(f"tokenizer: expected a jittok.Tokenizer or a path, got {type(tokenizer).__name__}")
    return tokenizer._as_file("jittok")


@lru_cache(maxsize=8)
def shared_tokenizer(content: bytes) -> Tokenizer:
    """Return the tokenizer of a jittok file's content; its tables are in memory that all processes of a machine share.

    Parameters
    ----------
    content
        From :func:`tokenizer_bytes`.

    Raises
    ------
    OutputError
        The folder for such files cannot be written.
    """
    from .._jit import cache_root
    from ..tokenizer import load

    folder = cache_root() / "shared"
    path = folder / f"{hashlib.sha256(content).hexdigest()}.jittok"
    try:
        # The name says what is in it; a file of another length was left by a machine that went down.
        if not path.is_file() or path.stat().st_size != len(content):
            folder.mkdir(parents=True, exist_ok=True)
            _write(path, content)
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written ({error.strerror or error}); set JITTOK_CACHE_DIR to a folder that can"
        ) from None
    return load(path)


def _write(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all, whoever else writes it meanwhile."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except OSError:
            Path(file.name).unlink(missing_ok=True)
            raise

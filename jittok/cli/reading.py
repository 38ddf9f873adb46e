"""What the commands say of the files that they read; see :mod:`jittok.blocks`."""

from __future__ import annotations

from pathlib import Path

from jittok.blocks import Block
from jittok.errors import TextError


def explain_text_error(error: TextError, block: Block, path: str) -> TextError:
    """Make the error name the file and the position in it.

    Parameters
    ----------
    error
        What encoding `block` raised.
    block
        The documents.
    path
        The file that they are from.
    """
    try:
        block.raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        position = block.start + problem.start
        value = block.raw[problem.start]
        return TextError(
            f"{path}: invalid UTF-8 at byte {position:,} (0x{value:02X}, {problem.reason}). Expected a text file"
            f" in UTF-8; convert it first, for example with: iconv -c -f utf-8 -t utf-8 {path}"
        )
    return TextError(f"{path}, in the {len(block.raw):,} bytes from byte {block.start:,}: {error}")


def display_size(path: str) -> int | None:
    """Size of the file in bytes, or None where it is not known beforehand."""
    try:
        return Path(path).stat().st_size if path != "-" else None
    except OSError:
        return None

"""Which format a path holds, decided by its content, and the one call that reads any of them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jittok.errors import (
    ArgumentError,
    ArgumentTypeError,
    FormatError,
    MissingFileError,
    UnknownFormatError,
    UnsupportedError,
)

# The modules of the formats are imported where they are needed: a jittok file needs none of them.
if TYPE_CHECKING:
    from jittok.spec import TokenizerSpec

#: Every format by name.
FORMATS = ("tokenizer.json", "merges", "tiktoken", "jittok", "sentencepiece", "vocab.txt", "tekken", "gguf", "marian")
_FROM_MEMORY = ("tokenizer.json", "sentencepiece", "tiktoken", "tekken", "gguf")

_HEAD_BYTES = 1 << 16
_MAX_HEADER_BYTES = 1 << 24
_TOP_LEVEL = frozenset(
    b"version truncation padding added_tokens normalizer pre_tokenizer post_processor decoder model".split()
)
_FIRST_FIELD = re.compile(rb'\s*\{\s*"((?:[^"\\]|\\.)*)"\s*:\s*(.)', re.DOTALL)
#: What the reference writes first, which is told sooner so.
_USUAL_STARTS = (b'{\n  "version": "', b'{"version":"')
_JITTOK_MARK = re.compile(rb'"format"\s*:\s*"jittok"')
_SAFETENSORS_START = re.compile(rb'\{\s*"')

#: What to look for in a directory, in this order; the first that is there is read.
_IN_DIRECTORY = ("tokenizer.json", "tekken.json", "*.model", "*.spm", "*.tiktoken", "vocab.txt", "*.gguf", "*.jittok")


def detect_format(path: str | os.PathLike[str]) -> str:
    """Say which format `path` holds.

    Reads at most the first 64 KiB (of a JSON file with unusual fields, all of it).

    Parameters
    ----------
    path
        A file or a directory.

    Returns
    -------
    str
        One of :data:`FORMATS`.

    Raises
    ------
    MissingFileError
        It does not exist or cannot be read.
    FormatError
        It is empty or, where that decides, malformed.
    UnknownFormatError
        It is none of the formats.
    """
    return locate(path)[0]


class Located(NamedTuple):
    """A file to read.

    Attributes
    ----------
    format
        One of :data:`FORMATS`.
    name
        Path of the file; for "merges" that of the vocab.json.
    content
        All of it, where that was read already.
    """

    format: str
    name: str
    content: bytes | None

    @property
    def file(self) -> Path:
        """The file."""
        return Path(self.name)


def locate(path: str | os.PathLike[str], format: str | None = None) -> tuple[str, Path]:
    """Return the format of `path` and the file to read, which in a directory is one of its members.

    With `format`, the content is not looked at: the name decides. For "merges" the file is the vocab.json.
    """
    located = find(path, format)
    return located.format, located.file


def find(path: str | os.PathLike[str], format: str | None = None) -> Located:
    """As :func:`locate`, with what was read of the file.

    Parameters
    ----------
    path
        A file or a directory.
    format
        One of :data:`FORMATS`, or None.

    Raises
    ------
    MissingFileError, FormatError, UnknownFormatError
        As :func:`detect_format`.
    ArgumentError, ArgumentTypeError
        `format` is unknown, or `path` is none.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(
            f"the path of a tokenizer must be a str or a path object, got {type(path).__name__}"
        )
    if format is not None and format not in FORMATS:
        raise ArgumentError(f"unknown format {format!r}; expected one of {', '.join(FORMATS)}")
    name = os.fsdecode(path)
    if not name:
        raise MissingFileError("the path of a tokenizer is empty; for the current folder give '.'")
    found, content, beginning = format, None, None
    if found is None:
        try:
            beginning = _read_beginning(name)
        except (OSError, ValueError):
            pass  # a folder, or nothing that can be read, as is found out below
        else:
            head, is_all = beginning
            if head[:1] == b"{" and _has_first_field(head):
                return Located("tokenizer.json", name, head if is_all else None)
    file = Path(name)
    if beginning is None and _is_directory(file):
        file = _member(file, format)
        if found is None and file.name == "vocab.json" and (file.parent / "source.spm").exists():
            found = "marian"
    if found is None:
        found, content = _detect_file(file, beginning)
    if content is not None and found not in _FROM_MEMORY and stat.S_ISFIFO(os.stat(name).st_mode):
        raise UnsupportedError(
            f"{name}: content of the format {found} cannot be read from a pipe, only "
            f"{', '.join(_FROM_MEMORY)}; write it to a file"
        )
    if found == "merges":
        vocab = _vocab_of_merges(file)
        file, content = vocab, content if vocab == file else None
    return Located(found, str(file), content)


def read_spec(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    side: str | None = None,
) -> TokenizerSpec:
    """Read a tokenizer of any format but jittok's own.

    Parameters
    ----------
    path
        A file, or a directory that holds one of the known files. Where a directory has a tokenizer.json,
        that is the one read.
    format
        One of :data:`FORMATS`, to skip detection.
    pattern, special_tokens
        Of a tiktoken file; see :func:`jittok.formats.tiktoken_file.read`.
    side
        Of a Marian pair; see :func:`jittok.formats.marian.read`.

    Returns
    -------
    TokenizerSpec
        What the file says.

    Raises
    ------
    MissingFileError, FormatError, UnknownFormatError, UnsupportedError
        As :func:`detect_format` and the readers of each format.
    ArgumentError
        `format` is unknown, or `pattern` or `special_tokens` are given for a format that has its own.
    """
    return read_located(find(path, format), pattern=pattern, special_tokens=special_tokens, side=side)


def read_located(
    located: Located,
    *,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    side: str | None = None,
) -> TokenizerSpec:
    """As :func:`read_spec`, for a file that :func:`find` found.

    Parameters
    ----------
    located
        What it returned.
    pattern, special_tokens, side
        As for :func:`read_spec`, which says what is raised.
    """
    found, name, content = located
    if found != "tiktoken" and (pattern is not None or special_tokens is not None):
        raise ArgumentError(
            f"{name}: pattern= and special_tokens= are for tiktoken files; this is {found}, which says both itself"
        )
    if side is not None and found != "marian":
        raise ArgumentError(f"{name}: side= is for Marian pairs; this is {found}")
    if found == "tokenizer.json" and content is not None:
        return _read_data(content, name, found, None, None)
    file = located.file
    if found == "marian":
        from jittok.formats import marian

        return marian.read(file.parent, side or "source")
    if found == "jittok":
        raise UnsupportedError(f"{name}: a jittok file holds built tables, not a specification; use jittok.load")
    if found == "vocab.txt":
        from jittok.formats import vocab_txt

        return vocab_txt.read(file)
    if found == "gguf":
        from jittok.formats import gguf

        return gguf.read_file(file) if content is None else gguf.read(content, name)
    from jittok.formats import merges_txt

    if found == "merges":
        return merges_txt.read(file.parent, file.name, _partner(file.name))
    if found == "tiktoken" and special_tokens is None:
        special_tokens = merges_txt.Side.read(file.parent).tokens_by_content()
    data = merges_txt.read_file(file) if content is None else content
    return _read_data(data, name, found, pattern, special_tokens)


def read_spec_bytes(
    data: bytes,
    *,
    format: str | None = None,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    where: str = "the data given",
) -> TokenizerSpec:
    """Read a tokenizer from the content of one file: tokenizer.json, sentencepiece, tiktoken, tekken or gguf.

    Parameters
    ----------
    data
        The whole content.
    format, pattern, special_tokens
        As in :func:`read_spec`.
    where
        What to call it in messages.

    Raises
    ------
    FormatError, UnknownFormatError, UnsupportedError, ArgumentError
        As :func:`read_spec`.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ArgumentTypeError(f"data: expected bytes, got {type(data).__name__}")
    if format is not None and format not in FORMATS:
        raise ArgumentError(f"unknown format {format!r}; expected one of {', '.join(FORMATS)}")
    content = bytes(data)
    found = format
    if found is None:
        head = content[:_HEAD_BYTES]
        if not head:
            raise FormatError(f"{where}: the file is empty")
        if head.startswith(b"GGUF"):
            found = "gguf"
        elif looks_like(head):
            found = "sentencepiece"
        elif head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
            found = "tekken" if _is_tekken(head) else "tokenizer.json"
        else:
            found = _detect_lines(head, complete=len(content) <= len(head)) or "unknown"
    if found == "unknown":
        raise UnknownFormatError(
            f"{where}: not the content of a tokenizer file that jittok knows (starts with {content[:16]!r}); "
            f"from memory it reads {', '.join(_FROM_MEMORY)}"
        )
    if found not in _FROM_MEMORY:
        raise UnsupportedError(
            f"{where}: content of the format {found} cannot be read from memory, only {', '.join(_FROM_MEMORY)}; "
            "write it to a file"
        )
    return _read_data(content, where, found, pattern, special_tokens)


def _read_data(
    data: bytes, where: str, format: str, pattern: str | None, special_tokens: Mapping[str, int] | None
) -> TokenizerSpec:
    """Read the content of a file of a known format."""
    if not data:
        raise FormatError(f"{where}: the file is empty")
    if format == "tiktoken":
        from jittok.formats import tiktoken_file

        return tiktoken_file.read(data, where, pattern=pattern, special_tokens=special_tokens)
    if format == "sentencepiece":
        from jittok.formats import sentencepiece_model

        return sentencepiece_model.read(data, where)
    if format == "tekken":
        from jittok.formats import tekken_json

        return tekken_json.read(data, where)
    if format == "gguf":
        from jittok.formats import gguf

        return gguf.read(data, where)
    from jittok.formats import tokenizer_json

    return tokenizer_json.read(data, where)


# ----------------------------------------------------------------------------------------------- directories


def _is_directory(file: Path) -> bool:
    try:
        return stat.S_ISDIR(os.stat(str(file)).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFileError(f"{file}: no such file or directory") from None
    except (OSError, ValueError) as error:
        raise MissingFileError(f"{file!s}: not a path that can be read: {error}") from None


def _member(directory: Path, format: str | None) -> Path:
    try:
        names = {entry.name for entry in directory.iterdir()}
    except OSError as error:
        raise MissingFileError(f"{directory}: the directory cannot be read: {error.strerror}") from None
    if "tokenizer.json" in names and format in (None, "tokenizer.json"):
        return directory / "tokenizer.json"
    if format in (None, "marian"):
        from jittok.formats import marian

        if set(marian.FILE_NAMES) <= names:
            return directory / "vocab.json"
    if format == "marian":
        raise MissingFileError(f"{directory}: a Marian pair is {', '.join(marian.FILE_NAMES)}; not all of them are here")
    if format in (None, "merges"):
        from jittok.formats import merges_txt

        for vocab_name, merges_name in merges_txt.FILE_NAMES:
            if {vocab_name, merges_name} <= names:
                return directory / vocab_name
    if format == "merges":
        raise MissingFileError(f"{directory}: no vocab.json with merges.txt in it")
    for pattern in _IN_DIRECTORY:
        files = sorted(file for file in directory.glob(pattern) if file.is_file())
        if format is not None:
            files = [file for file in files if _is_format(file, format)]
        if len(files) > 1:
            shown = ", ".join(file.name for file in files[:5])
            raise FormatError(f"{directory}: several tokenizer files ({shown}); pass the path of one")
        if files:
            return files[0]
    if format is None and "vocab.json" in names:
        raise MissingFileError(f"{directory}: vocab.json needs merges.txt beside it")
    wanted = "vocab.json with merges.txt, " + ", ".join(_IN_DIRECTORY) if format is None else f"a {format} file"
    raise MissingFileError(f"{directory}: no tokenizer in this directory; looked for {wanted}")


def _is_format(file: Path, format: str) -> bool:
    try:
        return _detect_file(file)[0] == format
    except FormatError:
        return False


def _partner(name: str) -> str:
    """Return the name of the merges file that goes with a vocabulary file."""
    from jittok.formats import merges_txt

    for vocab_name, merges_name in merges_txt.FILE_NAMES:
        if name.endswith(vocab_name):
            return name.removesuffix(vocab_name) + merges_name
    return "merges.txt"


def _vocab_of_merges(file: Path) -> Path:
    """Return the vocabulary file of a pair of which `file` is either one."""
    from jittok.formats import merges_txt

    for vocab_name, merges_name in merges_txt.FILE_NAMES:
        if file.name.endswith(merges_name):
            return file.with_name(file.name.removesuffix(merges_name) + vocab_name)
    if file.suffix == ".json":
        return file
    raise FormatError(
        f"{file}: merges without their vocabulary; name the two files vocab.json and merges.txt and pass "
        "their directory"
    )


# ------------------------------------------------------------------------------------------- SentencePiece models


def looks_like(head: bytes) -> bool:
    """Whether a file that begins with these bytes may be a SentencePiece model.

    Parameters
    ----------
    head
        The beginning of the file, which need not end with a whole field.

    Notes
    -----
    The first field is nearly always a piece: a message that has a string, and then, or not, a score (a number of
    four bytes) and a type. Only some pieces are looked at. A file without pieces may begin with one of its specs.
    """
    at = 0
    for number in range(8):
        if at >= len(head) and number > 0:
            break
        tag = head[at : at + 1]
        size, start = _varint(head, at + 1)
        if size is None or tag not in (b"\x0a", b"\x12", b"\x1a"):
            return False
        at = start + size
        if tag != b"\x0a":
            return number > 0 or _is_message(head[start:at])
        message = head[start:at]
        if len(message) < size:
            return number > 0 and message[:1] in (b"\x0a", b"")
        if not _is_piece(message):
            return False
    return True


def _is_piece(message: bytes) -> bool:
    if message[:1] != b"\x0a":
        return False
    size, at = _varint(message, 1)
    if size is None:
        return False
    at += size
    if message[at : at + 1] == b"\x15":
        at += 5
    if message[at : at + 1] == b"\x18":
        at += 2
    return at == len(message)


def _is_message(part: bytes) -> bool:
    """Whether this begins as a spec does: with a field of a number below 8, of a known type of content."""
    return part[:1] in (b"\x0a", b"\x12", b"\x18", b"\x20", b"\x28", b"\x3a")


def _varint(data: bytes, at: int) -> tuple[int | None, int]:
    """The number at `at` and where it ends; None if it is cut off or takes more than four bytes."""
    value = 0
    for shift in range(4):
        if at >= len(data):
            return None, at
        value |= (data[at] & 0x7F) << (7 * shift)
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    return None, at


# ------------------------------------------------------------------------------------------------- one file


def _read_beginning(name: str) -> tuple[bytes, bool]:
    """The first bytes of a file, and whether these are all: of a pipe, and where they are fewer than asked for."""
    # A third of the time that it takes to make a file object.
    # A pipe is not waited for to be opened by somebody who writes to it: as long as nobody does, it is empty.
    descriptor = os.open(name, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
        if is_pipe:
            os.set_blocking(descriptor, True)
            parts = []
            while part := os.read(descriptor, _HEAD_BYTES):
                parts.append(part)
            return b"".join(parts), True
        head = os.read(descriptor, _HEAD_BYTES)
        while len(head) < _HEAD_BYTES and (more := os.read(descriptor, _HEAD_BYTES - len(head))):
            head += more
        return head, len(head) < _HEAD_BYTES
    finally:
        os.close(descriptor)


def _detect_file(file: Path, beginning: tuple[bytes, bool] | None = None) -> tuple[str, bytes | None]:
    """The format of a file, and its content if that is all there is of its `beginning`, which is read if it is not given."""
    if beginning is None:
        try:
            beginning = _read_beginning(str(file))
        except OSError as error:
            raise MissingFileError(f"{file}: cannot be read: {error.strerror}") from None
    head, is_all = beginning
    if not head:
        raise FormatError(f"{file}: the file is empty")
    content = head if is_all else None
    return _detect_content(file, head[:_HEAD_BYTES], content), content


def _detect_content(file: Path, head: bytes, content: bytes | None) -> str:
    if head.startswith(b"GGUF"):
        return "gguf"
    if _SAFETENSORS_START.match(head, 8) and int.from_bytes(head[:8], "little") < _MAX_HEADER_BYTES:
        if _JITTOK_MARK.search(_safetensors_header(file, head, content)):
            return "jittok"
        raise UnknownFormatError(f"{file}: a safetensors file, but not one that jittok wrote")
    if head.startswith((b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")):
        raise UnknownFormatError(f"{file}: a compressed file or archive; unpack it and pass what is inside")
    if looks_like(head):
        return "sentencepiece"
    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        return _detect_json(file, head, content)
    found = _detect_lines(head, complete=content is not None and len(content) <= len(head))
    if found is None and file.suffix in (".model", ".spm"):
        return "sentencepiece"  # whose reader says what is wrong with it
    if found is None:
        raise UnknownFormatError(
            f"{file}: not a tokenizer file that jittok knows (starts with {head[:16]!r}); "
            f"known formats are {', '.join(FORMATS)}"
        )
    return found


def _safetensors_header(file: Path, head: bytes, content: bytes | None) -> bytes:
    length = int.from_bytes(head[:8], "little")
    if content is not None:
        return content[8 : 8 + length]
    if length + 8 <= len(head):
        return head[8 : 8 + length]
    with file.open("rb") as stream:
        stream.seek(8)
        return stream.read(length)


def _has_first_field(head: bytes) -> bool:
    """Whether JSON begins with a field of a tokenizer.json."""
    if head.startswith(_USUAL_STARTS):
        return True
    first = _FIRST_FIELD.match(head)
    return first is not None and first[1] in _TOP_LEVEL and first[2] in b'"{[n'


def _detect_json(file: Path, head: bytes, content: bytes | None) -> str:
    from jittok.formats import merges_txt
    from jittok.formats._json import parse_json

    if _has_first_field(head):
        return "tokenizer.json"
    first = _FIRST_FIELD.match(head)
    if first is not None:
        if first[2].isdigit() or first[2] == b"-":
            return "merges"  # an object of token: id, a vocab.json
        if _is_tekken(head):
            return "tekken"
    fields = parse_json(merges_txt.read_file(file) if content is None else content, str(file)).value
    if isinstance(fields, dict) and "model" in fields:
        return "tokenizer.json"
    raise UnknownFormatError(
        f"{file}: JSON, but neither a tokenizer.json nor a vocab.json; if it belongs to a tokenizer, pass the "
        "directory that holds it"
    )


def _is_tekken(head: bytes) -> bool:
    """Whether JSON that begins with these bytes is a tekken.json; no other has the fields."""
    return b'"token_bytes"' in head or (b'"default_num_special_tokens"' in head and b'"pattern"' in head)


def _detect_lines(head: bytes, *, complete: bool) -> str | None:
    from jittok.formats import tiktoken_file

    lines = head.split(b"\n")
    if not complete and len(lines) > 1:
        lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines]
    filled = [line for line in lines if line]
    if filled and all(tiktoken_file.LINE.fullmatch(line) for line in filled[:3]):
        return "tiktoken"
    try:
        for line in lines:
            line.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if b"\0" in head:
        return None
    if filled and filled[0].startswith(b"#version"):
        return "merges"
    if any(token in lines for token in (b"[UNK]", b"[CLS]", b"[PAD]")):
        return "vocab.txt"
    if any(len(line) > 2 and line.startswith(b"##") for line in filled) and not any(b" " in line for line in filled):
        return "vocab.txt"  # of other special tokens
    if filled and all(len(line.split(b" ")) == 2 and all(line.split(b" ")) for line in filled):
        return "merges"
    return None

"""Small GGUF files, made for tests."""

from __future__ import annotations

import struct

import numpy as np

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
_TYPES = {"u1": 0, "i1": 1, "u2": 2, "i2": 3, "u4": 4, "i4": 5, "f4": 6, "u8": 10, "i8": 11, "f8": 12}


def string(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw


def value(content):
    """A value with its type: a bool, str, int (uint32), NumPy scalar, list of str, or NumPy array."""
    if isinstance(content, bool):
        return struct.pack("<IB", 7, content)
    if isinstance(content, str | bytes):
        return struct.pack("<I", 8) + string(content)
    if isinstance(content, int):
        return struct.pack("<II", 4, content)
    if isinstance(content, list):
        return struct.pack("<IIQ", 9, 8, len(content)) + b"".join(map(string, content))
    kind = _TYPES[content.dtype.str[1:]]
    if content.ndim == 0:
        return struct.pack("<I", kind) + content.tobytes()
    return struct.pack("<IIQ", 9, kind, len(content)) + content.tobytes()


def gguf(values, version=3, n_tensors=0):
    """The bytes of a file; names are those of the vocabulary but for general ones."""
    parts = [b"GGUF" + struct.pack("<Iqq", version, n_tensors, len(values))]
    for name, content in values.items():
        full = name if name.startswith(("general.", "tokenizer.")) else f"tokenizer.ggml.{name}"
        parts.append(string(full) + value(content))
    return b"".join(parts)


def vocabulary(kind, entries, **others):
    """The values of a file: entries are (text, type) or (text, type, score)."""
    values = {"general.architecture": "llama", "model": kind, "tokens": [entry[0] for entry in entries]}
    values["token_type"] = np.array([entry[1] for entry in entries], "<i4")
    if len(entries[0]) > 2:
        values["scores"] = np.array([entry[2] for entry in entries], "<f4")
    return {**values, **others}

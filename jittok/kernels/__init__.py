"""The loops. What users may call from their own ``@njit`` functions has its names here.

>>> import numpy as np
>>> import jittok
>>> from jittok import kernels
>>> tables = kernels.tables(jittok.load_default())
>>> workspace = kernels.new_workspace(tables)
>>> codepoints = np.array([ord(letter) for letter in "to be"], np.uint32)
>>> out = np.empty(4 * len(codepoints) + kernels.EXTRA_ROOM, np.int32)
>>> n = kernels.encode_codepoints(tables, workspace, codepoints, 0, len(codepoints), out)
>>> jittok.load_default().decode(out[:n])
'to be'

Importing this package imports no kernel.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = [
    "EXTRA_ROOM",
    "INVALID",
    "NO_ROOM",
    "TOO_LONG",
    "EncodeTables",
    "Workspace",
    "decode_bytes",
    "encode_codepoints",
    "new_workspace",
    "tables",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'jittok.kernels' has no attribute {name!r}")
    value = getattr(importlib.import_module("jittok.kernels.user"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

"""A Numba-JIT, array-oriented tokenizer engine.

>>> import jittok
>>> tok = jittok.load_default()
>>> tok.decode(tok.encode("To be, or not to be"))
'To be, or not to be'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import errors

if TYPE_CHECKING:
    from .encodings import Batch, Encoding
    from .spec import AddedToken
    from .streaming import DecodeStream
    from .tokenizer import Tokenizer, load, load_default

__all__ = ["AddedToken", "Batch", "DecodeStream", "Encoding", "Tokenizer", "errors", "load", "load_default"]
__version__ = "0.1.0"

# Names are imported when they are first used: importing jittok imports neither NumPy nor Numba.
_MODULES = {
    "AddedToken": "spec",
    "Batch": "encodings",
    "DecodeStream": "streaming",
    "Encoding": "encodings",
    "Tokenizer": "tokenizer",
    "load": "tokenizer",
    "load_default": "tokenizer",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'jittok' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])

r"""Corpora: files of documents in, files of ids out, in jobs that may be killed and started again.

>>> import jittok, tempfile, pathlib
>>> from jittok.corpus import encode_corpus
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> _ = (folder / "a.txt").write_text("To be,\nor not to be.\n")
>>> encode_corpus(jittok.load_default(), [folder / "a.txt"], folder / "ids").documents
2
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["Documents", "Reading", "Summary", "encode_corpus", "find_sources", "read_documents"]

_HOMES = {
    "Documents": "reading",
    "Reading": "reading",
    "Summary": "job",
    "encode_corpus": "job",
    "find_sources": "sources",
    "read_documents": "reading",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'jittok.corpus' has no attribute {name!r}")
    return getattr(importlib.import_module(f"jittok.corpus.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)

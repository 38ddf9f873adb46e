"""Numbers that say whether results changed. A commit that changes one has changed ids."""

from __future__ import annotations

import zlib
from typing import ClassVar

import numpy as np

from . import texts


class Results:
    """CRC-32 of all ids and row pointers, and the number of ids."""

    params: ClassVar = [texts.FAMILIES, list(texts.KINDS)]
    param_names: ClassVar = ["family", "text"]

    def setup(self, family: str, kind: str) -> None:
        self.batch = texts.load(family).encode_batch(texts.documents(kind))

    def track_checksum(self, family: str, kind: str) -> int:
        checksum = zlib.crc32(np.ascontiguousarray(self.batch.ids, "<i4"))
        return zlib.crc32(np.ascontiguousarray(self.batch.indptr, "<i8"), checksum)

    track_checksum.unit = "crc32"  # type: ignore[attr-defined]

    def track_tokens(self, family: str, kind: str) -> int:
        return len(self.batch.ids)

    track_tokens.unit = "tokens"  # type: ignore[attr-defined]

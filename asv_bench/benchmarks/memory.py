"""Memory."""

from __future__ import annotations

from typing import ClassVar

from . import texts


class Memory:
    """Of a process that encodes, and of the tables."""

    params: ClassVar = texts.FAMILIES
    param_names: ClassVar = ["family"]

    def setup(self, family: str) -> None:
        self.documents = texts.documents("english", size=4_000_000)

    def peakmem_load(self, family: str) -> None:
        texts.load(family)

    def peakmem_encode_batch(self, family: str) -> None:
        texts.load(family).encode_batch(self.documents, threads=1)

    def track_table_bytes(self, family: str) -> int:
        return int(texts.load(family).nbytes)

    track_table_bytes.unit = "bytes"  # type: ignore[attr-defined]

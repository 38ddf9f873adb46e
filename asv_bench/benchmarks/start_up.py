"""Loading, and whole processes from their start to first ids."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import ClassVar

from . import texts


class Load:
    """A tokenizer file to a tokenizer, in a process that has loaded one before."""

    timer = time.process_time
    params: ClassVar = texts.FAMILIES
    param_names: ClassVar = ["family"]

    def setup(self, family: str) -> None:
        import jittok

        self.load = jittok.load
        tokenizer = texts.load(family)
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "model.jittok")
        tokenizer.save(self.path)
        self.load(self.path)

    def teardown(self, family: str) -> None:
        self.folder.cleanup()

    def time_original(self, family: str) -> None:
        texts.load(family)

    def time_jittok_file(self, family: str) -> None:
        self.load(self.path)


class Process:
    """Wall time of a new interpreter."""

    timer = time.perf_counter
    number = 1
    repeat = (2, 5, 20.0)
    warmup_time = 0
    timeout = 300

    def setup_cache(self) -> None:
        """Compile what the warm start loads."""
        subprocess.run([sys.executable, "-m", "jittok", "warmup", "--tokenizer", "default"], check=True)

    setup_cache.timeout = 300  # type: ignore[attr-defined]

    def setup(self) -> None:
        self.environment = dict(os.environ)
        # A process in the background may still be writing there.
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)

    def teardown(self) -> None:
        self.folder.cleanup()

    def _run(self, code: str, **variables: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True, env={**self.environment, **variables})

    def time_import(self) -> None:
        self._run("import jittok")

    def time_first_ids_warm_cache(self) -> None:
        self._run("import jittok; jittok.load_default().encode('Hello world').ids")

    def time_first_ids_no_cache(self) -> None:
        self._run(
            "import jittok; jittok.load_default().encode('Hello world').ids",
            NUMBA_CACHE_DIR=self.folder.name,
            JITTOK_CACHE_DIR=self.folder.name,
            XDG_CACHE_HOME=self.folder.name,
        )

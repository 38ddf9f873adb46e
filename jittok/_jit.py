"""The one module that owns jitting.

Kernels are decorated with :func:`kernel` (called from Python), :func:`helper` or :func:`inlined` (called from
kernels only). Nothing is compiled before its first call, and importing :mod:`jittok` does not import this module.

Compiled kernels are kept in a folder named after the content of every kernel source, so an edit in any of them,
another Numba version, or another compile setting never finds stale code. The folder is ``$JITTOK_CACHE_DIR``, or
``$NUMBA_CACHE_DIR/jittok``, or the user's cache folder. Where none can be written, kernels are compiled in each
process, and one warning says so. A broken cache file counts as absent.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

from jittok.errors import CacheWarning

F = TypeVar("F", bound=Callable[..., Any])

#: True when kernels run as plain Python (for coverage and debugging).
JIT_DISABLED = bool(numba.config.DISABLE_JIT)

#: Folders of other versions that are kept.
KEPT_VERSIONS = 4

_HELPER_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(function: F) -> F:
    """Compile `function` at its first call; callable from Python, releases the GIL, cached on disk."""
    dispatcher = numba.njit(nogil=True, error_model="numpy")(function)
    if not JIT_DISABLED:
        _attach_cache(dispatcher)
    return dispatcher  # type: ignore[no-any-return]


def helper(function: F) -> F:
    """Compile `function` for calls from kernels only; it has no Python entry, which saves compile time."""
    if JIT_DISABLED:
        return function
    return numba.njit(**_HELPER_OPTIONS)(function)  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """Like :func:`helper`, and always inlined into its callers: for small functions in hot loops."""
    if JIT_DISABLED:
        return function
    return numba.njit(forceinline=True, **_HELPER_OPTIONS)(function)  # type: ignore[no-any-return]


@cache
def source_stamp() -> str:
    """Hash of everything that compiled kernels depend on."""
    digest = hashlib.sha256()
    package = Path(__file__).parent
    for path in [package / "_jit.py", package / "tables.py", *sorted((package / "kernels").glob("*.py"))]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    settings = (numba.__version__, numba.config.BOUNDSCHECK, numba.config.OPT, sys.version_info[:2])
    digest.update(repr(settings).encode())
    return digest.hexdigest()[:24]


def cache_root() -> Path:
    """The folder that holds a folder of compiled kernels for each version."""
    if "JITTOK_CACHE_DIR" in os.environ:
        return Path(os.environ["JITTOK_CACHE_DIR"])
    if "NUMBA_CACHE_DIR" in os.environ:
        return Path(os.environ["NUMBA_CACHE_DIR"]) / "jittok"
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return Path(base).expanduser() / "jittok"


@cache
def cache_folder() -> Path | None:
    """This version's folder of compiled kernels, made if needed; None (after a warning) if it cannot be written."""
    try:
        root = cache_root()
        folder = root / source_stamp()
        is_new = not folder.is_dir()
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        if is_new:
            _drop_old_versions(root)
    except (OSError, RuntimeError) as error:
        warnings.warn(
            f"compiled kernels cannot be kept ({error}), so every process compiles them anew, which takes seconds; "
            "set JITTOK_CACHE_DIR to a folder that can be written",
            CacheWarning,
            stacklevel=2,
        )
        return None
    return folder


def _drop_old_versions(root: Path) -> None:
    """Remove all but the newest folders of compiled kernels."""
    folders = sorted((f for f in root.iterdir() if f.is_dir()), key=lambda f: f.stat().st_mtime, reverse=True)
    for folder in folders[KEPT_VERSIONS:]:
        shutil.rmtree(folder, ignore_errors=True)


def _attach_cache(dispatcher: Any) -> None:
    """Give a dispatcher a disk cache in :func:`cache_folder`, or Numba's own where its internals have moved."""
    folder = cache_folder()
    if folder is None:
        return
    try:
        dispatcher._cache = _package_cache_class()(dispatcher.py_func)
    except Exception:  # private API: whatever fails here, stock caching still works
        try:
            dispatcher.enable_caching()
        except RuntimeError:
            return


@cache
def _package_cache_class() -> Any:
    """Numba's function cache, with this package's folder and stamp, that takes broken files for absent ones."""
    from numba.core import caching

    class PackageLocator(caching._CacheLocator):  # type: ignore[misc]
        def __init__(self, function: Any) -> None:
            self._function = function
            self._py_file = function.__code__.co_filename

        def get_cache_path(self) -> str:
            return str(cache_folder())

        def get_source_stamp(self) -> str:
            return source_stamp()

        def get_disambiguator(self) -> str:
            return str(self._function.__code__.co_firstlineno)

        @classmethod
        def from_function(cls, function: Any, file: str) -> Any:
            return cls(function)

    class PackageCacheImpl(caching.CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = [PackageLocator]

    class PackageCache(caching.FunctionCache):  # type: ignore[misc]
        _impl_class = PackageCacheImpl

        def load_overload(self, signature: Any, target_context: Any) -> Any:
            try:
                return super().load_overload(signature, target_context)
            except Exception:
                return None

        def save_overload(self, signature: Any, data: Any) -> None:
            try:
                super().save_overload(signature, data)
            except Exception:
                # Most likely a broken index: begin a new one. If that fails too, go on without.
                try:
                    self.flush()
                    super().save_overload(signature, data)
                except Exception:
                    return

    return PackageCache

"""The one module that owns jitting.

Kernels are decorated with :func:`kernel` (called from Python) or :func:`helper` (called from kernels only).
Nothing is compiled before its first call, and importing :mod:`jittok` does not import this module.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

#: True when kernels run as plain Python (for coverage and debugging).
JIT_DISABLED = bool(numba.config.DISABLE_JIT)


def kernel(function: F) -> F:
    """Compile `function` at its first call; callable from Python, releases the GIL, cached on disk."""
    return numba.njit(nogil=True, cache=True, error_model="numpy")(function)  # type: ignore[no-any-return]


def helper(function: F) -> F:
    """Compile `function` for calls from kernels only; it has no Python entry, which saves compile time."""
    if JIT_DISABLED or os.environ.get("NUMBA_DISABLE_JIT") == "1":
        return function
    return numba.njit(  # type: ignore[no-any-return]
        nogil=True, cache=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True
    )(function)

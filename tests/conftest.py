"""Settings for all tests."""

from __future__ import annotations

import os


def pytest_configure(config):
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        # Integers of kernels wrap around on purpose; NumPy's, which stand in for them here, do so with a warning.
        config.addinivalue_line("filterwarnings", "ignore:overflow encountered:RuntimeWarning")

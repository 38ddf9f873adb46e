"""Settings of all tests."""

from __future__ import annotations

import os
import signal

# Every kernel is compiled at its first call, and what hinders a code file is an error, not a reason for another
# way. Tests of the start-up set these for themselves.
os.environ.setdefault("JITTOK_BACKGROUND", "0")
os.environ.setdefault("JITTOK_DEBUG", "1")


def pytest_configure(config):
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As in a job that a shell runs in the background; tests of interruption would then wait for ever.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        # Integers of kernels wrap around on purpose; NumPy's, which stand in for them here, do so with a warning.
        config.addinivalue_line("filterwarnings", "ignore:overflow encountered:RuntimeWarning")

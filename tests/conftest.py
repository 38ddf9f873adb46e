"""Settings of all tests."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

# Every kernel is compiled at its first call, and what hinders a code file is an error, not a reason for another
# way. Tests of the start-up set these for themselves.
os.environ.setdefault("JITTOK_BACKGROUND", "0")
os.environ.setdefault("JITTOK_DEBUG", "1")


# Numba makes millions of objects that live on: looking for garbage among them took a sixth of all compile time.
gc.set_threshold(100_000, 20, 50)


def pytest_configure(config):
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As in a job that a shell runs in the background; tests of interruption would then wait for ever.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        # Integers of kernels wrap around on purpose; NumPy's, which stand in for them here, do so with a warning.
        config.addinivalue_line("filterwarnings", "ignore:overflow encountered:RuntimeWarning")


def pytest_addoption(parser):
    group = parser.getgroup("jittok")
    group.addoption("--write-passed", type=Path, metavar="FILE", help="list the tests that passed in FILE")
    group.addoption("--leave-out", type=Path, metavar="FILE", help="leave out the tests that FILE lists, if it exists")


def pytest_collection_modifyitems(config, items):
    path = config.getoption("--leave-out")
    if path is not None and path.exists():
        listed = set(path.read_text(encoding="utf-8").splitlines())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in listed])
        items[:] = [item for item in items if item.nodeid not in listed]


def pytest_sessionfinish(session):
    path = session.config.getoption("--write-passed")
    if path is not None:
        reports = session.config.pluginmanager.get_plugin("terminalreporter").stats.get("passed", [])
        path.write_text("".join(f"{report.nodeid}\n" for report in reports), encoding="utf-8")

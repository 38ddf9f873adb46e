"""What the plugins share: which tests call the wrapper, and files that tests would fetch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

calls = 0


def counted(cls):
    """Return a subclass whose every use is counted."""

    def __getattribute__(self, name):
        global calls
        calls += 1
        return super(made, self).__getattribute__(name)

    made = type(cls.__name__, (cls,), {"__getattribute__": __getattribute__, "__module__": cls.__module__})
    return made


class Marker:
    """A plugin that notes for each test whether it called the wrapper."""

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        before = calls
        item.user_properties.append(("wrapper", "False"))
        self.before = before
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        if calls > self.before:
            item.user_properties[:] = [("wrapper", "True")]
        yield


def data_file(name: str) -> Path:
    """A file of the models that tests are given, or skip the test."""
    path = Path(os.environ.get("PEER_DATA", ""), "models", name)
    if not os.environ.get("PEER_DATA") or not path.exists():
        pytest.skip(f"needs a file that is not at hand: {name}")
    return path

"""Get along without compiled kernels for a moment: run them as plain Python while another process compiles them.

Without any cache, compiling takes seconds, while a short text runs through the same functions as plain Python
in some hundredths of a second. So while a kernel is not in the cache and the work is small, it is
interpreted, and one process in the background compiles it and leaves its code file. The next call that finds
the file uses it. Work that is not small waits for that process, or compiles for itself where there is none.

The process in the background is detached: it goes on when this one ends, so that the next one starts fast. At
most one runs for each cache folder and version, holding a lock that dies with it; it runs at low priority,
takes requests from files beside the cache, and ends when there are none. Nothing is started in worker
processes. ``JITTOK_BACKGROUND=0`` switches all this off: kernels are then compiled where they are first
called.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

#: Work of one call (bytes of text, as a rule) that is interpreted.
SMALL_WORK = 1 << 14
#: Seconds that one process spends interpreting before it waits or compiles.
BUDGET = 2.0
#: Seconds to wait for a process in the background, at most.
LONGEST_WAIT = 180.0

#: Seconds by which requests that are to come last are dated forward.
_LATER = 3600.0

_LOCK = "background.lock"
_REQUESTS = "requests"
_CODE = "import sys; sys.path.insert(0, {!r}); from jittok._background import main; main()"

_owner = os.getpid()
_spent = 0.0
_started = False


def enabled() -> bool:
    """Whether kernels may be interpreted at first."""
    return os.environ.get("JITTOK_BACKGROUND", "") != "0"


def is_small(work: int) -> bool:
    """Whether work is to be interpreted while nothing is compiled."""
    return enabled() and work <= SMALL_WORK and _spent < BUDGET


def interpret(function: Any, arguments: tuple[Any, ...]) -> int:
    """Run a kernel as plain Python."""
    global _spent
    start = time.perf_counter()
    with np.errstate(over="ignore"):  # whole numbers wrap around, as they do when compiled
        result = int(function(*arguments))
    _spent += time.perf_counter() - start
    return result


def request(
    folder: Path, name: str, module: str, function: str, arguments: tuple[Any, ...], *, last: bool = False
) -> None:
    """Have the code file `name` compiled in the background, if that is possible here; with `last`, after all others.

    Raises
    ------
    OSError
        It is not.
    """
    global _started
    file = folder / _REQUESTS / f"{name}.json"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        temporary = file.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps({"module": module, "function": function, "types": _described(arguments)}))
        if last:  # the oldest come first
            later = time.time() + _LATER
            os.utime(temporary, (later, later))
        os.replace(temporary, file)
    if not _started and _may_start() and not _is_locked(folder):
        _started = True
        _start()


def wait(folder: Path, name: str) -> None:
    """Return when a code file is there, or will not come from the background."""
    end = time.monotonic() + LONGEST_WAIT
    pending = folder / _REQUESTS / f"{name}.json"
    started = time.monotonic()
    while time.monotonic() < end and pending.exists() and not (folder / name).exists():
        # A process just started takes a moment until it holds the lock.
        if not _is_locked(folder) and not (_started and time.monotonic() < started + 2.0):
            return
        time.sleep(0.02)


def _described(arguments: Any) -> list[Any]:
    """Types of arguments as JSON."""
    described: list[Any] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            described.append([argument.dtype.str, argument.ndim, bool(argument.flags.writeable)])
        elif isinstance(argument, tuple):
            kind = type(argument)
            described.append({"module": kind.__module__, "name": kind.__qualname__, "items": _described(argument)})
        else:
            described.append(0)
    return described


def _examples(described: list[Any]) -> list[Any]:
    """Arguments of the types described."""
    examples: list[Any] = []
    for item in described:
        if isinstance(item, list):
            dtype, ndim, writeable = item
            array = np.zeros((1,) * ndim, np.dtype(dtype))
            array.flags.writeable = writeable
            examples.append(array)
        elif isinstance(item, dict):
            kind = getattr(_kernel_module(item["module"]), item["name"])
            examples.append(kind(*_examples(item["items"])))
        else:
            examples.append(0)
    return examples


def _kernel_module(name: str) -> Any:
    import importlib

    if name != "jittok" and not name.startswith("jittok."):
        raise ValueError(f"{name} is no module of jittok")
    return importlib.import_module(name)


def _may_start() -> bool:
    """Whether this process may start others: it is no worker, and Python can be started from it."""
    if os.getpid() != _owner or getattr(sys, "frozen", False) or os.name != "posix":
        return False
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        return False
    return "python" in os.path.basename(sys.executable or "") and os.path.exists("/bin/sh")


def _start() -> None:
    """Start the process, detached: a shell that ends at once starts it, so it is no child of this process."""
    import subprocess

    code = _CODE.format(str(Path(__file__).parent.parent))
    subprocess.run(
        ["/bin/sh", "-c", '"$@" </dev/null >/dev/null 2>&1 &', "sh", sys.executable, "-c", code],
        env={**os.environ, "JITTOK_BACKGROUND": "0"},
        start_new_session=True,
        check=True,
    )


def _lock(folder: Path) -> int | None:
    """Take the lock of a cache folder; None if another process has it. It is released when the file is closed."""
    import fcntl

    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _is_locked(folder: Path) -> bool:
    handle = _lock(folder)
    if handle is None:
        return True
    os.close(handle)
    return False


def main() -> None:
    """Compile what is asked for, until nothing is; what the process in the background runs."""
    from jittok import _jit

    os.nice(10)
    folder = _jit.cache_folder()
    if folder is None or _lock(folder) is None:
        return
    failed: set[str] = set()
    while True:
        requests = [
            file for file in sorted((folder / _REQUESTS).glob("*.json"), key=_age) if file.name not in failed
        ]
        if not requests:
            return
        file = requests[0]
        failed.add(file.name)
        try:
            asked = json.loads(file.read_text())
            kernel = getattr(_kernel_module(asked["module"]), asked["function"])
            kernel.prepare(*_examples(asked["types"]))
        except Exception:  # a broken file, or a kernel that cannot be compiled: whoever needs it will see
            pass
        finally:
            file.unlink(missing_ok=True)


def _age(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0

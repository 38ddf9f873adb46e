"""The module that owns jitting.

Kernels are decorated with :func:`kernel` (called from Python), :func:`helper` or :func:`inlined` (called from
kernels only). Nothing is compiled before its first call, and nothing here imports Numba before something must
be compiled. The first call with arguments of some types looks, in this order, for

1. a *code file* in the cache: machine code that is loaded without Numba (:mod:`jittok._native`);
2. Numba: the kernel is compiled, and a code file left for later processes (:mod:`jittok._compiler`);
   meanwhile short texts are interpreted (:mod:`jittok._background`);
3. where code files are not supported (other systems than Linux on x86-64, Numba debugging settings, another
   Numba whose private parts have moved, arguments of unusual layout), Numba's ordinary dispatcher with a
   cache on disk.

All three run the same functions. The cache is a folder named after the content of every kernel source, so an
edit in any of them never finds stale code. It lies in ``$JITTOK_CACHE_DIR``, or ``$NUMBA_CACHE_DIR/jittok``,
or the user's cache folder. Where none can be written, kernels are compiled in each process, and one warning
says so. A broken or foreign file counts as absent. ``JITTOK_CODE_FILES=0`` leaves only the third way.

A kernel or helper may be called from a user's own ``@njit`` function too: Numba takes it for its
``dispatcher``.
"""

from __future__ import annotations

import hashlib
import operator
import os
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import cache, update_wrapper, wraps
from pathlib import Path
from typing import Any, TypeVar

from jittok.errors import ArgumentError, ArgumentTypeError, CacheWarning

F = TypeVar("F", bound=Callable[..., Any])


def _is_set(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


#: True when kernels run as plain Python (for coverage and debugging).
JIT_DISABLED = _is_set("NUMBA_DISABLE_JIT")

#: Folders of other versions that are kept.
KEPT_VERSIONS = 4
#: Seconds that a process waits for code that the one it was forked from was compiling.
PARENT_SECONDS = 30.0

#: Numba's settings that change what is compiled: with any of them, only Numba's own way is taken.
_COMPILER_SETTINGS = (
    *("NUMBA_BOUNDSCHECK", "NUMBA_OPT", "NUMBA_DEBUG", "NUMBA_DEBUGINFO", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"),
    *("NUMBA_ENABLE_AVX", "NUMBA_LOOP_VECTORIZE", "NUMBA_SLP_VECTORIZE", "NUMBA_LLVM_REFPRUNE_PASS"),
    *("NUMBA_DUMP_LLVM", "NUMBA_DUMP_OPTIMIZED", "NUMBA_DUMP_ASSEMBLY", "NUMBA_ENABLE_PROFILING"),
)

_HELPER_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

#: True while a code file is compiled, which takes dispatchers of another kind (see ``jittok._compiler``).
compiling_code_file = False
#: The level of x86-64 that it is compiled for.
compiling_level = ""

_lock = threading.RLock()
#: True in a process that was forked while another thread compiled.
_forked_while_compiling = False


def _renew_locks() -> None:
    """In a forked process: make locks anew that a thread held which is not here, and so would never be released."""
    global _lock, _forked_while_compiling
    if _lock.acquire(blocking=False):
        _lock.release()
        return
    _lock = threading.RLock()
    _forked_while_compiling = True
    module = sys.modules.get("numba.core.compiler_lock")
    if module is not None and hasattr(module, "global_compiler_lock"):
        module.global_compiler_lock._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def kernel(function: F) -> F:
    """Compile `function` at its first call; callable from Python, releases the GIL, kept on disk.

    Its arguments are arrays, NamedTuples of arrays, and whole numbers; it returns a whole number.
    """
    return _plain(function) if JIT_DISABLED else Kernel(function)  # type: ignore[return-value]


def public_kernel(**written: Any) -> Callable[[F], F]:
    """Make a :func:`kernel` that users call: Python's arguments are checked first, by position or by name.

    Parameters
    ----------
    **written
        The arrays that it writes, and their dtypes.
    """

    def decorate(function: F) -> F:
        if not JIT_DISABLED:
            return PublicKernel(function, written)  # type: ignore[return-value]
        plain, names = _plain(function), _parameters(function)

        @wraps(function)
        def run(*arguments: Any, **named: Any) -> Any:
            arguments = _bound(function.__name__, names, arguments, named)
            return plain(*_checked_numbers(arguments, names, _number_places(function)))

        return run  # type: ignore[return-value]

    return decorate


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return function.__code__.co_varnames[: function.__code__.co_argcount]


def _number_places(function: Callable[..., Any]) -> tuple[int, ...]:
    """Positions of the parameters that are whole numbers."""
    return tuple(i for i, name in enumerate(_parameters(function)) if function.__annotations__.get(name) in (int, "int"))


def _bound(function: str, names: tuple[str, ...], arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments in order; raise where one is unknown, given twice, or missing."""
    accepted = f"{function} takes {', '.join(names)}"
    if len(arguments) > len(names):
        raise ArgumentTypeError(f"{len(arguments)} arguments are given; {accepted}")
    for name in named:
        if name not in names:
            raise ArgumentTypeError(f"unexpected argument {name}=; {accepted}")
        if name in names[: len(arguments)]:
            raise ArgumentTypeError(f"the argument {name} is given twice; {accepted}")
    missing = [name for name in names[len(arguments) :] if name not in named]
    if missing:
        raise ArgumentTypeError(f"missing argument: {', '.join(missing)}; {accepted}")
    return (*arguments, *(named[name] for name in names[len(arguments) :]))


def _checked_numbers(arguments: tuple[Any, ...], names: tuple[str, ...], places: tuple[int, ...]) -> tuple[Any, ...]:
    """The arguments with plain ints at `places`; raise where one is none, or beyond 64 bits."""
    checked = list(arguments)
    for i in places:
        try:
            checked[i] = number = operator.index(arguments[i])
        except TypeError:
            given = type(arguments[i]).__name__
            raise ArgumentTypeError(f"{names[i]}: expected a whole number, got {given}") from None
        if not -(1 << 63) <= number < 1 << 63:
            bits = number.bit_length() + 1
            raise ArgumentError(f"{names[i]}: expected a whole number of at most 64 bits, got one of {bits}")
    return tuple(checked)


def _plain(function: F) -> F:
    """Return a kernel as plain Python, whose whole numbers wrap around without a warning, as compiled ones do."""
    import numpy as np

    @wraps(function)
    def run(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*arguments)

    return run  # type: ignore[return-value]


def helper(function: F) -> F:
    """Compile `function` for calls from kernels only; it has no Python entry, which saves compile time."""
    return function if JIT_DISABLED else Helper(function)  # type: ignore[return-value]


def inlined(function: F) -> F:
    """Like :func:`helper`, and always inlined into its callers: for small functions in hot loops."""
    return function if JIT_DISABLED else Helper(function, inline=True)  # type: ignore[return-value]


def machine_operation(function: F) -> F:
    """Mark the plain Python form of an operation that :mod:`jittok.kernels.machine_code` has as an intrinsic."""
    return function if JIT_DISABLED else MachineOperation(function)  # type: ignore[return-value]


class _Lazy:
    """A function whose compiled form is made when Numba asks for it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func = function
        update_wrapper(self, function)  # type: ignore[arg-type]

    def __reduce__(self) -> str:
        return self.py_func.__qualname__  # pickled by name, as functions are

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.py_func.__module__}.{self.py_func.__qualname__}>"


class MachineOperation(_Lazy):
    """An intrinsic, and its plain Python form."""

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)

    @property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target

        from jittok.kernels import machine_code

        intrinsic = getattr(machine_code, self.py_func.__name__)
        context = cpu_target.typing_context
        context.refresh()
        return context.resolve_value_type(intrinsic)


class Helper(_Lazy):
    """A function that kernels call. Called from Python, it runs as plain Python."""

    def __init__(self, function: Callable[..., Any], inline: bool = False) -> None:
        super().__init__(function)
        self._inline = inline
        self._dispatcher: Any = None
        self._code_dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)

    @property
    def dispatcher(self) -> Any:
        """Numba's dispatcher of the function."""
        if self._dispatcher is None:
            self._dispatcher = self._new_dispatcher()
        return self._dispatcher

    def _new_dispatcher(self) -> Any:
        import numba

        from jittok.kernels import machine_code  # noqa: F401  (registers the intrinsics)

        return numba.njit(forceinline=self._inline, **_HELPER_OPTIONS)(self.py_func)

    @property
    def _numba_type_(self) -> Any:
        if not compiling_code_file:
            return self.dispatcher._numba_type_
        if self._code_dispatcher is None:
            from jittok._compiler import helper_dispatcher

            self._code_dispatcher = helper_dispatcher(self.py_func, self._inline)
        return self._code_dispatcher._numba_type_


class Kernel(Helper):
    """A function that Python calls."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._compiled: tuple[Any, ...] = ()  # jittok._native.Compiled for each signature met
        self._by_signature: dict[str, Any] = {}
        names = _parameters(function)
        self._data = names.index("data") if "data" in names else None

    def __call__(self, *arguments: Any) -> Any:
        for compiled in self._compiled:
            result = compiled(arguments)
            if result != -0x8000000000000000:  # jittok._native.MISMATCH
                return result
        return self._call_slowly(arguments)

    def _new_dispatcher(self) -> Any:
        import numba

        from jittok.kernels import machine_code  # noqa: F401

        dispatcher = numba.njit(nogil=True, error_model="numpy")(self.py_func)
        _attach_cache(dispatcher)
        return dispatcher

    def _call_slowly(self, arguments: tuple[Any, ...]) -> Any:
        """Call with arguments of types that no loaded code is for."""
        environment = code_environment()
        if environment is not None:
            from jittok import _native

            arguments = tuple(map(_native.canonical, arguments))
            try:
                signature = _native.signature(arguments)
            except _native.Unsupported:
                signature = None
            if signature is not None:
                if self._is_postponed(signature, arguments):
                    from jittok import _background

                    return _background.interpret(self.py_func, arguments)
                compiled = self._code(signature, arguments)
                if compiled is not None:
                    result = compiled(arguments)
                    if result != _native.MISMATCH:
                        return result
        return self.dispatcher(*arguments)

    def prepare(self, *arguments: Any) -> bool:
        """Compile for arguments like these, or load the code; False where code files are not supported."""
        if code_environment() is None:
            return False
        from jittok import _native

        arguments = tuple(map(_native.canonical, arguments))
        return self._code(_native.signature(arguments), arguments) is not None

    def is_ready(self, *arguments: Any) -> bool:
        """Whether a call with arguments like these compiles nothing; if it would, a process in the background does it.

        Where there is no such process, True: who calls must compile.
        """
        if self.is_compiled(*arguments):
            return True
        from jittok import _background, _native

        if code_environment() is None or not _background.enabled():
            return True
        arguments = tuple(map(_native.canonical, arguments))
        try:
            name, _ = self._code_file(_native.signature(arguments))
        except _native.Unsupported:
            return True
        folder = cache_folder()
        if folder is None:
            return True
        try:
            _background.request(folder, name, self.py_func.__module__, self.py_func.__name__, arguments, last=True)
        except (OSError, ValueError):  # no process can be started here
            return True
        return False

    def is_compiled(self, *arguments: Any) -> bool:
        """Whether there is code for arguments like these, here or in the cache; False where code files are not supported."""
        if code_environment() is None:
            return False
        from jittok import _native

        arguments = tuple(map(_native.canonical, arguments))
        try:
            signature = _native.signature(arguments)
        except _native.Unsupported:
            return False
        if signature in self._by_signature:
            return self._by_signature[signature] is not None
        return (cache_root() / source_stamp() / self._code_file(signature)[0]).exists()

    def _is_postponed(self, signature: str, arguments: tuple[Any, ...]) -> bool:
        """Whether to interpret this call, because nothing is compiled yet and the work is small."""
        if signature in self._by_signature:
            return False
        name, key = self._code_file(signature)
        if (cache_root() / source_stamp() / name).exists():
            return False
        from jittok import _background

        if not _background.is_small(self._work(arguments)):
            return False
        try:
            folder = cache_folder()
            if folder is not None:
                _background.request(folder, name, self.py_func.__module__, self.py_func.__name__, arguments)
        except (OSError, ValueError):  # no process can be started here
            pass
        return True

    def _work(self, arguments: tuple[Any, ...]) -> int:
        """Size of the work: bytes of text where the kernel has text, else of the largest array."""
        if self._data is not None:
            return len(arguments[self._data])
        return max((argument.size for argument in arguments if hasattr(argument, "dtype")), default=0)

    def _code(self, signature: str, arguments: tuple[Any, ...]) -> Any:
        """Compiled code for a signature: loaded, or compiled now; None if that is not possible."""
        if signature in self._by_signature:
            return self._by_signature[signature]
        from jittok import _native

        with _lock:
            if signature in self._by_signature:
                return self._by_signature[signature]
            compiled = None
            try:
                name, key = self._code_file(signature)
                code = _read_code(name, key)
                if code is None and _wait_for_code(name):
                    code = _read_code(name, key)
                if code is None and _forked_while_compiling:
                    code = _code_of_parent(name, key)
                if code is None:
                    code = self._compile(arguments)
                    _write_code(name, key, code)
                function = _native.load(code)
                if function is not None:
                    compiled = _native.Compiled(function, arguments)
            except Exception:  # private parts of Numba: whatever fails here, its ordinary way still works
                if _is_set("JITTOK_DEBUG"):
                    raise
            self._by_signature[signature] = compiled
            if compiled is not None:
                self._compiled = (*self._compiled, compiled)
        return compiled

    def _compile(self, arguments: tuple[Any, ...]) -> Any:
        from jittok import _compiler

        layout, level = code_environment()  # type: ignore[misc]
        return _compiler.compile_kernel(self.py_func, arguments, layout, level)

    def _code_file(self, signature: str) -> tuple[str, str]:
        """Name of the code file for a signature, and the key that it holds."""
        key = "\n".join((source_stamp(), repr(self), signature, *map(repr, code_environment() or ())))
        module = self.py_func.__module__.rpartition(".")[2]
        return f"{module}.{self.py_func.__name__}-{_digest(key)}.code", key


class PublicKernel(Kernel):
    """A kernel that users call, see :func:`public_kernel`. Compiled callers go past all of this."""

    def __init__(self, function: Callable[..., Any], written: dict[str, Any]) -> None:
        super().__init__(function)
        self._written = written
        self._names = _parameters(function)
        self._number_places = _number_places(function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if named or len(arguments) != len(self._names):
            arguments = _bound(self.py_func.__name__, self._names, arguments, named)
        return super().__call__(*_checked_numbers(arguments, self._names, self._number_places))

    def _call_slowly(self, arguments: tuple[Any, ...]) -> Any:
        self._check_written(arguments)
        return super()._call_slowly(arguments)

    def _check_written(self, arguments: tuple[Any, ...]) -> None:
        """Refuse arrays that must not be written, or that have items of another size than is written."""
        import numpy as np

        for name, argument in zip(self._names, arguments, strict=True):
            if name in self._written:
                dtype = self._written[name]
                is_array = isinstance(argument, np.ndarray) and argument.dtype == dtype and argument.ndim == 1
                if not is_array or not argument.flags.writeable or not argument.flags.c_contiguous:
                    given = type(argument).__name__
                    if isinstance(argument, np.ndarray):
                        given = f"{argument.dtype} of {argument.ndim} dimensions" if not is_array else "one that is not"
                    raise ArgumentTypeError(
                        f"{name}: expected a contiguous array of {dtype.__name__} that can be written, got {given}"
                    )


def is_ready(function: Callable[..., Any], *arguments: Any) -> bool:
    """Whether a kernel is compiled for arguments like these, or never is; see :meth:`Kernel.is_ready`."""
    return not isinstance(function, Kernel) or function.is_ready(*arguments)


def is_compiled(function: Callable[..., Any], *arguments: Any) -> bool:
    """Whether there is machine code of a kernel for arguments like these; see :meth:`Kernel.is_compiled`."""
    return isinstance(function, Kernel) and function.is_compiled(*arguments)


_mask_code_addresses: dict[str, int] = {}


def mask_code(split: Any, may_compile: bool, find_runs: Callable[[Any], Any] | None = None) -> int:
    """Address of the machine code of a split's mask program; 0 where there is none.

    Parameters
    ----------
    split : SplitTables
    may_compile
        Compile it, in a tenth of a second or more, if it is not in the cache.
    find_runs
        What finds ``tables.Runs`` of a split, when it is compiled; None: without these.
    """
    environment = None if JIT_DISABLED else code_environment()
    if environment is None:
        return 0
    tables = (split.program, split.entry_class, split.numbers, split.transitions)
    key = "\n".join(
        (
            "mask program with runs" if find_runs else "mask program",
            *(source_stamp(), environment[1]),
            *(_digest_of(table.tobytes()) for table in tables),
        )
    )
    if key in _mask_code_addresses:
        return _mask_code_addresses[key]
    from jittok import _native

    name = f"mask_program-{_digest(key)}.code"
    with _lock:
        try:
            code = _read_code(name, key)
            if code is None:
                if not may_compile:
                    return 0
                from jittok._mask_code import compile_mask_program

                runs = None if find_runs is None else find_runs(split)
                code = compile_mask_program(split, environment[1], runs)
                _write_code(name, key, code)
            address = _native.address(_native.load(code))
        except Exception:  # whatever fails here, the kernels run the program a step at a time
            if _is_set("JITTOK_DEBUG"):
                raise
            address = 0
        _mask_code_addresses[key] = address
    return address


# ------------------------------------------------------------------------------------------------------- the cache


def _digest_of(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def _digest(text: str) -> str:
    return _digest_of(text.encode())


@cache
def code_environment() -> tuple[Any, str] | None:
    """What code files depend on besides the sources: object layout and CPU; None where they are not supported."""
    if os.environ.get("JITTOK_CODE_FILES") == "0" or any(map(_is_set, _COMPILER_SETTINGS)):
        return None
    try:
        from jittok import _native

        level, layout = _native.cpu_level(), _native.object_layout()
    except Exception:  # looks into objects of another Python or NumPy than known
        return None
    return None if level is None or layout is None else (layout, level)


@cache
def source_stamp() -> str:
    """Hash of all sources that compiled kernels come from."""
    digest = hashlib.blake2b(digest_size=12)
    package = Path(__file__).parent
    names = ("_jit", "_native", "_compiler", "_arguments", "_linker", "_mask_code", "_background", "tables")
    own = [package / f"{name}.py" for name in names]
    try:
        for path in [*own, *sorted((package / "kernels").glob("*.py"))]:
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    except OSError:  # not in a folder (a zip file): the version has to do
        from jittok import __version__

        digest.update(__version__.encode())
    return digest.hexdigest()


def cache_root() -> Path:
    """The folder that holds a folder of compiled kernels for each version."""
    if os.environ.get("JITTOK_CACHE_DIR"):
        return Path(os.environ["JITTOK_CACHE_DIR"])
    if os.environ.get("NUMBA_CACHE_DIR"):
        return Path(os.environ["NUMBA_CACHE_DIR"]) / "jittok"
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return Path(base).expanduser() / "jittok"


def _read_code(name: str, key: str) -> Any:
    """The code in a file of the cache; None if there is none, or it is broken or another's."""
    from jittok import _native

    try:
        content = (cache_root() / source_stamp() / name).read_bytes()
    except (OSError, RuntimeError):
        return None
    return _native.unpack(content, key)


def _wait_for_code(name: str) -> bool:
    """Wait while a process in the background compiles a code file; False if there was nothing to wait for."""
    from jittok import _background

    folder = cache_root() / source_stamp()
    if not _background.enabled() or not folder.is_dir():
        return False
    _background.wait(folder, name)
    return True


def _code_of_parent(name: str, key: str) -> Any:
    """A code file that the process which this one was forked from is likely to be compiling; None if it does not come.

    The compiler may have been forked in the middle of its work, so to use it here is the second choice. Who has waited in
    vain does not wait again.
    """
    global _forked_while_compiling
    end = time.monotonic() + PARENT_SECONDS
    code = None
    while code is None and cache_folder() is not None and time.monotonic() < end:
        time.sleep(0.05)
        code = _read_code(name, key)
    _forked_while_compiling = code is not None
    return code


def _write_code(name: str, key: str, code: Any) -> None:
    """Leave a code file for other processes. It appears whole or not at all, whoever else writes it meanwhile."""
    from jittok import _native

    folder = cache_folder()
    if folder is None:
        return
    temporary = folder / f"{name}.{os.getpid()}.{threading.get_ident()}"
    try:
        temporary.write_bytes(_native.pack(code, key))
        os.replace(temporary, folder / name)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        _warn_of_cache(error)


@cache
def cache_folder() -> Path | None:
    """Return the folder of compiled kernels, made if needed; None (after a warning) if that fails."""
    try:
        root = cache_root()
        folder = root / source_stamp()
        is_new = not folder.is_dir()
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(f"{folder} is read-only")
        if is_new:
            _drop_old_versions(root)
    except (OSError, RuntimeError) as error:
        _warn_of_cache(error)
        return None
    return folder


def _warn_of_cache(error: Exception) -> None:
    global _warned_of_cache
    if _warned_of_cache:
        return
    _warned_of_cache = True
    warnings.warn(
        f"compiled kernels cannot be kept ({error}), so every process compiles them anew, which takes seconds; "
        "set JITTOK_CACHE_DIR to a folder that can be written",
        CacheWarning,
        stacklevel=2,
    )


_warned_of_cache = False


#: Names of folders that :func:`source_stamp` gives.
_STAMP = re.compile("[0-9a-f]{24}")


def _drop_old_versions(root: Path) -> None:
    """Remove all but the newest folders of compiled kernels; whatever else lies beside them is not ours."""
    import shutil

    named = (f for f in root.iterdir() if _STAMP.fullmatch(f.name) and f.is_dir() and not f.is_symlink())
    folders = sorted(named, key=lambda f: f.stat().st_mtime, reverse=True)
    for folder in folders[KEPT_VERSIONS:]:
        shutil.rmtree(folder, ignore_errors=True)


# ---------------------------------------------------------------------------------------------- Numba's own cache


def _attach_cache(dispatcher: Any) -> None:
    """Give a dispatcher a disk cache in :func:`cache_folder`, or Numba's own where its internals have moved."""
    if cache_folder() is None:
        return
    try:
        dispatcher._cache = _package_cache_class()(dispatcher.py_func)
    except Exception:  # private API: whatever fails here, stock caching still works
        try:
            dispatcher.enable_caching()
        except RuntimeError:
            return


@cache
def _numba_stamp() -> str:
    """Hash of what Numba's cache files depend on."""
    import numba

    settings = (
        source_stamp(),
        numba.__version__,
        numba.config.BOUNDSCHECK,
        numba.config.OPT,
        sys.version_info[:2],
    )
    return _digest(repr(settings))


@cache
def _package_cache_class() -> Any:
    """Numba's function cache, with this package's folder and stamp, that takes broken files for absent ones."""
    from numba.core import caching

    class PackageLocator(caching._CacheLocator):  # type: ignore[misc]
        def __init__(self, function: Any) -> None:
            self._function = function
            self._py_file = function.__code__.co_filename

        def get_cache_path(self) -> str:
            return str(cache_folder() / f"numba-{_numba_stamp()}")  # type: ignore[operator]

        def get_source_stamp(self) -> str:
            return _numba_stamp()

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

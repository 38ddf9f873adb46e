"""Code files, the cache, interpretation while nothing is compiled, and what a new process imports."""

import ctypes
import fcntl
import os
import pickle
import subprocess
import sys
import threading
import time
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import jittok
from jittok import _background, _jit, _native
from jittok.errors import CacheWarning
from jittok.kernels.spans import find_spans
from jittok.kernels.split import split_segments
from jittok.tables import Blanks, SplitTables

needs_jit = pytest.mark.skipif(_jit.JIT_DISABLED, reason="the JIT is off")
needs_code_files = pytest.mark.skipif(
    _jit.JIT_DISABLED or _jit.code_environment() is None, reason="code files are not supported here"
)
FIND_SPANS = "find_spans"
NO_BLANKS = Blanks(np.zeros(0, np.uint16), np.zeros(0, np.uint32))


def run(code: str, **variables: str) -> str:
    """Output of a new interpreter."""
    environment = {**os.environ, "PYTHONPATH": str(Path(jittok.__file__).parent.parent), **variables}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def span_arguments(n: int = 40, seed: int = 0) -> tuple:
    """Arguments for ``find_spans``: texts of several-byte characters, tokens that split them."""
    rng = np.random.default_rng(seed)
    text = "".join(rng.choice(list("ab é語🙂"), n)).encode()
    data = np.frombuffer(text + bytes(64), np.uint8)
    cuts = np.unique(np.r_[0, rng.integers(0, len(text), n // 2), len(text)])
    lengths = np.diff(cuts).astype(np.int32)
    start, end = np.zeros(1, np.int64), np.array([len(lengths)])
    return data, start, start.copy(), end, np.arange(len(lengths), dtype=np.int32), lengths, 0, NO_BLANKS


def spans_by(function, arguments) -> np.ndarray:
    out = np.full((len(arguments[4]), 2), -1, np.int64)
    assert function(*arguments, out) == len(out)
    return out


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """A cache folder of this test's own."""
    monkeypatch.setenv("JITTOK_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(_jit, "_warned_of_cache", False)
    _jit.cache_folder.cache_clear()
    yield tmp_path
    _jit.cache_folder.cache_clear()


def new_kernel() -> _jit.Kernel:
    """``find_spans`` as a new process has it."""
    return _jit.Kernel(find_spans.py_func)


def code_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.code"))


# -------------------------------------------------------------------------------- imports


def test_import_is_light():
    code = "import sys, jittok; print({'numba', 'llvmlite', 'numpy'} & set(sys.modules))"
    assert run(code).strip() == "set()"


@needs_jit
def test_kernels_are_imported_without_numba():
    code = (
        "import sys, pkgutil, importlib, jittok.kernels as k\n"
        "for m in pkgutil.iter_modules(k.__path__):\n"
        "    if m.name != 'machine_code': importlib.import_module('jittok.kernels.' + m.name)\n"
        "print({'numba', 'llvmlite'} & set(sys.modules))"
    )
    assert run(code).strip() == "set()"


@needs_code_files
def test_warm_process_encodes_without_numba():
    code = (
        "import sys, jittok; t = jittok.load_default()\n"
        "e, b = t.encode('Hello wörld, 123'), t.encode_batch(['one', 'zwei'])\n"
        "t.decode(e.ids); print(e.ids.tolist(), b.ids.tolist(), e.spans.tolist(), 'numba' in sys.modules)"
    )
    first = run(code)
    second = run(code)
    assert second.split(" ")[-1].strip() == "False"
    assert first.rsplit(" ", 1)[0] == second.rsplit(" ", 1)[0]
    tokenizer = jittok.load_default()
    assert second.startswith(str(tokenizer.encode("Hello wörld, 123").ids.tolist()))


def test_a_jittok_file_needs_no_builder():
    code = (
        "import sys, jittok; jittok.load_default()\n"
        "names = ('regex_syntax', 'regex_automaton', 'split_windows', 'merge_tables', 'normalizer_tables')\n"
        "print([n for n in names if 'jittok.build.' + n in sys.modules])"
    )
    assert run(code).strip() == "[]"


# --------------------------------------------------------------------------------------------------- equal results


@needs_code_files
@pytest.mark.parametrize("seed", range(5))
def test_code_file_dispatcher_and_plain_python_agree(seed):
    arguments = span_arguments(200, seed)
    results = [spans_by(f, arguments) for f in (find_spans, find_spans.dispatcher, find_spans.py_func)]
    assert results[0].min() >= 0
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_interpreted_ids_are_the_compiled_ones(tmp_path):
    texts = ["Hello wörld, don't 12345!", "", " \n\n  x", "日本語 🙂 naïve", "a" * 60, "def f(x):\n\treturn 1"]
    tokenizer = jittok.load_default()
    expected = [tokenizer.encode(text) for text in texts]
    code = (
        "import sys, jittok; from jittok import _background as b; b._may_start = lambda: False; b.BUDGET = 1e9\n"
        f"t = jittok.load_default(); r = [t.encode(x) for x in {texts!r}]\n"
        "print([(e.ids.tolist(), e.spans.tolist()) for e in r], 'numba' in sys.modules, b._spent > 0)"
    )
    found = run(code, JITTOK_BACKGROUND="1", JITTOK_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="0")
    interpreted = _native.cpu_level() is not None and not any(map(_jit._is_set, _jit._COMPILER_SETTINGS))
    assert found.startswith(str([(e.ids.tolist(), e.spans.tolist()) for e in expected]))
    if interpreted:
        assert found.endswith("False True\n")


@needs_jit
def test_kernels_in_a_users_njit_function():
    import numba

    @numba.njit
    def twice(data, starts, origins, ends, ids, lengths, by_token, blanks, out):
        return 2 * find_spans(data, starts, origins, ends, ids, lengths, by_token, blanks, out)

    arguments = span_arguments()
    out = np.zeros((len(arguments[4]), 2), np.int64)
    assert twice(*arguments, out) == 2 * len(out)
    np.testing.assert_array_equal(out, spans_by(find_spans, arguments))


@needs_jit
def test_machine_operations_in_a_users_njit_function():
    import numba

    from jittok.kernels import machine

    zeros, load, product = machine.trailing_zeros, machine.load64, machine.multiply

    @numba.njit
    def compiled(data, at):
        value = load(data, at)
        return zeros(value), value, product(value, value)

    data = np.random.default_rng(1).integers(0, 256, 40).astype(np.uint8)
    for at in range(20):
        value = load(data, at)
        assert compiled(data, at) == (zeros(value), value, product(value, value))


# ----------------------------------------------------------------------------------------------------- arguments


@needs_code_files
def test_arguments_of_other_types_are_told_apart(empty_cache):
    kernel = new_kernel()
    arguments = (*span_arguments(), None)
    out = np.zeros((len(arguments[4]), 2), np.int64)
    good = (*arguments[:-1], out)
    assert kernel(*good) == len(out)
    (compiled,) = kernel._compiled
    assert compiled(good) == len(out)
    wrong = [
        (*arguments[:-1], out.astype(np.int32)),
        (*arguments[:-1], out.ravel()),
        (*arguments[:-1], np.zeros((len(out), 4), np.int64)[:, ::2]),
        (*arguments[:-1], np.asfortranarray(np.zeros((len(out), 2), np.int64))),
        (*arguments[:-1], None),
        (*arguments[:-1], (out,)),
        (*arguments[:-1], out.tolist()),
        (*arguments[:-1], 7),
        (*arguments[:-1], out.view(np.recarray)),
        arguments[:-1],
        (*good, 1),
        (*good[:6], out, good[7]),
        (*good[:6], "x", good[7]),
        (*good[:6], 1.5, good[7]),
        (),
    ]
    frozen = out.copy()
    frozen.flags.writeable = False
    wrong.append((*arguments[:-1], frozen))
    for case in wrong:
        assert compiled(case) == _native.MISMATCH
    # Where code for read-only arrays is asked for, arrays that can be written do as well.
    writable = (good[0].copy(), *good[1:])
    assert not good[0].flags.writeable
    assert compiled(writable) == len(out)


@needs_code_files
def test_equal_types_in_other_forms(empty_cache):
    kernel = new_kernel()
    arguments = span_arguments()
    expected = spans_by(kernel, arguments)
    unpickled = pickle.loads(pickle.dumps(arguments))  # its dtypes are not NumPy's own objects
    np.testing.assert_array_equal(spans_by(kernel, unpickled), expected)
    longlong = (*arguments[:1], *(a.astype(np.longlong) for a in arguments[1:4]), *arguments[4:])
    np.testing.assert_array_equal(spans_by(kernel, longlong), expected)
    np.testing.assert_array_equal(spans_by(kernel, (*arguments[:6], np.int64(0), NO_BLANKS)), expected)
    assert len(kernel._compiled) <= 2  # data read-only, and not


@needs_code_files
def test_unusual_layout_goes_to_numba(empty_cache):
    kernel = new_kernel()
    arguments = span_arguments()
    wide = np.zeros((len(arguments[4]), 4), np.int64)
    assert kernel(*arguments, wide[:, ::2]) == len(wide)
    np.testing.assert_array_equal(wide[:, ::2], spans_by(find_spans, arguments))
    assert not code_files(empty_cache)


@needs_code_files
def test_named_tuples_are_checked():
    tables = jittok.load_default().plan.last_split
    data = np.frombuffer(b"some words, 12" + bytes(64), np.uint8)
    start, end = np.zeros(1, np.int64), np.array([14])
    outs = [np.zeros(20, np.int64) for _ in range(3)]
    n = split_segments(tables, 1, 0, data, start, end, *outs)
    assert n > 2
    for compiled in split_segments._compiled:
        other = SplitTables(*tables[:-1], tables[-1].astype(np.int32))
        for wrong in (tuple(tables), other, tables[0], None, types.SimpleNamespace()):
            assert compiled((wrong, 1, 0, data, start, end, *outs)) == _native.MISMATCH


@needs_jit
def test_pickled_by_name():
    assert pickle.loads(pickle.dumps(find_spans)) is find_spans


# -------------------------------------------------------------------------------- the cache


@needs_code_files
def test_cache_is_filled_and_used(empty_cache):
    arguments = span_arguments()
    expected = spans_by(new_kernel(), arguments)
    (file,) = code_files(empty_cache)
    before = file.read_bytes()
    kernel = new_kernel()
    kernel._compile = None  # nothing may be compiled now
    np.testing.assert_array_equal(spans_by(kernel, arguments), expected)
    assert file.read_bytes() == before


@needs_code_files
def test_broken_and_foreign_files_are_replaced(empty_cache):
    arguments = span_arguments()
    expected = spans_by(new_kernel(), arguments)
    (file,) = code_files(empty_cache)
    good = file.read_bytes()
    flipped = bytearray(good)
    flipped[-100] ^= 1
    code = _native.unpack(good, new_kernel()._code_file(_native.signature((*arguments, expected)))[1])
    for bad in (b"", b"garbage", good[:-1], bytes(flipped), good + b"x", _native.pack(code, "another kernel")):
        file.write_bytes(bad)
        np.testing.assert_array_equal(spans_by(new_kernel(), arguments), expected)
        assert file.read_bytes() == good
    file.unlink()
    file.mkdir()
    with pytest.warns(CacheWarning):
        np.testing.assert_array_equal(spans_by(new_kernel(), arguments), expected)


@pytest.mark.skipif(_native.cpu_level() is None, reason="code files are not supported here")
def test_no_broken_byte_is_accepted():
    code = _native.Code(200, 16, ((192, "memset"),), bytes(range(200)))
    file = _native.pack(code, "key")
    assert _native.unpack(file, "key") == code
    assert _native.unpack(file, "kex") is None
    for i in range(len(file)):
        broken = bytearray(file)
        broken[i] ^= 0x55
        assert _native.unpack(bytes(broken), "key") is None
    for length in range(len(file)):
        assert _native.unpack(file[:length], "key") is None


@pytest.mark.skipif(_native.cpu_level() is None, reason="code files are not supported here")
@pytest.mark.parametrize(
    "code",
    [
        _native.Code(10, 0, (), bytes(20)),
        _native.Code(20, 20, (), bytes(20)),
        _native.Code(20, 0, ((13, "memset"),), bytes(20)),
        _native.Code(20, 0, ((8, "system"),), bytes(20)),
        _native.Code(1 << 40, 0, (), bytes(20)),
    ],
)
def test_impossible_files_are_refused(code):
    assert _native.unpack(_native.pack(code, "k"), "k") is None


def test_old_versions_go_and_nothing_else(tmp_path):
    names = [f"{number:024x}" for number in range(7)]
    for name in [*names, "documents", "abc", "F" * 24]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "letter").write_text("dear")
    (tmp_path / ("f" * 24)).write_text("a file")
    for age, name in enumerate(names):
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    _jit._drop_old_versions(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*names[: _jit.KEPT_VERSIONS], "documents", "abc", "F" * 24, "f" * 24}


def test_an_empty_variable_is_none(monkeypatch):
    monkeypatch.setenv("JITTOK_CACHE_DIR", "")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    assert _jit.cache_root().name == "jittok" and _jit.cache_root().is_absolute()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_locks_of_a_process_forked_while_a_thread_compiles(monkeypatch):
    held, done = threading.Event(), threading.Event()
    lock = threading.RLock()

    def hold():
        with lock:
            held.set()
            done.wait(60)

    monkeypatch.setattr(_jit, "_lock", lock)
    monkeypatch.setattr(_jit, "_forked_while_compiling", False)
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    try:
        pid = os.fork()
        if pid == 0:
            is_right = _jit._lock.acquire(blocking=False) and _jit._forked_while_compiling
            os._exit(0 if is_right else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert _jit._lock is lock
    finally:
        done.set()
        thread.join()


@needs_code_files
def test_cache_that_cannot_be_written_warns_once(tmp_path, empty_cache, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JITTOK_CACHE_DIR", str(tmp_path / "file" / "cache"))
    arguments = span_arguments()
    with pytest.warns(CacheWarning, match="JITTOK_CACHE_DIR") as caught:
        results = [spans_by(new_kernel(), arguments) for _ in range(2)]
    assert len(caught) == 1
    np.testing.assert_array_equal(results[0], spans_by(find_spans, arguments))


@needs_code_files
def test_full_cache_may_be_read_only(empty_cache, monkeypatch):
    arguments = span_arguments()
    spans_by(new_kernel(), arguments)
    monkeypatch.setattr(_jit, "_write_code", lambda *arguments: pytest.fail("nothing is to be written"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spans_by(new_kernel(), arguments)


@needs_code_files
def test_processes_fill_one_cache_at_once(tmp_path):
    code = (
        "from jittok.kernels.utf8 import find_invalid_utf8 as f; import numpy as np, sys\n"
        "print(f(np.frombuffer(b'abc\\xff', np.uint8), 0, 4))"
    )
    with ThreadPoolExecutor(2) as pool:
        settings = {"JITTOK_CACHE_DIR": str(tmp_path), "JITTOK_BACKGROUND": "0"}
        results = list(pool.map(lambda _: run(code, **settings), range(2)))
    assert [result.strip() for result in results] == ["3", "3"]
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert [file.suffix for file in files] == [".code"]


@needs_code_files
def test_other_cpus_and_layouts_have_files_of_their_own(monkeypatch):
    signature = _native.signature((*span_arguments(), np.zeros((1, 2), np.int64)))
    layout, level = _jit.code_environment()
    names = {find_spans._code_file(signature)[0]}
    for environment in ((layout, "x86-64"), (layout._replace(item=32), level), (layout._replace(data=32), level)):
        monkeypatch.setattr(_jit, "code_environment", lambda environment=environment: environment)
        names.add(find_spans._code_file(signature)[0])
    names.add(find_spans._code_file(signature + "r")[0])
    assert len(names) == (5 if level != "x86-64" else 4)


def test_cpu_levels():
    v2 = {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}
    v3 = v2 | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}
    assert _native._level(set()) == "x86-64"
    assert _native._level(v2 | {"avx2"}) == "x86-64-v2"
    assert _native._level(v3 - {"sse4_1"}) == "x86-64"
    assert _native._level(v3 | {"avx512f"}) == "x86-64-v3"
    assert _native._level(v3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}) == "x86-64-v4"


def test_numba_settings_turn_code_files_off(monkeypatch):
    for name, value in (("NUMBA_BOUNDSCHECK", "1"), ("NUMBA_OPT", "1"), ("JITTOK_CODE_FILES", "0")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert _jit.code_environment.__wrapped__() is None


@needs_code_files
def test_what_cannot_be_compiled_goes_to_numba(empty_cache, monkeypatch):
    from jittok import _compiler

    monkeypatch.delenv("JITTOK_DEBUG", raising=False)
    monkeypatch.setattr(_compiler, "compile_kernel", lambda *arguments: 1 / 0)
    kernel = new_kernel()
    np.testing.assert_array_equal(spans_by(kernel, span_arguments()), spans_by(find_spans, span_arguments()))
    assert not code_files(empty_cache)
    assert list(empty_cache.rglob("*.nbi"))  # Numba's own cache serves instead
    for file in empty_cache.rglob("*.nb*"):
        file.write_bytes(b"broken")
    np.testing.assert_array_equal(spans_by(new_kernel(), span_arguments()), spans_by(find_spans, span_arguments()))


# -------------------------------------------------------------------------------- threads and forks


@needs_code_files
def test_threads_share_one_compilation(empty_cache):
    kernel = new_kernel()
    compiled = []
    compile_one = kernel._compile

    def counted(arguments):
        compiled.append(1)
        return compile_one(arguments)

    kernel._compile = counted
    cases = [span_arguments(300, seed) for seed in range(16)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda arguments: spans_by(kernel, arguments), cases))
    assert compiled == [1]
    for arguments, result in zip(cases, results, strict=True):
        np.testing.assert_array_equal(result, spans_by(find_spans, arguments))


@needs_code_files
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_processes_use_loaded_code():
    arguments = span_arguments()
    expected = spans_by(find_spans, arguments)
    child = os.fork()
    if child == 0:
        os._exit(0 if (spans_by(find_spans, arguments) == expected).all() and not _background._may_start() else 1)
    assert os.waitpid(child, 0)[1] == 0


# -------------------------------------------------------------------------------- the background


@needs_code_files
def test_interpreted_first_then_compiled_in_the_background(tmp_path):
    code = """if True:
        import os, sys, time, warnings
        sys.path.insert(0, os.environ["TESTS"])
        warnings.simplefilter("error")
        import test_startup as t
        from jittok import _background, _jit
        arguments = t.span_arguments()
        one = t.spans_by(t.find_spans, arguments)
        assert not t.find_spans._compiled and _background._spent > 0 and _background._started
        end = time.time() + 200
        while not t.code_files(_jit.cache_root()) and time.time() < end:
            time.sleep(0.05)
        two = t.spans_by(t.find_spans, arguments)
        assert t.find_spans._compiled and "numba" not in sys.modules and (one == two).all()
        try:
            os.waitpid(-1, os.WNOHANG)
            print("child")
        except ChildProcessError:
            print("no child")
    """
    settings = {"JITTOK_BACKGROUND": "1", "JITTOK_CACHE_DIR": str(tmp_path), "TESTS": str(Path(__file__).parent)}
    assert run(code, **settings).strip() == "no child"
    end = time.time() + 20
    while list(tmp_path.rglob("*.json")) and time.time() < end:
        time.sleep(0.05)
    left = {file.suffix for file in tmp_path.rglob("*") if file.is_file()}
    assert left == {".code", ".lock"}


@pytest.fixture
def starts(monkeypatch):
    """Counts processes that would have been started in the background, in a process that has done nothing yet."""
    started = []
    monkeypatch.setenv("JITTOK_BACKGROUND", "1")
    monkeypatch.setattr(_background, "_start", lambda: started.append(1))
    monkeypatch.setattr(_background, "_started", False)
    monkeypatch.setattr(_background, "_spent", 0.0)
    monkeypatch.setattr(_background, "_owner", os.getpid())
    return started


@needs_code_files
def test_one_background_process_at_a_time(empty_cache, starts, monkeypatch):
    folder = _jit.cache_folder()
    lock = _background._lock(folder)
    assert lock is not None
    assert _background._lock(folder) is None
    spans_by(new_kernel(), span_arguments())
    assert starts == []
    os.close(lock)
    spans_by(new_kernel(), span_arguments())
    spans_by(new_kernel(), span_arguments())
    assert starts == [1]
    assert len(list(empty_cache.rglob("*.json"))) == 1


@needs_code_files
def test_no_background_process_in_workers(empty_cache, starts, monkeypatch):
    import multiprocessing.process

    monkeypatch.setattr(multiprocessing.process, "parent_process", lambda: object())
    spans_by(new_kernel(), span_arguments())
    monkeypatch.undo()
    assert starts == []


@needs_code_files
def test_background_can_be_switched_off(empty_cache, starts, monkeypatch):
    monkeypatch.setenv("JITTOK_BACKGROUND", "0")
    spans_by(new_kernel(), span_arguments())
    assert starts == []
    assert _background._spent == 0
    assert code_files(empty_cache)


@needs_code_files
@pytest.mark.parametrize("reason", ["large", "budget"])
def test_other_work_is_compiled_at_once(empty_cache, starts, monkeypatch, reason):
    monkeypatch.setattr(_background, "SMALL_WORK" if reason == "large" else "BUDGET", -1)
    spans_by(new_kernel(), span_arguments())
    assert code_files(empty_cache)
    assert starts == []


@needs_code_files
def test_large_work_waits_for_the_background(empty_cache, starts, monkeypatch):
    arguments = span_arguments()
    expected = spans_by(new_kernel(), arguments)  # interpreted, and asked for
    lock = _background._lock(_jit.cache_folder())
    kernel = new_kernel()
    compile_one = kernel._compile
    kernel._compile = None  # it must wait
    monkeypatch.setattr(_background, "SMALL_WORK", -1)
    results = []
    thread = threading.Thread(target=lambda: results.append(spans_by(kernel, arguments)))
    thread.start()
    out = np.zeros((len(arguments[4]), 2), np.int64)
    name, key = kernel._code_file(_native.signature((*arguments, out)))
    _jit._write_code(name, key, compile_one((*arguments, out)))
    thread.join(60)
    os.close(lock)
    np.testing.assert_array_equal(results[0], expected)


@needs_code_files
def test_a_dead_background_is_not_waited_for(empty_cache, starts, monkeypatch):
    arguments = span_arguments()
    expected = spans_by(new_kernel(), arguments)
    monkeypatch.setattr(_background, "SMALL_WORK", -1)
    np.testing.assert_array_equal(spans_by(new_kernel(), arguments), expected)  # the lock is free: compiled here
    assert code_files(empty_cache)


@needs_code_files
def test_background_survives_broken_requests(empty_cache, monkeypatch):
    folder = _jit.cache_folder()
    arguments = (*span_arguments(), np.zeros((3, 2), np.int64))
    name, _ = find_spans._code_file(_native.signature(arguments))
    monkeypatch.setattr(_background, "_may_start", lambda: False)
    monkeypatch.setattr(os, "nice", lambda n: n)
    find_spans_here = dict(find_spans._by_signature)
    monkeypatch.setattr(find_spans, "_by_signature", {})
    for broken in ("", "[]", '{"module": "os", "function": "system", "types": []}'):
        _background.request(folder, f"{len(broken)}.code", find_spans.__module__, "find_spans", arguments)
        (folder / "requests" / f"{len(broken)}.code.json").write_text(broken)
    _background.request(folder, name, find_spans.__module__, "find_spans", arguments)
    _background.main()
    assert (folder / name).is_file()
    assert not list(folder.rglob("*.json"))
    assert find_spans_here is not None


# -------------------------------------------------------------------------------- the linker


def emitted(text: str) -> bytes:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        reloc="pic", codemodel="small", opt=2
    )
    return machine.emit_object(llvm.parse_assembly(f'target triple = "{llvm.get_process_triple()}"\n{text}'))


@needs_code_files
def test_linked_code_calls_c_functions():
    from jittok._linker import link

    obj = emitted(
        "declare ptr @memset(ptr, i32, i64)\n"
        "define internal i32 @inner(ptr %a, ptr %b) noinline {\n"
        "  %x = load i64, ptr %b\n  %y = call ptr @memset(ptr %a, i32 7, i64 %x)\n  ret i32 0\n}\n"
        "define i32 @entry(ptr %a, ptr %b, ptr %c, ptr %d, ptr %e) {\n"
        "  %r = call i32 @inner(ptr %a, ptr %b)\n  ret i32 %r\n}\n"
    )
    code = link(obj, "entry")
    assert [name for _, name in code.imports] == ["memset"]
    function = _native.load(code)
    target, size = ctypes.create_string_buffer(100), ctypes.c_int64(50)
    assert function(ctypes.addressof(target), ctypes.addressof(size), 0, 0, 0) == 0
    assert target.raw == b"\7" * 50 + b"\0" * 50


@needs_code_files
@pytest.mark.parametrize(
    "text",
    [
        "declare i32 @puts(ptr)\ndefine i32 @entry(ptr %a) {\n  %r = call i32 @puts(ptr %a)\n  ret i32 %r\n}",
        "@v = internal global i32 0\ndefine i32 @entry() {\n  store volatile i32 1, ptr @v\n  ret i32 0\n}",
        "@v = external global i32\ndefine i32 @entry() {\n  %r = load i32, ptr @v\n  ret i32 %r\n}",
        "define i32 @other() {\n  ret i32 0\n}",
    ],
    ids=["calls puts", "has a variable", "uses a variable", "has no entry"],
)
def test_what_cannot_be_linked_is_refused(text):
    from jittok._linker import CannotCompile, link

    with pytest.raises(CannotCompile):
        link(emitted(text), "entry")


@needs_jit
def test_no_object_at_all_is_refused():
    from jittok._linker import CannotCompile, link

    with pytest.raises(CannotCompile):
        link(b"MZ" + bytes(100), "entry")


def test_lock_file_needs_no_privilege(tmp_path):
    handle = _background._lock(tmp_path)
    assert _background._is_locked(tmp_path)
    fcntl.flock(handle, fcntl.LOCK_UN)
    assert not _background._is_locked(tmp_path)
    os.close(handle)

"""Machine code of kernels in files of their own, run without importing Numba.

A code file holds one kernel compiled for one signature: position-independent machine code and constants,
already linked (see :mod:`jittok._compiler`, which writes it), and the few C functions it calls. Loading is:
check the file, copy it into pages of memory, fill in the addresses of these C functions, make the pages
executable. The kernel is called through ctypes, which releases the GIL.

The code takes its arguments from the Python objects themselves: the address of the argument tuple goes in,
and the code reads array pointers and shapes out of the NamedTuples and arrays. It first checks that every
object has the type, dtype and layout it was compiled for, and says so if not. Nothing is kept between calls.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
import sys
from functools import cache, reduce
from operator import getitem
from typing import Any, NamedTuple

import numpy as np

#: Returned by compiled code whose arguments are not those it was compiled for.
MISMATCH = -(1 << 63)

_MAGIC = b"jittok code 1\n\0\0"
_DIGEST_BYTES = 32
_PAGE = 4096
_MOST_BYTES = 1 << 26
#: C functions that compiled code may call.
IMPORTS = ("memset", "memcpy", "memmove", "memcmp", "bcmp", "exp", "log", "log1p")

#: CPU features, as Linux names them, that each level of x86-64 has over the one before.
_LEVELS = (
    ("x86-64-v2", frozenset({"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"})),
    ("x86-64-v3", frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"})),
    ("x86-64-v4", frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})),
)


class ObjectLayout(NamedTuple):
    """Byte offsets inside objects of this Python and NumPy."""

    type: int  # of the type pointer, in any object
    item: int  # of the first item of a tuple
    data: int  # these, in an array: data pointer,
    ndim: int  # number of dimensions (int32),
    shape: int  # pointer to the shape,
    dtype: int  # pointer to the dtype,
    flags: int  # flags (int32)


@cache
def object_layout() -> ObjectLayout | None:
    """Where objects keep what compiled code reads; None where a look at real objects does not confirm it."""
    head = object.__basicsize__
    layout = ObjectLayout(head - 8, tuple.__basicsize__, head, head + 8, head + 16, head + 40, head + 48)
    sample = np.zeros((2, 3), np.int32)
    frozen = np.frombuffer(b"12345678", np.uint8)
    holder = (sample, frozen)

    def word(address: int) -> int:
        return ctypes.c_int64.from_address(address).value

    def half(address: int) -> int:
        return ctypes.c_int32.from_address(address).value

    for array, flags in ((sample, 0x501), (frozen, 0x103)):
        at = id(array)
        if word(at + layout.type) != id(np.ndarray) or half(at + layout.ndim) != array.ndim:
            return None
        if word(at + layout.data) != array.__array_interface__["data"][0] or word(at + layout.dtype) != id(
            array.dtype
        ):
            return None
        if half(at + layout.flags) & 0x501 != flags & 0x501:
            return None
        shape = word(at + layout.shape)
        if tuple(word(shape + 8 * i) for i in range(array.ndim)) != array.shape:
            return None
    if word(id(holder) + layout.type) != id(tuple):
        return None
    if [word(id(holder) + layout.item + 8 * i) for i in range(2)] != [id(sample), id(frozen)]:
        return None
    return layout


def cpu_level() -> str | None:
    """The level of x86-64 that code is compiled for; None where code files are not supported.

    Levels rather than exact models, so that a cache made on one machine (in an image, say) serves others.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64" or sys.byteorder != "little":
        return None
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    try:
        with open("/proc/cpuinfo", "rb") as file:
            text = file.read(1 << 14)
    except OSError:
        return None
    features: set[str] = set()
    for line in text.split(b"\n"):
        if line.startswith(b"flags"):
            features = set(line.decode("ascii", "replace").split())
            break
    return _level(features)


def _level(features: set[str]) -> str:
    """The highest level that has no feature but these."""
    level = "x86-64"
    for name, needed in _LEVELS:
        if not needed <= features:
            break
        level = name
    return level


class Code(NamedTuple):
    """What a code file holds."""

    size: int  # bytes of memory, from the first byte of `content` on
    entry: int  # offset of the function
    imports: tuple[tuple[int, str], ...]  # offset of a pointer, and the C function it is to point to
    content: bytes


def pack(code: Code, key: str) -> bytes:
    """The content of a code file. `key` says what the code is, and must be given again to read it."""
    header = [key.encode(), code.size.to_bytes(8, "little"), code.entry.to_bytes(8, "little")]
    header.append(";".join(f"{offset}={name}" for offset, name in code.imports).encode())
    body = b"".join(len(part).to_bytes(8, "little") + part for part in (*header, code.content))
    return _MAGIC + hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest() + body


def unpack(file: bytes, key: str) -> Code | None:
    """The code in a file; None if the file is broken, or holds anything else than what `key` says."""
    start = len(_MAGIC) + _DIGEST_BYTES
    body = file[start:]
    if file[: len(_MAGIC)] != _MAGIC:
        return None
    if hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest() != file[len(_MAGIC) : start]:
        return None
    parts = []
    at = 0
    for _ in range(5):
        length = int.from_bytes(body[at : at + 8], "little")
        parts.append(body[at + 8 : at + 8 + length])
        at += 8 + length
    if at != len(body) or parts[0] != key.encode():
        return None
    size, entry = (int.from_bytes(part, "little") for part in parts[1:3])
    imports = []
    for item in parts[3].decode().split(";") if parts[3] else []:
        offset, _, name = item.partition("=")
        imports.append((int(offset), name))
    content = parts[4]
    if not len(content) <= size <= _MOST_BYTES or not 0 <= entry < len(content):
        return None
    if any(not 0 <= offset <= size - 8 or name not in IMPORTS for offset, name in imports):
        return None
    return Code(size, entry, tuple(imports), content)


_FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)


def load(code: Code) -> Any:
    """Put code into executable memory, for good, and return it as a function; None if that is not allowed here.

    The function is called as ``(result, exception, arguments, expected, numbers)``, all addresses; it returns 0.
    """
    libc = ctypes.CDLL(None)
    allocate = libc.mmap
    allocate.restype = ctypes.c_void_p
    allocate.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    protect = libc.mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    size = -(-code.size // _PAGE) * _PAGE
    read_write, read_execute, private_anonymous = 0x3, 0x5, 0x22
    base = allocate(None, size, read_write, private_anonymous, -1, 0)
    if base is None or base == ctypes.c_void_p(-1).value:
        return None
    ctypes.memmove(base, code.content, len(code.content))
    for offset, name in code.imports:
        try:
            function = getattr(libc, name)
        except AttributeError:  # Python itself may be linked without the functions of mathematics
            function = getattr(ctypes.CDLL("libm.so.6"), name)
        address = ctypes.cast(function, ctypes.c_void_p).value
        ctypes.c_void_p.from_address(base + offset).value = address
    if protect(base, size, read_execute) != 0:
        return None
    return _FUNCTION(base + code.entry)


def address(function: Any) -> int:
    """Where the code of a loaded function is; 0 for None."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function is not None else 0


# ------------------------------------------------------------------------------------------------------ signatures


class Unsupported(TypeError):
    """An argument that compiled code cannot take."""


def signature(arguments: tuple[Any, ...]) -> str:
    """The types of a kernel's arguments, as text: what one code file is compiled for.

    Raises
    ------
    Unsupported
        An argument is neither an aligned C-contiguous array, nor a NamedTuple of these, nor a whole number.
    """
    return ",".join(map(_type_of, arguments))


def _type_of(argument: Any) -> str:
    if type(argument) is np.ndarray:
        flags = argument.flags
        if not (
            flags.c_contiguous and flags.aligned and argument.dtype.isnative and argument.dtype.kind in "biuf"
        ):
            raise Unsupported("array layout")
        return f"{argument.dtype.kind}{argument.dtype.itemsize}x{argument.ndim}{'w' if flags.writeable else 'r'}"
    if isinstance(argument, tuple) and hasattr(argument, "_fields"):
        return f"{type(argument).__name__}({','.join(map(_type_of, argument))})"
    if isinstance(argument, int | np.integer | np.bool_):
        return "int"
    raise Unsupported(type(argument).__name__)


def canonical(argument: Any) -> Any:
    """`argument` with dtypes that are NumPy's own objects (unpickled arrays have copies), and plain ints."""
    if isinstance(argument, np.ndarray):
        dtype = np.dtype(argument.dtype.str)
        argument = argument.view(np.ndarray)
        return argument if argument.dtype is dtype else argument.view(dtype)
    if isinstance(argument, tuple) and hasattr(argument, "_fields"):
        return type(argument)(*map(canonical, argument))
    if isinstance(argument, int | np.integer | np.bool_):
        return int(argument)
    return argument


def n_words(argument: Any) -> int:
    """Words of 64 bits that an argument has in a call's table: of an array data and shape, of a NamedTuple its members'."""
    if isinstance(argument, tuple):
        return sum(map(n_words, argument))
    return 1 + argument.ndim if isinstance(argument, np.ndarray) else 1


def n_tuples(arguments: tuple[Any, ...]) -> int:
    """How many tuples there are, from the one of all arguments on."""
    return 1 + sum(n_tuples(argument) for argument in arguments if isinstance(argument, tuple))


#: Words of a row in :func:`expected_objects`.
ROW = 7


def expected_objects(arguments: tuple[Any, ...], layout: ObjectLayout) -> tuple[list[int], list[Any]]:
    """What compiled code compares its arguments with while it fills the call's table.

    Returns
    -------
    words
        The number of rows, the number of whole numbers, the place of the address of the tuple of all arguments; a row
        for each tuple and array; the place of each number.
        A row is: the place of the address of the tuple that holds the object; the object's offset there; its type;
        the place of its data, or of its own address if it is a tuple; its dtype (0: a tuple), ndim, and flags that
        must be set. Places are in bytes; those of tuples' addresses are after the members.
    objects
        All types and dtypes among these, to be kept alive.
    """
    rows: list[int] = []
    places: list[int] = []
    objects: list[Any] = []
    size = n_words(arguments)
    n_held = 1

    def visit(holder: int, items: tuple[Any, ...], place: int) -> None:
        nonlocal n_held
        for i, item in enumerate(items):
            head = 8 * (size + holder), layout.item + 8 * i
            if isinstance(item, tuple):
                objects.append(type(item))
                rows.extend((*head, id(type(item)), 8 * (size + n_held), 0, 0, 0))
                n_held += 1
                visit(n_held - 1, item, place)
            elif isinstance(item, np.ndarray):
                dtype = np.dtype(item.dtype.str)
                objects.append(dtype)
                flags = 0x501 if item.flags.writeable else 0x101  # C-contiguous, aligned, writeable
                rows.extend((*head, id(np.ndarray), 8 * place, id(dtype), item.ndim, flags))
            else:
                places.append(8 * place)
            place += n_words(item)

    visit(0, arguments, 0)
    return [len(rows) // ROW, len(places), 8 * size, *rows, *places], objects


def number_paths(arguments: tuple[Any, ...]) -> list[tuple[int, ...]]:
    """Where the whole numbers are: positions among the arguments, and within NamedTuples."""
    paths: list[tuple[int, ...]] = []
    for i, argument in enumerate(arguments):
        if isinstance(argument, tuple):
            paths += [(i, *path) for path in number_paths(argument)]
        elif not isinstance(argument, np.ndarray):
            paths.append((i,))
    return paths


class Compiled:
    """A loaded kernel for one signature.

    Attributes
    ----------
    function
        From :func:`load`.
    expected
        Address of the words of :func:`expected_objects`.
    numbers
        Positions of the arguments that are whole numbers.
    inner_numbers
        Paths to all whole numbers, where some are within NamedTuples; else None.
    block
        ctypes array type of the call's block: result, exception, whole numbers.
    """

    __slots__ = ("_kept", "_n_arguments", "block", "expected", "function", "inner_numbers", "numbers")

    def __init__(self, function: Any, arguments: tuple[Any, ...]) -> None:
        layout = object_layout()
        assert layout is not None, "there is no compiled code where objects are not understood"
        words, objects = expected_objects(arguments, layout)
        array = (ctypes.c_int64 * len(words))(*words)
        self._kept = objects, array
        self._n_arguments = len(arguments)
        self.function = function
        self.expected = ctypes.addressof(array)
        paths = number_paths(arguments)
        self.numbers = tuple(path[0] for path in paths)
        self.inner_numbers = paths if any(len(path) > 1 for path in paths) else None
        self.block = ctypes.c_int64 * (2 + len(paths))

    def __call__(self, arguments: tuple[Any, ...]) -> int:
        """Run the kernel; :data:`MISMATCH` if it is not for these arguments."""
        if len(arguments) != self._n_arguments:
            return MISMATCH
        try:
            if self.inner_numbers is None:
                numbers = [arguments[i] for i in self.numbers]
            else:
                numbers = [reduce(getitem, path, arguments) for path in self.inner_numbers]
            block = self.block(0, 0, *numbers)
        except (TypeError, IndexError):
            return MISMATCH
        at = ctypes.addressof(block)
        if self.function(at, at + 8, id(arguments), self.expected, at + 16) != 0:
            raise RuntimeError("a kernel raised an exception, which kernels never do")
        return block[0]

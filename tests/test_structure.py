"""Rules of the code's structure: which way imports point, who may import Numba, and what docstrings say."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import jittok

PACKAGE = Path(jittok.__file__).parent

#: From the bottom to the top. A module belongs to the longest name here that it begins with, and may import what
#: stands on its own line or further up in this list.
LAYERS = [
    ["jittok.errors"],
    ["jittok.spec", "jittok.tables", "jittok.memory", "jittok.ranges", "jittok.threads"],
    ["jittok.unicode"],
    ["jittok._jit", "jittok._native", "jittok._linker", "jittok._arguments", "jittok._compiler", "jittok._mask_code"]
    + ["jittok._background", "jittok.kernels.machine", "jittok.kernels.machine_code"],
    ["jittok.kernels"],
    ["jittok.text", "jittok._strings", "jittok.token_columns", "jittok.vocabulary", "jittok.added_tokens"]
    + ["jittok.build"]
    + ["jittok.sampling", "jittok.merge_sampling"],
    ["jittok.rewriting", "jittok.local_rewriting"],
    ["jittok.build.plan"],
    ["jittok.encodings", "jittok.painting"],
    ["jittok.decoding", "jittok.piece_decoding", "jittok.streaming", "jittok.post_processing"],
    ["jittok.outputs"],
    ["jittok.engine"],
    ["jittok.segmentations", "jittok.study"],
    ["jittok.formats"],
    ["jittok.tokenizer", "jittok.interop"],  # a tokenizer makes wrappers of itself, and these load tokenizers
    ["jittok.generation"],
    ["jittok.corpus", "jittok.report"],
    ["jittok.training"],
    ["jittok.interop.shared_file", "jittok.interop.hf_training"],
    ["jittok.interop.datasets", "jittok.interop.frames", "jittok.interop.ray", "jittok.interop.spark"],
    ["jittok"],
    ["jittok.interop.peers"],
    ["jittok.cli"],
    ["jittok.__main__"],
]
LEVELS = {name: level for level, names in enumerate(LAYERS) for name in names}

#: The only modules that know Numba.
NUMBA_USERS = re.compile(r"jittok\.(_jit|_native|_compiler|_arguments|_mask_code|_background|kernels\.machine(_code)?)")


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def level_of(name):
    fits = [known for known in LEVELS if name == known or name.startswith(known + ".")]
    longest = max(fits, key=len)
    assert longest != "jittok" or name == "jittok", f"{name} has no place in LAYERS"
    return LEVELS[longest]


def imports_of(name):
    """Yield every module that `name` imports anywhere, except for type checking only."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            skipped.update(id(inner) for inner in ast.walk(node))
    is_package = MODULES[name].name == "__init__.py"
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = name.split(".")
                kept = parts[: len(parts) - node.level + is_package]
                base = ".".join([*kept, base] if base else kept)
            for alias in node.names:
                if base == "jittok" and alias.name == "__version__":
                    continue  # of the package itself, which is there before any module
                full = f"{base}.{alias.name}"
                yield full if full in MODULES else base


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_downwards(name):
    own = level_of(name)
    upwards = [other for other in imports_of(name) if other in MODULES and level_of(other) > own]
    assert upwards == [], f"{name} imports what stands above it"


@pytest.mark.parametrize("name", MODULES)
def test_numba_has_one_home(name):
    numba = [other for other in imports_of(name) if other.split(".")[0] in ("numba", "llvmlite")]
    assert numba == [] or NUMBA_USERS.fullmatch(name), f"{name} imports {numba}; use jittok._jit"


def test_no_module_outside_kernels_imports_numba_or_optional_packages():
    names = [name for name in MODULES if ".kernels." not in name and not NUMBA_USERS.fullmatch(name)]
    names.remove("jittok.__main__")
    code = (
        f"import importlib, sys\nfor name in {names}: importlib.import_module(name)\n"
        "found = {'numba', 'llvmlite', 'pyarrow', 'tokenizers', 'tiktoken', 'tqdm'} & set(sys.modules)\n"
        "sys.exit(str(found) if found else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent)
    assert done.returncode == 0, done.stderr


# -------------------------------------------------------------------------------------------------- docstrings


def public_objects():
    """Every public function and class of every module, and the public methods of these classes."""
    for name in MODULES:
        if name == "jittok.__main__":
            continue
        module = importlib.import_module(name)
        for key, value in vars(module).items():
            function = getattr(value, "py_func", value)
            if key.startswith("_") or getattr(function, "__module__", None) != name:
                continue
            if inspect.isfunction(function):
                yield f"{name}.{key}", function
            elif inspect.isclass(value):
                yield f"{name}.{key}", value
                for method, member in vars(value).items():
                    member = getattr(member, "__func__", member)
                    if not method.startswith("_") and inspect.isfunction(member):
                        yield f"{name}.{key}.{method}", member


OBJECTS = dict(public_objects())


@pytest.mark.parametrize("name", OBJECTS)
def test_docstrings(name):
    assert OBJECTS[name].__doc__, f"{name} has no docstring"


def documented(docstring):
    """Names that a numpydoc Parameters section describes."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", inspect.cleandoc(docstring), re.DOTALL | re.MULTILINE)
    found = set()
    for line in section.group(1).splitlines() if section else ():
        if line and not line[0].isspace():
            found.update(part.strip(" *") for part in line.split(" : ")[0].split(","))
    return found


def public_interface():
    """Functions, and methods of classes, that users call: the names of jittok, jittok.kernels and their classes."""
    homes = [(f"jittok.{name}", getattr(jittok, name)) for name in jittok.__all__ if name != "errors"]
    homes += [(f"jittok.kernels.{name}", getattr(jittok.kernels, name)) for name in jittok.kernels.__all__]
    for name, value in homes:
        function = getattr(value, "py_func", value)
        if inspect.isfunction(function):
            yield name, function
        elif inspect.isclass(value) and not issubclass(value, tuple):
            for method, member in vars(value).items():
                member = getattr(member, "__func__", member)
                if not method.startswith("_") and inspect.isfunction(member):
                    yield f"{name}.{method}", member


INTERFACE = dict(public_interface())


@pytest.mark.parametrize("name", INTERFACE)
def test_parameters_are_documented(name):
    function = INTERFACE[name]
    parameters = [key for key in inspect.signature(function).parameters if key not in ("self", "cls")]
    missing = [key for key in parameters if key not in documented(function.__doc__)]
    # a method of one obvious argument may say it in its sentence
    text = " ".join(function.__doc__.split())
    if len(parameters) == 1 and re.search(rf"`{parameters[0]}`|\b{parameters[0].replace('_', ' ')}\b", text):
        missing = []
    assert missing == [], f"{name}: the docstring's Parameters section lacks {missing}"


def test_every_module_is_importable_by_walking():
    """No module is forgotten: what pkgutil finds is what lies in the folder."""
    found = {module.name for module in pkgutil.walk_packages([str(PACKAGE)], "jittok.")}
    assert found | {"jittok"} == set(MODULES)

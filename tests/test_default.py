"""The built-in tokenizer's file: what it must be, and that it is up to date."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jittok
from jittok.formats import jittok_file
from jittok.tokenizer import Tokenizer

FILE = Path(jittok.__file__).parent / "data" / "default.jittok"
REMEDY = (
    "the tables in jittok/data/default.jittok are not those that this version builds."
    " Run: python scripts/build_default_tokenizer.py --tables"
)


@pytest.fixture(scope="module")
def rebuilt():
    return Tokenizer(jittok_file.read_spec(FILE))


def test_header_is_of_this_version():
    metadata, _ = jittok_file._parse_header(FILE.read_bytes(), "default.jittok")
    assert metadata["version"] == str(jittok_file.VERSION), REMEDY


def test_tables_are_those_that_this_version_builds(rebuilt):
    stored = jittok_file._parse_header(FILE.read_bytes(), "default.jittok")[1]
    built = jittok_file._parse_header(rebuilt._as_file("jittok"), "built now")[1]
    assert sorted(stored) == sorted(built), REMEDY
    for name, array in built.items():
        same = array.dtype == stored[name].dtype and np.array_equal(array, stored[name])
        assert same, f"{name}: {REMEDY}"


def test_file_is_the_same_in_every_process(rebuilt):
    """Nothing in it depends on the time, on the order of sets, or on addresses."""
    code = (
        "import sys, hashlib; from pathlib import Path; from jittok.formats.jittok_file import read_spec;"
        "from jittok.tokenizer import Tokenizer;"
        "print(hashlib.sha256(Tokenizer(read_spec(Path(sys.argv[1])))._as_file('jittok')).hexdigest())"
    )
    digests = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(FILE.parents[2])}
        done = subprocess.run(
            [sys.executable, "-c", code, str(FILE)], env=environment, capture_output=True, text=True, check=True
        )
        digests.add(done.stdout)
    assert len(digests) == 1
    assert rebuilt._as_file("jittok") == FILE.read_bytes(), REMEDY


def test_what_it_is():
    tok = jittok.load_default()
    assert tok.vocab_size == 32_768
    assert tok.special_tokens == {"<|endoftext|>": 32_767}
    assert len(tok.spec.model.merges) == 32_767 - 256
    text = "".join(chr(codepoint) for codepoint in [*range(0x3000), *range(0x1F600, 0x1F650)])
    assert tok.decode(tok.encode(text).ids) == text


def test_package_holds_nothing_else():
    assert sorted(path.name for path in FILE.parent.iterdir()) == ["default.jittok", "hamlet.txt"]

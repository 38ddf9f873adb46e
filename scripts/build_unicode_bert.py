"""Build ``jittok/unicode/bert.npz``, the sets of codepoints that BERT's clean-up and splits are made of.

Each is of the Unicode version that the reference library uses for the purpose (measured over all codepoints):

* 8.0: what clean-up removes (control, format and private-use characters, and U+FFFD), the marks that
  BertNormalizer strips (Mn), and punctuation (P, with the symbols of ASCII).
* 9.0: the marks that StripAccents strips (M).

Usage: have ``node`` and ``npm`` installed, then ``python scripts/build_unicode_bert.py``. With ``--packages
FOLDER`` the packages are taken from FOLDER/unicode-VERSION instead of the registry.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np

OUTPUT = Path(__file__).resolve().parent.parent / "jittok" / "unicode" / "bert.npz"
VERSIONS = ("8.0.0", "9.0.0")


def fetch_packages(folder: Path) -> None:
    """Download and unpack the npm packages to FOLDER/unicode-VERSION."""
    for version in VERSIONS:
        command = ["npm", "pack", "--silent", f"@unicode/unicode-{version}"]
        name = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()
        with tarfile.open(folder / name.splitlines()[-1]) as archive:
            archive.extractall(folder / f"unicode-{version}", filter="data")


def category(folder: Path, version: str, name: str) -> np.ndarray:
    """Which codepoints are of a general category, bool[0x110000]."""
    module = folder / f"unicode-{version}" / "package" / "General_Category" / name / "ranges.mjs"
    program = (
        f"import data from {json.dumps(module.as_uri())};"
        "console.log(JSON.stringify(data.map(r => [r.begin, r.end])));"
    )
    command = ["node", "--input-type=module", "-e", program]
    ranges = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    inside = np.zeros(0x110000, np.bool_)
    for begin, end in ranges:
        inside[begin:end] = True
    return inside


def boundaries(inside: np.ndarray) -> np.ndarray:
    """Codepoints from entry 0 on are inside, from entry 1 on outside, and so on."""
    return np.flatnonzero(np.diff(inside, prepend=False, append=False)).astype(np.int32)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the tables of BERT's clean-up")
    parser.add_argument("--packages", type=Path)
    folder = parser.parse_args().packages
    if folder is None:
        folder = Path(tempfile.mkdtemp())
        fetch_packages(folder)

    removed = sum(category(folder, "8.0.0", name) for name in ("Control", "Format", "Private_Use")) > 0
    removed[[ord(c) for c in "\t\n\r"]] = False
    removed[0xFFFD] = True
    punctuation = category(folder, "8.0.0", "Punctuation")
    for first, last in ("!/", ":@", "[`", "{~"):
        punctuation[ord(first) : ord(last) + 1] = True
    arrays = {
        "removed": boundaries(removed),
        "nonspacing_marks": boundaries(category(folder, "8.0.0", "Nonspacing_Mark")),
        "punctuation": boundaries(punctuation),
        "marks": boundaries(category(folder, "9.0.0", "Mark")),
    }
    np.savez_compressed(OUTPUT, **arrays)
    print({name: array.shape for name, array in arrays.items()}, OUTPUT.stat().st_size, "bytes")


if __name__ == "__main__":
    main()

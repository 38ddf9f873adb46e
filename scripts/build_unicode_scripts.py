"""Build ``jittok/unicode/scripts.npz``, the script of every codepoint in Unicode 9.0.

It is what the UnicodeScripts pre-tokenizer of tokenizers uses (measured over all codepoints).

Usage: have ``node`` and ``npm`` installed, then ``python scripts/build_unicode_scripts.py``. With ``--package
FOLDER`` an unpacked npm package ``@unicode/unicode-9.0.0`` is taken from there instead of the registry.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np

OUTPUT = Path(__file__).resolve().parent.parent / "jittok" / "unicode" / "scripts.npz"
VERSION = "9.0.0"


def fetch_package(folder: Path) -> Path:
    """Download and unpack the npm package."""
    command = ["npm", "pack", "--silent", f"@unicode/unicode-{VERSION}"]
    name = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()
    with tarfile.open(folder / name.splitlines()[-1]) as archive:
        archive.extractall(folder, filter="data")
    return folder / "package"


def script_ranges(package: Path) -> dict[str, list[tuple[int, int]]]:
    """Half-open ranges of codepoints of each script, by name."""
    program = "const all = {};"
    for folder in sorted((package / "Script").iterdir()):
        module = (folder / "ranges.mjs").as_uri()
        program += (
            f"all[{json.dumps(folder.name)}] = (await import({json.dumps(module)})).default.map(r => [r.begin, r.end]);"
        )
    program += "console.log(JSON.stringify(all));"
    command = ["node", "--input-type=module", "-e", program]
    result: dict[str, list[tuple[int, int]]] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the table of scripts")
    parser.add_argument("--package", type=Path)
    package = parser.parse_args().package or fetch_package(Path(tempfile.mkdtemp()))
    ranges = script_ranges(package)
    ranges.pop("Unknown", None)  # not assigned
    names = sorted(ranges)
    script = np.zeros(0x110000, np.uint8)
    for number, name in enumerate(names):
        for begin, end in ranges[name]:
            script[begin:end] = number + 1
    starts = np.flatnonzero(np.diff(script, prepend=255)).astype(np.int32)
    np.savez_compressed(OUTPUT, names=np.array(names), starts=starts, values=script[starts])
    print(len(names), "scripts,", len(starts), "runs,", OUTPUT.stat().st_size, "bytes")


if __name__ == "__main__":
    main()

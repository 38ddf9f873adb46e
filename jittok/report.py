"""Reports that compare tokenizers on texts: numbers, and one self-contained HTML page of them.

>>> import jittok
>>> from jittok.report import measure_report
>>> report = measure_report({"built-in": jittok.load_default()}, {"play": ["To be, or not to be"]}, rounds=0)
>>> report.tokenizers[0].groups["play"].tokens
7
"""

from __future__ import annotations

import dataclasses
import gc
import html
import json
import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jittok.errors import ArgumentError

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

#: Tokens in each list of tokens.
LISTED = 25
#: The name of what all groups are together.
ALL = "all"
#: Texts that are encoded at once.
_BATCH = 4096
#: How a token of one byte is written where bytes are not the vocabulary's own characters.
_BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")


@dataclasses.dataclass
class Group:
    """What a tokenizer makes of a group of texts.

    Attributes
    ----------
    documents, characters, bytes, words, tokens
        Numbers of these. Bytes are those of UTF-8, words what white space separates.
    unknown
        Tokens that stand for text that the vocabulary does not have.
    byte_tokens
        Tokens that are bytes and no whole characters.
    """

    documents: int
    characters: int
    bytes: int
    words: int
    tokens: int = 0
    unknown: int = 0
    byte_tokens: int = 0

    @property
    def characters_per_token(self) -> float:
        """Characters for each token; the greater, the shorter are texts in tokens. 0 where all text is lost."""
        return self.characters / self.tokens if self.tokens else 0.0

    @property
    def fertility(self) -> float:
        """Tokens for each word."""
        return self.tokens / max(self.words, 1)


@dataclasses.dataclass
class TokenCount:
    """A token and how often it occurs."""

    id: int
    token: str  #: as the vocabulary has it
    text: str  #: the same, with characters instead of letters for bytes
    count: int


@dataclasses.dataclass
class TokenizerReport:
    """What a tokenizer makes of all groups.

    Attributes
    ----------
    name, kind, vocab_size
        Of the tokenizer.
    groups
        By name; the last one, :data:`ALL`, is all of them together.
    used
        Different ids that occur.
    frequencies
        Occurrences of the most frequent id, and so on down, at ranks that grow by a constant factor: (rank, occurrences).
    longest, rarest, commonest
        Tokens that occur.
    unseen_speed, again_speed
        Megabytes (10^6 bytes) of text a second of processor time on one thread, of text not seen before and of the same text
        again; 0 if not measured.
    """

    name: str
    kind: str
    vocab_size: int
    groups: dict[str, Group]
    used: int
    frequencies: list[tuple[int, int]]
    longest: list[TokenCount]
    rarest: list[TokenCount]
    commonest: list[TokenCount]
    unseen_speed: float = 0.0
    again_speed: float = 0.0


@dataclasses.dataclass
class Report:
    """Tokenizers beside each other."""

    tokenizers: list[TokenizerReport]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as what JSON has."""
        found = dataclasses.asdict(self)
        for tokenizer, row in zip(self.tokenizers, found["tokenizers"], strict=True):
            for name, group in tokenizer.groups.items():
                row["groups"][name]["characters_per_token"] = round(group.characters_per_token, 4)
                row["groups"][name]["fertility"] = round(group.fertility, 4)
        return found

    def to_html(self, title: str = "Tokenizers compared") -> str:
        """Return the page.

        Parameters
        ----------
        title
            Its heading.
        """
        return _Page(self, title).text()


def measure_report(
    tokenizers: Mapping[str, Tokenizer], texts: Mapping[str, Sequence[str]], *, rounds: int = 2, listed: int = LISTED
) -> Report:
    """Encode texts with each tokenizer, without special tokens around them, and count.

    Parameters
    ----------
    tokenizers
        By the name that they are shown under.
    texts
        Groups of texts, such as one for each language, by name.
    rounds
        Rounds in which speed is measured, of which the best counts; 0 for none.
    listed
        Tokens in each list of tokens.

    Returns
    -------
    Report

    Raises
    ------
    ArgumentError
        There are no tokenizers or no texts, or a group has the name of all of them.

    Examples
    --------
    >>> import jittok
    >>> tok = jittok.load_default()
    >>> report = measure_report({"a": tok}, {"english": ["to be or not to be"], "french": ["être ou ne pas être"]}, rounds=0)
    >>> sorted(report.tokenizers[0].groups)
    ['all', 'english', 'french']
    >>> report.to_html().startswith("<!DOCTYPE html>")
    True
    """
    if not tokenizers or not any(map(len, texts.values())):
        raise ArgumentError("a report needs at least one tokenizer and one text")
    if ALL in texts:
        raise ArgumentError(f"a group of texts cannot be named {ALL!r}, which is that of all groups together")
    groups = {name: _sizes(group) for name, group in texts.items() if len(group)}
    kept = {name: list(group) for name, group in texts.items() if len(group)}
    reports = [_measure(name, tokenizer, kept, groups, listed) for name, tokenizer in tokenizers.items()]
    for _ in range(rounds):
        for report, tokenizer in zip(reports, tokenizers.values(), strict=True):
            unseen, again = _speed(tokenizer, kept, report.groups[ALL].bytes)
            report.unseen_speed, report.again_speed = max(report.unseen_speed, unseen), max(report.again_speed, again)
    return Report(reports)


def _sizes(texts: Sequence[str]) -> Group:
    encoded = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    return Group(len(texts), sum(map(len, texts)), encoded, sum(len(text.split()) for text in texts))


def _measure(
    name: str, tokenizer: Tokenizer, texts: Mapping[str, Sequence[str]], sizes: Mapping[str, Group], listed: int
) -> TokenizerReport:
    limit = tokenizer.id_limit
    total = np.zeros(limit, np.int64)
    unknown = _unknown_id(tokenizer)
    groups = {group: dataclasses.replace(size) for group, size in sizes.items()}
    is_byte: dict[int, bool] = {}
    for group, documents in texts.items():
        counts = np.zeros(limit, np.int64)
        for first in range(0, len(documents), _BATCH):
            part = list(documents[first : first + _BATCH])
            batch = tokenizer.encode_batch(part, add_special_tokens=False, special="text")
            counts += np.bincount(batch.ids, minlength=limit)
        ids = np.flatnonzero(counts)
        for number in ids.tolist():
            if number not in is_byte:
                is_byte[number] = _is_byte(tokenizer, number)
        groups[group].tokens = int(counts.sum())
        groups[group].unknown = int(counts[unknown]) if unknown is not None else 0
        groups[group].byte_tokens = sum(int(counts[number]) for number in ids.tolist() if is_byte[number])
        total += counts
    fields = [field.name for field in dataclasses.fields(Group)]
    groups[ALL] = Group(**{field: sum(getattr(group, field) for group in groups.values()) for field in fields})
    used = np.flatnonzero(total)
    counted = [TokenCount(number, *_names(tokenizer, number), int(total[number])) for number in used.tolist()]
    falling = np.sort(total[used])[::-1]
    model = type(tokenizer.spec.model).__name__.removesuffix("Model")
    return TokenizerReport(
        name,
        model,
        tokenizer.vocab_size,
        groups,
        len(used),
        [(rank, int(falling[rank - 1])) for rank in _ranks(len(falling))],
        sorted(counted, key=lambda row: (-len(row.text), row.id))[:listed],
        sorted(counted, key=lambda row: (row.count, -row.id))[:listed],
        sorted(counted, key=lambda row: (-row.count, row.id))[:listed],
    )


def _ranks(last: int) -> list[int]:
    ranks = {round(1.25**exponent) for exponent in range(80)}
    return [*sorted(rank for rank in ranks if rank < last), *([last] if last else [])]


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    model = tokenizer.spec.model
    number, token = getattr(model, "unk_id", None), getattr(model, "unk_token", None)
    if number is None and isinstance(token, str):
        number = tokenizer.token_to_id(token)
    return number if isinstance(number, int) and number >= 0 else None


def _names(tokenizer: Tokenizer, number: int) -> tuple[str, str]:
    """A token as the vocabulary has it, and as it is shown."""
    token = tokenizer.id_to_token(number) or ""
    data = tokenizer.decode_bytes([number])
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return token, "<" + data.hex(" ").upper() + ">"
    # Blanks and marks that decoding takes away say something.
    return token, token if "\u2581" in token or token.startswith("##") or not text else text


def _is_byte(tokenizer: Tokenizer, number: int) -> bool:
    """Whether a token is bytes that are no whole characters, or a byte of byte fallback."""
    if _BYTE.fullmatch(tokenizer.id_to_token(number) or ""):
        return True
    try:
        tokenizer.decode_bytes([number]).decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def _speed(tokenizer: Tokenizer, texts: Mapping[str, Sequence[str]], size: int) -> tuple[float, float]:
    """Megabytes a second of text not seen before, and of the same again."""
    documents = [text for group in texts.values() for text in group]
    tokenizer.clear_cache()
    tokenizer.encode_batch([documents[0][:1000]], threads=1, add_special_tokens=False, special="text")
    rates = []
    for _ in range(2):
        gc.collect()
        begin = time.process_time()
        tokenizer.encode_batch(documents, threads=1, add_special_tokens=False, special="text")
        rates.append(size / 1e6 / max(time.process_time() - begin, 1e-6))
    return rates[0], rates[1]


# ------------------------------------------------------------------------------------------------------------- the page

_STYLE = """
:root { color-scheme: light dark; --ground: #ffffff; --ink: #1c1f24; --faint: #667080; --line: #d9dee5; --card: #f4f6f9;
  --c0: #2166ac; --c1: #c2571a; --c2: #1b7a4b; --c3: #8e3b9e; --c4: #a07a00; --c5: #b3284f; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171c; --ink: #e6e9ee; --faint: #98a2b3; --line: #333a45;
  --card: #1d222a; --c0: #6fb1f0; --c1: #f0955c; --c2: #5fca93; --c3: #cf8fdc; --c4: #dcbd4e; --c5: #f0809d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; }
h3 { font-size: 1rem; margin: .8rem 0 .3rem; }
p { margin: .3rem 0 .8rem; } .note { color: var(--faint); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; }
th:first-child, td:first-child, .left { text-align: left !important; }
th button { all: unset; cursor: pointer; font-weight: 600; }
th button:hover, th button:focus-visible { text-decoration: underline; }
th[aria-sort=ascending] button::after { content: " \\2191"; } th[aria-sort=descending] button::after { content: " \\2193"; }
.legend { position: sticky; top: 0; background: var(--ground); padding: .6rem 0; z-index: 2; display: flex; gap: .5rem;
  flex-wrap: wrap; }
.legend button { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line);
  border-radius: 99px; padding: .2rem .8rem; cursor: pointer; }
.legend button::before { content: ""; display: inline-block; width: .7em; height: .7em; border-radius: 50%;
  margin-right: .5em; background: var(--own); }
.legend button[aria-pressed=false] { opacity: .45; text-decoration: line-through; }
svg { max-width: 100%; height: auto; display: block; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg text.faint { fill: var(--faint); } svg .grid { stroke: var(--line); }
[data-tip] { cursor: default; } svg [data-tip]:hover { opacity: .75; }
code { font: 13px ui-monospace, monospace; background: var(--card); padding: 0 .25em; border-radius: 3px; white-space: pre; }
.lists { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 0 1.5rem; }
#tip { position: fixed; pointer-events: none; background: var(--ink); color: var(--ground); padding: .3rem .6rem;
  border-radius: 5px; font-size: 13px; white-space: pre-line; max-width: 22rem; z-index: 9; display: none; }
details { margin-top: 2rem; } dt { font-weight: 600; } dd { margin: 0 0 .5rem; color: var(--faint); }
"""

_SCRIPT = """
"use strict";
const tip = document.getElementById("tip");
function show(event) {
  const owner = event.target.closest("[data-tip]");
  tip.style.display = owner ? "block" : "none";
  if (!owner) return;
  tip.textContent = owner.dataset.tip;
  const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  const y = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8);
  tip.style.left = Math.max(x, 4) + "px";
  tip.style.top = Math.max(y, 4) + "px";
}
document.addEventListener("pointermove", show);
document.addEventListener("pointerleave", () => { tip.style.display = "none"; });
for (const button of document.querySelectorAll(".legend button")) {
  button.addEventListener("click", () => {
    const visible = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(visible));
    for (const part of document.querySelectorAll(".s" + button.dataset.series)) part.style.display = visible ? "" : "none";
  });
}
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const heading = button.parentElement, row = heading.parentElement, body = heading.closest("table").tBodies[0];
    const rising = heading.getAttribute("aria-sort") === "descending";
    for (const other of row.children) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", rising ? "ascending" : "descending");
    const key = line => { const cell = line.children[heading.cellIndex]; return cell.dataset.value ?? cell.textContent; };
    const lines = [...body.rows].sort((a, b) => {
      const x = key(a), y = key(b), order = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
      return rising ? order : -order;
    });
    body.append(...lines);
  });
}
"""

_TERMS = {
    "characters per token": "Codepoints of the text divided by its tokens, without special tokens around texts. The greater,"
    " the less room a text takes.",
    "fertility": "Tokens divided by words, which are what white space separates; says little for languages that are written"
    " without it.",
    "used": "Different entries of the vocabulary that occur in these texts.",
    "unknown": "Tokens that stand for text which the vocabulary does not have: their text is lost.",
    "byte tokens": "Tokens that are bytes and no whole characters: byte fallback, or parts of characters of a byte-level"
    " vocabulary.",
    "rarest": "Of the tokens that occur, those that occur least; of equally rare ones, the last of the vocabulary.",
    "MB/s": "jittok's speed with this tokenizer: 1,000,000 bytes of UTF-8 a second of processor time, one thread, from"
    " strings to arrays; for text not seen before, and the same text again.",
}


class _Page:
    """Writes the page: charts are drawn here, so that it needs no library where it is shown."""

    def __init__(self, report: Report, title: str) -> None:
        self.report = report
        self.title = title
        self.groups = list(report.tokenizers[0].groups)

    def text(self) -> str:
        many = len(self.groups) > 2
        groups = self.groups if many else self.groups[-1:]
        sizes = self.report.tokenizers[0].groups[ALL]
        count = f"{len(self.groups) - 1} group{'s' * many} of texts, " if many else ""
        about = f"{count}{sizes.documents:,} texts, {sizes.characters:,} characters, {sizes.bytes / 1e6:,.2f} MB"
        data = json.dumps(self.report.to_dict(), ensure_ascii=True).replace("<", "\\u003c")
        tokenizers = self.report.tokenizers
        rates = [[one.groups[name].characters_per_token for name in groups] for one in tokenizers]
        fertilities = [[one.groups[name].fertility for name in groups] for one in tokenizers]
        parts = [
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # Nothing may be loaded from anywhere.
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
            "script-src 'unsafe-inline'; img-src data:\">",
            '<link rel="icon" href="data:,">',
            f"<title>{html.escape(self.title)}</title><style>{_STYLE}</style></head><body>",
            f"<h1>{html.escape(self.title)}</h1><p class=note>{html.escape(about)}; made by jittok report.</p>",
            self.legend(),
            self.summary(),
            "<h2>Characters per token</h2><p class=note>More is shorter, but not where tokens are unknown: their text"
            " is lost.</p>",
            self.bars(groups, rates, "characters per token"),
            "<h2>Fertility: tokens per word</h2><p class=note>Less is shorter.</p>",
            self.bars(groups, fertilities, "tokens per word"),
            "<h2>The vocabulary in use</h2><p class=note>How often the most frequent entry occurs, and so on down to the"
            " last one that occurs at all; both axes are logarithmic.</p>",
            self.curves(),
        ]
        if any(one.unseen_speed for one in tokenizers):
            speeds = [[one.unseen_speed, one.again_speed] for one in tokenizers]
            parts += [
                "<h2>Speed</h2><p class=note>Of jittok with each of them, one thread.</p>",
                self.bars(["text not seen before", "the same again"], speeds, "MB/s"),
            ]
        parts += [
            "<h2>Numbers</h2><p class=note>Click on a heading to sort.</p>",
            self.numbers(),
            "<h2>Tokens</h2>",
            *(self.lists(number) for number in range(len(tokenizers))),
            "<details><summary>What the words mean</summary><dl>",
            *(f"<dt>{term}</dt><dd>{meaning}</dd>" for term, meaning in _TERMS.items()),
            "</dl></details>",
            f'<div id="tip" role="tooltip"></div><script type="application/json" id="numbers">{data}</script>',
            f"<script>{_SCRIPT}</script></body></html>\n",
        ]
        return "\n".join(parts)

    def legend(self) -> str:
        buttons = [
            f'<button data-series="{number}" aria-pressed="true" style="--own:var(--c{number % 6})">'
            f"{html.escape(one.name)}</button>"
            for number, one in enumerate(self.report.tokenizers)
        ]
        return f'<div class="legend" title="click to hide or show">{"".join(buttons)}</div>'

    def summary(self) -> str:
        head = ["", "model", "vocabulary", "tokens", "characters per token", "tokens per word", "used"]
        head += ["unknown", "byte tokens"]
        rows = []
        for number, one in enumerate(self.report.tokenizers):
            group = one.groups[ALL]
            cells: list[tuple[str, object]] = [
                (one.name, one.name),
                (one.kind, one.kind),
                (f"{one.vocab_size:,}", one.vocab_size),
                (f"{group.tokens:,}", group.tokens),
                (f"{group.characters_per_token:.3f}", group.characters_per_token),
                (f"{group.fertility:.3f}", group.fertility),
                (f"{one.used:,} ({one.used / max(one.vocab_size, 1):.1%})", one.used),
                (f"{group.unknown:,}", group.unknown),
                (f"{group.byte_tokens:,}", group.byte_tokens),
            ]
            rows.append((number, cells))
        return _table(head, rows)

    def numbers(self) -> str:
        head = ["texts", "tokenizer", "documents", "characters", "tokens", "characters per token", "tokens per word"]
        head += ["unknown", "byte tokens"]
        rows = []
        for name in self.groups:
            for number, one in enumerate(self.report.tokenizers):
                group = one.groups[name]
                cells: list[tuple[str, object]] = [
                    (name, name),
                    (one.name, one.name),
                    (f"{group.documents:,}", group.documents),
                    (f"{group.characters:,}", group.characters),
                    (f"{group.tokens:,}", group.tokens),
                    (f"{group.characters_per_token:.3f}", group.characters_per_token),
                    (f"{group.fertility:.3f}", group.fertility),
                    (f"{group.unknown:,}", group.unknown),
                    (f"{group.byte_tokens:,}", group.byte_tokens),
                ]
                rows.append((number, cells))
        return _table(head, rows)

    def lists(self, number: int) -> str:
        one = self.report.tokenizers[number]
        parts = [f'<section class="s{number}"><h3>{html.escape(one.name)}</h3><div class="lists">']
        for title, rows in (("longest", one.longest), ("rarest", one.rarest), ("most frequent", one.commonest)):
            lines = []
            for row in rows:
                shown = html.escape(_visible(row.text))
                about = f"id {row.id}\n{row.token!r}\n{len(row.text)} characters\noccurs {row.count:,} times"
                tip = html.escape(about, quote=True)
                short = shown if len(row.text) <= 32 else html.escape(_visible(row.text[:30])) + "…"
                lines.append(
                    f'<tr data-tip="{tip}"><td><code>{short}</code></td><td data-value="{row.id}">{row.id}</td>'
                    f'<td data-value="{row.count}">{row.count:,}</td></tr>'
                )
            heads = "".join(f"<th><button>{head}</button></th>" for head in (title, "id", "occurs"))
            table = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
            parts.append(f'<div class="scroll">{table}</div>')
        return "".join([*parts, "</div></section>"])

    def bars(self, groups: Sequence[str], values: Sequence[Sequence[float]], unit: str) -> str:
        """Horizontal bars, those of one group side by side."""
        names = [one.name for one in self.report.tokenizers]
        thick, gap, left, width = 14, 12, 190, 760
        height = len(groups) * (len(names) * thick + gap) + 24
        most = max(max(row) for row in values) or 1.0
        step = _step(most)
        scale = (width - left - 60) / most
        parts = [f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{unit} by group">']
        for tick in range(int(most / step) + 1):
            x = left + tick * step * scale
            parts.append(f'<line class="grid" x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{height - 20}"/>')
            parts.append(f'<text class="faint" x="{x:.1f}" y="{height - 6}" text-anchor="middle">{tick * step:g}</text>')
        for at, group in enumerate(groups):
            top = at * (len(names) * thick + gap) + 4
            middle = top + len(names) * thick / 2 + 4
            label = group if len(group) <= 26 else "…" + group[-25:]
            parts.append(f'<text x="{left - 8}" y="{middle:.1f}" text-anchor="end">{html.escape(label)}</text>')
            for number, name in enumerate(names):
                value = values[number][at]
                tip = html.escape(f"{name}\n{group}\n{value:,.3f} {unit}", quote=True)
                y = top + number * thick
                parts.append(
                    f'<g class="s{number}" data-tip="{tip}"><rect x="{left}" y="{y}" width="{max(value * scale, 1):.1f}"'
                    f' height="{thick - 2}" rx="2" fill="var(--c{number % 6})"/>'
                    f'<text class="faint" x="{left + value * scale + 5:.1f}" y="{y + 10}">{value:,.2f}</text></g>'
                )
        return "\n".join([*parts, "</svg>"])

    def curves(self) -> str:
        """Occurrences by rank."""
        width, height, left, bottom = 760, 300, 60, 40
        # Texts may have no tokens at all, such as blanks for BERT.
        rank = max([1, *(one.used for one in self.report.tokenizers)])
        most = max([1, *(one.frequencies[0][1] for one in self.report.tokenizers if one.frequencies)])
        across = (width - left - 20) / max(math.log10(rank), 1e-9)
        up = (height - bottom - 15) / max(math.log10(most), 1e-9)

        def place(x: float, y: float) -> tuple[float, float]:
            return left + math.log10(x) * across, height - bottom - math.log10(y) * up

        parts = [f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="occurrences by rank">']
        for power in range(int(math.log10(rank)) + 1):
            x, _ = place(10**power, 1)
            parts.append(f'<line class="grid" x1="{x:.1f}" y1="15" x2="{x:.1f}" y2="{height - bottom}"/>')
            label = f'<text class="faint" x="{x:.1f}" y="{height - bottom + 16}" text-anchor="middle">{10**power:,}</text>'
            parts.append(label)
        for power in range(int(math.log10(most)) + 1):
            _, y = place(1, 10**power)
            parts.append(f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{width - 20}" y2="{y:.1f}"/>')
            label = f'<text class="faint" x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{10**power:,}</text>'
            parts.append(label)
        parts.append(f'<text class="faint" x="{width / 2}" y="{height - 6}" text-anchor="middle">rank of the token</text>')
        for number, one in enumerate(self.report.tokenizers):
            points = [place(*pair) for pair in one.frequencies]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            colour = f"var(--c{number % 6})"
            parts.append(f'<g class="s{number}"><polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
            for (x, y), (at, count) in zip(points, one.frequencies, strict=True):
                about = f"{one.name}\nrank {at:,} of {one.used:,} in use\noccurs {count:,} times"
                tip = html.escape(about, quote=True)
                parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}" data-tip="{tip}"/>')
            parts.append("</g>")
        return "\n".join([*parts, "</svg>"])


def _table(head: Sequence[str], rows: Iterable[tuple[int, list[tuple[str, object]]]]) -> str:
    heads = "".join(f"<th><button>{html.escape(name)}</button></th>" if name else "<th></th>" for name in head)
    lines = []
    for number, cells in rows:
        columns = "".join(
            f'<td{" class=left" if isinstance(value, str) else ""} data-value="{html.escape(str(value), quote=True)}">'
            f"{html.escape(shown)}</td>"
            for shown, value in cells
        )
        lines.append(f'<tr class="s{number}">{columns}</tr>')
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f'<div class="scroll">{table}</div>'


def _step(most: float) -> float:
    """A round distance of ticks, of which there are four to nine."""
    size = 10.0 ** math.floor(math.log10(most / 4))
    return next(float(factor * size) for factor in (1, 2, 5, 10) if most / (factor * size) <= 9)


def _visible(token: str) -> str:
    """A token with signs for what cannot be seen."""
    return token.replace("\n", "⏎").replace("\t", "⇥").replace("\r", "␍").replace(" ", "·") or "(empty)"

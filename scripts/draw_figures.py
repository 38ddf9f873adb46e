"""Draw the figures of the documentation from the tables that jittok builds.

    python scripts/draw_figures.py [--out docs/img]

Nothing is drawn by hand: each function asks for the tables of a small example and puts what is in them on paper.
``tests/test_figures.py`` draws them again and compares.

| file | what |
|---|---|
| wordpiece-trie.svg | the trie of a WordPiece vocabulary with failure links and failure pops |
| split-automaton.svg | the automaton of a split pattern |
| unigram-lattice.svg | all segmentations of a text by a unigram model, and the best one |
| merge-tree.svg | how the merges of the built-in tokenizer make a word |
"""

from __future__ import annotations

import argparse
import html
import math
from pathlib import Path

INK, FAINT, ACCENT, SECOND, FILL = "#222222", "#999999", "#b3402a", "#2a66b3", "#dce8f7"


class Drawing:
    """An SVG image, in user units from the upper left corner."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
            f' height="{height:g}" font-family="sans-serif" font-size="13" role="img">',
            f"<title>{html.escape(title)}</title>",
            "<defs>",
            *(
                f'<marker id="arrow{number}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
                f' orient="auto"><path d="M0 0 8 4 0 8z" fill="{colour}"/></marker>'
                for number, colour in enumerate((INK, ACCENT, SECOND))
            ),
            "</defs>",
            f'<rect width="{width:g}" height="{height:g}" fill="white"/>',
        ]

    def text(
        self, x: float, y: float, text: str, colour: str = INK, size: int = 13, anchor: str = "middle", mono: bool = False
    ) -> None:
        family = ' font-family="monospace"' if mono else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y + size * 0.35:.1f}" fill="{colour}" font-size="{size}"'
            f' text-anchor="{anchor}" paint-order="stroke" stroke="white" stroke-width="3" xml:space="preserve"{family}>'
            f"{html.escape(text)}</text>"
        )

    def box(self, x: float, y: float, width: float, height: float = 26, fill: str = "white", double: bool = False) -> None:
        for grown in (3, 0) if double else (0,):
            self.parts.append(
                f'<rect x="{x - width / 2 - grown:.1f}" y="{y - height / 2 - grown:.1f}" width="{width + 2 * grown:.1f}"'
                f' height="{height + 2 * grown:.1f}" rx="{height / 2 + grown:.1f}" fill="{fill}" stroke="{INK}"/>'
            )

    def arrow(
        self,
        begin: tuple[float, float],
        end: tuple[float, float],
        bend: float = 0,
        colour: str = INK,
        dashed: bool = False,
        gap: tuple[float, float] = (0, 0),
        head: bool = True,
        width: float = 1.2,
        label_at: float = 0.5,
    ) -> tuple[float, float]:
        """A curve that bends to its left; returns a place on it for a label."""
        (x0, y0), (x1, y1) = begin, end
        length = math.hypot(x1 - x0, y1 - y0)
        ux, uy = (x1 - x0) / length, (y1 - y0) / length
        x0, y0, x1, y1 = x0 + gap[0] * ux, y0 + gap[0] * uy, x1 - gap[1] * ux, y1 - gap[1] * uy
        cx, cy = (x0 + x1) / 2 + bend * uy, (y0 + y1) / 2 - bend * ux
        marker = f' marker-end="url(#arrow{(INK, ACCENT, SECOND).index(colour)})"' if head else ""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<path d="M{x0:.1f} {y0:.1f}Q{cx:.1f} {cy:.1f} {x1:.1f} {y1:.1f}" fill="none" stroke="{colour}"'
            f' stroke-width="{width:g}"{dash}{marker}/>'
        )
        t, u = label_at, 1 - label_at
        return u * u * x0 + 2 * t * u * cx + t * t * x1, u * u * y0 + 2 * t * u * cy + t * t * y1

    def loop(self, x: float, y: float, label: str) -> None:
        """An edge from a node to itself, above it."""
        self.parts.append(
            f'<path d="M{x - 9:.1f} {y - 19:.1f}C{x - 28:.1f} {y - 56:.1f} {x + 28:.1f} {y - 56:.1f}'
            f' {x + 9:.1f} {y - 19:.1f}"'
            f' fill="none" stroke="{INK}" stroke-width="1.2" marker-end="url(#arrow0)"/>'
        )
        self.text(x, y - 56, label, size=12)

    def __str__(self) -> str:
        return "\n".join([*self.parts, "</svg>", ""])


def wordpiece_trie() -> Drawing:
    """The example of docs/wordpiece.md."""
    from jittok.build.wordpiece_tables import build_wordpiece_tables, list_nodes

    tokens = ["a", "abcdx", "##b", "##c", "##cdy", "##dz", "[UNK]"]
    tables = build_wordpiece_tables({token: number for number, token in enumerate(tokens)}, unknown=6)
    nodes = list_nodes(tables)
    places: dict[str, tuple[float, float]] = {"": (50, 90), "##": (130, 250)}
    rows = {"a": 90, "##b": 175, "##c": 250, "##d": 325}
    drawing = Drawing(860, 400, "Trie of a WordPiece vocabulary with failure links and pops")
    for name in nodes:
        if name in places or name == "#" or name.startswith("["):
            continue
        start = next(start for start in rows if name.startswith(start))
        depth = len(name) - (2 if name.startswith("##") else 0)
        places[name] = ((50 if start == "a" else 130) + 150 * depth, rows[start])
    for name, place in places.items():
        # "#" on the way to "##" is left out
        parent = "" if name == "##" else name[:-1]
        if name and parent in nodes:
            flat = places[parent][1] == place[1]
            middle = drawing.arrow(places[parent], place, gap=(16, max(17, 4.5 * len(name) + 11) if flat else 27))
            shift = (14, 0) if name == "##" else (0, -9)
            drawing.text(middle[0] + shift[0], middle[1] + shift[1], "##" if name == "##" else name[-1], mono=True)
    for name, node in nodes.items():
        if name in places and node.link is not None and node.link in places and name not in ("", "##"):
            bend = -18 if places[name][1] == places[node.link][1] else 12
            drawing.arrow(places[name], places[node.link], bend, ACCENT, dashed=True, gap=(18, 22))
    for name, (x, y) in places.items():
        is_token = name in tokens
        drawing.box(x, y, max(34, 9 * len(name) + 16), fill=FILL if is_token else "white", double=is_token)
        drawing.text(x, y, name or "start", mono=bool(name), size=12)
        if nodes[name].pops:
            drawing.text(x, y + 25, "gives " + " ".join(tokens[i] for i in nodes[name].pops), SECOND, 11)
    drawing.text(20, 375, "doubly framed: a token", INK, 12, "start")
    drawing.text(190, 375, "dashed: failure link, where no child matches", ACCENT, 12, "start")
    drawing.text(480, 375, "gives: failure pops, the tokens that are given out then", SECOND, 12, "start")
    return drawing


SPLIT_PATTERN = r" ?\p{L}+| ?\p{N}+|\s+(?!\S)|\s+"


def split_automaton() -> Drawing:
    """A pattern much like GPT-2's, without its contractions and its other characters."""
    from jittok.build.regex_automaton import compile_split

    automaton = compile_split(SPLIT_PATTERN)
    shift, end = automaton.row_shift, automaton.end_class
    names = {"a": "letter", "0": "digit", " ": "blank", "\n": "other space", "!": "other"}
    labels = {int(automaton.classes.class_of[ord(letter)]): label for letter, label in names.items()}
    labels[end] = "end"
    edges: dict[tuple[int, int], list[int]] = {}
    accepting: dict[int, set[int]] = {}  # classes before which a match ends, by state
    n_states = len(automaton.transitions) >> shift
    for state in range(1, n_states):
        for number in range(end + 1):
            entry = int(automaton.transitions[(state << shift) + number])
            following = entry >> 1 >> shift
            if following:
                edges.setdefault((state, following), []).append(number)
            if entry & 1:
                accepting.setdefault(state, set()).add(number)
    start = automaton.start >> shift

    def target(state: int, letter: str) -> int:
        return int(automaton.transitions[(state << shift) + int(automaton.classes.class_of[ord(letter)])]) >> 1 >> shift

    places = {start: (60.0, 190.0)}
    places[target(start, " ")] = (260, 190)
    places[target(start, "a")] = (500, 100)
    places[target(start, "0")] = (500, 320)
    places[target(start, "\n")] = (260, 330)
    places[target(target(start, " "), " ")] = (500, 205)
    assert len(places) == n_states - 1, "the automaton of the pattern has other states than there are places for"
    drawing = Drawing(720, 430, f"Automaton of the pattern {SPLIT_PATTERN}")
    drawing.text(20, 24, SPLIT_PATTERN, size=14, anchor="start", mono=True)
    for (state, following), classes in edges.items():
        label = ", ".join(labels[number] for number in classes)
        if state == following:
            drawing.loop(*places[state], label)
            continue
        (x0, y0), (x1, y1) = places[state], places[following]
        far = abs(x1 - x0) > 300
        bend = 0 if not far else (70 if y1 < y0 else -70)
        x, y = drawing.arrow(places[state], places[following], bend, gap=(24, 24), label_at=0.5 if far or y1 == y0 else 0.36)
        drawing.text(x, y - 8 if y1 <= y0 else y + 10, label, size=12)
    for state, (x, y) in places.items():
        ends = accepting.get(state, set())
        drawing.box(x, y, 34, 34, FILL if ends else "white", double=len(ends) == end + 1)
        drawing.text(x, y, "start" if state == start else str(state), size=12)
        if ends and len(ends) <= end:
            drawing.text(x, y + 34, "matches before " + ", ".join(labels[number] for number in sorted(ends)), SECOND, 11)
    legend = "doubly framed: a match ends here, whatever follows; where no edge goes on, the last match is it"
    drawing.text(20, 392, legend, INK, 12, "start")
    legend = r"state 6 is \s+(?!\S): of several blanks the last one is left to what follows, unless the text ends"
    drawing.text(20, 412, legend, SECOND, 12, "start")
    return drawing


LATTICE_TEXT = "▁tobeornot"
LATTICE_PIECES = {
    "▁to": -3.2, "▁t": -4.0, "▁tob": -9.4, "be": -4.1, "b": -5.6, "e": -3.3, "o": -3.6, "or": -4.3, "r": -4.4, "orn": -8.1,
    "n": -4.2, "no": -5.2, "not": -4.6, "t": -3.9, "ot": -6.0, "eo": -7.3, "▁": -2.5,
}  # fmt: skip


def unigram_lattice() -> Drawing:
    from jittok.build.unigram_tables import build_unigram_tables, piece_nodes
    from jittok.sampling import best

    pieces = ["<unk>", *LATTICE_PIECES]
    tables = build_unigram_tables(pieces, [0.0, *LATTICE_PIECES.values()], [2] + [1] * len(LATTICE_PIECES))
    known = {string: score for string, score in piece_nodes(tables).values()}
    found = best(tables, LATTICE_TEXT)
    at = 0
    chosen = set()
    for number in found.ids:
        chosen.add((at, at + len(pieces[number])))
        at += len(pieces[number])
    assert at == len(LATTICE_TEXT)
    drawing = Drawing(900, 330, "Lattice of a unigram model")
    step, base = 84, 130

    def x(place: int) -> float:
        return 30 + step * place

    edges = [
        (begin, end)
        for begin in range(len(LATTICE_TEXT))
        for end in range(begin + 1, len(LATTICE_TEXT) + 1)
        if LATTICE_TEXT[begin:end] in known
    ]
    above = True
    for begin, end in sorted(edges, key=lambda edge: edge[1] - edge[0]):
        piece = LATTICE_TEXT[begin:end]
        if end - begin == 1:
            bend = 0.0
        else:
            bend = (75 + 55 * (end - begin - 2)) * (1 if above else -1)
            above = not above
        is_best = (begin, end) in chosen
        middle = drawing.arrow(
            (x(begin), base), (x(end), base), bend, ACCENT if is_best else INK, gap=(11, 11), width=2.4 if is_best else 1
        )
        side = -9 if bend >= 0 else 11
        drawing.text(middle[0], middle[1] + side, f"{piece} {known[piece]:.1f}", ACCENT if is_best else INK, 12)
    for place in range(len(LATTICE_TEXT) + 1):
        drawing.box(x(place), base, 20, 20, FILL)
        drawing.text(x(place), base, str(place), size=11)
    legend = f"all pieces of {LATTICE_TEXT}, with their scores; in red the best path, whose sum is {found.score:.1f}"
    drawing.text(20, 310, legend, INK, 12, "start")
    return drawing


MERGE_WORD = " outrageously"


def merge_tree() -> Drawing:
    """The built-in tokenizer's merges of a word, by the rule itself."""
    import jittok

    tok = jittok.load_default()
    rank = {tuple(pair): number for number, pair in enumerate(tok.spec.model.merges)}
    letters = list(MERGE_WORD.replace(" ", "Ġ"))
    x_of = {number: 50.0 + 58 * number for number in range(len(letters))}
    symbols = [(letter, x_of[number], 210.0) for number, letter in enumerate(letters)]
    drawing = Drawing(100 + 58 * (len(letters) - 1), 260, "Merges of a word by the built-in tokenizer")
    boxes = [(letter, x, y, "") for letter, x, y in symbols]
    order = 0
    while True:
        neighbours = [(a[0], b[0]) for a, b in zip(symbols, symbols[1:], strict=False)]
        pairs = [(rank[pair], i) for i, pair in enumerate(neighbours) if pair in rank]
        if not pairs:
            break
        number, i = min(pairs)
        order += 1
        (left, x0, y0), (right, x1, y1) = symbols[i : i + 2]
        x, y = (x0 + x1) / 2, min(y0, y1) - 46
        for begin in ((x0, y0), (x1, y1)):
            drawing.arrow(begin, (x, y), gap=(14, 14), head=False)
        boxes.append((left + right, x, y, f"{order}: merge {number:,}"))
        symbols[i : i + 2] = [(left + right, x, y)]
    assert [symbol for symbol, _, _ in symbols] == tok.encode(MERGE_WORD).tokens
    whole = {(symbol, x) for symbol, x, _ in symbols}
    for symbol, x, y, note in boxes:
        drawing.box(x, y, max(24, 9 * len(symbol) + 12), 24, FILL if (symbol, x) in whole else "white", (symbol, x) in whole)
        drawing.text(x, y, symbol, mono=True, size=13)
        if note:
            drawing.text(x, y - 20, note, SECOND, 10)
    legend = "first number: order in this word; second: place in the list of merges; doubly framed: the tokens"
    drawing.text(20, 248, legend, INK, 11, "start")
    return drawing


FIGURES = {
    "wordpiece-trie": wordpiece_trie,
    "split-automaton": split_automaton,
    "unigram-lattice": unigram_lattice,
    "merge-tree": merge_tree,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[1] / "docs" / "img")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        (options.out / f"{name}.svg").write_text(str(draw()), encoding="utf-8")
        print(options.out / f"{name}.svg")


if __name__ == "__main__":
    main()

"""Tokens painted on the text that they come from: HTML for notebooks, colours for terminals."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import NamedTuple

from jittok.encodings import Encoding
from jittok.errors import ArgumentError

#: Tokens of an encoding that are painted at most: a browser has to show them.
MOST_TOKENS = 2000

#: Hues that neighbours differ by, and so little colour that text is readable on light and on dark ground.
_HUES = (210, 120, 45, 300, 0, 170)
#: Backgrounds of terminals with 256 colours, with black text.
_BACKGROUNDS = (153, 157, 223, 219, 217, 159)


class Part(NamedTuple):
    """A stretch of text, and the tokens on it."""

    text: str
    tokens: tuple[tuple[int, str], ...]  #: ids and token strings; none: text that no token stands for
    is_special: bool  #: whether it is a token that was put there, and stands for no text


def painted_parts(encoding: Encoding) -> Iterator[Part]:
    """Go through the text of an encoding in parts.

    Parameters
    ----------
    encoding
        With spans, and with its text.

    Yields
    ------
    Part
        Their texts are together the text, or both texts of a pair. Tokens that share characters, as those of the
        bytes of one do, are on one part.

    Raises
    ------
    ArgumentError
        The encoding has no spans or no text: it was pickled, or encoded without ``spans=True``.
    """
    texts, spans = encoding.texts, encoding.spans
    if spans is None or not texts or not all(isinstance(text, str) for text in texts):
        raise ArgumentError("this encoding has no spans or not its text; use encode(), or encode_batch(spans=True)")
    rows = zip(
        encoding.ids.tolist(),
        encoding.tokens,
        spans.tolist(),
        encoding.special_tokens_mask.tolist(),
        encoding.sequence_ids.tolist(),
        strict=True,
    )
    at, sequence = 0, 0
    pending: Part | None = None
    for number, token, (begin, end), special, owner in rows:
        if special and owner < 0:
            if pending:
                yield pending
            pending = None
            yield Part("", ((number, token),), True)
            continue
        if owner != sequence:
            if pending:
                yield pending
            pending = None
            if at < len(texts[sequence] or ""):
                yield Part(str(texts[sequence])[at:], (), False)
            at, sequence = 0, owner
        text = str(texts[sequence])
        if pending is not None and end <= at:
            pending = pending._replace(tokens=(*pending.tokens, (number, token)))
            continue
        if pending:
            yield pending
        if begin > at:
            yield Part(text[at:begin], (), False)
        pending = Part(text[max(begin, at) : end], ((number, token),), False)
        at = max(at, end)
    if pending:
        yield pending
    for rest in range(sequence, len(texts)):
        if at < len(str(texts[rest])):
            yield Part(str(texts[rest])[at:], (), False)
        at = 0


def as_html(encoding: Encoding) -> str:
    """Return an encoding as a piece of HTML: the text with its tokens coloured, and ids when one points at them.

    Parameters
    ----------
    encoding
        With spans, and with its text.

    Raises
    ------
    ArgumentError
        As :func:`painted_parts`.
    """
    pieces = []
    colour = shown = 0
    for part in painted_parts(encoding):
        if shown >= MOST_TOKENS:
            pieces.append(f"<i> … {len(encoding) - shown:,} tokens more</i>")
            break
        shown += len(part.tokens)
        if not part.tokens:
            pieces.append(_visible(part.text))
            continue
        title = html.escape("\n".join(f"{number}: {token!r}" for number, token in part.tokens), quote=True)
        if part.is_special:
            label = html.escape(part.tokens[0][1])
            style = "border:1px solid;border-radius:3px;padding:0 2px;opacity:.65"
            pieces.append(f'<span class="jittok-special" title="{title}" style="{style}">{label}</span>')
            continue
        style = f"background:hsla({_HUES[colour % len(_HUES)]},70%,50%,.3);border-radius:3px"
        colour += 1
        pieces.append(f'<span class="jittok-token" title="{title}" style="{style}">{_visible(part.text)}</span>')
    head = f"{len(encoding):,} tokens" if len(encoding) != 1 else "1 token"
    body = "".join(pieces)
    return (
        f'<div class="jittok"><div style="opacity:.65;font-size:smaller">{head}</div>'
        f'<div style="white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.7">{body}</div></div>'
    )


def as_ansi(encoding: Encoding, *, colours: bool = True) -> str:
    """Return an encoding as text for a terminal.

    Parameters
    ----------
    encoding
        With spans, and with its text.
    colours
        False puts tokens in brackets instead.

    Raises
    ------
    ArgumentError
        As :func:`painted_parts`.
    """
    pieces = []
    colour = 0
    for part in painted_parts(encoding):
        if not part.tokens:
            pieces.append(part.text)
            continue
        text = part.tokens[0][1] if part.is_special else part.text
        if not colours:
            pieces.append(f"[{text}]")
        elif part.is_special:
            pieces.append(f"\x1b[7m{text}\x1b[0m")
        else:
            # The colour ends with the line, which a terminal would fill up with it.
            lines = text.split("\n")
            start = f"\x1b[48;5;{_BACKGROUNDS[colour % len(_BACKGROUNDS)]}m\x1b[38;5;16m"
            pieces.append("\n".join(f"{start}{line}\x1b[0m" if line else line for line in lines))
            colour += 1
    return "".join(pieces)


def _visible(text: str) -> str:
    """Text for HTML; line breaks are shown, so that a token of nothing else can be pointed at."""
    return html.escape(text).replace("\n", '<span style="opacity:.4">⏎</span>\n')

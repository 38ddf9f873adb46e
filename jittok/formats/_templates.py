"""Several post-processors that add special tokens, one after another, as the one template that they are together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from jittok.spec import PostProcessor, Template, TemplatePiece

#: What the reference hands from one post-processor to the next: a text, its pair, or what a template has around them.
Part = tuple[TemplatePiece, ...]


class Around(NamedTuple):
    """BertProcessing or RobertaProcessing, which put special tokens at the ends of each part that they are given."""

    start: TemplatePiece
    end: TemplatePiece
    like_roberta: bool  # another end in front of all parts but the first, and all type ids 0


def composed(steps: Sequence[PostProcessor | Around]) -> tuple[tuple[PostProcessor, ...], bool] | None:
    """Return the post-processors with at most one template among them, and whether they can take pairs.

    Parameters
    ----------
    steps
        In the order in which they run.

    Returns
    -------
    steps, takes_pairs
        None: what they do cannot be said with one template. Either a template gets neither one part nor two, where the
        reference panics, or the special tokens, when they are left out, change the type ids of the text.

    Notes
    -----
    Measured on tokenizers 0.23.3: a template makes a part of each of its pieces, and the next one takes two parts for
    a pair of texts whatever is in them; the two others leave as many parts as they find.
    """
    adding = [step for step in steps if isinstance(step, (Template, Around))]
    if not adding or (len(adding) == 1 and isinstance(adding[0], Template)):
        return tuple([step for step in steps if not isinstance(step, Around)]), True
    text, pair = (TemplatePiece(0, "A"),), (TemplatePiece(1, "B"),)
    single = _framed(adding, [text])
    if single is None:
        return None
    both = _framed(adding, [text, pair])
    template = Template(single, both)
    at = next(place for place, step in enumerate(steps) if isinstance(step, Template | Around))
    result: list[PostProcessor] = [step for step in steps if not isinstance(step, Template | Around)]
    result.insert(at, template)
    return tuple(result), both is not None


def _framed(steps: Sequence[Template | Around], parts: list[Part]) -> Part | None:
    """Return what texts become, or None if that depends on more than a template can say."""
    result, without = _run(steps, parts, True), _run(steps, parts, False)
    if result is None or without != tuple(piece for piece in result if piece.sequence is not None):
        return None
    return result


def _run(steps: Sequence[Template | Around], parts: list[Part], special: bool) -> Part | None:
    """Return what the parts of texts become, or None where the reference panics."""
    for step in steps:
        if isinstance(step, Around):
            parts = _with_ends(step, parts, special)
            continue
        template = {1: step.single, 2: step.pair}.get(len(parts))
        if template is None:
            return None
        made: list[Part] = []
        for piece in template:
            if piece.sequence is not None:
                part = parts["AB".index(piece.sequence)]
                made.append(tuple(replace(inner, type_id=piece.type_id) for inner in part))
            elif special:
                made.append((piece,))
        parts = made
    return tuple(piece for part in parts for piece in part)


def _with_ends(step: Around, parts: list[Part], special: bool) -> list[Part]:
    start, end = step.start, step.end
    if step.like_roberta:
        parts = [tuple(replace(piece, type_id=0) for piece in part) for part in parts]
    if not special:
        return parts
    result: list[Part] = []
    for number, part in enumerate(parts):
        if number == 0:
            result.append((start, *part, end))
        elif step.like_roberta:
            result.append((end, *part, end))
        else:
            result.append((*part, replace(end, type_id=1)))
    return result

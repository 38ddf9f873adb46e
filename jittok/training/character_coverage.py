"""How many merges, and which single characters besides: what ``auto_character_coverage`` of SentencePiece chooses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class _Sums:
    """Numbers of which any first ones can be summed, and changed, in logarithmic time (a Fenwick tree)."""

    def __init__(self, values: Sequence[int]):
        self._tree = [0, *values]
        for i in range(1, len(self._tree)):
            parent = i + (i & -i)
            if parent < len(self._tree):
                self._tree[parent] += self._tree[i]

    def add(self, place: int, value: int) -> None:
        """Add to one number."""
        i = place + 1
        while i < len(self._tree):
            self._tree[i] += value
            i += i & -i


def _sum_of_first(counts: _Sums, gains: _Sums, n: int) -> int:
    """The sum of the gains of the first `n` that are still there; `counts` has 1 for each of them."""
    at = total = 0
    step = 1 << len(counts._tree).bit_length()
    while step:
        following = at + step
        if following < len(counts._tree) and counts._tree[following] <= n:
            at = following
            n -= counts._tree[at]
            total += gains._tree[at]
        step >>= 1
    return total


def balanced_pieces(
    merges: Sequence[str],
    counts: NDArray[np.int64],
    characters: NDArray[np.uint32],
    character_counts: NDArray[np.int64],
    room: int,
) -> list[str]:
    """Choose how many of the first merges to keep, and which characters besides those that these are made of.

    What counts is how many tokens a text has less: a merge saves one wherever it was made, a character one for each of
    its bytes but the first. Every character of a merge is a piece too. Of equal choices, that with more merges is taken.

    Parameters
    ----------
    merges
        Pieces in order.
    counts
        int64[n], how often each was merged.
    characters, character_counts
        uint32[k], int64[k]: all characters of the corpus.
    room
        Pieces to choose.

    Returns
    -------
    list of str
        The merges; their characters by codepoint; the other characters, those that save most first. Fewer than `room`
        if there are no more. Time is n log k.
    """
    found = [
        (count * (len(chr(codepoint).encode()) - 1), count, codepoint)
        for codepoint, count in zip(characters.tolist(), character_counts.tolist(), strict=True)
        if codepoint >= 0x80 and count > 0
    ]
    found.sort(key=lambda one: (-one[0], -one[1], one[2]))
    rank = {codepoint: number for number, (_, _, codepoint) in enumerate(found)}
    there = _Sums([1] * len(found))
    gains = _Sums([gain for gain, _, _ in found])
    n_there = len(found)
    inside: set[str] = set()
    merged = inside_gain = 0
    best = (-1, 0, 0)  # gain, merges, single characters
    for k in range(len(merges) + 1):
        left = room - k - len(inside)
        if left >= 0:
            single = min(left, n_there)
            gain = merged + inside_gain + _sum_of_first(there, gains, single)
            if gain >= best[0]:
                best = (gain, k, single)
        if k == len(merges):
            break
        merged += int(counts[k])
        for character in set(merges[k]) - inside:
            inside.add(character)
            place = rank.get(ord(character))
            if place is not None:
                there.add(place, -1)
                gains.add(place, -found[place][0])
                inside_gain += found[place][0]
                n_there -= 1
    _, n_merges, n_single = best
    of_merges = {character for merge in merges[:n_merges] for character in merge}
    others = [chr(codepoint) for _, _, codepoint in found if chr(codepoint) not in of_merges]
    return [*merges[:n_merges], *sorted(of_merges), *others[:n_single]]

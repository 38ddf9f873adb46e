"""Slow and obvious twins of the trainers: all pairs are counted anew after every merge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence


def letters_of(word: str, prefix: str = "", suffix: str = "") -> list[str]:
    """The letters of a word as tokens, each with what marks its place."""
    last = len(word) - 1
    return [(prefix if i else "") + letter + (suffix if i == last else "") for i, letter in enumerate(word)]


def start(
    words: Mapping[str, int],
    *,
    special: Sequence[str] = (),
    initial_alphabet: Sequence[str] = (),
    limit_alphabet: int | None = None,
    prefix: str = "",
    suffix: str = "",
) -> tuple[list[str], list[tuple[list[str], int]]]:
    """The first tokens, in order of id, and the words as tokens, with their counts."""
    totals: Counter[str] = Counter()
    for word, count in words.items():
        for letter in word:
            totals[letter] += count
    first = sorted(set(initial_alphabet))
    letters = first + sorted(totals.keys() - first, key=lambda letter: (-totals[letter], letter))
    letters = sorted(letters[:limit_alphabet])
    tokens = list(dict.fromkeys([*special, *letters]))
    split = []
    places: dict[int, set[str]] = {0: set(), 1: set(), 2: set()}
    for word, count in words.items():
        kept = []
        for i, token in enumerate(letters_of(word, prefix, suffix)):
            if word[i] in tokens[: len(set(special) | set(letters))]:
                kept.append(token)
                is_last = bool(suffix) and i == len(word) - 1
                kind = (2 if i and prefix else 1) if is_last else 0
                places[kind].add((word[i], token))
        split.append((kept, count))
    for kind in (0, 1, 2):
        tokens += [token for _, token in sorted(places[kind]) if token not in tokens]
    return tokens, split


def merge(tokens: list[str], pair: tuple[str, str], result: str) -> list[str]:
    """Merge a pair in a word, from left to right."""
    merged: list[str] = []
    i = 0
    while i < len(tokens):
        if tuple(tokens[i : i + 2]) == pair:
            merged.append(result)
            i += 2
        else:
            merged.append(tokens[i])
            i += 1
    return merged


def learn(
    tokens: list[str],
    split: list[tuple[list[str], int]],
    size: int,
    *,
    min_frequency: int = 0,
    max_token_length: int | None = None,
    prefix: str = "",
    by_likelihood: bool = False,
) -> tuple[list[str], list[tuple[str, str]]]:
    """Tokens and merges, by the rules that are at the head of ``jittok/training/bpe.py``."""
    tokens = list(tokens)
    ids = {token: number for number, token in enumerate(tokens)}
    length = {token: 1 for word, _ in split for token in word}
    merges: list[tuple[str, str]] = []
    while len(tokens) < size:
        pairs: Counter[tuple[str, str]] = Counter()
        symbols: Counter[str] = Counter()
        for word, count in split:
            for token in word:
                symbols[token] += count
            for pair in zip(word, word[1:], strict=False):
                if max_token_length is None or length[pair[0]] + length[pair[1]] <= max_token_length:
                    pairs[pair] += count
        pairs = Counter({pair: count for pair, count in pairs.items() if count >= max(min_frequency, 1)})
        if not pairs:
            break

        def order(pair, pairs=pairs, symbols=symbols):
            score = pairs[pair]
            if by_likelihood:
                score = score / (float(symbols[pair[0]]) * float(symbols[pair[1]]))
            return -score, ids[pair[0]], ids[pair[1]]

        best = min(pairs, key=order)
        tail = best[1].removeprefix(prefix) if prefix else best[1]
        result = best[0] + tail
        if result not in ids:
            ids[result] = len(tokens)
            tokens.append(result)
        length.setdefault(result, length[best[0]] + length[best[1]])
        merges.append(best)
        split = [(merge(word, best, result), count) for word, count in split]
    places = {pair: place for place, pair in enumerate(merges)}
    return tokens, sorted(places, key=places.__getitem__)

"""A textbook trainer of unigram models: nested loops over every substring, one float32 sum after the other.

It is slow and short, and gives the pieces and scores of sentencepiece 0.2.3 for words that it is given as they are.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import accumulate

import numpy as np

f32 = np.float32
BLANK, OUTSIDE = "\u2581", "\u2585"


def words_of(sentence):
    """The words of a normalised sentence, each from a blank on."""
    starts = [0, *(i for i in range(1, len(sentence)) if sentence[i] == BLANK)]
    return [sentence[a:b] for a, b in zip(starts, [*starts[1:], len(sentence)], strict=True)]


def seeds_of(sentences, most, is_piece):
    """Every substring that comes before two different bytes, how often it occurs, and the letters."""
    text = b"".join(s.encode() + b"\0" for s in sentences)
    counts, following = Counter(), {}
    for first in range(len(text)):
        for end in range(first + 2, min(first + 4 * most + 1, len(text)) + 1):
            found = text[first:end]
            counts[found] += 1
            following.setdefault(found, set()).add(text[end : end + 1])
    candidates = Counter()
    for found, after in following.items():
        whole = found.rstrip(b"\0")
        try:
            string = whole.decode()
        except UnicodeDecodeError:
            continue
        if len(after) > 1 and not any(0x80 <= byte[0] < 0xC0 for byte in after if byte):
            if 2 <= len(string) <= most and is_piece(string):
                candidates[string] += counts[found]
    letters = Counter("".join(sentences))
    del letters[OUTSIDE]
    return letters, candidates


def is_usual_piece(string):
    """For words of one script."""
    return BLANK not in string[1:] and not set(string) & {OUTSIDE, "\0", "\x1f"}


def edges(word, index, scores, lowest):
    """By place: (end, piece, score) of all pieces there; piece 0 stands for unknown letters."""
    result = []
    for first in range(len(word)):
        here = [
            (end, index[word[first:end]], scores[index[word[first:end]]])
            for end in range(first + 1, len(word) + 1)
            if word[first:end] in index
        ]
        if not here or here[0][0] != first + 1:
            here.append((first + 1, 0, f32(lowest - f32(10))))
        result.append(here)
    return result


def log_sum(a, b):
    low, high = min(a, b), max(a, b)
    if high > f32(low + f32(50)):
        return high
    return f32(float(high) + math.log1p(math.exp(float(f32(low - high)))))


def expected_counts(words, pieces, scores, threads):
    index = {piece: i for i, piece in enumerate(pieces)}
    lowest = min(scores)
    parts = np.zeros((threads, len(pieces)), f32)
    for number, (word, count) in enumerate(words):
        lattice = edges(word, index, scores, lowest)
        n = len(word)
        alpha, beta = [None] * (n + 1), [None] * (n + 1)
        alpha[0] = beta[n] = f32(0)
        for first in range(n):
            for end, _, score in lattice[first]:
                value = f32(score + alpha[first])
                alpha[end] = value if alpha[end] is None else log_sum(alpha[end], value)
        for first in reversed(range(n)):
            for end, _, score in lattice[first]:
                value = f32(score + beta[end])
                beta[first] = value if beta[first] is None else log_sum(beta[first], value)
        expected = parts[number % threads]
        for first in range(n):
            for end, piece, score in lattice[first]:
                x = f32(f32(f32(alpha[first] + score) + beta[end]) - alpha[n])
                expected[piece] = f32(float(expected[piece]) + float(f32(count)) * math.exp(float(x)))
    return sum_in_order(parts)


def sum_in_order(parts):
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def digamma(x):
    result = 0.0
    while x < 7:
        result -= 1 / x
        x += 1
    x -= 0.5
    y = 1 / x
    y2 = y * y
    y4 = y2 * y2
    series = (
        math.log(x) + (1 / 24) * y2 - (7 / 960) * y4 + (31 / 8064) * y4 * y2 - (127 / 30720) * y4 * y4
    )  # fmt: skip
    return result + series


def nodes_with_best(word, index, scores, lowest):
    """All edges as [first, end, piece, score, best score of a path that ends in it, edge before it]."""
    nodes = []
    for first, here in enumerate(edges(word, index, scores, lowest)):
        for end, piece, score in here:
            node = [first, end, piece, score, score, None]
            best = None
            for before in nodes:
                if before[1] == first:
                    value = f32(before[4] + score)
                    if best is None or value > best:
                        best, node[5] = value, before
            node[4] = score if best is None else best
            nodes.append(node)
    return nodes


def best_path(word, index, scores, lowest):
    node = None
    for other in nodes_with_best(word, index, scores, lowest):
        if other[1] == len(word) and (node is None or other[4] > node[4]):
            node = other
    path = []
    while node is not None:
        path.append(node[2])
        node = node[5]
    return path[::-1]


class Heap:
    """The binary heap of the C++ library: which of equal items comes first depends on how it is done."""

    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)
        self._up(len(self.items) - 1)

    def _up(self, at):
        item = self.items[at]
        while at > 0 and self.items[(at - 1) // 2][0] < item[0]:
            self.items[at] = self.items[(at - 1) // 2]
            at = (at - 1) // 2
        self.items[at] = item

    def pop(self):
        top, last = self.items[0], self.items.pop()
        if self.items:
            at, n = 0, len(self.items)
            while 2 * at + 1 < n:
                child = 2 * at + 2
                if child == n or self.items[child][0] < self.items[child - 1][0]:
                    child -= 1
                self.items[at] = self.items[child]
                at = child
            self.items[at] = last
            self._up(at)
        return top


def two_best(word, index, scores, lowest):
    nodes = nodes_with_best(word, index, scores, lowest)
    heap, paths = Heap(), []
    heap.push((max(node[4] for node in nodes if node[1] == len(word)), f32(0), len(word), []))
    while heap.items:
        _, score, place, path = heap.pop()
        if place < 0:
            paths.append(path)
            if len(paths) == 2:
                break
        elif place == 0:
            heap.push((score, score, -1, path))
        else:
            for node in nodes:
                if node[1] == place:
                    heap.push((f32(node[4] + score), f32(node[3] + score), node[0], [node[2], *path]))
    return paths


def prune(words, pieces, scores, threads, desired, shrinking):
    index = {piece: i for i, piece in enumerate(pieces)}
    lowest = min(scores)
    parts = np.zeros((threads, len(pieces)), f32)
    for number, (word, count) in enumerate(words):
        for piece in best_path(word, index, scores, lowest):
            parts[number % threads][piece] += f32(count)
    counts = sum_in_order(parts)
    total = f32(sum(map(float, counts)))
    kept, candidates = [], []
    for i, piece in enumerate(pieces):
        paths = two_best(piece, index, scores, lowest)
        if counts[i] == 0 or (len(paths) > 1 and len(paths[0]) > 1):
            continue
        if len(paths) == 1:
            kept.append(i)
            continue
        other = f32(0)
        log_more = f32(math.log(f32(total + f32(counts[i] * f32(len(paths[1]) - 1)))))
        for part in paths[1]:
            other = f32(float(other) + (math.log(f32(counts[part] + counts[i])) - float(log_more)))
        own = f32(math.log(counts[i]) - float(f32(math.log(total))))
        candidates.append((-f32(f32(counts[i] / total) * f32(own - other)), i))
    size = max(desired, int(f32(shrinking) * f32(len(pieces))))
    chosen = [i for _, i in sorted(candidates)]
    return kept + (chosen[: size - len(kept)] if len(kept) <= size else chosen)


def train(sentences, vocab_size, threads=16, most=16, shrinking=0.75, iterations=2, is_piece=is_usual_piece, meta=3):
    """Pieces and scores, without meta pieces, of normalised sentences whose letters are all wanted."""
    letters, candidates = seeds_of(sentences, most, is_piece)
    words = Counter(word for sentence in sentences for word in words_of(sentence))
    words = sorted(words.items(), key=lambda item: (-item[1], item[0].encode()))
    seeds = [(piece, f32(f32(count) * f32(len(piece)))) for piece, count in candidates.items()]
    seeds.sort(key=lambda item: (-item[1], -len(item[0].encode()), item[0].encode()))
    in_order = sorted(letters.items(), key=lambda item: (-item[1], item[0]))
    pieces = [letter for letter, _ in in_order] + [piece for piece, _ in seeds]
    raw = [f32(count) for _, count in in_order] + [score for _, score in seeds]
    log_total = math.log(list(accumulate(map(float, raw)))[-1])
    scores = [f32(math.log(x) - log_total) for x in raw]
    desired = int(vocab_size * 1.1)
    while True:
        for _ in range(iterations):
            expected = expected_counts(words, pieces, scores, threads)
            left = [i for i, count in enumerate(expected) if count >= f32(0.5)]
            total = f32(0)
            for i in left:
                total = f32(total + expected[i])
            log_total = float(f32(digamma(float(total))))
            pieces = [pieces[i] for i in left]
            scores = [f32(digamma(float(expected[i])) - log_total) for i in left]
        left = prune(words, pieces, scores, threads, desired, shrinking)
        pieces, scores = [pieces[i] for i in left], [scores[i] for i in left]
        if len(pieces) <= desired:
            break
    index, lowest = {piece: i for i, piece in enumerate(pieces)}, min(scores)
    reached = {}
    for piece, score in zip(pieces, scores, strict=True):
        others = {other: i for other, i in index.items() if other != piece}
        ends = [node[4] for node in nodes_with_best(piece, others, scores, lowest) if node[1] == len(piece)]
        if len(piece) == 1 or max(ends) <= score:
            reached[piece] = score
    lowest, penalty, final = min(reached.values()), f32(0), {}
    for letter, _ in in_order:
        if letter in reached:
            final[letter] = reached[letter]
        else:
            final[letter] = f32(lowest + penalty)
            penalty = f32(penalty + f32(0.0001))

    def order(item):
        return -item[1], item[0].encode()

    for piece, score in sorted(reached.items(), key=order):
        if len(final) == vocab_size - meta:
            break
        final.setdefault(piece, score)
    return [(piece, float(score)) for piece, score in sorted(final.items(), key=order)]

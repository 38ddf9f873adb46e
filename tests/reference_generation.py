"""Slow and plain twins of what jittok.generation does: for comparison only."""

from __future__ import annotations

import itertools
import math

import numpy as np

NOTHING = float("-inf")


def log_softmax(row):
    top = max(row)
    total = math.fsum(math.exp(x - top) for x in row)
    return [x - top - math.log(total) for x in row]


def probabilities(row):
    return [math.exp(x) for x in log_softmax(row)]


def process(row, ids, *, log_probabilities=False, end_ids=(), is_banned=False, least=1, **settings):
    """One row after all that the settings ask for; floats, minus infinity for what is out."""
    row = [float(x) for x in row]
    if log_probabilities:
        row = log_softmax(row)
    penalty = settings.get("repetition_penalty", 1.0)
    for token in set(ids):
        if token < len(row):
            row[token] = row[token] * penalty if row[token] < 0 else row[token] / penalty
    size = settings.get("no_repeat_ngram_size", 0)
    if size and len(ids) >= size:
        grams = {tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)}
        behind = tuple(ids[len(ids) - size + 1 :])
        row = [NOTHING if (*behind, token) in grams else x for token, x in enumerate(row)]
    for word in settings.get("bad_words_ids", ()):
        if len(word) == 1 and word[0] in end_ids:
            continue
        if list(ids[len(ids) - len(word) + 1 :]) == list(word[:-1]) or len(word) == 1:
            row[word[-1]] = NOTHING
    if is_banned:
        for token in end_ids:
            row[token] = NOTHING
    row = [x / settings.get("temperature", 1.0) for x in row]
    k = settings.get("top_k") or 0
    if k:
        threshold = sorted(row)[-min(max(k, least), len(row))]
        row = [x if x >= threshold else NOTHING for x in row]
    if settings.get("top_p", 1.0) is not None and settings.get("top_p", 1.0) < 1.0:
        # The most probable first, of equal ones the higher number.
        order = sorted(range(len(row)), key=lambda token: (-row[token], -token))
        row = _keep(row, _shortest(order, probabilities(row), settings["top_p"], least))
    if settings.get("min_p"):
        shares = probabilities(row)
        order = sorted(range(len(row)), key=lambda token: (-row[token], -token))
        kept = {token for token in order if shares[token] >= settings["min_p"] * max(shares)}
        row = _keep(row, kept | set(order[:least]))
    if settings.get("typical_p") is not None and settings.get("typical_p") < 1.0:
        logs = log_softmax(row)
        shares = [math.exp(x) for x in logs]
        entropy = -math.fsum(share * x for share, x in zip(shares, logs, strict=True) if share)
        distance = [abs(-x - entropy) for x in logs]
        order = sorted(range(len(row)), key=lambda token: (distance[token], token))
        kept = _shortest(order, shares, settings["typical_p"], least)
        edge = max(distance[token] for token in kept)
        row = _keep(row, kept | {token for token in order if distance[token] <= edge})
    return row


def _shortest(order, shares, mass, least):
    """The first tokens of an order whose shares add up to a mass, but so many at least."""
    kept, total = [], 0.0
    for token in order:
        if total >= mass and len(kept) >= max(least, 1):
            break
        kept.append(token)
        total += shares[token]
    return set(kept)


def _keep(row, kept):
    return [x if token in kept else NOTHING for token, x in enumerate(row)]


def philox(counter, key):
    """Philox4x32-10: four words from four words and two."""
    counter, key = list(counter), list(key)
    for _ in range(10):
        high_0, low_0 = divmod(0xD2511F53 * counter[0], 1 << 32)
        high_1, low_1 = divmod(0xCD9E8D57 * counter[2], 1 << 32)
        counter = [high_1 ^ counter[1] ^ key[0], low_1, high_0 ^ counter[3] ^ key[1], low_0]
        key = [(key[0] + 0x9E3779B9) % (1 << 32), (key[1] + 0xBB67AE85) % (1 << 32)]
    return counter


def best_sequences(log_table, start, length, count, power=1.0):
    """All sequences of a bigram model by score, the best ones: what a beam as wide as all of them finds."""
    found = []
    for tokens in itertools.product(range(len(log_table)), repeat=length):
        total = np.float32(0)
        for a, b in itertools.pairwise((start, *tokens)):
            total = np.float32(total + log_table[a][b])
        found.append((float(total) / length**power, list(tokens)))
    found.sort(key=lambda item: -item[0])
    return found[:count]


def cut_at_stop(text, stops):
    """Text before the stop string that ends first, of those that end there the longest; and whether there is one."""
    ends = [
        (text.find(stop, begin) + len(stop), text.find(stop, begin))
        for stop in stops for begin in range(len(text)) if text.find(stop, begin) >= 0
    ]  # fmt: skip
    if not ends:
        return text, False
    return text[: min(ends)[1]], True

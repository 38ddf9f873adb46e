"""SentencePiece's BPE training as a textbook has it: everything is counted again after every merge."""

from __future__ import annotations

from collections import Counter

OUTSIDE = "\u2585"


def is_valid(piece, script_of, options):
    """Whether a piece may be made: `script_of` names a letter's script, "Inherited" among them."""
    if len(piece) > options.max_sentencepiece_length or set(piece) & {OUTSIDE, "\0", "\x1f", " "}:
        return False
    only_blanks = set(piece) == {"\u2581"}
    before = None  # the script so far; None goes with any
    for place, letter in enumerate(piece):
        last = place == len(piece) - 1
        if letter == "\u2581":
            if only_blanks and options.allow_whitespace_only_pieces:
                continue
            if options.treat_whitespace_as_suffix:
                wrong = not last and (options.split_by_whitespace or place == 0)
            else:
                wrong = place > 0 and (options.split_by_whitespace or last)
            if wrong:
                return False
            continue
        script = script_of(letter)
        if script == "Inherited":
            script = before
        if letter in "0123456789０１２３４５６７８９":
            if options.split_digits and len(piece) > 1:
                return False
            if not options.split_by_number:
                script = None
        if options.split_by_unicode_script and None not in (script, before) and script != before:
            return False
        before = script
    return True


def train(words, alphabet, n, script_of, options):
    """Learn up to `n` pieces from counted words; every piece, and how often it occurred."""
    texts = {word: [letter if letter in alphabet else OUTSIDE for letter in word] for word in words}
    seen = set()  # pairs that ever were
    dropped = set()
    pieces = []
    counts = []
    while len(pieces) < n:
        occurring = Counter()
        for word, symbols in texts.items():
            for pair in zip(symbols, symbols[1:], strict=False):
                occurring[pair] += words[word]
        seen.update(pair for pair in occurring if is_valid("".join(pair), script_of, options))
        left = seen - dropped
        if not left:
            break
        best = min(left, key=lambda pair: (-occurring[pair], len("".join(pair)), "".join(pair).encode(), len(pair[0])))
        dropped.add(best)
        piece = "".join(best)
        if piece in pieces:
            continue
        pieces.append(piece)
        counts.append(occurring[best])
        for word, symbols in texts.items():
            merged = []
            place = 0
            while place < len(symbols):
                if tuple(symbols[place : place + 2]) == best:
                    merged.append(piece)
                    # A pair that a merge brings is there, if only until the next one in the same word.
                    if len(merged) > 1:
                        seen.add((merged[-2], piece))
                    if place + 2 < len(symbols):
                        seen.add((piece, symbols[place + 2]))
                    place += 2
                else:
                    merged.append(symbols[place])
                    place += 1
            texts[word] = merged
        seen = {pair for pair in seen if is_valid("".join(pair), script_of, options)}
    return pieces, counts

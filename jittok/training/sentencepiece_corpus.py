"""Texts as SentencePiece's trainers see them: normalised, cut into words, counted, rare characters put aside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jittok.errors import ArgumentError
from jittok.rewriting import build_rewriter
from jittok.training.sentencepiece_options import BLANK, BOUNDARY, OUTSIDE, SentencePieceOptions


@dataclass(frozen=True)
class SentencePieceCorpus:
    """Counted words and the alphabet.

    Attributes
    ----------
    letters
        uint32[k], the codepoints of the alphabet, the most frequent first, of equals the smaller one. U+2581 is one
        of them, U+2585 and U+001F never are. Empty with ``auto_character_coverage``, where all characters stay.
    letter_counts
        int64[k], how often each occurs; 0 for required characters that do not.
    codepoints, indptr, counts
        uint32[m], int64[n + 1], int64[n]: word `i` is ``codepoints[indptr[i]:indptr[i + 1]]`` and occurs ``counts[i]``
        times. U+2585 stands for every character outside of the alphabet and for boundaries. Sorted by count, the
        largest first, then by their UTF-8; each once. With ``split_by_whitespace=False`` these are whole texts, in
        the order in which the reference has them, not counted together.
    notes
        What was left out: reasons and how many texts.
    """

    letters: NDArray[np.uint32]
    letter_counts: NDArray[np.int64]
    codepoints: NDArray[np.uint32]
    indptr: NDArray[np.int64]
    counts: NDArray[np.int64]
    notes: dict[str, int] = field(default_factory=dict)


def load_corpus(texts: Iterable[str | bytes], options: SentencePieceOptions) -> SentencePieceCorpus:
    """Read texts as the reference's trainers do.

    Parameters
    ----------
    texts
        One sentence each.
    options
        See :class:`~jittok.training.sentencepiece_options.SentencePieceOptions`.

    Returns
    -------
    SentencePieceCorpus

    Raises
    ------
    ArgumentError
        Nothing is left, or the alphabet is larger than the vocabulary.
    """
    notes: Counter[str] = Counter()
    kept = []
    for text in texts:
        data = text.encode() if isinstance(text, str) else bytes(text)
        data = data.rstrip(b"\r\n")
        if not data:
            notes["empty"] += 1
        elif len(data) > options.max_sentence_length:
            notes["too long"] += 1
        elif OUTSIDE.encode() in data:
            notes["with U+2585"] += 1
        else:
            kept.append(data)
            if len(kept) == options.input_sentence_size:
                break
    rewriter = build_rewriter((options.normalizer(),))
    starts = np.cumsum([0] + [len(data) for data in kept])
    joined = np.frombuffer(b"".join(kept) + bytes(64), np.uint8)
    done = rewriter.apply(joined, starts[:-1].copy(), starts[1:].copy(), alignment=False)
    content = done.data.tobytes()
    sentences = [content[a:b].decode() for a, b in zip(done.starts.tolist(), done.ends.tolist(), strict=True)]
    meta = sorted((piece for piece, _ in options.meta_pieces().values()), key=len, reverse=True)
    sentences = [_with_boundaries(sentence, meta, options.pretokenization_delimiter) for sentence in sentences]
    at = 0
    while at < len(sentences):  # as the reference leaves out what is empty
        if sentences[at]:
            at += 1
        else:
            notes["nothing after normalization"] += 1
            sentences[at] = sentences[-1]
            sentences.pop()
    if not sentences:
        raise ArgumentError("texts: nothing is left to train on; expected at least one text that is not empty")
    letters: list[tuple[str, int]] = []
    if not options.auto_character_coverage:
        letters = _alphabet(sentences, options)
        alphabet = {letter for letter, _ in letters}
        outside = {ord(c): OUTSIDE for sentence in sentences for c in set(sentence) if c not in alphabet}
        sentences = [sentence.translate(outside) for sentence in sentences]
    counted = [(sentence, 1) for sentence in sentences]
    if options.split_by_whitespace:
        words: Counter[str] = Counter()
        for sentence in sentences:
            words.update(split_into_words(sentence, options))
        counted = sorted(words.items(), key=lambda item: (-item[1], item[0].encode()))
    lengths = [len(word) for word, _ in counted]
    return SentencePieceCorpus(
        letters=np.array([ord(letter) for letter, _ in letters], np.uint32),
        letter_counts=np.array([count for _, count in letters], np.int64),
        codepoints=np.frombuffer("".join(word for word, _ in counted).encode("utf-32-le"), np.uint32),
        indptr=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        counts=np.array([count for _, count in counted], np.int64),
        notes=dict(notes),
    )


def _with_boundaries(sentence: str, meta: list[str], delimiter: str) -> str:
    """Put U+001F in the place of meta pieces, the longest at each place, and then of the delimiter."""
    parts = []
    at = 0
    while at < len(sentence):
        found = next((piece for piece in meta if sentence.startswith(piece, at)), None)
        parts.append(BOUNDARY if found else sentence[at])
        at += len(found) if found else 1
    sentence = "".join(parts)
    return sentence.replace(delimiter, BOUNDARY) if delimiter else sentence


def _alphabet(sentences: list[str], options: SentencePieceOptions) -> list[tuple[str, int]]:
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(sentence)
    del counts["\0"]
    total = sum(counts.values())
    required = {letter for letter in options.required_chars if letter != "\0"}
    order = sorted({*counts, *required}, key=lambda letter: (letter not in required, -counts[letter], letter))
    covered = 0
    letters = []
    for letter in order:
        if np.float32(covered / max(total, 1)) >= np.float32(options.character_coverage):
            break
        covered += counts[letter]
        if letter != BOUNDARY:
            letters.append((letter, counts[letter]))
    meta = len(options.meta_pieces())
    if len(letters) + meta > options.vocab_size:
        raise ArgumentError(
            f"vocab_size={options.vocab_size}: the alphabet has {len(letters)} characters and there are {meta} meta "
            "pieces; expected at least as many together, or a smaller character_coverage"
        )
    return sorted(letters, key=lambda item: (-item[1], item[0]))


def split_into_words(sentence: str, options: SentencePieceOptions) -> list[str]:
    """Cut a normalised text at its blanks: before each, or behind with ``treat_whitespace_as_suffix``.

    With ``allow_whitespace_only_pieces`` runs of blanks stay together.
    """
    words: list[str] = []
    start = 0
    in_blanks = False
    for at, character in enumerate(sentence):
        is_blank = character == BLANK
        if options.treat_whitespace_as_suffix:
            if not options.allow_whitespace_only_pieces:
                if is_blank:
                    words.append(sentence[start : at + 1])
                    start = at + 1
            elif in_blanks and not is_blank:
                words.append(sentence[start:at])
                start = at
        elif at > 0 and is_blank and not (in_blanks and options.allow_whitespace_only_pieces):
            words.append(sentence[start:at])
            start = at
        in_blanks = is_blank
    if start < len(sentence):
        words.append(sentence[start:])
    return words

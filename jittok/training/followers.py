"""Words with what comes after them: seed pieces of unigram models must be followed by two different bytes at least."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.engine import thread_count
from jittok.errors import ArgumentTypeError, UnsupportedError
from jittok.tables import read_only
from jittok.training.progress import Progress
from jittok.training.sentencepiece_corpus import (
    Alphabet,
    CountedWords,
    SentencePieceCorpus,
    Spill,
    TextCounter,
    WordCounter,
    alphabet_of,
    decoded_words,
    merged_counters,
    reads_paths,
    some_texts,
    spilling,
    taken_from,
    whole_texts,
    words_of_counts,
)
from jittok.training.sentencepiece_options import BLANK, SentencePieceOptions
from jittok.training.texts import TextBatch, TextReport

#: What follows is the first byte of the next sentence; there is no next sentence.
NEXT_SENTENCE, NO_SENTENCE = 256, 512
#: First byte of U+2581, and of U+2585.
_BLANK_BYTE = BLANK.encode()[0]


class Followers(NamedTuple):
    """What comes after words.

    All arrays are of one length; every word is there at least once, and no pair of word and follower twice.
    """

    word: NDArray[np.int64]  # number of the word
    follow: NDArray[np.int64]  # first byte of the next character, plus NEXT_SENTENCE if that is the next sentence's first
    times: NDArray[np.int64]  # how often


def load_followed(
    texts: object,
    options: SentencePieceOptions,
    *,
    counts: Any = None,
    threads: int | None = None,
    memory_limit: int | None = None,
    progress: bool = False,
    **reading: Any,
) -> tuple[SentencePieceCorpus, Followers]:
    """Read texts as :func:`~jittok.training.sentencepiece_corpus.load_corpus` does, with what comes after each word.

    Parameters
    ----------
    texts, options, counts, threads, memory_limit, progress, **reading
        As there. Counts do not say what comes after words, so of every word that occurs twice the last one is taken to
        end a sentence.

    Returns
    -------
    SentencePieceCorpus, Followers
    """
    if (texts is None) == (counts is None):
        raise ArgumentTypeError("expected either texts or counts")
    if counts is not None:
        words = words_of_counts(counts, options)
        alphabet = alphabet_of(words, options)
        corpus, _ = _ordered(words, None, alphabet)
        return corpus, _before_blanks(corpus.counts, np.minimum(corpus.counts // 2, 1), -1)
    if options.split_by_whitespace and options.add_dummy_prefix and not options.treat_whitespace_as_suffix:
        return _counted(texts, options, threads, memory_limit, progress, reading)
    if memory_limit is not None:
        raise UnsupportedError(
            "memory_limit: whole texts are kept without split_by_whitespace and add_dummy_prefix, or with "
            "treat_whitespace_as_suffix; leave it out, and train on a sample"
        )
    return _looked_at(texts, options, reading)


# ----------------------------------------------------------------------------------------- words that begin with blanks


class _EndCounter(TextCounter):
    """Counts the last words of sentences too, and knows the last word of all.

    Sentences that are nothing but blanks vanish, and each is replaced with the last one that is left. So of `n` sentences
    of which `k` vanish, the last one in the end is the first from number ``n - k - 1`` on that does not.
    """

    def __init__(
        self,
        options: SentencePieceOptions,
        report: TextReport,
        strips: bool,
        spill: Spill | None = None,
        spill_of_ends: Spill | None = None,
    ):
        super().__init__(options, report, strips, spill)
        self._spill_of_ends = spill_of_ends
        self._free_ends: list[WordCounter] = []
        self._n = 0
        self._vanished = 0
        self._kept: deque[tuple[int, NDArray[np.uint8], NDArray[np.int64]]] = deque()  # number of the first, last words

    def work(self, batch: TextBatch) -> Any:
        """Count the words and last words of a batch; returns the latter besides what the words' counter returns."""
        from jittok.kernels.sentencepiece_corpus import WHOLE
        from jittok.kernels.train_unigram import copy_last_words

        counter = taken_from(self._free) or WordCounter(self._mode, self._spill)
        counter_of_ends = taken_from(self._free_ends) or WordCounter(WHOLE, self._spill_of_ends)
        left_out = np.zeros(3, np.int64)
        data, starts, ends = self.reader.read(batch, self._strips, left_out)
        counter.add(data, starts, ends)
        last = np.empty(len(starts), np.int64)
        words, indptr = np.empty(int((ends - starts).sum()), np.uint8), np.zeros(len(starts) + 1, np.int64)
        joins = int(self.reader.options.allow_whitespace_only_pieces)
        size = int(copy_last_words(read_only(data), read_only(starts), read_only(ends), joins, last, words, indptr))
        counter_of_ends.add(data, last, ends)
        self._free.append(counter)
        self._free_ends.append(counter_of_ends)
        vanished, n_bytes = int((starts == ends).sum()), int(batch.indptr[-1] - batch.indptr[0])
        return left_out, vanished, n_bytes, words[:size].copy(), indptr

    def take(self, result: Any) -> int:
        """Note what :meth:`work` gave, and remember last words as long as one of them may be the last of all."""
        left_out, vanished, n_bytes, words, indptr = result
        self._kept.append((self._n, words, indptr))
        self._n += len(indptr) - 1
        self._vanished += vanished
        while len(self._kept) > 1 and self._kept[1][0] <= self._n - self._vanished - 1:
            self._kept.popleft()
        return super().take((left_out, vanished, n_bytes))

    def ends(self) -> tuple[CountedWords, bytes]:
        """The last words of sentences, and that of the last one."""
        ends = None if self._spill_of_ends is None else self._spill_of_ends.merged(self._free_ends)
        if ends is None:
            ends = merged_counters(self._free_ends or [WordCounter(0)]).words()
        last = b""
        for first, data, indptr in self._kept:
            at = max(self._n - self._vanished - 1 - first, 0)
            there = np.flatnonzero(np.diff(indptr)[at:])
            if len(there):
                k = at + int(there[0])
                last = data[indptr[k] : indptr[k + 1]].tobytes()
                break
        return ends, last


def _counted(
    texts: object,
    options: SentencePieceOptions,
    threads: int | None,
    memory_limit: int | None,
    progress: bool,
    reading: dict[str, Any],
) -> tuple[SentencePieceCorpus, Followers]:
    """Words, which all begin with blanks; so of what follows only the ends of sentences must be counted."""
    report = TextReport()
    # Half of the memory for words, and half for the last ones of sentences.
    with spilling(memory_limit, threads, 2) as spill, spilling(memory_limit, threads, 2) as spill_of_ends:
        counter = _EndCounter(options, report, not reads_paths(texts), spill, spill_of_ends)
        with Progress(None, "B", "counting words", progress) as bar:
            batches = some_texts(texts, options, report, reading)
            counter.run(batches, thread_count(threads), bar)
        words = counter.words()
        ends, last = counter.ends()
    alphabet = alphabet_of(words, options)
    # The very last word once more, to find its number.
    n = int(ends.indptr[-1])
    data = np.concatenate((ends.data[:n], np.frombuffer(last, np.uint8), np.zeros(64, np.uint8)))
    ends = CountedWords(data, np.append(ends.indptr, n + len(last)), np.append(ends.counts, 0))
    corpus, number = _ordered(words, ends, alphabet)
    ending = np.bincount(number, weights=ends.counts, minlength=len(corpus.counts)).astype(np.int64)
    return corpus, _before_blanks(corpus.counts, ending, int(number[-1]))


def _before_blanks(counts: NDArray[np.int64], ending: NDArray[np.int64], last: int) -> Followers:
    """Followers of words that occur `counts` times, of which `ending` times last in a sentence, and once last of all."""
    next_sentence = ending.copy()
    if last >= 0:
        next_sentence[last] -= 1
    inner = np.flatnonzero(counts > ending)
    outer = np.flatnonzero(next_sentence)
    final = np.array([last] if last >= 0 else [], np.int64)
    return Followers(
        np.concatenate((inner, outer, final)),
        np.concatenate(
            (
                np.full(len(inner), _BLANK_BYTE),
                np.full(len(outer), NEXT_SENTENCE + _BLANK_BYTE),
                np.full(len(final), NO_SENTENCE),
            )
        ),
        np.concatenate(((counts - ending)[inner], next_sentence[outer], np.ones(len(final), np.int64))),
    )


def _ordered(
    words: CountedWords, more: CountedWords | None, alphabet: Alphabet
) -> tuple[SentencePieceCorpus, NDArray[np.int64]]:
    """Words in order of their counts and then of their UTF-8, equal ones counted together; and the numbers of `more`."""
    from jittok.kernels.train_unigram import copy_strings

    codepoints, indptr = decoded_words(words, alphabet)
    n = len(words.counts)
    if more is not None:
        more_codepoints, more_indptr = decoded_words(more, alphabet)
        codepoints = np.concatenate((codepoints, more_codepoints))
        indptr = np.concatenate((indptr, indptr[-1] + more_indptr[1:]))
    rank = ranked(codepoints, indptr)
    # Ranks are numbers of strings that differ, in order.
    n_ranks = int(rank.max(initial=-1)) + 1
    counts = np.zeros(n_ranks, np.int64)
    np.add.at(counts, rank[:n], words.counts)
    example = np.empty(n_ranks, np.int64)
    example[rank[::-1]] = np.arange(len(rank) - 1, -1, -1)
    order = np.argsort(-counts, kind="stable")
    number = np.empty(n_ranks, np.int64)
    number[order] = np.arange(n_ranks)
    chosen = example[order]
    lengths = np.diff(indptr)[chosen]
    new_indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    ordered = np.empty(int(new_indptr[-1]), np.uint32)
    copy_strings(codepoints, indptr[chosen], new_indptr, ordered)
    corpus = SentencePieceCorpus(alphabet.letters, alphabet.counts, ordered, new_indptr, counts[order], words.report)
    return corpus, number[rank[n:]]


def ranked(codepoints: NDArray[np.uint32], indptr: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ranks of strings in the order of their codepoints, from 0 on; equal strings have the same rank.

    Parameters
    ----------
    codepoints, indptr
        uint32[m], int64[n + 1].

    Returns
    -------
    ndarray
        int64[n]. As many codepoints are looked at at a time as fit 63 bits, of those strings that are equal so far.
    """
    from jittok.kernels.train_unigram import pack_characters

    is_there = np.zeros(0x110000, np.int32)
    is_there[codepoints] = 1
    code_of = np.cumsum(is_there, dtype=np.int32)
    bits = max(int(code_of[-1]).bit_length(), 1)
    at_once = 63 // bits
    lengths = np.diff(indptr)
    rank = np.zeros(len(lengths), np.int64)
    rest = np.arange(len(lengths))
    at = 0
    while len(rest):
        key = np.empty(len(rest), np.int64)
        pack_characters(read_only(codepoints), read_only(indptr), code_of, rest, at, bits, at_once, key)
        order = np.lexsort((key, rank[rest])) if at else np.argsort(key)
        rest, key = rest[order], key[order]
        group = rank[rest]
        is_new_group = np.ones(len(rest), np.bool_)
        is_new_group[1:] = group[1:] != group[:-1]
        is_new = is_new_group.copy()
        is_new[1:] |= key[1:] != key[:-1]
        # Ranks have gaps as wide as groups, so those of a group can be told apart within its gap.
        first = np.flatnonzero(is_new_group)
        begin = np.repeat(first, np.diff(np.append(first, len(rest))))
        new_first = np.flatnonzero(is_new)
        new_begin = np.repeat(new_first, np.diff(np.append(new_first, len(rest))))
        rank[rest] = group + new_begin - begin
        sizes = np.diff(np.append(new_first, len(rest)))
        at += at_once
        rest = rest[(np.repeat(sizes, sizes) > 1) & (lengths[rest] >= at)]
    different = np.zeros(len(rank) + 1, np.int64)
    different[rank] = 1
    return np.cumsum(different)[rank] - 1


# ---------------------------------------------------------------------------------------------------- other words


def _looked_at(
    texts: object, options: SentencePieceOptions, reading: dict[str, Any]
) -> tuple[SentencePieceCorpus, Followers]:
    """Words that end with blanks, or begin sentences without one, or are whole sentences: all must be looked at."""
    sentences = whole_texts(texts, options, reading)
    alphabet = alphabet_of(sentences, options)
    codepoints, indptr = decoded_words(sentences, alphabet)
    text, bounds = codepoints.tobytes().decode("utf-32-le"), indptr.tolist()
    found: Counter[tuple[str, int]] = Counter()
    firsts = [text[begin].encode()[0] + NEXT_SENTENCE for begin in bounds[1:-1]] + [NO_SENTENCE]
    if not options.split_by_whitespace:
        n = len(firsts)
        corpus = SentencePieceCorpus(
            alphabet.letters, alphabet.counts, codepoints, indptr, sentences.counts, sentences.report
        )
        return corpus, Followers(np.arange(n), np.array(firsts, np.int64), np.ones(n, np.int64))
    for begin, end, next_sentence in zip(bounds, bounds[1:], firsts, strict=False):
        before = ""
        for word in words_of(text[begin:end], options):
            if before:
                found[before, word[0].encode()[0]] += 1
            before = word
        found[before, next_sentence] += 1
    counts: Counter[str] = Counter()
    for (word, _), count in found.items():
        counts[word] += count
    listed = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    number_of = {word: number for number, (word, _) in enumerate(listed)}
    lengths = np.array([len(word) for word, _ in listed], np.int64)
    corpus = SentencePieceCorpus(
        alphabet.letters,
        alphabet.counts,
        np.frombuffer("".join(word for word, _ in listed).encode("utf-32-le"), np.uint32),
        np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))),
        np.array([count for _, count in listed], np.int64),
        sentences.report,
    )
    return corpus, Followers(
        np.array([number_of[word] for word, _ in found], np.int64),
        np.array([follow for _, follow in found], np.int64),
        np.array(list(found.values()), np.int64),
    )


def words_of(sentence: str, options: SentencePieceOptions) -> Iterator[str]:
    """Cut a normalised sentence at its blanks: before each, or behind with ``treat_whitespace_as_suffix``.

    With ``allow_whitespace_only_pieces`` runs of blanks stay together.

    Parameters
    ----------
    sentence
        With U+2581 for blanks.
    options
        The two that are named above.

    Yields
    ------
    str
    """
    joins = options.allow_whitespace_only_pieces
    start = 0
    for at in range(1, len(sentence)):
        was_blank, is_blank = sentence[at - 1] == BLANK, sentence[at] == BLANK
        if options.treat_whitespace_as_suffix:
            cuts = was_blank and not (joins and is_blank)
        else:
            cuts = is_blank and not (joins and was_blank)
        if cuts:
            yield sentence[start:at]
            start = at
    if start < len(sentence):
        yield sentence[start:]

"""Bookkeeping of beam search: which continuations go on, which are finished, and when nothing better can come."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jittok._jit import helper, kernel

_NOTHING = np.float32(-np.inf)


class Finished(NamedTuple):
    """The best finished sequences of each prompt.

    Attributes
    ----------
    counts : int64[prompts]
        How many there are, at most as many as beams.
    scores : float32[prompts, beams]
        Sum of the scores of the tokens, divided by a power of their number.
    lengths : int64[prompts, beams]
        Tokens of the whole sequence.
    ids, token_scores : int32, float32 [prompts, beams, capacity]
        The tokens; the score of each.
    reasons : uint8[prompts, beams]
        Why it ended; as in the marks of the candidates.
    done : uint8[prompts]
        Whether nothing more is to come.
    """

    counts: Any
    scores: Any
    lengths: Any
    ids: Any
    token_scores: Any
    reasons: Any
    done: Any


class Beams(NamedTuple):
    """The sequences that go on.

    Attributes
    ----------
    ids, token_scores : int32, float32 [prompts, beams, capacity]
        The tokens, the prompt's first; the score of each.
    scores : float32[prompts, beams]
        Their sums, in falling order; minus infinity for a beam that there is not.
    parents : int64[prompts, beams]
        The beam that each continues.
    """

    ids: Any
    token_scores: Any
    scores: Any
    parents: Any


class Candidates(NamedTuple):
    """What :func:`jittok.kernels.logits.best_continuations` found.

    Attributes
    ----------
    scores, beams, tokens : float32, int32, int32 [prompts, k]
        In falling order of the scores.
    counts : int64[prompts]
        How many there are.
    marks : uint8[prompts, k]
        0 for one that goes on, else why it ends.
    """

    scores: Any
    beams: Any
    tokens: Any
    counts: Any
    marks: Any


@helper
def add_finished(
    finished: Any, old: Any, prompt: int, beam: int, length: int, token: int, total: np.float32, score: float, reason: int
) -> int:
    """Add a sequence, of beam `beam` and one more token (none if below 0), if it is among the best; returns whether."""
    width = finished.scores.shape[1]
    place = np.int64(finished.counts[prompt])
    if place == width:
        place = np.int64(0)
        for i in range(1, width):
            if finished.scores[prompt, i] < finished.scores[prompt, place]:
                place = np.int64(i)
        if not np.float32(score) > finished.scores[prompt, place]:
            return 0
    else:
        finished.counts[prompt] += 1
    for i in range(length):
        finished.ids[prompt, place, i] = old.ids[prompt, beam, i]
        finished.token_scores[prompt, place, i] = old.token_scores[prompt, beam, i]
    if token >= 0:
        finished.ids[prompt, place, length] = token
        finished.token_scores[prompt, place, length] = total - old.scores[prompt, beam]
        length += 1
    finished.lengths[prompt, place] = length
    finished.scores[prompt, place] = np.float32(score)
    finished.reasons[prompt, place] = reason
    return 1


@kernel
def advance_beams(
    candidates: Any,
    old: Any,
    new: Any,
    finished: Any,
    lengths: Any,
    last: Any,
    divisors: Any,
    generated: int,
    stop_when_full: int,
    is_grouped: int,
) -> int:
    """Choose what goes on from the candidates, and keep what is finished.

    Parameters
    ----------
    candidates : Candidates
        Those with a mark are finished; they count only among the first `beams`.
    old, new : Beams
        Input; output.
    finished : Finished
        Input and output.
    lengths : int64[prompts]
        Tokens of each sequence without the new one.
    last : int64[prompts]
        Tokens that may be generated for each prompt.
    divisors : float64[1 + prompts]
        What the score of a sequence that ends now is divided by; then, for each prompt, what that of the best one that may
        still come is divided by. A prompt is done when, with that, its best beam is not better than its worst finished one.
    generated : int
        Tokens generated before this one.
    stop_when_full : int
        Whether a prompt is done as soon as it has as many finished sequences as beams.
    is_grouped : int
        Of diverse groups: the rules of transformers' older search. The best candidate, not the best beam that goes on, is
        compared with the finished ones, after they were added; and what goes on when the length is reached is added then.

    Returns
    -------
    int
        How many prompts are not done. Cost: the copied tokens.
    """
    width = old.scores.shape[1]
    left = np.int64(0)
    for prompt in range(old.scores.shape[0]):
        if finished.done[prompt]:
            for beam in range(width):
                new.scores[prompt, beam] = _NOTHING
                new.parents[prompt, beam] = 0
            continue
        length = np.int64(lengths[prompt])
        is_last = generated + 1 >= last[prompt]
        divisor = np.float64(divisors[0])
        was_full = finished.counts[prompt] == width and stop_when_full != 0
        going = np.int64(0)
        for rank in range(candidates.counts[prompt]):
            mark = np.int64(candidates.marks[prompt, rank])
            total = np.float32(candidates.scores[prompt, rank])
            beam = np.int64(candidates.beams[prompt, rank])
            token = np.int64(candidates.tokens[prompt, rank])
            if mark or (is_last and not is_grouped):
                if rank < width and not was_full:
                    add_finished(
                        finished, old, prompt, beam, length, token, total, np.float64(total) / divisor, max(mark, 1)
                    )
                continue
            if going == width:
                if is_grouped:
                    break
                continue
            for i in range(length):
                new.ids[prompt, going, i] = old.ids[prompt, beam, i]
                new.token_scores[prompt, going, i] = old.token_scores[prompt, beam, i]
            new.ids[prompt, going, length] = token
            new.token_scores[prompt, going, length] = total - old.scores[prompt, beam]
            new.scores[prompt, going] = total
            new.parents[prompt, going] = beam
            going += 1
        for beam in range(going, width):
            new.scores[prompt, beam] = _NOTHING
            new.parents[prompt, beam] = 0
        # Whether something better can come.
        is_done = going == 0
        if finished.counts[prompt] == width:
            best = new.scores[prompt, 0]
            if is_grouped:
                best = candidates.scores[prompt, 0]
            worst = np.float32(finished.scores[prompt, 0])
            for i in range(1, width):
                worst = min(worst, np.float32(finished.scores[prompt, i]))
            if stop_when_full or not np.float32(np.float64(best) / divisors[1 + prompt]) > worst:
                is_done = True
        if is_last and is_grouped and not is_done:
            for beam in range(going):
                score = np.float64(new.scores[prompt, beam]) / divisor
                add_finished(finished, new, prompt, beam, length + 1, -1, new.scores[prompt, beam], score, 1)
        if is_last or is_done:
            finished.done[prompt] = 1
        else:
            left += 1
    return left

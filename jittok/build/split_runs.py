r"""Boundaries within long runs of characters, which no window of a few codepoints shows.

Two kinds are common, and machine code (:mod:`jittok._mask_code`) finds them without the automaton. A class whose
runs are cut after so many of them, as ``\p{N}{1,3}`` does: a run always begins a pre-token, so that the place
within it decides. And a place followed by a run, as of blanks after a line break, where what ends the run decides:
``\s*[\r\n]+`` goes on to the last line break, and if there is none, the pre-token ends before the run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.build.split_windows import LEFT_LENGTHS, NO, YES, left_contexts, votes_of
from jittok.tables import END_CLASS, START, Runs, SplitTables


def find_runs(split: SplitTables) -> Runs:
    """What is known of runs.

    Parameters
    ----------
    split
        The tables of a split regex.
    """
    end = int(split.numbers[END_CLASS])
    shift = end.bit_length()
    entries = split.transitions.reshape(-1, 1 << shift)[:, : end + 1].astype(np.int64)
    automaton = _Automaton((entries >> 1) >> shift, (entries & 1).astype(bool), int(split.numbers[START]) >> shift)
    return Runs(*_counted(automaton), *_decided_by_end(automaton))


class _Automaton(NamedTuple):
    next_state: NDArray[np.int64]  # [state, class]; 0 is dead
    accepts: NDArray[np.bool_]  # [state, class]
    start: int


def _counted(automaton: _Automaton) -> tuple[frozenset[int], int]:
    """A class of whose runs every so many are a pre-token, and how many; an empty set if there is none."""
    next_state, accepts, start = automaton
    n_states, n_classes = next_state.shape
    for c in range(n_classes - 1):
        chain: list[int] = []
        state = int(next_state[start, c])
        while state != 0 and state not in chain:
            chain.append(state)
            state = int(next_state[state, c])
        others = [x for x in range(n_classes) if x != c]
        outside = [q for q in range(1, n_states) if q != start and q not in chain]
        if (
            state == 0
            and len(chain) == 3
            and start not in chain
            and not (next_state == start).any()
            and not accepts[start, c]
            and accepts[chain].all()  # a match may end anywhere in a run, so it ends where it must
            and not next_state[np.ix_(chain, others)].any()
            and not next_state[outside, c].any()  # no pre-token goes on with this class, so its first begins one
        ):
            return frozenset([c]), len(chain)
    return frozenset(), 0


def _decided_by_end(automaton: _Automaton) -> tuple[frozenset[int], frozenset[int]]:
    """Classes of a run before which there is a boundary wherever that is undecided, and classes that may change that.

    Those follow the run. The sets are empty if there is no such run.
    """
    next_state, accepts, start = automaton
    n_states, n_classes = next_state.shape
    end = n_classes - 1
    best: tuple[frozenset[int], frozenset[int]] = frozenset(), frozenset()
    length = next(length for most, length in LEFT_LENGTHS if n_classes <= most)
    votes = votes_of(next_state, accepts, start)
    for state in range(1, n_states):
        run = [c for c in range(end) if next_state[state, c] == state and not accepts[state, c]]
        if len(run) <= len(best[0]):
            continue
        stops = [c for c in range(end) if c not in run]
        changed = frozenset(c for c in stops if next_state[state, c] != 0 or accepts[state, c])
        if len(changed) == len(stops):
            continue
        hopeful = votes.copy()
        for before in range(1, n_states):
            for c in run:
                for d in run:
                    middle = next_state[before, c]
                    if accepts[before, c] and next_state[middle, d] == state and not accepts[middle, d]:
                        hopeful[before, c, d] = YES
        left, rows = left_contexts(next_state, accepts, start, votes, length)
        hopeful_left, hopeful_rows = left_contexts(next_state, accepts, start, hopeful, length)
        within = np.ix_(range(len(rows)), run, run)
        undecided = (rows[within] == YES | NO)[left]
        hopeful_within = np.ix_(range(len(hopeful_rows)), run, run)
        if undecided.any() and (hopeful_rows[hopeful_within][hopeful_left][undecided] == YES).all():
            best = frozenset(run), changed | {end}
    return best

"""SplitAutomaton -> SplitTables: which neighbourhoods of codepoints decide a boundary by themselves.

Any text that ends in the classes ``x y z`` leaves the automaton, in the pre-token that holds `z`, in one of a
few states. They are found here by following every state through every class. If all of them agree on whether
a boundary lies between `z` and the next class `c`, given the class `d` after it, the five-class window decides;
otherwise the kernel runs the automaton from the last boundary. The set of states may hold ones that no text
reaches: that only loses a decision, never makes a wrong one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jittok.tables import SplitAutomaton, SplitTables

#: Bits of a window index that come from the codepoints before the boundary, and from the two after it.
LEFT_BITS = 14
RIGHT_BITS = 10

_NO, _YES = 1, 2  # votes; their union, 3, is undecided


def build_split_tables(automaton: SplitAutomaton) -> SplitTables:
    """Flatten `automaton` and the windows that follow from it.

    Parameters
    ----------
    automaton
        A split regex; see :class:`~jittok.tables.SplitAutomaton`.

    Returns
    -------
    SplitTables
        Read-only arrays.
    """
    next_state, accepts, start = _dense(automaton)
    votes = _votes(next_state, accepts, start)
    n_classes = next_state.shape[1]
    for left_length in (3, 2, 1, 0):
        left_of, rows = _left_contexts(next_state, accepts, start, votes, left_length)
        groups = [_group(left_of, axis) for axis in range(left_length)]
        groups += [_group(rows, 1), _group(rows, 2)]
        bits = [max(1, int(group.max()).bit_length()) for group in groups]
        left_bits, right_bits = sum(bits[:-2]), sum(bits[-2:])
        fits = left_bits <= LEFT_BITS and right_bits <= RIGHT_BITS and (len(rows) << right_bits) <= 1 << 16
        if fits or left_length == 0:
            break
    if not fits:
        # Nothing is decided locally: one undecided entry, every boundary comes from the automaton.
        left_of, rows = np.zeros((), np.int64), np.full((1, 1, 1), 3, np.uint8)
        groups, bits, left_bits, right_bits = [np.zeros(n_classes, np.int64)] * 2, [1, 1], 0, 2
        rows = np.broadcast_to(rows, (1, n_classes, n_classes))

    places = [0, 1, 2, 3, 4][3 - (len(groups) - 2) : 3] + [3, 4]
    shifts = list(np.cumsum([0, *bits[:-3]]))[: len(groups) - 2] if len(groups) > 2 else []
    shifts += [LEFT_BITS + bits[-1], LEFT_BITS]
    fields = np.zeros(256, np.uint32)
    masks = np.zeros(5, np.uint32)
    for place, group, shift, width in zip(places, groups, shifts, bits, strict=True):
        fields[:n_classes] |= group.astype(np.uint32) << np.uint32(shift)
        masks[place] = ((1 << width) - 1) << int(shift)
    left_row = np.zeros(1 << left_bits, np.uint16)
    contexts = np.indices(left_of.shape)
    index = np.zeros(left_of.shape, np.int64)
    for axis in range(left_of.ndim):
        index |= groups[axis][contexts[axis]] << int(shifts[axis])
    left_row[index] = left_of << right_bits
    decision = np.zeros(len(rows) << right_bits, np.uint8)
    row, current, following = np.indices(rows.shape)
    at = (row << right_bits) | (groups[-2][current] << bits[-1]) | groups[-1][following]
    decision[at] = np.array([0, 0, 1, 2], np.uint8)[rows]

    fields |= np.arange(256, dtype=np.uint32) << np.uint32(24)
    class_of = automaton.classes.class_of
    tables = SplitTables(
        page_of=automaton.classes.page_of,
        class_of=class_of,
        transitions=automaton.transitions,
        ascii_fields=fields[class_of[:128]],
        class_fields=fields,
        masks=masks,
        left_row=left_row,
        decision=decision,
        numbers=np.array([automaton.start, automaton.end_class], np.int64),
    )
    for array in tables:
        array.setflags(write=False)
    return tables


def _dense(automaton: SplitAutomaton) -> tuple[NDArray[np.int64], NDArray[np.bool_], int]:
    """Next state and accept flag as [state, class] with plain state numbers."""
    shift = automaton.row_shift
    entries = automaton.transitions.reshape(-1, 1 << shift)[:, : automaton.end_class + 1].astype(np.int64)
    return (entries >> 1) >> shift, (entries & 1).astype(bool), automaton.start >> shift


def _votes(next_state: NDArray[np.int64], accepts: NDArray[np.bool_], start: int) -> NDArray[np.uint8]:
    """Votes [state, c, d] on a boundary before `c` when the pre-token so far is in `state`.

    The last state stands for text that no match covers (a gap, which runs until a match begins).
    """
    n_states, n_classes = next_state.shape
    end = n_classes - 1
    votes = np.zeros((n_states + 1, n_classes, n_classes), np.uint8)
    ends_before_c = accepts[:, :, None]
    survives_c = (next_state != 0)[:, :, None]
    ends_before_d = accepts[next_state]
    survives_d = next_state[next_state] != 0
    # The pre-token is known to hold the codepoint before c. If the automaton dies without a match end at or after c,
    # the state was not possible at all: no vote.
    dies_at_c = np.where(ends_before_c, _YES, 0)
    dies_at_d = np.where(ends_before_c, _YES, 0)
    lives_on = np.where(ends_before_c, _YES | _NO, _NO)
    votes[:n_states] = np.where(
        survives_c, np.where(ends_before_d, _NO, np.where(survives_d, lives_on, dies_at_d)), dies_at_c
    )
    first = next_state[start]
    for c in range(n_classes):
        if accepts[start, c]:
            votes[n_states, c] = _YES  # an empty match cuts, and so does a longer one
        elif first[c] == 0:
            votes[n_states, c] = _NO
        else:
            certain = accepts[first[c]]
            hopeless = next_state[first[c]] == 0
            votes[n_states, c] = np.where(certain, _YES, np.where(hopeless, _NO, _YES | _NO))
    votes[:, end] = _YES
    return votes


def _left_contexts(
    next_state: NDArray[np.int64],
    accepts: NDArray[np.bool_],
    start: int,
    votes: NDArray[np.uint8],
    length: int,
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Row number for every `length` classes before a boundary, and the decision rows [row, c, d].

    Sets of states are bit masks. The set after classes ``x y z`` is the set after ``x y``, moved on by `z`; the
    set after a single class is the fixed point over all texts.
    """
    n_states, n_classes = next_state.shape
    end, gap, beginning = n_classes - 1, n_states, n_states + 1
    certain = accepts.all(axis=1)
    first = []
    for c in range(end):
        state = int(next_state[start, c])
        first.append(1 << gap if state == 0 else 1 << state if certain[state] else 1 << state | 1 << gap)
    successors = []
    for state in range(n_states):
        row = []
        for c in range(end):
            follow = int(next_state[state, c])
            options = 1 << follow if follow else 0
            if accepts[state, c] and not (follow and certain[follow]):
                options |= first[c]
            row.append(options)
        successors.append(row)
    successors += [first, first]  # of the gap, of the beginning of a text

    moved: dict[tuple[int, int], int] = {}

    def move(states: int, c: int) -> int:
        if c == end:
            return 1 << beginning
        if (states, c) not in moved:
            result, rest = 0, states
            while rest:
                lowest = rest & -rest
                result |= successors[lowest.bit_length() - 1][c]
                rest ^= lowest
            moved[states, c] = result
        return moved[states, c]

    after_one = [0] * end + [1 << beginning]
    changed = True
    while changed:
        changed = False
        for before in range(n_classes):
            for c in range(end):
                larger = after_one[c] | move(after_one[before], c)
                changed |= larger != after_one[c]
                after_one[c] = larger

    numbers: dict[int, int] = {}

    def number(states: int) -> int:
        return numbers.setdefault(states, len(numbers))

    if length == 0:
        union = 0
        for states in after_one:
            union |= states
        left_of = np.array(number(union))
    else:
        left_of = np.array([number(states) for states in after_one])
        for _ in range(length - 1):
            known = list(numbers)
            table = np.array([[number(move(states, c)) for c in range(n_classes)] for states in known])
            left_of = table[left_of]
    rows = np.zeros((len(numbers), n_classes, n_classes), np.uint8)
    for states, row_number in numbers.items():
        if states >> beginning & 1:
            rows[row_number] |= _YES
        for state in range(n_states + 1):
            if states >> state & 1:
                rows[row_number] |= votes[state]
    rows[:, end] = _YES
    unique, inverse = np.unique(rows.reshape(len(rows), -1), axis=0, return_inverse=True)
    return inverse.ravel()[left_of].reshape(left_of.shape), unique.reshape(-1, n_classes, n_classes)


def _group(table: NDArray[np.generic], axis: int) -> NDArray[np.int64]:
    """Number the indices along `axis` so that equal numbers mean equal slices."""
    slices = np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)
    return np.unique(slices, axis=0, return_inverse=True)[1].ravel().astype(np.int64)

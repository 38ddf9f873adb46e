"""SplitAutomaton -> SplitTables: which neighbourhoods of codepoints decide a boundary by themselves.

Any text that ends in the classes ``x y z`` leaves the automaton, in the pre-token that holds `z`, in one of a
few states. They are found here by following every state through every class. If all of them agree on whether
a boundary lies between `z` and the next class `c`, given the class `d` after it, the five-class window decides;
otherwise the kernel runs the automaton from the last boundary. The set of states may hold ones that no text
reaches: that only loses a decision, never makes a wrong one.

The decision is then written as a *mask program*: Boolean operations on bit masks with one bit for each place in
the text ("is of one of these classes", the same some places further on or back, and, or), so that the kernel
decides 512 places with each operation. This is the bit-parallel text processing of Parabix (Cameron et al.,
"Bitwise data parallelism in regular expression matching", 2014), with programs derived from an automaton.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jittok.tables import (
    MASK_AHEAD,
    MASK_AND,
    MASK_BACK,
    MASK_NOT,
    MASK_OR,
    SplitAutomaton,
    SplitTables,
)

#: Codepoints before a boundary that a window looks at, for automata with so many classes.
LEFT_LENGTHS = ((40, 3), (100, 2), (255, 1))
#: A program longer than this is not worth running: the automaton does all.
MOST_OPERATIONS = 1200

#: In place of an operation: the mask of a class.
_CLASS = -1
#: Votes; their union, 3, is undecided.
NO, YES = 1, 2


def build_split_tables(automaton: SplitAutomaton) -> SplitTables:
    """Flatten `automaton` and the mask program that follows from it.

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
    votes = votes_of(next_state, accepts, start)
    n_classes = next_state.shape[1]
    left_length = next(length for most, length in LEFT_LENGTHS if n_classes <= most)
    left_of, rows = left_contexts(next_state, accepts, start, votes, left_length)
    program = _Program(n_classes)
    undecided = program.decision(left_of, np.where(rows == YES | NO, YES, NO))
    # What is said of undecided places does not matter, which leaves fewer cases to tell apart.
    decided = program.decision(left_of, np.where(rows == YES | NO, 0, rows))
    decided = program.combine(MASK_AND, decided, program.node(MASK_NOT, undecided, 0))
    if len(program.nodes) > MOST_OPERATIONS:
        # Only the ends of texts are decided by masks; the automaton finds all other boundaries.
        program = _Program(n_classes)
        edge = frozenset([n_classes - 1])
        decided = program.combine(MASK_OR, program.members(edge), program.shifted(edge, -1))
        undecided = program.node(MASK_NOT, decided, 0)
    operations, outputs, n_masks = program.allocate([decided, undecided])
    class_of, end_class = automaton.classes.class_of, automaton.end_class
    entry_class = np.full(256, end_class, np.uint8)
    entry_class[:128] = class_of[:128]
    entry_class[128 : 128 + end_class] = np.arange(end_class)
    tables = SplitTables(
        page_of=automaton.classes.page_of,
        class_of=automaton.classes.class_of,
        transitions=automaton.transitions,
        entry_class=entry_class,
        program=operations,
        numbers=np.array([automaton.start, end_class, *outputs, n_masks], np.int64),
    )
    for array in tables:
        array.setflags(write=False)
    return tables


class _Program:
    """A mask program under construction; equal operations are made once."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        # The first nodes are the masks of the classes, which no operation makes.
        self.nodes: list[tuple[int, int, int]] = [(_CLASS, c, 0) for c in range(n_classes)]
        self._numbers: dict[tuple[int, int, int], int] = {}
        self._sets = {frozenset([c]): c for c in range(n_classes)}

    def node(self, operation: int, a: int, b: int) -> int:
        """The number of an operation's result."""
        if operation in (MASK_OR, MASK_AND) and a > b:
            a, b = b, a
        key = (operation, a, b)
        if key not in self._numbers:
            self._numbers[key] = len(self.nodes)
            self.nodes.append(key)
        return self._numbers[key]

    def combine(self, operation: int, a: int, b: int) -> int:
        return a if a == b else self.node(operation, a, b)

    def any_of(self, terms: list[int]) -> int:
        """The union of masks; the empty mask for none."""
        if not terms:
            all_classes = self.members(frozenset(range(self.n_classes)))
            return self.node(MASK_NOT, all_classes, 0)
        result = terms[0]
        for term in terms[1:]:
            result = self.combine(MASK_OR, result, term)
        return result

    def members(self, classes: frozenset[int]) -> int:
        """Places whose class is one of `classes`, from the largest set made before that is part of them."""
        if classes not in self._sets:
            if 2 * len(classes) > self.n_classes + 1 and len(classes) < self.n_classes:
                others = self.members(frozenset(range(self.n_classes)) - classes)
                self._sets[classes] = self.node(MASK_NOT, others, 0)
            else:
                parts = [known for known in self._sets if known < classes]
                best = max(parts, key=lambda known: (len(known), sorted(known)))
                rest = classes - best
                self._sets[classes] = self.node(MASK_OR, self.members(best), self.members(rest))
        return self._sets[classes]

    def shifted(self, classes: frozenset[int], offset: int) -> int:
        """Places from which the place `offset` further on is one of `classes`."""
        mask = self.members(classes)
        if offset == 0:
            return mask
        return self.node(MASK_AHEAD, mask, 0) if offset > 0 else self.node(MASK_BACK, mask, -offset)

    def decision(self, left_of: NDArray[np.int64], wanted: NDArray[np.uint8]) -> int:
        """A mask of places where ``wanted[left_of[..., y, z], c, d]`` is YES, and none where it is NO; else any."""
        terms = []
        columns = wanted.transpose(1, 2, 0)
        flat, column_of = _merged(columns.reshape(-1, len(wanted)))
        column_of = column_of.reshape(self.n_classes, self.n_classes)
        for number, column in enumerate(flat):
            if not (column == YES).any():
                continue
            # Classes c with the same d belong together.
            rights: dict[frozenset[int], list[int]] = {}
            for c in range(self.n_classes):
                following = frozenset(np.flatnonzero(column_of[c] == number).tolist())
                if following:
                    rights.setdefault(following, []).append(c)
            right = self.any_of([self._product([(frozenset(c), 0), (d, 1)]) for d, c in rights.items()])
            left = self._left(column[left_of], -1)
            terms.append(right if left is None else self.combine(MASK_AND, left, right))
        return self.any_of(terms)

    def _between(self, table: NDArray[np.uint8]) -> frozenset[int]:
        """A set with all classes for which `table` is YES and none for which it is NO, one made before if possible."""
        least = frozenset(np.flatnonzero(table == YES).tolist())
        most = frozenset(np.flatnonzero(table != NO).tolist())
        if least in self._sets:
            return least
        return next((known for known in self._sets if least <= known <= most), least)

    def _product(self, factors: list[tuple[frozenset[int], int]]) -> int:
        """Places where every factor (classes, offset) holds."""
        useful = [(classes, offset) for classes, offset in factors if len(classes) < self.n_classes]
        if not useful:
            return self.members(frozenset(range(self.n_classes)))
        result = self.shifted(*useful[0])
        for classes, offset in useful[1:]:
            result = self.combine(MASK_AND, result, self.shifted(classes, offset))
        return result

    def _left(self, table: NDArray[np.uint8], offset: int) -> int | None:
        """A mask of left contexts for which `table`, whose last axis is the class at `offset`, says YES; None for all."""
        if not (table == NO).any():
            return None
        if table.ndim == 1:
            return self.shifted(self._between(table), offset)
        slices = np.moveaxis(table, -1, 0)
        flat, slice_of = _merged(slices.reshape(len(slices), -1))
        terms = []
        for number, values in enumerate(flat):
            if (values == YES).any():
                classes = frozenset(np.flatnonzero(slice_of == number).tolist())
                rest = self._left(values.reshape(table.shape[:-1]), offset - 1)
                here = self.shifted(classes, offset)
                terms.append(here if rest is None else self.combine(MASK_AND, here, rest))
        return self.any_of(terms)

    def allocate(self, outputs: list[int]) -> tuple[NDArray[np.int32], list[int], int]:
        """The operations that `outputs` need, with masks reused once they are read no more.

        Returns rows (operation, result, first operand, second operand) flattened, the masks of the outputs, and the
        number of masks.
        """
        needed: set[int] = set()
        work = list(outputs)
        while work:
            number = work.pop()
            if number not in needed:
                needed.add(number)
                work.extend(self._operands(number))
        order = sorted(needed)
        last_use = {number: number for number in order}
        for number in order:
            for operand in self._operands(number):
                last_use[operand] = max(last_use[operand], number)
        for number in outputs:
            last_use[number] = len(self.nodes)
        n_masks = self.n_classes
        mask_of = {c: c for c in range(self.n_classes)}
        free = [c for c in range(self.n_classes) if c not in needed]
        rows = []
        for number in order:
            operation, a, b = self.nodes[number]
            if operation == _CLASS:
                continue
            # The result may not take an operand's place: shifts read neighbouring words.
            if free:
                mask = free.pop()
            else:
                mask = n_masks
                n_masks += 1
            mask_of[number] = mask
            rows.append((operation, mask, mask_of[a], mask_of[b] if operation in (MASK_OR, MASK_AND) else b))
            free.extend(mask_of[operand] for operand in set(self._operands(number)) if last_use[operand] == number)
        return np.array(rows, np.int32).ravel(), [mask_of[number] for number in outputs], n_masks

    def _operands(self, number: int) -> list[int]:
        operation, a, b = self.nodes[number]
        if operation == _CLASS:
            return []
        return [a, b] if operation in (MASK_OR, MASK_AND) else [a]


def _merged(rows: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Rows of which none says YES where another says NO as one; returns these, and the number of each row's own."""
    flat, inverse = np.unique(rows, axis=0, return_inverse=True)
    merged: list[NDArray[np.uint8]] = []
    number_of = np.zeros(len(flat), np.int64)
    # Those that say most first; what says nothing goes with any.
    for i in np.argsort(-(flat != 0).sum(axis=1), kind="stable"):
        for number, row in enumerate(merged):
            if not ((row | flat[i]) == YES | NO).any():
                merged[number] = row | flat[i]
                break
        else:
            number = len(merged)
            merged.append(flat[i])
        number_of[i] = number
    return np.array(merged), number_of[inverse.ravel()]


def _dense(automaton: SplitAutomaton) -> tuple[NDArray[np.int64], NDArray[np.bool_], int]:
    """Next state and accept flag as [state, class] with plain state numbers."""
    shift = automaton.row_shift
    entries = automaton.transitions.reshape(-1, 1 << shift)[:, : automaton.end_class + 1].astype(np.int64)
    return (entries >> 1) >> shift, (entries & 1).astype(bool), automaton.start >> shift


def votes_of(next_state: NDArray[np.int64], accepts: NDArray[np.bool_], start: int) -> NDArray[np.uint8]:
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
    dies_at_c = np.where(ends_before_c, YES, 0)
    dies_at_d = np.where(ends_before_c, YES, 0)
    lives_on = np.where(ends_before_c, YES | NO, NO)
    votes[:n_states] = np.where(
        survives_c, np.where(ends_before_d, NO, np.where(survives_d, lives_on, dies_at_d)), dies_at_c
    )
    first = next_state[start]
    for c in range(n_classes):
        if accepts[start, c]:
            votes[n_states, c] = YES  # an empty match cuts, and so does a longer one
        elif first[c] == 0:
            votes[n_states, c] = NO
        else:
            certain = accepts[first[c]]
            hopeless = next_state[first[c]] == 0
            votes[n_states, c] = np.where(certain, YES, np.where(hopeless, NO, YES | NO))
    votes[:, end] = YES
    return votes


def left_contexts(
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
    certain: NDArray[np.bool_] = np.asarray(accepts.all(axis=1))
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
            return int(1 << beginning)
        if (states, c) not in moved:
            result, rest = 0, states
            while rest:
                lowest = rest & -rest
                result |= successors[lowest.bit_length() - 1][c]
                rest ^= lowest
            moved[states, c] = result
        return int(moved[states, c])

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
            rows[row_number] |= YES
        for state in range(n_states + 1):
            if states >> state & 1:
                rows[row_number] |= votes[state]
    rows[:, end] = YES
    unique, inverse = np.unique(rows.reshape(len(rows), -1), axis=0, return_inverse=True)
    return inverse.ravel()[left_of].reshape(left_of.shape), unique.reshape(-1, n_classes, n_classes)

"""Split patterns as leftmost-first DFAs.

The tree of :mod:`~jittok.build.regex_syntax` becomes a list of instructions (a Thompson NFA), and the sets of its
threads, in order of preference, become the states of the DFA. A match found by a thread ends all threads
that the regex engine would have tried later; threads that it tried earlier go on and may replace the match. The
next codepoint's class is known on a transition, which resolves ``$`` and look-ahead by one codepoint.

Atomic groups and possessive quantifiers: when a thread leaves an atomic group, those threads die that entered
the group together with it and would have been tried later. Threads that would have been tried earlier and are
still inside may leave it later, and then kill what became of the first one. A DFA state therefore remembers, for
each thread, which entries of atomic groups it is inside of, and which it has left while earlier threads are still
inside. Only when a *match* could still be revoked in this way is the pattern refused.

References: R. Cox, "Regular Expression Matching: the Virtual Machine Approach" (2009); J. Hopcroft, J. Ullman,
"Introduction to Automata Theory" (subset construction, minimisation).
"""

from __future__ import annotations

import functools
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from jittok.build.regex_syntax import (
    Atomic,
    Characters,
    Choice,
    Dialect,
    NextIs,
    Node,
    Repeat,
    Sequence,
    can_be_empty,
    parse,
)
from jittok.errors import ArgumentError, ArgumentTypeError, UnsupportedError
from jittok.tables import CodepointClasses, SplitAutomaton
from jittok.unicode import bert, classes, intervals
from jittok.unicode.intervals import END, Intervals
from jittok.unicode.scripts import script_groups

#: Limits on the size of what is built; the largest pattern known in use needs 270 instructions and 120 states.
MAX_INSTRUCTIONS = 20_000
MAX_STATES = 4096
MAX_CLASSES = 126
MAX_CLASSES_BEFORE_MERGE = 1024
#: Threads followed in all states together: bounds the time of a hostile pattern.
MAX_WORK = 300_000

# Operations of the NFA.
_CHARACTERS, _NEXT_IS, _SPLIT, _ENTER, _LEAVE, _MATCH = range(6)


class _Instruction(NamedTuple):
    operation: int
    set_bit: int  # of _CHARACTERS and _NEXT_IS: 1 << number of the set
    target: int
    other: int  # of _SPLIT: the less preferred target


class _Thread(NamedTuple):
    """A place in the NFA, and the entries of atomic groups on which its life depends."""

    place: int
    inside: tuple[int, ...]  # entries of atomic groups that it is in, outermost first
    left: tuple[int, ...]  # entries that it has left while a preferred thread is still inside


class _Program:
    """The NFA, built from the end of the pattern to its start."""

    def __init__(self, pattern: str, dialect: Dialect) -> None:
        self.pattern = pattern
        self.dialect = dialect
        self.instructions: list[_Instruction] = []
        #: For the instruction that decides on a loop whose body can be empty: what follows the loop.
        self.loop_exits: dict[int, int] = {}
        self.sets: list[Intervals] = []
        self._numbers: dict[bytes, int] = {}
        self._accepts: list[bool] = []  # for each instruction: a match follows from it without conditions
        self._steps = 0

    def add(self, operation: int, target: int, *, set_bit: int = 0, other: int = -1) -> int:
        if len(self.instructions) >= MAX_INSTRUCTIONS:
            self.refuse(f"it repeats too much: it needs more than {MAX_INSTRUCTIONS} instructions")
        self.instructions.append(_Instruction(operation, set_bit, target, other))
        accepts = self._accepts
        passing = operation in (_SPLIT, _ENTER, _LEAVE) and target >= 0
        accepts.append(
            operation == _MATCH or (passing and (accepts[target] or (operation == _SPLIT and accepts[other])))
        )
        return len(self.instructions) - 1

    def refuse(self, reason: str) -> NoReturn:
        shown = self.pattern if len(self.pattern) <= 200 else self.pattern[:200] + "..."
        raise UnsupportedError(
            f"split pattern {shown!r} cannot be compiled to a table: {reason}; use a simpler pattern"
        )

    def set_bit(self, members: Intervals) -> int:
        key = members.tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self.sets)
            self.sets.append(members)
        return 1 << self._numbers[key]

    def compile(self, node: Node, follow: int) -> int:
        """Add `node`, which goes on at instruction `follow`, and return its first instruction."""
        self._steps += 1
        if self._steps > 10 * MAX_INSTRUCTIONS:
            self.refuse("it repeats too much")
        if isinstance(node, Characters):
            return self.add(_CHARACTERS, follow, set_bit=self.set_bit(node.members))
        if isinstance(node, NextIs):
            return self.add(_NEXT_IS, follow, set_bit=self.set_bit(node.members))
        if isinstance(node, Sequence):
            for item in reversed(node.items):
                follow = self.compile(item, follow)
            return follow
        if isinstance(node, Choice):
            targets = [self.compile(item, follow) for item in reversed(node.items)]
            entry = targets[0]
            for target in targets[1:]:
                entry = self.add(_SPLIT, target, other=entry)
            return entry
        if isinstance(node, Atomic):
            if self._accepts[follow]:
                # What follows always matches, so the first way out of the group is final anyway.
                return self.compile(node.item, follow)
            return self.add(_ENTER, self.compile(node.item, self.add(_LEAVE, follow)))
        return self.repeat(node, follow)

    def repeat(self, node: Repeat, follow: int) -> int:
        if node.maximum is None:
            if self.dialect != "oniguruma" and can_be_empty(node.item):
                # Its two engines disagree on what an iteration does that consumes nothing.
                self.refuse("it repeats without limit something that can match the empty string")
            loop, body = self.loop(node, follow)
            entry = loop if node.minimum == 0 else body
            copies = node.minimum - 1
        else:
            entry = follow
            for _ in range(node.maximum - node.minimum):
                entry = self.branch(self.compile(node.item, entry), follow, node.lazy)
            copies = node.minimum
        for _ in range(copies):
            entry = self.compile(node.item, entry)
        return entry

    def loop(self, node: Repeat, follow: int) -> tuple[int, int]:
        """Add a loop; return the instruction that decides whether to go on, and the first of the body."""
        loop = self.add(_SPLIT, -1)
        self._accepts[loop] = self._accepts[follow]
        body = self.compile(node.item, loop)
        first, second = (follow, body) if node.lazy else (body, follow)
        self.instructions[loop] = _Instruction(_SPLIT, 0, first, second)
        if can_be_empty(node.item):
            self.loop_exits[loop] = follow
        return loop, body

    def branch(self, entry: int, follow: int, lazy: bool) -> int:
        return self.add(_SPLIT, follow if lazy else entry, other=entry if lazy else follow)

    # ---------------------------------------------------------------------------- facts about each instruction

    def relevant_sets(self) -> list[int]:
        """Return for each instruction the sets that can be asked for before the next codepoint is consumed."""
        relevant = [i.set_bit for i in self.instructions]
        self._propagate(relevant, through_conditions=True)
        return relevant

    def sure_exits(self) -> list[int]:
        """Return for each instruction how many nested atomic groups a thread leaves from it without conditions.

        A group that is entered on the way ends the count: too small a count costs states, never exactness.
        """
        sure = [0] * len(self.instructions)
        self._propagate(sure, through_conditions=False)
        return sure

    def _propagate(self, values: list[int], through_conditions: bool) -> None:
        """Raise each instruction's value by those of the instructions that it leads to, up to a fixed point."""
        changed = True
        while changed:
            changed = False
            for place, (operation, _, target, other) in enumerate(self.instructions):
                value = values[place]
                if through_conditions:
                    if operation in (_SPLIT, _ENTER, _LEAVE, _NEXT_IS):
                        value |= values[target]
                    if operation == _SPLIT:
                        value |= values[other]
                elif operation == _SPLIT:
                    value = max(values[target], values[other])
                elif operation == _LEAVE:
                    value = 1 + values[target]
                if value != values[place]:
                    values[place] = value
                    changed = True


class _Stepper:
    """Moves a state of the DFA (a tuple of threads) over one codepoint class."""

    def __init__(self, program: _Program) -> None:
        self.program = program
        self.instructions = program.instructions
        self.sure = program.sure_exits()
        self.work = 0

    def step(self, state: tuple[_Thread, ...], class_sets: int) -> tuple[bool, tuple[_Thread, ...]]:
        """Return whether a match ends before the codepoint, and the state after it.

        `class_sets` has a bit for each set that holds the codepoints of the class.
        """
        instructions = self.instructions
        loop_exits = self.program.loop_exits
        visited: dict[tuple[int, tuple[int, ...], frozenset[int]], list[frozenset[int]]] = {}
        closed: set[int] = set()  # entries of atomic groups whose remaining threads are dead
        produced: list[_Thread] = []
        next_entry = 1 + max((e for t in state for e in t.inside + t.left), default=-1)
        renamed: dict[int, int] = {}  # what a thread that has just left entry e carries instead of e -> e
        nothing: frozenset[int] = frozenset()
        # With each thread: the loops whose present iteration has begun in this step, so has consumed nothing.
        stack = [(*thread, nothing) for thread in reversed(state)]
        while stack:
            place, inside, left, begun = stack.pop()
            self.work += 1
            if closed and not closed.isdisjoint(inside + left):
                continue
            # A thread is superfluous after one at the same place that lives at least as long.
            mine = frozenset(left)
            others = visited.setdefault((place, inside, begun), [])
            if any(other <= mine for other in others):
                continue
            others.append(mine)
            if place in loop_exits:
                end = loop_exits[place]
                if place in begun:  # an iteration that consumed nothing ends its loop
                    stack.append((end, inside, left, begun - {place}))
                    continue
                for branch in (instructions[place].other, instructions[place].target):
                    stack.append((branch, inside, left, begun if branch == end else begun | {place}))
                continue
            operation, set_bit, target, other = instructions[place]
            if operation == _CHARACTERS:
                if class_sets & set_bit:
                    produced.append(_Thread(target, inside, left))
                    if inside and self.sure[target]:
                        # It leaves the group at its next step, whatever comes: what is less preferred is dead.
                        closed.update(inside[-self.sure[target] :])
            elif operation == _SPLIT:
                stack.append((other, inside, left, begun))
                stack.append((target, inside, left, begun))
            elif operation == _NEXT_IS:
                if class_sets & set_bit:
                    stack.append((target, inside, left, begun))
            elif operation == _ENTER:
                stack.append((target, (*inside, next_entry), left, begun))
                next_entry += 1
            elif operation == _LEAVE:
                entry = inside[-1]
                closed.add(entry)
                pending = left
                if any(entry in thread.inside for thread in produced):
                    renamed[next_entry] = entry
                    pending = (*left, next_entry)
                    next_entry += 1
                stack.append((target, inside[:-1], pending, begun))
            else:
                if left and any(renamed.get(e, e) in t.inside for e in left for t in produced):
                    self.program.refuse(
                        "an atomic group or possessive quantifier could revoke a match that is complete without it"
                    )
                return True, _canonical(produced, renamed)
        return False, _canonical(produced, renamed)


def _canonical(threads: list[_Thread], renamed: dict[int, int]) -> tuple[_Thread, ...]:
    """Number the entries of atomic groups by appearance, and forget those that nobody is inside of."""
    if not any(t.inside or t.left for t in threads):
        return tuple(dict.fromkeys(threads))
    alive = {e for t in threads for e in t.inside}
    numbers: dict[int, int] = {}
    result: list[_Thread] = []
    seen: dict[tuple[int, tuple[int, ...]], list[frozenset[int]]] = {}
    for place, inside, left in threads:
        new_inside = tuple(numbers.setdefault(e, len(numbers)) for e in inside)
        entries = {renamed.get(e, e) for e in left}
        new_left = tuple(sorted(numbers.setdefault(e, len(numbers)) for e in entries & alive))
        mine = frozenset(new_left)
        others = seen.setdefault((place, new_inside), [])
        if any(other <= mine for other in others):
            continue
        others.append(mine)
        result.append(_Thread(place, new_inside, new_left))
    return tuple(result)


def _partition(sets: list[Intervals]) -> tuple[NDArray[np.int64], NDArray[np.uint16], list[int]] | None:
    """Split the codepoints into classes that no set tells apart.

    Returns
    -------
    lengths : int64[n]
        How many codepoints each of the intervals has that no set has a boundary in.
    class_of : uint16[n]
        The class of each interval; classes are numbered by their first codepoint.
    class_sets : list[int]
        For each class, and then for the end of the text, a bit for each set that holds it.
    None when there are more than MAX_CLASSES_BEFORE_MERGE classes.
    """
    boundaries = intervals.sorted_unique(np.concatenate([np.array([0, END], np.int32), *sets]))
    boundaries = boundaries[boundaries <= END]
    inside = np.zeros((len(sets), len(boundaries)), np.bool_)
    for number, members in enumerate(sets):
        inside[number] = intervals.contains(members, boundaries)
    packed = np.packbits(inside, axis=0, bitorder="little").T
    width, raw = packed.shape[1], packed.tobytes()
    signatures = [raw[i * width : (i + 1) * width] for i in range(len(boundaries))]
    numbers: dict[bytes, int] = {}
    class_of = [numbers.setdefault(signature, len(numbers)) for signature in signatures[:-1]]
    if len(numbers) > MAX_CLASSES_BEFORE_MERGE:
        return None
    class_sets = [int.from_bytes(signature, "little") for signature in (*numbers, signatures[-1])]
    return np.diff(boundaries).astype(np.int64), np.array(class_of, np.uint16), class_sets


def _determinise(
    program: _Program, start: int, class_sets: list[int]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Build the DFA: state 0 is dead, state 1 the start.

    Returns
    -------
    targets : int64[n_states, n_classes + 1]
    matches : bool[n_states, n_classes + 1]
        Whether a match ends before a codepoint of the class.
    """
    stepper = _Stepper(program)
    relevant = program.relevant_sets()
    first = (_Thread(start, (), ()),)
    numbers: dict[tuple[_Thread, ...], int] = {(): 0, first: 1}
    states = [(), first]
    targets: list[list[int]] = [[0] * len(class_sets)]
    matches: list[list[bool]] = [[False] * len(class_sets)]
    while len(targets) < len(states):
        state = states[len(targets)]
        mask = 0
        for thread in state:
            mask |= relevant[thread.place]
        known: dict[int, tuple[bool, int]] = {}
        row: list[int] = []
        row_matches: list[bool] = []
        for sets in class_sets:
            key = sets & mask
            if key not in known:
                matched, following = stepper.step(state, key)
                number = numbers.setdefault(following, len(states))
                if number == len(states):
                    states.append(following)
                known[key] = matched, number
            matched, number = known[key]
            row.append(number)
            row_matches.append(matched)
        row[-1] = 0  # nothing follows the end of the text
        targets.append(row)
        matches.append(row_matches)
        if len(states) > MAX_STATES:
            program.refuse(f"it needs more than {MAX_STATES} states")
        if stepper.work > MAX_WORK:
            program.refuse("it is too ambiguous: its states hold too many alternatives")
    return np.array(targets, np.int64), np.array(matches, np.bool_)


def _minimise(
    targets: NDArray[np.int64], matches: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_], int]:
    """Merge equivalent states (partition refinement); number them from the start, the dead one as 0.

    Returns the merged tables and the number of the start state.
    """
    n_states = len(targets)
    blocks = np.zeros(n_states, np.int64)
    n_blocks = 1
    # Long chains refine one state a round; then the DFA stays as it is, which costs memory and nothing else.
    for _ in range(8 + 100_000 // n_states):
        table = np.concatenate([blocks[targets] * 2 + matches, blocks[:, None]], axis=1)
        _, blocks = np.unique(table, axis=0, return_inverse=True)
        blocks = blocks.reshape(-1)
        if blocks.max() + 1 == n_blocks:
            break
        n_blocks = int(blocks.max()) + 1
    else:
        blocks = np.arange(n_states)
    order = [int(blocks[0])]
    representative = {int(b): i for i, b in reversed(list(enumerate(blocks.tolist())))}
    if blocks[1] != blocks[0]:
        order.append(int(blocks[1]))
    seen = set(order)
    for block in order:  # grows while it is read: breadth first
        for target in targets[representative[block]].tolist():
            following = int(blocks[target])
            if following not in seen:
                seen.add(following)
                order.append(following)
    number_of = np.zeros(int(blocks.max()) + 1, np.int64)
    number_of[order] = np.arange(len(order))
    rows = [representative[block] for block in order]
    return number_of[blocks[targets[rows]]], matches[rows], int(number_of[blocks[1]])


def codepoint_classes(class_of: NDArray[np.uint8]) -> CodepointClasses:
    """Store a class for every codepoint in two levels, equal pages once.

    Parameters
    ----------
    class_of : uint8[0x110000]
    """
    rows = class_of.reshape(-1, 128)
    words = rows.view(np.uint64)
    # Most pages equal the one before: look only at the first of each run.
    firsts = np.flatnonzero(np.concatenate(([True], (words[1:] != words[:-1]).any(axis=1))))
    pages: dict[bytes, int] = {}
    numbers = np.array([pages.setdefault(rows[i].tobytes(), len(pages)) for i in firsts.tolist()], np.uint16)
    page_of = np.repeat(numbers, np.diff(firsts, append=len(rows)))
    stored = np.frombuffer(b"".join(pages), np.uint8)
    page_of.flags.writeable = False
    return CodepointClasses(page_of, stored)


def _build(node: Node, pattern: str, dialect: Dialect) -> SplitAutomaton:
    """Build the automaton of a tree; `pattern` is for messages."""
    program = _Program(pattern, dialect)
    start = program.compile(node, program.add(_MATCH, -1))
    partition = _partition(program.sets)
    if partition is None:
        program.refuse(f"it tells more than {MAX_CLASSES_BEFORE_MERGE} classes of codepoints apart")
    lengths, class_of, class_sets = partition
    targets, matches, first = _minimise(*_determinise(program, start, class_sets))

    # Classes that no state tells apart are one class.
    columns: dict[bytes, int] = {}
    merged = np.empty(len(class_sets) - 1, np.uint8)
    kept: list[int] = []
    for old in range(len(class_sets) - 1):
        key = (targets[:, old] * 2 + matches[:, old]).tobytes()
        if key not in columns:
            columns[key] = len(columns)
            kept.append(old)
        merged[old] = columns[key] & 255
    if len(kept) > MAX_CLASSES:
        program.refuse(f"it tells more than {MAX_CLASSES} classes of codepoints apart")
    kept.append(len(class_sets) - 1)
    row_shift = (len(kept) - 1).bit_length()
    transitions = np.zeros((len(targets), 1 << row_shift), np.uint32)
    transitions[:, : len(kept)] = ((targets[:, kept] << row_shift) << 1) | matches[:, kept]
    flat = transitions.reshape(-1)
    flat.flags.writeable = False
    return SplitAutomaton(
        classes=codepoint_classes(np.repeat(merged[class_of], lengths)),
        transitions=flat,
        start=first << row_shift,
        row_shift=row_shift,
        end_class=len(kept) - 1,
    )


def compile_split(pattern: str, dialect: Dialect = "oniguruma", *, literal: bool = False) -> SplitAutomaton:
    """Compile a split pattern to a leftmost-first DFA.

    Parameters
    ----------
    pattern
        The pattern, as the tokenizer file has it.
    dialect
        "oniguruma" as tokenizers reads it, "rust" as tiktoken does.
    literal
        The pattern is a plain string, not a regular expression.

    Returns
    -------
    SplitAutomaton
        It finds, from one position, the match that the reference engine finds there. A pattern that can match the
        empty string gives an automaton that reports matches of length zero, see :func:`matches_empty`; tokenizers
        cuts the text at such a match unless the match before ended there.

    Raises
    ------
    RegexError
        The pattern is not a regular expression of the dialect.
    UnsupportedError
        It needs what a DFA with one codepoint of look-ahead cannot do, or is too large. The message names the
        construct.

    Notes
    -----
    Takes 10 to 40 ms for the patterns in use, besides loading the Unicode data once. A pattern made to be
    expensive is refused after about a second.
    """
    if not isinstance(pattern, str):
        raise ArgumentTypeError(f"a split pattern must be a str, not {type(pattern).__name__}")
    if dialect not in ("oniguruma", "rust", "llama.cpp"):
        raise ArgumentError(f"dialect {dialect!r} is unknown; use 'oniguruma', 'rust' or 'llama.cpp'")
    try:
        if literal:
            node: Node = Sequence(tuple(Characters(intervals.from_codepoints([ord(c)])) for c in pattern))
        else:
            node = parse(pattern, dialect)
        return _build(node, pattern, dialect)
    except RecursionError:
        raise UnsupportedError("the split pattern is nested too deeply; rewrite it with fewer groups") from None


def compile_digits(individual: bool) -> SplitAutomaton:
    """Make the automaton of the Digits pre-tokenizer: a codepoint of category N (Unicode 17.0), or a run of them.

    Parameters
    ----------
    individual
        Whether every digit is a match of its own.
    """
    digit = Characters(classes.numeric_17())
    return _build(digit if individual else Repeat(digit, 1, None, lazy=False), "Digits", "oniguruma")


def compile_punctuation() -> SplitAutomaton:
    """Make the automaton of the Punctuation pre-tokenizer: one codepoint of punctuation (Unicode 8.0, and ASCII)."""
    return _build(Characters(bert.punctuation()), "Punctuation", "oniguruma")


def compile_bert() -> SplitAutomaton:
    """Make the automaton of the BertPreTokenizer, with the white space that it drops left in.

    A match is one character of white space, if any, and then a character of punctuation or a run of what is neither; or
    white space up to the one before those, or up to the end.
    """
    space = parse(r"\s", "rust")
    assert isinstance(space, Characters)
    spaces, punctuation = space.members, bert.punctuation()
    words = intervals.complement(intervals.union(spaces, punctuation))
    before = Repeat(space, 0, 1, lazy=False)
    node = Choice(
        (
            Sequence((before, Repeat(Characters(words), 1, None, lazy=False))),
            Sequence((before, Characters(punctuation))),
            # Not the blanks of an indentation with its first word: such a pre-token is long, and seldom comes again.
            parse(r"\s+(?!\S)", "oniguruma"),
            Repeat(space, 1, None, lazy=False),
        )
    )
    return _build(node, "BertPreTokenizer", "oniguruma")


def compile_scripts() -> tuple[SplitAutomaton, SplitAutomaton]:
    """Make the automata of the UnicodeScripts pre-tokenizer, one after the other (scripts of Unicode 9.0).

    A match is a character of a script and all that follows of the same script or of none; an automaton tells too few
    classes apart for all scripts, so the first takes half of them as one, and the second cuts what is left of these.
    """
    groups = script_groups()
    half = len(groups) // 2
    none = intervals.complement(functools.reduce(intervals.union, groups))

    def automaton(chosen: list[Intervals]) -> SplitAutomaton:
        runs = []
        for members in chosen:
            rest = Repeat(Characters(intervals.union(members, none)), 0, None, lazy=False)
            runs.append(Sequence((Characters(members), rest)))
        return _build(Choice(tuple(runs)), "UnicodeScripts", "oniguruma")

    first, second = groups[:half], groups[half:]
    return (
        automaton([*first, functools.reduce(intervals.union, second)]),
        automaton([*second, functools.reduce(intervals.union, first)]),
    )


def compile_fixed_length(length: int) -> SplitAutomaton:
    """Make the automaton of the FixedLength pre-tokenizer: `length` codepoints, or what is left at the end."""
    return _build(Repeat(Characters(intervals.ALL), 1, length, lazy=False), f"FixedLength({length})", "oniguruma")


def matches_empty(automaton: SplitAutomaton) -> bool:
    """Tell whether the pattern can match the empty string somewhere."""
    row = automaton.transitions[automaton.start : automaton.start + automaton.end_class + 1]
    return bool((row & 1).any())

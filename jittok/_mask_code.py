"""Machine code for one mask program (see :mod:`jittok.build.split_windows`), written in LLVM directly.

The kernels run any program a step at a time, each step over whole masks in memory. Here the steps of one program
become straight code on 512 places at a time, in registers. It takes a tenth of a second to compile, and is
kept in a code file like a kernel, so it is made only where much text is to be split.

The masks of the classes are computed as in Parabix (Cameron et al., "Bitwise data parallelism in regular expression
matching", 2014): the bits of 64 entries are transposed into one mask for each bit, and whether an entry is of a set of
classes is a Boolean function of these masks: a binary decision diagram, shared by all sets. The program is there
twice: for chunks that are all ASCII, half of the work of a pattern with many classes falls away.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from jittok._linker import link
from jittok._native import Code
from jittok.tables import (
    DECIDED,
    EDGE_BYTE,
    END_CLASS,
    MASK_AHEAD,
    MASK_AND,
    MASK_BACK,
    MASK_BASE,
    MASK_NOT,
    MASK_OR,
    MASK_STRIDE,
    UNDECIDED,
    Runs,
    SplitTables,
)

#: 64-bit words of a mask that are computed at once.
GROUP = 8
_I1, _I8, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
_BYTES = ir.VectorType(_I8, 64)
_WORDS = ir.VectorType(_I64, GROUP)
_ENTRY = "mask_program"


def compile_mask_program(split: SplitTables, level: str, runs: Runs | None = None) -> Code:
    """Compile the program of `split` for CPUs of a level of x86-64, with what is known of `runs`.

    The function takes four whole numbers: the addresses of a chunk's entries and of its masks, the number of words
    that matter, and 1 if the chunk is all ASCII, else 0. It writes the two masks that the program is for, and returns
    nothing.
    """
    module = llvm.parse_assembly(str(_module(split, runs or Runs(frozenset(), 0, frozenset(), frozenset()))))
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=level, features="", opt=3, reloc="pic", codemodel="small"
    )
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return link(machine.emit_object(module), _ENTRY)


class _Operation:
    """A step of the program that is more than membership in a set of classes."""

    __slots__ = ("kind", "left", "right")

    def __init__(self, kind: int, left: Any, right: Any) -> None:
        self.kind, self.left, self.right = kind, left, right


def _decoded(split: SplitTables, only_ascii: bool) -> tuple[list[Any], list[_Operation], list[frozenset[int]]]:
    """The program's steps as a graph: the two results, the operations in order, and the sets of classes they read.

    For ASCII, sets hold only the classes that occur there, and operations that this settles are left out.
    """
    n_classes = int(split.numbers[END_CLASS]) + 1
    everything = frozenset(split.entry_class[:128].tolist() if only_ascii else range(n_classes)) | {n_classes - 1}
    nothing: frozenset[int] = frozenset()
    masks: dict[int, Any] = {c: frozenset([c]) & everything for c in range(n_classes)}
    operations = []
    for kind, result, a, b in split.program.reshape(-1, 4).tolist():
        left = masks[a]
        right: Any = masks[b] if kind in (MASK_OR, MASK_AND) else b
        value: Any = None
        if kind == MASK_NOT:
            value = everything - left if isinstance(left, frozenset) else None
        elif kind not in (MASK_OR, MASK_AND):
            value = nothing if left == nothing else None
        elif isinstance(left, frozenset) and isinstance(right, frozenset):
            value = left | right if kind == MASK_OR else left & right
        else:
            settles, leaves = (everything, nothing) if kind == MASK_OR else (nothing, everything)
            if settles in (left, right):
                value = settles
            elif leaves in (left, right):
                value = right if left == leaves else left
        if value is None:
            value = _Operation(kind, left, right)
            operations.append(value)
        masks[result] = value
    outputs = [masks[int(split.numbers[i])] for i in (DECIDED, UNDECIDED)]
    # From the last operation back: what is needed, and of which sets.
    needed: dict[Any, None] = dict.fromkeys(outputs)
    for operation in reversed(operations):
        if operation in needed:
            needed[operation.left] = None
            if operation.kind in (MASK_OR, MASK_AND):
                needed[operation.right] = None
    sets = [operand for operand in needed if isinstance(operand, frozenset)]
    return outputs, [operation for operation in operations if operation in needed], sets


class _Diagram:
    """Boolean functions of bit masks, as a binary decision diagram that grows with each function."""

    def __init__(self, builder: Any, bits: list[Any]) -> None:
        self._builder = builder
        self._bits = bits  # the first decides between the two halves of a table
        self._known: dict[tuple[int, bytes], Any] = {}

    def function(self, table: NDArray[np.bool_], depth: int = 0) -> Any:
        """The mask of places whose number, which the bits spell, has True in `table`."""
        if table.all():
            return ir.Constant(_WORDS, [-1] * GROUP)
        if not table.any():
            return ir.Constant(_WORDS, [0] * GROUP)
        key = depth, table.tobytes()
        if key not in self._known:
            negated = depth, (~table).tobytes()
            if negated in self._known:
                self._known[key] = self._builder.not_(self._known[negated])
            else:
                low, high = np.split(table, 2)
                if np.array_equal(low, high):
                    self._known[key] = self.function(low, depth + 1)
                else:
                    self._known[key] = self._choice(
                        self._bits[depth], self.function(high, depth + 1), self.function(low, depth + 1)
                    )
        return self._known[key]

    def _choice(self, bit: Any, high: Any, low: Any) -> Any:
        builder = self._builder
        return builder.or_(builder.and_(bit, high), builder.and_(builder.not_(bit), low))


def _module(split: SplitTables, runs: Runs) -> Any:
    module = ir.Module("mask_program")
    module.triple = llvm.get_process_triple()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_I64] * 4), _ENTRY)
    begin = ir.IRBuilder(function.append_basic_block("begin"))
    planes = begin.alloca(_I64, 8 * MASK_STRIDE)
    members = begin.alloca(_I64, MASK_BASE + (len(_decoded(split, False)[2]) + 3) * MASK_STRIDE)
    for pointer in (planes, members):
        pointer.align = 64
    blocks = []
    for only_ascii in (False, True):
        blocks.append(function.append_basic_block("ascii" if only_ascii else "any"))
        _add_steps(ir.IRBuilder(blocks[-1]), split, only_ascii, planes, members, runs)
    begin.cbranch(begin.trunc(function.args[3], _I1), blocks[1], blocks[0])
    return module


def _add_steps(
    builder: Any, split: SplitTables, only_ascii: bool, planes: Any, members: Any, runs: Runs
) -> None:
    """Add the code for all chunks or for those that are ASCII; `planes` and `members` are its memory."""
    outputs, operations, sets = _decoded(split, only_ascii)
    sets += [kinds for kinds in (runs.counted, runs.run, runs.hazards) if kinds and kinds not in sets]
    function = builder.function
    entries_at, masks_at, words = function.args[:3]
    entries = builder.inttoptr(entries_at, _I8.as_pointer())
    masks = builder.inttoptr(masks_at, _I64.as_pointer())
    groups = builder.lshr(builder.add(words, _I64(GROUP - 1)), _I64(3))
    entry_class = split.entry_class.copy()
    if only_ascii:
        entry_class[128:] = split.entry_class[EDGE_BYTE]

    def place(array: Any, mask: int, word: Any, offset: int = 0) -> Any:
        return builder.gep(array, [builder.add(word, _I64(mask * MASK_STRIDE + offset))])

    def load(array: Any, mask: int, word: Any, offset: int = 0) -> Any:
        value = builder.load(builder.bitcast(place(array, mask, word, offset), _WORDS.as_pointer()))
        value.align = 8
        return value

    def store(value: Any, array: Any, mask: int, word: Any, offset: int = 0) -> None:
        builder.store(value, builder.bitcast(place(array, mask, word, offset), _WORDS.as_pointer())).align = 8

    class Loop:
        """A loop over the first words of all groups, or over all words."""

        def __init__(self, name: str, step: int) -> None:
            self.name, self.step = name, step

        def __enter__(self) -> Any:
            before = builder.block
            self.body = function.append_basic_block(self.name)
            self.after = function.append_basic_block(self.name + "_end")
            builder.branch(self.body)
            builder.position_at_end(self.body)
            self.word = builder.phi(_I64)
            self.word.add_incoming(_I64(0), before)
            return self.word

        def __exit__(self, *error: object) -> None:
            following = builder.add(self.word, _I64(self.step))
            self.word.add_incoming(following, builder.block)
            end = builder.shl(groups, _I64(3))
            builder.cbranch(builder.icmp_unsigned("<", following, end), self.body, self.after)
            builder.position_at_end(self.after)

    # The words before the first and after the last are read, by shifts.
    end = builder.shl(groups, _I64(3))
    for i in range(len(sets)):
        builder.store(_I64(0), place(members, i, _I64(0), MASK_BASE - 1))
        builder.store(_I64(0), place(members, i, end, MASK_BASE))
    with Loop("transpose", 1) as word:
        block = builder.load(builder.bitcast(builder.gep(entries, [builder.shl(word, _I64(6))]), _BYTES.as_pointer()))
        block.align = 1
        for bit in range(8):
            ones = ir.Constant(_BYTES, [1 << bit] * 64)
            mask = builder.icmp_unsigned("!=", builder.and_(block, ones), ir.Constant(_BYTES, [0] * 64))
            builder.store(builder.bitcast(mask, _I64), place(planes, bit, word))
    with Loop("memberships", GROUP) as word:
        diagram = _Diagram(builder, [load(planes, bit, word) for bit in reversed(range(8))])
        for i, kinds in enumerate(sets):
            store(diagram.function(np.isin(entry_class, sorted(kinds))), members, i, word, MASK_BASE)
    numbers = {kinds: i for i, kinds in enumerate(sets)}
    with Loop("decide", GROUP) as word:
        values: dict[Any, Any] = {}

        def value(operand: Any) -> Any:
            if operand not in values:
                values[operand] = load(members, numbers[operand], word, MASK_BASE)
            return values[operand]

        def splat(places: int) -> Any:
            return ir.Constant(_WORDS, [places] * GROUP)

        for operation in operations:
            left, right = operation.left, operation.right
            if operation.kind == MASK_OR:
                result = builder.or_(value(left), value(right))
            elif operation.kind == MASK_AND:
                result = builder.and_(value(left), value(right))
            elif operation.kind == MASK_NOT:
                result = builder.not_(value(left))
            elif operation.kind == MASK_BACK:
                before = load(members, numbers[left], word, MASK_BASE - 1)
                result = builder.or_(
                    builder.shl(value(left), splat(right)), builder.lshr(before, splat(64 - right))
                )
            else:
                assert operation.kind == MASK_AHEAD
                after = load(members, numbers[left], word, MASK_BASE + 1)
                result = builder.or_(builder.lshr(value(left), splat(1)), builder.shl(after, splat(63)))
            values[operation] = result
        decided, undecided = map(value, outputs)
        if runs.counted:
            counted = value(runs.counted)
            before = load(members, numbers[runs.counted], word, MASK_BASE - 1)
            # How many of the class are before a place, as far as two pre-tokens of them and the first of a third.
            together, boundary = counted, splat(0)
            for places in range(1, 2 * runs.period + 2):
                moved = builder.or_(builder.shl(counted, splat(places)), builder.lshr(before, splat(64 - places)))
                if places in (runs.period + 1, 2 * runs.period + 1):
                    boundary = builder.or_(boundary, builder.and_(together, builder.not_(moved)))
                together = builder.and_(together, moved)
            decided = builder.or_(decided, boundary)
            undecided = builder.and_(undecided, builder.or_(builder.not_(counted), together))
        if runs.run:
            run, hazards = value(runs.run), value(runs.hazards)
            run_after = load(members, numbers[runs.run], word, MASK_BASE + 1)
            hazards_after = load(members, numbers[runs.hazards], word, MASK_BASE + 1)
            run_before = load(members, numbers[runs.run], word, MASK_BASE - 1)

            def moved_by_one(mask: Any, mask_before: Any) -> Any:
                return builder.or_(builder.shl(mask, splat(1)), builder.lshr(mask_before, splat(63)))

            # A run ends in its word of the mask or the next, and neither has one that ends otherwise.
            ends = builder.and_(hazards, moved_by_one(run, run_before))
            ends = builder.or_(ends, builder.and_(hazards_after, moved_by_one(run_after, run)))
            clear = builder.and_(
                builder.icmp_unsigned("==", ends, splat(0)), builder.icmp_unsigned("!=", run_after, splat(-1))
            )
            ahead = builder.or_(builder.lshr(run, splat(1)), builder.shl(run_after, splat(63)))
            found = builder.and_(builder.and_(undecided, run), ahead)
            found = builder.and_(found, builder.sext(clear, _WORDS))
            decided = builder.or_(decided, found)
            undecided = builder.xor(undecided, found)
        for result, i in ((decided, DECIDED), (undecided, UNDECIDED)):
            store(result, masks, int(split.numbers[i]), word, MASK_BASE)
    builder.ret_void()

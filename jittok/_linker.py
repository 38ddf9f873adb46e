"""Object files that LLVM emits, linked: they are small, and refer to nothing but a few C functions."""

from __future__ import annotations

import re
import struct

from jittok._native import IMPORTS, Code


class CannotCompile(Exception):
    """A kernel cannot be made a code file."""


_ALLOC, _WRITE, _EXECUTE = 2, 1, 4
_PROGBITS = 1
#: Relocations: how the place is filled. S: symbol, A: addend, P: place.
_R_64, _R_PC32, _R_PLT32, _R_PC64 = 1, 2, 4, 24
_NOT_NEEDED = re.compile(r"\.(rela\.)?(eh_frame|note|comment|debug|strtab|symtab|shstrtab)")


def link(obj: bytes, entry: str) -> Code:
    """Link an ELF object for x86-64, of the small position-independent code model.

    Raises
    ------
    CannotCompile
        The object has something that is not expected: variables, other relocations, calls of other C functions.
    """
    if obj[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<HH", obj, 16) != (1, 62):
        raise CannotCompile("not an ELF object for x86-64")
    (table,) = struct.unpack_from("<Q", obj, 40)
    _, count, names_index = struct.unpack_from("<HHH", obj, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", obj, table + 64 * i) for i in range(count)]
    names_at = sections[names_index][4]

    def text(at: int) -> str:
        return obj[at : obj.index(b"\0", at)].decode()

    memory = bytearray()
    place: dict[int, int] = {}
    for i, (name, kind, flags, _, offset, size, _, _, alignment, _) in enumerate(sections):
        if not flags & _ALLOC or _NOT_NEEDED.match(text(names_at + name)) or size == 0:
            continue
        if flags & _WRITE or kind != _PROGBITS:
            raise CannotCompile(f"section {text(names_at + name)}")
        memory += bytes(-len(memory) % max(alignment, 16))
        place[i] = len(memory)
        memory += obj[offset : offset + size]
    symbols: list[tuple[str, int, int]] = []
    for _, kind, _, _, offset, size, link_, _, _, _ in sections:
        if kind == 2:  # the symbol table
            strings = sections[link_][4]
            for at in range(offset, offset + size, 24):
                name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", obj, at)
                symbols.append((text(strings + name), section, value))
    # Calls of C functions go through a jump to an address that is filled in when the code is loaded.
    stubs: dict[str, int] = {}
    imports: list[tuple[int, str]] = []

    def stub(name: str) -> int:
        if name not in IMPORTS:
            raise CannotCompile(f"calls {name}")
        if name not in stubs:
            memory.extend(bytes(-len(memory) % 16))
            stubs[name] = len(memory)
            memory.extend(b"\xff\x25" + struct.pack("<i", 2) + b"\xcc\xcc" + bytes(8))  # jmp [address after it]
            imports.append((stubs[name] + 8, name))
        return stubs[name]

    for _, kind, _, _, offset, size, _, info, _, _ in sections:
        if kind == 9:
            raise CannotCompile("relocations without addend")
        if kind != 4 or info not in place:
            continue
        for at in range(offset, offset + size, 24):
            where, described, addend = struct.unpack_from("<QQq", obj, at)
            name, section, value = symbols[described >> 32]
            relocation = described & 0xFFFFFFFF
            if section == 0:
                symbol = stub(name)
            elif section in place:
                symbol = place[section] + value
            else:
                raise CannotCompile(f"a reference to section {section}")
            target = place[info] + where
            difference = symbol + addend - target
            if relocation in (_R_PC32, _R_PLT32) and -(1 << 31) <= difference < 1 << 31:
                struct.pack_into("<i", memory, target, difference)
            elif relocation == _R_PC64:
                struct.pack_into("<q", memory, target, difference)
            else:
                raise CannotCompile(f"relocation {relocation}")
    for name, section, value in symbols:
        if name == entry and section in place:
            return Code(len(memory), place[section] + value, tuple(imports), bytes(memory))
    raise CannotCompile("no entry")

"""The added tokens of a tokenizer.json without a Python object for each: there are files with 400,000 of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import helper, kernel

#: Of a content that has a backslash in it, beside ``TOKEN_*`` bits.
ESCAPED = 128

#: What a field must be: a number, a string, or true or false.
_NUMBER, _STRING = 0, 1

_TRUE = int.from_bytes(b"true", "little")
_FALSE = int.from_bytes(b"false", "little")

#: All fields seen.
_ALL_FIELDS = 127


@helper
def skip_space(data: Any, at: Any) -> int:
    """The place of the first byte from `at` on that is no white space of JSON."""
    while at < data.shape[0] and (data[at] == 0x20 or data[at] == 0x0A or data[at] == 0x0D or data[at] == 0x09):
        at += 1
    return at


@helper
def find_name(names: Any, name_indptr: Any, data: Any, first: Any, last: Any) -> int:
    """Which of the names ``data[first:last]`` is, -1 for none."""
    for name in range(name_indptr.shape[0] - 1):
        begin = name_indptr[name]
        if name_indptr[name + 1] - begin == last - first:
            same = 0
            while same < last - first and names[begin + same] == data[first + same]:
                same += 1
            if same == last - first:
                return name
    return -1


@helper
def _is_word(data: Any, at: Any, word: Any, length: Any) -> bool:
    """Whether the bytes of a number, of which the lowest comes first, stand at a place."""
    for i in range(length):
        if int(data[at + i]) != word >> (8 * i) & 255:
            return False
    return True


@kernel
def read_added_tokens(
    names: Any, name_indptr: Any, bits: Any, data: Any, at: Any, ids: Any, flags: Any, contents: Any, sizes: Any
) -> int:
    """Read an array of added tokens, as long as it is as plain as the reference writes it.

    Parameters
    ----------
    names : uint8[m], name_indptr : int64[8]
        The fields: "id", "content" and five flags, which have `bits`.
    bits : uint8[7]
        What to put into `flags` for each field that is true.
    data : uint8[n_bytes]
        JSON.
    at : int
        Where the array's opening bracket is.
    ids : int64[n], flags : uint8[n]
        Output for each token; of a content that has a backslash, `flags` has ESCAPED too.
    contents : uint8[n_bytes]
        Output: the contents as they stand in the file, each with a line feed behind it.
    sizes : int64[2]
        Output: the number of tokens, and of bytes in `contents`.

    Returns
    -------
    int
        The place after the closing bracket; -1 where anything is not as expected: a field is missing, comes twice or is
        unknown, a value is of another type, an id is not plainly written or has more than 8 digits, the file ends, or
        there are more tokens than there is room for. Linear time, several hundred MB/s.
    """
    end = data.shape[0]
    n = np.int64(0)
    written = np.int64(0)
    at = skip_space(data, at + 1)
    while at < end and data[at] == 0x7B:  # {
        if n == ids.shape[0]:
            return -1
        seen = 0
        flag = 0
        while seen != _ALL_FIELDS:
            at = skip_space(data, at + 1)
            if at >= end or data[at] != 0x22:
                return -1
            first = at + 1
            at = first
            while at < end and data[at] != 0x22:
                at += 1
            field = find_name(names, name_indptr, data, first, at)
            if field < 0 or seen >> field & 1:
                return -1
            seen |= 1 << field
            at = skip_space(data, at + 1)
            if at >= end or data[at] != 0x3A:
                return -1
            at = skip_space(data, at + 1)
            if field == _NUMBER:
                first = at
                value = np.int64(0)
                while at < end and 0x30 <= data[at] <= 0x39 and at - first < 9:
                    value = 10 * value + (np.int64(data[at]) - 0x30)
                    at += 1
                if at == first or at - first > 8 or (data[first] == 0x30 and at > first + 1):
                    return -1
                ids[n] = value
            elif field == _STRING:
                if at >= end or data[at] != 0x22:
                    return -1
                at += 1
                while at < end and data[at] != 0x22:
                    byte = data[at]
                    if byte < 0x20:
                        return -1
                    if byte == 0x5C and at + 1 < end:
                        flag |= ESCAPED
                        contents[written] = byte
                        written += 1
                        at += 1
                        if data[at] < 0x20:
                            return -1
                    contents[written] = data[at]
                    written += 1
                    at += 1
                contents[written] = 0x0A
                written += 1
                at += 1
            elif at + 5 < end and _is_word(data, at, _TRUE, 4):
                flag |= int(bits[field])
                at += 4
            elif at + 5 < end and _is_word(data, at, _FALSE, 5):
                at += 5
            else:
                return -1
            at = skip_space(data, at)
            if at >= end or data[at] != (0x7D if seen == _ALL_FIELDS else 0x2C):
                return -1
        flags[n] = flag
        n += 1
        at = skip_space(data, at + 1)
        if at < end and data[at] == 0x2C:
            at = skip_space(data, at + 1)
            if at >= end or data[at] != 0x7B:
                return -1
        elif at >= end or data[at] != 0x5D:
            return -1
    if at >= end or data[at] != 0x5D:
        return -1
    sizes[0] = n
    sizes[1] = written
    return at + 1

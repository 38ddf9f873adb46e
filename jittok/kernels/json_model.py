"""The vocabulary and the merges of a tokenizer.json, without a Python object for each string and number of them.

Each reader stands at a value of the file, copies what is in it to arrays, and returns the place after it. What is not
as plain as the reference writes it (a number in another form, a token that comes twice), or is no JSON, is left to the
json module, which says what is wrong with it: readers return -1. White space may stand anywhere; escapes are resolved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import helper, kernel
from jittok.kernels.json_tokens import find_name, skip_space
from jittok.kernels.word_cache import hash_bytes

#: The fields that are looked for, as ``find_field`` returns them: of the file, and of its model.
ADDED_TOKENS, MODEL, VOCAB, MERGES = 0, 1, 2, 3
#: What else it returns: the file ends.
END = 4

#: Numbers of ``state``: a place in the file, and which fields were seen, by bits.
STATE_AT, STATE_SEEN, STATE_NUMBERS = 0, 1, 2
#: A bit that the caller adds to the second to have the value skipped that begins at the place.
SKIP = 128
#: More bits of the second: the place is inside the model; it is after a value; it is not the beginning of the file.
_INSIDE, _AFTER, _BEGUN = 16, 32, 64

_QUOTE, _COMMA, _COLON, _BACKSLASH = 0x22, 0x2C, 0x3A, 0x5C
_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = 0x5B, 0x5D, 0x7B, 0x7D

#: Digits of a number that fit in 64 bits for certain.
_MOST_DIGITS = 19
_LARGEST_POWER = 308

_TAG = np.uint64(0xFFFFFFFF00000000)
_LOW = np.uint64(0xFFFFFFFF)
_NOTHING = np.uint64(0)
_ONE = np.uint64(1)


@helper
def _skip_string(data: Any, at: Any) -> int:
    """The place after the string that begins at a quotation mark."""
    end = data.shape[0]
    at += 1
    while at < end and data[at] != _QUOTE:
        at += 2 if data[at] == _BACKSLASH else 1
    return at + 1


@helper
def _skip_value(data: Any, at: Any) -> int:
    """The place after the value that begins at a place; it is not looked into, and may be no JSON."""
    end = data.shape[0]
    depth = 0
    while at < end:
        byte = int(data[at])
        if byte == _QUOTE:
            at = _skip_string(data, at)
        elif byte == _OPEN_LIST or byte == _OPEN_OBJECT:
            depth += 1
            at += 1
            continue
        elif byte == _CLOSE_LIST or byte == _CLOSE_OBJECT:
            if depth == 0:
                return at
            depth -= 1
            at += 1
        elif depth == 0:
            if byte == _COMMA or byte <= 0x20:
                return at
            at += 1
            continue
        else:
            at += 1
        if depth == 0:
            break
    return min(at, end)


@kernel
def find_field(names: Any, name_indptr: Any, data: Any, state: Any) -> int:
    """Go on to the next value that is looked for, in the object that the whole file is or in its model.

    Parameters
    ----------
    names : uint8[m], name_indptr : int64[5]
        "added_tokens", "model", "vocab" and "merges", of which the last two are looked for in the model.
    data : uint8[n_bytes]
        JSON.
    state : int64[2]
        STATE_*: at first zeros. When a value was found, the first is where it begins; the caller then sets it to where
        the value ends, or adds SKIP to the second.

    Returns
    -------
    int
        ADDED_TOKENS, VOCAB, MERGES, or END after the last field; -1 where the file is no object, a field is not
        followed by a value, a field that is looked for comes twice, or a name has a backslash. Linear time.
    """
    end = data.shape[0]
    at = state[STATE_AT]
    seen = state[STATE_SEEN]
    inside = seen & _INSIDE
    after = seen & _AFTER
    if seen & SKIP:
        at = _skip_value(data, at)
    elif seen == 0:
        at = skip_space(data, at)
        if at >= end or data[at] != _OPEN_OBJECT:
            return -1
        at += 1
    seen = (seen & ~SKIP) | _BEGUN
    while True:
        at = skip_space(data, at)
        if at >= end:
            return -1
        if data[at] == _CLOSE_OBJECT:
            at += 1
            if not inside:
                break
            inside, after = 0, _AFTER
            continue
        if after:
            if data[at] != _COMMA:
                return -1
            at = skip_space(data, at + 1)
        if at >= end or data[at] != _QUOTE:
            return -1
        first = at + 1
        at = first
        while at < end and data[at] != _QUOTE:
            if data[at] == _BACKSLASH:
                return -1
            at += 1
        field = find_name(names, name_indptr, data, first, at)
        at = skip_space(data, at + 1)
        if at >= end or data[at] != _COLON:
            return -1
        at = skip_space(data, at + 1)
        if at >= end:
            return -1
        if field >= 0 and (field >= VOCAB) != (inside != 0):
            field = -1
        after = _AFTER
        if field < 0:
            at = _skip_value(data, at)
            continue
        if seen >> field & 1:
            return -1
        seen |= 1 << field
        if field == MODEL:
            if data[at] != _OPEN_OBJECT:
                return -1
            at += 1
            inside, after = _INSIDE, 0
            continue
        state[STATE_AT] = at
        state[STATE_SEEN] = (seen & ~(_INSIDE | _AFTER)) | inside | after
        return field
    state[STATE_AT] = at
    return END if skip_space(data, at) == end else -1


@helper
def _digit(byte: Any) -> int:
    """The value of a hexadecimal digit, -1 for another byte."""
    if 0x30 <= byte <= 0x39:
        return byte - 0x30
    letter = byte | 0x20
    return letter - 0x57 if 0x61 <= letter <= 0x66 else -1


@helper
def _escape_unit(data: Any, at: Any) -> int:
    r"""The number that four hexadecimal digits after a ``\u`` at a place give; -1 where these are not there."""
    if at + 6 > data.shape[0] or data[at] != _BACKSLASH or data[at + 1] != 0x75:
        return -1
    value = 0
    for i in range(2, 6):
        digit = _digit(int(data[at + i]))
        if digit < 0:
            return -1
        value = value << 4 | digit
    return value


@helper
def _copy_string(data: Any, at: Any, out: Any, written: Any, ends: Any) -> int:
    """Copy the string that begins at a quotation mark to ``out[written:]``, with its escapes resolved.

    Returns the place after it, or -1; ``ends[0]`` becomes where the copy ends.
    """
    end = data.shape[0]
    at += 1
    while at < end:
        byte = int(data[at])
        if byte == _QUOTE:
            ends[0] = written
            return at + 1
        if byte < 0x20:
            return -1
        if byte != _BACKSLASH:
            out[written] = byte
            written += 1
            at += 1
            continue
        if at + 1 >= end:
            return -1
        kind = int(data[at + 1])
        if kind != 0x75:
            if kind == 0x6E:  # n
                kind = 0x0A
            elif kind == 0x74:  # t
                kind = 0x09
            elif kind == 0x72:  # r
                kind = 0x0D
            elif kind == 0x62:  # b
                kind = 0x08
            elif kind == 0x66:  # f
                kind = 0x0C
            elif kind != _QUOTE and kind != _BACKSLASH and kind != 0x2F:
                return -1
            out[written] = kind
            written += 1
            at += 2
            continue
        unit = _escape_unit(data, at)
        at += 6
        if 0xD800 <= unit < 0xDC00:
            low = _escape_unit(data, at)
            if low < 0xDC00 or low > 0xDFFF:
                return -1
            unit = 0x10000 + ((unit & 0x3FF) << 10 | (low & 0x3FF))
            at += 6
        elif unit < 0 or 0xDC00 <= unit < 0xE000:
            return -1
        if unit < 0x80:
            out[written] = unit
            written += 1
        elif unit < 0x800:
            out[written] = 0xC0 | unit >> 6
            out[written + 1] = 0x80 | (unit & 63)
            written += 2
        elif unit < 0x10000:
            out[written] = 0xE0 | unit >> 12
            out[written + 1] = 0x80 | (unit >> 6 & 63)
            out[written + 2] = 0x80 | (unit & 63)
            written += 3
        else:
            out[written] = 0xF0 | unit >> 18
            out[written + 1] = 0x80 | (unit >> 12 & 63)
            out[written + 2] = 0x80 | (unit >> 6 & 63)
            out[written + 3] = 0x80 | (unit & 63)
            written += 4
    return -1


@helper
def _following(data: Any, at: Any, close: Any) -> int:
    """After an item of an object or array: the place of the next item, or minus the place after the closing bracket.

    0 where neither a comma and more nor the bracket follows.
    """
    at = skip_space(data, at)
    if at >= data.shape[0]:
        return 0
    if data[at] == close:
        return -(at + 1)
    return skip_space(data, at + 1) if data[at] == _COMMA else 0


@kernel
def read_vocab(data: Any, at: int, tokens: Any, indptr: Any, ids: Any, ends: Any) -> int:
    """Read an object of tokens and their ids.

    Parameters
    ----------
    data : uint8[n_bytes]
        JSON.
    at : int
        Where the object begins.
    tokens : uint8[n_bytes]
        Output: the tokens, one after another.
    indptr : int64[n + 1]
        Output: where each token begins, and the last one ends.
    ids : int64[n]
        Output.
    ends : int64[2]
        Scratch; the second becomes the number of tokens.

    Returns
    -------
    int
        The place after the closing bracket; -1 where this is no object, an id is not plainly written or has more than 8
        digits, a token holds half of a surrogate pair, or an escape that there is not, the file ends, or there is no room.
        That tokens are UTF-8 and come once each is not found out. Linear time.
    """
    end = data.shape[0]
    n = np.int64(0)
    written = np.int64(0)
    if at >= end or data[at] != _OPEN_OBJECT:
        return -1
    at = skip_space(data, at + 1)
    while at < end and data[at] == _QUOTE:
        if n >= ids.shape[0]:
            return -1
        indptr[n] = written
        at = _copy_string(data, at, tokens, written, ends)
        if at < 0:
            return -1
        written = ends[0]
        at = skip_space(data, at)
        if at >= end or data[at] != _COLON:
            return -1
        at = skip_space(data, at + 1)
        first = at
        value = np.int64(0)
        while at < end and 0x30 <= data[at] <= 0x39 and at - first < 9:
            value = 10 * value + (np.int64(data[at]) - 0x30)
            at += 1
        if at == first or at - first > 8 or (data[first] == 0x30 and at > first + 1):
            return -1
        ids[n] = value
        n += 1
        at = _following(data, at, _CLOSE_OBJECT)
        if at <= 0:
            indptr[n] = written
            ends[1] = n
            return -at if at < 0 else -1
    return -1


@helper
def _read_score(data: Any, at: Any, powers: Any, scores: Any, n: Any) -> int:
    """Read a number by the rule of ``formats.tokenizer_json.read_score``; returns the place after it, or -1."""
    end = data.shape[0]
    negative = data[at] == 0x2D
    if negative:
        at += 1
    first = at
    value = np.uint64(0)
    digits = 0
    exponent = 0
    while at < end and 0x30 <= data[at] <= 0x39:
        value = value * np.uint64(10) + np.uint64(data[at] - np.uint8(0x30))
        digits += 1
        at += 1
    if digits == 0 or (data[first] == 0x30 and digits > 1):
        return -1
    is_whole = True
    if at < end and data[at] == 0x2E:
        is_whole = False
        at += 1
        first = at
        while at < end and 0x30 <= data[at] <= 0x39:
            value = value * np.uint64(10) + np.uint64(data[at] - np.uint8(0x30))
            digits += 1
            at += 1
        if at == first:
            return -1
        exponent = first - at
    if digits > _MOST_DIGITS:
        return -1
    if at < end and (data[at] == 0x65 or data[at] == 0x45):
        is_whole = False
        at += 1
        minus = at < end and data[at] == 0x2D
        if at < end and (minus or data[at] == 0x2B):
            at += 1
        first = at
        power = 0
        while at < end and 0x30 <= data[at] <= 0x39 and at - first < 4:
            power = 10 * power + (int(data[at]) - 0x30)
            at += 1
        if at == first or (at < end and 0x30 <= data[at] <= 0x39):
            return -1
        exponent += -power if minus else power
    if exponent < -_LARGEST_POWER or exponent > _LARGEST_POWER:
        return -1
    result = np.float64(value)
    if result != 0:
        result = result * powers[exponent] if exponent >= 0 else result / powers[-exponent]
        if result > 1.7e308:
            return -1
    elif is_whole:
        negative = False  # there is no whole number below 0 that is 0
    scores[n] = -result if negative else result
    return at


@kernel
def read_scored(data: Any, at: int, powers: Any, tokens: Any, indptr: Any, scores: Any, ends: Any) -> int:
    """Read an array of tokens and their scores, ``["token", -1.5]`` each.

    Parameters
    ----------
    data, at, tokens, indptr, ends
        As for ``read_vocab``.
    powers : float64[309]
        Powers of ten.
    scores : float64[n]
        Output: by the reference's rule for numbers; see ``formats.tokenizer_json.read_score``.

    Returns
    -------
    int
        The place after the closing bracket; -1 as for ``read_vocab``, or where a number has more than 19 digits, or may be
        beyond the range of floats. Linear time.
    """
    end = data.shape[0]
    n = np.int64(0)
    written = np.int64(0)
    if at >= end or data[at] != _OPEN_LIST:
        return -1
    at = skip_space(data, at + 1)
    while at < end and data[at] == _OPEN_LIST:
        if n >= scores.shape[0]:
            return -1
        at = skip_space(data, at + 1)
        if at >= end or data[at] != _QUOTE:
            return -1
        indptr[n] = written
        at = _copy_string(data, at, tokens, written, ends)
        if at < 0:
            return -1
        written = ends[0]
        at = _following(data, at, _CLOSE_LIST)
        if at <= 0 or at >= end:
            return -1
        at = _read_score(data, at, powers, scores, n)
        if at < 0:
            return -1
        n += 1
        at = _following(data, at, _CLOSE_LIST)
        if at >= 0:
            return -1
        at = _following(data, -at, _CLOSE_LIST)
        if at <= 0:
            indptr[n] = written
            ends[1] = n
            return -at if at < 0 else -1
    return -1


@helper
def _find_token(slots: Any, tokens: Any, indptr: Any, text: Any, first: Any, n: Any) -> int:
    """Which token ``text[first : first + n]`` is, -1 for none; if none, ``-2 - slot`` of the place for it."""
    mask = np.uint64(slots.shape[0] - 1)
    code = hash_bytes(text, first, n)
    tag = code & _TAG
    slot = code & mask
    while True:
        entry = slots[slot]
        if entry == _NOTHING:
            return -2 - np.int64(slot)
        if entry & _TAG == tag:
            token = np.int64(entry & _LOW) - 1
            begin = indptr[token]
            if indptr[token + 1] - begin == n:
                same = 0
                while same < n and tokens[begin + same] == text[first + same]:
                    same += 1
                if same == n:
                    return token
        slot = (slot + _ONE) & mask


@kernel
def index_tokens(tokens: Any, indptr: Any, slots: Any) -> int:
    """Make the hash table of tokens.

    Parameters
    ----------
    tokens : uint8[m], indptr : int64[n + 1]
        Token i is ``tokens[indptr[i]:indptr[i + 1]]``.
    slots : uint64[power of two]
        Zeros, more than n of them. Output: the upper half of a token's hash, and its number and one below.

    Returns
    -------
    int
        n; the number of the first token that came before if one does. Linear time.
    """
    for i in range(indptr.shape[0] - 1):
        first = indptr[i]
        n = indptr[i + 1] - first
        place = _find_token(slots, tokens, indptr, tokens, first, n)
        if place >= 0:
            return i
        slots[-2 - place] = (hash_bytes(tokens, first, n) & _TAG) | np.uint64(i + 1)
    return np.int64(indptr.shape[0] - 1)


@helper
def _is_comment(text: Any, n: Any) -> bool:
    """Whether text begins with "#version", as a line that is no merge does."""
    return (
        n >= 8 and text[0] == 0x23 and text[1] == 0x76 and text[2] == 0x65 and text[3] == 0x72
        and text[4] == 0x73 and text[5] == 0x69 and text[6] == 0x6F and text[7] == 0x6E
    )  # fmt: skip


@kernel
def find_tokens(slots: Any, tokens: Any, indptr: Any, texts: Any, text_indptr: Any, places: Any) -> int:
    """Find strings among tokens.

    Parameters
    ----------
    slots, tokens, indptr
        Of ``index_tokens``.
    texts : uint8[m], text_indptr : int64[k + 1]
        The strings.
    places : int32[k]
        Output: the number of the token, -1 for none.

    Returns
    -------
    int
        How many were found. Linear time.
    """
    found = 0
    for i in range(places.shape[0]):
        first = text_indptr[i]
        place = _find_token(slots, tokens, indptr, texts, first, text_indptr[i + 1] - first)
        places[i] = max(place, -1)
        found += place >= 0
    return found


@kernel
def read_merges(
    data: Any, at: int, tokens: Any, indptr: Any, slots: Any, text: Any, left: Any, right: Any, made: Any, ends: Any
) -> int:
    """Read an array of merges, all of them ``"a b"`` or all ``["a", "b"]``, as tokens of a vocabulary.

    Parameters
    ----------
    data, at
        As for ``read_vocab``.
    tokens, indptr, slots
        Of ``index_tokens``.
    text : uint8[n_bytes]
        Scratch.
    left, right, made : int32[n]
        Output: the numbers of the two tokens of each merge, and of what they make: a + b.
    ends : int64[2]
        Scratch; the second becomes the number of merges.

    Returns
    -------
    int
        The place after the closing bracket; -1 as for ``read_vocab``, or where a token is not in the vocabulary, a string
        has not one blank, or is a comment. Linear time.
    """
    end = data.shape[0]
    n = np.int64(0)
    if at >= end or data[at] != _OPEN_LIST:
        return -1
    at = skip_space(data, at + 1)
    if at >= end:
        return -1
    if data[at] == _CLOSE_LIST:
        ends[1] = 0
        return at + 1
    form = int(data[at])
    while at < end and data[at] == form:
        if n >= left.shape[0]:
            return -1
        if form == _OPEN_LIST:
            at = skip_space(data, at + 1)
            if at >= end or data[at] != _QUOTE:
                return -1
            at = _copy_string(data, at, text, np.int64(0), ends)
            if at < 0:
                return -1
            middle = ends[0]
            at = _following(data, at, _CLOSE_LIST)
            if at <= 0 or at >= end or data[at] != _QUOTE:
                return -1
            at = _copy_string(data, at, text, middle, ends)
            if at < 0:
                return -1
            last = ends[0]
            at = _following(data, at, _CLOSE_LIST)
            if at >= 0:
                return -1
            at = -at
        elif form == _QUOTE:
            at = _copy_string(data, at, text, np.int64(0), ends)
            if at < 0:
                return -1
            last = ends[0]
            middle = np.int64(0)
            while middle < last and text[middle] != 0x20:
                middle += 1
            if middle == last or _is_comment(text, last):
                return -1
            last -= 1
            for i in range(middle, last):
                text[i] = text[i + 1]
                if text[i] == 0x20:
                    return -1
        else:
            return -1
        a = _find_token(slots, tokens, indptr, text, np.int64(0), middle)
        b = _find_token(slots, tokens, indptr, text, middle, last - middle)
        both = _find_token(slots, tokens, indptr, text, np.int64(0), last)
        if a < 0 or b < 0 or both < 0:
            return -1
        left[n], right[n], made[n] = a, b, both
        n += 1
        at = _following(data, at, _CLOSE_LIST)
        if at <= 0:
            ends[1] = n
            return -at if at < 0 else -1
    return -1

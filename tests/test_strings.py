"""Strings read where Python keeps them: the same bytes as ``str.encode`` gives, and nothing else is accepted."""

import random
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jittok
from jittok import _jit, _strings
from jittok.errors import ArgumentTypeError, TextError
from jittok.kernels import strings as kernels

compiled_only = pytest.mark.skipif(_strings._access() is None, reason="kernels do not read strings on this Python")

#: Alphabets whose strings Python keeps in one, two or four bytes a character.
ALPHABETS = ["abc \n\0\x7f", "aé\x80\xff", "aé\u0100\u07ff\u0800語\ud7ff\ue000\uffff", "aé語\U00010000🙂\U0010ffff"]


def read(items):
    """Strings of which kernels take all, however few."""
    strings = _strings._measured(list(items), *_strings._access())
    assert strings is not None
    return strings


def texts_of(strings, first, last):
    data, indptr = strings.utf8(first, last)
    assert not data[indptr[-1] :].any() and len(data) == indptr[-1] + _strings.SLACK
    return [data[p:q].tobytes() for p, q in zip(indptr, indptr[1:], strict=False)]


@compiled_only
@given(st.lists(st.one_of(*(st.text(alphabet, max_size=40) for alphabet in ALPHABETS))))
def test_bytes_are_those_of_encode(texts):
    strings = read(texts)
    encoded = [text.encode() for text in texts]
    assert texts_of(strings, 0, len(texts)) == encoded
    half = len(texts) // 2
    assert texts_of(strings, half, len(texts)) == encoded[half:]
    assert np.diff(strings.lengths).tolist() == [len(text) for text in texts]
    assert (np.diff(strings.sizes) >= [len(text) for text in encoded]).all()


@compiled_only
def test_plain_python_reads_the_same():
    texts = ["".join(random.Random(i).choices(ALPHABETS[i % 4], k=3 * i)) for i in range(60)]
    strings = read(texts)
    lengths, sizes, indptr = (np.zeros(len(texts) + 1, np.int64) for _ in range(3))
    assert kernels.measure_strings.py_func(*_strings._access(), strings.addresses, lengths, sizes) == len(texts)
    data = np.zeros(sizes[-1] + _strings.SLACK, np.uint8)
    assert kernels.copy_strings.py_func(*_strings._access(), strings.addresses, data, indptr) == len(texts)
    np.testing.assert_array_equal(lengths, strings.lengths)
    np.testing.assert_array_equal(sizes, strings.sizes)
    assert data[: indptr[-1]].tobytes() == "".join(texts).encode()


@compiled_only
@pytest.mark.parametrize("surrogate", ["\ud800", "\udfff", "🙂\udc00", "語 \udbff語", "\ud83d\ude00"])
def test_surrogates_are_left_to_others(surrogate):
    strings = read(["fine", f"ab{surrogate}cd", "fine too"])
    assert strings.utf8(0, 3) is None and strings.utf8(1, 2) is None
    assert texts_of(strings, 2, 3) == [b"fine too"]


class Derived(str):
    __slots__ = ()


@compiled_only
@pytest.mark.parametrize("other", [b"bytes", None, 3, Derived("derived"), Derived("é"), ["a"]])
def test_only_plain_strings_are_read(other):
    assert _strings._measured(["a", other, "b"], *_strings._access()) is None


def test_a_list_that_changes_meanwhile_does_not_matter():
    texts = [f"text {i} é" for i in range(_strings._MANY)]
    strings = _strings.strings_of(texts)
    assert strings.items == texts
    expected = [text.encode() for text in texts]
    texts.clear()
    texts.extend(["other"] * 100_000)
    if strings.addresses is not None:
        assert texts_of(strings, 0, len(expected)) == expected


@compiled_only
def test_each_thread_has_its_own_memory():
    strings = read(["a" * 100, "b" * 100])
    first, _ = strings.utf8(0, 1)
    thread = threading.Thread(target=strings.utf8, args=(1, 2))
    thread.start()
    thread.join()
    assert first[:100].tobytes() == b"a" * 100


def test_without_a_known_layout_strings_are_encoded(monkeypatch):
    longest = 6 if _jit.JIT_DISABLED else 60
    texts = ["".join(random.Random(i).choices(ALPHABETS[i % 4], k=i % longest)) for i in range(_strings._MANY + 1)]
    tokenizer = jittok.load_default()
    usual = tokenizer.encode_batch(texts, spans=True)
    monkeypatch.setattr(_strings, "_access", lambda: None)
    assert _strings.strings_of(texts).addresses is None
    other = tokenizer.encode_batch(texts, spans=True)
    assert usual == other and (usual.spans == other.spans).all() and (usual.word_ids == other.word_ids).all()
    assert (tokenizer.count_batch(texts) == np.diff(usual.indptr)).all()
    assert tokenizer.decode_batch(usual) == texts


def test_a_layout_that_is_not_clear_is_none(monkeypatch):
    monkeypatch.setattr(_strings.ctypes, "sizeof", lambda kind: 4)
    assert _strings.string_layout() is None
    monkeypatch.undo()
    monkeypatch.setattr(_strings.sys, "getsizeof", lambda text: 1)
    _strings._access.cache_clear()
    try:
        if not _jit.JIT_DISABLED:
            layout = _strings.string_layout()
            assert layout is None or _strings._access() is None
    finally:
        monkeypatch.undo()
        _strings._access.cache_clear()


@pytest.mark.parametrize("n", [3, _strings._MANY + 3])
def test_errors_and_replacement_are_the_usual_ones(n):
    texts = [f"text {i}" for i in range(n)]
    tokenizer = jittok.load_default()
    texts[-2] = "a\ud83d\ude00b\ud800"
    with pytest.raises(TextError, match=rf"texts\[{n - 2}\]: lone surrogate U\+D83D at character 1"):
        tokenizer.encode_batch(texts, surrogates="raise")
    batch = tokenizer.encode_batch(texts, surrogates="replace", spans=True)
    assert batch[n - 2] == tokenizer.encode("a😀b\ufffd").ids.tolist()
    assert batch[n - 2].tokens == tokenizer.encode("a😀b\ufffd").tokens
    assert batch[n - 2].spans_in("bytes")[-1].tolist() == tokenizer.encode("a😀b\ufffd").spans_in("bytes")[-1].tolist()
    texts[-2] = Derived("some text")
    assert tokenizer.encode_batch(texts)[n - 2] == tokenizer.encode("some text").ids.tolist()
    for wrong in (None, b"bytes", 7):
        texts[-2] = wrong
        with pytest.raises(ArgumentTypeError, match=rf"texts\[{n - 2}\]: expected str"):
            tokenizer.encode_batch(texts)

import pickle

import numpy as np
import pytest

import jittok
from jittok import errors, spec
from jittok.encodings import Batch, Encoding, utf8_positions
from jittok.vocabulary import Vocabulary, build_vocabulary


@pytest.fixture
def vocabulary():
    return Vocabulary(build_vocabulary(spec.TokenizerSpec(spec.BPEModel({"a": 0, "ï": 1, "日": 2}, ()))))


@pytest.fixture
def encoding(vocabulary):
    return Encoding(
        np.array([0, 1, 2]),
        np.array([[0, 1], [1, 2], [2, 3]]),
        np.array([0, 0, 1]),
        texts=("aï日",),
        vocabulary=vocabulary,
    )


def test_behaves_as_a_sequence_of_ids(encoding):
    assert len(encoding) == 3
    assert encoding[1] == 1
    assert encoding[-1] == 2
    assert encoding[1:].tolist() == [1, 2]
    assert list(encoding) == [0, 1, 2]
    assert all(type(i) is int for i in encoding)
    assert encoding == [0, 1, 2]
    assert [0, 1, 2] == encoding
    assert encoding == (0, 1, 2)
    assert encoding == np.array([0, 1, 2])
    assert encoding != [0, 1]
    assert encoding != [0, 1, 3]
    assert encoding != "abc"
    assert encoding == Encoding(np.array([0, 1, 2]))
    assert 2 in encoding
    assert 7 not in encoding
    assert encoding.index(2) == 2
    assert encoding.count(0) == 1
    assert list(reversed(encoding)) == [2, 1, 0]
    with pytest.raises(IndexError):
        encoding[3]
    with pytest.raises(TypeError):
        hash(encoding)


def test_as_array(encoding):
    array = np.asarray(encoding)
    assert array is encoding.ids
    assert np.asarray(encoding, dtype=np.int64).dtype == np.int64
    copied = np.array(encoding)
    copied[0] = 9
    assert encoding[0] == 0
    assert np.concatenate([encoding, encoding]).tolist() == [0, 1, 2, 0, 1, 2]


def test_arrays_are_read_only(encoding):
    for name in ("ids", "spans", "word_ids", "type_ids", "attention_mask", "special_tokens_mask", "sequence_ids"):
        array = getattr(encoding, name)
        assert not array.flags.writeable, name
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_making_one_does_not_freeze_the_callers_array():
    ids = np.array([1, 2], dtype=np.int32)
    Encoding(ids)
    ids[0] = 5
    assert ids[0] == 5


def test_tokens_spans_and_masks(encoding):
    assert encoding.tokens == ["a", "ï", "日"]
    assert encoding.spans.dtype == np.int64
    assert encoding.spans_in("characters").tolist() == [[0, 1], [1, 2], [2, 3]]
    assert encoding.spans_in("bytes").tolist() == [[0, 1], [1, 3], [3, 6]]
    assert encoding.type_ids.tolist() == [0, 0, 0]
    assert encoding.attention_mask.tolist() == [1, 1, 1]
    assert encoding.special_tokens_mask.tolist() == [0, 0, 0]
    assert encoding.sequence_ids.tolist() == [0, 0, 0]
    assert encoding.word_ids.tolist() == [0, 0, 1]
    assert encoding.overflowing == []
    with pytest.raises(errors.ArgumentError, match="lines"):
        encoding.spans_in("lines")


def test_byte_spans_of_pairs_and_words(vocabulary):
    pair = Encoding(
        np.array([0, 2, 0]),
        np.array([[0, 0], [0, 1], [1, 2]]),
        np.array([-1, 0, 0]),
        sequence_ids=np.array([-1, 0, 1]),
        texts=("日", "ïa"),
        vocabulary=vocabulary,
    )
    assert pair.spans_in("bytes").tolist() == [[0, 0], [0, 3], [2, 3]]
    words = Encoding(
        np.array([2, 0]),
        np.array([[0, 1], [1, 2]]),
        np.array([0, 1]),
        texts=(("日", "ïa"),),
        vocabulary=vocabulary,
    )
    assert words.spans_in("bytes").tolist() == [[0, 3], [2, 3]]


def test_what_is_missing_is_said():
    bare = Encoding(np.array([1]))
    for ask in (lambda: bare.tokens, lambda: bare.spans_in(), lambda: bare.word_ids):
        with pytest.raises(errors.ArgumentError):
            ask()
    assert bare.spans is None


@pytest.mark.parametrize("text", ["", "abc", "aï日🙂\0", "\ud800x"])
def test_utf8_positions(text):
    expected = [len(text[:i].encode("utf-8", "surrogatepass")) for i in range(len(text) + 1)]
    assert utf8_positions(text).tolist() == expected


def test_repr(encoding):
    assert repr(encoding) == "Encoding(3 tokens: [0, 1, 2])"
    long = Encoding(np.arange(20), overflowing=[encoding])
    assert repr(long) == "Encoding(20 tokens: [0, 1, 2, 3, 4, 5, 6, 7, ...], 1 overflowing)"


def test_pickle(encoding):
    again = pickle.loads(pickle.dumps(encoding))
    assert again == encoding
    assert again.tokens == encoding.tokens
    assert again.spans_in("bytes").tolist() == encoding.spans_in("bytes").tolist()
    assert len(pickle.dumps(encoding)) < 2000
    assert not again.ids.flags.writeable


# ------------------------------------------------------------------------------------------------------ batch


@pytest.fixture
def batch(vocabulary):
    data = np.frombuffer("aïa日".encode(), np.uint8)
    return Batch(
        np.array([0, 1, 0, 2]),
        np.array([0, 2, 2, 4]),
        np.array([[0, 1], [1, 2], [0, 1], [1, 2]]),
        np.array([0, 0, 0, 1]),
        vocabulary=vocabulary,
        texts=((data, np.array([0, 3, 3, 7])),),
    )


def test_batch_views(batch):
    assert len(batch) == 3
    assert [list(row) for row in batch] == [[0, 1], [], [0, 2]]
    assert batch[0].tokens == ["a", "ï"]
    assert batch[-1].spans.tolist() == [[0, 1], [1, 2]]
    assert batch[2].spans_in("bytes").tolist() == [[0, 1], [1, 4]]
    assert batch[2].word_ids.tolist() == [0, 1]
    assert batch.spans_in("bytes").tolist() == [[0, 1], [1, 3], [0, 1], [1, 4]]
    assert batch.spans_in() is batch.spans
    assert batch[0].ids.base is not None
    assert batch.to_lists() == [[0, 1], [], [0, 2]]
    assert batch == [[0, 1], [], [0, 2]]
    assert batch != [[0, 1], []]
    for bad in (3, -4):
        with pytest.raises(IndexError):
            batch[bad]


def test_batch_slices(batch):
    tail = batch[1:]
    assert len(tail) == 2
    assert tail.to_lists() == [[], [0, 2]]
    assert tail.indptr.tolist() == [0, 0, 2]
    assert tail[1].spans_in("bytes").tolist() == [[0, 1], [1, 4]]
    assert batch[2:1].to_lists() == []
    assert batch[:0].to_lists() == []
    with pytest.raises(errors.ArgumentError):
        batch[::2]


def test_batch_arrays_are_read_only_and_typed(batch):
    assert batch.ids.dtype == np.int32
    assert batch.indptr.dtype == np.int64
    assert batch.spans.dtype == np.int64
    for array in (batch.ids, batch.indptr, batch.spans):
        assert not array.flags.writeable


def test_to_arrow_shares_memory(batch):
    import pyarrow as pa

    column = batch.to_arrow()
    assert column.type == pa.list_(pa.int32())
    assert column.to_pylist() == [[0, 1], [], [0, 2]]
    assert column.values.buffers()[1].address == batch.ids.ctypes.data
    column.validate(full=True)
    assert batch[1:].to_arrow().to_pylist() == [[], [0, 2]]
    assert batch[:0].to_arrow().to_pylist() == []


def test_pad(batch):
    ids, mask = batch.pad(pad_id=9)
    assert ids.dtype == np.int32
    assert ids.tolist() == [[0, 1], [9, 9], [0, 2]]
    assert mask.tolist() == [[True, True], [False, False], [True, True]]
    ids, mask = batch.pad(length=3, side="left", pad_id=9)
    assert ids.tolist() == [[9, 0, 1], [9, 9, 9], [9, 0, 2]]
    assert mask.tolist() == [[False, True, True], [False] * 3, [False, True, True]]
    ids, _ = batch.pad(multiple_of=8, pad_id=0)
    assert ids.shape == (3, 8)
    ids, _ = batch.pad(length=9, multiple_of=8, pad_id=0)
    assert ids.shape == (3, 16)
    named = Batch(batch.ids, batch.indptr, pad_id=7)
    assert named.pad()[0][1].tolist() == [7, 7]
    assert named.pad(pad_id=0)[0][1].tolist() == [0, 0]
    assert batch[:1].pad()[0].tolist() == [[0, 1]]
    assert batch[:0].pad()[0].shape == (0, 0)
    assert batch[:0].pad(length=4)[0].shape == (0, 4)


def test_pad_as_tokenizers():
    from tokenizers import Tokenizer, models, pre_tokenizers

    reference = Tokenizer(models.WordLevel({"a": 1, "b": 2, "?": 3}, unk_token="?"))
    reference.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    texts = ["a b a", "", "b", "a b a b a"]
    encoded = [e.ids for e in reference.encode_batch(texts)]
    flat = Batch(np.array(sum(encoded, [])), np.cumsum([0, *map(len, encoded)]))
    for side in ("left", "right"):
        for multiple, length in [(None, None), (4, None), (None, 7), (4, 7)]:
            reference.enable_padding(direction=side, pad_id=5, pad_to_multiple_of=multiple, length=length)
            expected = reference.encode_batch(texts)
            ids, mask = flat.pad(length=length, multiple_of=multiple, side=side, pad_id=5)
            assert ids.tolist() == [e.ids for e in expected]
            assert mask.astype(int).tolist() == [e.attention_mask for e in expected]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"side": "up", "pad_id": 0}, "up"),
        ({"length": 1, "pad_id": 0}, "text 0 has 2 tokens.*length=1"),
        ({"length": -1, "pad_id": 0}, "length=-1"),
        ({"multiple_of": 0, "pad_id": 0}, "multiple_of=0"),
        ({}, "pad_id="),
        ({"pad_id": 2**31}, "int32"),
    ],
)
def test_pad_refusals(batch, arguments, words):
    with pytest.raises(errors.ArgumentError, match=words):
        batch.pad(**arguments)


def test_pad_wrong_types(batch):
    with pytest.raises(errors.ArgumentTypeError, match="length="):
        batch.pad(length=2.5)


def test_batch_pickle_and_repr(batch):
    again = pickle.loads(pickle.dumps(batch))
    assert again == batch
    assert again.spans.tolist() == batch.spans.tolist()
    assert repr(batch) == "Batch(3 texts, 4 tokens)"


def test_a_pickled_batch_has_no_texts():
    """What needs them is refused, not answered in another unit."""
    batch = jittok.load_default().encode_batch(["naïve ☃ text", ""], spans=True)
    again = pickle.loads(pickle.dumps(batch))
    for use in (lambda: again.spans_in("bytes"), lambda: again[0].spans_in("bytes"), lambda: again[0].surfaces):
        with pytest.raises(errors.ArgumentError, match="made without its text"):
            use()
    assert again.spans_in("characters").tolist() == batch.spans.tolist()
    assert again[1].spans_in("bytes").tolist() == [] == again[1].surfaces
    one = pickle.loads(pickle.dumps(batch[0]))
    assert one.spans_in("bytes").tolist() == batch[0].spans_in("bytes").tolist() != one.spans.tolist()
    assert one.surfaces == batch[0].surfaces


def test_word_ids_of_strings_come_when_asked_for():
    tok = jittok.load_default()
    texts = ["one two, three", "", "naïve 中文 text", "x  y\n\n z"] * 3
    encoded = [text.encode() for text in texts]
    indptr = np.cumsum([0, *map(len, encoded)]).astype(np.int64)
    at_once = tok.encode_batch((np.frombuffer(b"".join(encoded), np.uint8), indptr), spans=True)
    given = list(texts)
    later = tok.encode_batch(given, spans=True)
    given[:] = ["changed"] * len(given)
    row, part, copy = later[2], later[1:4], pickle.loads(pickle.dumps(later[5:]))
    assert row.word_ids.tolist() == tok.encode(texts[2]).word_ids.tolist() == at_once[2].word_ids.tolist()
    np.testing.assert_array_equal(part.word_ids, at_once[1:4].word_ids)
    np.testing.assert_array_equal(copy.word_ids, at_once[5:].word_ids)
    np.testing.assert_array_equal(later.word_ids, at_once.word_ids)
    assert pickle.loads(pickle.dumps(tok.encode_batch(texts, spans=True)[0])).word_ids.tolist() == later[0].word_ids.tolist()
    assert tok.encode_batch(texts).word_ids is None

"""The jittok file: a tokenizer's built tables, ready to be mapped into memory.

Layout (that of safetensors, so other tools can open it): eight bytes with the length of the header, little-endian;
the header, a JSON object that gives every array's dtype, shape and place, and under ``__metadata__`` strings:
"format" ("jittok"), "version", "spec" and "plan" (JSON); then the arrays, one after another, wider types first, so
that each lies at a multiple of its item size. There is no pickle in it, and a file is checked before use: a
kernel that reads its tables stays inside them.
"""

from __future__ import annotations

import json
import mmap
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, cached_property
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from jittok import spec as spec_module
from jittok.build import plan as plan_module
from jittok.build.plan import Plan, SplitStage
from jittok.build.validate import check_merges, check_pieces, check_split, check_unigram, check_vocabulary, check_wordpiece
from jittok.errors import FormatError, MissingFileError
from jittok.spec import (
    AddedTokens,
    BPEModel,
    CharDelimiterSplit,
    DecodeMetaspace,
    DecodeStrip,
    MarianModel,
    Metaspace,
    Model,
    PieceType,
    RankModel,
    SentencePieceModel,
    Template,
    TokenizerSpec,
    UnigramModel,
    WordLevelModel,
    WordPieceModel,
)
from jittok.tables import (
    MISSING_UNKNOWN,
    PRESENT,
    SPECIAL,
    TOKEN_NORMALIZED,
    TOKEN_SINGLE_WORD,
    TOKEN_SPECIAL,
    TOKEN_STRIP_LEFT,
    TOKEN_STRIP_RIGHT,
    UNIGRAM_MISSING,
    UNIGRAM_NUMBERS,
    WORDPIECE_MISSING,
    WORDPIECE_NUMBERS,
    MergeTables,
    ModelTables,
    PieceTables,
    SplitTables,
    UnigramTables,
    VocabularyTables,
    WordPieceTables,
)
from jittok.token_columns import LazyTuple
from jittok.vocabulary import added_token_flags

if TYPE_CHECKING:
    from jittok.rewriting import Rewriter

#: Raised when a file written before could no longer be read as it was meant.
VERSION = 3
_DTYPES: dict[str, np.dtype[Any]] = {
    "U8": np.dtype("<u1"),
    "U16": np.dtype("<u2"),
    "U32": np.dtype("<u4"),
    "U64": np.dtype("<u8"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
#: What the arrays of each model's tables are called.
_GROUPS: dict[type, str] = {
    MergeTables: "merges",
    PieceTables: "pieces",
    UnigramTables: "unigram",
    WordPieceTables: "wordpiece",
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_MOST_HEADER_BYTES = 1 << 26
_DEEPEST_SPEC = 64
_LARGEST_GROUP = 1 << 20


class Stored(NamedTuple):
    """What a jittok file holds."""

    spec: TokenizerSpec
    plan: Plan
    vocabulary: VocabularyTables


# ------------------------------------------------------------------------------------------------------ writing


def write(spec: TokenizerSpec, plan: Plan, vocabulary: VocabularyTables) -> bytes:
    """The content of a jittok file.

    Parameters
    ----------
    spec, plan, vocabulary
        A tokenizer and its tables.
    """
    arrays: dict[str, NDArray[Any]] = {}
    _add_group(arrays, _GROUPS[type(plan.model)], plan.model)
    _add_group(arrays, "vocabulary", vocabulary)
    stages: list[dict[str, Any]] = []
    for stage in plan.stages:
        if isinstance(stage, SplitStage):
            _add_group(arrays, f"split.{len(stages)}", stage.tables)
            stages.append({"behavior": stage.behavior, "invert": stage.invert})
            if stage.group:
                stages[-1]["group"] = stage.group
        else:
            stages.append({"steps": [plain(step) for step in stage.steps]})
    _add_group(arrays, "last_split", plan.last_split)
    _add_model(arrays, spec)
    stated_plan: dict[str, Any] = {"stages": stages}
    if plan.whole:
        stated_plan["whole"] = True
    metadata = {
        "format": "jittok",
        "version": str(VERSION),
        "spec": json.dumps(plain(spec), ensure_ascii=True, sort_keys=True),
        "plan": json.dumps(stated_plan, sort_keys=True),
    }
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": metadata}
    at = 0
    for name in order:
        array = arrays[name]
        header[name] = {
            "dtype": _NAMES[array.dtype.newbyteorder("<")],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-(len(encoded) + 8) % 64)
    parts = [len(encoded).to_bytes(8, "little"), encoded]
    parts += [np.ascontiguousarray(arrays[name]).astype(arrays[name].dtype.newbyteorder("<")).tobytes() for name in order]
    return b"".join(parts)


def _add_group(arrays: dict[str, NDArray[Any]], prefix: str, group: Any) -> None:
    for name, array in zip(group._fields, group, strict=True):
        arrays[f"{prefix}.{name}"] = array


def _add_model(arrays: dict[str, NDArray[Any]], spec: TokenizerSpec) -> None:
    """What the model's file said, for saving in another format: strings with their ids, and merges as ids."""
    model = spec.model
    if isinstance(model, RankModel):
        items: Mapping[Any, int] = model.ranks
        tokens = list(items)
    elif isinstance(model, UnigramModel | SentencePieceModel):
        arrays["model.scores"] = np.array(model.scores, np.float64)
        tokens = [piece.encode() for piece in model.pieces]
        items = dict(enumerate(range(len(tokens))))
    else:
        items = model.vocab
        tokens = [token.encode("utf-8", "surrogatepass") for token in items]
        if isinstance(model, MarianModel):
            arrays["model.scores"] = np.array(model.scores, np.float64)
            pieces = [piece.encode() for piece in model.pieces]
            arrays["model.pieces"] = np.frombuffer(b"".join(pieces), np.uint8)
            arrays["model.piece_indptr"] = np.cumsum([0, *map(len, pieces)])
        if isinstance(model, BPEModel):
            ids = model.vocab
            pairs = [(ids[left], ids[right]) for left, right in model.merges]
            arrays["model.merges"] = np.array(pairs, np.int32).reshape(-1, 2)
    indptr = np.zeros(len(tokens) + 1, np.int64)
    indptr[1:] = np.cumsum([len(token) for token in tokens])
    arrays["model.strings"] = np.frombuffer(b"".join(tokens), np.uint8)
    arrays["model.string_indptr"] = indptr
    arrays["model.ids"] = np.fromiter(items.values(), np.int32, len(items))


def plain(value: Any) -> Any:
    """A spec as JSON values: dataclasses become objects with their class under "kind"; the model's mappings are left out.

    Parameters
    ----------
    value
        A spec, or a part of one.
    """
    if is_dataclass(value) and not isinstance(value, type):
        result: dict[str, Any] = {"kind": type(value).__name__}
        for field in fields(value):
            if field.name not in ("vocab", "merges", "ranks", "pieces", "scores"):
                result[field.name] = plain(getattr(value, field.name))
        return result
    if isinstance(value, AddedTokens):
        columns = {"contents": list(value.contents), "ids": value.ids.tolist(), "flags": value.flags.tolist()}
        return {"kind": "AddedTokens", **columns}
    if isinstance(value, bytes):
        return {"base64": b64encode(value).decode()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return value


# ------------------------------------------------------------------------------------------------------ reading


def read(path: Path) -> Stored:
    """Map a jittok file into memory, shared with other processes that do.

    Raises
    ------
    FormatError
        The file is truncated, altered or of another version; the message says where.
    MissingFileError
        It cannot be opened.
    """
    try:
        with open(path, "rb") as file:
            content: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:
        raise FormatError(f"{path}: the file is empty; expected a jittok file") from None
    except OSError as error:
        raise MissingFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    return parse(content, str(path))


def read_spec(path: Path) -> TokenizerSpec:
    """The spec that a jittok file was made from; its tables are not looked at, so they may be of another version.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    FormatError
        The file is damaged.
    """
    metadata, arrays = _parse_header(path.read_bytes(), str(path))
    try:
        return _spec_of(metadata, arrays, str(path))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise FormatError(f"{path}: the spec cannot be read ({type(error).__name__}: {error})") from None


def _spec_of(metadata: dict[str, Any], arrays: dict[str, NDArray[Any]], where: str) -> TokenizerSpec:
    stated = json.loads(metadata["spec"])
    (flags,) = _group(arrays, "vocabulary", ["flags"], where)
    model = _stored_model(stated["model"], arrays, flags.size, where)
    spec = restored(stated, {"model": model})
    if not isinstance(spec, TokenizerSpec):
        raise TypeError("the spec is not a TokenizerSpec")
    return spec


def parse(content: Any, where: str) -> Stored:
    """The tokenizer in the content of a jittok file (bytes or a memory map); see :func:`read`."""
    metadata, arrays = _parse_header(content, where)
    if metadata.get("version") != str(VERSION):
        raise FormatError(
            f"{where}: a jittok file of version {metadata.get('version')!r}, but this jittok reads version {VERSION}; "
            "save it again from its source"
        )
    try:
        spec = _spec_of(metadata, arrays, where)
        stated_plan = json.loads(metadata["plan"])
        vocabulary = VocabularyTables(*_group(arrays, "vocabulary", VocabularyTables._fields, where))
        check_vocabulary(vocabulary, where)
        model = _checked_model(spec, arrays, len(vocabulary.flags), where)
        stages: list[SplitStage | Rewriter] = []
        for number, stage in enumerate(stated_plan["stages"]):
            if "steps" in stage:
                from jittok.rewriting import build_rewriter

                stages.append(build_rewriter([restored(step) for step in stage["steps"]]))
                continue
            tables = SplitTables(*_group(arrays, f"split.{number}", SplitTables._fields, where))
            check_split(tables, f"{where}: split.{number}")
            behavior = stage["behavior"]
            if behavior not in range(len(plan_module.BEHAVIORS)):
                raise FormatError(f"{where}: plan.stages[{number}].behavior is {behavior!r}")
            group = stage.get("group", 0)
            if type(group) is not int or not 0 <= group <= _LARGEST_GROUP:
                raise FormatError(f"{where}: plan.stages[{number}].group is {group!r}")
            stages.append(SplitStage(tables, behavior, bool(stage["invert"]), group))
        last = SplitTables(*_group(arrays, "last_split", SplitTables._fields, where))
        check_split(last, f"{where}: last_split")
        _check_spec(spec, vocabulary, where)
        plan = plan_module.restored_plan(spec, tuple(stages), last, model, bool(stated_plan.get("whole")))
    except FormatError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, MemoryError) as error:
        raise FormatError(
            f"{where}: the metadata is not what this version writes ({type(error).__name__}: {error}); "
            "save the tokenizer again from its source"
        ) from None
    return Stored(spec, plan, vocabulary)


def _checked_model(
    spec: TokenizerSpec, arrays: dict[str, NDArray[Any]], size: int, where: str
) -> ModelTables:
    """The model's tables, whose ids are below `size`."""
    if isinstance(spec.model, WordPieceModel | WordLevelModel):
        pieces = WordPieceTables(*_group(arrays, "wordpiece", WordPieceTables._fields, where))
        if len(pieces.numbers) != WORDPIECE_NUMBERS:
            raise FormatError(f"{where}: wordpiece.numbers has {len(pieces.numbers)} values; the file is damaged")
        check_wordpiece(pieces, size + int(pieces.numbers[WORDPIECE_MISSING]), where)
        return pieces
    if isinstance(spec.model, MarianModel):
        size = max(spec.model.table_ids, default=0) + 1
    if isinstance(spec.model, UnigramModel | SentencePieceModel | MarianModel) and "unigram.units" in arrays:
        unigram = UnigramTables(*_group(arrays, "unigram", UnigramTables._fields, where))
        if len(unigram.numbers) != UNIGRAM_NUMBERS:
            raise FormatError(f"{where}: unigram.numbers has {len(unigram.numbers)} values; the file is damaged")
        check_unigram(unigram, size + int(unigram.numbers[UNIGRAM_MISSING]), where)
        return unigram
    if "pieces.numbers" in arrays:
        tables = PieceTables(*_group(arrays, "pieces", PieceTables._fields, where))
        check_pieces(tables, size, where)
        return tables
    merges = MergeTables(*_group(arrays, "merges", MergeTables._fields, where))
    check_merges(merges, where)
    if size < len(merges.reachable) - int((merges.reachable == MISSING_UNKNOWN).sum()):
        raise FormatError(f"{where}: vocabulary has fewer ids than the model")
    return merges


def _parse_header(content: Any, where: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    size = len(content)
    if size < 8:
        raise FormatError(f"{where}: {size} bytes are too few for a jittok file; it is truncated")
    length = int.from_bytes(content[:8], "little")
    if length > min(size - 8, _MOST_HEADER_BYTES):
        raise FormatError(f"{where}: the header is said to have {length} bytes, but the file has {size}; it is truncated")
    try:
        header = json.loads(bytes(content[8 : 8 + length]))
        metadata = header.pop("__metadata__")
        if metadata.get("format") != "jittok":
            raise ValueError("not marked as a jittok file")
    except (ValueError, KeyError, AttributeError, RecursionError) as error:
        raise FormatError(f"{where}: the header is not that of a jittok file: {error}") from None
    data = np.frombuffer(content, np.uint8)[8 + length :]
    arrays = {}
    for name, entry in header.items():
        try:
            dtype = _DTYPES[entry["dtype"]]
            shape = tuple(entry["shape"])
            begin, end = entry["data_offsets"]
            if not all(type(n) is int and 0 <= n <= size for n in (*shape, begin, end)):
                raise ValueError("a number is out of range")
            expected = dtype.itemsize
            for n in shape:
                expected *= n
            if not begin <= end <= len(data) or end - begin != expected or (begin + length + 8) % dtype.itemsize:
                raise ValueError(f"offsets [{begin}, {end}) do not fit a file of {len(data)} data bytes")
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{where}: the array {name!r} is described wrongly ({error}); the file is damaged") from None
        array = data[begin:end].view(dtype).reshape(shape)
        if dtype != dtype.newbyteorder("="):
            array = array.astype(dtype.newbyteorder("="))
        array.flags.writeable = False
        arrays[name] = array
    return metadata, arrays


def _group(arrays: dict[str, NDArray[Any]], prefix: str, names: Sequence[str], where: str) -> list[NDArray[Any]]:
    missing = [name for name in names if f"{prefix}.{name}" not in arrays]
    if missing:
        raise FormatError(f"{where}: the array '{prefix}.{missing[0]}' is missing; the file is damaged")
    return [arrays[f"{prefix}.{name}"] for name in names]


def restored(value: Any, given: Mapping[str, Any] | None = None, depth: int = 0) -> Any:
    """JSON values back to the dataclasses of a spec, as :func:`plain` stated them.

    Parameters
    ----------
    value
        The JSON value.
    given
        Fields that are taken as they are.
    depth
        How deeply the value is nested in another one.

    Raises
    ------
    ValueError, TypeError
        They are none.
    """
    given = given or {}
    if depth > _DEEPEST_SPEC:
        raise ValueError("nested too deeply")
    if isinstance(value, list):
        return tuple(restored(item, {}, depth + 1) for item in value)
    if isinstance(value, dict) and value.get("kind") == "AddedTokens":
        return _added_tokens(value)
    if isinstance(value, dict) and "kind" in value:
        kind = getattr(spec_module, str(value["kind"]), None)
        if not (isinstance(kind, type) and is_dataclass(kind)):
            raise ValueError(f"unknown kind {value['kind']!r}")
        items = {name: restored(item, {}, depth + 1) for name, item in value.items() if name not in ("kind", *given)}
        hints = _hints(kind)
        for name, item in items.items():
            if not _fits(item, hints[name]):
                raise TypeError(f"{value['kind']}.{name} is {item!r}")
        return kind(**items, **given)
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return b64decode(value["base64"], validate=True)
    if isinstance(value, dict):
        return {key: restored(item, {}, depth + 1) for key, item in value.items()}
    return value


def _added_tokens(value: dict[str, Any]) -> AddedTokens:
    contents, ids, flags = value["contents"], value["ids"], value["flags"]
    if not (set(map(type, contents)) <= {str} and set(map(type, [*ids, *flags])) <= {int}):
        raise TypeError("AddedTokens: expected strings, and whole numbers")
    if not len(contents) == len(ids) == len(flags):
        raise ValueError(f"AddedTokens: {len(contents)} contents, {len(ids)} ids and {len(flags)} flags")
    known = TOKEN_SINGLE_WORD | TOKEN_STRIP_LEFT | TOKEN_STRIP_RIGHT | TOKEN_NORMALIZED | TOKEN_SPECIAL
    if flags and (min(flags) < 0 or max(flags) > known):
        raise ValueError("AddedTokens.flags: unknown bits")
    return AddedTokens(contents, np.array(ids, np.int64), np.array(flags, np.uint8))


_hints = cache(get_type_hints)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the type that a field of a spec is declared with."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or (origin is Sequence and isinstance(value, AddedTokens)):
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, argument) for argument in arguments)
    if origin is Literal:
        return value in arguments
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(_fits(item, arguments[0]) for item in value)
        return len(value) == len(arguments) and all(map(_fits, value, arguments))
    if origin is Sequence:
        return isinstance(value, tuple) and all(_fits(item, arguments[0]) for item in value)
    if origin is Mapping:
        return isinstance(value, dict) and all(
            _fits(key, arguments[0]) and _fits(item, arguments[1]) for key, item in value.items()
        )
    if hint is int:
        return type(value) is int
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))


def _check_spec(spec: TokenizerSpec, vocabulary: VocabularyTables, where: str) -> None:
    """Check what types do not say: ids are in the vocabulary, and characters are single characters."""
    n_ids = len(vocabulary.flags)
    expected = vocabulary.flags & PRESENT
    if isinstance(spec.model, SentencePieceModel):
        own = spec.model.of_type(PieceType.CONTROL, PieceType.UNKNOWN)
        if len(spec.model.pieces) > n_ids:
            raise FormatError(f"{where}: vocabulary has fewer ids than the model")
        expected[own] |= SPECIAL
    added = spec.added
    for place in np.flatnonzero((added.ids < 0) | (added.ids >= n_ids))[:1].tolist():
        token = added[place]
        raise FormatError(f"{where}: the added token {token.content!r} has the id {token.id}, which is not there")
    expected[added.ids] = added_token_flags(added, spec.reference)
    if not np.array_equal(expected, vocabulary.flags):
        raise FormatError(f"{where}: vocabulary.flags does not fit the added tokens; the file is damaged")
    for step in spec.post_processors:
        for piece in (*step.single, *(step.pair or ())) if isinstance(step, Template) else ():
            if len(piece.ids) != len(piece.tokens) or not all(0 <= number < n_ids for number in piece.ids):
                raise FormatError(f"{where}: the template names the ids {piece.ids}, which are not all there")
            if not 0 <= piece.type_id < 1 << 31:
                raise FormatError(f"{where}: the template has the type id {piece.type_id}")
    for stage in (*spec.pre_tokenizers, *spec.decoders):
        if isinstance(stage, Metaspace | DecodeMetaspace) and len(stage.replacement) != 1:
            raise FormatError(f"{where}: Metaspace.replacement is {stage.replacement!r}; expected one character")
        if isinstance(stage, CharDelimiterSplit) and len(stage.delimiter) != 1:
            raise FormatError(f"{where}: CharDelimiterSplit.delimiter is {stage.delimiter!r}; expected one character")
        if isinstance(stage, DecodeStrip) and len(stage.content) != 1:
            raise FormatError(f"{where}: DecodeStrip.content is {stage.content!r}; expected one character")


# ----------------------------------------------------------------------------------- the model, read when asked for


class _StoredTokens(Mapping[Any, int]):
    """A vocabulary whose strings are made when they are first looked at."""

    def __init__(self, strings: NDArray[np.uint8], indptr: NDArray[np.int64], ids: NDArray[np.int32], text: bool):
        self._arrays = strings, indptr, ids
        self._text = text
        self._items: dict[Any, int] | None = None

    def _load(self) -> dict[Any, int]:
        if self._items is None:
            strings, indptr, ids = self._arrays
            blob, bounds = strings.tobytes(), indptr.tolist()
            tokens: list[Any] = [blob[a:b] for a, b in zip(bounds, bounds[1:], strict=False)]
            if self._text:
                try:
                    tokens = [token.decode("utf-8", "surrogatepass") for token in tokens]
                except UnicodeDecodeError:
                    raise FormatError("model.strings of the jittok file is not UTF-8; the file is damaged") from None
            items = dict(zip(tokens, ids.tolist(), strict=True))
            if len(items) != len(ids):
                raise FormatError("model.strings of the jittok file has a token twice; the file is damaged")
            self._items = items
        return self._items

    def __getitem__(self, key: Any) -> int:
        return self._load()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._arrays[2])


class _StoredMerges(LazyTuple):
    """Merges whose strings are made when they are first looked at."""

    def __init__(self, vocab: _StoredTokens, pairs: NDArray[np.int32]):
        self._vocab = vocab
        self._pairs = pairs

    @cached_property
    def _items(self) -> tuple[tuple[str, str], ...]:
        token = {identifier: string for string, identifier in self._vocab.items()}
        return tuple((token[left], token[right]) for left, right in self._pairs.tolist())

    def __len__(self) -> int:
        return len(self._pairs)


def _stored_model(
    stated: dict[str, Any], arrays: dict[str, NDArray[Any]], n_ids: int, where: str
) -> Model:
    strings, indptr, ids = _group(arrays, "model", ["strings", "string_indptr", "ids"], where)
    for name, array, dtype in (("strings", strings, np.uint8), ("string_indptr", indptr, np.int64), ("ids", ids, np.int32)):
        if array.dtype != dtype or array.ndim != 1:
            raise FormatError(f"{where}: model.{name} is not a flat array of {np.dtype(dtype)}; the file is damaged")
    if len(ids) and (ids.min() < 0 or ids.max() >= n_ids):
        raise FormatError(f"{where}: model.ids has values outside 0 to {n_ids - 1}; the file is damaged")
    if len(indptr) != len(ids) + 1 or len(indptr) == 0 or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise FormatError(f"{where}: model.string_indptr does not fit model.ids; the file is damaged")
    if indptr[-1] > len(strings):
        raise FormatError(f"{where}: model.string_indptr ends beyond model.strings; the file is damaged")
    if stated["kind"] == "RankModel":
        return RankModel(_StoredTokens(strings, indptr, ids, text=False))
    if stated["kind"] in ("UnigramModel", "SentencePieceModel"):
        return _stored_pieces(stated, strings, indptr, arrays, where)
    vocab = _StoredTokens(strings, indptr, ids, text=True)
    if stated["kind"] in ("WordPieceModel", "WordLevelModel"):
        words = restored(stated, {"vocab": vocab})
        assert isinstance(words, WordPieceModel | WordLevelModel)
        return words
    if stated["kind"] == "MarianModel":
        return _stored_pair(stated, vocab, arrays, n_ids, where)
    (pairs,) = _group(arrays, "model", ["merges"], where)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype != np.int32:
        raise FormatError(f"{where}: model.merges is {pairs.dtype}{list(pairs.shape)}; expected int32[n, 2]")
    known = np.zeros(n_ids, np.bool_)
    known[ids] = True
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= n_ids or not known[pairs].all()):
        raise FormatError(f"{where}: model.merges names ids without a token; the file is damaged")
    model = restored(stated, {"vocab": vocab, "merges": _StoredMerges(vocab, pairs)})
    if not isinstance(model, BPEModel):
        raise FormatError(f"{where}: the model is a {stated['kind']}, which this version does not know")
    return model


def _stored_pair(
    stated: dict[str, Any], vocab: _StoredTokens, arrays: dict[str, NDArray[Any]], n_ids: int, where: str
) -> MarianModel:
    """One side of a Marian pair."""
    strings, indptr, scores = _group(arrays, "model", ["pieces", "piece_indptr", "scores"], where)
    n_pieces = len(scores)
    fits = strings.dtype == np.uint8 and indptr.dtype == np.int64 and scores.dtype == np.float64
    if not fits or strings.ndim != 1 or indptr.shape != (n_pieces + 1,) or scores.ndim != 1 or indptr[0] != 0:
        raise FormatError(f"{where}: the arrays of pieces do not fit each other; the file is damaged")
    if (np.diff(indptr) <= 0).any() or indptr[-1] != len(strings) or not np.isfinite(scores).all():
        raise FormatError(f"{where}: model.piece_indptr does not fit model.pieces; the file is damaged")
    blob, bounds = strings.tobytes(), indptr.tolist()
    pieces = tuple(blob[a:b].decode() for a, b in zip(bounds, bounds[1:], strict=False))
    model = restored(stated, {"vocab": vocab, "pieces": pieces, "scores": tuple(scores.tolist())})
    if not isinstance(model, MarianModel) or len(model.types) != n_pieces or not 0 <= model.unk_id < n_ids:
        raise FormatError(f"{where}: the model does not fit its arrays; the file is damaged")
    return model


def _stored_pieces(
    stated: dict[str, Any],
    strings: NDArray[np.uint8],
    indptr: NDArray[np.int64],
    arrays: dict[str, NDArray[Any]],
    where: str,
) -> Model:
    """A model of pieces with scores; of a SentencePiece model all that its file said is there too."""
    (scores,) = _group(arrays, "model", ["scores"], where)
    n_pieces = len(indptr) - 1
    if scores.dtype != np.float64 or scores.shape != (n_pieces,) or not np.isfinite(scores).all():
        raise FormatError(f"{where}: model.scores does not fit model.strings; the file is damaged")
    blob, bounds = strings.tobytes(), indptr.tolist()
    try:
        pieces = tuple(blob[a:b].decode() for a, b in zip(bounds, bounds[1:], strict=False))
    except UnicodeDecodeError:
        raise FormatError(f"{where}: model.strings is not UTF-8; the file is damaged") from None
    model = restored(stated, {"pieces": pieces, "scores": tuple(scores.tolist())})
    if isinstance(model, UnigramModel):
        if model.unk_id is not None and not 0 <= model.unk_id < n_pieces:
            raise FormatError(f"{where}: the unknown token's id is {model.unk_id}, but there are {n_pieces} tokens")
        return model
    assert isinstance(model, SentencePieceModel)
    fits = len(model.types) == n_pieces and len(model.messages.presence) in (0, n_pieces)
    if not fits or not set(model.types) <= set(PieceType):
        raise FormatError(f"{where}: the types of pieces do not fit model.strings; the file is damaged")
    if not all(-1 <= number < n_pieces for number in (model.unk_id, model.bos_id, model.eos_id, model.pad_id)):
        raise FormatError(f"{where}: the id of a special piece is not that of a piece; the file is damaged")
    from jittok.formats.sentencepiece_model import check_pieces

    check_pieces(model.algorithm, pieces, model.scores, model.types, model.byte_fallback, where)
    return model

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok import spec as spec_module
from jittok.build import plan as plan_module
from jittok.build.plan import Plan, SplitStage
from jittok.build.validate import check_merges, check_split, check_vocabulary
from jittok.errors import FormatError, MissingFileError
from jittok.rewriting import Rewriter, build_rewriter
from jittok.spec import BPEModel, RankModel, TokenizerSpec
from jittok.tables import MergeTables, SplitTables, VocabularyTables

#: Raised when a file written before could no longer be read as it was meant.
VERSION = 1
_DTYPES: dict[str, np.dtype[Any]] = {
    "U8": np.dtype("<u1"),
    "U16": np.dtype("<u2"),
    "U32": np.dtype("<u4"),
    "U64": np.dtype("<u8"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_MOST_HEADER_BYTES = 1 << 26
_DEEPEST_SPEC = 64


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
    _add_group(arrays, "merges", plan.merges)
    _add_group(arrays, "vocabulary", vocabulary)
    stages: list[dict[str, Any]] = []
    for stage in plan.stages:
        if isinstance(stage, SplitStage):
            _add_group(arrays, f"split.{len(stages)}", stage.tables)
            stages.append({"behavior": stage.behavior, "invert": stage.invert})
        else:
            stages.append({"steps": [_plain(step) for step in stage.steps]})
    _add_group(arrays, "last_split", plan.last_split)
    _add_model(arrays, spec)
    metadata = {
        "format": "jittok",
        "version": str(VERSION),
        "spec": json.dumps(_plain(spec), ensure_ascii=True, sort_keys=True),
        "plan": json.dumps({"stages": stages}, sort_keys=True),
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
    else:
        items = model.vocab
        tokens = [token.encode("utf-8", "surrogatepass") for token in items]
        ids = model.vocab
        pairs = [(ids[left], ids[right]) for left, right in model.merges]
        arrays["model.merges"] = np.array(pairs, np.int32).reshape(-1, 2)
    indptr = np.zeros(len(tokens) + 1, np.int64)
    indptr[1:] = np.cumsum([len(token) for token in tokens])
    arrays["model.strings"] = np.frombuffer(b"".join(tokens), np.uint8)
    arrays["model.string_indptr"] = indptr
    arrays["model.ids"] = np.fromiter(items.values(), np.int32, len(items))


def _plain(value: Any) -> Any:
    """A spec as JSON values: dataclasses become objects with their class under "kind"; the model's mappings are left out."""
    if is_dataclass(value) and not isinstance(value, type):
        result: dict[str, Any] = {"kind": type(value).__name__}
        for field in fields(value):
            if field.name not in ("vocab", "merges", "ranks"):
                result[field.name] = _plain(getattr(value, field.name))
        return result
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
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
    spec = _restored(stated, {"model": _stored_model(stated["model"], arrays, where)}, 0)
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
        merges = MergeTables(*_group(arrays, "merges", MergeTables._fields, where))
        vocabulary = VocabularyTables(*_group(arrays, "vocabulary", VocabularyTables._fields, where))
        check_merges(merges, where)
        check_vocabulary(vocabulary, where)
        if len(vocabulary.flags) < len(merges.token_indptr) - 1:
            raise FormatError(f"{where}: vocabulary has fewer ids than the model")
        stages: list[SplitStage | Rewriter] = []
        for number, stage in enumerate(stated_plan["stages"]):
            if "steps" in stage:
                stages.append(build_rewriter([_restored(step, {}, 0) for step in stage["steps"]]))
                continue
            tables = SplitTables(*_group(arrays, f"split.{number}", SplitTables._fields, where))
            check_split(tables, f"{where}: split.{number}")
            behavior = stage["behavior"]
            if behavior not in range(len(plan_module.BEHAVIORS)):
                raise FormatError(f"{where}: plan.stages[{number}].behavior is {behavior!r}")
            stages.append(SplitStage(tables, behavior, bool(stage["invert"])))
        last = SplitTables(*_group(arrays, "last_split", SplitTables._fields, where))
        check_split(last, f"{where}: last_split")
        plan = plan_module.restored_plan(spec, tuple(stages), last, merges)
    except FormatError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise FormatError(
            f"{where}: the metadata is not what this version writes ({type(error).__name__}: {error}); "
            "save the tokenizer again from its source"
        ) from None
    return Stored(spec, plan, vocabulary)


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


def _restored(value: Any, given: Mapping[str, Any], depth: int) -> Any:
    """JSON values back to the dataclasses of a spec; fields in `given` are taken as they are."""
    if depth > _DEEPEST_SPEC:
        raise ValueError("nested too deeply")
    if isinstance(value, list):
        return tuple(_restored(item, {}, depth + 1) for item in value)
    if isinstance(value, dict) and "kind" in value:
        kind = getattr(spec_module, str(value["kind"]), None)
        if not (isinstance(kind, type) and is_dataclass(kind)):
            raise ValueError(f"unknown kind {value['kind']!r}")
        items = {name: _restored(item, {}, depth + 1) for name, item in value.items() if name not in ("kind", *given)}
        return kind(**items, **given)
    if isinstance(value, dict):
        return {key: _restored(item, {}, depth + 1) for key, item in value.items()}
    return value


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
                tokens = [token.decode("utf-8", "surrogatepass") for token in tokens]
            self._items = dict(zip(tokens, ids.tolist(), strict=True))
        return self._items

    def __getitem__(self, key: Any) -> int:
        return self._load()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._arrays[2])


class _StoredMerges(Sequence[tuple[str, str]]):
    """Merges whose strings are made when they are first looked at."""

    def __init__(self, vocab: _StoredTokens, pairs: NDArray[np.int32]):
        self._vocab = vocab
        self._pairs = pairs
        self._items: tuple[tuple[str, str], ...] | None = None

    def _load(self) -> tuple[tuple[str, str], ...]:
        if self._items is None:
            token = {identifier: string for string, identifier in self._vocab.items()}
            self._items = tuple((token[left], token[right]) for left, right in self._pairs.tolist())
        return self._items

    def __getitem__(self, index: Any) -> Any:
        return self._load()[index]

    def __len__(self) -> int:
        return len(self._pairs)


def _stored_model(stated: dict[str, Any], arrays: dict[str, NDArray[Any]], where: str) -> BPEModel | RankModel:
    strings, indptr, ids = _group(arrays, "model", ["strings", "string_indptr", "ids"], where)
    if len(indptr) != len(ids) + 1 or len(indptr) == 0 or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise FormatError(f"{where}: model.string_indptr does not fit model.ids; the file is damaged")
    if indptr[-1] > len(strings):
        raise FormatError(f"{where}: model.string_indptr ends beyond model.strings; the file is damaged")
    if stated["kind"] == "RankModel":
        return RankModel(_StoredTokens(strings, indptr, ids, text=False))
    vocab = _StoredTokens(strings, indptr, ids, text=True)
    (pairs,) = _group(arrays, "model", ["merges"], where)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise FormatError(f"{where}: model.merges has the shape {pairs.shape}; expected [n, 2]")
    model = _restored(stated, {"vocab": vocab, "merges": _StoredMerges(vocab, pairs)}, 0)
    if not isinstance(model, BPEModel):
        raise FormatError(f"{where}: the model is a {stated['kind']}, which this version does not know")
    return model

"""Libraries that do what jittok does, in one form, for measuring and comparing; each is imported when it is used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Kinds of files: "json" is a tokenizer.json, "model" a SentencePiece model, "ranks" a rank file, "jittok" our own.
Files = dict[str, str]


def pointers(lengths: Any) -> NDArray[np.int64]:
    """Return row pointers, int64[n + 1], of rows of these lengths."""
    indptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr


class Library:
    """One library with one model loaded; `arrays` returns (ids, indptr), without Python lists where it can."""

    def __init__(self, files: Files, threads: int) -> None:
        raise NotImplementedError

    def run(self, texts: list[str]) -> Any:
        """What is timed: from list[str] to arrays, in the library's own form."""
        raise NotImplementedError

    def arrays(self, result: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Not timed: the result of `run` as flat ids and row pointers, for comparing."""
        raise NotImplementedError

    def lists(self, texts: list[str]) -> Any:
        """From list[str] to lists of Python integers."""
        raise NotImplementedError

    def spans(self, texts: list[str]) -> Any:
        """With the spans of all tokens."""
        raise NotImplementedError


class _Jittok(Library):
    """jittok."""

    def __init__(self, files: Files, threads: int) -> None:
        import jittok

        order = ("jittok", "model", "json", "ranks")
        self.use(jittok.load(next(files[kind] for kind in order if kind in files)), threads)

    def use(self, tokenizer: Any, threads: int) -> None:
        self.tokenizer = tokenizer
        self.arguments: dict[str, Any] = {"threads": threads, "add_special_tokens": False, "special": "text"}

    def run(self, texts: list[str]) -> Any:
        return self.tokenizer.encode_batch(texts, **self.arguments)

    def arrays(self, result: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        return result.ids, result.indptr

    def lists(self, texts: list[str]) -> Any:
        return self.run(texts).to_lists()

    def spans(self, texts: list[str]) -> Any:
        return self.tokenizer.encode_batch(texts, spans=True, **self.arguments)


def loaded(tokenizer: Any, threads: int) -> Library:
    """Return a jittok tokenizer in that form.

    Parameters
    ----------
    tokenizer
        Loaded already.
    threads
        How many it uses.
    """
    library = _Jittok.__new__(_Jittok)
    library.use(tokenizer, threads)
    return library


class _Gigatoken(Library):
    """gigatoken; awkward arrays."""

    def __init__(self, files: Files, threads: int) -> None:
        import gigatoken

        if "json" in files:
            self.tokenizer = gigatoken.Tokenizer(files["json"])
        else:
            self.tokenizer = gigatoken.Tokenizer.from_tiktoken(files["ranks"])
        self.parallel = threads > 1

    def run(self, texts: list[str]) -> Any:
        return self.tokenizer.encode_batch(texts, parallel=self.parallel)

    def arrays(self, result: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        import awkward

        return awkward.to_numpy(awkward.flatten(result)), pointers(awkward.to_numpy(awkward.num(result)))

    def lists(self, texts: list[str]) -> Any:
        return self.tokenizer.encode_batch_list(texts, parallel=self.parallel)


class _Nanotoken(Library):
    """nanotoken."""

    def __init__(self, files: Files, threads: int) -> None:
        import nanotoken

        self.tokenizer = nanotoken.Tokenizer(files["json"])
        self.parallel = threads > 1

    def run(self, texts: list[str]) -> Any:
        return self.tokenizer.encode_batch(texts, add_special_tokens=False, parallel=self.parallel)

    def arrays(self, result: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        return np.asarray(result.ids), np.asarray(result.offsets)

    def lists(self, texts: list[str]) -> Any:
        return self.run(texts).to_list()


class _Splintr(Library):
    """splintr."""

    def __init__(self, files: Files, threads: int) -> None:
        import splintr

        self.tokenizer = splintr.from_json(files["json"])
        self.added = len(self.tokenizer.encode(""))  # it always adds special tokens, behind

    def run(self, texts: list[str]) -> Any:
        return self.tokenizer.encode_batch_flat(texts)

    def arrays(self, result: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        ids, indptr = np.frombuffer(result[0], np.uint32), np.frombuffer(result[1], np.uint64).astype(np.int64)
        rows = [ids[i : j - self.added] for i, j in zip(indptr[:-1], indptr[1:], strict=True)]
        return np.concatenate(rows), pointers([len(row) for row in rows])

    def lists(self, texts: list[str]) -> Any:
        return self.tokenizer.encode_batch(texts)


class _SentencePiece(Library):
    """sentencepiece, whose arrays are made of lists."""

    def __init__(self, files: Files, threads: int) -> None:
        from sentencepiece import SentencePieceProcessor

        self.processor = SentencePieceProcessor(model_file=files["model"])
        self.threads = threads

    def run(self, texts: list[str]) -> Any:
        return [np.array(ids, np.int32) for ids in self.lists(texts)]

    def arrays(self, result: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        return np.concatenate(result), pointers([len(ids) for ids in result])

    def lists(self, texts: list[str]) -> Any:
        return self.processor.encode(texts, num_threads=self.threads)


class _Tiktoken(Library):
    """tiktoken, one text at a time."""

    def __init__(self, files: Files, threads: int) -> None:
        import tiktoken
        import tiktoken_ext.openai_public as encodings
        from tiktoken.load import load_tiktoken_bpe

        # the published encodings fetch their file from the network; give them ours
        encodings.load_tiktoken_bpe = lambda *_, **__: load_tiktoken_bpe(files["ranks"])
        name = Path(files["ranks"]).stem
        self.encoding = tiktoken.Encoding(**getattr(encodings, name)())
        self.threads = threads

    def run(self, texts: list[str]) -> Any:
        if self.threads > 1:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(self.threads) as pool:
                return list(pool.map(self._one, texts))
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Any:
        return self.encoding.encode_to_numpy(text, disallowed_special=())

    def arrays(self, result: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        return np.concatenate(result), pointers([len(ids) for ids in result])

    def lists(self, texts: list[str]) -> Any:
        return [self.encoding.encode_ordinary(text) for text in texts]


class _Tokenizers(Library):
    """tokenizers, without its file's truncation and padding."""

    def __init__(self, files: Files, threads: int) -> None:
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(files["json"])
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()

    def run(self, texts: list[str]) -> Any:
        encodings = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [np.array(encoding.ids, np.int32) for encoding in encodings]

    def arrays(self, result: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        return np.concatenate(result), pointers([len(ids) for ids in result])

    def lists(self, texts: list[str]) -> Any:
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    def spans(self, texts: list[str]) -> Any:
        encodings = self.tokenizer.encode_batch(texts, add_special_tokens=False)
        return [(encoding.ids, encoding.offsets) for encoding in encodings]


#: By the name that people know a library by.
ADAPTERS: dict[str, type[Library]] = {
    "jittok": _Jittok,
    "gigatoken": _Gigatoken,
    "nanotoken": _Nanotoken,
    "splintr": _Splintr,
    "sentencepiece": _SentencePiece,
    "tiktoken": _Tiktoken,
    "tokenizers": _Tokenizers,
}
#: The kinds of files that a library reads; none: several.
NEEDS: dict[str, tuple[str, ...]] = {
    "jittok": (),
    "gigatoken": (),
    "nanotoken": ("json",),
    "splintr": ("json",),
    "sentencepiece": ("model",),
    "tiktoken": ("ranks",),
    "tokenizers": ("json",),
}
#: Kinds of models that a library does not have.
LACKS: dict[str, tuple[str, ...]] = {
    "gigatoken": ("WordPiece", "unigram"),
    "nanotoken": ("BPE", "unigram", "SentencePiece BPE"),
}
#: Libraries that give spans.
WITH_SPANS = ("jittok", "tokenizers")

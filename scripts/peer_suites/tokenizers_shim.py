"""Puts jittok's wrapper where tokenizers has its Tokenizer, Encoding, AddedToken and DecodeStream.

Tokenizers that tests put together from components keep the library's objects for these, as tests ask for their attributes;
the wrapper is given the same objects.
"""

import sys
import types

import pytest
import tokenizers
import tokenizers.decoders
import tokenizers.implementations
from counted import Marker, counted, data_file

from jittok import load_bytes
from jittok.interop.huggingface import HfAddedToken, HfDecodeStream, HfEncoding, HfTokenizer

Library = tokenizers.Tokenizer
LibraryToken = tokenizers.AddedToken

#: Files of the hub that are among the models in a test folder.
HUB = {
    "roberta-base-vocab.json": "bbpe/roberta-base/vocab.json",
    "roberta-base-merges.txt": "bbpe/roberta-base/merges.txt",
    "bert-base-uncased-vocab.txt": "wordpiece/bert-base-uncased/vocab.txt",
    "gpt2": "bbpe/gpt2/tokenizer.json",
    "t5-base": "unigram/t5-small/tokenizer.json",
}


class _Tokenizer(HfTokenizer):
    """The wrapper, made from a model of the library."""

    def __init__(self, model):
        self._use(Library(model))

    def _use(self, library):
        self._library = library
        HfTokenizer.__init__(self, load_bytes(library.to_str().encode(), format="tokenizer.json"))

    @classmethod
    def from_str(cls, json):
        result = cls.__new__(cls)
        result._use(Library.from_str(json))
        return result

    @classmethod
    def from_buffer(cls, buffer):
        return cls.from_str(bytes(buffer).decode())

    @classmethod
    def from_file(cls, path):
        with open(path, encoding="utf-8") as stream:
            return cls.from_str(stream.read())

    @classmethod
    def from_pretrained(cls, identifier, revision="main", token=None):
        return cls.from_file(data_file(HUB.get(identifier, identifier)))

    def __getstate__(self):
        return {key: value for key, value in self.__dict__.items() if key != "_library"} | {"json": self._library.to_str()}

    def __setstate__(self, state):
        self._library = Library.from_str(state.pop("json"))
        self.__dict__.update(state)

    def train(self, files, trainer=None):
        self._train("train", files, trainer)

    def train_from_iterator(self, iterator, trainer=None, length=None):
        self._train("train_from_iterator", iterator, trainer)

    def _train(self, method, texts, trainer):
        """Train as the wrapper does, or in the library what only that can."""
        if isinstance(self._library.model, tokenizers.models.Unigram):
            getattr(self._library, method)(texts, trainer)
            self.tokenizer = load_bytes(self._library.to_str().encode(), format="tokenizer.json")
        else:
            getattr(HfTokenizer, method)(self, texts, trainer)
            self._library = Library.from_str(self.to_str())


def component(name):
    def change(self, value):
        getattr(HfTokenizer, name).fset(self, value)
        setattr(self._library, name, value)

    return property(lambda self: getattr(self._library, name), change)


for name in ("model", "normalizer", "pre_tokenizer", "post_processor", "decoder"):
    setattr(_Tokenizer, name, component(name))

Tokenizer = counted(_Tokenizer)
AddedToken = counted(HfAddedToken)
Encoding = HfEncoding
DecodeStream = HfDecodeStream
for new, label in ((Tokenizer, "Tokenizer"), (AddedToken, "AddedToken")):
    new.__name__ = new.__qualname__ = label
    new.__module__ = __name__


def hf_hub_download(repo_id, filename, **_):
    """A file of the hub, from this machine."""
    return str(data_file(HUB.get(filename, filename)))


def load_dataset(*_, **__):
    pytest.skip("needs a data set of the hub")


hub = types.ModuleType("huggingface_hub")
hub.hf_hub_download = hf_hub_download
datasets = types.ModuleType("datasets")
datasets.load_dataset = load_dataset
sys.modules.update(huggingface_hub=hub, datasets=datasets)

for module in [module for key, module in sys.modules.items() if key.split(".")[0] == "tokenizers"]:
    for key, value in {"Tokenizer": Tokenizer, "AddedToken": AddedToken, "Encoding": Encoding}.items():
        if getattr(module, key, None) in (Library, LibraryToken, tokenizers.Encoding):
            setattr(module, key, value)
tokenizers.Tokenizer, tokenizers.AddedToken, tokenizers.Encoding = Tokenizer, AddedToken, Encoding
tokenizers.decoders.DecodeStream = DecodeStream


def pytest_configure(config):
    config.pluginmanager.register(Marker())

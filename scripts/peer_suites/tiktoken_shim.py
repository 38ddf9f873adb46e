"""Puts jittok's wrapper where tiktoken has its Encoding."""

import base64

import tiktoken
import tiktoken.core
import tiktoken.registry
import tiktoken_ext.openai_public
from counted import Marker, counted, data_file

from jittok.interop.tiktoken import TiktokenEncoding


class _Encoding(TiktokenEncoding):
    """The wrapper, made with tiktoken's arguments."""

    def __init__(self, name, **arguments):
        made = TiktokenEncoding.from_ranks(name, **arguments)
        super().__init__(made._tokenizer, name)


Encoding = counted(_Encoding)
Encoding.__name__ = Encoding.__qualname__ = "Encoding"
Encoding.__module__ = __name__


def load_ranks(file, *others, **keywords):
    """The ranks of a published encoding, from a file on this machine."""
    name = str(file).rsplit("/", 1)[-1].removesuffix(".tiktoken")
    name = "r50k_base" if name.startswith("vocab") else name  # gpt2's own files say the same
    lines = data_file(f"tiktoken/{name}/{name}.tiktoken").read_bytes().splitlines()
    return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines)}


tiktoken_ext.openai_public.load_tiktoken_bpe = load_ranks
tiktoken_ext.openai_public.data_gym_to_mergeable_bpe_ranks = lambda vocab_bpe_file, **_: load_ranks(vocab_bpe_file)
for module in (tiktoken, tiktoken.core, tiktoken.registry):
    module.Encoding = Encoding


def pytest_configure(config):
    config.pluginmanager.register(Marker())
